"""What holds for every object this library emits, in any test, and for a whole cluster of dist/.

Schemas see the shape of an object. What only the API server or a running cluster would say stands here.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from hashlib import sha256
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import dist
import schemas
from gpu_constructs.kube import kinds, pod_security
from gpu_constructs.kube.pod_specs import node_labels_required
from tables import beside

Manifest = Mapping[str, Any]


def hold_for(manifests: Sequence[Manifest], releases: Sequence[str] = schemas.SUPPORTED_RELEASES) -> None:
    """Fail with everything that is wrong with the manifests of one chart or cluster on these Kubernetes releases."""
    _fail_with(_of_objects(manifests, releases))


def hold_for_cluster(folder: Path, externals: Sequence[dist.External] = dist.EXTERNALS) -> None:
    """Fail with everything that keeps one `kubectl apply -f <folder>/` from working on an empty cluster."""
    first, second = dist.files(folder), dist.files(folder / dist.NEEDS_CRDS)
    strangers = list(_no_manifests({**first, **second}))
    _fail_with(strangers)
    objects = [manifest for documents in first.values() for manifest in documents]
    all_objects = [*objects, *(manifest for documents in second.values() for manifest in documents)]
    own_externals = {(row.kind, row.name) for row in externals if row.cluster == folder.name}
    _fail_with(
        chain(
            _of_objects(all_objects, schemas.SUPPORTED_RELEASES),
            _references(all_objects, own_externals),
            _node_labels(all_objects, own_externals),
            _scrape_targets(all_objects),
            _pod_security(all_objects),
            _order(all_objects, own_externals),
            _files_of_custom_resources(first, second, _custom_kinds(all_objects)),
        )
    )


def _fail_with(problems: Iterator[str] | Sequence[str]) -> None:
    found = list(problems)
    assert not found, "\n".join(found)


def _of_objects(manifests: Sequence[Manifest], releases: Sequence[str]) -> Iterator[str]:
    app_crds = schemas.custom_resources(manifests)
    scopes = _custom_kinds(manifests)
    for manifest in manifests:
        problems = chain(
            schemas.schema_errors(manifest, releases, app_crds=app_crds),
            _scope(manifest, scopes),
            _levels(manifest),
            _choices(manifest),
            _restart_policy(manifest),
            chain.from_iterable(check(spec) for spec in pod_specs(manifest) for check in _POD_CHECKS),
        )
        yield from (f"{identity(manifest)}: {problem}" for problem in problems)
    identities = [identity(manifest) for manifest in manifests]
    yield from (f"{i}: emitted twice" for i in sorted(set(identities)) if identities.count(i) > 1)
    yield from _selectors(manifests)
    yield from _services(manifests)
    yield from _checksums(manifests)


def identity(manifest: Manifest) -> str:
    metadata = manifest["metadata"]
    return f"{manifest['apiVersion']} {manifest['kind']} {metadata.get('namespace', '-')}/{metadata.get('name')}"


def _kind(manifest: Manifest) -> tuple[str, str]:
    return manifest["apiVersion"], manifest["kind"]


def _walk(value: Any, key: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Every mapping in a value, with the key it stands under."""
    if isinstance(value, dict):
        yield key, value
        for name, member in value.items():
            yield from _walk(member, name)
    elif isinstance(value, list):
        for member in value:
            yield from _walk(member, key)


# --- where the pods are ---------------------------------------------------------------------------------------


def pod_specs(manifest: Manifest) -> list[dict[str, Any]]:
    """Every pod spec in an object of any kind, custom ones too: whatever has a list of containers."""
    if manifest["kind"] == "CustomResourceDefinition":
        return []
    return [value for _, value in _walk(manifest) if isinstance(value.get("containers"), list)]


def containers(pod_spec: Manifest) -> list[dict[str, Any]]:
    return [*(pod_spec.get("initContainers") or ()), *pod_spec["containers"]]


class _Pods(NamedTuple):
    """The pods that an object makes, or is."""

    manifest: Manifest
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    spec: Manifest

    @property
    def namespace(self) -> str:
        return str(self.manifest["metadata"].get("namespace"))


