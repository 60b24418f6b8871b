import sys
import warnings
from dataclasses import replace
from functools import cache
from pathlib import Path

import cdk8s_plus_27 as kplus
import pytest
import yaml
from cdk8s import ApiObject, App, Chart, Testing

import refusals
from gpu_constructs import (
    Configs,
    DevicePluginChart,
    External,
    Flags,
    GpuConstructsError,
    GpuConstructsWarning,
    GpuFeatureDiscovery,
    Kubernetes,
    NodeFeatureDiscovery,
    NvidiaRuntimeClass,
    PluginConfig,
    Sharing,
    SynthesisError,
    Talos,
    Toleration,
    Unverified,
    synthesize,
)
from gpu_constructs.catalog import versions
from gpu_constructs.facts.provided import GpuOffer
from gpu_constructs.feature_discovery.node_feature_discovery import NfdMaster
from refusals import refusal
from tables import beside, cases

NAME = "nvidia-device-plugin"
GFD = "nvidia-device-plugin-gpu-feature-discovery"
MPS = "nvidia-device-plugin-mps-control-daemon"
WORKER = "nvidia-device-plugin-node-feature-discovery-worker"
TAINT = Toleration(key="dedicated", value="ai", effect="NoSchedule")
ALONE = {"node_feature_discovery": False, "gpu_feature_discovery": False}
CDI = ["cdi-cri", "cdi-annotations"]
BESIDE = {"node_feature_discovery": "external", "platform": Kubernetes()}
LABEL = "nvidia.com/device-plugin.config"
NAMED = Configs.named({"a": PluginConfig()}, default="a")
WITHOUT_LABELS = NodeFeatureDiscovery(master=NfdMaster(config={"restrictions": {"denyNodeFeatureLabels": True}}))


ROOTED = Flags(nvidia_driver_root="/usr/local", nvidia_dev_root="/")
DRIVEN = PluginConfig(flags=Flags(nvidia_driver_root="/usr/local"))


def plugin(app=None, **given):
    return DevicePluginChart(app or App(), NAME, **given)


def alone(app=None, **given):
    return plugin(app, **{**ALONE, **given})


def rendered(**given):
    return Testing.synth(alone(**given))


@cache
def default():
    """Return the objects of the chart without options. Tests must not change them."""
    return Testing.synth(plugin())


def find(manifests, kind, name=NAME):
    (found,) = (m for m in manifests if m["kind"] == kind and m["metadata"]["name"] == name)
    return found


def kinds(manifests):
    return [manifest["kind"] for manifest in manifests]


def pod(manifests, name=NAME):
    return find(manifests, "DaemonSet", name)["spec"]["template"]["spec"]


def container(manifests, name=NAME):
    (only,) = pod(manifests, name)["containers"]
    return only


def config(manifests):
    return yaml.safe_load(find(manifests, "ConfigMap", f"{NAME}-config")["data"]["config.yaml"])


def affinity_terms(manifests, name=NAME):
    node_affinity = pod(manifests, name)["affinity"]["nodeAffinity"]
    terms = node_affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    return [expression for term in terms for expression in term["matchExpressions"]]


def without_definitions(manifests):
    """Return the objects without CRDs, which come from a file and are too long for a snapshot."""
    return [manifest for manifest in manifests if manifest["kind"] != "CustomResourceDefinition"]


# --- whole renderings --------------------------------------------------------


@pytest.mark.parametrize("version", ["0.18.2", "0.19.3", "0.20.0"])
def test_time_slicing_on_talos_with_both_discoveries(version, objects, snapshot):
    sharing = Sharing.time_slicing(replicas=5)
    manifests = objects(plugin(version=version, sharing=sharing, tolerations=[TAINT]))
    assert without_definitions(manifests) == snapshot


@pytest.mark.filterwarnings("ignore:.*passes GDS")
def test_a_release_renders_the_objects_of_the_last_release_with_the_same_facts(objects):
    def rendered(version):
        external = {"node_feature_discovery": "external", "gpu_feature_discovery": True}
        text = yaml.safe_dump(
            objects(plugin(App(), version=version, sharing=Sharing.time_slicing(replicas=5), **external))
        )
        return text.replace(version, "VERSION")

    for version in versions.DEVICE_PLUGIN:
        line = "0.18.2" if versions.comparable(version) < versions.comparable("0.19") else "0.19.3"
        assert rendered(version) == rendered(line), version


