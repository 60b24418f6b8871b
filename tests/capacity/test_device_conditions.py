"""Which devices meet a request, by the CEL evaluator of Google, on devices that the driver of NVIDIA publishes.

``quantity``, ``semver`` and ``compareTo`` are the API server's; here they are of ours, on whole bytes and on lists of
three numbers. That these three read and order as those of Kubernetes do is not shown, nor what a node publishes.
"""

from functools import cache
from typing import Any

import pytest
from cel_expr_python import cel as _cel
from cel_expr_python.ext import ext_strings as _strings

from gpu_constructs.kube.fields import amount
from gpu_constructs.workload.gpu_allocation import cel_selector, device_condition
from gpu_constructs.workload.gpu_request import GpuRequest


def device(name: str, mib: int | None, capability: str, architecture: str, **more: Any) -> dict[str, Any]:
    attributes = {
        "type": "gpu",
        "productName": name,
        "architecture": architecture,
        "cudaComputeCapability": [*map(int, capability.split(".")), 0],
        **more,
    }
    capacity = {} if mib is None else {"memory": mib * 2**20}
    return {
        "driver": "gpu.nvidia.com",
        "attributes": {"gpu.nvidia.com": attributes},
        "capacity": {"gpu.nvidia.com": capacity},
    }


DEVICES = {
    "3090": device("NVIDIA GeForce RTX 3090", 24576, "8.6", "Ampere"),
    "4090": device("NVIDIA GeForce RTX 4090", 24564, "8.9", "Ada Lovelace"),
    "5070 Ti": device("NVIDIA GeForce RTX 5070 Ti", 16303, "12.0", "Blackwell"),
    "L4": device("NVIDIA L4", 23034, "8.9", "Ada Lovelace"),
    "unified": device("NVIDIA GB10", None, "12.1", "Blackwell"),
    "1g.10gb": device("NVIDIA H100 80GB HBM3", 9984, "9.0", "Hopper", type="mig", profile="1g.10gb"),
    "1g.10gb+me": device("NVIDIA H100 80GB HBM3", 9984, "9.0", "Hopper", type="mig", profile="1g.10gb+me"),
}
GPUS = [name for name, each in DEVICES.items() if each["attributes"]["gpu.nvidia.com"]["type"] == "gpu"]
OTHER_DRIVER = {"driver": "nic.example.com", "attributes": {"nic.example.com": {"speed": 100}}, "capacity": {}}


@cache
def environment() -> Any:
    def compare(left: Any, right: Any) -> int:
        return (left > right) - (left < right)

    kind = _cel.Type
    functions = [
        _cel.FunctionDecl(
            "quantity", [_cel.Overload("quantity", kind.INT, [kind.STRING], False, lambda q: int(amount(q)))]
        ),
        _cel.FunctionDecl(
            "semver",
            [_cel.Overload("semver", kind.LIST, [kind.STRING], False, lambda v: [int(part) for part in v.split(".")])],
        ),
        _cel.FunctionDecl(
            "compareTo",
            [
                _cel.Overload("quantities", kind.INT, [kind.INT, kind.INT], True, compare),
                _cel.Overload("versions", kind.INT, [kind.LIST, kind.LIST], True, compare),
            ],
        ),
    ]
    return _cel.NewEnv(variables={"device": kind.DYN}, extensions=[_strings.ExtStrings()], functions=functions)


def holds(condition: str, given: dict[str, Any]) -> bool:
    found = environment().compile(condition).eval(data={"device": given})
    assert "BOOL" in str(found.type()), found.value()
    return found.value()


def meeting(request: GpuRequest, among: list[str] = GPUS) -> list[str]:
    condition = cel_selector(request)
    assert condition is not None
    return [name for name in among if holds(condition, DEVICES[name])]


@pytest.mark.parametrize(
    ("requests", "names"),
    [
        ({"products": ["NVIDIA GeForce RTX 5070 Ti"]}, ["5070 Ti"]),
        ({"products": ["NVIDIA-GeForce-RTX-5070-Ti-SHARED"]}, ["5070 Ti"]),
        ({"products": ["L4", "NVIDIA GeForce RTX 3090"]}, ["3090", "L4"]),
        ({"min_vram": "16Gi"}, ["3090", "4090", "L4"]),
        ({"min_vram": "16303Mi"}, ["3090", "4090", "5070 Ti", "L4"]),
        ({"min_vram": "24G"}, ["3090", "4090", "L4"]),
        ({"min_compute_capability": "8.6"}, GPUS),
        ({"min_compute_capability": "8.9"}, ["4090", "5070 Ti", "L4", "unified"]),
        ({"min_compute_capability": "12.0"}, ["5070 Ti", "unified"]),
        ({"family": "ada-lovelace"}, ["4090", "L4"]),
        ({"family": ["ampere", "blackwell"]}, ["3090", "5070 Ti", "unified"]),
        ({"family": "ada-lovelace", "min_vram": "24000Mi"}, ["4090"]),
        ({"products": ["NVIDIA B200"]}, []),
    ],
    ids=str,
)
def test_these_gpus_meet_a_request(requests, names):
    assert meeting(GpuRequest(**requests)) == names


@pytest.mark.parametrize("requests", [{"mig_profile": "1g.10gb"}, {"mig_profile": "1g.10gb.me"}], ids=str)
def test_only_devices_of_a_mig_profile_meet_it(requests):
    mig = [name for name in DEVICES if name not in GPUS]
    assert meeting(GpuRequest(**requests), mig) == [requests["mig_profile"].replace("gb.", "gb+")]


def test_unpublished_memory_is_zero_and_not_an_error():
    assert not holds(cel_selector(GpuRequest(min_vram="1Gi")), DEVICES["unified"])


@pytest.mark.parametrize(
    ("request_", "names"),
    [
        (GpuRequest(), GPUS),
        (GpuRequest(min_vram="20Gi"), ["3090", "4090", "L4"]),
        (GpuRequest(mig_profile="1g.10gb"), ["1g.10gb"]),
    ],
    ids=["any", "memory", "mig"],
)
def test_a_class_holds_devices_of_its_type_and_of_no_other_driver(request_, names):
    condition = device_condition(request_)
    assert [name for name, given in DEVICES.items() if holds(condition, given)] == names
    assert not holds(condition, OTHER_DRIVER)
