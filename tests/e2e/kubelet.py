"""A stand-in for kubelets: it registers nodes, admits pods as the device manager does, and reports their status.

No container runs. A pod becomes Ready as soon as its node admits it, and stays so until ``finish`` or its deletion.
"""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import httpx

from cluster import ApiError, Cluster, Found, eventually
from gpu_constructs.capacity.planned import NodeOffer

_PLENTY = {"cpu": "64", "memory": "512Gi", "ephemeral-storage": "1Ti", "pods": "250"}
_ENDED = ("Succeeded", "Failed")
_NOT_READY = "node.kubernetes.io/not-ready"


@dataclass(frozen=True)
class Node:
    """A node to register.

    Attributes:
        name: Name of the node.
        labels: Labels beyond those that a kubelet sets.
        taints: Taints, as Kubernetes writes them.
        devices: How many of each extended resource the device plugins of the node have registered.
        one_each: Resources whose plugin refuses to give more than one to a container (``failRequestsGreaterThanOne``).
    """

    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Mapping[str, str], ...] = ()
    devices: Mapping[str, int] = field(default_factory=dict)
    one_each: frozenset[str] = frozenset()

    def manifest(self) -> Found:
        """Return the object that a kubelet creates."""
        standard = {
            "kubernetes.io/hostname": self.name,
            "kubernetes.io/os": "linux",
            "kubernetes.io/arch": "amd64",
            "beta.kubernetes.io/os": "linux",
            "beta.kubernetes.io/arch": "amd64",
        }
        return {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": self.name, "labels": {**standard, **self.labels}},
            "spec": {"taints": [dict(taint) for taint in self.taints]},
        }

    def status(self) -> Found:
        """Return the status that a kubelet reports."""
        amounts = {**_PLENTY, **{name: str(count) for name, count in self.devices.items()}}
        return {
            "capacity": amounts,
            "allocatable": amounts,
            "conditions": [
                {"type": "Ready", "status": "True", "reason": "KubeletReady", "lastHeartbeatTime": _now()},
            ],
            "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}, {"type": "Hostname", "address": self.name}],
            "nodeInfo": {
                "machineID": self.name,
                "systemUUID": self.name,
                "bootID": self.name,
                "kernelVersion": "6.12.0-stand-in",
                "osImage": "stand-in",
                "containerRuntimeVersion": "stand-in://1",
                "kubeletVersion": "v1.34.0",
                "kubeProxyVersion": "",
                "operatingSystem": "linux",
                "architecture": "amd64",
            },
            "runtimeHandlers": [{"name": ""}, {"name": "nvidia"}],
        }


def nodes_of(offers: Iterable[NodeOffer]) -> list[Node]:
    """Return the nodes that a capacity plan is made for: each node of each pool."""
    nodes = []
    for offer in offers:
        for number in range(offer.count):
            one_each = frozenset(device.resource for device in offer.devices if device.most_each == 1)
            nodes.append(
                Node(
                    offer.name if offer.count == 1 else f"{offer.name}-{number + 1}",
                    offer.labels,
                    tuple(offer.taints),
                    {name: count for name, count in offer.allocatable.items() if "/" in name},
                    one_each,
                )
            )
    return nodes


