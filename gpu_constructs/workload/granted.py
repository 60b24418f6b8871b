"""Objects that `GpuAccess` puts into the construct tree. Each one replaces an object of the user: the source.

When cdk8s renders the new object, the result is the manifest of the source with GPUs. In this module, ``access`` is the
set of options that a user passes to ``GpuAccess``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import jsii
from cdk8s import ApiObject, ApiObjectMetadata, JsonPatch
from constructs import Construct, IConstruct, IValidation

from gpu_constructs.errors import GpuConstructsError
from gpu_constructs.facts.helm_releases import chart_of_flux
from gpu_constructs.facts.readable import namespace_of
from gpu_constructs.tree.held_apps import hold
from gpu_constructs.tree.manifest import GRANTS, Manifest, in_order, patched
from gpu_constructs.workload.gpu_allocation import resource_claim_template
from gpu_constructs.workload.manifest_access import ManifestAccess


def path_of(construct: IConstruct) -> str:
    """Return the path of the construct that the user created, for messages.

    The path omits the suffix ``/Default`` or ``/Resource``. Libraries use these IDs for the main object of a construct.
    """
    if not isinstance(construct, Construct):
        return ""
    path: str = construct.node.path
    return path.removesuffix("/Default").removesuffix("/Resource")


def claim_name_of(rendered: Mapping[str, Any]) -> str:
    """Return the default name of the ResourceClaimTemplate for the pods of an object: its name plus ``-gpu``.

    ``rendered`` is the manifest of the object.
    """
    return f"{rendered['metadata'].get('name')}-gpu"


def with_chart(access: ManifestAccess, target: ApiObject) -> ManifestAccess:
    """Return the options of a ``GpuAccess`` for one object, with the name of its Helm chart if necessary.

    A HelmRelease can refer to its Helm chart through another object of the app, for example an OCIRepository. For such
    a HelmRelease, return a copy of ``access`` with the name of the Helm chart. For all other objects, the result equals
    ``access``.
    """
    if target.kind != "HelmRelease":
        return access

    def named(kind: str, home: str, name: object) -> Mapping[str, Any] | None:
        each = (one for one in target.node.root.node.find_all() if isinstance(one, ApiObject))
        sources = (one.to_json() for one in each if (one.kind, one.name) == (kind, name))
        return next((one for one in sources if namespace_of(one) == home), None)

    return replace(access, chart=chart_of_flux(target.to_json(), named))


class Granted(ApiObject):
    """An object that replaces an object of the user in the construct tree, and renders the user's object with GPUs.

    ``GpuAccess`` creates it.

    Attributes:
        source: Object of the user, whose manifest gets the GPUs.
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
        """Make this object depend on all objects on which the user's object (``source``) currently depends.

        This object replaces the user's object in the construct tree.
        """
        for other in self.source.node.dependencies:
            self.node.add_dependency(other)

    def __getattribute__(self, name: str) -> Any:
        """Return an attribute of this object. For ``metadata``, return the metadata of the user's object (``source``).

        The manifest of this object therefore also has labels that the user later adds to the user's object.
        """
        if name == "metadata":
            return object.__getattribute__(self, "source").metadata
        return super().__getattribute__(name)

    def add_json_patch(self, *ops: JsonPatch) -> None:
        """Add JSON patch operations (RFC 6902). They apply to the rendered manifest, after all other changes."""
        self._patches.extend(ops)

    def check_claim(self, access: ManifestAccess) -> None:
        """Raise an error if ``access`` would need a second claim, because a pod gets only one claim.

        Raises:
            GpuConstructsError: An earlier ``GpuAccess`` requests other GPUs than ``access``, or GPUs for another
                container.
        """
        if access.allocation.claim is None or self._claim is None:
            return
        first = self._claim[1]
        if first.allocation.claim != access.allocation.claim:
            raise GpuConstructsError(
                "two GpuAccess constructs request different GPUs for the same pod, and a pod gets only one claim. Set "
                "the same request in both"
            )
        if first.container != access.container:
            raise GpuConstructsError(
                "two containers would share the one claim of their pod. To share it, create a GpuResourceClaim and set "
                "GpuRequest(resource_claim=...). Otherwise, request the GPU for only one container"
            )

    def give(self, access: ManifestAccess, claim_name: str | None) -> None:
        """Add the GPUs of a ``GpuAccess``, unless an equal ``GpuAccess`` already added them.

        Args:
            access: Options of the ``GpuAccess``.
            claim_name: Name of the ResourceClaimTemplate, if the pods need one. None: the default name.
        """
        if access in self._given:
            return
        self.check_claim(access)
        if access.allocation.claim is not None and self._claim is None:
            self._claim = claim_name, access
            _ClaimTemplate(self, "gpu-claim", self, access.allocation.claim)
        self._given.append(access)

    def claim_template(self, rendered: Mapping[str, Any]) -> str | None:
        """Return the name of the ResourceClaimTemplate that the pods use. Return None if they use none.

        Args:
            rendered: Manifest of the user's object. The default name contains the name of this object.
        """
        return None if self._claim is None else self._claim[0] or claim_name_of(rendered)

    def before_hiding(self) -> Any:
        """Return the manifest with GPUs, before ``to_json`` hides them from all containers that get no GPU.

        For this, ``to_json`` sets ``NVIDIA_VISIBLE_DEVICES=void`` in these containers.
        """
        made = self.source.to_json()
        template = self.claim_template(made)
        for access in self._given:
            access.check(made)
            made = access.given(made, claim_template=template)
        return made

    def to_json(self) -> Any:
        """Return the current manifest of the user's object (``source``) with GPUs.

        Raises:
            GpuConstructsError: A field of the object conflicts with the GPUs, or a JSON patch removed the GPUs.
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
                        f"GpuAccess sets {gone} after a JSON patch. Remove that patch or the GpuAccess"
                    )
        except GpuConstructsError as error:
            raise error.at(path_of(self)) from None
        return made

    def problems(self) -> list[str]:
        """Return the messages of the errors that this object would cause in ``synth``. The list can be empty."""
        lost = [child.node.path for child in self.source.node.children]
        problems = [
            f"{path}: is a child of an object with GPUs, so it would not be in the manifests. Create it outside of "
            "that object"
            for path in lost
        ]
        problems += [f"{path_of(self)}: {problem}" for problem in self.source.node.validate()]
        try:
            self.to_json()
        except GpuConstructsError as error:
            problems.append(str(error))
        return problems


def granted_in_place_of(target: ApiObject) -> Granted | None:
    """Return the ``Granted`` object that replaces ``target`` in the construct tree. Return None if nothing replaces it.

    If ``target`` itself is a ``Granted`` object, return it.
    """
    if isinstance(target, Granted):
        return target
    scope = target.node.scope
    found = scope.node.try_find_child(target.node.id) if isinstance(scope, Construct) else None
    return found if isinstance(found, Granted) and found.source is target else None


def put_in_place_of(source: ApiObject) -> Granted:
    """Replace an object in the construct tree by a ``Granted`` object, whose manifest can also contain GPUs.

    Return the new object. The new object has the same path, so constructs that depend on the replaced object now depend
    on the new one. The new object also has all dependencies of the replaced one.

    Raises:
        GpuConstructsError: The object is not in a chart, or has child constructs.
    """
    node = source.node
    scope = node.scope
    if not isinstance(scope, Construct):
        raise GpuConstructsError("GpuAccess must get an object that is in a chart. Create the object in a chart")
    if node.children:
        raise GpuConstructsError(
            f"the object must have no child constructs ({node.children[0].node.path}), which would not be in the "
            "manifests. Create the child constructs outside of the object",
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
    """The ResourceClaimTemplate for the pods of an object. Its name depends on the object that gets the GPUs."""

    def __init__(self, scope: Construct, id: str, granted: Granted, claim: Mapping[str, Any]) -> None:
        self._granted = granted
        metadata = {"name": "gpu", "namespace": None}
        super().__init__(scope, id, resource_claim_template(metadata, claim))

    def to_json(self) -> Any:
        """Return the manifest of the ResourceClaimTemplate. Its namespace is that of the object that gets the GPUs."""
        of_object = self._granted.to_json()
        made = super().to_json()
        made["metadata"]["name"] = self._granted.claim_template(of_object)
        made["metadata"].pop("namespace", None)
        if of_object["metadata"].get("namespace"):
            made["metadata"]["namespace"] = of_object["metadata"]["namespace"]
        return made

    def to_json_in(self, namespace: str | None, labels: Mapping[str, str]) -> Any:
        """Return the manifest of the ResourceClaimTemplate.

        The method ignores ``namespace`` and ``labels``, which are those of the cdk8s chart. The namespace is that of
        the object that gets the GPUs.
        """
        return self.to_json()


@jsii.implements(IValidation)
class Grants:
    """All objects of an app that have GPUs from ``GpuAccess``. cdk8s calls ``validate`` once for each app.

    Attributes:
        granted: Objects that replace objects of the user, and render them with GPUs.
        refused: Errors that ``with_`` could not raise, so ``synth`` reports them.
    """

    def __init__(self) -> None:
        self.granted: list[Granted] = []
        self.refused: list[str] = []

    @classmethod
    def of(cls, construct: IConstruct) -> Grants:
        """Return the ``Grants`` of the app that contains a construct."""
        root = construct.node.root
        grants: Grants | None = getattr(root, GRANTS, None)
        if grants is None:
            grants = cls()
            setattr(root, GRANTS, grants)
            hold(root)
            root.node.add_validation(grants)
        return grants

    def follow_dependencies(self) -> None:
        """Copy the current dependencies of each object that gets GPUs to the ``Granted`` object in its place."""
        for one in self.granted:
            one.follow_dependencies()

    def validate(self) -> list[str]:
        """Return the errors that prevent this library from adding GPUs to the objects, as texts."""
        self.follow_dependencies()
        return [*self.refused, *(problem for one in self.granted for problem in one.problems())]
