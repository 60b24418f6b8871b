"""How the GPU Operator's Helm chart and its values reach the cluster."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal
from urllib.parse import urlsplit

from gpu_constructs import _fields
from gpu_constructs._durations import from_go_duration, go_duration
from gpu_constructs.errors import GpuConstructsError, ShortErrors, short_errors

CHART = "gpu-operator"
NVIDIA_REPOSITORY = "https://helm.ngc.nvidia.com/nvidia"
NVIDIA_OCI = f"oci://nvcr.io/nvidia/cloud-native-charts/{CHART}"
FIRST_IN_NVIDIA_OCI = "26.7.0"
"""NVIDIA/gpu-operator#2520."""

LONGEST_RELEASE_NAME = 53
IN_CLUSTER = "https://kubernetes.default.svc"
SERVER_SIDE_DIFF = {"argocd.argoproj.io/compare-options": "ServerSideDiff=true"}
DRIFTS: Mapping[str, tuple[str, str]] = {
    "/spec/cdi/default": ("25.10", ""),
    "/spec/cdi/nriPluginEnabled": ("26.3", ""),
    "/spec/hostPaths/kubeletRootDir": ("26.7", ""),
    "/spec/operator/defaultRuntime": ("", "26.3"),
}
"""What the API server adds to the ClusterPolicy because the chart leaves it out: from which release, before which.

Read off the chart's own definition and what it renders with its defaults; the first and the last are
NVIDIA/gpu-operator#2795 and #1986.
"""

_HELM_LAYER = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
_FINALIZER = "resources-finalizer.argocd.argoproj.io"
_PRIVILEGED = {f"pod-security.kubernetes.io/{mode}": "privileged" for mode in ("enforce", "audit", "warn")}
_FLUX_DURATION = re.compile(r"([0-9]+(\.[0-9]+)?(ms|s|m|h))+\Z")
_OCI_PATH = re.compile(r"(/[a-z0-9]+([._-]+[a-z0-9]+)*)+\Z")
_HOST = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9.]*[A-Za-z0-9])?(:[0-9]{1,5})?\Z")
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}\Z")
_CHART_NAME = re.compile(r"[a-z0-9]([-a-z0-9._]*[a-z0-9])?\Z")
_SYNC_OPTION = re.compile(r"([A-Za-z]+)=\S+\Z")

Crds = Literal["Skip", "Create", "CreateReplace"]
DriftDetection = Literal["warn", "enabled", "disabled"]
Automated = Literal["prune", "self-heal"]
Deletion = Literal["orphan", "foreground", "background"]


