"""The one object through which every manifest of this library is emitted."""

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
"""On an App: what was given to objects of others, which stand for these."""

_KNOWN_METADATA = ("annotations", "finalizers", "labels", "name", "namespace")


def _sorted(value: Any) -> Any:
    # First what is most often there: to ask whether text is a Mapping takes longer than all else here.
    if isinstance(value, str | int | None):
        return value
    if isinstance(value, Mapping):
        return {key: _sorted(value[key]) for key in sorted(value) if value[key] is not None}
    if isinstance(value, list | tuple):
        return [_sorted(item) for item in value]
    return value


class Manifest(ApiObject):
    """An ``ApiObject`` whose body is plain Python.

    No schema of another Kubernetes release stands between the body and the output, so every field
    arrives. Keys are sorted, members that are ``None`` are left out, cluster-scoped kinds carry no
    namespace even under ``Chart(namespace=...)``, and JSON patches apply last, to what is written.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        manifest: Body | Callable[[], Body],
        *,
        is_cluster_scoped: bool | None = None,
    ) -> None:
        """Make the object from a whole manifest.

        Args:
            scope: The construct that owns the object.
            id: ``Default`` for the main object of a construct.
            manifest: apiVersion, kind, metadata and the rest; or a function that gives it, called at
                once for its identity and again at synth for its body.
            is_cluster_scoped: Whether its kind lives outside namespaces, where the caller knows it better than
                ``kinds``, as of a custom resource.
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
        """Notice who asks for the metadata, for they may change it where only cdk8s sees it."""
        if name == "metadata":
            self._is_metadata_given_out = True
        return super().__getattribute__(name)

    def add_json_patch(self, *ops: JsonPatch) -> None:
        """Change the emitted manifest by RFC 6902 operations, applied in order after everything else."""
        self._patches.extend(ops)

    def to_json(self) -> Any:
        """Render the manifest."""
        return self._completed(super().to_json())

    def to_json_in(self, namespace: str | None, labels: Mapping[str, str]) -> Any:
        """Render the manifest without asking cdk8s, unless somebody may have changed its metadata there.

        Args:
            namespace: Namespace of the chart it stands in.
            labels: Likewise.
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
        # Such as ownerReferences, of which a constructor of cdk8s takes no plain data.
        more = {key: value for key, value in made["metadata"].items() if key not in _KNOWN_METADATA}
        if more:
            rendered["metadata"] = _sorted({**rendered["metadata"], **more})
        body = {k: v for k, v in made.items() if k not in ("apiVersion", "kind", "metadata")}
        rendered.update(_sorted(body))
        kinds.make_canonical(rendered)
        return patched(rendered, self._patches, self) if self._patches else rendered


def patched(rendered: dict[str, Any], patches: Sequence[JsonPatch], owner: Construct) -> dict[str, Any]:
    """Apply JSON patches to a rendered manifest, keys sorted behind those that tell what it is.

    Raises:
        GpuConstructsError: One of them does not apply.
    """
    try:
        made = JsonPatch.apply(rendered, *patches)
    except RuntimeError as error:
        path = owner.node.path.removesuffix("/Default").removesuffix("/Resource")
        reason = re.sub(r"\b\w*Error: ", "", str(error).partition("\n")[0])
        raise GpuConstructsError(f"a JSON patch does not apply: {reason}", path=path) from None
    return in_order(made)


def in_order(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """Return a manifest with its keys sorted behind those that tell what it is, and nothing that is ``None``."""
    first = ("apiVersion", "kind", "metadata")
    told = {key: manifest[key] for key in first if key in manifest}
    return {**_sorted(told), **_sorted({key: manifest[key] for key in manifest if key not in first})}
