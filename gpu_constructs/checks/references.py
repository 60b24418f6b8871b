"""Checks for references to objects that do not exist, such as a pod that mounts a missing ConfigMap or Secret."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile
from typing import Any

from gpu_constructs.facts.app import Facts, Pod
from gpu_constructs.facts.finding import Finding
from gpu_constructs.facts.provided import is_among
from gpu_constructs.facts.readable import Manifest, mapping, namespace_of
from gpu_constructs.kube import fields, pod_specs
from gpu_constructs.records import dataclass

KEYWORDS: Mapping[str, str] = {
    "ConfigMap": "config_maps",
    "PriorityClass": "priority_classes",
    "Secret": "secrets",
    "ServiceAccount": "service_accounts",
}
"""Keyword argument of ``External`` that declares existing objects, by their kind."""

_EVERYWHERE = "*"
_BUILT_IN: Mapping[str, Sequence[str]] = {
    "ConfigMap": ("kube-root-ca.crt",),
    "PriorityClass": ("system-cluster-critical", "system-node-critical"),
    # Kubeflow creates default-editor and default-viewer in the namespace of each profile.
    "ServiceAccount": ("default", "default-editor", "default-viewer"),
}
# Kinds of the objects that operators create, with the paths to their name. The first path with a value applies.
_PRODUCED: Mapping[tuple[str, str], tuple[str, ...]] = {
    ("bitnami.com", "SealedSecret"): ("Secret", "spec.template.metadata.name", "metadata.name"),
    ("cert-manager.io", "Certificate"): ("Secret", "spec.secretName"),
    ("external-secrets.io", "ClusterExternalSecret"): ("Secret", "spec.externalSecretName", "metadata.name"),
    ("external-secrets.io", "ExternalSecret"): ("Secret", "spec.target.name", "metadata.name"),
    ("isindir.github.com", "SopsSecret"): ("Secret", "spec.secretTemplates.*.name"),
    ("onepassword.com", "OnePasswordItem"): ("Secret", "metadata.name"),
    ("ricoberger.de", "VaultSecret"): ("Secret", "metadata.name"),
    ("secrets-store.csi.x-k8s.io", "SecretProviderClass"): ("Secret", "spec.secretObjects.*.secretName"),
    ("secrets.doppler.com", "DopplerSecret"): ("Secret", "spec.managedSecret.name"),
    ("secrets.hashicorp.com", "VaultDynamicSecret"): ("Secret", "spec.destination.name"),
    ("secrets.hashicorp.com", "VaultPKISecret"): ("Secret", "spec.destination.name"),
    ("secrets.hashicorp.com", "VaultStaticSecret"): ("Secret", "spec.destination.name"),
    ("secrets.infisical.com", "InfisicalSecret"): ("Secret", "spec.managedSecretReference.secretName"),
    ("trust.cert-manager.io", "Bundle"): ("ConfigMap", "metadata.name"),
}
_IN_EVERY_NAMESPACE = frozenset({"Bundle", "ClusterExternalSecret"})

# Kinds and paths of the references in other objects than pods.
_NAMED: Mapping[tuple[str, str], tuple[str, ...]] = {
    ("", "ServiceAccount"): ("Secret", "imagePullSecrets.*.name"),
    ("batch.volcano.sh", "Job"): ("PriorityClass", "spec.priorityClassName"),
    ("helm.toolkit.fluxcd.io", "HelmRelease"): ("ServiceAccount", "spec.serviceAccountName"),
    **{
        ("kubeflow.org", kind): ("PriorityClass", "spec.runPolicy.schedulingPolicy.priorityClass")
        for kind in ("JAXJob", "MPIJob", "PaddleJob", "PyTorchJob", "TFJob", "XGBoostJob")
    },
}
_SCRAPERS = frozenset({"monitoring.coreos.com", "operator.victoriametrics.com"})
_OF_SCRAPERS: Mapping[str, str] = {
    "configMap": "ConfigMap",
    **dict.fromkeys(("bearerTokenSecret", "credentials", "keySecret", "password", "secret", "username"), "Secret"),
}
_KIND_OF: Mapping[str, str] = {
    "configMap": "ConfigMap",
    "configMapKeyRef": "ConfigMap",
    "configMapRef": "ConfigMap",
    "secret": "Secret",
    "secretKeyRef": "Secret",
    "secretRef": "Secret",
}


@dataclass(frozen=True)
class _Reference:
    """A reference of an object to another object.

    Attributes:
        index: Index in ``Facts.objects`` of the object that contains the reference.
        kind: Kind of the referenced object.
        namespace: Namespace of the referenced object; empty for a cluster-scoped object.
        name: Name of the referenced object.
        keys: Data keys that the referenced ConfigMap or Secret must have; none by default.
    """

    index: int
    kind: str
    namespace: str
    name: str
    keys: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.kind} {self.name!r}" + (f" of namespace {self.namespace!r}" if self.namespace else "")


_Known = Mapping[tuple[str, str], Mapping[str, frozenset[str] | None]]
"""Names of existing objects by kind and namespace, each with the data keys of the object; None if these are unknown."""


def references_exist(facts: Facts) -> Iterator[Finding]:
    """Yield problems: references to objects that the app neither creates nor declares, and to missing data keys.

    For example, a pod uses a key that its ConfigMap does not have.
    """
    wanted = list(dict.fromkeys(_references(facts)))
    known = _known(facts) if wanted else {}
    reported: set[tuple[str, str, str]] = set()
    for one in wanted:
        identity = (one.kind, one.namespace, one.name)
        names = [name for place in (one.namespace, _EVERYWHERE) for name in known.get((one.kind, place), ())]
        if is_among(one.name, names):
            yield from _missing_keys(one, known)
        elif identity not in reported:
            reported.add(identity)
            yield _missing(one, names)


def _missing(one: _Reference, names: list[str]) -> Finding:
    """Return the problem for a reference to an object that the app neither creates nor declares.

    Args:
        one: Reference.
        names: Names of existing objects of the same kind and namespace, for a suggestion in the message.
    """
    near = next((name for name in names if _is_slip(one.name, name)), None)
    declared = f"{one.namespace}/{one.name}" if one.namespace else one.name
    way_out = f"declare it with External(app, 'existing', {KEYWORDS[one.kind]}=[{declared!r}])"
    if near is not None:
        return Finding(
            one.index,
            f"references {one}, which this app does not create, but {near!r} exists. Write {near!r}. If the cluster "
            f"has {one.name!r} too, {way_out}",
        )
    return Finding(
        one.index,
        f"references {one}, which this app does not create{fields.did_you_mean(one.name, names)}. Add it, or {way_out}",
        is_warning=True,
    )


def _missing_keys(one: _Reference, known: _Known) -> Iterator[Finding]:
    """Yield a problem for each data key that a reference needs and that the referenced object does not have.

    Args:
        one: Reference.
        known: Data keys of existing objects: by kind and namespace, then by name.
    """
    has = known.get((one.kind, one.namespace), {}).get(one.name)
    # If the object has no keys, another program adds them.
    for key in one.keys if has else ():
        if has and key not in has:
            yield Finding(
                one.index,
                f"references key {key!r} of {one}, which does not have it{fields.did_you_mean(key, has)}. It has "
                f"{', '.join(sorted(has)[:5])}. Name one of its keys, or make the reference optional",
            )


def _is_slip(got: str, known: str) -> bool:
    """Check whether two names probably differ by a typing error.

    A typing error is one added, missing, wrong or swapped letter. A different digit is not a typing error, because
    names such as ``gpu-1`` and ``gpu-2`` are both correct.
    """
    start = _in_common(got, known)
    end = _in_common(got[start:][::-1], known[start:][::-1])
    one, other = got[start : len(got) - end], known[start : len(known) - end]
    is_slip = max(len(one), len(other)) == 1 or (len(one) == 2 and one == other[::-1])
    word = re.split(r"[-.]", known[:start])[-1] + re.split(r"[-.]", known[start:])[0]
    return is_slip and not re.search(r"[0-9]", one + other) and ("-" in one + other or len(word) > 3)


def _in_common(one: str, other: str) -> int:
    """Return the number of characters that two texts have in common at their start."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


