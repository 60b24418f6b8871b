"""Containers of a rendered pod, run as the pod's specification says: a kubelet and a container runtime in miniature.

Each container has a root file system, a mount namespace and a PID namespace of its own. It gets what its specification
states: command, arguments, environment, volumes, user, capabilities, a read-only root. It shares the network of this
machine. There is neither a seccomp profile nor a limit of resources, and a container that ends is not started again.
"""

from __future__ import annotations

import itertools
import json
import os
import re
import shutil
import sys
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

from assets import Nvidia
from cluster import Cluster, Manifest
from processes import Program

_CHILD = Path(__file__).with_name("container_child.py")
# linux/capability.h, in the order of their numbers.
_CAPABILITIES = (
    "CHOWN DAC_OVERRIDE DAC_READ_SEARCH FOWNER FSETID KILL SETGID SETUID SETPCAP LINUX_IMMUTABLE NET_BIND_SERVICE "
    "NET_BROADCAST NET_ADMIN NET_RAW IPC_LOCK IPC_OWNER SYS_MODULE SYS_RAWIO SYS_CHROOT SYS_PTRACE SYS_PACCT SYS_ADMIN "
    "SYS_BOOT SYS_NICE SYS_RESOURCE SYS_TIME SYS_TTY_CONFIG MKNOD LEASE AUDIT_WRITE AUDIT_CONTROL SETFCAP MAC_OVERRIDE "
    "MAC_ADMIN SYSLOG WAKE_ALARM BLOCK_SUSPEND AUDIT_READ PERFMON BPF CHECKPOINT_RESTORE"
).split()
# containerd/containerd@v2.1.0:pkg/oci/spec.go, defaultUnixCaps.
_DEFAULT_CAPABILITIES = frozenset(
    "CHOWN DAC_OVERRIDE FSETID FOWNER MKNOD NET_RAW SETGID SETUID SETFCAP SETPCAP NET_BIND_SERVICE SYS_CHROOT KILL "
    "AUDIT_WRITE".split()
)
# NVIDIA/k8s-device-plugin@v0.20.0:deployments/container/Dockerfile: programs in /usr/bin, a shell in /busybox.
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/busybox"
_TOOLS = ("cat", "ln", "mkdir", "mount", "rm", "sh", "sleep", "tail", "touch", "umount")
_LIBRARIES = ("/lib", "/lib64", "/usr/lib", "/usr/lib64")
_DEVICES = ("full", "null", "random", "urandom", "zero")
_TOKENS = "/var/run/secrets/kubernetes.io/serviceaccount"
_REFERENCE = re.compile(r"\$(\$|\((?P<name>[^)]+)\))")
_GRACE = 2.0
_NO_DEVICES = ("", "void", "none")


class ContainerError(Exception):
    """A container that a kubelet would not start, in one line that says why."""


class Driver(Protocol):
    """The driver of a node, as the runtime injects it into containers.

    Attributes:
        folder: Its files; containers find them at the same place.
    """

    folder: Path

    def environment(self) -> Mapping[str, str]:
        """Return what a program needs to find the driver."""

    def proc(self) -> Path:
        """Return what the kernel modules show at ``/proc/driver``."""


@dataclass(frozen=True)
class Image:
    """What the containers of an image find in their root.

    Attributes:
        files: Files here, by their path in the image.
        environment: Environment variables of the image.
        user: User that the image states.
    """

    files: Mapping[str, Path]
    environment: Mapping[str, str] = field(default_factory=lambda: {"PATH": _PATH})
    user: int = 0


def device_plugin_image(nvidia: Nvidia) -> Image:
    """Return the image of the device plugin, which holds GPU Feature Discovery and the MPS control daemon too."""
    programs = ("config-manager", "gpu-feature-discovery", "mps-control-daemon", "nvidia-device-plugin")
    return Image({f"/usr/bin/{name}": Path(nvidia.program(name)) for name in programs})


def pod_of(owner: Manifest, node: str, *, accounts: Iterable[Manifest] = ()) -> dict[str, Any]:
    """Return the pod of a controller on a node, as the API server stores it.

    Args:
        owner: The controller.
        node: Name of the node.
        accounts: Objects among which its ServiceAccount is, if it has one.
    """
    template, namespace = owner["spec"]["template"], owner["metadata"]["namespace"]
    name = f"{owner['metadata']['name']}-{uuid.uuid4().hex[:5]}"
    metadata = {**template["metadata"], "name": name, "namespace": namespace, "uid": str(uuid.uuid4())}
    spec = {"serviceAccountName": "default", **template["spec"], "nodeName": node}
    if _mounts_a_token(spec, namespace, accounts):
        spec = _with_token(spec)
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


