"""The page on sharing: its programs run as written, and what the library knows of its table is in the code."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml

import dist
import documents
from gpu_constructs import Backend, GpuConstructsError, GpuConstructsWarning, GpuProfile, Kubernetes, Sharing, Talos
from gpu_constructs.mig_profiles import MIG_PROFILES

PAGE = dist.ROOT / "docs" / "sharing.md"
TEXT = " ".join(documents.prose(PAGE).split())
PROGRAMS = [block.text for block in documents.blocks(PAGE, "python")]
TALOS = [f"1.{minor}" for minor in range(10, 15)]
MODES = ("exclusive", "time-slicing", "slices of memory", "MPS", "MIG", "vGPU", "DRA")
ROWS = {row[0]: dict(zip(MODES, row[1:], strict=True)) for row in documents.table(PAGE, "property")}


def written(number: int, folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    monkeypatch.chdir(folder)
    exec(compile(PROGRAMS[number], f"sharing.md block {number}", "exec"), {})
    return [one for path in folder.rglob("*.k8s.yaml") for one in yaml.safe_load_all(path.read_text())]


def refuses(make: Any) -> bool:
    try:
        make()
    except GpuConstructsError:
        return True
    return False


@pytest.mark.parametrize(
    ("number", "limits"),
    [
        (0, {"nvidia.com/gpu": 1}),
        (1, {"nvidia.com/gpu.shared": 1}),
        (2, {"nvidia.com/gpu": 20}),
        (3, {"nvidia.com/gpu": 1}),
        (4, {"nvidia.com/mig-1g.10gb": 1}),
    ],
)
def test_a_block_runs_as_written_and_its_pods_ask_for_what_is_said(
    number: int, limits: dict[str, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pods = [
        one["spec"]["template"]["spec"]
        for one in written(number, tmp_path, monkeypatch)
        if one["kind"] in ("Deployment", "Job")
    ]
    asked: Counter[str] = Counter()
    for pod in pods:
        for container in pod["containers"]:
            given = (container.get("resources") or {}).get("limits", {})
            asked.update({name: int(amount) for name, amount in given.items() if name.startswith("nvidia.com/")})
    assert asked == limits
    mode = ("exclusive", "time-slicing", "slices of memory", "MPS", "MIG")[number]
    assert f"`{next(iter(limits))}`" in ROWS["pods ask for"][mode]


def test_the_units_of_the_example_do_not_fit_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = written(2, tmp_path, monkeypatch)
    (config,) = (yaml.safe_load(one["data"]["config.yaml"]) for one in made if "config.yaml" in one.get("data", {}))
    (shared,) = config["sharing"]["timeSlicing"]["resources"]
    assert f"which is {shared['replicas']} units of 1Gi" in TEXT
    pods = {one["metadata"]["name"]: one for one in made if one["kind"] == "Deployment"}
    rows = documents.table(PAGE, "pod")
    assert {row[0].strip("`") for row in rows} == {name for name in pods if "node-feature-discovery" not in name}
    for name, takes, asks in rows:
        deployment = pods[name.strip("`")]
        (container,) = deployment["spec"]["template"]["spec"]["containers"]
        assert deployment["metadata"]["annotations"]["gpu-constructs/vram"] == takes
        assert f"`nvidia.com/gpu: {container['resources']['limits']['nvidia.com/gpu']}`" == asks
    budgets = [int(takes.removesuffix("Gi")) for _, takes, _ in rows]
    assert f"{budgets[0]} + {budgets[1]} is more than {shared['replicas']}" in TEXT
    assert max(budgets) <= shared["replicas"] < sum(budgets)


def test_every_mode_is_said_as_in_the_table() -> None:
    given = {
        mode: ROWS["said by"][mode].strip("`")
        for mode in ("exclusive", "time-slicing", "slices of memory", "MPS", "DRA")
    }
    known = {"Sharing": Sharing, "Backend": Backend}
    made = {mode: eval(text, known) for mode, text in given.items()}
    assert [made[mode].strategy for mode in ("exclusive", "time-slicing", "MPS")] == ["none", "time-slicing", "mps"]
    assert made["slices of memory"].vram_unit == "1Gi"
    assert made["DRA"].is_dra
    assert eval(f"dict({ROWS['said by']['MIG'].strip('`')})") == {"mig_strategy": "mixed"}


def test_the_most_slots_are_the_code_s() -> None:
    for way, made in (("MPS", Sharing.mps), ("time-slicing", Sharing.time_slicing)):
        most = int(ROWS["most for each GPU"][way])
        assert not refuses(lambda made=made, most=most: made(replicas=most))
        assert refuses(lambda made=made, most=most: made(replicas=most + 1))


def test_the_most_units_and_those_that_are_warned_of_are_the_code_s() -> None:
    most = int(ROWS["most for each GPU"]["slices of memory"].removesuffix(" units"))
    assert f"{most} slots are the most" in TEXT
    with pytest.warns(GpuConstructsWarning):
        Sharing.vram_units(vram=f"{most}Mi", unit="1Mi")
    assert refuses(lambda: Sharing.vram_units(vram=f"{most + 1}Mi", unit="1Mi"))
    many = int(re.findall(r"Above (\d+) units there is a warning", TEXT)[0])
    assert not refuses(lambda: Sharing.vram_units(vram=f"{many}Mi", unit="1Mi"))
    with pytest.warns(GpuConstructsWarning):
        Sharing.vram_units(vram=f"{many + 1}Mi", unit="1Mi")


def test_part_of_a_unit_is_a_whole_one_as_is_said() -> None:
    budget, units = re.findall(r"([\d.]+Gi) asks for (\d+)\.", TEXT)[0]
    assert Sharing.vram_units(vram="16303Mi").units(budget) == int(units)


def test_slots_begin_at_two_and_refusals_are_the_defaults_that_are_said() -> None:
    assert "`replicas` begins at 2" in TEXT
    assert refuses(lambda: Sharing.time_slicing(replicas=1))
    assert "It is on by default here" in TEXT
    assert Sharing.time_slicing(replicas=2).fail_requests_greater_than_one
    assert Sharing.mps(replicas=2).fail_requests_greater_than_one


def test_mig_devices_are_shared_by_turns_and_not_by_mps() -> None:
    assert (ROWS["goes with"]["time-slicing"], ROWS["goes with"]["MPS"]) == ("MIG", "")
    device = {"nvidia.com/mig-1g.10gb": 2}
    assert not refuses(lambda: Sharing.time_slicing(resources=device))
    assert refuses(lambda: Sharing(strategy="mps", resources=device))


def test_boards_have_mig_or_not_as_is_said() -> None:
    assert ROWS["GeForce boards"]["MIG"] == "no"
    assert all(profiles == () for name, profiles in MIG_PROFILES.items() if "GeForce" in name)
    for name in ("A10G", "L4", "L40S"):
        assert name in TEXT
        assert MIG_PROFILES[f"NVIDIA {name}"] == ()
    for profile in ("1g.10gb", "3g.40gb"):
        assert f"`{profile}`" in TEXT
        assert profile in MIG_PROFILES["NVIDIA H100 80GB HBM3"]


def test_talos_has_dra_from_the_release_that_is_said() -> None:
    first = ROWS["Talos"]["DRA"].removesuffix(" and later")
    serving = [v for v in TALOS if not refuses(lambda v=v: GpuProfile(platform=Talos(v), backend=Backend.dra_claims()))]
    assert serving[0] == first
    assert ROWS["Talos"]["exclusive"].removesuffix(" and later") == TALOS[0]
    assert "on Kubernetes 1.34 or later" in TEXT
    backend = Backend.dra_claims()
    assert not refuses(lambda: GpuProfile(platform=Kubernetes("1.34"), backend=backend))
    assert refuses(lambda: GpuProfile(platform=Kubernetes("1.33"), backend=backend))
