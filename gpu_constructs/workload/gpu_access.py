"""`GpuAccess`: adds GPUs to a workload that another library or a file creates."""

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
    with_chart,
)
from gpu_constructs.workload.manifest_access import ManifestAccess, UpdateChoice
from gpu_constructs.workload.options import annotations_of
from gpu_constructs.workload.release_access import counted, is_release


@jsii.implements(IMixin)
class GpuAccess(metaclass=ShortErrors):
    """An option that adds GPUs to an existing workload. This library need not have created the workload.

    Use it as ``deployment.with_(GpuAccess(count=1))`` or as ``GpuAccess(count=1).apply_to(x)``.

    ``x`` can be a workload of any cdk8s-plus release, a typed object from ``cdk8s import``, an ``ApiObject``, an
    ``Include``, or a construct that contains one of them. Supported kinds are Deployment, StatefulSet, DaemonSet, Job,
    CronJob, Pod, and the custom resources of Kubeflow, Katib, KServe, JobSet, LeaderWorkerSet, Ray, Volcano and Argo
    Rollouts. ``x`` can also be a HelmRelease of Flux or an Application of Argo CD with a common Helm chart, such as
    ollama. The GPUs then become Helm values. If ``x`` is a cdk8s chart, each workload in the chart gets the GPUs.

    Each pod gets the same fields as in ``GpuWorkload``: the limit or claim, runtime class, node selector, affinity and
    tolerations. Each container that gets no GPU has ``NVIDIA_VISIBLE_DEVICES=void``. If a Deployment has the default
    update strategy, its strategy changes: a new pod then starts only after an old pod has freed its GPU.

    This library adds the fields when cdk8s renders the object, so you can still change the object after the call. JSON
    patches of ``ApiObject.of(x).add_json_patch(...)`` apply last. If you apply the same ``GpuAccess`` twice, the second
    call changes nothing. ``synth`` checks that the rendered objects contain the GPUs.

    If an object cannot have GPUs, such as a ConfigMap, ``apply_to`` raises an error. ``with_`` raises no error.
    Instead, ``synth`` reports the problem with the line of the call.

    Source: constructs documentation, "Mixins"; Kubernetes documentation, "Schedule GPUs"
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
        """Set the GPUs that the workload gets, and how its pods get them.

        Args:
            count: Number of GPUs of each pod, as a short form of ``request=GpuRequest(count=...)``. None: the number in
                ``request`` or, without a request, 1.
            request: Number and properties of the GPUs of each pod.
            profile: Settings that all GPU workloads of the cluster share. None: only the settings of ``platform``.
            platform: Platform of the cluster: ``Talos("1.12")``, with the runtime class ``nvidia``, or
                ``Kubernetes()``. A ``profile`` contains a platform, so do not set both.
            tolerations: Taints to tolerate, besides ``nvidia.com/gpu`` and those of the profile.
            runtime_class: Name or object of a RuntimeClass. None: the runtime class of the profile or of the platform.
            container: Name of the container that gets the GPUs. None: for some custom resources, the container with the
                name that their operator requires, such as ``pytorch`` for a PyTorchJob. For other kinds, the first
                container. If the chart of a Helm release has several workloads, the name also selects the workload.
            pod_spec: Path of the pod specs in a kind that the library does not know, such as
                ``spec.groups[*].template.spec``.
            shared_memory: Size of ``/dev/shm`` in the container with the GPUs, as a quantity. Data in it counts against
                the memory limit. None: the size stays as it is.
            strategy: Update strategy of a Deployment. ``one-at-a-time`` changes only the default strategy: an old pod
                then frees its GPU before a new pod starts. ``unchanged`` keeps the strategy. A ``Strategy`` replaces
                any strategy, for example ``Strategy.recreate()``.
            visible_devices: ``managed`` rejects the variable ``NVIDIA_VISIBLE_DEVICES`` in the container with the GPUs.
                ``unmanaged`` allows it, so that the container can choose its GPUs.
            claim_name: Name of the ResourceClaimTemplate, if the backend of the profile is ``Backend.dra_claims()``.
                None: the name of the object plus ``-gpu``. Two objects of different kinds with the same name need
                different claim names.
            ignore_rules: Codes of rules, such as ``R13``, that ``synth`` does not check for the object.

        Raises:
            GpuConstructsError: A value that is not allowed, or values that contradict each other.
        """
        given = {k: v for k, v in locals().items() if k not in ("self", "count")}
        fields.arguments(inspect.unwrap(type(self).__init__), given)
        if count is not None and request is not None:
            raise GpuConstructsError("count and request must not both have a value. Pass GpuRequest(count=...)")
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
        """Check whether ``with_`` applies this option to a construct.

        ``x.with_(...)`` calls this method first for ``x``, and then for each construct in ``x``. The result is True
        only for ``x``, because ``apply_to`` itself finds the constructs in ``x``.
        """
        call = _call_of_with()
        if call is not None and call is self._call:
            return False
        # Keep a reference to the frame of the call. Otherwise Python could reuse its identity for a later call.
        self._call = call
        return isinstance(construct, Construct)

    def apply_to(self, construct: IConstruct) -> None:
        """Add the GPUs to a workload, or to each workload in a construct.

        Args:
            construct: Workload, object, Include or chart.

        Raises:
            GpuConstructsError: The construct contains no pods, or a field of the pods conflicts with the GPUs.
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
        raise GpuConstructsError(f"GpuAccess needs a construct, got {type(construct).__name__}")
    targets = [(target, with_chart(access, target)) for target in _targets(access, construct)]
    # Check all objects before the first change, so that after an error none of them has changed.
    for target, of_chart in targets:
        _check(of_chart, target, claim_name)
    for target, of_chart in targets:
        granted = granted_in_place_of(target) or put_in_place_of(target)
        granted.give(of_chart, claim_name)


