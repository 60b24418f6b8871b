"""What a workload mounts."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from gpu_constructs import _fields, _references
from gpu_constructs._references import NamedObject
from gpu_constructs.errors import GpuConstructsError, ShortErrors, short_errors
from gpu_constructs.workload.volume_claim import VolumeClaim

_SOURCES = (
    "awsElasticBlockStore azureDisk azureFile cephfs cinder configMap csi downwardAPI emptyDir ephemeral fc flexVolume "
    "flocker gcePersistentDisk glusterfs hostPath image iscsi nfs persistentVolumeClaim photonPersistentDisk "
    "portworxVolume projected quobyte rbd scaleIO secret storageos vsphereVolume"
).split()
"""Of a pod's volumes, in any release."""


@dataclass(frozen=True, kw_only=True)
class Volume(metaclass=ShortErrors):
    """A source of files; made by the factories below and mounted by ``volumes={"/path": volume}``.

    Attributes:
        source: The source, as Kubernetes writes it in a pod.
        read_only: Whether the mount refuses writing.
        sub_path: A path in the volume that is mounted instead of all of it.
        of_object: The ConfigMap or Secret it was made of, where that was handed over as an object.
    """

    source: Mapping[str, Any] = field(repr=False)
    read_only: bool = False
    sub_path: str | None = None
    of_object: NamedObject | None = field(default=None, repr=False, compare=False)

    @classmethod
    @short_errors
    def persistent_volume_claim(cls, claim: str | NamedObject, *, read_only: bool = False) -> Volume:
        """Mount a claim, given by name or as an object."""
        name = _references.name_of("claim", claim, "PersistentVolumeClaim")
        return cls(source={"persistentVolumeClaim": {"claimName": name}}, read_only=read_only)

    @classmethod
    @short_errors
    def config_map(cls, config_map: str | NamedObject) -> Volume:
        """Mount the keys of a ConfigMap as files, read-only."""
        name = _references.name_of("config_map", config_map, "ConfigMap")
        return cls(source={"configMap": {"name": name}}, read_only=True, of_object=_object(config_map))

    @classmethod
    @short_errors
    def secret(cls, secret: str | NamedObject) -> Volume:
        """Mount the keys of a Secret as files, read-only."""
        name = _references.name_of("secret", secret, "Secret")
        return cls(source={"secret": {"secretName": name}}, read_only=True, of_object=_object(secret))

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
            _fields.size("size_limit", size_limit)
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
    @short_errors
    def of_source(cls, source: Mapping[str, Any], *, read_only: bool = False) -> Volume:
        """Mount any other source of Kubernetes: ``Volume.of_source({"nfs": {"server": ..., "path": ...}})``.

        Args:
            source: One source, as Kubernetes writes it in a pod.
            read_only: Whether the mount refuses writing.
        """
        _fields.of_type("source", source, Mapping[str, Mapping[str, Any]])
        if len(source) != 1:
            raise GpuConstructsError(f"source must hold one source, like {{'nfs': {{...}}}}; got {dict(source)!r}")
        _fields.one_of("source key", next(iter(source)), _SOURCES)
        return cls(source=dict(source), read_only=read_only)

    @short_errors
    def at(self, sub_path: str) -> Volume:
        """Give the volume with only a path in it mounted, so that one disk serves several mounts."""
        _fields.of_type("sub_path", sub_path, str)
        if not sub_path or sub_path.startswith("/") or ".." in sub_path.split("/"):
            raise GpuConstructsError(f"sub_path must be a relative path without '..'; got {sub_path!r}")
        return replace(self, sub_path=sub_path)

    @classmethod
    def of(cls, field: str, given: Any) -> Volume:
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
            f"{field} must be a Volume, a VolumeClaim or a PersistentVolumeClaim, ConfigMap or Secret object; got {got}"
        )


Mountable = Volume | VolumeClaim | NamedObject
"""What ``volumes`` takes: a PersistentVolumeClaim, ConfigMap or Secret of any cdk8s library as well."""


