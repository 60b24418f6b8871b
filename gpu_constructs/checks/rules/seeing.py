"""Rules for the access of containers to GPUs, and a rule for credentials: R04 to R06, R13 to R15, R21, R23, R31."""

from __future__ import annotations

from collections.abc import Iterator

from gpu_constructs.checks.rules.vram_units import units_of
from gpu_constructs.facts.app import Facts, Pod
from gpu_constructs.facts.finding import Finding
from gpu_constructs.facts.readable import Manifest, annotations_of, labels_of
from gpu_constructs.kube import credentials, pod_specs
from gpu_constructs.kube.annotations import VISIBLE_DEVICES_CHOICE

_VISIBLE = "NVIDIA_VISIBLE_DEVICES"
# These kinds contain containers of KServe. The runtime class is that of the InferenceService.
_COMPLETED = (("serving.kserve.io", "ServingRuntime"), ("serving.kserve.io", "ClusterServingRuntime"))


def gpu_pods_name_the_runtime_class(facts: Facts) -> Iterator[Finding]:
    """Yield problems: GPU pods that do not name the NVIDIA RuntimeClass, although the nodes need it (R04).

    The containers of such a pod have neither GPU devices nor driver libraries.
    """
    if facts.gpu_runtime != "runtime-class":
        return
    name = (facts.nvidia_runtime_classes or ["nvidia"])[0]
    for pod in facts.gpu_pods:
        # A workload of this library has its own platform, which can differ from the platform of the other constructs.
        is_ours = labels_of(pod.manifest).get("app.kubernetes.io/managed-by") == "cdk8s"
        if pod.spec.get("runtimeClassName") or is_ours or facts.kinds[pod.index] in _COMPLETED:
            continue
        if not facts.runtime_class_is_injected(pod.manifest):
            yield Finding(
                pod.index,
                "has a GPU but no runtime class, so its containers do not find the driver. Set "
                f"runtimeClassName {name!r}, or declare External(app, 'existing', gpu_runtime='default') if the NVIDIA "
                "runtime is the default of the nodes",
            )


def allocated_gpus_are_not_overridden(facts: Facts) -> Iterator[Finding]:
    """Yield problems: containers that set ``NVIDIA_VISIBLE_DEVICES`` (R05).

    The variable overrides the GPU that the device plugin selects.
    """
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
                does = "it overrides the allocated GPU, and 'all' exposes every GPU of the node"
                if facts.gpu_runtime == "cdi":
                    does = "it has no effect with CDI, and it overrides the allocated GPU on a node without CDI"
                yield Finding(
                    pod.index,
                    f"container {container.get('name')!r} has a GPU and sets NVIDIA_VISIBLE_DEVICES to "
                    f"{variable.get('value', 'a value from elsewhere')!r}: {does}. Leave it out, or annotate the "
                    f"object with {VISIBLE_DEVICES_CHOICE}=unmanaged",
                    is_warning=is_harmless,
                )


def other_containers_see_no_gpu(facts: Facts) -> Iterator[Finding]:
    """Yield problems: containers without a GPU request that can have access to all GPUs of the node (R06).

    The function checks only GPU pods. CUDA images set ``NVIDIA_VISIBLE_DEVICES=all``, which the NVIDIA runtime reads.
    """
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
                    f"container {container.get('name')!r} has no GPU, but the NVIDIA runtime of the pod exposes every "
                    "GPU of the node to images with NVIDIA_VISIBLE_DEVICES=all, such as CUDA images. Set "
                    "NVIDIA_VISIBLE_DEVICES=void in that container",
                )


def gpu_containers_are_not_privileged(facts: Facts) -> Iterator[Finding]:
    """Yield problems: privileged GPU containers, which have access to all devices of the node (R13)."""
    for pod, container in facts.gpu_containers:
        if (container.get("securityContext") or {}).get("privileged") is True:
            yield Finding(
                pod.index,
                f"container {container.get('name')!r} has a GPU and is privileged, which gives it access to the GPUs "
                "of other pods. Leave privileged out, because GPU access needs no additional rights",
            )


