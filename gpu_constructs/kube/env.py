"""Environment variables of containers. A value can come from a Secret, a ConfigMap or a field of the pod."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from gpu_constructs.errors import GpuConstructsError, ShortErrors, refuse_if, short_errors
from gpu_constructs.kube import credentials, fields, references
from gpu_constructs.kube.references import NamedObject
from gpu_constructs.records import dataclass, field, regex

VISIBLE_DEVICES = "NVIDIA_VISIBLE_DEVICES"


_KEY = regex(r"[-._a-zA-Z0-9]{1,253}\Z")
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
_FIELD_OF_MAP = regex(r"metadata\.(labels|annotations)\['[^']+'\]\Z")


def _key(key: str) -> None:
    fields.of_type("key", key, str)
    refuse_if(not _KEY.match(key), "key", "be letters, digits, '-', '_' or '.'", key)


class AnyEnvValue(Protocol):
    """A protocol for the ``EnvValue`` of this library and of cdk8s-plus: any object with a ``value_from``."""

    @property
    def value_from(self) -> Any:
        """Field ``valueFrom`` of the environment variable, such as ``{"fieldRef": {...}}``."""


@dataclass(frozen=True, kw_only=True)
class EnvValue(metaclass=ShortErrors):
    """The source of the value of an environment variable.

    Create one with ``EnvValue.secret``, ``EnvValue.config_map`` or ``EnvValue.field``.

    Attributes:
        value_from: Field ``valueFrom`` of the environment variable, such as ``{"secretKeyRef": {...}}``.
        of_object: Construct of the ConfigMap that contains the value. None (the default) if the user passes the name of
            a ConfigMap, and for a value from a Secret or a field.
    """

    value_from: Mapping[str, Any] = field(repr=False)
    of_object: NamedObject | None = field(default=None, repr=False, compare=False)

    @classmethod
    @short_errors
    def secret(cls, secret: str | NamedObject, *, key: str) -> EnvValue:
        """Return an environment value that the container reads from a key of a Secret when it starts.

        Args:
            secret: Name or construct of the Secret.
            key: Key in the Secret.
        """
        name = references.name_of("secret", secret, "Secret")
        _key(key)
        return cls(value_from={"secretKeyRef": {"name": name, "key": key}})

    @classmethod
    @short_errors
    def config_map(cls, config_map: str | NamedObject, *, key: str) -> EnvValue:
        """Return an environment value that the container reads from a key of a ConfigMap when it starts.

        Args:
            config_map: Name or construct of the ConfigMap.
            key: Key in the ConfigMap.
        """
        name = references.name_of("config_map", config_map, "ConfigMap")
        _key(key)
        of_object = None if isinstance(config_map, str) else config_map
        return cls(value_from={"configMapKeyRef": {"name": name, "key": key}}, of_object=of_object)

    @classmethod
    @short_errors
    def field(cls, field_path: str) -> EnvValue:
        """Return an environment value that the container reads from a field of its pod when it starts.

        Args:
            field_path: Path of the field, such as ``metadata.name``.
        """
        fields.of_type("field_path", field_path, str)
        if field_path not in _FIELD_PATHS and not _FIELD_OF_MAP.match(field_path):
            raise GpuConstructsError(
                f"field_path must be one of {', '.join(map(repr, _FIELD_PATHS))} or "
                f"metadata.labels['<key>'], metadata.annotations['<key>'], got {field_path!r}"
            )
        return cls(value_from={"fieldRef": {"fieldPath": field_path}})


def environment(given: Mapping[str, object], *, visible_devices_is_managed: bool) -> list[dict[str, Any]]:
    """Return environment variables as in a manifest, in the order of ``given``.

    Args:
        given: Values by name: text, or an ``EnvValue`` of this library or of cdk8s-plus.
        visible_devices_is_managed: Whether to reject the variable ``NVIDIA_VISIBLE_DEVICES``.

    Raises:
        GpuConstructsError: A name is not a valid variable name, a value has another type or is a credential in plain
            text, or ``given`` contains the rejected variable.
    """
    if visible_devices_is_managed and VISIBLE_DEVICES in given:
        raise GpuConstructsError(
            f"env[{VISIBLE_DEVICES!r}] must not be set, got {given[VISIBLE_DEVICES]!r}: it overrides the allocated "
            "GPU, and 'all' exposes every GPU of the node. Leave it out, or pass "
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
            raise GpuConstructsError(f"env[{name!r}] must be str or an EnvValue, got {type(value).__name__}")
    return variables
