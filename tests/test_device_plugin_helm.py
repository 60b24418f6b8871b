"""The values of NVIDIA's chart: every key goes where it should, or is refused with the reason."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple

import pytest
import yaml
from cdk8s import App, Testing
from hypothesis import given
from hypothesis import strategies as st

import helm_keys
from gpu_constructs import (
    DevicePluginChart,
    GpuConstructsError,
    GpuConstructsWarning,
    Kubernetes,
    Talos,
    Unverified,
    versions,
)
from gpu_constructs.device_plugin.helm import KEYS, chart_options
from test_properties import assert_house_style, assert_sound, quickly

OLD, MIDDLE, NEW = helm_keys.RELEASES
KUBERNETES = Kubernetes()
PLUGIN, WORKER = "nvdp-nvidia-device-plugin", "nvdp-node-feature-discovery-worker"
GFD, MPS = f"{PLUGIN}-gpu-feature-discovery", f"{PLUGIN}-mps-control-daemon"
CHART_KEYS = [
    path for path in KEYS if not path.startswith("nfd.") or path in ("nfd.enabled", "nfd.enableNodeFeatureApi")
]


def made(values, *, version=NEW, strict=True, release="nvdp", namespace="nvidia", platform=KUBERNETES, scope=None):
    return DevicePluginChart.from_helm_values(
        scope or App(),
        "plugin",
        values,
        release_name=release,
        namespace=namespace,
        version=version,
        platform=platform,
        strict=strict,
    )


def rendered(values, **given):
    """The objects by kind and name."""
    return {(m["kind"], m["metadata"]["name"]): m for m in Testing.synth(made(values, **given))}


def refusal(values, **given):
    with pytest.raises(GpuConstructsError) as refused:
        made(values, **given)
    (line,) = str(refused.value).splitlines()
    path = "plugin: "
    assert line.startswith(path)
    return line.removeprefix(path)


def dropped(values, **given):
    """What is warned of, and what is made all the same."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        objects = rendered(values, strict=False, **given)
    assert {warning.category for warning in caught} <= {GpuConstructsWarning}
    return [str(warning.message) for warning in caught], objects


def nested(path: str, value: Any) -> Any:
    for word in reversed(path.split(".")):
        value = {word: value}
    return value


def laid(*layers: Mapping[str, Any]) -> dict[str, Any]:
    both: dict[str, Any] = {}
    for layer in layers:
        for key, value in layer.items():
            nests = isinstance(value, Mapping) and isinstance(both.get(key), Mapping)
            both[key] = laid(both[key], value) if nests else value
    return both


def pod_of(objects, name=PLUGIN):
    return objects["DaemonSet", name]["spec"]["template"]["spec"]


def container_of(objects, name=PLUGIN):
    return pod_of(objects, name)["containers"][-1]


def config_of(objects, name=f"{PLUGIN}-config"):
    return yaml.safe_load(objects["ConfigMap", name]["data"]["config.yaml"])


BOTH_ON = {"gfd": {"enabled": True}, "nfd": {"enabled": False}}
SHARED = {"config": {"map": {"a": "sharing: {mps: {resources: [{name: nvidia.com/gpu, replicas: 4}]}}"}}}

# --- every key ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("release", helm_keys.RELEASES)
def test_every_key_of_the_charts_values_is_known(release):
    known = helm_keys.known(release)
    strange = [
        leaf
        for leaf in helm_keys.in_values(release)
        if not any(leaf == path or leaf.startswith(f"{path}.") for path in known)
    ]
    assert not strange


@pytest.mark.parametrize("release", helm_keys.RELEASES)
def test_nothing_is_taken_for_a_key_that_the_chart_does_not_have(release):
    leaves = [*helm_keys.in_values(release), *helm_keys.in_templates_only(release)]
    invented = [
        path
        for path in helm_keys.known(release)
        if not any(leaf == path or leaf.startswith(f"{path}.") for leaf in leaves)
    ]
    assert not invented


def test_every_key_goes_somewhere_or_says_why_not():
    assert [path for path, key in KEYS.items() if bool(key.to) == bool(key.why_not)] == []


class Sample(NamedTuple):
    """A value that is not the chart's own, and what must come of it.

    Attributes:
        value: Of the key.
        changes: The objects that differ from those without it: plugin, gfd, mps and config, the ConfigMap.
        shows: What the changed objects hold as YAML, and held nowhere before.
        values: What must be said besides.
    """

    value: Any
    changes: str
    shows: str
    values: Mapping[str, Any] = BOTH_ON


WITH_MPS = laid(BOTH_ON, SHARED)
ALL = "plugin gfd mps"
FILE = "plugin gfd config"
FEATURE = "disable-nvsandbox-utils"
SAMPLES: dict[str, Sample] = {
    "compatWithCPUManager": Sample(True, FILE, "passDeviceSpecs: true"),
    "migStrategy": Sample("mixed", FILE, "migStrategy: mixed"),
    "failOnInitError": Sample(False, FILE, "failOnInitError: false"),
    "deviceListStrategy": Sample("volume-mounts", FILE, "deviceListStrategy: volume-mounts"),
    "deviceIDStrategy": Sample("index", FILE, "deviceIDStrategy: index"),
    "nvidiaDriverRoot": Sample("/opt/driver", FILE, "nvidiaDriverRoot: /opt/driver"),
    "nvidiaDevRoot": Sample("/opt/dev", FILE, "nvidiaDevRoot: /opt/dev"),
    "gdrcopyEnabled": Sample(True, FILE, "gdrcopyEnabled: true"),
    "gdsEnabled": Sample(True, FILE, "gdsEnabled: true"),
    "mofedEnabled": Sample(True, FILE, "mofedEnabled: true"),
    "deviceDiscoveryStrategy": Sample("nvml", FILE, "deviceDiscoveryStrategy: nvml"),
    "noTimestamp": Sample(True, FILE, "noTimestamp: true"),
    "sleepInterval": Sample("2m", FILE, 'sleepInterval: "120s"'),
    "cdi.nvidiaHookPath": Sample("/opt/nvidia-ctk", FILE, "nvidiaCTKPath: /opt/nvidia-ctk"),
    "cdi.featureFlags": Sample(FEATURE, "plugin", f"value: {FEATURE}"),
    "image.repository": Sample("registry.example/plugin", ALL, "image: registry.example/plugin:v", WITH_MPS),
    "image.tag": Sample("v0.19.9", ALL, "image: nvcr.io/nvidia/k8s-device-plugin:v0.19.9", WITH_MPS),
    "image.pullPolicy": Sample("Always", ALL, "imagePullPolicy: Always", WITH_MPS),
    "imagePullSecrets": Sample([{"name": "registry"}], ALL, "- name: registry", WITH_MPS),
    "updateStrategy": Sample({"type": "OnDelete"}, ALL, "type: OnDelete", WITH_MPS),
    "podAnnotations": Sample({"example.com/a": "1"}, ALL, "example.com/a: '1'", WITH_MPS),
    "podSecurityContext": Sample({"runAsGroup": 77}, ALL, "runAsGroup: 77", WITH_MPS),
    "securityContext": Sample({"privileged": True}, "plugin", "privileged: true"),
    "resources": Sample({"limits": {"memory": "77Mi"}}, ALL, "memory: 77Mi", WITH_MPS),
    "nodeSelector": Sample({"pool": "gpu"}, ALL, "pool: gpu", WITH_MPS),
    "affinity": Sample({"podAntiAffinity": {"x": 77}}, ALL, "x: 77", WITH_MPS),
    "tolerations": Sample([{"key": "dedicated", "operator": "Exists"}], ALL, "- key: dedicated", WITH_MPS),
    "priorityClassName": Sample("mine", ALL, "priorityClassName: mine", WITH_MPS),
    "runtimeClassName": Sample("mine", f"{ALL} runtime", "runtimeClassName: mine", WITH_MPS),
    "devicePlugin.enableHostNetwork": Sample(True, "plugin", "hostNetwork: true", WITH_MPS),
    "gfd.securityContext": Sample({"privileged": True}, "gfd", "privileged: true"),
    "gfd.enableHostNetwork": Sample(True, "gfd", "hostNetwork: true", WITH_MPS),
    "mps.root": Sample("/srv/mps", "plugin mps", "path: /srv/mps/shm", WITH_MPS),
    "mps.enableHostPID": Sample(False, "mps", "shareProcessNamespace: true", WITH_MPS),
    "mps.enableHostNetwork": Sample(True, "mps", "hostNetwork: true", WITH_MPS),
}
"""The keys that say one thing about objects that are there anyway."""

