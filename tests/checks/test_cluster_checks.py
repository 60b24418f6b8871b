"""Facts that only the whole app knows: over plain manifests, and over the constructs of an app with their paths."""

import cdk8s_plus_27 as kplus
import pytest
from cdk8s import ApiObject, ApiObjectMetadata, App, Chart, Include, JsonPatch, Testing
from constructs import Construct

import cel
from gpu_constructs import (
    DcgmExporter,
    DenyVisibleDevicesOverride,
    DevicePluginChart,
    External,
    GpuInventory,
    GpuNamespace,
    GpuNode,
    GpuRules,
    GpuWorkload,
    Kubernetes,
    NvidiaRuntimeClass,
    PowerLimit,
    Run,
    Sharing,
    SynthesisError,
    Taint,
    Talos,
    synthesize,
)
from gpu_constructs.checks.cluster_checks import Finding
from gpu_constructs.checks.cluster_checks import check as check_app
from gpu_constructs.checks.rules.table import CODES, RuleSettings
from gpu_constructs.cluster.admission.visible_devices import ALLOW_LABEL
from gpu_constructs.facts.provided import GpuNodes, Provided
from gpu_constructs.tree.manifest import Manifest

GPU = "nvidia.com/gpu"
SLOT = "nvidia.com/gpu.shared"
PROFILE = "nvidia.com/mig-1g.10gb"
PRESENT = "nvidia.com/gpu.present"
PRODUCT = "nvidia.com/gpu.product"
SHARED = Sharing.time_slicing(replicas=4)
# Those that look at what providers say; the others have their tests in test_rules.py.
OF_PROVIDERS = RuleSettings(ignore=frozenset(CODES) - {"R05", "R07", "R08", "R12", "R14", "R25"})


def obj(api_version, kind, name="x", namespace=None, **more):
    metadata = {"name": name} | ({"namespace": namespace} if namespace else {})
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **more}


def config_map(name="x", namespace=None):
    return obj("v1", "ConfigMap", name, namespace)


def namespace(name, **labels):
    made = obj("v1", "Namespace", name)
    if labels:
        made["metadata"]["labels"] = {f"pod-security.kubernetes.io/{mode}": level for mode, level in labels.items()}
    return made


def main(limits=None, **more):
    return {"name": "main", "image": "a:1"} | ({"resources": {"limits": limits}} if limits else {}) | more


def pod(limits=None, **spec):
    return {"containers": [main(limits)], **spec}


def bare(*containers, **spec):
    return obj("v1", "Pod", spec={"containers": list(containers), **spec})


def deployment(name="x", namespace=None, **more):
    return obj("apps/v1", "Deployment", name, namespace, spec={"template": {"spec": pod(**more)}})


