"""Data that several checks of ``doctor`` derive from a snapshot: GPU nodes, GPU components, and pods that use GPUs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from functools import cached_property
from typing import Any

from gpu_constructs.cli.doctor.snapshot import TABLES, Manifest, Snapshot
from gpu_constructs.facts.selectors import holds
from gpu_constructs.kube.pod_specs import containers, most_at_once, pod_specs

DOMAIN = "nvidia.com/"
_PROGRAMS = {name: re.compile(pattern, re.IGNORECASE) for name, pattern in TABLES["programs"].items()}
_GPU_LABELS = re.compile(re.sub(r"\s", "", TABLES["gpu_labels"]))
_NAMING = ("app", "app.kubernetes.io/name", "app.kubernetes.io/component", "k8s-app")
_CONTROLLERS = ("DaemonSet", "Deployment", "StatefulSet", "ReplicaSet", "Job")
_NO_SCHEDULE = ("NoSchedule", "NoExecute")


def metadata(manifest: Manifest) -> dict[str, Any]:
    """Return the metadata of an object; empty if it has none."""
    return manifest.get("metadata") or {}


def spec(manifest: Manifest) -> dict[str, Any]:
    """Return the spec of an object; empty if it has none."""
    return manifest.get("spec") or {}


def status(manifest: Manifest) -> dict[str, Any]:
    """Return the status of an object; empty if it has none."""
    return manifest.get("status") or {}


def labels(manifest: Manifest) -> dict[str, str]:
    """Return the labels of an object; empty if it has none."""
    return metadata(manifest).get("labels") or {}


def key(manifest: Manifest) -> tuple[str, str]:
    """Return the namespace and the name of an object."""
    return metadata(manifest).get("namespace") or "", metadata(manifest)["name"]


def title(manifest: Manifest) -> str:
    """Return the kind, the namespace and the name of an object, such as ``Pod ollama/ollama-0``."""
    return f"{manifest.get('kind')} {'/'.join(filter(None, key(manifest)))}"


def condition(manifest: Manifest, name: str) -> dict[str, Any]:
    """Return the condition of a type, such as ``Ready``, in the status of an object; empty if there is none."""
    return next((one for one in status(manifest).get("conditions") or () if one.get("type") == name), {})


def is_ready(pod: Manifest) -> bool:
    """Check whether a pod is Ready or has succeeded."""
    return status(pod).get("phase") == "Succeeded" or condition(pod, "Ready").get("status") == "True"


def container_states(pod: Manifest) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield pairs: the name of a container of a pod, and a state in which the container waits or has ended.

    The states come from the fields ``state`` and ``lastState``. An example of a state is
    ``{"reason": "OOMKilled", "exitCode": 137}``.
    """
    parts = [status(pod).get(part) or () for part in ("initContainerStatuses", "containerStatuses")]
    for one in (one for part in parts for one in part):
        states = (one.get("state") or {}, one.get("lastState") or {})
        yield from ((one.get("name", ""), state[name]) for state in states for name in state if name != "running")


def variable(pod_spec: Mapping[str, Any], name: str) -> set[str]:
    """Return the values of an environment variable in the containers of a pod.

    The result lacks values that can be secret, because the snapshot does not contain them.

    Args:
        pod_spec: Spec of the pod.
        name: Name of the environment variable.
    """
    given = (one for container in containers(pod_spec) for one in container.get("env") or ())
    return {one["word"] for one in given if one.get("name") == name and "word" in one}


def number(text: object) -> int:
    """Return a text as a number, or 0 if it does not consist of digits."""
    return int(str(text)) if str(text).isdigit() else 0


def gpus(amounts: Mapping[str, Any]) -> dict[str, int]:
    """Return the amounts of the extended resources of NVIDIA, such as ``nvidia.com/gpu``, by name of the resource.

    Args:
        amounts: Amounts of all resources, such as ``allocatable`` of a node.
    """
    found = {name: str(amount) for name, amount in amounts.items() if name.startswith(DOMAIN)}
    return {name: int(amount) for name, amount in found.items() if amount.isdigit()}


def asked(pod_spec: Mapping[str, Any]) -> dict[str, int]:
    """Return the amounts of NVIDIA's extended resources that a pod requests, by name, such as ``nvidia.com/gpu``."""
    given = [(one, one.get("resources") or {}) for one in containers(pod_spec)]
    of_each = {id(one): gpus({**(has.get("requests") or {}), **(has.get("limits") or {})}) for one, has in given}
    most: dict[str, int] = {}
    for name in {name for amounts in of_each.values() for name in amounts}:
        most[name] = int(most_at_once(pod_spec, {at: Decimal(one.get(name, 0)) for at, one in of_each.items()}))
    return {name: amount for name, amount in most.items() if amount}


