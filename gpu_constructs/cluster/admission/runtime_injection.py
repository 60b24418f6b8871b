"""The runtime class and the tolerations, set on GPU pods that something else writes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from constructs import Construct

from gpu_constructs.catalog.platforms import Platform
from gpu_constructs.cluster.admission import cel
from gpu_constructs.cluster.admission.policy import emit_policy, namespace_selector, pods, require_kubernetes
from gpu_constructs.cluster.namespace import DEFAULT_NAMESPACE, namespace_name
from gpu_constructs.cluster.runtime_class import runtime_class_name
from gpu_constructs.errors import GpuConstructsError
from gpu_constructs.kube import fields
from gpu_constructs.kube.placement import GPU_TAINT, Toleration
from gpu_constructs.kube.references import NamedObject
from gpu_constructs.tree.construct import GpuObject, checked
from gpu_constructs.tree.manifest import Manifest

Flavor = Literal["kubernetes", "kyverno"]

# kubernetes/enhancements, KEP-3962: stable in 1.36; before, a feature gate that is off by default.
_FIRST_KUBERNETES = "1.36"


class GpuRuntimeInjection(GpuObject):
    """Sets the runtime class on pods that ask for a GPU and name none, and adds tolerations that they lack.

    For pods that others write and that have no such field: the forms of Kubeflow's notebook spawner, the
    runtimes of Kubeflow Trainer. Emits a MutatingAdmissionPolicy and its binding, or for Kyverno one
    MutatingPolicy. A pod that names a runtime class, whichever, is left as it is.

    Attributes:
        name: Of the policy and its binding.
    """

    @checked
    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        platform: Platform,
        name: str = "gpu-runtime-injection",
        runtime_class: str | NamedObject | None = None,
        tolerations: Sequence[Toleration] = (GPU_TAINT,),
        namespaces: Sequence[str | NamedObject] | None = None,
        excluded_namespaces: Sequence[str | NamedObject] = ("kube-system", DEFAULT_NAMESPACE),
        flavor: Flavor = "kubernetes",
        failure_policy: Literal["Fail", "Ignore"] | None = None,
    ) -> None:
        """Make the policy.

        Args:
            scope: A chart, or a construct in one.
            id: Construct id.
            platform: The cluster; it must serve the policy, and says which runtime class GPU pods need.
            name: Of the policy and its binding.
            runtime_class: Name or object. None: the platform decides.
            tolerations: Those to add where a pod tolerates less.
            namespaces: Names or ``GpuNamespace`` objects to hold in; None holds in all but the excluded ones.
            excluded_namespaces: Those to leave alone; by default the system's and the plugin's, whose pods
                say themselves what they need.
            flavor: ``kubernetes`` needs Kubernetes 1.36; ``kyverno`` needs Kyverno 1.17 in the cluster and serves
                older releases. Kyverno's ClusterPolicy is deprecated, so it is its MutatingPolicy, which
                takes the same expressions.
            failure_policy: What becomes of a GPU pod when the policy fails. None is ``Fail`` inside the API
                server, where a pod would else run without its GPU and say nothing; ``Ignore`` for Kyverno,
                for while its webhook is away nothing that it matches could start.

        Raises:
            GpuConstructsError: The platform serves no such policy or needs no runtime class, no namespace is
                left, or a name is none.

        Source:
            kubernetes/kubernetes:staging/src/k8s.io/apiserver/pkg/admission/plugin/policy/mutating/patch,
            kyverno/kyverno@v1.19.0:config/crds/policies.kyverno.io/policies.kyverno.io_mutatingpolicies.yaml
        """
        fields.dns_subdomain("name", name)
        runtime = runtime_class_name(runtime_class, platform)
        if runtime is None:
            raise GpuConstructsError(
                f"runtime_class is required on platform {platform}, which names none; got None; without one to set "
                "there is nothing to inject"
            )
        if flavor == "kubernetes":
            way_out = "use flavor='kyverno', which needs Kyverno 1.17"
            require_kubernetes("MutatingAdmissionPolicy", _FIRST_KUBERNETES, platform, way_out)
        only = None if namespaces is None else [namespace_name(each) for each in namespaces]
        excluded = [namespace_name(each) for each in excluded_namespaces]
        if only is not None and not set(only) - set(excluded):
            raise GpuConstructsError(
                f"namespaces must hold one that excluded_namespaces does not; got {only!r}; leave it out for all"
            )
        super().__init__(scope, id)
        self.name = name
        selector = namespace_selector(only, excluded)
        spec = _spec(runtime, tolerations)
        if flavor == "kyverno":
            constraints = {**spec["matchConstraints"], "namespaceSelector": selector}
            self._make_kyverno({**spec, "matchConstraints": constraints, "failurePolicy": failure_policy or "Ignore"})
        else:
            final = {**spec, "failurePolicy": failure_policy or "Fail"}
            bound = {"matchResources": {"namespaceSelector": selector}}
            emit_policy(self, "MutatingAdmissionPolicy", name, lambda: final, bound)

    def _make_kyverno(self, spec: dict[str, Any]) -> None:
        # Without this Kyverno would rewrite Deployments and Jobs as well, and whoever applies them would see a drift.
        autogen: Any = {"podControllers": {"controllers": []}}
        manifest = {
            "apiVersion": "policies.kyverno.io/v1",
            "kind": "MutatingPolicy",
            "metadata": {"name": self.name},
            "spec": {**spec, "autogen": autogen},
        }
        Manifest(self, "Default", manifest, is_cluster_scoped=True)


def _spec(runtime_class: str, tolerations: Sequence[Toleration]) -> dict[str, Any]:
    return {
        "matchConstraints": {"resourceRules": [pods("CREATE")]},
        "matchConditions": [
            {"name": "asks-for-gpu", "expression": cel.asks_for_gpu()},
            {"name": "names-no-runtime-class", "expression": cel.HAS_NO_RUNTIME_CLASS},
        ],
        "mutations": [
            {"patchType": "JSONPatch", "jsonPatch": {"expression": cel.injection(runtime_class, tolerations)}}
        ],
        # A second run finds a runtime class and does nothing; the first may come before a webhook adds the GPU.
        "reinvocationPolicy": "IfNeeded",
    }
