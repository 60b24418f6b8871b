import copy
import inspect
import re

import pytest

import deviations
import helm_like
import parity_conditions
from helm_like import NAME, NEW, NFD, OLD
from parity_chart import Release
from parity_compare import compare, synthesize

GFD = {"gfd": {"enabled": True}}
ONE = {"config": {"map": {"default": "version: v1\n"}}}
IMEX = {"config": {"map": {"default": "imex: {channelIDs: [0]}"}}}
EXTERNAL = {"config": {"name": "theirs"}}


def with_nfd(**values):
    return {"nfd": {"enabled": True, **values}}


def main_of(manifest):
    return next(c for c in manifest["spec"]["template"]["spec"]["containers"] if not c["name"].endswith("-sidecar"))


def pod_of(manifest):
    return manifest["spec"]["template"]["spec"]


def find(manifests, kind, name):
    return next(m for m in manifests if (m["kind"], m["metadata"]["name"]) == (kind, name))


def variable(manifest, name):
    return next(v for v in main_of(manifest)["env"] if v["name"] == name)


def result_of(values, version=NEW, *, chart=None, ours=None, warned=None):
    """Compare a render with what this library makes of the values, each after a change."""
    release = Release(release=helm_like.RELEASE, namespace=helm_like.NAMESPACE, version=version, values=values)
    made, warnings = synthesize(release)
    rendered, made = helm_like.render(values, version), copy.deepcopy(made)
    for change, manifests in ((chart, rendered), (ours, made)):
        if change is not None:
            change(manifests)
    return compare(release, rendered, made, warnings if warned is None else warned, deviations)


def numbers_in(result):
    return {number for number, _ in (*result.intended, *result.dropped)}


POD = ("spec", "template", "spec")


def runtime_class_as_number(manifests):
    for name in (NAME, f"{NAME}-mps-control-daemon"):
        pod_of(find(manifests, "DaemonSet", name))["runtimeClassName"] = 123


USED = {
    "D1": (GFD, NEW),
    "D2": (ONE, NEW),
    "D3": (ONE, NEW),
    "D4": ({}, NEW),
    "D5": (GFD, NEW),
    "D6": ({**with_nfd(), "tolerations": [{"key": "dedicated", "operator": "Exists"}]}, NEW),
    "D7": (with_nfd(), NEW),
    "D8": (with_nfd(), NEW),
    "D9": ({"runtimeClassName": "123"}, NEW, runtime_class_as_number),
    "D10": (GFD, NEW),
    "D11": ({**EXTERNAL, "image": {"pullPolicy": "Always"}}, NEW),
    "D12": ({}, NEW),
    "D13": (ONE, NEW),
    "D14": ({}, NEW),
    "D15": ({}, NEW),
    "D16": ({"runtimeClassName": "nvidia"}, NEW),
    "D17": ({}, NEW),
    "D18": (ONE, NEW),
    "D19": (GFD, OLD),
    "D20": (GFD, NEW),
    "D21": ({"deviceDiscoveryStrategy": "nvml"}, NEW),
    "D22": (with_nfd(), NEW),
    "D23": (with_nfd(), NEW),
    "D24": (with_nfd(), OLD),
    "D25": (with_nfd(), OLD),
    "D26": (with_nfd(), NEW),
    "D27": (with_nfd(), OLD),
    "D28": ({"nvidiaDriverRoot": "/run/nvidia/driver"}, NEW),
    "D29": ({"cdi": {"featureFlags": ""}}, NEW),
    "D30": (EXTERNAL, NEW),
    "D31": (with_nfd(topologyUpdater={"enable": True}), NEW),
    "D32": (with_nfd(prometheus={"enable": True}), NEW),
    "D33": (with_nfd(gc={"port": 9090}), NEW),
    "D34": (with_nfd(topologyUpdater={"networkPolicy": {"enabled": True}}), NEW),
    "D35": (with_nfd(gc={"interval": ""}), NEW),
    "D36": (with_nfd(master={"hostNetwork": True}), OLD),
    "D37": (with_nfd(master={"extraEnvs": [{"name": "A", "value": "1"}]}), OLD),
    "D38": (IMEX, NEW),
    "D40": ({"typo": 1, "gfd": {"noTimestamp": True}}, NEW),
    "D41": ({"tolerations": {"key": "a"}}, NEW),
    "D42": ({"config": {"map": {"default": "version: v1\nmigStrategy: single\n"}}}, NEW),
    "D43": ({"nvidiaDriverRoot": ""}, NEW),
    "D44": ({"selectorLabelsOverride": {"app": "x"}}, NEW),
    "D45": ({"migStrategy": "single", "securityContext": {"runAsUser": 0}}, NEW),
    "D46": (with_nfd(master={"featureRulesController": False}), OLD),
    "D47": ({"config": {"map": {"a": "version: v1"}, "default": "b"}}, NEW),
    "D48": ({"config": {"map": {"default": "flags: {migStrategy: single}"}}, "migStrategy": "none"}, NEW),
}


