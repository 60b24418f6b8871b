"""Each rule with what breaks it and what keeps it, over plain manifests."""

import copy
from itertools import cycle, islice

from gpu_constructs.catalog.inventory import GpuInventory, GpuNode
from gpu_constructs.catalog.sharing import Sharing
from gpu_constructs.checks.rules.table import CODES, RULES, broken_rules
from gpu_constructs.facts.app import Facts
from gpu_constructs.facts.provided import GpuNodes, GpuOffer, Provided
from gpu_constructs.facts.readable import quantity
from gpu_constructs.kube.annotations import IGNORE_RULES, VRAM, VRAM_TYPICAL
from operations import grows_with

GPU = "nvidia.com/gpu"
PRODUCT = "nvidia.com/gpu.product"
EXCLUSIVE = Provided(gpu_resources={GPU: Sharing.none()})
SLICED = Provided(gpu_resources={GPU: Sharing.time_slicing(replicas=2)}, node_labels=("nvidia.com/*",))
UNREFUSED = Provided(
    gpu_resources={GPU: Sharing.time_slicing(replicas=2, fail_requests_greater_than_one=False)},
)
RENAMED = Provided(
    gpu_resources={"nvidia.com/gpu.shared": Sharing.time_slicing(replicas=2, rename_by_default=True)},
    node_labels=("nvidia.com/*",),
)
# As releases before 0.20.0 do.
NAMELESS = Provided(
    gpu_resources={"nvidia.com/mig-*": Sharing.none()},
    gpu_offers=[GpuOffer(sharing=Sharing.none(), mig_strategy="mixed", names_mig_attributes=False)],
)
MPS = Provided(gpu_resources={GPU: Sharing.mps(replicas=4)})
LABELS = Provided(node_labels=("nvidia.com/*",))
NAMES_CLASS = Provided(gpu_runtime="runtime-class")
DEFAULT = Provided(gpu_runtime="default")
CDI = Provided(gpu_runtime="cdi")
TAINTED = Provided(gpu_nodes=GpuNodes(taints=({"key": "ai", "effect": "NoSchedule"},)))
ONE = GpuInventory(nodes=[GpuNode(name="one", gpu_model="RTX 3090")])
TWO = GpuInventory(nodes=[GpuNode(name="two", gpu_model="NVIDIA A100-SXM4-40GB", gpus=2)])
DARK = GpuInventory(nodes=[GpuNode(name="one", gpu_model="RTX 3090"), GpuNode(name="dark")])


def obj(kind, spec=None, *, api="v1", name="x", annotations=None, **more):
    metadata = {"name": name, "annotations": annotations} if annotations else {"name": name}
    return {"apiVersion": api, "kind": kind, "metadata": metadata, **({"spec": spec} if spec else {}), **more}


def box(limits=None, *, name="main", requests=None, **more):
    """A container; with a GPU unless told otherwise."""
    given = {GPU: 1} if limits is None else limits
    sections = {"limits": {"memory": "8Gi", **given}} | ({"requests": requests} if requests else {})
    return {"name": name, "image": "a:1", "resources": sections, **more}


def pod_of(*boxes, **spec):
    return {"containers": list(boxes or [box()]), **spec}


def deployment(*boxes, replicas=1, strategy=None, annotations=None, name="x", pod_annotations=None, **spec):
    metadata = {"labels": {"app": name}} | ({"annotations": pod_annotations} if pod_annotations else {})
    return obj(
        "Deployment",
        {
            "replicas": replicas,
            "strategy": strategy or {"type": "Recreate"},
            "template": {"metadata": metadata, "spec": pod_of(*boxes, **spec)},
        },
        api="apps/v1",
        annotations=annotations,
        name=name,
    )


def job(*boxes, **spec):
    return obj("Job", {"template": {"spec": pod_of(*boxes, **spec)}}, api="batch/v1")


def rolling(surge=None, unavailable=None):
    given = {"maxSurge": surge, "maxUnavailable": unavailable}
    return {"type": "RollingUpdate", "rollingUpdate": {k: v for k, v in given.items() if v is not None}}


def cron(policy=None):
    spec = {"jobTemplate": {"spec": {"template": {"spec": pod_of()}}}}
    return obj("CronJob", spec | ({"concurrencyPolicy": policy} if policy else {}), api="batch/v1")


def budget(**spec):
    return obj("PodDisruptionBudget", {"selector": {"matchLabels": {"app": "x"}}, **spec}, api="policy/v1")


def scaler(most, kind="Deployment"):
    spec = {"scaleTargetRef": {"kind": kind, "name": "x"}, "maxReplicas": most}
    return obj("HorizontalPodAutoscaler", spec, api="autoscaling/v2")


def scaled(most=None):
    spec = {"scaleTargetRef": {"name": "x"}} | ({"maxReplicaCount": most} if most else {})
    return obj("ScaledObject", spec, api="keda.sh/v1alpha1")


def affinity(*values, operator="In"):
    term = {"matchExpressions": [{"key": PRODUCT, "operator": operator, "values": list(values)}]}
    return {
        "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}},
    }


def env(value, name="NVIDIA_VISIBLE_DEVICES"):
    return [{"name": name, "value": value}]


def memory(size, medium="Memory"):
    return {"volumes": [{"name": "shm", "emptyDir": {"medium": medium, "sizeLimit": size}}]}


SHM = [{"name": "shm", "mountPath": "/dev/shm"}]
SIDECAR = {"name": "sidecar", "image": "b:1"}
PROBE = {"httpGet": {"path": "/", "port": 80}}
CLASS = obj("RuntimeClass", api="node.k8s.io/v1", name="nvidia", handler="nvidia")
INJECTION = obj(
    "MutatingAdmissionPolicy",
    {"mutations": [{"applyConfiguration": {"expression": "Object{spec: Object.spec{runtimeClassName: 'nvidia'}}"}}]},
    api="admissionregistration.k8s.io/v1",
)
CUDA = {"runtimeClassName": "nvidia"}


