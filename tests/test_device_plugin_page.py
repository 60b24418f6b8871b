"""The page on the device plugin: each of its programs runs as written, and its table is the one in the code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import dist
import documents
from gpu_constructs import AlertThresholds, GpuConstructsError, versions

PAGE = dist.ROOT / "docs" / "device-plugin.md"
PROGRAMS = [block.text for block in documents.blocks(PAGE, "python")]
APPS = [program for program in PROGRAMS if "synth(app)" in program]


@pytest.mark.parametrize("number", range(len(APPS)))
def test_a_block_runs_as_written(number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    exec(compile(APPS[number], f"device-plugin.md block {number}", "exec"), {})
    assert list(tmp_path.rglob("*.k8s.yaml"))


def test_the_refused_block_gives_the_error_that_is_shown() -> None:
    (block,) = set(PROGRAMS) - set(APPS)
    with pytest.raises(GpuConstructsError) as refused:
        exec(block, {})
    assert [shown.text for shown in documents.blocks(PAGE, "text")] == [f"{refused.value}\n"]


def test_no_example_keeps_a_gpu_that_must_be_reset() -> None:
    (kept,) = re.findall(r"dp_disable_healthchecks=\[([\d, ]+)\]", "".join(PROGRAMS))
    assert not {int(xid) for xid in kept.split(",")} & set(AlertThresholds().xid_critical)


FACTS = {
    '`sleep_interval="infinite"`': "has_infinite_sleep_interval",
    "`shared_devices_allocation_policy`": "has_shared_devices_allocation_policy",
    "`cdi_disable_hooks`": "has_cdi_disable_hooks",
    "`Sharing.mps(fail_requests_greater_than_one=False)`": "honours_mps_fail_requests",
    "config-manager beside MPS with `host_pid=True`": "config_manager_survives_host_pid",
    "the attribute of a MIG device in its resource name (`mig-1g.10gb.me`)": "names_mig_attributes",
    "GPU Feature Discovery reads its own pod, to own what it publishes": "sets_owner_references",
}


def test_the_table_of_releases_is_the_one_in_the_code() -> None:
    assert f"| setting | {' | '.join(versions.DEVICE_PLUGIN)} |" in documents.prose(PAGE)
    rows = {row[0]: row[1:] for row in documents.table(PAGE, "setting")}
    for name, fact in FACTS.items():
        has = [getattr(release, fact) for release in versions.DEVICE_PLUGIN.values()]
        assert [cell == "yes" for cell in rows.pop(name)] == has, name
    assert rows == {
        "Node Feature Discovery": [r.node_feature_discovery.version for r in versions.DEVICE_PLUGIN.values()]
    }


def test_the_releases_that_are_warned_of_are_named() -> None:
    first, *_, last = versions.RDMA_ON_BY_DEFAULT
    assert f"{first} to {last}, forced with `Unverified`" in documents.prose(PAGE)
