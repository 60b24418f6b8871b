"""What containers see of a node's GPUs, and readers of their manifests: R04 to R06, R13 to R15, R21, R23, R31."""

from __future__ import annotations

from collections.abc import Iterator

from gpu_constructs.checks.rules.vram_units import units_of
from gpu_constructs.facts.app import Facts, Pod
from gpu_constructs.facts.finding import Finding
from gpu_constructs.facts.readable import Manifest, annotations_of, labels_of
from gpu_constructs.kube import credentials, pod_specs
from gpu_constructs.kube.annotations import VISIBLE_DEVICES_CHOICE

_VISIBLE = "NVIDIA_VISIBLE_DEVICES"
# They say which containers KServe runs. The pod is that of an InferenceService, whose runtime class counts.
_COMPLETED = (("serving.kserve.io", "ServingRuntime"), ("serving.kserve.io", "ClusterServingRuntime"))


def gpu_pods_name_the_runtime_class(facts: Facts) -> Iterator[Finding]:
    """R04: the scheduler gives the pod a GPU, and the container finds neither devices nor libraries."""
    if facts.gpu_runtime != "runtime-class":
        return
    name = (facts.nvidia_runtime_classes or ["nvidia"])[0]
    for pod in facts.gpu_pods:
        # Our workloads ask the platform they are given, which may be another than the rest of the app has.
        is_ours = labels_of(pod.manifest).get("app.kubernetes.io/managed-by") == "cdk8s"
        if pod.spec.get("runtimeClassName") or is_ours or facts.kinds[pod.index] in _COMPLETED:
            continue
        if not facts.runtime_class_is_injected(pod.manifest):
            yield Finding(
                pod.index,
                f"holds a GPU and names no runtime class, so its containers would find no driver; set "
                f"runtimeClassName {name!r}, or declare External(app, 'existing', gpu_runtime='default') where "
                "NVIDIA's runtime is the nodes' default",
            )


def allocated_gpus_are_not_overridden(facts: Facts) -> Iterator[Finding]:
    """R05: a variable of the pod comes after the device plugin's, and wins."""
    for pod, container in facts.gpu_containers:
        if annotations_of(pod.manifest).get(VISIBLE_DEVICES_CHOICE) == "unmanaged":
            continue
        for variable in container.get("env") or ():
            if variable.get("name") == _VISIBLE:
                is_harmless = facts.gpu_runtime == "cdi" or (
                    facts.inventory is not None
                    and facts.inventory.has_single_gpu_nodes_only
                    and variable.get("value") == "all"
                )
                does = "it overrides the GPU that was allocated, and 'all' shows every GPU of the node"
                if facts.gpu_runtime == "cdi":
                    does = "where devices come by CDI it has no use, and on a node where they do not it would win"
                yield Finding(
                    pod.index,
                    f"container {container.get('name')!r} holds a GPU and sets NVIDIA_VISIBLE_DEVICES to "
                    f"{variable.get('value', 'a value from elsewhere')!r}: {does}; leave it out, or annotate the "
                    f"object with {VISIBLE_DEVICES_CHOICE}=unmanaged",
                    is_warning=is_harmless,
                )


def other_containers_see_no_gpu(facts: Facts) -> Iterator[Finding]:
    """R06: CUDA images ask for every GPU by a variable of their own, and NVIDIA's runtime listens."""
    for pod in facts.gpu_pods:
        runtime = pod.spec.get("runtimeClassName")
        is_nvidia = runtime in facts.nvidia_runtime_classes or str(runtime).startswith("nvidia")
        if not is_nvidia if runtime else facts.gpu_runtime != "default":
            continue
        holding = {id(ask.container) for ask in pod.asks}
        for container in pod_specs.containers(pod.spec):
            says = any(variable.get("name") == _VISIBLE for variable in container.get("env") or ())
            if id(container) not in holding and not says and not container.get("envFrom"):
                yield Finding(
                    pod.index,
                    f"container {container.get('name')!r} holds no GPU, but the pod runs under NVIDIA's runtime, which "
                    "shows every GPU of the node to an image that sets NVIDIA_VISIBLE_DEVICES=all, as CUDA images do; "
                    "set NVIDIA_VISIBLE_DEVICES=void in that container",
                )


