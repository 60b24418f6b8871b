"""The state of a cluster as plain data without secrets: objects, logs, and reasons why data is missing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from gpu_constructs.kube import credentials
from gpu_constructs.kube.tables import table
from gpu_constructs.records import dataclass, field

Manifest = Mapping[str, Any]
REMOVED = "[removed]"
TABLES = table(__package__, "tables.yaml")
KINDS: Sequence[Sequence[str]] = TABLES["kinds"]
"""Kinds that the command reads, each with its API group, its resource, and ``optional`` if a cluster can lack it."""
READABLE = (*(kind[0] for kind in KINDS), "ConfigMap", "logs", "services")
"""Names of all data that a snapshot can contain, except the plan: kinds, ``logs``, and ``services`` of Talos nodes."""

_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


@dataclass(frozen=True)
class Plan:
    """The expected state of a cluster, from the output files of ``synth`` in the folder that ``--plan`` names.

    Attributes:
        folder: Path of the folder as the user passed it.
        manifests: Objects in the folder.
        report: Capacity plan from the file ``capacity-plan.json``; None if the file does not exist.
        machine_labels: Values of the node labels in the machine configuration files, by key of the label.
        schematics: IDs of the Talos schematics.
        slots: Number of slots that the device plugins in the manifests advertise for each GPU, by resource name.
    """

    folder: str
    manifests: Sequence[Manifest]
    report: Manifest | None = None
    machine_labels: Mapping[str, str] = field(default_factory=dict)
    schematics: Sequence[str] = ()
    slots: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Snapshot:
    """The state of a cluster at one time.

    Attributes:
        where: Description of the source: kubectl context and API server, or path of a saved copy.
        objects: Objects by kind. A kind that the command could not read is absent.
        unread: Reasons why data is missing, by name of the data: a kind, ``logs`` or ``services``.
        partial: Reasons why the snapshot has only the objects of one namespace, by kind of these objects.
        logs: Logs of pods, by namespace and name of the pod.
        services: States of the services of Talos nodes, by node and service.
        namespace: Namespace whose workloads the checks examine; empty for all namespaces.
        plan: Expected state of the cluster; None without the option ``--plan``.
    """

    where: str
    objects: Mapping[str, Sequence[Manifest]]
    unread: Mapping[str, str] = field(default_factory=dict)
    partial: Mapping[str, str] = field(default_factory=dict)
    logs: Mapping[tuple[str, str], str] = field(default_factory=dict)
    services: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    namespace: str = ""
    plan: Plan | None = None


def by_kind(manifests: Iterable[Manifest]) -> dict[str, list[Manifest]]:
    """Return lists of objects by kind, without content that can be secret.

    The lists do not contain Secrets. Other objects lack, for example, values of environment variables and credentials.
    If several objects of a kind have the same namespace and name, the list contains only the last of these objects.
    """
    found: dict[str, dict[tuple[str, str], Manifest]] = {}
    for manifest in manifests:
        if manifest["kind"] != "Secret":
            metadata = manifest["metadata"]
            key = (metadata.get("namespace") or "", metadata["name"])
            found.setdefault(manifest["kind"], {})[key] = cleaned(manifest)
    return {kind: list(members.values()) for kind, members in found.items()}


def cleaned(manifest: Manifest) -> Manifest:
    """Return an object without content that can be secret, and without content that the checks do not need.

    The result lacks values of environment variables, credentials, ``managedFields``, and the annotation in which
    ``kubectl apply`` keeps a copy of the object.
    """
    made: dict[str, Any] = _clean(manifest)
    metadata = {key: value for key, value in made.get("metadata", {}).items() if key != "managedFields"}
    annotations = metadata.get("annotations")
    if isinstance(annotations, Mapping) and _LAST_APPLIED in annotations:
        metadata["annotations"] = {key: value for key, value in annotations.items() if key != _LAST_APPLIED}
    return {**made, "metadata": metadata}


def _clean(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _member(str(key), member) for key, member in value.items()}
    if isinstance(value, list):
        hidden = {index for index, _ in credentials.in_arguments(value)}
        return [REMOVED if index in hidden else _clean(member) for index, member in enumerate(value)]
    return value


def _member(key: str, value: Any) -> Any:
    if key == "env" and isinstance(value, list):
        return [_variable(one) for one in value if isinstance(one, Mapping)]
    if isinstance(value, str):
        return REMOVED if credentials.in_variable(key, value) else value
    return _clean(value)


def _variable(variable: Manifest) -> Manifest:
    """Return an environment variable of a container without its value, which can be secret.

    The result has the key ``name``. If the value is harmless and the checks need it, the result also has the key
    ``word`` with the value, such as ``all`` for ``NVIDIA_VISIBLE_DEVICES``.
    """
    name, value = str(variable.get("name")), variable.get("value", variable.get("word"))
    return {"name": name, **({"word": value} if value in TABLES["words"].get(name, ()) else {})}


def cleaned_log(text: str) -> str:
    """Return a log in which ``[removed]`` replaces the words that look like credentials."""
    return "\n".join(_clean_line(line) for line in text.splitlines())


def _clean_line(line: str) -> str:
    words = line.split(" ")
    hidden = {index for index, _ in credentials.in_arguments(words)}
    return " ".join(REMOVED if index in hidden else word for index, word in enumerate(words)) if hidden else line