def train_job(**resources):
    return obj("TrainJob", {"trainer": {"resourcesPerNode": resources}}, api="trainer.kubeflow.org/v1alpha1")


def several(*items):
    return {"apiVersion": "v1", "kind": "List", "items": list(items)}


def served(kind="ServingRuntime"):
    return obj(kind, pod_of(), api="serving.kserve.io/v1alpha1")


def training_runtime(kind):
    jobs = [{"name": "node", "template": {"spec": {"template": {"spec": pod_of()}}}}]
    return obj(kind, {"template": {"spec": {"replicatedJobs": jobs}}}, api="trainer.kubeflow.org/v1alpha1")


def ray_cluster():
    return obj("RayCluster", {"headGroupSpec": {"template": {"spec": pod_of()}}}, api="ray.io/v1")


def selecting(label):
    return job(box({}), nodeSelector={label: "x"})


def policy(text, *, selector=None, kind="MutatingAdmissionPolicy", api="admissionregistration.k8s.io/v1"):
    made = {"mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": text}}]}
    return obj(kind, made | ({"matchConstraints": {"namespaceSelector": selector}} if selector else {}), api=api)


def binding(selector, policy_name="x"):
    spec = {"policyName": policy_name, "matchResources": {"namespaceSelector": selector}}
    return obj("MutatingAdmissionPolicyBinding", spec, api="admissionregistration.k8s.io/v1")


def named(operator, *names, key="kubernetes.io/metadata.name"):
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(names)}]}


def kyverno(rule):
    return obj("ClusterPolicy", {"rules": [{"name": "a", **rule}]}, api="kyverno.io/v1")


def features(rule):
    return obj("NodeFeatureRule", {"rules": [{"name": "a", **rule}]}, api="nfd.k8s-sigs.io/v1alpha1")


def agent(image, **container):
    return obj("DaemonSet", {"template": {"spec": pod_of(box({}, image=image, **container))}}, api="apps/v1")


SETS = 'JSONPatch{op: "add", path: "/spec/runtimeClassName", value: "nvidia"}'
ASKS = "has(object.spec.runtimeClassName) ? [] : [Object{spec: Object.spec{priority: 3}}]"
PATCH = {"spec": {"+(runtimeClassName)": "nvidia"}}


def claim(device_class):
    devices = {"requests": [{"name": "gpu", "exactly": {"deviceClassName": device_class}}]}
    return obj("ResourceClaimTemplate", {"spec": {"devices": devices}}, api="resource.k8s.io/v1", name="claim")


def claiming():
    return job(resourceClaims=[{"name": "gpu", "resourceClaimTemplateName": "claim"}])


def user(number, name="x"):
    return deployment(name=name, securityContext={"runAsUser": number})


def bare(**spec):
    return obj("Pod", pod_of(**spec))


def limit_range(key, resource, **more):
    return obj("LimitRange", {"limits": [{"type": "Container", key: {resource: 1}, **more}]})


def quota(key):
    return obj("ResourceQuota", {"hard": {key: 4}})


UNITS = Provided(gpu_resources={GPU: Sharing.vram_units(vram="24Gi")}, node_labels=("nvidia.com/*",))
UNITS_RENAMED = Provided(
    gpu_resources={"nvidia.com/gpu.shared": Sharing.vram_units(vram="24Gi", rename_by_default=True)}
)
UNITS_OR_NONE = Provided(
    gpu_resources={GPU: Sharing.vram_units(vram="24Gi")},
    gpu_offers=(
        GpuOffer(sharing=Sharing.vram_units(vram="24Gi"), config="units"),
        GpuOffer(sharing=Sharing.none(), config="none", is_default=False),
    ),
)
UNITS_OR_LARGER = Provided(
    gpu_resources={GPU: Sharing.vram_units(vram="12Gi")},
    gpu_offers=(
        GpuOffer(sharing=Sharing.vram_units(vram="12Gi"), config="small"),
        GpuOffer(sharing=Sharing.vram_units(vram="24Gi"), config="large", is_default=False),
    ),
)
CONFIG = "nvidia.com/device-plugin.config"


def nodes(*each):
    return GpuInventory(nodes=[GpuNode(name=f"n{number}", **one) for number, one in enumerate(each)])


def taking(vram, *boxes, typical=None):
    annotations = {VRAM: vram, VRAM_TYPICAL: typical}
    return deployment(*boxes, annotations={key: value for key, value in annotations.items() if value is not None})


def on_pods(vram, *boxes):
    made = deployment(*boxes)
    made["spec"]["template"].setdefault("metadata", {})["annotations"] = {VRAM: vram}
    return made


def with_a_first_container(made, first):
    made["spec"]["template"]["spec"]["initContainers"] = [first]
    return made


def annotated(budget):
    return deployment(annotations={"gpu-constructs/vram": budget})


def case(code, manifests, *provided, inventory=None):
    manifests = manifests if isinstance(manifests, list) else [manifests]
    return code, manifests, provided, inventory