def _made_by(manifest: Manifest, of: tuple[str, str]) -> Iterator[tuple[str, str, str, frozenset[str] | None]]:
    """Yield the possible targets of references, such as Secrets, that an object of the app adds to the cluster.

    Each is a tuple: kind, namespace, name, and data keys (None if unknown). For a ConfigMap, the target is the
    ConfigMap itself. For an ExternalSecret, the target is its Secret. A Deployment adds none.

    Args:
        manifest: Object in the app.
        of: API group and kind of the object.
    """
    (group, kind), name, namespace = of, str(manifest["metadata"].get("name")), namespace_of(manifest)
    if group == "" and kind in KEYWORDS:
        sections = (manifest.get(section) for section in ("data", "stringData", "binaryData"))
        yield kind, namespace, name, frozenset(key for section in sections for key in mapping(section))
    elif of == ("scheduling.k8s.io", "PriorityClass"):
        yield kind, "", name, None
    elif of in _PRODUCED:
        produced, *paths = _PRODUCED[of]
        found = next((names for path in paths if (names := list(_texts(manifest, path.split("."))))), [])
        for each in found:
            yield produced, _EVERYWHERE if kind in _IN_EVERY_NAMESPACE else namespace, each, None


def _known(facts: Facts) -> _Known:
    """Return the objects that the app creates or declares.

    The result is a nested dict: by kind and namespace, then by name. A value contains the data keys of the object, or
    None if they are not known.
    """
    found: dict[tuple[str, str], dict[str, frozenset[str] | None]] = defaultdict(dict)
    for manifest, of in zip(facts.objects, facts.kinds, strict=True):
        for made, namespace, name, has in _made_by(manifest, of):
            there = found[made, namespace]
            # If two objects create the same object, its keys are unknown.
            there[name] = has if name not in there else None
    declared = [one for offer in facts.provided for one in offer.objects.items()]
    for kind, names in (*_BUILT_IN.items(), *declared):
        for name in names:
            namespace, _, own = name.rpartition("/")
            found[kind, namespace or _EVERYWHERE].setdefault(own, None)
    return found


