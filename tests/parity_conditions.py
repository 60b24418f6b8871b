"""What the rows of ``deviations`` ask: values that follow from a case, conditions, what one side alone holds.

Each function takes a difference and its context, or the context alone where it gives objects.
"""

from __future__ import annotations

import hashlib
import posixpath
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from gpu_constructs.feature_discovery.nfd import custom_resource_definitions
from parity_cases import UnreadableCase, load
from parity_chart import NODE_LABEL, UNKNOWN, UNLABELLED, Manifest, Release, object_suffix
from parity_compare import A_CHECKSUM, ABSENT, Context, Difference, OneSided, configs_of, same
from parity_fields import Fields, canonical, fields_of, toleration_of
from parity_settings import PROGRAMS, default_of, of_text
from parity_values import SETTINGS_OF_VALUES, decides, decides_path

__all__ = ["ABSENT", "NODE_LABEL"]

GIVEN = object()
"""Something, whatever it is."""

ANY = object()
"""Something or nothing."""

PORT_OF_KUBELET = canonical({"port": 10250, "protocol": "TCP"})
SOCKET = "pod.containers[topology-updater].mounts[/host-var/lib/kubelet-podresources"

_COMPONENTS = {
    "plugin": "device-plugin",
    "configs": "device-plugin",
    "gfd": "gpu-feature-discovery",
    "mps": "mps-control-daemon",
}
_GPU_TOLERATIONS = (
    {"key": "CriticalAddonsOnly", "operator": "Exists"},
    {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"},
)
CONTROL_PLANE = canonical(
    {"effect": "NoSchedule", "key": "node-role.kubernetes.io/control-plane", "operator": "Exists"}
)
OLD_MASTER = canonical({"effect": "NoSchedule", "key": "node-role.kubernetes.io/master", "operator": "Equal"})


def _node_term(label: str, operator: str = "In", values: Sequence[str] = ("true",)) -> dict[str, Any]:
    listed = {"values": list(values)} if operator == "In" else {}
    return {"matchExpressions": [{"key": label, "operator": operator, **listed}]}


TEGRA = canonical(_node_term("feature.node.kubernetes.io/cpu-model.vendor_id", values=["NVIDIA"]))
STOCK_NFD = tuple(
    canonical(_node_term(f"feature.node.kubernetes.io/pci-{kind}_10de.present")) for kind in ("0300", "0302")
)
PREFERRED = canonical({"preference": _node_term("node-role.kubernetes.io/control-plane", "Exists"), "weight": 1})


_NAMESPACES_OF_EVERY_CLUSTER = ("default", "kube-system", "kube-public", "kube-node-lease")


def _role(difference: Difference) -> str:
    return difference.object.partition(" ")[0]


def _kind(difference: Difference) -> str:
    return difference.object.partition(" ")[2]


def _container(difference: Difference) -> str:
    return difference.path[2].strip("[]")


def _is_nfd(difference: Difference) -> bool:
    return _role(difference).startswith("nfd")


def _our_setting(difference: Difference, context: Context, path: str) -> Any:
    return context.setting("ours", _role(difference), difference.config, path)


# --- values ---------------------------------------------------------------------------------------------------


def component(difference: Difference, context: Context) -> Any:
    role = _role(difference)
    if _is_nfd(difference):
        return role.removeprefix("nfd-")
    if role not in _COMPONENTS:
        return ABSENT
    ours, default = (context.release.our_name_of(config) for config in (difference.config, None))
    is_other = _kind(difference) == "DaemonSet" and ours != default
    return f"{_COMPONENTS[role]}-{object_suffix(ours)}" if is_other else _COMPONENTS[role]


def our_config(difference: Difference, context: Context) -> Any:
    return context.release.our_name_of(difference.config)


def chart_version(difference: Difference, context: Context) -> Any:
    return f"v{context.release.nfd_version}" if _is_nfd(difference) else context.version


def our_version(difference: Difference, context: Context) -> Any:
    return context.release.nfd_version if _is_nfd(difference) else context.version


def chart_app(difference: Difference, context: Context) -> Any:
    labels = context.release.nfd_labels() if _is_nfd(difference) else context.release.labels()
    return labels["app.kubernetes.io/name"]


def our_app(difference: Difference, context: Context) -> Any:
    return "node-feature-discovery" if _is_nfd(difference) else "nvidia-device-plugin"


def mps_root(difference: Difference, context: Context) -> Any:
    return context.release.value("mps.root", "")


def generator(difference: Difference, context: Context) -> Any:
    return "v0.11.2" if _role(difference) == "nfd-topologies" else "v0.16.3"


def our_nfd_namespace(difference: Difference, context: Context) -> Any:
    return context.release.nfd_namespace


def socket_directory(difference: Difference, context: Context) -> Any:
    return posixpath.dirname(_socket(context))


def socket(difference: Difference, context: Context) -> Any:
    return _socket(context)


def _socket(context: Context) -> str:
    default = "/var/lib/kubelet/pod-resources/kubelet.sock"
    return str(context.release.value("nfd.topologyUpdater.kubeletPodResourcesSockPath") or default)


def namespace_of_nfd(difference: Difference, context: Context) -> Any:
    """That the topology updater may read the one namespace it asks for."""
    is_it = difference.path[-1] == f"[get namespaces {context.release.nfd_namespace}]"
    return True if is_it else ABSENT


def port_of_gc(difference: Difference, context: Context) -> Any:
    key = "metricsPort" if context.version == "0.18.2" else "port"
    return str(context.release.given_value(f"nfd.gc.{key}", ABSENT))


def pull_policy_of_main(difference: Difference, context: Context) -> Any:
    return _of_main(difference, context, ("imagePullPolicy",))


def same_field_of_main(difference: Difference, context: Context) -> Any:
    return _of_main(difference, context, difference.path[3:])


def _of_main(difference: Difference, context: Context, path: Sequence[str]) -> Any:
    main = ("pod", "containers", f"[{PROGRAMS[_role(difference)]}]")
    return context.fields_of("ours", difference).get((*main, *path), ABSENT)


_GPU_RULE = fields_of(
    {
        "rule": {
            "name": "nvidia gpu present",
            "labels": {"nvidia.com/gpu.present": "true"},
            "matchFeatures": [
                {
                    "feature": "pci.device",
                    "matchExpressions": {
                        "vendor": {"op": "In", "value": ["10de"]},
                        "class": {"op": "In", "value": ["0300", "0302"]},
                    },
                }
            ],
        }
    }
)


_PCI = fields_of({"pci": {"deviceClassWhitelist": ["02", "03"], "deviceLabelFields": ["vendor"]}})


def default_of_pci(difference: Difference, context: Context) -> Any:
    return _PCI.get(difference.path[3:], ABSENT)


def gpu_rule(difference: Difference, context: Context) -> Any:
    """The leaf of our rule for ``nvidia.com/gpu.present``, wherever in the list it stands."""
    return _GPU_RULE.get(("rule", *difference.path[5:]), ABSENT)


# --- conditions -----------------------------------------------------------------------------------------------

Condition = Callable[[Difference, Context], bool]


def key_is(*keys: str) -> Condition:
    """The last part of the path is one of the keys, which may hold what a pattern cannot."""

    def holds(difference: Difference, context: Context) -> bool:
        return difference.path[-1][1:-1] in keys

    return holds


def every(*conditions: Condition) -> Condition:
    def holds(difference: Difference, context: Context) -> bool:
        return all(condition(difference, context) for condition in conditions)

    return holds


def has_no_file_in_chart(difference: Difference, context: Context) -> bool:
    return not context.release.uses_config_manager


def has_several_configs(difference: Difference, context: Context) -> bool:
    return len({*context.release.configs, context.release.our_name_of(None)}) > 1


def nobody_else_serves(difference: Difference, context: Context) -> bool:
    """Nodes without a program in the chart: the default names no configuration."""
    release = context.release
    has_default = release.default_config is None or release.default_config in release.configs
    is_left_over = difference.path[1].strip("[]") in (UNKNOWN, UNLABELLED)
    return is_left_over and not has_default and difference.config in (None, release.our_default)


def the_programs_run_with_the_same(difference: Difference, context: Context) -> bool:
    """Wherever it is said, each program that both sides run and that reads it runs with the same."""
    path, config = ".".join(difference.path[1:]), difference.config

    def both(program: str, path: str) -> tuple[Any, Any]:
        chart, ours = (context.setting(side, program, config, path) for side in ("chart", "ours"))
        return chart, ours

    running = [program for program in PROGRAMS if ABSENT not in both(program, "flags.migStrategy")]
    read = [pair for pair in (both(program, path) for program in running) if pair != (ABSENT, ABSENT)]
    return all(same(*pair) for pair in read) if read else _is_said(difference, context)


def _is_said(difference: Difference, context: Context) -> bool:
    """No program that runs reads the setting, and the values say it: the chart has nowhere to, we have the file."""
    keys = [key for key in SETTINGS_OF_VALUES if context.release.given_value(key) is not None]
    said = [context.release.given_value(key) for key in keys if SETTINGS_OF_VALUES[key] == difference.path[1:]]
    path = ".".join(difference.path[1:])
    return difference.chart is ABSENT and any(same(difference.ours, of_text(value, path)) for value in said)


def uses_mig(difference: Difference, context: Context) -> bool:
    """Also where an external file may."""
    return _our_setting(difference, context, "flags.migStrategy") in ("single", "mixed", ABSENT)


def uses_no_mig(difference: Difference, context: Context) -> bool:
    return _our_setting(difference, context, "flags.migStrategy") == "none"


def needs_no_sys_admin(difference: Difference, context: Context) -> bool:
    strategies = _our_setting(difference, context, "flags.plugin.deviceListStrategy")
    return uses_no_mig(difference, context) and (strategies is ABSENT or "volume-mounts" not in strategies.split(","))


def hands_out_imex_channels(difference: Difference, context: Context) -> bool:
    return _our_setting(difference, context, "imex.channelIDs") not in ("", ABSENT)


def uses_another_nfd(difference: Difference, context: Context) -> bool:
    """The values bring no Node Feature Discovery, and leave the affinity to the chart."""
    is_bundled = any(role.startswith("nfd-") for role in _workloads(context))
    return not is_bundled and context.release.given.get("affinity", {}) == {}


def is_updated_on_delete(difference: Difference, context: Context) -> bool:
    path = ("spec", "updateStrategy", "type")
    return all(context.fields_of(side, difference).get(path) == "OnDelete" for side in ("chart", "ours"))


def has_one_replica(difference: Difference, context: Context) -> bool:
    return ("spec", "replicas") not in context.fields_of("ours", difference)


def is_config_deleted(difference: Difference, context: Context) -> bool:
    """The user's null takes away what the chart's values put into the file, or all of its values for NFD."""
    section = context.release.given.get("nfd", {})
    component = (section or {}).get(_role(difference).removeprefix("nfd-")) or {}
    return section is None or ("config" in component and component["config"] is None)


def says_no_affinity(difference: Difference, context: Context) -> bool:
    return context.release.given_value(f"{_nfd_key(difference)}.affinity") in (None, {})


def _nfd_key(difference: Difference) -> str:
    component = _role(difference).removeprefix("nfd-")
    return f"nfd.{'topologyUpdater' if component == 'topology-updater' else component}"


def is_description(difference: Difference, context: Context) -> bool:
    """Text about a field of a schema, not a field that is called so."""
    return difference.path[-1] == "description" and isinstance(difference.chart, str)


def is_old(difference: Difference, context: Context) -> bool:
    return context.version == "0.18.2"


def is_named_by_the_file(difference: Difference, context: Context) -> bool:
    """The driver's root of the configuration, which the plugin runs with; the chart asks its own value only."""
    is_mounted_by_chart = isinstance(context.release.value("nvidiaDriverRoot"), str)
    return not is_mounted_by_chart and _our_setting(difference, context, "flags.nvidiaDriverRoot") == _driver_root(
        difference, context
    )


def _driver_root(difference: Difference, context: Context) -> Any:
    path = (*difference.path[:5], "hostPath", "path")
    return context.fields_of("ours", difference).get(path, ABSENT)


def shares_not_by_mps(difference: Difference, context: Context) -> bool:
    strategy = _our_setting(difference, context, "sharing.strategy")
    return strategy in ("none", "time-slicing") or _kills_config_manager(context)


def has_no_account_in_chart(difference: Difference, context: Context) -> bool:
    return context.chart.get("plugin", "ServiceAccount") is None


def has_no_account(difference: Difference, context: Context) -> bool:
    return ("pod", "serviceAccountName") not in context.fields_of("ours", difference)


def _tolerations(fields: Fields) -> list[dict[str, Any]]:
    return [load(path[2][1:-1]) for path in fields if path[:2] == ("pod", "tolerations")]


def is_tolerated_by_the_plugin(difference: Difference, context: Context) -> bool:
    sets = [f for (side, role, kind, _), f in context.fields.items() if side == "ours" and role in PROGRAMS]
    return any(difference.path in fields for fields in sets)


def is_tolerated_by_default(difference: Difference, context: Context) -> bool:
    """One of the two that the chart has until the user gives others."""
    return "tolerations" in context.release.given and load(difference.path[2][1:-1]) in _GPU_TOLERATIONS


def _covers(wide: Mapping[str, Any], narrow: Mapping[str, Any]) -> bool:
    return (
        narrow.keys() <= {"key", "operator", "value", "effect", "tolerationSeconds"}
        and narrow["operator"] in ("Equal", "Exists")
        and wide["operator"] == "Exists"
        and wide.get("key") in (None, narrow.get("key"))
        and wide.get("effect") in (None, narrow.get("effect"))
        and "tolerationSeconds" not in wide
    )


def is_the_same_text(difference: Difference, context: Context) -> bool:
    """What the chart left to YAML, as the text it stands for."""
    if isinstance(difference.chart, str) or not isinstance(difference.ours, str):
        return False
    try:
        return same(load(difference.ours), difference.chart)
    except UnreadableCase:
        return False


def is_text_of_nothing(difference: Difference, context: Context) -> bool:
    """Text that the chart writes without quotes and YAML reads as nothing."""
    return load(difference.ours) is None and difference.ours == context.release.given_value(difference.path[-1])


def says_nothing_of_the_interval(difference: Difference, context: Context) -> bool:
    key = {"nfd-gc": "nfd.gc.interval", "nfd-topology-updater": "nfd.topologyUpdater.updateInterval"}[_role(difference)]
    return context.release.given_value(key) == ""


def says_no_resources(difference: Difference, context: Context) -> bool:
    return not context.release.value("resources") or context.is_dropped("resources")


def says_no_rights(difference: Difference, context: Context) -> bool:
    """The user's values leave the container's rights to the chart, or say something that had to be dropped.

    They say nothing of init containers.
    """
    if difference.path[1] == "initContainers":
        return True
    key = {"plugin": "securityContext", "gfd": "gfd.securityContext"}.get(_role(difference))
    given = context.release.given_value(key) if key else None
    says = isinstance(given, Mapping) and any(value is not None for value in given.values())
    return not says or (key is not None and context.is_dropped(key))


def chart_drops_nothing(difference: Difference, context: Context) -> bool:
    """The chart's container holds SYS_ADMIN or everything, or is one about whose rights the chart says nothing."""
    chart = context.fields_of("chart", difference)
    security = {
        path[4:]: value for path, value in chart.items() if path[:4] == (*difference.path[:3], "securityContext")
    }
    return (
        (not security and _container(difference) not in PROGRAMS.values())
        or ("capabilities", "add", "[SYS_ADMIN]") in security
        or security.get(("privileged",)) is True
    )


def says_no_privileged(difference: Difference, context: Context) -> bool:
    return context.release.given_value("gfd.securityContext.privileged") is None


def is_privileged_on_both_sides(difference: Difference, context: Context) -> bool:
    path = (*difference.path[:3], "securityContext", "privileged")
    return all(context.fields_of(side, difference).get(path) is True for side in ("chart", "ours"))


def is_our_checksum(difference: Difference, context: Context) -> bool:
    """The SHA-256 of the one file that the pod reads."""
    role = "configs" if _role(difference) in PROGRAMS else _role(difference)
    is_default = difference.config in (None, context.release.our_default)
    files = context.ours.get(role if is_default else f"{role}@{difference.config}", "ConfigMap")
    texts = list(((files or {}).get("data") or {}).values())
    return len(texts) == 1 and difference.ours == hashlib.sha256(texts[0].encode()).hexdigest()


def _given(context: Context, key: str) -> Any:
    """What the user gave for a key; for one of a list, the list; for an account, what the chart makes of it too."""
    given = context.release.given_value(key.partition("[")[0])
    if key.endswith(".serviceAccount"):
        own = ["node-feature-discovery"] if key == "nfd.master.serviceAccount" else []
        return [given, "ServiceAccount", "default", context.release.nfd_namespace, *own]
    return given


def is_decided_by_what_was_dropped(why: str) -> Condition:
    """A key of the values decides the field, and the user was warned, with these words, that it is dropped."""

    def holds(difference: Difference, context: Context) -> bool:
        return any(
            re.match(why, reason, re.S)
            and (
                (difference.chart is ABSENT and decides_path(key, difference.object, difference.path))
                or decides(key, difference.object, difference.path, difference.chart, _given(context, key))
            )
            for key, reason in context.dropped
        )

    return holds


def is_part_of_a_file_that_was_dropped(difference: Difference, context: Context) -> bool:
    """Keys of one configuration, which the programs ignore or die of, named in a warning by line and key."""
    release = context.release
    name = difference.config or release.our_default
    told = [reason for key, reason in context.dropped if key == f"config.map.{name}"]
    path = [part.strip("[]") for part in difference.path[1:]]
    if path == ["unreadable"]:
        unread = re.compile(r"cannot be taken over: (line [0-9]+: )?(text is no YAML|the file must hold)")
        return any(unread.match(reason) for reason in told)
    if path[0] == "ignored":
        path = path[1:]
    named = [
        match[1] for match in (re.match(r"cannot be taken over: (\S+): line ", reason) for reason in told) if match
    ]
    # The programs take most keys in any case.
    keys = [re.findall(r"[^.\[\]]+", name.lower()) for name in named]
    path = [part.lower() for part in path]
    return any(path[: len(key)] == key for named in keys for key in (named, _as_compared(named)))


def _as_compared(key: list[str]) -> list[str]:
    """Sharing is compared by strategy, and a shared resource by its name, not by its place in the list."""
    if key[0] != "sharing" or len(key) < 3:
        return key[:1] if key[0] == "sharing" else key
    return ["sharing", "resources"] if key[2] == "resources" else ["sharing", key[2]]


def the_default(difference: Difference, context: Context) -> Any:
    """What a program does where neither file nor environment says."""
    found = default_of(".".join(part.strip("[]") for part in difference.path[1:]), context.version)
    return ABSENT if found is None else found


# --- what the chart meant -------------------------------------------------------------------------------------


def variables_of_the_master(manifest: Manifest, release: Release) -> Manifest | None:
    """NFD's master with its variables, where each of them became a container and the last took the rest."""
    variables = release.given_value("nfd.master.extraEnvs") or ()
    if not variables or release.version != "0.18.2" or manifest.get("kind") != "Deployment":
        return None
    spec = manifest["spec"]["template"]["spec"]
    master, *others = spec["containers"]
    torn = {key: value for key, value in (others[-1] if others else {}).items() if key not in variables[-1]}
    if [*others[:-1], {**variables[-1], **torn}] != [*variables[:-1], *others[-1:]] or not torn:
        return None
    whole = {**master, **torn, "env": [*master["env"], *variables]}
    template = {**manifest["spec"]["template"], "spec": {**spec, "containers": [whole]}}
    return {**manifest, "spec": {**manifest["spec"], "template": template}}


# --- what one side alone holds --------------------------------------------------------------------------------


def _daemonset(context: Context, side: str, program: str) -> Manifest | None:
    return (context.chart if side == "chart" else context.ours).get(program, "DaemonSet")


def config_manager(context: Context) -> Iterator[OneSided]:
    for program in PROGRAMS if context.release.configs else ():
        chart = _daemonset(context, "chart", program)
        if chart is not None:
            yield OneSided(program, context.release.config_manager_part(program, chart), is_part=True)


def config_maps(context: Context) -> Iterator[OneSided]:
    if not context.release.uses_config_manager and any(context.ours.has(one, "DaemonSet") for one in PROGRAMS):
        metadata = {"namespace": context.release.namespace, "labels": _our_labels(context, "device-plugin")}
        yield OneSided("configs", {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})


def unused_mps_and_cdi(context: Context) -> Iterator[OneSided]:
    release = context.release
    plugin = _daemonset(context, "chart", "plugin")
    if plugin is None:
        return
    root = release.value("mps.root", "")
    for config in configs_of(release):
        ours = context.fields["ours", "plugin", "DaemonSet", config]
        strategies = str(ours.get(("settings", "flags", "plugin", "deviceListStrategy"), ""))
        unused: dict[str, tuple[str | None, str | None]] = {}
        if ours.get(("settings", "sharing", "strategy")) in ("none", "time-slicing") or _kills_config_manager(context):
            unused |= {"/mps": (root or None, "DirectoryOrCreate"), "/dev/shm": (f"{root}/shm", None)}
            yield OneSided("mps", release.mps_daemonset(plugin), config)
        if ours and "cdi-" not in strategies and release.external_config_map is None:
            unused["/var/run/cdi"] = ("/var/run/cdi", "DirectoryOrCreate")
        yield OneSided("plugin", release.mounts_part("plugin", unused), config, is_part=True)


def _kills_config_manager(context: Context) -> bool:
    """In 0.18.2 config-manager dies of the processes that it sees under hostPID, so there MPS never worked."""
    is_managed = context.release.external_config_map is not None
    return is_managed and context.version == "0.18.2" and bool(context.release.value("mps.enableHostPID"))


def _covered(context: Context, is_of_the_old_name: bool) -> Iterator[OneSided]:
    for component, key in _NFD_KEYS.items():
        for kind in ("DaemonSet", "Deployment"):
            ours = _tolerations(context.fields["ours", f"nfd-{component}", kind, None])
            if context.chart.get(f"nfd-{component}", kind) is None:
                continue
            listed = context.release.value(f"nfd.{key}.tolerations") or ()
            given = [one for one in listed if isinstance(one, Mapping)] if isinstance(listed, list) else []
            for toleration in given:
                words = toleration_of(toleration)
                is_old_name = canonical(words) == OLD_MASTER
                is_kept = words in ours or not any(_covers(one, words) for one in ours)
                if is_old_name if is_of_the_old_name else not is_old_name and not is_kept:
                    part = _pod_part(kind, {"tolerations": [toleration]})
                    yield OneSided(f"nfd-{component}", part, is_part=True)


def covered_tolerations(context: Context) -> Iterator[OneSided]:
    """Those of NFD's pods that another one of ours takes the place of."""
    yield from _covered(context, False)


def old_placement_of_the_master(context: Context) -> Iterator[OneSided]:
    """Tolerations of the old name of control planes, and the nodes that the chart's master prefers."""
    yield from _covered(context, True)
    preferred = context.release.value("nfd.master.affinity")
    if context.chart.get("nfd-master", "Deployment") is not None and not context.release.given_value(
        "nfd.master.affinity"
    ):
        yield OneSided("nfd-master", _pod_part("Deployment", {"affinity": preferred}), is_part=True)


def leader_election(context: Context) -> Iterator[OneSided]:
    """A flag that NFD's master of 0.17.3 always has."""
    master = context.fields["ours", "nfd-master", "Deployment", None]
    if context.version == "0.18.2" and master and ("spec", "replicas") not in master:
        container = {"name": "master", "args": ["-enable-leader-election"]}
        yield OneSided("nfd-master", _pod_part("Deployment", {"containers": [container]}), is_part=True)


def default_feature_gates(context: Context) -> Iterator[OneSided]:
    """The one gate that the values of 0.17.3 state, as the programs have it anyway."""
    if context.version == "0.18.2" and not context.release.value("nfd.featureGates"):
        for component, kind in (("master", "Deployment"), ("worker", "DaemonSet")):
            container = {"name": component, "args": ["-feature-gates=NodeFeatureGroupAPI=false"]}
            if context.chart.get(f"nfd-{component}", kind) is not None:
                yield OneSided(f"nfd-{component}", _pod_part(kind, {"containers": [container]}), is_part=True)


def tegra(context: Context) -> Iterator[OneSided]:
    """The term for Tegra boards, where every program that looks for devices asks NVML."""
    fields = [f for (side, role, _, _), f in context.fields.items() if side == "ours" and role in ("plugin", "gfd")]
    found = {f.get(("settings", "flags", "deviceDiscoveryStrategy")) for f in fields}
    if found - {None} != {"nvml"} or context.release.given.get("affinity", {}) != {}:
        return
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [load(TEGRA)]}}
    for program in PROGRAMS:
        if context.chart.get(program, "DaemonSet") is not None and context.ours.has(program, "DaemonSet"):
            part = _pod_part("DaemonSet", {"affinity": {"nodeAffinity": required}})
            yield OneSided(program, part, is_part=True)


