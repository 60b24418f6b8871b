"""The Pod Security Standards as a pure function, after the policies of kubernetes/pod-security-admission.

Where the releases from 1.27 on differ, the strictest reading counts: host names in probes are refused (from 1.34),
sysctls and SELinux types added later too, and a user namespace relaxes nothing (it does from 1.35).
Pods are taken for Linux pods, and the old AppArmor and seccomp annotations are not looked at: fields replaced them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

PodSpec = Mapping[str, Any]
Check = Callable[[PodSpec], Iterator[str]]

DEFAULT_CAPABILITIES = frozenset(
    "AUDIT_WRITE CHOWN DAC_OVERRIDE FOWNER FSETID KILL MKNOD NET_BIND_SERVICE SETFCAP SETGID SETPCAP SETUID "
    "SYS_CHROOT".split()
)
SAFE_SYSCTLS = frozenset(
    "kernel.shm_rmid_forced net.ipv4.ip_local_port_range net.ipv4.ip_local_reserved_ports "
    "net.ipv4.ip_unprivileged_port_start net.ipv4.ping_group_range net.ipv4.tcp_syncookies".split()
)
SELINUX_TYPES = ("", "container_t", "container_init_t", "container_kvm_t")
CONFINED_PROFILES = ("RuntimeDefault", "Localhost")
RESTRICTED_VOLUMES = frozenset(
    "configMap csi downwardAPI emptyDir ephemeral image persistentVolumeClaim projected secret".split()
)


_WAYS_OUT = {
    "hostNamespaces": "no hostNetwork, hostPID and hostIPC",
    "privileged": "securityContext.privileged: false",
    "capabilities": "securityContext.capabilities: {drop: [ALL], add: []}",
    "volumes": "another kind of volume",
    "hostPorts": "no hostPort",
    "hostProbes": "no host in probes",
    "appArmorProfile": "securityContext.appArmorProfile.type: RuntimeDefault",
    "seLinuxOptions": "no securityContext.seLinuxOptions",
    "procMount": "no securityContext.procMount",
    "seccompProfile": "securityContext.seccompProfile.type: RuntimeDefault",
    "sysctls": "no securityContext.sysctls",
    "windowsHostProcess": "no securityContext.windowsOptions.hostProcess",
    "allowPrivilegeEscalation": "securityContext.allowPrivilegeEscalation: false",
    "runAsNonRoot": "securityContext.runAsNonRoot: true",
    "runAsUser": "securityContext.runAsUser above 0",
}


def violations(pod_spec: PodSpec, level: str) -> list[str]:
    """What in a pod's spec the level forbids, one line each, opening with the name of the check."""
    return [f"{name}: {violation}" for name, check in CHECKS[level].items() for violation in check(pod_spec)]


def ways_out(pod_spec: PodSpec, level: str) -> list[str]:
    """Return what a pod's spec must say for the level to admit it, in Kubernetes' spelling."""
    return [_WAYS_OUT[name] for name, check in CHECKS[level].items() if any(check(pod_spec))]


def _containers(pod: PodSpec) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for field in ("initContainers", "containers", "ephemeralContainers"):
        for container in pod.get(field) or ():
            yield f"container {container.get('name')!r}", container


def _get(mapping: Mapping[str, Any], *fields: str) -> Any:
    """The value below nested fields, None where any is absent or null."""
    value: Any = mapping
    for field in fields:
        value = (value or {}).get(field)
    return value


def _security_settings(pod: PodSpec, *fields: str) -> Iterator[tuple[str, Any]]:
    """A field of the security contexts of the pod and its containers, wherever it is set."""
    for owner, holder in (("pod", pod), *_containers(pod)):
        value = _get(holder, "securityContext", *fields)
        if value is not None:
            yield owner, value


def _unsettled_containers(pod: PodSpec, *fields: str) -> Iterator[str]:
    """The containers for which neither they nor the pod set a field of the security context."""
    if _get(pod, "securityContext", *fields) is None:
        for owner, container in _containers(pod):
            if _get(container, "securityContext", *fields) is None:
                yield owner


def _host_namespaces(pod: PodSpec) -> Iterator[str]:
    for field in ("hostNetwork", "hostPID", "hostIPC"):
        if pod.get(field):
            yield f"{field} is true"


def _privileged(pod: PodSpec) -> Iterator[str]:
    for owner, container in _containers(pod):
        if _get(container, "securityContext", "privileged"):
            yield f"{owner} is privileged"


def _added_capabilities(pod: PodSpec, allowed: frozenset[str]) -> Iterator[str]:
    for owner, container in _containers(pod):
        for capability in _get(container, "securityContext", "capabilities", "add") or ():
            if capability not in allowed:
                yield f"{owner} adds {capability}"


def _capabilities_baseline(pod: PodSpec) -> Iterator[str]:
    yield from _added_capabilities(pod, DEFAULT_CAPABILITIES)


def _capabilities_restricted(pod: PodSpec) -> Iterator[str]:
    for owner, container in _containers(pod):
        if "ALL" not in (_get(container, "securityContext", "capabilities", "drop") or ()):
            yield f"{owner} does not drop ALL"
    yield from _added_capabilities(pod, frozenset({"NET_BIND_SERVICE"}))


