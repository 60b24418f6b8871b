from gpu_constructs.kube.container import named_ports, service
from refusals import refusal
from tables import cases

METADATA = {"name": "llm", "namespace": "ai", "labels": {}}


def test_ports_without_names_get_names_from_their_numbers():
    assert named_ports([80, 9090]) == {"tcp-80": 80, "tcp-9090": 9090}


@cases
def test_ports_that_kubernetes_rejects_are_rejected(given, message):
    assert refusal(named_ports, given) == message


def test_a_headless_service_needs_no_ports():
    spec = service(METADATA, selector={"app": "x"}, ports={}, headless=True)["spec"]
    assert (spec["clusterIP"], spec["ports"]) == ("None", None)