BROKEN = [
    *(case("R01", job(box({GPU: amount}))) for amount in ("0.5", 0.5, "500m", -1, "-1", "one", True, "", 0, "0")),
    case("R01", job(box({"nvidia.com/hostdev": "1.5"}))),
    case("R01", job(box({}, requests={GPU: "0.5"}))),
    case("R01", job(box({"nvidia.com/gpumem": -1}))),
    case("R01", train_job(limits={GPU: 0.5})),
    case("R01", several(job(box({GPU: 0.5})))),
    case("R01", several(several(job(box({GPU: 0.5}))))),
    case("R02", job(box({GPU: 2}, requests={GPU: 1}))),
    case("R02", train_job(limits={GPU: 2}, requests={GPU: 1})),
    case("R03", train_job(requests={GPU: 1})),
    case("R03", job(box({}, requests={GPU: 1}))),
    case("R04", job(), NAMES_CLASS),
    case("R04", [CLASS, job()]),
    case("R04", [CLASS, policy(ASKS), job()]),
    case("R04", [CLASS, kyverno({"validate": {"message": "no runtimeClassName: gvisor here"}}), job()]),
    case("R04", [CLASS, policy(SETS), binding(named("In", "team")), job()]),
    case("R04", [CLASS, policy(SETS), binding(named("NotIn", "default")), job()]),
    case("R04", [CLASS, policy(SETS), binding(named("In", "team")), training_runtime("TrainingRuntime")]),
    case("R04", [CLASS, policy(SETS), binding(named("In", "team")), ray_cluster()]),
    case("R04", [CLASS, policy(SETS), binding({"matchLabels": {"kubernetes.io/metadata.name": "team"}}), job()]),
    case("R04", [CLASS, policy(SETS, selector=named("In", "team")), job()]),
    case(
        "R04",
        [
            CLASS,
            policy(SETS, selector=named("In", "a"), kind="MutatingPolicy", api="policies.kyverno.io/v1"),
            binding({}),
            job(),
        ],
    ),
    case("R05", job(box(env=env("all")))),
    case("R05", job(box(env=env("void"))), CDI),
    case("R05", job(box(env=env("0"))), inventory=ONE),
    case("R05", job(box(env=env("all"))), inventory=TWO),
    case("R06", [CLASS, job(box(), SIDECAR, **CUDA)]),
    case("R06", job(box(), SIDECAR), DEFAULT),
    case("R06", [CLASS, job(initContainers=[SIDECAR], **CUDA)]),
    case("R07", job(box({GPU: 2})), SLICED),
    case("R07", job(box({GPU: 2})), UNREFUSED),
    case("R07", job(), UNITS_OR_NONE),
    case("R07", job(box({GPU: 8})), UNITS, EXCLUSIVE),
    case("R08", job(), RENAMED),
    case("R09", job(box({"nvidia.com/mig-10gb": 1}))),
    case("R09", job(box({"nvidia.com/mig-1g.10GB": 1}))),
    case("R09", job(box({"nvidia.com/mig-1g.6gb": 1})), inventory=TWO),
    case("R09", job(box({"nvidia.com/mig-1c.1g.6gb": 1})), inventory=TWO),
    case("R09", job(box({"nvidia.com/mig-1g.5gb": 1})), inventory=ONE),
    case("R09", job(box({"nvidia.com/mig-1g.10gb.me": 1})), NAMELESS),
    case("R10", job(nodeSelector={PRODUCT: "NVIDIA-GeForce-RTX-3090"}), SLICED),
    case("R10", job(affinity=affinity("NVIDIA-GeForce-RTX-3090")), SLICED),
    case("R11", job(box({}), nodeSelector={"node-role.kubernetes.io/gpu": ""})),
    case("R12", job(box({}), nodeSelector={"nvidia.com/gpu.present": "true"})),
    case("R12", [features({"labels": {"nvidia.com/other": "x"}}), selecting("nvidia.com/gpu.present")]),
    case("R12", [agent("nvcr.io/nvidia/k8s-device-plugin:v0.20.0"), selecting("nvidia.com/gpu.product")]),
    case("R12", [agent("registry.k8s.io/nfd/node-feature-discovery:v0.18.2"), selecting("nvidia.com/gpu.product")]),
    case("R12", selecting("nvidia.com/mig.config")),
    case("R13", job(box(securityContext={"privileged": True}))),
    case("R14", job(box(volumeMounts=SHM), **memory("1Gi")), MPS),
    case("R15", [user(1000), user(1001, "y")], MPS),
    case("R15", [user(1000), job(box(securityContext={"runAsUser": 7}))], MPS),
    case("R16", deployment(strategy=rolling())),
    case("R16", deployment(strategy={"type": "RollingUpdate"}, replicas=3)),
    case("R16", deployment(strategy=rolling("100%", 0), replicas=9)),
    case("R16", deployment(strategy=rolling()), EXCLUSIVE, inventory=ONE),
    case("R16", [deployment(strategy=rolling(), name="a"), deployment(name="b")], EXCLUSIVE, inventory=TWO),
    case("R17", [deployment(), budget(minAvailable=1)]),
    case("R17", [deployment(replicas=3), budget(minAvailable="90%")]),
    case("R17", [deployment(replicas=3), budget(maxUnavailable=0)]),
    case("R17", [deployment(replicas=3), budget(maxUnavailable="0%")]),
    case("R17", [deployment(), obj("PodDisruptionBudget", {"selector": {}, "minAvailable": 1}, api="policy/v1")]),
    case("R18", limit_range("default", GPU)),
    case("R18", limit_range("defaultRequest", "nvidia.com/mig-1g.5gb")),
    case("R18", limit_range("max", GPU)),
    case("R18", quota("limits.nvidia.com/gpu")),
    case("R18", quota("limits.nvidia.com/hostdev")),
    case("R18", quota(GPU)),
    case("R19", job({"name": "main", "image": "a:1", "resources": {"limits": {GPU: 1}}})),
    case("R19", job(box(volumeMounts=SHM), **memory("8Gi"))),
    case("R20", job(box(livenessProbe=PROBE))),
    case("R20", job(box(livenessProbe={**PROBE, "initialDelaySeconds": 60}))),
    case("R20", job(box(livenessProbe={**PROBE, "periodSeconds": 199}))),
    case("R20", job(box(livenessProbe={**PROBE, "failureThreshold": 59}))),
    case("R21", job(hostUsers=False)),
    case("R21", job(hostUsers=False), DEFAULT),
    case("R22", job(box({"nvidia.com/gpumem": 4000}))),
    case("R22", job(box({"volcano.sh/vgpu-number": 1}))),
    case("R22", deployment(box({}), pod_annotations={"gpu-fraction": "0.5"})),
    case(
        "R22",
        obj(
            "JobSet",
            {"replicatedJobs": [{"template": {"spec": deployment(pod_annotations={"gpu-fraction": "0.5"})["spec"]}}]},
            api="jobset.x-k8s.io/v1alpha2",
        ),
    ),
    case("R22", obj("Pod", pod_of(box({}), restartPolicy="Never"), annotations={"gpu-memory": "2000"})),
    case("R23", job(box(), box(name="other"))),
    case("R23", job(initContainers=[box(name="first", restartPolicy="Always")])),
    case("R24", bare(), SLICED),
    case("R25", job(), TAINTED),
    *(case("R26", job(box(image=image))) for image in ("a", "a:latest", "registry:5000/a", "b/a")),
    case("R27", [claim("gpu.nvidia.com"), claiming()]),
    case("R28", annotated("much")),
    case("R28", annotated("12")),
    case("R28", annotated("25Gi"), inventory=ONE),
    case("R28", annotated("25Gi"), inventory=DARK),
    case("R28", taking("8Gi", typical="few")),
    case("R28", taking("8Gi", typical="6")),
    case("R28", taking("8Gi", typical="9Gi")),
    case("R28", taking(None, typical="6Gi")),
    case("R28", taking("8Gi"), UNITS),
    case("R28", taking("8Gi", box({GPU: 7})), UNITS),
    case("R28", taking("16Gi", box({GPU: 8}), box({GPU: 7}, name="other")), UNITS),
    case("R28", on_pods("much")),
    case("R28", on_pods("8Gi", box({GPU: 7})), UNITS),
    case("R28", deployment(), UNITS),
    case("R29", cron()),
    case("R29", cron("Allow")),
    case("R30", [deployment(), scaler(3)], EXCLUSIVE, inventory=TWO),
    case("R30", [deployment(box({GPU: 2})), scaler(2)], EXCLUSIVE, inventory=TWO),
    case("R30", [deployment(), scaled()], SLICED, inventory=TWO),
    case("R31", job(box({}, env=[{"name": "DB_PASSWORD", "value": "hunter2"}]))),
    case("R31", job(box(command=["serve", "--api-key", "hunter2"]))),
    case("R31", job(SIDECAR, box(args=["--token=hunter2"]))),
]

