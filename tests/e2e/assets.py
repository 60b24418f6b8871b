"""Find the real programs that the end-to-end suite runs.

Run as a program, this module prints one line for each part of the suite. Exit status 0: every part can run. 3: a part
has no programs here. 2: what was found cannot be used.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

CONTROL_PLANE = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl")
NVIDIA = (
    "nvidia-device-plugin",
    "gpu-feature-discovery",
    "config-manager",
    "mps-control-daemon",
    "nvidia-validator",
    "libnvidia-ml.so.1",
)
KUBERNETES_MINORS = range(34, 38)
NVIDIA_RELEASES = ("0.18.2", "0.20.0")

KUBERNETES_VARIABLE, KUBERNETES_FOLDER = "KUBEBUILDER_ASSETS", "/usr/local/kubebuilder/bin"
NVIDIA_VARIABLE, NVIDIA_FOLDER = "GPU_CONSTRUCTS_NVIDIA_ASSETS", "/usr/local/nvidia-e2e"
CLUSTER_VARIABLE = "GPU_CONSTRUCTS_E2E_KUBECONFIG"
RELEASES_VARIABLE = "GPU_CONSTRUCTS_E2E_RELEASES"
PAGE = "docs/how-it-is-tested.md"


class AssetsError(Exception):
    """Programs that are found and cannot be used, in one line that says what to do."""


class NotFound(AssetsError):
    """Programs that are not on this machine."""


@dataclass(frozen=True)
class Kubernetes:
    """The programs of one control plane.

    Attributes:
        version: Release of kube-apiserver, such as ``1.36.3``.
        folder: Folder of the programs.
        etcd: Path of etcd.
    """

    version: str
    folder: Path
    etcd: Path

    @property
    def minor(self) -> int:
        """Minor version: 36 for 1.36.3."""
        return int(self.version.split(".")[1])

    def program(self, name: str) -> str:
        """Return the path of a program."""
        return str(self.folder / name)


@dataclass(frozen=True)
class Nvidia:
    """NVIDIA's programs of one release of the device plugin.

    Attributes:
        version: Release of the device plugin, such as ``0.20.0``.
        folder: Folder of the programs.
    """

    version: str
    folder: Path

    def program(self, name: str) -> str:
        """Return the path of a program."""
        return str(self.folder / name)


@cache
def kubernetes() -> tuple[Kubernetes, ...]:
    """Return every control plane on this machine, the newest release first.

    Raises:
        AssetsError: No program is found, or one cannot be used.
    """
    folder = Path(os.environ.get(KUBERNETES_VARIABLE) or KUBERNETES_FOLDER)
    folders = _folders_with("kube-apiserver", folder)
    if not folders:
        raise NotFound(
            f"no kube-apiserver in {folder}. Put a control plane there or name its folder in {KUBERNETES_VARIABLE} "
            f"({PAGE})"
        )
    found = [_kubernetes_in(each, folder) for each in folders]
    return tuple(sorted(found, key=lambda release: _numbers(release.version), reverse=True))


def chosen() -> tuple[Kubernetes, ...]:
    """Return the control planes to test on: the newest one, or those that ``GPU_CONSTRUCTS_E2E_RELEASES`` names.

    Raises:
        AssetsError: A named release is not on this machine.
    """
    found, wanted = kubernetes(), os.environ.get(RELEASES_VARIABLE, "").split()
    if not wanted:
        return found[:1]
    if wanted == ["all"]:
        return found
    return tuple(_release_of(name, found) for name in wanted)


@cache
def nvidia() -> tuple[Nvidia, ...]:
    """Return NVIDIA's programs of each supported release of the device plugin.

    Raises:
        AssetsError: No program is found, or one cannot be used.
    """
    folder = Path(os.environ.get(NVIDIA_VARIABLE) or NVIDIA_FOLDER)
    folders = sorted(_folders_with("nvidia-device-plugin", folder))
    if not folders:
        raise NotFound(
            f"no nvidia-device-plugin in a folder such as {folder}/{NVIDIA_RELEASES[-1]}. Put NVIDIA's programs there "
            f"or name another folder in {NVIDIA_VARIABLE} ({PAGE})"
        )
    for each in folders:
        if each.name not in NVIDIA_RELEASES:
            raise AssetsError(
                f"{each} is not a supported release of the device plugin. Name the folder of each release after it: "
                f"{', '.join(NVIDIA_RELEASES)}"
            )
        for name in NVIDIA:
            _usable(each / name, needs_execution=not name.endswith(".so.1"))
    return tuple(Nvidia(each.name, each) for each in folders)


def has_own_cluster() -> bool:
    """Check whether the tests run in a cluster of the user, in place of a control plane that the suite starts."""
    return bool(os.environ.get(CLUSTER_VARIABLE))


def are_asked_for(expression: str) -> bool:
    """Check whether an expression of markers selects tests of this folder."""
    return re.search(r"(?<!not )\be2e\b", expression) is not None


def needs_nvidia(expression: str) -> bool:
    """Check whether an expression of markers selects tests that need NVIDIA's programs."""
    return are_asked_for(expression) and "not nvidia" not in expression


