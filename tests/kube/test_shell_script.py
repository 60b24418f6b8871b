from importlib import resources

from gpu_constructs.kube.config_map import shell_script

SHIPPED = [
    ("gpu_constructs.operator", "validation_bridge.sh"),
    ("gpu_constructs.operator", "validation_bridge_markers.sh"),
    ("gpu_constructs.operator", "validation_bridge_stage.sh"),
    ("gpu_constructs.power", "power_limit.sh"),
]


def test_a_script_is_plain_text_that_stays_readable_in_a_config_map():
    for package, name in SHIPPED:
        lines = shell_script(package, name).split("\n")
        assert lines[0] == "#!/bin/sh", (package, name)
        assert lines[-1] == "", (package, name)
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