KEPT = [
    *(case("R01", job(box({GPU: amount}))) for amount in (1, "1", 8, "1k", "1.0", 1.0, "1000m", "1e1")),
    case("R01", job(box({GPU: "${trialParameters.gpus}"}))),
    case("R01", job(box({"cpu": "0.5"}))),
    case("R01", job(box({"nvidia.com/gpucores": 0, "nvidia.com/hostdev": "0"}))),
    *(case("R01", job(box({GPU: amount}))) for amount in ("1e100", "1e999999999999999999999", "9" * 60)),
    case("R01", train_job(limits={GPU: 1})),
    case("R01", several(job(), {"kind": "Job"}, None, 3)),
    case("R02", job(box({GPU: 2}, requests={GPU: "2"}))),
    case("R03", job(box({GPU: 1}, requests={"cpu": 1}))),
    case("R04", job(**CUDA), NAMES_CLASS),
    case("R04", job()),
    case("R04", [CLASS, job()], DEFAULT),
    case("R04", [CLASS, job()], CDI),
    case("R04", job(), NAMES_CLASS, DEFAULT),
    case("R04", [CLASS, job(box({}))]),
    case("R04", [CLASS, INJECTION, job()]),
    case("R04", [CLASS, {**job(), "metadata": {"name": "x", "labels": {"app.kubernetes.io/managed-by": "cdk8s"}}}]),
    case("R04", [CLASS, policy(SETS), job()]),
    case("R04", [CLASS, policy(SETS), binding(named("In", "team", "default")), job()]),
    case("R04", [CLASS, policy(SETS), binding(named("NotIn", "team")), job()]),
    case("R04", [CLASS, policy(SETS), binding(named("In", "team")), training_runtime("ClusterTrainingRuntime")]),
    case("R04", [CLASS, policy(SETS), binding(named("In", "a", key="team")), job()]),
    case("R04", [CLASS, policy(SETS), binding(named("In", "team"), "other"), job()]),
    case("R04", [CLASS, policy(SETS), binding(named("In", "a")), policy(SETS), binding(named("In", "default")), job()]),
    case("R04", [CLASS, kyverno({"mutate": {"patchStrategicMerge": PATCH}}), job()]),
    *(case("R04", [CLASS, served(kind)]) for kind in ("ServingRuntime", "ClusterServingRuntime")),
    case("R05", job(box(), box({}, env=env("all")))),
    case("R05", obj("Pod", pod_of(box(env=env("all"))), annotations={"gpu-constructs/visible-devices": "unmanaged"})),
    case("R06", [CLASS, job(box(), {**SIDECAR, "env": env("void")}, **CUDA)]),
    case("R06", job(box(), SIDECAR)),
    case("R06", [CLASS, job(box({}), SIDECAR, **CUDA)]),
    case("R06", job(box(), SIDECAR, runtimeClassName="kata"), DEFAULT),
    case("R07", job(), SLICED),
    case("R07", job(), UNREFUSED),
    case("R07", job(box({GPU: 8})), UNITS, inventory=ONE),
    case("R07", [], UNITS, inventory=nodes({"vram": "25Gi", "vram_reserved": "1Gi"})),
    case("R07", [], UNITS, inventory=nodes({"gpus": 2, "sharing": Sharing.none()})),
    case("R07", [], UNREFUSED, inventory=nodes({"gpus": 2})),
    case("R07", [], UNITS_OR_NONE, inventory=nodes({"gpus": 2, "labels": {CONFIG: "none"}})),
    case("R07", [], UNITS_OR_LARGER, inventory=nodes({"vram": "16Gi"})),
    case("R07", [], UNITS_OR_LARGER, inventory=nodes({"vram": "16Gi", "labels": {CONFIG: "small"}})),
    case("R07", job(box({GPU: 8})), UNITS_OR_LARGER),
    case("R07", job(box({"nvidia.com/gpu.shared": 8})), UNITS_RENAMED),
    case("R07", job(box({GPU: 2})), EXCLUSIVE),
    case("R07", job(box({GPU: 2})), UNREFUSED, EXCLUSIVE),
    case("R08", job(), SLICED),
    *(
        case("R09", job(box({f"nvidia.com/mig-{profile}": 1})))
        for profile in (
            "1g.10gb",
            "1g.10gb.me",
            "1g.24gb.me.all",
            "1g.24gb.gfx",
            "1g.24gb-me",
            "1g.5gb.shared",
            "1c.3g.20gb",
        )
    ),
    case("R09", job(box({"nvidia.com/mig-1g.5gb.me": 1})), inventory=TWO),
    case("R09", job(box({"nvidia.com/mig-1g.6gb": 1})), inventory=DARK),
    case("R09", job(box({"nvidia.com/mig-1g.10gb": 1})), NAMELESS),
    case("R10", job(affinity=affinity("NVIDIA-A10", "NVIDIA-A10-SHARED")), SLICED),
    case("R10", job(affinity=affinity("NVIDIA-A10", operator="NotIn")), SLICED),
    case("R10", job(nodeSelector={PRODUCT: "NVIDIA-A10"}), EXCLUSIVE, LABELS),
    case("R10", job(box({"nvidia.com/gpu.shared": 1}), nodeSelector={PRODUCT: "NVIDIA-A10"}), RENAMED),
    case("R10", job(nodeSelector={PRODUCT: "NVIDIA-A10"}), SLICED, EXCLUSIVE),
    case(
        "R11",
        job(nodeSelector={"node-role.kubernetes.io/gpu": ""}),
        Provided(node_labels=("node-role.kubernetes.io/gpu",)),
    ),
    case("R12", job(box({}), nodeSelector={"nvidia.com/gpu.present": "true"}), LABELS),
    case("R12", job(box({}), nodeSelector={"node-role.kubernetes.io/gpu": ""})),
    case("R12", [features({"labels": {"nvidia.com/gpu.present": "true"}}), selecting("nvidia.com/gpu.present")]),
    case("R12", [features({"labels": {"rtx": "true"}}), selecting("feature.node.kubernetes.io/rtx")]),
    case("R12", [features({"labelsTemplate": "\nnvidia.com/{{ .x }}=1\n"}), selecting("nvidia.com/gpu.present")]),
    case("R12", [agent("r:5000/nfd/node-feature-discovery:v1"), selecting("feature.node.kubernetes.io/pci-10de")]),
    case("R12", [agent("nvcr.io/nvidia/gpu-feature-discovery:v0.8.2"), selecting("nvidia.com/gpu.product")]),
    case(
        "R12",
        [agent("a/k8s-device-plugin@sha256:1", command=["gpu-feature-discovery"]), selecting("nvidia.com/gpu.count")],
    ),
    case("R13", job(box({}, securityContext={"privileged": True}))),
    case("R14", job(box(volumeMounts=SHM), **memory("1Gi")), SLICED),
    case("R15", [user(1000), user(1000, "y")], MPS),
    case("R15", [user(1000), user(1001, "y")], SLICED),
    case("R15", [user(1000), deployment(name="y")], MPS),
    case("R16", deployment()),
    case("R16", deployment(strategy=rolling(0, 1))),
    case("R16", deployment(strategy=rolling(), replicas=0)),
    case("R16", deployment(strategy=rolling(), replicas=4)),
    case("R16", deployment(box({}), strategy=rolling())),
    case("R16", deployment(strategy=rolling()), EXCLUSIVE, inventory=TWO),
    case("R16", deployment(strategy=rolling()), SLICED, inventory=ONE),
    case("R17", [deployment(replicas=2), budget(minAvailable=1)]),
    case("R17", [deployment(), budget(maxUnavailable=1)]),
    case("R17", [deployment(box({})), budget(minAvailable=1)]),
    case("R17", [deployment(name="y"), budget(minAvailable=1)]),
    case("R17", [deployment(), obj("PodDisruptionBudget", {"minAvailable": 1}, api="policy/v1")]),
    case("R17", [deployment(), {**budget(minAvailable=1), "metadata": {"name": "x", "namespace": "y"}}]),
    case("R18", limit_range("default", "memory")),
    case("R18", limit_range("max", GPU, default={GPU: "0"}, defaultRequest={GPU: 0})),
    case("R18", limit_range("max", "memory")),
    case("R18", quota("requests.nvidia.com/gpu")),
    case("R18", quota("limits.memory")),
    case("R19", job({"name": "main", "image": "a:1"})),
    case(
        "R19",
        job({"name": "a", "image": "a:1", "resources": {"limits": {GPU: 1}}}, resources={"limits": {"memory": 9}}),
    ),
    case(
        "R19", [job({"name": "a", "image": "a:1", "resources": {"limits": {GPU: 1}}}), limit_range("default", "memory")]
    ),
    case("R19", job(box(volumeMounts=SHM), **memory("7Gi"))),
    case("R19", job(box(volumeMounts=SHM), **memory("8Gi", medium=""))),
    case("R20", job(box(livenessProbe=PROBE, startupProbe=PROBE))),
    case("R20", job(box({}, livenessProbe=PROBE))),
    case("R20", job(box(livenessProbe={**PROBE, "initialDelaySeconds": 570}))),
    case("R20", job(box(livenessProbe={**PROBE, "periodSeconds": 200}))),
    case("R20", job(box(livenessProbe={**PROBE, "failureThreshold": 60}))),
    case("R21", job(hostUsers=False), CDI),
    case("R21", job(hostUsers=True)),
    case("R21", job(box({}), hostUsers=False)),
    case("R22", job(box({"nvidia.com/gpumem": 4000}), schedulerName="hami-scheduler")),
    case("R22", deployment(box({}), pod_annotations={"gpu-fraction": "0.5"}, schedulerName="kai-scheduler")),
    case("R23", job(box(), SIDECAR)),
    case("R23", job(initContainers=[box(name="first")])),
    case("R24", bare(restartPolicy="Never"), SLICED),
    case("R24", bare(), EXCLUSIVE),
    case("R24", deployment(), SLICED),
    case("R25", job(tolerations=[{"operator": "Exists"}]), TAINTED),
    case("R26", job(box(image="registry:5000/a:1"))),
    case("R26", job(box(image="a@sha256:" + "0" * 64))),
    case("R26", job(box(image="a:latest@sha256:" + "0" * 64))),
    case("R26", job(box(image="${IMAGE}"))),
    case("R26", job(box({}, image="a"))),
    case("R27", [claim("compute-domain-default-channel.nvidia.com"), claiming()]),
    case("R27", claiming()),
    case("R28", annotated("24Gi"), inventory=ONE),
    case("R28", annotated("25Gi")),
    case("R28", taking("8Gi", typical="0")),
    case("R28", taking("8Gi", typical="8192Mi")),
    case("R28", taking("8Gi"), UNREFUSED),
    case("R28", taking("8Gi", box({GPU: 8})), UNITS),
    case("R28", taking("7.5Gi", box({GPU: 9})), UNITS),
    case("R28", taking("12Gi", box({GPU: 6}), box({GPU: 6}, name="other")), UNITS),
    case("R28", with_a_first_container(taking("8Gi", box({GPU: 8})), box({GPU: 1}, name="first")), UNITS),
    case("R28", deployment(box({GPU: 1}), box({GPU: 1}, name="other")), UNITS),
    case("R28", on_pods("8Gi", box({GPU: 8})), UNITS),
    case("R28", taking("8Gi", box({GPU: 8})), UNITS_OR_LARGER),
    case("R28", taking("8Gi"), UNITS_OR_NONE),
    case("R28", deployment(box({GPU: 8})), UNITS),
    case("R29", cron("Forbid")),
    case("R29", cron("Replace")),
    case("R30", [deployment(), scaler(2)], EXCLUSIVE, inventory=TWO),
    case("R30", [deployment(), scaler(9)], EXCLUSIVE),
    case("R30", [deployment(), scaler(9)], inventory=TWO),
    case("R30", [deployment(), scaler(9, kind="StatefulSet")], EXCLUSIVE, inventory=TWO),
    case("R30", [deployment(), scaled(4)], SLICED, inventory=TWO),
    case("R31", job(box(args=["--api-key", "$(API_KEY)"], env=[{"name": "MAX_TOKENS", "value": "many"}]))),
    case("R31", job(box(env=[{"name": "API_KEY", "valueFrom": {"secretKeyRef": {"name": "a", "key": "b"}}}]))),
]