def test_every_deviation_has_a_case_that_shows_it_and_one_that_it_does_not_explain():
    every = [deviation.number for deviation in deviations.DEVIATIONS]
    assert list(USED) == every
    assert list(REFUSED) == every


@pytest.mark.parametrize("number", USED)
def test_a_deviation_shows_in_a_case_and_explains_it(number):
    values, version, *chart = USED[number]
    result = result_of(values, version, chart=chart[0] if chart else None)
    assert result.unexplained == []
    assert number in numbers_in(result)


@pytest.mark.parametrize(
    ("values", "version"),
    [
        ({"sleepInterval": "5m"}, NEW),
        (with_nfd(master={"affinity": None}), OLD),
        (with_nfd(master={"affinity": None}), NEW),
        ({**IMEX, **GFD}, OLD),
    ],
)
def test_values_that_are_taken_over_leave_nothing_unexplained(values, version):
    assert result_of(values, version).unexplained == []


# Changes of one side that no deviation may explain, by the deviation that is nearest to them.


def ours_lacks_variable(name, of=NAME):
    def change(manifests):
        main = main_of(find(manifests, "DaemonSet", of))
        main["env"] = [one for one in main["env"] if one["name"] != name]

    return change


def ours_lacks_mount(path):
    def change(manifests):
        main = main_of(find(manifests, "DaemonSet", NAME))
        main["volumeMounts"] = [one for one in main["volumeMounts"] if one["mountPath"] != path]

    return change


def other_imex_channels(manifests):
    volumes = pod_of(find(manifests, "DaemonSet", NAME))["volumes"]
    next(volume for volume in volumes if volume["name"] == "imex-channels")["hostPath"]["path"] = "/dev"


def set_in(kind, name, *path):
    """Set what stands at a path of one object: the last two parts are the member and its new value."""
    *parents, member, value = path

    def change(manifests):
        place = find(manifests, kind, name)
        for parent in parents:
            place = place[parent]
        place[member] = value

    return change


def set_variable(name, value, of=NAME):
    def change(manifests):
        variable(find(manifests, "DaemonSet", of), name)["value"] = value

    return change


def set_main(of, *path, kind="DaemonSet"):
    *parents, member, value = path

    def change(manifests):
        place = main_of(find(manifests, kind, of))
        for parent in parents:
            place = place[parent]
        place[member] = value

    return change


def without_toleration(key):
    def change(manifests):
        pod = pod_of(find(manifests, "DaemonSet", f"{NFD}-worker"))
        pod["tolerations"] = [one for one in pod["tolerations"] if one["key"] != key]

    return change


def set_in_rule(text, new):
    def change(manifests):
        data = find(manifests, "ConfigMap", f"{NFD}-worker-conf")["data"]
        assert text in data["nfd-worker.conf"]
        data["nfd-worker.conf"] = data["nfd-worker.conf"].replace(text, new)

    return change


def of_sidecar(name, stem, *path):
    *parents, member, value = path

    def change(manifests):
        pod = pod_of(find(manifests, "DaemonSet", name))
        place = next(c for c in pod["containers"] if c["name"] == f"{stem}-sidecar")
        for parent in parents:
            place = place[parent]
        place[member] = value

    return change


def sidecar_signals(process):
    def change(manifests):
        pod = pod_of(find(manifests, "DaemonSet", f"{NAME}-mps-control-daemon"))
        sidecar = next(c for c in pod["containers"] if c["name"].endswith("-sidecar"))
        next(v for v in sidecar["env"] if v["name"] == "PROCESS_TO_SIGNAL")["value"] = process

    return change