@dataclass(frozen=True, kw_only=True)
class Delivery(metaclass=ShortErrors):
    """How the chart reaches the cluster.

    ``Delivery.flux()`` and ``Delivery.argo_cd()`` hand it to a controller, ``Delivery.helm(chart=...)`` renders
    a local copy at synth, ``Delivery.values()`` leaves it to you and ``helm install -f``. None of them needs a
    network at synth.
    """

    def __post_init__(self) -> None:
        if type(self) is Delivery:
            raise GpuConstructsError(
                "Delivery must be made by one of Delivery.flux(), Delivery.argo_cd(), Delivery.helm(chart=...), "
                "Delivery.values()"
            )

    @classmethod
    @short_errors
    def flux(
        cls,
        *,
        source: str = NVIDIA_REPOSITORY,
        chart: str = CHART,
        version_prefix: Literal["v", ""] = "v",
        digest: str | None = None,
        namespace: str | None = None,
        secret_ref: str | None = None,
        service_account_name: str | None = None,
        interval: timedelta | str = "1h",
        source_interval: timedelta | str = "24h",
        timeout: timedelta | str | None = "15m",
        retries: int = 3,
        crds: Crds = "CreateReplace",
        drift_detection: DriftDetection = "warn",
        depends_on: Sequence[str] = (),
        suspend: bool = False,
    ) -> Delivery:
        """Let Flux install it: a HelmRelease and its source.

        Hooks of the chart run, as with ``helm install``. Flux makes no namespace: it would lack the Pod
        Security labels.

        Args:
            source: A Helm repository (``https://...``, a HelmRepository) or the chart itself in a registry
                (``oci://.../gpu-operator``, an OCIRepository). NVIDIA has its chart in a registry from release
                26.7.0: ``oci://nvcr.io/nvidia/cloud-native-charts/gpu-operator``.
            chart: The chart's name in a Helm repository; a registry's address names it already.
            version_prefix: What the source writes before the release: ``v``, or nothing, as some mirrors do.
            digest: Pins a chart in a registry: ``sha256:...``.
            namespace: Where Flux's own objects go, such as ``flux-system``; without one, where the operator
                goes. Helm keeps its record of the release beside the operator either way.
            secret_ref: A Secret there with credentials for the source.
            service_account_name: The ServiceAccount there in whose name Flux installs; Flux's own without.
            interval: How often Flux compares the release with this.
            source_interval: How often Flux looks at the source; a release does not change.
            timeout: How long each action of Helm may take. Flux waits until the ClusterPolicy is ready too, so
                until every image is pulled on every GPU node; on its own default of 5 minutes, which None leaves
                it, it would uninstall before. Give more where the operator builds the driver, like ``"30m"``.
            retries: How often a failed install or upgrade is tried again; -1 never stops.
            crds: What becomes of the custom resource definitions, at install and at upgrade. Flux's default
                at upgrade is ``Skip``: definitions grow stale, and the API server drops the fields they lack.
            drift_detection: Whether Flux reports (``warn``) or undoes (``enabled``) changes by others. It asks
                the API server, so defaults of the definitions are no change.
            depends_on: HelmReleases to wait for: ``name`` or ``namespace/name``.
            suspend: Whether Flux lets the release be.

        Raises:
            GpuConstructsError: A source that is no address or holds credentials, a duration Flux does not read,
                a name Kubernetes does not take, a digest for a Helm repository.

        Source:
            fluxcd/helm-controller@v1.6.3:api/v2, fluxcd/source-controller@v1.9.1:api/v1
        """
        return Flux(
            source=source,
            chart=chart,
            version_prefix=version_prefix,
            digest=digest,
            namespace=namespace,
            secret_ref=secret_ref,
            service_account_name=service_account_name,
            interval=interval,
            source_interval=source_interval,
            timeout=timeout,
            retries=retries,
            crds=crds,
            drift_detection=drift_detection,
            depends_on=depends_on,
            suspend=suspend,
        )

    @classmethod
    @short_errors
    def argo_cd(
        cls,
        *,
        source: str = NVIDIA_REPOSITORY,
        chart: str = CHART,
        version_prefix: Literal["v", ""] = "v",
        name: str | None = None,
        namespace: str = "argocd",
        project: str = "default",
        destination_server: str | None = None,
        destination_name: str | None = None,
        automated: Sequence[Automated] | None = ("prune", "self-heal"),
        retries: int = 5,
        sync_options: Sequence[str] = (),
        create_namespace: bool = False,
        deletion: Deletion = "orphan",
    ) -> Delivery:
        """Let Argo CD install it: an Application.

        It always applies on the server's side, which keeps apart whose field is whose: the operator writes to
        the same objects. It compares there too, so what the API server fills in is no difference. For an Argo CD
        told to compare otherwise, those fields are ignored by name.

        Args:
            source: As for ``flux``; a registry's address is written as Argo CD wants it, without ``oci://``.
            chart: The chart's name in a Helm repository; a registry's address names it already.
            version_prefix: What the source writes before the release: ``v``, or nothing, as some mirrors do.
            name: Of the Application; without one, the release's. Several clusters under one Argo CD need several.
            namespace: Where Argo CD looks for Applications.
            project: The AppProject it belongs to.
            destination_server: Address of the cluster's API server, as Argo CD knows it; without either, the
                cluster that Argo CD runs in.
            destination_name: The name by which Argo CD knows the cluster, instead of the address.
            automated: What Argo CD does of itself beside applying changes: remove what is no longer there,
                undo changes by others. None waits for a person.
            retries: How often a failed sync is tried again; -1 never stops.
            sync_options: More of Argo CD's, as ``Name=value``.
            create_namespace: Whether Argo CD makes the operator's namespace, with the Pod Security level
                privileged; for clusters where nothing else makes it.
            deletion: What becomes of the operator when the Application is deleted: it stays (``orphan``), or
                goes before it (``foreground``) or after it (``background``).

        Raises:
            GpuConstructsError: A source that is no address or holds credentials, both destinations, a sync
                option this sets itself, a name Kubernetes does not take.

        Source:
            argoproj/argo-cd@v3.5.1:manifests/crds/application-crd.yaml, docs/user-guide/diff-strategies.md
        """
        return ArgoCd(
            source=source,
            chart=chart,
            version_prefix=version_prefix,
            name=name,
            namespace=namespace,
            project=project,
            destination_server=destination_server,
            destination_name=destination_name,
            automated=automated,
            retries=retries,
            sync_options=sync_options,
            create_namespace=create_namespace,
            deletion=deletion,
        )

    @classmethod
    @short_errors
    def helm(cls, *, chart: str, executable: str = "helm") -> Delivery:
        """Render a local copy of the chart at synth, with the ``helm`` program.

        Its objects become manifests like all others. Nothing runs the chart's hooks, so they are left out; the
        definitions are updated with the rest.

        Args:
            chart: Folder or ``.tgz`` of the release asked for, such as ``./charts/gpu-operator-v26.7.0.tgz``.
            executable: The program: a name on the PATH, or a path.

        Raises:
            GpuConstructsError: A chart that is not on this machine: synth must not need a network.
        """
        return LocalChart(chart=chart, executable=executable)

    @classmethod
    @short_errors
    def values(cls) -> Delivery:
        """Write the values file and nothing else; install the chart as you like."""
        return ValuesFile()

    def manifests(
        self,
        *,
        release_name: str,
        namespace: str,
        chart_version: str,
        values: Mapping[str, Any],
        labels: Mapping[str, str],
    ) -> list[dict[str, Any]]:
        """Give the objects that stand for the release, the main one last.

        Args:
            release_name: Of the Helm release.
            namespace: Where the operator goes.
            chart_version: The chart's release, with or without a leading v.
            values: What the chart is rendered with.
            labels: Of the objects.

        Raises:
            GpuConstructsError: A release name Helm does not take, a release the source does not have, a value
                of None.
        """
        raise NotImplementedError

    def namespaces_of_others(self, namespace: str) -> tuple[str, ...]:
        """Give the namespaces that are there without the app: the controller's, and those it makes.

        Args:
            namespace: Where the operator goes.
        """
        return ()