def test_the_plugin_alone_on_plain_kubernetes(objects, snapshot):
    chart = alone(platform=Kubernetes(), namespace="nvidia-device-plugin", fail_on_init_error=False)
    assert objects(chart) == snapshot


@pytest.mark.parametrize("strategy", ["single", "mixed"])
@cases
def test_mig(strategy, platform, objects, snapshot):
    chart = plugin(mig_strategy=strategy, platform=platform, node_feature_discovery="external")
    assert objects(chart) == snapshot


@pytest.mark.parametrize("version", ["0.18.2", "0.20.0"])
def test_mps(version, objects, snapshot):
    assert objects(plugin(sharing=Sharing.mps(replicas=4), version=version, **BESIDE)) == snapshot


FILES = beside(__file__, "device_plugin_chart")["files"]


def test_several_named_configurations(objects, snapshot):
    config = Configs.named(FILES, default="plain")
    chart = plugin(config=config, platform=Talos("1.13"), node_feature_discovery="external")
    assert objects(chart) == snapshot


def test_several_configurations_by_config_manager(objects, snapshot):
    with pytest.warns(GpuConstructsWarning, match="config-manager"):
        chart = plugin(config=Configs.managed(FILES, default="plain"), **BESIDE)
    assert objects(chart) == snapshot


def test_an_external_config_map(objects, snapshot, keywords):
    config = Configs.external("theirs", **keywords)
    with pytest.warns(GpuConstructsWarning, match="config-manager"):
        chart = plugin(config=config, platform=Talos("1.13"), node_feature_discovery="external")
    assert objects(chart) == snapshot


def test_gpu_feature_discovery_alone(objects, snapshot):
    assert objects(plugin(device_plugin=False, platform=Talos("1.13"), node_feature_discovery="external")) == snapshot


def test_external_node_feature_discovery(objects, snapshot):
    assert objects(plugin(node_feature_discovery="external")) == snapshot


def test_cdi_on_talos_1_13(objects, snapshot):
    assert objects(alone(platform=Talos("1.13"), device_list_strategy=CDI)) == snapshot


def test_cdi_on_plain_kubernetes(objects, snapshot):
    assert objects(alone(platform=Kubernetes(), device_list_strategy="cdi-annotations")) == snapshot


def test_volume_mounts_need_sys_admin(objects, snapshot):
    assert objects(alone(device_list_strategy="volume-mounts", platform=Kubernetes())) == snapshot


def test_vgpu_discovery_needs_a_privileged_container(objects, snapshot):
    chart = plugin(gpu_feature_discovery=GpuFeatureDiscovery(vgpu=True), device_plugin=False, **BESIDE)
    assert objects(chart) == snapshot


EVERYTHING = beside(__file__, "device_plugin_chart")["everything"]


def test_all_options_of_the_pods(objects, snapshot):
    assert objects(plugin(**EVERYTHING)) == snapshot


# --- which objects -----------------------------------------------------------


def test_the_main_object_is_the_daemonset_of_the_plugin_or_of_gpu_feature_discovery():
    chart = alone(config=Configs.named({"a": PluginConfig(), "b": PluginConfig()}, default="b"))
    assert chart.api_object.name == ApiObject.of(chart).name == NAME
    chart = plugin(device_plugin=False, node_feature_discovery="external")
    assert (chart.api_object.kind, chart.api_object.name) == ("DaemonSet", GFD)


@pytest.mark.filterwarnings("ignore::gpu_constructs.GpuConstructsWarning")
def test_the_main_object_of_a_chart_without_pods_is_its_first_one_or_an_error():
    assert alone(device_plugin=False).api_object.kind == "Namespace"
    chart = alone(device_plugin=False, platform=Kubernetes(), namespace="kube-system")
    assert Testing.synth(chart) == []
    with pytest.raises(GpuConstructsError) as refused:
        _ = chart.api_object
    assert str(refused.value) == "nvidia-device-plugin: this chart emits no object"


