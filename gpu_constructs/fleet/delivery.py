"""``FleetDelivery``, the objects with which Argo CD or Flux deploys the manifest files of a fleet to its clusters."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any, ClassVar, Literal

from gpu_constructs.errors import GpuConstructsError, ShortErrors, short_errors
from gpu_constructs.kube import fields
from gpu_constructs.operator.delivery import Automated, check_address, flux_duration
from gpu_constructs.records import dataclass

_CLUSTER = "{cluster}"
_LONGEST_NAME = 63


@dataclass(frozen=True, kw_only=True)
class FleetDelivery(metaclass=ShortErrors):
    """The settings with which Argo CD or Flux deploys the manifest files of a fleet to its clusters.

    ``FleetDelivery.argo_cd(...)`` emits one ApplicationSet, and ``FleetDelivery.flux(...)`` emits one Kustomization for
    each cluster. Argo CD or Flux then reads ``dist/<cluster>/``, for example from a Git repository. Apply
    ``dist/fleet.k8s.yaml`` to the cluster in which Argo CD or Flux runs.
    """

    @classmethod
    @short_errors
    def argo_cd(
        cls,
        *,
        repository: str,
        path: str = "dist",
        revision: str = "HEAD",
        name: str = "gpu",
        namespace: str = "argocd",
        project: str = "default",
        automated: Sequence[Automated] | None = ("prune", "self-heal"),
        deletion: Literal["orphan", "delete"] = "orphan",
    ) -> FleetDelivery:
        """Return the settings for Argo CD: an ApplicationSet that creates one Application for each cluster.

        The destination of each Application is the cluster that has the same name in Argo CD.

        Args:
            repository: Address of the Git repository with the output folder, such as ``https://git.example/gpu.git``.
            path: Path of the output folder in the repository; ``dist`` by default.
            revision: Branch, tag or commit; ``HEAD`` (the default) is the default branch.
            name: Name of the ApplicationSet, and the first part of the names of the Applications; ``gpu`` by default.
            namespace: Namespace in which Argo CD reads ApplicationSets; ``argocd`` by default.
            project: Name of the AppProject; ``default`` by default.
            automated: Actions of the automatic sync: ``prune`` deletes objects that are no longer in the folder of the
                cluster, and ``self-heal`` reverts direct changes in the cluster. With None, you start each sync
                yourself.
            deletion: Whether Argo CD deletes the objects in a cluster if you remove the cluster from the fleet, or if
                you delete the ApplicationSet: ``orphan`` (the default) keeps the objects, ``delete`` deletes them.

        Raises:
            GpuConstructsError: The repository is not an address or contains credentials, or Kubernetes would reject a
                name.

        Source:
            argoproj/argo-cd@v3.5.1:pkg/apis/application/v1alpha1/applicationset_types.go
        """
        return _ArgoCd(
            repository=repository,
            path=path,
            revision=revision,
            name=name,
            namespace=namespace,
            project=project,
            automated=automated,
            deletion=deletion,
        )

    @classmethod
    @short_errors
    def flux(
        cls,
        *,
        path: str = "dist",
        source: str = "flux-system",
        source_kind: Literal["GitRepository", "OCIRepository", "Bucket"] = "GitRepository",
        name: str = "gpu",
        namespace: str = "flux-system",
        kubeconfig_secret: str | None = f"{_CLUSTER}-kubeconfig",
        interval: timedelta | str = "10m",
        prune: bool = True,
    ) -> FleetDelivery:
        """Return the settings for Flux: one Kustomization for each cluster.

        Args:
            path: Path of the output folder in the Flux source; ``dist`` by default.
            source: Name of the Flux source with the output folder; ``flux-system`` by default.
            source_kind: Kind of the Flux source; ``GitRepository`` by default.
            name: First part of the names of the Kustomizations; ``gpu`` by default.
            namespace: Namespace of the Kustomizations and of the Flux source; ``flux-system`` by default.
            kubeconfig_secret: Name of the Secret with the kubeconfig of a cluster; ``{cluster}-kubeconfig`` by default.
                ``{cluster}`` stands for the name of the cluster. With None, Flux deploys to the cluster in which it
                runs.
            interval: Time between two comparisons of a cluster with its folder; 10 minutes by default.
            prune: Whether Flux deletes objects that are no longer in the folder; True by default.

        Raises:
            GpuConstructsError: Flux would reject the interval, or Kubernetes would reject a name.

        Source:
            fluxcd/kustomize-controller@v1.9.4:api/v1/kustomization_types.go
        """
        return _Flux(
            path=path,
            source=source,
            source_kind=source_kind,
            name=name,
            namespace=namespace,
            kubeconfig_secret=kubeconfig_secret,
            interval=interval,
            prune=prune,
        )

    def manifests(self, clusters: Sequence[str]) -> list[dict[str, Any]]:
        """Return the ApplicationSet or Kustomizations that deploy the manifest files of the named clusters.

        Raises:
            GpuConstructsError: The name of an object is too long for a label.
        """
        raise GpuConstructsError("delivery must come from FleetDelivery.argo_cd(...) or FleetDelivery.flux(...)")


def _check_path(field: str, got: str) -> None:
    parts = got.split("/")
    fields.refuse_first(
        [
            (
                not got.isprintable() or got.startswith("/") or any(part in ("", "..") for part in parts),
                f"{field} must be a path in the repository without '..', such as 'dist', got {got!r}",
            )
        ]
    )


def _check_secret(field: str, got: str) -> None:
    fields.dns_subdomain(field, got.replace(_CLUSTER, "cluster"))


def _check_names(name: str, clusters: Iterable[str]) -> None:
    for cluster in clusters:
        if len(f"{name}-{cluster}") > _LONGEST_NAME:
            raise GpuConstructsError(
                f"delivery.name and the name of a cluster must have at most {_LONGEST_NAME} characters together, got "
                f"'{name}-{cluster}'. Shorten one of the two names"
            )


_CHECKS: fields.Checks = {
    "repository": lambda field, got: check_address(field, got, ("https", "http", "ssh")),
    "path": _check_path,
    "revision": fields.matching(r"[^\s~^:?*\[\\]+\Z", "be a branch, a tag or a commit"),
    "source": fields.dns_subdomain,
    "name": fields.dns_label,
    "namespace": fields.dns_label,
    "project": fields.dns_subdomain,
    "interval": flux_duration,
    "kubeconfig_secret": _check_secret,
}


@dataclass(frozen=True, kw_only=True)
class _ArgoCd(FleetDelivery, fields.Options):
    repository: str
    path: str
    revision: str
    name: str
    namespace: str
    project: str
    automated: Sequence[Automated] | None
    deletion: Literal["orphan", "delete"]

    _NAME: ClassVar[str] = "delivery"
    _CHECKS: ClassVar[fields.Checks] = _CHECKS

    def manifests(self, clusters: Sequence[str]) -> list[dict[str, Any]]:
        _check_names(self.name, clusters)
        policy: dict[str, Any] = {
            # Custom resources can be in the folder before the cluster has their definitions.
            "syncOptions": ["ServerSideApply=true", "SkipDryRunOnMissingResource=true"],
        }
        if self.automated is not None:
            actions = {"prune": "prune" in self.automated, "selfHeal": "self-heal" in self.automated}
            policy["automated"] = actions
        spec = {
            "goTemplate": True,
            "goTemplateOptions": ["missingkey=error"],
            "generators": [{"list": {"elements": [{"cluster": cluster} for cluster in clusters]}}],
            "template": {
                "metadata": {"name": f"{self.name}-{{{{.cluster}}}}"},
                "spec": {
                    "project": self.project,
                    "source": {
                        "repoURL": self.repository,
                        "targetRevision": self.revision,
                        "path": f"{self.path}/{{{{.cluster}}}}",
                        "directory": {"recurse": True, "include": "*.k8s.yaml"},
                    },
                    "destination": {"name": "{{.cluster}}"},
                    "syncPolicy": policy,
                },
            },
            "syncPolicy": {"preserveResourcesOnDeletion": self.deletion == "orphan"},
        }
        return [_object("argoproj.io/v1alpha1", "ApplicationSet", self.name, self.namespace, spec)]


@dataclass(frozen=True, kw_only=True)
class _Flux(FleetDelivery, fields.Options):
    path: str
    source: str
    source_kind: Literal["GitRepository", "OCIRepository", "Bucket"]
    name: str
    namespace: str
    kubeconfig_secret: str | None
    interval: timedelta | str
    prune: bool

    _NAME: ClassVar[str] = "delivery"
    _CHECKS: ClassVar[fields.Checks] = _CHECKS

    def manifests(self, clusters: Sequence[str]) -> list[dict[str, Any]]:
        _check_names(self.name, clusters)
        return [self._kustomization(cluster) for cluster in clusters]

    def _kustomization(self, cluster: str) -> dict[str, Any]:
        spec: dict[str, Any] = {
            "interval": flux_duration("delivery.interval", self.interval),
            "path": f"./{self.path}/{cluster}",
            "prune": self.prune,
            "sourceRef": {"kind": self.source_kind, "name": self.source},
        }
        if self.kubeconfig_secret is not None:
            secret = self.kubeconfig_secret.replace(_CLUSTER, cluster)
            spec["kubeConfig"] = {"secretRef": {"name": secret}}
        name = f"{self.name}-{cluster}"
        return _object("kustomize.toolkit.fluxcd.io/v1", "Kustomization", name, self.namespace, spec)


def _object(api_version: str, kind: str, name: str, namespace: str, spec: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {"name": name, "namespace": namespace},
        "spec": dict(spec),
    }
