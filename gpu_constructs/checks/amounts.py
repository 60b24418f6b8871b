"""Checks of all objects for misspelled names of GPU resources, and for amounts of memory or storage without a unit."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from gpu_constructs.catalog.sharing import GPU
from gpu_constructs.facts.app import Facts
from gpu_constructs.facts.finding import Finding
from gpu_constructs.facts.readable import Manifest, is_gpu_name, quantity
from gpu_constructs.kube import fields, kinds, pod_specs

_ANYWHERE = frozenset({"limits", "requests"})
# maxLimitRequestRatio of a LimitRange is a ratio of two amounts, so it has no unit.
_OF_KIND: Mapping[tuple[str, str], frozenset[str]] = {
    ("", "LimitRange"): frozenset({"default", "defaultRequest", "max", "min"}),
    ("", "PersistentVolume"): frozenset({"capacity"}),
    ("", "ResourceQuota"): frozenset({"hard"}),
}
_WITHOUT_AMOUNTS = frozenset({("apiextensions.k8s.io", "CustomResourceDefinition"), ("", "ConfigMap"), ("", "Secret")})
# Endings of keys whose values do not contain resources.
_OTHER_NAMES = ("labels", "annotations", "selector", "status")
_BESIDE_NAME = frozenset({"nominalQuota", "quantity"})
_DEEPEST = 60

# kubernetes/kubernetes@v1.34.1:pkg/apis/core/helper/helpers.go (IsStandardContainerResourceName)
_OF_CONTAINERS = ("cpu", "memory", "ephemeral-storage")
_HUGE_PAGES = "hugepages-"
_COUNTED = fields.regex(r"\A(?:requests|limits)\.")

_NVIDIA = "nvidia.com/"
_WITHOUT_SLASH = fields.regex(r"nvidia(?:[-_.]?com)?[-_.]+")
_SHARED = fields.regex(r"(?:gpus?share?d?|sharedgpus?)\Z")
_MIG = fields.regex(r"(?:mig)?(?:([1-7])c)?([1-7])g([0-9]+)gb((?:me|all|gfx)*)(?:shared)?\Z")


class _Amount(NamedTuple):
    """An amount of a resource in a manifest, such as ``memory: 8Gi`` in ``limits``.

    Attributes:
        section: Key of the mapping in the manifest that contains the amount, such as ``limits``.
        key: Name of the resource, such as ``memory``.
        amount: Value in the manifest, such as ``8Gi``.
        holder: Name of the container for messages, such as `` of container 'a'``; empty if the amount is not in a
            container.
    """

    section: str
    key: str
    amount: object
    holder: str

    def __str__(self) -> str:
        return f"{self.section}[{self.key!r}]{self.holder}"


def amounts_are_meant(facts: Facts) -> Iterator[Finding]:
    """Yield problems: probably misspelled names of GPU resources, and amounts of memory or storage without a unit."""
    for index, (manifest, kind) in enumerate(zip(facts.written, facts.kinds, strict=False)):
        if kind in _WITHOUT_AMOUNTS:
            continue
        sections = _ANYWHERE | _OF_KIND.get(kind, frozenset())
        has_containers = pod_specs.holds_pods(manifest["apiVersion"], manifest["kind"])
        # The fields of an unknown kind can have another unit.
        may_have_units = not (has_containers or kind[0] in kinds.BUILT_IN_GROUPS)
        for one in _amounts(manifest, sections):
            name, is_in_section = _COUNTED.sub("", one.key, count=1), one.section in sections
            if is_in_section and "/" not in name and has_containers and one.holder:
                yield from _unknown(index, one)
            elif "/" in name or (is_in_section and kind in _OF_KIND):
                yield from _misnamed(facts, index, one, name)
            is_size = fields.counts_bytes(name) if is_in_section else (one.section, name) == ("emptyDir", "sizeLimit")
            if is_size and fields.lacks_unit(one.amount):
                yield Finding(index, f"{one} {fields.without_unit(one.amount)}", is_warning=may_have_units)


def _amounts(manifest: Manifest, sections: frozenset[str]) -> Iterator[_Amount]:
    """Yield the amounts of resources in an object, at any depth.

    Each quantity in a mapping such as ``limits`` is an amount. In other mappings, only the values of some keys are
    amounts, for example of ``sizeLimit``.

    Args:
        manifest: Object.
        sections: Keys of the mappings in which each quantity is an amount, such as ``limits``.
    """
    waiting: list[tuple[Any, str, str, int]] = [(manifest, "", "", 0)]
    while waiting:
        value, section, holder, depth = waiting.pop()
        if depth > _DEEPEST:
            continue
        if not isinstance(value, Mapping):
            waiting += [(one, section, holder, depth + 1) for one in reversed(value) if isinstance(one, Mapping | list)]
            continue
        if isinstance(value.get("name"), str):
            holder = f" of container {value['name']!r}" if "image" in value else holder
            # A quota of Kueue and a request of Spark have the name and the amount in two keys.
            yield from (_Amount(section, value["name"], value[key], holder) for key in _BESIDE_NAME & value.keys())
        for key, member in value.items():
            if isinstance(member, Mapping | list):
                if not str(key).lower().endswith(_OTHER_NAMES):
                    waiting.append((member, str(key), holder, depth + 1))
            elif isinstance(key, str) and _may_count(section in sections, key) and quantity(member) is not None:
                yield _Amount(section, key, member, holder)


def _may_count(is_in_section: bool, key: str) -> bool:
    """Check whether a quantity in a manifest is an amount of a resource.

    Args:
        is_in_section: Whether the quantity is in a mapping of resources, such as ``limits``.
        key: Key of the quantity, such as ``memory`` or ``sizeLimit``.
    """
    return is_in_section or key == "sizeLimit" or "nvid" in key.lower()


def _unknown(index: int, one: _Amount) -> Iterator[Finding]:
    """Yield a finding if the API server rejects the resource name of an amount.

    The API server rejects a name without a domain, except the names of Kubernetes itself, such as ``cpu``.

    Args:
        index: Index in ``Facts.objects`` of the object that contains the amount.
        one: Amount.
    """
    if one.key in _OF_CONTAINERS or one.key.startswith(_HUGE_PAGES):
        return
    meant = _meant(one.key)
    near = f". Write {meant!r}" if meant else fields.did_you_mean(one.key, _OF_CONTAINERS)
    yield Finding(
        index,
        f"{one} must name {', '.join(_OF_CONTAINERS)} or a resource with a domain, such as {GPU!r}. Kubernetes rejects "
        f"{one.key!r}{near}",
    )


def _misnamed(facts: Facts, index: int, one: _Amount, name: str) -> Iterator[Finding]:
    """Yield a finding if the resource name of an amount is probably a misspelled name of a GPU resource.

    Args:
        facts: Facts that the library derives from the objects of the app.
        index: Index in ``Facts.objects`` of the object that contains the amount.
        one: Amount.
        name: Name of the resource, without the prefix ``requests.`` or ``limits.`` of a ResourceQuota.
    """
    meant = None if facts.is_gpu(name) else _meant(name)
    if meant is not None and not _is_renamed(facts, name):
        yield Finding(
            index,
            f"{one} is not a resource that the NVIDIA device plugin advertises. Write "
            f"{one.key.replace(name, meant)!r}, "
            f"or declare it with External(app, 'existing', gpu_resources=[{name!r}]) if another plugin advertises it",
        )


def _is_renamed(facts: Facts, name: str) -> bool:
    """Check whether a DeviceClass or a device plugin configuration in the app defines a resource name."""
    classes = (manifest.get("spec") for _, manifest in facts.of_kind(("resource.k8s.io", "DeviceClass")))
    if any(isinstance(spec, Mapping) and spec.get("extendedResourceName") == name for spec in classes):
        return True
    own = re.escape(name.removeprefix(_NVIDIA))
    renamed = re.compile(rf"name[\"']?: *[\"']?(?:{_NVIDIA})?{own}[\"']?\s*$", re.M)
    files = (manifest.get("data") for _, manifest in facts.of_kind(("", "ConfigMap")))
    return any(renamed.search(str(text)) for data in files if isinstance(data, Mapping) for text in data.values())


def _meant(name: str) -> str | None:
    """Return the correct name of a GPU resource for a misspelled name, such as ``nvidia.com/gpus``.

    Return None if the name is correct, or does not resemble the name of a GPU resource.
    """
    if is_gpu_name(name):
        return None
    domain, slash, rest = name.lower().rpartition("/")
    if not slash:
        rest = _WITHOUT_SLASH.sub("", rest, count=1)
    elif rest.startswith("nvidia-gpu") and domain.endswith("kubernetes.io"):
        # The resource name in Kubernetes up to 1.10.
        return GPU
    elif not any(difflib.get_close_matches(part, ["nvidia"], cutoff=0.8) for part in domain.split(".")):
        return None
    letters = re.sub(r"[^a-z0-9]", "", rest)
    mig = _MIG.match(letters)
    if mig:
        compute, slices, memory, extras = mig.groups()
        part = f"{compute}c." if compute else ""
        return f"{_NVIDIA}mig-{part}{slices}g.{memory}gb{f'.{extras}' if extras else ''}"
    if _SHARED.match(letters):
        return f"{GPU}.shared"
    once = re.sub(r"(.)\1+", r"\1", letters.removesuffix("s"))
    return GPU if sorted(once) == sorted("gpu") else None