def without_tegra(manifests):
    node = pod_of(find(manifests, "DaemonSet", NAME))["affinity"]["nodeAffinity"]
    required = node["requiredDuringSchedulingIgnoredDuringExecution"]
    terms = required["nodeSelectorTerms"]
    required["nodeSelectorTerms"] = [t for t in terms if "cpu-model" not in t["matchExpressions"][0]["key"]]


def without_patch(manifests):
    rules = find(manifests, "ClusterRole", f"{NFD}-master")["rules"]
    for rule in rules:
        rule["verbs"] = [verb for verb in rule["verbs"] if verb != "patch"]


def another_type(manifests):
    definition = find(manifests, "CustomResourceDefinition", "nodefeatures.nfd.k8s-sigs.io")
    definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["type"] = "string"


def host_path(name, number, path):
    return set_in("DaemonSet", name, *POD, "volumes", number, "hostPath", "path", path)


def unprivileged_gfd(manifests):
    main_of(find(manifests, "DaemonSet", f"{NAME}-gpu-feature-discovery"))["securityContext"].pop("privileged")


def add_label(manifests):
    find(manifests, "DaemonSet", NAME)["metadata"]["labels"]["tier"] = "node"


def add_capability(manifests):
    main_of(find(manifests, "DaemonSet", NAME))["securityContext"]["capabilities"] = {"add": ["NET_ADMIN"]}


def other_tolerations(manifests):
    for name in (NAME, f"{NAME}-mps-control-daemon"):
        pod_of(find(manifests, "DaemonSet", name))["tolerations"] = {"key": "b"}


def renamed(kind, name):
    return set_in(kind, name, "metadata", "name", f"{name}-2")


def torn_otherwise(manifests):
    pod_of(find(manifests, "Deployment", f"{NFD}-master"))["containers"][1]["value"] = "2"


def misplaced_otherwise(manifests):
    data = find(manifests, "ConfigMap", f"{NAME}-configs")["data"]
    data["default"] = data["default"].replace("migStrategy", "failOnInitError")


