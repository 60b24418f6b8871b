"""Pod Security levels: every check can fail, and known pods have the same result as in the admission plugin."""

import copy

from gpu_constructs.kube.pod_security import CHECKS, violations, ways_out
from tables import beside

RESTRICTED_POD = beside(__file__, "pod_security")["restricted_pod"]
PLAIN_POD = {"containers": [{"name": "main"}]}
INLINE_VOLUMES = ("configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "image", "projected", "secret")


def restricted_pod(pod: dict | None = None, container: dict | None = None) -> dict:
    """Return the pod that passes every check, with a change of its security context or that of its container."""
    changed = copy.deepcopy(RESTRICTED_POD)
    changed["securityContext"].update(pod or {})
    changed["containers"][0]["securityContext"].update(container or {})
    return changed


def failing(pod: dict, level: str) -> set[str]:
    return {violation.split(":")[0] for violation in violations(pod, level)}


def test_every_check_rejects_its_violation_and_nothing_else(rows):
    weaker = {"baseline": "privileged", "restricted": "baseline"}
    for level, check, place, fields in rows:
        pod = {
            "pod": {**RESTRICTED_POD, **fields},
            "pod security": restricted_pod(pod=fields),
            "container security": restricted_pod(container=fields),
        }[place]
        assert failing(pod, level) == {check}, (check, pod)
        assert len(ways_out(pod, level)) == 1, (check, pod)
        assert check in failing(pod, "restricted"), (check, pod)
        assert violations(pod, weaker[level]) == [], (check, pod)
    checked = {level: {row[1] for row in rows if row[0] == level} for level in weaker}
    assert checked["baseline"] == set(CHECKS["baseline"])
    assert checked["baseline"] | checked["restricted"] == set(CHECKS["restricted"])


def test_init_and_ephemeral_containers_are_checked_too():
    for field in ["initContainers", "ephemeralContainers"]:
        pod = {**RESTRICTED_POD, field: [{"name": "extra", "securityContext": {"privileged": True}}]}
        assert violations(pod, "baseline") == ["privileged: container 'extra' is privileged"], field


def test_containers_can_set_what_the_pod_does_not_set():
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