def test_service_accounts_and_roles_precede_the_pods_that_use_them():
    manifests = default()
    assert kinds(manifests)[:2] == ["Namespace", "RuntimeClass"]
    position = {(m["kind"], m["metadata"]["name"]): index for index, m in enumerate(manifests)}
    for kind in ("ServiceAccount", "Role", "RoleBinding"):
        assert position[kind, GFD] < position["DaemonSet", GFD]
        assert position[kind, WORKER] < position["DaemonSet", WORKER]


def test_without_gpu_feature_discovery_all_other_objects_stay():
    with_it, without = default(), Testing.synth(plugin(gpu_feature_discovery=False))
    missing = [m for m in with_it if m not in without]
    assert [(m["kind"], m["metadata"]["name"]) for m in missing] == [
        ("ServiceAccount", GFD),
        ("Role", GFD),
        ("RoleBinding", GFD),
        ("DaemonSet", GFD),
    ]


def test_without_the_plugin_there_is_no_mps_daemon():
    manifests = Testing.synth(plugin(device_plugin=False, sharing=Sharing.mps(replicas=4), **BESIDE))
    assert [m["metadata"]["name"] for m in manifests if m["kind"] == "DaemonSet"] == [GFD]


@pytest.mark.filterwarnings("ignore::gpu_constructs.GpuConstructsWarning")
def test_only_config_manager_has_an_account_and_reads_nodes(rows):
    for config, accounts in rows:
        manifests = Testing.synth(plugin(config=config, **BESIDE))
        assert [m["metadata"]["name"] for m in manifests if m["kind"] == "ServiceAccount"] == accounts
        readers = [m["metadata"]["name"] for m in manifests if m["kind"] == "ClusterRole"]
        assert readers == [name for name in accounts if len(accounts) > 1]
        assert pod(manifests)["automountServiceAccountToken"] is (NAME in accounts)
        assert pod(manifests).get("serviceAccountName") == (NAME if NAME in accounts else None)


@pytest.mark.parametrize(("version", "nfd"), [("0.18.2", "0.17.3"), ("0.19.3", "0.17.3"), ("0.20.0", "0.19.0")])
def test_a_release_of_the_plugin_decides_those_of_the_discoveries(version, nfd):
    manifests = Testing.synth(plugin(version=version))
    assert container(manifests)["image"] == f"nvcr.io/nvidia/k8s-device-plugin:v{version}"
    assert container(manifests, GFD)["image"] == f"nvcr.io/nvidia/k8s-device-plugin:v{version}"
    assert container(manifests, WORKER)["image"] == f"registry.k8s.io/nfd/node-feature-discovery:v{nfd}"
    definitions = [m["metadata"]["name"] for m in manifests if m["kind"] == "CustomResourceDefinition"]
    assert definitions == [f"node{thing}.nfd.k8s-sigs.io" for thing in ("features", "featuregroups", "featurerules")]


def test_an_unverified_release_renders_like_the_named_one():
    assert rendered() == rendered(version="0.20.0")
    manifests = rendered(version=Unverified("0.20.1", like="0.20.0"))
    assert container(manifests)["image"] == "nvcr.io/nvidia/k8s-device-plugin:v0.20.1"
    labels = find(manifests, "DaemonSet")["metadata"]["labels"]
    assert labels["app.kubernetes.io/version"] == "0.20.1"


# --- namespace and runtime class of the caller ---------------------------------


def test_the_chart_uses_an_existing_namespace(app):
    for given in (
        {"namespace": kplus.Namespace(Chart(app, "base"), "namespace")},
        {"namespace": "kube-system"},
        {"namespace": "default", "allow_default_namespace": True, "platform": Kubernetes()},
    ):
        name = getattr(given["namespace"], "name", given["namespace"])
        manifests = Testing.synth(plugin(**given))
        assert "Namespace" not in kinds(manifests)
        assert {m["metadata"]["namespace"] for m in manifests if "namespace" in m["metadata"]} == {name}


def test_the_chart_uses_an_existing_runtime_class(app):
    runtime_class = NvidiaRuntimeClass(Chart(app, "base"), "runtime-class", name="gpu-runtime")
    manifests = Testing.synth(plugin(app, runtime_class=runtime_class))
    assert "RuntimeClass" not in kinds(manifests)
    assert pod(manifests)["runtimeClassName"] == pod(manifests, GFD)["runtimeClassName"] == "gpu-runtime"