MIXED = {"migStrategy": "mixed"}
MPS = {"config": {"map": {"default": "sharing: {mps: {resources: [{name: nvidia.com/gpu, replicas: 2}]}}"}}}
LABELS = ("spec", "selector", "matchLabels")
PSA = "pod-security.kubernetes.io/enforce"
REFUSED = {
    "D1": ({}, NEW, "ours", set_in("DaemonSet", NAME, *LABELS, "app.kubernetes.io/component", "x"), "component"),
    "D2": (ONE, NEW, "ours", set_variable("CONFIG_FILE", "/etc/config.yaml"), "CONFIG_FILE"),
    "D3": (MIXED, NEW, "ours", ours_lacks_variable("NVIDIA_MIG_MONITOR_DEVICES"), "NVIDIA_MIG_MONITOR_DEVICES"),
    "D4": (MPS, NEW, "ours", ours_lacks_mount("/mps"), r"mounts\[/mps\]"),
    "D5": (
        GFD,
        NEW,
        "ours",
        set_in("Role", f"{NAME}-gpu-feature-discovery", "rules", 0, "verbs", ["get", "create", "update", "list"]),
        "list nodefeatures",
    ),
    "D6": (with_nfd(), NEW, "ours", without_toleration("nvidia.com/gpu"), "nvidia.com/gpu"),
    "D7": (with_nfd(), NEW, "ours", set_in_rule("0302", "0380"), "0380"),
    "D8": (
        with_nfd(),
        NEW,
        "chart",
        set_in("Job", f"{NFD}-prune", *POD, "containers", 0, "args", ["-no-publish"]),
        "-no-publish",
    ),
    "D9": (
        {"runtimeClassName": "123"},
        NEW,
        "ours",
        set_in("DaemonSet", NAME, *POD, "runtimeClassName", "124"),
        "124",
    ),
    "D10": (GFD, NEW, "chart", host_path(f"{NAME}-gpu-feature-discovery", 0, "/etc"), "features.d"),
    "D11": (
        EXTERNAL,
        NEW,
        "ours",
        of_sidecar(NAME, "nvidia-device-plugin", "imagePullPolicy", "Never"),
        "sidecar.*imagePullPolicy",
    ),
    "D12": ({}, NEW, "ours", set_main(NAME, "resources", "requests", "cpu", "1"), "cpu"),
    "D13": (ONE, NEW, "ours", renamed("ConfigMap", f"{NAME}-config"), f"{NAME}-config-2"),
    "D14": ({}, NEW, "chart", set_in("DaemonSet", NAME, "metadata", "labels", "helm.sh/chart", "x-1"), "helm.sh/chart"),
    "D15": ({}, NEW, "ours", set_in("Namespace", helm_like.NAMESPACE, "metadata", "labels", PSA, "baseline"), PSA),
    "D16": ({"runtimeClassName": "nvidia"}, NEW, "ours", set_in("RuntimeClass", "nvidia", "handler", "runc"), "runc"),
    "D17": (
        {},
        NEW,
        "ours",
        set_in("DaemonSet", NAME, *POD, "securityContext", "seccompProfile", {"type": "Unconfined"}),
        "Unconfined",
    ),
    "D18": (
        ONE,
        NEW,
        "ours",
        set_in(
            "DaemonSet", NAME, "spec", "template", "metadata", "annotations", "gpu-constructs/config-sha256", "0" * 64
        ),
        "config-sha256",
    ),
    "D19": (
        GFD,
        NEW,
        "ours",
        set_variable("GFD_USE_NODE_FEATURE_API", "false", f"{NAME}-gpu-feature-discovery"),
        "useNodeFeatureAPI",
    ),
    "D20": (
        {"gfd": {"enabled": True, "securityContext": {"privileged": True}}},
        NEW,
        "ours",
        unprivileged_gfd,
        "privileged",
    ),
    "D21": ({}, NEW, "ours", without_tegra, "cpu-model.vendor_id"),
    "D22": (with_nfd(), NEW, "chart", another_type, "openAPIV3Schema.type"),
    "D23": (with_nfd(), NEW, "ours", without_patch, "patch nodes"),
    "D24": (
        with_nfd(master={"replicaCount": 2}),
        NEW,
        "ours",
        set_in("Deployment", f"{NFD}-master", "spec", "strategy", {"type": "Recreate"}),
        "Recreate",
    ),
    "D25": (
        with_nfd(),
        OLD,
        "chart",
        set_in("Deployment", f"{NFD}-master", *POD, "tolerations", 0, "key", "master"),
        '"key":"master"',
    ),
    "D26": (with_nfd(), NEW, "chart", host_path(f"{NFD}-worker", 6, "/etc"), "features.d"),
    "D27": (
        with_nfd(),
        OLD,
        "ours",
        set_in("DaemonSet", f"{NFD}-worker", "spec", "updateStrategy", "rollingUpdate", {"maxUnavailable": "20%"}),
        "maxUnavailable",
    ),
    "D28": ({"nvidiaDriverRoot": "/a"}, NEW, "chart", host_path(NAME, 4, "/b"), r"mounts\[/driver-root\]"),
    "D29": (
        {"cdi": {"featureFlags": "disable-nvsandboxutils"}},
        NEW,
        "ours",
        ours_lacks_variable("CDI_FEATURE_FLAGS"),
        "CDI_FEATURE_FLAGS",
    ),
    "D30": (EXTERNAL, NEW, "ours", sidecar_signals("mps"), "PROCESS_TO_SIGNAL"),
    "D31": (
        with_nfd(topologyUpdater={"enable": True}),
        NEW,
        "ours",
        set_main(f"{NFD}-topology-updater", "volumeMounts", 0, "readOnly", False),
        "readOnly",
    ),
    "D32": (
        with_nfd(prometheus={"enable": True}),
        NEW,
        "ours",
        set_in("PodMonitor", NFD, "metadata", "namespace", "monitoring"),
        "monitoring",
    ),
    "D33": (
        with_nfd(gc={"port": 9090}),
        NEW,
        "ours",
        set_main(f"{NFD}-gc", "args", ["-gc-interval=1h", "-port=9091"], kind="Deployment"),
        "9091",
    ),
    "D34": (
        with_nfd(topologyUpdater={"networkPolicy": {"enabled": True}}),
        NEW,
        "chart",
        set_in("NetworkPolicy", f"{NFD}-topology-updater-network-policy", "spec", "policyTypes", ["Egress"]),
        "policyTypes",
    ),
    "D35": (
        with_nfd(gc={"interval": ""}),
        NEW,
        "ours",
        set_main(f"{NFD}-gc", "args", ["-gc-interval=2h"], kind="Deployment"),
        "2h",
    ),
    "D36": (
        with_nfd(master={"hostNetwork": True}),
        OLD,
        "ours",
        set_in("Deployment", f"{NFD}-master", *POD, "dnsPolicy", "Default"),
        "dnsPolicy",
    ),
    "D37": (
        with_nfd(master={"extraEnvs": [{"name": "A", "value": "1"}]}),
        OLD,
        "chart",
        torn_otherwise,
        r"containers\[A\]",
    ),
    "D38": (IMEX, NEW, "ours", other_imex_channels, "imex-channels.*'/dev'"),
    "D40": ({"typo": 1}, NEW, "chart", set_variable("MPS_ROOT", "/typo"), "mpsRoot"),
    "D41": ({"tolerations": {"key": "a"}}, NEW, "chart", other_tolerations, "pod.tolerations"),
    "D42": (
        {"config": {"map": {"default": "version: v1\nmigStrategy: single\n"}}},
        NEW,
        "chart",
        misplaced_otherwise,
        "ignored.failOnInitError",
    ),
    "D43": ({"nvidiaDriverRoot": ""}, NEW, "chart", set_variable("NVIDIA_DRIVER_ROOT", "/other"), "nvidiaDriverRoot"),
    "D44": ({"selectorLabelsOverride": {"app": "x"}}, NEW, "chart", add_label, "tier"),
    "D45": ({"migStrategy": "single", "securityContext": {"runAsUser": 0}}, NEW, "chart", add_capability, "NET_ADMIN"),
    "D46": (
        with_nfd(master={"featureRulesController": False}),
        OLD,
        "chart",
        set_main(f"{NFD}-master", "args", 2, "-featurerules-controller=maybe", kind="Deployment"),
        "featurerules-controller",
    ),
    "D47": (
        {"config": {"map": {"a": "version: v1"}, "default": "b"}},
        NEW,
        "chart",
        set_variable("MPS_ROOT", "/other"),
        "mpsRoot",
    ),
    "D48": (
        {"config": {"map": {"default": "flags: {migStrategy: single}"}}, "migStrategy": "none"},
        NEW,
        "ours",
        set_in("ConfigMap", f"{NAME}-config", "data", "config.yaml", "flags: {migStrategy: single}"),
        "migStrategy",
    ),
}