ON_THEIR_OWN = {
    "config.name",
    "config.map",
    "config.default",
    "config.fallbackStrategies",
    "nameOverride",
    "fullnameOverride",
    "namespaceOverride",
    "allowDefaultNamespace",
    "devicePlugin.enabled",
    "gfd.enabled",
    "nfd.enabled",
    "global.imagePullSecrets",
}
"""Keys that decide which objects there are, with tests of their own."""

NOWHERE = {
    "selectorLabelsOverride": {"app": "x"},
    "namespace": "x",
    "gfd.nameOverride": "x",
    "gfd.namespaceOverride": "x",
    "gfd.noTimestamp": True,
    "gfd.sleepInterval": "30s",
}
"""Keys that are refused, with a value that says something."""

OF_NO_EFFECT = {"nfd.enableNodeFeatureApi"}
"""Either value is taken: GPU Feature Discovery publishes the same labels by the API as by a file."""


def test_every_key_has_a_test():
    tested = [*SAMPLES, *ON_THEIR_OWN, *NOWHERE, *OF_NO_EFFECT]
    assert sorted(tested) == sorted([*CHART_KEYS])


@cache
def unsaid(with_mps, release):
    return rendered(WITH_MPS if with_mps else BOTH_ON, version=release)


def short(identity: tuple[str, str]) -> str:
    kind, name = identity
    programs = {PLUGIN: "plugin", GFD: "gfd", MPS: "mps", WORKER: "worker"}
    kinds = {"DaemonSet": programs.get(name, name), "ConfigMap": "config", "RuntimeClass": "runtime"}
    return kinds.get(kind, f"{kind} {name}")


def changed(before, after):
    return {identity for identity in {*before, *after} if before.get(identity) != after.get(identity)}


def text_of(manifests):
    """The objects as one text, files of ConfigMaps unwrapped."""
    manifests = list(manifests)
    files = [text for m in manifests if m["kind"] == "ConfigMap" for text in m["data"].values()]
    return "\n".join([*files, yaml.safe_dump_all(manifests, width=1000)])


@pytest.mark.parametrize(
    ("path", "release"),
    [(path, release) for path in SAMPLES for release in KEYS[path].releases or helm_keys.RELEASES],
)
def test_a_key_changes_the_objects_that_it_is_about_and_no_other(path, release):
    sample = SAMPLES[path]
    before = unsaid(sample.values is WITH_MPS, release)
    after = rendered(laid(sample.values, nested(path, sample.value)), version=release)
    differ = changed(before, after)
    assert {short(identity) for identity in differ} == set(sample.changes.split())
    assert sample.shows in text_of(after[identity] for identity in differ)
    assert sample.shows not in text_of(before.values())


@pytest.mark.parametrize("path", NOWHERE)
@pytest.mark.parametrize("release", helm_keys.RELEASES)
def test_a_key_that_goes_nowhere_is_refused_with_the_reason(path, release):
    values = laid(BOTH_ON, nested(path, NOWHERE[path]))
    assert refusal(values, version=release) == f"values.{path} {KEYS[path].why_not}; or pass strict=False to drop it"
    texts, objects = dropped(values, version=release)
    assert texts == [f"values.{path} is dropped: it {KEYS[path].why_not}"]
    assert objects == rendered(BOTH_ON, version=release)


def test_the_reasons_are_these():
    assert {path: KEYS[path].why_not for path in NOWHERE} == {
        "selectorLabelsOverride": "would take away the labels that tell the pods of the programs from each other; "
        "leave it out",
        "namespace": "is refused by the chart too; pass namespace=",
        "gfd.nameOverride": "is never read by the chart; leave it out",
        "gfd.namespaceOverride": "is never read by the chart; leave it out",
        "gfd.noTimestamp": "is never read by the chart; it reads 'noTimestamp'",
        "gfd.sleepInterval": "is never read by the chart; it reads 'sleepInterval'",
    }


@pytest.mark.parametrize(
    ("path", "other"),
    [(path, o) for path, key in KEYS.items() if key.releases for o in helm_keys.RELEASES if o not in key.releases],
)
def test_a_key_of_some_releases_is_refused_in_the_others(path, other):
    assert refusal(nested(path, "x"), version=other) == (
        f"values.{path} is no key of release {other}, which would skip it without a word; leave it out; or pass "
        "strict=False to drop it"
    )


def test_a_release_that_is_not_known_has_the_keys_of_the_one_it_is_like():
    values = laid(BOTH_ON, {"nfd": {"enableNodeFeatureApi": True}})
    objects = rendered(values, version=Unverified("0.18.1", like=OLD))
    assert container_of(objects)["image"] == "nvcr.io/nvidia/k8s-device-plugin:v0.18.1"
    for like in (MIDDLE, NEW):
        assert f"no key of release {like}" in refusal(values, version=Unverified("0.21.0", like=like))


