"""What a workload mounts, and the disks that it brings itself."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal

from gpu_constructs.errors import GpuConstructsError, ShortErrors, refuse_if, short_errors
from gpu_constructs.kube import fields, references
from gpu_constructs.kube.references import NamedObject

AccessMode = Literal["ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany", "ReadWriteOncePod"]


@dataclass(frozen=True, kw_only=True)
class VolumeClaim(fields.Options):
    """A disk of its own for a workload, mounted by ``volumes={"/path": VolumeClaim(storage="100Gi")}``.

    A StatefulSet gets one for each of its pods (``volumeClaimTemplates``), every other kind one
    PersistentVolumeClaim named after workload and path.

    Attributes:
        storage: How much, as a quantity.
        access_modes: Who may mount it at once; ``ReadWriteOnce``, one node, by default, since every storage has it.
        storage_class_name: Kind of storage. None: the cluster's default.

    Raises:
        GpuConstructsError: An amount that is not a quantity, an access mode that Kubernetes does not have, or none.
    """

    storage: str
    access_modes: Sequence[AccessMode] = ("ReadWriteOnce",)
    storage_class_name: str | None = None

    _CHECKS: ClassVar[fields.Checks] = {
        "storage": fields.size,
        "storage_class_name": fields.unless("", fields.dns_subdomain),
    }

    def _conflicts(self) -> Iterable[fields.Conflict]:
        yield not self.access_modes, "volume_claim.access_modes must name at least one; got none"

    @property
    def serves_several_nodes(self) -> bool:
        """Whether pods of several nodes may mount it at once."""
        return any(mode in ("ReadWriteMany", "ReadOnlyMany") for mode in self.access_modes)

    def spec(self) -> dict[str, Any]:
        """Return the claim as Kubernetes writes it."""
        return {
            "accessModes": list(self.access_modes),
            "resources": {"requests": {"storage": self.storage}},
            "storageClassName": self.storage_class_name,
        }


_SOURCES = (
    "awsElasticBlockStore azureDisk azureFile cephfs cinder configMap csi downwardAPI emptyDir ephemeral fc flexVolume "
    "flocker gcePersistentDisk glusterfs hostPath image iscsi nfs persistentVolumeClaim photonPersistentDisk "
    "portworxVolume projected quobyte rbd scaleIO secret storageos vsphereVolume"
).split()
"""Names of the volume sources of a pod, in any release of Kubernetes."""


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
        name = references.name_of("claim", claim, "PersistentVolumeClaim")
        return cls(source={"persistentVolumeClaim": {"claimName": name}}, read_only=read_only)

    @classmethod
    @short_errors
    def config_map(cls, config_map: str | NamedObject) -> Volume:
        """Mount the keys of a ConfigMap as files, read-only."""
        name = references.name_of("config_map", config_map, "ConfigMap")
        return cls(source={"configMap": {"name": name}}, read_only=True, of_object=_object(config_map))

    @classmethod
    @short_errors
    def secret(cls, secret: str | NamedObject) -> Volume:
        """Mount the keys of a Secret as files, read-only."""
        name = references.name_of("secret", secret, "Secret")
        return cls(source={"secret": {"secretName": name}}, read_only=True, of_object=_object(secret))

    @classmethod
    @short_errors
    def empty_dir(cls, *, medium: Literal["", "Memory"] = "", size_limit: str | None = None) -> Volume:
        """Mount an empty directory that lives and dies with the pod.

        Args:
            medium: ``Memory`` keeps it in RAM, where it counts against the memory limit.
            size_limit: A quantity; a pod that exceeds it is evicted.
        """
        fields.of_type("medium", medium, Literal["", "Memory"])
        if size_limit is not None:
            fields.of_type("size_limit", size_limit, str)
            fields.size("size_limit", size_limit)
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
        fields.of_type("path", path, str)
        fields.absolute_path("path", path)
        fields.one_of("type", type, ("", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket"))
        return cls(source={"hostPath": {"path": path, **({"type": type} if type else {})}}, read_only=read_only)

    @classmethod
    @short_errors
    def of_source(cls, source: Mapping[str, Any], *, read_only: bool = False) -> Volume:
        """Mount any other source of Kubernetes: ``Volume.of_source({"nfs": {"server": ..., "path": ...}})``.

        Args:
            source: One source, as Kubernetes writes it in a pod.
            read_only: Whether the mount refuses writing.
        """
        fields.of_type("source", source, Mapping[str, Mapping[str, Any]])
        refuse_if(len(source) != 1, "source", "hold one source, like {'nfs': {...}}", dict(source))
        fields.one_of("source key", next(iter(source)), _SOURCES)
        return cls(source=dict(source), read_only=read_only)

    @short_errors
    def at(self, sub_path: str) -> Volume:
        """Return the volume with only a path in it mounted, so that one disk serves several mounts."""
        fields.of_type("sub_path", sub_path, str)
        if not sub_path or sub_path.startswith("/") or ".." in sub_path.split("/"):
            raise GpuConstructsError(f"sub_path must be a relative path without '..'; got {sub_path!r}")
        return replace(self, sub_path=sub_path)

    @classmethod
    def of(cls, field: str, given: Any) -> Volume:
        """Return the volume for what a user put into ``volumes``: a volume, or an object that can be mounted."""
        if isinstance(given, cls):
            return given
        kind = getattr(getattr(given, "api_object", given), "kind", None)
        made_of: Mapping[Any, Callable[[Any], Volume]] = {
            "PersistentVolumeClaim": cls.persistent_volume_claim,
            "ConfigMap": cls.config_map,
            "Secret": cls.secret,
        }
        if kind in made_of:
            return made_of[kind](given)
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


@dataclass
class Mounts:
    """The volumes of a pod, gathered from what its containers mount.

    Attributes:
        reserved: Names that the volumes must not have.
        sources: The pod's volumes, each named after the path where it was mounted first.
        claims: Disks that the workload brings itself, by the same names.
        objects: ConfigMaps and Secrets that were handed over as objects.
    """

    reserved: Collection[str] = ()
    sources: list[dict[str, Any]] = field(default_factory=list)
    claims: dict[str, VolumeClaim] = field(default_factory=dict)
    objects: list[object] = field(default_factory=list)
    _names: list[tuple[str, object, Mapping[str, Any] | None, str]] = field(default_factory=list)

    def copy(self) -> Mounts:
        """Return the same volumes, to which others may be added apart."""
        return Mounts(self.reserved, [*self.sources], {**self.claims}, [*self.objects], [*self._names])

    @property
    def has_disk(self) -> bool:
        """Whether something outlives the pod, which a new disk gives to root alone."""
        return bool(self.claims) or any("persistentVolumeClaim" in source for source in self.sources)

    def disks(self, owner: str, *, pods_at_once: int, way_out: str) -> list[dict[str, Any]]:
        """Return the volumes of the pod whose disks the workload brings itself.

        Args:
            owner: Name of the workload, after which its disks are called.
            pods_at_once: Number of pods that mount the disks.
            way_out: What to do if a disk does not serve that many.

        Raises:
            GpuConstructsError: A disk serves one node, and several pods mount it.
        """
        for claim in self.claims.values():
            if pods_at_once > 1 and not claim.serves_several_nodes:
                raise GpuConstructsError(
                    f"volumes: a VolumeClaim with access_modes {list(claim.access_modes)} serves one node, but "
                    f"{pods_at_once} pods run at once; {way_out}"
                )
        return [{"name": name, "persistentVolumeClaim": {"claimName": f"{owner}-{name}"}} for name in self.claims]

    def claim_manifests(self, metadata: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
        """Return the PersistentVolumeClaims of the disks that the workload brings itself, by name of the volume."""
        owner = metadata["name"]
        return {
            name: {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "metadata": {**metadata, "name": f"{owner}-{name}", "annotations": None},
                "spec": claim.spec(),
            }
            for name, claim in self.claims.items()
        }

    def mounted(self, given: Mapping[str, object], *, shared_memory: str | None = None) -> list[dict[str, Any]]:
        """Return the mounts of one container.

        Raises:
            GpuConstructsError: A path that is not absolute, something that cannot be mounted, or two things at
                ``/dev/shm``.
        """
        volumes = {
            path: one if isinstance(one, VolumeClaim) else Volume.of(f"volumes[{path!r}]", one)
            for path, one in given.items()
        }
        if shared_memory is not None:
            refuse_if("/dev/shm" in volumes, "shared_memory and volumes['/dev/shm']", "not both be given")
            fields.size("shared_memory", shared_memory)
            volumes["/dev/shm"] = Volume.empty_dir(medium="Memory", size_limit=shared_memory)
        made: list[dict[str, Any]] = []
        for path, volume in volumes.items():
            fields.absolute_path("volumes path", path)
            refuse_if(":" in path, "volumes path", "not hold ':', which no mount takes", path)
            name = self._name(path, volume, [mount["name"] for mount in made])
            mount: dict[str, Any] = {"name": name, "mountPath": path}
            if isinstance(volume, Volume):
                mount |= {"readOnly": True if volume.read_only else None, "subPath": volume.sub_path}
            made.append(mount)
        return made

    def _name(self, path: str, volume: Volume | VolumeClaim, taken_here: list[str]) -> str:
        """Return the name of a volume, its own or that of one that is the same."""
        source = volume.source if isinstance(volume, Volume) else None
        for earlier_path, earlier, earlier_source, name in self._names:
            is_same = earlier is volume or (source is not None and earlier_source is source)
            # One object at two paths of a container is two places, unless each shows a part of it.
            is_apart = name in taken_here and getattr(volume, "sub_path", None) is None
            if not is_apart and (is_same or (path == earlier_path and earlier == volume)):
                return name
        slug = re.sub(r"[^a-z0-9]+", "-", path.lower()).strip("-")[:50].strip("-") or "root"
        taken = {*self.reserved, *(name for *_, name in self._names)}
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
    given: Mapping[str, object], *, shared_memory: str | None, reserved: Collection[str] = ()
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the mounts of a pod's only container and the pod's volumes.

    Raises:
        GpuConstructsError: As of ``Mounts.mounted``, or a ``VolumeClaim``, which only a workload can bring.
    """
    pod = Mounts(reserved)
    mounted = pod.mounted(given, shared_memory=shared_memory)
    refuse_if(pod.claims, "volumes", "not hold a VolumeClaim here: only a GpuWorkload brings disks of its own")
    return mounted, pod.sources
