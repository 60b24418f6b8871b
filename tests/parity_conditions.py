"""What the rules of ``deviations`` ask: conditions of a difference in its context, and values that follow from it."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from parity_cases import UnreadableCase, load
from parity_chart import UNKNOWN, UNLABELLED, Manifest, Release
from parity_compare import ABSENT, Context, Difference, same
from parity_settings import PROGRAMS, default_of, of_text
from parity_values import SETTINGS_OF_VALUES, follows

Condition = Callable[[Difference, Context], bool]


def _role(difference: Difference) -> str:
    return difference.object.partition(" ")[0]


def _our_setting(difference: Difference, context: Context, path: str) -> Any:
    """What our program runs with; of the plugin's for everything that is not one of its programs."""
    others = "exporter" if context.ours.get("exporter", "DaemonSet") else "plugin"
    role = _role(difference) if _role(difference) in PROGRAMS else others
    return context.setting("ours", role, difference.config, path)


# --- conditions that a row gives an argument ------------------------------------------------------------------


def key(keys: Sequence[str]) -> Condition:
    """The last part of the path is one of the keys, which may hold what a pattern cannot."""
    return lambda difference, context: difference.path[-1] in (*keys, *(f"[{key}]" for key in keys))


def version(wanted: str) -> Condition:
    return lambda difference, context: context.version == wanted


def unsaid(path: str) -> Condition:
    """The user's values say nothing of the key, or what they say was dropped."""
    return lambda difference, context: not context.release.given_value(path) or context.is_dropped(path)


def said(path: str) -> Condition:
    """The user's values say something of the key, be it null."""

    def holds(difference: Difference, context: Context) -> bool:
        place: Any = context.release.given
        for word in path.split("."):
            if not isinstance(place, Mapping) or word not in place:
                return False
            place = place[word]
        return True

    return holds


def dropped(keys: Sequence[str]) -> Condition:
    """A key, or one below it, was dropped with a warning."""
    return lambda difference, context: any(
        found == key or found.startswith((f"{key}.", f"{key}[")) for found, _ in context.dropped for key in keys
    )


def runs(settings: Mapping[str, Sequence[Any]]) -> Condition:
    """Our program runs with one of these; null where that is not known."""

    def holds(difference: Difference, context: Context) -> bool:
        found = {path: _our_setting(difference, context, path) for path in settings}
        return all((None if found[path] is ABSENT else found[path]) in wanted for path, wanted in settings.items())

    return holds


def beside(fields: Mapping[str, Any]) -> Condition:
    """Both sides have these fields in the same object."""
    return lambda difference, context: all(
        context.fields_of(side, difference).get(tuple(path.split("."))) == value
        for side in ("chart", "ours")
        for path, value in fields.items()
    )


def follows_what_was_dropped(why: str) -> Condition:
    """The user was warned, with these words, of a key whose value the chart's field is made of."""

    def holds(difference: Difference, context: Context) -> bool:
        for found, reason in context.dropped:
            if re.match(why, reason, re.S):
                given = context.release.given_value(found.partition("[")[0])
                if difference.chart in (ABSENT, "{}", "[]") or follows(difference.chart, difference.path[-1], given):
                    return True
        return False

    return holds


# --- conditions -----------------------------------------------------------------------------------------------


def is_alone(difference: Difference, context: Context) -> bool:
    """The other side has no such object at all."""
    return not all(context.fields_of(side, difference) for side in ("chart", "ours"))


def is_profiling(difference: Difference, context: Context) -> bool:
    return difference.path[-1].startswith("DCGM_FI_PROF_")


def has_embedded_configs(difference: Difference, context: Context) -> bool:
    return bool(context.release.configs)


def has_no_pods(difference: Difference, context: Context) -> bool:
    return context.chart.get(_role(difference), "DaemonSet") is context.chart.get(_role(difference), "Deployment")


def shares_not_by_mps(difference: Difference, context: Context) -> bool:
    """None of our configurations does, or an external one would kill config-manager of this release."""
    strategy = context.setting("ours", "plugin", difference.config, "sharing.strategy")
    return strategy in ("none", "time-slicing") or not context.ours.has("mps", "DaemonSet")


def needs_no_sys_admin(difference: Difference, context: Context) -> bool:
    strategies = _our_setting(difference, context, "flags.plugin.deviceListStrategy")
    uses_no_mig = _our_setting(difference, context, "flags.migStrategy") == "none"
    return uses_no_mig and (strategies is ABSENT or "volume-mounts" not in strategies.split(","))


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