def _pods(manifests: Sequence[Manifest]) -> Iterator[_Pods]:
    for manifest in manifests:
        for _, template in _walk(manifest):
            spec = template.get("spec")
            if isinstance(spec, dict) and isinstance(spec.get("containers"), list):
                metadata = template.get("metadata") or {}
                yield _Pods(manifest, metadata.get("labels") or {}, metadata.get("annotations") or {}, spec)


# --- one object -----------------------------------------------------------------------------------------------


@cache
def _committed_definitions() -> tuple[Manifest, ...]:
    files = sorted(schemas.CRD_FOLDER.glob("*.yaml"))
    return tuple(crd for file in files for crd in schemas.load_yaml(file.read_text(encoding="utf-8")))


def _custom_kinds(manifests: Sequence[Manifest]) -> dict[tuple[str, str], str]:
    """The scope of every kind that a committed CRD or one of the manifests defines."""
    return {
        (f"{crd['spec']['group']}/{version['name']}", crd["spec"]["names"]["kind"]): crd["spec"]["scope"]
        for crd in (*_committed_definitions(), *manifests)
        if crd["kind"] == "CustomResourceDefinition"
        for version in crd["spec"]["versions"]
    }


def _scope(manifest: Manifest, custom: Mapping[tuple[str, str], str]) -> Iterator[str]:
    scope = custom.get(_kind(manifest))
    is_cluster_scoped = kinds.is_cluster_scoped(*_kind(manifest)) if scope is None else scope == "Cluster"
    if is_cluster_scoped and "namespace" in manifest["metadata"]:
        yield "is cluster-scoped but carries a namespace"
    if not is_cluster_scoped and not manifest["metadata"].get("namespace"):
        yield "carries no namespace"


def _levels(manifest: Manifest) -> Iterator[str]:
    if _kind(manifest) == ("v1", "Namespace"):
        for mode in ("enforce", "audit", "warn"):
            level = (manifest["metadata"].get("labels") or {}).get(f"pod-security.kubernetes.io/{mode}")
            if level not in pod_security.CHECKS:
                yield f"states no Pod Security level to {mode}; has {level!r}"


_CHOICES = beside(__file__, "invariants")["choices"]


def _choices(manifest: Manifest) -> Iterator[str]:
    """Values that the schemas take for any string."""
    is_built_in = kinds.group_of(manifest["apiVersion"]) in kinds.BUILT_IN_GROUPS
    if manifest["kind"] == "CustomResourceDefinition":
        return
    for parent, mapping in _walk(manifest.get("spec"), "spec") if is_built_in else _walk(pod_specs(manifest)):
        for field, value in mapping.items():
            for name in (field, f"{parent}.{field}"):
                if name in _CHOICES and value is not None and value not in _CHOICES[name]:
                    yield f"{name} is {value!r}, none of {', '.join(map(repr, _CHOICES[name]))}"


def _restart_policy(manifest: Manifest) -> Iterator[str]:
    if manifest["kind"] in ("DaemonSet", "Deployment", "ReplicaSet", "StatefulSet"):
        allowed: tuple[str | None, ...] = (None, "Always")
    elif manifest["kind"] in ("Job", "CronJob"):
        allowed = ("OnFailure", "Never")
    else:
        allowed = (None, "Always", "OnFailure", "Never")
    for spec in pod_specs(manifest):
        if spec.get("restartPolicy") not in allowed:
            yield f"restartPolicy is {spec.get('restartPolicy')!r}, none of {allowed}"


# --- one pod --------------------------------------------------------------------------------------------------


def _images(spec: Manifest) -> Iterator[str]:
    for container in containers(spec):
        image = container["image"]
        _, colon, tag = image.rpartition("/")[2].partition(":")
        if not colon or tag == "latest":
            yield f"image {image!r} is not pinned"


