"""GPUs for a workload that somebody else made."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import fields
from types import FrameType
from typing import Any

import jsii
from cdk8s import ApiObject, ApiObjectMetadata, JsonPatch
from constructs import Construct, IConstruct, IMixin, IValidation

from gpu_constructs import _fields
from gpu_constructs._construct import GpuObject
from gpu_constructs._manifest import GRANTS, Manifest, in_order, patched
from gpu_constructs._references import NamedObject
from gpu_constructs.errors import GpuConstructsError, ShortErrors, short_errors, users_line, warn
from gpu_constructs.held_apps import hold
from gpu_constructs.placement import Toleration
from gpu_constructs.platforms import DEFAULT_PLATFORM, Platform
from gpu_constructs.pod_specs import holds_pods, pod_spec_paths
from gpu_constructs.workload.gpu_allocation import ContainerMissingError, VisibleDevices, allocation
from gpu_constructs.workload.gpu_profile import GpuProfile, profile_of
from gpu_constructs.workload.gpu_request import GpuRequest
from gpu_constructs.workload.manifest_access import ManifestAccess, UpdateChoice
from gpu_constructs.workload.resource_claim import resource_claim_template


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

    _NOT_TAKEN = {  # noqa: RUF012
        "gpus": "pass count=..., or request=GpuRequest(...)",
        **{
            member.name: f"pass request=GpuRequest({member.name}=...)"
            for member in fields(GpuRequest)
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
        _fields.arguments(inspect.unwrap(type(self).__init__), given)
        if count is not None and request is not None:
            raise GpuConstructsError("count and request must not both be given; pass GpuRequest(count=...)")
        if shared_memory is not None:
            _fields.size("shared_memory", shared_memory)
            if not _fields.amount(shared_memory):
                raise GpuConstructsError(f"shared_memory must be more than nothing; got {shared_memory!r}")
        if claim_name is not None:
            _fields.dns_subdomain("claim_name", claim_name)
        if ignore_rules:
            from gpu_constructs.rules.table import require_codes

            require_codes("ignore_rules", ignore_rules)
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
        self._claim_name = claim_name
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
        if len(objects) == 1 and objects[0] is construct:
            targets = objects
        else:
            # Objects of this library have the GPUs that they are for, and others are better without.
            targets = [one for one in objects if not isinstance(one, Manifest) and self._may_hold(one)]
            if not targets and isinstance(construct, GpuObject):
                targets = [one for one in objects if one is construct.api_object]
        if not targets:
            if len(objects) == 1 and not isinstance(objects[0], Manifest):
                self._access.check(_identity(objects[0]))
            raise GpuConstructsError(
                "nothing in it holds a pod template but what this library made itself, so there is nothing to give a "
                "GPU to; give it to the workload, or say where its pods are: GpuAccess(pod_spec='spec.….template.spec')"
            )
        # First all of them: a refusal must leave none changed.
        for target in targets:
            self._check(target)
        for target in targets:
            granted = Granted.in_place_of(target)
            if granted is None:
                granted = Granted.instead_of(target)
                _Grants.of(granted).add(granted)
            granted.give(self, self._access, self._claim_name)

    def _may_hold(self, one: ApiObject) -> bool:
        if isinstance(one, Granted) or one.kind == "List" or holds_pods(one.api_version, one.kind):
            return True
        path = self._access.pod_spec
        return path is not None and bool(pod_spec_paths(one.to_json(), path))

    def _check(self, target: ApiObject) -> None:
        """Refuse a target that cannot get it, as far as it is there."""
        granted = Granted.in_place_of(target)
        try:
            try:
                rendered = target.to_json() if granted is None else granted.before_hiding()
            except GpuConstructsError:
                raise
            except RuntimeError:
                # cdk8s-plus renders no pods without containers, and they may be added later.
                return
            self._access.check(rendered)
            if granted is not None:
                granted.check_claim(self._access)
            self._access.allocation.check_claim_namespace(rendered["metadata"].get("namespace") or "default")
            with suppress(ContainerMissingError):
                self._access.given(rendered, claim_template=self._claim_name or claim_name_of(rendered))
        except GpuConstructsError as error:
            raise error.at(_path(target)) from None
        if not self._access.has_place_for_runtime_class(rendered) and self._access.allocation.runtime_class:
            warn(
                f"{_path(target)}: pods of a {rendered['kind']} cannot name the runtime class "
                f"{self._access.allocation.runtime_class!r}; give GpuAccess to the InferenceService that uses it "
                "too, or let GpuRuntimeInjection set it"
            )


def _call_of_with() -> FrameType | None:
    """Give the call of ``with_`` on whose behalf we are called back."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_name == "with_" and frame.f_globals.get("__name__") == "constructs":
            return frame
        frame = frame.f_back
    return None


