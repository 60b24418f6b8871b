import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from bridged_node import BridgedNode, files_below
from gpu_constructs.operator.bridge import script
from shell import SHELLS, launcher, shellcheck, wait_until

SCRIPT = script("stage")
LIBRARY = b"\x7fELF the library of 570.133.20\n\x00" + 200_000 * b"l"
PROGRAM = b"\x7fELF the program of 570.133.20\n\x00" + 100_000 * b"p"
STAGED = ["usr/bin/nvidia-smi", "usr/lib64/libnvidia-ml.so.1"]


class Node(BridgedNode):
    """A node with the folders of the Talos driver extension, and a directory for the copies."""

    @property
    def stage(self) -> Path:
        return self.root / "var" / "driver"

    @property
    def libraries(self) -> Path:
        return self.root / "glibc" / "usr" / "lib"

    @property
    def programs(self) -> Path:
        return self.root / "local" / "bin"

    def paths(self) -> Mapping[str, str]:
        return {
            "STAGE_DIR": str(self.stage),
            "SOURCE_LIB_DIR": str(self.libraries),
            "SOURCE_BIN_DIR": str(self.programs),
        }

    def install(self, version: str, library: bytes, program: bytes) -> None:
        """Create the driver files as the extension does. The library is a link."""
        self.libraries.mkdir(parents=True, exist_ok=True)
        (self.libraries / f"libnvidia-ml.so.{version}").write_bytes(library)
        link = self.root / "link"
        link.symlink_to(f"libnvidia-ml.so.{version}")
        link.replace(self.libraries / "libnvidia-ml.so.1")
        self.install_program(program)

    def install_program(self, program: bytes) -> None:
        self.programs.mkdir(parents=True, exist_ok=True)
        file = self.root / "program"
        file.write_bytes(program)
        file.chmod(0o755)
        file.replace(self.programs / "nvidia-smi")

    def with_driver(self) -> "Node":
        self.load_driver()
        self.install("570.133.20", LIBRARY, PROGRAM)
        return self

    @property
    def files(self) -> list[str]:
        return files_below(self.stage)

    @property
    def library(self) -> Path:
        return self.stage / "usr" / "lib64" / "libnvidia-ml.so.1"

    @property
    def program(self) -> Path:
        return self.stage / "usr" / "bin" / "nvidia-smi"

    def is_staged(self, library: bytes = LIBRARY, program: bytes = PROGRAM) -> bool:
        return self.files == STAGED and (self.library.read_bytes(), self.program.read_bytes()) == (library, program)

    def foreign(self, name: str, content: str = "x") -> Path:
        file = self.stage / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content)
        return file


@pytest.fixture(params=SHELLS)
def node(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Node]:
    with launcher(request.param, tmp_path) as scripts:
        yield Node(tmp_path, scripts, SCRIPT)


def test_with_a_driver_both_files_are_at_the_paths_of_the_validator(node: Node) -> None:
    node.with_driver().start_ready()
    assert node.is_staged()
    assert [file.is_symlink() for file in (node.library, node.program)] == [False, False]
    assert [file.stat().st_mode & 0o777 for file in (node.library, node.program)] == [0o644, 0o755]
    assert [folder.stat().st_mode & 0o777 for folder in (node.library.parent, node.program.parent)] == [0o755, 0o755]


def test_the_script_runs_no_program_of_the_node(node: Node) -> None:
    node.with_driver().install("570.133.20", b"#!/bin/sh\n", f"#!/bin/sh\ntouch {node.root}/ran\n".encode())
    for tool in ("cp", "cmp", "mv"):
        (node.programs / tool).write_text(f"#!/bin/sh\ntouch {node.root}/ran\n")
        (node.programs / tool).chmod(0o755)
    node.start_ready()
    node.wait_turns()
    assert not (node.root / "ran").exists()


