"""What the end-to-end suite says of the programs that it finds, or does not find, on a machine."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import assets
from tables import beside

ROOT = Path(__file__).parents[2]
CONTROL_PLANE, NVIDIA = ("etcd", *assets.CONTROL_PLANE), assets.NVIDIA


@pytest.fixture
def kubernetes(tmp_path):
    return programs(tmp_path / "kubernetes", CONTROL_PLANE, says="Kubernetes v1.36.3")


@pytest.fixture
def nvidia(tmp_path):
    for release in ("0.18.2", "0.20.0"):
        programs(tmp_path / "nvidia" / release, NVIDIA)
    return tmp_path / "nvidia"


def programs(folder, names, says=""):
    folder.mkdir(parents=True)
    for name in names:
        (folder / name).write_text(f"#!/bin/sh\necho '{says}'\n")
        (folder / name).chmod(0o755)
    return folder


def said(kubernetes, nvidia, **more):
    folders = {"KUBEBUILDER_ASSETS": str(kubernetes), "GPU_CONSTRUCTS_NVIDIA_ASSETS": str(nvidia)}
    done = subprocess.run(
        [sys.executable, ROOT / "tests/e2e/assets.py"],
        env={"PATH": os.environ["PATH"], **folders, **more},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""
    return done.returncode, done.stdout.splitlines()


def test_all_programs_are_named_with_their_releases(kubernetes, nvidia):
    assert said(kubernetes, nvidia) == (0, ["control plane: 1.36.3", "NVIDIA's programs: 0.18.2, 0.20.0"])


def test_missing_programs_are_one_line_for_each_part(tmp_path, expected):
    status, lines = said(tmp_path, tmp_path)
    assert status == 3
    assert [line.split(": ")[:2] for line in lines] == expected


def test_the_newest_release_is_chosen_and_releases_share_an_etcd_beside_their_folders(kubernetes, nvidia, tmp_path):
    several = tmp_path / "several"
    for release in ("1.36.3", "1.34.10"):
        programs(several / release, CONTROL_PLANE[1:], says=f"Kubernetes v{release}")
    (kubernetes / "etcd").rename(several / "etcd")
    for asked, found in (("", "1.36.3"), ("1.34", "1.34.10"), ("all", "1.36.3, 1.34.10")):
        more = {"GPU_CONSTRUCTS_E2E_RELEASES": asked} if asked else {}
        assert said(several, nvidia, **more)[1][0] == f"control plane: {found}"


MISSING, NOT_EXECUTABLE = "missing", "not executable"
UNUSABLE = beside(__file__, "e2e_assets")["unusable"]


@pytest.mark.parametrize(("program", "how", "line"), UNUSABLE)
def test_programs_that_cannot_be_used_are_an_error(kubernetes, nvidia, tmp_path, program, how, line):
    path = tmp_path / program
    if how == MISSING:
        path.unlink()
    elif how == NOT_EXECUTABLE:
        path.chmod(0o644)
    else:
        path.write_text(f"#!/bin/sh\n{how}\n")
    status, lines = said(kubernetes, nvidia)
    part = "control plane" if program.startswith("kubernetes") else "NVIDIA's programs"
    assert status == 2
    assert lines[-1].startswith(f"E2E CANNOT RUN: {part}: {tmp_path}")
    assert line in lines[-1]


def test_a_release_that_is_not_supported_or_not_there_is_an_error(kubernetes, nvidia):
    status, (line,) = said(kubernetes, nvidia, GPU_CONSTRUCTS_E2E_RELEASES="1.35")
    assert status == 2
    assert line.endswith("GPU_CONSTRUCTS_E2E_RELEASES names 1.35, which is not on this machine; it has 1.36.3")
    (nvidia / "0.20.0").rename(nvidia / "0.15.0")
    status, lines = said(kubernetes, nvidia)
    assert status == 2
    assert "0.15.0 is not a supported release of the device plugin" in lines[1]
    assert lines[1].endswith("0.18.2, 0.20.0")