def test_on_talos_the_namespace_default_does_not_allow_the_pods(app):
    plugin(app, namespace="default", allow_default_namespace=True)
    with pytest.raises(SynthesisError) as refused:
        synthesize(app)
    assert "namespace 'default' sets no Pod Security level, so 'baseline' applies" in str(refused.value)


def test_the_chart_creates_a_separate_namespace_for_node_feature_discovery(app):
    chart = plugin(app, node_feature_discovery=NodeFeatureDiscovery(namespace="nfd"))
    manifests = Testing.synth(chart)
    assert [m["metadata"]["name"] for m in manifests if m["kind"] == "Namespace"] == ["nvidia-gpu-operator", "nfd"]
    homes = {m["metadata"]["namespace"] for m in manifests if m["kind"] == "Deployment"}
    assert homes == {"nfd"}


# --- platforms ---------------------------------------------------------------


def test_talos_is_the_default():
    assert rendered() == rendered(platform=Talos("1.12"))


@cases
def test_tegra_nodes_are_selected_if_the_discovery_can_find_their_gpus(given, is_possible):
    terms = affinity_terms(Testing.synth(plugin(**{**BESIDE, **given})))
    tegra = {"key": "feature.node.kubernetes.io/cpu-model.vendor_id", "operator": "In", "values": ["NVIDIA"]}
    assert (tegra in terms) is is_possible


def test_the_users_affinity_replaces_the_default_and_an_empty_one_selects_all_nodes():
    own = {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []}}
    assert pod(Testing.synth(plugin(affinity=own, **BESIDE)))["affinity"] == own
    assert "affinity" not in pod(Testing.synth(plugin(affinity={}, **BESIDE)))


def test_several_configurations_add_to_the_users_affinity():
    config = Configs.named({"a": PluginConfig(), "b": PluginConfig()}, default="a")
    terms = affinity_terms(rendered(affinity={}, config=config), f"{NAME}-b")
    assert terms == [{"key": LABEL, "operator": "In", "values": ["b"]}]


# --- what every keyword does -------------------------------------------------


def test_tolerations_apply_to_the_plugin_and_both_discoveries():
    manifests = Testing.synth(plugin(tolerations=[TAINT]))
    gpu_taint = {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}
    pods = [m["spec"]["template"]["spec"] for m in manifests if m["kind"] in ("DaemonSet", "Deployment")]
    assert len(pods) == 5
    for spec in pods:
        assert TAINT.to_manifest() in spec["tolerations"]
        assert gpu_taint in spec["tolerations"]


def test_a_node_selector_applies_to_the_plugin_and_gpu_feature_discovery():
    manifests = Testing.synth(plugin(node_selector={"pool": "gpu"}))
    assert pod(manifests)["nodeSelector"] == pod(manifests, GFD)["nodeSelector"] == {"pool": "gpu"}
    assert "nodeSelector" not in pod(manifests, WORKER)


def test_options_of_all_pods_do_not_apply_to_node_feature_discovery(keywords):
    shared = keywords
    told, untold = Testing.synth(plugin(**shared)), default()
    changed = [m["metadata"]["name"] for m, before in zip(told, untold, strict=True) if m != before]
    assert changed == [NAME, GFD]


def test_pods_of_two_configurations_never_share_a_node():
    manifests = Testing.synth(plugin(config=Configs.named(FILES, default="plain"), **BESIDE))
    pods = {m["metadata"]["name"]: m["spec"]["template"] for m in manifests if m["kind"] == "DaemonSet"}

    def excluded(name):
        """Return the DaemonSets whose pods cannot run on a node with those of another one."""
        rules = pods[name]["spec"]["affinity"].get("podAntiAffinity", {})
        found = set()
        for term in rules.get("requiredDuringSchedulingIgnoredDuringExecution", ()):
            assert term["topologyKey"] == "kubernetes.io/hostname"
            (component,) = term["labelSelector"]["matchExpressions"]
            assert component["operator"] == "In"
            for other, template in pods.items():
                labels = template["metadata"]["labels"]
                is_meant = term["labelSelector"]["matchLabels"].items() <= labels.items()
                found |= {other} if is_meant and labels[component["key"]] in component["values"] else set()
        return found

    plugins = {NAME, f"{NAME}-mps-4", f"{NAME}-split"}
    for name in plugins:
        assert excluded(name) == plugins - {name}
    assert excluded(GFD) == set()