def _unique_names(spec: Manifest) -> Iterator[str]:
    volumes, ports = spec.get("volumes") or (), [(c, c.get("ports") or ()) for c in containers(spec)]
    yield from _twice("container name", [container["name"] for container in containers(spec)])
    yield from _twice("volume name", [volume["name"] for volume in volumes])
    for container, own in ports:
        yield from _twice("port name", [port["name"] for port in own if "name" in port])
        yield from _twice("port", [(port["containerPort"], port.get("protocol", "TCP")) for port in own])
        yield from _twice("mountPath", [mount["mountPath"] for mount in container.get("volumeMounts") or ()])
        yield from _twice("variable", [variable["name"] for variable in container.get("env") or ()])


def _twice(what: str, values: Sequence[Any]) -> Iterator[str]:
    yield from (f"{what} {value!r} given twice" for value in dict.fromkeys(values) if values.count(value) > 1)


def _mounts(spec: Manifest) -> Iterator[str]:
    volumes = {volume["name"] for volume in spec.get("volumes") or ()}
    mounted = {mount["name"] for container in containers(spec) for mount in container.get("volumeMounts") or ()}
    yield from (f"mounts volume {name!r}, which the pod does not have" for name in sorted(mounted - volumes))
    yield from (f"volume {name!r} is mounted nowhere" for name in sorted(volumes - mounted))


def _tolerations(spec: Manifest) -> Iterator[str]:
    for toleration in spec.get("tolerations") or ():
        operator, effect = toleration.get("operator", "Equal"), toleration.get("effect", "")
        if operator not in ("Equal", "Exists"):
            yield f"toleration operator is {operator!r}"
        if operator == "Exists" and toleration.get("value"):
            yield f"toleration of {toleration.get('key')!r}: Exists takes no value"
        if operator != "Exists" and not toleration.get("key"):
            yield "toleration without a key must use Exists"
        if effect not in ("", "NoSchedule", "PreferNoSchedule", "NoExecute"):
            yield f"toleration effect is {effect!r}"
        if "tolerationSeconds" in toleration and effect != "NoExecute":
            yield "tolerationSeconds needs effect NoExecute"


def _affinity(spec: Manifest) -> Iterator[str]:
    for field, mapping in _walk(spec.get("affinity") or {}):
        if field == "requiredDuringSchedulingIgnoredDuringExecution" and mapping.get("nodeSelectorTerms") == []:
            yield "required node affinity without a term"
        if field not in ("matchExpressions", "matchFields"):
            continue
        operator, values = mapping.get("operator"), mapping.get("values") or []
        fits = {
            "In": len(values) > 0,
            "NotIn": len(values) > 0,
            "Exists": not values,
            "DoesNotExist": not values,
            "Gt": len(values) == 1 and str(values[0]).isdigit(),
            "Lt": len(values) == 1 and str(values[0]).isdigit(),
        }
        if not fits.get(str(operator)):
            yield f"affinity on {mapping.get('key')!r}: operator {operator!r} with values {values}"


def _probes(spec: Manifest) -> Iterator[str]:
    for container in containers(spec):
        port_names = {port.get("name") for port in container.get("ports") or ()}
        for name in ("startupProbe", "livenessProbe", "readinessProbe"):
            probe = container.get(name)
            if probe is None:
                continue
            handlers = [handler for handler in ("exec", "grpc", "httpGet", "tcpSocket") if handler in probe]
            if len(handlers) != 1:
                yield f"{name} must have one handler; has {handlers}"
            for handler in handlers:
                port = probe[handler].get("port", 1)
                if isinstance(port, str) and port not in port_names:
                    yield f"{name} asks port {port!r}, which container {container['name']!r} does not name"
                if isinstance(port, int) and not 1 <= port <= 65535:
                    yield f"{name} asks port {port}"
            for field in ("periodSeconds", "timeoutSeconds", "failureThreshold", "successThreshold"):
                if probe.get(field, 1) < 1:
                    yield f"{name}.{field} is {probe[field]}"
            if name != "readinessProbe" and probe.get("successThreshold", 1) != 1:
                yield f"{name}.successThreshold must be 1"


