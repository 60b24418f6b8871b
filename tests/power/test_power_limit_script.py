import re
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from cdk8s import App, Chart, Testing

import depth
from gpu_constructs import PowerLimit
from shell import PATIENCE, SHELLS, Launcher, RunningScript, Watched, launcher, shellcheck, wait_until
from tables import cases

# Longer than the timeout of a test, so that a test fails if a signal does not end the sleep.
UNBEARABLE = str(10 * PATIENCE)

FAKE_NVIDIA_SMI = (Path(__file__).parents[1] / "data" / "fake_nvidia_smi.sh").read_text(encoding="utf-8")


@cache
def script() -> str:
    """Return the script from the ConfigMap."""
    chart = Chart(App(), "gpu")
    PowerLimit(chart, "limit")
    (data,) = (manifest["data"] for manifest in Testing.synth(chart) if manifest["kind"] == "ConfigMap")
    return data["power-limit.sh"]


class Node(Watched):
    """A node with a fake nvidia-smi and the GPUs that a test adds."""

    def __init__(self, root: Path, scripts: Launcher) -> None:
        self.root, self.scripts = root, scripts
        self.state = root / "state"
        self.metrics = root / "power.prom"
        (root / "gpus").mkdir()
        self.nvidia_smi = root / "nvidia-smi"
        self.install()

    def install(self) -> None:
        unfinished = self.root / "nvidia-smi.new"
        unfinished.write_text(FAKE_NVIDIA_SMI)
        unfinished.chmod(0o755)
        unfinished.rename(self.nvidia_smi)

    def gpu(
        self,
        index: int = 0,
        *,
        name: str = "NVIDIA GeForce RTX 3090",
        limit: str = "350.00",
        low: str = "100.00",
        high: str = "370.00",
        default: str = "350.00",
    ) -> str:
        """Add a GPU and return its UUID."""
        uuid = f"GPU-{index:08x}-aaaa"
        unfinished = self.root / "gpu.new"
        unfinished.write_text(
            f"index={index}\nuuid={uuid}\npci=00000000:{index + 10:02X}:00.0\nname='{name}'\n"
            f"limit='{limit}'\nmin='{low}'\nmax='{high}'\ndefault='{default}'\n"
        )
        unfinished.rename(self.root / "gpus" / uuid)
        return uuid

    def limit(self, uuid: str) -> str:
        found = re.search(r"^limit='?(.*?)'?$", (self.root / "gpus" / uuid).read_text(), re.MULTILINE)
        assert found
        return found[1]

    def say(self, mood: str) -> None:
        (self.root / mood).touch()

    def unsay(self, mood: str) -> None:
        (self.root / mood).unlink()

    @property
    def calls(self) -> list[str]:
        log = self.root / "calls"
        return log.read_text().splitlines() if log.exists() else []

    @property
    def set_calls(self) -> list[str]:
        return [call for call in self.calls if "-pl" in call]

    def start(self, **env: str) -> RunningScript:
        variables = {"NVIDIA_SMI": str(self.nvidia_smi), "STATE_DIR": str(self.state), **env}
        return self.scripts.start(script(), variables)

    def once(self, expected: int, **env: str) -> str:
        """Run one pass, check its exit code, and return its log."""
        agent = self.start(ONESHOT="1", **env)
        assert agent.wait() == expected, agent.log
        return agent.log


@pytest.fixture(params=SHELLS)
def node(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Node]:
    with launcher(request.param, tmp_path) as scripts:
        node = Node(tmp_path, scripts)
        yield node
        # In every test, the script may only use the known calls of nvidia-smi.
        assert not (tmp_path / "unknown-calls").exists(), (tmp_path / "unknown-calls").read_text()


def test_a_limit_is_set_read_back_and_makes_the_agent_ready(node: Node) -> None:
    uuid = node.gpu()
    log = node.once(0, POWER_LIMIT="300")
    assert node.limit(uuid) == "300.00"
    assert node.ready
    assert node.set_calls == [f"-i {uuid} -pl 300"]
    assert [call.split("=")[0] for call in node.calls] == [
        "-L", "-pm 1", "--query-gpu", f"-i {uuid} -pl 300", "--query-gpu",
    ]  # fmt: skip
    assert re.search(rf'gpu=0 uuid={uuid} msg="set" watts=300 before=350.00', log)