def affinity(*terms):
    """Return an affinity to nodes that one of the terms takes: labels by key, with their values where they matter."""
    each = [
        [{"key": key, "operator": "In" if values else "Exists", "values": values} for key, values in term.items()]
        for term in terms
    ]
    selector = {"nodeSelectorTerms": [{"matchExpressions": one} for one in each]}
    return {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": selector}}}


def check(manifests, provided):
    return check_app(manifests, provided, OF_PROVIDERS)


def holds(rows):
    """Check rows: a sentence, objects, what constructs provide, and of each finding in order its subject and words."""
    for sentence, manifests, provided, *said in rows:
        findings = check(manifests, provided)
        assert [finding.subject for finding in findings] == [subject for subject, *_ in said], sentence
        for finding, (_, *words) in zip(findings, said, strict=True):
            assert all(word in finding.problem for word in words), (sentence, finding.problem)


def problems_of(*apps):
    """Every problem that a synth of the apps finds, none when it succeeds."""
    try:
        synthesize(*apps)
    except SynthesisError as error:
        return error.problems
    return []


# Over plain manifests.


def test_objects_are_made_once_and_namespaces_are_there():
    where, made = "namespace 'team' is not in this app", "already made by {0}; make it once and hand it to the others"
    config, in_system = config_map(), config_map(namespace="kube-system")
    holds(
        [
            ("nothing is wrong with nothing", [], []),
            (
                "each further one names the first",
                [config, obj("v1", "Secret"), config, config],
                [],
                (2, made),
                (3, made),
            ),
            (
                "a version of a group makes no other object",
                [obj("resource.k8s.io/v1", "DeviceClass"), obj("resource.k8s.io/v1beta1", "DeviceClass")],
                [],
                (1, made),
            ),
            ("a namespace is named", [in_system] * 2, [], (1, "ConfigMap 'x' in namespace 'kube-system' is already")),
            ("no namespace is the default one", [config, config_map(namespace="default")], [], (1, made)),
            *(
                ("they differ", [config, other], [])
                for other in (obj("v1", "Secret"), obj("example.com/v1", "ConfigMap"), config_map("y"), in_system)
            ),
            (
                "a missing namespace is found once with the way out",
                [config_map("a", "team"), config_map("b", "team")],
                [],
                (
                    0,
                    "namespace 'team' is not in this app; add GpuNamespace(chart, 'namespace', name='team') or declare "
                    "it with External(app, 'existing', namespaces=['team'])",
                ),
            ),
            ("each is found", [config_map(namespace="a"), config_map(namespace="b")], [], (0,), (1,)),
            ("it may come later", [config_map(namespace="team"), namespace("team")], []),
            *(
                ("every cluster has it", [config_map(namespace=name)], [])
                for name in ("default", "kube-system", "kube-public", "kube-node-lease")
            ),
            (
                "one of another group is none",
                [obj("example.com/v1", "Namespace", "team"), config_map(namespace="team")],
                [],
                (1, where),
            ),
            (
                "pods that are brought later need theirs",
                [],
                [Provided(privileged_namespaces=("team",))],
                (None, "namespace 'team', which its pods go to, is not in this app; add GpuNamespace(", "External(app"),
            ),
            ("it may be declared", [], [Provided(privileged_namespaces=("team",), namespaces=("team",))]),
        ]
    )
    assert check([config, config], [])[0].others == (0,)


def test_runtime_classes_are_there():
    made = deployment(runtimeClassName="nvidia")
    holds(
        [
            (
                "a missing one is found with the way out",
                [made],
                [],
                (
                    0,
                    "runtime_class 'nvidia' is used but no RuntimeClass of that name is in this app; add an "
                    "NvidiaRuntimeClass, declare it with External(app, 'existing', runtime_classes=['nvidia']), or "
                    "pass platform=Kubernetes() where the nodes' default runtime knows NVIDIA devices",
                ),
            ),
            *(("of the app", [made, obj(f"node.k8s.io/{v}", "RuntimeClass", "nvidia")], []) for v in ("v1", "v1beta1")),
            ("another name does not serve", [made, obj("node.k8s.io/v1", "RuntimeClass", "nvidia-cdi")], [], (0,)),
        ]
    )


POOL = Provided(gpu_nodes=GpuNodes(labels={"gpu-pool": "a"}))
PLAIN = Provided(gpu_resources={GPU: Sharing.none()})


def publishing(*labels):
    return Provided(node_labels=labels)


def test_labels_that_pods_select_are_published():
    selecting, pci = deployment(nodeSelector={PRESENT: "true"}), "feature.node.kubernetes.io/pci-10de.present"
    either, one_set = (
        deployment(**affinity({pci: []}, {PRESENT: []})),
        deployment(**affinity({PRESENT: []}, {"disk": []})),
    )
    both = deployment(**affinity({PRESENT: [], "disk": []}))
    holds(
        [
            (
                "one that nothing publishes is found with the way out",
                [selecting],
                [],
                (
                    0,
                    "selects nodes by the label 'nvidia.com/gpu.present', which nothing in this app publishes, so its "
                    "pods would never be scheduled; add a DevicePluginChart with node_feature_discovery=True or "
                    "declare it with External(app, 'existing', node_labels=['nvidia.com/gpu.present'])",
                ),
            ),
            *(("published", [selecting], [publishing(one)]) for one in (PRESENT, "nvidia.com/gpu.*", "nvidia.com/*")),
            *(
                ("another does not serve", [selecting], [publishing(one)], (0,))
                for one in ("nvidia.com/gpu.presen", GPU, "nvidia.com/gpu.product*")
            ),
            ("the nodes have it", [selecting], [labelled(**{PRESENT: "true"})]),
            *(
                ("systems and clouds set it", [deployment(nodeSelector={label: "x"})], [])
                for label in (
                    *("kubernetes.io/arch", "node-role.kubernetes.io/worker", "topology.kubernetes.io/zone"),
                    *("extensions.talos.dev/nvidia", "team.nvidia.com/x", "eks.amazonaws.com/nodegroup"),
                    *("karpenter.sh/nodepool", "cloud.google.com/gke-accelerator", "kubernetes.azure.com/agentpool"),
                    "agentpool.cattle.io/x",
                )
            ),
            ("none of the alternatives", [either], [], (0,)),
            *(
                ("one of them is enough", [either], [publishing(one)])
                for one in (PRESENT, "feature.node.kubernetes.io/*")
            ),
            ("of those one that anybody may set is told", [one_set], [], (0, "'disk'")),
            ("one that is declared is enough", [one_set], [publishing("disk")]),
            ("all of one term are needed", [both], [publishing(PRESENT)], (0,)),
            ("and are there", [both], [publishing(PRESENT, "disk")]),
            (
                "the way leads through the operator that is there",
                [deployment(nodeSelector={PRODUCT: "L4"})],
                [Provided(components=("gpu-operator",))],
                (0, "make {0} with gpu_feature_discovery=True or declare it"),
            ),
        ]
    )


def test_a_label_that_nodes_of_the_app_have_is_compared_with_its_values():
    unset = "selects nodes by the label 'gpu-pool', which nothing in this app sets; declare"
    for label, value, given, problem in [
        ("gpu-pool", "a", [], unset),
        ("gpu-pool", "a", [POOL], None),
        ("gpu-pool", "b", [publishing("gpu-pool")], None),
        ("gpu-pool", "b", [POOL, publishing("gpu-*")], None),
        ("gpu-pool", "b", [POOL], "selects nodes by the label 'gpu-pool' of 'b'; the nodes of this app have 'a'"),
        ("gpu-pol", "a", [POOL], "selects nodes by the label 'gpu-pol', which nothing in this app sets (did you mean"),
    ]:
        for selector in ({"nodeSelector": {label: value}}, affinity({label: [value]})):
            findings = check([deployment(limits={GPU: 1}, **selector)], [PLAIN, *given])
            said = [
                (one.is_warning, one.problem.startswith(problem), "node_labels=['gpu" in one.problem)
                for one in findings
            ]
            assert said == ([(True, True, True)] if problem else []), (label, value)
    # A pod for other nodes may want another value than GPU nodes have.
    assert check([deployment(nodeSelector={"gpu-pool": "none"})], [POOL]) == []


LABELLER = Provided(node_labels=[PRODUCT], components=("gpu-feature-discovery",), gpu_resources={GPU: Sharing.none()})


def test_a_product_that_no_board_is_called_is_an_error_with_the_right_label():
    for value, near in [
        ("NVIDIA-GeForce-RTX-4090", None),
        ("NVIDIA-GeForce-RTX-4090-SHARED", None),
        ("NVIDIA-A100-SXM4-40GB-MIG-1g.5gb-SHARED", None),
        ("NVIDIA-Unheard-Of", None),
        ("Orin", None),
        ("RTX-4090", "(did you mean 'NVIDIA-GeForce-RTX-4090'?)"),
        ("NVIDIA-RTX-4090", "(did you mean 'NVIDIA-GeForce-RTX-4090'?)"),
        ("nvidia-geforce-rtx-4090", "(did you mean 'NVIDIA-GeForce-RTX-4090'?)"),
        ("GeForce-RTX-4090-SHARED", "(did you mean 'NVIDIA-GeForce-RTX-4090'?)"),
        ("H100", "'NVIDIA H100 PCIe'"),
    ]:
        manifests = [deployment(limits={GPU: 1}, nodeSelector={PRODUCT: value})]
        findings = check(manifests, [LABELLER])
        assert [(f.is_warning, near in f.problem) for f in findings] == ([] if near is None else [(False, True)])
        declared = check(manifests, [Provided(node_labels=["nvidia.com/*"], gpu_resources={GPU: Sharing.none()})])
        assert [f.is_warning for f in declared] == ([] if near is None else [True]), (value, near)
        assert check(manifests, [LABELLER, labelled(**{PRODUCT: value})]) == [], (value, near)
    one_of_two = affinity({PRODUCT: ["RTX-4090", "NVIDIA-GeForce-RTX-4090"]})
    assert check([deployment(limits={GPU: 1}, **one_of_two)], [LABELLER]) == []


def test_a_product_that_the_inventory_lacks_is_an_error():
    nodes = [GpuNode(name="one", gpu_model="RTX 3090")]
    for product, more, said in [
        ("NVIDIA-GeForce-RTX-4090", [], ["of which the inventory has none; it has 'NVIDIA-GeForce-RTX-3090'"]),
        ("NVIDIA-GeForce-RTX-3090-SHARED", [], []),
        ("NVIDIA-GeForce-RTX-4090", [GpuNode(name="two", vram="24Gi")], []),
    ]:
        settings = OF_PROVIDERS._replace(inventory=GpuInventory(nodes=[*nodes, *more]))
        findings = check_app([deployment(limits={GPU: 1}, nodeSelector={PRODUCT: product})], [LABELLER], settings)
        assert [words in one.problem for words, one in zip(said, findings, strict=True)] == [True] * len(said)


def test_pods_are_such_as_the_level_of_their_namespace_takes():
    host, talos = deployment(namespace="team", hostPID=True), [Provided(platform=Talos())]
    silent = "pods would be refused: namespace 'team' of {0} states no Pod Security level, so 'baseline' holds, and "
    holds(
        [
            ("privileged", [namespace("team", enforce="privileged"), host], []),
            ("baseline takes it", [namespace("team", enforce="baseline"), deployment(namespace="team")], []),
            (
                "baseline refuses it",
                [namespace("team", enforce="baseline"), deployment(namespace="team", hostPID=True, hostNetwork=True)],
                [],
                (
                    1,
                    "pods would be refused: namespace 'team' of {0} enforces 'baseline', and hostNamespaces: ",
                    "; write no hostNetwork, hostPID and hostIPC in the pod, or give its namespace another "
                    "pod-security.kubernetes.io/enforce",
                ),
            ),
            (
                "restricted wants more",
                [namespace("team", enforce="restricted"), deployment(namespace="team")],
                [],
                (
                    1,
                    "; write securityContext.capabilities: {drop: [ALL], add: []}, "
                    "securityContext.seccompProfile.type: RuntimeDefault, "
                    "securityContext.allowPrivilegeEscalation: false, securityContext.runAsNonRoot: true in the pod, ",
                ),
            ),
            ("only what is enforced counts", [namespace("team", audit="restricted", warn="restricted"), host], []),
            ("a namespace says nothing", [namespace("team"), host], []),
            ("the platform enforces baseline there", [namespace("team"), host], talos, (1, silent)),
            (
                "and in the default namespace",
                [deployment(hostPID=True), deployment("y", "default", hostPID=True)],
                talos,
                (0, "pods would be refused: namespace 'default' states"),
                (1, "pods would be refused: namespace 'default' states"),
            ),
            ("default without a platform", [deployment(hostPID=True)], []),
            ("one that is made elsewhere is not guessed", [host], [Provided(namespaces=["team"], platform=Talos())]),
            (
                "refuses pods that are brought later",
                [namespace("gpu", enforce="baseline")],
                [Provided(privileged_namespaces=("gpu",))],
                (0, "enforces 'baseline', under which the pods that {0} brings would be refused"),
            ),
            (
                "refuses them by default",
                [namespace("gpu")],
                [Provided(privileged_namespaces=("gpu",)), *talos],
                (0, "states no Pod Security level, so 'baseline' holds, under which"),
            ),
            *(
                ("takes them", [made], [Provided(privileged_namespaces=("gpu",), namespaces=("gpu",))])
                for made in (
                    namespace("gpu", enforce="privileged"),
                    namespace("gpu"),
                    namespace("o", enforce="baseline"),
                )
            ),
        ]
    )


def test_several_slots_are_refused_exactly_where_the_sharing_refuses_them():
    renamed = Sharing.time_slicing(replicas=4, rename_by_default=True)
    for sharing, limits, is_found in [
        (SHARED, {GPU: 1}, False),
        (SHARED, {GPU: 2}, True),
        (SHARED, {GPU: "2"}, True),
        (SHARED, {"memory": "2Gi"}, False),
        (Sharing.time_slicing(replicas=4, fail_requests_greater_than_one=False), {GPU: 2}, False),
        (Sharing.mps(replicas=4), {GPU: 2}, True),
        (renamed, {SLOT: 1}, False),
        (renamed, {SLOT: 2}, True),
        (Sharing.none(), {GPU: 2}, False),
    ]:
        findings = check([deployment(limits=limits)], [Provided(gpu_resources={sharing.gpu_resource: sharing})])
        refused = [finding for finding in findings if not finding.is_warning]
        assert [(finding.subject, finding.providers) for finding in refused] == ([(0, (0,))] if is_found else [])
        way_out = f"Sharing.{sharing.strategy.replace('-', '_')}(..., fail_requests_greater_than_one=False)"
        assert all(finding.problem.endswith(f"ask for 1, or pass {way_out}") for finding in refused)


def test_shared_memory_of_its_own_hides_that_of_the_mps_server():
    for sharing, path, limits, is_found in [
        (Sharing.mps(replicas=4), "/dev/shm", {GPU: 1}, True),
        (Sharing.mps(replicas=4), "/dev/shm/", {GPU: 1}, True),
        (Sharing.mps(replicas=4), "/data", {GPU: 1}, False),
        (Sharing.mps(replicas=4), "/dev/shm", None, False),
        (SHARED, "/dev/shm", {GPU: 1}, False),
        (Sharing.none(), "/dev/shm", {GPU: 1}, False),
    ]:
        made = bare(main(limits, volumeMounts=[{"name": "v", "mountPath": path}]))
        problem = (
            "container 'main' mounts a volume of its own at /dev/shm, where {0}, which shares GPUs by MPS, mounts the "
            "memory through which containers reach the MPS server; leave shared_memory= and volumes at /dev/shm out"
        )
        findings = check([made], [Provided(gpu_resources={GPU: sharing})])
        assert [finding.problem for finding in findings] == ([problem] if is_found else [])


def test_gpus_that_pods_ask_for_are_advertised():
    for advertised, limits, is_found in [
        (GPU, {GPU: 1}, False),
        (GPU, {SLOT: 1}, True),
        (GPU, {PROFILE: "1"}, True),
        (SLOT, {GPU: 1}, True),
        (SLOT, {SLOT: 1}, False),
        ("nvidia.com/mig-*", {PROFILE: 1}, False),
        (GPU, {"nvidia.com/hostdev": 1}, False),
        (GPU, {SLOT: 0}, False),
        (GPU, {"amd.com/gpu": 1, "memory": "1Gi"}, False),
        (GPU, {"example.com/nvidia.com": 1}, False),
    ]:
        findings = check([deployment(limits=limits)], [Provided(gpu_resources={advertised: Sharing.none()})])
        assert [finding.subject for finding in findings] == ([0] if is_found else []), (advertised, limits, is_found)
    first_and_main = bare(main({GPU: 2}), initContainers=[main({GPU: 3})])
    unknown = bare(main({"nvidia.com/mig-1g.5gb": 1}), initContainers=[main({SLOT: 2})])
    holds(
        [
            (
                "those that are there are named",
                [deployment(limits={SLOT: 2})],
                [Provided(gpu_resources={GPU: SHARED}), Provided(gpu_resources={"nvidia.com/mig-*": Sharing.none()})],
                (
                    0,
                    "asks for 2 x nvidia.com/gpu.shared, which no device plugin of this app advertises, so its pods "
                    "would never be scheduled; ask for nvidia.com/gpu or nvidia.com/mig-*",
                ),
            ),
            ("no plugin is in the app", [deployment(limits={PROFILE: 1})], [publishing(PRESENT)]),
            (
                "each container asks",
                [unknown],
                [PLAIN],
                (0, f"asks for 2 x {SLOT},"),
                (0, "asks for 1 x nvidia.com/mig-1g"),
            ),
            (
                "each container asks for several slots",
                [first_and_main],
                [Provided(gpu_resources={GPU: SHARED})],
                (0, f"asks for 3 x {GPU} but"),
                (0, f"asks for 2 x {GPU} but"),
            ),
        ]
    )


VISIBLE = [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}]