@pytest.mark.parametrize("number", REFUSED)
def test_what_a_deviation_does_not_say_stays_unexplained(number):
    values, version, side, change, expected = REFUSED[number]
    result = result_of(values, version, **{side: change})
    assert any(re.search(expected, str(difference)) for difference in result.unexplained)


def drop_at(kind, name, *path):
    """Take away what stands at a path of one object."""
    *parents, member = path

    def change(manifests):
        place = find(manifests, kind, name)
        for parent in parents:
            place = place[parent]
        del place[member]

    return change


def drop_in_main(of, *path):
    *parents, member = path

    def change(manifests):
        place = main_of(find(manifests, "DaemonSet", of))
        for parent in parents:
            place = place[parent]
        del place[member]

    return change


def serve_every_node(manifests):
    find(manifests, "DaemonSet", NAME)["spec"]["template"]["spec"].pop("affinity")


def add_stock_label(manifests):
    node = pod_of(find(manifests, "DaemonSet", NAME))["affinity"]["nodeAffinity"]
    expression = {"key": "feature.node.kubernetes.io/pci-0300_10de.present", "operator": "In", "values": ["true"]}
    terms = node["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    terms.append({"matchExpressions": [expression]})


def add_driver_root(manifests):
    daemonset = find(manifests, "DaemonSet", NAME)
    main_of(daemonset)["volumeMounts"].append({"name": "x", "mountPath": "/driver-root", "readOnly": True})
    pod_of(daemonset)["volumes"].append({"name": "x", "hostPath": {"path": "/x"}})


def add_imex_channels(manifests):
    daemonset = find(manifests, "DaemonSet", NAME)
    path = "/dev/nvidia-caps-imex-channels"
    main_of(daemonset)["volumeMounts"].append({"name": "x", "mountPath": path, "readOnly": True})
    pod_of(daemonset)["volumes"].append({"name": "x", "hostPath": {"path": path, "type": "DirectoryOrCreate"}})


def add_toleration(name, **toleration):
    def change(manifests):
        pod_of(find(manifests, "DaemonSet", name))["tolerations"].append(toleration)

    return change


def open_schema(manifests):
    definition = find(manifests, "CustomResourceDefinition", "nodefeatures.nfd.k8s-sigs.io")
    schema = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    schema["x-kubernetes-preserve-unknown-fields"] = True


TWO = {"config": {"default": "a", "map": {"a": "version: v1", "b": "version: v1"}}}
PREFER = "preferredDuringSchedulingIgnoredDuringExecution"
OWN_AFFINITY = {"nodeAffinity": {PREFER: [{"weight": 2, "preference": {"matchExpressions": []}}]}}
OUR_AFFINITY = {
    "nodeAffinity": {
        PREFER: [
            {
                "weight": 1,
                "preference": {
                    "matchExpressions": [{"key": "node-role.kubernetes.io/control-plane", "operator": "Exists"}]
                },
            }
        ]
    }
}
LABEL = "nvidia.com/device-plugin.config"
FEATURES = f"{NAME}-gpu-feature-discovery"
ROLLING = {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 2}}}
UNMET = {
    "has_no_file_in_chart": (
        {**ONE, **GFD, "nfd": {"enabled": False}},
        NEW,
        "chart",
        ours_lacks_variable("CONFIG_FILE", FEATURES),
        "gfd DaemonSet.*CONFIG_FILE",
    ),
    "has_several_configs": ({}, NEW, "ours", set_in("DaemonSet", NAME, "metadata", "labels", LABEL, "empty"), LABEL),
    "nobody_else_serves": (TWO, NEW, "ours", serve_every_node, r"serves\[b\]"),
    "the_programs_run_with_the_same": (
        ONE,
        NEW,
        "ours",
        set_in("ConfigMap", f"{NAME}-config", "data", "config.yaml", "flags: {gdsEnabled: true}"),
        r"file\.flags\.gdsEnabled",
    ),
    "_is_said": (
        {**GFD, "nfd": {"enabled": False}, "devicePlugin": {"enabled": False}, "gdsEnabled": True},
        NEW,
        "ours",
        set_in("ConfigMap", f"{NAME}-config", "data", "config.yaml", "flags: {gdsEnabled: false}"),
        r"file\.flags\.gdsEnabled",
    ),
    "uses_mig": (
        GFD,
        NEW,
        "ours",
        set_main(FEATURES, "securityContext", "capabilities", "add", ["SYS_ADMIN"]),
        "SYS_ADMIN",
    ),
    "uses_no_mig": REFUSED["D3"],
    "needs_no_sys_admin": (
        {"deviceListStrategy": "volume-mounts"},
        NEW,
        "ours",
        drop_in_main(NAME, "securityContext", "capabilities", "add"),
        "SYS_ADMIN",
    ),
    "hands_out_imex_channels": (ONE, NEW, "ours", add_imex_channels, "imex-channels"),
    "uses_another_nfd": (with_nfd(), NEW, "ours", add_stock_label, "pci-0300"),
    "is_updated_on_delete": (
        ROLLING,
        NEW,
        "ours",
        set_in("DaemonSet", NAME, "spec", "updateStrategy", {}),
        "maxUnavailable",
    ),
    "has_one_replica": REFUSED["D24"],
    "is_config_deleted": (
        with_nfd(),
        NEW,
        "chart",
        set_in("ConfigMap", f"{NFD}-worker-conf", "data", "nfd-worker.conf", "{}"),
        "sources.pci",
    ),
    "says_no_affinity": (
        with_nfd(master={"affinity": OWN_AFFINITY}),
        NEW,
        "ours",
        set_in("Deployment", f"{NFD}-master", *POD, "affinity", OUR_AFFINITY),
        "control-plane",
    ),
    "is_description": (with_nfd(), NEW, "chart", open_schema, "preserve-unknown-fields"),
    "is_old": (
        with_nfd(),
        NEW,
        "chart",
        drop_at("DaemonSet", f"{NFD}-worker", "spec", "updateStrategy"),
        "maxUnavailable",
    ),
    "is_named_by_the_file": ({}, NEW, "ours", add_driver_root, "driver-root"),
    "shares_not_by_mps": (MPS, NEW, "ours", ours_lacks_variable("MPS_ROOT"), "mpsRoot"),
    "has_no_account_in_chart": (
        GFD,
        NEW,
        "chart",
        drop_at("DaemonSet", FEATURES, *POD, "serviceAccountName"),
        "serviceAcc",
    ),
    "has_no_account": (
        EXTERNAL,
        NEW,
        "ours",
        set_in("DaemonSet", NAME, *POD, "automountServiceAccountToken", False),
        "automount",
    ),
    "is_tolerated_by_the_plugin": (
        with_nfd(),
        NEW,
        "ours",
        add_toleration(f"{NFD}-worker", key="x", operator="Exists"),
        '"key":"x"',
    ),
    "is_tolerated_by_default": (
        {"tolerations": [{"key": "a", "operator": "Exists"}]},
        NEW,
        "ours",
        add_toleration(NAME, key="b", operator="Exists"),
        '"key":"b"',
    ),
    "is_the_same_text": REFUSED["D9"],
    "is_text_of_nothing": (
        {"priorityClassName": "x"},
        NEW,
        "chart",
        drop_at("DaemonSet", NAME, *POD, "priorityClassName"),
        "plugin DaemonSet: pod.priorityClassName",
    ),
    "says_nothing_of_the_interval": (
        with_nfd(),
        NEW,
        "chart",
        set_main(f"{NFD}-gc", "args", [], kind="Deployment"),
        "-gc-interval",
    ),
    "says_no_resources": (
        {"resources": {"requests": {"cpu": "1"}}},
        NEW,
        "ours",
        set_main(NAME, "resources", "requests", "memory", "64Mi"),
        "memory",
    ),
    "says_no_rights": (
        {"securityContext": {"privileged": True}},
        NEW,
        "ours",
        set_main(NAME, "securityContext", "readOnlyRootFilesystem", True),
        "readOnlyRootFilesystem",
    ),
    "chart_drops_nothing": (
        {},
        NEW,
        "chart",
        drop_in_main(NAME, "securityContext", "capabilities"),
        "capabilities.drop",
    ),
    "says_no_privileged": REFUSED["D20"],
    "is_privileged_on_both_sides": (
        {},
        NEW,
        "ours",
        set_main(NAME, "securityContext", "readOnlyRootFilesystem", False),
        "readOnlyRootFilesystem",
    ),
    "is_our_checksum": REFUSED["D18"],
    "is_part_of_a_file_that_was_dropped": REFUSED["D42"],
}