def broken(manifests, provided=(), inventory=None, **more):
    return broken_rules(Facts(manifests, provided, inventory), **more)


def codes(manifests, provided=(), inventory=None, **more):
    return {finding.code for finding in broken(manifests, provided, inventory, **more)}


# About nodes, which have no annotations.
MISCOUNTED = [
    case("R07", [], UNITS, inventory=nodes({"gpus": 2})),
    case("R07", [], UNITS, inventory=nodes({"gpu_model": "RTX 3090"}, {"vram": "24Gi", "gpus": 8, "count": 3})),
    case("R07", [], UNITS, inventory=nodes({"vram": "23Gi"})),
    case("R07", [], UNITS, inventory=nodes({"vram": "25Gi", "vram_reserved": "2Gi"})),
    case("R07", [], UNITS_RENAMED, inventory=nodes({"gpus": 2})),
    case("R07", [], UNITS, inventory=nodes({"gpus": 2, "sharing": Sharing.none(), "is_observed": True})),
    case("R07", [], UNITS_OR_NONE, inventory=nodes({"gpus": 2})),
    case("R07", [], UNITS_OR_NONE, inventory=nodes({"gpus": 2, "labels": {CONFIG: "units"}})),
    case("R07", [], UNITS_OR_LARGER, inventory=nodes({"vram": "16Gi", "labels": {CONFIG: "large"}})),
]


