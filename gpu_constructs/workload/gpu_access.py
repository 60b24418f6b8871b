"""GPUs for a workload that somebody else made."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Sequence
from contextlib import suppress
from types import FrameType
from typing import Any

import jsii
from cdk8s import ApiObject, ApiObjectMetadata, Chart, JsonPatch
from constructs import Construct, IConstruct, IMixin, IValidation

from gpu_constructs import _fields
from gpu_constructs._manifest import Manifest, in_order, patched
from gpu_constructs.errors import GpuConstructsError, ShortErrors, short_errors, users_line, warn
from gpu_constructs.placement import Toleration
from gpu_constructs.platforms import DEFAULT_PLATFORM, Platform
from gpu_constructs.pod_specs import holds_pods
from gpu_constructs.workload.gpu_allocation import ContainerMissingError, VisibleDevices, allocation
from gpu_constructs.workload.gpu_profile import GpuProfile, profile_of
from gpu_constructs.workload.gpu_request import GpuRequest
from gpu_constructs.workload.manifest_access import ManifestAccess, UpdateChoice
from gpu_constructs.workload.resource_claim import resource_claim_template

_REGISTER = "_gpu_constructs_grants"


@jsii.implements(IMixin)
class GpuAccess(metaclass=ShortErrors):
    """Gives GPUs to a workload, whoever made it: ``deployment.with_(GpuAccess(count=1))`` or ``.apply_to(x)``.

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

    @short_errors
    def __init__(
        self,
        *,
        count: int | None = None,
        request: GpuRequest | None = None,
        profile: GpuProfile | None = None,
        platform: Platform = DEFAULT_PLATFORM,
        tolerations: Sequence[Toleration] = (),
        runtime_class: object = None,
        container: str | None = None,
        pod_spec: str | None = None,
        shared_memory: str | None = None,
        strategy: UpdateChoice = "one-at-a-time",
        visible_devices: VisibleDevices = "managed",
        ignore_rules: Sequence[str] = (),
    ) -> None:
        """Say what is given.

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
            strategy: ``unchanged`` leaves a Deployment's default update strategy, whose additional pod waits for a GPU
                that may never be free.
            visible_devices: ``unmanaged`` lets the container set ``NVIDIA_VISIBLE_DEVICES``, and with it choose GPUs.
            ignore_rules: Codes of rules that ``synth`` does not hold against the object.

        Raises:
            GpuConstructsError: A value above is not allowed.
        """
        given = {k: v for k, v in locals().items() if k not in ("self", "count")}
        _fields.arguments(inspect.unwrap(type(self).__init__), given)
        if count is not None and request is not None:
            raise GpuConstructsError("count and request must not both be given; pass GpuRequest(count=...)")
        if shared_memory is not None:
            _fields.quantity("shared_memory", shared_memory)
        profile = profile_of(profile, platform, tolerations, None, runtime_class)
        if shared_memory is not None and profile.sharing is not None and profile.sharing.strategy == "mps":
            raise GpuConstructsError(
                "shared_memory must be left out where GPUs are shared by MPS: at /dev/shm the device plugin mounts the "
                "memory through which the pod reaches the MPS server"
            )
        try:
            wanted = GpuRequest(count=1 if count is None else count) if request is None else request
            allocated = allocation(wanted, profile)
        except GpuConstructsError as error:
            given_as = "count" if request is None else "request.count"
            raise GpuConstructsError(error.problem.replace("request.count", given_as)) from None
        self._access = ManifestAccess(
            allocation=allocated,
            container=container,
            pod_spec=pod_spec,
            shared_memory=shared_memory,
            visible_devices=visible_devices,
            strategy=strategy,
            ignore_rules=tuple(ignore_rules),
        )
        self._call: FrameType | None = None

    def supports(self, construct: IConstruct) -> bool:
        """Tell whether ``with_`` should hand a construct over: the one it was called on, whatever that is.

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
        """Give the GPUs to a workload, or to every workload in a construct.

        Args:
            construct: The workload, an object, an Include or a chart.

        Raises:
            GpuConstructsError: It holds no pods, or something in it contradicts.
        """
        if str(sys._getframe(1).f_globals.get("__name__", "")).startswith("jsii."):
            self._apply_from_bridge(construct)
            return
        try:
            self._apply(construct)
        except GpuConstructsError as error:
            problem = error.at(_path(construct))
        else:
            return
        raise problem.with_traceback(None) from None

    def _apply_from_bridge(self, construct: IConstruct) -> None:
        grants = _Grants.of(construct)
        try:
            self._apply(construct)
        except GpuConstructsError as error:
            grants.refuse(f"GpuAccess at {users_line()}: {error.problem}", error.path or _path(construct))

    def _apply(self, construct: IConstruct) -> None:
        if not isinstance(construct, Construct):
            raise GpuConstructsError(f"GpuAccess must be given to a construct; got {type(construct).__name__}")
        objects = _objects_in(construct)
        targets = [one for one in objects if self._is_target(one, alone=len(objects) == 1)]
        if not targets:
            if len(objects) == 1:
                self._access.check(_identity(objects[0]))
            raise GpuConstructsError(
                "nothing in it holds a pod template, so there is nothing to give a GPU to; give it to the workload "
                "itself, or say where its pods are: GpuAccess(pod_spec='spec.….template.spec')"
            )
        for target in targets:
            try:
                self._grant(target)
            except GpuConstructsError as error:
                raise error.at(_path(target)) from None

    def _is_target(self, one: ApiObject, *, alone: bool) -> bool:
        if isinstance(one, Granted):
            return True
        if alone and self._access.pod_spec is not None:
            return True
        return holds_pods(one.api_version, one.kind)

    def _grant(self, target: ApiObject) -> None:
        granted = Granted.in_place_of(target)
        if granted is not None and self in granted.accesses:
            return
        try:
            rendered = target.to_json() if granted is None else granted.before_hiding()
        except GpuConstructsError:
            raise
        except RuntimeError:
            # cdk8s-plus renders no pods without containers, and they may be added later.
            rendered = None
        is_checked = False
        if rendered is not None:
            self._access.check(rendered)
            with suppress(ContainerMissingError):
                self._access.given(rendered, claim_template="claim")
                is_checked = True
            if not self._access.has_place_for_runtime_class(rendered) and self._access.allocation.runtime_class:
                warn(
                    f"{_path(target)}: pods of a {rendered['kind']} cannot name the runtime class "
                    f"{self._access.allocation.runtime_class!r}; give GpuAccess to the InferenceService that uses it "
                    "too, or let GpuRuntimeInjection set it"
                )
        if granted is None:
            granted = Granted.instead_of(target)
            _Grants.of(granted).add(granted)
        granted.give(self, self._access, is_checked=is_checked)


def _call_of_with() -> FrameType | None:
    """Give the call of ``with_`` on whose behalf we are called back."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_name == "with_" and frame.f_globals.get("__name__") == "constructs":
            return frame
        frame = frame.f_back
    return None


