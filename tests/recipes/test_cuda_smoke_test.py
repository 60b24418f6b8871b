import subprocess

import pytest

from gpu_constructs import CudaSmokeTest, GpuProfile, GpuRequest, Sharing
from gpu_constructs.kube.pod_security import violations
from gpu_constructs.recipes.cuda_smoke_test import command
from refusals import check_refusals
from tables import cases


def spec_of(test):
    return test.api_object.to_json()["spec"]


def pod_of(test):
    return spec_of(test)["template"]["spec"]


def test_the_default_job(chart, objects, snapshot):
    test = CudaSmokeTest(chart, "test", slots=4)
    assert objects(chart) == snapshot
    assert violations(pod_of(test), "restricted") == []


def test_the_job_with_all_options(chart, objects, snapshot, keywords):
    test = CudaSmokeTest(chart, "test", **keywords)
    assert objects(chart) == snapshot
    assert violations(pod_of(test), "restricted") == []


@cases
def test_all_pods_start_at_once_and_the_deadline_covers_every_round(chart, given, pods, deadline):
    spec = spec_of(CudaSmokeTest(chart, "test", **given))
    assert (spec["completions"], spec["parallelism"], spec["completionMode"]) == (pods, pods, "Indexed")
    assert spec["activeDeadlineSeconds"] == deadline


def test_a_pod_holds_one_slot_of_the_advertised_resource(chart, expected):
    shared = GpuProfile(sharing=Sharing.time_slicing(replicas=4, rename_by_default=True))
    limits = [
        pod_of(CudaSmokeTest(chart, f"test-{n}", slots=1, name=f"test-{n}", **given))["containers"][0]["resources"][
            "limits"
        ]
        for n, given in enumerate([{}, {"profile": shared}, {"gpus": 2}, {"gpus": GpuRequest(mig_profile="1g.10gb")}])
    ]
    assert [{k: v for k, v in one.items() if k != "memory"} for one in limits] == expected


@pytest.mark.parametrize(("computes", "holds"), [(True, True), (False, False)])
def test_a_pod_holds_its_slot_only_after_a_successful_computation(tmp_path, computes, holds):
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


def test_impossible_tests_are_rejected(chart, rows):
    check_refusals(lambda **given: CudaSmokeTest(chart, "test", **given), rows, at="gpu/test: ")
