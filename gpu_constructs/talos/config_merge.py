"""How Talos joins two patches of its machine configuration, and what a ``$patch: delete`` in them takes away.

Source:
    siderolabs/talos@v1.10.9, v1.14.0-rc.1:pkg/machinery/config/merge/merge.go,
    pkg/machinery/config/configloader/internal/decoder/delete.go
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from gpu_constructs._plain_data import below
from gpu_constructs.errors import GpuConstructsError

DIRECTIVE = "$patch"
Path = tuple[str, ...]

# The Go fields tagged merge:"replace", by kind.
_REPLACED: Mapping[str | None, Sequence[str]] = {
    None: ("cluster.apiServer.auditPolicy", "cluster.network.podSubnets", "cluster.network.serviceSubnets"),
    "BGPInstanceConfig": ("advertise", "importRoutes", "neighbors"),
    "CRIBaseRuntimeSpecConfig": ("overrides",),
    "KubeAuditPolicyConfig": ("configuration",),
    "KubeAuthenticationConfig": ("configuration",),
    "KubeCredentialProviderConfig": ("configuration",),
    "KubeNetworkConfig": ("podSubnets", "serviceSubnets"),
    "KubeStaticPodConfig": ("pod",),
    "NetworkRuleConfig": ("ingress", "portSelector.ports"),
}
# The Go lists with a Merge of their own: items with the same value of one of these keys are one.
_KEYED: Mapping[tuple[str | None, str], Sequence[str]] = {
    (None, "cluster.apiServer.admissionControl"): ("name",),
    (None, "machine.network.interfaces"): ("interface", "deviceSelector"),
    (None, "machine.network.interfaces.vlans"): ("vlanId",),
    ("ExtensionServiceConfig", "configFiles"): ("mountPath",),
    ("ImageVerificationConfig", "rules"): ("image",),
}


@dataclass(frozen=True)
class Deletion:
    """Something that a patch takes away: what lies at a path, or the items of the list there that have a value."""

    path: Path
    item: tuple[str, str] | None = None

    def __str__(self) -> str:
        place = ".".join(self.path) or "the document"
        return f"{place}[{self.item[0]}={self.item[1]}]" if self.item else place

    def hits(self, document: Mapping[str, Any]) -> bool:
        """Whether it would take something away from a document."""
        value: Any = document
        for key in self.path:
            value = value.get(key) if isinstance(value, Mapping) else None
        if self.item is None:
            return value is not None
        key, wanted = self.item
        items = value if isinstance(value, list) else []
        return any(isinstance(item, Mapping) and item.get(key) == wanted for item in items)


def is_deletion(value: object) -> bool:
    """Whether a mapping takes away what lies in its place."""
    return isinstance(value, Mapping) and value.get(DIRECTIVE) == "delete"


def deletions(field: str, document: Mapping[str, Any]) -> list[Deletion]:
    """Give all that a patch takes away.

    Raises:
        GpuConstructsError: A directive that Talos would refuse, or with which it would drop what stands beside it.
    """
    return list(_deletions(field, document, (), is_in_list=False, is_root=True))


def _deletions(
    field: str, value: Mapping[str, Any], path: Path, *, is_in_list: bool, is_root: bool = False
) -> Iterator[Deletion]:
    if DIRECTIVE in value:
        if is_in_list:
            raise GpuConstructsError(
                f"{field}.{DIRECTIVE} must not stand within an item of a list, of which Talos deletes whole ones; "
                f"got {dict(value)!r}; delete the item"
            )
        _check_directive(field, value, is_root=is_root)
        yield Deletion(path)
        return
    for key, inner in value.items():
        where = below(field, key)
        if isinstance(inner, Mapping):
            yield from _deletions(where, inner, (*path, key), is_in_list=is_in_list)
        elif isinstance(inner, list):
            for index, item in enumerate(inner):
                if not isinstance(item, Mapping):
                    continue
                if is_deletion(item) and not is_in_list:
                    yield Deletion((*path, key), _item(f"{where}[{index}]", item))
                else:
                    yield from _deletions(f"{where}[{index}]", item, (*path, key), is_in_list=True)


def _check_directive(field: str, value: Mapping[str, Any], *, is_root: bool) -> None:
    if value[DIRECTIVE] != "delete":
        raise GpuConstructsError(f"{field}.{DIRECTIVE} must be 'delete', Talos' only one; got {value[DIRECTIVE]!r}")
    if is_root and "kind" not in value:
        raise GpuConstructsError(
            f"{field}.{DIRECTIVE} must not delete the whole document without a kind, which Talos keeps; got "
            f"{dict(value)!r}; delete what lies in it"
        )
    others = [key for key in value if key != DIRECTIVE and not (is_root and key in ("apiVersion", "kind", "name"))]
    if others:
        raise GpuConstructsError(
            f"{field} must not set anything beside {DIRECTIVE}: delete, with which Talos drops it; got {others!r}; "
            "delete the entries one by one, or give the deletion to talosctl in a patch before this one"
        )


def _item(field: str, item: Mapping[str, Any]) -> tuple[str, str]:
    others = [(key, value) for key, value in item.items() if key != DIRECTIVE]
    if len(others) != 1 or not isinstance(others[0][1], str):
        raise GpuConstructsError(
            f"{field} must name the item to delete by one key with a text, of which Talos takes the first; "
            f"got {dict(others)!r}"
        )
    return others[0]


def without_deletions(value: Any) -> Any:
    """Give what a patch sets, without its directives and without the levels that these leave empty."""
    if isinstance(value, Mapping):
        kept = {key: without_deletions(inner) for key, inner in value.items() if not is_deletion(inner)}
        return {key: inner for key, inner in kept.items() if inner or inner == value[key]}
    if isinstance(value, list):
        return [without_deletions(inner) for inner in value if not is_deletion(inner)]
    return value


def merged(field: str, kind: str | None, first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, Any]:
    """Give two patches of a document as one that does what both do, one after the other.

    Raises:
        GpuConstructsError: No one patch does, because one takes away what the other sets.
    """
    _check_one_patch_can(field, first, second)
    result: dict[str, Any] = _merged(field, kind, "", first, second)
    return result


def _check_one_patch_can(field: str, first: Mapping[str, Any], second: Mapping[str, Any]) -> None:
    earlier, later = deletions(field, first), deletions(field, second)
    sets_first, sets_second = without_deletions(first), without_deletions(second)
    unclear = [deletion for deletion in later if deletion.hits(sets_first)]
    unclear += [deletion for deletion in earlier if deletion.item is None and deletion.hits(sets_second)]
    unclear += [
        inner
        for inner, outer in (*product(later, earlier), *product(earlier, later))
        if outer.item is None and inner.path != outer.path and inner.path[: len(outer.path)] == outer.path
    ]
    if unclear:
        raise GpuConstructsError(
            f"{field} and the patches before it must not both set and delete {unclear[0]}: in one patch Talos deletes "
            "first; leave one of them out, or give the deletion to talosctl in a patch of its own"
        )


def _merged(field: str, kind: str | None, place: str, first: Any, second: Any) -> Any:
    if place in _REPLACED.get(kind, ()):
        return second
    if isinstance(first, Mapping) and isinstance(second, Mapping):
        # Lists of arguments take each other's place.
        is_flat = place.rpartition(".")[2] == "extraArgs"
        both = {
            key: second[key]
            if is_flat
            else _merged(below(field, key), kind, f"{place}.{key}".lstrip("."), value, second[key])
            for key, value in first.items()
            if key in second
        }
        return {**first, **second, **both}
    if isinstance(first, list) and isinstance(second, list):
        keys = _KEYED.get((kind, place), ())
        result = list(first)
        for item in second:
            _add(field, kind, place, result, item, keys)
        return result
    if _shape(first) != _shape(second):
        raise GpuConstructsError(
            f"{field} must be {_shape(first)}, as in a patch before it; got {second!r} beside {first!r}"
        )
    if first and not second and not isinstance(second, bool):
        raise GpuConstructsError(
            f"{field} must not be emptied after a patch that sets it, whose value Talos keeps; got {second!r} beside "
            f"{first!r}; leave the first out"
        )
    return second


def _add(field: str, kind: str | None, place: str, items: list[Any], item: Any, keys: Sequence[str]) -> None:
    key = next((key for key in keys if isinstance(item, Mapping) and item.get(key)), None)
    for index, other in enumerate(items):
        if key is None or is_deletion(item) or is_deletion(other) or not isinstance(other, Mapping):
            continue
        if other.get(key) == item[key]:
            is_whole = kind == "ImageVerificationConfig"
            items[index] = item if is_whole else _merged(f"{field}[{index}]", kind, place, other, item)
            return
    if not (is_deletion(item) and item in items):
        items.append(item)


def _shape(value: object) -> str:
    if isinstance(value, Mapping):
        return "a mapping"
    return "a list" if isinstance(value, list) else "one value"