@cases
def test_in_one_pass(node: Node, gpus, limits, says, moods, code, env) -> None:
    uuids = [node.gpu(index, **gpu) for index, gpu in enumerate(gpus)]
    for mood in moods or ():
        node.say(mood)
    log = node.once(code or 0, **{"POWER_LIMIT": "300", **(env or {})}, METRICS_FILE=str(node.metrics))
    assert [node.limit(uuid) for uuid in uuids] == limits
    assert [said for said in says or () if not re.search(said, log)] == []
    assert node.ready is not bool(code)
    assert ("level=error" in log) is bool(code)
    if not moods:
        before = [gpu.get("limit", "350.00") for gpu in gpus]
        changed = {uuid for uuid, limit in zip(uuids, before, strict=True) if node.limit(uuid) != limit}
        assert {call.split()[1] for call in node.set_calls} == changed


def test_metrics_show_an_unapplied_limit_but_no_unsupported_one(node: Node) -> None:
    node.gpu()
    for mood, desired in (("ignore", ["300"]), ("unsupported", [])):
        node.say(mood)
        node.once(int(mood == "ignore"), POWER_LIMIT="300", METRICS_FILE=str(node.metrics))
        text = node.metrics.read_text()
        assert re.findall(r"^gpu_power_limit_watts\{.*\} (.*)$", text, re.MULTILINE) == ["350.00"]
        assert re.findall(r"^gpu_power_limit_desired_watts\{.*\} (.*)$", text, re.MULTILINE) == desired
        node.unsay(mood)


def test_a_board_that_reports_almost_the_requested_limit_is_ready(node: Node) -> None:
    uuid = node.gpu()
    node.say("quantize")
    node.once(0, POWER_LIMIT="300")
    assert node.limit(uuid) == "299.98"
    assert node.ready
    node.once(0, POWER_LIMIT="300")
    assert node.set_calls == [f"-i {uuid} -pl 300"]


def test_a_gpu_lost_before_the_start_does_not_affect_the_limits_of_others(node: Node) -> None:
    uuid = node.gpu()
    node.say("lost")
    agent = node.start(POWER_LIMIT="300", START_TIMEOUT_SECONDS="1", RETRY_SECONDS="1")
    agent.wait_for_log('msg="set" watts=300')
    assert node.limit(uuid) == "300.00"
    agent.wait_for_log('msg="pass failed"')
    # While a GPU answers, a new container has no benefit.
    wait_until(lambda: agent.count('msg="pass failed"') > 2, "three passes")
    assert not node.ready
    node.unsay("lost")
    node.wait_ready()
    agent.terminate()


@cases
def test_an_agent_whose_nvidia_smi_stops_working_ends_for_a_new_container(node: Node, mood: str, said: str) -> None:
    node.gpu()
    times = {"START_TIMEOUT_SECONDS": "2", "RETRY_SECONDS": "1", "COMMAND_TIMEOUT_SECONDS": "1"}
    agent = node.start(POWER_LIMIT="300", INTERVAL_SECONDS="1", **times)
    node.wait_ready()
    node.say(mood)
    node.wait_not_ready()
    assert agent.wait() == 69
    assert said in agent.log
    assert "nvidia-smi shows no GPU or does not answer for 2 s, giving up" in agent.log


def test_an_nvidia_smi_that_comes_back_in_time_keeps_the_container(node: Node) -> None:
    node.gpu()
    agent = node.start(POWER_LIMIT="300", INTERVAL_SECONDS="1", START_TIMEOUT_SECONDS="600", RETRY_SECONDS="1")
    node.wait_ready()
    node.say("dead")
    node.wait_not_ready()
    node.unsay("dead")
    node.wait_ready()
    agent.terminate()


def test_an_nvidia_smi_that_does_not_answer_at_the_start_is_given_up(node: Node) -> None:
    node.gpu()
    node.say("hang")
    agent = node.start(POWER_LIMIT="300", START_TIMEOUT_SECONDS="0", COMMAND_TIMEOUT_SECONDS="1")
    assert agent.wait() == 69
    assert "no answer for 1 s" in agent.log


