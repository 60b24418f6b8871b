"""Containers of workload pods with their probes and ports, rendered as plain data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, ClassVar

from gpu_constructs.errors import GpuConstructsError, ShortErrors, refuse_if, short_errors
from gpu_constructs.kube import credentials, fields
from gpu_constructs.kube.container_security import container_security
from gpu_constructs.kube.env import VISIBLE_DEVICES, AnyEnvValue, environment
from gpu_constructs.kube.pods import ImagePullPolicy
from gpu_constructs.kube.resources import Resources, container_resources
from gpu_constructs.kube.volume import Mountable, Mounts
from gpu_constructs.records import dataclass, field


def named_ports(given: Sequence[int] | Mapping[str, int]) -> dict[str, int]:
    """Return the port numbers by port name. A port that the user specifies as a number gets the name ``tcp-<number>``.

    Raises:
        GpuConstructsError: Kubernetes does not allow the name or the number of a port, or two ports have the same
            number.
    """
    ports = dict(given) if isinstance(given, Mapping) else {f"tcp-{port}": port for port in given}
    for name, port in ports.items():
        fields.port_name("ports name", name)
        fields.port_number(f"ports[{name!r}]", port)
    refuse_if(len(set(ports.values())) < len(ports) or len(ports) < len(given), "ports", "not repeat a number", given)
    return ports


def url(name: str, namespace: str, ports: Mapping[str, int]) -> str | None:
    """Return the URL of a Service for clients in the cluster, such as ``http://ollama.llm.svc:11434``.

    The argument ``ports`` contains the port numbers by port name. Return None if no port has the name ``http`` or
    ``https``.
    """
    scheme = next((port for port in ports if port in ("http", "https")), None)
    return None if scheme is None else f"{scheme}://{name}.{namespace}.svc:{ports[scheme]}"


def service(
    metadata: Mapping[str, Any], *, selector: Mapping[str, str], ports: Mapping[str, int], headless: bool
) -> dict[str, Any]:
    """Return a Service manifest with the port numbers in ``ports``, by port name.

    If ``headless`` is True, the Service has a DNS name for each pod instead of one shared address.
    """
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
    """A probe of a container. Create one with ``Probe.http_get``, ``Probe.tcp_socket`` or ``Probe.exec``.

    A server that loads a model for minutes needs a startup probe. Kubernetes runs the other probes of a container only
    after its startup probe succeeds. The server must start within ``period_seconds`` times ``failure_threshold`` of the
    startup probe.

    Attributes:
        check: Check that the probe performs, as in a manifest, for example ``{"tcpSocket": {"port": 80}}``.
        initial_delay_seconds: Delay before the first check, in seconds; 0 by default.
        period_seconds: Time between two checks, in seconds; 10 by default, as in Kubernetes.
        timeout_seconds: Time limit of one check, in seconds; 5 by default. The Kubernetes default of 1 restarts
            healthy pods on a busy GPU node.
        failure_threshold: Number of consecutive failed checks after which the probe fails; 3 by default, as in
            Kubernetes.

    Raises:
        GpuConstructsError: A number is below the minimum of Kubernetes, or a port is not from 1 to 65535.
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
        """Create a probe that sends an HTTP GET request. A status from 200 to 399 is a success.

        Args:
            path: Path of the request. It starts with ``/``.
            port: Number or name of a port of the container.
            timing: Timing of the probe, as attributes of ``Probe``: ``initial_delay_seconds``, ``period_seconds``,
                ``timeout_seconds`` and ``failure_threshold``.
        """
        fields.of_type("probe path", path, str)
        refuse_if(not path.startswith("/"), "probe path", "start with '/'", path)
        return cls(check={"httpGet": {"path": path, "port": _port(port)}}, **timing)

    @classmethod
    @short_errors
    def tcp_socket(cls, port: int | str, **timing: int) -> Probe:
        """Create a probe that opens a TCP connection. A connection is a success.

        Args:
            port: Number or name of a port of the container.
            timing: Timing of the probe, as for ``http_get``.
        """
        return cls(check={"tcpSocket": {"port": _port(port)}}, **timing)

    @classmethod
    @short_errors
    def exec(cls, command: Sequence[str], **timing: int) -> Probe:
        """Create a probe that runs a command in the container. Exit status 0 is a success.

        Args:
            command: Program and its arguments.
            timing: Timing of the probe, as for ``http_get``.
        """
        fields.of_type("probe command", command, Sequence[str])
        if not command:
            raise GpuConstructsError("probe command must name a program, got an empty list")
        return cls(check={"exec": {"command": list(command)}}, **timing)

    @property
    def port(self) -> int | str | None:
        """Number or name of the port that the probe connects to. None if the probe runs a command."""
        (check,) = self.check.values()
        port: int | str | None = check.get("port")
        return port

    def to_manifest(self) -> dict[str, Any]:
        """Return the probe as it appears in a manifest."""
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
    """The options that all containers of a workload have. The docstring of ``Container`` describes these options.

    Two defaults differ. ``resources`` requests 1 CPU and 4Gi of memory, with a memory limit of 16Gi.
    ``read_only_root_filesystem`` is False.
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
    read_only_root_filesystem: bool = False
    image_pull_policy: ImagePullPolicy = "IfNotPresent"

    default_resources: ClassVar[Resources] = {"requests": {"cpu": "1", "memory": "4Gi"}, "limits": {"memory": "16Gi"}}
    """Default requests and limits of a container that uses GPUs."""

    def rendered(
        self, mounts: Mounts, *, shared_memory: str | None = None, visible_devices_is_managed: bool = False
    ) -> dict[str, Any]:
        """Return the container as it appears in a manifest, and add its volumes to the volumes of the pod.

        Args:
            mounts: Volumes of the pod. The method adds the volumes of the container.
            shared_memory: Size of ``/dev/shm`` as a quantity. With None (the default), the container runtime decides.
            visible_devices_is_managed: Whether to reject the variable ``NVIDIA_VISIBLE_DEVICES`` from the user; False
                by default.

        Raises:
            GpuConstructsError: A value is invalid, an argument is a credential in plain text, or a probe names a port
                that the container does not have.
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
    """An init container or sidecar of a workload pod. It has no access to GPUs.

    The library sets ``NVIDIA_VISIBLE_DEVICES=void``, so that the NVIDIA runtime injects no device.

    Attributes:
        name: Name of the container, a DNS label.
        image: Image of the container, as ``repository:tag`` or with a digest; never ``latest``.
        command: Command that replaces the entrypoint of the image. By default, the container runs the entrypoint.
        args: Arguments that replace the arguments in the image. By default, the container uses the arguments in the
            image.
        working_dir: Absolute path of the working directory. With None, the container uses the working directory of the
            image.
        env: Environment variables by name. A value is text, or an ``EnvValue`` of this library or of cdk8s-plus.
        ports: Ports of a sidecar, as numbers or by name. The library creates no Service for these ports.
        volumes: Volumes by mount path, such as ``{"/cache": Volume.empty_dir()}``. Containers share a volume if they
            mount the same Python object, or an equal volume at the same path.
        startup_probe: Startup probe of a sidecar; None by default. The containers after the sidecar start when the
            probe succeeds.
        readiness_probe: Readiness probe of a sidecar; None by default.
        liveness_probe: Liveness probe of a sidecar; None by default.
        resources: Requests and limits of CPU and memory. By default the container requests 100m CPU and 128Mi of
            memory, with a memory limit of 512Mi.
        run_as_user: User ID of the process. An ID above 0 also sets ``runAsNonRoot``. With None (the default), the user
            of the pod applies.
        capabilities: Linux capabilities of the container; none by default. The container drops all other capabilities.
        read_only_root_filesystem: Whether the container can write to its volumes only; True by default.
        image_pull_policy: Pull policy of the image; ``IfNotPresent`` by default, because tags do not change and images
            are large.

    Raises:
        GpuConstructsError: A value is invalid.
    """

    read_only_root_filesystem: bool = True

    default_resources = {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "512Mi"}}  # noqa: RUF012

    def __post_init__(self) -> None:
        fields.members(self, "container")
        fields.dns_label("container.name", self.name)
        chosen = (self.env or {}).get(VISIBLE_DEVICES, "void")
        if chosen not in ("void", "none"):
            raise GpuConstructsError(
                f"container.env[{VISIBLE_DEVICES!r}] must be 'void' or left out, got {chosen!r}. Remove it, because "
                "this container requests no GPU"
            )
        try:
            self.to_manifest(Mounts())
        except GpuConstructsError as error:
            raise GpuConstructsError(f"container.{error.problem}") from None

    def to_manifest(self, mounts: Mounts) -> dict[str, Any]:
        """Return the container as it appears in a manifest, and add its volumes to the volumes of the pod.

        Raises:
            GpuConstructsError: A value is invalid.
        """
        made = self.rendered(mounts)
        made["securityContext"]["runAsUser"] = self.run_as_user
        # If the pod sets runAsNonRoot, a container that runs as user 0 must set it to false.
        made["securityContext"].setdefault("runAsNonRoot", False if self.run_as_user == 0 else None)
        return made
