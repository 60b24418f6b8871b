import subprocess

import pytest
from cdk8s import Chart, Testing

import schemas
from gpu_constructs import (
    DevicePluginChart,
    GpuConstructsError,
    GpuNamespace,
    Kubernetes,
    Sharing,
    Talos,
    Toleration,
    synthesize,
)
from gpu_constructs.pod_security import violations
from gpu_constructs.recipes.cuda_smoke_test import CudaSmokeTest, command
from gpu_constructs.workload.backend import Backend
from gpu_constructs.workload.gpu_profile import GpuProfile
from gpu_constructs.workload.gpu_request import GpuRequest

FULL = {
    "slots": 4,
    "beyond": 2,
    "hold_seconds": 120,
    "disable_require": True,
    "gpus": GpuRequest(products=["NVIDIA GeForce RTX 3090"]),
    "profile": GpuProfile(platform=Talos("1.12"), sharing=Sharing.time_slicing(replicas=4, rename_by_default=True)),
    "tolerations": [Toleration(key="dedicated", value="ai", effect="NoSchedule")],
    "node_selector": {"kubernetes.io/hostname": "gpu-1"},
    "name": "slots-of-gpu-1",
    "namespace": "gpu-device-plugin",
    "env": {"CUDA_VISIBLE_DEVICES": "0"},
    "resources": {"requests": {"cpu": "50m"}, "limits": {"memory": "2Gi"}},
    "run_as_user": 65534,
    "active_deadline_seconds": 3600,
    "ttl_seconds_after_finished": 600,
    "priority_class_name": "gpu-batch",
    "image_pull_secrets": ["registry"],
    "labels": {"team": "platform"},
    "annotations": {"example.com/why": "acceptance"},
}


def spec_of(test):
    return test.api_object.to_json()["spec"]


def pod_of(test):
    return spec_of(test)["template"]["spec"]


def refusal(chart, **given):
    with pytest.raises(GpuConstructsError) as refused:
        CudaSmokeTest(chart, "test", **given)
    assert len(str(refused.value).splitlines()) == 1
    return refused.value.problem


def test_the_job_is_as_before(chart, objects, snapshot):
    CudaSmokeTest(chart, "test", slots=4)
    assert objects(chart) == snapshot


def test_the_job_with_everything_said_is_as_before(chart, objects, snapshot):
    CudaSmokeTest(chart, "test", **FULL)
    assert objects(chart) == snapshot


@pytest.mark.parametrize("given", [{"slots": 1}, FULL], ids=["default", "full"])
def test_every_kubernetes_release_takes_it_and_it_is_restricted(chart, objects, given):
    test = CudaSmokeTest(chart, "test", **given)
    assert [error for manifest in objects(chart) for error in schemas.schema_errors(manifest)] == []
    assert violations(pod_of(test), "restricted") == []


@pytest.mark.parametrize(("slots", "beyond"), [(4, 1), (8, 0), (1, 3)])
def test_all_pods_are_wanted_at_once_each_with_a_number(chart, slots, beyond):
    spec = spec_of(CudaSmokeTest(chart, "test", slots=slots, beyond=beyond))
    assert (spec["completions"], spec.get("parallelism", 1), spec["completionMode"]) == (
        slots + beyond,
        slots + beyond,
        "Indexed",
    )


def test_a_single_pod_is_a_job_too(chart):
    assert spec_of(CudaSmokeTest(chart, "test", slots=1, beyond=0))["completions"] == 1


def test_a_failed_pod_ends_the_test(chart):
    spec = spec_of(CudaSmokeTest(chart, "test", slots=4))
    assert spec["backoffLimit"] == 0
    assert "podFailurePolicy" not in spec


@pytest.mark.parametrize(
    ("given", "deadline"),
    [({"slots": 4}, 720), ({"slots": 4, "beyond": 0}, 660), ({"slots": 1, "beyond": 3, "hold_seconds": 10}, 640)],
    ids=str,
)
def test_the_deadline_leaves_time_to_start_and_for_every_turn(chart, given, deadline):
    assert spec_of(CudaSmokeTest(chart, "test", **given))["activeDeadlineSeconds"] == deadline


def test_an_old_driver_is_put_up_with_on_demand_only(chart):
    env = [pod_of(CudaSmokeTest(chart, i, slots=1, name=i, disable_require=i == "old"))["containers"][0].get("env", [])
           for i in ("new", "old")]  # fmt: skip
    assert env == [[], [{"name": "NVIDIA_DISABLE_REQUIRE", "value": "true"}]]


