"""The page on power limits: its programs run as written, its log is the agent's, its tables are the code's."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

import dist
import documents
from gpu_constructs import GpuConstructsError
from gpu_constructs.gpu_models import GPU_MODELS
from gpu_constructs.power.wish import power_wishes
from shell import launcher
from test_power_limit_script import Node, script

PAGE = dist.ROOT / "docs" / "power.md"
TEXT = PAGE.read_text(encoding="utf-8")
PROGRAMS = [block.text for block in documents.blocks(PAGE, "python")]
APPS = [program for program in PROGRAMS if "synth(app)" in program]
ERROR, LOG = (block.text for block in documents.blocks(PAGE, "text"))


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    with launcher(("sh",), tmp_path) as scripts:
        yield Node(tmp_path, scripts)


@pytest.mark.parametrize("number", range(len(APPS)))
def test_a_block_runs_as_written_and_limits_gpus(number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    exec(compile(APPS[number], f"power.md block {number}", "exec"), {})
    written = [one for path in tmp_path.rglob("*.k8s.yaml") for one in yaml.safe_load_all(path.read_text())]
    agents = [
        manifest["spec"]["template"]["metadata"]["labels"]
        for manifest in written
        if manifest["kind"] == "DaemonSet"
        and manifest["spec"]["template"]["spec"]["containers"][0]["name"] == "powerlimit"
    ]
    assert len(agents) == (2 if "for pool" in APPS[number] else 1)
    assert {labels["app.kubernetes.io/name"] for labels in agents} == {"nvidia-powerlimit"}


def test_the_refused_block_gives_the_error_that_is_shown() -> None:
    (block,) = set(PROGRAMS) - set(APPS)
    with pytest.raises(GpuConstructsError) as refused:
        exec(block, {})
    assert f"{refused.value}\n" == ERROR


def test_the_table_of_boards_is_the_one_in_the_code() -> None:
    assert documents.table(PAGE, "name") == [
        [
            board.name,
            str(board.default_watts or "?"),
            board.watts_in_words() or "?",
            str(board.vram_mib or "?"),
        ]
        for board in GPU_MODELS.values()
    ]


def test_the_keys_are_listed_in_the_order_in_which_they_win() -> None:
    keys = [row[0].strip("`:") for row in documents.table(PAGE, "key")]
    given = {"name:*": 1, "index:0": 1, "pci:01:00.0": 1, "uuid:GPU-1": 1}
    assert [wish.target for wish in power_wishes(1, given)] == [*keys, None]
    for number, row in enumerate(documents.table(PAGE, "key")):
        assert row[2] == ", ".join(f"`{key}:`" for key in keys[number + 1 :]) + (", " if keys[number + 1 :] else "") + (
            "`watts`"
        )


def test_the_log_that_is_shown_is_the_agent_s(node: Node) -> None:
    node.gpu(0)
    node.gpu(1, name="NVIDIA GeForce RTX 5090", limit="575.00", low="400.00", high="600.00", default="575.00")
    written = node.once(0, POWER_LIMIT="300") + node.once(0, POWER_LIMIT="300")
    shown, found = (re.sub(r"^ts=\S+ ", "", text, flags=re.M) for text in (LOG, written))
    assert shown == found


def test_what_the_log_says_is_in_the_script() -> None:
    for row in documents.table(PAGE, "in the log"):
        said = row[0].strip("`")
        code = re.fullmatch(r"set failed rc=(\d+)", said)
        if said == "not supported, set failed rc=3":
            assert 'said="not supported, set failed rc=$rc"' in script()
        elif code:
            assert f"        {code[1]}) hint=" in script(), said
        else:
            assert said in script(), said


def test_the_metrics_and_their_labels_are_the_agent_s(node: Node) -> None:
    node.gpu()
    node.once(0, POWER_LIMIT="300", METRICS_FILE=str(node.metrics))
    lines = [line for line in node.metrics.read_text().splitlines() if not line.startswith("#")]
    assert [f"`{line.partition('{')[0]}`" for line in lines] == [row[0] for row in documents.table(PAGE, "metric")]
    labels = re.findall(r"(\w+)=", lines[0])
    assert "Each has the labels `{}`, `{}` and `{}`".format(*labels) in TEXT


def test_a_share_is_rounded_down_and_the_first_pattern_wins(node: Node) -> None:
    assert "rounded down to whole watts" in TEXT
    uuid = node.gpu(default="366.50")
    node.once(0, POWER_LIMIT="75%")
    assert node.limit(uuid) == "274.00"


def test_restoring_is_for_gpus_with_a_limit_and_default_does_it_once(node: Node) -> None:
    limited, alone = node.gpu(0, limit="300.00"), node.gpu(1, limit="200.00")
    node.once(0, POWER_LIMITS="index:0=default")
    assert (node.limit(limited), node.limit(alone)) == ("350.00", "200.00")


def test_a_limit_stays_when_the_pod_ends(node: Node) -> None:
    uuid = node.gpu()
    agent = node.start(POWER_LIMIT="300")
    node.wait_ready()
    agent.terminate()
    assert node.limit(uuid) == "300.00"


def test_the_exit_codes_are_the_script_s() -> None:
    assert "the container ends with 69" in TEXT.replace("\n", " ")
    assert "exit 69" in script()
    assert "64 says that" in TEXT.replace("\n", " ")
    assert "exit 64" in script()