def test_each_gpu_gets_one_usage_line_a_pass(node: Node) -> None:
    uuid = node.gpu(limit="300.00")
    log = node.once(0, POWER_LIMIT="300")
    usage = f'gpu=0 uuid={uuid} name="NVIDIA GeForce RTX 3090" draw=101.52 limit=300.00 enforced=300.00 '
    assert log.count(usage + "util=87 memutil=42 fb=20011 temp=66\n") == 1
    assert all(re.match(r"ts=\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ level=\w+ ", line) for line in log.splitlines())


RULES = {"name:NVIDIA*3090": 201, "index:0": 202, "pci:0000:0a:00.0": 203, "uuid:GPU-00000000-aaaa": 204}


def test_the_most_specific_rule_wins_wherever_it_stands(node: Node) -> None:
    uuid, other = node.gpu(0), node.gpu(1, name="NVIDIA L4", low="40.00", limit="72.00", high="72.00")
    for how_many in (1, 2, 3, 4):
        rules = [f"{target}={watts}" for target, watts in list(RULES.items())[:how_many]]
        log = node.once(0, POWER_LIMITS="\n".join(rules), POWER_LIMIT="60")
        assert node.limit(uuid) == f"{200 + how_many}.00"
        assert node.limit(other) == "60.00"
        assert f'rule="{list(RULES)[how_many - 1]}"' in log
        node.once(0, POWER_LIMITS="\n  " + "\n\n  ".join(reversed(rules)) + "\n", POWER_LIMIT="60")
        assert node.limit(uuid) == f"{200 + how_many}.00"


def test_a_failed_restore_is_not_logged_as_restored(node: Node) -> None:
    node.gpu()
    agent = node.start(POWER_LIMIT="300", RESTORE_ON_EXIT="1")
    node.wait_ready()
    node.say("shrug")
    agent.terminate()
    assert 'msg="not supported" watts=350' in agent.log
    assert "default restored" not in agent.log


NASTY = 'NVIDIA "A", B|C, \\ [D E]'


def test_special_characters_in_a_name_do_not_shift_columns(node: Node) -> None:
    uuid = node.gpu(name=NASTY)
    other = node.gpu(1, limit="[Not Supported]", name=NASTY)
    log = node.once(0, POWER_LIMITS="name:NVIDIA*, B|C*=300", METRICS_FILE=str(node.metrics))
    assert node.limit(uuid) == "300.00"
    assert f"gpu=0 uuid={uuid} name=\"NVIDIA 'A', B|C, / [D E]\" draw=101.52 limit=350.00 enforced=350.00 " in log
    assert f'gpu=1 uuid={other} msg="not supported" limit=[Not_Supported] min=100.00' in log
    lines = node.metrics.read_text().splitlines()
    labels = f'{{UUID="{uuid}",gpu="0",modelName="NVIDIA \\"A\\", B|C, \\\\ [D E]"}}'
    assert f"gpu_power_limit_watts{labels} 300.00" in lines


def test_a_read_only_state_directory_is_logged_and_limits_still_apply(node: Node) -> None:
    uuid = node.gpu()
    # The folders prevent files of these names, because root may write anywhere else.
    for name in ("ready", "heartbeat", ".ready", ".heartbeat"):
        (node.state / name / "full").mkdir(parents=True)
    log = node.once(0, POWER_LIMIT="300")
    assert node.limit(uuid) == "300.00"
    assert 'level=error msg="cannot write STATE_DIR" file=ready output="' in log
    assert 'level=error msg="cannot write STATE_DIR" file=heartbeat output="' in log
    assert [line for line in log.splitlines() if not re.match(r"ts=\S+ level=", line)] == []


def test_a_node_without_any_gpu_is_a_failure(node: Node) -> None:
    (node.root / "gpus" / "GPU-none").write_text("index=\n")
    node.nvidia_smi.write_text("#!/bin/sh\nexit 0\n")
    assert "nvidia-smi shows no GPU" in node.once(1, POWER_LIMIT="300")


def test_persistence_mode_is_left_alone_when_switched_off(node: Node) -> None:
    node.gpu()
    node.once(0, POWER_LIMIT="300", PERSISTENCE_MODE="0")
    assert "-pm 1" not in node.calls


