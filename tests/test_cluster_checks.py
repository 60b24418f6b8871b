from dataclasses import replace

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
    Sharing,
    SynthesisError,
    Taint,
    Talos,
    synthesize,
)
from gpu_constructs._manifest import Manifest
from gpu_constructs.admission.visible_devices import ALLOW_LABEL
from gpu_constructs.cluster_checks import Finding
from gpu_constructs.cluster_checks import check as check_app
from gpu_constructs.provided import GpuNodes, Provided
from gpu_constructs.rules.table import CODES, RuleSettings

GPU = "nvidia.com/gpu"
PRESENT = "nvidia.com/gpu.present"
SHARED = Sharing.time_slicing(replicas=4)
# Those that look at what providers say; the others have their tests in test_rules.py.
OF_PROVIDERS = RuleSettings(ignore=frozenset(CODES) - {"R05", "R07", "R08", "R12", "R14", "R25"})


def obj(api_version, kind, name="x", namespace=None, **more):
    metadata = {"name": name} | ({"namespace": namespace} if namespace else {})
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **more}


def namespace(name, **labels):
    made = obj("v1", "Namespace", name)
    if labels:
        made["metadata"]["labels"] = {f"pod-security.kubernetes.io/{mode}": level for mode, level in labels.items()}
    return made


def pod(limits=None, **spec):
    container = {"name": "main", "image": "a:1"} | ({"resources": {"limits": limits}} if limits else {})
    return {"containers": [container], **spec}


def deployment(name="x", namespace=None, **more):
    return obj("apps/v1", "Deployment", name, namespace, spec={"template": {"spec": pod(**more)}})


def check(manifests, provided):
    return check_app(manifests, provided, OF_PROVIDERS)


def found(manifests, *provided):
    return [(finding.subject, finding.problem) for finding in check(manifests, provided)]


def problems_of(*apps):
    """Every problem that a synth of the apps finds, none when it succeeds."""
    try:
        synthesize(*apps)
    except SynthesisError as error:
        return error.problems
    return []


def kplus_deployment(scope, id="foreign", *patches, namespace=None):
    made = kplus.Deployment(
        scope,
        id,
        metadata=ApiObjectMetadata(name=id, namespace=namespace),
        containers=[kplus.ContainerProps(image="a:1")],
    )
    ApiObject.of(made).add_json_patch(*(JsonPatch.add(f"/spec/template/spec{path}", value) for path, value in patches))
    return made


def raw_deployment(scope, id="foreign", *patches, namespace=None):
    made = ApiObject(
        scope, id, api_version="apps/v1", kind="Deployment", metadata=ApiObjectMetadata(name=id, namespace=namespace)
    )
    made.add_json_patch(JsonPatch.add("/spec", {"strategy": {"type": "Recreate"}, "template": {"spec": pod()}}))
    made.add_json_patch(*(JsonPatch.add(f"/spec/template/spec{path}", value) for path, value in patches))
    return made


@pytest.fixture
def included_deployment(tmp_path):
    def include(scope, id="foreign", *patches, namespace=None):
        file = tmp_path / f"{id}.yaml"
        lines = ["apiVersion: apps/v1", "kind: Deployment", "metadata:", f"  name: {id}"]
        lines += [f"  namespace: {namespace}"] if namespace else []
        lines += ["spec: {strategy: {type: Recreate}, template: {spec: {containers: [{name: main, image: 'a:1'}]}}}"]
        file.write_text("\n".join(lines))
        (made,) = Include(scope, id, url=str(file)).api_objects
        made.add_json_patch(*(JsonPatch.add(f"/spec/template/spec{path}", value) for path, value in patches))
        return made

    return include


@pytest.fixture(params=["cdk8s-plus", "raw", "included"])
def foreign(request, included_deployment):
    """Make a Deployment that is not of this library."""
    return {"cdk8s-plus": kplus_deployment, "raw": raw_deployment, "included": included_deployment}[request.param]


@pytest.fixture(params=["raw", "included"])
def foreign_gpu_user(request, included_deployment):
    """Make a Deployment that is not of this library and holds GPUs; cdk8s-plus would drop a limit it does not know."""
    make = {"raw": raw_deployment, "included": included_deployment}[request.param]

    def made(scope, limits, *patches):
        resources = {"limits": {"memory": "8Gi", **limits}}
        return make(scope, "foreign", ("/containers/0/resources", resources), *patches)

    return made


def path_of(made):
    path = ApiObject.of(made).node.path if not isinstance(made, ApiObject) else made.node.path
    return path.removesuffix("/Resource")


# Every check over plain manifests.


def test_nothing_is_wrong_with_nothing():
    assert check([], []) == []


def test_one_object_made_twice_is_found_and_names_the_first():
    manifests = [obj("v1", "ConfigMap"), obj("v1", "Secret"), obj("v1", "ConfigMap"), obj("v1", "ConfigMap")]
    problem = "ConfigMap 'x' is already made by {0}; make it once and hand it to the others"
    assert check(manifests, []) == [Finding(2, problem, (0,)), Finding(3, problem, (0,))]


def test_the_same_object_in_another_version_of_its_group_is_the_same_object():
    manifests = [obj("resource.k8s.io/v1", "DeviceClass"), obj("resource.k8s.io/v1beta1", "DeviceClass")]
    assert [subject for subject, _ in found(manifests)] == [1]


@pytest.mark.parametrize(
    "other",
    [
        obj("v1", "Secret"),
        obj("example.com/v1", "ConfigMap"),
        obj("v1", "ConfigMap", "y"),
        obj("v1", "ConfigMap", namespace="kube-system"),
    ],
)
def test_objects_that_differ_in_group_kind_name_or_namespace_stand_side_by_side(other):
    assert found([obj("v1", "ConfigMap"), other]) == []


def test_a_duplicate_inside_a_namespace_says_which():
    manifests = [obj("v1", "ConfigMap", namespace="kube-system")] * 2
    ((_, problem),) = found(manifests)
    assert problem.startswith("ConfigMap 'x' in namespace 'kube-system' is already made by {0}")


def test_an_object_without_a_namespace_and_one_in_default_are_the_same_object():
    manifests = [obj("v1", "ConfigMap"), obj("v1", "ConfigMap", namespace="default")]
    assert [subject for subject, _ in found(manifests)] == [1]


def test_a_missing_namespace_is_found_once_with_the_way_out():
    manifests = [obj("v1", "ConfigMap", "a", "team"), obj("v1", "ConfigMap", "b", "team")]
    assert found(manifests) == [
        (
            0,
            "namespace 'team' is not in this app; add GpuNamespace(chart, 'namespace', name='team') or declare it "
            "with External(app, 'existing', namespaces=['team'])",
        )
    ]


def test_each_missing_namespace_is_found():
    manifests = [obj("v1", "ConfigMap", namespace="a"), obj("v1", "ConfigMap", namespace="b")]
    assert [subject for subject, _ in found(manifests)] == [0, 1]


def test_a_namespace_may_come_later_in_the_app():
    assert found([obj("v1", "ConfigMap", namespace="team"), namespace("team")]) == []


@pytest.mark.parametrize("name", ["default", "kube-system", "kube-public", "kube-node-lease"])
def test_namespaces_every_cluster_is_born_with_are_not_missed(name):
    assert found([obj("v1", "ConfigMap", namespace=name)]) == []


def test_a_namespace_of_another_group_is_no_namespace():
    manifests = [obj("example.com/v1", "Namespace", "team"), obj("v1", "ConfigMap", namespace="team")]
    assert [subject for subject, _ in found(manifests)] == [1]


def test_a_missing_runtime_class_is_found_with_the_way_out():
    assert found([deployment(runtimeClassName="nvidia")]) == [
        (
            0,
            "runtime_class 'nvidia' is used but no RuntimeClass of that name is in this app; add an "
            "NvidiaRuntimeClass, declare it with External(app, 'existing', runtime_classes=['nvidia']), or pass "
            "platform=Kubernetes() where the nodes' default runtime knows NVIDIA devices",
        )
    ]


@pytest.mark.parametrize("api_version", ["node.k8s.io/v1", "node.k8s.io/v1beta1"])
def test_a_runtime_class_of_the_app_is_not_missed(api_version):
    manifests = [deployment(runtimeClassName="nvidia"), obj(api_version, "RuntimeClass", "nvidia")]
    assert found(manifests) == []


def test_a_runtime_class_of_another_name_does_not_serve():
    manifests = [deployment(runtimeClassName="nvidia"), obj("node.k8s.io/v1", "RuntimeClass", "nvidia-cdi")]
    assert [subject for subject, _ in found(manifests)] == [0]


def test_a_label_that_nothing_publishes_is_found_with_the_way_out():
    assert found([deployment(nodeSelector={PRESENT: "true"})]) == [
        (
            0,
            "selects nodes by the label 'nvidia.com/gpu.present', which nothing in this app publishes, so its pods "
            "would never be scheduled; add a DevicePluginChart with node_feature_discovery=True or declare it with "
            "External(app, 'existing', node_labels=['nvidia.com/gpu.present'])",
        )
    ]


