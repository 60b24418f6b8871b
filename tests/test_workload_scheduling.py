import pytest

from gpu_constructs import GpuConstructsError
from gpu_constructs.workload.scheduling import Scheduling

SELECTOR = {"app": "x"}
SPREAD = {
    "labelSelector": {"matchLabels": {"app": "y"}},
    "maxSkew": 1,
    "topologyKey": "topology.kubernetes.io/zone",
    "whenUnsatisfiable": "DoNotSchedule",
}
AFFINITY = {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []}}


def written(replicas=1, **given):
    manifest = Scheduling(**given).to_manifest(replicas=replicas, selector=SELECTOR)
    return {key: value for key, value in manifest.items() if value is not None}


@pytest.mark.parametrize("replicas", [0, 1])
def test_a_single_pod_needs_no_company(replicas):
    assert written(replicas) == {}


def test_two_pods_or_more_are_spread_over_nodes_as_far_as_gpus_allow():
    assert written(2) == {
        "topologySpreadConstraints": [
            {
                "labelSelector": {"matchLabels": SELECTOR},
                "maxSkew": 1,
                "topologyKey": "kubernetes.io/hostname",
                "whenUnsatisfiable": "ScheduleAnyway",
            }
        ]
    }


def test_constraints_of_the_user_take_the_place_of_ours():
    assert written(2, topology_spread_constraints=[SPREAD]) == {"topologySpreadConstraints": [SPREAD]}
    assert written(2, topology_spread_constraints=[]) == {}


def test_affinity_scheduler_and_gates_are_written_as_given():
    assert written(affinity=AFFINITY, scheduler_name="volcano", scheduling_gates=["kueue.x-k8s.io/admission"]) == {
        "affinity": AFFINITY,
        "schedulerName": "volcano",
        "schedulingGates": [{"name": "kueue.x-k8s.io/admission"}],
    }


def spread(**changed):
    return {"topology_spread_constraints": [{**SPREAD, **changed}]}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"affinity": {"nodeAfinity": {}}}, "affinity key must be one of "),
        ({"scheduler_name": "My Scheduler"}, "scheduling.scheduler_name must be a DNS subdomain"),
        ({"scheduling_gates": ["a b"]}, "scheduling.scheduling_gates has a key that is no label key; got 'a b'"),
        ({"scheduling_gates": "gate"}, "scheduling.scheduling_gates must be a list, got 'gate' (str)"),
        (spread(maxSkwe=1), "scheduling.topology_spread_constraints[0] key must be one of "),
        (spread(maxSkew=0), "scheduling.topology_spread_constraints[0]['maxSkew'] must be at least 1, got 0"),
        (spread(topologyKey=None), "scheduling.topology_spread_constraints[0]['topologyKey'] must be str"),
        (spread(topologyKey="a b"), "scheduling.topology_spread_constraints[0]['topologyKey'] has a key that is no "),
        (spread(whenUnsatisfiable="Ignore"), "scheduling.topology_spread_constraints[0]['whenUnsatisfiable'] must be "),
        ({"topology_spread_constraints": [{}]}, "scheduling.topology_spread_constraints[0]['maxSkew'] must be an int"),
    ],
    ids=str,
)
def test_what_kubernetes_would_not_take_is_refused_in_one_line(given, message):
    with pytest.raises(GpuConstructsError) as refused:
        Scheduling(**given)
    assert str(refused.value).startswith(message)
    assert len(str(refused.value).splitlines()) == 1
