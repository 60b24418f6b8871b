"""Misspelled names of GPU resources, and sizes without a unit, in objects of any kind."""

import pytest

from gpu_constructs import (
    ContainerLimits,
    DebugDump,
    DevicePluginChart,
    External,
    GpuAccess,
    GpuRequest,
    GpuWorkload,
    Kubernetes,
    NamespaceQuota,
    Ollama,
    SynthesisError,
    Volume,
    VolumeClaim,
    synthesize,
)
from gpu_constructs.catalog.sharing import Sharing
from gpu_constructs.tree.manifest import Manifest
from refusals import problem, problems
from tables import cases


def obj(api_version, kind, spec, **more):
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": "x"}, "spec": spec, **more}


def pod(limits=None, section="limits", **spec):
    container = {"name": "main", "image": "a:1", "resources": {section: limits or {}}}
    return obj("v1", "Pod", {"containers": [container], **spec})


def test_another_plugin_can_be_declared(app, chart):
    DevicePluginChart(app, "plugin", platform=Kubernetes())
    Manifest(chart, "pod", pod({"nvidia.com/gpus": 1, "memory": "1Gi"}))
    assert [problem.partition(" is not")[0] for problem in problems(synthesize, app)] == [
        "gpu/pod: limits['nvidia.com/gpus'] of container 'main'"
    ]
    External(app, "elsewhere", gpu_resources=["nvidia.com/gpus"])
    synthesize(app)


@cases
def test_a_size_in_an_unknown_kind_is_only_a_warning(app, chart, api_version, refused):
    kind = "InferenceService" if "kserve" in api_version else "Pod"
    Manifest(chart, "one", obj(api_version, kind, {"resources": {"requests": {"memory": 4}}}))
    if refused:
        with pytest.raises(SynthesisError, match="must have a unit"):
            synthesize(app)
    else:
        with pytest.warns(match="must have a unit"):
            synthesize(app)


def given_to_a_workload(**given):
    return lambda chart: GpuWorkload(chart, "app", image="a:1", platform=Kubernetes(), **given)


@pytest.mark.parametrize(
    ("make", "field"),
    [
        (lambda _: VolumeClaim(storage="100"), "volume_claim.storage"),
        (lambda _: Volume.empty_dir(size_limit="100"), "size_limit"),
        (lambda _: GpuRequest(vram="100"), "request.vram"),
        (lambda _: GpuAccess(shared_memory="100"), "shared_memory"),
        (lambda _: Sharing.vram_units(vram="100"), "sharing.vram_units.vram"),
        (lambda _: DebugDump(size_limit="100"), "debug_dump.size_limit"),
        (lambda _: NamespaceQuota(hard={"requests.memory": "100"}), "resource_quota.hard['requests.memory']"),
        (lambda _: ContainerLimits(max={"memory": "100"}), "limit_range.max['memory']"),
        (lambda chart: Ollama(chart, "app", platform=Kubernetes(), storage="100"), "volume_claim.storage"),
        (lambda chart: Ollama(chart, "app", platform=Kubernetes(), gpu_overhead="100"), "gpu_overhead"),
        (given_to_a_workload(shared_memory="100"), "shared_memory"),
        (given_to_a_workload(resources={"limits": {"memory": "100"}}), "resources['limits']['memory']"),
        (
            given_to_a_workload(resources={"requests": {"ephemeral-storage": "100"}}),
            "resources['requests']['ephemeral-storage']",
        ),
    ],
    ids=lambda given: given if isinstance(given, str) else "",
)
def test_a_size_without_a_unit_is_rejected_at_its_keyword(chart, make, field):
    assert problem(make, chart) == (
        f"{field} must have a unit, got '100', which is 100 bytes. Write '100Gi' or '100Mi'"
    )
