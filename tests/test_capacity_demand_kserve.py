import pytest

from capacity_manifests import found, gpu, manifest, one, pod, told

SERVICE = "serving.kserve.io/v1beta1 InferenceService"
RUNTIME = "serving.kserve.io/v1alpha1 ServingRuntime"
LLM = "serving.kserve.io/v1alpha2 LLMInferenceService"
STANDARD = {"serving.kserve.io/deploymentMode": "Standard"}
MODEL = {"modelFormat": {"name": "vllm"}, "runtime": "rt"}


def served(predictor, annotations=None, **more):
    return manifest(SERVICE, {"predictor": predictor, **more}, annotations=annotations)


def own(amount=1, **more):
    return {"model": {"modelFormat": {"name": "vllm"}, **gpu(amount)}, **more}


def numbers(consumer):
    return (consumer.copies, consumer.least_copies, consumer.surge, consumer.surge_is_needed)


@pytest.mark.parametrize(
    ("predictor", "annotations", "expected"),
    [
        (own(), {}, (1, 1, 1, True)),
        (own(minReplicas=0), {}, (1, 0, 1, True)),
        (own(minReplicas=2, maxReplicas=5), {}, (5, 2, 2, True)),
        (own(), STANDARD, (1, 1, 1, True)),
        (own(minReplicas=0), STANDARD, (1, 1, 1, True)),
        (own(minReplicas=4, maxReplicas=8), STANDARD, (8, 4, 2, False)),
        (own(deploymentStrategy={"type": "Recreate"}), STANDARD, (1, 1, 0, False)),
        (own(), {"serving.kserve.io/deploymentMode": "RawDeployment"}, (1, 1, 1, True)),
    ],
)
def test_an_inference_service_has_copies_between_bounds(predictor, annotations, expected):
    assert numbers(one(served(predictor, annotations))) == expected


def test_an_end_that_nobody_sets_is_told():
    assert "sets no maxReplicas" in told(one(served(own())))
    assert "maxReplicas" not in told(one(served(own(maxReplicas=2))))


def test_a_stopped_service_does_not_run():
    consumer = one(served(own(), {"serving.kserve.io/stop": "true"}))
    assert (consumer.least_copies, consumer.is_stopped) == (0, True)
    assert "stopped" in told(consumer)


def test_a_service_has_other_parts():
    consumers = found(served(own(), transformer=pod(gpu(2)), explainer=pod({"name": "x"})))
    assert {consumer.part: consumer.asks["nvidia.com/gpu"] for consumer in consumers} == {
        "predictor": 1,
        "transformer": 2,
    }


def test_a_service_takes_the_gpus_of_the_runtime_that_it_names():
    runtime = manifest(RUNTIME, pod(gpu(2, "kserve-container"), nodeSelector={"a": "b"}), name="rt")
    consumer = one(runtime, served({"model": MODEL, "nodeSelector": {"c": "d"}}))
    assert consumer.asks == {"nvidia.com/gpu": 2}
    assert consumer.pod_spec["nodeSelector"] == {"a": "b", "c": "d"}
    assert (consumer.subject, consumer.kind) == (1, "InferenceService")


def test_what_a_service_states_itself_wins_over_its_runtime():
    runtime = manifest(RUNTIME, pod(gpu(2, "kserve-container"), gpu(1, "side")), name="rt")
    assert one(runtime, served({"model": {**MODEL, **gpu(4)}})).asks == {"nvidia.com/gpu": 5}


def test_a_runtime_of_the_namespace_comes_before_one_of_the_cluster():
    shared = manifest("serving.kserve.io/v1alpha1 ClusterServingRuntime", pod(gpu(8, "kserve-container")), name="rt")
    assert one(shared, served({"model": MODEL})).asks == {"nvidia.com/gpu": 8}
    near = manifest(RUNTIME, pod(gpu(2, "kserve-container")), name="rt")
    assert one(shared, near, served({"model": MODEL})).asks == {"nvidia.com/gpu": 2}


def test_a_runtime_that_is_not_in_the_app_asks_for_nothing():
    assert found(served({"model": MODEL})) == []
    assert "its runtime rt is not in this app" in told(one(served({"model": {**MODEL, **gpu(1)}})))
    assert "names no runtime" in told(one(served(own())))


def for_formats(*formats, kind="ClusterServingRuntime", name="rt", count=4, **more):
    supported = [{"name": "vllm", "autoSelect": True, **one} for one in formats]
    spec = {**pod(gpu(count, "kserve-container")), "supportedModelFormats": supported, **more}
    return manifest(f"serving.kserve.io/v1alpha1 {kind}", spec, name=name)


UNNAMED = {"model": {"modelFormat": {"name": "vllm"}}}


def test_a_service_that_names_no_runtime_gets_the_one_of_its_format():
    consumer = one(for_formats({}), served(UNNAMED))
    assert (consumer.asks, consumer.kind) == ({"nvidia.com/gpu": 4}, "InferenceService")
    assert "runtime" not in told(consumer)
    assert one(for_formats({"name": "triton"}), served({"triton": {"image": "a"}})).asks == {"nvidia.com/gpu": 4}


@pytest.mark.parametrize(
    "runtime",
    [
        for_formats({"autoSelect": False}),
        for_formats({"name": "onnx"}),
        for_formats({}, disabled=True),
        for_formats({}, multiModel=True),
        for_formats({}, protocolVersions=["v2"]),
        for_formats({}, workerSpec=pod()),
        for_formats({}, kind="ServingRuntime") | {"metadata": {"name": "rt", "namespace": "other"}},
    ],
)
def test_a_runtime_that_does_not_take_a_service_gives_it_nothing(runtime):
    assert found(runtime, served(UNNAMED)) == []


