import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capacity_manifests import found, gpu, manifest, one, pod, template, told
from gpu_constructs.capacity.demand import consumers
from gpu_constructs.capacity.demand.between import rules_between
from gpu_constructs.capacity.demand.copies import _MAKERS
from gpu_constructs.rules.facts import Facts
from operations import grows_with

DEPLOYMENT = "apps/v1 Deployment"
VRAM, TYPICAL = "gpu-constructs/vram", "gpu-constructs/vram-typical"
T = {"template": template()}


def test_pods_without_gpus_are_nobody():
    assert found(manifest(DEPLOYMENT, {"template": template({"name": "x"})}), manifest("v1 ConfigMap", {})) == []


def test_consumers_stand_in_the_order_of_the_objects():
    objects = [manifest(DEPLOYMENT, T, name=name) for name in "cab"]
    bundle = {"apiVersion": "v1", "kind": "List", "metadata": {}, "items": objects[1:]}
    assert [(c.subject, c.name) for c in found(objects[0], bundle)] == [(0, "c"), (1, "a"), (2, "b")]


def test_a_consumer_brings_what_decides_where_it_goes():
    spec = template(labels={"app": "x"}, nodeSelector={"a": "b"}, tolerations=[{"operator": "Exists"}])
    consumer = one(manifest(DEPLOYMENT, {"template": spec}))
    assert consumer.labels == {"app": "x"}
    assert consumer.pod_spec["nodeSelector"] == {"a": "b"}
    assert consumer.pod_spec["tolerations"] == [{"operator": "Exists"}]


def test_no_namespace_is_the_default_one():
    assert one({**manifest(DEPLOYMENT, T), "metadata": {"name": "x"}}).namespace == "default"


def test_slots_and_parts_of_gpus_are_gpus():
    spec = template(gpu(1), gpu(2, resource="nvidia.com/mig-1g.5gb"), gpu(3, resource="nvidia.com/gpu.shared"))
    assert one(manifest(DEPLOYMENT, {"template": spec})).asks == {
        "nvidia.com/gpu": 1,
        "nvidia.com/mig-1g.5gb": 2,
        "nvidia.com/gpu.shared": 3,
    }


@pytest.mark.parametrize(
    ("said", "expected"), [("4Gi", 4096), ("4096Mi", 4096), ("1G", 954), (str(2**20 + 1), 2), (2**30, 1024)]
)
def test_memory_is_told_by_an_annotation(said, expected):
    consumer = one(manifest(DEPLOYMENT, T, annotations={VRAM: said, TYPICAL: "1Gi"}))
    assert (consumer.vram_mib, consumer.typical_vram_mib) == (expected, 1024)


@pytest.mark.parametrize("rubbish", ["much", "", "-4Gi", "0", "12", [], True])
def test_memory_that_cannot_be_read_is_unknown_and_told(rubbish):
    consumer = one(manifest(DEPLOYMENT, T, annotations={VRAM: rubbish}))
    assert consumer.vram_mib is None
    assert VRAM in told(consumer)


def test_memory_may_be_told_by_the_pods():
    pods = {"template": template(annotations={VRAM: "2Gi"})}
    assert one(manifest(DEPLOYMENT, pods)).vram_mib == 2048
    assert one(manifest(DEPLOYMENT, pods, annotations={VRAM: "1Gi"})).vram_mib == 1024


@pytest.mark.parametrize("where", ["experiment", "trial", "pods"])
def test_memory_of_a_trial_may_stand_anywhere(where):
    said = {place: {VRAM: "3Gi"} if place == where else {} for place in ("experiment", "trial", "pods")}
    held = manifest("batch/v1 Job", {"template": template(annotations=said["pods"])}, annotations=said["trial"])
    spec = {"trialTemplate": {"trialSpec": held}}
    consumer = one(manifest("kubeflow.org/v1beta1 Experiment", spec, annotations=said["experiment"]))
    assert consumer.vram_mib == 3072


def test_pods_that_keep_apart_are_one_to_a_node():
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "x"}}}
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    consumer = one(manifest(DEPLOYMENT, {"template": template(labels={"app": "x"}, affinity=affinity)}))
    assert (consumer.most_per_node, consumer.notes) == (1, ())


def held_apart(labels, *terms, **more):
    required = [{"topologyKey": "kubernetes.io/hostname", **term} for term in terms]
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    return {"template": template(labels=labels, affinity=affinity), **more}


OWN = {"labelSelector": {"matchLabels": {"app": "x"}}}
OF_A_REVISION = {**OWN, "matchLabelKeys": ["pod-template-hash"]}


def test_pods_that_keep_off_their_own_kind_may_keep_off_others_too():
    first, second = (
        manifest(DEPLOYMENT, held_apart({"app": "x"}, OWN)),
        manifest(DEPLOYMENT, {"template": template(labels={"app": "x"})}, name="y"),
    )
    elsewhere = {**second, "metadata": {"name": "y", "namespace": "other"}}
    everywhere = manifest(DEPLOYMENT, held_apart({"app": "x"}, {**OWN, "namespaceSelector": {}}))
    one_revision = manifest(DEPLOYMENT, held_apart({"app": "x"}, OF_A_REVISION))
    for pods, expected in (
        ([first, second], [{1}]),
        ([first, elsewhere], []),
        ([everywhere, elsewhere], [{1}]),
        ([one_revision, second], []),
    ):
        assert [rule.others for rule in rules_between(found(*pods), []).aways] == expected