def test_a_pod_holds_one_slot_of_what_is_advertised(chart):
    shared = GpuProfile(sharing=Sharing.time_slicing(replicas=4, rename_by_default=True))
    limits = [
        pod_of(CudaSmokeTest(chart, f"test-{n}", slots=1, name=f"test-{n}", **given))["containers"][0]["resources"][
            "limits"
        ]
        for n, given in enumerate([{}, {"profile": shared}, {"gpus": 2}, {"gpus": GpuRequest(mig_profile="1g.10gb")}])
    ]
    assert [{k: v for k, v in one.items() if k != "memory"} for one in limits] == [
        {"nvidia.com/gpu": "1"},
        {"nvidia.com/gpu.shared": "1"},
        {"nvidia.com/gpu": "2"},
        {"nvidia.com/mig-1g.10gb": "1"},
    ]


def test_under_dra_each_pod_claims_a_gpu_of_its_own(chart):
    profile = GpuProfile(platform=Kubernetes(), backend=Backend.dra_claims())
    CudaSmokeTest(chart, "test", slots=2, profile=profile)
    template, job = Testing.synth(chart)
    assert template["kind"] == "ResourceClaimTemplate"
    assert job["spec"]["template"]["spec"]["resourceClaims"] == [
        {"name": "gpu", "resourceClaimTemplateName": template["metadata"]["name"]}
    ]
    assert [e for m in (template, job) for e in schemas.schema_errors(m, ["1.34", "1.37"])] == []


@pytest.mark.parametrize(("computes", "holds"), [(True, True), (False, False)])
def test_a_slot_is_held_after_the_computing_and_not_where_it_failed(tmp_path, computes, holds):
    for name, code in {"nvidia-smi": 127, "sleep": 0}.items():
        (tmp_path / name).write_text(f"#!/bin/sh\necho {name} $*\nexit {code}\n")
        (tmp_path / name).chmod(0o755)
    binary = tmp_path / "vectorAdd"
    binary.write_text(f"#!/bin/sh\necho Test PASSED\nexit {0 if computes else 1}\n")
    binary.chmod(0o755)
    line = command(60).replace("/cuda-samples/vectorAdd", str(binary))
    ran = subprocess.run(["sh", "-c", line], env={"PATH": f"{tmp_path}:/bin:/usr/bin"}, capture_output=True, text=True)
    assert (ran.returncode == 0) == holds
    assert ran.stdout.splitlines() == ["nvidia-smi -L", "Test PASSED", *(["sleep 60"] if holds else [])]


@pytest.mark.parametrize("sharing", [Sharing.none(), Sharing.time_slicing(replicas=4)], ids=["exclusive", "shared"])
def test_synth_finds_nothing_wrong_with_it(app, sharing):
    platform = Talos("1.12")
    DevicePluginChart(app, "plugin", platform=platform, sharing=sharing)
    chart = Chart(app, "gpu-test", namespace="gpu-test")
    GpuNamespace(chart, "namespace", name="gpu-test", pod_security="restricted")
    CudaSmokeTest(chart, "test", slots=4, profile=GpuProfile(platform=platform, sharing=sharing))
    synthesize(app)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "slots is required"),
        ({"slots": 0}, "slots must be at least 1, got 0"),
        ({"slots": 2.0}, "slots must be an int, got 2.0 (float)"),
        ({"slots": 2, "beyond": -1}, "beyond must be at least 0, got -1"),
        ({"slots": 2, "hold_seconds": 0}, "hold_seconds must be at least 1, got 0"),
        (
            {"slots": 2, "active_deadline_seconds": 120},
            "active_deadline_seconds must be more than 120, which 3 pods on 2 slots hold them for; got 120; leave it "
            "out, or give less hold_seconds",
        ),
        (
            {"slots": 2, "gpus": GpuRequest(resource_claim="shared")},
            "gpus must not name a resource_claim: pods share it without limit, so there are no slots to count; leave "
            "it out, and each pod claims a GPU of its own",
        ),
        ({"slots": 2, "gpus": 0}, "gpus must be at least 1, got 0; a pod without a GPU asks for none"),
        ({"slots": 2, "image": "cuda:latest"}, None),
        ({"slots": 2, "env": {"NVIDIA_VISIBLE_DEVICES": "all"}}, None),
        ({"slots": 2, "replicas": 2}, "replicas is no keyword of CudaSmokeTest"),
    ],
    ids=str,
)
def test_what_makes_no_test_is_refused_in_one_line(chart, given, message):
    problem = refusal(chart, **given)
    assert message is None or problem == message