def test_the_users_anti_affinity_stays_with_several_configurations():
    own = {"labelSelector": {"matchLabels": {"app": "mine"}}, "topologyKey": "kubernetes.io/hostname"}
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    manifests = rendered(
        config=Configs.named(FILES, default="plain"),
        platform=Kubernetes(),
        affinity={"podAntiAffinity": {required: [own]}},
    )
    assert pod(manifests)["affinity"]["podAntiAffinity"][required][0] == own
    assert len(pod(manifests)["affinity"]["podAntiAffinity"][required]) == 2


READ = yaml.safe_load((Path(__file__).parent / "variables.yaml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("version", ["0.18.2", "0.20.0"])
@cases
def test_each_program_gets_only_variables_that_it_reads(given, version):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GpuConstructsWarning)
        manifests = Testing.synth(plugin(**given, version=version, node_feature_discovery="external"))
    for manifest in manifests:
        for one in manifest["spec"]["template"]["spec"]["containers"] if manifest["kind"] == "DaemonSet" else ():
            if one["name"] in READ:
                assert {entry["name"] for entry in one["env"]} <= {*READ[one["name"]], *READ["all"]}


@pytest.mark.parametrize(
    ("given", "root"),
    [
        ({"device_list_strategy": "cdi-cri"}, "/"),
        ({"device_list_strategy": "cdi-annotations", "platform": Talos("1.14")}, "/"),
        # Device specs contain device nodes below the same root.
        ({"config": PluginConfig(flags=Flags(nvidia_driver_root="/usr/local"))}, "/"),
        ({"config": Configs.external("theirs", default="a", may_use=["cdi"])}, "/"),
        ({"config": Configs.managed({"a": DRIVEN, "b": replace(DRIVEN, flags=ROOTED)}, default="a")}, "/"),
        # A value of the user has priority. For other roots, the plugin uses its default, the driver root.
        ({"config": PluginConfig(flags=Flags(nvidia_driver_root="/usr/local", nvidia_dev_root="/host"))}, None),
        ({"config": PluginConfig(flags=Flags(nvidia_driver_root="/run/nvidia/driver"))}, None),
        ({"platform": Kubernetes(), "device_list_strategy": "cdi-cri"}, None),
        ({}, None),
    ],
)
def test_the_device_root_differs_from_a_driver_root_without_device_nodes(given, root):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GpuConstructsWarning)
        manifests = rendered(**{"platform": Talos("1.13"), **given})
    (main,) = [one for one in pod(manifests)["containers"] if one["name"] == "nvidia-device-plugin-ctr"]
    assert {entry["name"]: entry.get("value") for entry in main["env"]}.get("NVIDIA_DEV_ROOT") == root


# --- the configuration file ----------------------------------------------------


def test_a_changed_file_changes_the_checksum_and_no_name():
    four, five = (Testing.synth(plugin(sharing=Sharing.time_slicing(replicas=n))) for n in (4, 5))
    names = [[(m["kind"], m["metadata"]["name"]) for m in manifests] for manifests in (four, five)]
    assert names[0] == names[1]
    for name in (NAME, GFD):
        first, second = (find(m, "DaemonSet", name)["spec"]["template"]["metadata"] for m in (four, five))
        assert first["annotations"] != second["annotations"]
        assert first["labels"] == second["labels"]
    assert find(four, "DaemonSet", WORKER) == find(five, "DaemonSet", WORKER)


# --- least privilege -----------------------------------------------------------


# --- what it says to the cluster checks ------------------------------------------


def test_the_chart_declares_the_labels_of_its_discoveries():
    assert "nvidia.com/gpu.product" in plugin().provides.node_labels
    assert "nvidia.com/gpu.product" not in plugin(gpu_feature_discovery=False).provides.node_labels
    assert plugin().provides.publishes("nvidia.com/gpu.present")
    assert plugin(node_feature_discovery="external").provides.publishes("nvidia.com/gpu.present")
    assert not alone().provides.publishes("nvidia.com/gpu.present")


def test_mixed_mig_also_advertises_a_resource_for_each_profile():
    sharing = Sharing.time_slicing(replicas=2)
    assert alone(mig_strategy="mixed", sharing=sharing).provides.gpu_resources == {
        "nvidia.com/gpu": sharing,
        "nvidia.com/mig-*": Sharing.none(),
    }
    assert alone(mig_strategy="single").provides.gpu_resources == {"nvidia.com/gpu": Sharing.none()}