@pytest.mark.parametrize("published", [PRESENT, "nvidia.com/gpu.*", "nvidia.com/*"])
def test_a_label_that_is_published_is_not_missed(published):
    assert found([deployment(nodeSelector={PRESENT: "true"})], Provided(node_labels=[published])) == []


@pytest.mark.parametrize("published", ["nvidia.com/gpu.presen", "nvidia.com/gpu", "nvidia.com/gpu.product*"])
def test_another_label_that_is_published_does_not_serve(published):
    assert len(found([deployment(nodeSelector={PRESENT: "true"})], Provided(node_labels=[published]))) == 1


@pytest.mark.parametrize(
    "label",
    [
        *("kubernetes.io/arch", "node-role.kubernetes.io/worker", "topology.kubernetes.io/zone"),
        *("extensions.talos.dev/nvidia", "team.nvidia.com/x", "eks.amazonaws.com/nodegroup", "karpenter.sh/nodepool"),
        *("cloud.google.com/gke-accelerator", "kubernetes.azure.com/agentpool", "agentpool.cattle.io/x"),
    ],
)
def test_labels_of_kubernetes_systems_and_clouds_are_there(label):
    assert found([deployment(nodeSelector={label: "x"})]) == []


@pytest.mark.parametrize("limits", [None, {GPU: 1}])
def test_a_label_that_nothing_sets_is_warned_of_with_the_way_out(limits):
    (finding,) = check([deployment(limits=limits, nodeSelector={"gpu-pool": "a"})], [Provided(gpu_resources=PLAIN)])
    assert finding.is_warning
    assert finding.problem.startswith("selects nodes by the label 'gpu-pool', which nothing in this app sets; declare")
    assert "External(app, 'existing', node_labels=['gpu-pool'])" in finding.problem


POOL = Provided(gpu_nodes=GpuNodes(labels={"gpu-pool": "a"}))
PLAIN = {GPU: Sharing.none()}


@pytest.mark.parametrize(
    ("label", "value", "given", "problem"),
    [
        ("gpu-pool", "a", [POOL], None),
        ("gpu-pool", "b", [Provided(node_labels=["gpu-pool"])], None),
        ("gpu-pool", "b", [POOL, Provided(node_labels=["gpu-*"])], None),
        ("gpu-pool", "b", [POOL], "selects nodes by the label 'gpu-pool' of 'b'; the nodes of this app have 'a'"),
        ("gpu-pol", "a", [POOL], "selects nodes by the label 'gpu-pol', which nothing in this app sets (did you mean"),
    ],
)
def test_a_label_that_nodes_of_the_app_have_is_compared_with_its_values(label, value, given, problem):
    for selector in ({"nodeSelector": {label: value}}, {"affinity": one_of(label, value)}):
        findings = check([deployment(limits={GPU: 1}, **selector)], [Provided(gpu_resources=PLAIN), *given])
        assert [(finding.is_warning, finding.problem.startswith(problem)) for finding in findings] == (
            [(True, True)] if problem else []
        )


def test_a_pod_for_other_nodes_may_want_another_value_than_gpu_nodes_have():
    assert found([deployment(nodeSelector={"gpu-pool": "none"})], POOL) == []


def one_of(label, *values):
    term = {"matchExpressions": [{"key": label, "operator": "In", "values": list(values)}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}


LABELLER = Provided(
    node_labels=["nvidia.com/gpu.product"], components=("gpu-feature-discovery",), gpu_resources={GPU: Sharing.none()}
)


@pytest.mark.parametrize(
    ("value", "near"),
    [
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
    ],
)
def test_a_product_that_no_board_is_called_is_an_error_with_the_right_label(value, near):
    manifests = [deployment(limits={GPU: 1}, nodeSelector={"nvidia.com/gpu.product": value})]
    findings = check(manifests, [LABELLER])
    assert [(f.is_warning, near in f.problem) for f in findings] == ([] if near is None else [(False, True)])
    declared = check(manifests, [Provided(node_labels=["nvidia.com/*"], gpu_resources={GPU: Sharing.none()})])
    assert [f.is_warning for f in declared] == ([] if near is None else [True])
    stated = Provided(gpu_nodes=GpuNodes(labels={"nvidia.com/gpu.product": value}))
    assert check(manifests, [LABELLER, stated]) == []


def test_one_product_of_several_that_a_board_is_called_is_enough():
    products = one_of("nvidia.com/gpu.product", "RTX-4090", "NVIDIA-GeForce-RTX-4090")
    assert check([deployment(limits={GPU: 1}, affinity=products)], [LABELLER]) == []


def test_a_product_that_the_inventory_lacks_is_an_error():
    inventory = GpuInventory(nodes=[GpuNode(name="one", gpu_model="RTX 3090")])
    settings = RuleSettings(ignore=OF_PROVIDERS.ignore, inventory=inventory)

    def problems(product, inventory=inventory):
        manifests = [deployment(limits={GPU: 1}, nodeSelector={"nvidia.com/gpu.product": product})]
        return [f.problem for f in check_app(manifests, [LABELLER], replace(settings, inventory=inventory))]

    (problem,) = problems("NVIDIA-GeForce-RTX-4090")
    assert "of which the inventory has none; it has 'NVIDIA-GeForce-RTX-3090'" in problem
    assert problems("NVIDIA-GeForce-RTX-3090-SHARED") == []
    unknown = GpuInventory(nodes=[*inventory.nodes, GpuNode(name="two", vram="24Gi")])
    assert problems("NVIDIA-GeForce-RTX-4090", unknown) == []


def affinity(*keys):
    terms = [{"matchExpressions": [{"key": key, "operator": "Exists"}]} for key in keys]
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}


def test_of_alternative_labels_one_published_is_enough():
    manifests = [deployment(affinity=affinity("feature.node.kubernetes.io/pci-10de.present", PRESENT))]
    assert len(found(manifests)) == 1
    assert found(manifests, Provided(node_labels=[PRESENT])) == []
    assert found(manifests, Provided(node_labels=["feature.node.kubernetes.io/*"])) == []


def test_of_alternative_labels_one_that_is_declared_is_enough():
    manifests = [deployment(affinity=affinity(PRESENT, "disktype"))]
    ((_, problem),) = found(manifests)
    assert "'disktype'" in problem
    assert found(manifests, Provided(node_labels=["disktype"])) == []


def test_all_labels_of_one_term_must_be_published():
    manifests = [deployment(affinity=one_term(PRESENT, "disktype"))]
    assert len(found(manifests, Provided(node_labels=[PRESENT]))) == 1
    assert found(manifests, Provided(node_labels=[PRESENT, "disktype"])) == []


def one_term(*keys):
    term = {"matchExpressions": [{"key": key, "operator": "Exists"} for key in keys]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}


@pytest.mark.parametrize(
    ("level", "spec", "is_refused"),
    [
        ("privileged", {"hostPID": True}, False),
        ("baseline", {"hostPID": True}, True),
        ("baseline", {}, False),
        ("restricted", {}, True),
    ],
)
def test_a_pod_its_namespace_would_refuse_is_found(level, spec, is_refused):
    manifests = [namespace("team", enforce=level), deployment(namespace="team", **spec)]
    findings = check(manifests, [])
    assert [(finding.subject, finding.others) for finding in findings] == ([(1, (0,))] if is_refused else [])


def test_the_pods_problem_lists_what_the_level_forbids_and_the_way_out():
    manifests = [namespace("team", enforce="baseline"), deployment(namespace="team", hostPID=True, hostNetwork=True)]
    ((_, problem),) = found(manifests)
    assert problem.startswith(
        "pods would be refused: namespace 'team' of {0} enforces 'baseline', and hostNamespaces: "
    )
    assert "hostPID" in problem
    assert "hostNetwork" in problem
    assert problem.endswith(
        "; write no hostNetwork, hostPID and hostIPC in the pod, or give its namespace another "
        "pod-security.kubernetes.io/enforce"
    )


def test_the_way_out_for_a_pod_that_says_nothing_is_what_the_level_restricted_wants():
    ((_, problem),) = found([namespace("team", enforce="restricted"), deployment(namespace="team")])
    assert problem.partition("; write ")[2].split(" in the pod, ")[0].split(", security") == [
        "securityContext.capabilities: {drop: [ALL], add: []}",
        "Context.seccompProfile.type: RuntimeDefault",
        "Context.allowPrivilegeEscalation: false",
        "Context.runAsNonRoot: true",
    ]


def test_only_the_enforced_level_refuses_pods():
    manifests = [namespace("team", audit="restricted", warn="restricted"), deployment(namespace="team", hostPID=True)]
    assert found(manifests) == []


