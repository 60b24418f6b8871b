from importlib import resources

import pytest

from gpu_constructs._shell_script import SCRIPT_MODE, shell_script

SHIPPED = [
    ("gpu_constructs.operator", "validation_bridge.sh"),
    ("gpu_constructs.operator", "validation_bridge_markers.sh"),
    ("gpu_constructs.operator", "validation_bridge_stage.sh"),
    ("gpu_constructs.power", "power_limit.sh"),
]


@pytest.mark.parametrize(("package", "name"), SHIPPED)
def test_a_script_is_given_byte_for_byte_as_it_is_shipped(package, name):
    assert shell_script(package, name).encode() == (resources.files(package) / name).read_bytes()


@pytest.mark.parametrize(("package", "name"), SHIPPED)
def test_a_script_is_plain_text_that_stays_readable_in_a_config_map(package, name):
    lines = shell_script(package, name).split("\n")
    assert lines[0] == "#!/bin/sh"
    assert lines[-1] == ""
    assert [line for line in lines if line != line.rstrip() or "\t" in line or not line.isascii()] == []


def test_every_script_of_the_library_is_checked_here():
    shipped = resources.files("gpu_constructs")
    found = [
        (f"gpu_constructs.{folder.name}", file.name)
        for folder in shipped.iterdir()
        if folder.is_dir()
        for file in folder.iterdir()
        if file.name.endswith(".sh")
    ]
    assert sorted(found) == SHIPPED


def test_a_script_that_is_not_shipped_is_missed():
    with pytest.raises(FileNotFoundError):
        shell_script("gpu_constructs.operator", "power_limit.sh")


def test_everyone_may_read_and_run_a_script_and_nobody_write_it():
    assert SCRIPT_MODE == 0o555