class Containers:
    """The containers of a pod.

    Attributes:
        programs: Running programs by the name of their container.
    """

    def __init__(self, host: Host, pod: Manifest, objects: Sequence[Manifest], cluster: Cluster | None) -> None:
        self._host, self._pod, self._objects, self._cluster = host, pod, objects, cluster
        name = pod["metadata"]["name"]
        self._folder = host.folder / f"{next(host.numbers)}-{name[:20]}"
        self._folder.mkdir()
        self._stack, self.programs = ExitStack(), dict[str, Program]()
        self._volumes = {volume["name"]: self._volume(volume) for volume in pod["spec"].get("volumes", ())}
        self._pid_namespace: str | None = None

    def __getitem__(self, container: str) -> Program:
        return self.programs[container]

    def start(self, *, timeout: float = 120) -> None:
        """Run the init containers one after the other, and start the others.

        Raises:
            ContainerError: An init container fails, or a container cannot be started.
        """
        spec = self._pod["spec"]
        if spec.get("hostPID"):
            self._pid_namespace = self._host.pid_namespace
        elif spec.get("shareProcessNamespace"):
            holder = self._host.hold(self._folder / "pod.log", "")
            self._stack.callback(holder.stop)
            self._pid_namespace = f"/proc/{holder.pid}/ns/pid_for_children"
        for container in spec.get("initContainers", ()):
            program = self.run(container["name"])
            if container.get("restartPolicy") != "Always" and (status := program.wait(timeout)) != 0:
                raise ContainerError(f"{program.name} ended with {status}: {program.output()[-2000:]}")
        for container in spec["containers"]:
            self.run(container["name"])

    def run(self, name: str) -> Program:
        """Start a container, or start it again."""
        container = next(one for one in self._all() if one["name"] == name)
        folder = self._folder / f"{next(self._host.numbers)}-{name[-20:]}"
        (folder / "root").mkdir(parents=True)
        (folder / "plan.json").write_text(json.dumps(self._plan(container, folder / "root")))
        argv = [sys.executable, "-I", "-S", str(_CHILD), "run", str(folder / "plan.json")]
        program = Program(argv, folder / "output.log")
        program.name = f"{self._pod['metadata']['name']}/{name}"
        self._stack.callback(program.stop, grace=_GRACE)
        self.programs[name] = program
        return program

    def stop(self) -> None:
        """End the containers."""
        self._stack.close()

    # --- what a container gets --------------------------------------------------------------------------------

    def _all(self) -> list[Manifest]:
        spec = self._pod["spec"]
        return [*spec.get("initContainers", ()), *spec["containers"]]

    def _plan(self, container: Manifest, root: Path) -> dict[str, Any]:
        host, image = self._host, self._host.image
        context = {**self._pod["spec"].get("securityContext", {}), **container.get("securityContext", {})}
        user = context.get("runAsUser", image.user)
        if context.get("runAsNonRoot") and user == 0:
            raise ContainerError(f"container {container['name']} has runAsNonRoot and its image runs as root")
        environment = self._environment(container)
        argv = [*container.get("command", ()), *container.get("args", ())]
        if not argv:
            raise ContainerError(f"container {container['name']} states no command, and images here have none")
        mounts = [*self._of_the_image(), *self._of_the_pod(container)]
        if context.get("privileged") or self._is_injected(environment):
            mounts += host.device_nodes()
        if self._is_injected(environment):
            mounts += host.injected()
            environment = {**environment, **host.driver_environment()}
        group = context.get("runAsGroup", user if user == image.user else 0)
        return {
            "argv": [_expanded(one, environment) for one in argv],
            "environment": environment,
            "folder": container.get("workingDir", "/"),
            "root": str(root),
            "links": {**_links(), "/bin/sh": "/busybox/sh"},
            # What is deeper comes later.
            "mounts": sorted(mounts, key=lambda mount: mount["target"].rstrip("/").count("/")),
            "read_only": bool(context.get("readOnlyRootFilesystem")),
            "capabilities": _capabilities(context),
            "no_new_privileges": context.get("allowPrivilegeEscalation") is False,
            "user": user,
            "group": group,
            "groups": [*context.get("supplementalGroups", ()), *filter(None, [context.get("fsGroup")])],
            "mount_namespace": host.mount_namespace,
            "pid_namespace": self._pid_namespace,
        }

    def _is_injected(self, environment: Mapping[str, str]) -> bool:
        asked = environment.get("NVIDIA_VISIBLE_DEVICES", "")
        runtime = self._pod["spec"].get("runtimeClassName", self._host.default_runtime)
        return runtime == "nvidia" and asked not in _NO_DEVICES

    def _environment(self, container: Manifest) -> dict[str, str]:
        name = self._pod["metadata"]["name"]
        found = {**self._host.image.environment, "HOSTNAME": name, **self._host.service(self._cluster)}
        if container.get("envFrom"):
            raise ContainerError(f"container {container['name']} has envFrom, which is not supported here")
        for variable in container.get("env", ()):
            if "valueFrom" in variable:
                value = self._value_from(variable["valueFrom"])
            else:
                value = _expanded(variable.get("value", ""), found)
            if value is not None:
                found[variable["name"]] = value
        return found

    def _value_from(self, source: Mapping[str, Any]) -> str | None:
        match source:
            case {"fieldRef": {"fieldPath": path}}:
                return self._field(path)
            case {"configMapKeyRef": {"name": name, "key": key, **rest}}:
                data = self._config_map(name, is_optional=bool(rest.get("optional")))
                return None if data is None else data[key]
        raise ContainerError(f"a variable has its value from {sorted(source)}, which is not supported here")

    def _field(self, path: str) -> str:
        name, _, key = path.partition("[")
        value: Any = {**self._pod, "status": {"podIP": "127.0.0.1", "hostIP": "127.0.0.1"}}
        for part in name.split("."):
            value = value[part]
        return str(value[key.strip("']\"")] if key else value)

    def _of_the_image(self) -> Iterator[dict[str, Any]]:
        yield from (_mount(path, path) for path in _LIBRARIES if os.path.isdir(path) and not os.path.islink(path))
        yield _mount("/sys", "/sys")
        yield from (_mount(f"/dev/{name}", f"/dev/{name}", read_only=False) for name in _DEVICES)
        yield _mount("tmpfs", "/dev/shm", read_only=False)
        yield from (_mount(path, f"/busybox/{name}") for name in _TOOLS if (path := shutil.which(name)))
        yield from (_mount(path, target) for target, path in self._host.image.files.items())

    def _of_the_pod(self, container: Manifest) -> Iterator[dict[str, Any]]:
        propagation = {None: "private", "None": "private", "HostToContainer": "slave", "Bidirectional": "shared"}
        for mount in container.get("volumeMounts", ()):
            source, is_read_only = self._volumes[mount["name"]]
            yield _mount(
                source / mount.get("subPath", "."),
                mount["mountPath"],
                read_only=is_read_only or bool(mount.get("readOnly")),
                propagation=propagation[mount.get("mountPropagation")],
            )

    # --- volumes ----------------------------------------------------------------------------------------------

    def _volume(self, volume: Manifest) -> tuple[Path, bool]:
        """Return where a volume is, and whether it is read-only."""
        folder = self._folder / "volumes" / volume["name"]
        match volume:
            case {"hostPath": {"path": path, **rest}}:
                return self._host_path(path, rest.get("type", "")), False
            case {"emptyDir": _}:
                folder.mkdir(parents=True)
                folder.chmod(0o777)
                return folder, False
            case {"configMap": {"name": name, **rest}}:
                data = self._config_map(name, is_optional=bool(rest.get("optional"))) or {}
                _write_atomically(folder, _chosen(data, rest.get("items")))
                return folder, True
            case {"projected": {"sources": sources}}:
                files: dict[str, str] = {}
                for source in sources:
                    files.update(self._projected(source))
                _write_atomically(folder, files)
                return folder, True
        raise ContainerError(f"volume {volume['name']} is of a kind that is not supported here: {sorted(volume)}")

    def _host_path(self, path: str, kind: str) -> Path:
        """Return the place of a path of the node, as kubelet and runtime check and create it."""
        place = self._host.root / path.lstrip("/")
        if kind in ("", "DirectoryOrCreate") and not place.exists():
            place.mkdir(parents=True)
        is_there = {"Directory": place.is_dir, "File": place.is_file, "DirectoryOrCreate": place.is_dir}
        if not is_there.get(kind, place.exists)():
            raise ContainerError(f"hostPath type check failed: {path} is not a {kind}")
        return place

    def _projected(self, source: Mapping[str, Any]) -> dict[str, str]:
        match source:
            case {"serviceAccountToken": {"path": path}}:
                return {path: self._token()}
            case {"configMap": {"name": name, **rest}}:
                return _chosen(self._config_map(name) or {}, rest.get("items"))
            case {"downwardAPI": {"items": items}}:
                return {item["path"]: self._field(item["fieldRef"]["fieldPath"]) for item in items}
        raise ContainerError(f"a projected volume has {sorted(source)}, which is not supported here")

    def _token(self) -> str:
        if self._cluster is None:
            raise ContainerError(f"{self._pod['metadata']['name']} mounts a token, so it needs a cluster")
        account = self._pod["spec"].get("serviceAccountName", "default")
        return self._cluster.token_of(account, self._pod["metadata"]["namespace"])

    def _config_map(self, name: str, *, is_optional: bool = False) -> dict[str, str] | None:
        namespace = self._pod["metadata"]["namespace"]
        found = _named(self._objects, "ConfigMap", name, namespace)
        if found is None and self._cluster is not None:
            found = self._cluster.find("v1", "ConfigMap", name, namespace)
        if found is None and not is_optional:
            raise ContainerError(f'configmap "{name}" not found')
        return None if found is None else dict(found.get("data") or {})