def check(expression: str) -> None:
    """Check whether the programs are there for the tests that an expression of markers selects.

    Raises:
        AssetsError: Some are not.
    """
    if are_asked_for(expression) and not has_own_cluster():
        chosen()
    if needs_nvidia(expression):
        nvidia()


def _kubernetes_in(folder: Path, top: Path) -> Kubernetes:
    for name in CONTROL_PLANE:
        _usable(folder / name)
    etcd = next((path / "etcd" for path in (folder, top) if (path / "etcd").exists()), folder / "etcd")
    _usable(etcd)
    answer = _output(folder / "kube-apiserver", "--version")
    match = re.search(r"v1\.(\d+)\.\d+\S*", answer)
    if match is None or int(match[1]) not in KUBERNETES_MINORS:
        raise AssetsError(
            f"{folder / 'kube-apiserver'} --version says {answer.strip()!r}; the suite supports Kubernetes "
            f"1.{KUBERNETES_MINORS[0]} to 1.{KUBERNETES_MINORS[-1]}: put one of these there"
        )
    return Kubernetes(match[0].removeprefix("v"), folder, etcd)


def _release_of(name: str, found: Sequence[Kubernetes]) -> Kubernetes:
    for release in found:
        if release.version == name or release.version.startswith(f"{name}."):
            return release
    have = ", ".join(release.version for release in found)
    raise AssetsError(f"{RELEASES_VARIABLE} names {name}, which is not on this machine; it has {have}")


def _folders_with(program: str, folder: Path) -> list[Path]:
    if (folder / program).exists():
        return [folder]
    return [path.parent for path in folder.glob(f"*/{program}")]


def _usable(path: Path, *, needs_execution: bool = True) -> None:
    if not path.exists():
        raise AssetsError(f"{path} is missing, though programs beside it are there. Add it ({PAGE})")
    if needs_execution and not os.access(path, os.X_OK):
        raise AssetsError(f"{path} is not executable; run: chmod +x {path}")


def _output(program: Path, *args: str) -> str:
    try:
        return subprocess.run([program, *args], capture_output=True, text=True, check=True, timeout=60).stdout
    except (OSError, subprocess.SubprocessError) as error:
        raise AssetsError(f"{program} cannot run on this machine ({error}). Get one that is built for it") from None


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", version)))


def main() -> int:
    """Print what can run here, a line for each part."""
    status = 0
    for part, found in (("control plane", chosen), ("NVIDIA's programs", nvidia)):
        try:
            print(f"{part}: {', '.join(release.version for release in found())}")
        except NotFound as error:
            print(f"E2E NOT RUN: {part}: {error}")
            status = max(status, 3)
        except AssetsError as error:
            print(f"E2E CANNOT RUN: {part}: {error}")
            return 2
    return status


if __name__ == "__main__":
    sys.exit(main())
