"""Check of pod specs against the Pod Security Standards, with the same rules as kubernetes/pod-security-admission.

If the rules differ between Kubernetes releases from 1.27 on, the checks use the strictest rule. For example, they
reject hostnames in probes, as releases from 1.34 on do. They also reject sysctls and SELinux types that only some of
these releases allow. From 1.35 on, Kubernetes allows more in pods with a user namespace, but the checks do not.

The checks treat all pods as Linux pods. They read the fields for AppArmor and seccomp, but not the older annotations.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, Literal, NamedTuple

PodSpec = Mapping[str, Any]
Where = Literal["pod", "containers", "all", "volumes"]

DEFAULT_CAPABILITIES = frozenset(
    "AUDIT_WRITE CHOWN DAC_OVERRIDE FOWNER FSETID KILL MKNOD NET_BIND_SERVICE SETFCAP SETGID SETPCAP SETUID "
    "SYS_CHROOT".split()
)
SAFE_SYSCTLS = frozenset(
    "kernel.shm_rmid_forced net.ipv4.ip_local_port_range net.ipv4.ip_local_reserved_ports "
    "net.ipv4.ip_unprivileged_port_start net.ipv4.ping_group_range net.ipv4.tcp_syncookies".split()
)
SELINUX_TYPES = (None, "", "container_t", "container_init_t", "container_kvm_t")
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


class Rule(NamedTuple):
    """One rule of a Pod Security check of Kubernetes. It applies to all values at a path of a pod spec.

    Attributes:
        where: Part in which ``path`` begins: ``pod``, ``containers``, ``all`` (the pod and its containers) or
            ``volumes``.
        path: Names of fields, separated by dots. A path through a list includes each item. Empty if the rule applies to
            the kind of a volume, such as ``hostPath``.
        problem: Text of the message. ``{owner}`` stands for the pod, container or volume, and ``{value}`` stands for
            the invalid value.
        allowed: Valid values, in which None stands for a missing field. With ``allowed=None``, every value that is not
            in ``refused`` is valid.
        refused: Invalid values.
        required: Value that must be at the path. With ``...``, any value at the path, or at the same path of the pod,
            is enough. With None, the path can be missing.
    """

    where: Where
    path: str
    problem: str
    allowed: Collection[Any] | None = None
    refused: Collection[Any] = ()
    required: Any = None


_OFF = (None, False)
_NOTHING = (None, "", 0)
_DROPPED = Rule("containers", "securityContext.capabilities.drop", "{owner} does not drop ALL", required="ALL")
_ADDED = Rule("containers", "securityContext.capabilities.add", "{owner} adds {value}", {None, *DEFAULT_CAPABILITIES})
_APPARMOR = Rule(
    "all", "securityContext.appArmorProfile.type", "{owner} has AppArmor profile {value!r}", CONFINED_PROFILES
)
_SECCOMP = Rule(
    "all", "securityContext.seccompProfile.type", "{owner} has seccomp profile {value!r}", CONFINED_PROFILES
)
BASELINE: dict[str, tuple[Rule, ...]] = {
    "hostNamespaces": tuple(Rule("pod", one, f"{one} is true", _OFF) for one in ("hostNetwork", "hostPID", "hostIPC")),
    "privileged": (Rule("containers", "securityContext.privileged", "{owner} is privileged", _OFF),),
    "capabilities": (_ADDED,),
    "volumes": (Rule("volumes", "hostPath", "{owner} is a hostPath", (None,)),),
    "hostPorts": (Rule("containers", "ports.hostPort", "{owner} takes host port {value}", _NOTHING),),
    "hostProbes": tuple(
        Rule("containers", f"{handler}.{action}.host", f"{{owner}} names host {{value!r}} in {name}", _NOTHING)
        for handler in ("livenessProbe", "readinessProbe", "startupProbe", "lifecycle.postStart", "lifecycle.preStop")
        for name in handler.split(".")[-1:]
        for action in ("httpGet", "tcpSocket")
    ),
    "appArmorProfile": (_APPARMOR,),
    "seLinuxOptions": (
        Rule("all", "securityContext.seLinuxOptions.type", "{owner} has SELinux type {value!r}", SELINUX_TYPES),
        Rule("all", "securityContext.seLinuxOptions.user", "{owner} sets the SELinux user", _NOTHING),
        Rule("all", "securityContext.seLinuxOptions.role", "{owner} sets the SELinux role", _NOTHING),
    ),
    "procMount": (
        Rule("containers", "securityContext.procMount", "{owner} has procMount {value!r}", (None, "Default")),
    ),
    "seccompProfile": (_SECCOMP,),
    "sysctls": (Rule("pod", "securityContext.sysctls.name", "{owner} sets sysctl {value}", SAFE_SYSCTLS),),
    "windowsHostProcess": (
        Rule("all", "securityContext.windowsOptions.hostProcess", "{owner} is a Windows host process", _OFF),
    ),
}
RESTRICTED: dict[str, tuple[Rule, ...]] = {
    **BASELINE,
    "capabilities": (_DROPPED, _ADDED._replace(allowed=(None, "NET_BIND_SERVICE"))),
    "volumes": (Rule("volumes", "", "{owner} is a {value}", RESTRICTED_VOLUMES),),
    "seccompProfile": (
        _SECCOMP,
        Rule("containers", "securityContext.seccompProfile", "{owner} has no seccomp profile", required=...),
    ),
    "allowPrivilegeEscalation": (
        Rule(
            "containers",
            "securityContext.allowPrivilegeEscalation",
            "{owner} may escalate privileges",
            required=False,
        ),
    ),
    "runAsNonRoot": (
        Rule("all", "securityContext.runAsNonRoot", "{owner} sets runAsNonRoot to false", (None, True)),
        Rule("containers", "securityContext.runAsNonRoot", "{owner} may run as root", required=...),
    ),
    "runAsUser": (Rule("all", "securityContext.runAsUser", "{owner} runs as user 0", refused=(0,)),),
}
CHECKS: dict[str, dict[str, tuple[Rule, ...]]] = {"privileged": {}, "baseline": BASELINE, "restricted": RESTRICTED}


def violations(pod_spec: PodSpec, level: str) -> list[str]:
    """Return the violations of a level, such as ``baseline``, in a pod spec, as ``<name of the check>: <problem>``."""
    checks = CHECKS[level].items()
    return [f"{name}: {problem}" for name, rules in checks for rule in rules for problem in _problems(pod_spec, rule)]


def ways_out(pod_spec: PodSpec, level: str) -> list[str]:
    """Return the settings that a pod lacks for a level, for example ``securityContext.runAsNonRoot: true``.

    The result contains only settings for the checks that the pod violates.
    """
    checks = CHECKS[level].items()
    return [_WAYS_OUT[name] for name, rules in checks if any(any(_problems(pod_spec, rule)) for rule in rules)]


def _problems(pod: PodSpec, rule: Rule) -> Iterator[str]:
    for owner, holder in _holders(pod, rule.where):
        values = _sources(holder) if not rule.path else list(_values(holder, rule.path))
        is_settled = rule.required in (None, *values) if rule.required is not ... else _is_set(rule.path, pod, holder)
        if not is_settled:
            yield rule.problem.format(owner=owner)
        for value in values:
            if value in rule.refused or (rule.allowed is not None and value not in rule.allowed):
                yield rule.problem.format(owner=owner, value=value)


def _holders(pod: PodSpec, where: Where) -> Iterator[tuple[str, Mapping[str, Any]]]:
    if where in ("pod", "all"):
        yield "pod", pod
    if where in ("containers", "all"):
        for field in ("initContainers", "containers", "ephemeralContainers"):
            yield from ((f"container {one.get('name')!r}", one) for one in pod.get(field) or ())
    if where == "volumes":
        yield from ((f"volume {one.get('name')!r}", one) for one in pod.get("volumes") or ())


def _values(holder: Mapping[str, Any], path: str) -> Iterator[Any]:
    """Yield the values at a dotted path. At a list, the path continues in each item.

    A value is None if the last field of the path is missing.

    Args:
        holder: Pod, container or volume, as in a manifest.
        path: Names of fields, joined by dots.
    """
    field, _, rest = path.partition(".")
    value = holder.get(field)
    for one in value if isinstance(value, list) else (value,):
        if not rest:
            yield one
        elif isinstance(one, Mapping):
            yield from _values(one, rest)


def _is_set(path: str, *holders: Mapping[str, Any]) -> bool:
    return any(value is not None for holder in holders for value in _values(holder, path))


def _sources(volume: Mapping[str, Any]) -> list[str]:
    """Return the kind of a pod volume, such as ``hostPath`` or ``emptyDir``, as a list with one text.

    If a volume has several kinds, the text is one that the level ``restricted`` allows. If the level allows none of
    them, the text contains all kinds, joined by spaces.
    """
    sources = sorted(field for field, value in volume.items() if field != "name" and value is not None)
    allowed = [source for source in sources if source in RESTRICTED_VOLUMES]
    return allowed[:1] or [" ".join(sources) or "volume without source"]
