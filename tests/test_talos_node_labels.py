import pytest

from gpu_constructs import GpuConstructsError
from gpu_constructs.talos.node_labels import check_node_labels, may_label_itself


@pytest.mark.parametrize(
    "key",
    [
        "gpu",
        "nvidia.com/gpu.deploy.operator-validator",
        "feature.node.kubernetes.io/pci-10de.present",
        "node.kubernetes.io/instance-type",
        "kubelet.kubernetes.io/gpu",
        "topology.kubernetes.io/zone",
        "kubernetes.io/arch",
        "mykubernetes.io/gpu",
    ],
)
def test_a_worker_may_set_labels_of_others_and_of_the_kubelet(key):
    assert may_label_itself(key)
    check_node_labels("node_labels", {key: "x"}, is_worker=True)


@pytest.mark.parametrize(
    "key",
    [
        "node-role.kubernetes.io/gpu",
        "node-restriction.kubernetes.io/gpu",
        "kubernetes.io/role",
        "k8s.io/gpu",
        "scheduling.k8s.io/gpu",
        "topology.kubernetes.io/rack",
    ],
)
def test_a_worker_may_not_set_the_labels_of_kubernetes(key):
    assert not may_label_itself(key)
    with pytest.raises(GpuConstructsError) as refused:
        check_node_labels("node_labels", {key: ""}, is_worker=True)
    assert str(refused.value) == (
        f"node_labels must not hold labels that NodeRestriction keeps a worker from setting; got {key!r}, and none of "
        "the labels would be set; use kubectl label, or a key outside kubernetes.io and k8s.io"
    )
    check_node_labels("node_labels", {key: ""}, is_worker=False)


@pytest.mark.parametrize("labels", [{"a b": ""}, {"a": "b c"}])
def test_what_is_no_label_is_refused(labels):
    with pytest.raises(GpuConstructsError, match=r"^node_labels"):
        check_node_labels("node_labels", labels, is_worker=False)