def untolerated(pod_spec: Mapping[str, Any], node: Manifest, *, is_daemon: bool = False) -> str | None:
    """Return the first taint of a node that a pod does not tolerate, such as ``dedicated=ai:NoSchedule``.

    Return None if there is no such taint.

    Args:
        pod_spec: Spec of the pod.
        node: Node with the taints.
        is_daemon: Whether the pod belongs to a DaemonSet. If True, ignore taints such as
            ``node.kubernetes.io/not-ready``, because Kubernetes adds tolerations for them.
    """
    taints = spec(node).get("taints") or ()
    for taint in (one for one in taints if not (is_daemon and one["key"].startswith("node.kubernetes.io/"))):
        is_tolerated = any(_tolerates(one, taint) for one in pod_spec.get("tolerations") or ())
        if taint.get("effect") in _NO_SCHEDULE and not is_tolerated:
            value = f"={taint['value']}" if taint.get("value") else ""
            return f"{taint['key']}{value}:{taint['effect']}"
    return None


def _tolerates(toleration: Mapping[str, Any], taint: Mapping[str, Any]) -> bool:
    has_key = toleration.get("key") in (None, "", taint.get("key"))
    has_effect = toleration.get("effect") in (None, "", taint.get("effect"))
    is_equal = toleration.get("operator") == "Exists" or toleration.get("value", "") == taint.get("value", "")
    return has_key and has_effect and is_equal


def unmatched(pod_spec: Mapping[str, Any], node: Manifest) -> str | None:
    """Return the first label that a pod requires and a node does not have, such as ``pool=gpu``.

    Return None if the node has all required labels.
    """
    has = labels(node)
    for name, value in (pod_spec.get("nodeSelector") or {}).items():
        if has.get(name) != value:
            return f"{name}={value}"
    required = ((pod_spec.get("affinity") or {}).get("nodeAffinity") or {}).get(
        "requiredDuringSchedulingIgnoredDuringExecution"
    ) or {}
    terms = [term.get("matchExpressions") or () for term in required.get("nodeSelectorTerms") or ()]
    missing = [next((_shown(one) for one in term if not _holds(one, has)), None) for term in terms]
    return " or ".join(filter(None, missing)) if missing and all(missing) else None


def _holds(expression: Mapping[str, Any], has: Mapping[str, str]) -> bool:
    if expression.get("operator") not in ("Gt", "Lt"):
        return holds(expression, has)
    value, (limit, *_) = has.get(expression["key"], ""), expression.get("values") or ["0"]
    return value.isdigit() and ((int(value) > int(limit)) == (expression["operator"] == "Gt"))


def _shown(expression: Mapping[str, Any]) -> str:
    values = ", ".join(map(str, expression.get("values") or ()))
    return f"{expression.get('key')}={values}" if expression.get("operator") == "In" else str(expression.get("key"))