def _host_path_volumes(pod: PodSpec) -> Iterator[str]:
    for volume in pod.get("volumes") or ():
        if volume.get("hostPath") is not None:
            yield f"volume {volume['name']!r} is a hostPath"


def _restricted_volumes(pod: PodSpec) -> Iterator[str]:
    for volume in pod.get("volumes") or ():
        sources = {field for field, value in volume.items() if field != "name" and value is not None}
        if not sources & RESTRICTED_VOLUMES:
            yield f"volume {volume['name']!r} is a {' '.join(sorted(sources)) or 'volume without source'}"


def _host_ports(pod: PodSpec) -> Iterator[str]:
    for owner, container in _containers(pod):
        for port in container.get("ports") or ():
            if port.get("hostPort"):
                yield f"{owner} takes host port {port['hostPort']}"


def _host_probes(pod: PodSpec) -> Iterator[str]:
    handlers = (
        ("livenessProbe",),
        ("readinessProbe",),
        ("startupProbe",),
        ("lifecycle", "postStart"),
        ("lifecycle", "preStop"),
    )
    for owner, container in _containers(pod):
        for handler in handlers:
            for action in ("httpGet", "tcpSocket"):
                if host := _get(container, *handler, action, "host"):
                    yield f"{owner} names host {host!r} in {handler[-1]}"


def _apparmor(pod: PodSpec) -> Iterator[str]:
    for owner, profile in _security_settings(pod, "appArmorProfile"):
        if profile.get("type") not in CONFINED_PROFILES:
            yield f"{owner} has AppArmor profile {profile.get('type')!r}"


def _selinux(pod: PodSpec) -> Iterator[str]:
    for owner, options in _security_settings(pod, "seLinuxOptions"):
        if options.get("type", "") not in SELINUX_TYPES:
            yield f"{owner} has SELinux type {options['type']!r}"
        for field in ("user", "role"):
            if options.get(field):
                yield f"{owner} sets the SELinux {field}"


def _proc_mount(pod: PodSpec) -> Iterator[str]:
    for owner, container in _containers(pod):
        kind = _get(container, "securityContext", "procMount")
        if kind not in (None, "Default"):
            yield f"{owner} has procMount {kind!r}"


def _seccomp_baseline(pod: PodSpec) -> Iterator[str]:
    for owner, profile in _security_settings(pod, "seccompProfile"):
        if profile.get("type") not in CONFINED_PROFILES:
            yield f"{owner} has seccomp profile {profile.get('type')!r}"


def _seccomp_restricted(pod: PodSpec) -> Iterator[str]:
    yield from _seccomp_baseline(pod)
    for owner in _unsettled_containers(pod, "seccompProfile"):
        yield f"{owner} has no seccomp profile"


def _sysctls(pod: PodSpec) -> Iterator[str]:
    for sysctl in _get(pod, "securityContext", "sysctls") or ():
        if sysctl["name"] not in SAFE_SYSCTLS:
            yield f"pod sets sysctl {sysctl['name']}"


def _windows_host_process(pod: PodSpec) -> Iterator[str]:
    for owner, host_process in _security_settings(pod, "windowsOptions", "hostProcess"):
        if host_process:
            yield f"{owner} is a Windows host process"


def _privilege_escalation(pod: PodSpec) -> Iterator[str]:
    for owner, container in _containers(pod):
        if _get(container, "securityContext", "allowPrivilegeEscalation") is not False:
            yield f"{owner} may escalate privileges"


def _run_as_non_root(pod: PodSpec) -> Iterator[str]:
    for owner, non_root in _security_settings(pod, "runAsNonRoot"):
        if not non_root:
            yield f"{owner} sets runAsNonRoot to false"
    for owner in _unsettled_containers(pod, "runAsNonRoot"):
        yield f"{owner} may run as root"


def _run_as_user(pod: PodSpec) -> Iterator[str]:
    for owner, user in _security_settings(pod, "runAsUser"):
        if user == 0:
            yield f"{owner} runs as user 0"


BASELINE: dict[str, Check] = {
    "hostNamespaces": _host_namespaces,
    "privileged": _privileged,
    "capabilities": _capabilities_baseline,
    "volumes": _host_path_volumes,
    "hostPorts": _host_ports,
    "hostProbes": _host_probes,
    "appArmorProfile": _apparmor,
    "seLinuxOptions": _selinux,
    "procMount": _proc_mount,
    "seccompProfile": _seccomp_baseline,
    "sysctls": _sysctls,
    "windowsHostProcess": _windows_host_process,
}
RESTRICTED: dict[str, Check] = {
    **BASELINE,
    "capabilities": _capabilities_restricted,
    "volumes": _restricted_volumes,
    "seccompProfile": _seccomp_restricted,
    "allowPrivilegeEscalation": _privilege_escalation,
    "runAsNonRoot": _run_as_non_root,
    "runAsUser": _run_as_user,
}
CHECKS: dict[str, dict[str, Check]] = {"privileged": {}, "baseline": BASELINE, "restricted": RESTRICTED}