@dataclass(frozen=True, kw_only=True)
class Flux(Delivery):
    """What ``Delivery.flux`` was given; see there."""

    source: str
    chart: str
    version_prefix: Literal["v", ""]
    digest: str | None
    namespace: str | None
    secret_ref: str | None
    service_account_name: str | None
    interval: timedelta | str
    source_interval: timedelta | str
    timeout: timedelta | str | None
    retries: int
    crds: Crds
    drift_detection: DriftDetection
    depends_on: Sequence[str]
    suspend: bool

    def __post_init__(self) -> None:
        where = "delivery.flux"
        _fields.members(self, where)
        _check_source(where, self.source, self.chart)
        if self.digest is not None:
            if not _is_oci(self.source):
                raise GpuConstructsError(
                    f"{where}.digest must go with a source in a registry ('oci://...'), a Helm repository has none; "
                    f"got {self.digest!r} for {self.source!r}"
                )
            if not _DIGEST.match(self.digest):
                raise GpuConstructsError(
                    f"{where}.digest must be 'sha256:' and 64 hexadecimal digits; got {self.digest!r}"
                )
        if self.namespace is not None:
            _fields.dns_label(f"{where}.namespace", self.namespace)
        for member in ("secret_ref", "service_account_name"):
            if getattr(self, member) is not None:
                _fields.dns_subdomain(f"{where}.{member}", getattr(self, member))
        for member in ("interval", "source_interval", "timeout"):
            if getattr(self, member) is not None:
                _flux_duration(f"{where}.{member}", getattr(self, member))
        _retries(f"{where}.retries", self.retries)
        object.__setattr__(self, "depends_on", tuple(self.depends_on))
        for index, release in enumerate(self.depends_on):
            if release.count("/") > 1:
                raise GpuConstructsError(
                    f"{where}.depends_on[{index}] must be 'name' or 'namespace/name'; got {release!r}"
                )
            for part in release.split("/"):
                _fields.dns_subdomain(f"{where}.depends_on[{index}]", part)

    def manifests(
        self,
        *,
        release_name: str,
        namespace: str,
        chart_version: str,
        values: Mapping[str, Any],
        labels: Mapping[str, str],
    ) -> list[dict[str, Any]]:
        """Give the source and the HelmRelease."""
        version = _published("delivery.flux", self.source, self.version_prefix, chart_version)
        check_release_name(release_name)
        _refuse_none("delivery.flux", values)
        own = self.namespace or namespace
        kind = "OCIRepository" if _is_oci(self.source) else "HelmRepository"
        metadata = {"name": release_name, "namespace": own, "labels": dict(labels)}
        secret = {"secretRef": {"name": self.secret_ref}} if self.secret_ref else {}
        source: dict[str, Any] = {
            "apiVersion": "source.toolkit.fluxcd.io/v1",
            "kind": kind,
            "metadata": deepcopy(metadata),
            "spec": {
                "interval": _flux_duration("delivery.flux.source_interval", self.source_interval),
                "url": self.source,
                **secret,
            },
        }
        if kind == "OCIRepository":
            digest = {"digest": self.digest} if self.digest else {}
            source["spec"] |= {
                "ref": {"tag": version, **digest},
                "layerSelector": {"mediaType": _HELM_LAYER, "operation": "copy"},
            }
            chart: dict[str, Any] = {"chartRef": {"kind": kind, "name": release_name}}
        else:
            reference = {"kind": kind, "name": release_name}
            chart = {"chart": {"spec": {"chart": self.chart, "version": version, "sourceRef": reference}}}
        spec: dict[str, Any] = {
            "interval": _flux_duration("delivery.flux.interval", self.interval),
            **chart,
            "releaseName": release_name,
            "install": {"crds": self.crds, "remediation": {"retries": self.retries}},
            "upgrade": {"crds": self.crds, "remediation": {"retries": self.retries}},
            "driftDetection": {"mode": self.drift_detection},
            "values": deepcopy(dict(values)),
        }
        if own != namespace:
            spec |= {"targetNamespace": namespace, "storageNamespace": namespace}
        if self.timeout is not None:
            spec["timeout"] = _flux_duration("delivery.flux.timeout", self.timeout)
        if self.service_account_name is not None:
            spec["serviceAccountName"] = self.service_account_name
        if self.depends_on:
            spec["dependsOn"] = [_dependency(release) for release in self.depends_on]
        if self.suspend:
            spec["suspend"] = True
        release = {
            "apiVersion": "helm.toolkit.fluxcd.io/v2",
            "kind": "HelmRelease",
            "metadata": metadata,
            "spec": spec,
        }
        return [source, release]

    def namespaces_of_others(self, namespace: str) -> tuple[str, ...]:
        """Give the namespace of Flux's own objects, where it is another."""
        return () if self.namespace is None or self.namespace == namespace else (self.namespace,)


