"""Rights and access of objects, as sets of sentences: what only the new side has broadens the access."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from gpu_constructs.cli.diff.comparing import Pair
from gpu_constructs.cli.diff.model import Effect
from gpu_constructs.cli.diff.stored import mappings_at
from gpu_constructs.kube.plain_data import at
from gpu_constructs.kube.pod_specs import containers, pod_specs

Object = Mapping[str, Any]
_LEVELS = ("restricted", "baseline", "privileged")
_ENFORCE = "pod-security.kubernetes.io/enforce"
_POLICIES = ("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding", "ValidatingWebhookConfiguration")
_MATCHING = ("matchConstraints", "matchConditions", "matchResources", "paramRef", "policyName")


def of_security(pair: Pair) -> Iterator[Effect]:
    """Yield the effects of a difference on rights and access."""
    old, new = (dict(_rights(one)) if one else {} for one in (pair.before, pair.after))
    weak = pair.before and pair.after
    for topic, here, there, guards in (
        ("broadening", new, old, (pair.before, pair.after)),
        ("narrowing", old, new, (pair.after, pair.before)),
    ):
        rights = [one for one, is_strong in here.items() if one not in there and (is_strong or weak)]
        lost = [one for one in _guards(guards[0]) if one not in list(_guards(guards[1]))]
        verbs = _verbs(pair.after, pair.before) if topic == "broadening" else _verbs(pair.before, pair.after)
        for text in [*rights, *verbs]:
            yield Effect(topic, text if topic == "broadening" else f"no longer: {text}")  # type: ignore[arg-type]
        for text in lost:
            yield Effect(topic, f"{'no longer ' if topic == 'broadening' else 'now '}{text}")  # type: ignore[arg-type]


def _rights(manifest: Object) -> Iterator[tuple[str, bool]]:
    """Yield what an object allows, and whether this counts for a new object too."""
    kind = manifest["kind"]
    for spec in pod_specs(dict(manifest)):
        yield from _rights_of_pod(spec)
    if kind == "Namespace":
        level = at(manifest, "metadata.labels", {}).get(_ENFORCE, "")
        if level in _LEVELS:
            yield from (
                (f"Pod Security admits {one} pods", one == "privileged")
                for one in _LEVELS[1 : _LEVELS.index(level) + 1]
            )
        else:
            yield "Pod Security has the level that the cluster sets by default", False
    elif kind in ("RoleBinding", "ClusterRoleBinding"):
        role = manifest.get("roleRef", {})
        where = " in all namespaces" if kind == "ClusterRoleBinding" else ""
        for subject in mappings_at(manifest, "subjects"):
            name = "/".join(filter(None, (subject.get("namespace"), subject.get("name"))))
            yield f"{subject.get('kind')} {name} has {role.get('kind')} {role.get('name')}{where}", True
    elif kind == "NetworkPolicy":
        for direction in ("ingress", "egress"):
            for rule in at(manifest, f"spec.{direction}", []):
                yield f"{direction} is allowed by the rule {json.dumps(rule, sort_keys=True)}", False
    elif kind == "ServiceAccount" and manifest.get("automountServiceAccountToken") is not False:
        yield "pods of this account mount its token by default", False


def _rights_of_pod(spec: Object) -> Iterator[tuple[str, bool]]:
    """Yield what a pod may do on its node and in the cluster."""
    for name in ("hostNetwork", "hostPID", "hostIPC"):
        if spec.get(name) is True:
            yield f"{name} is on", True
    if spec.get("automountServiceAccountToken") is not False:
        yield "the pods can mount a token for the API server", False
    paths = {one.get("name"): at(one, "hostPath.path") for one in mappings_at(spec, "volumes") if "hostPath" in one}
    pod = spec.get("securityContext", {})
    for container in containers(spec):
        title, security = f"container {container.get('name')}", container.get("securityContext", {})
        yield from ((f"{title} {text}", is_strong) for text, is_strong in _rights_of_container(pod, security))
        for port in mappings_at(container, "ports"):
            if port.get("hostPort"):
                yield f"{title} uses port {port['hostPort']} of the node", True
        for mount in mappings_at(container, "volumeMounts"):
            if (path := paths.get(mount.get("name"))) is not None:
                yield f"{title} reads the hostPath {path}", True
                if mount.get("readOnly") is not True:
                    yield f"{title} writes the hostPath {path}", True


def _rights_of_container(pod: Object, own: Object) -> Iterator[tuple[str, bool]]:
    """Yield what the security contexts of a pod and of a container allow."""
    user: object = own.get("runAsUser", pod.get("runAsUser"))
    non_root = own.get("runAsNonRoot", pod.get("runAsNonRoot")) is True
    capabilities = own.get("capabilities", {})
    seccomp = at({**pod, **own}, "seccompProfile.type")
    if own.get("privileged") is True:
        yield "is privileged", True
    yield from ((f"has the capability {one}", True) for one in capabilities.get("add", ()))
    if "ALL" not in capabilities.get("drop", ()):
        yield "keeps the default capabilities", False
    if user == 0:
        yield "runs as root (runAsUser 0)", True
    elif user is None and not non_root:
        yield "can run as root", False
    if own.get("allowPrivilegeEscalation") is not False:
        yield "can gain privileges (allowPrivilegeEscalation)", False
    if own.get("readOnlyRootFilesystem") is not True:
        yield "can write to its root file system", False
    if seccomp in (None, "Unconfined"):
        yield "runs without a seccomp profile", seccomp is not None


def _verbs(new: Object, old: Object) -> list[str]:
    """Return the rights of a Role or ClusterRole that another one does not contain, one text for each resource."""
    if not new or new["kind"] not in ("Role", "ClusterRole"):
        return []
    former = list(_rules(old)) if old else []
    added: dict[tuple[str, ...], list[str]] = {}
    for verb, *resource in _rules(new):
        if not any(all(had in ("*", has) for had, has in zip(one, (verb, *resource), strict=True)) for one in former):
            added.setdefault(tuple(resource), []).append(verb)
    return [f"may {', '.join(verbs)} {_resource(*resource)}" for resource, verbs in added.items()]


def _resource(group: str, resource: str, name: str) -> str:
    return f"{resource}{f'.{group}' if group else ''}{f' {name}' if name != '*' else ''}"


def _rules(role: Object) -> Iterator[tuple[str, str, str, str]]:
    """Yield each right of a Role as verb, API group, resource and name of an object, with ``*`` for all."""
    for rule in mappings_at(role, "rules"):
        for verb in rule.get("verbs", ()):
            for group in rule.get("apiGroups", ("",)):
                for resource in (*rule.get("resources", ()), *rule.get("nonResourceURLs", ())):
                    for name in rule.get("resourceNames", ("*",)):
                        yield str(verb), str(group), str(resource), str(name)


def _guards(manifest: Object) -> Iterator[str]:
    """Yield what an object forbids, each as the end of a sentence that begins with "no longer" or "now"."""
    kind = manifest.get("kind")
    if kind == "NetworkPolicy":
        selector = json.dumps(at(manifest, "spec.podSelector", {}), sort_keys=True)
        types = at(manifest, "spec.policyTypes", ["Ingress"])
        yield from (f"restricts {one} of the pods {selector}" for one in types)
    elif kind in _POLICIES:
        spec = manifest.get("spec", {})
        yield from (f"checks {one.get('expression')}" for one in mappings_at(spec, "validations"))
        yield from (f"has the action {one}" for one in spec.get("validationActions", ()))
        if spec.get("failurePolicy") == "Fail":
            yield "refuses objects if the check itself fails"
        for name in _MATCHING:
            if name in spec:
                yield f"has the {name} {json.dumps(spec[name], sort_keys=True)}"
        for hook in mappings_at(manifest, "webhooks"):
            yield f"calls the webhook {hook.get('name')} with the failure policy {hook.get('failurePolicy', 'Fail')}"