def checksums(context: Context) -> Iterator[OneSided]:
    """The chart's checksums, where it puts them: on pods that read a file which the chart makes."""
    release = context.release
    readers = (
        list(PROGRAMS) if release.configs and "checksum/config" not in (release.value("podAnnotations") or {}) else []
    )
    readers += ["nfd-master", "nfd-worker", "nfd-topology-updater"]
    for role, kind in context.chart.objects:
        if role in readers and kind in ("DaemonSet", "Deployment"):
            metadata = {"annotations": {"checksum/config": A_CHECKSUM}}
            yield OneSided(role, {"kind": kind, "spec": {"template": {"metadata": metadata}}}, is_part=True)


def _pod_part(kind: str, spec: Manifest) -> Manifest:
    return {"kind": kind, "metadata": {}, "spec": {"template": {"spec": spec}}}


_NFD_KEYS = {"master": "master", "worker": "worker", "gc": "gc", "topology-updater": "topologyUpdater"}


def labels_of_helm(context: Context) -> Iterator[OneSided]:
    """Labels of the chart's release; of its version too on objects that run nothing."""
    for role, kind in context.chart.objects:
        labels = context.release.nfd_labels() if role.startswith("nfd") else context.release.labels()
        keys = ["helm.sh/chart"]
        if role in ("plugin", "configs") and kind != "DaemonSet":
            keys.append("app.kubernetes.io/version")
        if kind not in ("CustomResourceDefinition", "PodMonitor"):
            metadata = {"labels": {key: labels[key] for key in keys}}
            yield OneSided(role, {"kind": kind, "metadata": metadata}, is_part=True)