def claim_name_of(rendered: Mapping[str, Any]) -> str:
    """Give the name of an object's ResourceClaimTemplate."""
    return f"{rendered['metadata'].get('name')}-gpu"


class Granted(ApiObject):
    """Stands in the tree in an object's place and renders it with its GPUs."""

    def __init__(self, scope: Construct, id: str, source: ApiObject) -> None:
        self._source = source
        self._patches: list[JsonPatch] = []
        self.accesses: list[GpuAccess] = []
        self._given: list[ManifestAccess] = []
        self._claim: tuple[str | None, ManifestAccess] | None = None
        self._dependencies: list[IConstruct] = []
        self._is_known_good = False
        super().__init__(
            scope,
            id,
            api_version=source.api_version,
            kind=source.kind,
            metadata=ApiObjectMetadata(name=source.name),
        )

    @classmethod
    def instead_of(cls, source: ApiObject) -> Granted:
        """Take an object's place: same path, so that what depends on it depends on this, and the same dependencies."""
        node = source.node
        scope = node.scope
        if not isinstance(scope, Construct):
            raise GpuConstructsError("GpuAccess must be given to an object in a chart")
        if node.children:
            raise GpuConstructsError(
                f"the object has constructs below it ({node.children[0].node.path}), which would be lost; make them "
                "beside it",
                path=_path(source),
            )
        is_default_child = scope.node.default_child is source
        scope.node.try_remove_child(node.id)
        granted = cls(scope, node.id, source)
        if is_default_child and scope.node.default_child is not granted:
            scope.node.default_child = granted
        granted.follow_dependencies()
        return granted

    @classmethod
    def in_place_of(cls, target: ApiObject) -> Granted | None:
        """Give what stands in an object's place; None where that is the object itself."""
        if isinstance(target, cls):
            return target
        scope = target.node.scope
        found = scope.node.try_find_child(target.node.id) if isinstance(scope, Construct) else None
        return found if isinstance(found, cls) and found._source is target else None

    def follow_dependencies(self) -> None:
        """Depend on what the object depends on, by now."""
        for other in self._source.node.dependencies:
            if not any(other is known for known in self._dependencies):
                self._dependencies.append(other)
                self.node.add_dependency(other)

    def __getattribute__(self, name: str) -> Any:
        """Let metadata be that of the object itself, for who adds a label to it."""
        if name == "metadata":
            return object.__getattribute__(self, "_source").metadata
        return super().__getattribute__(name)

    def add_json_patch(self, *ops: JsonPatch) -> None:
        """Change what comes out by RFC 6902 operations, applied last, to plain data."""
        self._patches.extend(ops)

    def check_claim(self, access: ManifestAccess) -> None:
        """Refuse a second claim of the pod.

        Raises:
            GpuConstructsError: Another access asked for other GPUs, or for another container.
        """
        if access.allocation.claim is None or self._claim is None:
            return
        first = self._claim[1]
        if first.allocation.claim != access.allocation.claim:
            raise GpuConstructsError(
                "one pod gets one claim, and another GpuAccess asked for other GPUs; ask for the same ones"
            )
        if first.container != access.container:
            raise GpuConstructsError(
                "two containers of one pod would share the GPU of its one claim; make a GpuResourceClaim and pass "
                "GpuRequest(resource_claim=...) where that is meant, or ask for it in one container"
            )

    def give(self, giver: GpuAccess, access: ManifestAccess, claim_name: str | None) -> None:
        """Add GPUs; those of an equal access are there already."""
        if giver in self.accesses:
            return
        if access not in self._given:
            self.check_claim(access)
            if access.allocation.claim is not None and self._claim is None:
                self._claim = claim_name, access
                _ClaimTemplate(self, "gpu-claim", self, access.allocation.claim)
            self._given.append(access)
        self.accesses.append(giver)

    def claim_template(self, rendered: Mapping[str, Any]) -> str | None:
        """Give the name of the pods' ResourceClaimTemplate, where they have one."""
        return None if self._claim is None else self._claim[0] or claim_name_of(rendered)

    def before_hiding(self) -> Any:
        """Render the object with GPUs where they are held, and nothing said of the other containers yet."""
        made = self._source.to_json()
        template = self.claim_template(made)
        for access in self._given:
            access.check(made)
            made = access.given(made, claim_template=template)
        return made

    def to_json(self) -> Any:
        """Render the object as it is by now, with GPUs."""
        # What is rendered once may be changed before it is rendered again.
        self._is_known_good = False
        return self.rendered()

    def rendered(self) -> Any:
        """Do what ``to_json`` does.

        Raises:
            GpuConstructsError: Something contradicts by now, or a patch took the GPU away.
        """
        try:
            made = self.before_hiding()
            for access in self._given:
                access.hide_from_others(made)
            if not self._patches:
                return in_order(made)
            made = patched(made, self._patches, self)
            template = self.claim_template(made)
            for access in self._given:
                gone = access.missing_from(made, claim_template=template)
                if gone is not None:
                    raise GpuConstructsError(
                        f"GpuAccess gave {gone}: a JSON patch took it away; leave that patch out, or the GpuAccess"
                    )
        except GpuConstructsError as error:
            raise error.at(_path(self)) from None
        return made

    def problems(self) -> list[str]:
        """Say what is wrong with what comes out; nothing anew where nothing was rendered since."""
        if self._is_known_good:
            return []
        lost = [child.node.path for child in self._source.node.children]
        problems = [f"{path}: is lost below an object that was given GPUs; make it beside that" for path in lost]
        problems += [f"{_path(self)}: {problem}" for problem in self._source.node.validate()]
        try:
            self.rendered()
        except GpuConstructsError as error:
            problems.append(str(error))
        self._is_known_good = not problems
        return problems