def test_an_invalid_request_exits_64_before_any_call_of_nvidia_smi(node: Node) -> None:
    node.gpu()
    for requested in ("300.5", "300W", "-300", "0", "0300", "0%", "%", "Default", "3e2", "99999", "3 0"):
        assert f"got '{requested}'" in node.once(64, POWER_LIMIT=requested)
        assert "POWER_LIMITS: 'index:0=" in node.once(64, POWER_LIMITS=f"index:1=200\nindex:0={requested}")
    assert node.calls == []


UNREADABLE_RULES = ["300", "=300", "index:0", "index:0=", "index:=300", "index:a=300", "uuid:0=300"]
UNREADABLE_RULES += ["index:00=300", "pci:0a:00=300", "pci::00.0=300", "pci:0000:0a:00.8=300"]
UNREADABLE_RULES += ["uuid:GPU-=300", "pci:0a=300", "pci:zz:00.0=300", "name:=300", "serial:1=300"]


def test_an_invalid_rule_exits_64(node: Node) -> None:
    for rule in UNREADABLE_RULES:
        assert f"POWER_LIMITS: '{rule}' must" in node.once(64, POWER_LIMITS=rule)
    assert node.calls == []


def test_an_invalid_setting_exits_64(node: Node, rows) -> None:
    node.state.mkdir()
    for variable, value in rows:
        (node.state / "ready").touch()
        (node.state / "heartbeat").touch()
        agent = node.start(**{"ONESHOT": "1", variable: value})
        assert agent.wait() == 64, variable
        assert f"{variable} must be" in agent.log
        assert not node.ready
        assert not (node.state / "heartbeat").exists()
    assert node.calls == []


def test_a_missing_nvidia_smi_exits_69_with_a_hint_on_the_runtime_class(node: Node) -> None:
    node.nvidia_smi.unlink()
    log = node.once(69, POWER_LIMIT="300", START_TIMEOUT_SECONDS="0")
    assert "nvidia-smi -L failed rc=127" in log
    assert "runtimeClassName nvidia" in log


def test_an_nvidia_smi_that_never_works_exits_69_in_time_whatever_the_retry(node: Node) -> None:
    node.gpu()
    node.say("broken")
    log = node.once(69, POWER_LIMIT="300", START_TIMEOUT_SECONDS="1", RETRY_SECONDS=UNBEARABLE)
    assert "nvidia-smi -L failed rc=9 for 1 s, giving up" in log
    assert "output=\"NVIDIA-SMI has failed because it couldn't communicate with the 'NVIDIA driver'.\"" in log
    assert 'hint="the driver is not loaded on this node"' in log


def test_the_agent_waits_for_a_late_driver_with_heartbeats(node: Node) -> None:
    uuid = node.gpu()
    node.say("broken")
    agent = node.start(POWER_LIMIT="300", RETRY_SECONDS="1")
    agent.wait_for_log("nvidia-smi -L failed rc=9, waiting")
    wait_until((node.state / "heartbeat").exists, "a heartbeat while waiting")
    node.unsay("broken")
    node.wait_ready()
    assert node.limit(uuid) == "300.00"


def test_a_signal_while_waiting_for_nvidia_smi_ends_the_agent(node: Node) -> None:
    node.say("broken")
    agent = node.start(POWER_LIMIT="300", START_TIMEOUT_SECONDS=UNBEARABLE, RETRY_SECONDS=UNBEARABLE)
    agent.wait_for_log("waiting")
    agent.terminate_in_its_sleep()