def _ports(spec: Manifest) -> Iterator[str]:
    for container in containers(spec):
        for port in container.get("ports") or ():
            if not 1 <= port["containerPort"] <= 65535:
                yield f"containerPort is {port['containerPort']}"
            if len(port.get("name", "")) > 15:
                yield f"port name {port['name']!r} has more than 15 characters"


def _gpus(spec: Manifest) -> Iterator[str]:
    for container in containers(spec):
        resources = container.get("resources") or {}
        limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
        asked = {name for name in (*limits, *requests) if name.startswith("nvidia.com/")}
        for name in sorted(asked):
            limit = limits.get(name)
            if not re.fullmatch(r"[1-9][0-9]*[kM]?", str(limit)):
                yield f"limit of {name} must be a whole number of 1 or more, got {limit!r}"
            if name in requests and requests[name] != limit:
                yield f"request of {name} must equal its limit {limit!r}, got {requests[name]!r}"
        visible = [v for v in container.get("env") or () if v["name"] == "NVIDIA_VISIBLE_DEVICES"]
        if asked and visible:
            yield f"container {container['name']!r} asks for a GPU and sets NVIDIA_VISIBLE_DEVICES: it would see others"


_POD_CHECKS: tuple[Callable[[Manifest], Iterator[str]], ...] = (
    _images,
    _unique_names,
    _mounts,
    _tolerations,
    _affinity,
    _probes,
    _ports,
    _gpus,
)


# --- objects of one set ---------------------------------------------------------------------------------------


def _matches(selector: Mapping[str, str], labels: Mapping[str, str]) -> bool:
    return selector.items() <= labels.items()


def _selectors(manifests: Sequence[Manifest]) -> Iterator[str]:
    every = list(_pods(manifests))
    for own in every:
        if own.manifest["kind"] not in ("DaemonSet", "Deployment", "ReplicaSet", "StatefulSet"):
            continue
        selector = own.manifest["spec"]["selector"].get("matchLabels") or {}
        if not selector or not _matches(selector, own.labels):
            yield f"{identity(own.manifest)}: selector {selector} does not match its pods' labels {own.labels}"
        for other in every:
            if other is not own and other.namespace == own.namespace and _matches(selector, other.labels):
                yield f"{identity(own.manifest)}: selects the pods of {identity(other.manifest)}"


def _services(manifests: Sequence[Manifest]) -> Iterator[str]:
    for service in manifests:
        selector = service["spec"].get("selector") if _kind(service) == ("v1", "Service") else None
        if not selector:
            continue
        namespace = service["metadata"].get("namespace")
        pods = [p for p in _pods(manifests) if p.namespace == namespace and _matches(selector, p.labels)]
        if len(pods) != 1:
            yield f"{identity(service)}: selects the pods of {len(pods)} workloads"
        for pod in pods:
            served = [port for container in containers(pod.spec) for port in container.get("ports") or ()]
            for port in service["spec"].get("ports") or ():
                target = port.get("targetPort", port["port"])
                if target not in {value for p in served for value in (p.get("name"), p["containerPort"])}:
                    yield f"{identity(service)}: targetPort {target!r} is no port of its pods"


def _checksums(manifests: Sequence[Manifest]) -> Iterator[str]:
    """A ConfigMap of ours restarts the pods that read it: they carry the checksum of what is in it."""
    ours = {
        (m["metadata"].get("namespace"), m["metadata"]["name"]): m
        for m in manifests
        if m["kind"] == "ConfigMap"
        and (m["metadata"].get("labels") or {}).get("app.kubernetes.io/managed-by") == "cdk8s"
    }
    for pods in _pods(manifests):
        if pods.manifest["kind"] not in ("DaemonSet", "Deployment", "StatefulSet"):
            continue
        for kind, name in _references_of(pods.spec):
            config_map = ours.get((pods.namespace, name)) if kind == "ConfigMap" else None
            for key, text in (config_map or {}).get("data", {}).items():
                if sha256(text.encode()).hexdigest() not in pods.annotations.values():
                    yield f"{identity(pods.manifest)}: carries no checksum of {key} in ConfigMap {name!r}"