def test_units_that_miscount_the_memory_of_a_node_are_found():
    for code, *app in MISCOUNTED:
        (finding,) = broken(*app)
        assert (finding.code, finding.subject, finding.is_warning) == (code, None, False), app
        assert is_reason_with_way_out(finding)


def test_a_node_whose_units_are_miscounted_is_named():
    (finding,) = broken([], [UNITS], nodes({"gpus": 4}))
    assert finding.sentence(str, "plugin-{}".format) == (
        "plugin-0: units of memory are right for one GPU in a node, and each of 'n0' has 4, of which a pod may get "
        "units of several; use Sharing.time_slicing or another unit there, or declare GpuNode(sharing=...) where "
        "another plugin serves that node [R07]"
    )
    (finding,) = broken([], [UNITS], nodes({"vram": "16Gi"}))
    assert finding.problem.startswith("24 units of 1Gi are more than the 16384Mi that 'n0' has; ")


def test_units_that_are_asked_for_are_told_with_what_is_taken():
    (finding,) = broken([taking("7.5Gi")], [UNITS])
    assert finding.sentence(str, "plugin-{}".format) == (
        "0: means to use 7.5Gi of GPU memory (gpu-constructs/vram) and asks for 1 x nvidia.com/gpu, which plugin-0 "
        "counts in units of 1Gi; ask for 8, which GpuRequest(vram=...) does with the sharing in its GpuProfile [R28]"
    )


def is_reason_with_way_out(finding):
    return "\n" not in finding.problem and "; " in finding.problem