@pytest.mark.parametrize("value", [True, False])
def test_how_features_are_published_cannot_be_chosen_and_says_nothing(value):
    values = laid(BOTH_ON, {"nfd": {"enableNodeFeatureApi": value}})
    assert rendered(values, version=OLD) == rendered(BOTH_ON, version=OLD)


# --- what is wrong -----------------------------------------------------------------------------------------------

TIME_SLICING = "sharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: 4}]}}"


def config(**given):
    return {"config": given}


SKIPPED = "is no key of the chart, which would skip it without a word"
DNS_SUBDOMAIN = "must be a DNS subdomain (DNS labels joined by '.', at most 253 characters)"
PINNED = "image must be pinned as 'repository:tag' or 'repository@sha256:...', never 'latest'"
NAMES = (
    "configs must have names that a node label and a ConfigMap's key can hold (letters, digits, '-', '_', '.', at most "
    "63 characters, letter or digit at both ends)"
)
STRATEGIES = "'envvar', 'volume-mounts', 'cdi-annotations', 'cdi-cri'"
AFFINITIES = "'nodeAffinity', 'podAffinity', 'podAntiAffinity'"


@pytest.mark.parametrize(
    ("values", "path", "problem"),
    [
        ({"deviceListStrategey": "envvar"}, "deviceListStrategey", f"{SKIPPED} (did you mean 'deviceListStrategy'?)"),
        ({"gfd": {"migStrategy": "single"}}, "gfd.migStrategy", f"{SKIPPED} (did you mean 'migStrategy'?)"),
        (
            {"gfd": {"sleepInterval": "30s"}},
            "gfd.sleepInterval",
            "is never read by the chart; it reads 'sleepInterval'",
        ),
        ({"gfd": {"enable": True}}, "gfd.enable", f"{SKIPPED} (did you mean 'gfd.enabled'?)"),
        ({"topologyUpdater": {}}, "topologyUpdater", f"{SKIPPED} (did you mean 'nfd.topologyUpdater'?)"),
        ({"devicePlugin": {"config": {}}}, "devicePlugin.config", f"{SKIPPED} (did you mean 'config'?)"),
        ({"toolkit": {}}, "toolkit", SKIPPED),
        ({7: "x"}, "7", SKIPPED),
        ({"failOnInitError": "true"}, "failOnInitError", "must be true or false, got 'true'; write it without quotes"),
        ({"runtimeClassName": 123}, "runtimeClassName", "must be text, got 123; quote it"),
        ({"migStrategy": True}, "migStrategy", "must be text, got True; quote it"),
        ({"image": {"tag": 1.10}}, "image.tag", "must be text, got 1.1; quote it"),
        ({"deviceListStrategy": ["envvar"]}, "deviceListStrategy", "must be text, got ['envvar']"),
        ({"config": "x"}, "config", "must be a mapping, got 'x': the chart would fail; leave it out"),
        ({"gfd": None}, "gfd", "must be a mapping, got None: the chart would fail; leave it out"),
        (config(map={"a": {}}), "config.map.a", "must be text, got dict: the chart would fail"),
        (config(map={"a": None}), "config.map.a", "must be text, got NoneType: the chart would fail"),
        (config(map={None: "version: v1"}), "config.map.None", "must have a name"),
        (config(map={1: "", "1": ""}, default="1"), "config.map.1", "is given twice; keep one"),
        (
            config(map={"a": ""}, default="b"),
            "config.default",
            "must be a key of config.map ('a'), got 'b': the pods would fail",
        ),
        (
            {"migStrategy": "single", "securityContext": {"runAsUser": 0}},
            "securityContext",
            "lacks capabilities.add SYS_ADMIN, which the configuration needs, got {'runAsUser': 0}",
        ),
    ],
)
def test_what_the_chart_would_not_take_is_refused_with_its_key_or_dropped_alone(values, path, problem):
    assert refusal(values) == f"values.{path} {problem}; or pass strict=False to drop it"
    texts, objects = dropped({**values, "nodeSelector": {"kept": "yes"}})
    assert texts == [f"values.{path} is dropped: it {problem}"]
    assert pod_of(objects)["nodeSelector"] == {"kept": "yes"}


@pytest.mark.parametrize(
    ("values", "path", "problem"),
    [
        (
            {"deviceListStrategy": "envvars"},
            "deviceListStrategy",
            f"flags.plugin.device_list_strategy must be one of {STRATEGIES}; got 'envvars' (did you mean 'envvar'?)",
        ),
        ({"migStrategy": ""}, "migStrategy", "flags.mig_strategy must be one of 'none', 'single', 'mixed'; got ''"),
        (
            {"nvidiaDriverRoot": "yes"},
            "nvidiaDriverRoot",
            "flags.nvidia_driver_root must be an absolute path without '..'; got 'yes'",
        ),
        (
            {"sleepInterval": "60"},
            "sleepInterval",
            "sleepInterval must be a duration with a unit, like '60s' or '1h30m'; got '60'",
        ),
        (
            {"deviceDiscoveryStrategy": "vfio"},
            "deviceDiscoveryStrategy",
            "flags.device_discovery_strategy 'vfio' is for GPU Feature Discovery alone, the plugin refuses it; use "
            "'nvml' or pass device_plugin=False",
        ),
        ({"image": {"repository": "r/plugin", "tag": "latest"}}, "image", f"{PINNED}; got 'r/plugin:latest'"),
        ({"image": {"repository": None}}, "image.repository", "the chart would render nothing there; leave it out"),
        ({"image": {"pullPolicy": ""}}, "image.pullPolicy", "the chart would render nothing there; leave it out"),
        (
            {"nfd": {"image": {"repository": ""}}},
            "nfd.image.repository",
            "the chart would render nothing there; leave it out",
        ),
        ({"podAnnotations": {"rev": 12}}, "podAnnotations", "pod_annotations must hold text, got 12; quote it"),
        (
            {"resources": {"limits": {"nvidia.com/gpu": 1}}},
            "resources.limits['nvidia.com/gpu']",
            "resources['limits']['nvidia.com/gpu'] must not be set here; got 1; leave it out: this "
            "pod needs no GPU of its own, and would take one from the workloads",
        ),
        (
            {"imagePullSecrets": ["registry"]},
            "imagePullSecrets",
            "imagePullSecrets must list mappings like {'name': 'registry'}; got 'registry'",
        ),
        (
            {"affinity": {"nodeAffinty": {}}},
            "affinity",
            f"affinity key must be one of {AFFINITIES}; got 'nodeAffinty' (did you mean 'nodeAffinity'?)",
        ),
        (
            {"tolerations": [{"operator": "Exists", "value": "x"}]},
            "tolerations[0]",
            "toleration.value must be left out with operator 'Exists'; got 'x'",
        ),
        ({"mps": {"root": ""}}, "mps.root", "mps_control_daemon.root must be an absolute path without '..'; got ''"),
        (
            config(map={"a": "version: v1\nflags:\n  migStrategey: single"}),
            "config.map.a",
            "flags.migStrategey: line 3: migStrategey is no key of flags, the plugin would skip it without a word (did "
            "you mean 'migStrategy'?)",
        ),
        (config(map={"A b": "version: v1"}), "config.map.A b", f"{NAMES}; got 'A b'"),
        (
            config(map={"a": "", "A": ""}, default="a"),
            "config.map.A",
            "configs must have names that differ in letters and digits, for the names of their objects; got 'a' and "
            "'A'",
        ),
        (
            config(map={"a": ""}, fallbackStrategies=["single", "first"]),
            "config.fallbackStrategies",
            "config.fallbackStrategies must be one of 'named', 'single', 'empty'; got 'first'",
        ),
        (config(name="Mine"), "config.name", f"config.name {DNS_SUBDOMAIN}; got 'Mine'"),
        ({"fullnameOverride": "A_b"}, "fullnameOverride", f"fullnameOverride {DNS_SUBDOMAIN}; got 'A_b'"),
        ({"nameOverride": "A_b"}, "nameOverride", f"nameOverride {DNS_SUBDOMAIN}; got 'nvdp-A_b'"),
        (
            {"namespaceOverride": "a.b"},
            "namespaceOverride",
            "namespaceOverride must be a DNS label (a-z, 0-9 and '-', at most 63 characters, letter or digit at both "
            "ends); got 'a.b'",
        ),
        ({"runtimeClassName": "a b"}, "runtimeClassName", f"runtimeClassName {DNS_SUBDOMAIN}; got 'a b'"),
        ({"priorityClassName": "a b"}, "priorityClassName", f"priorityClassName {DNS_SUBDOMAIN}; got 'a b'"),
    ],
)
def test_what_we_would_not_take_is_refused_with_its_key_or_dropped_alone(values, path, problem):
    assert refusal(values) == f"values.{path} cannot be taken over: {problem}; or pass strict=False to drop it"
    texts, objects = dropped({**values, "nodeSelector": {"kept": "yes"}})
    assert texts == [f"values.{path} is dropped: it cannot be taken over: {problem}"]
    assert pod_of(objects)["nodeSelector"] == {"kept": "yes"}