def test_an_upgraded_driver_is_copied_again(node: Node) -> None:
    bridge = node.with_driver().start_ready()
    node.install("580.105.08", b"the next library", b"the next program")
    wait_until(lambda: node.is_staged(b"the next library", b"the next program"), "the new files")
    node.wait_turns()
    assert node.ready
    bridge.terminate()
    assert bridge.count("copied ") == 4


def test_copies_of_an_older_driver_that_outlived_a_reboot_are_replaced(node: Node) -> None:
    for name in STAGED:
        node.foreign(name, "of the driver before")
    node.with_driver().start_ready()
    assert node.is_staged()
    assert node.program.stat().st_mode & 0o777 == 0o755


def test_correct_copies_are_kept(node: Node) -> None:
    node.with_driver().start_ready().kill()
    before = [(file.stat().st_ino, file.stat().st_mtime_ns) for file in (node.library, node.program)]
    node.state = node.root / "new-state"
    bridge = node.start_ready()
    node.wait_turns()
    assert before == [(file.stat().st_ino, file.stat().st_mtime_ns) for file in (node.library, node.program)]
    assert bridge.count("copied ") == 0


def test_a_new_pod_removes_the_copies_of_a_killed_one_without_a_driver(node: Node) -> None:
    node.with_driver().start_ready().kill()
    node.state = node.root / "new-state"
    node.foreign("usr/bin/.gpu-constructs.nvidia-smi.4242")
    node.foreign("usr/lib64/.gpu-constructs.libnvidia-ml.so.1.4242")
    node.unload("nvidia")
    bridge = node.start()
    wait_until(lambda: node.files == [], "everything gone")
    bridge.wait_for_log("not ready: module nvidia is not loaded")


def test_a_changed_or_deleted_copy_is_restored(node: Node) -> None:
    node.with_driver().start_ready()
    node.library.write_bytes(b"x")
    wait_until(node.is_staged, "the library")
    node.program.unlink()
    wait_until(node.is_staged, "the program")
    node.program.chmod(0o644)
    wait_until(lambda: node.program.stat().st_mode & 0o777 == 0o755, "the right to run it")


def test_a_link_in_the_place_of_a_copy_becomes_a_file(node: Node) -> None:
    node.with_driver().library.parent.mkdir(parents=True)
    node.library.symlink_to(node.libraries / "libnvidia-ml.so.1")
    node.start_ready()
    assert not node.library.is_symlink()
    assert node.is_staged()
    assert (node.libraries / "libnvidia-ml.so.1").is_symlink()


def test_when_a_module_unloads_only_the_copies_are_removed(node: Node) -> None:
    others = ["etc/ld.so.conf", "usr/bin/nvidia-smi.old", "usr/lib64/libcuda.so.1"]
    for name in others:
        node.foreign(name)
    bridge = node.with_driver().start_ready()
    assert node.files == sorted([*others, *STAGED])
    node.unload("nvidia")
    wait_until(lambda: node.files == others, "the copies gone")
    node.wait_not_ready()
    bridge.wait_for_log("not ready: module nvidia is not loaded")
    node.wait_turns()
    assert (bridge.count("removed "), bridge.count("not ready: ")) == (2, 1)

    node.module("nvidia", "live")
    node.wait_ready()
    assert node.files == sorted([*others, *STAGED])
    bridge.terminate()
    assert node.files == others


@pytest.mark.parametrize("source", ["libnvidia-ml.so.1", "nvidia-smi"])
@pytest.mark.parametrize("loss", ["missing", "empty", "dangling"])
def test_a_missing_source_removes_both_copies(node: Node, source: str, loss: str) -> None:
    bridge = node.with_driver().start_ready()
    path = (node.libraries if source.startswith("lib") else node.programs) / source
    path.unlink()
    if loss == "empty":
        path.touch()
    if loss == "dangling":
        path.symlink_to("nowhere")
    bridge.wait_for_log(f"not ready: {path} is missing or empty")
    node.wait_not_ready()
    assert node.files == []
    node.wait_turns()
    assert bridge.count("is missing or empty") == 1

    path.unlink(missing_ok=True)
    node.install("570.133.20", LIBRARY, PROGRAM)
    node.wait_ready()
    assert node.is_staged()


