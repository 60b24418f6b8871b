"""Rights that objects give to pods and users, as sentences. A right that only the new object gives broadens access."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from gpu_constructs.cli.diff.comparing import Pair
from gpu_constructs.cli.diff.model import Effect, Topic
from gpu_constructs.cli.diff.stored import mappings_at
from gpu_constructs.kube.plain_data import at
from gpu_constructs.kube.pod_specs import containers, pod_specs

Object = Mapping[str, Any]
_LEVELS = ("restricted", "baseline", "privileged")
_ENFORCE = "pod-security.kubernetes.io/enforce"
_POLICIES = ("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding", "ValidatingWebhookConfiguration")
_MATCHING = ("matchConstraints", "matchConditions", "matchResources", "paramRef", "policyName")


def of_security(pair: Pair) -> Iterator[Effect]:
    """Yield an effect for each right or restriction that the change of an object adds or removes.

    For example, a container that becomes privileged gets a right. A NetworkPolicy is a restriction.

    Args:
        pair: Object before and after the change.
    """
    yield from _gained("broadening", pair.before, pair.after, "", "no longer ")
    yield from _gained("narrowing", pair.after, pair.before, "no longer: ", "now ")


def _gained(topic: Topic, old: Object, new: Object, right: str, guard: str) -> Iterator[Effect]:
    """Yield an effect for each right that only ``new`` gives, and for each restriction that only ``old`` contains.

    A restriction limits access, as a NetworkPolicy does. For narrowed access, the caller swaps ``old`` and ``new``.

    Args:
        topic: Topic of the effects: ``broadening`` or ``narrowing``.
        old: Object before the change (with ``narrowing``: after the change); empty if there is none.
        new: Object after the change (with ``narrowing``: before the change); empty if there is none.
        right: Start of each text about a right: empty, or ``no longer: `` with ``narrowing``.
        guard: Start of each text about a restriction: ``no longer ``, or ``now `` with ``narrowing``.
    """
    before, after = (dict(_rights(one)) if one else {} for one in (old, new))
    rights = [one for one, is_strong in after.items() if one not in before and (is_strong or (old and new))]
    yield from (Effect(topic, f"{right}{one}") for one in [*rights, *_verbs(new, old)])
    guards = list(_guards(new))
    yield from (Effect(topic, f"{guard}{one}") for one in _guards(old) if one not in guards)


def _rights(manifest: Object) -> Iterator[tuple[str, bool]]:
    """Yield a pair for each right that an object gives to pods or users: text, such as ``hostNetwork is on``, and bool.

    The bool is False if the command reports the right only for objects that exist before and after the change.
    """
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
                yield f"the rule allows {direction}: {json.dumps(rule, sort_keys=True)}", False
    elif kind == "ServiceAccount" and manifest.get("automountServiceAccountToken") is not False:
        yield "pods of this account mount its token by default", False


def _rights_of_pod(spec: Object) -> Iterator[tuple[str, bool]]:
    """Yield a pair for each right of a pod on its node or in the cluster: text, such as ``hostPID is on``, and bool.

    The bool is False if the command reports the right only for objects that exist before and after the change.
    """
    yield from ((f"{name} is on", True) for name in ("hostNetwork", "hostPID", "hostIPC") if spec.get(name) is True)
    if spec.get("automountServiceAccountToken") is not False:
        yield "the pods can mount a token for the API server", False
    paths = {one.get("name"): at(one, "hostPath.path") for one in mappings_at(spec, "volumes") if "hostPath" in one}
    pod = spec.get("securityContext", {})
    for container in containers(spec):
        title, security = f"container {container.get('name')}", container.get("securityContext", {})
        yield from ((f"{title} {text}", is_strong) for text, is_strong in _rights_of_container(pod, security))
        ports = [port["hostPort"] for port in mappings_at(container, "ports") if port.get("hostPort")]
        yield from ((f"{title} uses port {port} of the node", True) for port in ports)
        for mount in mappings_at(container, "volumeMounts"):
            if (path := paths.get(mount.get("name"))) is not None:
                yield f"{title} reads the hostPath {path}", True
                if mount.get("readOnly") is not True:
                    yield f"{title} writes the hostPath {path}", True


def _rights_of_container(pod: Object, own: Object) -> Iterator[tuple[str, bool]]:
    """Yield a pair for each right of a container: text, such as ``is privileged``, and bool.

    The bool is False if the command reports the right only for objects that exist before and after the change.

    Args:
        pod: Security context of the pod.
        own: Security context of the container, which takes precedence.
    """
    user: object = own.get("runAsUser", pod.get("runAsUser"))
    non_root = own.get("runAsNonRoot", pod.get("runAsNonRoot")) is True
    capabilities = own.get("capabilities", {})
    seccomp = at({**pod, **own}, "seccompProfile.type")
    yield from ((f"has the capability {one}", True) for one in capabilities.get("add", ()))
    found = (
        (own.get("privileged") is True, "is privileged", True),
        ("ALL" not in capabilities.get("drop", ()), "keeps the default capabilities", False),
        (user == 0, "runs as root (runAsUser 0)", True),
        (user is None and not non_root, "can run as root", False),
        (own.get("allowPrivilegeEscalation") is not False, "can gain privileges (allowPrivilegeEscalation)", False),
        (own.get("readOnlyRootFilesystem") is not True, "can write to its root file system", False),
        (seccomp in (None, "Unconfined"), "runs without a seccomp profile", seccomp is not None),
    )
    yield from ((text, is_strong) for holds, text, is_strong in found if holds)


def _verbs(new: Object, old: Object) -> list[str]:
    """Return a text for each resource on which the Role or ClusterRole ``new`` gives more rights than ``old``.

    An example of a text is ``may list pods``. For other kinds, the result is empty.
    """
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
    """Yield the rights of a Role or ClusterRole: verb, API group, resource, and name of an object (``*`` for all)."""
    for rule in mappings_at(role, "rules"):
        for verb in rule.get("verbs", ()):
            for group in rule.get("apiGroups", ("",)):
                for resource in (*rule.get("resources", ()), *rule.get("nonResourceURLs", ())):
                    for name in rule.get("resourceNames", ("*",)):
                        yield str(verb), str(group), str(resource), str(name)


def _guards(manifest: Object) -> Iterator[str]:
    """Yield a text for each restriction in an object, such as ``has the action Deny``.

    Only NetworkPolicies, admission policies and validating webhooks contain restrictions.
    """
    kind = manifest.get("kind")
    if kind == "NetworkPolicy":
        selector = json.dumps(at(manifest, "spec.podSelector", {}), sort_keys=True)
        types = at(manifest, "spec.policyTypes") or ["Ingress", *["Egress"] * ("egress" in manifest["spec"])]
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
