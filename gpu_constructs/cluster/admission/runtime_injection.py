"""`GpuRuntimeInjection`: a policy that sets the runtime class and the tolerations of GPU pods without a runtime class.

The policy is for pods that the user cannot edit, for example those of the notebook controller of Kubeflow.
"""

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
    """A policy that sets the runtime class and missing tolerations in new GPU pods that name no runtime class.

    The policy does not change a pod that already names a runtime class, even if the pod lacks the tolerations. Use the
    policy for pods that you cannot edit, for example those of Kubeflow Trainer or of the Kubeflow notebook controller.

    Emits a MutatingAdmissionPolicy and its binding. For Kyverno, emits one MutatingPolicy instead.

    Attributes:
        name: Name of the policy and its binding.
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
        """Create the policy.

        Args:
            scope: Chart, or a construct in one.
            id: Construct ID.
            platform: Platform of the cluster. It determines the runtime class that GPU pods need. For the flavor
                ``kubernetes``, its Kubernetes release must be 1.36 or later.
            name: Name of the policy and its binding.
            runtime_class: Name of the RuntimeClass that the policy sets, or the object. None, the default, uses the
                runtime class of the platform, for example ``nvidia`` on Talos.
            tolerations: Tolerations to add to pods that do not have them. The default is the toleration of the taint
                ``nvidia.com/gpu``.
            namespaces: Names or ``GpuNamespace`` objects of the namespaces in which the policy applies. None, the
                default, selects all namespaces except those in ``excluded_namespaces``.
            excluded_namespaces: Namespaces in which the policy does not apply. The default is ``kube-system`` and
                ``nvidia-gpu-operator``. The components in these two namespaces, such as the device plugin, set
                ``runtimeClassName`` and ``tolerations`` themselves.
            flavor: Implementation of the policy. ``kubernetes`` emits a MutatingAdmissionPolicy, which needs Kubernetes
                1.36. ``kyverno`` emits a MutatingPolicy of Kyverno, which needs Kyverno 1.17 and supports older
                Kubernetes releases. The construct emits no ClusterPolicy of Kyverno, because Kyverno
                deprecates this kind.
            failure_policy: Treatment of a GPU pod if the API server cannot apply the policy. ``Fail`` rejects the pod,
                and ``Ignore`` admits the pod unchanged. None, the default, is ``Fail`` for the flavor ``kubernetes``,
                because a pod would otherwise silently run without its GPU. For the flavor ``kyverno``, None is
                ``Ignore``, because ``Fail`` would block all GPU pods while the webhook of Kyverno is unavailable.

        Raises:
            GpuConstructsError: If the platform does not serve the policy, or if neither the user nor the platform sets
                a runtime class. Also raised if the policy applies in no namespace, or if a name is invalid.

        Source:
            kubernetes/kubernetes:staging/src/k8s.io/apiserver/pkg/admission/plugin/policy/mutating/patch,
            kyverno/kyverno@v1.19.0:config/crds/policies.kyverno.io/policies.kyverno.io_mutatingpolicies.yaml
        """
        fields.dns_subdomain("name", name)
        runtime = runtime_class_name(runtime_class, platform)
        if runtime is None:
            raise GpuConstructsError(
                f"runtime_class must be set on platform {platform}, because the platform has no default, got None. Set "
                "the runtime class to inject"
            )
        if flavor == "kubernetes":
            way_out = "Use flavor='kyverno', which needs Kyverno 1.17"
            require_kubernetes("MutatingAdmissionPolicy", _FIRST_KUBERNETES, platform, way_out)
        only = None if namespaces is None else [namespace_name(each) for each in namespaces]
        excluded = [namespace_name(each) for each in excluded_namespaces]
        if only is not None and not set(only) - set(excluded):
            raise GpuConstructsError(
                f"namespaces must contain a namespace that is not in excluded_namespaces, got {only!r}. To select "
                "all namespaces except the excluded ones, leave out the keyword namespaces"
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
        # By default Kyverno also rewrites Deployments and Jobs, which tools that apply them would report as drift.
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
        # The first run may precede a webhook that adds the GPU. A second run changes no pod that has a runtime class.
        "reinvocationPolicy": "IfNeeded",
    }