def test_where_the_platform_enforces_baseline_a_namespace_that_says_nothing_does_too():
    manifests = [namespace("team"), deployment(namespace="team", hostPID=True)]
    assert found(manifests) == []
    ((_, problem),) = found(manifests, Provided(platform=Talos()))
    assert problem.startswith(
        "pods would be refused: namespace 'team' of {0} states no Pod Security level, so 'baseline' holds, and "
    )


def test_where_the_platform_enforces_baseline_the_default_namespace_does_too():
    manifests = [deployment(hostPID=True), deployment("y", "default", hostPID=True)]
    assert found(manifests) == []
    findings = found(manifests, Provided(platform=Talos()))
    assert [(subject, problem.partition(" states")[0]) for subject, problem in findings] == [
        (subject, "pods would be refused: namespace 'default'") for subject in (0, 1)
    ]


def test_the_level_of_a_namespace_made_elsewhere_is_not_guessed():
    manifests = [deployment(namespace="team", hostPID=True)]
    assert found(manifests, Provided(namespaces=["team"], platform=Talos())) == []


@pytest.mark.parametrize(
    ("sharing", "limits", "is_found"),
    [
        (SHARED, {GPU: 1}, False),
        (SHARED, {GPU: 2}, True),
        (SHARED, {GPU: "2"}, True),
        (SHARED, {"memory": "2Gi"}, False),
        (Sharing.time_slicing(replicas=4, fail_requests_greater_than_one=False), {GPU: 2}, False),
        (Sharing.time_slicing(replicas=4, rename_by_default=True), {"nvidia.com/gpu.shared": 1}, False),
        (Sharing.time_slicing(replicas=4, rename_by_default=True), {"nvidia.com/gpu.shared": 2}, True),
        (Sharing.none(), {GPU: 2}, False),
    ],
)
def test_several_slots_are_refused_exactly_where_the_sharing_refuses_them(sharing, limits, is_found):
    findings = check([deployment(limits=limits)], [Provided(gpu_resources={sharing.gpu_resource: sharing})])
    refused = [finding for finding in findings if not finding.is_warning]
    assert [(finding.subject, finding.providers) for finding in refused] == ([(0, (0,))] if is_found else [])


def test_the_way_out_of_several_slots_names_the_sharing_at_work():
    limits, sharing = {GPU: 2}, Sharing.mps(replicas=4)
    ((_, problem),) = found([deployment(limits=limits)], Provided(gpu_resources={GPU: sharing}))
    assert problem.endswith("ask for 1, or pass Sharing.mps(..., fail_requests_greater_than_one=False)")


@pytest.mark.parametrize(
    ("sharing", "path", "is_found"),
    [
        (Sharing.mps(replicas=4), "/dev/shm", True),
        (Sharing.mps(replicas=4), "/dev/shm/", True),
        (Sharing.mps(replicas=4), "/data", False),
        (SHARED, "/dev/shm", False),
        (Sharing.none(), "/dev/shm", False),
    ],
)
def test_shared_memory_of_its_own_hides_that_of_the_mps_server(sharing, path, is_found):
    spec = pod({GPU: 1})
    spec["containers"][0]["volumeMounts"] = [{"name": "v", "mountPath": path}]
    findings = found([obj("v1", "Pod", spec=spec)], Provided(gpu_resources={GPU: sharing}))
    name = spec["containers"][0]["name"]
    problem = (
        f"container {name!r} mounts a volume of its own at /dev/shm, where {{0}}, which shares GPUs by MPS, mounts the "
        "memory through which containers reach the MPS server; leave shared_memory= and volumes at /dev/shm out"
    )
    assert [found_problem for _, found_problem in findings] == ([problem] if is_found else [])


def test_a_container_without_a_slot_keeps_its_shared_memory_beside_mps():
    spec = pod({})
    spec["containers"][0]["volumeMounts"] = [{"name": "v", "mountPath": "/dev/shm"}]
    assert found([obj("v1", "Pod", spec=spec)], Provided(gpu_resources={GPU: Sharing.mps(replicas=4)})) == []


def test_each_container_that_asks_for_several_slots_is_found():
    spec = pod({GPU: 2})
    spec["initContainers"] = pod({GPU: 3})["containers"]
    findings = found([obj("v1", "Pod", spec=spec)], Provided(gpu_resources={GPU: SHARED}))
    assert [problem.split(" but ")[0] for _, problem in findings] == [f"asks for {n} x {GPU}" for n in (3, 2)]


def test_a_gpu_that_no_plugin_advertises_is_found_with_those_that_are():
    provided = [Provided(gpu_resources={GPU: SHARED}), Provided(gpu_resources={"nvidia.com/mig-*": Sharing.none()})]
    assert found([deployment(limits={"nvidia.com/gpu.shared": 2})], *provided) == [
        (
            0,
            "asks for 2 x nvidia.com/gpu.shared, which no device plugin of this app advertises, so its pods would "
            "never be scheduled; ask for nvidia.com/gpu or nvidia.com/mig-*",
        )
    ]


@pytest.mark.parametrize(
    ("advertised", "limits", "is_found"),
    [
        (GPU, {GPU: 1}, False),
        (GPU, {"nvidia.com/gpu.shared": 1}, True),
        (GPU, {"nvidia.com/mig-1g.10gb": "1"}, True),
        ("nvidia.com/gpu.shared", {GPU: 1}, True),
        ("nvidia.com/gpu.shared", {"nvidia.com/gpu.shared": 1}, False),
        ("nvidia.com/mig-*", {"nvidia.com/mig-1g.10gb": 1}, False),
        (GPU, {"nvidia.com/hostdev": 1}, False),
        (GPU, {"nvidia.com/gpu.shared": 0}, False),
        (GPU, {"amd.com/gpu": 1, "memory": "1Gi"}, False),
        (GPU, {"example.com/nvidia.com": 1}, False),
    ],
)
def test_a_gpu_is_missed_exactly_where_its_resource_is_not_advertised(advertised, limits, is_found):
    findings = check([deployment(limits=limits)], [Provided(gpu_resources={advertised: Sharing.none()})])
    assert [finding.subject for finding in findings] == ([0] if is_found else [])


def test_where_no_plugin_of_the_app_advertises_anything_no_gpu_is_missed():
    assert found([deployment(limits={"nvidia.com/mig-1g.10gb": 1})], Provided(node_labels=[PRESENT])) == []


def test_each_container_that_asks_for_an_unknown_gpu_is_found():
    spec = pod({"nvidia.com/mig-1g.5gb": 1})
    spec["initContainers"] = pod({"nvidia.com/gpu.shared": 2})["containers"]
    findings = found([obj("v1", "Pod", spec=spec)], Provided(gpu_resources={GPU: Sharing.none()}))
    assert [problem.split(",")[0] for _, problem in findings] == [
        "asks for 2 x nvidia.com/gpu.shared",
        "asks for 1 x nvidia.com/mig-1g.5gb",
    ]


VISIBLE = [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}]


def gpu_pod(env, limits):
    spec = pod(limits)
    spec["containers"][0]["env"] = env
    return obj("v1", "Pod", spec=spec)


def test_a_container_that_overrides_its_gpu_is_found_with_the_way_out():
    assert found([gpu_pod(VISIBLE, {GPU: 1})]) == [
        (
            0,
            "container 'main' holds a GPU and sets NVIDIA_VISIBLE_DEVICES to 'all': it overrides the GPU that was "
            "allocated, and 'all' shows every GPU of the node; leave it out, or annotate the object with "
            "gpu-constructs/visible-devices=unmanaged",
        )
    ]


@pytest.mark.parametrize(
    ("env", "limits", "is_found"),
    [
        (VISIBLE, {"nvidia.com/gpu.shared": 1}, True),
        (VISIBLE, {"nvidia.com/mig-1g.10gb": 1}, True),
        ([{"name": "A", "value": "b"}, *VISIBLE], {"memory": "1Gi", GPU: "1"}, True),
        (VISIBLE, None, False),
        (VISIBLE, {"memory": "1Gi"}, False),
        (VISIBLE, {"amd.com/gpu": 1}, False),
        ([{"name": "NVIDIA_DRIVER_CAPABILITIES", "value": "all"}], {GPU: 1}, False),
        (None, {GPU: 1}, False),
    ],
)
def test_visible_devices_are_refused_exactly_where_a_gpu_is_held(env, limits, is_found):
    assert [subject for subject, _ in found([gpu_pod(env, limits)])] == ([0] if is_found else [])


def test_a_container_that_holds_no_gpu_may_see_all_beside_one_that_does():
    manifest = gpu_pod(None, {GPU: 1})
    manifest["spec"]["containers"].append({"name": "exporter", "image": "a:1", "env": VISIBLE})
    assert found([manifest]) == []


def test_a_container_that_overrides_its_gpu_before_the_others_start_is_found():
    manifest = obj("v1", "Pod", spec=pod())
    manifest["spec"]["initContainers"] = gpu_pod(VISIBLE, {GPU: 1})["spec"]["containers"]
    assert len(found([manifest])) == 1


