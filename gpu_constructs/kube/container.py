"""One container of a workload's pods, its probes and its ports, as plain data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar

from gpu_constructs.errors import GpuConstructsError, ShortErrors, refuse_if, short_errors
from gpu_constructs.kube import credentials, fields
from gpu_constructs.kube.container_security import container_security
from gpu_constructs.kube.env import VISIBLE_DEVICES, AnyEnvValue, environment
from gpu_constructs.kube.pods import ImagePullPolicy
from gpu_constructs.kube.resources import Resources, container_resources
from gpu_constructs.kube.volume import Mountable, Mounts


def named_ports(given: Sequence[int] | Mapping[str, int]) -> dict[str, int]:
    """Return each port a name: the user's, or ``tcp-<number>``.

    Raises:
        GpuConstructsError: A name or number that Kubernetes would not take, or a number given twice.
    """
    ports = dict(given) if isinstance(given, Mapping) else {f"tcp-{port}": port for port in given}
    for name, port in ports.items():
        fields.port_name("ports name", name)
        fields.port_number(f"ports[{name!r}]", port)
    refuse_if(len(set(ports.values())) < len(ports) or len(ports) < len(given), "ports", "not repeat a number", given)
    return ports


def url(name: str, namespace: str, ports: Mapping[str, int]) -> str | None:
    """Return the URL of a Service inside the cluster, if one of its ports is named after the scheme of a URL."""
    scheme = next((port for port in ports if port in ("http", "https")), None)
    return None if scheme is None else f"{scheme}://{name}.{namespace}.svc:{ports[scheme]}"


def service(
    metadata: Mapping[str, Any], *, selector: Mapping[str, str], ports: Mapping[str, int], headless: bool
) -> dict[str, Any]:
    """Return the Service; a headless one gives each pod a name instead of one address to all."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata,
        "spec": {
            "clusterIP": "None" if headless else None,
            "ports": [{"name": name, "port": port, "targetPort": name} for name, port in ports.items()] or None,
            "selector": dict(selector),
        },
    }


@dataclass(frozen=True, kw_only=True)
class Probe(fields.Options):
    """A check of a container; made by ``Probe.http_get``, ``Probe.tcp_socket`` or ``Probe.exec``.

    All durations are seconds. Loading a model takes minutes: give the time to ``startup_probe``
    (``period_seconds`` times ``failure_threshold``), which holds the others back.

    Attributes:
        check: What is asked, as Kubernetes writes it.
        initial_delay_seconds: Pause before the first check.
        period_seconds: Time from one check to the next; 10 by default, as in Kubernetes.
        timeout_seconds: How long an answer may take; 5 by default, since a busy GPU host is slow to answer and
            Kubernetes' single second kills healthy pods.
        failure_threshold: Failed checks in a row that count as a failure; 3 by default, as in Kubernetes.

    Raises:
        GpuConstructsError: A number below what Kubernetes takes, or a port outside 1 to 65535.
    """

    check: Mapping[str, Any] = field(repr=False)
    initial_delay_seconds: int = 0
    period_seconds: int = 10
    timeout_seconds: int = 5
    failure_threshold: int = 3

    _CHECKS: ClassVar[fields.Checks] = {
        "initial_delay_seconds": fields.natural,
        "period_seconds": fields.positive,
        "timeout_seconds": fields.positive,
        "failure_threshold": fields.positive,
    }

    @classmethod
    @short_errors
    def http_get(cls, path: str, *, port: int | str, **timing: int) -> Probe:
        """Ask for a path over HTTP; any status from 200 to 399 is well.

        Args:
            path: Path of the request.
            port: A port's number or its name in ``ports``.
            timing: ``initial_delay_seconds``, ``period_seconds``, ``timeout_seconds``,
                ``failure_threshold``.
        """
        fields.of_type("probe path", path, str)
        refuse_if(not path.startswith("/"), "probe path", "start with '/'", path)
        return cls(check={"httpGet": {"path": path, "port": _port(port)}}, **timing)

    @classmethod
    @short_errors
    def tcp_socket(cls, port: int | str, **timing: int) -> Probe:
        """Open a connection to a port; one that opens is well."""
        return cls(check={"tcpSocket": {"port": _port(port)}}, **timing)

    @classmethod
    @short_errors
    def exec(cls, command: Sequence[str], **timing: int) -> Probe:
        """Run a command in the container; exit status 0 is well."""
        fields.of_type("probe command", command, Sequence[str])
        if not command:
            raise GpuConstructsError("probe command must name a program; got an empty list")
        return cls(check={"exec": {"command": list(command)}}, **timing)

    @property
    def port(self) -> int | str | None:
        """The port it asks, by number or name; None for a command."""
        (check,) = self.check.values()
        port: int | str | None = check.get("port")
        return port

    def to_manifest(self) -> dict[str, Any]:
        """Return the probe as Kubernetes writes it."""
        timing = {
            "initialDelaySeconds": self.initial_delay_seconds or None,
            "periodSeconds": self.period_seconds,
            "timeoutSeconds": self.timeout_seconds,
            "failureThreshold": self.failure_threshold,
        }
        return {**self.check, **timing}