def test_visible_devices_are_refused_exactly_where_a_gpu_is_held():
    problem = (
        "container 'main' holds a GPU and sets NVIDIA_VISIBLE_DEVICES to 'all': it overrides the GPU that was "
        "allocated, and 'all' shows every GPU of the node; leave it out, or annotate the object with "
        "gpu-constructs/visible-devices=unmanaged"
    )
    for container, more, annotations, is_found in [
        (main({GPU: 1}, env=VISIBLE), {}, None, True),
        (main({SLOT: 1}, env=VISIBLE), {}, None, True),
        (main({PROFILE: 1}, env=VISIBLE), {}, None, True),
        (main({"memory": "1Gi", GPU: "1"}, env=[{"name": "A", "value": "b"}, *VISIBLE]), {}, None, True),
        (main(env=VISIBLE), {}, None, False),
        (main({"memory": "1Gi"}, env=VISIBLE), {}, None, False),
        (main({"amd.com/gpu": 1}, env=VISIBLE), {}, None, False),
        (main({GPU: 1}, env=[{"name": "NVIDIA_DRIVER_CAPABILITIES", "value": "all"}]), {}, None, False),
        (main({GPU: 1}, env=None), {}, None, False),
        # A container that holds none may see all beside one that does.
        (main({GPU: 1}), {"initContainers": [main(env=VISIBLE)]}, None, False),
        (main(), {"initContainers": [main({GPU: 1}, env=VISIBLE)]}, None, True),
        (main({GPU: 1}, env=VISIBLE), {}, {"gpu-constructs/visible-devices": "unmanaged"}, False),
        (main({GPU: 1}, env=VISIBLE), {}, {"gpu-constructs/visible-devices": "managed"}, True),
        (main({GPU: 1}, env=VISIBLE), {}, {"gpu-constructs/visible-devices": ""}, True),
        (main({GPU: 1}, env=VISIBLE), {}, {"visible-devices": "unmanaged"}, True),
    ]:
        made = bare(container, **more)
        made["metadata"]["annotations"] = annotations
        findings = [(finding.subject, finding.problem) for finding in check([made], [])]
        assert findings == ([(0, problem)] if is_found else []), (container, annotations)