def memory_shared_with_mps_is_not_hidden(facts: Facts) -> Iterator[Finding]:
    """Yield problems: volumes at ``/dev/shm`` that hide the shared memory of the MPS control daemon (R14)."""
    for ask in facts.asks:
        shared = facts.sharing_of(ask.resource)
        if shared is None or shared[1].strategy != "mps":
            continue
        if "/dev/shm" in {str(mount.get("mountPath")).rstrip("/") for mount in ask.container.get("volumeMounts") or ()}:
            yield Finding(
                ask.pod.index,
                f"container {ask.name!r} mounts a volume at /dev/shm, where {{0}} mounts the shared memory of the MPS "
                "control daemon. Leave "
                "shared_memory= and volumes at /dev/shm out",
                providers=(shared[0],),
            )


def users_of_mps_are_one(facts: Facts) -> Iterator[Finding]:
    """Yield problems: pods that share a GPU by MPS but run as different users (R15).

    An MPS server serves only one user ID at a time, so the pods wait for each other.
    """
    first: dict[str, tuple[Pod, int]] = {}
    reported: set[int] = set()
    for ask in facts.asks:
        shared = facts.sharing_of(ask.resource)
        user = _user(ask.pod, ask.container)
        if shared is None or shared[1].strategy != "mps" or user is None:
            continue
        pod, other = first.setdefault(ask.resource, (ask.pod, user))
        if user != other and ask.pod.index not in reported:
            reported.add(ask.pod.index)
            yield Finding(
                ask.pod.index,
                f"runs as user {user}, but {{0}} runs as user {other}. Both share {ask.resource} by MPS, which serves "
                "only one user at a time, so they wait for each other. Set the same runAsUser for both",
                (pod.index,),
            )


def _user(pod: Pod, container: Manifest) -> int | None:
    """Return the user ID (``runAsUser``) of a container; None if neither the container nor the pod sets it."""
    for holder in (container, pod.spec):
        user = (holder.get("securityContext") or {}).get("runAsUser")
        if isinstance(user, int):
            return user
    return None


def users_of_the_node_are_the_pods(facts: Facts) -> Iterator[Finding]:
    """Yield problems: GPU pods with a user namespace, that is ``hostUsers: false`` (R21).

    If the nodes do not use CDI, the NVIDIA runtime cannot mount the NVIDIA driver into such a pod.
    """
    for pod in facts.gpu_pods:
        if pod.spec.get("hostUsers") is False and facts.gpu_runtime != "cdi":
            yield Finding(
                pod.index,
                "has a GPU in a user namespace (hostUsers: false), where the NVIDIA runtime cannot mount the driver "
                "without CDI. Leave hostUsers out, or declare External(app, 'existing', gpu_runtime='cdi') if the "
                "nodes use CDI",
            )


def gpus_are_held_by_one_container(facts: Facts) -> Iterator[Finding]:
    """Yield problems: pods in which several containers request GPUs, so that each gets its own GPU (R23)."""
    for pod in facts.gpu_pods:
        # With memory units, the slots of all containers are on the same GPU.
        asks = [ask for ask in pod.lasting() if not _counts_memory(facts, ask.resource)]
        holding = {id(ask.container): ask for ask in asks}
        if len(holding) > 1:
            names = " and ".join(repr(ask.name) for ask in holding.values())
            yield Finding(
                pod.index,
                f"containers {names} each have their own GPUs, {len(holding)} in total. Request the GPU in one of "
                "them, or annotate the object with gpu-constructs/ignore-rules=R23 if each needs one",
            )


def _counts_memory(facts: Facts, resource: str) -> bool:
    """Check whether all slots of a resource stand for an amount of GPU memory."""
    units = units_of(facts, resource)
    return bool(units) and None not in units


def credentials_stay_in_secrets(facts: Facts) -> Iterator[Finding]:
    """Yield problems: credentials in plain text in containers (R31).

    For example, a value of an environment variable is an access token. Anyone who can read the manifests in Git can
    then read the credential.
    """
    for pod in facts.pods:
        for container in pod_specs.containers(pod.spec):
            for field, found in credentials.in_container(container):
                yield Finding(
                    pod.index,
                    f"{field} of container {container.get('name')!r} must not be a credential in plain text, got "
                    f"{found}. Use valueFrom.secretKeyRef, or use not_a_secret(...) if the value is public",
                )
