"""GPUs for a workload that another library or a file brings."""

from __future__ import annotations

import dataclasses
import inspect
import sys
from collections.abc import Sequence
from contextlib import suppress
from types import FrameType

import jsii
from cdk8s import ApiObject
from constructs import Construct, IConstruct, IMixin

from gpu_constructs.catalog.platforms import DEFAULT_PLATFORM, Platform
from gpu_constructs.errors import GpuConstructsError, ShortErrors, refuse_if, short_errors, users_line, warn
from gpu_constructs.kube import fields, pod_specs
from gpu_constructs.kube.placement import Toleration
from gpu_constructs.kube.references import NamedObject
from gpu_constructs.tree.construct import GpuObject
from gpu_constructs.tree.manifest import Manifest
from gpu_constructs.workload.gpu_allocation import allocation_of
from gpu_constructs.workload.gpu_in_pod import ContainerMissingError, VisibleDevices
from gpu_constructs.workload.gpu_profile import GpuProfile, profile_of
from gpu_constructs.workload.gpu_request import GpuRequest
from gpu_constructs.workload.granted import (
    Granted,
    Grants,
    claim_name_of,
    granted_in_place_of,
    path_of,
    put_in_place_of,
)
from gpu_constructs.workload.manifest_access import ManifestAccess, UpdateChoice
from gpu_constructs.workload.options import annotations_of


@jsii.implements(IMixin)
class GpuAccess(metaclass=ShortErrors):
    """GPUs for a workload, whoever made it: ``deployment.with_(GpuAccess(count=1))`` or ``.apply_to(x)``.

    ``x`` is a workload of cdk8s-plus of any release, a typed object, a raw ``ApiObject``, an ``Include`` or any
    construct with one of them in it: Deployment, StatefulSet, DaemonSet, Job, CronJob, Pod, and the custom resources
    of Kubeflow, Katib, KServe, JobSet, LeaderWorkerSet, Ray, Volcano and Argo Rollouts. Given to a whole chart, it
    reaches every workload in it.

    Written into each pod: the limit (or claim), runtime class, node selector, affinity and tolerations, as for
    ``GpuWorkload``; ``NVIDIA_VISIBLE_DEVICES=void`` on every container that holds no GPU; for a Deployment that updates
    by Kubernetes' defaults a strategy that cannot wait for a GPU of its own old pod.

    It is laid over the object when that is rendered, after whatever was added to it later, and ``add_json_patch`` of
    ``ApiObject.of(x)`` then applies to plain data, last. No schema of cdk8s-plus takes fields away that it does not
    know. Given twice, it changes nothing. At synth it is checked that the GPU is really in what comes out.

    What cannot be given (a ConfigMap holds no pods) is refused at once by ``apply_to``, and at synth, with the line of
    the call, by ``with_``, through which no error passes in a readable form.

    Source:
        constructs documentation, "Mixins"; Kubernetes documentation, "Schedule GPUs"
    """

    _NOT_TAKEN = {  # noqa: RUF012
        "gpus": "pass count=..., or request=GpuRequest(...)",
        **{
            member.name: f"pass request=GpuRequest({member.name}=...)"
            for member in dataclasses.fields(GpuRequest)
            if member.name != "count"
        },
    }

    @short_errors
    def __init__(
        self,
        *,
        count: int | None = None,
        request: GpuRequest | None = None,
        profile: GpuProfile | None = None,
        platform: Platform = DEFAULT_PLATFORM,
        tolerations: Sequence[Toleration] = (),
        runtime_class: str | NamedObject | None = None,
        container: str | None = None,
        pod_spec: str | None = None,
        shared_memory: str | None = None,
        strategy: UpdateChoice = "one-at-a-time",
        visible_devices: VisibleDevices = "managed",
        claim_name: str | None = None,
        ignore_rules: Sequence[str] = (),
    ) -> None:
        """Describe the GPUs.

        Args:
            count: GPUs of each pod; short for ``request=GpuRequest(count=...)``. 1 without either.
            request: Which GPUs, in full.
            profile: What the GPU workloads of the cluster have in common. None: one of ``platform`` alone.
            platform: ``Talos("1.12")``, and with it the runtime class ``nvidia``, or ``Kubernetes()``. A profile has
                one of its own, so not both.
            tolerations: Taints of the GPU nodes, on top of ``nvidia.com/gpu`` and the profile's.
            runtime_class: Name or object. None: the profile or platform decides.
            container: Name of the container that gets them. None: the one its operator names (``pytorch`` of a
                PyTorchJob), else the first.
            pod_spec: Where the pods are in a kind that is not known: ``spec.groups[*].template.spec``.
            shared_memory: Size of ``/dev/shm`` for that container; it counts against its memory limit.
            strategy: How pods are replaced. ``one-at-a-time`` changes a Deployment that updates by Kubernetes' default,
                whose additional pod waits for a GPU that may never be free; ``unchanged`` leaves it. A ``Strategy``
                is set whatever was there: ``Strategy.recreate()`` for a chart that surges.
            visible_devices: ``unmanaged`` lets the container set ``NVIDIA_VISIBLE_DEVICES``, and with it choose GPUs.
            claim_name: Name of the ResourceClaimTemplate, where claims are made. None: the object's with ``-gpu``
                behind it; two objects of one name and of different kinds need names of their own.
            ignore_rules: Codes of rules that ``synth`` does not hold against the object.

        Raises:
            GpuConstructsError: A value above is not allowed.
        """
        given = {k: v for k, v in locals().items() if k not in ("self", "count")}
        fields.arguments(inspect.unwrap(type(self).__init__), given)
        if count is not None and request is not None:
            raise GpuConstructsError("count and request must not both be given; pass GpuRequest(count=...)")
        if shared_memory is not None:
            _check_shared_memory(shared_memory)
        if claim_name is not None:
            fields.dns_subdomain("claim_name", claim_name)
        annotations_of(None, GpuRequest(), ignore_rules)
        profile = profile_of(profile, platform, tolerations, None, runtime_class)
        profile.check_memory_of_mps(() if shared_memory is None else ["/dev/shm"])
        self._access = ManifestAccess(
            allocation=allocation_of(request or (1 if count is None else count), profile, called="count"),
            container=container,
            pod_spec=pod_spec,
            shared_memory=shared_memory,
            visible_devices=visible_devices,
            strategy=strategy,
            ignore_rules=tuple(ignore_rules),
        )
        self._claim_name = claim_name
        self._call: FrameType | None = None

    def supports(self, construct: IConstruct) -> bool:
        """Check whether ``with_`` should hand a construct over: the one it was called on, whatever that is.

        It asks for each construct below that one too, which ``apply_to`` looks through by itself; to say no to one
        without pods would leave it out in silence.
        """
        call = _call_of_with()
        if call is not None and call is self._call:
            return False
        # Held so that no later call can have the same frame.
        self._call = call
        return isinstance(construct, Construct)

    def apply_to(self, construct: IConstruct) -> None:
        """Add the GPUs to a workload, or to every workload in a construct.

        Args:
            construct: The workload, an object, an Include or a chart.

        Raises:
            GpuConstructsError: It holds no pods, or something in it contradicts.
        """
        if str(sys._getframe(1).f_globals.get("__name__", "")).startswith("jsii."):
            self._apply_from_bridge(construct)
            return
        try:
            _apply(self._access, self._claim_name, construct)
        except GpuConstructsError as error:
            problem = error.at(path_of(construct))
        else:
            return
        raise problem.with_traceback(None) from None

    def _apply_from_bridge(self, construct: IConstruct) -> None:
        grants = Grants.of(construct)
        try:
            _apply(self._access, self._claim_name, construct)
        except GpuConstructsError as error:
            path = error.path or path_of(construct)
            grants.refused.append(f"{path}: GpuAccess at {users_line()}: {error.problem}")