def _targets(access: ManifestAccess, construct: Construct) -> list[ApiObject]:
    """Return the objects in a construct that get the GPUs: the objects that create pods, such as Deployments.

    The result omits objects that this library creates, with one exception: if ``construct`` is a construct of this
    library and contains no other object that creates pods, the result is ``[construct.api_object]``.

    Args:
        access: Options of the ``GpuAccess``.
        construct: An object, which is then the only item of the result, or a construct that contains objects.

    Raises:
        GpuConstructsError: The result would be empty.
    """
    if isinstance(construct, ApiObject):
        return [construct]
    objects = [one for one in construct.node.find_all() if isinstance(one, ApiObject)]
    # Workloads of this library already have the GPUs that they need. Its other objects must not get any.
    targets = [one for one in objects if not isinstance(one, Manifest) and _may_hold(access, one)]
    if not targets and isinstance(construct, GpuObject):
        targets = [one for one in objects if one is construct.api_object]
    if targets:
        return targets
    if len(objects) == 1 and not isinstance(objects[0], Manifest):
        access.check({"apiVersion": objects[0].api_version, "kind": objects[0].kind})
    raise GpuConstructsError(
        "the construct must contain a pod template that this library did not create, got "
        f"{len(objects)} objects without one. Apply GpuAccess to the workload, or set the path of its pods: "
        "GpuAccess(pod_spec='spec.….template.spec')"
    )


def _may_hold(access: ManifestAccess, one: ApiObject) -> bool:
    if isinstance(one, Granted) or one.kind == "List" or pod_specs.holds_pods(one.api_version, one.kind):
        return True
    if is_release({"apiVersion": one.api_version, "kind": one.kind}):
        return bool(counted(one.to_json(), with_chart(access, one).chart))
    path = access.pod_spec
    return path is not None and bool(pod_specs.pod_spec_paths(one.to_json(), path))


def _check(access: ManifestAccess, target: ApiObject, claim_name: str | None) -> None:
    """Raise an error if the pods of an object can never get the GPUs. Warn if they lack a field for the runtime class.

    The function accepts pods without containers, because the user can add containers later.

    Args:
        access: Options of the ``GpuAccess``.
        target: Object that creates the pods.
        claim_name: Name of the ResourceClaimTemplate, if the pods need one. None: the default name.
    """
    granted = granted_in_place_of(target)
    try:
        try:
            rendered = target.to_json() if granted is None else granted.before_hiding()
        except GpuConstructsError:
            raise
        except RuntimeError:
            # cdk8s-plus cannot render pods without containers. The user can add the containers later.
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
            f"{access.allocation.runtime_class!r}. Apply GpuAccess to the InferenceService that uses this "
            "object too, or let GpuRuntimeInjection set the runtime class"
        )


def _check_shared_memory(size: str) -> None:
    fields.size("shared_memory", size)
    refuse_if(not fields.amount(size), "shared_memory", "be above 0", size)


def _call_of_with() -> FrameType | None:
    """Return the stack frame of the ``with_`` call that is in progress. Return None if ``with_`` is not running."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_name == "with_" and frame.f_globals.get("__name__") == "constructs":
            return frame
        frame = frame.f_back
    return None