@dataclass(frozen=True, kw_only=True)
class ArgoCd(Delivery):
    """What ``Delivery.argo_cd`` was given; see there."""

    source: str
    chart: str
    version_prefix: Literal["v", ""]
    name: str | None
    namespace: str
    project: str
    destination_server: str | None
    destination_name: str | None
    automated: Sequence[Automated] | None
    retries: int
    sync_options: Sequence[str]
    create_namespace: bool
    deletion: Deletion

    def __post_init__(self) -> None:
        where = "delivery.argo_cd"
        _fields.members(self, where)
        _check_source(where, self.source, self.chart)
        if self.name is not None:
            _fields.dns_subdomain(f"{where}.name", self.name)
        _fields.dns_label(f"{where}.namespace", self.namespace)
        _fields.dns_subdomain(f"{where}.project", self.project)
        if self.destination_server is not None and self.destination_name is not None:
            raise GpuConstructsError(
                f"{where} takes either destination_server or destination_name; got both, {self.destination_server!r} "
                f"and {self.destination_name!r}"
            )
        if self.destination_server is not None:
            _address(f"{where}.destination_server", self.destination_server, ("https", "http"))
        if self.destination_name is not None and not self.destination_name.strip():
            raise GpuConstructsError(
                f"{where}.destination_name must be a cluster's name as Argo CD knows it; got {self.destination_name!r}"
            )
        if self.automated is not None:
            object.__setattr__(self, "automated", tuple(self.automated))
        object.__setattr__(self, "sync_options", tuple(self.sync_options))
        _retries(f"{where}.retries", self.retries)
        for index, option in enumerate(self.sync_options):
            _check_sync_option(f"{where}.sync_options[{index}]", option)

    def manifests(
        self,
        *,
        release_name: str,
        namespace: str,
        chart_version: str,
        values: Mapping[str, Any],
        labels: Mapping[str, str],
    ) -> list[dict[str, Any]]:
        """Give the Application."""
        version = _published("delivery.argo_cd", self.source, self.version_prefix, chart_version)
        check_release_name(release_name)
        _refuse_none("delivery.argo_cd", values)
        repository, chart = self.source, self.chart
        if _is_oci(self.source):
            repository, _, chart = self.source.removeprefix("oci://").rpartition("/")
        destination = {"server": self.destination_server or IN_CLUSTER}
        if self.destination_name is not None:
            destination = {"name": self.destination_name}
        sync: dict[str, Any] = {
            "syncOptions": ["ServerSideApply=true", *self.sync_options],
            "retry": {"limit": self.retries},
        }
        if self.automated is not None:
            sync["automated"] = {"prune": "prune" in self.automated, "selfHeal": "self-heal" in self.automated}
        if self.create_namespace:
            sync["syncOptions"].insert(0, "CreateNamespace=true")
            sync["managedNamespaceMetadata"] = {"labels": dict(_PRIVILEGED)}
        metadata: dict[str, Any] = {
            "name": self.name or release_name,
            "namespace": self.namespace,
            "labels": dict(labels),
            "annotations": dict(SERVER_SIDE_DIFF),
        }
        if self.deletion != "orphan":
            metadata["finalizers"] = [f"{_FINALIZER}/{self.deletion}"]
        application = {
            "apiVersion": "argoproj.io/v1alpha1",
            "kind": "Application",
            "metadata": metadata,
            "spec": {
                "project": self.project,
                "source": {
                    "repoURL": repository,
                    "chart": chart,
                    "targetRevision": version,
                    "helm": {"releaseName": release_name, "valuesObject": deepcopy(dict(values))},
                },
                "destination": {**destination, "namespace": namespace},
                "syncPolicy": sync,
                "ignoreDifferences": [
                    {"group": "nvidia.com", "kind": "ClusterPolicy", "jsonPointers": drifts_of(chart_version, values)}
                ],
            },
        }
        return [application]

    def namespaces_of_others(self, namespace: str) -> tuple[str, ...]:
        """Give Argo CD's own namespace, and the operator's where Argo CD makes it."""
        return (self.namespace, *([namespace] if self.create_namespace else []))


