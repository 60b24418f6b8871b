"""A driver without GPUs: NVIDIA's mock of NVML with boards of ours, and MIG devices by a preloaded shim."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from gpu_constructs.catalog.inventory import GpuNode
from gpu_constructs.catalog.mig_profiles import MIG_PROFILES, mig_vram_mib, size_of

DRIVER, CUDA = "570.133.20", "12.8"
_MOST_BOARDS = 8
_SHIM = Path(__file__).parent / "mig_shim.c"

# Architecture and compute capability, by the first part of the name that fits: developer.nvidia.com/cuda-gpus.
_GENERATIONS = (
    (("NVIDIA B300",), ("blackwell", 10, 3)),
    (("NVIDIA B200", "NVIDIA GB200"), ("blackwell", 10, 0)),
    (("NVIDIA GeForce RTX 5", "NVIDIA RTX PRO 6000 Blackwell"), ("blackwell", 12, 0)),
    (("NVIDIA H100", "NVIDIA H200", "NVIDIA GH200"), ("hopper", 9, 0)),
    (("NVIDIA GeForce RTX 4", "NVIDIA RTX 6000 Ada", "NVIDIA L4"), ("ada", 8, 9)),
    (("NVIDIA A100", "NVIDIA A30"), ("ampere", 8, 0)),
    (("NVIDIA GeForce RTX 3", "NVIDIA RTX A", "NVIDIA A"), ("ampere", 8, 6)),
    (("",), ("turing", 7, 5)),
)
# go-nvml's GPU_INSTANCE_PROFILE_*, NVIDIA/go-nvml@v0.13.3-0:pkg/nvml/const.go: by compute slices and attributes.
_GPU_PROFILES = {
    (1, ""): 0,
    (2, ""): 1,
    (3, ""): 2,
    (4, ""): 3,
    (7, ""): 4,
    (1, "+me"): 7,
    (2, "+me"): 8,
    (1, "+gfx"): 10,
    (2, "+gfx"): 11,
    (4, "+gfx"): 12,
    (1, "-me"): 13,
    (2, "-me"): 14,
    (1, "+me.all"): 15,
    (2, "+me.all"): 16,
}
_ONE_SLICE_WITH_MORE_MEMORY = 9
_COMPUTE_PROFILES = {1: 0, 2: 1, 3: 2, 4: 3, 7: 4}


class MockDriverError(Exception):
    """A mock driver that cannot be made, in one line that says what to do."""


@dataclass(frozen=True)
class Board:
    """A GPU.

    Attributes:
        name: As ``nvidia-smi`` prints it.
        vram_mib: Its memory.
        uuid: Its UUID.
        mig: Profiles of its MIG devices; a board with any is in MIG mode.
    """

    name: str
    vram_mib: int
    uuid: str
    mig: Sequence[str] = ()

    @property
    def has_mig(self) -> bool:
        """Whether the board can be divided."""
        return bool(MIG_PROFILES.get(self.name))


def boards_of(node: GpuNode) -> list[Board]:
    """Return the boards of a node; a board whose model is not known is one that no table of the library knows."""
    name = node.model.name if node.model is not None else "NVIDIA T1000 8GB"
    vram_mib = node.vram_mib or (8192 if node.model is None else 10240)
    return [
        Board(
            name,
            vram_mib,
            f"GPU-00000000-0000-4000-8000-{number:012d}",
            [profile for profile, count in layout.items() for _ in range(count)],
        )
        for number, layout in enumerate(node.layouts)
    ]


class MockDriver:
    """The libraries of a driver and what they report, in one folder.

    Attributes:
        folder: Everything that a program needs of it. Mount it at the same path in a mount namespace.
    """

    def __init__(self, folder: Path, library: Path, boards: Sequence[Board]) -> None:
        """Write the files.

        Args:
            folder: A folder for them.
            library: NVIDIA's mock of ``libnvidia-ml.so.1``.
            boards: The boards, all of one generation.

        Raises:
            MockDriverError: More boards than the mock takes, or no C compiler.
        """
        if len(boards) > _MOST_BOARDS:
            raise MockDriverError(f"the mock of NVML takes {_MOST_BOARDS} boards at most, got {len(boards)}")
        self.folder, self._boards = folder, boards
        (folder / "files" / "lib64").mkdir(parents=True)
        (folder / "files" / "bin").mkdir()
        _link(library.resolve(), folder / "files" / "lib64" / "libnvidia-ml.so.1")
        smi = folder / "files" / "bin" / "nvidia-smi"
        listed = "\n".join(f"GPU {number}: {one.name} (UUID: {one.uuid})" for number, one in enumerate(boards))
        smi.write_text(f"#!/bin/sh\ncat <<'END'\n{listed}\nEND\n")
        smi.chmod(0o755)
        (folder / "mig_shim.so").write_bytes(_compiled_shim())
        # YAML is a superset of JSON.
        (folder / "nvml.yaml").write_text(json.dumps(self._nvml()))
        (folder / "mig.txt").write_text("".join(f"{line}\n" for line in self._mig_lines()))
        (folder / "xid.txt").touch()
        (folder / "proc" / "nvidia").mkdir(parents=True)
        (folder / "proc" / "nvidia-caps").mkdir()
        (folder / "proc" / "nvidia-caps" / "mig-minors").write_text("".join(self._mig_minors()))

    def environment(self) -> dict[str, str]:
        """Return the variables by which a program finds the mock instead of a driver."""
        return {
            "LD_LIBRARY_PATH": str(self.files() / "lib64"),
            "LD_PRELOAD": str(self.folder / "mig_shim.so"),
            "MIG_SHIM_TABLE": str(self.folder / "mig.txt"),
            "MOCK_NVML_CONFIG": str(self.folder / "nvml.yaml"),
            "XID_SHIM_FILE": str(self.folder / "xid.txt"),
        }

    def files(self) -> Path:
        """Return a folder with ``lib64/libnvidia-ml.so.1`` and ``bin/nvidia-smi``, as Talos has at /usr/local."""
        return self.folder / "files"

    def report_xid(self, board: int, xid: int) -> None:
        """Report an XID error of a board to the programs that run."""
        with (self.folder / "xid.txt").open("a") as file:
            file.write(f"{board} {xid}\n")

    def proc(self) -> Path:
        """Return what the kernel modules show at ``/proc/driver``, as far as it concerns MIG devices."""
        return self.folder / "proc"

    def _nvml(self) -> dict[str, object]:
        major, minor = CUDA.split(".")
        return {
            "version": "1.0",
            "system": {
                "driver_version": DRIVER,
                "nvml_version": f"12.{DRIVER}",
                "cuda_version": CUDA,
                "cuda_version_major": int(major),
                "cuda_version_minor": int(minor),
            },
            # The mock takes the compute capability from here alone.
            "device_defaults": _generation(self._boards[0]) if self._boards else {},
            "devices": [_device(number, one) for number, one in enumerate(self._boards)],
        }

    def _mig_lines(self) -> list[str]:
        lines: list[str] = []
        for number, board in enumerate(self._boards):
            if board.has_mig:
                lines.append(f"board {number} {int(bool(board.mig))}")
            lines += [f"device {mig_uuid(board, index)} {_of_mig(board, index)}" for index in range(len(board.mig))]
        return lines

    def _mig_minors(self) -> list[str]:
        instances = [
            f"gpu{number}/gi{index}/{part}access"
            for number, board in enumerate(self._boards)
            for index in range(len(board.mig))
            for part in ("", "ci0/")
        ]
        return [f"{one} {minor}\n" for minor, one in enumerate(["config", "monitor", *instances], start=1)]


def mig_uuid(board: Board, index: int) -> str:
    """Return the UUID of a MIG device by its place on its board."""
    return f"MIG-{uuid.uuid5(uuid.NAMESPACE_OID, f'{board.uuid}/{index}')}"


def _generation(board: Board) -> dict[str, object]:
    architecture, major, minor = next(found for names, found in _GENERATIONS if board.name.startswith(names))
    return {"architecture": architecture, "compute_capability": {"major": major, "minor": minor}}


def _device(number: int, board: Board) -> dict[str, object]:
    return {
        "index": number,
        "uuid": board.uuid,
        "minor_number": number,
        "name": board.name,
        "memory": {"total_bytes": board.vram_mib << 20, "free_bytes": board.vram_mib << 20},
        "pci": {"bus_id": f"0000:{16 * number + 1:02x}:00.0"},
    }


def _of_mig(board: Board, index: int) -> str:
    profile = board.mig[index]
    size = size_of(profile) or ""
    attribute, slices = profile.removeprefix(size), int(size.partition("g.")[0])
    number = _GPU_PROFILES[slices, attribute]
    if slices == 1 and size != MIG_PROFILES[board.name][0]:
        number = _ONE_SLICE_WITH_MORE_MEMORY
    media = int(attribute.startswith("+me"))
    return f"{number} {_COMPUTE_PROFILES[slices]} {slices} {mig_vram_mib(board.name, profile)} {media}"


def _link(source: Path, target: Path) -> None:
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)


@cache
def _compiled_shim() -> bytes:
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        raise MockDriverError(f"no C compiler (cc) in PATH, which {_SHIM.name} needs. Install gcc or clang")
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "mig_shim.so"
        done = subprocess.run(
            [compiler, "-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror", "-o", target, _SHIM, "-ldl"],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            raise MockDriverError(f"{compiler} cannot compile {_SHIM.name}: {done.stderr.strip()}")
        return target.read_bytes()