def leaving_out(code, manifests):
    """The same objects, each taken out of its list and with an annotation that leaves the rule out."""
    manifests = copy.deepcopy(manifests)
    while any(manifest["kind"] == "List" for manifest in manifests):
        manifests = [one for manifest in manifests for one in manifest.get("items", [manifest])]
    for manifest in manifests:
        manifest["metadata"].setdefault("annotations", {})[IGNORE_RULES] = code
    return manifests


def test_a_rule_finds_what_breaks_it_unless_the_object_or_the_app_leaves_it_out():
    for rule in RULES:
        rows = [app for code, *app in BROKEN if code == rule.code]
        assert rows, rule
        for manifests, *app in rows:
            found = broken(manifests, *app)
            assert rule.code in {finding.code for finding in found}, manifests
            assert all(map(is_reason_with_way_out, found)), found
            if rule.severity == "warning":
                assert all(finding.is_warning for finding in found if finding.code == rule.code), manifests
            assert rule.code not in codes(leaving_out(rule.code, manifests), *app), manifests
            assert rule.code not in codes(manifests, *app, ignore=[rule.code]), manifests


def test_a_rule_leaves_alone_what_keeps_it():
    for rule in RULES:
        rows = [app for code, *app in KEPT if code == rule.code]
        assert rows, rule
        for app in rows:
            assert rule.code not in codes(*app), app


def test_codes_count_up_without_a_gap():
    assert tuple(f"R{number:02}" for number in range(1, 32)) == CODES


def test_a_rule_that_knows_too_little_to_be_sure_warns():
    for code, *app in (
        case("R05", job(box(env=env("all"))), inventory=ONE),
        case("R05", job(box(env=env("void"))), CDI),
        case("R07", job(box({GPU: 2})), UNREFUSED),
        case("R16", deployment(strategy=rolling())),
        case("R28", annotated("25Gi"), inventory=DARK),
        case("R07", job(), UNITS_OR_NONE),
        case("R07", [], UNITS, EXCLUSIVE, inventory=nodes({"gpus": 2})),
        case("R28", deployment(), UNITS),
    ):
        assert [f.is_warning for f in broken(*app) if f.code == code] == [True], (code, app)


def test_an_object_may_break_several_rules_it_names():
    made = job(box(image="a", livenessProbe=PROBE))
    assert codes([made]) == {"R20", "R26"}
    made["metadata"]["annotations"] = {IGNORE_RULES: "R20,R26"}
    assert broken([made]) == []


def test_an_object_lets_no_other_object_break_a_rule():
    quiet, loud = job(box(image="a")), job(box(image="a"))
    quiet["metadata"]["annotations"] = {IGNORE_RULES: "R26"}
    assert [finding.subject for finding in broken([quiet, loud])] == [1]


def test_a_code_that_no_rule_has_is_an_error_with_the_nearest():
    for text, near in (("R99", "R29"), ("5", "R05"), ("r5", "R05"), ("R-13", "R13")):
        (finding,) = broken([obj("ConfigMap", annotations={IGNORE_RULES: f"R01,{text}"})])
        assert (finding.subject, finding.code, finding.is_warning) == (0, None, False)
        assert finding.problem == (
            f"annotation gpu-constructs/ignore-rules must hold codes of rules, R01 to R31; got {text!r} "
            f"(did you mean {near!r}?); docs/rules.md lists them"
        )


def test_a_pod_without_a_gpu_is_left_alone():
    spec = pod_of(
        {"name": "a", "image": "a", "livenessProbe": PROBE, "securityContext": {"privileged": True}, "env": env("all")},
        {"name": "b", "image": "b:latest"},
        hostUsers=False,
    )
    manifests = [
        CLASS,
        obj("Deployment", {"template": {"spec": spec}}, api="apps/v1"),
        obj("CronJob", {"jobTemplate": {"spec": {"template": {"spec": spec}}}}, api="batch/v1"),
        obj("Pod", spec, name="y"),
        scaler(9),
        budget(minAvailable=1),
    ]
    assert broken(manifests, [SLICED, TAINTED, NAMES_CLASS], TWO) == []


def test_a_sentence_ends_with_the_code():
    (finding,) = broken([cron()])
    assert finding.sentence(lambda index: f"chart/{index}", lambda _: "").startswith("chart/0: is a CronJob")
    assert finding.sentence(lambda index: "", lambda _: "").endswith("; write concurrencyPolicy 'Forbid' [R29]")


def test_a_plugin_that_hands_devices_out_by_cdi_is_seen():
    for plugin in [
        obj("ConfigMap", data={"config.yaml": "flags:\n  plugin:\n    deviceListStrategy: [cdi-cri]\n"}),
        obj(
            "DaemonSet",
            {
                "template": {
                    "spec": pod_of({"name": "p", "image": "p:1", "env": env("cdi-cri", "DEVICE_LIST_STRATEGY")})
                }
            },
            api="apps/v1",
        ),
    ]:
        assert codes([CLASS, plugin, job(hostUsers=False)]) == set(), plugin
        assert codes([CLASS, job(hostUsers=False)]) == {"R04", "R21"}, plugin


def test_amounts_are_read_as_kubernetes_reads_them():
    for given, number in [
        (1, 1),
        ("2", 2),
        ("1k", 1000),
        ("1Ki", 1024),
        ("1e3", 1000),
        ("+1", 1),
        ("1e100", 2**63 - 1),
        ("-1e100", -(2**63 - 1)),
        ("1e" + "9" * 5000, 2**63 - 1),
        ("1e0000002", 100),
        ("1" * 99 + "Ei", 2**63 - 1),
        ("1/2", None),
        ("1_0", None),
        (None, None),
    ]:
        assert quantity(given) == number, (given, number)


