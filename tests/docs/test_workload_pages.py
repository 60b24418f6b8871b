"""The pages on workloads, giving GPUs, DRA and namespaces: their tables and programs are what the code makes."""

import json
from functools import cache
from pathlib import Path
from typing import Any, get_args

import pytest
import yaml
from cdk8s import Chart, Testing

import documents
import schemas
from documents import Page, objects_in, of_kind
from gpu_constructs import (
    Backend,
    GpuConstructsError,
    GpuProfile,
    GpuRequest,
    GpuWorkload,
    Kubernetes,
    Probe,
    Run,
    Talos,
    VolumeClaim,
)
from gpu_constructs.catalog.gpu_models import GPU_MODELS
from gpu_constructs.cluster.namespace import PodSecurityLevel
from gpu_constructs.cluster.namespace_limits import NamespaceQuota
from gpu_constructs.cluster.priority_classes import DEFAULT_VALUES
from gpu_constructs.kube.container import Container
from gpu_constructs.kube.pod_security import violations
from gpu_constructs.kube.pod_specs import pod_spec_paths, pod_specs
from gpu_constructs.workload.dra import FEATURE_GATES, ClaimSharing
from gpu_constructs.workload.gpu_allocation import allocation, cel_selector
from gpu_constructs.workload.manifest_access import ManifestAccess
from gpu_constructs.workload.run import Kind
from tables import beside

WORKLOAD, ACCESS, DRA, NAMESPACES = map(Page, ("gpu-workload", "gpu-access", "dra", "namespaces"))


def limits(pod: dict[str, Any]) -> list[Any]:
    return [c.get("resources", {}).get("limits", {}).get("nvidia.com/gpu") for c in pod["containers"]]