@pytest.mark.parametrize(
    ("annotations", "is_found"),
    [
        ({"gpu-constructs/visible-devices": "unmanaged"}, False),
        ({"gpu-constructs/visible-devices": "managed"}, True),
        ({"gpu-constructs/visible-devices": ""}, True),
        ({"visible-devices": "unmanaged"}, True),
        (None, True),
    ],
)
def test_only_the_word_unmanaged_on_the_object_lets_it_override_its_gpu(annotations, is_found):
    manifest = gpu_pod(VISIBLE, {GPU: 1})
    manifest["metadata"]["annotations"] = annotations
    assert len(found([manifest])) == is_found


# Every check over the objects of an app, whoever made them, with construct paths.


@pytest.mark.parametrize("namespaced", [True, False])
def test_one_object_made_in_two_charts_is_found_by_both_paths(app, namespaced):
    east, west = Chart(app, "east"), Chart(app, "west")
    GpuNamespace(east, "namespace", name="team")
    if namespaced:
        for chart in (east, west):
            Manifest(Construct(chart, "config"), "Default", obj("v1", "ConfigMap", namespace="team"))
        problem = "west/config: ConfigMap 'x' in namespace 'team' is already made by east/config"
    else:
        kplus.Namespace(west, "again", metadata=ApiObjectMetadata(name="team"))
        problem = "west/again: Namespace 'team' is already made by east/namespace"
    assert problems_of(app) == [f"{problem}; make it once and hand it to the others"]


def test_one_object_made_twice_in_a_chart_is_found_by_both_paths(chart):
    for id in ("a", "b"):
        NvidiaRuntimeClass(chart, id)
    assert problems_of(App.of(chart)) == [
        "gpu/b: RuntimeClass 'nvidia' is already made by gpu/a; make it once and hand it to the others"
    ]


def test_one_object_made_in_a_chart_and_in_a_chart_inside_it_is_found_by_both_paths(chart):
    NvidiaRuntimeClass(Chart(chart, "inner"), "b")
    NvidiaRuntimeClass(chart, "a")
    (problem,) = problems_of(App.of(chart))
    assert "gpu/a" in problem
    assert "gpu/inner/b" in problem


def test_namespace_and_runtime_class_handed_over_are_made_once(app, chart):
    shared = {"namespace": GpuNamespace(chart, "namespace"), "runtime_class": NvidiaRuntimeClass(chart, "runtime")}
    DevicePluginChart(app, "plugin", **shared)
    GpuWorkload(chart, "train", image="a:1", kind="Job", **shared)
    assert problems_of(app) == []


def test_the_namespace_of_a_foreign_object_is_missed_by_its_path(app, chart, foreign):
    made = foreign(chart, namespace="team")
    assert [problem.split(";")[0] for problem in problems_of(app)] == [
        f"{path_of(made)}: namespace 'team' is not in this app"
    ]


def test_the_namespace_a_chart_gives_is_missed_too(app):
    GpuWorkload(Chart(app, "train", namespace="team"), "train", image="a:1", platform=Kubernetes())
    assert [problem.split(";")[0] for problem in problems_of(app)] == [
        "train/train: namespace 'team' is not in this app"
    ]


def test_a_namespace_of_cdk8s_plus_serves(app, chart):
    kplus.Namespace(chart, "namespace", metadata=ApiObjectMetadata(name="team"))
    GpuWorkload(chart, "train", image="a:1", platform=Kubernetes(), namespace="team")
    assert problems_of(app) == []


def test_the_runtime_class_of_a_foreign_object_is_missed_by_its_path(app, chart, foreign):
    made = foreign(chart, "foreign", ("/runtimeClassName", "nvidia"))
    assert [problem.split(";")[0] for problem in problems_of(app)] == [
        f"{path_of(made)}: runtime_class 'nvidia' is used but no RuntimeClass of that name is in this app"
    ]
    NvidiaRuntimeClass(chart, "runtime-class")
    assert problems_of(app) == []


def test_a_label_a_foreign_object_selects_is_missed_by_its_path(app, chart, foreign):
    made = foreign(chart, "foreign", ("/nodeSelector", {"nvidia.com/gpu.product": "x"}))
    assert [problem.split(",")[0] for problem in problems_of(app)] == [
        f"{path_of(made)}: selects nodes by the label 'nvidia.com/gpu.product'"
    ]
    DevicePluginChart(app, "plugin")
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


def test_a_foreign_pod_its_namespace_would_refuse_is_found_by_both_paths(app, chart, foreign):
    GpuNamespace(chart, "namespace", name="team", pod_security="baseline")
    made = foreign(chart, "foreign", ("/hostNetwork", True), namespace="team")
    (problem,) = problems_of(app)
    assert problem.startswith(
        f"{path_of(made)}: pods would be refused: namespace 'team' of gpu/namespace enforces 'baseline', and "
    )
    assert "hostNetwork" in problem.rpartition("; write ")[2]
    # Options of ours would be no way out.
    assert "Gpu" not in problem
    assert "run_as_user" not in problem


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


def test_on_talos_a_foreign_namespace_that_says_nothing_refuses_what_baseline_forbids(app, chart, foreign):
    kplus.Namespace(chart, "namespace", metadata=ApiObjectMetadata(name="team"))
    made = foreign(chart, "foreign", ("/hostNetwork", True), namespace="team")
    assert problems_of(app) == []
    DevicePluginChart(app, "plugin", platform=Talos())
    (problem,) = problems_of(app)
    assert problem.startswith(
        f"{path_of(made)}: pods would be refused: namespace 'team' of gpu/namespace states no Pod Security level"
    )


def test_two_slots_of_a_shared_gpu_are_found_by_the_paths_of_workload_and_plugin(app, chart):
    DevicePluginChart(app, "plugin", sharing=SHARED)
    GpuWorkload(chart, "train", image="a:1", kind="Job", gpus=2)
    assert problems_of(app) == [
        "gpu/train: asks for 2 x nvidia.com/gpu but plugin shares it with fail_requests_greater_than_one: two slots "
        "are not two GPUs; ask for 1, or pass Sharing.time_slicing(..., fail_requests_greater_than_one=False) [R07]"
    ]


def test_two_slots_a_foreign_object_asks_for_are_found(app, chart, included_deployment):
    DevicePluginChart(app, "plugin", sharing=SHARED)
    for id, make in (("raw", raw_deployment), ("included", included_deployment)):
        make(chart, id, ("/runtimeClassName", "nvidia"), ("/containers/0/resources", {"limits": {GPU: 2}}))
    assert [problem.split(" shares")[0] for problem in problems_of(app)] == [
        f"gpu/{path}: asks for 2 x nvidia.com/gpu but plugin" for path in ("raw", "included/included-deployment")
    ]


def test_a_workload_that_asks_for_gpus_by_another_name_than_the_plugin_gives_them_is_found(app, chart):
    DevicePluginChart(app, "plugin", sharing=Sharing.time_slicing(replicas=4, rename_by_default=True))
    GpuWorkload(chart, "shared", namespace="default", image="a:1", kind="Job", gpu_resource="nvidia.com/gpu.shared")
    assert problems_of(app) == []
    GpuWorkload(chart, "whole", namespace="default", image="a:1", kind="Job", gpus=2)
    assert problems_of(app) == [
        "gpu/whole: asks for 2 x nvidia.com/gpu, which no device plugin of this app advertises, so its pods would "
        "never be scheduled; ask for nvidia.com/gpu.shared [R08]"
    ]


@pytest.mark.parametrize(("mig_strategy", "is_found"), [("none", True), ("single", True), ("mixed", False)])
def test_a_mig_profile_is_advertised_by_a_plugin_with_the_mixed_strategy_only(app, chart, mig_strategy, is_found):
    DevicePluginChart(app, "plugin", mig_strategy=mig_strategy)
    GpuWorkload(chart, "train", namespace="default", image="a:1", kind="Job", gpu_resource="nvidia.com/mig-1g.10gb")
    assert [problem.split(",")[0] for problem in problems_of(app)] == (
        ["gpu/train: asks for 1 x nvidia.com/mig-1g.10gb"] if is_found else []
    )


def test_a_workload_patched_to_another_gpu_is_found(app, chart):
    DevicePluginChart(app, "plugin")
    made = GpuWorkload(chart, "train", image="a:1", kind="Job")
    limits = "/spec/template/spec/containers/0/resources/limits"
    made.api_object.add_json_patch(JsonPatch.add(f"{limits}/nvidia.com~1gpu.shared", 1))
    assert [problem.split(",")[0] for problem in problems_of(app)] == ["gpu/train: asks for 1 x nvidia.com/gpu.shared"]