def labelled(**labels):
    return Provided(gpu_nodes=GpuNodes(labels=labels))


def tainted(*taints, **labels):
    made = [dict(zip(("key", "value", "effect"), taint, strict=True)) for taint in taints]
    return Provided(gpu_nodes=GpuNodes(taints=made, labels=labels))


OPERATOR = Provided(components=("gpu-operator", "device-plugin", "dcgm-exporter"), is_alone=True)
VALIDATOR = "nvidia.com/gpu.deploy.operator-validator"
WANTS = Provided(wants_node_labels={f"{VALIDATOR}=false": "files are deleted"})


def test_components_and_node_labels_that_constructs_need_or_refuse():
    plugin, bridge = Provided(components=("device-plugin",)), Provided(components=("validation-bridge",))
    refusing = Provided(components=("gpu-operator",), refuses={"validation-bridge": "it would hide what is wrong"})
    unset = f"wants the node label {VALIDATOR}=false, which nothing in this app sets: files are deleted"
    cannot = Provided(unwanted_node_labels={f"{VALIDATOR}=false": "nobody validates"})
    staging = Provided(components=("validation-bridge",), stages_driver_in="/var/driver")
    looking = [
        Provided(components=("gpu-operator",), is_alone=True, driver_install_dir=folder)
        for folder in (None, "/usr/local", "/var/driver")
    ]
    for sentence, provided, *said in [
        (
            "what must be alone is not installed a second time",
            [plugin, OPERATOR],
            (
                "brings the device plugin to every GPU node, and so does {1}; keep one of the two, or switch the "
                "component off in one of them",
                (1, 0),
                False,
            ),
        ),
        (
            "two of them are told once",
            [OPERATOR, OPERATOR],
            ("brings the GPU Operator, the device plugin and the DCGM exporter to every GPU node", (0, 1), False),
        ),
        ("others may be there twice", [plugin, plugin]),
        ("components that differ do not meet", [OPERATOR, Provided(components=("node-feature-discovery",))]),
        (
            "what is needed is missed",
            [Provided(needs={"validation-bridge": "add a bridge"})],
            ("needs the validation bridge beside it: add a bridge", (0,), False),
        ),
        ("what is needed is there", [Provided(needs={"validation-bridge": "add a bridge"}), bridge]),
        (
            "what is refused is there",
            [bridge, refusing],
            ("does not go with the validation bridge, which {1} is: it would hide what is wrong", (1, 0), False),
        ),
        ("what is refused is not there", [refusing]),
        *(
            ("the driver is elsewhere", [staging, one], ("does not look in /var/driver, where {1} puts", (1, 0), False))
            for one in looking[:2]
        ),
        ("the driver is found", [staging, looking[2]]),
        ("where a declared operator looks is not known", [Provided(components=("gpu-operator",)), staging]),
        *(
            ("a wanted label that nothing sets", [publishing(*labels), WANTS], (unset, (1,), True))
            for labels in ((), ("nvidia.com/*",), (PRESENT,), ("feature/*",))
        ),
        *(("something sets it", [WANTS, publishing(one)]) for one in (VALIDATOR, "nvidia.com/gpu.deploy.*")),
        ("nodes have it", [labelled(**{VALIDATOR: "false"}), WANTS]),
        (
            "nodes have another value",
            [labelled(**{VALIDATOR: "true"}), WANTS],
            (f"wants the node label {VALIDATOR}=false, which {{1}} does not set", (1, 0), True),
        ),
        (
            "some nodes lack it",
            [labelled(**{VALIDATOR: "false"}), labelled(), WANTS],
            (f"wants the node label {VALIDATOR}=false, which {{1}} does not set", (2, 1), True),
        ),
        (
            "an operator does not set what is wanted of it",
            [Provided(components=("gpu-operator",), node_labels=("nvidia.com/gpu.deploy.*",)), WANTS],
            (unset, (1,), True),
        ),
        (
            "a label with which something cannot work",
            [labelled(**{VALIDATOR: "false"}), cannot],
            (f"cannot work with the node label {VALIDATOR}=false, which {{1}} sets: nobody validates", (1, 0), True),
        ),
        ("another label", [labelled(a="b"), cannot]),
        (
            "a label that the operator sets is left to it",
            [OPERATOR, labelled(**{PRESENT: "true", "a": "b"})],
            (
                "gives nodes the label nvidia.com/gpu.present, which {1} sets and removes by what it finds: the two "
                "undo each other's; leave it to the operator",
                (1, 0),
                True,
            ),
        ),
        ("no operator sets it", [labelled(**{PRESENT: "true"})]),
        ("the operator does not set it", [OPERATOR, labelled(a="b")]),
    ]:
        findings = check([], provided)
        assert [(one.subject, one.providers, one.is_warning) for one in findings] == [
            (None, providers, is_warning) for _, providers, is_warning in said
        ], sentence
        assert all(words in one.problem for one, (words, *_) in zip(findings, said, strict=True)), sentence


DEDICATED = ("dedicated", "ai", "NoSchedule")


def test_a_gpu_pod_that_no_gpu_node_would_take_is_an_error():
    for spec in [
        {"limits": {GPU: 1}},
        {"nodeSelector": {PRESENT: "true"}},
        {"nodeSelector": {"extensions.talos.dev/nvidia-open-gpu-kernel-modules-production": ""}},
    ]:
        (finding,) = check([deployment(**spec)], [tainted(DEDICATED), publishing(PRESENT)])
        assert finding == Finding(
            0,
            "does not tolerate the taint dedicated=ai:NoSchedule of {0}, so its pods would never run on any GPU node "
            "of this app; pass tolerations=[Toleration(key='dedicated', operator='Exists', effect='NoSchedule')]",
            providers=(0,),
            code="R25",
        )


def test_a_taint_is_tolerated_as_kubernetes_has_it():
    for toleration, is_tolerated in [
        ({"operator": "Exists"}, True),
        ({"key": "dedicated", "operator": "Exists"}, True),
        ({"key": "dedicated", "value": "ai"}, True),
        ({"key": "dedicated", "operator": "Equal", "value": "ai", "effect": "NoSchedule"}, True),
        ({"key": "dedicated", "value": "other"}, False),
        ({"key": "other", "operator": "Exists"}, False),
        ({"key": "dedicated", "value": "ai", "effect": "NoExecute"}, False),
    ]:
        made = deployment(limits={GPU: 1}, tolerations=[toleration])
        assert (check([made], [tainted(DEDICATED)]) == []) is is_tolerated, toleration
        later = Provided(later_tolerations=[toleration])
        assert [one.providers for one in check([], [tainted(DEDICATED), later])] == [(1, 0)] * (not is_tolerated)
        assert check([], [later]) == []


