"""The device manager of a kubelet, as device plugins meet it: registration, devices with their health, allocation.

It does what the kubelet does with the API version v1beta1, in the same order
(kubernetes/kubernetes@v1.36.3:pkg/kubelet/cm/devicemanager/plugin/v1beta1/{server,handler,client}.go).
"""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

# Tests start programs while connections are open; what gRPC does at a fork is for children that use it.
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

DIRECTORY = "var/lib/kubelet/device-plugins"
_VERSION = "v1beta1"
_SECONDS = 120
_SECONDS_OF_A_RESTART = 5

# Fields of each message in the order of their numbers, which begin with 1; * is for several, % for a map of texts
# (kubernetes/kubelet@v0.36.3:pkg/apis/deviceplugin/v1beta1/api.proto).
_MESSAGES = {
    "Empty": "",
    "DevicePluginOptions": "bool:pre_start_required bool:get_preferred_allocation_available",
    "RegisterRequest": "string:version string:endpoint string:resource_name DevicePluginOptions:options",
    "NUMANode": "int64:ID",
    "TopologyInfo": "*NUMANode:nodes",
    "Device": "string:ID string:health TopologyInfo:topology",
    "ListAndWatchResponse": "*Device:devices",
    "PreStartContainerRequest": "*string:devices_ids",
    "PreStartContainerResponse": "",
    "ContainerPreferredAllocationRequest": (
        "*string:available_deviceIDs *string:must_include_deviceIDs int32:allocation_size"
    ),
    "PreferredAllocationRequest": "*ContainerPreferredAllocationRequest:container_requests",
    "ContainerPreferredAllocationResponse": "*string:deviceIDs",
    "PreferredAllocationResponse": "*ContainerPreferredAllocationResponse:container_responses",
    "ContainerAllocateRequest": "*string:devices_ids",
    "AllocateRequest": "*ContainerAllocateRequest:container_requests",
    "CDIDevice": "string:name",
    "Mount": "string:container_path string:host_path bool:read_only",
    "DeviceSpec": "string:container_path string:host_path string:permissions",
    "ContainerAllocateResponse": "%:envs *Mount:mounts *DeviceSpec:devices %:annotations *CDIDevice:cdi_devices",
    "AllocateResponse": "*ContainerAllocateResponse:container_responses",
}


def _messages() -> Mapping[str, Any]:
    file = descriptor_pb2.FileDescriptorProto(name=f"{_VERSION}.proto", package=_VERSION, syntax="proto3")
    kinds = descriptor_pb2.FieldDescriptorProto
    scalars = {"bool": kinds.TYPE_BOOL, "string": kinds.TYPE_STRING, "int32": kinds.TYPE_INT32}
    scalars["int64"] = kinds.TYPE_INT64
    for name, fields in _MESSAGES.items():
        message = file.message_type.add(name=name)
        for number, field in enumerate(fields.split(), 1):
            kind, _, label = field.partition(":")
            several = kind[:1] in ("*", "%")
            one = message.field.add(name=label, number=number)
            one.label = kinds.LABEL_REPEATED if several else kinds.LABEL_OPTIONAL
            kind = kind.lstrip("*")
            if kind == "%":
                kind = _entry(message, label)
            if kind in scalars:
                one.type = scalars[kind]
            else:
                one.type, one.type_name = kinds.TYPE_MESSAGE, f".{_VERSION}.{kind}"
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {
        name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{_VERSION}.{name}")) for name in _MESSAGES
    }


def _entry(message: descriptor_pb2.DescriptorProto, label: str) -> str:
    """Add the message of an entry of a map, and return its name."""
    entry = message.nested_type.add(name=f"{label.capitalize()}Entry")
    entry.options.map_entry = True
    for number, name in enumerate(("key", "value"), 1):
        field = entry.field.add(name=name, number=number)
        field.type = descriptor_pb2.FieldDescriptorProto.TYPE_STRING
        field.label = descriptor_pb2.FieldDescriptorProto.LABEL_OPTIONAL
    return f"{message.name}.{entry.name}"


_CLASSES = _messages()


class RefusedError(Exception):
    """A request that a device plugin refused."""


class _Client:
    """The connection to the plugin that registered a resource."""

    def __init__(self, resource: str, endpoint: str, options: Any, address: str) -> None:
        self.resource, self.endpoint, self.options = resource, endpoint, options
        self.follower: threading.Thread
        self.channel = grpc.insecure_channel(
            f"unix:{address}",
            options=[("grpc.default_authority", "localhost"), ("grpc.use_local_subchannel_pool", 1)],
        )

    def call(self, method: str, request: Any, answer: str) -> Any:
        """Call a method of the plugin."""
        return self._method(self.channel.unary_unary, method, answer)(request, timeout=_SECONDS, wait_for_ready=True)

    def states(self) -> Any:
        """Return the stream of the states of its devices."""
        return self._method(self.channel.unary_stream, "ListAndWatch", "ListAndWatchResponse")(
            _CLASSES["Empty"](), wait_for_ready=True
        )

    def _method(self, kind: Any, method: str, answer: str) -> Any:
        return kind(
            f"/{_VERSION}.DevicePlugin/{method}",
            request_serializer=lambda message: message.SerializeToString(),
            response_deserializer=_CLASSES[answer].FromString,
        )