def test_a_gpu_that_a_foreign_object_asks_for_is_missed_by_its_path(app, chart, foreign_gpu_user):
    External(app, "nodes", gpu_runtime="default")
    made = foreign_gpu_user(chart, {"nvidia.com/mig-1g.10gb": 1})
    assert problems_of(app) == []
    DevicePluginChart(app, "plugin")
    assert [problem.split(",")[0] for problem in problems_of(app)] == [
        f"{path_of(made)}: asks for 1 x nvidia.com/mig-1g.10gb"
    ]


def test_a_gpu_that_a_foreign_object_asks_for_by_its_name_serves(app, chart, foreign_gpu_user):
    External(app, "nodes", gpu_runtime="default")
    DevicePluginChart(app, "plugin")
    foreign_gpu_user(chart, {GPU: 1})
    assert problems_of(app) == []


def test_a_workload_patched_to_see_every_gpu_is_found_unless_it_is_annotated(app, chart):
    made = GpuWorkload(chart, "train", namespace="default", image="a:1", kind="Job", platform=Kubernetes())
    made.api_object.add_json_patch(JsonPatch.add("/spec/template/spec/containers/0/env", VISIBLE))
    assert [problem.split(":")[:2] for problem in problems_of(app)] == [
        ["gpu/train", " container 'train' holds a GPU and sets NVIDIA_VISIBLE_DEVICES to 'all'"]
    ]
    made.api_object.add_json_patch(
        JsonPatch.add("/metadata/annotations", {"gpu-constructs/visible-devices": "unmanaged"})
    )
    assert problems_of(app) == []


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet", "Job", "CronJob", "Pod"])
def test_a_workload_that_said_so_may_choose_its_gpus(app, chart, kind):
    more = {"schedule": "@daily"} if kind == "CronJob" else {}
    env = {"NVIDIA_VISIBLE_DEVICES": "all"}
    GpuWorkload(
        chart,
        "a",
        namespace="default",
        image="a:1",
        kind=kind,
        platform=Kubernetes(),
        env=env,
        visible_devices="unmanaged",
        **more,
    )
    assert problems_of(app) == []


def test_a_foreign_object_that_overrides_its_gpu_is_found_unless_it_is_annotated(app, chart, foreign_gpu_user):
    made = foreign_gpu_user(chart, {GPU: 1}, ("/containers/0/env", VISIBLE))
    (problem,) = problems_of(app)
    assert problem.startswith(f"{path_of(made)}: container 'main' holds a GPU and sets NVIDIA_VISIBLE_DEVICES to 'all'")
    ApiObject.of(made).metadata.add_annotation("gpu-constructs/visible-devices", "unmanaged")
    assert problems_of(app) == []


def test_components_that_see_every_gpu_and_hold_none_are_fine(app, chart):
    DevicePluginChart(app, "plugin")
    PowerLimit(chart, "limit")
    DcgmExporter(chart, "exporter")
    assert problems_of(app) == []


@pytest.mark.parametrize(
    "sharing", [Sharing.none(), Sharing.time_slicing(replicas=4, fail_requests_greater_than_one=False)]
)
def test_two_gpus_are_fine_where_nothing_refuses_them(app, chart, sharing):
    DevicePluginChart(app, "plugin", sharing=sharing)
    GpuWorkload(chart, "train", namespace="default", image="a:1", kind="Job", gpus=2)
    GpuRules.enforce(app, ignore=["R07"])
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
    GpuWorkload(Chart(app, "train", namespace="team"), "train", image="a:1", kind="Job")
    External(app, "existing", **{keyword: [WANTED[keyword]] for keyword in declared})
    signs = {problem.split(" ")[1] for problem in problems_of(app)}
    assert signs == {SIGNS[keyword] for keyword in WANTED if keyword not in declared}


def test_an_external_of_another_name_silences_nothing(app):
    GpuWorkload(Chart(app, "train", namespace="team"), "train", image="a:1", kind="Job")
    External(app, "existing", runtime_classes=["other"], node_labels=["nvidia.com/gpu.count"], namespaces=["teams"])
    assert len(problems_of(app)) == 3


def test_an_external_anywhere_in_the_app_serves_the_whole_app(app, chart):
    External(Construct(chart, "deep"), "existing", runtime_classes=["nvidia"], node_labels=[PRESENT])
    GpuWorkload(Chart(app, "train"), "train", namespace="default", image="a:1", kind="Job")
    assert problems_of(app) == []


PLUGIN = "device-plugin"
OPERATOR = Provided(components=("gpu-operator", PLUGIN, "dcgm-exporter"), is_alone=True)


def test_what_must_be_alone_is_not_installed_a_second_time():
    plugin = Provided(components=(PLUGIN, "gpu-feature-discovery"))
    assert check([], [plugin, OPERATOR]) == [
        Finding(
            None,
            "brings the device plugin to every GPU node, and so does {1}; keep one of the two, or switch the "
            "component off in one of them",
            providers=(1, 0),
        )
    ]


def test_two_that_must_be_alone_are_told_once_with_all_they_share():
    (problem,) = check([], [OPERATOR, OPERATOR])
    assert problem.problem.startswith("brings the GPU Operator, the device plugin and the DCGM exporter")
    assert problem.providers == (0, 1)


def test_components_of_constructs_that_need_not_be_alone_may_be_there_twice():
    plugin = Provided(components=(PLUGIN,))
    assert check([], [plugin, plugin]) == []


def test_components_that_differ_do_not_meet():
    assert check([], [OPERATOR, Provided(components=("node-feature-discovery",))]) == []


def test_a_needed_component_that_nothing_brings_is_missed_with_the_way_out():
    needy = Provided(needs={"validation-bridge": "add a bridge"})
    assert check([], [needy]) == [Finding(None, "needs the validation bridge beside it: add a bridge", providers=(0,))]
    assert check([], [needy, Provided(components=("validation-bridge",))]) == []


WANTS = Provided(wants_node_labels={"nvidia.com/gpu.deploy.operator-validator=false": "files are deleted"})


@pytest.mark.parametrize("labels", [(), ("nvidia.com/*",), ("nvidia.com/gpu.present",), ("feature/*",)], ids=str)
def test_a_wanted_node_label_that_nothing_sets_is_a_warning(labels):
    (finding,) = check([], [Provided(node_labels=labels), WANTS])
    assert finding == Finding(
        None,
        "wants the node label nvidia.com/gpu.deploy.operator-validator=false, which nothing in this app sets: files "
        "are deleted",
        providers=(1,),
        is_warning=True,
    )


@pytest.mark.parametrize("label", ["nvidia.com/gpu.deploy.operator-validator", "nvidia.com/gpu.deploy.*"])
def test_a_wanted_node_label_that_something_sets_is_no_warning(label):
    assert check([], [WANTS, Provided(node_labels=(label,))]) == []


def labelled(**labels):
    return Provided(gpu_nodes=GpuNodes(labels=labels))


def tainted(*taints):
    made = [dict(zip(("key", "value", "effect"), taint, strict=True)) for taint in taints]
    return Provided(gpu_nodes=GpuNodes(taints=made))


@pytest.mark.parametrize(("value", "is_set"), [("false", True), ("true", False)])
def test_a_wanted_node_label_that_the_nodes_configuration_gives_must_have_the_value(value, is_set):
    node = labelled(**{"nvidia.com/gpu.deploy.operator-validator": value})
    assert (check([], [node, WANTS]) == []) is is_set


def test_a_label_that_the_operator_sets_is_left_to_it():
    node = labelled(**{PRESENT: "true", "a": "b"})
    assert check([], [OPERATOR, node]) == [
        Finding(
            None,
            "gives nodes the label nvidia.com/gpu.present, which {1} sets and removes by what it finds: the two undo "
            "each other's; leave it to the operator",
            providers=(1, 0),
            is_warning=True,
        )
    ]
    assert check([], [node]) == check([], [OPERATOR, labelled(a="b")]) == []


def test_a_label_of_the_nodes_configuration_is_published():
    selecting = deployment(nodeSelector={PRESENT: "true"})
    assert found([selecting], labelled(**{PRESENT: "true"})) == []


VALIDATOR_OFF = {"nvidia.com/gpu.deploy.operator-validator": "false"}


def test_a_wanted_node_label_is_missed_on_the_nodes_that_lack_it():
    (finding,) = check([], [labelled(**VALIDATOR_OFF), labelled(), WANTS])
    assert finding.problem.startswith("wants the node label nvidia.com/gpu.deploy.operator-validator=false, which {1}")
    assert finding.providers == (2, 1)


def test_a_node_label_with_which_something_cannot_work_is_a_warning():
    bridge = Provided(unwanted_node_labels={"nvidia.com/gpu.deploy.operator-validator=false": "nobody validates"})
    (finding,) = check([], [labelled(**VALIDATOR_OFF), bridge])
    assert finding == Finding(
        None,
        "cannot work with the node label nvidia.com/gpu.deploy.operator-validator=false, which {1} sets: nobody "
        "validates",
        providers=(1, 0),
        is_warning=True,
    )
    assert check([], [labelled(a="b"), bridge]) == []