def _object(given: str | NamedObject) -> NamedObject | None:
    return None if isinstance(given, str) else given


class Mounts:
    """The volumes of a pod, gathered from what its containers mount.

    Attributes:
        sources: The pod's volumes, each named after the path where it was mounted first.
        claims: Disks that the workload brings itself, by the same names.
        objects: ConfigMaps and Secrets that were handed over as objects.
    """

    def __init__(self) -> None:
        self.sources: list[dict[str, Any]] = []
        self.claims: dict[str, VolumeClaim] = {}
        self.objects: list[object] = []
        self._names: list[tuple[str, object, Mapping[str, Any] | None, str]] = []

    def copy(self) -> Mounts:
        """Give the same volumes, to which others may be added apart."""
        made = Mounts()
        made.sources, made.claims, made.objects = [*self.sources], {**self.claims}, [*self.objects]
        made._names = [*self._names]
        return made

    @property
    def has_disk(self) -> bool:
        """Whether something outlives the pod, which a new disk gives to root alone."""
        return bool(self.claims) or any("persistentVolumeClaim" in source for source in self.sources)

    def mounted(self, given: Mapping[str, object], *, shared_memory: str | None = None) -> list[dict[str, Any]]:
        """Give the mounts of one container.

        Raises:
            GpuConstructsError: A path that is not absolute, something that cannot be mounted, or two things at
                ``/dev/shm``.
        """
        volumes = {
            path: one if isinstance(one, VolumeClaim) else Volume.of(f"volumes[{path!r}]", one)
            for path, one in given.items()
        }
        if shared_memory is not None:
            if "/dev/shm" in volumes:
                raise GpuConstructsError("shared_memory and volumes['/dev/shm'] must not both be given")
            _fields.size("shared_memory", shared_memory)
            volumes["/dev/shm"] = Volume.empty_dir(medium="Memory", size_limit=shared_memory)
        made: list[dict[str, Any]] = []
        for path, volume in volumes.items():
            _fields.absolute_path("volumes path", path)
            if ":" in path:
                raise GpuConstructsError(f"volumes path must not hold ':', which no mount takes; got {path!r}")
            name = self._name(path, volume, [mount["name"] for mount in made])
            mount: dict[str, Any] = {"name": name, "mountPath": path}
            if isinstance(volume, Volume):
                mount |= {"readOnly": True if volume.read_only else None, "subPath": volume.sub_path}
            made.append(mount)
        return made

    def _name(self, path: str, volume: Volume | VolumeClaim, taken_here: list[str]) -> str:
        """Give the name of a volume, its own or that of one that is the same."""
        source = volume.source if isinstance(volume, Volume) else None
        for earlier_path, earlier, earlier_source, name in self._names:
            is_same = earlier is volume or (source is not None and earlier_source is source)
            # One object at two paths of a container is two places, unless each shows a part of it.
            is_apart = name in taken_here and getattr(volume, "sub_path", None) is None
            if not is_apart and (is_same or (path == earlier_path and earlier == volume)):
                return name
        slug = re.sub(r"[^a-z0-9]+", "-", path.lower()).strip("-")[:50].strip("-") or "root"
        taken = {name for *_, name in self._names}
        name, number = slug, 1
        while name in taken:
            name, number = f"{slug}-{number}", number + 1
        self._names.append((path, volume, source, name))
        if isinstance(volume, VolumeClaim):
            self.claims[name] = volume
        else:
            self.sources.append({"name": name, **volume.source})
            if volume.of_object is not None:
                self.objects.append(volume.of_object)
        return name


def mounts(
    given: Mapping[str, object], *, shared_memory: str | None
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Give the mounts of a pod's only container and the pod's volumes.

    Raises:
        GpuConstructsError: As of ``Mounts.mounted``, or a ``VolumeClaim``, which only a workload can bring.
    """
    pod = Mounts()
    mounted = pod.mounted(given, shared_memory=shared_memory)
    if pod.claims:
        raise GpuConstructsError("volumes must not hold a VolumeClaim here: only a GpuWorkload brings disks of its own")
    return mounted, pod.sources
