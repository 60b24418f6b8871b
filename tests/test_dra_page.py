"""The page on DRA: its programs run as written, its tables are what the two backends make of one workload."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from cdk8s import Chart, Testing

import dist
import documents
import schemas
from gpu_constructs import Backend, GpuConstructsError, GpuProfile, GpuRequest, GpuWorkload, Kubernetes, Talos
from gpu_constructs.namespace_limits import NamespaceQuota
from gpu_constructs.workload.claim_sharing import FEATURE_GATES, ClaimSharing
from gpu_constructs.workload.container import Container
from gpu_constructs.workload.resource_claim import cel_selector

PAGE = dist.ROOT / "docs" / "dra.md"
TEXT = " ".join(documents.prose(PAGE).split())
PROGRAMS = [block.text for block in documents.blocks(PAGE, "python")]
(INSTALL,) = (program for program in PROGRAMS if "HelmValues" in program)
PROGRAMS.remove(INSTALL)
APPS = [program for program in PROGRAMS if "synth(app)" in program]
CONDITION, ERROR = (block.text for block in documents.blocks(PAGE, "text"))
CHANGES = {row[0]: row[1:] for row in documents.table(PAGE, "property")}
PLUGIN, CLAIMS = Backend.device_plugin(), Backend.dra_claims()


def written(number: int, folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    monkeypatch.chdir(folder)
    exec(compile(APPS[number], f"dra.md block {number}", "exec"), {})
    return [one for path in folder.rglob("*.k8s.yaml") for one in yaml.safe_load_all(path.read_text())]


def pod_of(manifest: dict[str, Any]) -> dict[str, Any]:
    pod: dict[str, Any] = manifest["spec"]["template"]["spec"]
    return pod


@pytest.mark.parametrize(
    ("number", "kinds", "releases"),
    [
        (0, ["Deployment", "ResourceClaimTemplate"], ["1.34", "1.37"]),
        (1, ["Deployment", "Deployment", "ResourceClaim"], ["1.34", "1.37"]),
        (2, ["ResourceClaim"], ["1.34", "1.37"]),
        (3, ["Deployment", "Deployment", "DeviceClass", "DeviceClass", "ResourceClaimTemplate"], ["1.36", "1.37"]),
    ],
)
def test_a_block_runs_as_written_and_kubernetes_takes_it(
    number: int, kinds: list[str], releases: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    manifests = written(number, tmp_path, monkeypatch)
    assert sorted(one["kind"] for one in manifests) == kinds
    assert [error for one in manifests for error in schemas.schema_errors(one, releases)] == []


def test_the_driver_is_installed_with_the_file_that_its_block_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    exec(compile(INSTALL, "dra.md, the driver", "exec"), {})
    (helm,) = documents.commands(PAGE)
    assert helm[:3] == ["helm", "install", helm[3].rpartition("/")[2]]
    flags = dict(zip(helm[4::2], helm[5::2], strict=True))
    values = yaml.safe_load((tmp_path / flags.pop("--values")).read_text())
    rows = [row[0].strip("`") for row in documents.table(PAGE, "driver's value")]
    assert values == {key: one for row in rows for key, one in yaml.safe_load(row).items()}
    route = [row[1] for row in documents.table(dist.ROOT / "docs" / "which-route.md", "chart")]
    assert [sorted(row) for row in (route[1].replace("`", "").split(", "),)] == [sorted(rows)]
    (namespace,) = (one for path in tmp_path.rglob("*.k8s.yaml") for one in yaml.safe_load_all(path.read_text()))
    assert flags == {"--version": "0.5.0", "--namespace": namespace["metadata"]["name"]}
    assert namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "privileged"


def test_without_the_backend_the_same_workload_asks_the_plugin(chart: Chart) -> None:
    made = {}
    for backend in (PLUGIN, CLAIMS):
        profile = GpuProfile(platform=Talos("1.14"), backend=backend)
        own = Chart(chart, backend.kind)
        helper = Container(name="helper", image="a:1")
        GpuWorkload(
            own, "app", image="a:1", profile=profile, gpus=GpuRequest(family="hopper"), init_containers=[helper]
        )
        made[backend.kind] = Testing.synth(own)
    (by_plugin,), (template, by_claim) = made["device-plugin"], made["dra-claims"]
    limited, claiming = pod_of(by_plugin), pod_of(by_claim)
    assert limited["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] == "1"
    assert "resourceClaims" in claiming
    assert claiming["containers"][0]["resources"]["claims"]
    assert "affinity" in limited
    assert "affinity" not in claiming
    assert template["spec"]["spec"]["devices"]["requests"][0]["exactly"]["selectors"]
    assert CHANGES["runtime class"][1].startswith("none")
    assert (limited["runtimeClassName"], claiming.get("runtimeClassName")) == ("nvidia", None)
    assert CHANGES["node selector"][1] == "none"
    assert limited["nodeSelector"]
    assert "nodeSelector" not in claiming
    assert {"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"} in limited["initContainers"][0]["env"]
    assert "env" not in claiming["initContainers"][0]
    assert limited["tolerations"] == claiming["tolerations"]


def test_quotas_have_the_keys_that_are_said() -> None:
    keys = [cell.strip("`") for cell in CHANGES["quota"]]
    assert list(NamespaceQuota(gpus={"nvidia.com/gpu": 1}).to_manifest()) == [keys[0]]
    assert list(NamespaceQuota(device_classes={"gpu.nvidia.com": 1}).to_manifest()) == [keys[1]]


def test_backends_are_there_from_the_releases_that_are_said() -> None:
    for text, _, first in documents.table(PAGE, "backend"):
        backend = eval(text.strip("`"), {"Backend": Backend})
        serving = []
        for minor in range(27, 38):
            try:
                backend.require(Kubernetes(f"1.{minor}"))
            except GpuConstructsError:
                continue
            serving.append(f"Kubernetes 1.{minor}")
        assert serving[0] == ("Kubernetes 1.27" if first == "every release" else first)
    (talos,) = (row[1] for row in documents.table(PAGE, "what") if row[0] == "Talos")
    assert talos.startswith("1.13,")
    Backend.dra_claims().require(Talos("1.13"))
    with pytest.raises(GpuConstructsError):
        Backend.dra_claims().require(Talos("1.12"))


def test_the_condition_is_that_of_the_first_block(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (template,) = (m for m in written(0, tmp_path, monkeypatch) if m["kind"] == "ResourceClaimTemplate")
    (selector,) = template["spec"]["spec"]["devices"]["requests"][0]["exactly"]["selectors"]
    assert f"{selector['cel']['expression']}\n" == CONDITION
    assert cel_selector(GpuRequest(products=["NVIDIA GeForce RTX 5070 Ti"], min_vram="12Gi")) == CONDITION.strip()


def test_pods_that_share_name_one_claim(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pods = [pod_of(one) for one in written(1, tmp_path, monkeypatch) if one["kind"] == "Deployment"]
    assert [pod["resourceClaims"][0]["resourceClaimName"] for pod in pods] == ["shared-gpu", "shared-gpu"]


def test_the_feature_gates_are_the_strategies() -> None:
    rows = [[cell.strip("`") for cell in row] for row in documents.table(PAGE, "`sharing=` of the claim")]
    assert rows.pop(0) == ["none", "none"]
    gates = {eval(text, {"ClaimSharing": ClaimSharing}).strategy: gate for text, gate in rows}
    assert gates == FEATURE_GATES


def test_the_small_workload_asks_for_the_resource_of_its_class(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    manifests = written(3, tmp_path, monkeypatch)
    small, large = (
        next(m for m in manifests if (m["kind"], m["metadata"]["name"]) == ("Deployment", name))
        for name in ("small", "large")
    )
    names = {
        m["metadata"]["name"]: m["spec"].get("extendedResourceName") for m in manifests if m["kind"] == "DeviceClass"
    }
    resource = names["mig-1g-12gb.gpu.example.com"]
    assert resource in pod_of(small)["containers"][0]["resources"]["limits"]
    assert "resourceClaims" in pod_of(large)
    (template,) = (m for m in manifests if m["kind"] == "ResourceClaimTemplate")
    exactly = template["spec"]["spec"]["devices"]["requests"][0]["exactly"]
    assert exactly["deviceClassName"] == "big.gpu.example.com"
    assert names["big.gpu.example.com"] is None


def test_the_refused_block_gives_the_error_that_is_shown() -> None:
    (block,) = set(PROGRAMS) - set(APPS)
    with pytest.raises(GpuConstructsError) as refused:
        exec(block, {})
    assert f"{refused.value}\n" == ERROR