DEDICATED = ("dedicated", "ai", "NoSchedule")


@pytest.mark.parametrize(
    "spec",
    [
        {"limits": {GPU: 1}},
        {"nodeSelector": {PRESENT: "true"}},
        {"nodeSelector": {"extensions.talos.dev/nvidia-open-gpu-kernel-modules-production": ""}},
    ],
    ids=str,
)
def test_a_gpu_pod_that_no_gpu_node_would_take_is_an_error(spec):
    (finding,) = check([deployment(**spec)], [tainted(DEDICATED), Provided(node_labels=(PRESENT,))])
    assert finding == Finding(
        0,
        "does not tolerate the taint dedicated=ai:NoSchedule of {0}, so its pods would never run on any GPU node of "
        "this app; pass tolerations=[Toleration(key='dedicated', operator='Exists', effect='NoSchedule')]",
        providers=(0,),
        code="R25",
    )


@pytest.mark.parametrize(
    ("toleration", "is_tolerated"),
    [
        ({"operator": "Exists"}, True),
        ({"key": "dedicated", "operator": "Exists"}, True),
        ({"key": "dedicated", "value": "ai"}, True),
        ({"key": "dedicated", "operator": "Equal", "value": "ai", "effect": "NoSchedule"}, True),
        ({"key": "dedicated", "value": "other"}, False),
        ({"key": "other", "operator": "Exists"}, False),
        ({"key": "dedicated", "value": "ai", "effect": "NoExecute"}, False),
    ],
)
def test_a_taint_is_tolerated_as_kubernetes_has_it(toleration, is_tolerated):
    made = deployment(limits={GPU: 1}, tolerations=[toleration])
    assert (check([made], [tainted(DEDICATED)]) == []) is is_tolerated


def test_of_an_operator_that_only_was_declared_it_is_not_known_where_it_looks():
    declared = Provided(components=("gpu-operator",))
    assert check([], [declared, Provided(stages_driver_in="/var/driver")]) == []


def test_one_gpu_node_that_takes_a_pod_is_enough():
    assert check([deployment(limits={GPU: 1})], [tainted(DEDICATED), tainted()]) == []


def test_a_daemonset_is_for_each_gpu_node():
    made = deployment(nodeSelector={PRESENT: "true"}) | {"kind": "DaemonSet"}
    offers = [tainted(), tainted(DEDICATED), Provided(node_labels=(PRESENT,))]
    (finding,) = check([made], offers)
    assert (finding.providers, finding.is_warning) == ((1,), True)
    assert "would never run there; pass" in finding.problem
    (finding,) = check([made], offers[1:])
    assert (finding.providers, finding.is_warning) == ((0,), False)
    (finding,) = check([], [tainted(), tainted(DEDICATED), Provided(later_tolerations=())])
    assert (finding.providers, finding.is_warning) == ((2, 1), True)


def pool(name, *taints):
    return Provided(gpu_nodes=GpuNodes(labels={"pool": name}, taints=tainted(*taints).gpu_nodes.taints))


@pytest.mark.parametrize(("selected", "is_found"), [("a", True), ("b", False)])
def test_only_nodes_that_a_pod_selects_count(selected, is_found):
    made = deployment(limits={GPU: 1}, nodeSelector={"pool": selected})
    assert bool(check([made], [pool("a", DEDICATED), pool("b")])) is is_found


def test_nothing_is_said_of_a_pod_that_selects_nodes_of_which_nothing_is_known():
    made = deployment(limits={GPU: 1}, nodeSelector={"pool": "elsewhere"})
    assert check([made], [tainted(DEDICATED), Provided(node_labels=["pool"])]) == []