class Host:
    """A node: its file system, its driver, and the containers on it.

    Attributes:
        folder: Folder of everything.
        root: Root of the node's file system; what containers mount of the node is under it.
        image: Image of all containers.
        driver: Its driver, if it has one.
        default_runtime: Runtime of pods that name none.
    """

    def __init__(
        self,
        folder: Path,
        image: Image,
        *,
        driver: Driver | None = None,
        tools: Mapping[str, str] | None = None,
        default_runtime: str = "",
    ) -> None:
        """Make a node without files.

        Args:
            folder: An empty folder.
            image: Image of all containers.
            driver: What the runtime injects.
            tools: Shell scripts that the runtime injects into ``/usr/bin``, by name.
            default_runtime: ``nvidia`` where containerd runs every container by NVIDIA's runtime.

        Raises:
            ContainerError: This user may not make mount namespaces.
        """
        if os.geteuid() != 0:
            raise ContainerError("containers need mount namespaces. Run these tests as root")
        self.folder, self.root, self.image = folder, folder / "host", image
        self.default_runtime, self.numbers = default_runtime, itertools.count(1)
        self.driver, self._stack = driver, ExitStack()
        self.root.mkdir(parents=True)
        self._tools = folder / "tools"
        self._tools.mkdir()
        for name, script in (tools or {}).items():
            (self._tools / name).write_text(script)
            (self._tools / name).chmod(0o755)

    def __enter__(self) -> Host:
        self._holder = self.hold(self.folder / "node.log", str(self.root))
        self._stack.callback(self._holder.stop)
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @property
    def mount_namespace(self) -> str:
        """File of the mount namespace of the node."""
        return f"/proc/{self._holder.pid}/ns/mnt"

    @property
    def pid_namespace(self) -> str:
        """File of the PID namespace that stands in for that of the node."""
        return f"/proc/{self._holder.pid}/ns/pid_for_children"

    def run(self, pod: Manifest, objects: Sequence[Manifest] = (), *, cluster: Cluster | None = None) -> Containers:
        """Run the containers of a pod.

        Args:
            pod: The pod, as the API server stores it.
            objects: ConfigMaps that it reads, among others.
            cluster: Cluster that its programs reach, and where other ConfigMaps are.

        Raises:
            ContainerError: A container cannot be started, or an init container fails.
        """
        containers = Containers(self, pod, objects, cluster)
        self._stack.callback(containers.stop)
        containers.start()
        return containers

    def place(self, path: str, content: str | Path = "") -> Path:
        """Put a file on the node: a text, or a file that is here."""
        place = self.root / path.lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, str):
            place.write_text(content)
            return place
        try:
            place.hardlink_to(content)
        except OSError:
            shutil.copy(content, place)
        return place

    def hold(self, log: Path, root: str) -> Program:
        """Start a process that keeps namespaces."""
        holder = Program([sys.executable, "-I", "-S", str(_CHILD), "hold", root], log)
        holder.wait_until(lambda: "ready" in holder.output())
        return holder

    def device_nodes(self) -> list[dict[str, Any]]:
        """Return the device nodes of the node: its files below ``/dev``."""
        found = [path for path in sorted((self.root / "dev").rglob("*")) if path.is_file()]
        return [_mount(path, f"/{path.relative_to(self.root)}", read_only=False) for path in found]

    def injected(self) -> list[dict[str, Any]]:
        """Return what NVIDIA's runtime mounts into a container beside device nodes."""
        tools = [_mount(path, f"/usr/bin/{path.name}") for path in sorted(self._tools.iterdir())]
        if self.driver is None:
            return tools
        folder = self.driver.folder
        return [*tools, _mount(self.driver.proc(), "/proc/driver"), _mount(folder, folder)]

    def driver_environment(self) -> dict[str, str]:
        """Return what programs need to find the driver."""
        return {} if self.driver is None else dict(self.driver.environment())

    def service(self, cluster: Cluster | None) -> dict[str, str]:
        """Return the variables by which programs find the API server."""
        server = urlsplit("https://10.96.0.1:443" if cluster is None else cluster.access.server)
        return {"KUBERNETES_SERVICE_HOST": str(server.hostname), "KUBERNETES_SERVICE_PORT": str(server.port)}