def test_taints_count_of_the_gpu_nodes_that_a_pod_is_for():
    gpus, daemons = deployment(limits={GPU: 1}), deployment(nodeSelector={PRESENT: "true"}) | {"kind": "DaemonSet"}
    pools, there = [tainted(DEDICATED, pool="a"), tainted(pool="b")], publishing(PRESENT)
    in_pool = {name: deployment(limits={GPU: 1}, nodeSelector={"pool": name}) for name in ("a", "b", "elsewhere")}
    for sentence, manifests, provided, *said in [
        ("one node that takes it is enough", [gpus], [tainted(DEDICATED), tainted()]),
        ("a DaemonSet is for each", [daemons], [tainted(), tainted(DEDICATED), there], ("run there; pass", (1,), True)),
        ("none takes the DaemonSet", [daemons], [tainted(DEDICATED), there], ("on any GPU node", (0,), False)),
        (
            "pods that are brought later are for each",
            [],
            [tainted(), tainted(DEDICATED), Provided(later_tolerations=())],
            ("run there; pass", (2, 1), True),
        ),
        ("the nodes of the pool", [in_pool["a"]], pools, ("dedicated", (0,), False)),
        ("other nodes", [in_pool["b"]], pools),
        ("nodes of which nothing is known", [in_pool["elsewhere"]], [tainted(DEDICATED), publishing("pool")]),
        ("no GPU is asked for", [deployment(limits={GPU: 0})], [tainted(DEDICATED)]),
        ("nodes only prefer others", [gpus], [tainted(("a", "b", "PreferNoSchedule"))]),
        ("pods for other nodes", [deployment()], [tainted(DEDICATED)]),
    ]:
        findings = check(manifests, provided)
        assert [(one.providers, one.is_warning) for one in findings] == [tuple(rest) for _, *rest in said], sentence
        assert all(words in one.problem for one, (words, *_) in zip(findings, said, strict=True)), sentence
    for label, is_warning in [("elsewhere", True), ("pool", False), (PRESENT, False)]:
        made = deployment(limits={GPU: 1}, **affinity({label: []}))
        findings = check([made], [pools[0], there])
        assert [finding.is_warning for finding in findings if finding.code == "R25"] == [is_warning], label


def test_nodes_of_the_inventory_have_taints_too():
    taints = [Taint(key="dedicated", value="ai", effect="NoSchedule")]
    nodes = [GpuNode(name="one", taints=taints), GpuNode(name="two", taints=taints)]
    settings = OF_PROVIDERS._replace(inventory=GpuInventory(nodes=nodes))
    (finding,) = check_app([deployment(limits={GPU: 1})], [], settings)
    assert finding.problem.startswith("does not tolerate the taint dedicated=ai:NoSchedule of node 'one', so its pods ")
    assert (finding.providers, finding.is_warning) == ((), False)
    settings = OF_PROVIDERS._replace(inventory=GpuInventory(nodes=[*nodes, GpuNode(name="three")]))
    assert check_app([deployment(limits={GPU: 1})], [], settings) == []


# Scraping.

EXPORTER = {"app": "exporter"}
SCRAPING = ["ServiceMonitor", "PodMonitor", "VMServiceScrape", "VMPodScrape"]


def exporter(name="x"):
    container = main(ports=[{"name": "metrics", "containerPort": 9400}])
    template = {"metadata": {"labels": EXPORTER}, "spec": {"containers": [container]}}
    return obj("apps/v1", "DaemonSet", name, spec={"template": template})


def exporter_service():
    made = obj("v1", "Service", spec={"selector": EXPORTER, "ports": [{"name": "metrics", "port": 9400}]})
    made["metadata"]["labels"] = EXPORTER
    return made


def scraping(kind, name="x", annotations=None, **endpoint):
    group = "operator.victoriametrics.com/v1beta1" if kind.startswith("VM") else "monitoring.coreos.com/v1"
    field = "podMetricsEndpoints" if "Pod" in kind else "endpoints"
    spec = {"selector": {"matchLabels": EXPORTER}, field: [{"port": "metrics", **endpoint}]}
    made = obj(group, kind, name, spec=spec)
    made["metadata"]["annotations"] = annotations
    return made


def test_objects_that_scrape_the_same_port_of_the_same_pods_are_found():
    for kind in SCRAPING:
        alone = [exporter(), exporter_service(), scraping(kind, "a")]
        assert check(alone, []) == [], kind
        assert check([*alone, scraping(kind, "b", path="/other")], []) == [], kind
        for other in SCRAPING:
            assert check([*alone, scraping(other, "b")], []) == [
                Finding(
                    3,
                    "scrapes port 9400 of {0}, and so does {1}: every series would be there twice, also where the "
                    "VictoriaMetrics operator converts a Prometheus object; keep one of the two, or annotate one with "
                    "gpu-constructs/scraped-twice=intended where they are for two stores",
                    others=(0, 2),
                )
            ]
    for manifests, said in [
        ([exporter(), *(scraping("PodMonitor", name) for name in "abc")], [(2, (0, 1)), (3, (0, 1)), (3, (0, 2))]),
        ([exporter("a"), exporter("b"), scraping("PodMonitor", "a"), scraping("VMPodScrape", "b")], [(3, (0, 2))]),
        (
            [
                exporter(),
                scraping("PodMonitor", "a"),
                scraping("VMPodScrape", "b", {"gpu-constructs/scraped-twice": "intended"}),
            ],
            [],
        ),
    ]:
        assert [(finding.subject, finding.others) for finding in check(manifests, [])] == said


def test_gpus_of_a_node_that_two_can_be_on_are_profiled_by_one():
    def profiling(nodes):
        return Provided() if nodes is None else Provided(profiles_gpus=True, runs_on=[{"nodeSelector": nodes}])

    for one, other, is_found in [
        ({}, {}, True),
        ({}, {"pool": "a"}, True),
        ({"pool": "a"}, {}, True),
        ({"pool": "a"}, {"pool": "a"}, True),
        ({"pool": "a"}, {"zone": "b"}, True),
        ({"pool": "a"}, {"pool": "a", "zone": "b"}, True),
        ({"pool": "a"}, {"pool": "b"}, False),
        ({"pool": "a", "zone": "b"}, {"pool": "b", "zone": "b"}, False),
        ({}, None, False),
    ]:
        expected = Finding(
            None,
            "exports profiling metrics (DCGM_FI_PROF_*) of nodes whose GPUs {1} profiles too, and only one can at a "
            "time: the other fails; leave them out of one's metrics, or select different nodes with node_selector",
            providers=(0, 2),
        )
        findings = check([], [profiling(one), Provided(), profiling(other)])
        assert findings == ([expected] if is_found else []), (one, other, is_found)
    offers = [profiling(nodes) for nodes in ({}, {"pool": "a"}, {"pool": "b"})]
    assert [finding.providers for finding in check([], offers)] == [(0, 1), (0, 2)]