def _apply(access: ManifestAccess, claim_name: str | None, construct: IConstruct) -> None:
    if not isinstance(construct, Construct):
        raise GpuConstructsError(f"GpuAccess must be given to a construct; got {type(construct).__name__}")
    targets = _targets(access, construct)
    # First all of them: a refusal must leave none changed.
    for target in targets:
        _check(access, target, claim_name)
    for target in targets:
        granted = granted_in_place_of(target) or put_in_place_of(target)
        granted.give(access, claim_name)


def _targets(access: ManifestAccess, construct: Construct) -> list[ApiObject]:
    """Return the objects in a construct that get GPUs."""
    if isinstance(construct, ApiObject):
        return [construct]
    objects = [one for one in construct.node.find_all() if isinstance(one, ApiObject)]
    # Objects of this library have the GPUs that they are for, and others are better without.
    targets = [one for one in objects if not isinstance(one, Manifest) and _may_hold(access, one)]
    if not targets and isinstance(construct, GpuObject):
        targets = [one for one in objects if one is construct.api_object]
    if targets:
        return targets
    if len(objects) == 1 and not isinstance(objects[0], Manifest):
        access.check({"apiVersion": objects[0].api_version, "kind": objects[0].kind})
    raise GpuConstructsError(
        "nothing in it holds a pod template but what this library made itself, so there is nothing to give a "
        "GPU to; give it to the workload, or say where its pods are: GpuAccess(pod_spec='spec.….template.spec')"
    )


def _may_hold(access: ManifestAccess, one: ApiObject) -> bool:
    if isinstance(one, Granted) or one.kind == "List" or pod_specs.holds_pods(one.api_version, one.kind):
        return True
    path = access.pod_spec
    return path is not None and bool(pod_specs.pod_spec_paths(one.to_json(), path))


def _check(access: ManifestAccess, target: ApiObject, claim_name: str | None) -> None:
    """Raise if a target cannot get the GPUs, as far as it is there."""
    granted = granted_in_place_of(target)
    try:
        try:
            rendered = target.to_json() if granted is None else granted.before_hiding()
        except GpuConstructsError:
            raise
        except RuntimeError:
            # cdk8s-plus renders no pods without containers, and they may be added later.
            return
        access.check(rendered)
        if granted is not None:
            granted.check_claim(access)
        access.allocation.check_claim_namespace(rendered["metadata"].get("namespace") or "default")
        with suppress(ContainerMissingError):
            access.given(rendered, claim_template=claim_name or claim_name_of(rendered))
    except GpuConstructsError as error:
        raise error.at(path_of(target)) from None
    if not access.has_place_for_runtime_class(rendered) and access.allocation.runtime_class:
        warn(
            f"{path_of(target)}: pods of a {rendered['kind']} cannot name the runtime class "
            f"{access.allocation.runtime_class!r}; give GpuAccess to the InferenceService that uses it "
            "too, or let GpuRuntimeInjection set it"
        )


def _check_shared_memory(size: str) -> None:
    fields.size("shared_memory", size)
    refuse_if(not fields.amount(size), "shared_memory", "be more than nothing", size)


def _call_of_with() -> FrameType | None:
    """Return the call of ``with_`` on whose behalf we are called back."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_name == "with_" and frame.f_globals.get("__name__") == "constructs":
            return frame
        frame = frame.f_back
    return None
