"""One container of a workload's pods, as plain data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from gpu_constructs import _fields, credentials
from gpu_constructs._container_security import container_security
from gpu_constructs._resources import Resources, container_resources
from gpu_constructs.errors import GpuConstructsError, ShortErrors
from gpu_constructs.workload.env import VISIBLE_DEVICES, AnyEnvValue, environment
from gpu_constructs.workload.probe import Probe
from gpu_constructs.workload.service import named_ports
from gpu_constructs.workload.volume import Mountable, Mounts

ImagePullPolicy = Literal["Always", "IfNotPresent", "Never"]

_RESOURCES: Resources = {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "512Mi"}}


@dataclass(frozen=True, kw_only=True)
class Container(metaclass=ShortErrors):
    """A container beside the one that holds the GPUs; it sees none (``NVIDIA_VISIBLE_DEVICES=void``).

    Attributes:
        name: Name of the container.
        image: ``repository:tag`` or digest; never ``latest``.
        command: Replaces the image's entrypoint.
        args: Replaces the image's arguments.
        working_dir: Directory the command starts in.
        env: Variables: text, an ``EnvValue`` of ours or one of cdk8s-plus.
        ports: Names and numbers, or numbers alone; for a sidecar. They get no Service.
        volumes: Mount paths, as of the workload. The same volume at the same path, or the same object, is shared
            with its other containers.
        startup_probe: For a sidecar: holds the next containers back until it is well.
        readiness_probe: For a sidecar.
        liveness_probe: For a sidecar.
        resources: CPU and memory. By default requests of 100m and 128Mi and a memory limit of 512Mi.
        run_as_user: User id; one above 0 states ``runAsNonRoot``. None: as the pod says.
        capabilities: Linux capabilities to keep; all others are dropped.
        read_only_root_filesystem: True lets the container write to its volumes only.
        image_pull_policy: ``IfNotPresent`` by default, since tags are pinned and images large.

    Raises:
        GpuConstructsError: A value above is not allowed.
    """

    name: str
    image: str
    command: Sequence[str] = ()
    args: Sequence[str] = ()
    working_dir: str | None = None
    env: Mapping[str, str | AnyEnvValue] | None = None
    ports: Sequence[int] | Mapping[str, int] = ()
    volumes: Mapping[str, Mountable] | None = None
    startup_probe: Probe | None = None
    readiness_probe: Probe | None = None
    liveness_probe: Probe | None = None
    resources: Resources | None = None
    run_as_user: int | None = None
    capabilities: Sequence[str] = ()
    read_only_root_filesystem: bool = True
    image_pull_policy: ImagePullPolicy = "IfNotPresent"

    def __post_init__(self) -> None:
        _fields.members(self, "container")
        _fields.dns_label("container.name", self.name)
        chosen = (self.env or {}).get(VISIBLE_DEVICES, "void")
        if chosen not in ("void", "none"):
            raise GpuConstructsError(
                f"container.env[{VISIBLE_DEVICES!r}] must be 'void' or left out, got {chosen!r}: this container holds "
                "no GPU, and anything else shows it those of others"
            )
        try:
            self.to_manifest(Mounts())
        except GpuConstructsError as error:
            raise GpuConstructsError(f"container.{error.problem}") from None

    def to_manifest(self, mounts: Mounts) -> dict[str, Any]:
        """Give the container as Kubernetes writes it, its volumes added to the pod's.

        Raises:
            GpuConstructsError: A value is not allowed.
        """
        ports = named_ports(self.ports)
        return container_manifest(
            name=self.name,
            image=self.image,
            command=self.command,
            args=self.args,
            working_dir=self.working_dir,
            env=environment(self.env or {}, visible_devices_is_managed=False),
            ports=ports,
            probes={
                "startup_probe": self.startup_probe,
                "readiness_probe": self.readiness_probe,
                "liveness_probe": self.liveness_probe,
            },
            resources=container_resources(self.resources, default=_RESOURCES, has_gpus=True),
            mounted=mounts.mounted(self.volumes or {}),
            run_as_user=self.run_as_user,
            capabilities=self.capabilities,
            read_only_root_filesystem=self.read_only_root_filesystem,
            image_pull_policy=self.image_pull_policy,
            states_user=True,
        )


def container_manifest(
    *,
    name: str,
    image: str,
    command: Sequence[str],
    args: Sequence[str],
    working_dir: str | None,
    env: list[dict[str, Any]],
    ports: Mapping[str, int],
    probes: Mapping[str, Probe | None],
    resources: Mapping[str, Any],
    mounted: list[dict[str, Any]],
    run_as_user: int | None,
    capabilities: Sequence[str],
    read_only_root_filesystem: bool,
    image_pull_policy: ImagePullPolicy,
    states_user: bool = False,
) -> dict[str, Any]:
    """Return a container as Kubernetes writes it.

    Raises:
        GpuConstructsError: A value is not allowed, an argument is a credential in plain text, or a probe asks a port
            that the container does not have.
    """
    _fields.image("image", image)
    credentials.refuse_in_arguments("command", command)
    credentials.refuse_in_arguments("args", args)
    if working_dir is not None:
        _fields.absolute_path("working_dir", working_dir)
    if run_as_user is not None:
        _fields.whole_number("run_as_user", run_as_user, minimum=0)
    for index, capability in enumerate(capabilities):
        _fields.capability(f"capabilities[{index}]", capability)
    for field, probe in probes.items():
        if probe is not None and isinstance(probe.port, str):
            _fields.one_of(f"{field} port", probe.port, list(ports))
    asked = {field: probe.to_manifest() if probe else None for field, probe in probes.items()}
    security = container_security(
        add=tuple(capabilities), non_root=bool(run_as_user), read_only=read_only_root_filesystem
    )
    if states_user:
        security["runAsUser"] = run_as_user
        # Beside a pod whose user is not root, root has to be allowed again.
        security.setdefault("runAsNonRoot", False if run_as_user == 0 else None)
    return {
        "name": name,
        "image": image,
        "imagePullPolicy": image_pull_policy,
        "command": list(command) or None,
        "args": list(args) or None,
        "workingDir": working_dir,
        "env": env or None,
        "ports": [{"name": n, "containerPort": p} for n, p in ports.items()] or None,
        "startupProbe": asked["startup_probe"],
        "readinessProbe": asked["readiness_probe"],
        "livenessProbe": asked["liveness_probe"],
        "resources": resources,
        "securityContext": security,
        "volumeMounts": mounted or None,
    }