# --- a whole cluster ------------------------------------------------------------------------------------------

_BORN_WITH_A_CLUSTER = {
    ("Namespace", "default"),
    ("Namespace", "kube-system"),
    ("PriorityClass", "system-cluster-critical"),
    ("PriorityClass", "system-node-critical"),
}

_Names = set[tuple[str, str]]
"""Pairs of kind and name."""


def _no_manifests(files: Mapping[Path, Sequence[Any]]) -> Iterator[str]:
    for path, documents in files.items():
        for document in documents:
            if not isinstance(document, dict) or not {"apiVersion", "kind", "metadata"} <= document.keys():
                yield f"{path}: kubectl would read a document that is no manifest"


def _references_of(spec: Manifest) -> Iterator[tuple[str, str]]:
    """Kind and name of what a pod needs in its own namespace, and of its runtime and priority class."""
    by_field = {
        "configMap": ("ConfigMap", "name"),
        "configMapKeyRef": ("ConfigMap", "name"),
        "configMapRef": ("ConfigMap", "name"),
        "imagePullSecrets": ("Secret", "name"),
        "persistentVolumeClaim": ("PersistentVolumeClaim", "claimName"),
        "secret": ("Secret", "secretName"),
        "secretKeyRef": ("Secret", "name"),
        "secretRef": ("Secret", "name"),
    }
    for field, mapping in _walk(spec):
        if field in by_field and not mapping.get("optional"):
            kind, key = by_field[field]
            yield kind, mapping.get(key) or mapping["name"]
    for field, kind in (
        ("serviceAccountName", "ServiceAccount"),
        ("runtimeClassName", "RuntimeClass"),
        ("priorityClassName", "PriorityClass"),
    ):
        if spec.get(field):
            yield kind, spec[field]


def _references(manifests: Sequence[Manifest], externals: _Names) -> Iterator[str]:
    there = {(m["kind"], m["metadata"].get("namespace"), m["metadata"]["name"]) for m in manifests}
    wanted: list[tuple[Manifest, str, str | None, str]] = []
    for pods in _pods(manifests):
        for kind, name in _references_of(pods.spec):
            namespace = None if kind in ("RuntimeClass", "PriorityClass") else pods.namespace
            wanted.append((pods.manifest, kind, namespace, name))
    for manifest in manifests:
        namespace = manifest["metadata"].get("namespace")
        if namespace:
            wanted.append((manifest, "Namespace", None, namespace))
        if "roleRef" in manifest:
            role = manifest["roleRef"]
            wanted.append((manifest, role["kind"], namespace if role["kind"] == "Role" else None, role["name"]))
            for subject in manifest.get("subjects") or ():
                wanted.append((manifest, subject["kind"], subject.get("namespace"), subject["name"]))
        if manifest["kind"] == "StatefulSet" and manifest["spec"].get("serviceName"):
            wanted.append((manifest, "Service", namespace, manifest["spec"]["serviceName"]))
    for manifest, kind, namespace, name in wanted:
        if (kind, namespace, name) not in there and (kind, name) not in externals | _BORN_WITH_A_CLUSTER:
            where = f" in namespace {namespace!r}" if namespace else ""
            yield f"{identity(manifest)}: needs {kind} {name!r}{where}, which is not there"


def _node_labels(manifests: Sequence[Manifest], externals: _Names) -> Iterator[str]:
    published = {name for kind, name in externals if kind == "node label"} | set(_labels_of_nfd(manifests))
    for pods in _pods(manifests):
        for alternatives in node_labels_required(pods.spec):
            if not alternatives & published:
                yield f"{identity(pods.manifest)}: nothing labels nodes with {' or '.join(sorted(alternatives))}"