@pytest.mark.parametrize(("label", "is_warning"), [("elsewhere", True), ("pool", False), (PRESENT, False)])
def test_an_affinity_to_nodes_of_which_nothing_is_known_leaves_a_warning(label, is_warning):
    term = {"matchExpressions": [{"key": label, "operator": "Exists"}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    made = deployment(limits={GPU: 1}, affinity={"nodeAffinity": required})
    found = check([made], [pool("a", DEDICATED), Provided(node_labels=(PRESENT,))])
    assert [finding.is_warning for finding in found if finding.code == "R25"] == [is_warning]


def test_nodes_of_the_inventory_have_taints_too():
    taints = [Taint(key="dedicated", value="ai", effect="NoSchedule")]
    nodes = [GpuNode(name="one", taints=taints), GpuNode(name="two", taints=taints)]
    settings = replace(OF_PROVIDERS, inventory=GpuInventory(nodes=nodes))
    (finding,) = check_app([deployment(limits={GPU: 1})], [], settings)
    assert finding.problem.startswith("does not tolerate the taint dedicated=ai:NoSchedule of node 'one', so its pods ")
    assert (finding.providers, finding.is_warning) == ((), False)
    settings = replace(OF_PROVIDERS, inventory=GpuInventory(nodes=[*nodes, GpuNode(name="three")]))
    assert check_app([deployment(limits={GPU: 1})], [], settings) == []


def test_a_pod_that_asks_for_no_gpu_is_not_for_gpu_nodes():
    assert check([deployment(limits={GPU: 0})], [tainted(DEDICATED)]) == []


def test_a_taint_that_nodes_only_prefer_keeps_nobody_away():
    assert check([deployment(limits={GPU: 1})], [tainted(("a", "b", "PreferNoSchedule"))]) == []


def test_pods_that_are_not_for_gpu_nodes_need_tolerate_nothing():
    assert check([deployment()], [tainted(DEDICATED)]) == []


def test_an_operator_on_a_platform_that_refuses_a_bridge_does_not_go_with_one():
    operator = Provided(components=("gpu-operator",), refuses={"validation-bridge": "it would hide what is wrong"})
    assert check([], [Provided(components=("validation-bridge",)), operator]) == [
        Finding(
            None, "does not go with the validation bridge, which {1} is: it would hide what is wrong", providers=(1, 0)
        )
    ]
    assert check([], [operator]) == []


@pytest.mark.parametrize(("folder", "is_found"), [(None, True), ("/usr/local", True), ("/var/driver", False)])
def test_an_operator_looks_for_the_driver_where_a_bridge_puts_it(folder, is_found):
    bridge = Provided(components=("validation-bridge",), stages_driver_in="/var/driver")
    findings = check([], [bridge, Provided(components=("gpu-operator",), is_alone=True, driver_install_dir=folder)])
    assert [finding.providers for finding in findings] == [(1, 0)] * is_found
    assert all("does not look in /var/driver, where {1} puts" in finding.problem for finding in findings)


def test_pods_that_are_brought_later_must_tolerate_the_taints_of_gpu_nodes():
    later = Provided(later_tolerations=[{"key": "other", "operator": "Exists"}])
    (finding,) = check([], [tainted(DEDICATED), later])
    assert finding.problem.startswith("does not tolerate the taint dedicated=ai:NoSchedule of {1}")
    assert (finding.subject, finding.providers, finding.is_warning) == (None, (1, 0), False)
    tolerant = Provided(later_tolerations=[{"key": "dedicated", "operator": "Exists"}])
    assert check([], [tainted(DEDICATED), tolerant]) == check([], [later]) == []


def test_an_operator_does_not_set_by_itself_what_is_wanted_of_it():
    operator = Provided(components=("gpu-operator",), node_labels=("nvidia.com/gpu.deploy.*",))
    assert [finding.is_warning for finding in check([], [operator, WANTS])] == [True]


def test_the_way_to_a_label_leads_through_the_operator_that_is_there():
    selecting = deployment(nodeSelector={"nvidia.com/gpu.product": "L4"})
    (finding,) = check([selecting], [Provided(components=("gpu-operator",))])
    assert "make {0} with gpu_feature_discovery=True or declare it" in finding.problem
    assert finding.providers == (0,)


def test_the_namespace_of_pods_that_are_brought_later_must_be_there():
    (finding,) = check([], [Provided(privileged_namespaces=("gpu",))])
    assert finding.problem == (
        "namespace 'gpu', which its pods go to, is not in this app; add GpuNamespace(chart, 'namespace', name='gpu') "
        "or declare it with External(app, 'existing', namespaces=['gpu'])"
    )
    assert check([], [Provided(privileged_namespaces=("gpu",), namespaces=("gpu",))]) == []


LATER = Provided(privileged_namespaces=("gpu",))


@pytest.mark.parametrize(
    ("made", "platform", "says"),
    [
        (namespace("gpu", enforce="baseline"), None, "enforces 'baseline', under which"),
        (namespace("gpu", enforce="restricted"), None, "enforces 'restricted', under which"),
        (namespace("gpu"), Talos(), "states no Pod Security level, so 'baseline' holds, under which"),
    ],
)
def test_a_namespace_that_refuses_the_pods_brought_later_is_told(made, platform, says):
    (finding,) = check([made], [LATER, Provided(platform=platform)])
    assert finding.problem.startswith(says)
    assert (finding.subject, finding.providers) == (0, (0,))


@pytest.mark.parametrize(
    "made", [namespace("gpu", enforce="privileged"), namespace("gpu"), namespace("other", enforce="baseline")]
)
def test_a_namespace_that_takes_them_is_not(made):
    assert check([made], [LATER, Provided(namespaces=("gpu",))]) == []


def test_a_runtime_class_has_one_owner(app, chart):
    External(app, "operator", runtime_classes=["nvidia"])
    NvidiaRuntimeClass(chart, "runtime-class")
    assert problems_of(app) == [
        f"{chart.node.path}/runtime-class: RuntimeClass 'nvidia' comes from operator already, and two owners undo each "
        "other's; leave one out"
    ]


def test_a_runtime_class_of_another_name_is_nobody_elses(app, chart):
    External(app, "operator", runtime_classes=["nvidia"])
    NvidiaRuntimeClass(chart, "runtime-class", name="nvidia-own")
    assert problems_of(app) == []


# Scraping.

METRICS = {"name": "metrics", "containerPort": 9400}
EXPORTER = {"app": "exporter"}


def exporter(name="x"):
    template = {
        "metadata": {"labels": EXPORTER},
        "spec": {"containers": [{"name": "main", "image": "a:1", "ports": [METRICS]}]},
    }
    return obj("apps/v1", "DaemonSet", name, spec={"template": template})


def exporter_service():
    made = obj("v1", "Service", spec={"selector": EXPORTER, "ports": [{"name": "metrics", "port": 9400}]})
    made["metadata"]["labels"] = EXPORTER
    return made


def scraping(kind, name="x", **endpoint):
    group = "operator.victoriametrics.com/v1beta1" if kind.startswith("VM") else "monitoring.coreos.com/v1"
    field = "podMetricsEndpoints" if "Pod" in kind else "endpoints"
    spec = {"selector": {"matchLabels": EXPORTER}, field: [{"port": "metrics", **endpoint}]}
    return obj(group, kind, name, spec=spec)


SCRAPING = ["ServiceMonitor", "PodMonitor", "VMServiceScrape", "VMPodScrape"]


@pytest.mark.parametrize("kind", SCRAPING)
@pytest.mark.parametrize("other", SCRAPING)
def test_two_objects_that_scrape_the_same_port_of_the_same_pods_are_found(kind, other):
    manifests = [exporter(), exporter_service(), scraping(kind, "a"), scraping(other, "b")]
    assert check(manifests, []) == [
        Finding(
            3,
            "scrapes port 9400 of {0}, and so does {1}: every series would be there twice, also where the "
            "VictoriaMetrics operator converts a Prometheus object; keep one of the two, or annotate one with "
            "gpu-constructs/scraped-twice=intended where they are for two stores",
            others=(0, 2),
        )
    ]


@pytest.mark.parametrize("kind", SCRAPING)
def test_one_object_or_another_path_scrapes_nothing_twice(kind):
    alone = [exporter(), exporter_service(), scraping(kind, "a")]
    assert check(alone, []) == []
    assert check([*alone, scraping(kind, "b", path="/other")], []) == []


def test_two_objects_for_two_stores_say_so():
    second = scraping("VMPodScrape", "b")
    second["metadata"]["annotations"] = {"gpu-constructs/scraped-twice": "intended"}
    assert check([exporter(), scraping("PodMonitor", "a"), second], []) == []


def test_each_further_object_is_found_beside_each_one_before():
    manifests = [exporter(), *(scraping("PodMonitor", name) for name in "abc")]
    findings = check(manifests, [])
    assert [(finding.subject, finding.others) for finding in findings] == [(2, (0, 1)), (3, (0, 1)), (3, (0, 2))]


def test_of_several_pods_that_are_scraped_twice_the_first_is_named():
    manifests = [exporter("a"), exporter("b"), scraping("PodMonitor", "a"), scraping("VMPodScrape", "b")]
    assert [finding.others for finding in check(manifests, [])] == [(0, 2)]


# Profiling.


def profiling(nodes):
    return Provided(profiles_gpus=True, runs_on=[{"nodeSelector": nodes}])


@pytest.mark.parametrize(
    ("one", "other", "is_found"),
    [
        ({}, {}, True),
        ({}, {"pool": "a"}, True),
        ({"pool": "a"}, {}, True),
        ({"pool": "a"}, {"pool": "a"}, True),
        ({"pool": "a"}, {"zone": "b"}, True),
        ({"pool": "a"}, {"pool": "a", "zone": "b"}, True),
        ({"pool": "a"}, {"pool": "b"}, False),
        ({"pool": "a", "zone": "b"}, {"pool": "b", "zone": "b"}, False),
        ({}, None, False),
    ],
)
def test_gpus_of_a_node_that_two_can_be_on_are_profiled_by_one(one, other, is_found):
    findings = check([], [profiling(one), Provided(), Provided() if other is None else profiling(other)])
    expected = Finding(
        None,
        "exports profiling metrics (DCGM_FI_PROF_*) of nodes whose GPUs {1} profiles too, and only one can at a time: "
        "the other fails; leave them out of one's metrics, or select different nodes with node_selector",
        providers=(0, 2),
    )
    assert findings == ([expected] if is_found else [])


def test_of_three_that_profile_each_pair_is_found():
    offers = [profiling(nodes) for nodes in ({}, {"pool": "a"}, {"pool": "b"})]
    assert [finding.providers for finding in check([], offers)] == [(0, 1), (0, 2)]


# A policy that would refuse pods of the app.

CLASS = obj("node.k8s.io/v1", "RuntimeClass", "nvidia", handler="nvidia")


def guard_of(app, **given):
    """What such a policy says of itself, and the policy."""
    chart = Chart(app, "guard")
    made = DenyVisibleDevicesOverride(chart, "policy", **given)
    return made.provides, Testing.synth(chart)[0]


def guarded(app, spec, namespace="team", labels=None, **given):
    """What is said of a pod in a namespace of the app, which has a plugin for it."""
    where = obj("v1", "Namespace", namespace) | {"metadata": {"name": namespace, "labels": labels}}
    provides, _ = guard_of(app, **given)
    made = obj("batch/v1", "Job", "x", namespace, spec={"template": {"spec": spec}})
    return [f for f in check_app([CLASS, where, made], [provides], OF_PROVIDERS) if "would be refused by" in f.problem]


def main(limits=None, **more):
    return {"name": "main", "image": "a:1"} | ({"resources": {"limits": limits}} if limits else {}) | more


UNSEEN = {"envFrom": [{"configMapRef": {"name": "a"}}]}
JUDGED = [
    *({"containers": [main(env=[{"name": "NVIDIA_VISIBLE_DEVICES", "value": v}])]} for v in ("all", "0", "void", "")),
    {"containers": [main(env=[{"name": "NVIDIA_VISIBLE_DEVICES"}, {"name": "A", "value": "all"}])]},
    {"containers": [main(env=[{"name": "NVIDIA_VISIBLE_DEVICES", "valueFrom": {"fieldRef": {"fieldPath": "a"}}}])]},
    {"containers": [main()], "initContainers": [main(env=[{"name": "NVIDIA_VISIBLE_DEVICES", "value": "1"}])]},
    {"containers": [main()]},
    {"containers": [main()], "runtimeClassName": "nvidia"},
    {"containers": [main({GPU: 0})], "runtimeClassName": "nvidia"},
    {"containers": [main({GPU: 1})], "runtimeClassName": "nvidia"},
    {"containers": [main()], "initContainers": [main({"nvidia.com/mig-1g.5gb": 1})], "runtimeClassName": "nvidia"},
    {"containers": [main({"nvidia.com/hostdev": 1})], "runtimeClassName": "nvidia"},
    {"containers": [main({GPU: 1}, **UNSEEN)], "runtimeClassName": "nvidia"},
    {"containers": [main({GPU: 1}, **UNSEEN)]},
    {
        "containers": [main({GPU: 1}, env=[{"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"}], **UNSEEN)],
        "runtimeClassName": "nvidia",
    },
]


@pytest.mark.parametrize(
    "given", [{}, {"require_gpu_request": False}, {"deny_env_from": True}, {"runtime_class": "other"}], ids=str
)
@pytest.mark.parametrize("spec", JUDGED, ids=range(len(JUDGED)))
def test_synth_refuses_the_pods_that_the_policy_refuses(app, spec, given):
    _, policy = guard_of(App(), **given)
    assert bool(guarded(app, spec, **given)) is bool(cel.denials(policy, {"spec": spec}))


def test_a_pod_that_the_policy_would_refuse_is_told_with_both_ways_out(app):
    (finding,) = guarded(app, JUDGED[0])
    assert (finding.subject, finding.providers, finding.is_warning) == (2, (0,), False)
    assert finding.problem == (
        "pods would be refused by {0}: container 'main' sets NVIDIA_VISIBLE_DEVICES; where they have to see every GPU, "
        "add 'team' to its excluded_namespaces, or label the namespace with "
        f"GpuNamespace(..., labels={{{ALLOW_LABEL!r}: 'true'}})"
    )


@pytest.mark.parametrize(
    "let_through",
    [
        {"labels": {ALLOW_LABEL: "true"}},
        {"excluded_namespaces": ["team"]},
        {"namespace": "kube-system"},
        {"validation_actions": ["Warn", "Audit"]},
        {"validation_actions": ["Audit"]},
    ],
    ids=str,
)
def test_where_the_policy_lets_pods_through_nothing_is_said(app, let_through):
    assert guarded(app, JUDGED[0], **let_through) == []


def test_a_label_that_lets_nothing_through_does_not_count(app):
    assert guarded(app, JUDGED[0], labels={ALLOW_LABEL: "false"})


@pytest.mark.parametrize("kind", ["ServingRuntime", "ClusterServingRuntime"])
def test_a_runtime_of_kserve_makes_no_pods_itself(app, kind):
    provides, _ = guard_of(app)
    made = obj("serving.kserve.io/v1alpha1", kind, spec=JUDGED[0])
    assert check_app([made], [provides], OF_PROVIDERS) == []


def test_agents_of_the_app_are_refused_until_their_namespaces_are_left_alone(app, chart):
    DenyVisibleDevicesOverride(chart, "deny")
    External(app, "labels", node_labels=[PRESENT])
    label = {ALLOW_LABEL: "true"}
    monitoring = GpuNamespace(chart, "monitoring", name="monitoring", pod_security="privileged")
    DcgmExporter(chart, "exporter", platform=Kubernetes(), namespace=monitoring)
    assert [p.split(": container")[0] for p in problems_of(app)] == ["gpu/exporter: pods would be refused by gpu/deny"]
    labelled = App(outdir=app.outdir)
    External(labelled, "labels", node_labels=[PRESENT])
    chart = Chart(labelled, "gpu")
    monitoring = GpuNamespace(chart, "monitoring", name="monitoring", pod_security="privileged", labels=label)
    DcgmExporter(chart, "exporter", platform=Kubernetes(), namespace=monitoring)
    DenyVisibleDevicesOverride(chart, "deny")
    assert problems_of(labelled) == []


def test_the_pods_that_an_operator_brings_later_are_thought_of(app, chart):
    DenyVisibleDevicesOverride(chart, "deny")
    GpuNamespace(chart, "n", name="operator", pod_security="privileged")
    External(app, "operator", namespaces=["operator"])
    later = Provided(privileged_namespaces=("operator",))
    guard = DenyVisibleDevicesOverride(chart, "named", name="named", excluded_namespaces=["operator"]).provides
    (finding,) = check([namespace("operator")], [later, chart.node.find_child("deny").provides])
    assert finding.problem.startswith("brings pods to namespace 'operator' that see every GPU, and {1} would refuse")
    assert finding.providers == (0, 1)
    assert check([namespace("operator")], [later, guard]) == []


@pytest.mark.parametrize("gone", [None, 3, {}, {"labels": ["a"], "name": 3}], ids=str)
def test_metadata_that_cannot_be_is_no_crash(gone):
    kinds = [("v1", "Namespace"), ("node.k8s.io/v1", "RuntimeClass"), ("apps/v1", "Deployment"), ("v1", "List")]
    check([{"apiVersion": api, "kind": kind, "metadata": gone} for api, kind in kinds], [])


def test_containers_that_cannot_be_are_no_crash():
    broken = deployment(namespace="default", containers=[None, 3, main(env=[None], securityContext=[])], volumes=[None])
    check([broken], [Provided(platform=Talos())])


def test_the_objects_of_a_list_are_objects_of_the_app():
    items = [namespace("team"), deployment(namespace="team"), deployment(namespace="team")]
    findings = check([namespace("other"), {"apiVersion": "v1", "kind": "List", "items": items}], [])
    assert [(f.subject, f.others) for f in findings] == [(1, (1,))]


# What a namespace of the app allows its pods.


def bounded(container, *bounds, spec=None, kind=("batch/v1", "Job")):
    made = obj(*kind, "x", "team", spec={"template": {"spec": {"containers": [container], **(spec or {})}}})
    return [(f.subject, f.others, f.problem) for f in check([made, namespace("team"), *bounds], []) if f.others]


def limit_range(where="team", of="Container", **limit):
    return obj("v1", "LimitRange", "x", where, spec={"limits": [{"type": of, **limit}]})


def quota(*keys, where="team", **spec):
    return obj("v1", "ResourceQuota", "x", where, spec={"hard": dict.fromkeys(keys, "9Gi"), **spec})


@pytest.mark.parametrize(
    ("resources", "most", "is_found"),
    [
        ({"limits": {GPU: 2}}, {GPU: 1}, True),
        ({"limits": {GPU: 1}}, {GPU: "1"}, False),
        ({"limits": {"memory": "9Gi"}}, {"memory": "8Gi"}, True),
        ({"limits": {"memory": "8192Mi"}}, {"memory": "8Gi"}, False),
        ({"limits": {"cpu": "1500m"}}, {"cpu": 1}, True),
        ({"requests": {"cpu": 2}}, {"cpu": 1}, True),
        ({"limits": {"memory": "${a}"}}, {"memory": "8Gi"}, False),
        ({}, {"memory": "8Gi"}, False),
    ],
)
def test_a_container_above_the_maximum_of_its_namespace_is_found(resources, most, is_found):
    found = bounded(main(resources=resources), limit_range(max=most, default={GPU: 0}))
    assert [(subject, others) for subject, others, _ in found] == ([(0, (2,))] if is_found else [])


def test_a_maximum_of_another_namespace_or_of_another_type_does_not_count():
    container = main({GPU: 2})
    assert bounded(container, limit_range("default", max={GPU: 1}, default={GPU: 0})) == []
    assert bounded(container, limit_range(of="PersistentVolumeClaim", max={GPU: 1})) == []


@pytest.mark.parametrize(
    ("key", "resources", "is_found"),
    [
        ("requests.memory", {}, True),
        ("memory", {"limits": {"cpu": 1}}, True),
        ("requests.memory", {"limits": {"memory": "1Gi"}}, False),
        ("requests.cpu", {"requests": {"cpu": 1}}, False),
        ("limits.cpu", {"requests": {"cpu": 1}}, True),
        ("limits.memory", {"limits": {"memory": 1}}, False),
        ("requests.nvidia.com/gpu", {}, False),
        ("pods", {}, False),
    ],
)
def test_a_container_that_states_nothing_of_what_a_quota_counts_is_found(key, resources, is_found):
    found = bounded(main(resources=resources), quota(key))
    assert [(subject, others) for subject, others, _ in found] == ([(0, (2,))] if is_found else [])


@pytest.mark.parametrize(
    "given",
    [
        [limit_range(default={"memory": "1Gi"})],
        [limit_range(max={"memory": "1Gi"})],
        [limit_range(defaultRequest={"memory": "1Gi"})],
    ],
)
def test_a_default_of_the_namespace_states_it(given):
    assert bounded(main(), quota("requests.memory"), *given) == []


def test_a_default_request_is_no_limit():
    assert bounded(main(), quota("limits.memory"), limit_range(defaultRequest={"memory": "1Gi"}))


def test_what_a_quota_demands_of_some_pods_or_is_stated_for_the_whole_pod_is_no_problem():
    assert bounded(main(), quota("limits.cpu", scopes=["BestEffort"])) == []
    assert bounded(main(), quota("limits.cpu", where="default")) == []
    assert bounded(main(), quota("limits.cpu"), spec={"resources": {"limits": {"cpu": 1}}}) == []


def test_what_does_not_fit_is_told_with_the_way_out():
    bounds = [limit_range(max={GPU: 1}, default={GPU: 0}), quota("limits.cpu")]
    assert [problem for _, _, problem in bounded(main({GPU: 2}), *bounds)] == [
        f"pods would be refused: limits[{GPU!r}] of container 'main' is 2, and {{0}} allows a container of namespace "
        "'team' at most 1; ask for less, or raise ContainerLimits(max=...)",
        "pods would be refused: container 'main' states no limits['cpu'], which {0} demands of every container of "
        "namespace 'team' by 'limits.cpu'; state it, or give a default with "
        "GpuNamespace(limit_range=ContainerLimits(default=...))",
    ]


def test_of_an_inference_service_the_runtime_may_say_what_is_missing(app):
    provides, _ = guard_of(app)
    predictor = {"runtimeClassName": "nvidia", "model": {"modelFormat": {"name": "a"}}}
    made = obj("serving.kserve.io/v1beta1", "InferenceService", namespace="team", spec={"predictor": predictor})
    assert check([CLASS, namespace("team"), made, quota("limits.cpu")], [provides]) == []