@pytest.mark.parametrize(
    ("values", "path", "problem"),
    [
        ({"nodeSelector": {"gpu": True}}, "nodeSelector", "node_selector must hold text, got True; quote it"),
        (
            {"podSecurityContext": {"privileged": True}},
            "podSecurityContext",
            "pod_security_context key must be one of ",
        ),
        ({"cdi": {"featureFlags": "a"}}, "cdi.featureFlags", "device_plugin.cdi_feature_flags"),
        (BOTH_ON | config(map={"a": "flags: {gfd: {oneshot: true}}"}), "config.map.a", "flags.gfd.oneshot must not be"),
    ],
)
def test_what_our_options_refuse_is_the_keys_fault(values, path, problem):
    assert refusal(values).startswith(f"values.{path} cannot be taken over: {problem}")
    (text,), _ = dropped(values)
    assert text.startswith(f"values.{path} is dropped: it cannot be taken over: {problem}")


def test_a_default_of_a_config_map_that_is_there_must_be_a_possible_key():
    values = config(name="mine", default="a b")
    assert refusal(values).startswith("values.config.default cannot be taken over: configs.default must have names ")
    texts, _ = dropped(values)
    assert texts[0].startswith("values.config.default is dropped: it cannot be taken over: configs.default must ")


@pytest.mark.parametrize(
    ("values", "path", "problem"),
    [
        (
            config(map={"a": "flags: {migStrategy: none}"}) | {"migStrategy": "single"},
            "migStrategy",
            "says 'single' and values.config.map.a says 'none' for flags.mig_strategy",
        ),
        (
            config(map={"a": "flags: {mpsRoot: /a}"}),
            "mps.root",
            "says '/run/nvidia/mps' and values.config.map.a says '/a' for flags.mps_root",
        ),
        (
            config(map={"a": "flags: {gfd: {sleepInterval: 30s}}"}) | {"sleepInterval": "1m"},
            "sleepInterval",
            "says '60s' and values.config.map.a says '30s' for flags.gfd.sleep_interval",
        ),
        (
            config(map={"a": "flags: {plugin: {deviceListStrategy: [envvar, cdi-cri]}}"})
            | {"deviceListStrategy": "envvar"},
            "deviceListStrategy",
            "says 'envvar' and values.config.map.a says 'envvar,cdi-cri' for flags.plugin.device_list_strategy",
        ),
    ],
)
def test_a_value_that_contradicts_a_file_is_refused_or_wins_with_a_warning(values, path, problem):
    assert refusal(values) == (
        f"values.{path} {problem}: the chart lets the former win without a word; keep one of them, or pass "
        "strict=False to let it win here too"
    )
    texts, _ = dropped(values)
    assert texts == [f"values.{path} wins: it {problem}"]


@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.parametrize(
    ("values", "problem"),
    [
        (config(name="mine", map={"a": ""}), "values.config takes either name or map, as in the chart; got both"),
        (
            config(map={"a": "", "b": ""}),
            "values.config.default is required, as in the chart, for nodes without a label; name one of 'a', 'b'",
        ),
        (
            config(map={"a": ""}, fallbackStrategies=None),
            "values.config.default is required, as in the chart, for nodes without a label; name one of 'a'",
        ),
        ("config: {}", "values must be a mapping, got 'config: {}'; parse it: yaml.safe_load(text)"),
    ],
)
def test_what_the_chart_itself_refuses_is_refused_either_way(values, problem, strict):
    with pytest.raises(GpuConstructsError) as refused:
        chart_options(
            values,
            release_name="nvdp",
            namespace="nvidia",
            release=versions.DEVICE_PLUGIN[NEW],
            behaves_like=NEW,
            platform=Kubernetes(),
            strict=strict,
        )
    assert str(refused.value) == problem


@pytest.mark.parametrize(
    ("release", "values", "path"),
    [
        (OLD, {"sleepInterval": "infinite"}, "sleepInterval"),
        (OLD, config(map={"a": "flags: {plugin: {sharedDevicesAllocationPolicy: packed}}"}), "config.map.a"),
    ],
)
def test_what_came_with_a_later_release_is_refused_with_its_key(release, values, path):
    assert refusal(values, version=release).startswith(f"values.{path} cannot be taken over: flags.")
    assert "needs release" in refusal(values, version=release)
    (text,), _ = dropped(values, version=release)
    assert text.startswith(f"values.{path} is dropped: it cannot be taken over: flags.")
    rendered(values, version=NEW)


