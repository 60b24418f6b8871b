"""The class ``Manifest``, through which this library emits every Kubernetes object."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from cdk8s import ApiObject, ApiObjectMetadata, JsonPatch
from constructs import Construct

from gpu_constructs.errors import GpuConstructsError
from gpu_constructs.kube import kinds

Body = Mapping[str, Any]

GRANTS = "_gpu_constructs_grants"
"""Name of the attribute of an App that stores which of its objects have GPUs from the construct ``GpuAccess``."""

_KNOWN_METADATA = ("annotations", "finalizers", "labels", "name", "namespace")


def _sorted(value: Any) -> Any:
    # The most frequent types come first, because a check for Mapping is slow.
    if isinstance(value, str | int | None):
        return value
    if isinstance(value, Mapping):
        return {key: _sorted(value[key]) for key in sorted(value) if value[key] is not None}
    if isinstance(value, list | tuple):
        return [_sorted(item) for item in value]
    return value


class Manifest(ApiObject):
    """A Kubernetes object (``ApiObject``) whose content is plain Python data.

    The content can have fields of any Kubernetes release, because no schema filters the content. The output has sorted
    keys, and omits keys whose value is None. An object of a cluster-scoped kind gets no namespace, even in a
    ``Chart(namespace=...)``. JSON patches apply last.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        manifest: Body | Callable[[], Body],
        *,
        is_cluster_scoped: bool | None = None,
    ) -> None:
        """Create the object from a complete manifest.

        Args:
            scope: Construct that owns the object.
            id: Construct ID; ``Default`` for the main object of a construct.
            manifest: Complete manifest, or a function that returns it. The constructor calls the function to get the
                kind and name of the object, and ``synth`` calls it again to get the content.
            is_cluster_scoped: Whether the kind is cluster-scoped. By default, the list of kinds in the module ``kinds``
                decides. Pass the value for custom resources, which are not in this list.
        """
        self._produce = manifest if callable(manifest) else lambda: manifest
        self._patches: list[JsonPatch] = []
        self._is_metadata_given_out = False
        self.is_rendered = False
        made = self._produce()
        self._is_cluster_scoped = (
            kinds.is_cluster_scoped(made["apiVersion"], made["kind"])
            if is_cluster_scoped is None
            else is_cluster_scoped
        )
        super().__init__(
            scope,
            id,
            api_version=made["apiVersion"],
            kind=made["kind"],
            metadata=ApiObjectMetadata(**{key: made["metadata"].get(key) for key in _KNOWN_METADATA}),
        )

    def __getattribute__(self, name: str) -> Any:
        """Return an attribute. Record each read of ``metadata``, because the caller can then change the metadata."""
        if name == "metadata":
            self._is_metadata_given_out = True
        return super().__getattribute__(name)

    def add_json_patch(self, *ops: JsonPatch) -> None:
        """Change the emitted manifest by JSON Patch operations (RFC 6902).

        The operations apply in order, after all other changes.
        """
        self._patches.extend(ops)

    def to_json(self) -> Any:
        """Return the rendered manifest as plain data."""
        return self._completed(super().to_json())

    def to_json_in(self, namespace: str | None, labels: Mapping[str, str]) -> Any:
        """Return the rendered manifest of this object as plain data, without a call of cdk8s if possible.

        A call of cdk8s is slow. The method calls cdk8s only if the user may have changed the metadata through cdk8s, or
        if the object has no name.

        Args:
            namespace: Namespace of the cdk8s chart that contains the object.
            labels: Labels of the cdk8s chart that contains the object.
        """
        made = self._produce()
        if self._is_metadata_given_out or made["metadata"].get("name") is None:
            return self.to_json()
        given = {key: made["metadata"].get(key) for key in _KNOWN_METADATA}
        merged = {"namespace": given["namespace"] or namespace, "labels": {**labels, **(given["labels"] or {})} or None}
        metadata = _sorted({key: value or None for key, value in {**given, **merged}.items()})
        return self._completed({"apiVersion": made["apiVersion"], "kind": made["kind"], "metadata": metadata})

    def _completed(self, rendered: dict[str, Any]) -> dict[str, Any]:
        if self._is_cluster_scoped:
            rendered["metadata"].pop("namespace", None)
        self.is_rendered = True
        made = self._produce()
        # For example ownerReferences, which a constructor of cdk8s does not accept as plain data.
        more = {key: value for key, value in made["metadata"].items() if key not in _KNOWN_METADATA}
        if more:
            rendered["metadata"] = _sorted({**rendered["metadata"], **more})
        body = {k: v for k, v in made.items() if k not in ("apiVersion", "kind", "metadata")}
        rendered.update(_sorted(body))
        kinds.make_canonical(rendered)
        return patched(rendered, self._patches, self) if self._patches else rendered


def patched(rendered: dict[str, Any], patches: Sequence[JsonPatch], owner: Construct) -> dict[str, Any]:
    """Apply JSON patches to a rendered manifest. Return the result with the key order of ``in_order``.

    Raises:
        GpuConstructsError: If a patch does not apply.
    """
    try:
        made = JsonPatch.apply(rendered, *patches)
    except RuntimeError as error:
        path = owner.node.path.removesuffix("/Default").removesuffix("/Resource")
        reason = re.sub(r"\b\w*Error: ", "", str(error).partition("\n")[0])
        raise GpuConstructsError(f"a JSON patch does not apply: {reason}", path=path) from None
    return in_order(made)


def in_order(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """Return a manifest with sorted keys and without keys whose value is None.

    ``apiVersion``, ``kind`` and ``metadata`` come first.
    """
    first = ("apiVersion", "kind", "metadata")
    told = {key: manifest[key] for key in first if key in manifest}
    return {**_sorted(told), **_sorted({key: manifest[key] for key in manifest if key not in first})}