class _ClaimTemplate(Manifest):
    """The ResourceClaimTemplate of an object's pods, named after the object as that comes out."""

    def __init__(self, scope: Construct, id: str, granted: Granted, claim: Mapping[str, Any]) -> None:
        self._granted = granted
        metadata = {"name": "gpu", "namespace": None}
        super().__init__(scope, id, resource_claim_template(metadata, claim))

    def to_json(self) -> Any:
        """Render it."""
        of_object = self._granted.rendered()
        made = super().to_json()
        made["metadata"]["name"] = self._granted.claim_template(of_object)
        made["metadata"].pop("namespace", None)
        if of_object["metadata"].get("namespace"):
            made["metadata"]["namespace"] = of_object["metadata"]["namespace"]
        return made

    def to_json_in(self, namespace: str | None, labels: Mapping[str, str]) -> Any:
        """Render it; only cdk8s renders the object that it is named after."""
        return self.to_json()


@jsii.implements(IValidation)
class _Grants:
    """All that was given to the objects of an app; validates them, once an app."""

    def __init__(self) -> None:
        self._granted: list[Granted] = []
        self._refused: list[str] = []

    @classmethod
    def of(cls, construct: IConstruct) -> _Grants:
        root = construct.node.root
        grants: _Grants | None = getattr(root, GRANTS, None)
        if grants is None:
            grants = cls()
            setattr(root, GRANTS, grants)
            hold(root)
            root.node.add_validation(grants)
        return grants

    def add(self, granted: Granted) -> None:
        self._granted.append(granted)

    def refuse(self, problem: str, path: str) -> None:
        self._refused.append(f"{path}: {problem}")

    def follow_dependencies(self) -> None:
        """Have all objects depend on what was made a dependency since."""
        for one in self._granted:
            one.follow_dependencies()

    def validate(self) -> list[str]:
        self.follow_dependencies()
        return [*self._refused, *(problem for one in self._granted for problem in one.problems())]


def _objects_in(construct: Construct) -> list[ApiObject]:
    if isinstance(construct, ApiObject):
        return [construct]
    return [one for one in construct.node.find_all() if isinstance(one, ApiObject)]


def _identity(one: ApiObject) -> dict[str, Any]:
    return {"apiVersion": one.api_version, "kind": one.kind}


def _path(construct: IConstruct) -> str:
    if not isinstance(construct, Construct):
        return ""
    path: str = construct.node.path
    return path.removesuffix("/Default").removesuffix("/Resource")