def gpu_containers_are_not_privileged(facts: Facts) -> Iterator[Finding]:
    """R13: a privileged container has all devices of the node, whatever was allocated."""
    for pod, container in facts.gpu_containers:
        if (container.get("securityContext") or {}).get("privileged") is True:
            yield Finding(
                pod.index,
                f"container {container.get('name')!r} holds a GPU and is privileged, which shows it every GPU of the "
                "node, those of other pods too; leave privileged out, a GPU needs no rights",
            )


def memory_shared_with_mps_is_not_hidden(facts: Facts) -> Iterator[Finding]:
    """R14: the plugin mounts the MPS daemon's shared memory into every container that holds a slot."""
    for ask in facts.asks:
        shared = facts.sharing_of(ask.resource)
        if shared is None or shared[1].strategy != "mps":
            continue
        if "/dev/shm" in {str(mount.get("mountPath")).rstrip("/") for mount in ask.container.get("volumeMounts") or ()}:
            yield Finding(
                ask.pod.index,
                f"container {ask.name!r} mounts a volume of its own at /dev/shm, where {{0}}, which "
                "shares GPUs by MPS, mounts the memory through which containers reach the MPS server; leave "
                "shared_memory= and volumes at /dev/shm out",
                providers=(shared[0],),
            )


def users_of_mps_are_one(facts: Facts) -> Iterator[Finding]:
    """R15: MPS starts one server for each user, and only one of them has the GPU at a time."""
    first: dict[str, tuple[Pod, int]] = {}
    told: set[int] = set()
    for ask in facts.asks:
        shared = facts.sharing_of(ask.resource)
        user = _user(ask.pod, ask.container)
        if shared is None or shared[1].strategy != "mps" or user is None:
            continue
        pod, other = first.setdefault(ask.resource, (ask.pod, user))
        if user != other and ask.pod.index not in told:
            told.add(ask.pod.index)
            yield Finding(
                ask.pod.index,
                f"runs as user {user} and {{0}} as user {other}, and both share {ask.resource} by MPS, which serves "
                "one user of a GPU at a time, so they would wait for each other; give them the same runAsUser",
                (pod.index,),
            )


def _user(pod: Pod, container: Manifest) -> int | None:
    for holder in (container, pod.spec):
        user = (holder.get("securityContext") or {}).get("runAsUser")
        if isinstance(user, int):
            return user
    return None


def users_of_the_node_are_the_pods(facts: Facts) -> Iterator[Finding]:
    """R21: without CDI, NVIDIA's hook cannot mount into a user namespace."""
    for pod in facts.gpu_pods:
        if pod.spec.get("hostUsers") is False and facts.gpu_runtime != "cdi":
            yield Finding(
                pod.index,
                "holds a GPU in a user namespace of its own (hostUsers: false), where NVIDIA's runtime cannot mount "
                "the driver unless devices come by CDI; leave hostUsers out, or declare "
                "External(app, 'existing', gpu_runtime='cdi') where they do",
            )


def gpus_are_held_by_one_container(facts: Facts) -> Iterator[Finding]:
    """R23: GPUs are counted by container, so two containers hold two."""
    for pod in facts.gpu_pods:
        # Memory that slots count is of one GPU, whoever holds it.
        asks = [ask for ask in pod.lasting() if not _counts_memory(facts, ask.resource)]
        holding = {id(ask.container): ask for ask in asks}
        if len(holding) > 1:
            names = " and ".join(repr(ask.name) for ask in holding.values())
            yield Finding(
                pod.index,
                f"containers {names} each hold GPUs of their own, {len(holding)} in all and not one together; give "
                "the GPU to one, or annotate the object with gpu-constructs/ignore-rules=R23 where both need one",
            )


def _counts_memory(facts: Facts, resource: str) -> bool:
    units = units_of(facts, resource)
    return bool(units) and None not in units


def credentials_stay_in_secrets(facts: Facts) -> Iterator[Finding]:
    """R31: manifests end up in Git, so a credential in one is known to all who read the repository."""
    for pod in facts.pods:
        for container in pod_specs.containers(pod.spec):
            for field, found in credentials.in_container(container):
                yield Finding(
                    pod.index,
                    f"{field} of container {container.get('name')!r} must not be a credential in plain text; got "
                    f"{found}; use valueFrom.secretKeyRef, or not_a_secret(...) where it is public",
                )