def test_a_read_only_directory_is_logged_once_and_used_when_writable(node: Node) -> None:
    node.stage.parent.mkdir()
    node.stage.write_text("a file where the directory should be")
    bridge = node.with_driver().start()
    bridge.wait_for_log(f"not ready: cannot write {node.library}: ")
    node.wait_turns()
    assert not node.ready
    assert bridge.count("cannot write ") == 1

    node.stage.unlink()
    node.wait_ready()
    assert node.is_staged()


def test_a_full_disk_leaves_no_partial_file_and_is_logged_once(node: Node) -> None:
    bridge = node.with_driver().start_on_a_full_disk()
    bridge.wait_for_log(f"not ready: cannot write {node.library}: ")
    node.wait_turns(5)
    assert bridge.count("cannot write ") == 1
    assert not node.ready
    wait_until(lambda: node.files == [], "no file at all")

    bridge.make_room()
    node.wait_ready()
    assert node.is_staged()


def test_a_copy_that_differs_from_its_source_is_not_used(node: Node) -> None:
    cut_off = 'cp() { head -c 100 "$1" >"$2"; }'
    bridge = node.with_driver().start_with(cut_off)
    bridge.wait_for_log("not ready: cannot write ")
    node.wait_turns()
    bridge.kill()
    assert [name for name in node.files if ".gpu-constructs." not in name] == []


def test_copies_appear_whole_by_a_rename_in_their_own_directory(node: Node) -> None:
    spy = f"""mv() {{
        cmp "$2" "{node.libraries}/libnvidia-ml.so.1" || cmp "$2" "{node.programs}/nvidia-smi" || return 1
        echo "$@" >>"{node.root}/moves"
        command mv "$@"
    }}"""
    node.with_driver().start_with(spy)
    node.wait_ready()
    moves = [line.split() for line in (node.root / "moves").read_text().splitlines()]
    assert [Path(target) for *_, target in moves] == [node.library, node.program]
    for _, temporary, target in moves:
        assert Path(temporary).parent == Path(target).parent
        assert Path(temporary).name.startswith(f".gpu-constructs.{Path(target).name}.")


def test_a_directory_at_the_path_of_a_copy_is_logged_and_stays_empty(node: Node) -> None:
    node.with_driver().program.mkdir(parents=True)
    bridge = node.start()
    bridge.wait_for_log(f"not ready: cannot write {node.program}: it is a directory")
    node.wait_turns()
    assert os.listdir(node.program) == []


def test_a_dev_directory_that_misleads_the_validator_is_logged(node: Node) -> None:
    (node.stage / "dev").mkdir(parents=True)
    bridge = node.with_driver().start()
    bridge.wait_for_log(f"not ready: {node.stage}/dev must go")
    node.wait_turns()
    assert not node.ready

    (node.stage / "dev").rmdir()
    node.wait_ready()


def test_a_copy_that_cannot_be_removed_is_logged_once(node: Node) -> None:
    stuck = f"""rm() {{
        [ "$2" = "{node.program}" ] || {{ command rm "$@"; return; }}
        echo 'rm: Read-only file system'
        return 1
    }}"""
    bridge = node.with_driver().start_with(stuck)
    node.wait_ready()
    node.unload("nvidia")
    bridge.wait_for_log(
        f"not ready: module nvidia is not loaded; cannot remove {node.program}: rm: Read-only file system"
    )
    node.wait_turns()
    bridge.terminate()
    assert node.files == ["usr/bin/nvidia-smi"]
    assert bridge.count("Read-only file system") == 2
    assert bridge.lines[-1].endswith(f"stopped; cannot remove {node.program}: rm: Read-only file system\n")


def test_the_defaults_are_in_the_script(node: Node) -> None:
    node.check_defaults("stage")


@pytest.mark.system_tools
def test_shellcheck_reports_nothing() -> None:
    assert SCRIPT.startswith("#!/bin/sh\n")
    assert shellcheck(SCRIPT) == ""