def test_the_rest_of_a_file_is_kept():
    file = f"flags: {{migStrategey: single, failOnInitError: false}}\n{TIME_SLICING}"
    (text,), objects = dropped(config(map={"a": file}))
    assert text.startswith(
        "values.config.map.a is dropped: it cannot be taken over: flags.migStrategey: line 1: migStrategey is no key "
    )
    assert config_of(objects)["flags"] == {"failOnInitError": False}
    assert config_of(objects)["sharing"]["timeSlicing"]["resources"] == [{"name": "nvidia.com/gpu", "replicas": 4}]


def test_a_value_that_no_file_can_stand_is_left_out_of_that_file():
    values = laid(WITH_MPS, {"migStrategy": "mixed"})
    assert refusal(values).startswith(
        "values.migStrategy cannot be taken over: flags.mig_strategy must be 'none' with "
    )
    (text,), objects = dropped(values)
    assert text.startswith("values.migStrategy is dropped: it cannot be taken over: ")
    assert "mps" in config_of(objects)["sharing"]


# --- configurations ----------------------------------------------------------------------------------------------


def test_a_map_of_one_is_the_configuration_of_every_node_without_config_manager():
    objects = rendered(laid(BOTH_ON, config(map={"shared": TIME_SLICING})))
    assert config_of(objects)["sharing"]["timeSlicing"]["resources"] == [{"name": "nvidia.com/gpu", "replicas": 4}]
    assert [c["name"] for c in pod_of(objects)["containers"]] == ["nvidia-device-plugin-ctr"]
    assert "initContainers" not in pod_of(objects)


@pytest.mark.parametrize(
    ("given", "default"),
    [
        ({"default": "b"}, "b"),
        ({"default": "b", "fallbackStrategies": ["named"]}, "b"),
        ({"map": {"default": ""}}, "default"),
        ({"map": {"default": ""}, "fallbackStrategies": ["single", "named"]}, "default"),
        ({"map": {"default": ""}, "fallbackStrategies": ["empty"]}, "empty"),
        ({"fallbackStrategies": ["named", "single", "empty"]}, "empty"),
        ({"map": {"empty": ""}, "fallbackStrategies": ["empty"]}, "empty-fallback"),
    ],
)
def test_the_default_of_several_is_the_one_that_config_manager_would_find(given, default):
    files = {"a": "flags: {migStrategy: single}", "b": TIME_SLICING}
    objects = rendered({"config": laid({"map": files}, given)})
    label = "nvidia.com/device-plugin.config"
    unlabelled = objects["DaemonSet", PLUGIN]["metadata"]["labels"][label]
    assert unlabelled == default
    names = {m["metadata"]["labels"][label] for (kind, _), m in objects.items() if kind == "DaemonSet"}
    assert names == {*files, *given.get("map", {}), default}


def test_a_default_that_is_no_configuration_gives_way_to_the_fallbacks():
    (text,), objects = dropped(config(map={"a": TIME_SLICING}, default="b"))
    assert (
        text == "values.config.default is dropped: it must be a key of config.map ('a'), got 'b': the pods would fail"
    )
    assert "timeSlicing" in config_of(objects)["sharing"]


@pytest.mark.parametrize(
    ("files", "default", "names"),
    [
        ({1: "", 2: ""}, 2, {"1", "2"}),
        ({1: "", "2": ""}, "2", {"1", "2"}),
        ({1.5: "", "b": ""}, "1.5", {"1.5", "b"}),
        ({True: "", False: ""}, "true", {"true", "false"}),
    ],
)
def test_names_of_configurations_that_yaml_takes_for_something_else_are_text(files, default, names):
    objects = rendered(config(map=files, default=default))
    label = "nvidia.com/device-plugin.config"
    selectors = [m["metadata"]["labels"][label] for (k, _), m in objects.items() if k == "DaemonSet"]
    assert {*selectors} == names
    assert selectors[0] == str(default)


def test_values_override_every_file_and_state_no_contradiction_where_a_file_says_the_same():
    files = {"a": "flags: {plugin: {deviceListStrategy: [envvar]}}", "b": "flags: {migStrategy: none}"}
    objects = rendered(laid(config(map=files, default="a"), {"deviceListStrategy": "envvar", "failOnInitError": False}))
    for name in (f"{PLUGIN}-config", f"{PLUGIN}-config-b"):
        flags = config_of(objects, name)["flags"]
        assert flags["failOnInitError"] is False
        assert flags["plugin"]["deviceListStrategy"] in ("envvar", ["envvar"])


def test_a_value_wins_over_a_file_with_a_warning():
    (text,), objects = dropped(laid(config(map={"a": "flags: {migStrategy: none}"}), {"migStrategy": "single"}))
    assert (
        text == "values.migStrategy wins: it says 'single' and values.config.map.a says 'none' for flags.mig_strategy"
    )
    assert config_of(objects)["flags"]["migStrategy"] == "single"


def test_the_root_of_mps_wins_over_a_file_even_unsaid():
    file = f"flags: {{mpsRoot: /a}}\n{SHARED['config']['map']['a']}"
    (text,), objects = dropped(laid(BOTH_ON, config(map={"a": file})))
    assert text.startswith("values.mps.root wins: it says '/run/nvidia/mps' and values.config.map.a says '/a' for ")
    assert "flags" not in config_of(objects)
    assert {"name": "MPS_ROOT", "value": "/run/nvidia/mps"} in container_of(objects)["env"]


def external(**given):
    with pytest.warns(GpuConstructsWarning, match="config-manager takes the default configuration first"):
        return rendered(laid(BOTH_ON, config(name="mine", **given)))


def manager_of(objects):
    return {e["name"]: e.get("value") for e in pod_of(objects)["initContainers"][0]["env"]}


def test_a_config_map_that_is_there_is_read_through_config_manager():
    objects = external()
    assert not any(kind == "ConfigMap" for kind, _ in objects)
    assert {"configMap": {"name": "mine"}, "name": "available-configs"} in pod_of(objects)["volumes"]
    assert manager_of(objects)["FALLBACK_STRATEGIES"] == "named,single"
    assert "DEFAULT_CONFIG" not in manager_of(objects)


def test_its_default_and_fallbacks_are_handed_on():
    environment = manager_of(external(default=2, fallbackStrategies=["empty"]))
    assert (environment["DEFAULT_CONFIG"], environment["FALLBACK_STRATEGIES"]) == ("2", "empty")


