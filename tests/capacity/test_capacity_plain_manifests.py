import pytest

from gpu_constructs import GpuConstructsError, GpuInventory, GpuNode, plan_capacity

POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}}


def test_empty_documents_are_left_out_and_any_iterable_will_do():
    made = plan_capacity((one for one in [POD, None]), GpuInventory(nodes=[GpuNode(name="n")]))
    assert made.all_fits == "yes"


def test_what_is_no_object_is_refused_in_a_line():
    for given, problem in [
        ("a.yaml", "manifests must be a list of objects as plain data; got 'a.yaml'; read the file first, by"),
        (POD, "manifests must be a list of objects; got one; put it in a list: manifests=[...]"),
        (7, "manifests must be a list of objects as plain data; got 7"),
        ([POD, {}], "manifests[1] must be an object of Kubernetes, a mapping with apiVersion and kind; got {}"),
        ([{"apiVersion": 1, "kind": "Pod"}], "manifests[0] must be an object of Kubernetes"),
        ([{"apiVersion": "v1"}], "manifests[0] must be an object of Kubernetes"),
        ([["x" * 1000]], "… (list); leave it out"),
    ]:
        with pytest.raises(GpuConstructsError) as refused:
            plan_capacity(given, GpuInventory(nodes=[GpuNode(name="n")]))
        assert problem in str(refused.value)
        assert len(str(refused.value)) < 250