def uses_another_nfd(difference: Difference, context: Context) -> bool:
    """The values bring no Node Feature Discovery, and leave the affinity to the chart."""
    is_bundled = any(role.startswith("nfd-") and kind == "DaemonSet" for role, kind in context.chart.objects)
    return not is_bundled and context.release.given.get("affinity", {}) == {}


def is_tegra(difference: Difference, context: Context) -> bool:
    """The chart's term of Tegra boards, where the plugin looks by NVML."""
    strategies = {f.get(("settings", "flags", "deviceDiscoveryStrategy")) for f in context.fields.values()}
    return "cpu-model.vendor_id" in difference.path[-1] and strategies - {None} == {"nvml"}


def is_description(difference: Difference, context: Context) -> bool:
    """Text about a field of a schema, not a field that is called so."""
    return difference.path[-1] == "description" and isinstance(difference.chart, str)


def is_tolerated_by_the_plugin(difference: Difference, context: Context) -> bool:
    sets = [f for (side, role, kind, _), f in context.fields.items() if side == "ours" and role in PROGRAMS]
    return any(difference.path in fields for fields in sets)


def is_tolerated_by_default(difference: Difference, context: Context) -> bool:
    """One of the two that the chart has until the user gives others."""
    toleration = json.loads(difference.path[2][1:-1])
    return "tolerations" in context.release.given and toleration["key"] in ("CriticalAddonsOnly", "nvidia.com/gpu")


def is_covered(difference: Difference, context: Context) -> bool:
    """Ours tolerate the same taint, whatever its value."""
    narrow = json.loads(difference.path[2][1:-1])
    wide = [json.loads(p[2][1:-1]) for p in context.fields_of("ours", difference) if p[:2] == ("pod", "tolerations")]
    return any(
        one["operator"] == "Exists"
        and one.get("key") in (None, narrow.get("key"))
        and one.get("effect") in (None, narrow.get("effect"))
        and "tolerationSeconds" not in one
        for one in wide
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


def profiles_nothing(difference: Difference, context: Context) -> bool:
    """No profiling metric is exported by ours, or a hostengine elsewhere reads the GPUs."""
    exported = [path[1] for path in context.fields_of("ours", difference) if path[0] == "exports"]
    is_profiled = any(name.startswith("DCGM_FI_PROF_") or name == "the list of" for name in exported)
    return not is_profiled or bool(_our_setting(difference, context, "remote-hostengine-info"))


def asks_nobody(difference: Difference, context: Context) -> bool:
    return context.fields_of("ours", difference).get(("pod", "automountServiceAccountToken")) is False


def is_not_read_by_the_chart(difference: Difference, context: Context) -> bool:
    """The chart's own list, which the pods of the chart do not read."""
    fields = context.fields["chart", "exporter", "DaemonSet", None]
    mount = ("pod", "containers", "[exporter]", "mounts", f"[{fields.get(('reads', 'mount'))}]", "configMap")
    from_api = str(fields.get(("reads", "api"), ""))
    return fields.get(mount) != "metrics" and not from_api.endswith(":exporter-metrics-config-map")


def is_not_asked_for(difference: Difference, context: Context) -> bool:
    """A right that the exporter does not use with these settings, or that nothing has."""
    what = difference.path[-1][1:-1].partition(" ")[2]
    flags = {flag: _our_setting(difference, context, f"kubernetes-enable-{flag}") for flag in ("pod-labels", "pod-uid")}
    used = {
        "pods": "true" in flags.values(),
        "resourceslices.resource.k8s.io": _our_setting(difference, context, "kubernetes-enable-dra") == "true",
    }
    return not used.get(what, False)


def is_the_mount_of_the_list(difference: Difference, context: Context) -> bool:
    """Where the chart's pods read their list, or where the chart's own is mounted while another is read."""
    fields, mount = context.fields_of("chart", difference), difference.path[:5]
    return fields.get(("reads", "mount")) == mount[-1][1:-1] or fields.get((*mount, "configMap")) == "metrics"


# --- values ---------------------------------------------------------------------------------------------------


def same_field_of_main(difference: Difference, context: Context) -> Any:
    main = ("pod", "containers", f"[{PROGRAMS[_role(difference)]}]")
    return context.fields_of("ours", difference).get((*main, *difference.path[3:]), ABSENT)


def the_default(difference: Difference, context: Context) -> Any:
    """What a program does where neither file nor environment says."""
    found = default_of(".".join(part.strip("[]") for part in difference.path[1:]), context.version)
    return ABSENT if found is None else found


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