def test_twice_the_workloads_take_twice_the_work_to_check():
    def checking(count):
        manifests = [deployment(name=f"d{number}", **CUDA) for number in range(count)]
        return lambda: broken(manifests, [SLICED])

    assert checking(100)() == []
    assert grows_with(checking, 100) < 2.2


def test_a_problem_in_a_list_is_told_of_the_list():
    pods = several(job(box(image="a"), name="one"), job(), cron())
    assert [(f.subject, f.code) for f in broken([obj("ConfigMap"), pods])] == [(1, "R26"), (1, "R29")]
    manifests = [obj("ConfigMap"), several(budget(maxUnavailable=0), deployment())]
    assert [(f.subject, f.others) for f in broken(manifests)] == [(1, (1,))]


def test_a_label_that_nothing_publishes_is_sought_where_it_may_come_from():
    for label, advice in [
        ("nvidia.com/mig.config", "you or the GPU Operator set it"),
        ("nvidia.com/gpu.deploy.driver", "you or the GPU Operator set it"),
        ("nvidia.com/device-plugin.config", "you or the GPU Operator set it"),
        ("nvidia.com/gpu.product", "gpu_feature_discovery=True"),
        ("feature.node.kubernetes.io/pci-10de.present", "node_feature_discovery=True"),
    ]:
        (finding,) = broken([selecting(label)])
        assert advice in finding.problem, (label, advice)
        assert f"node_labels=[{label!r}]" in finding.problem, (label, advice)


def replaced(value, path, given):
    """A copy with one member of it, at any depth, replaced."""
    if not path:
        return given
    if isinstance(value, list):
        return [replaced(one, path[1:], given) if number == path[0] else one for number, one in enumerate(value)]
    return {key: replaced(one, path[1:], given) if key == path[0] else one for key, one in value.items()}


def places(value, path=()):
    for key, one in value.items() if isinstance(value, dict) else enumerate(value):
        yield (*path, key)
        if isinstance(one, dict | list):
            yield from places(one, (*path, key))


WRITTEN = [
    deployment(
        box(
            requests={GPU: 1},
            env=env("all"),
            envFrom=[{"configMapRef": {"name": "a"}}],
            volumeMounts=SHM,
            livenessProbe={**PROBE, "periodSeconds": 5},
            securityContext={"privileged": True, "runAsUser": 1},
        ),
        SIDECAR,
        strategy=rolling(1, 0),
        annotations={"gpu-constructs/vram": "30Gi"},
        affinity=affinity("NVIDIA-A10"),
        nodeSelector={PRODUCT: "a"},
        tolerations=[{"operator": "Exists"}],
        resourceClaims=[{"name": "gpu", "resourceClaimTemplateName": "claim"}],
        **CUDA,
        **memory("1Gi"),
    ),
    budget(minAvailable=1),
    scaler(3),
    cron(),
    limit_range("max", GPU),
    quota("limits.nvidia.com/gpu"),
    CLASS,
    claim("gpu.nvidia.com"),
    train_job(limits={GPU: 1}),
    policy(SETS),
    binding(named("In", "a")),
    kyverno({"mutate": {"patchStrategicMerge": PATCH}}),
    features({"labels": {"a": "b"}, "labelsTemplate": "a=b"}),
    obj("ConfigMap", data={"a": "deviceListStrategy"}),
]


def test_a_member_of_another_type_is_no_crash():
    others = cycle([None, 3, "text", [None], {"a": None}])
    for index, made in enumerate(WRITTEN):
        for path in places(made):
            # Two of the five for each member, in turn.
            for given in islice(others, 2) if path not in (("apiVersion",), ("kind",)) else ():
                manifests = [*WRITTEN[:index], replaced(made, path, given), *WRITTEN[index + 1 :]]
                broken(manifests, [MPS, CDI, TAINTED, NAMES_CLASS], TWO)


def test_a_budget_looks_only_at_pods_with_its_label():
    manifests = [deployment(name=f"d{number}", **CUDA) for number in range(500)]
    for number in range(500):
        spec = {"selector": {"matchLabels": {"app": f"d{number}"}}, "maxUnavailable": 1}
        manifests.append(obj("PodDisruptionBudget", spec, api="policy/v1", name=f"b{number}"))
    looked = []

    class Counted(dict):
        def get(self, key, default=None):
            looked.append(key)
            return super().get(key, default)

    facts = Facts(manifests)
    for pod in facts.pods:
        object.__setattr__(pod, "metadata", {"labels": Counted(pod.metadata["labels"])})
    assert broken_rules(facts) == []
    # A few looks at each of 500 pods, not one for each pod and budget.
    assert len(looked) < 5000


def test_a_pod_counts_as_the_scheduler_counts_it():
    def sidecar(count):
        return box({GPU: count}, restartPolicy="Always")

    for init, main, counted in [
        ([], [box({GPU: 1}), box({GPU: 2})], 3),
        ([box({GPU: 4})], [box()], 4),
        ([sidecar(1), box({GPU: 4})], [box()], 5),
        ([box({GPU: 4}), sidecar(1)], [box()], 4),
        ([sidecar(2)], [box({GPU: 3})], 5),
    ]:
        (pod,) = Facts([job(*main, initContainers=init)]).gpu_pods
        assert pod.counts() == {GPU: counted}


def test_limits_that_are_no_limits_are_none():
    for limits in [["nvidia.com/gpu"], "nvidia.com/gpu", 1]:
        spec = {"containers": [{"name": "c", "resources": {"limits": limits}}]}
        assert Facts([{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec}]).gpu_pods == []


def test_two_containers_may_hold_memory_of_one_gpu():
    sharing = Sharing.vram_units(vram="16303Mi")
    two = job(box({GPU: 8}), box({GPU: 4}, name="second"))
    assert "R23" not in codes([two], [Provided(gpu_resources={GPU: sharing})])
    assert "R23" in codes([two], [Provided(gpu_resources={GPU: Sharing.time_slicing(replicas=4)})])