def _port(port: int | str) -> int | str:
    if isinstance(port, str):
        fields.port_name("probe port", port)
    else:
        fields.port_number("probe port", port)
    return port


@dataclass(frozen=True, kw_only=True)
class PlainContainer(metaclass=ShortErrors):
    """What all containers of a workload have; ``Container`` describes the members."""

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
    read_only_root_filesystem: bool = False
    image_pull_policy: ImagePullPolicy = "IfNotPresent"

    default_resources: ClassVar[Resources] = {"requests": {"cpu": "1", "memory": "4Gi"}, "limits": {"memory": "16Gi"}}
    """Requests and limits of a container that holds GPUs."""

    def rendered(
        self, mounts: Mounts, *, shared_memory: str | None = None, visible_devices_is_managed: bool = False
    ) -> dict[str, Any]:
        """Return the container as Kubernetes writes it, with its volumes added to the pod's.

        Args:
            mounts: Volumes of the pod.
            shared_memory: Size of ``/dev/shm``.
            visible_devices_is_managed: Whether the variable ``NVIDIA_VISIBLE_DEVICES`` is refused.

        Raises:
            GpuConstructsError: A value is not allowed, an argument is a credential in plain text, or a probe asks a
                port that the container does not have.
        """
        fields.options(vars(self), _CHECKS)
        ports = named_ports(self.ports)
        return {
            "name": self.name,
            "image": self.image,
            "imagePullPolicy": self.image_pull_policy,
            "command": list(self.command) or None,
            "args": list(self.args) or None,
            "workingDir": self.working_dir,
            "env": environment(self.env or {}, visible_devices_is_managed=visible_devices_is_managed) or None,
            "ports": [{"name": name, "containerPort": port} for name, port in ports.items()] or None,
            "startupProbe": _probe("startup_probe", self.startup_probe, ports),
            "readinessProbe": _probe("readiness_probe", self.readiness_probe, ports),
            "livenessProbe": _probe("liveness_probe", self.liveness_probe, ports),
            "resources": container_resources(self.resources, default=self.default_resources, has_gpus=True),
            "securityContext": container_security(
                add=tuple(self.capabilities), non_root=bool(self.run_as_user), read_only=self.read_only_root_filesystem
            ),
            "volumeMounts": mounts.mounted(self.volumes or {}, shared_memory=shared_memory) or None,
        }


_CHECKS: Mapping[str, fields.Check] = {
    "image": fields.image,
    "command": credentials.refuse_in_arguments,
    "args": credentials.refuse_in_arguments,
    "working_dir": fields.absolute_path,
    "run_as_user": fields.natural,
    "capabilities": partial(fields.each, fields.capability),
}


def _probe(field: str, probe: Probe | None, ports: Mapping[str, int]) -> dict[str, Any] | None:
    if probe is not None and isinstance(probe.port, str):
        fields.one_of(f"{field} port", probe.port, list(ports))
    return None if probe is None else probe.to_manifest()


@dataclass(frozen=True, kw_only=True)
class Container(PlainContainer):
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
        startup_probe: Probe of a sidecar that holds the next containers back until it is well.
        readiness_probe: Probe of a sidecar.
        liveness_probe: Probe of a sidecar.
        resources: CPU and memory. By default requests of 100m and 128Mi and a memory limit of 512Mi.
        run_as_user: User id; one above 0 states ``runAsNonRoot``. None: as the pod says.
        capabilities: Linux capabilities to keep; all others are dropped.
        read_only_root_filesystem: True lets the container write to its volumes only.
        image_pull_policy: ``IfNotPresent`` by default, since tags are pinned and images large.

    Raises:
        GpuConstructsError: A value above is not allowed.
    """

    read_only_root_filesystem: bool = True

    default_resources = {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "512Mi"}}  # noqa: RUF012

    def __post_init__(self) -> None:
        fields.members(self, "container")
        fields.dns_label("container.name", self.name)
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
        """Return the container as Kubernetes writes it, with its volumes added to the pod's.

        Raises:
            GpuConstructsError: A value is not allowed.
        """
        made = self.rendered(mounts)
        made["securityContext"]["runAsUser"] = self.run_as_user
        # Beside a pod whose user is not root, root has to be allowed again.
        made["securityContext"].setdefault("runAsNonRoot", False if self.run_as_user == 0 else None)
        return made