def _references(facts: Facts) -> Iterator[_Reference]:
    """Yield the references that the objects of the app contain, in their pod specs and in other fields."""
    for pod in facts.pods:
        # A chart can create the objects to which its own workloads refer.
        if pod.index >= len(facts.written):
            break
        is_in_none = pod.manifest["kind"].startswith("Cluster")
        for one in _of_pod(pod):
            # The pods of a cluster-scoped runtime reference objects in the namespace of the job or service.
            if one.kind == "PriorityClass" or not is_in_none:
                yield one
    for index, manifest in enumerate(facts.objects):
        yield from _beyond_pods(index, manifest, facts.kinds[index])


def _sources(pod: Pod) -> Iterator[Manifest]:
    """Yield the parts of a pod that can refer to ConfigMaps and Secrets: its environment variables and volumes."""
    for container in pod_specs.containers(pod.spec):
        yield from (mapping(variable.get("valueFrom")) for variable in container.get("env") or ())
        yield from container.get("envFrom") or ()
    for volume in pod.spec.get("volumes") or ():
        yield from (volume, *_list(mapping(volume.get("projected")).get("sources")))


def _of_pod(pod: Pod) -> Iterator[_Reference]:
    """Yield the references of a pod to other objects, such as the ConfigMap of a volume."""

    def named(kind: str, name: object, *keys: object) -> Iterator[_Reference]:
        return _reference(pod.index, kind, namespace_of(pod.manifest), name, keys)

    yield from named("PriorityClass", pod.spec.get("priorityClassName"))
    yield from named("ServiceAccount", pod.spec.get("serviceAccountName") or pod.spec.get("serviceAccount"))
    for secret in _list(pod.spec.get("imagePullSecrets")):
        yield from named("Secret", mapping(secret).get("name"))
    for source in _sources(pod):
        for key, kind in _KIND_OF.items():
            of = mapping(source.get(key)) if key in source else {}
            if of and of.get("optional") is not True:
                items = [mapping(item).get("key") for item in _list(of.get("items"))]
                yield from named(kind, of.get("name") or of.get("secretName"), of.get("key"), *items)


