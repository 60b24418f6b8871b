import pytest
from hypothesis import given
from hypothesis import strategies as st

from app_tables import objects
from depth import at_depth
from gpu_constructs.capacity.consumer import Consumer
from gpu_constructs.capacity.demand.consumers import consumers
from gpu_constructs.capacity.demand.copies import kinds
from gpu_constructs.capacity.demand.present import uncounted
from gpu_constructs.facts.app import Facts
from gpu_constructs.kube import pod_specs
from tables import beside

EXAMPLES = beside(__file__, "demand")
USUAL = beside(__file__, "capacity_demand")["usual"]
PLACES = ("nodeSelector", "tolerations", "nodeName", "runtimeClassName")


def described(consumer: Consumer):
    """Return a consumer in the form of the table."""
    read = {
        "choices": [
            {**one.asks, **({"takes_all": sorted(one.takes_all)} if one.takes_all else {})} for one in consumer.choices
        ],
        "quotas": [f"{one.quota}: {one.takes} of {one.hard} {one.resource}" for one in consumer.quotas],
        "where": {key: value for key, value in consumer.pod_spec.items() if key in PLACES},
        "notes": list(consumer.notes),
    }
    values = {name: read[name] if name in read else getattr(consumer, name) for name in USUAL}
    return {
        "who": consumer.title,
        "asks": consumer.asks,
        **{name: value for name, value in values.items() if value != USUAL[name]},
    }


@pytest.mark.parametrize("sentence", EXAMPLES)
def test_objects_request_these_gpus(sentence):
    for example in EXAMPLES[sentence]:
        facts = Facts(objects(example["objects"], "ml"))
        assert [described(one) for one in consumers(facts)] == example.get("consumers", []), example["objects"]
        assert list(uncounted(facts)) == example.get("uncounted", []), example["objects"]


def test_the_plan_knows_every_kind_with_pods():
    assert {*pod_specs._PATHS, *pod_specs._OBJECTS, ("trainer.kubeflow.org", "TrainJob")} <= set(kinds())


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
    *kinds(),
    ("autoscaling", "HorizontalPodAutoscaler"),
    ("keda.sh", "ScaledObject"),
    ("resource.k8s.io", "ResourceClaim"),
    ("resource.k8s.io", "ResourceClaimTemplate"),
    ("resource.k8s.io", "DeviceClass"),
    ("serving.kserve.io", "ServingRuntime"),
    ("trainer.kubeflow.org", "TrainingRuntime"),
    ("", "ResourceQuota"),
]


@at_depth(300, quick=40)
@given(st.lists(st.tuples(st.sampled_from(KINDS), st.dictionaries(FIELDS, RUBBISH, max_size=5)), max_size=3))
def test_invalid_objects_never_break_the_count(given_objects):
    written = [
        {"apiVersion": f"{group}/v1" if group else "v1", "kind": kind, "metadata": {"name": "x"}, "spec": spec}
        for (group, kind), spec in given_objects
    ]
    for consumer in consumers(Facts(written)):
        assert consumer.asks
        assert min(consumer.copies, consumer.pods_each) >= 1
        assert 0 <= consumer.least_copies <= consumer.copies
        assert all(count >= 1 for count in consumer.asks.values())
