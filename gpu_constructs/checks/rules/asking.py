"""Rules for the GPU requests of pods and the defaults of namespaces: R01 to R03, R07 to R09, R18, R22, R27."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, islice

from gpu_constructs.checks.rules.vram_units import miscounted_nodes, units_of
from gpu_constructs.errors import did_you_mean, then
from gpu_constructs.facts.app import Ask, Facts, Pod
from gpu_constructs.facts.finding import Finding
from gpu_constructs.facts.provided import is_among
from gpu_constructs.facts.readable import (
    Manifest,
    amounts,
    annotations_of,
    at,
    members,
    name_of,
    namespace_of,
    quantity,
)
from gpu_constructs.kube.pod_specs import containers
from gpu_constructs.records import regex

_VENDOR = "nvidia.com/"
_MIG = "nvidia.com/mig-"
_MIG_PROFILE = regex(r"(?:[1-7]c\.)?([1-7]g\.[0-9]+gb)((?:\.me|\.all|\.gfx|[.-]me)*)\Z")

# Resources and annotations that request a part of a GPU, each with the program that defines it and its scheduler.
# Source: documentation of device sharing in Project-HAMi/HAMi, volcano-sh/devices and NVIDIA/KAI-Scheduler
_FRACTIONS: dict[str, tuple[str, str]] = {
    "nvidia.com/gpumem": ("HAMi", "hami-scheduler"),
    "nvidia.com/gpumem-percentage": ("HAMi", "hami-scheduler"),
    "nvidia.com/gpucores": ("HAMi", "hami-scheduler"),
    "nvidia.com/priority": ("HAMi", "hami-scheduler"),
    "volcano.sh/vgpu-number": ("Volcano", "volcano"),
    "volcano.sh/vgpu-memory": ("Volcano", "volcano"),
    "volcano.sh/vgpu-memory-percentage": ("Volcano", "volcano"),
    "volcano.sh/vgpu-cores": ("Volcano", "volcano"),
    "volcano.sh/gpu-memory": ("Volcano", "volcano"),
    "volcano.sh/gpu-number": ("Volcano", "volcano"),
    "gpu-fraction": ("KAI", "kai-scheduler"),
    "gpu-memory": ("KAI", "kai-scheduler"),
    "gpu-fraction-num-devices": ("KAI", "kai-scheduler"),
}
_OF_GPUS = regex(r"(?:gpu|mig)\.nvidia\.com\Z")


def amounts_are_whole_numbers(facts: Facts) -> Iterator[Finding]:
    """Yield problems: amounts of GPUs that are not whole numbers above 0 (R01).

    Kubernetes rejects a fraction of an extended resource. An amount of 0 has no effect.
    """
    for pod, container, section, resource, amount in _requests(facts):
        number = quantity(amount)
        is_gpu = facts.is_gpu(resource)
        if number is None or number < 0 or (is_gpu and not number) or number % 1 != 0:
            why = "leave it out of a container without a GPU"
            if number is not None and number % 1 != 0:
                why = "share GPUs (Sharing.time_slicing, Sharing.mps, MIG), and request 1 slot"
            yield Finding(
                pod.index,
                f"{section}[{resource!r}] of container {container!r} must be a whole number of at least "
                f"{is_gpu:d}, got {amount!r}{then(why)}",
            )


def _requests(facts: Facts) -> Iterator[tuple[Pod, object, str, str, object]]:
    """Yield a tuple for each amount of GPUs in a container: pod, container name, section, resource and amount.

    The section is ``requests`` or ``limits``.
    """
    for pod in (*facts.pods, *facts.completed_pods):
        for container in containers(pod.spec):
            for section in ("requests", "limits") if container.get("resources") else ():
                for resource, amount in amounts(container, section).items():
                    # Katib replaces a placeholder in the amount later.
                    is_gpu = resource.startswith(_VENDOR) or facts.is_gpu(resource)
                    if is_gpu and "${" not in str(amount):
                        yield pod, container.get("name"), section, resource, amount


def _all_asks(facts: Facts) -> Iterator[Ask]:
    """Yield the GPU requests of all pods, including the pods of TrainJobs."""
    yield from facts.asks
    for pod in facts.completed_pods:
        yield from pod.asks


def requests_equal_limits(facts: Facts) -> Iterator[Finding]:
    """Yield problems: containers whose request for GPUs differs from the limit (R02).

    Kubernetes cannot overcommit an extended resource.
    """
    for ask in _all_asks(facts):
        limits, requests = amounts(ask.container, "limits"), amounts(ask.container, "requests")
        if ask.resource not in limits or ask.resource not in requests:
            continue
        limit, request = limits[ask.resource], requests[ask.resource]
        if quantity(limit) != quantity(request):
            yield Finding(
                ask.pod.index,
                f"requests[{ask.resource!r}] of container {ask.name!r} must equal its limit of {limit}, got {request}. "
                "Leave the request out, because Kubernetes copies the limit",
            )


def requests_have_limits(facts: Facts) -> Iterator[Finding]:
    """Yield problems: GPU requests without a limit (R03). Kubernetes rejects them."""
    for ask in _all_asks(facts):
        if ask.resource not in amounts(ask.container, "limits"):
            yield Finding(
                ask.pod.index,
                f"container {ask.name!r} requests {ask.amount} x {ask.resource} without a limit, which Kubernetes "
                "rejects. Write it under limits instead of requests",
            )


def shared_gpus_are_asked_for_one_by_one(facts: Facts) -> Iterator[Finding]:
    """Yield problems: requests for several slots of a shared GPU (R07).

    A slot is one unit of an extended resource that a node advertises. Two slots can be of the same GPU, so two slots
    are not two GPUs. With ``Sharing.vram_units``, each slot stands for an amount of GPU memory, so a pod can request
    several. The function also reports nodes whose slots cannot stand for GPU memory, such as nodes with several GPUs.
    """
    for provider, why, is_warning in miscounted_nodes(facts):
        yield Finding(
            None,
            f"{why}. Use Sharing.time_slicing or another unit for that node, or declare GpuNode(sharing=...) if "
            "another plugin serves that node",
            providers=(provider,),
            is_warning=is_warning,
        )
    refusing: dict[str, tuple[int, str]] = {}
    for provider, offer in enumerate(facts.provided):
        for resource, sharing in offer.gpu_resources.items():
            if sharing.fail_requests_greater_than_one:
                refusing.setdefault(resource, (provider, sharing.strategy.replace("-", "_")))
    for ask in facts.asks:
        units = units_of(facts, ask.resource)
        if len(units) > 1:
            meanings = " or as ".join(
                sorted("a time slice or a whole GPU" if one is None else f"{one} of GPU memory" for one in units)
            )
            yield Finding(
                ask.pod.index,
                f"requests {ask.amount} x {ask.resource}, which nodes of this app count as {meanings}. Pass "
                "sharing=Sharing.vram_units(..., rename_by_default=True) to the DevicePluginChart or GpuOperator, so "
                "that each kind of slot has its own resource name. If its "
                "pods select the right nodes, annotate the object with gpu-constructs/ignore-rules=R07 instead",
                is_warning=True,
            )
            continue
        if ask.count < 2 or units - {None}:
            continue
        if ask.resource in refusing:
            provider, factory = refusing[ask.resource]
            yield Finding(
                ask.pod.index,
                f"requests {ask.amount} x {ask.resource}, but {{0}} rejects this (fail_requests_greater_than_one), "
                "because two slots are not two GPUs. Request 1, or pass "
                f"Sharing.{factory}(..., fail_requests_greater_than_one=False)",
                providers=(provider,),
            )
        elif (shared := facts.sharing_of(ask.resource)) and not facts.is_exclusive_somewhere(ask.resource):
            yield Finding(
                ask.pod.index,
                f"requests {ask.amount} x {ask.resource}, which {{0}} shares: two slots can be of the same GPU, and "
                "then give no more time or memory. Request 1, or annotate the object with "
                "gpu-constructs/ignore-rules=R07",
                providers=(shared[0],),
                is_warning=True,
            )


def gpus_asked_for_are_advertised(facts: Facts) -> Iterator[Finding]:
    """Yield problems: requests for a GPU resource that no device plugin of the app advertises on nodes (R08).

    The function reports nothing if the app has no device plugin.
    """
    if not facts.offered:
        return
    for ask in facts.asks:
        if not is_among(ask.resource, facts.offered) and ask.resource not in facts.declared:
            yield Finding(
                ask.pod.index,
                f"requests {ask.amount} x {ask.resource}, which no device plugin of this app advertises, so its pods "
                f"stay pending. Request {' or '.join(facts.offered)}",
            )


def mig_profiles_are_known(facts: Facts) -> Iterator[Finding]:
    """Yield problems: requests for a MIG profile that no GPU of the inventory has (R09)."""
    profiles, nameless = _profiles(facts), _without_attributes(facts)
    for ask in facts.asks:
        if not ask.resource.startswith(_MIG):
            continue
        # The device plugin adds ".shared" to the name of a shared resource.
        profile = ask.resource.removeprefix(_MIG).removesuffix(".shared")
        match = _MIG_PROFILE.match(profile)
        if match is None:
            yield Finding(
                ask.pod.index,
                f"requests {ask.resource}, which must end in a MIG profile like '1g.10gb' or '1g.10gb.me', got "
                f"{profile!r}",
            )
        elif match[2] and nameless is not None:
            yield Finding(
                ask.pod.index,
                f"requests {ask.resource}, but {{0}} advertises {_MIG}{match[1]}, because releases of the device "
                "plugin before 0.20.0 omit suffixes such as '.me' (NVIDIA/k8s-device-plugin#1807). Request that "
                "resource, or use a later release",
                providers=(nameless,),
            )
        elif profiles is not None and match[1] not in profiles:
            has = (
                f"request one of {', '.join(profiles)}"
                if profiles
                else "its GPUs do not support MIG. Request 'nvidia.com/gpu'"
            )
            yield Finding(
                ask.pod.index,
                f"requests {ask.resource}, a profile that no GPU of the inventory has"
                f"{did_you_mean(match[1], profiles)}{then(has)}",
            )


def _without_attributes(facts: Facts) -> int | None:
    """Return the index in ``Facts.provided`` of a construct whose device plugin omits MIG attributes in resource names.

    For example, such a device plugin advertises ``1g.10gb+me`` as ``nvidia.com/mig-1g.10gb``. Return None if there is
    no such construct, or if another device plugin of the app includes the attributes.
    """
    named = [
        (index, one.names_mig_attributes) for index, offer in enumerate(facts.provided) for one in offer.gpu_offers
    ]
    return named[0][0] if named and not any(names for _, names in named) else None


def _profiles(facts: Facts) -> list[str] | None:
    """Return the MIG profiles of all GPUs in the inventory. Return None if the profiles of some GPU are not known."""
    each = [node.mig_profiles for node in facts.inventory.nodes] if facts.inventory else [None]
    if None in each:
        return None
    return list(dict.fromkeys(profile for profiles in each for profile in profiles or ()))


def parts_of_gpus_have_a_scheduler(facts: Facts) -> Iterator[Finding]:
    """Yield problems: pods that request a part of a GPU without the scheduler that supports such requests (R22).

    HAMi, Volcano and KAI define resources and annotations for parts of a GPU. Kubernetes and the NVIDIA device plugin
    do not support these, so the pods stay pending or get a whole GPU.
    """
    for pod in facts.pods:
        asked = [
            key
            for container in containers(pod.spec)
            if container.get("resources")
            for section in ("limits", "requests")
            for key in amounts(container, section)
        ]
        asked += annotations_of({"metadata": pod.metadata})
        for key in dict.fromkeys(asked):
            if key not in _FRACTIONS or key in facts.offered:
                continue
            program, scheduler = _FRACTIONS[key]
            if pod.spec.get("schedulerName") != scheduler:
                yield Finding(
                    pod.index,
                    f"requests a part of a GPU with {key!r}, which only {program} supports. Share GPUs with "
                    "DevicePluginChart(sharing=...) and request 1 x 'nvidia.com/gpu', or set schedulerName "
                    f"{scheduler!r} if the cluster has {program}",
                )


def _classes_of(claim: Manifest | None) -> list[str]:
    """Return the names of the DeviceClasses that a ResourceClaim or a ResourceClaimTemplate requests."""
    requests = members(at(claim, "spec.spec.devices" if at(claim, "spec.spec") else "spec.devices").get("requests"))
    wanted = [one for each in requests for one in (each, at(each, "exactly"), *members(each.get("firstAvailable")))]
    return [str(one["deviceClassName"]) for one in wanted if one.get("deviceClassName")]


def gpus_come_by_one_way(facts: Facts) -> Iterator[Finding]:
    """Yield problems: pods that request GPUs from both the NVIDIA device plugin and the NVIDIA DRA driver (R27).

    The DRA driver can allocate a GPU that the device plugin has already allocated, and the reverse.
    """
    claims = {
        (kind, namespace_of(manifest), name_of(manifest)): manifest
        for kind in ("ResourceClaim", "ResourceClaimTemplate")
        for _, manifest in facts.of_kind(("resource.k8s.io", kind))
    }
    for pod in facts.gpu_pods:
        for claim in pod.spec.get("resourceClaims") or ():
            kind = "ResourceClaim" if claim.get("resourceClaimName") else "ResourceClaimTemplate"
            name = str(claim.get(f"r{kind[1:]}Name"))
            both = filter(_OF_GPUS.match, _classes_of(claims.get((kind, namespace_of(pod.manifest), name))))
            for device_class in islice(both, 1):
                yield Finding(
                    pod.index,
                    f"requests GPUs twice, with the limit of {pod.asks[0].resource} and with the claim "
                    f"{claim.get('name')!r} of device class {device_class!r}, whose drivers do not coordinate. "
                    "Remove one of the two",
                )


def namespaces_give_no_gpus_away(facts: Facts) -> Iterator[Finding]:
    """Yield problems: LimitRanges with a default amount of GPUs, and ResourceQuotas with a key without effect (R18).

    A default adds GPUs to every container that requests none. For an extended resource, a ResourceQuota counts only
    requests, so a key such as ``limits.nvidia.com/gpu`` has no effect.
    """
    for index, limit in chain.from_iterable(facts.limit_ranges.values()):
        yield from _of_limits(facts, index, limit)
    for index, manifest in facts.of_kind(("", "ResourceQuota")):
        for key in at(manifest, "spec.hard"):
            resource = key.removeprefix("limits.")
            if key.startswith(("limits.nvidia.com/", _VENDOR)) or facts.is_gpu(resource):
                yield Finding(
                    index,
                    f"hard[{key!r}] has no effect: a quota counts only requests of an extended resource. Write "
                    f"{'requests.' + resource!r}",
                )


def _of_limits(facts: Facts, index: int, limit: Manifest) -> Iterator[Finding]:
    """Yield a problem for each default amount of GPUs in one item of a LimitRange.

    Args:
        facts: Facts that the library derives from the objects of the app.
        index: Index of the LimitRange in ``Facts.objects``.
        limit: Item of ``spec.limits`` of the LimitRange.
    """
    given = [(key, *item) for key in ("default", "defaultRequest") for item in at(limit, key).items()]
    for key, resource, amount in given:
        if str(amount) != "0" and (resource.startswith(_VENDOR) or facts.is_gpu(resource)):
            yield Finding(
                index,
                f"{key}[{resource!r}] gives a GPU to every container in the namespace that requests none. Write 0, and "
                "limit requests with max",
            )
    # Kubernetes copies max to a missing default (SetDefaults_LimitRangeItem).
    for resource in sorted(at(limit, "max").keys() - at(limit, "default")) if limit.get("type") == "Container" else ():
        if resource.startswith(_VENDOR) or facts.is_gpu(resource):
            yield Finding(
                index,
                f"max[{resource!r}] without a default is also the default, which gives a GPU to every container in the "
                f"namespace that requests none. Add default[{resource!r}] = 0",
            )