def _mount(source: str | Path, target: str | Path, *, read_only: bool = True, propagation: str = "private") -> Any:
    return {"source": str(source), "target": str(target), "read_only": read_only, "propagation": propagation}


def _links() -> dict[str, str]:
    return {path: os.readlink(path) for path in _LIBRARIES if os.path.islink(path)}


def _capabilities(context: Mapping[str, Any]) -> list[int] | None:
    """Return the numbers of the capabilities that a container holds; None for all of them."""
    if context.get("privileged"):
        return None
    stated = context.get("capabilities", {})
    dropped, added = ({name.removeprefix("CAP_") for name in stated.get(key, ())} for key in ("drop", "add"))
    held = (frozenset() if "ALL" in dropped else _DEFAULT_CAPABILITIES - dropped) | added
    return None if "ALL" in held else sorted(map(_CAPABILITIES.index, held))


def _expanded(text: str, environment: Mapping[str, str]) -> str:
    """Replace $(NAME) as Kubernetes does: one that is not defined stays, and $$ is a $."""

    def one(match: re.Match[str]) -> str:
        name = match["name"]
        return "$" if name is None else environment.get(name, match[0])

    return _REFERENCE.sub(one, text)


def _chosen(data: Mapping[str, str], items: Sequence[Mapping[str, str]] | None) -> dict[str, str]:
    return dict(data) if items is None else {item["path"]: data[item["key"]] for item in items}