def test_metrics_are_written_in_the_textfile_format(node: Node) -> None:
    limited = node.gpu(0, low="310.00")
    left_alone = node.gpu(1, name="NVIDIA L4", limit="72.00")
    node.gpu(2, limit="[N/A]")
    node.gpu(3, limit="[N/A]")
    before = int(time.time())
    node.once(0, POWER_LIMITS="index:0=300\nindex:2=300", METRICS_FILE=str(node.metrics))
    lines = node.metrics.read_text().splitlines()
    names = ["gpu_power_limit_watts", "gpu_power_limit_desired_watts",
             "gpu_power_limit_last_check_timestamp_seconds"]  # fmt: skip
    assert [line for line in lines if line.startswith("# TYPE")] == [f"# TYPE {name} gauge" for name in names]
    samples = dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
    first = f'{{UUID="{limited}",gpu="0",modelName="NVIDIA GeForce RTX 3090"}}'
    second = f'{{UUID="{left_alone}",gpu="1",modelName="NVIDIA L4"}}'
    checked = {key: int(samples.pop(key)) for key in list(samples) if key.startswith(names[2])}
    assert samples == {names[0] + first: "310.00", names[1] + first: "310", names[0] + second: "72.00"}
    assert set(checked) == {names[2] + first, names[2] + second}
    assert all(before <= when <= time.time() for when in checked.values())
    assert list(node.root.glob("power.prom*")) == [node.metrics]


def test_metrics_that_cannot_be_written_are_only_a_warning(node: Node) -> None:
    node.gpu()
    log = node.once(0, POWER_LIMIT="300", METRICS_FILE=str(node.root / "missing" / "power.prom"))
    assert re.search(r'level=warn msg="cannot write METRICS_FILE" file="\S+/missing/power.prom" output=".+"\n', log)
    assert node.ready


def test_drift_is_corrected_and_stays_so_when_a_signal_ends_the_agent(node: Node) -> None:
    uuid = node.gpu()
    agent = node.start(POWER_LIMIT="300", INTERVAL_SECONDS="1")
    node.wait_ready()
    node.gpu(limit="350.00")
    wait_until(lambda: node.limit(uuid) == "300.00", "the limit again")
    agent.terminate_in_its_sleep()
    assert not node.ready
    assert node.limit(uuid) == "300.00"  # not restored, unless asked


def test_a_signal_ends_a_long_sleep(node: Node) -> None:
    node.gpu()
    before = int(time.time())
    agent = node.start(POWER_LIMIT="300", INTERVAL_SECONDS=UNBEARABLE)
    wait_until((node.state / "heartbeat").exists, "the end of the first pass")
    assert before <= int((node.state / "heartbeat").read_text()) <= time.time()
    agent.terminate_in_its_sleep()
    assert agent.log.endswith('msg="stopped"\n')


def test_with_restore_on_exit_a_signal_restores_the_defaults_of_limited_gpus(node: Node) -> None:
    limited, at_default, left_alone = node.gpu(0), node.gpu(1), node.gpu(2, limit="200.00")
    node.gpu(3, limit="[N/A]", default="[N/A]")
    agent = node.start(POWER_LIMITS="index:0=300\nindex:1=default\nindex:3=300", RESTORE_ON_EXIT="1")
    node.wait_ready()
    assert node.limit(limited) == "300.00"
    agent.terminate()
    assert [node.limit(uuid) for uuid in (limited, at_default, left_alone)] == ["350.00", "350.00", "200.00"]
    assert node.set_calls == [f"-i {limited} -pl 300", f"-i {limited} -pl 350"]
    assert not node.ready


def test_a_failed_pass_clears_the_readiness_and_is_retried_before_the_interval(node: Node) -> None:
    uuid = node.gpu()
    node.say("noperm")
    agent = node.start(POWER_LIMIT="300", RETRY_SECONDS="1")
    agent.wait_for_log('msg="pass failed" retry=1')
    wait_until((node.state / "heartbeat").exists, "a heartbeat after a failed pass")
    assert not node.ready
    node.unsay("noperm")
    node.wait_ready()
    assert node.limit(uuid) == "300.00"


def test_a_driver_that_goes_away_clears_the_readiness(node: Node) -> None:
    node.gpu()
    agent = node.start(POWER_LIMIT="300", INTERVAL_SECONDS="1")
    node.wait_ready()
    node.say("broken")
    node.wait_not_ready()
    agent.wait_for_log('msg="query failed rc=9"')
    agent.wait_for_log("retry=1\n")  # the interval, which is shorter than the default of RETRY_SECONDS


