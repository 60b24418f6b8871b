"""`NodeFeatureDiscoveryChart`: a cdk8s chart that installs Node Feature Discovery without the device plugin."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import cdk8s
from constructs import Construct

from gpu_constructs.catalog import versions
from gpu_constructs.cluster.namespace import DEFAULT_NAMESPACE, GpuNamespace, component_namespace
from gpu_constructs.errors import short_errors
from gpu_constructs.facts.provided import Provided
from gpu_constructs.feature_discovery import manifests as nfd
from gpu_constructs.feature_discovery.chart_values import own_chart_options
from gpu_constructs.feature_discovery.node_feature_discovery import NodeFeatureDiscovery
from gpu_constructs.kube import fields, kinds
from gpu_constructs.kube.references import NamedObject
from gpu_constructs.tree.construct import GpuChart, ReadsHelmValues, checked, from_values
from gpu_constructs.tree.manifest import Manifest

_NAME = "node-feature-discovery"


class NodeFeatureDiscoveryChart(ReadsHelmValues, GpuChart):
    """A cdk8s chart that installs Node Feature Discovery, which labels nodes with their hardware.

    Use this chart if several instances of ``DevicePluginChart`` share one Node Feature Discovery. Pass
    ``node_feature_discovery="external"`` to each of them, because they install Node Feature Discovery by default.

    Emits the CRDs and the objects of the components, such as the DaemonSet of the worker. If you pass the name of a
    namespace, also emits the Namespace.

    Attributes:
        provides: Node labels that Node Feature Discovery publishes. ``synth`` uses them to check workloads.
        api_object: First object of the chart, for ``add_json_patch``.

    Source:
        kubernetes-sigs/node-feature-discovery@v0.17.0 to @v0.19.0:deployment/helm/node-feature-discovery
    """

    @checked
    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        namespace: str | NamedObject = DEFAULT_NAMESPACE,
        version: str | versions.Unverified = versions.DEFAULT_NODE_FEATURE_DISCOVERY,
        instance: str | None = None,
        node_feature_discovery: NodeFeatureDiscovery | None = None,
    ) -> None:
        """Create the objects of the chart.

        Args:
            scope: The cdk8s App.
            id: ID of the chart, and name of its manifest file in ``dist/``.
            namespace: Name of a namespace that the chart creates with the Pod Security level ``privileged``, or an
                existing ``GpuNamespace`` or cdk8s-plus Namespace. The worker mounts host paths, which need this level.
            version: Release of Node Feature Discovery. The default is the newest release that the library supports.
            instance: Value of the label ``app.kubernetes.io/instance``. None: the ID of the chart.
            node_feature_discovery: Options of the components. None: the same defaults as in ``DevicePluginChart``. With
                them, the worker also sets the label ``nvidia.com/gpu.present`` on GPU nodes.

        Raises:
            GpuConstructsError: If a value is not allowed, or two values contradict each other.
        """
        fields.label_value("id" if instance is None else "instance", id if instance is None else instance)
        lives_in = component_namespace(namespace)
        release = versions.release_of(versions.NODE_FEATURE_DISCOVERY, version, "Node Feature Discovery")
        given = node_feature_discovery or NodeFeatureDiscovery()
        made = nfd.node_feature_discovery(
            given,
            release=release,
            namespace=lives_in,
            default_prefix=_NAME,
            instance=id if instance is None else instance,
            tolerations=(),
        )
        super().__init__(scope, id, namespace=given.namespace or lives_in)
        self.provides = Provided(
            nfd_labels=nfd.published_labels(given),
            components=("node-feature-discovery",),
            makes=frozenset(map(kinds.identity_of, made.values())),
        )
        if isinstance(namespace, str) and not given.namespace and namespace not in kinds.NAMESPACES_OF_EVERY_CLUSTER:
            GpuNamespace(self, "namespace", name=namespace)
        for child, manifest in made.items():
            Manifest(self, child, manifest)

    @classmethod
    @short_errors
    def from_helm_values(
        cls,
        scope: Construct,
        id: str,
        values: Mapping[str, Any],
        *,
        release_name: str,
        namespace: str,
        version: str | versions.Unverified = versions.DEFAULT_NODE_FEATURE_DISCOVERY,
        strict: bool = True,
    ) -> NodeFeatureDiscoveryChart:
        """Create the cdk8s chart from the values of the Helm chart of Node Feature Discovery.

        Emits the objects of the Helm chart with the same names. The page "Coming from the Helm chart" of the
        documentation lists the exceptions. The worker does not set the label ``nvidia.com/gpu.present``,
        unless a rule in the Helm values sets it.

        Args:
            scope: The cdk8s App.
            id: ID of the chart, and name of its manifest file in ``dist/``.
            values: Content of the Helm values file, as a dict. It can omit the defaults of the Helm chart.
            release_name: Name of the Helm release, from which Helm derives names and labels.
            namespace: Namespace of the Helm release.
            version: Version of the Helm chart, which is the release of Node Feature Discovery.
            strict: Whether to reject misspelled keys, and values that the Helm chart or its components would reject. If
                False, the library ignores a key with such a problem, and warns. An unknown key that resembles no key of
                the Helm chart only causes a warning, even if ``strict`` is True.

        Raises:
            GpuConstructsError: If the values have problems, which the message lists together, or if a keyword of
                ``NodeFeatureDiscoveryChart`` rejects a value.
        """
        release = {"release_name": release_name, "namespace": namespace, "strict": strict}
        return from_values(cls, own_chart_options, scope, id, values, version=version, **release)

    @property
    def api_object(self) -> cdk8s.ApiObject:
        """First object of the chart, for ``add_json_patch``."""
        return next(one for one in self.node.find_all() if isinstance(one, cdk8s.ApiObject))