def _beyond_pods(index: int, manifest: Manifest, known: tuple[str, str]) -> Iterator[_Reference]:
    """Yield the references of an object to other objects, except those in its pod specs.

    Args:
        index: Index of the object in ``Facts.objects``.
        manifest: Object.
        known: API group and kind of the object.
    """
    namespace = namespace_of(manifest)
    if known in _NAMED:
        kind, path = _NAMED[known]
        for name in _texts(manifest, path.split(".")):
            yield from _reference(index, kind, namespace, name)
    if known == ("helm.toolkit.fluxcd.io", "HelmRelease"):
        for source in _list(mapping(manifest.get("spec")).get("valuesFrom")):
            of = mapping(source)
            if of.get("kind") in KEYWORDS and of.get("optional") is not True:
                key = of.get("valuesKey", "values.yaml")
                yield from _reference(index, str(of["kind"]), namespace, of.get("name"), (key,))
    if known[0] in _SCRAPERS:
        yield from _of_scraper(index, namespace, manifest.get("spec"))


def _of_scraper(index: int, namespace: str, value: Any, depth: int = 0) -> Iterator[_Reference]:
    """Yield the references to Secrets and ConfigMaps in the spec of a ServiceMonitor or a similar object.

    Args:
        index: Index of the object in ``Facts.objects``.
        namespace: Namespace of the object.
        value: Spec of the object, or a part of the spec at any depth.
        depth: Depth of ``value`` in the spec; 0 (the default) for the spec itself.
    """
    for key, member in value.items() if isinstance(value, Mapping) else enumerate(_list(value)):
        of = mapping(member)
        kind = _OF_SCRAPERS.get(str(key))
        if kind and isinstance(of.get("key"), str) and of.get("optional") is not True:
            yield from _reference(index, kind, namespace, of.get("name"), (of["key"],))
        elif depth < 20:
            yield from _of_scraper(index, namespace, member, depth + 1)


def _reference(
    index: int, kind: str, namespace: str, name: object, keys: tuple[object, ...] = ()
) -> Iterator[_Reference]:
    """Yield a ``_Reference`` with the given attributes. Omit each key that contains a placeholder.

    Yield nothing if the name is empty, or contains a placeholder such as ``${trialParameters.name}``.
    """
    # Katib or a template replaces a placeholder in the name later.
    if isinstance(name, str) and name and not re.search(r"[${]", name):
        named = tuple(key for key in keys if isinstance(key, str) and not re.search(r"[${]", key))
        yield _Reference(index, kind, "" if kind == "PriorityClass" else namespace, name, named)


def _list(value: object) -> list[Any]:
    """Return ``value`` if it is a list. Otherwise, return an empty list."""
    return value if isinstance(value, list) else []


def _texts(value: Any, steps: list[str]) -> Iterator[str]:
    """Yield the texts at a path of keys in a manifest. The step ``*`` stands for every item of a list."""
    if not steps:
        if isinstance(value, str) and value:
            yield value
    elif steps[0] == "*":
        for member in _list(value):
            yield from _texts(member, steps[1:])
    else:
        yield from _texts(mapping(value).get(steps[0]), steps[1:])