# A policy that would refuse pods of the app.

CLASS = obj("node.k8s.io/v1", "RuntimeClass", "nvidia", handler="nvidia")


def guard_of(app, **given):
    """What such a policy says of itself, and the policy."""
    chart = Chart(app, "guard")
    made = DenyVisibleDevicesOverride(chart, "policy", **given)
    return made.provides, Testing.synth(chart)[0]


def refused(provides, spec, namespace="team", labels=None):
    """What is said of a pod in a namespace of the app, which has a plugin for it."""
    where = obj("v1", "Namespace", namespace) | {"metadata": {"name": namespace, "labels": labels}}
    made = obj("batch/v1", "Job", "x", namespace, spec={"template": {"spec": spec}})
    return [f for f in check_app([CLASS, where, made], [provides], OF_PROVIDERS) if "would be refused by" in f.problem]


UNSEEN = {"envFrom": [{"configMapRef": {"name": "a"}}]}
UNDER = {"runtimeClassName": "nvidia"}
JUDGED = [
    *({"containers": [main(env=[{"name": "NVIDIA_VISIBLE_DEVICES", "value": v}])]} for v in ("all", "0", "void", "")),
    {"containers": [main(env=[{"name": "NVIDIA_VISIBLE_DEVICES"}, {"name": "A", "value": "all"}])]},
    {"containers": [main(env=[{"name": "NVIDIA_VISIBLE_DEVICES", "valueFrom": {"fieldRef": {"fieldPath": "a"}}}])]},
    {"containers": [main()], "initContainers": [main(env=[{"name": "NVIDIA_VISIBLE_DEVICES", "value": "1"}])]},
    {"containers": [main()]},
    {"containers": [main()], **UNDER},
    {"containers": [main({GPU: 0})], **UNDER},
    {"containers": [main({GPU: 1})], **UNDER},
    {"containers": [main()], "initContainers": [main({"nvidia.com/mig-1g.5gb": 1})], **UNDER},
    {"containers": [main({"nvidia.com/hostdev": 1})], **UNDER},
    {"containers": [main({GPU: 1}, **UNSEEN)], **UNDER},
    {"containers": [main({GPU: 1}, **UNSEEN)]},
    {"containers": [main({GPU: 1}, env=[{"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"}], **UNSEEN)], **UNDER},
]


@pytest.mark.parametrize(
    "given", [{}, {"require_gpu_request": False}, {"deny_env_from": True}, {"runtime_class": "other"}], ids=str
)
def test_synth_refuses_the_pods_that_the_policy_refuses(app, given):
    provides, policy = guard_of(app, **given)
    for spec in JUDGED:
        assert bool(refused(provides, spec)) is bool(cel.denials(policy, {"spec": spec})), spec


def test_a_pod_that_the_policy_would_refuse_is_told_with_both_ways_out(app):
    provides, _ = guard_of(app)
    (finding,) = refused(provides, JUDGED[0])
    assert (finding.subject, finding.providers, finding.is_warning) == (2, (0,), False)
    assert finding.problem == (
        "pods would be refused by {0}: container 'main' sets NVIDIA_VISIBLE_DEVICES; where they have to see every GPU, "
        "add 'team' to its excluded_namespaces, or label the namespace with "
        f"GpuNamespace(..., labels={{{ALLOW_LABEL!r}: 'true'}})"
    )
    assert refused(provides, JUDGED[0], labels={ALLOW_LABEL: "false"})
    assert refused(provides, JUDGED[0], labels={ALLOW_LABEL: "true"}) == []
    assert refused(provides, JUDGED[0], namespace="kube-system") == []
    for kind in ("ServingRuntime", "ClusterServingRuntime"):
        # A runtime of KServe makes no pods itself.
        assert check([obj("serving.kserve.io/v1alpha1", kind, spec=JUDGED[0])], [provides]) == []
    # Of an InferenceService the runtime may say what is missing.
    predictor = {**UNDER, "model": {"modelFormat": {"name": "a"}}}
    service = obj("serving.kserve.io/v1beta1", "InferenceService", namespace="team", spec={"predictor": predictor})
    assert check([CLASS, namespace("team"), service, quota("limits.cpu")], [provides]) == []


def test_a_policy_that_lets_pods_through_is_not_told():
    for given in [
        {"excluded_namespaces": ["team"]},
        {"validation_actions": ["Warn", "Audit"]},
        {"validation_actions": ["Audit"]},
    ]:
        assert refused(guard_of(App(), **given)[0], JUDGED[0]) == []


def test_agents_of_the_app_are_refused_until_their_namespaces_are_left_alone(app):
    labelled = App(outdir=app.outdir)
    for made, labels, said in [
        (app, {}, ["gpu/exporter: pods would be refused by gpu/deny"]),
        (labelled, {ALLOW_LABEL: "true"}, []),
    ]:
        External(made, "labels", node_labels=[PRESENT])
        chart = Chart(made, "gpu")
        monitoring = GpuNamespace(chart, "monitoring", name="monitoring", pod_security="privileged", labels=labels)
        DcgmExporter(chart, "exporter", platform=Kubernetes(), namespace=monitoring)
        DenyVisibleDevicesOverride(chart, "deny")
        assert [problem.split(": container")[0] for problem in problems_of(made)] == said


def test_the_pods_that_an_operator_brings_later_are_thought_of():
    later = Provided(privileged_namespaces=("operator",))
    provides, _ = guard_of(App())
    (finding,) = check([namespace("operator")], [later, provides])
    assert finding.problem.startswith("brings pods to namespace 'operator' that see every GPU, and {1} would refuse")
    assert finding.providers == (0, 1)
    provides, _ = guard_of(App(), excluded_namespaces=["operator"])
    assert check([namespace("operator")], [later, provides]) == []


# What a namespace of the app allows its pods.


def bounded(container, *bounds, **spec):
    made = obj("batch/v1", "Job", "x", "team", spec={"template": {"spec": {"containers": [container], **spec}}})
    return [(f.subject, f.others, f.problem) for f in check([made, namespace("team"), *bounds], []) if f.others]


def limit_range(where="team", of="Container", **limit):
    return obj("v1", "LimitRange", "x", where, spec={"limits": [{"type": of, **limit}]})


def quota(*keys, where="team", **spec):
    return obj("v1", "ResourceQuota", "x", where, spec={"hard": dict.fromkeys(keys, "9Gi"), **spec})


def test_a_container_above_the_maximum_of_its_namespace_is_found():
    for resources, limits, is_found in [
        ({"limits": {GPU: 2}}, limit_range(max={GPU: 1}, default={GPU: 0}), True),
        ({"limits": {GPU: 1}}, limit_range(max={GPU: "1"}, default={GPU: 0}), False),
        ({"limits": {"memory": "9Gi"}}, limit_range(max={"memory": "8Gi"}), True),
        ({"limits": {"memory": "8192Mi"}}, limit_range(max={"memory": "8Gi"}), False),
        ({"limits": {"cpu": "1500m"}}, limit_range(max={"cpu": 1}), True),
        ({"requests": {"cpu": 2}}, limit_range(max={"cpu": 1}), True),
        ({"limits": {"memory": "${a}"}}, limit_range(max={"memory": "8Gi"}), False),
        ({}, limit_range(max={"memory": "8Gi"}), False),
        ({"limits": {GPU: 2}}, limit_range("default", max={GPU: 1}, default={GPU: 0}), False),
        ({"limits": {GPU: 2}}, limit_range(of="PersistentVolumeClaim", max={GPU: 1}), False),
    ]:
        found = bounded(main(resources=resources), limits)
        assert [(subject, others) for subject, others, _ in found] == ([(0, (2,))] if is_found else []), resources