def labels_of_roles(context: Context) -> Iterator[OneSided]:
    """NFD's own label of its components, where the chart puts it: on workloads, on what selects their pods."""
    for role, kind in context.chart.objects:
        component = role.removeprefix("nfd-")
        labels = {"role": component}
        metadata = {"labels": labels}
        if component not in _NFD_KEYS or role == component:
            continue
        if kind in ("DaemonSet", "Deployment"):
            spec = {"selector": {"matchLabels": labels}, "template": {"metadata": metadata}}
            yield OneSided(role, {"kind": kind, "metadata": metadata, "spec": spec}, is_part=True)
        elif kind == "NetworkPolicy":
            spec = {"podSelector": {"matchLabels": labels}}
            yield OneSided(role, {"kind": kind, "metadata": metadata, "spec": spec}, is_part=True)
        elif kind == "PodDisruptionBudget":
            yield OneSided(role, {"kind": kind, "spec": {"selector": {"matchLabels": labels}}}, is_part=True)


def _rules(group: str, resources: str, verbs: str, *names: str) -> dict[str, Any]:
    rule = {"apiGroups": [group], "resources": resources.split(), "verbs": verbs.split()}
    return {**rule, "resourceNames": list(names)} if names else rule


def rights_of_nfd(context: Context) -> Iterator[OneSided]:
    """What the chart lets NFD's programs do, and they never do."""
    release, nfd, is_old = context.release, "nfd.k8s-sigs.io", context.version == "0.18.2"
    has_groups = release.value("nfd.featureGates.NodeFeatureGroupAPI") is True
    names_file = bool(release.given_value("nfd.topologyUpdater.kubeletConfigPath"))
    worker = context.fields["ours", "nfd-worker", "DaemonSet", None]
    owners = str(worker.get(("pod", "containers", "[worker]", "args", "[-owner-refs]"), "ds")).split(",")
    lease = "nfd-master.nfd.kubernetes.io"
    rows = {
        ("nfd-master", "ClusterRole"): [
            _rules("", "namespaces", "watch list"),
            _rules("", "nodes", "update"),
            _rules("", "nodes/status", "get list update"),
            _rules(nfd, "nodefeatures nodefeaturerules", "get"),
            _rules(nfd, "nodefeaturegroups", "get" if has_groups else "get list watch"),
            _rules(nfd, "nodefeaturegroups/status", "patch update"),
            _rules("coordination.k8s.io", "leases", "create"),
            _rules("coordination.k8s.io", "leases", "get update", lease),
        ],
        ("nfd-gc", "ClusterRole"): [_rules("", "nodes/proxy", "get")] if is_old else [],
        ("nfd-worker", "Role"): [] if "ds" in owners else [_rules("", "pods", "get")],
        ("nfd-topology-updater", "ClusterRole"): [
            _rules("", "nodes", "get list"),
            _rules("", "namespaces", "get"),
            *([_rules("", "nodes/proxy", "get")] if is_old else []),
            *([] if is_old else [_rules("apiextensions.k8s.io", "customresourcedefinitions", "get list watch")]),
            *([_rules("", "nodes/configz", "get")] if names_file and not is_old else []),
        ],
    }
    for (role, kind), rules in rows.items():
        if context.chart.get(role, kind) is not None:
            yield OneSided(role, {"kind": kind, "rules": rules}, is_part=True)


