"""Values of environment variables that are read in the cluster rather than written in the manifest."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from gpu_constructs.errors import GpuConstructsError, ShortErrors, refuse_if, short_errors
from gpu_constructs.kube import credentials, fields, references
from gpu_constructs.kube.references import NamedObject

VISIBLE_DEVICES = "NVIDIA_VISIBLE_DEVICES"


_KEY = re.compile(r"[-._a-zA-Z0-9]{1,253}\Z")
_FIELD_PATHS = (
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
)
_FIELD_OF_MAP = re.compile(r"metadata\.(labels|annotations)\['[^']+'\]\Z")


def _key(key: str) -> None:
    fields.of_type("key", key, str)
    refuse_if(not _KEY.match(key), "key", "be letters, digits, '-', '_' or '.'", key)


class AnyEnvValue(Protocol):
    """An ``EnvValue`` of this library or of cdk8s-plus."""

    @property
    def value_from(self) -> Any:
        """Source of the value, as Kubernetes writes it."""


@dataclass(frozen=True, kw_only=True)
class EnvValue(metaclass=ShortErrors):
    """The value of a variable; made by the factories below.

    Attributes:
        value_from: The source, as Kubernetes writes it.
        of_object: The ConfigMap it reads, where that was handed over as an object.
    """

    value_from: Mapping[str, Any] = field(repr=False)
    of_object: NamedObject | None = field(default=None, repr=False, compare=False)

    @classmethod
    @short_errors
    def secret(cls, secret: str | NamedObject, *, key: str) -> EnvValue:
        """Read a key of a Secret, given by name or as an object."""
        name = references.name_of("secret", secret, "Secret")
        _key(key)
        return cls(value_from={"secretKeyRef": {"name": name, "key": key}})

    @classmethod
    @short_errors
    def config_map(cls, config_map: str | NamedObject, *, key: str) -> EnvValue:
        """Read a key of a ConfigMap, given by name or as an object."""
        name = references.name_of("config_map", config_map, "ConfigMap")
        _key(key)
        of_object = None if isinstance(config_map, str) else config_map
        return cls(value_from={"configMapKeyRef": {"name": name, "key": key}}, of_object=of_object)

    @classmethod
    @short_errors
    def field(cls, field_path: str) -> EnvValue:
        """Read a field of the pod, like ``metadata.name``."""
        fields.of_type("field_path", field_path, str)
        if field_path not in _FIELD_PATHS and not _FIELD_OF_MAP.match(field_path):
            raise GpuConstructsError(
                f"field_path must be one of {', '.join(map(repr, _FIELD_PATHS))} or "
                f"metadata.labels['<key>'], metadata.annotations['<key>']; got {field_path!r}"
            )
        return cls(value_from={"fieldRef": {"fieldPath": field_path}})


def environment(given: Mapping[str, object], *, visible_devices_is_managed: bool) -> list[dict[str, Any]]:
    """Return the variables as Kubernetes writes them, in the user's order.

    cdk8s-plus' ``EnvValue`` is taken as well.

    Raises:
        GpuConstructsError: A name no shell takes, a value of another type, a credential in plain text, or
            ``NVIDIA_VISIBLE_DEVICES``.
    """
    if visible_devices_is_managed and VISIBLE_DEVICES in given:
        raise GpuConstructsError(
            f"env[{VISIBLE_DEVICES!r}] must not be set, got {given[VISIBLE_DEVICES]!r}: it overrides the GPU that "
            "was allocated, and 'all' shows every GPU of the node; leave it out, or pass "
            "visible_devices='unmanaged'"
        )
    variables = []
    for name, value in given.items():
        fields.environment_name("env name", name)
        text = value if isinstance(value, str) else getattr(value, "value", None)
        if (source := getattr(value, "value_from", None)) is not None:
            variables.append({"name": name, "valueFrom": source})
        elif isinstance(text, str):
            credentials.refuse_variable(f"env[{name!r}]", name, text, "pass EnvValue.secret(<name>, key=<key>)")
            variables.append({"name": name, "value": text})
        else:
            raise GpuConstructsError(f"env[{name!r}] must be str or an EnvValue; got {type(value).__name__}")
    return variables
