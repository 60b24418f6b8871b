"""`GpuRuntimeInjection`: a policy that sets the runtime class and the tolerations of GPU pods of other programs."""

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
    """A policy that adds missing tolerations to GPU pods, and sets the runtime class if a pod names none.

    Use it for pods that another program creates without these fields, for example the notebook spawner of Kubeflow or
    the runtimes of Kubeflow Trainer. Emits a MutatingAdmissionPolicy and its binding, or for Kyverno one
    MutatingPolicy. The policy does not change a pod that already names a runtime class.

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
            platform: Platform of the cluster. It must serve the policy, and it determines the runtime class that GPU
                pods need.
            name: Name of the policy and its binding.
            runtime_class: Name or object of the runtime class. None, the default, uses that of the platform.
            tolerations: Tolerations to add to pods that do not have them.
            namespaces: Names or ``GpuNamespace`` objects in which the policy applies. None, the default, selects all
                namespaces except those in ``excluded_namespaces``.
            excluded_namespaces: Namespaces in which the policy does not apply. By default those of the system and of
                the device plugin, whose pods set these fields themselves.
            flavor: ``kubernetes`` needs Kubernetes 1.36. ``kyverno`` needs Kyverno 1.17 in the cluster and supports
                older releases of Kubernetes. With ``kyverno``, the construct emits a MutatingPolicy with the same
                expressions, and not a ClusterPolicy, because Kyverno deprecates that kind.
            failure_policy: Treatment of a GPU pod if the policy fails: ``Fail`` rejects the pod, and ``Ignore`` admits
                it unchanged. None, the default, is ``Fail`` for the flavor ``kubernetes``, because a pod would
                otherwise silently run without its GPU. For ``kyverno`` it is ``Ignore``. ``Fail`` would block all
                matching pods while the webhook of Kyverno is unavailable.

        Raises:
            GpuConstructsError: If the platform does not serve the policy or needs no runtime class, if the policy
                applies in no namespace, or if a name is invalid.

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
                f"namespaces must contain a namespace that is not in excluded_namespaces, got {only!r}. Leave out "
                "namespaces to select all other namespaces"
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
