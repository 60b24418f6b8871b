"""Volumes that workloads mount, and the PersistentVolumeClaims that they create."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, ClassVar, Literal

from gpu_constructs.errors import GpuConstructsError, ShortErrors, refuse_if, short_errors, then
from gpu_constructs.kube import fields, references
from gpu_constructs.kube.references import NamedObject
from gpu_constructs.records import dataclass, field, replace

AccessMode = Literal["ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany", "ReadWriteOncePod"]


@dataclass(frozen=True, kw_only=True)
class VolumeClaim(fields.Options):
    """A PersistentVolumeClaim that a workload creates and mounts.

    Use it as ``volumes={"/path": VolumeClaim(storage="100Gi")}``. A StatefulSet creates one claim for each of its pods
    (``volumeClaimTemplates``). Every other kind of workload emits one claim, whose name consists of the names of the
    workload and the volume.

    Attributes:
        storage: Size of the volume, as a quantity.
        access_modes: Access modes of the claim; by default ``ReadWriteOnce`` (one node), which every storage supports.
        storage_class_name: Name of the StorageClass. With None, Kubernetes uses the default StorageClass of the
            cluster.

    Raises:
        GpuConstructsError: The size is not a quantity, an access mode is unknown, or there is no access mode.
    """

    storage: str
    access_modes: Sequence[AccessMode] = ("ReadWriteOnce",)
    storage_class_name: str | None = None

    _CHECKS: ClassVar[fields.Checks] = {
        "storage": fields.size,
        "storage_class_name": fields.unless("", fields.dns_subdomain),
    }

    def _conflicts(self) -> Iterable[fields.Conflict]:
        yield not self.access_modes, "volume_claim.access_modes must have at least one mode, got none"

    @property
    def serves_several_nodes(self) -> bool:
        """Whether pods on several nodes can mount the volume at the same time."""
        return any(mode in ("ReadWriteMany", "ReadOnlyMany") for mode in self.access_modes)

    def spec(self) -> dict[str, Any]:
        """Return the spec of the claim as it appears in a manifest."""
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
    """A volume of a pod. Use it as ``volumes={"/path": volume}``.

    Create one with a class method such as ``Volume.config_map`` or ``Volume.host_path``.

    Attributes:
        source: Source of the volume, as in a manifest.
        read_only: Whether the mount prevents writes; False by default.
        sub_path: Path in the volume to mount. With None, the container mounts the root of the volume.
        of_object: Construct of the ConfigMap or Secret; None (the default) if the user passes its name.
    """

    source: Mapping[str, Any] = field(repr=False)
    read_only: bool = False
    sub_path: str | None = None
    of_object: NamedObject | None = field(default=None, repr=False, compare=False)

    @classmethod
    @short_errors
    def persistent_volume_claim(cls, claim: str | NamedObject, *, read_only: bool = False) -> Volume:
        """Return the volume of an existing PersistentVolumeClaim.

        Args:
            claim: Name or construct of the claim.
            read_only: Whether the mount prevents writes; False by default.
        """
        name = references.name_of("claim", claim, "PersistentVolumeClaim")
        return cls(source={"persistentVolumeClaim": {"claimName": name}}, read_only=read_only)

    @classmethod
    @short_errors
    def config_map(cls, config_map: str | NamedObject) -> Volume:
        """Return a volume with the keys of a ConfigMap as read-only files.

        The argument is the name or the construct of the ConfigMap.
        """
        name = references.name_of("config_map", config_map, "ConfigMap")
        return cls(source={"configMap": {"name": name}}, read_only=True, of_object=_object(config_map))

    @classmethod
    @short_errors
    def secret(cls, secret: str | NamedObject) -> Volume:
        """Return a volume with the keys of a Secret as read-only files.

        The argument is the name or the construct of the Secret.
        """
        name = references.name_of("secret", secret, "Secret")
        return cls(source={"secret": {"secretName": name}}, read_only=True, of_object=_object(secret))

    @classmethod
    @short_errors
    def empty_dir(cls, *, medium: Literal["", "Memory"] = "", size_limit: str | None = None) -> Volume:
        """Return a volume for temporary files. Kubernetes deletes the volume with the pod.

        Args:
            medium: Medium of the volume. Empty (the default) uses the disk of the node. ``Memory`` uses RAM, which
                counts against the memory limit of the container.
            size_limit: Largest size as a quantity. Kubernetes evicts a pod that exceeds it. None sets no limit.
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
        """Return a volume that is a path of the node. Its pod needs a privileged namespace.

        Args:
            path: Absolute path on the node.
            type: What must exist at the path: a Kubernetes ``hostPath`` type such as ``Directory``. By default,
                Kubernetes does not check the path.
            read_only: Whether the mount prevents writes; True by default, because files on the node outlive the pod.
        """
        fields.of_type("path", path, str)
        fields.absolute_path("path", path)
        fields.one_of("type", type, ("", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket"))
        return cls(source={"hostPath": {"path": path, **({"type": type} if type else {})}}, read_only=read_only)

    @classmethod
    @short_errors
    def of_source(cls, source: Mapping[str, Any], *, read_only: bool = False) -> Volume:
        """Return a volume of any kind, for example ``Volume.of_source({"nfs": {"server": ..., "path": ...}})``.

        Args:
            source: Mapping with one volume source, as in a manifest.
            read_only: Whether the mount prevents writes; False by default.
        """
        fields.of_type("source", source, Mapping[str, Mapping[str, Any]])
        refuse_if(len(source) != 1, "source", "hold one source, like {'nfs': {...}}", dict(source))
        fields.one_of("source key", next(iter(source)), _SOURCES)
        return cls(source=dict(source), read_only=read_only)

    @short_errors
    def at(self, sub_path: str) -> Volume:
        """Return a copy of the volume that mounts only one path in it. Use it to mount several parts of a volume.

        Args:
            sub_path: Relative path in the volume, without ``..``.
        """
        fields.of_type("sub_path", sub_path, str)
        if not sub_path or sub_path.startswith("/") or ".." in sub_path.split("/"):
            raise GpuConstructsError(f"sub_path must be a relative path without '..', got {sub_path!r}")
        return replace(self, sub_path=sub_path)

    @classmethod
    def of(cls, field: str, given: Any) -> Volume:
        """Return the ``Volume`` for a value that the user passes in ``volumes``.

        Args:
            field: Name of the option, for error messages.
            given: Value that the user passes.
        """
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
            f"{field} must be a Volume, a VolumeClaim or a construct of a PersistentVolumeClaim, ConfigMap or Secret, "
            f"got {got}"
        )


Mountable = Volume | VolumeClaim | NamedObject
"""The values that ``volumes`` accepts.

A ``NamedObject`` is the construct of a PersistentVolumeClaim, a ConfigMap or a Secret.
"""


def _object(given: str | NamedObject) -> NamedObject | None:
    return None if isinstance(given, str) else given


@dataclass
class Mounts:
    """The volumes of a pod. Each container adds the volumes that it mounts.

    Attributes:
        reserved: Names that a volume must not have, because the library uses them.
        sources: Volumes of the pod except ``claims``, as entries of ``volumes`` in a pod spec. The name of a volume
            comes from its first mount path.
        claims: PersistentVolumeClaims that the workload creates, by name of the volume.
        objects: Constructs of ConfigMaps and Secrets that the user passes instead of names.
    """

    reserved: Collection[str] = ()
    sources: list[dict[str, Any]] = field(default_factory=list)
    claims: dict[str, VolumeClaim] = field(default_factory=dict)
    objects: list[object] = field(default_factory=list)
    _names: list[tuple[str, object, Mapping[str, Any] | None, str]] = field(default_factory=list)

    def copy(self) -> Mounts:
        """Return a copy of these volumes. Changes to the copy do not change the original."""
        return Mounts(self.reserved, [*self.sources], {**self.claims}, [*self.objects], [*self._names])

    @property
    def has_disk(self) -> bool:
        """Whether the pod mounts a PersistentVolumeClaim. A user other than root then needs ``fsGroup`` to write."""
        return bool(self.claims) or any("persistentVolumeClaim" in source for source in self.sources)

    def disks(self, owner: str, *, pods_at_once: int, way_out: str) -> list[dict[str, Any]]:
        """Return the entries of ``volumes`` in the pod spec for the PersistentVolumeClaims that the workload creates.

        Args:
            owner: Name of the workload, which is the prefix of the names of its claims.
            pods_at_once: Number of pods that mount the PersistentVolumeClaims at the same time.
            way_out: Sentence at the end of the error message that states what the user can do.

        Raises:
            GpuConstructsError: Several pods mount a claim that only one node can mount.
        """
        for claim in self.claims.values():
            if pods_at_once > 1 and not claim.serves_several_nodes:
                raise GpuConstructsError(
                    f"volumes: a VolumeClaim with access_modes {list(claim.access_modes)} supports one node, but "
                    f"{pods_at_once} pods run at the same time{then(way_out)}"
                )
        return [{"name": name, "persistentVolumeClaim": {"claimName": f"{owner}-{name}"}} for name in self.claims]

    def claim_manifests(self, metadata: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
        """Return the manifests of the PersistentVolumeClaims that the workload creates, by name of the volume."""
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
        """Return the volume mounts of one container, as in a manifest, and add its volumes to the volumes of the pod.

        Args:
            given: Volumes by mount path.
            shared_memory: Size of a memory volume at ``/dev/shm``, as a quantity. None mounts no volume there.

        Raises:
            GpuConstructsError: A path is not absolute, a value is not a volume, or there are two volumes for
                ``/dev/shm``.
        """
        volumes = {
            path: one if isinstance(one, VolumeClaim) else Volume.of(f"volumes[{path!r}]", one)
            for path, one in given.items()
        }
        if shared_memory is not None:
            refuse_if("/dev/shm" in volumes, "shared_memory and volumes['/dev/shm']", "not occur together")
            fields.size("shared_memory", shared_memory)
            volumes["/dev/shm"] = Volume.empty_dir(medium="Memory", size_limit=shared_memory)
        made: list[dict[str, Any]] = []
        for path, volume in volumes.items():
            fields.absolute_path("volumes path", path)
            refuse_if(":" in path, "volumes path", "not contain ':'", path)
            name = self._name(path, volume, [mount["name"] for mount in made])
            mount: dict[str, Any] = {"name": name, "mountPath": path}
            if isinstance(volume, Volume):
                mount |= {"readOnly": True if volume.read_only else None, "subPath": volume.sub_path}
            made.append(mount)
        return made

    def _name(self, path: str, volume: Volume | VolumeClaim, taken_here: list[str]) -> str:
        """Return the name of a volume in the pod spec, and add the volume to the pod if it is new.

        A volume is not new if the pod already mounts the same Python object, or an equal volume at the same path. If
        one container mounts a volume twice, the second mount gets a new volume, unless ``volume`` has a ``sub_path``.

        Args:
            path: Mount path, from which the name of a new volume comes: ``data-models`` for ``/data/models``.
            volume: Volume to mount.
            taken_here: Names of volumes that the container already mounts.
        """
        source = volume.source if isinstance(volume, Volume) else None
        for earlier_path, earlier, earlier_source, name in self._names:
            is_same = earlier is volume or (source is not None and earlier_source is source)
            # A container that mounts one object at two paths needs two volumes, except for different sub-paths.
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
    """Return the volume mounts of the only container of a pod, and the volumes of the pod.

    Args:
        given: Volumes by mount path.
        shared_memory: Size of a memory volume at ``/dev/shm``, as a quantity. None mounts no volume there.
        reserved: Names that a volume must not have, because the library uses them; none by default.

    Raises:
        GpuConstructsError: A value or a path is invalid, as for ``Mounts.mounted``, or a value is a ``VolumeClaim``,
            which only a workload can create.
    """
    pod = Mounts(reserved)
    mounted = pod.mounted(given, shared_memory=shared_memory)
    refuse_if(pod.claims, "volumes", "not contain a VolumeClaim: only a GpuWorkload creates claims")
    return mounted, pod.sources
