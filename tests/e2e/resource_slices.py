"""What NVIDIA's driver for Dynamic Resource Allocation brings to a cluster: its classes, and the devices of a node.

Sources, all of kubernetes-sigs/dra-driver-nvidia-gpu@95932046:
    deployments/helm/dra-driver-nvidia-gpu/templates/deviceclass-gpu.yaml, deviceclass-mig.yaml: the classes.
    cmd/gpu-kubelet-plugin/deviceinfo.go, mig.go, partitions.go: names, attributes and capacity of devices.
    cmd/gpu-kubelet-plugin/driver.go: one pool for each node, which bears its name.
    cmd/gpu-kubelet-plugin/nvlib.go: a board that is divided is not published whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any
from uuid import NAMESPACE_DNS, uuid5

from cluster import Cluster, Found
from gpu_constructs import GpuNode
from gpu_constructs.catalog.mig_profiles import mig_vram_mib

DRIVER = "gpu.nvidia.com"
GPU_CLASS, MIG_CLASS = "gpu.nvidia.com", "mig.nvidia.com"
_DRA = "resource.k8s.io/v1"
_MIB = 1024 * 1024
# CUDA compute capability and brand as NVML tells them.
_BOARDS = {
    "NVIDIA GeForce RTX 5070 Ti": ("12.0.0", "GeForce"),
    "NVIDIA L40S": ("8.9.0", "Nvidia"),
    "NVIDIA H100 NVL": ("9.0.0", "Nvidia"),
}
# NVML's number of the GPU instance profile, and how many of the eight memory slices a device takes.
_PROFILES = {"1g.12gb": (19, 1), "1g.12gb+me": (20, 1)}


def device_classes(*, has_extended_resource: bool = True) -> list[Found]:
    """Return the classes that the driver's chart makes."""
    more = {"extendedResourceName": "nvidia.com/gpu"} if has_extended_resource else {}
    return [_device_class(GPU_CLASS, "gpu", **more), _device_class(MIG_CLASS, "mig")]


def _device_class(name: str, kind: str, **more: str) -> Found:
    expression = f"device.driver == '{DRIVER}' && device.attributes['{DRIVER}'].type == '{kind}'"
    spec = {"selectors": [{"cel": {"expression": expression}}], **more}
    return {"apiVersion": _DRA, "kind": "DeviceClass", "metadata": {"name": name}, "spec": spec}


def devices_of(node: GpuNode) -> list[Found]:
    """Return the devices that the driver publishes for a node of an inventory."""
    found: list[Found] = []
    for minor, layout in enumerate(node.layouts):
        found += _mig_devices(node, minor, layout) if layout else [_whole(node, minor)]
    return found


def board(minor: int, product: str, architecture: str, capability: str, brand: str, mib: int | None) -> Found:
    """Return a whole board. One whose memory is that of the CPU has no capacity."""
    attributes = _attributes(minor, product, architecture, capability, brand)
    attributes["type"] = {"string": "gpu"}
    attributes["uuid"] = {"string": _uuid("GPU", product, minor)}
    capacity = {} if mib is None else {"capacity": {"memory": {"value": str(mib * _MIB)}}}
    return {"name": f"gpu-{minor}", "attributes": attributes, **capacity}


def publish(cluster: Cluster, node_name: str, devices: Sequence[Found]) -> None:
    """Publish the devices of a node, as its pod of the driver does."""
    node = cluster.get("v1", "Node", node_name)
    owner = {"apiVersion": "v1", "kind": "Node", "name": node_name, "uid": node["metadata"]["uid"], "controller": True}
    cluster.create(
        {
            "apiVersion": _DRA,
            "kind": "ResourceSlice",
            "metadata": {"name": f"{node_name}-{DRIVER}-slice", "ownerReferences": [owner]},
            "spec": {
                "driver": DRIVER,
                "nodeName": node_name,
                "pool": {"name": node_name, "generation": 1, "resourceSliceCount": 1},
                "devices": list(devices),
            },
        }
    )


def _whole(node: GpuNode, minor: int) -> Found:
    model = node.model
    assert model is not None
    return board(minor, model.name, model.architecture, *_BOARDS[model.name], model.vram_mib)


def _mig_devices(node: GpuNode, minor: int, layout: Any) -> Iterator[Found]:
    model, start = node.model, 0
    assert model is not None
    for profile, count in layout.items():
        number, slices = _PROFILES[profile]
        for _ in range(count):
            name = f"gpu-{minor}-mig-{profile.replace('.', '').replace('+', '-')}-{number}-{start}"
            attributes = _attributes(minor, model.name, model.architecture, *_BOARDS[model.name])
            attributes["type"] = {"string": "mig"}
            attributes["profile"] = {"string": profile}
            attributes["parentUUID"] = {"string": _uuid("GPU", model.name, minor)}
            attributes["uuid"] = {"string": _uuid("MIG", name, minor)}
            amounts = {"memory": mig_vram_mib(model.name, profile) * _MIB, "multiprocessors": 16, "copyEngines": 1}
            amounts |= {"decoders": 1, "encoders": 0, "jpegEngines": 1, "ofaEngines": 0}
            amounts |= {f"memorySlice{place}": 1 for place in range(start, start + slices)}
            capacity = {key: {"value": str(amount)} for key, amount in amounts.items()}
            yield {"name": name, "attributes": attributes, "capacity": capacity}
            start += slices


def _attributes(minor: int, product: str, architecture: str, capability: str, brand: str) -> dict[str, Any]:
    return {
        "productName": {"string": product},
        "brand": {"string": brand},
        "architecture": {"string": architecture},
        "cudaComputeCapability": {"version": capability},
        "driverVersion": {"version": "580.95.5"},
        "cudaDriverVersion": {"version": "13.0.0"},
        "addressingMode": {"string": "HMM"},
        "resource.kubernetes.io/pciBusID": {"string": f"0000:{minor + 1:02x}:00.0"},
        "resource.kubernetes.io/pcieRoot": {"string": "pci0000:00"},
    }


def _uuid(kind: str, name: str, minor: int) -> str:
    return f"{kind}-{uuid5(NAMESPACE_DNS, f'{name} {minor}')}"