class Granted(ApiObject):
    """Stands in the tree in an object's place and renders it with its GPUs."""

    def __init__(self, scope: Construct, id: str, source: ApiObject) -> None:
        self._source = source
        self._patches: list[JsonPatch] = []
        self.accesses: list[GpuAccess] = []
        self._given: list[ManifestAccess] = []
        self._claim: tuple[str, object] | None = None
        self._is_checked = True
        super().__init__(
            scope,
            id,
            api_version=source.api_version,
            kind=source.kind,
            metadata=ApiObjectMetadata(name=source.name),
        )

    @classmethod
    def instead_of(cls, source: ApiObject) -> Granted:
        """Take an object's place: same path, so that what depends on it depends on this."""
        node = source.node
        scope = node.scope
        if not isinstance(scope, Construct):
            raise GpuConstructsError("GpuAccess must be given to an object in a chart")
        is_default_child = scope.node.default_child is source
        scope.node.try_remove_child(node.id)
        granted = cls(scope, node.id, source)
        if is_default_child and scope.node.default_child is not granted:
            scope.node.default_child = granted
        return granted

    @classmethod
    def in_place_of(cls, target: ApiObject) -> Granted | None:
        """Give what stands in an object's place; None where that is the object itself."""
        if isinstance(target, cls):
            return target
        scope = target.node.scope
        found = scope.node.try_find_child(target.node.id) if isinstance(scope, Construct) else None
        return found if isinstance(found, cls) and found._source is target else None

    def __getattribute__(self, name: str) -> Any:
        """Let metadata be that of the object itself, for who adds a label to it."""
        if name == "metadata":
            return object.__getattribute__(self, "_source").metadata
        return super().__getattribute__(name)

    def add_json_patch(self, *ops: JsonPatch) -> None:
        """Change what comes out by RFC 6902 operations, applied last, to plain data."""
        self._patches.extend(ops)

    def give(self, giver: GpuAccess, access: ManifestAccess, *, is_checked: bool) -> None:
        """Add GPUs; those of an equal access are there already."""
        self.accesses.append(giver)
        self._is_checked = self._is_checked and is_checked
        if access in self._given:
            return
        claim = access.allocation.claim
        if claim is not None:
            if self._claim is not None and self._claim[1] != claim:
                raise GpuConstructsError(
                    "one pod gets one claim, and another GpuAccess asked for other GPUs; ask for the same ones"
                )
            if self._claim is None:
                name = f"{self._source.name}-gpu"
                namespace = self._source.metadata.namespace or Chart.of(self).namespace
                metadata = {"name": name, "namespace": namespace}
                Manifest(self, "gpu-claim", resource_claim_template(metadata, claim))
                self._claim = name, claim
        self._given.append(access)

    def to_json(self) -> Any:
        """Render the object as it is by now, with GPUs."""
        try:
            made = self.before_hiding()
            for access in self._given:
                access.hide_from_others(made)
        except GpuConstructsError as error:
            raise error.at(_path(self)) from None
        return patched(made, self._patches, self) if self._patches else in_order(made)

    def before_hiding(self) -> Any:
        """Render the object with GPUs where they are held, and nothing said of the other containers yet."""
        made = self._source.to_json()
        template = None if self._claim is None else self._claim[0]
        for access in self._given:
            made = access.given(made, claim_template=template)
        return made

    def problems(self) -> list[str]:
        """Say what is wrong with what comes out.

        Rendered for that only where something may be: cdk8s validates an app anew for each chart that it renders.
        """
        if self._is_checked and not self._patches:
            return []
        try:
            made = self.to_json()
            missing = [gone for access in self._given if (gone := access.missing_from(made))]
        except GpuConstructsError as error:
            return [error.problem]
        return [
            f"GpuAccess gave {gone}: a JSON patch took it away; leave that patch out, or the GpuAccess"
            for gone in missing
        ]