class View:
    """A snapshot of a cluster, with the data that checks derive from it.

    Attributes:
        snapshot: State of the cluster.
        plan: Expected state of the cluster; None without the option ``--plan``.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self.plan = snapshot.plan
        self._known: dict[int, str | None] = {}

    def all(self, *kinds: str) -> list[Manifest]:
        """Return the objects of the given kinds. Omit kinds that the snapshot does not contain."""
        return [one for kind in kinds for one in self.snapshot.objects.get(kind, ())]

    def find(self, kind: str, name: str, namespace: str = "") -> Manifest | None:
        """Return the object with the given kind, name and namespace. Return None if the snapshot lacks it."""
        return next((one for one in self.all(kind) if key(one) == (namespace, name)), None)

    # --- nodes ------------------------------------------------------------------------------------------------

    @cached_property
    def nodes(self) -> dict[str, Manifest]:
        """Nodes of the cluster, by name."""
        return {metadata(node)["name"]: node for node in self.all("Node")}

    @cached_property
    def gpu_nodes(self) -> list[Manifest]:
        """Nodes with an NVIDIA GPU. Labels, annotations, ``status.capacity`` or the capacity plan show the GPU."""
        planned = {one.get("title") for one in self.planned_nodes}
        return [node for name, node in self.nodes.items() if _has_gpu(node) or name in planned]

    @cached_property
    def talos(self) -> list[Manifest]:
        """GPU nodes that run Talos."""
        return [node for node in self.gpu_nodes if self.os_image(node).startswith("Talos")]

    @staticmethod
    def os_image(node: Manifest) -> str:
        """Return the operating system of a node as the kubelet reports it."""
        return str((status(node).get("nodeInfo") or {}).get("osImage", ""))

    @cached_property
    def planned_nodes(self) -> Sequence[Mapping[str, Any]]:
        """Nodes of the capacity plan (option ``--plan``). The list is empty without a capacity plan."""
        return (self.plan.report.get("nodes") or ()) if self.plan and self.plan.report else ()

    def planned(self) -> Iterator[tuple[Mapping[str, Any], Manifest]]:
        """Return pairs: a node in the capacity plan, and its Node object. Omit nodes that are not in the cluster."""
        return ((one, self.nodes[one["title"]]) for one in self.planned_nodes if one.get("title") in self.nodes)

    def node_of(self, pod: Manifest) -> Manifest | None:
        """Return the Node object of a pod. Return None if the pod has no node, or if the snapshot lacks the node."""
        return self.nodes.get(spec(pod).get("nodeName", ""))

    def planned_objects(self, *kinds: str) -> list[Manifest]:
        """Return the synthesized objects (option ``--plan``) of the given kinds. Without kinds, return all objects."""
        return [one for one in (self.plan.manifests if self.plan else ()) if not kinds or one["kind"] in kinds]

    @property
    def planned_slots(self) -> Mapping[str, int]:
        """Number of slots that nodes must advertise for each GPU, by resource name, such as ``nvidia.com/gpu``.

        The source is the synthesized manifests (option ``--plan``). If there is a capacity plan, the dict is empty,
        because the checks then use the capacity plan.
        """
        return self.plan.slots if self.plan and not self.plan.report else {}

    # --- programs ---------------------------------------------------------------------------------------------

    def programs(self, *names: str) -> list[Manifest]:
        """Return the DaemonSets and Deployments of GPU components, such as the device plugin or the DCGM exporter.

        Args:
            names: Names of the components, such as ``device plugin``. Without names, all components count.
        """
        return [one for one in self.all("DaemonSet", "Deployment") if self._is(one, names)]

    def program_pods(self, *names: str) -> list[Manifest]:
        """Return the pods of GPU components, such as the device plugin or the DCGM exporter.

        Args:
            names: Names of the components, such as ``device plugin``. Without names, all components count.
        """
        return [pod for pod in self.all("Pod") if self._is(pod, names)]

    def _is(self, manifest: Manifest, names: Sequence[str]) -> bool:
        program = self._program(manifest)
        return program is not None and (not names or program in names)

    def _program(self, manifest: Manifest) -> str | None:
        """Return the name of the GPU component that an object runs, and cache it. Return None for other objects."""
        if id(manifest) not in self._known:
            self._known[id(manifest)] = program_of(manifest)
        return self._known[id(manifest)]

    # --- workloads --------------------------------------------------------------------------------------------

    @cached_property
    def gpu_classes(self) -> set[str]:
        """Names of the RuntimeClasses with an NVIDIA handler."""
        return {metadata(one)["name"] for one in self.all("RuntimeClass") if "nvidia" in str(one.get("handler"))}

    @cached_property
    def workloads(self) -> list[Manifest]:
        """Pods that use GPUs, except pods of GPU components such as the device plugin.

        With the option ``--namespace``, the list contains only the pods of this namespace.
        """
        return [pod for pod in self.all("Pod") if self._is_ours(pod) and self.uses_gpus(spec(pod))]

    @cached_property
    def held(self) -> Mapping[tuple[str, str], int]:
        """Amounts of GPU resources that pods request, by node name and resource name. Pods that ended do not count.

        For pods without a node, the node name is empty.
        """
        found: dict[tuple[str, str], int] = {}
        for pod in self.all("Pod"):
            is_over = status(pod).get("phase") in ("Succeeded", "Failed")
            for name, amount in () if is_over else asked(spec(pod)).items():
                at = (spec(pod).get("nodeName", ""), name)
                found[at] = found.get(at, 0) + amount
        return found

    @property
    def gpu_pods(self) -> list[Manifest]:
        """Pods of GPU components, such as the device plugin, and all other pods that use GPUs."""
        return [*self.program_pods(), *self.workloads]

    def _is_ours(self, manifest: Manifest) -> bool:
        return self._program(manifest) is None and self.snapshot.namespace in ("", key(manifest)[0])

    def uses_gpus(self, pod_spec: Mapping[str, Any]) -> bool:
        """Check whether a pod requests a GPU, has an NVIDIA RuntimeClass, or uses a ResourceClaim."""
        named = pod_spec.get("runtimeClassName")
        has_class = named is not None and (named in self.gpu_classes or "nvidia" in named)
        return bool(asked(pod_spec)) or has_class or bool(pod_spec.get("resourceClaims"))

    def controllers(self, *, programs: bool) -> Iterator[tuple[Manifest, dict[str, Any]]]:
        """Yield the objects that create GPU pods, each with its pod spec.

        Args:
            programs: True for GPU components, such as the device plugin. False for workloads.
        """
        for one in self.all(*_CONTROLLERS):
            for pod_spec in pod_specs(one):
                if (self._program(one) is not None) if programs else (self._is_ours(one) and self.uses_gpus(pod_spec)):
                    yield one, pod_spec

    # --- events -----------------------------------------------------------------------------------------------

    @cached_property
    def _events(self) -> dict[tuple[str, str, str], list[Manifest]]:
        found: dict[tuple[str, str, str], list[Manifest]] = {}
        for event in self.all("Event"):
            about = event.get("involvedObject") or event.get("regarding") or {}
            at = (str(about.get("kind")), about.get("namespace") or "", str(about.get("name")))
            found.setdefault(at, []).append(event)
        return found

    def messages(self, manifest: Manifest, *reasons: str) -> list[str]:
        """Return the messages of the events about an object, the newest first.

        Args:
            manifest: Object.
            reasons: Reasons of the events, such as ``FailedCreate``. Without reasons, all events count.
        """
        events = self._events.get((str(manifest.get("kind")), *key(manifest)), [])
        ordered = sorted(events, key=lambda one: str(one.get("lastTimestamp") or one.get("eventTime")), reverse=True)
        given = [one for one in ordered if not reasons or one.get("reason") in reasons]
        return [" ".join(str(one.get("message") or one.get("note") or "").split()) for one in given]

    def preempted(self) -> list[str]:
        """Return the pods that the scheduler preempted for a pod of higher priority, as ``Pod namespace/name``."""
        gone = [at for at, events in self._events.items() if any(one.get("reason") == "Preempted" for one in events)]
        return [f"Pod {namespace}/{name}" for kind, namespace, name in gone if kind == "Pod"]

    def log_lines(self, pattern: str) -> Iterator[tuple[Manifest, str]]:
        """Yield pairs: a pod of a GPU component, and the first line of its log that matches a pattern.

        The pairs omit pods that probably work, and pods without such a line.
        """
        wanted = re.compile(pattern, re.IGNORECASE)
        for pod in filter(self.is_suspicious, self.program_pods()):
            ends = [str(state.get("message") or "") for _, state in container_states(pod)]
            lines = [*self.snapshot.logs.get(key(pod), "").splitlines(), *"\n".join(ends).splitlines()]
            if line := next((line for line in lines if wanted.search(line)), None):
                yield pod, line

    def is_suspicious(self, pod: Manifest) -> bool:
        """Check whether a pod of a GPU component, such as the device plugin, probably does not work.

        The result is True if the pod is not ready, or if it is a device plugin on a node that advertises no GPU.
        """
        node = self.nodes.get(spec(pod).get("nodeName", ""))
        is_idle = program_of(pod) == "device plugin" and node is not None and not any(offered(node).values())
        return not is_ready(pod) or is_idle


def offered(node: Manifest) -> dict[str, int]:
    """Return the GPU resources in ``allocatable`` of a node, by name of the resource."""
    return gpus(status(node).get("allocatable") or {})


def _has_gpu(node: Manifest) -> bool:
    stated = {**labels(node), **(metadata(node).get("annotations") or {})}
    is_labeled = any(_GPU_LABELS.match(name) and value not in ("false", "0") for name, value in stated.items())
    return is_labeled or bool(gpus(status(node).get("capacity") or {}))


def program_of(manifest: Manifest) -> str | None:
    """Return the name of the GPU component that an object runs, such as ``device plugin``; None for other objects."""
    specs: Iterable[dict[str, Any]] = list(pod_specs(manifest))
    if any(map(asked, specs)):
        return None
    named = [labels(manifest).get(name, "") for name in _NAMING]
    inside = [
        str(one.get(part, "")) for one_spec in specs for one in containers(one_spec) for part in ("name", "image")
    ]
    text = " ".join([str(metadata(manifest).get("name")), *named, *inside])
    return next((program for program, pattern in _PROGRAMS.items() if pattern.search(text)), None)
