"""The scripts in dist/, run as the manifests would run them: their ConfigMap, command, variables and probes."""

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from test_power_limit_script import FAKE_NVIDIA_SMI

import dist
import invariants
from shell import RunningScript, wait_until

SCRIPTS = {
    f"{cluster} {key}": text
    for cluster in dist.CLUSTERS
    for manifest in dist.objects(cluster)
    if manifest["kind"] == "ConfigMap"
    for key, text in manifest["data"].items()
    if key.endswith(".sh") or text.startswith("#!")
}


class Container:
    """The one container of a DaemonSet, with a folder below ``root`` for each of its volumes."""

    def __init__(self, cluster: str, name: str, root: Path) -> None:
        (spec,) = invariants.pod_specs(dist.find(cluster, "DaemonSet", name))
        (self.spec,) = spec["containers"]
        self.folders: dict[str, Path] = {}
        volumes = {volume["name"]: volume for volume in spec["volumes"]}
        for mount in self.spec["volumeMounts"]:
            volume, folder = volumes[mount["name"]], root / "volumes" / mount["name"]
            folder.mkdir(parents=True)
            self.folders[mount["mountPath"]] = folder
            if "configMap" in volume:
                for key, text in dist.find(cluster, "ConfigMap", volume["configMap"]["name"])["data"].items():
                    (folder / key).write_text(text)
                    (folder / key).chmod(volume["configMap"]["defaultMode"])

    def _outside(self, text: str) -> str:
        """Put the folders in the place of the paths they are mounted at."""
        paths = "|".join(map(re.escape, self.folders))
        return re.sub(rf"(?<![\w/.-])({paths})(?![\w.-])", lambda found: str(self.folders[found[1]]), text)

    @property
    def command(self) -> list[str]:
        return [self._outside(argument) for argument in self.spec["command"]]

    @property
    def env(self) -> dict[str, str]:
        return {variable["name"]: self._outside(variable["value"]) for variable in self.spec["env"]}

    def probe(self, name: str) -> bool:
        """Whether a probe of the container would succeed now."""
        command = [self._outside(argument) for argument in self.spec[name]["exec"]["command"]]
        return subprocess.run(command, check=False, stderr=subprocess.DEVNULL).returncode == 0


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Any]:
    """Start a container's command; what still runs at the end of the test is ended."""
    started: list[RunningScript] = []

    def start(container: Container, **env: str) -> RunningScript:
        started.append(RunningScript(container.command, {**container.env, **env}, full_disk=False))
        return started[-1]

    yield start
    for script in started:
        script.close()


def test_there_is_a_script_for_each_construct_that_runs_one() -> None:
    assert sorted(SCRIPTS) == ["talos-gpu-operator validation-bridge.sh", "talos-rtx3090 power-limit.sh"]


@pytest.mark.parametrize("text", SCRIPTS.values(), ids=SCRIPTS)
def test_a_script_says_its_shell_and_parses(text: str) -> None:
    assert text.startswith("#!/bin/sh\n")
    parsed = subprocess.run(["sh", "-n"], input=text, capture_output=True, text=True, check=False)
    assert (parsed.returncode, parsed.stderr) == (0, "")


def test_the_validation_bridge_of_dist_becomes_ready_and_writes_the_markers(tmp_path: Path, run: Any) -> None:
    for module in ("nvidia", "nvidia_uvm"):
        (tmp_path / "sys" / "module" / module).mkdir(parents=True)
        (tmp_path / "sys" / "module" / module / "initstate").write_text("live\n")
    driver = tmp_path / "proc" / "driver" / "nvidia"
    (driver / "gpus" / "0000:01:00.0").mkdir(parents=True)
    (driver / "version").write_text("NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.211.01\n")
    container = Container("talos-gpu-operator", "nvidia-validation-bridge", tmp_path)
    markers = container.folders["/run/nvidia/validations"]
    assert not container.probe("readinessProbe")

    bridge = run(container, SYS_ROOT=str(tmp_path / "sys"), PROC_ROOT=str(tmp_path / "proc"))

    wait_until(lambda: container.probe("readinessProbe"), "ready")
    assert sorted(path.name for path in markers.iterdir()) == ["driver-ready", "toolkit-ready"]
    sourced = subprocess.run(
        ["sh", "-c", '. "$1" && echo "$IS_HOST_DRIVER"', "sh", str(markers / "driver-ready")],
        capture_output=True,
        text=True,
        check=True,
    )
    assert sourced.stdout == "true\n"
    wait_until(lambda: container.probe("livenessProbe"), "alive")

    bridge.terminate_in_its_sleep()
    assert list(markers.iterdir()) == []
    assert not container.probe("readinessProbe")


def test_the_power_limit_of_dist_sets_its_watts_on_every_gpu(tmp_path: Path, run: Any) -> None:
    programs = tmp_path / "bin"
    (programs / "gpus").mkdir(parents=True)
    (programs / "nvidia-smi").write_text(FAKE_NVIDIA_SMI)
    (programs / "nvidia-smi").chmod(0o755)
    gpus = [programs / "gpus" / f"GPU-{index}" for index in range(2)]
    for index, gpu in enumerate(gpus):
        gpu.write_text(
            f"index={index}\nuuid=GPU-{index}\npci=00000000:0{index}:00.0\nname='NVIDIA GeForce RTX 3090'\n"
            "limit='350.00'\nmin='100.00'\nmax='370.00'\ndefault='350.00'\n"
        )
    container = Container("talos-rtx3090", "nvidia-powerlimit", tmp_path)
    assert not container.probe("startupProbe")

    agent = run(container, ONESHOT="1", PATH=f"{programs}:{os.environ['PATH']}")

    assert agent.wait() == 0, agent.log
    assert ["limit=300.00" in gpu.read_text().splitlines() for gpu in gpus] == [True, True], agent.log
    assert "-pm 1" in (programs / "calls").read_text().splitlines()
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        assert container.probe(probe), probe
