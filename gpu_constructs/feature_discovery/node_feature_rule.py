"""`NodeFeatureRule`: an object with rules by which Node Feature Discovery labels nodes."""

from __future__ import annotations

from collections.abc import Sequence

from constructs import Construct

from gpu_constructs.catalog import nfd_labels
from gpu_constructs.errors import refuse_if
from gpu_constructs.feature_discovery.rule_options import FeatureRule, check_domain
from gpu_constructs.kube import fields
from gpu_constructs.tree.construct import GpuObject, checked
from gpu_constructs.tree.manifest import Manifest


class NodeFeatureRule(GpuObject):
    """Rules by which Node Feature Discovery sets labels, annotations, extended resources and taints of nodes.

    Emits one NodeFeatureRule, which is cluster-scoped. Node Feature Discovery must run in the cluster.

    Pods can select nodes by the labels in the rules. ``synth`` and the capacity plan assume that each node that
    matches a rule has the labels of the rule.
    """

    @checked
    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        rules: Sequence[FeatureRule],
        name: str | None = None,
        extra_label_ns: Sequence[str] = (),
    ) -> None:
        """Create the NodeFeatureRule.

        Args:
            scope: Chart, or a construct in a chart.
            id: ID of the construct.
            rules: Rules, in the order in which Node Feature Discovery applies them. If two rules set the same label,
                the later rule has priority.
            name: Name of the object. None: the ID of the construct.
            extra_label_ns: Label domains below ``kubernetes.io`` that the rules can use. Pass the same domains as in
                ``NfdMaster(extra_label_ns=...)``. Empty by default.

        Raises:
            GpuConstructsError: If there is no rule, if Kubernetes would reject the name, or if the master would ignore
                a label.

        Source:
            kubernetes-sigs/node-feature-discovery@v0.19.0:pkg/nfd-master/nfd-master.go, filterFeatureLabel
        """
        name = id if name is None else name
        fields.dns_subdomain("name", name)
        refuse_if(not rules, "rules", "have a rule", list(rules), way_out="add a FeatureRule")
        manifests = [rule.to_manifest() for rule in rules]
        for index, rule in enumerate(manifests):
            for label in nfd_labels.labels_of_rules([rule]):
                check_domain(
                    f"rules[{index}].labels", label, (nfd_labels.DOMAIN, "profile.node.kubernetes.io/"), extra_label_ns
                )
        super().__init__(scope, id)
        Manifest(
            self,
            "Default",
            {
                "apiVersion": "nfd.k8s-sigs.io/v1alpha1",
                "kind": "NodeFeatureRule",
                "metadata": {"name": name},
                "spec": {"rules": manifests},
            },
            is_cluster_scoped=True,
        )