def test_values_override_a_config_map_that_is_there():
    with pytest.warns(GpuConstructsWarning):
        objects = rendered(config(name="mine") | {"migStrategy": "single", "gdsEnabled": True})
    environment = {e["name"]: e.get("value") for e in container_of(objects)["env"]}
    assert (environment["MIG_STRATEGY"], environment["GDS_ENABLED"]) == ("single", "true")


@pytest.mark.parametrize(
    ("release", "mps", "is_there"),
    [(NEW, {}, True), (OLD, {}, False), (OLD, {"enableHostPID": False}, True)],
)
def test_a_config_map_that_is_there_may_use_mps_unless_config_manager_would_die_of_it(release, mps, is_there):
    with pytest.warns(GpuConstructsWarning):
        objects = rendered(laid(BOTH_ON, config(name="mine"), {"mps": mps}), version=release)
    assert (("DaemonSet", MPS) in objects) is is_there


@pytest.mark.parametrize(
    ("said", "held"),
    [({}, True), ({"migStrategy": "none"}, True), ({"migStrategy": "none", "deviceListStrategy": "envvar"}, False)],
)
def test_a_config_map_that_is_there_may_use_what_no_value_decides(said, held):
    with pytest.warns(GpuConstructsWarning):
        objects = rendered(config(name="mine") | said)
    assert ("SYS_ADMIN" in container_of(objects)["securityContext"]["capabilities"].get("add", ())) is held
    volumes = [volume["name"] for volume in pod_of(objects)["volumes"]]
    assert ("cdi-root" in volumes) is ("deviceListStrategy" not in said)


# --- as Helm lays them over its defaults -------------------------------------------------------------------------

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def affinity_of(affinity):
    return pod_of(rendered({"affinity": affinity})).get("affinity")


def test_an_affinity_is_laid_over_the_charts():
    gpu = pod_of(rendered({})).get("affinity")
    assert affinity_of({}) == gpu
    own = [{"matchExpressions": [{"key": "gpu", "operator": "Exists"}]}]
    assert affinity_of({"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": own}}}) == {
        "nodeAffinity": {REQUIRED: {"nodeSelectorTerms": own}}
    }
    both = affinity_of({"podAntiAffinity": {"x": 1}})
    assert both["podAntiAffinity"] == {"x": 1}
    keys = [t["matchExpressions"][0]["key"] for t in both["nodeAffinity"][REQUIRED]["nodeSelectorTerms"]]
    assert keys == [
        "feature.node.kubernetes.io/pci-10de.present",
        "feature.node.kubernetes.io/cpu-model.vendor_id",
        "nvidia.com/gpu.present",
    ]


@pytest.mark.parametrize("nothing", [None, [], "", {"nodeAffinity": None}])
def test_a_null_affinity_takes_every_node(nothing):
    assert affinity_of(nothing) is None


def test_an_affinity_without_terms_is_refused():
    assert "must hold nodeSelectorTerms" in refusal(
        {"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": []}}}}
    )
    assert refusal({"affinity": {"nodeAffinity": {REQUIRED: "x"}}}).startswith("values.affinity cannot be taken over: ")


@pytest.mark.parametrize(
    ("given", "held"),
    [
        ({"runAsUser": 0}, {"privileged": True, "runAsUser": 0}),
        ({"privileged": True}, {"privileged": True}),
        ({"privileged": False}, {"privileged": False}),
        ({"privileged": None, "runAsUser": 0}, {"runAsUser": 0}),
    ],
)
def test_the_security_context_of_gpu_feature_discovery_is_laid_over_the_charts(given, held):
    assert container_of(rendered(laid(BOTH_ON, {"gfd": {"securityContext": given}})), GFD)["securityContext"] == held


@pytest.mark.parametrize("nothing", [{}, None, {"privileged": None}])
def test_a_security_context_that_says_nothing_leaves_what_is_needed(nothing):
    values = laid(BOTH_ON, {"securityContext": {}, "migStrategy": "single"})
    values["gfd"] = {**values["gfd"], "securityContext": nothing}
    objects = rendered(values)
    for name in (PLUGIN, GFD):
        assert container_of(objects, name)["securityContext"]["capabilities"] == {"add": ["SYS_ADMIN"], "drop": ["ALL"]}


def test_resources_are_the_users_whole_choice_and_ours_where_they_say_nothing():
    own = {"limits": {"memory": "1Gi"}}
    assert container_of(rendered({"resources": own}))["resources"] == own
    for nothing in ({}, None):
        assert container_of(rendered({"resources": nothing})) == container_of(rendered({}))