@dataclass(frozen=True, kw_only=True)
class LocalChart(Delivery):
    """What ``Delivery.helm`` was given; see there. ``local_chart.manifests`` gives its objects."""

    chart: str
    executable: str

    def __post_init__(self) -> None:
        where = "delivery.helm"
        _fields.members(self, where)
        if "://" in self.chart:
            raise GpuConstructsError(
                f"{where}.chart must be a folder or a .tgz file on this machine, since synth must not need a network; "
                f"got {self.chart!r}; get it once with 'helm pull' and keep it beside the app"
            )
        for member in ("chart", "executable"):
            path = getattr(self, member)
            if not path.strip() or path.startswith("-") or not path.isprintable():
                raise GpuConstructsError(f"{where}.{member} must be a path; got {path!r}")

    def manifests(self, **release: Any) -> list[dict[str, Any]]:
        """Refuse: what a program prints is no pure function."""
        raise GpuConstructsError("delivery.helm gives its objects by local_chart.manifests")


@dataclass(frozen=True, kw_only=True)
class ValuesFile(Delivery):
    """What ``Delivery.values`` makes; see there."""

    def manifests(self, **release: Any) -> list[dict[str, Any]]:
        """Give nothing."""
        return []


def drifts_of(chart_version: str, values: Mapping[str, Any]) -> list[str]:
    """Give the fields that the API server fills into a release's ClusterPolicy, as JSON pointers.

    What the values switch on is none of them: Argo CD would never apply a change to a field it ignores.
    """
    release = _numbers(chart_version)
    return sorted(
        pointer
        for pointer, (since, before) in DRIFTS.items()
        if release >= _numbers(since) and (not before or release < _numbers(before)) and not _stated(pointer, values)
    )


def _stated(pointer: str, values: Any) -> bool:
    for key in pointer.removeprefix("/spec/").split("/"):
        values = values.get(key) if isinstance(values, Mapping) else None
    return bool(values)


def check_release_name(release_name: str) -> None:
    """Refuse a name that Helm does not take.

    Raises:
        GpuConstructsError: It is no DNS label, or longer than 53 characters.
    """
    _fields.dns_label("release_name", release_name)
    if len(release_name) > LONGEST_RELEASE_NAME:
        raise GpuConstructsError(
            f"release_name must have at most {LONGEST_RELEASE_NAME} characters, as Helm has it; got {release_name!r} "
            f"({len(release_name)})"
        )