def _write_atomically(folder: Path, files: Mapping[str, str]) -> None:
    """Write files as a kubelet does: links to a folder that is itself behind a link."""
    version = folder / "..1"
    version.mkdir(parents=True)
    (folder / "..data").symlink_to(version.name)
    for name, content in files.items():
        (version / name).write_text(content)
        (folder / name).symlink_to(f"..data/{name}")


def _named(objects: Iterable[Manifest], kind: str, name: str, namespace: str) -> Manifest | None:
    for one in objects:
        if (one["kind"], one["metadata"]["name"], one["metadata"].get("namespace")) == (kind, name, namespace):
            return one
    return None


def _mounts_a_token(spec: Mapping[str, Any], namespace: str, accounts: Iterable[Manifest]) -> bool:
    if "automountServiceAccountToken" in spec:
        return bool(spec["automountServiceAccountToken"])
    account = _named(accounts, "ServiceAccount", spec["serviceAccountName"], namespace)
    return account is None or bool(account.get("automountServiceAccountToken", True))


def _with_token(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Add the volume with the token, as the API server's admission does."""
    volume = {
        "name": "kube-api-access",
        "projected": {
            "sources": [
                {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
                {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
                {"downwardAPI": {"items": [{"path": "namespace", "fieldRef": {"fieldPath": "metadata.namespace"}}]}},
            ]
        },
    }
    mount = {"name": "kube-api-access", "mountPath": _TOKENS, "readOnly": True}
    changed = {**spec, "volumes": [*spec.get("volumes", ()), volume]}
    for key in ("initContainers", "containers"):
        if key in spec:
            changed[key] = [{**one, "volumeMounts": [*one.get("volumeMounts", ()), mount]} for one in spec[key]]
    return changed