def test_tolerations_come_on_top_of_the_two_that_are_always_there():
    ours = [
        {"key": "CriticalAddonsOnly", "operator": "Exists"},
        {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"},
    ]
    own = {"key": "a", "operator": "Exists"}
    assert pod_of(rendered({"tolerations": [own]}))["tolerations"] == [*ours, own]
    for nothing in ([], None, ours):
        assert pod_of(rendered({"tolerations": nothing}))["tolerations"] == ours


def test_tolerations_reach_node_feature_discovery():
    objects = rendered({"gfd": {"enabled": True}, "tolerations": [{"key": "a", "operator": "Exists"}]})
    worker = objects["DaemonSet", "nvdp-node-feature-discovery-worker"]["spec"]["template"]["spec"]
    assert {"key": "a", "operator": "Exists"} in worker["tolerations"]


@pytest.mark.parametrize(
    ("values", "read"),
    [
        ({"priorityClassName": None}, lambda o: pod_of(o).get("priorityClassName")),
        ({"priorityClassName": ""}, lambda o: pod_of(o).get("priorityClassName")),
        ({"devicePlugin": {"enabled": None}} | BOTH_ON, lambda o: o.get(("DaemonSet", PLUGIN))),
        (laid(WITH_MPS, {"mps": {"enableHostPID": None}}), lambda o: pod_of(o, MPS).get("hostPID")),
        (laid(BOTH_ON, {"gfd": {"enabled": None}}), lambda o: o.get(("DaemonSet", GFD))),
    ],
)
def test_null_takes_what_the_chart_has_away(values, read):
    assert read(rendered(values)) is None


def test_null_where_the_chart_has_nothing_says_nothing():
    nothing = dict.fromkeys(("migStrategy", "failOnInitError", "runtimeClassName", "resources", "tolerations"))
    sections = {"image": {"tag": None}, "cdi": {"featureFlags": None}, "config": {"map": None, "name": None}}
    assert rendered({**nothing, **sections}) == rendered({})


def test_a_section_of_node_feature_discovery_with_nothing_in_it_takes_what_nvidias_chart_says_of_it_away():
    objects = rendered({"gfd": {"enabled": True}, "nfd": None})
    assert ("DaemonSet", "nvdp-nfd-worker") in objects
    worker = yaml.safe_load(objects["ConfigMap", "nvdp-nfd-worker-conf"]["data"]["nfd-worker.conf"])
    assert "pci" not in worker["sources"]


DEFAULTS = yaml.safe_load(
    """
    config: {name: "", map: {}, default: "", fallbackStrategies: [named, single]}
    compatWithCPUManager: null
    migStrategy: null
    failOnInitError: null
    deviceListStrategy: null
    deviceIDStrategy: null
    nvidiaDriverRoot: null
    gdrcopyEnabled: null
    gdsEnabled: null
    mofedEnabled: null
    deviceDiscoveryStrategy: null
    nameOverride: ""
    fullnameOverride: ""
    namespaceOverride: ""
    selectorLabelsOverride: {}
    allowDefaultNamespace: false
    imagePullSecrets: []
    image: {repository: nvcr.io/nvidia/k8s-device-plugin, pullPolicy: IfNotPresent, tag: ""}
    updateStrategy: {type: RollingUpdate}
    podAnnotations: {}
    podSecurityContext: {}
    securityContext: {}
    resources: {}
    nodeSelector: {}
    affinity:
      nodeAffinity:
        requiredDuringSchedulingIgnoredDuringExecution:
          nodeSelectorTerms:
            - matchExpressions:
                - {key: feature.node.kubernetes.io/pci-10de.present, operator: In, values: ["true"]}
            - matchExpressions:
                - {key: feature.node.kubernetes.io/cpu-model.vendor_id, operator: In, values: [NVIDIA]}
            - matchExpressions:
                - {key: nvidia.com/gpu.present, operator: In, values: ["true"]}
    tolerations:
      - {key: CriticalAddonsOnly, operator: Exists}
      - {key: nvidia.com/gpu, operator: Exists, effect: NoSchedule}
    priorityClassName: system-node-critical
    runtimeClassName: null
    devicePlugin: {enabled: true}
    gfd:
      enabled: false
      nameOverride: gpu-feature-discovery
      namespaceOverride: ""
      noTimestamp: null
      sleepInterval: null
      securityContext: {privileged: true}
    nfd:
      nameOverride: node-feature-discovery
      master:
        serviceAccount: {name: node-feature-discovery, create: true}
        config: {extraLabelNs: [nvidia.com]}
      worker:
        tolerations:
          - {key: node-role.kubernetes.io/master, operator: Equal, value: "", effect: NoSchedule}
          - {key: nvidia.com/gpu, operator: Equal, value: present, effect: NoSchedule}
        config:
          sources:
            pci: {deviceClassWhitelist: ["02", "03"], deviceLabelFields: [vendor]}
    mps: {root: /run/nvidia/mps, enableHostPID: true}
    cdi: {nvidiaHookPath: null, featureFlags: null}
    """
)
"""What the chart's own values.yaml says."""


@pytest.mark.parametrize("release", helm_keys.RELEASES)
def test_a_copy_of_the_charts_own_values_states_the_affinity_of_the_chart_alone(release):
    values = laid(DEFAULTS, {"nfd": {"enableNodeFeatureApi": False}} if release == OLD else {})
    stated, unsaid = rendered(values, version=release), rendered({}, version=release)
    assert pod_of(stated).pop("affinity") == DEFAULTS["affinity"]
    del pod_of(unsaid)["affinity"]
    assert stated == unsaid


def test_stated_defaults_of_node_and_gpu_feature_discovery_are_said():
    stated, unsaid = rendered(laid(DEFAULTS, {"gfd": {"enabled": True}})), rendered({"gfd": {"enabled": True}})
    assert container_of(stated, GFD)["securityContext"] == {"privileged": True}
    assert {short(identity) for identity in changed(unsaid, stated)} == {
        "plugin",
        "gfd",
        "worker",
        "ServiceAccount node-feature-discovery",
        "ServiceAccount nvdp-node-feature-discovery-master",
        "ClusterRoleBinding nvdp-node-feature-discovery-master",
        "Deployment nvdp-node-feature-discovery-master",
    }


# --- which objects, and where ------------------------------------------------------------------------------------


def daemonsets(values, **given):
    return {name for kind, name in rendered(values, **given) if kind == "DaemonSet"}


@pytest.mark.parametrize(
    ("values", "names"),
    [
        ({}, {PLUGIN}),
        (BOTH_ON, {PLUGIN, GFD}),
        (WITH_MPS, {PLUGIN, GFD, MPS}),
        ({"gfd": {"enabled": True}}, {PLUGIN, GFD, WORKER}),
        ({"gfd": {"enabled": True}, "nfd": {"enabled": None}}, {PLUGIN, GFD, WORKER}),
        ({"nfd": {"enabled": True}}, {PLUGIN, WORKER}),
        ({"devicePlugin": {"enabled": False}} | BOTH_ON, {GFD}),
    ],
)
def test_the_programs_are_turned_on_as_in_the_chart(values, names):
    assert daemonsets(values) == names


@pytest.mark.parametrize(
    ("release", "values", "plugin"),
    [
        ("nvdp", {}, PLUGIN),
        ("nvidia-device-plugin", {}, "nvidia-device-plugin"),
        ("prod-nvidia-device-plugin-eu", {}, "prod-nvidia-device-plugin-eu"),
        ("gpu.plugin.v1", {}, "gpu.plugin.v1-nvidia-device-plugin"),
        ("nvdp", {"nameOverride": "plugin"}, "nvdp-plugin"),
        ("my-plugin-x", {"nameOverride": "plugin"}, "my-plugin-x"),
        ("nvdp", {"fullnameOverride": "gpu"}, "gpu"),
        ("abcdefghijklmnopqrstuvwxyz-abcdefghijklmnopqrstuvw-xy", {}, "abcdefghijklmnopqrstuvwxyz-abcdefghijklmn"),
        ("nvdp", {"fullnameOverride": "a" * 40 + "-b"}, "a" * 40),
    ],
)
def test_names_are_the_charts_shortened_for_what_stands_behind(release, values, plugin):
    objects = rendered(laid(WITH_MPS, values), release=release)
    suffixes = ("", "-gpu-feature-discovery", "-mps-control-daemon")
    assert {n for k, n in objects if k == "DaemonSet"} == {f"{plugin}{suffix}" for suffix in suffixes}
    assert {m["metadata"]["labels"]["app.kubernetes.io/instance"] for m in objects.values() if "spec" in m} == {release}


def test_names_leave_room_for_the_longest_name_of_a_configuration():
    files = {"a": "", "a-configuration-for-the-big-ones": ""}
    objects = rendered(laid(BOTH_ON, config(map=files, default="a"), {"fullnameOverride": "n" * 63}))
    names = [name for kind, name in objects if kind == "DaemonSet"]
    assert max(map(len, names)) == 63
    assert len(names) == 4


@pytest.mark.parametrize(
    "release", ["a", "123", "gpu.plugin.v1", "a" * 53, "a" * 41 + "." + "b" * 10, "node-feature-discovery"]
)
@pytest.mark.parametrize("override", [{}, {"fullnameOverride": "x" * 70}, {"nfd": {"fullnameOverride": "y.z" * 25}}])
def test_no_name_is_too_long_for_the_labels_of_its_pods(release, override):
    on = {"gfd": {"enabled": True}, "nfd": {"topologyUpdater": {"enable": True}}}
    objects = rendered(laid(on, SHARED, override), release=release)
    names = [name for kind, name in objects if kind in ("DaemonSet", "Deployment")]
    assert len(names) == 7
    assert all(len(name) <= 63 for name in names)


def test_a_release_name_that_helm_refuses_is_refused():
    assert refusal({}, release="a" * 54) == (
        f"release_name must have at most 53 characters, as Helm has it; got '{'a' * 54}'"
    )


def test_the_namespace_is_the_releases_or_the_one_that_overrides_it():
    assert {m["metadata"]["namespace"] for m in rendered({}).values() if m["kind"] == "DaemonSet"} == {"nvidia"}
    objects = rendered({"namespaceOverride": "gpu", "gfd": {"enabled": True}})
    where = {name: m["metadata"]["namespace"] for (kind, name), m in objects.items() if kind == "DaemonSet"}
    assert where == {PLUGIN: "gpu", GFD: "gpu", WORKER: "nvidia"}
    assert {name for kind, name in objects if kind == "Namespace"} == {"gpu", "nvidia"}


def test_the_default_namespace_is_taken_where_the_chart_takes_it():
    assert "must not be 'default'" in refusal({}, namespace="default")
    for values, namespace in (
        ({"allowDefaultNamespace": True}, "default"),
        ({"namespaceOverride": "default"}, "nvidia"),
    ):
        assert rendered(values, namespace=namespace)["DaemonSet", PLUGIN]["metadata"]["namespace"] == "default"


def test_an_image_by_digest_is_put_together_as_the_chart_does():
    digest = "0123456789abcdef" * 4
    image = {"repository": "nvcr.io/nvidia/k8s-device-plugin@sha256", "tag": digest}
    assert container_of(rendered({"image": image}))["image"] == f"nvcr.io/nvidia/k8s-device-plugin@sha256:{digest}"


def test_feature_flags_of_cdi_are_words_between_commas():
    values = {"cdi": {"featureFlags": f" {FEATURE}, ,"}}
    assert {"name": "CDI_FEATURE_FLAGS", "value": FEATURE} in container_of(rendered(values))["env"]


def test_the_platform_says_what_values_cannot():
    objects = rendered({}, platform=Talos("1.12"))
    assert pod_of(objects)["runtimeClassName"] == "nvidia"
    assert rendered({"runtimeClassName": "other"}, platform=Talos("1.12"))["RuntimeClass", "other"]


def test_global_pull_secrets_are_node_feature_discoverys_as_in_the_chart():
    objects = rendered({"gfd": {"enabled": True}, "global": {"imagePullSecrets": [{"name": "registry"}]}})
    secrets = {
        name: m["spec"]["template"]["spec"].get("imagePullSecrets")
        for (k, name), m in objects.items()
        if k == "DaemonSet"
    }
    assert secrets == {PLUGIN: None, GFD: None, WORKER: [{"name": "registry"}]}


@pytest.mark.parametrize("release", helm_keys.RELEASES)
def test_a_chart_with_everything_on_passes_the_invariants(release, objects):
    values = laid(
        WITH_MPS,
        {sample_path: SAMPLES[sample_path].value for sample_path in ("podAnnotations", "tolerations", "resources")},
        {"nfd": {"enabled": True, "topologyUpdater": {"enable": True}}},
    )
    assert len(objects(made(values, version=release))) > 20


# --- whatever is said --------------------------------------------------------------------------------------------

ANYTHING: list[Any] = [
    *(
        None,
        True,
        False,
        0,
        1,
        -1,
        2.5,
        2**40,
        "",
        "x",
        "A b",
        "a/b",
        "-",
        "a" * 70,
        "..",
        "/",
        "/x",
        "%",
        ",",
        "\n",
        "ä",
    ),
    *("envvar", "envvars", "cdi-cri,envvar", "infinite", "60", "10ms", "vfio", "none", "single", "2024-01-01"),
    *(
        [],
        ["x"],
        [1],
        [None],
        [{}],
        [{"name": "x"}],
        [{"name": 1}],
        [{"key": "a", "value": True}],
        ["named"],
        ["empty"],
    ),
    *({}, {"a": "b"}, {"a": 1}, {"a": None}, {1: "x"}, {"type": None}, {"type": "OnDelete"}, {"rollingUpdate": 5}),
    *({"nodeAffinity": None}, {"nodeAffinity": "x"}, {"privileged": True}, {"capabilities": {"add": "x"}}),
    *({"limits": {"memory": "1x"}}, {"limits": None}, {"a": "version: v1"}, {"A b": ""}, {"a": TIME_SLICING}),
    *({"a": "flags: {migStrategy: mixed}\n" + SHARED["config"]["map"]["a"]}, {"a": "- b"}, {"a": "\t{"}),
]
"""Values for any key, right for some and wrong for most."""

values_of_one_key = st.sampled_from(CHART_KEYS).flatmap(
    lambda path: st.builds(nested, st.just(path), st.sampled_from(ANYTHING))
)
strange_keys = st.sampled_from([{"migStrategey": "x"}, {1: 2}, {"gfd": {"enable": 1}}, {"nfd": "on"}, {"a.b": {}}])
documents = st.lists(st.one_of(values_of_one_key, strange_keys), max_size=4).map(lambda layers: laid(BOTH_ON, *layers))


@quickly
@given(values=documents, release=st.sampled_from(helm_keys.RELEASES), strict=st.booleans())
def test_any_values_become_sound_objects_or_are_refused_in_the_house_style(values, release, strict):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            manifests = Testing.synth(made(values, version=release, strict=strict))
        except GpuConstructsError as error:
            assert_house_style(error, error.path)
            return
    for manifest in manifests:
        assert_sound(manifest)


@pytest.mark.parametrize("path", CHART_KEYS)
def test_one_bad_key_is_never_in_the_way_when_not_strict(path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for value in ANYTHING[CHART_KEYS.index(path) % 5 :: 5]:
            release = NEW if NEW in (KEYS[path].releases or (NEW,)) else OLD
            made(laid(BOTH_ON, nested(path, value)), version=release, strict=False)
