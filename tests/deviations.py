"""The intended differences between this library and NVIDIA's chart: one table, for the parity proof and the documents.

A difference is explained by a row when the object, the field, both values and the row's condition fit; each row is as
narrow as its reason. What one side alone holds is written out whole, so that nothing else can hide in it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any

import parity_conditions as on
from parity_chart import Manifest, Release
from parity_compare import Context, Difference, OneSided, same
from parity_conditions import ABSENT, ANY, GIVEN
from parity_fields import matches

Condition = Callable[[Difference, Context], bool]


def _always(difference: Difference, context: Context) -> bool:
    return True


def _nothing(context: Context) -> Iterable[OneSided]:
    return ()


def _whole(manifest: Manifest, release: Release) -> Manifest | None:
    return None


@dataclass(frozen=True)
class Rule:
    """Where a deviation may show: roles and kinds (``|`` between several, ``*`` for all), a field, both values.

    A value is literal, ``ABSENT``, ``GIVEN`` (anything but absent) or ``ANY`` for the condition to look at, or a
    function of the difference and the context that gives the one value.
    """

    objects: str
    field: str
    chart: Any
    ours: Any
    when: Condition = _always

    def holds(self, difference: Difference, context: Context) -> bool:
        return (
            _is_one_of(difference.object, self.objects)
            and matches(self.field, difference.path)
            and _fits(difference.chart, self.chart, difference, context)
            and _fits(difference.ours, self.ours, difference, context)
            and self.when(difference, context)
        )


@dataclass(frozen=True)
class Deviation:
    """A row: its number, what is different and why, and where that shows.

    Attributes:
        number: It never changes, so that other texts can name it.
        what: What is different.
        why: Why it is meant to be.
        rules: The fields that differ.
        left_out: Objects, or parts of them, that the chart alone holds.
        added: Objects that we alone hold.
        repaired: Gives an object of the chart as it was meant, where a template is broken.
        dropped: What the warning says of a key of the values that is dropped, behind ``it``.
    """

    number: str
    what: str
    why: str
    rules: tuple[Rule, ...] = ()
    left_out: Callable[[Context], Iterable[OneSided]] = _nothing
    added: Callable[[Context], Iterable[OneSided]] = _nothing
    repaired: Callable[[Manifest, Release], Manifest | None] = _whole
    dropped: str = ""


@dataclass(frozen=True)
class Table:
    """All the rows about one chart; the judge of a comparison."""

    deviations: tuple[Deviation, ...]

    def explain(self, difference: Difference, context: Context) -> str | None:
        """Give the number of the first row that a difference fits."""
        for deviation in self.deviations:
            if any(rule.holds(difference, context) for rule in deviation.rules):
                return deviation.number
        return None

    def left_out(self, context: Context) -> Iterable[OneSided]:
        """Give what the chart holds and we do not."""
        return (row.numbered(deviation.number) for deviation in self.deviations for row in deviation.left_out(context))

    def added(self, context: Context) -> Iterable[OneSided]:
        """Give what we hold and the chart does not."""
        return (row.numbered(deviation.number) for deviation in self.deviations for row in deviation.added(context))

    def repaired(self, manifest: Manifest, release: Release) -> tuple[Manifest, str | None]:
        """Give an object of the chart as it was meant, and the number of the row that says so."""
        for deviation in self.deviations:
            meant = deviation.repaired(manifest, release)
            if meant is not None:
                return meant, deviation.number
        return manifest, None

    def of_warning(self, text: str) -> str | None:
        """Give the number of the row that a warning about a dropped key belongs to."""
        said = re.match(r"values\.\S+ (?:is dropped|wins): it (.*)", text, re.S)
        for deviation in self.deviations if said else ():
            if deviation.dropped and re.match(deviation.dropped, said[1], re.S):
                return deviation.number
        return None

    def markdown(self) -> str:
        """The table as the documents show it."""
        rows = [f"| {d.number} | {d.what} | {d.why} |" for d in self.deviations]
        return "\n".join(["| Number | What is different | Why |", "|---|---|---|", *rows, ""])


@cache
def _is_one_of(found: str, wanted: str) -> bool:
    role, _, kind = found.partition(" ")
    roles, _, kinds = wanted.partition(" ")
    return (roles == "*" or role in roles.split("|")) and (kinds == "*" or kind in kinds.split("|"))


def _fits(found: Any, wanted: Any, difference: Difference, context: Context) -> bool:
    if wanted is ANY:
        return True
    if wanted is GIVEN:
        return found is not ABSENT
    return same(found, wanted(difference, context) if callable(wanted) else wanted)


_GPU = "plugin|gfd|mps"
_NFD = "nfd-master|nfd-worker|nfd-gc|nfd-topology-updater"
_PODS = f"{_GPU}|{_NFD} DaemonSet|Deployment"
_MAIN = "nvidia-device-plugin-ctr|gpu-feature-discovery-ctr|mps-control-daemon-ctr"
_SIDECARS = "nvidia-device-plugin-sidecar|gpu-feature-discovery-sidecar|mps-control-daemon-sidecar"
_INITS = "nvidia-device-plugin-init|gpu-feature-discovery-init|mps-control-daemon-init"
_IMEX = f"pod.containers[{_MAIN}].mounts[/dev/nvidia-caps-imex-channels]"
_NAME, _COMPONENT, _VERSION, _MANAGER = (
    f"[app.kubernetes.io/{key}]" for key in ("name", "component", "version", "managed-by")
)

WRONG_TYPE = "D41"
_WRONG_TYPE = r"must be (true or false|text|a whole number( or text)?|a list|a mapping), got "
_REFUSED = r"cannot be taken over: (?!(\S+: )?line [0-9]+: |text is no YAML)|is given twice|must have a name"
_NO_CHOICE = r"cannot be True|becomes a flag"

DEVIATIONS: tuple[Deviation, ...] = (
    Deviation(
        "D1",
        "Every selector and pod carries `app.kubernetes.io/component`, which for a configuration beside the default "
        "ends in its name; with several the pods carry the name of theirs too. NFD's label `role` is gone",
        "All three DaemonSets of the chart have one selector, so they see each other's pods",
        (
            Rule("* *", f"metadata.labels{_COMPONENT}", ABSENT, on.component),
            Rule(_PODS, f"pod.labels{_COMPONENT}", ABSENT, on.component),
            Rule(_PODS, f"spec.selector.matchLabels{_COMPONENT}", ABSENT, on.component),
            Rule(f"{_NFD} NetworkPolicy", f"spec.podSelector.matchLabels{_COMPONENT}", ABSENT, on.component),
            Rule(f"{_NFD} PodDisruptionBudget", f"spec.selector.matchLabels{_COMPONENT}", ABSENT, on.component),
            *(
                Rule(f"{_GPU} DaemonSet", f"{where}[{on.NODE_LABEL}]", ABSENT, on.our_config, on.has_several_configs)
                for where in ("metadata.labels", "pod.labels")
            ),
        ),
        left_out=on.labels_of_roles,
    ),
    Deviation(
        "D2",
        "No config-manager for the configurations of `config.map`: each is a ConfigMap of its own, mounted as the file "
        "`/config/config.yaml`, with DaemonSets of its own on the nodes labelled with its name; those of the default "
        "take every other node, and pods of two configurations never run on one node together. Settings that the "
        "chart passes as variables stand in the file. Only an external ConfigMap (`config.name`) keeps config-manager",
        "config-manager is racy: it starts with the default and corrects it later. Its sidecar restarts again and "
        "again on a node whose label names no configuration, and it reads all nodes of the cluster",
        (
            Rule(
                f"{_GPU} DaemonSet",
                f"pod.containers[{_MAIN}].env[CONFIG_FILE]",
                ABSENT,
                "/config/config.yaml",
                on.has_no_file_in_chart,
            ),
            Rule(f"{_GPU} DaemonSet", f"pod.containers[{_MAIN}].mounts[/config].configMap", ABSENT, "configs"),
            Rule(
                f"{_GPU} DaemonSet",
                f"pod.containers[{_MAIN}].mounts[/config].configMap.files[config.yaml].key",
                ABSENT,
                "config.yaml",
            ),
            Rule(f"{_GPU} DaemonSet", f"pod.containers[{_MAIN}].mounts[/config].readOnly", ABSENT, True),
            Rule(f"{_GPU} DaemonSet", "serves[*]", False, True, on.nobody_else_serves),
            # Pods of two configurations are kept apart on a node, where config-manager has one pod.
            Rule(f"{_GPU} DaemonSet", "pod.affinity.podAntiAffinity.**", ABSENT, GIVEN, on.has_several_configs),
            Rule("configs ConfigMap", "file.**", GIVEN, GIVEN, on.the_programs_run_with_the_same),
            Rule("configs ConfigMap", "file.**", ABSENT, GIVEN, on.the_programs_run_with_the_same),
            Rule("configs ConfigMap", "file.**", GIVEN, ABSENT, on.the_programs_run_with_the_same),
        ),
        left_out=on.config_manager,
        added=on.config_maps,
    ),
    Deviation(
        "D3",
        "SYS_ADMIN and `NVIDIA_MIG_MONITOR_DEVICES` only where a configuration uses MIG, SYS_ADMIN also for "
        "`volume-mounts`",
        "The chart gives them to all pods as soon as there is any ConfigMap",
        (
            Rule(
                "plugin|gfd DaemonSet",
                f"pod.containers[{_MAIN}].securityContext.capabilities.add[SYS_ADMIN]",
                True,
                ABSENT,
                on.needs_no_sys_admin,
            ),
            Rule(
                f"{_GPU} DaemonSet",
                f"pod.containers[{_MAIN}].env[NVIDIA_MIG_MONITOR_DEVICES]",
                "all",
                ABSENT,
                on.uses_no_mig,
            ),
        ),
    ),
    Deviation(
        "D4",
        "The MPS control daemon, and the plugin's mounts for it, only with a configuration that shares by MPS; the "
        "directory of CDI specs only with a `cdi-*` strategy",
        "The chart runs a privileged DaemonSet with `hostPID`, and mounts the node's directories, for what is not used",
        (
            Rule("plugin DaemonSet", "settings.flags.mpsRoot", on.mps_root, "", on.shares_not_by_mps),
            Rule("plugin DaemonSet", "settings.flags.mpsRoot", on.mps_root, ABSENT, on.shares_not_by_mps),
            Rule(
                "mps DaemonSet",
                "pod.containers[mps-control-daemon-ctr].env[NODE_NAME].valueFrom.fieldRef.fieldPath",
                "spec.nodeName",
                ABSENT,
            ),
        ),
        left_out=on.unused_mps_and_cdi,
    ),
    Deviation(
        "D5",
        "The plugin's and the MPS control daemon's pods have no account and no token; GPU Feature Discovery has an "
        "account of its own, with rights on NodeFeatures of its own namespace only",
        "They do not talk to the API; the chart lets all three read every node and write every NodeFeature",
        (
            Rule("gfd DaemonSet", "pod.serviceAccountName", "plugin", "gfd"),
            Rule("gfd DaemonSet", "pod.serviceAccountName", ABSENT, "gfd", on.has_no_account_in_chart),
            Rule("plugin|mps DaemonSet", "pod.automountServiceAccountToken", ABSENT, False, on.has_no_account),
            Rule(f"plugin|mps|gfd|{_NFD} DaemonSet|Deployment", "pod.automountServiceAccountToken", ABSENT, True),
            Rule(f"plugin|{_NFD} ServiceAccount", "automountServiceAccountToken", ABSENT, False),
        ),
        left_out=on.rights_of_the_plugin,
        added=on.rights_of_gfd,
    ),
    Deviation(
        "D6",
        "Every toleration of the GPU pods reaches Node Feature Discovery too, and `tolerations` adds to the two of the "
        "chart instead of replacing them; NFD's master and garbage collector tolerate control planes however tainted",
        "A GPU node that NFD's worker does not tolerate gets no label and so no plugin, without any event",
        (
            Rule(f"{_NFD} DaemonSet|Deployment", "pod.tolerations[*]", ABSENT, True, on.is_tolerated_by_the_plugin),
            Rule("nfd-master|nfd-gc Deployment", "pod.tolerations[*]", ABSENT, True, on.key_is(on.CONTROL_PLANE)),
            Rule(f"{_GPU} DaemonSet", "pod.tolerations[*]", ABSENT, True, on.is_tolerated_by_default),
        ),
        left_out=on.covered_tolerations,
    ),
    Deviation(
        "D7",
        "NFD's worker publishes `nvidia.com/gpu.present` by a rule in its own file, and NFD's master takes it; what "
        "the chart's own values say in both files stays even where a user's null deletes it",
        "Nothing else in a standalone installation publishes it, and exporters and workloads select on it",
        (
            Rule("nfd-worker ConfigMap", "data[nfd-worker.conf].sources.custom.**", ABSENT, on.gpu_rule),
            Rule(
                "nfd-master ConfigMap",
                "data[nfd-master.conf].extraLabelNs[*]",
                ABSENT,
                "nvidia.com",
                on.is_config_deleted,
            ),
            Rule(
                "nfd-worker ConfigMap",
                "data[nfd-worker.conf].sources.pci.**",
                ABSENT,
                on.default_of_pci,
                on.is_config_deleted,
            ),
        ),
    ),
    Deviation(
        "D8",
        "No post-delete hook of NFD (`…-prune`)",
        "`kubectl apply` would start the Job at once, which takes NFD's labels off all nodes",
        left_out=on.prune_hook,
    ),
    Deviation(
        "D9",
        "Text stays text: every string is quoted where YAML would read something else",
        "`DEFAULT_CONFIG: 1` or a label `true` is refused by the API server",
        (
            Rule("* *", "**", GIVEN, GIVEN, on.is_the_same_text),
            Rule(f"{_GPU} DaemonSet", "pod.priorityClassName|runtimeClassName", ABSENT, GIVEN, on.is_text_of_nothing),
        ),
    ),
    Deviation(
        "D10",
        "GPU Feature Discovery mounts nothing of the node and names the two variables that its image sets anyway",
        "It publishes through the API; the chart's `/sys` is there without a mount, and its driver root is declared "
        "but never mounted",
        (
            Rule(
                "gfd DaemonSet", "pod.containers[gpu-feature-discovery-ctr].env[NVIDIA_VISIBLE_DEVICES]", ABSENT, "all"
            ),
            Rule(
                "gfd DaemonSet",
                "pod.containers[gpu-feature-discovery-ctr].env[NVIDIA_DRIVER_CAPABILITIES]",
                ABSENT,
                "compute,utility",
            ),
        ),
        left_out=on.host_paths_of_gfd,
    ),
    Deviation(
        "D11",
        "`imagePullPolicy` on all containers",
        "The chart sets it on the main containers only",
        (
            Rule(
                f"{_GPU} DaemonSet",
                f"pod.*[{_INITS}|{_SIDECARS}|mps-control-daemon-mounts].imagePullPolicy",
                GIVEN,
                on.pull_policy_of_main,
            ),
        ),
    ),
    Deviation(
        "D12",
        "GPU containers ask for 10m CPU and 64Mi memory, with a limit of 512Mi, unless `resources` says otherwise; "
        "those of config-manager ask for what the main one asks for",
        "Without requests even a `system-node-critical` pod is among the first to be evicted",
        (
            Rule(f"{_GPU} DaemonSet", "pod.*[*].resources.requests[cpu]", ABSENT, "0.01", on.says_no_resources),
            Rule(f"{_GPU} DaemonSet", "pod.*[*].resources.requests[memory]", ABSENT, "67108864", on.says_no_resources),
            Rule(f"{_GPU} DaemonSet", "pod.*[*].resources.limits[memory]", ABSENT, "536870912", on.says_no_resources),
            Rule(f"{_GPU} DaemonSet", f"pod.*[{_INITS}|{_SIDECARS}].resources.**", ABSENT, on.same_field_of_main),
        ),
    ),
    Deviation(
        "D13",
        "Names: GPU Feature Discovery's rights have its own name, ConfigMaps are called `…-config`, NFD's master has "
        "the name of its Deployment; long names are cut so that every object's name still tells it apart",
        "The chart's account `node-feature-discovery` collides with a second installation's, and its cut makes one "
        "name of three DaemonSets",
        (Rule("* *", "metadata.name", GIVEN, GIVEN),),
    ),
    Deviation(
        "D14",
        "Labels: no `helm.sh/chart`, managed by cdk8s, versions without a leading v, `app.kubernetes.io/name` whatever "
        "`nameOverride` says, the recommended labels on pods too",
        "Helm manages none of these objects",
        (
            Rule("* *", f"metadata.labels{_MANAGER}", "Helm", "cdk8s"),
            Rule(f"{_NFD} *", f"metadata.labels{_VERSION}", on.chart_version, on.our_version),
            Rule("* *", f"metadata.labels{_NAME}", on.chart_app, on.our_app),
            Rule(_PODS, f"pod.labels{_NAME}", on.chart_app, on.our_app),
            Rule(_PODS, f"spec.selector.matchLabels{_NAME}", on.chart_app, on.our_app),
            Rule(f"{_NFD} NetworkPolicy", f"spec.podSelector.matchLabels{_NAME}", on.chart_app, on.our_app),
            Rule(f"{_NFD} PodDisruptionBudget", f"spec.selector.matchLabels{_NAME}", on.chart_app, on.our_app),
            Rule(_PODS, f"pod.labels{_VERSION}", ABSENT, on.our_version),
            Rule(_PODS, f"pod.labels{_MANAGER}", ABSENT, "cdk8s"),
        ),
        left_out=on.labels_of_helm,
    ),
    Deviation(
        "D15",
        "The Namespace comes along, labelled for Pod Security level `privileged`",
        "The pods mount host paths, which Talos and `baseline` forbid in a namespace that says nothing",
        added=on.namespaces,
    ),
    Deviation(
        "D16",
        "The RuntimeClass named by `runtimeClassName` comes along, with handler `nvidia`",
        "Pods that name a missing one are never created",
        added=on.runtime_class,
    ),
    Deviation(
        "D17",
        "Pods hold less: seccomp profile `RuntimeDefault`, no capability that is not named, no privilege escalation, "
        "a read-only root file system where the program writes none, no variables of Services",
        "No program loses anything by it",
        (
            Rule(_PODS, "pod.securityContext.seccompProfile.type", ABSENT, "RuntimeDefault"),
            Rule(f"{_GPU}|nfd-worker|nfd-gc|nfd-topology-updater *", "pod.enableServiceLinks", ABSENT, False),
            Rule(
                f"{_GPU} DaemonSet", "pod.*[*].securityContext.readOnlyRootFilesystem", ABSENT, True, on.says_no_rights
            ),
            Rule(
                f"{_GPU} DaemonSet",
                "pod.*[*].securityContext.readOnlyRootFilesystem",
                ABSENT,
                False,
                on.is_privileged_on_both_sides,
            ),
            Rule(
                f"{_GPU} DaemonSet",
                "pod.*[*].securityContext.allowPrivilegeEscalation",
                ABSENT,
                False,
                on.every(on.says_no_rights, on.chart_drops_nothing),
            ),
            Rule(
                f"{_GPU} DaemonSet",
                "pod.*[*].securityContext.capabilities.drop[ALL]",
                ABSENT,
                True,
                on.every(on.says_no_rights, on.chart_drops_nothing),
            ),
            Rule(
                f"{_GPU} DaemonSet",
                f"pod.*[{_MAIN}|{_SIDECARS}|{_INITS}].mounts[/available-configs].readOnly",
                ABSENT,
                True,
            ),
        ),
    ),
    Deviation(
        "D18",
        "The checksum that restarts pods when their file changes is called `gpu-constructs/config-sha256`, and each "
        "pod has that of its own file",
        "The chart's `checksum/config` restarts every pod for any configuration, and is missing on an external one",
        (Rule(_PODS, "pod.annotations[gpu-constructs/config-sha256]", ABSENT, GIVEN, on.is_our_checksum),),
        left_out=on.checksums,
    ),
    Deviation(
        "D19",
        "GPU Feature Discovery always publishes a NodeFeature object, with 0.18.2 and whatever a file says",
        "As every release from 0.19.0 on: a file needs a host path and outlives its pod",
        (
            Rule("gfd DaemonSet", "settings.flags.useNodeFeatureAPI", False, True),
            # Of an external file nobody knows what it says.
            Rule("gfd DaemonSet", "settings.flags.useNodeFeatureAPI", ABSENT, True),
        ),
    ),
    Deviation(
        "D20",
        "GPU Feature Discovery is not privileged unless `gfd.securityContext` says so",
        "Only the labels of vGPUs need it",
        (
            Rule(
                "gfd DaemonSet",
                "pod.containers[gpu-feature-discovery-ctr|gpu-feature-discovery-sidecar].securityContext.privileged",
                True,
                ABSENT,
                on.says_no_privileged,
            ),
            Rule(
                "gfd DaemonSet",
                "pod.containers[gpu-feature-discovery-ctr|gpu-feature-discovery-sidecar].securityContext.capabilities"
                ".add[SYS_ADMIN]",
                ABSENT,
                True,
                on.uses_mig,
            ),
        ),
    ),
    Deviation(
        "D21",
        "Nodes: no term for Tegra boards where `deviceDiscoveryStrategy` is `nvml`; where the values bring no NFD, the "
        "labels that a stock NFD publishes count too (`pci-0300_10de`, `pci-0302_10de`)",
        "NVML finds nothing on a Tegra board; the chart's one PCI label exists only with the chart's own NFD settings",
        (
            Rule(
                f"{_GPU} DaemonSet",
                "pod.nodes[*]",
                ABSENT,
                True,
                on.every(on.key_is(*on.STOCK_NFD), on.uses_another_nfd),
            ),
        ),
        left_out=on.tegra,
    ),
    Deviation(
        "D22",
        "Custom resource definitions without the descriptions of their fields, and without what the tool that "
        "generated them left behind: its note, an empty status",
        "They are two thirds of the text and change nothing",
        (
            Rule("* CustomResourceDefinition", "spec.versions[*].schema.**", GIVEN, ABSENT, on.is_description),
            Rule(
                "* CustomResourceDefinition",
                "metadata.annotations[controller-gen.kubebuilder.io/version]",
                on.generator,
                ABSENT,
            ),
            Rule("nfd-topologies CustomResourceDefinition", "status.acceptedNames.kind|plural", "", ABSENT),
            Rule("nfd-topologies CustomResourceDefinition", "status.conditions|storedVersions", "[]", ABSENT),
        ),
    ),
    Deviation(
        "D23",
        "NFD's programs may do only what they do: the master neither updates nodes nor reads namespaces, and its lease "
        "and NodeFeatureGroups only where it elects a leader or their feature gate is on, in its own namespace; the "
        "topology updater reads the one namespace and the one definition that it asks for, and asks the kubelet for "
        "its configuration instead of all that `nodes/proxy` allows",
        "Whoever takes over a pod has the rights of its account",
        (
            Rule("nfd-topology-updater ClusterRole", "rules[get nodes/configz]", ABSENT, True, on.is_old),
            Rule("nfd-topology-updater ClusterRole", "rules[*]", ABSENT, on.namespace_of_nfd),
            Rule(
                "nfd-topology-updater ClusterRole",
                "rules[get customresourcedefinitions.apiextensions.k8s.io noderesourcetopologies.topology.node.k8s.io]",
                ABSENT,
                True,
            ),
        ),
        left_out=on.rights_of_nfd,
        added=on.rights_of_the_master,
    ),
    Deviation(
        "D24",
        "One NFD master replaces the other (`Recreate`) and elects no leader unless `replicaCount` is above 1; the "
        "garbage collector likewise",
        "Two would label against each other for as long as the update takes",
        (Rule("nfd-master|nfd-gc Deployment", "spec.strategy.type", ABSENT, "Recreate", on.has_one_replica),),
        left_out=on.leader_election,
    ),
    Deviation(
        "D25",
        "NFD's master prefers control planes whatever the value of their label; the name that Kubernetes had for them "
        "before 1.24 (`node-role.kubernetes.io/master`) is gone",
        "No supported release of Kubernetes sets that label or that taint",
        (
            Rule(
                "nfd-master Deployment",
                "pod.preferred nodes[*]",
                ABSENT,
                True,
                on.every(on.key_is(on.PREFERRED), on.says_no_affinity),
            ),
        ),
        left_out=on.old_placement_of_the_master,
    ),
    Deviation(
        "D26",
        "NFD's worker does not mount `features.d`",
        "GPU Feature Discovery publishes through the API; whoever has files of their own there says "
        "`mount_features_d=True`",
        left_out=on.features_of_the_worker,
    ),
    Deviation(
        "D27",
        "NFD's worker updates a tenth of the nodes at a time with 0.17.3 too, and feature gates are passed only where "
        "they differ from the program's default",
        "As the chart of 0.19.0 does",
        (
            Rule(
                "nfd-worker DaemonSet",
                "spec.updateStrategy.rollingUpdate.maxUnavailable",
                ABSENT,
                "10%",
                on.is_old,
            ),
        ),
        left_out=on.default_feature_gates,
    ),
    Deviation(
        "D28",
        "The driver's root is mounted where a configuration names it, and its host path has no type",
        "The plugin needs it there to find the driver's libraries; on Talos the kubelet would look for the path inside "
        "its own container and refuse",
        (
            Rule(
                "plugin DaemonSet",
                f"pod.containers[{_MAIN}].mounts[/driver-root].hostPath.type",
                "Directory",
                ABSENT,
            ),
            Rule(
                "plugin DaemonSet",
                f"pod.containers[{_MAIN}].mounts[/driver-root].hostPath.path",
                ABSENT,
                GIVEN,
                on.is_named_by_the_file,
            ),
            Rule(
                "plugin DaemonSet",
                f"pod.containers[{_MAIN}].mounts[/driver-root].readOnly",
                ABSENT,
                True,
                on.is_named_by_the_file,
            ),
        ),
    ),
    Deviation(
        "D29",
        "No empty variables",
        "The programs take an empty variable for a set one",
        (
            Rule("plugin DaemonSet", f"pod.containers[{_MAIN}].env[CDI_FEATURE_FLAGS]", "", ABSENT),
            Rule(
                f"{_GPU} DaemonSet",
                f"pod.*[{_INITS}|{_SIDECARS}].env[KUBECONFIG|SIGNAL|PROCESS_TO_SIGNAL|DEFAULT_CONFIG]",
                "",
                ABSENT,
            ),
        ),
    ),
    Deviation(
        "D30",
        "config-manager beside the MPS control daemon signals `mps-control-daemon`, and holds what the daemon holds",
        "The chart's looks for `/usr/bin/mps-control-daemon`, finds no such process and dies; a process that may be "
        "privileged listens to its equals only",
        (
            Rule(
                "mps DaemonSet",
                "pod.containers[mps-control-daemon-sidecar].env[PROCESS_TO_SIGNAL]",
                "/usr/bin/mps-control-daemon",
                "mps-control-daemon",
            ),
            Rule(
                "mps DaemonSet",
                "pod.containers[mps-control-daemon-sidecar].securityContext.privileged|readOnlyRootFilesystem",
                ABSENT,
                on.same_field_of_main,
            ),
        ),
    ),
    Deviation(
        "D31",
        "NFD's topology updater sees the directory of the kubelet's socket, and everything read-only; its "
        "NetworkPolicy lets it ask the kubelet",
        "A kubelet that restarts makes a new socket, which a mounted socket would not show",
        (
            Rule("nfd-topology-updater DaemonSet", f"{on.SOCKET}/kubelet.sock].hostPath.path", on.socket, ABSENT),
            Rule("nfd-topology-updater DaemonSet", f"{on.SOCKET}].hostPath.path", ABSENT, on.socket_directory),
            Rule(
                "nfd-topology-updater DaemonSet",
                "pod.containers[topology-updater].mounts[/host-sys|/host-var/kubelet-config"
                "|/host-var/lib/kubelet-podresources].readOnly",
                ABSENT,
                True,
            ),
            Rule(
                "nfd-topology-updater NetworkPolicy",
                "spec.egress[0].ports[*]",
                ABSENT,
                True,
                on.key_is(on.PORT_OF_KUBELET),
            ),
        ),
    ),
    Deviation(
        "D32",
        "The PodMonitor lives in NFD's namespace and carries the recommended labels",
        "The chart's has no namespace, so it lands wherever kubectl happens to point",
        (
            Rule("nfd PodMonitor", "metadata.namespace", ABSENT, on.our_nfd_namespace),
            Rule("nfd PodMonitor", f"metadata.labels{_MANAGER}", ABSENT, "cdk8s"),
            Rule("nfd PodMonitor", f"metadata.labels{_VERSION}", ABSENT, on.our_version),
        ),
    ),
    Deviation(
        "D33",
        "NFD's garbage collector is told the port that its values give it",
        "The chart changes only the port that probes and metrics ask, so the pod would never be ready",
        (Rule("nfd-gc Deployment", "pod.containers[gc].args[-port|-metrics]", ABSENT, on.port_of_gc),),
    ),
    Deviation(
        "D34",
        "Nothing for what is off: no NFD definitions without any component, no NetworkPolicy without its pods, no "
        "ConfigMap of configurations without a program that reads them",
        "Nothing reads, selects or defines anything by them",
        left_out=on.objects_of_nothing,
    ),
    Deviation(
        "D35",
        "What says nothing is not written: an interval that an empty text leaves to the program, numbers of a rolling "
        "update beside `OnDelete`",
        "The same in the end",
        (
            Rule(
                f"{_GPU}|{_NFD} DaemonSet",
                "spec.updateStrategy.rollingUpdate.**",
                GIVEN,
                ABSENT,
                on.is_updated_on_delete,
            ),
            Rule(
                "nfd-gc Deployment",
                "pod.containers[gc].args[-gc-interval]",
                ABSENT,
                "1h",
                on.says_nothing_of_the_interval,
            ),
            Rule(
                "nfd-topology-updater DaemonSet",
                "pod.containers[topology-updater].args[-sleep-interval]",
                "3s",
                "60s",
                on.says_nothing_of_the_interval,
            ),
        ),
    ),
    Deviation(
        "D36",
        "NFD's master 0.17.3 in the node's network resolves names of the cluster",
        "As every other component, and as the chart of 0.19.0 does",
        (
            Rule(
                "nfd-master Deployment",
                "pod.dnsPolicy",
                ABSENT,
                "ClusterFirstWithHostNet",
                on.is_old,
            ),
        ),
    ),
    Deviation(
        "D37",
        "`nfd.master.extraEnvs` reaches NFD's master 0.17.3 as variables",
        "The chart indents them so that each becomes a container without an image, which takes the rest of the "
        "master's container with it",
        repaired=on.variables_of_the_master,
    ),
    Deviation(
        "D38",
        "Where a configuration hands out IMEX channels, the plugin sees the host's `/dev/nvidia-caps-imex-channels`, "
        "read-only",
        "The plugin hands out a channel only if it sees the channel's device node",
        tuple(
            Rule("plugin DaemonSet", f"{_IMEX}.{path}", ABSENT, value, on.hands_out_imex_channels)
            for path, value in (
                ("hostPath.path", "/dev/nvidia-caps-imex-channels"),
                ("hostPath.type", "DirectoryOrCreate"),
                ("readOnly", True),
            )
        ),
    ),
    Deviation(
        "D40",
        "A key that the chart does not read, in this release or at all, is dropped with a warning",
        "The chart skips it without a word, so the user believes in it",
        dropped=r"is no key of|is never read by|has no meaning|is refused by the chart too",
    ),
    Deviation(
        WRONG_TYPE,
        "A value of the wrong type is dropped with a warning",
        "The chart drops some without a word, takes any text for true, and renders the rest as objects that the API "
        "server refuses",
        (Rule("* *", "**", ANY, ANY, on.is_decided_by_what_was_dropped(_WRONG_TYPE)),),
        dropped=_WRONG_TYPE,
    ),
    Deviation(
        "D42",
        "What the programs ignore or die of in a configuration file is dropped with a warning",
        "They skip a misplaced key without a word",
        (
            Rule(f"{_GPU} DaemonSet", "settings.**", GIVEN, ABSENT, on.is_part_of_a_file_that_was_dropped),
            Rule(f"{_GPU} DaemonSet", "settings.**", ANY, on.the_default, on.is_part_of_a_file_that_was_dropped),
            Rule("configs ConfigMap", "file.**", GIVEN, ABSENT, on.is_part_of_a_file_that_was_dropped),
        ),
        dropped=r"cannot be taken over: (\S+: )?line [0-9]+: |cannot be taken over: text is no YAML",
    ),
    Deviation(
        "D43",
        "A value that a program, Kubernetes or this library refuses is dropped with a warning",
        "The pods would fail, or quietly do something else than what was asked for",
        (Rule("* *", "**", ANY, ANY, on.is_decided_by_what_was_dropped(_REFUSED)),),
        left_out=on.budgets_that_were_dropped,
        dropped=_REFUSED,
    ),
    Deviation(
        "D44",
        "`selectorLabelsOverride` is dropped with a warning",
        "It takes away the labels that tell the pods of the programs from each other",
        (Rule("* *", "**", ANY, ANY, on.is_decided_by_what_was_dropped("would take away the labels")),),
        dropped=r"would take away the labels",
    ),
    Deviation(
        "D45",
        "A security context that lacks what the configuration needs is dropped with a warning",
        "The chart renders it, and the container fails",
        (Rule("* *", "**", ANY, ANY, on.is_decided_by_what_was_dropped("lacks ")),),
        dropped=r"lacks ",
    ),
    Deviation(
        "D46",
        "A choice that this library does not leave is dropped with a warning: NFD's hook (D8), a flag that NFD's "
        "master does not know",
        "The hook takes labels away, the flag ends the program",
        (Rule("* *", "**", ANY, ANY, on.is_decided_by_what_was_dropped(_NO_CHOICE)),),
        dropped=_NO_CHOICE,
    ),
    Deviation(
        "D47",
        "A default that names no configuration is dropped with a warning, and the fallbacks decide",
        "The init container of config-manager takes the default first, so no plugin starts",
        dropped=r"must be a key of config\.map",
    ),
    Deviation(
        "D48",
        "A value that overrides what a configuration file says wins with a warning",
        "In the chart it wins without a word",
        dropped=r"says ",
    ),
)


_TABLE = Table(DEVIATIONS)
explain, left_out, added = _TABLE.explain, _TABLE.left_out, _TABLE.added
repaired, of_warning, markdown = _TABLE.repaired, _TABLE.of_warning, _TABLE.markdown