class DeviceManager:
    """The device manager of one node.

    Attributes:
        registrations: What has registered so far: resource and endpoint, in order.
    """

    def __init__(self, host_root: Path) -> None:
        """Prepare the directory of the sockets under the root of a node."""
        self._folder = host_root / DIRECTORY
        self._folder.mkdir(parents=True, exist_ok=True)
        # The path of a socket is at most 108 bytes long, and that of a test may be longer.
        self._descriptor = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY)
        self._lock = threading.RLock()
        self._clients: dict[str, _Client] = {}
        self._devices: dict[str, dict[str, str]] = {}
        self._unhealthy: set[str] = set()
        self.registrations: list[tuple[str, str]] = []
        self._server: grpc.Server | None = None

    def start(self) -> None:
        """Listen for plugins, as a kubelet does when it starts: sockets of before are removed."""
        for path in self._folder.iterdir():
            if path.is_socket():
                path.unlink()
        server = grpc.server(ThreadPoolExecutor(4))
        register = grpc.unary_unary_rpc_method_handler(
            self._register,
            request_deserializer=_CLASSES["RegisterRequest"].FromString,
            response_serializer=lambda message: message.SerializeToString(),
        )
        handlers = {"Register": register}
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(f"{_VERSION}.Registration", handlers),))
        server.add_insecure_port(f"unix:{self._address('kubelet.sock')}")
        server.start()
        self._server = server

    def stop(self) -> None:
        """Stop to listen, and close all connections: no device is healthy until its plugin registers again."""
        if self._server is not None:
            self._server.stop(0).wait()
        self._server = None
        with self._lock:
            clients = list(self._clients.values())
            self._clients.clear()
            self._unhealthy.update(self._devices)
        for client in clients:
            client.channel.close()
            # Otherwise it could end the connection of the plugin's next registration.
            client.follower.join()

    def __enter__(self) -> DeviceManager:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        os.close(self._descriptor)

    # --- what the node offers ---------------------------------------------------------------------------------

    def devices(self, resource: str) -> dict[str, str]:
        """Return the health of each device of a resource."""
        with self._lock:
            found = dict(self._devices.get(resource, {}))
            return dict.fromkeys(found, "Unhealthy") if resource in self._unhealthy else found

    def capacity(self) -> dict[str, int]:
        """Return how many devices each resource has: ``capacity`` of the node."""
        with self._lock:
            return {name: len(self._devices[name]) for name in sorted(self._devices)}

    def allocatable(self) -> dict[str, int]:
        """Return how many healthy devices each resource has: ``allocatable`` of the node."""
        return {name: sum(health == "Healthy" for health in self.devices(name).values()) for name in self.capacity()}

    # --- what a container gets --------------------------------------------------------------------------------

    def preferred(self, resource: str, count: int, available: Sequence[str] | None = None) -> list[str]:
        """Return the devices that the plugin prefers for a request."""
        free = sorted(self.devices(resource)) if available is None else list(available)
        one = _CLASSES["ContainerPreferredAllocationRequest"](available_deviceIDs=free, allocation_size=count)
        request = _CLASSES["PreferredAllocationRequest"](container_requests=[one])
        answer = self._call(resource, "GetPreferredAllocation", request, "PreferredAllocationResponse")
        return list(answer.container_responses[0].deviceIDs)

    def allocate(self, resource: str, devices: int | Sequence[str]) -> Any:
        """Return what a container gets: ``envs``, ``mounts``, ``devices``, ``annotations`` and ``cdi_devices``.

        Args:
            resource: Name of the resource.
            devices: IDs of the devices, or how many.

        Raises:
            RefusedError: The plugin refuses the request; the kubelet ends the pod with UnexpectedAdmissionError.
        """
        with self._lock:
            options = self._clients[resource].options
        if isinstance(devices, int):
            is_asked = options.get_preferred_allocation_available
            devices = self.preferred(resource, devices) if is_asked else sorted(self.devices(resource))[:devices]
        one = _CLASSES["ContainerAllocateRequest"](devices_ids=devices)
        request = _CLASSES["AllocateRequest"](container_requests=[one])
        answer = self._call(resource, "Allocate", request, "AllocateResponse").container_responses[0]
        if options.pre_start_required:
            start = _CLASSES["PreStartContainerRequest"](devices_ids=devices)
            self._call(resource, "PreStartContainer", start, "PreStartContainerResponse")
        return answer

    def _call(self, resource: str, method: str, request: Any, answer: str) -> Any:
        with self._lock:
            client = self._clients[resource]
        try:
            return client.call(method, request, answer)
        except grpc.RpcError as error:
            raise RefusedError(f"{method}: {error.details()}") from None

    # --- plugins ----------------------------------------------------------------------------------------------

    def _address(self, name: str) -> str:
        return f"/proc/self/fd/{self._descriptor}/{name}"

    def _register(self, request: Any, context: grpc.ServicerContext) -> Any:
        if request.version != _VERSION:
            context.abort(grpc.StatusCode.UNKNOWN, f"requested API version {request.version!r} is not supported")
        client = _Client(request.resource_name, request.endpoint, request.options, self._address(request.endpoint))
        with self._lock:
            before = self._clients.get(client.resource)
        if before is not None:
            # A plugin that restarts has ended this stream; a kubelet sees that before the new registration.
            before.follower.join(_SECONDS_OF_A_RESTART)
        client.follower = threading.Thread(target=self._follow, args=(client,), daemon=True)
        with self._lock:
            self._clients[client.resource] = client
            self.registrations.append((client.resource, client.endpoint))
            client.follower.start()
        return _CLASSES["Empty"]()

    def _follow(self, client: _Client) -> None:
        try:
            for state in client.states():
                with self._lock:
                    self._devices[client.resource] = {device.ID: device.health for device in state.devices}
                    self._unhealthy.discard(client.resource)
        except (grpc.RpcError, ValueError):
            pass
        with self._lock:
            # The kubelet ends whatever connection the resource has now, that of a successor too.
            current = self._clients.pop(client.resource, None)
            if current is not None:
                self._unhealthy.add(client.resource)
        if current is not None:
            current.channel.close()
