"""What pods and roles have that a security list wants them not to have, read off manifests."""

from collections.abc import Iterator
from typing import Any

import invariants

Manifest = dict[str, Any]


def held(manifests: list[Manifest]) -> Iterator[tuple[str, str]]:
    """Workload and rule, for everything a pod has that the list wants it not to have."""
    for manifest in manifests:
        for spec in invariants.pod_specs(manifest):
            name = f"{manifest['kind']} {manifest['metadata']['name']}"
            for rule in (*_of_the_pod(spec, manifest, manifests), *_of_the_containers(spec)):
                yield name, rule


def _of_the_pod(spec: Manifest, manifest: Manifest, manifests: list[Manifest]) -> Iterator[str]:
    for field, what in (("hostNetwork", "network"), ("hostPID", "PID"), ("hostIPC", "IPC")):
        if spec.get(field):
            yield f"host {what} namespace"
    if has_token(spec, manifest["metadata"]["namespace"], manifests):
        yield "service account token"
    for volume in spec.get("volumes") or ():
        if "hostPath" in volume:
            mounts = [m for c in invariants.containers(spec) for m in c["volumeMounts"] if m["name"] == volume["name"]]
            access = "read-only" if all(mount.get("readOnly") for mount in mounts) else "writable"
            yield f"host path {volume['hostPath']['path']}, {access}"


def has_token(spec: Manifest, namespace: str, manifests: list[Manifest]) -> bool:
    """The pod's word counts, then its ServiceAccount's, then the API server's default, which is to mount one."""
    if "automountServiceAccountToken" in spec:
        return bool(spec["automountServiceAccountToken"])
    account = (namespace, spec.get("serviceAccountName", "default"))
    for manifest in manifests:
        metadata = manifest["metadata"]
        if manifest["kind"] == "ServiceAccount" and (metadata["namespace"], metadata["name"]) == account:
            return bool(manifest.get("automountServiceAccountToken", True))
    return True


def _of_the_containers(spec: Manifest) -> Iterator[str]:
    of_pod = spec.get("securityContext") or {}
    for container in invariants.containers(spec):
        own = container.get("securityContext") or {}
        context = {**of_pod, **own}
        capabilities = own.get("capabilities") or {}
        if not context.get("runAsNonRoot") or context.get("runAsUser") == 0:
            yield "may run as root"
        if not own.get("readOnlyRootFilesystem"):
            yield "writable root file system"
        if "ALL" not in capabilities.get("drop", ()):
            yield "keeps default capabilities"
        for capability in capabilities.get("add", ()):
            yield f"adds capability {capability}"
        if (context.get("seccompProfile") or {}).get("type") != "RuntimeDefault":
            yield "no seccomp profile RuntimeDefault"
        if own.get("allowPrivilegeEscalation") is not False:
            yield "may escalate privileges"
        if own.get("privileged"):
            yield "privileged"
        resources = container.get("resources") or {}
        for section, resource in (("limits", "memory"), ("requests", "memory"), ("requests", "cpu")):
            if resource not in (resources.get(section) or {}):
                yield f"no {resource} {section.removesuffix('s')}"
        for port in container.get("ports") or ():
            if "hostPort" in port:
                yield f"host port {port['hostPort']}"


def rights(manifests: list[Manifest]) -> Iterator[tuple[str, Manifest]]:
    """Every rule of every Role and ClusterRole, with the role's name."""
    for manifest in manifests:
        if manifest["kind"] in ("Role", "ClusterRole"):
            for rule in manifest["rules"]:
                yield f"{manifest['kind']} {manifest['metadata']['name']}", rule


def excessive(rule: Manifest) -> Iterator[str]:
    """What no rule may hold."""
    for field in ("apiGroups", "resources", "verbs", "nonResourceURLs"):
        if any("*" in value for value in rule.get(field) or ()):
            yield f"wildcard in {field}"
    for resource in rule.get("resources") or ():
        if resource in ("secrets", "pods/exec", "pods/attach", "serviceaccounts/token"):
            yield f"access to {resource}"
    for verb in ("escalate", "bind", "impersonate"):
        if verb in rule["verbs"]:
            yield f"verb {verb}"
