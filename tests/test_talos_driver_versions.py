import pytest

from gpu_constructs import Talos
from gpu_constructs.talos.driver_versions import driver_branch, driver_version, newest_known_release, patch_release


@pytest.mark.parametrize(
    ("release", "lts", "production"),
    [
        ("1.10.1", "535.230.02", "570.124.06"),
        ("1.10.2", "535.247.01", "570.133.20"),
        ("1.11.6", "535.247.01", "570.172.08"),
        ("1.12.5", "580.126.16", "570.211.01"),
        ("v1.12.11", "580.126.20", "570.211.01"),
        ("1.13.9", "580.178.04", "595.91.07"),
        ("v1.14.0-rc.1", "580.178.04", "595.91.07"),
    ],
)
def test_a_release_ships_one_driver_of_each_branch(release, lts, production):
    assert driver_version(Talos(release), "lts") == lts
    assert driver_version(Talos(release), "production") == production


@pytest.mark.parametrize("release", ["1.12", "1.12.12", "1.14.0", "1.14.0-rc.0", "1.14.0-rc.2", "1.12.4-rc.1"])
def test_the_driver_of_a_line_or_of_an_unknown_release_is_not_guessed(release):
    assert driver_version(Talos(release), "production") is None


def test_the_long_term_branch_is_the_newer_one_on_talos_1_12():
    assert driver_branch(Talos("1.12"), "lts") == 580
    assert driver_branch(Talos("1.12"), "production") == 570


@pytest.mark.parametrize("line", ["1.10", "1.11", "1.12", "1.13", "1.14"])
def test_every_line_has_branches_and_a_release_to_name(line):
    assert driver_branch(Talos(line), "lts") >= 535
    newest = Talos(newest_known_release(Talos(line)))
    assert newest.line == line
    assert driver_version(newest, "lts") is not None
    assert newest_known_release(Talos("1.12")) == "1.12.11"


@pytest.mark.parametrize(
    ("version", "release"), [("1.12", None), ("v1.12", None), ("v1.12.04", "1.12.4"), ("v1.14.0-rc.1", "1.14.0-rc.1")]
)
def test_a_patch_release_is_written_as_its_tag_is(version, release):
    assert patch_release(Talos(version)) == release
