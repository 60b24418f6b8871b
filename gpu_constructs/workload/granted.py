"""Objects that stand in the tree in place of others, and render these with their GPUs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jsii
from cdk8s import ApiObject, ApiObjectMetadata, JsonPatch
from constructs import Construct, IConstruct, IValidation

from gpu_constructs.errors import GpuConstructsError
from gpu_constructs.tree.held_apps import hold
from gpu_constructs.tree.manifest import GRANTS, Manifest, in_order, patched
from gpu_constructs.workload.gpu_allocation import resource_claim_template
from gpu_constructs.workload.manifest_access import ManifestAccess


def path_of(construct: IConstruct) -> str:
    """Return the path of a construct as its user knows it."""
    if not isinstance(construct, Construct):
        return ""
    path: str = construct.node.path
    return path.removesuffix("/Default").removesuffix("/Resource")


def claim_name_of(rendered: Mapping[str, Any]) -> str:
    """Return the name of an object's ResourceClaimTemplate."""
    return f"{rendered['metadata'].get('name')}-gpu"


class Granted(ApiObject):
    """Stands in the tree in the place of an object, and renders that with its GPUs.

    Attributes:
        source: The object.
    """

    def __init__(self, scope: Construct, id: str, source: ApiObject) -> None:
        self.source = source
        self._patches: list[JsonPatch] = []
        self._given: list[ManifestAccess] = []
        self._claim: tuple[str | None, ManifestAccess] | None = None
        super().__init__(
            scope,
            id,
            api_version=source.api_version,
            kind=source.kind,
            metadata=ApiObjectMetadata(name=source.name),
        )

    def follow_dependencies(self) -> None:
        """Depend on what the object depends on, by now."""
        for other in self.source.node.dependencies:
            self.node.add_dependency(other)

    def __getattribute__(self, name: str) -> Any:
        """Let metadata be that of the object itself, for who adds a label to it."""
        if name == "metadata":
            return object.__getattribute__(self, "source").metadata
        return super().__getattribute__(name)

    def add_json_patch(self, *ops: JsonPatch) -> None:
        """Change what comes out by RFC 6902 operations, applied last, to plain data."""
        self._patches.extend(ops)

    def check_claim(self, access: ManifestAccess) -> None:
        """Raise if the pod would get a second claim.

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

    def give(self, access: ManifestAccess, claim_name: str | None) -> None:
        """Add GPUs; those of an equal access are there already."""
        if access in self._given:
            return
        self.check_claim(access)
        if access.allocation.claim is not None and self._claim is None:
            self._claim = claim_name, access
            _ClaimTemplate(self, "gpu-claim", self, access.allocation.claim)
        self._given.append(access)

    def claim_template(self, rendered: Mapping[str, Any]) -> str | None:
        """Return the name of the pods' ResourceClaimTemplate, where they have one."""
        return None if self._claim is None else self._claim[0] or claim_name_of(rendered)

    def before_hiding(self) -> Any:
        """Render the object with GPUs where they are held, and nothing said of the other containers yet."""
        made = self.source.to_json()
        template = self.claim_template(made)
        for access in self._given:
            access.check(made)
            made = access.given(made, claim_template=template)
        return made

    def to_json(self) -> Any:
        """Render the object as it is by now, with GPUs.

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
            raise error.at(path_of(self)) from None
        return made

    def problems(self) -> list[str]:
        """Return what is wrong with what comes out."""
        lost = [child.node.path for child in self.source.node.children]
        problems = [f"{path}: is lost below an object that was given GPUs; make it beside that" for path in lost]
        problems += [f"{path_of(self)}: {problem}" for problem in self.source.node.validate()]
        try:
            self.to_json()
        except GpuConstructsError as error:
            problems.append(str(error))
        return problems


def granted_in_place_of(target: ApiObject) -> Granted | None:
    """Return what stands in the place of an object; None where that is the object itself."""
    if isinstance(target, Granted):
        return target
    scope = target.node.scope
    found = scope.node.try_find_child(target.node.id) if isinstance(scope, Construct) else None
    return found if isinstance(found, Granted) and found.source is target else None


def put_in_place_of(source: ApiObject) -> Granted:
    """Take the place of an object: same path, so that what depends on it depends on this, and same dependencies.

    Raises:
        GpuConstructsError: The object is in no chart, or has constructs below it.
    """
    node = source.node
    scope = node.scope
    if not isinstance(scope, Construct):
        raise GpuConstructsError("GpuAccess must be given to an object in a chart")
    if node.children:
        raise GpuConstructsError(
            f"the object has constructs below it ({node.children[0].node.path}), which would be lost; make them "
            "beside it",
            path=path_of(source),
        )
    is_default_child = scope.node.default_child is source
    scope.node.try_remove_child(node.id)
    granted = Granted(scope, node.id, source)
    if is_default_child and scope.node.default_child is not granted:
        scope.node.default_child = granted
    granted.follow_dependencies()
    Grants.of(granted).granted.append(granted)
    return granted


class _ClaimTemplate(Manifest):
    """The ResourceClaimTemplate of an object's pods, named after the object as that comes out."""

    def __init__(self, scope: Construct, id: str, granted: Granted, claim: Mapping[str, Any]) -> None:
        self._granted = granted
        metadata = {"name": "gpu", "namespace": None}
        super().__init__(scope, id, resource_claim_template(metadata, claim))

    def to_json(self) -> Any:
        """Render it."""
        of_object = self._granted.to_json()
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
class Grants:
    """All that was given to the objects of an app; validates them, once an app.

    Attributes:
        granted: Objects that hold GPUs.
        refused: Problems that synth reports.
    """

    def __init__(self) -> None:
        self.granted: list[Granted] = []
        self.refused: list[str] = []

    @classmethod
    def of(cls, construct: IConstruct) -> Grants:
        """Return those of the app that a construct is in."""
        root = construct.node.root
        grants: Grants | None = getattr(root, GRANTS, None)
        if grants is None:
            grants = cls()
            setattr(root, GRANTS, grants)
            hold(root)
            root.node.add_validation(grants)
        return grants

    def follow_dependencies(self) -> None:
        """Have all objects depend on what was made a dependency since."""
        for one in self.granted:
            one.follow_dependencies()

    def validate(self) -> list[str]:
        """Return the problems of all objects."""
        self.follow_dependencies()
        return [*self.refused, *(problem for one in self.granted for problem in one.problems())]