def _numbers(version: str) -> list[int]:
    return [int(part) for part in re.findall(r"[0-9]+", version)[:3]]


def _is_oci(source: str) -> bool:
    return source.startswith("oci://")


def _address(field: str, got: str, schemes: Sequence[str]) -> str:
    """Refuse what is no plain address, without repeating credentials; give its path."""
    wanted = " or ".join(f"{scheme}://" for scheme in schemes)
    if "@" in got:
        shown = re.sub(r"//.*@", "//...@", got)
        raise GpuConstructsError(
            f"{field} must not hold credentials or a digest: manifests are read by many; got {shown!r}; keep "
            "credentials in a Secret of the cluster"
        )
    try:
        parts = urlsplit(got)
    except ValueError:
        parts = urlsplit("")
    is_plain = not re.search(r"[\s?#]", got) and got.isprintable()
    if parts.scheme not in schemes or not _HOST.match(parts.netloc) or not is_plain:
        # What follows a question mark may be a token.
        shown = re.sub(r"\?.*", "?...", got)
        raise GpuConstructsError(f"{field} must be a plain address that opens with {wanted}; got {shown!r}")
    return parts.path


def _check_source(where: str, source: str, chart: str) -> None:
    path = _address(f"{where}.source", source, ("https", "http", "oci"))
    if not _CHART_NAME.match(chart):
        raise GpuConstructsError(f"{where}.chart must be a chart's name, like {CHART!r}; got {chart!r}")
    if not _is_oci(source):
        return
    if not _OCI_PATH.match(path):
        raise GpuConstructsError(
            f"{where}.source must name the chart in a registry without a tag, like {NVIDIA_OCI!r}; got {source!r}; the "
            "operator's version gives the tag"
        )
    if chart != CHART:
        raise GpuConstructsError(
            f"{where}.chart must be left out for a source in a registry, whose address names the chart; got {chart!r}"
        )


def _published(where: str, source: str, prefix: str, chart_version: str) -> str:
    """Give the release as the source writes it."""
    release = chart_version.removeprefix("v")
    if source == NVIDIA_OCI and _numbers(release) < _numbers(FIRST_IN_NVIDIA_OCI):
        raise GpuConstructsError(
            f"{where}.source must be {NVIDIA_REPOSITORY!r} for release {release}: NVIDIA has charts in its registry "
            f"from {FIRST_IN_NVIDIA_OCI} on; got {source!r}"
        )
    return prefix + release


def _flux_duration(field: str, given: timedelta | str) -> str:
    """Give a span of time as Flux reads it."""
    text = given if isinstance(given, str) else go_duration(given)
    if from_go_duration(field, text) <= timedelta(0):
        raise GpuConstructsError(f"{field} must be above zero; got {given!r}")
    if not _FLUX_DURATION.match(text):
        raise GpuConstructsError(f"{field} must be a duration in h, m, s or ms without a sign; got {given!r}")
    return text


def _retries(field: str, got: object) -> None:
    _fields.whole_number(field, got, minimum=-1, way_out="-1 never stops, 0 never tries again")


def _dependency(release: str) -> dict[str, str]:
    namespace, _, name = release.rpartition("/")
    return {"name": name, **({"namespace": namespace} if namespace else {})}


def _check_sync_option(field: str, option: str) -> None:
    match = _SYNC_OPTION.match(option)
    if not match:
        raise GpuConstructsError(f"{field} must be 'Name=value', like 'Validate=false'; got {option!r}")
    if match[1] == "ServerSideApply":
        raise GpuConstructsError(
            f"{field} must not be {option!r}: the operator and the API server write to the same objects, and only "
            "ServerSideApply=true, which is always set, leaves them their fields; leave it out"
        )
    if match[1] == "CreateNamespace":
        raise GpuConstructsError(
            f"{field} must not be {option!r}: such a namespace lacks the Pod Security labels; use create_namespace"
        )


def _refuse_none(where: str, values: Mapping[str, Any]) -> None:
    for path in _nones("values", values):
        raise GpuConstructsError(
            f"{path} must not be None with {where}: a manifest drops it, and the chart's default would stay; state a "
            "value, or use Delivery.helm(...) or Delivery.values()"
        )


def _nones(path: str, value: Any) -> Iterator[str]:
    if value is None:
        yield path
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _nones(f"{path}.{key}", item)
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            yield from _nones(f"{path}[{index}]", item)
