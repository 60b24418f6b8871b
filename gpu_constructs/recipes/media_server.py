"""`Jellyfin` and `Plex`: media servers that transcode video on a GPU."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, Unpack

from constructs import Construct

from gpu_constructs.errors import refuse_if
from gpu_constructs.kube import fields
from gpu_constructs.kube.container import Probe
from gpu_constructs.kube.references import NamedObject
from gpu_constructs.kube.resources import Resources
from gpu_constructs.kube.tables import table
from gpu_constructs.kube.volume import Mountable, Volume, VolumeClaim
from gpu_constructs.recipes.http_server import (
    HttpServer,
    is_image_of,
    refuse_variables,
    startup_probe,
    with_defaults,
)
from gpu_constructs.tree.construct import checked
from gpu_constructs.workload.gpu_request import GpuRequest
from gpu_constructs.workload.options import WorkloadOptions

_RESOURCES: Resources = {"requests": {"cpu": "500m", "memory": "1Gi"}, "limits": {"memory": "8Gi"}}
_START_AS_ROOT = ("CHOWN", "DAC_OVERRIDE", "KILL", "SETGID", "SETUID")
"""Linux capabilities for images that start as root.

Their init process changes the owner of folders, and then runs the server as another user.
"""


class MediaServer(HttpServer):
    """Base class of ``Jellyfin`` and ``Plex``: a media server that transcodes video on a GPU."""

    _SERVER: ClassVar[str]

    @checked
    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        media: Mapping[str, Volume | NamedObject] | None = None,
        storage: str = "20Gi",
        storage_class_name: str | None = None,
        transcode: Mountable | None = None,
        run_as_user: int = 1000,
        fs_group: int | None = None,
        startup_seconds: int = 1800,
        image: str | None = None,
        **options: Unpack[WorkloadOptions],
    ) -> None:
        """Create the objects of the server.

        Args:
            scope: Chart, or a construct in a chart.
            id: ID of the construct. It is also the name of the objects, unless you set ``name``.
            media: Volumes with your media by mount path, for example ``{"/media":
                Volume.persistent_volume_claim("media")}``. The server can only read these volumes. If the server must
                delete or record media, use ``volumes`` instead. For an NFS share, use ``Volume.of_source({"nfs":
                {"server": "nas.example.com", "path": "/media"}})``, which needs the Pod Security level ``baseline``.
                ``Volume.host_path`` needs the level ``privileged``. None: the server has no media.
            storage: Size of the disk at ``/config``, as a quantity. The disk contains the database and the pictures.
            storage_class_name: Name of the StorageClass of the disk. None: the default of the cluster. The file system
                must support file locks, so do not use a network share.
            transcode: Volume for temporary files, such as transcoded video. None: an empty directory of at most 50Gi on
                the disk of the node. Kubernetes deletes the directory with the pod. For RAM, use
                ``Volume.empty_dir(medium="Memory", size_limit="4Gi")``. Files in RAM count against the memory limit.
            run_as_user: User ID of the server. It must not be 0. An image that starts as root changes to this user.
            fs_group: Group ID of the server and of its disk. Set the group that can read your media. None: the number
                of ``run_as_user``.
            startup_seconds: Time that the server may need to start, in seconds. A new release can first convert a large
                database.
            image: Image of the server, for example another release. None: the default image of the recipe. For images
                of LinuxServer.io, in any registry, the recipe sets the variables and paths of these images. It treats
                all other images like the default image.
            options: Options of ``GpuWorkload``. For this recipe:

                - ``env`` must not contain the user and group IDs that the recipe sets, such as ``PUID``.
                - ``gpus`` is 1 by default. The server transcodes on one GPU.
                - A volume at the path ``/config`` in ``volumes`` replaces the disk.
                - ``resources`` by default request half a CPU and 1Gi, with a memory limit of 8Gi.

        Raises:
            GpuConstructsError: If a value is not allowed, if ``env`` contains a variable that the recipe sets, or if
                ``GpuWorkload`` rejects an option.
        """
        images = table("gpu_constructs.recipes", "media_servers.yaml")[self._SERVER]
        image = images[0]["image"] if image is None else image
        facts = next((one for one in images if is_image_of(image, one["repository"])), images[0])
        fields.whole_number("run_as_user", run_as_user, minimum=1)
        group = run_as_user if fs_group is None else fs_group
        fields.whole_number("fs_group", group, minimum=1)
        volumes: dict[str, object] = {
            "/config": VolumeClaim(storage=storage, storage_class_name=storage_class_name),
            facts["transcode"]: transcode or Volume.empty_dir(size_limit="50Gi"),
            **_read_only(media or {}),
        }
        env: dict[str, str] = {}
        rights: dict[str, Any] = {"capabilities": _START_AS_ROOT}
        if facts.get("user"):
            env = dict(zip(facts["user"], (str(run_as_user), str(group)), strict=True))
            refuse_variables(options, dict.fromkeys(env, "set run_as_user and fs_group"))
        else:
            volumes["/tmp"] = Volume.empty_dir(size_limit="10Gi")
            rights = {"run_as_user": run_as_user, "fs_group": group, "read_only_root_filesystem": True}
        super().__init__(
            scope,
            id,
            image=image,
            ports={"http": facts["port"]},
            startup_probe=startup_probe(facts["health"], startup_seconds),
            readiness_probe=Probe.http_get(facts["health"], port="http"),
            liveness_probe=Probe.http_get(facts["health"], port="http", timeout_seconds=10, failure_threshold=6),
            # The server ends its transcodings and closes its database.
            termination_grace_period_seconds=120,
            **rights,
            **{
                **with_defaults(options, env=env, volumes=volumes, resources=_RESOURCES),
                "gpus": _with_video(options.get("gpus", 1)),
            },
        )


class Jellyfin(MediaServer):
    """A Jellyfin server that transcodes video on a GPU, with a disk for its database.

    Emits a Deployment of one pod with the strategy ``Recreate``, a Service at port 8096, and a PersistentVolumeClaim.
    There is always exactly one replica, because two servers would damage the database.

    The default image is ``docker.io/jellyfin/jellyfin:10.11.11``. It runs as a non-root user, and cannot write to its
    root file system. The pods satisfy the Pod Security level ``restricted``, unless ``media`` contains an NFS share or
    a path of the node. The image of LinuxServer.io starts as root, and needs the level ``baseline``.

    **The GPU.** A pod requests one GPU, or one slot of a shared GPU. The recipe adds the driver capability ``video`` to
    the request, which results in ``NVIDIA_DRIVER_CAPABILITIES=compute,utility,video``. Without this capability, the
    container cannot use NVENC and NVDEC, the video encoder and decoder of the GPU. After the first start, select
    "NVIDIA NVENC" as the hardware acceleration in the dashboard of Jellyfin.

    Source:
        jellyfin/jellyfin-helm@98927cb:charts/jellyfin/Chart.yaml;
        jellyfin/jellyfin-packaging@69a2981:docker/Dockerfile;
        jellyfin/jellyfin.org@04dc6a6:docs/general/post-install/transcoding/hardware-acceleration/nvidia.md
    """

    _SERVER = "Jellyfin"


class Plex(MediaServer):
    """A Plex Media Server that transcodes video on a GPU, with a disk for its database.

    Emits a Deployment of one pod with the strategy ``Recreate``, a Service at port 32400, and a PersistentVolumeClaim.
    There is always exactly one replica, because two servers would damage the database.

    The default image is ``docker.io/plexinc/pms-docker:1.43.0.10492-121068a07``. It starts as root and changes to
    ``run_as_user``. For this, the container keeps the Linux capabilities CHOWN, DAC_OVERRIDE, KILL, SETGID and SETUID,
    and drops all other capabilities. The namespace needs the Pod Security level ``baseline``.

    **The claim token** of Plex connects a new server to your account: ``env={"PLEX_CLAIM": EnvValue.secret("plex",
    key="claim")}``. A token expires four minutes after you request it at plex.tv/claim. A connected server ignores the
    token. Without a token, connect the server in a browser through ``kubectl port-forward``.

    **The GPU.** A pod requests one GPU, or one slot of a shared GPU. The recipe adds the driver capability ``video`` to
    the request, which results in ``NVIDIA_DRIVER_CAPABILITIES=compute,utility,video``. Without this capability, the
    container cannot use NVENC and NVDEC, the video encoder and decoder of the GPU. Plex uses the GPU only if your
    account has a Plex Pass and "Use hardware acceleration when available" is on in the settings of the server.

    Source:
        plexinc/pms-docker@helm-chart-1.5.0:README.md, Dockerfile, charts/plex-media-server/values.yaml;
        linuxserver/docker-plex@65208dd:readme-vars.yml
    """

    _SERVER = "Plex"


def _with_video(gpus: Any) -> GpuRequest:
    """Return a GPU request with the driver capability ``video``, besides the capabilities that the user requests.

    Args:
        gpus: Value of the option ``gpus``: a number or a ``GpuRequest``.
    """
    request = gpus if isinstance(gpus, GpuRequest) else GpuRequest(count=gpus)
    asked = request.driver_capabilities
    return request if {"all", "video"} & {*asked} else replace(request, driver_capabilities=(*asked, "video"))


def _read_only(media: Mapping[str, Volume | NamedObject]) -> dict[str, Volume]:
    """Return read-only copies of the user's media volumes, by mount path.

    For a PersistentVolumeClaim, the pod's volume is also read-only, and not only the mount. Otherwise, the kubelet
    would change the group of all files to ``fs_group``.

    Args:
        media: Volumes of the user by mount path.

    Raises:
        GpuConstructsError: A value is not a volume, or it is a ``VolumeClaim`` for a new disk.
    """
    made: dict[str, Volume] = {}
    claims: dict[str, dict[str, Any]] = {}
    for path, given in media.items():
        refuse_if(
            isinstance(given, VolumeClaim), f"media[{path!r}]", "be an existing volume, because a new disk is empty"
        )
        volume = Volume.of(f"media[{path!r}]", given)
        if claim := volume.source.get("persistentVolumeClaim"):
            source = {"persistentVolumeClaim": {**claim, "readOnly": True}}
            volume = replace(volume, source=claims.setdefault(claim["claimName"], source))
        made[path] = replace(volume, read_only=True)
    return made