class Kubelets:
    """The kubelets of all nodes that a test registers."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._lock = threading.RLock()
        self._nodes: dict[str, Node] = {}
        self._admitted: dict[str, Found] = {}
        self._stopped = threading.Event()
        self._streams: dict[str, httpx.Response] = {}
        self._threads = [
            threading.Thread(target=self._follow, args=(kind, act), daemon=True, name=f"kubelets: {kind}")
            for kind, act in (("Pod", self._see_pod), ("PersistentVolumeClaim", self._see_claim))
        ]

    def start(self) -> None:
        """Start to watch."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """End the threads."""
        self._stopped.set()
        for stream in self._streams.values():
            # A thread that reads from a socket is woken up by nothing else.
            stream.extensions["network_stream"].get_extra_info("socket").shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join()
        self._cluster.close()

    def register(self, *nodes: Node) -> None:
        """Create nodes, and report them ready with their devices, and wait until the cluster takes them as ready."""
        for node in nodes:
            with self._lock:
                self._nodes[node.name] = node
            made = self._cluster.apply(node.manifest())[0]
            self._cluster.patch(made, {"status": node.status()}, part="status")
        for node in nodes:
            eventually(lambda name=node.name: not self._is_tainted(name), f"{node.name} is ready")

    def _is_tainted(self, name: str) -> bool:
        """Check whether a node still has the taint with which the API server creates it."""
        taints = self._cluster.get("v1", "Node", name)["spec"].get("taints", ())
        return any(taint["key"] == _NOT_READY for taint in taints)

    def update(self, node: Node) -> None:
        """Report a node anew, such as with other devices."""
        with self._lock:
            self._nodes[node.name] = node
        self._cluster.patch(node.manifest(), {"status": node.status()}, part="status")

    def forget(self) -> None:
        """Forget all nodes."""
        with self._lock:
            self._nodes.clear()
            self._admitted.clear()

    def finish(self, pod: Found, *, succeeded: bool = True) -> None:
        """Have the containers of a pod end."""
        with self._lock:
            self._admitted.pop(pod["metadata"]["uid"], None)
        self._end(pod, exit_code=0 if succeeded else 1)

    # --- what happens by itself -------------------------------------------------------------------------------

    def _follow(self, kind: str, act: Any) -> None:
        while not self._stopped.is_set():
            try:
                for one in self._cluster.list("v1", kind):
                    self._handle(act, "ADDED", one)
                with closing(self._cluster.watch("v1", kind)) as stream:
                    self._streams[kind] = stream
                    for line in stream.iter_lines():
                        event = json.loads(line)
                        if event["type"] == "ERROR":
                            break
                        self._handle(act, event["type"], event["object"])
            # ValueError: a line that was cut off where the stream ended.
            except (httpx.HTTPError, httpx.StreamError, ApiError, OSError, RuntimeError, ValueError):
                self._stopped.wait(0.2)

    def _handle(self, act: Any, event: str, one: Found) -> None:
        try:
            act(event, one)
        except ApiError as error:
            # Gone, or changed meanwhile: the next event says how.
            if error.status not in (404, 409):
                raise

    def _see_pod(self, event: str, pod: Found) -> None:
        uid, metadata = pod["metadata"]["uid"], pod["metadata"]
        with self._lock:
            node = self._nodes.get(pod["spec"].get("nodeName", ""))
            if event == "DELETED" or pod.get("status", {}).get("phase") in _ENDED:
                self._admitted.pop(uid, None)
        if node is None or event == "DELETED":
            return
        pod = {**pod, "apiVersion": "v1", "kind": "Pod"}
        if "deletionTimestamp" in metadata:
            if pod["status"]["phase"] == "Running":
                # A Job lets go of its pod once it has ended.
                self._end(pod, exit_code=143)
            self._cluster.delete(pod)
        elif pod["status"]["phase"] == "Pending" and not pod["status"].get("startTime"):
            self._admit(pod, node)

    def _admit(self, pod: Found, node: Node) -> None:
        with self._lock:
            refusal = self._refusal(pod, node)
            if refusal is None:
                self._admitted[pod["metadata"]["uid"]] = pod
        if refusal is not None:
            reason, message = refusal
            self._report(pod, {"phase": "Failed", "reason": reason, "message": message, "startTime": _now()})
            return
        running = {"running": {"startedAt": _now()}}
        self._report(
            pod,
            {"phase": "Running", "startTime": _now(), "podIP": "127.0.0.1", **_statuses(pod, running, is_ready=True)},
        )

    def _refusal(self, pod: Found, node: Node) -> tuple[str, str] | None:
        """Return why the kubelet refuses a pod: pkg/kubelet/cm/devicemanager and lifecycle/predicate.go."""
        uid = pod["metadata"]["uid"]
        held = [one for key, one in self._admitted.items() if key != uid and one["spec"]["nodeName"] == node.name]
        for name, count in _asks(pod).items():
            if name not in node.devices:
                continue  # The kubelet drops extended resources that its node does not know.
            used = sum(_asks(one).get(name, 0) for one in held)
            if used + count > node.devices[name]:
                return f"OutOf{name}", f"Node didn't have enough resource: {name}, requested: {count}, used: {used}"
        for container in (*pod["spec"].get("initContainers", ()), *pod["spec"]["containers"]):
            for name, count in _limits(container).items():
                if name in node.one_each and count > 1:
                    return "UnexpectedAdmissionError", (
                        f"Allocate failed due to rpc error: request for '{name}: {count}' too large: maximum request "
                        "size for shared resources is 1"
                    )
        return None

    def _end(self, pod: Found, *, exit_code: int) -> None:
        state = {"terminated": {"exitCode": exit_code, "startedAt": _now(), "finishedAt": _now()}}
        phase = "Failed" if exit_code else "Succeeded"
        self._report(pod, {"phase": phase, **_statuses(pod, state, is_ready=False)})

    def _report(self, pod: Found, status: Mapping[str, Any]) -> None:
        # Another pod may have got the name of this one: its identity makes the API server refuse the change then.
        change = {"metadata": {"uid": pod["metadata"]["uid"]}, "status": status}
        try:
            self._cluster.patch(pod, change, part="status")
        except ApiError as error:
            if "uid" not in error.message.lower():
                raise

    def _see_claim(self, event: str, claim: Found) -> None:
        """Bring a volume for each claim, as a provisioner does."""
        if event == "DELETED" or claim.get("status", {}).get("phase") != "Pending" or claim["spec"].get("volumeName"):
            return
        name = f"pv-{claim['metadata']['uid']}"
        spec = claim["spec"]
        self._cluster.apply(
            {
                "apiVersion": "v1",
                "kind": "PersistentVolume",
                "metadata": {"name": name},
                "spec": {
                    "accessModes": spec["accessModes"],
                    "capacity": {"storage": spec["resources"]["requests"]["storage"]},
                    "claimRef": {
                        "apiVersion": "v1",
                        "kind": "PersistentVolumeClaim",
                        "name": claim["metadata"]["name"],
                        "namespace": claim["metadata"]["namespace"],
                        "uid": claim["metadata"]["uid"],
                    },
                    "hostPath": {"path": f"/var/e2e/{name}"},
                    "persistentVolumeReclaimPolicy": "Delete",
                    "storageClassName": spec.get("storageClassName", ""),
                },
            }
        )


DEFAULT_STORAGE_CLASS: Found = {
    "apiVersion": "storage.k8s.io/v1",
    "kind": "StorageClass",
    "metadata": {"name": "stand-in", "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
    "provisioner": "kubernetes.io/no-provisioner",
    "reclaimPolicy": "Delete",
    "volumeBindingMode": "Immediate",
}


def _limits(container: Mapping[str, Any]) -> dict[str, int]:
    limits = container.get("resources", {}).get("limits", {})
    return {name: int(count) for name, count in limits.items() if "/" in name and int(count) > 0}


def _asks(pod: Found) -> dict[str, int]:
    """Return what a pod takes of each extended resource, as the kubelet counts it."""
    spec, together, most = pod["spec"], dict[str, int](), dict[str, int]()
    for container in spec.get("initContainers", ()):
        is_sidecar = container.get("restartPolicy") == "Always"
        for name, count in _limits(container).items():
            if is_sidecar:
                together[name] = together.get(name, 0) + count
            most[name] = max(most.get(name, 0), together.get(name, 0) + (0 if is_sidecar else count))
    for container in spec["containers"]:
        for name, count in _limits(container).items():
            together[name] = together.get(name, 0) + count
    return {name: max(together.get(name, 0), most.get(name, 0)) for name in {*together, *most}}


def _statuses(pod: Found, state: Mapping[str, Any], *, is_ready: bool) -> Found:
    ended = {"terminated": {"exitCode": 0, "reason": "Completed", "startedAt": _now(), "finishedAt": _now()}}

    def one(container: Mapping[str, Any], now: Mapping[str, Any], *, ready: bool) -> Found:
        image = container["image"]
        return {"name": container["name"], "image": image, "imageID": image, "ready": ready, "restartCount": 0} | {
            "started": "running" in now,
            "state": now,
        }

    first = [
        one(each, state, ready=is_ready) if each.get("restartPolicy") == "Always" else one(each, ended, ready=True)
        for each in pod["spec"].get("initContainers", ())
    ]
    answer = "True" if is_ready else "False"
    kinds = {"PodReadyToStartContainers": "True", "Initialized": "True", "ContainersReady": answer, "Ready": answer}
    kept = [one for one in pod["status"].get("conditions", ()) if one["type"] not in kinds]
    conditions = [{"type": kind, "status": status, "lastTransitionTime": _now()} for kind, status in kinds.items()]
    return {
        "conditions": [*kept, *conditions],
        "containerStatuses": [one(each, state, ready=is_ready) for each in pod["spec"]["containers"]],
        "initContainerStatuses": first,
    }


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
