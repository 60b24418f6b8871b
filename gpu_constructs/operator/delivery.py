"""What a user may say about how the GPU Operator's Helm chart and its values reach the cluster."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any, Literal
from urllib.parse import urlsplit

from gpu_constructs.errors import GpuConstructsError, ShortErrors, short_errors
from gpu_constructs.kube import durations, fields

CHART = "gpu-operator"
NVIDIA_REPOSITORY = "https://helm.ngc.nvidia.com/nvidia"
NVIDIA_OCI = f"oci://nvcr.io/nvidia/cloud-native-charts/{CHART}"

_LONGEST_RELEASE_NAME = 53
_FLUX_DURATION = re.compile(r"([0-9]+(\.[0-9]+)?(ms|s|m|h))+\Z")
_OCI_PATH = re.compile(r"(/[a-z0-9]+([._-]+[a-z0-9]+)*)+\Z")
_HOST = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9.]*[A-Za-z0-9])?(:[0-9]{1,5})?\Z")
_SYNC_OPTION = re.compile(r"([A-Za-z]+)=\S+\Z")
_TAKEN_SYNC_OPTIONS: Mapping[str, str] = {
    "ServerSideApply": (
        "the operator and the API server write to the same objects, and only ServerSideApply=true, which is always "
        "set, leaves them their fields; leave it out"
    ),
    "CreateNamespace": "such a namespace lacks the Pod Security labels; use create_namespace",
}

Kind = Literal["flux", "argo_cd", "helm", "values"]
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
            source: Helm repository (``https://...``, a HelmRepository) or the chart itself in a registry
                (``oci://.../gpu-operator``, an OCIRepository). NVIDIA has its chart in a registry from release
                26.7.0: ``oci://nvcr.io/nvidia/cloud-native-charts/gpu-operator``.
            chart: Name of the chart in a Helm repository; a registry's address names it already.
            version_prefix: Prefix of the release in the source: ``v``, or nothing, as some mirrors do.
            digest: Digest that pins a chart in a registry: ``sha256:...``.
            namespace: Namespace of Flux's own objects, such as ``flux-system``; by default the operator's. Helm keeps
                its record of the release beside the operator either way.
            secret_ref: Name of a Secret there with credentials for the source.
            service_account_name: Name of the ServiceAccount there that Flux installs as; Flux's own by default.
            interval: How often Flux compares the release with this.
            source_interval: How often Flux looks at the source; a release does not change.
            timeout: How long each action of Helm may take. Flux waits until the ClusterPolicy is ready too, so
                until every image is pulled on every GPU node; on its own default of 5 minutes, which None leaves
                it, it would uninstall before. Set more where the operator builds the driver, like ``"30m"``.
            retries: How often a failed install or upgrade is tried again; -1 never stops.
            crds: Handling of the custom resource definitions, at install and at upgrade. Flux's default
                at upgrade is ``Skip``: definitions grow stale, and the API server drops the fields they lack.
            drift_detection: Whether Flux reports (``warn``) or undoes (``enabled``) changes by others. It asks
                the API server, so defaults of the definitions are no change.
            depends_on: HelmReleases to wait for: ``name`` or ``namespace/name``.
            suspend: Whether Flux leaves the release as it is.

        Raises:
            GpuConstructsError: A source that is not an address or holds credentials, a duration Flux does not read,
                a name Kubernetes does not take, a digest for a Helm repository.

        Source:
            fluxcd/helm-controller@v1.6.3:api/v2, fluxcd/source-controller@v1.9.1:api/v1
        """
        options = {
            "source": source,
            "chart": chart,
            "version_prefix": version_prefix,
            "digest": digest,
            "namespace": namespace,
            "secret_ref": secret_ref,
            "service_account_name": service_account_name,
            "interval": interval,
            "source_interval": source_interval,
            "timeout": timeout,
            "retries": retries,
            "crds": crds,
            "drift_detection": drift_detection,
            "depends_on": depends_on,
            "suspend": suspend,
        }
        return _made("flux", options)

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
            source: Source as for ``flux``; a registry's address is written as Argo CD wants it, without ``oci://``.
            chart: Name of the chart in a Helm repository; a registry's address names it already.
            version_prefix: Prefix of the release in the source: ``v``, or nothing, as some mirrors do.
            name: Name of the Application; by default the release's. Several clusters under one Argo CD need several.
            namespace: Namespace in which Argo CD looks for Applications.
            project: AppProject of the Application.
            destination_server: Address of the cluster's API server, as Argo CD knows it; without either, the
                cluster that Argo CD runs in.
            destination_name: Name by which Argo CD knows the cluster, instead of the address.
            automated: Automatic actions of Argo CD beside applying changes: remove what was removed here, undo
                changes by others. None waits for a person.
            retries: How often a failed sync is tried again; -1 never stops.
            sync_options: Further sync options of Argo CD, as ``Name=value``.
            create_namespace: Whether Argo CD makes the operator's namespace, with the Pod Security level
                privileged; for clusters where nothing else makes it.
            deletion: Handling of the operator when the Application is deleted: it stays (``orphan``), or
                goes before it (``foreground``) or after it (``background``).

        Raises:
            GpuConstructsError: A source that is not an address or holds credentials, both destinations, a sync
                option this sets itself, a name Kubernetes does not take.

        Source:
            argoproj/argo-cd@v3.5.1:manifests/crds/application-crd.yaml, docs/user-guide/diff-strategies.md
        """
        options = {
            "source": source,
            "chart": chart,
            "version_prefix": version_prefix,
            "name": name,
            "namespace": namespace,
            "project": project,
            "destination_server": destination_server,
            "destination_name": destination_name,
            "automated": automated,
            "retries": retries,
            "sync_options": sync_options,
            "create_namespace": create_namespace,
            "deletion": deletion,
        }
        return _made("argo_cd", options)

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
        return _made("helm", {"chart": chart, "executable": executable})

    @classmethod
    @short_errors
    def values(cls) -> Delivery:
        """Write the values file and nothing else; install the chart as you like."""
        return _made("values", {})


@dataclass(frozen=True, kw_only=True)
class Made(Delivery):
    """A delivery that was checked.

    Attributes:
        kind: Name of the method that made it.
        options: Keywords of that method.
    """

    kind: Kind
    options: Mapping[str, Any]


def _made(kind: Kind, options: Mapping[str, Any]) -> Delivery:
    where = f"delivery.{kind}"
    try:
        fields.arguments(getattr(Delivery, kind), options)
    except GpuConstructsError as error:
        raise GpuConstructsError(f"{where}.{error.problem}") from None
    if kind == "helm":
        _check_local(where, options)
    else:
        fields.options(options, _CHECKS, f"{where}.")
        _check_together(where, options)
    return Made(kind=kind, options={key: list(v) if isinstance(v, tuple) else v for key, v in options.items()})


def is_oci(source: str) -> bool:
    """Check whether a source is a chart in a registry."""
    return source.startswith("oci://")


def check_release_name(release_name: str) -> None:
    """Raise for a name that Helm does not take.

    Raises:
        GpuConstructsError: The name is not a DNS label, or is longer than 53 characters.
    """
    fields.dns_label("release_name", release_name)
    if len(release_name) > _LONGEST_RELEASE_NAME:
        raise GpuConstructsError(
            f"release_name must have at most {_LONGEST_RELEASE_NAME} characters, as Helm has it; got {release_name!r} "
            f"({len(release_name)})"
        )


def flux_duration(field: str, given: timedelta | str) -> str:
    """Return a span of time as Flux reads it."""
    text = given if isinstance(given, str) else durations.go_duration(given)
    problems = {
        "above zero": durations.from_go_duration(field, text) <= timedelta(0),
        "a duration in h, m, s or ms without a sign": not _FLUX_DURATION.match(text),
    }
    fields.refuse_first((holds, f"{field} must be {what}; got {given!r}") for what, holds in problems.items())
    return text


def _check_address(field: str, got: str, schemes: Sequence[str] = ("https", "http")) -> str:
    """Return the path of a plain address; the error for another does not repeat credentials."""
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
        wanted = " or ".join(f"{scheme}://" for scheme in schemes)
        # What follows a question mark may be a token.
        shown = re.sub(r"\?.*", "?...", got)
        raise GpuConstructsError(f"{field} must be a plain address that opens with {wanted}; got {shown!r}")
    return parts.path


def _check_source(field: str, source: str) -> None:
    path = _check_address(field, source, ("https", "http", "oci"))
    if is_oci(source) and not _OCI_PATH.match(path):
        raise GpuConstructsError(
            f"{field} must name the chart in a registry without a tag, like {NVIDIA_OCI!r}; got {source!r}; the "
            "operator's version gives the tag"
        )


def _check_dependency(field: str, release: str) -> None:
    fields.refuse_first([(release.count("/") > 1, f"{field} must be 'name' or 'namespace/name'; got {release!r}")])
    for part in release.split("/"):
        fields.dns_subdomain(field, part)


def _check_sync_option(field: str, option: str) -> None:
    match, name = _SYNC_OPTION.match(option), option.partition("=")[0]
    fields.refuse_first(
        [
            (not match, f"{field} must be 'Name=value', like 'Validate=false'; got {option!r}"),
            (name in _TAKEN_SYNC_OPTIONS, f"{field} must not be {option!r}: {_TAKEN_SYNC_OPTIONS.get(name)}"),
        ]
    )


_CHECKS: fields.Checks = {
    "source": _check_source,
    "chart": fields.matching(r"[a-z0-9]([-a-z0-9._]*[a-z0-9])?\Z", f"be a chart's name, like {CHART!r}"),
    "digest": fields.matching(r"sha256:[0-9a-f]{64}\Z", "be 'sha256:' and 64 hexadecimal digits"),
    "name": fields.dns_subdomain,
    "namespace": fields.dns_label,
    "secret_ref": fields.dns_subdomain,
    "service_account_name": fields.dns_subdomain,
    "project": fields.dns_subdomain,
    "interval": flux_duration,
    "source_interval": flux_duration,
    "timeout": flux_duration,
    "retries": partial(fields.whole_number, minimum=-1, way_out="-1 never stops, 0 never tries again"),
    "depends_on": partial(fields.each, _check_dependency),
    "destination_server": _check_address,
    "destination_name": fields.matching(r"(?s).*\S", "be a cluster's name as Argo CD knows it"),
    "sync_options": partial(fields.each, _check_sync_option),
}
"""Checks of the options of the controllers, by keyword."""


def _check_together(where: str, options: Mapping[str, Any]) -> None:
    source, digest = options.get("source", ""), options.get("digest")
    server, name = options.get("destination_server"), options.get("destination_name")
    fields.refuse_first(
        [
            (
                digest is not None and not is_oci(source),
                f"{where}.digest must go with a source in a registry ('oci://...'), a Helm repository has none; "
                f"got {digest!r} for {source!r}",
            ),
            (
                is_oci(source) and options.get("chart") != CHART,
                f"{where}.chart must be left out for a source in a registry, whose address names the chart; got "
                f"{options.get('chart')!r}",
            ),
            (
                server is not None and name is not None,
                f"{where} takes either destination_server or destination_name; got both, {server!r} and {name!r}",
            ),
        ]
    )


def _check_local(where: str, options: Mapping[str, Any]) -> None:
    fields.refuse_first(
        [
            (
                "://" in options["chart"],
                f"{where}.chart must be a folder or a .tgz file on this machine, since synth must not need a network; "
                f"got {options['chart']!r}; get it once with 'helm pull' and keep it beside the app",
            ),
            *(
                (
                    not path.strip() or path.startswith("-") or not path.isprintable(),
                    f"{where}.{member} must be a path; got {path!r}",
                )
                for member, path in options.items()
            ),
        ]
    )
