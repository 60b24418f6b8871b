"""Pod Security levels: every check can fail, and known pods get the verdict of the real admission plugin."""

from __future__ import annotations

import copy

from gpu_constructs.kube.pod_security import CHECKS, violations, ways_out

RESTRICTED_POD = {
    "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
    "containers": [
        {"name": "main", "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}}
    ],
    "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}],
}
PLAIN_POD = {"containers": [{"name": "main"}]}
INLINE_VOLUMES = ("configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "image", "projected", "secret")
SYS_ADMIN = {"capabilities": {"add": ["SYS_ADMIN"]}}


def host_path(path: str) -> dict:
    return {"name": "host", "hostPath": {"path": path}}


def restricted_pod(pod: dict | None = None, container: dict | None = None) -> dict:
    """The pod that satisfies every check, its or its container's security context changed."""
    changed = copy.deepcopy(RESTRICTED_POD)
    changed["securityContext"].update(pod or {})
    changed["containers"][0]["securityContext"].update(container or {})
    return changed


def failing(pod: dict, level: str) -> set[str]:
    return {violation.split(":")[0] for violation in violations(pod, level)}


BASELINE_CASES = {
    "host-network": ("hostNamespaces", {**RESTRICTED_POD, "hostNetwork": True}),
    "host-pid": ("hostNamespaces", {**RESTRICTED_POD, "hostPID": True}),
    "host-ipc": ("hostNamespaces", {**RESTRICTED_POD, "hostIPC": True}),
    "privileged": ("privileged", restricted_pod(container={"privileged": True})),
    "capability": ("capabilities", restricted_pod(container={"capabilities": {"drop": ["ALL"], "add": ["SYS_ADMIN"]}})),
    "host-path": ("volumes", {**RESTRICTED_POD, "volumes": [host_path("/dev")]}),
    "host-port": ("hostPorts", {"containers": [{"name": "main", "ports": [{"containerPort": 80, "hostPort": 80}]}]}),
    "probe-host": (
        "hostProbes",
        {"containers": [{"name": "main", "livenessProbe": {"httpGet": {"host": "1.2.3.4", "port": 80}}}]},
    ),
    "hook-host": (
        "hostProbes",
        {"containers": [{"name": "main", "lifecycle": {"preStop": {"tcpSocket": {"host": "a", "port": 1}}}}]},
    ),
    "apparmor-pod": ("appArmorProfile", restricted_pod(pod={"appArmorProfile": {"type": "Unconfined"}})),
    "apparmor-container": ("appArmorProfile", restricted_pod(container={"appArmorProfile": {"type": "Unconfined"}})),
    "selinux-type": ("seLinuxOptions", restricted_pod(pod={"seLinuxOptions": {"type": "spc_t"}})),
    "selinux-user": ("seLinuxOptions", restricted_pod(container={"seLinuxOptions": {"user": "root"}})),
    "selinux-role": ("seLinuxOptions", restricted_pod(container={"seLinuxOptions": {"role": "system_r"}})),
    "proc-mount": ("procMount", restricted_pod(container={"procMount": "Unmasked"})),
    "seccomp-pod": ("seccompProfile", restricted_pod(pod={"seccompProfile": {"type": "Unconfined"}})),
    "seccomp-container": ("seccompProfile", restricted_pod(container={"seccompProfile": {"type": "Unconfined"}})),
    "sysctl": ("sysctls", restricted_pod(pod={"sysctls": [{"name": "kernel.msgmax", "value": "1"}]})),
    "windows-pod": ("windowsHostProcess", restricted_pod(pod={"windowsOptions": {"hostProcess": True}})),
    "windows-container": ("windowsHostProcess", restricted_pod(container={"windowsOptions": {"hostProcess": True}})),
}
RESTRICTED_CASES = {
    "escalation": ("allowPrivilegeEscalation", restricted_pod(container={"allowPrivilegeEscalation": None})),
    "drop-missing": ("capabilities", restricted_pod(container={"capabilities": {"drop": ["NET_RAW"]}})),
    "capability-of-the-default-set": (
        "capabilities",
        restricted_pod(container={"capabilities": {"drop": ["ALL"], "add": ["CHOWN"]}}),
    ),
    "seccomp-missing": ("seccompProfile", restricted_pod(pod={"seccompProfile": None})),
    "volume": ("volumes", {**RESTRICTED_POD, "volumes": [{"name": "nfs", "nfs": {"server": "nas"}}]}),
    "root-allowed": ("runAsNonRoot", restricted_pod(pod={"runAsNonRoot": None})),
    "root-demanded": ("runAsNonRoot", restricted_pod(container={"runAsNonRoot": False})),
    "root-pod": ("runAsUser", restricted_pod(pod={"runAsUser": 0})),
    "root-container": ("runAsUser", restricted_pod(container={"runAsUser": 0})),
}


def test_baseline_refuses_exactly_what_the_check_is_about():
    for check, pod in BASELINE_CASES.values():
        assert failing(pod, "baseline") == {check}, (check, pod)
        assert len(ways_out(pod, "baseline")) == 1, (check, pod)
        assert check in failing(pod, "restricted"), (check, pod)
        assert violations(pod, "privileged") == [], (check, pod)


def test_restricted_refuses_what_baseline_still_accepts():
    for check, pod in RESTRICTED_CASES.values():
        assert violations(pod, "baseline") == [], (check, pod)
        assert failing(pod, "restricted") == {check}, (check, pod)
        assert len(ways_out(pod, "restricted")) == 1, (check, pod)


def test_every_check_has_a_pod_that_fails_it():
    assert {check for check, _ in BASELINE_CASES.values()} == set(CHECKS["baseline"])
    assert {check for check, _ in RESTRICTED_CASES.values()} | set(CHECKS["baseline"]) == set(CHECKS["restricted"])


def test_init_and_ephemeral_containers_are_checked_too():
    for field in ["initContainers", "ephemeralContainers"]:
        pod = {**RESTRICTED_POD, field: [{"name": "extra", "securityContext": {"privileged": True}}]}
        assert violations(pod, "baseline") == ["privileged: container 'extra' is privileged"], field


def test_containers_may_settle_for_themselves_what_the_pod_leaves_open():
    own = {"runAsNonRoot": True, "seccompProfile": {"type": "Localhost", "localhostProfile": "gpu.json"}}
    pod = restricted_pod(pod={"runAsNonRoot": None, "seccompProfile": None}, container=own)
    assert violations(pod, "restricted") == []


def test_harmless_settings_are_accepted():
    pod = restricted_pod(
        pod={
            "runAsUser": 1000,
            "appArmorProfile": {"type": "RuntimeDefault"},
            "seLinuxOptions": {"type": "container_t", "level": "s0:c1"},
            "sysctls": [{"name": "net.ipv4.tcp_syncookies", "value": "1"}],
        },
        container={"procMount": "Default", "capabilities": {"drop": ["ALL"], "add": ["NET_BIND_SERVICE"]}},
    )
    pod["volumes"] = [{"name": source, source: {}} for source in INLINE_VOLUMES]
    pod["containers"][0]["ports"] = [{"containerPort": 80}]
    pod["containers"][0]["readinessProbe"] = {"httpGet": {"path": "/", "port": 80}}
    assert violations(pod, "restricted") == []


def test_a_workload_without_security_context_is_baseline_but_not_restricted():
    assert failing(PLAIN_POD, "restricted") == {
        "allowPrivilegeEscalation",
        "capabilities",
        "runAsNonRoot",
        "seccompProfile",
    }