def rights_of_the_plugin(context: Context) -> Iterator[OneSided]:
    """The chart's one account and its rights; with config-manager what GPU Feature Discovery would do with them."""
    release = context.release
    is_old = context.version == "0.18.2"
    publishes = bool(release.value("gfd.enabled")) and (not is_old or bool(release.value("nfd.enableNodeFeatureApi")))
    if is_old and not release.uses_config_manager and not publishes:
        return
    if context.ours.get("plugin", "ServiceAccount") is None:
        yield from (OneSided("plugin", manifest) for manifest in release.plugin_rights())
        users = [p for p in ("plugin", "mps") if not is_old or release.uses_config_manager]
        for program in users:
            if context.chart.get(program, "DaemonSet") is not None:
                account = _pod_part("DaemonSet", {"serviceAccountName": f"{release.fullname}-service-account"})
                yield OneSided(program, account, is_part=True)
    elif publishes:
        rules = [_rules("nfd.k8s-sigs.io", "nodefeatures", "get list watch create update")]
        rules += [] if is_old else [_rules("", "pods", "get")]
        yield OneSided("plugin", {"kind": "ClusterRole", "rules": rules}, is_part=True)


def _our_labels(context: Context, component: str) -> dict[str, str]:
    return {
        "app.kubernetes.io/name": "nvidia-device-plugin",
        "app.kubernetes.io/instance": context.release.release,
        "app.kubernetes.io/component": component,
        "app.kubernetes.io/managed-by": "cdk8s",
    }


