"""What a workload mounts."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from gpu_constructs import _fields, _references
from gpu_constructs.errors import GpuConstructsError, ShortErrors, short_errors


@dataclass(frozen=True, kw_only=True)
class Volume(metaclass=ShortErrors):
    """A source of files; made by the factories below and mounted by ``volumes={"/path": volume}``.

    Attributes:
        source: The source, as Kubernetes writes it in a pod.
        read_only: Whether the mount refuses writing.
    """

    source: Mapping[str, Any] = field(repr=False)
    read_only: bool = False

    @classmethod
    @short_errors
    def persistent_volume_claim(cls, claim: object, *, read_only: bool = False) -> Volume:
        """Mount a claim, given by name or as an object."""
        name = _references.name_of("claim", claim, "PersistentVolumeClaim")
        return cls(source={"persistentVolumeClaim": {"claimName": name}}, read_only=read_only)

    @classmethod
    @short_errors
    def config_map(cls, config_map: object) -> Volume:
        """Mount the keys of a ConfigMap as files, read-only."""
        name = _references.name_of("config_map", config_map, "ConfigMap")
        return cls(source={"configMap": {"name": name}}, read_only=True)

    @classmethod
    @short_errors
    def secret(cls, secret: object) -> Volume:
        """Mount the keys of a Secret as files, read-only."""
        name = _references.name_of("secret", secret, "Secret")
        return cls(source={"secret": {"secretName": name}}, read_only=True)

    @classmethod
    @short_errors
    def empty_dir(cls, *, medium: Literal["", "Memory"] = "", size_limit: str | None = None) -> Volume:
        """Mount an empty directory that lives and dies with the pod.

        Args:
            medium: ``Memory`` keeps it in RAM, where it counts against the memory limit.
            size_limit: A quantity; a pod that exceeds it is evicted.
        """
        _fields.of_type("medium", medium, Literal["", "Memory"])
        if size_limit is not None:
            _fields.of_type("size_limit", size_limit, str)
            _fields.quantity("size_limit", size_limit)
        limits = {"medium": medium or None, "sizeLimit": size_limit}
        return cls(source={"emptyDir": {name: value for name, value in limits.items() if value}})

    @classmethod
    @short_errors
    def host_path(
        cls,
        path: str,
        *,
        type: Literal["", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket"] = "",  # noqa: A002
        read_only: bool = True,
    ) -> Volume:
        """Mount a path of the node; the pod then needs a privileged namespace.

        Args:
            path: Absolute.
            type: What must be there; without one nothing is checked.
            read_only: Whether the mount refuses writing. True: what a pod writes there outlives it.
        """
        _fields.of_type("path", path, str)
        _fields.absolute_path("path", path)
        _fields.one_of("type", type, ("", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket"))
        return cls(source={"hostPath": {"path": path, **({"type": type} if type else {})}}, read_only=read_only)

    @classmethod
    def of(cls, field: str, given: object) -> Volume:
        """Give the volume for what a user put into ``volumes``: a volume, or an object that can be mounted."""
        if isinstance(given, cls):
            return given
        kind = getattr(getattr(given, "api_object", given), "kind", None)
        if kind == "PersistentVolumeClaim":
            return cls.persistent_volume_claim(given)
        if kind == "ConfigMap":
            return cls.config_map(given)
        if kind == "Secret":
            return cls.secret(given)
        got = (
            f"a {kind}"
            if isinstance(kind, str)
            else f"{type(given).__module__}.{type(given).__name__}".removeprefix("builtins.")
        )
        raise GpuConstructsError(
            f"{field} must be a Volume or a PersistentVolumeClaim, ConfigMap or Secret object; got {got}"
        )


def mounts(
    given: Mapping[str, object], *, shared_memory: str | None
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Give the container's mounts and the pod's volumes, each named after its path.

    Raises:
        GpuConstructsError: A path that is not absolute, something that cannot be mounted, or two things at
            ``/dev/shm``.
    """
    volumes = {path: Volume.of(f"volumes[{path!r}]", volume) for path, volume in given.items()}
    if shared_memory is not None:
        if "/dev/shm" in volumes:
            raise GpuConstructsError("shared_memory and volumes['/dev/shm'] must not both be given")
        _fields.quantity("shared_memory", shared_memory)
        volumes["/dev/shm"] = Volume.empty_dir(medium="Memory", size_limit=shared_memory)
    mounted: list[dict[str, Any]] = []
    sources: list[dict[str, Any]] = []
    for path, volume in volumes.items():
        _fields.absolute_path("volumes path", path)
        if ":" in path:
            raise GpuConstructsError(f"volumes path must not hold ':', which no mount takes; got {path!r}")
        slug = re.sub(r"[^a-z0-9]+", "-", path.lower()).strip("-")[:50].strip("-") or "root"
        name, number = slug, 1
        while any(source["name"] == name for source in sources):
            name, number = f"{slug}-{number}", number + 1
        mounted.append({"name": name, "mountPath": path, "readOnly": True if volume.read_only else None})
        sources.append({"name": name, **volume.source})
    return mounted, sources