@jsii.implements(IValidation)
class _Grants:
    """All that was given to the objects of an app; validates them, once an app."""

    def __init__(self) -> None:
        self._granted: list[Granted] = []
        self._refused: list[str] = []

    @classmethod
    def of(cls, construct: IConstruct) -> _Grants:
        root = construct.node.root
        grants: _Grants | None = getattr(root, _REGISTER, None)
        if grants is None:
            grants = cls()
            setattr(root, _REGISTER, grants)
            root.node.add_validation(grants)
        return grants

    def add(self, granted: Granted) -> None:
        self._granted.append(granted)

    def refuse(self, problem: str, path: str) -> None:
        self._refused.append(f"{path}: {problem}")

    def validate(self) -> list[str]:
        problems = [f"{_path(one)}: {problem}" for one in self._granted for problem in one.problems()]
        return [*self._refused, *problems]


def _objects_in(construct: Construct) -> list[ApiObject]:
    if isinstance(construct, ApiObject):
        return [construct]
    own = construct.node.default_child
    if isinstance(own, ApiObject) and (isinstance(own, Granted) or holds_pods(own.api_version, own.kind)):
        return [own]
    return [one for one in construct.node.find_all() if isinstance(one, ApiObject)]


def _identity(one: ApiObject) -> dict[str, Any]:
    return {"apiVersion": one.api_version, "kind": one.kind}


def _path(construct: IConstruct) -> str:
    if not isinstance(construct, Construct):
        return ""
    path: str = construct.node.path
    return path.removesuffix("/Default").removesuffix("/Resource")
