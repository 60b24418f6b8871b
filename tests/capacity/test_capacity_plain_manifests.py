import pytest

from gpu_constructs import GpuConstructsError, GpuInventory, GpuNode, plan_capacity

POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}}


def test_empty_documents_are_skipped_and_any_iterable_is_accepted():
    made = plan_capacity((one for one in [POD, None]), GpuInventory(nodes=[GpuNode(name="n")]))
    assert made.all_fits == "yes"


def test_a_value_that_is_not_an_object_is_rejected_in_one_line(rows):
    for given, problem in rows:
        with pytest.raises(GpuConstructsError) as refused:
            plan_capacity(given, GpuInventory(nodes=[GpuNode(name="n")]))
        assert problem in str(refused.value)
        assert len(str(refused.value)) < 250