def test_a_stale_ready_file_of_a_killed_run_is_removed_at_once(node: Node) -> None:
    node.state.mkdir()
    (node.state / "ready").touch()
    (node.state / "heartbeat").write_text("1")
    node.say("broken")
    node.start(POWER_LIMIT="300").wait_for_log("waiting")
    assert not node.ready
    wait_until((node.state / "heartbeat").exists, "a heartbeat of this run")
    assert (node.state / "heartbeat").read_text() != "1"


def test_the_defaults_are_in_the_script(node: Node, rows) -> None:
    before_the_first_file, _ = script().split('\nmkdir -p "$STATE_DIR"', 1)
    show = "".join(f'echo "{name}=${name}"\n' for name, _ in rows)
    agent = node.scripts.start(f"{before_the_first_file}\ncheck_configuration\n{show}", {})
    assert agent.wait() == 0
    assert agent.log.splitlines() == [f"{name}={value}" for name, value in rows]


ALLOWED_CALLS = r"-L|-pm 1|-i GPU-\S+ -pl [1-9]\d*|--query-gpu=[a-z_.,]+ --format=csv,noheader,nounits"
QUERIED = (
    "index,uuid,pci.bus_id,name,power.limit,power.min_limit,power.max_limit,power.default_limit,enforced.power.limit,"
    "power.draw,utilization.gpu,utilization.memory,memory.used,temperature.gpu"
)


def test_nvidia_smi_is_called_in_four_ways_only(node: Node) -> None:
    node.gpu(0, low="100.50", default="366.50")
    node.gpu(1, limit="[N/A]")
    agent = node.start(POWER_LIMITS="index:0=33%", POWER_LIMIT="80%", RESTORE_ON_EXIT="1", INTERVAL_SECONDS="1")
    node.wait_ready()
    agent.terminate()
    assert [call for call in node.calls if not re.fullmatch(ALLOWED_CALLS, call)] == []
    assert {call.split()[0].partition("=")[0] for call in node.calls} == {"-L", "-pm", "--query-gpu", "-i"}
    queries = {call.split()[0].partition("=")[2] for call in node.calls if call.startswith("--query-gpu")}
    assert queries == {QUERIED}


def test_every_line_of_the_log_is_logfmt(node: Node) -> None:
    node.gpu(0)
    node.gpu(1, limit="[N/A]")
    node.say("grumble")
    node.say("noperm")
    log = node.once(1, POWER_LIMIT="90", METRICS_FILE="/nowhere/power.prom")
    node.unsay("noperm")
    node.say("unsupported")
    log += node.once(0, POWER_LIMIT="90")
    pair = r'[a-z_]+=(?:"[^"]*"|[^\s"=]*)'
    assert [line for line in log.splitlines() if not re.fullmatch(rf"ts=\S+ level=\w+(?: {pair})+", line)] == []


def test_a_state_directory_that_mkdir_cannot_create_exits_64(node: Node) -> None:
    (node.root / "file").touch()
    assert "STATE_DIR must be a folder" in node.once(64, STATE_DIR=str(node.root / "file" / "state"))
    assert node.calls == []


def test_a_signal_before_the_first_pass_restores_nothing(node: Node) -> None:
    uuid = node.gpu(limit="200.00")
    node.say("broken")
    agent = node.start(POWER_LIMIT="300", RESTORE_ON_EXIT="1")
    agent.wait_for_log("waiting")
    node.unsay("broken")
    agent.terminate_in_its_sleep()
    assert node.limit(uuid) == "200.00"


def test_a_signal_at_any_time_ends_the_agent(node: Node) -> None:
    node.gpu()
    for milliseconds in range(0, 120, 15 if depth.is_deep else 30):
        agent = node.start(POWER_LIMIT="300", INTERVAL_SECONDS=UNBEARABLE)
        agent.wait_for_log("level=info") if milliseconds else node.wait_ready()
        time.sleep(milliseconds / 1000)
        agent.terminate()
        assert not node.ready


def test_no_command_is_substituted_in_the_form_during_which_bash_loses_a_signal() -> None:
    lines = [line for line in script().splitlines() if not line.startswith("#")]
    assert [line for line in lines if "$(" in line.replace("$((", "")] == []


@pytest.mark.system_tools
def test_shellcheck_reports_nothing() -> None:
    assert script().startswith("#!/bin/sh\n")
    assert shellcheck(script()) == ""