def test_a_container_that_states_nothing_of_what_a_quota_counts_is_found():
    of_pod = {"resources": {"limits": {"cpu": 1}}}
    for bounds, resources, spec, is_found in [
        ([quota("requests.memory")], {}, {}, True),
        ([quota("memory")], {"limits": {"cpu": 1}}, {}, True),
        ([quota("requests.memory")], {"limits": {"memory": "1Gi"}}, {}, False),
        ([quota("requests.cpu")], {"requests": {"cpu": 1}}, {}, False),
        ([quota("limits.cpu")], {"requests": {"cpu": 1}}, {}, True),
        ([quota("limits.memory")], {"limits": {"memory": 1}}, {}, False),
        ([quota("requests.nvidia.com/gpu")], {}, {}, False),
        ([quota("pods")], {}, {}, False),
        ([quota("requests.memory"), limit_range(default={"memory": "1Gi"})], {}, {}, False),
        ([quota("requests.memory"), limit_range(max={"memory": "1Gi"})], {}, {}, False),
        ([quota("requests.memory"), limit_range(defaultRequest={"memory": "1Gi"})], {}, {}, False),
        ([quota("limits.memory"), limit_range(defaultRequest={"memory": "1Gi"})], {}, {}, True),
        ([quota("limits.cpu", scopes=["BestEffort"])], {}, {}, False),
        ([quota("limits.cpu", where="default")], {}, {}, False),
        ([quota("limits.cpu")], {}, of_pod, False),
    ]:
        found = bounded(main(resources=resources), *bounds, **spec)
        assert [(subject, others) for subject, others, _ in found] == ([(0, (2,))] if is_found else []), bounds


def test_what_does_not_fit_is_told_with_the_way_out():
    bounds = [limit_range(max={GPU: 1}, default={GPU: 0}), quota("limits.cpu")]
    assert [problem for _, _, problem in bounded(main({GPU: 2}), *bounds)] == [
        f"pods would be refused: limits[{GPU!r}] of container 'main' is 2, and {{0}} allows a container of namespace "
        "'team' at most 1; ask for less, or raise ContainerLimits(max=...)",
        "pods would be refused: container 'main' states no limits['cpu'], which {0} demands of every container of "
        "namespace 'team' by 'limits.cpu'; state it, or give a default with "
        "GpuNamespace(limit_range=ContainerLimits(default=...))",
    ]


def test_what_cannot_be_is_no_crash():
    for gone in [None, 3, {}, {"labels": ["a"], "name": 3}]:
        kinds = [("v1", "Namespace"), ("node.k8s.io/v1", "RuntimeClass"), ("apps/v1", "Deployment"), ("v1", "List")]
        check([{"apiVersion": api, "kind": kind, "metadata": gone} for api, kind in kinds], [])
    broken = deployment(namespace="default", containers=[None, 3, main(env=[None], securityContext=[])], volumes=[None])
    check([broken], [Provided(platform=Talos())])


def test_the_objects_of_a_list_are_objects_of_the_app():
    items = [namespace("team"), deployment(namespace="team"), deployment(namespace="team")]
    findings = check([namespace("other"), {"apiVersion": "v1", "kind": "List", "items": items}], [])
    assert [(f.subject, f.others) for f in findings] == [(1, (1,))]


# Over the objects of an app, whoever made them, with construct paths.


def kplus_deployment(scope, patches, folder):
    made = kplus.Deployment(
        scope, "foreign", metadata=ApiObjectMetadata(namespace="team"), containers=[kplus.ContainerProps(image="a:1")]
    )
    ApiObject.of(made).add_json_patch(*patches)
    return "gpu/foreign"


def raw_deployment(scope, patches, folder):
    where = ApiObjectMetadata(name="foreign", namespace="team")
    made = ApiObject(scope, "foreign", api_version="apps/v1", kind="Deployment", metadata=where)
    made.add_json_patch(
        JsonPatch.add("/spec", {"strategy": {"type": "Recreate"}, "template": {"spec": pod()}}), *patches
    )
    return made.node.path


def included_deployment(scope, patches, folder):
    file = folder / "foreign.yaml"
    file.write_text(
        "{apiVersion: apps/v1, kind: Deployment, metadata: {name: foreign, namespace: team}, spec: {strategy: {type: "
        "Recreate}, template: {spec: {containers: [{name: main, image: 'a:1'}]}}}}"
    )
    (made,) = Include(scope, "foreign", url=str(file)).api_objects
    made.add_json_patch(*patches)
    return made.node.path


@pytest.mark.parametrize("make", [kplus_deployment, raw_deployment, included_deployment])
def test_what_is_wrong_with_an_object_that_is_not_of_this_library_is_found_by_its_path(app, chart, tmp_path, make):
    spec = {"runtimeClassName": "nvidia", "nodeSelector": {PRODUCT: "x"}, "hostNetwork": True}
    container = {"resources": {"limits": {"memory": "8Gi", PROFILE: 1}}, "env": VISIBLE}
    values = [*spec.items(), *((f"containers/0/{key}", value) for key, value in container.items())]
    path = make(chart, [JsonPatch.add(f"/spec/template/spec/{key}", value) for key, value in values], tmp_path)

    def said():
        return [problem.removeprefix(f"{path}: ") for problem in problems_of(app)]

    # cdk8s-plus drops a limit that it does not know.
    holds_gpu = make is not kplus_deployment
    for expected in [
        "namespace 'team' is not in this app",
        "runtime_class 'nvidia' is used but no RuntimeClass of that name is in this app",
        *(["container 'main' holds a GPU and sets NVIDIA_VISIBLE_DEVICES to 'all'"] if holds_gpu else []),
        f"selects nodes by the label {PRODUCT!r}, which nothing in this app publishes",
    ]:
        assert any(problem.startswith(expected) for problem in said()), expected
    kplus.Namespace(chart, "namespace", metadata=ApiObjectMetadata(name="team"))
    DevicePluginChart(app, "plugin", platform=Talos())
    problems = said()
    assert problems[0].startswith(
        "pods would be refused: namespace 'team' of gpu/namespace states no Pod Security level"
    )
    # Options of ours would be no way out.
    assert "Gpu" not in problems[0]
    assert "run_as_user" not in problems[0]
    held = ["container 'main' holds a GPU and sets NVIDIA_VISIBLE_DEVICES", f"asks for 1 x {PROFILE}"]
    said_of_gpus = [problem.split(" to 'all'")[0].split(", which no")[0] for problem in problems[1:]]
    assert said_of_gpus == (held if holds_gpu else [])


def test_one_object_made_in_two_charts_is_found_by_both_paths(app):
    east, west = Chart(app, "east"), Chart(app, "west")
    GpuNamespace(east, "namespace", name="team")
    for chart in (east, west):
        Manifest(Construct(chart, "config"), "Default", obj("v1", "ConfigMap", namespace="team"))
    kplus.Namespace(west, "again", metadata=ApiObjectMetadata(name="team"))
    for scope, id in ((east, "a"), (Chart(east, "inner"), "b")):
        NvidiaRuntimeClass(scope, id)
    assert {problem.partition(";")[0] for problem in problems_of(app)} == {
        "west/config: ConfigMap 'x' in namespace 'team' is already made by east/config",
        "west/again: Namespace 'team' is already made by east/namespace",
        "east/inner/b: RuntimeClass 'nvidia' is already made by east/a",
    }


