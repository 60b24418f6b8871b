import os
import signal
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from bridged_node import BridgedNode
from gpu_constructs.operator.bridge import script
from shell import PATIENCE, SHELLS, launcher, shellcheck, wait_until
from tables import cases

DRIVER_READY = """\
IS_HOST_DRIVER=true
NVIDIA_DRIVER_ROOT=/
DRIVER_ROOT_CTR_PATH=/host
NVIDIA_DEV_ROOT=/
DEV_ROOT_CTR_PATH=/host
"""
SCRIPT = script("markers")


class Node(BridgedNode):
    """A node with a directory for the markers."""

    @property
    def validations(self) -> Path:
        return self.root / "run" / "validations"

    def paths(self) -> Mapping[str, str]:
        return {"VALIDATIONS_DIR": str(self.validations)}

    def with_driver(self) -> "Node":
        self.load_driver()
        return self

    @property
    def files(self) -> list[str]:
        return sorted(os.listdir(self.validations))

    def marker(self, name: str) -> Path:
        return self.validations / name

    def foreign(self, name: str, content: str) -> Path:
        self.validations.mkdir(parents=True, exist_ok=True)
        self.marker(name).write_text(content)
        return self.marker(name)


@pytest.fixture(params=SHELLS)
def node(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Node]:
    with launcher(request.param, tmp_path) as scripts:
        yield Node(tmp_path, scripts, SCRIPT)


MARKERS = ["driver-ready", "toolkit-ready"]


def test_a_live_driver_gets_both_markers_with_the_content_that_operands_source(node: Node) -> None:
    node.with_driver().start_ready()
    assert node.files == MARKERS
    assert node.marker("driver-ready").read_text() == DRIVER_READY
    assert [node.marker(name).stat().st_mode & 0o777 for name in MARKERS] == [0o644, 0o644]


def test_without_a_module_there_are_no_markers(node: Node) -> None:
    node.with_driver().unload("nvidia_uvm")
    bridge = node.start()
    bridge.wait_for_log("not ready: module nvidia_uvm is not loaded")
    node.wait_turns()
    assert node.files == []
    assert not node.ready

    node.module("nvidia_uvm", "coming")
    bridge.wait_for_log("not ready: module nvidia_uvm is coming")
    node.wait_turns()
    assert node.files == []

    node.module("nvidia_uvm", "live")
    node.wait_ready()
    assert node.files == MARKERS


def test_required_modules_are_configurable(node: Node) -> None:
    node.with_driver().start().wait_for_log("ready:")
    node.wait_ready()
    node.start(REQUIRED_MODULES="nvidia nvidia_modeset").wait_for_log("not ready: module nvidia_modeset is not loaded")


def test_without_a_gpu_of_the_driver_there_are_no_markers(node: Node) -> None:
    node.module("nvidia", "live")
    node.module("nvidia_uvm", "live")
    node.version("NVRM version: 570.133.20\n")
    bridge = node.start()
    bridge.wait_for_log("not ready: no GPU is bound to the driver")
    node.wait_turns()
    assert node.files == []

    node.bind_gpu()
    node.wait_ready()


def test_without_a_driver_version_there_are_no_markers(node: Node) -> None:
    node.with_driver().version("")
    node.start().wait_for_log("driver/nvidia/version is missing or empty")
    assert node.files == []


def test_the_expected_driver_version_is_one_whole_word(node: Node) -> None:
    node.with_driver()
    node.start(EXPECTED_DRIVER_VERSION="570.133.2").wait_for_log("not ready: the driver is not 570.133.2: NVRM version")
    assert node.files == []
    node.start_ready(EXPECTED_DRIVER_VERSION="570.133.20")


def test_required_devices_must_be_character_devices(node: Node) -> None:
    node.with_driver()
    (node.devices / "nvidiactl").symlink_to("/dev/null")
    (node.devices / "nvidia0").write_text("")
    bridge = node.start(REQUIRED_DEVICES="nvidiactl /dev/nvidia0")
    bridge.wait_for_log("nvidia0 is not a character device")
    assert node.files == []

    (node.devices / "nvidia0").unlink()
    (node.devices / "nvidia0").symlink_to("/dev/null")
    node.wait_ready()
    assert bridge.count("nvidiactl is not") == 0


def test_markers_that_the_validator_deletes_are_written_again(node: Node) -> None:
    bridge = node.with_driver().start_ready()
    for name in MARKERS:
        node.marker(name).unlink()
    wait_until(lambda: node.files == MARKERS, "both markers again")
    assert node.marker("driver-ready").read_text() == DRIVER_READY
    node.wait_turns()
    bridge.terminate()
    assert bridge.count("wrote ") == 4


def test_an_empty_driver_ready_is_replaced(node: Node) -> None:
    node.foreign("driver-ready", "")
    node.with_driver().start_ready()
    assert node.marker("driver-ready").read_text() == DRIVER_READY