def test_the_label_of_a_configuration_counts_as_published_if_there_are_several():
    assert (
        LABEL
        in alone(config=Configs.named({"a": PluginConfig(), "b": PluginConfig()}, default="a")).provides.node_labels
    )
    assert LABEL not in alone(config=PluginConfig()).provides.node_labels
    with pytest.warns(GpuConstructsWarning):
        assert LABEL in alone(config=Configs.external("theirs")).provides.node_labels


def test_different_nodes_together_advertise_all_their_resources():
    strict, lenient = (
        Sharing.time_slicing(replicas=2, fail_requests_greater_than_one=refuses) for refuses in (True, False)
    )
    renamed = Sharing.mps(replicas=2, rename_by_default=True)
    configs = {
        "strict": PluginConfig(sharing=strict),
        "lenient": PluginConfig(sharing=lenient),
        "renamed": PluginConfig(sharing=renamed),
    }
    offered = alone(config=Configs.named(configs, default="strict"), platform=Kubernetes()).provides.gpu_resources
    assert offered == {"nvidia.com/gpu": lenient, "nvidia.com/gpu.shared": renamed}
    mixed = PluginConfig(
        flags=Flags(mig_strategy="mixed"), sharing=Sharing.time_slicing(resources={"nvidia.com/mig-1g.5gb": 2})
    )
    assert alone(config=mixed).provides.gpu_resources == {
        "nvidia.com/gpu": Sharing.none(),
        "nvidia.com/mig-1g.5gb": mixed.sharing,
        "nvidia.com/mig-*": Sharing.none(),
    }


def test_an_external_config_map_need_not_be_declared_again(tmp_path):
    app = App(outdir=str(tmp_path))
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        DevicePluginChart(app, "plugin", platform=Kubernetes(), config=Configs.external("theirs"))
        synthesize(app)
    assert not [one for one in warned if "theirs" in str(one.message)]


def bare(chart):
    return [replace(offer, pod_spec=None) for offer in chart.provides.gpu_offers]


@pytest.mark.parametrize("made_by", [Configs.named, Configs.managed])
@pytest.mark.filterwarnings("ignore:.*config-manager")
def test_the_chart_declares_the_nodes_of_each_configuration(made_by):
    configs = {"strict": PluginConfig(), "shared": PluginConfig(sharing=Sharing.time_slicing(replicas=4))}
    chart = alone(
        config=made_by(configs, default="strict"),
        platform=Kubernetes(),
        node_selector={"pool": "a"},
        tolerations=[Toleration(key="dedicated", operator="Exists")],
        gpu_feature_discovery=False,
    )
    rendered = {
        one["metadata"]["name"]: one["spec"]["template"]["spec"]
        for one in Testing.synth(chart)
        if one["kind"] == "DaemonSet"
    }
    of_default = rendered["nvidia-device-plugin"]
    pods = [of_default, rendered.get("nvidia-device-plugin-shared", of_default)]
    told = [offer.pod_spec for offer in chart.provides.gpu_offers]
    kept = ("nodeSelector", "affinity", "tolerations")
    assert told == [{key: one[key] for key in kept if one.get(key)} for one in pods]
    assert [one["nodeSelector"] for one in told] == [{"pool": "a"}] * 2


def test_the_chart_declares_the_resources_of_each_configuration():
    sharing = Sharing.time_slicing(replicas=4)
    assert bare(alone(sharing=sharing)) == [GpuOffer(sharing=sharing)]
    configs = {"strict": PluginConfig(), "shared": PluginConfig(sharing=sharing)}
    assert bare(alone(config=Configs.named(configs, default="strict"), platform=Kubernetes())) == [
        GpuOffer(sharing=Sharing.none(), config="strict"),
        GpuOffer(sharing=sharing, config="shared", is_default=False),
    ]
    assert alone(mig_strategy="single").provides.gpu_offers[0].mig_strategy == "single"
    assert plugin(device_plugin=False).provides.gpu_offers == ()


# --- what synth says --------------------------------------------------------------


def problems(app):
    return refusals.problems(synthesize, app)