def test_namespace_and_runtime_class_handed_over_are_made_once(app, chart):
    shared = {"namespace": GpuNamespace(chart, "namespace"), "runtime_class": NvidiaRuntimeClass(chart, "runtime")}
    DevicePluginChart(app, "plugin", **shared)
    GpuWorkload(chart, "train", image="a:1", kind="Job", **shared)
    PowerLimit(chart, "limit")
    DcgmExporter(chart, "exporter")
    assert problems_of(app) == []


def test_a_talos_workload_alone_misses_runtime_class_and_label(app, chart):
    GpuWorkload(chart, "train", namespace="default", image="a:1", kind="Job")
    assert [problem.split(" ")[:2] for problem in problems_of(app)] == [
        ["gpu/train:", "runtime_class"],
        ["gpu/train:", "selects"],
    ]
    DevicePluginChart(app, "plugin")
    assert problems_of(app) == []


def test_without_node_feature_discovery_the_label_of_the_workloads_is_missed(app, chart):
    DevicePluginChart(app, "plugin", node_feature_discovery=False, gpu_feature_discovery=False)
    GpuWorkload(chart, "train", image="a:1", kind="Job")
    assert [problem.split(",")[0] for problem in problems_of(app)] == [
        f"gpu/train: selects nodes by the label {PRESENT!r}"
    ]


def test_a_restricted_namespace_takes_our_workload_as_a_user_and_refuses_it_as_root(app):
    chart = Chart(app, "gpu", namespace="team")
    GpuNamespace(chart, "namespace", name="team", pod_security="restricted")
    GpuWorkload(chart, "user", image="a:1", kind="Job", platform=Kubernetes(), run_as_user=1000)
    assert problems_of(app) == []
    GpuWorkload(chart, "root", image="a:1", kind="Job", platform=Kubernetes())
    (problem,) = problems_of(app)
    assert problem.startswith(
        "gpu/root: pods would be refused: namespace 'team' of gpu/namespace enforces 'restricted', and "
    )
    assert "run_as_user=..." in problem


def test_slots_that_workloads_ask_for_are_compared_with_the_sharing_of_the_plugin(app, chart):
    DevicePluginChart(app, "plugin", sharing=SHARED)
    GpuWorkload(chart, "train", image="a:1", kind="Job", gpus=2)
    made = GpuWorkload(chart, "patched", image="a:1", kind="Job")
    limits = "/spec/template/spec/containers/0/resources/limits"
    made.api_object.add_json_patch(JsonPatch.add(f"{limits}/nvidia.com~1gpu.shared", 1))
    assert problems_of(app) == [
        "gpu/train: asks for 2 x nvidia.com/gpu but plugin shares it with fail_requests_greater_than_one: two slots "
        "are not two GPUs; ask for 1, or pass Sharing.time_slicing(..., fail_requests_greater_than_one=False) [R07]",
        "gpu/patched: asks for 1 x nvidia.com/gpu.shared, which no device plugin of this app advertises, so its pods "
        "would never be scheduled; ask for nvidia.com/gpu [R08]",
    ]


@pytest.mark.parametrize(
    ("plugin", "given", "is_found"),
    [
        ({"sharing": Sharing.time_slicing(replicas=4, rename_by_default=True)}, {"gpu_resource": SLOT}, False),
        ({"sharing": Sharing.time_slicing(replicas=4, rename_by_default=True)}, {"gpus": 2}, True),
        ({"mig_strategy": "none"}, {"gpu_resource": PROFILE}, True),
        ({"mig_strategy": "single"}, {"gpu_resource": PROFILE}, True),
        ({"mig_strategy": "mixed"}, {"gpu_resource": PROFILE}, False),
        ({"sharing": Sharing.none()}, {"gpus": 2}, False),
        ({"sharing": Sharing.time_slicing(replicas=4, fail_requests_greater_than_one=False)}, {"gpus": 2}, False),
    ],
)
def test_a_workload_asks_for_what_the_plugin_advertises(app, chart, plugin, given, is_found):
    DevicePluginChart(app, "plugin", **plugin)
    GpuWorkload(chart, "train", namespace="default", image="a:1", kind="Job", **given)
    GpuRules.enforce(app, ignore=["R07"])
    said = [problem.partition(" of this app")[0].partition(" x ")[2] for problem in problems_of(app)]
    resource = given.get("gpu_resource", GPU)
    assert said == ([f"{resource}, which no device plugin"] if is_found else [])


def test_a_workload_that_said_so_may_choose_its_gpus(app, chart):
    for kind in ["Deployment", "StatefulSet", "Job", "CronJob", "Pod"]:
        more = {"run": Run.cron_job(schedule="@daily")} if kind == "CronJob" else {"kind": kind}
        GpuWorkload(
            chart,
            kind.lower(),
            namespace="default",
            image="a:1",
            platform=Kubernetes(),
            env={"NVIDIA_VISIBLE_DEVICES": "all"},
            visible_devices="unmanaged",
            **more,
        )
    assert problems_of(app) == []


def test_what_another_cluster_shares_or_provides_does_not_matter(tmp_path):
    shared, own = (App(outdir=str(tmp_path / name)) for name in ("shared", "own"))
    DevicePluginChart(shared, "plugin", sharing=SHARED)
    GpuWorkload(Chart(own, "gpu"), "train", image="a:1", kind="Job", gpus=2)
    assert [problem.split(" ")[:3:2] for problem in problems_of(shared, own)] == [
        ["own:", "runtime_class"],
        ["own:", "selects"],
    ]


WANTED = {"runtime_classes": "nvidia", "node_labels": PRESENT, "namespaces": "team"}
SIGNS = {"runtime_classes": "runtime_class", "node_labels": "selects", "namespaces": "namespace"}


@pytest.mark.parametrize("declared", [(), *((keyword,) for keyword in WANTED), tuple(WANTED)])
def test_an_external_silences_exactly_what_it_declares(app, declared):
    """Wherever it is in the app, and by no other name."""
    GpuWorkload(Chart(app, "train", namespace="team"), "train", image="a:1", kind="Job")
    External(Construct(Chart(app, "deep"), "a"), "existing", **{keyword: [WANTED[keyword]] for keyword in declared})
    External(app, "other", runtime_classes=["other"], node_labels=["nvidia.com/gpu.count"], namespaces=["teams"])
    signs = {problem.split(" ")[1] for problem in problems_of(app)}
    assert signs == {SIGNS[keyword] for keyword in WANTED if keyword not in declared}


def test_a_runtime_class_has_one_owner(app, chart):
    External(app, "operator", runtime_classes=["nvidia"])
    NvidiaRuntimeClass(chart, "own", name="nvidia-own")
    assert problems_of(app) == []
    NvidiaRuntimeClass(chart, "runtime-class")
    assert problems_of(app) == [
        f"{chart.node.path}/runtime-class: RuntimeClass 'nvidia' comes from operator already, and two owners undo each "
        "other's; leave one out"
    ]