def test_files_of_other_programs_are_never_removed(node: Node) -> None:
    content = {"driver-ready": "IS_HOST_DRIVER=false\n", "toolkit-ready": "", "plugin-ready": DRIVER_READY}
    for name, text in content.items():
        node.foreign(name, text)

    def kept() -> bool:
        return {name: node.marker(name).read_text() for name in node.files} == content

    bridge = node.with_driver().start_ready()
    node.wait_turns()
    assert kept()
    node.unload("nvidia")
    node.wait_not_ready()
    node.wait_turns()
    assert kept()
    bridge.terminate()
    assert kept()


def test_when_a_module_unloads_only_files_of_the_bridge_are_removed(node: Node) -> None:
    bridge = node.with_driver().start_ready()
    node.foreign("toolkit-ready", "# written by the validation bridge, or nearly\n")
    node.unload("nvidia")
    wait_until(lambda: node.files == ["toolkit-ready"], "driver-ready gone")
    node.wait_turns()
    assert node.files == ["toolkit-ready"]
    assert not node.ready
    assert bridge.count("not ready: module nvidia is not loaded") == 1

    node.module("nvidia", "live")
    node.wait_ready()
    assert node.files == MARKERS


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGINT], ids=lambda s: s.name)
def test_a_signal_ends_a_long_sleep_and_removes_the_markers(node: Node, signum: signal.Signals) -> None:
    bridge = node.with_driver().start_ready(INTERVAL_SECONDS=str(10 * PATIENCE))
    wait_until((node.state / "alive").exists, "the end of the first turn")
    bridge.terminate_in_its_sleep(signum)
    assert node.files == []
    assert not node.ready
    assert bridge.log.endswith("stopped\n")


def test_retract_on_exit_false_keeps_the_markers(node: Node) -> None:
    bridge = node.with_driver().start_ready(RETRACT_ON_EXIT="false")
    bridge.terminate()
    assert node.files == MARKERS
    assert not node.ready


def test_after_a_kill_the_next_run_removes_temporary_files_and_adopts_its_markers(node: Node) -> None:
    node.with_driver().start_ready().kill()
    assert node.files == MARKERS
    node.foreign(".gpu-constructs.driver-ready.4242", "IS_HOST")
    node.foreign(".someone-elses", "x")
    node.unload("nvidia")

    bridge = node.start()
    wait_until(lambda: node.files == [".someone-elses"], "own files gone")
    bridge.wait_for_log("removed ")
    assert not node.ready


TOOLKIT_READY = "# written by the validation bridge\n"


def test_the_markers_are_remembered_byte_for_byte_as_long_as_they_are_there(node: Node) -> None:
    node.with_driver().start_ready()
    written = {name: (node.state / f"{name}.written").read_text() for name in MARKERS}
    assert written == {"driver-ready": DRIVER_READY, "toolkit-ready": TOOLKIT_READY}
    assert written == {name: node.marker(name).read_text() for name in MARKERS}
    node.unload("nvidia")
    wait_until(lambda: not list(node.state.glob("*.written")), "nothing remembered")
    assert node.files == []


def test_markers_of_an_earlier_pod_are_identified_by_their_content(node: Node) -> None:
    node.with_driver().start_ready().kill()
    node.state = node.root / "new-state"
    bridge = node.start_ready()
    assert bridge.count("wrote ") == 0
    node.unload("nvidia")
    wait_until(lambda: bridge.count("removed ") == 2, "both markers removed")
    assert node.files == []
    bridge.terminate()


def test_an_empty_marker_of_the_validator_is_not_adopted(node: Node) -> None:
    node.foreign("toolkit-ready", "")
    bridge = node.with_driver().start_ready()
    bridge.terminate()
    assert (bridge.count("wrote "), bridge.count("removed ")) == (1, 1)
    assert node.files == ["toolkit-ready"]


def test_a_marker_that_another_program_overwrites_is_not_removed(node: Node) -> None:
    node.foreign("toolkit-ready", TOOLKIT_READY)
    bridge = node.with_driver().start_ready()
    node.foreign("toolkit-ready", "another\n")
    bridge.terminate()
    assert node.files == ["toolkit-ready"]


def test_a_read_only_directory_is_logged_once_and_used_when_writable(node: Node) -> None:
    node.validations.parent.mkdir()
    node.validations.write_text("a file where the directory should be")
    bridge = node.with_driver().start()
    bridge.wait_for_log("not ready: cannot write ")
    node.wait_turns()
    assert not node.ready
    assert bridge.count("cannot write ") == 1

    node.validations.unlink()
    node.wait_ready()
    assert node.files == MARKERS


def test_a_marker_that_was_never_written_is_not_removed_later(node: Node) -> None:
    no_room_for_the_copy = 'cp() { : >"$2"; return 1; }'
    bridge = node.with_driver().start_with(no_room_for_the_copy, MARKERS="toolkit-ready")
    bridge.wait_for_log("not ready: cannot write ")
    node.foreign("toolkit-ready", "")
    node.wait_ready()
    node.unload("nvidia")
    node.wait_not_ready()
    assert node.files == ["toolkit-ready"]