def test_pods_that_keep_off_their_own_revision_only_may_go_beside_the_old_ones():
    rolled = one(manifest(DEPLOYMENT, held_apart({"app": "x"}, OF_A_REVISION)))
    assert (rolled.most_per_node, rolled.surge, rolled.surge_is_needed) == (1, 1, False)
    assert "only pods of one revision keep apart" in told(rolled)
    both = one(manifest(DEPLOYMENT, held_apart({"app": "x"}, OF_A_REVISION, OWN)))
    assert (both.surge_is_needed, "revision" in told(both)) == (True, False)
    replaced = one(manifest(DEPLOYMENT, held_apart({"app": "x"}, OF_A_REVISION, strategy={"type": "Recreate"})))
    assert "revision" not in told(replaced)


def test_an_amount_that_is_none_is_the_first_thing_told():
    spec = {"jobTemplate": {"spec": {"template": template(schedulerName="x")}}}
    consumer = one(manifest("batch/v1 CronJob", spec, annotations={VRAM: "12GB"}))
    assert consumer.notes[0] == f"annotation {VRAM} is no amount of memory: '12GB'"
    assert len(consumer.notes) == 3


@pytest.mark.parametrize(
    ("boxes", "asks", "most"),
    [
        ([gpu(2)], 2, {}),
        ([gpu(2), gpu(3, "b")], 5, {"nvidia.com/gpu": 3}),
        ([gpu(2), {"name": "plain"}], 2, {}),
    ],
)
def test_the_most_that_one_container_asks_for_is_told_where_it_is_not_all(boxes, asks, most):
    consumer = one(manifest(DEPLOYMENT, {"template": template(*boxes)}))
    assert (consumer.asks, consumer.most_asked) == ({"nvidia.com/gpu": asks}, most)


def test_what_waits_in_a_queue_is_not_stopped_though_it_is_suspended():
    job = manifest("batch/v1 Job", {**T, "suspend": True})
    assert one(job).is_stopped
    queued = {**job, "metadata": {**job["metadata"], "labels": {"kueue.x-k8s.io/queue-name": "q"}}}
    assert not one(queued).is_stopped
    assert "suspended" not in told(one(queued))


def test_a_queue_is_told():
    labels = {"kueue.x-k8s.io/queue-name": "q"}
    assert "queue q of Kueue" in told(one(manifest("batch/v1 Job", T, labels=labels)))
    assert "queue q of Kueue" in told(one(manifest("v1 Pod", pod()) | {"metadata": {"name": "x", "labels": labels}}))


def test_notes_are_sentences_without_a_full_stop():
    spec = template(schedulerName="x")
    consumer = one(manifest("batch/v1 CronJob", {"suspend": True, "jobTemplate": {"spec": {"template": spec}}}))
    assert len(consumer.notes) == 2
    assert not any(note.endswith(".") for note in consumer.notes)


def test_manifests_stay_as_they_are():
    written = manifest("kubeflow.org/v1beta1 Experiment", {"trialTemplate": {"trialSpec": manifest(DEPLOYMENT, T)}})
    before = repr(written)
    found(written)
    assert repr(written) == before


RUBBISH = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 10**12) | st.sampled_from(["", "x", "25%", "${trialParameters.g}"]),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.sampled_from(["spec", "template", "replicas", "containers", "name"]), inner, max_size=3)
    ),
    max_leaves=8,
)
FIELDS = st.sampled_from(
    """template replicas strategy rollingUpdate tasks jobTemplate trialTemplate trialSpec parameters runSpec predictor
    workerSpec canary model replicatedJobs runPolicy pytorchReplicaSpecs elasticPolicy leaderWorkerTemplate size
    headGroupSpec workerGroupSpecs rayClusterSpec rayClusterConfig scaling parallelism worker prefill router runtimeRef
    trainer runtimePatches workloadRef scaleTargetRef maxReplicas minReplicas maxReplicaCount devices requests hard
    selectors mlPolicy resourceClaims""".split()
)
KINDS = [
    *_MAKERS,
    ("autoscaling", "HorizontalPodAutoscaler"),
    ("keda.sh", "ScaledObject"),
    ("resource.k8s.io", "ResourceClaim"),
    ("resource.k8s.io", "ResourceClaimTemplate"),
    ("resource.k8s.io", "DeviceClass"),
    ("serving.kserve.io", "ServingRuntime"),
    ("trainer.kubeflow.org", "TrainingRuntime"),
    ("", "ResourceQuota"),
]


@settings(max_examples=300)
@given(st.lists(st.tuples(st.sampled_from(KINDS), st.dictionaries(FIELDS, RUBBISH, max_size=5)), max_size=3))
def test_no_rubbish_breaks_the_count(given_objects):
    written = [
        {"apiVersion": f"{group}/v1" if group else "v1", "kind": kind, "metadata": {"name": "x"}, "spec": spec}
        for (group, kind), spec in given_objects
    ]
    for consumer in consumers(Facts(written)):
        assert consumer.asks
        assert min(consumer.copies, consumer.pods_each) >= 1
        assert 0 <= consumer.least_copies <= consumer.copies
        assert all(count >= 1 for count in consumer.asks.values())


def test_twice_the_objects_take_twice_the_work_to_count():
    def counting(count):
        facts = Facts([manifest(DEPLOYMENT, {"replicas": 2, **T}, name=f"d{index}") for index in range(count)])
        assert facts.pods
        return lambda: consumers(facts)

    assert len(counting(100)()) == 100
    assert grows_with(counting, 100) < 2.2