def gpu_pods(manifests: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [pod for one in manifests for pod in pod_specs(one) if any(limits(pod))]


def made(chart: Chart, **given: Any) -> list[dict[str, Any]]:
    if given.get("kind") == "CronJob":
        given = {**given, "run": Run.cron_job(schedule="@daily")}
    GpuWorkload(chart, "app", image="a:1", platform=Kubernetes(), **given)
    found: list[dict[str, Any]] = Testing.synth(chart)
    return found


# --- workloads ------------------------------------------------------------------------------------------------


def test_each_program_makes_one_pod_with_gpus_as_is_said(tmp_path: Path) -> None:
    pods = []
    for number in range(len(WORKLOAD.apps)):
        (folder := tmp_path / str(number)).mkdir()
        written = WORKLOAD.written(number, folder)
        (pod,) = gpu_pods(written)
        pods.append((pod, written))
    for pod, _ in pods[:2]:
        assert violations(pod, "restricted") == []
        assert pod["automountServiceAccountToken"] is False
    server, written = pods[1]
    assert [one["kind"] for one in written].count("PersistentVolumeClaim") == 1
    assert {c["name"] for c in server["initContainers"]} == {"fetch", "proxy"}
    for container in server["initContainers"]:
        assert {"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"} in container["env"]
    added, _ = pods[3]
    (container,) = added["containers"]
    assert added["hostname"] == "chat"
    assert [mount["mountPath"] for mount in container["volumeMounts"]] == ["/cache"]
    assert [variable["name"] for variable in container["env"]] == ["TOKEN"]
    for method in ("attach_volume", "add_env", "add_init_container", "add_sidecar", "service", "match_labels"):
        assert f"`{method}`" in WORKLOAD.text
        assert method in ("service", "match_labels") or hasattr(GpuWorkload, method)


def test_a_kind_has_the_service_and_the_restarts_that_are_said(chart: Chart) -> None:
    assert WORKLOAD.column("kind") == list(get_args(Kind))
    for row in WORKLOAD.table("kind"):
        kind, _, has_service, restarts = (cell.strip("`") for cell in row)
        with_ports = made(Chart(chart, f"{kind}-ports"), kind=kind, ports=[80])
        without = made(Chart(chart, kind), kind=kind)
        there = ["Service" in [one["kind"] for one in manifests] for manifests in (with_ports, without)]
        said = {"with ports": [True, False], "always, headless": [True, True], "no": [False, False]}
        assert there == said[has_service], kind
        (pod,) = gpu_pods(without)
        assert pod.get("restartPolicy", "Always") == restarts.capitalize()


def test_a_request_chooses_nodes_or_none_as_its_row_says() -> None:
    for text, says, *_ in WORKLOAD.table("request"):
        given = eval(text.strip("`"), {"GpuRequest": GpuRequest})
        terms = allocation(given, GpuProfile(platform=Kubernetes())).node_terms
        assert bool(terms) == (not says.startswith("any;") and "MIG" not in says)


def test_updates_budgets_and_disks_are_as_said(chart: Chart, rows) -> None:
    for replicas, strategy, has_budget in rows:
        manifests = made(Chart(chart, f"replicas-{replicas}"), run=Run.deployment(replicas=replicas))
        found = of_kind("Deployment", manifests)["spec"]["strategy"]
        assert {"type": found["type"], **found.get("rollingUpdate", {})} == strategy
        assert ("PodDisruptionBudget" in [one["kind"] for one in manifests]) == has_budget
    manifests = made(chart, kind="StatefulSet", volumes={"/data": VolumeClaim(storage="1Gi")})
    assert len(of_kind("StatefulSet", manifests)["spec"]["volumeClaimTemplates"]) == 1


def test_the_numbers_are_the_code_s(chart: Chart) -> None:
    (server,) = gpu_pods(made(Chart(chart, "server"), liveness_probe=Probe.http_get("/", port=80), ports=[80]))
    startup, resources = server["containers"][0]["startupProbe"], server["containers"][0]["resources"]
    assert "repeats the same check for up to ten minutes" in WORKLOAD.text
    assert startup["periodSeconds"] * startup["failureThreshold"] == 600
    assert f"A probe waits {startup['timeoutSeconds']} seconds" in WORKLOAD.text
    assert f"have {server['terminationGracePeriodSeconds']} seconds" in WORKLOAD.text
    (job,) = made(Chart(chart, "job"), kind="Job")
    assert "A Job makes two retries" in WORKLOAD.text
    assert job["spec"]["backoffLimit"] == 2
    assert "ttlSecondsAfterFinished" not in job["spec"]
    assert "cpu" not in resources["limits"]
    assert "nvidia.com/gpu" not in resources["requests"]
    assert "24564 MiB" in WORKLOAD.text
    assert GPU_MODELS["NVIDIA GeForce RTX 4090"].vram_mib == 24564


# --- GPUs for what is there already ---------------------------------------------------------------------------


def given_gpus(program: str, folder: Path) -> list[dict[str, Any]]:
    """What a program of the page on giving GPUs writes, beside the rendered chart that one of them includes."""
    folder.mkdir()
    rendered = folder / "rendered.yaml"
    rendered.write_text(ACCESS.blocks("yaml")[0])
    # Node.js stays in the folder that it was started in.
    ACCESS.run(program.replace('"rendered.yaml"', repr(str(rendered))), folder)
    return objects_in(folder)


def pods_of(manifests: list[dict[str, Any]]) -> dict[str, list[Any]]:
    found = {}
    for one in manifests:
        places = "spec.steps.*.template.spec" if one["kind"] == "Pipeline" else None
        for path in pod_spec_paths(one, places):
            pod: Any = one
            for step in path:
                pod = pod[step]
            if any(limits(pod)):
                assert pod["runtimeClassName"] == "nvidia"
                found[one["metadata"]["name"]] = limits(pod)
    return found


def test_each_way_of_giving_gpus_gives_them(tmp_path: Path) -> None:
    written = [given_gpus(program, tmp_path / str(number)) for number, program in enumerate(ACCESS.apps)]
    held = [pods_of(manifests) for manifests in written]
    assert held[:5] == [{"llm": ["1"]}, {"job": ["2"]}, {"llm": ["1"]}, {}, {"pipeline": [1]}]
    assert list(held[5].values()) == [["1"], ["1"]]
    (values,) = [one["spec"]["values"] for one in written[3] if one["kind"] == "HelmRelease"]
    assert values == yaml.safe_load(ACCESS.blocks("yaml")[1])
    twice = ACCESS.apps[0].replace("llm.with_(GpuAccess(count=1))\n", "llm.with_(GpuAccess(count=1))\n" * 2)
    assert twice != ACCESS.apps[0]
    assert given_gpus(twice, tmp_path / "twice") == written[0]
    assert ("Deployment", "llm", "llm") in {
        (one["kind"], one["metadata"]["name"], one["metadata"].get("namespace")) for one in written[0]
    }
    for command in ACCESS.column("command"):
        assert "-n llm" in command
        assert "deployment llm" in command or "deploy/llm" in command
    (refused,) = ACCESS.refused
    with pytest.raises(GpuConstructsError) as error:
        ACCESS.run(refused, tmp_path)
    assert ACCESS.blocks("text") == [f"{error.value}\n"]


@cache
def definitions() -> dict[tuple[str, str], str]:
    """The text of each kind's definition, by kind and version."""
    return {
        (crd["spec"]["names"]["kind"], version["name"]): json.dumps(version["schema"])
        for file in schemas.CRD_FOLDER.glob("*.yaml")
        for crd in schemas.load_yaml(file.read_text(encoding="utf-8"))
        for version in crd["spec"]["versions"]
    }


def test_what_a_kind_s_pods_can_say_is_in_its_definition() -> None:
    for name, runtime_class, claims, _ in ACCESS.table("kind"):
        kind, version = name.replace("`", "").split()
        text, has = definitions()[kind, version], {"yes": True, "no": False, "open": False}
        assert ('"runtimeClassName"' in text) == has[runtime_class]
        assert ('"resourceClaimTemplateName"' in text) == has[claims]
        assert ("x-kubernetes-preserve-unknown-fields" in text) == (runtime_class == "open")


POD = {"containers": [{"name": "sidecar"}, {"name": "pytorch"}, {"name": "node"}, {"name": "kserve-container"}]}
REPLICATED = {"template": {"spec": {"replicatedJobs": [{"template": {"spec": {"template": {"spec": POD}}}}]}}}
SPECS = beside(__file__, "workload_pages")["specs"]


def test_gpus_go_to_the_container_that_is_named_and_to_no_train_job() -> None:
    access = ManifestAccess(allocation=allocation(GpuRequest(), GpuProfile(platform=Kubernetes())))
    said = {row[0].replace("`", "").split()[0]: row[3] for row in ACCESS.table("kind")}
    for kind, spec in SPECS.items():
        version, name = kind.split()
        given = access.given({"apiVersion": version, "kind": name, "spec": spec}, claim_template=None)
        (path,) = pod_spec_paths(given)
        pod: Any = given
        for step in path:
            pod = pod[step]
        (holder,) = (c["name"] for c in pod["containers"] if c.get("resources"))
        assert ("the first container" if holder == "sidecar" else f"`{holder}`") in said[name]
    with pytest.raises(GpuConstructsError, match="Apply GpuAccess to its TrainingRuntime"):
        access.check({"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob", "spec": {}})


# --- dynamic resource allocation ------------------------------------------------------------------------------

CLAIMS_APPS = [app for app in DRA.apps if "HelmValues" not in app]
CHANGES = {row[0]: row[1:] for row in DRA.table("property")}


def pod_of(manifest: dict[str, Any]) -> dict[str, Any]:
    pod: dict[str, Any] = manifest["spec"]["template"]["spec"]
    return pod


def test_programs_make_claims_that_kubernetes_takes(tmp_path: Path, rows) -> None:
    written = []
    for number, (kinds, first) in enumerate(rows):
        (folder := tmp_path / str(number)).mkdir()
        DRA.run(CLAIMS_APPS[number], folder)
        manifests = objects_in(folder)
        assert sorted(one["kind"] for one in manifests) == kinds
        assert [error for one in manifests for error in schemas.schema_errors(one, [first, "1.37"])] == []
        written.append(manifests)
    template = of_kind("ResourceClaimTemplate", written[0])
    (selector,) = template["spec"]["spec"]["devices"]["requests"][0]["exactly"]["selectors"]
    condition = DRA.blocks("text")[0].strip()
    assert selector["cel"]["expression"] == condition
    assert cel_selector(GpuRequest(products=["NVIDIA GeForce RTX 5070 Ti"], min_vram="12Gi")) == condition
    sharing = [pod_of(one) for one in written[1] if one["kind"] == "Deployment"]
    assert [pod["resourceClaims"][0]["resourceClaimName"] for pod in sharing] == ["shared-gpu", "shared-gpu"]
    pods = {one["metadata"]["name"]: pod_of(one) for one in written[3] if one["kind"] == "Deployment"}
    classes = {one["metadata"]["name"]: one["spec"] for one in written[3] if one["kind"] == "DeviceClass"}
    resource = classes["mig-1g-12gb.gpu.example.com"]["extendedResourceName"]
    assert resource in pods["small"]["containers"][0]["resources"]["limits"]
    assert "resourceClaims" in pods["large"]
    exactly = of_kind("ResourceClaimTemplate", written[3])["spec"]["spec"]["devices"]["requests"][0]["exactly"]
    assert exactly["deviceClassName"] == "big.gpu.example.com"
    assert "extendedResourceName" not in classes["big.gpu.example.com"]


def test_the_driver_is_installed_with_the_file_that_its_block_writes(tmp_path: Path) -> None:
    (install,) = (app for app in DRA.apps if "HelmValues" in app)
    DRA.run(install, tmp_path)
    (helm,) = documents.commands(DRA.path)
    assert helm[:3] == ["helm", "install", helm[3].rpartition("/")[2]]
    flags = dict(zip(helm[4::2], helm[5::2], strict=True))
    values = yaml.safe_load((tmp_path / flags.pop("--values")).read_text())
    rows = DRA.column("Helm value")
    assert values == {key: one for row in rows for key, one in yaml.safe_load(row).items()}
    (_, route, *_) = Page("which-route").table("chart")
    assert sorted(route[1].replace("`", "").split(", ")) == sorted(rows)
    metadata = of_kind("Namespace", objects_in(tmp_path))["metadata"]
    assert flags == {"--version": "0.5.0", "--namespace": metadata["name"]}
    assert metadata["labels"]["pod-security.kubernetes.io/enforce"] == "privileged"


def test_without_the_backend_the_same_workload_asks_the_plugin(chart: Chart) -> None:
    made = {}
    for backend in (Backend.device_plugin(), Backend.dra_claims()):
        own = Chart(chart, backend.kind)
        profile = GpuProfile(platform=Talos("1.14"), backend=backend)
        helper = Container(name="helper", image="a:1")
        request = GpuRequest(family="hopper")
        GpuWorkload(own, "app", image="a:1", profile=profile, gpus=request, init_containers=[helper])
        made[backend.kind] = Testing.synth(own)
    (by_plugin,), (template, by_claim) = made["device-plugin"], made["dra-claims"]
    limited, claiming = pod_of(by_plugin), pod_of(by_claim)
    assert limited["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] == "1"
    assert {"affinity", "nodeSelector", "runtimeClassName"} <= limited.keys()
    assert not {"affinity", "nodeSelector", "runtimeClassName"} & claiming.keys()
    assert "resourceClaims" in claiming
    assert claiming["containers"][0]["resources"]["claims"]
    assert template["spec"]["spec"]["devices"]["requests"][0]["exactly"]["selectors"]
    assert CHANGES["runtime class"][1].startswith("none")
    assert CHANGES["node selector"][1] == "none"
    assert {"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"} in limited["initContainers"][0]["env"]
    assert "env" not in claiming["initContainers"][0]
    assert limited["tolerations"] == claiming["tolerations"]


def serves(backend: Backend, platform: Kubernetes | Talos) -> bool:
    try:
        backend.require(platform)
    except GpuConstructsError:
        return False
    return True


def test_backends_gates_and_quotas_are_those_that_are_said() -> None:
    for text, _, first in DRA.table("backend"):
        backend = eval(text.strip("`"), {"Backend": Backend})
        oldest = next(minor for minor in range(27, 38) if serves(backend, Kubernetes(f"1.{minor}")))
        assert f"Kubernetes 1.{oldest}" == ("Kubernetes 1.27" if first == "every release" else first)
    (talos,) = (row[1] for row in DRA.table("what") if row[0] == "Talos")
    assert talos.startswith("1.13,")
    assert [serves(Backend.dra_claims(), Talos(line)) for line in ("1.12", "1.13")] == [False, True]
    gates = [[cell.strip("`") for cell in row] for row in DRA.table("`sharing=` of the claim")]
    assert gates.pop(0) == ["none", "none"]
    assert {eval(text, {"ClaimSharing": ClaimSharing}).strategy: gate for text, gate in gates} == FEATURE_GATES
    keys = [cell.strip("`") for cell in CHANGES["quota"]]
    assert list(NamespaceQuota(gpus={"nvidia.com/gpu": 1}).to_manifest()) == [keys[0]]
    assert list(NamespaceQuota(device_classes={"gpu.nvidia.com": 1}).to_manifest()) == [keys[1]]


# --- namespaces -----------------------------------------------------------------------------------------------


def test_namespaces(tmp_path: Path) -> None:
    written = NAMESPACES.written(0, tmp_path)
    there = {(m["kind"].lower(), m["metadata"]["name"]) for m in written}
    assert sorted(there) == [
        ("limitrange", "container-limits"),
        ("namespace", "research"),
        ("priorityclass", "gpu-batch"),
        ("priorityclass", "gpu-notebook"),
        ("priorityclass", "gpu-serving"),
        ("resourcequota", "namespace-quota"),
    ]
    commands = [command.split() for command in NAMESPACES.column("command")]
    named = {(words[2], name) for words in commands for name in words[3:]} & there
    assert named == there
    assert all("research" in words for words in commands if words[2] != "priorityclass")
    assert "requests.memory" in of_kind("ResourceQuota", written)["spec"]["hard"]
    assert "memory" in of_kind("LimitRange", written)["spec"]["limits"][0]["defaultRequest"]
    for given, key in NAMESPACES.table("setting"):
        quota = eval(f"NamespaceQuota({given.strip('`')})", {"NamespaceQuota": NamespaceQuota})
        assert list(quota.to_manifest()) == [key.strip("`")]
    assert NAMESPACES.column("level") == list(get_args(PodSecurityLevel))
    classes = {m["metadata"]["name"]: m for m in written if m["kind"] == "PriorityClass"}
    assert NAMESPACES.column("PriorityClass") == [f"gpu-{tier}" for tier in DEFAULT_VALUES]
    for name, number, preempts, *_ in NAMESPACES.table("PriorityClass"):
        made = classes[name.strip("`")]
        assert number == str(made["value"])
        assert preempts.startswith("no" if made["preemptionPolicy"] == "Never" else "yes")