@pytest.mark.parametrize("name", MARKERS)
def test_a_directory_at_the_path_of_a_marker_is_logged_and_stays_empty(node: Node, name: str) -> None:
    node.marker(name).mkdir(parents=True)
    bridge = node.with_driver().start()
    bridge.wait_for_log(f"not ready: {node.marker(name)} is not a file")
    node.wait_turns()
    assert not node.ready
    assert os.listdir(node.marker(name)) == []

    node.marker(name).rmdir()
    node.wait_ready()
    assert node.files == MARKERS


def test_a_marker_that_cannot_be_removed_is_logged_once_and_removed_later(node: Node) -> None:
    stuck = f"""rm() {{
        [ "$2" = "{node.marker("driver-ready")}" ] && [ -e "{node.root}/stuck" ] || {{ command rm "$@"; return; }}
        echo 'rm: Read-only file system'
        return 1
    }}"""
    (node.root / "stuck").touch()
    bridge = node.with_driver().start_with(stuck)
    node.wait_ready()
    node.unload("nvidia")
    bridge.wait_for_log("not ready: module nvidia is not loaded; cannot remove ")
    node.wait_turns()
    assert node.files == ["driver-ready"]
    assert bridge.count("Read-only file system") == 1

    (node.root / "stuck").unlink()
    wait_until(lambda: node.files == [], "driver-ready gone")
    bridge.wait_for_log("Z not ready: module nvidia is not loaded\n")


def test_a_full_disk_leaves_no_partial_marker_and_no_temporary_file(node: Node) -> None:
    bridge = node.with_driver().start_on_a_full_disk()
    bridge.wait_for_log("not ready: cannot write ")
    assert "driver-ready: " in bridge.log
    node.wait_turns(5)
    assert bridge.count("cannot write ") == 1
    assert not node.ready
    wait_until(lambda: node.files == [], "no file at all")

    bridge.make_room()
    node.wait_ready()
    assert node.files == MARKERS
    assert node.marker("driver-ready").read_text() == DRIVER_READY


def test_no_temporary_name_ends_in_ready_and_markers_appear_whole_by_a_rename(node: Node) -> None:
    spy = f"""mv() {{
        ls -A "$VALIDATIONS_DIR" >>"{node.root}/seen"
        echo "$@" >>"{node.root}/moves"
        command mv "$@"
    }}"""
    node.with_driver().start_with(spy)
    node.wait_ready()
    moves = [line.split() for line in (node.root / "moves").read_text().splitlines()]
    assert [Path(target).name for *_, target in moves] == MARKERS
    temporary = [Path(source) for *_, source, _ in moves]
    assert {path.parent for path in temporary} == {node.validations}
    for path in temporary:
        assert path.name.startswith(".gpu-constructs.")
        assert not path.name.endswith("-ready")
    seen = (node.root / "seen").read_text().split()
    assert seen == [temporary[0].name, temporary[1].name, "driver-ready"]


def test_two_pods_of_one_node_use_different_temporary_names(node: Node) -> None:
    """The shells of both pods have the same process ID."""
    node.with_driver()
    for pod in ("bridge-a", "bridge-b"):
        spy = f"""uname() {{ echo {pod}; }}
        mv() {{
            echo "$@" >>"{node.root}/{pod}"
            command mv "$@"
        }}"""
        bridge = node.start_with(spy)
        node.wait_ready()
        bridge.terminate()
        sources = [Path(line.split()[-2]).name for line in (node.root / pod).read_text().splitlines()]
        assert [name.rpartition(".")[0] for name in sources] == [f".gpu-constructs.{m}.{pod}" for m in MARKERS]


def test_the_reason_is_logged_once_per_change(node: Node) -> None:
    node.with_driver().unload("nvidia")
    bridge = node.start()
    node.wait_turns(5)
    node.module("nvidia", "live")
    node.wait_ready()
    node.wait_turns(5)
    node.unload("nvidia")
    node.wait_not_ready()
    node.wait_turns(5)
    bridge.terminate()
    assert bridge.count("not ready: module nvidia is not loaded") == 2
    assert bridge.count("Z ready: the driver is live") == 1
    assert len(bridge.lines) == 3 + 4 + 1  # the reasons, two markers written and removed, stopped


@cases
def test_an_invalid_setting_stops_the_script_at_once(node: Node, variable: str, value: str) -> None:
    bridge = node.with_driver().start(**{variable: value})
    assert bridge.wait() == 64
    assert f"{variable} must be" in bridge.log
    assert not node.validations.exists()


def test_the_defaults_are_in_the_script(node: Node) -> None:
    node.check_defaults("markers")


@pytest.mark.system_tools
def test_shellcheck_reports_nothing() -> None:
    assert SCRIPT.startswith("#!/bin/sh\n")
    assert shellcheck(SCRIPT) == ""


@pytest.mark.parametrize("strategy", ["markers", "stage"])
def test_the_script_uses_no_command_substitution_in_which_bash_loses_a_signal(strategy: str) -> None:
    """Bash 5.2 parses it with the parser that a trap also needs, and drops the trap in about one of 300 stops."""
    lines = [line for line in script(strategy).splitlines() if not line.startswith("# shellcheck")]
    assert [line for line in lines if "$(" in line.replace("$((", "")] == []