def test_mps_without_gpu_feature_discovery_misses_its_node_label(app):
    plugin(app, sharing=Sharing.mps(replicas=4), gpu_feature_discovery=False, platform=Kubernetes())
    (problem,) = problems(app)
    assert problem.startswith(
        f"{NAME}/mps-control-daemon: selects nodes by the label 'nvidia.com/mps.capable', which nothing in this app "
        "publishes, so its pods do not run. "
    )
    assert problem.endswith("External(app, 'existing', node_labels=['nvidia.com/mps.capable']) [R12]")
    External(app, "existing", node_labels=["nvidia.com/mps.capable"])
    synthesize(app)


@cases
@pytest.mark.filterwarnings("ignore:.*config-manager first selects the default configuration")
def test_mps_on_nodes_that_the_administrator_labels_needs_no_gpu_feature_discovery(app, config):
    plugin(app, config=config, gpu_feature_discovery=False, platform=Kubernetes())
    synthesize(app)


def test_synth_reports_a_discovery_that_labels_no_node_for_the_plugin(app):
    plugin(app, node_feature_discovery=NodeFeatureDiscovery(worker=None))
    said = problems(app)
    assert [problem.partition(":")[0] for problem in said] == [NAME, f"{NAME}/gpu-feature-discovery/daemonset"]
    for problem in said:
        assert "selects nodes by the label 'nvidia.com/gpu.present', which nothing in this app publishes" in problem


# --- warnings --------------------------------------------------------------------


WARNED = beside(__file__, "device_plugin_chart")["warned"]


def test_a_warning_names_the_chart_and_the_line_that_creates_it():
    for message, given in WARNED.items():
        options = {**ALONE, **given}
        line = sys._getframe().f_lineno + 2
        with pytest.warns(GpuConstructsWarning) as caught:
            DevicePluginChart(App(), NAME, **options)
        assert [(warning.filename, warning.lineno) for warning in caught] == [(__file__, line)]
        assert str(caught[0].message).startswith(f"{NAME}: {message}")


def test_there_are_no_other_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        plugin()
        alone()
        plugin(**EVERYTHING)
        plugin(config=Configs.named(FILES, default="plain"), platform=Talos("1.13"))


# --- refusals --------------------------------------------------------------------


def test_bad_input_raises_one_error_with_advice(refused):
    refused(alone)


@cases
def test_a_configuration_cannot_have_the_name_of_a_program(name, kind, of):
    configs = {"default": PluginConfig(sharing=Sharing.mps(replicas=2)), name: PluginConfig()}
    assert refusal(plugin, config=Configs.named(configs, default="default"), platform=Kubernetes()) == (
        f"nvidia-device-plugin: configs must not have the name of a component: {kind} {of!r} would exist twice. Rename "
        "the configuration"
    )
    assert alone(config=Configs.named({"default": PluginConfig(), name: PluginConfig()}, default="default"))


def test_the_length_limit_of_names_includes_their_suffixes():
    fitting = "a" * (63 - len("-gpu-feature-discovery-split"))
    config = Configs.named({"plain": PluginConfig(), "split": PluginConfig()}, default="plain")
    assert plugin(name=fitting, config=config, **BESIDE)
    assert refusal(plugin, name=f"{fitting}a", config=config, **BESIDE) == (
        f"nvidia-device-plugin: name must be shorter: DaemonSet '{fitting}a-gpu-feature-discovery-split' would have 64 "
        "characters of at most 63. Shorten name= or the names of the configurations"
    )


def test_a_rejected_chart_leaves_the_app_unchanged(app):
    with pytest.raises(GpuConstructsError):
        alone(app, version="0.15.0")
    assert list(app.node.children) == []
    assert alone(app)


def test_further_configurations_do_not_change_the_selectors_of_the_default():
    one = PluginConfig(sharing=Sharing.time_slicing(replicas=2))

    def selectors(config):
        chart = DevicePluginChart(App(), NAME, platform=Kubernetes(), config=config)
        return {m["metadata"]["name"]: m["spec"]["selector"] for m in Testing.synth(chart) if m["kind"] == "DaemonSet"}

    before = selectors(one)
    after = selectors(Configs.named({"shared": one, "whole": PluginConfig()}, default="shared"))
    assert {name: after[name] for name in before} == before
    assert len({str(selector) for selector in after.values()}) == len(after)
