import pytest

from gpu_constructs import GpuConstructsError
from gpu_constructs.kube.container import named_ports, service

METADATA = {"name": "llm", "namespace": "ai", "labels": {}}


def test_ports_without_names_are_named_after_their_number():
    assert named_ports([80, 9090]) == {"tcp-80": 80, "tcp-9090": 9090}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([80, 80], "ports must not repeat a number; got [80, 80]"),
        ({"a": 80, "b": 80}, "ports must not repeat a number; got {'a': 80, 'b': 80}"),
        ([0], "ports['tcp-0'] must be at least 1, got 0"),
        ([65536], "ports['tcp-65536'] must be at most 65535, got 65536"),
    ],
)
def test_ports_that_kubernetes_would_refuse_are_refused(given, message):
    with pytest.raises(GpuConstructsError) as refusal:
        named_ports(given)
    assert str(refusal.value) == message


def test_a_headless_service_needs_no_ports():
    spec = service(METADATA, selector={"app": "x"}, ports={}, headless=True)["spec"]
    assert (spec["clusterIP"], spec["ports"]) == ("None", None)
