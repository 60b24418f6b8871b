"""``Delivery``, the method by which the Helm chart of the GPU Operator and its values reach the cluster."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import timedelta
from functools import partial
from typing import Any, Literal
from urllib.parse import urlsplit

from gpu_constructs.errors import GpuConstructsError, ShortErrors, short_errors
from gpu_constructs.kube import durations, fields
from gpu_constructs.records import dataclass, regex

CHART = "gpu-operator"
NVIDIA_REPOSITORY = "https://helm.ngc.nvidia.com/nvidia"
NVIDIA_OCI = f"oci://nvcr.io/nvidia/cloud-native-charts/{CHART}"

_LONGEST_RELEASE_NAME = 53
_FLUX_DURATION = regex(r"([0-9]+(\.[0-9]+)?(ms|s|m|h))+\Z")
_OCI_PATH = regex(r"(/[a-z0-9]+([._-]+[a-z0-9]+)*)+\Z")
_HOST = regex(r"[A-Za-z0-9]([-A-Za-z0-9.]*[A-Za-z0-9])?(:[0-9]{1,5})?\Z")
_SYNC_OPTION = regex(r"([A-Za-z]+)=\S+\Z")
_TAKEN_SYNC_OPTIONS: Mapping[str, str] = {
    "ServerSideApply": (
        "ServerSideApply=true is always on, because the operator and the API server write to the same "
        "objects. Remove it"
    ),
    "CreateNamespace": "such a namespace lacks the Pod Security labels. Use create_namespace",
}

Kind = Literal["flux", "argo_cd", "helm", "values"]
Crds = Literal["Skip", "Create", "CreateReplace"]
DriftDetection = Literal["warn", "enabled", "disabled"]
Automated = Literal["prune", "self-heal"]
Deletion = Literal["orphan", "foreground", "background"]


@dataclass(frozen=True, kw_only=True)
class Delivery(metaclass=ShortErrors):
    """The method by which the Helm chart of the GPU Operator reaches the cluster.

    ``Delivery.flux()`` and ``Delivery.argo_cd()`` emit objects with which Flux or Argo CD installs the chart.
    ``Delivery.helm(chart=...)`` renders a local copy of the chart when you run ``synth``. ``Delivery.values()`` writes
    only the values file for ``helm install -f``. ``synth`` never needs a network.
    """

    def __post_init__(self) -> None:
        if type(self) is Delivery:
            raise GpuConstructsError(
                "Delivery must come from Delivery.flux(), Delivery.argo_cd(), Delivery.helm(chart=...) or "
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
        """Return a delivery with Flux: a HelmRelease, and the HelmRepository or OCIRepository with its chart.

        Flux runs the Helm hooks of the chart, as ``helm install`` does. The HelmRelease does not create the namespace
        of the operator, because a namespace from Flux would not have the Pod Security labels.

        Args:
            source: Address of a Helm repository (``https://...``, a HelmRepository) or of the chart in a registry
                (``oci://.../gpu-operator``, an OCIRepository). From release 26.7.0 on, the registry of NVIDIA contains
                the chart: ``oci://nvcr.io/nvidia/cloud-native-charts/gpu-operator``.
            chart: Name of the chart in a Helm repository. The address of a registry already contains it.
            version_prefix: Text in front of the version in the source: ``v``, or empty text for some mirrors.
            digest: Digest of a chart in a registry, to pin it: ``sha256:...``.
            namespace: Namespace of the Flux objects, such as ``flux-system``. None: the namespace of the operator. Helm
                always stores its release in the namespace of the operator.
            secret_ref: Name of a Secret in the namespace of the Flux objects, with credentials for the source.
            service_account_name: Name of a ServiceAccount in the namespace of the Flux objects, with which Flux
                installs the chart. None: the ServiceAccount of Flux.
            interval: Time between two comparisons of the installed Helm release with the HelmRelease.
            source_interval: Time between two checks of the Helm repository or registry for updates. It can be long,
                because a published version of the chart does not change.
            timeout: Time limit of each action of Helm. Flux also waits until the ClusterPolicy is ready, and so until
                each GPU node has all images. None: 5 minutes, the default of Flux. After this limit, the
                action fails. Before a retry, Flux uninstalls a new Helm release, or rolls an upgrade back. If the
                operator builds the driver, set a longer time, such as ``"30m"``.
            retries: Number of retries after a failed install or upgrade. -1: no limit.
            crds: Policy of Flux for the CRDs at install and upgrade. With ``Skip``, the default of Flux at upgrade,
                CRDs become outdated, and the API server drops new fields.
            drift_detection: Whether Flux reports (``warn``) or reverts (``enabled``) changes of other clients. Flux
                compares by a dry run on the API server, so defaults of the CRDs do not count as changes.
            depends_on: HelmReleases that must be ready first, as ``name`` or ``namespace/name``.
            suspend: Whether Flux leaves the installed Helm release unchanged.

        Raises:
            GpuConstructsError: The source is not an address or contains credentials, Flux would reject a duration,
                Kubernetes would reject a name, or the user sets a digest for a Helm repository.

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
        """Return a delivery with Argo CD: an Application.

        The Application uses server-side apply, because the operator writes to the same objects. It also uses
        server-side diff, so fields that the API server adds are not differences. The Application also lists these
        fields as ignored, for installations of Argo CD that do not use server-side diff.

        Args:
            source: Address of the source, as for ``flux``. For a registry, the Application omits ``oci://``.
            chart: Name of the chart in a Helm repository. The address of a registry already contains it.
            version_prefix: Text in front of the version in the source: ``v``, or empty text for some mirrors.
            name: Name of the Application. None: the name of the Helm release. Several clusters of one Argo CD need
                different names.
            namespace: Namespace in which Argo CD reads Applications.
            project: Name of the AppProject of the Application.
            destination_server: Address of the cluster's API server in Argo CD. If both this option and
                ``destination_name`` are None, the destination is the cluster in which Argo CD runs.
            destination_name: Name of the cluster in Argo CD. Do not set it together with ``destination_server``.
            automated: Automatic actions: ``prune`` deletes objects that the chart no longer has, and ``self-heal``
                reverts changes of other clients. None: you start each sync.
            retries: Number of retries after a failed sync. -1: no limit.
            sync_options: Other sync options of Argo CD, as ``Name=value``.
            create_namespace: Whether Argo CD creates the namespace of the operator, with the Pod Security level
                ``privileged``.
            deletion: What happens to the operator when you delete the Application. With ``orphan``, the operator stays.
                With ``foreground``, Argo CD deletes the operator before the Application, with ``background`` after it.

        Raises:
            GpuConstructsError: The source is not an address or contains credentials, the user sets both destinations or
                a sync option that the library sets, or Kubernetes would reject a name.

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
        """Return a delivery that renders a local copy of the chart with the ``helm`` program, when you run ``synth``.

        The rendered objects become manifests of the app. The output omits the hooks of the chart, because
        ``kubectl apply`` cannot run them. It contains the CRDs.

        Args:
            chart: Path of the folder or ``.tgz`` file of the chart, such as ``./charts/gpu-operator-v26.7.0.tgz``.
            executable: Name on the PATH, or path, of the ``helm`` program.

        Raises:
            GpuConstructsError: The chart is an address and not a path, or one of the paths is not valid.
        """
        return _made("helm", {"chart": chart, "executable": executable})

    @classmethod
    @short_errors
    def values(cls) -> Delivery:
        """Return a delivery that writes the values file only. You install the chart yourself."""
        return _made("values", {})


@dataclass(frozen=True, kw_only=True)
class Made(Delivery):
    """A ``Delivery`` with its options, which the library has checked.

    Attributes:
        kind: Name of the method of ``Delivery`` that the user called, such as ``flux``.
        options: Arguments of that call, by keyword.
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
    """Check whether the address of a chart names an OCI registry (``oci://...``) and not a Helm repository."""
    return source.startswith("oci://")


def check_release_name(release_name: str) -> None:
    """Raise an error if Helm would reject the name of a Helm release.

    Raises:
        GpuConstructsError: The name is not a DNS label, or is longer than 53 characters.
    """
    fields.dns_label("release_name", release_name)
    if len(release_name) > _LONGEST_RELEASE_NAME:
        raise GpuConstructsError(
            f"release_name must have at most {_LONGEST_RELEASE_NAME} characters, the limit of Helm, got "
            f"{release_name!r} ({len(release_name)})"
        )


def flux_duration(field: str, given: timedelta | str) -> str:
    """Return a duration as text in the format of Flux, such as ``10m``. ``field`` is the option name for messages."""
    text = given if isinstance(given, str) else durations.go_duration(given)
    problems = {
        "above zero": durations.from_go_duration(field, text) <= timedelta(0),
        "a duration in h, m, s or ms without a sign": not _FLUX_DURATION.match(text),
    }
    fields.refuse_first((holds, f"{field} must be {what}, got {given!r}") for what, holds in problems.items())
    return text


def check_address(field: str, got: str, schemes: Sequence[str] = ("https", "http")) -> str:
    """Return the path of an address. Raise an error if the address has parts other than a scheme, a host and a path.

    The error message never contains credentials.

    Args:
        field: Name of the option, for messages.
        got: Address that the user passes.
        schemes: Allowed schemes.
    """
    if "@" in got:
        shown = re.sub(r"//.*@", "//...@", got)
        raise GpuConstructsError(
            f"{field} must not contain '@', such as in credentials or a digest, got {shown!r}. Leave a digest out. "
            "Keep credentials in a Secret of the cluster, because many users can read manifests"
        )
    try:
        parts = urlsplit(got)
    except ValueError:
        parts = urlsplit("")
    is_plain = not re.search(r"[\s?#]", got) and got.isprintable()
    if parts.scheme not in schemes or not _HOST.match(parts.netloc) or not is_plain:
        wanted = " or ".join(f"{scheme}://" for scheme in schemes)
        # The text after a question mark can be a token.
        shown = re.sub(r"\?.*", "?...", got)
        raise GpuConstructsError(f"{field} must be a plain address that starts with {wanted}, got {shown!r}")
    return parts.path


def _check_source(field: str, source: str) -> None:
    path = check_address(field, source, ("https", "http", "oci"))
    if is_oci(source) and not _OCI_PATH.match(path):
        raise GpuConstructsError(
            f"{field} must name the chart in a registry without a tag, like {NVIDIA_OCI!r}, got {source!r}. The "
            "version of the operator decides the tag"
        )


def _check_dependency(field: str, release: str) -> None:
    fields.refuse_first([(release.count("/") > 1, f"{field} must be 'name' or 'namespace/name', got {release!r}")])
    for part in release.split("/"):
        fields.dns_subdomain(field, part)


def _check_sync_option(field: str, option: str) -> None:
    match, name = _SYNC_OPTION.match(option), option.partition("=")[0]
    fields.refuse_first(
        [
            (not match, f"{field} must be 'Name=value', such as 'Validate=false', got {option!r}"),
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
    "retries": partial(fields.whole_number, minimum=-1, way_out="-1 has no limit, and 0 disables retries"),
    "depends_on": partial(fields.each, _check_dependency),
    "destination_server": check_address,
    "destination_name": fields.matching(r"(?s).*\S", "be the name of a cluster in Argo CD"),
    "sync_options": partial(fields.each, _check_sync_option),
}
"""Checks of the arguments of ``Delivery.flux`` and ``Delivery.argo_cd``, by keyword."""


def _check_together(where: str, options: Mapping[str, Any]) -> None:
    source, digest = options.get("source", ""), options.get("digest")
    server, name = options.get("destination_server"), options.get("destination_name")
    fields.refuse_first(
        [
            (
                digest is not None and not is_oci(source),
                f"{where}.digest needs a source in a registry ('oci://...'), because a Helm repository has no digests, "
                f"got {digest!r} for {source!r}",
            ),
            (
                is_oci(source) and options.get("chart") != CHART,
                f"{where}.chart must be absent for a source in a registry, whose address names the chart, got "
                f"{options.get('chart')!r}",
            ),
            (
                server is not None and name is not None,
                f"{where} must not have both destination_server and destination_name, got {server!r} and {name!r}. "
                "Remove one",
            ),
        ]
    )


def _check_local(where: str, options: Mapping[str, Any]) -> None:
    fields.refuse_first(
        [
            (
                "://" in options["chart"],
                f"{where}.chart must be a folder or a .tgz file on this machine, because synth must not need a "
                f"network, got {options['chart']!r}. Get it once with 'helm pull', and keep it with the app",
            ),
            *(
                (
                    not path.strip() or path.startswith("-") or not path.isprintable(),
                    f"{where}.{member} must be a path, got {path!r}",
                )
                for member, path in options.items()
            ),
        ]
    )