def rights_of_gfd(context: Context) -> Iterator[OneSided]:
    release = context.release
    if not context.ours.has("gfd", "DaemonSet"):
        return
    name = f"{release.our_fullname}-gpu-feature-discovery"
    labels = _our_labels(context, "gpu-feature-discovery")
    metadata = {"name": name, "namespace": release.namespace, "labels": labels}
    group = "rbac.authorization.k8s.io"
    subject = {"kind": "ServiceAccount", "name": name, "namespace": release.namespace}
    owns = context.version != "0.18.2"
    verbs = ["get", "create", "update", *(["delete"] if owns else [])]
    rules = [{"apiGroups": ["nfd.k8s-sigs.io"], "resources": ["nodefeatures"], "verbs": verbs}]
    if owns:
        rules.append({"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]})
    yield OneSided(
        "gfd",
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata, "automountServiceAccountToken": False},
    )
    granted = {"Role": (metadata, rules)}
    if release.external_config_map:
        nodes = {"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "list", "watch"]}
        granted["ClusterRole"] = ({"name": name, "labels": labels}, [nodes])
    for kind, (of, allowed) in granted.items():
        yield OneSided("gfd", {"apiVersion": f"{group}/v1", "kind": kind, "metadata": of, "rules": allowed})
        reference = {"apiGroup": group, "kind": kind, "name": name}
        binding = {"kind": f"{kind}Binding", "metadata": of, "roleRef": reference, "subjects": [subject]}
        yield OneSided("gfd", {"apiVersion": f"{group}/v1", **binding})


def prune_hook(context: Context) -> Iterator[OneSided]:
    release = context.release
    is_installed = any(role.startswith("nfd-") for role, _ in context.chart.objects)
    if is_installed and (context.version == "0.18.2" or release.value("nfd.postDeleteCleanup")):
        yield from (OneSided("nfd-prune", manifest) for manifest in release.prune_hook())


def rights_of_the_master(context: Context) -> Iterator[OneSided]:
    """Those in its own namespace, where it elects a leader or writes NodeFeatureGroups."""
    release = context.release
    master = context.fields["ours", "nfd-master", "Deployment", None]
    rules: list[dict[str, Any]] = []
    if not master or release.value("nfd.master.rbac.create", True) is False:
        return
    if release.value("nfd.featureGates.NodeFeatureGroupAPI") is True:
        group = {"apiGroups": ["nfd.k8s-sigs.io"]}
        rules += [
            {**group, "resources": ["nodefeaturegroups"], "verbs": ["get"]},
            {**group, "resources": ["nodefeaturegroups/status"], "verbs": ["update"]},
        ]
    if ("spec", "replicas") in master:
        leases = {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"]}
        rules += [
            {**leases, "verbs": ["create"]},
            {**leases, "resourceNames": ["nfd-master.nfd.kubernetes.io"], "verbs": ["get", "update"]},
        ]
    if rules:
        name = f"{release.our_nfd_fullname}-master"
        account = str(release.given_value("nfd.master.serviceAccount.name") or name)
        labels = {
            **_our_labels(context, "master"),
            "app.kubernetes.io/name": "node-feature-discovery",
            "app.kubernetes.io/version": release.nfd_version,
        }
        metadata = {"name": name, "namespace": release.nfd_namespace, "labels": labels}
        group = "rbac.authorization.k8s.io"
        subject = {"kind": "ServiceAccount", "name": account, "namespace": release.nfd_namespace}
        yield OneSided(
            "nfd-master", {"apiVersion": f"{group}/v1", "kind": "Role", "metadata": metadata, "rules": rules}
        )
        binding = {
            "kind": "RoleBinding",
            "metadata": metadata,
            "roleRef": {"apiGroup": group, "kind": "Role", "name": name},
            "subjects": [subject],
        }
        yield OneSided("nfd-master", {"apiVersion": f"{group}/v1", **binding})


def budgets_that_were_dropped(context: Context) -> Iterator[OneSided]:
    for component in ("master", "gc"):
        if context.is_dropped(f"nfd.{component}.podDisruptionBudget"):
            yield OneSided(f"nfd-{component}", context.release.budget(component))


def policies_of_nothing(context: Context) -> Iterator[OneSided]:
    """The chart makes a NetworkPolicy for a component that is off."""
    for component in ("master", "worker", "gc", "topology-updater"):
        key = "topologyUpdater" if component == "topology-updater" else component
        is_there = context.version != "0.18.2" and any(role.startswith("nfd-") for role, _ in context.chart.objects)
        is_wanted = is_there and context.release.value(f"nfd.{key}.networkPolicy.enabled")
        if is_wanted and f"nfd-{component}" not in _workloads(context):
            yield OneSided(f"nfd-{component}", context.release.network_policy(component))


def _workloads(context: Context) -> set[str]:
    return {role for role, kind in context.chart.objects if kind in ("DaemonSet", "Deployment")}


def objects_of_nothing(context: Context) -> Iterator[OneSided]:
    yield from policies_of_nothing(context)
    yield from definitions_of_nothing(context)
    release = context.release
    if release.configs and not _workloads(context) & PROGRAMS.keys() and not context.ours.has("configs", "ConfigMap"):
        metadata = {"namespace": release.namespace, "labels": release.labels()}
        files = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": release.configs}
        yield from (OneSided("configs", files, config) for config in configs_of(release))


def definitions_of_nothing(context: Context) -> Iterator[OneSided]:
    """The chart brings the definitions even where it runs no component; descriptions apart, they are ours."""
    if not any(role.startswith("nfd-") for role in _workloads(context)):
        for definition in custom_resource_definitions(context.release.nfd_version):
            plural = definition["spec"]["names"]["plural"]
            if context.chart.get(f"nfd-{plural}", "CustomResourceDefinition") is not None:
                yield OneSided(f"nfd-{plural}", dict(definition))


def features_of_the_worker(context: Context) -> Iterator[OneSided]:
    path = "/etc/kubernetes/node-feature-discovery/features.d/"
    if context.chart.get("nfd-worker", "DaemonSet") is not None:
        mounts = [{"name": "features-d", "mountPath": path, "readOnly": True}]
        spec = {
            "containers": [{"name": "worker", "volumeMounts": mounts}],
            "volumes": [{"name": "features-d", "hostPath": {"path": path}}],
        }
        yield OneSided("nfd-worker", _pod_part("DaemonSet", spec), is_part=True)


def host_paths_of_gfd(context: Context) -> Iterator[OneSided]:
    if _daemonset(context, "chart", "gfd") is not None:
        yield OneSided("gfd", context.release.gfd_host_paths(), is_part=True)
        if not context.release.uses_config_manager:
            yield OneSided("gfd", context.release.gfd_empty_config(), is_part=True)


def namespaces(context: Context) -> Iterator[OneSided]:
    labels = {f"pod-security.kubernetes.io/{mode}": "privileged" for mode in ("enforce", "audit", "warn")}
    names = {context.release.namespace: "namespace"}
    if any(role.startswith("nfd-") for role, kind in context.ours.objects if kind in ("DaemonSet", "Deployment")):
        names.setdefault(context.release.nfd_namespace, "nfd")
    for name, role in names.items():
        if name not in _NAMESPACES_OF_EVERY_CLUSTER:
            metadata = {"name": name, "labels": labels}
            yield OneSided(role, {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})


def runtime_class(context: Context) -> Iterator[OneSided]:
    name = context.release.value("runtimeClassName")
    if isinstance(name, str) and name:
        made = {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": name}, "handler": "nvidia"}
        yield OneSided("runtime-class", made)
