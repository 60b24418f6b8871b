from cdk8s import Chart

import refusals
from gpu_constructs import NvidiaRuntimeClass


def refusal(chart, **given):
    return refusals.refusal(NvidiaRuntimeClass, chart, "runtime-class", **given).removeprefix("gpu/runtime-class: ")


def test_a_runtime_class_leads_to_the_handler_of_the_toolkit(chart, objects, snapshot):
    NvidiaRuntimeClass(chart, "runtime-class")
    assert objects(chart) == snapshot


def test_name_and_handler_can_be_chosen(app, objects, expected):
    chart = Chart(app, "gpu", namespace="team")
    assert NvidiaRuntimeClass(chart, "runtime-class", name="nvidia.cdi", handler="nvidia-cdi").name == "nvidia.cdi"
    (rendered,) = objects(chart)
    assert rendered == expected


def test_a_name_or_handler_kubernetes_refuses_is_refused(chart):
    assert refusal(chart, name="NVIDIA") == (
        "name must be a DNS subdomain (DNS labels joined by '.', at most 253 characters), got 'NVIDIA'"
    )
    assert refusal(chart, handler="nvidia.cdi") == (
        "handler must be a DNS label (a-z, 0-9 and '-', at most 63 characters, letter or digit at both ends), "
        "got 'nvidia.cdi'"
    )