def test_a_version_of_a_format_must_be_the_one_of_the_runtime():
    versioned = {"model": {"modelFormat": {"name": "vllm", "version": "2"}}}
    assert found(for_formats({"version": "1"}), served(versioned)) == []
    assert one(for_formats({"version": "2"}), served(versioned)).pods == 1


@pytest.mark.parametrize(
    ("runtimes", "gpus"),
    [
        ([for_formats({}, name="a", count=1), for_formats({}, name="b", count=2)], 1),
        ([for_formats({}, name="a", count=1), for_formats({"priority": 1}, name="b", count=2)], 2),
        ([for_formats({"priority": 9}, name="a", count=1), for_formats({}, kind="ServingRuntime", count=2)], 2),
        ([for_formats({"priority": 2}, name="b", count=1), for_formats({"priority": 1}, name="a", count=2)], 1),
    ],
)
def test_of_several_runtimes_the_first_in_the_order_of_kserve_counts_and_all_are_told(runtimes, gpus):
    consumer = one(*runtimes, served(UNNAMED))
    assert consumer.asks == {"nvidia.com/gpu": gpus}
    assert "KServe chooses its runtime among" in told(consumer)


def test_a_service_between_revisions_needs_all_of_the_new_one():
    assert one(served(own(minReplicas=3))).surge_together == 3
    assert one(served(own(minReplicas=3), STANDARD)).surge_together == 1


def test_a_canary_is_as_the_predictor_where_it_says_nothing():
    canary = [{"trafficPercent": 25, "predictor": {"name": "next"}}]
    stable, new = found(served(own(minReplicas=4, maxReplicas=6), STANDARD, canary=canary))
    assert (stable.part, stable.copies, stable.least_copies) == ("predictor", 6, 3)
    assert (new.part, new.copies, new.least_copies, new.asks) == ("canary next", 1, 1, {"nvidia.com/gpu": 1})


def multi(worker, head=0, annotations=None):
    spec = pod(gpu(head, "kserve-container"), annotations=annotations or {})
    runtime = manifest(RUNTIME, {**spec, "workerSpec": pod(gpu(worker, "worker-container"))}, name="rt")
    return runtime


@pytest.mark.parametrize(
    ("worker", "head", "stages", "each", "annotations", "expected"),
    [
        (1, 1, 2, 1, {}, {"predictor": (1, 1), "worker": (1, 1)}),
        (4, 4, 2, 4, {}, {"predictor": (1, 4), "worker": (1, 4)}),
        (2, 0, 3, 2, {}, {"predictor": (1, 2), "worker": (2, 2)}),
        (0, 1, 1, 3, {}, {"predictor": (1, 1), "worker": (2, 1)}),
        (0, 0, 2, 1, {}, {"predictor": (1, 1), "worker": (1, 1)}),
        (2, 8, 2, 4, {}, {"predictor": (1, 8)}),
        (0, 0, 0, -1, {}, {"predictor": (1, 1)}),
        (0, 0, 3, 4, {"multinode/executor-backend": "mp"}, {"predictor": (1, 4), "worker": (2, 4)}),
    ],
)
def test_a_predictor_on_several_nodes_is_a_gang(worker, head, stages, each, annotations, expected):
    predictor = {"model": MODEL, "workerSpec": {"pipelineParallelSize": stages, "tensorParallelSize": each}}
    consumers = found(multi(worker, head, annotations), served(predictor))
    assert {c.part: (c.pods_each, c.asks["nvidia.com/gpu"]) for c in consumers} == expected
    assert all((c.copies, c.is_gang, c.surge, c.surge_is_needed) == (1, True, c.pods_each, True) for c in consumers)


def test_a_language_model_of_one_node_is_as_a_deployment():
    consumer = one(manifest(LLM, {"replicas": 2, "template": pod()}))
    assert (*numbers(consumer), consumer.part) == (2, 2, 1, True, "")


def test_a_language_model_of_several_nodes_is_groups():
    spec = {"replicas": 2, "template": pod(), "worker": pod(), "parallelism": {"pipeline": 4}}
    consumers = found(manifest(LLM, spec))
    assert {c.part: (c.copies, c.pods_each, c.is_gang) for c in consumers} == {
        "leader": (2, 1, True),
        "worker": (2, 3, True),
    }


@pytest.mark.parametrize(
    ("parallelism", "pods"), [({"data": 8, "dataLocal": 2}, 4), ({"dataLocal": 8}, 1), ({"pipeline": 3}, 3), ({}, 1)]
)
def test_the_size_of_a_group_follows_its_parallelism(parallelism, pods):
    assert one(manifest(LLM, {"worker": pod(), "parallelism": parallelism})).pods == pods


def test_a_language_model_may_scale_and_fill_apart():
    spec = {"scaling": {"minReplicas": 1, "maxReplicas": 3}, "template": pod(), "baseRefs": [{"name": "b"}]}
    spec["prefill"] = {"replicas": 2, "template": pod(gpu(2))}
    consumers = found(manifest(LLM, spec))
    assert {c.part: (c.copies, c.least_copies) for c in consumers} == {"": (3, 1), "prefill": (2, 2)}
    assert "baseRefs" in told(consumers[0])