def _labels_of_nfd(manifests: Sequence[Manifest]) -> Iterator[str]:
    """What the configured NFD workers publish, read from the files they mount."""
    for pods in _pods(manifests):
        if not any("nfd-worker" in (container.get("command") or ()) for container in containers(pods.spec)):
            continue
        mounted = {name for kind, name in _references_of(pods.spec) if kind == "ConfigMap"}
        for config_map in manifests:
            if config_map["kind"] != "ConfigMap" or config_map["metadata"]["name"] not in mounted:
                continue
            for text in config_map["data"].values():
                (config,) = schemas.load_yaml(text)
                if config["sources"]["pci"]["deviceLabelFields"] == ["vendor"]:
                    yield "feature.node.kubernetes.io/pci-10de.present"
                for rule in config["sources"]["custom"]:
                    yield from rule["labels"]


def _scrape_targets(manifests: Sequence[Manifest]) -> Iterator[str]:
    for monitor in manifests:
        if monitor["kind"] != "ServiceMonitor":
            continue
        namespaces = monitor["spec"].get("namespaceSelector", {}).get("matchNames") or [
            monitor["metadata"]["namespace"]
        ]
        services = [
            service
            for service in manifests
            if _kind(service) == ("v1", "Service")
            and service["metadata"]["namespace"] in namespaces
            and _matches(monitor["spec"]["selector"]["matchLabels"], service["metadata"].get("labels") or {})
        ]
        ports = {port["name"] for service in services for port in service["spec"]["ports"]}
        for endpoint in monitor["spec"]["endpoints"]:
            if endpoint["port"] not in ports:
                yield f"{identity(monitor)}: no Service that it selects has a port {endpoint['port']!r}"


def _pod_security(manifests: Sequence[Manifest]) -> Iterator[str]:
    enforced = {
        m["metadata"]["name"]: (m["metadata"].get("labels") or {}).get("pod-security.kubernetes.io/enforce")
        for m in manifests
        if m["kind"] == "Namespace"
    }
    for pods in _pods(manifests):
        level = enforced.get(pods.namespace) or "baseline"  # which Talos enforces where nothing is stated
        for violation in pod_security.violations(pods.spec, level):
            yield f"{identity(pods.manifest)}: namespace {pods.namespace!r} enforces {level}: {violation}"


def _order(manifests: Sequence[Manifest], externals: _Names) -> Iterator[str]:
    """The API server refuses an object before its Namespace, and pods before all that admission asks for.

    Controllers try again, ever more slowly. A ServiceAccount of its own comes right behind its Namespace for them.
    """
    applied = externals | _BORN_WITH_A_CLUSTER
    for manifest in manifests:
        namespace = manifest["metadata"].get("namespace")
        if namespace and ("Namespace", namespace) not in applied:
            yield f"{identity(manifest)}: is applied before Namespace {namespace!r}"
        for spec in pod_specs(manifest):
            needed = {
                (kind, spec[member])
                for kind, member in (("PriorityClass", "priorityClassName"), ("RuntimeClass", "runtimeClassName"))
                if member in spec and not spec[member].startswith("system-")
            }
            if _kind(manifest) == ("v1", "Pod"):
                needed |= {("ServiceAccount", spec.get("serviceAccountName", "default"))}
            for kind, name in sorted(needed - applied):
                yield f"{identity(manifest)}: is applied before {kind} {name!r}"
        applied = applied | {(manifest["kind"], manifest["metadata"]["name"])}


def _files_of_custom_resources(
    first: Mapping[Path, Sequence[Manifest]],
    second: Mapping[Path, Sequence[Manifest]],
    custom: Mapping[tuple[str, str], str],
) -> Iterator[str]:
    """The kubectl run that makes a CRD does not know its kind yet, so custom resources wait for a second one."""
    for path, documents in first.items():
        for manifest in documents:
            if _kind(manifest) in custom:
                yield f"{path}: {identity(manifest)} needs a CRD and belongs in {dist.NEEDS_CRDS}/"
    for path, documents in second.items():
        for manifest in documents:
            if _kind(manifest) not in custom:
                yield f"{path}: {identity(manifest)} needs no CRD and belongs one folder up"