def test_every_condition_has_a_case_that_does_not_meet_it():
    functions = inspect.getmembers(parity_conditions, inspect.isfunction)
    conditions = [
        n
        for n, f in functions
        if f.__annotations__ == {"difference": "Difference", "context": "Context", "return": "bool"}
    ]
    assert sorted(UNMET) == sorted(conditions)


@pytest.mark.parametrize("condition", UNMET)
def test_a_condition_that_is_not_met_explains_nothing(condition):
    values, version, side, change, expected = UNMET[condition]
    assert result_of(values, version).unexplained == []
    result = result_of(values, version, **{side: change})
    assert any(re.search(expected, str(difference)) for difference in result.unexplained)


@pytest.mark.parametrize(
    "warning",
    ["values.x is dropped: it is odd", "values.x is changed", "values.migStrategy wins: it is newer"],
)
def test_a_warning_that_no_deviation_is_about_is_unexplained(warning):
    result = result_of({}, warned=[warning])
    assert [difference.ours for difference in result.unexplained] == [warning]


def test_advice_is_no_difference():
    result = result_of({}, warned=["nvidia-device-plugin: think twice"])
    assert (result.unexplained, result.advice) == ([], ["nvidia-device-plugin: think twice"])


def test_without_its_warning_a_dropped_value_is_unexplained():
    values = {"nvidiaDriverRoot": ""}
    assert result_of(values).unexplained == []
    assert result_of(values, warned=[]).unexplained


def test_numbers_are_unique():
    numbers = [deviation.number for deviation in deviations.DEVIATIONS]
    assert len(set(numbers)) == len(numbers)
    assert all(re.fullmatch(r"D[1-9][0-9]*", number) for number in numbers)


def test_the_documents_show_a_row_for_each_deviation():
    heading, line, *rows = deviations.markdown().splitlines()
    assert heading.count("|") == line.count("|") == 4
    for deviation, row in zip(deviations.DEVIATIONS, rows, strict=True):
        assert row == f"| {deviation.number} | {deviation.what} | {deviation.why} |"


@pytest.mark.parametrize("deviation", deviations.DEVIATIONS, ids=lambda deviation: deviation.number)
def test_a_deviation_says_what_and_why_in_one_cell_each(deviation):
    for text in (deviation.what, deviation.why):
        assert text
        assert not re.search(r"[|\n]|\s\s|\.\Z|\A\s|\s\Z", text)
