"""The admission policies on a real API server: what passes, what is completed, what is refused."""

import json
from contextlib import contextmanager

import pytest

from cluster import ApiError, eventually
from gpu_constructs import (
    App,
    Chart,
    ContainerLimits,
    DenyVisibleDevicesOverride,
    DevicePluginChart,
    GpuConstructsError,
    GpuNamespace,
    GpuRuntimeInjection,
    Kubernetes,
    Talos,
    Testing,
    Toleration,
)
from gpu_constructs.cluster.admission.visible_devices import ALLOW_LABEL
from gpu_constructs.kube.placement import GPU_TAINT
from kubelet import Node

GPU, VISIBLE = "nvidia.com/gpu", "NVIDIA_VISIBLE_DEVICES"
OVERRIDE, NO_GPU = "NVIDIA_VISIBLE_DEVICES must be left out", "needs a container with a GPU"
NAMES_NODE, ENV_FROM = "nodeName must be left out", "envFrom can set NVIDIA_VISIBLE_DEVICES"


def runtime_class(name, **more):
    return {
        "apiVersion": "node.k8s.io/v1",
        "kind": "RuntimeClass",
        "metadata": {"name": name},
        "handler": "nvidia",
        **more,
    }


def namespaces():
    """Return the namespaces of the tests: those that the policies leave alone, one with limits, one to be labelled."""
    chart = Chart(App(), "namespaces")
    GpuNamespace(chart, "plugin")
    GpuNamespace(chart, "monitoring", name="gpu-monitoring", labels={ALLOW_LABEL: "true"})
    GpuNamespace(chart, "limited", name="limited", limit_range=ContainerLimits(max={GPU: 1}))
    GpuNamespace(chart, "old", name="old", pod_security="baseline")
    return Testing.synth(chart)


LINUX = {"kubernetes.io/os": "linux"}
SURROUNDINGS = [
    *(runtime_class(name) for name in ("nvidia", "nvidia-cdi", "nvidia-legacy", "kata")),
    runtime_class("heavy", overhead={"podFixed": {"memory": "64Mi"}}, scheduling={"nodeSelector": LINUX}),
    *namespaces(),
]


def policy(kind, **given):
    """Return what the library makes of a policy."""
    chart = Chart(App(), "policies")
    kind(chart, "policy", **given)
    return Testing.synth(chart)


def container(name="main", limits=None, **more):
    return {"name": name, "image": "e2e.invalid/none"} | ({"resources": {"limits": limits}} if limits else {}) | more


def with_gpu(name="main", count=1, resource=GPU, **more):
    return container(name, {resource: count}, **more)


def pod(*containers, name="probe", namespace="default", **spec):
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "labels": {"app": name}},
        "spec": {"containers": list(containers) or [container()], **spec},
    }


def refusal(cluster, manifest):
    """Return the message with which the API server refuses an object; empty where it takes it."""
    try:
        cluster.create(manifest, dry_run=True)
    except ApiError as error:
        return error.message
    return ""


@contextmanager
def holding(cluster, manifests, holds):
    """Keep policies until the context ends: from when the API server asks them until it has forgotten them."""
    try:
        with cluster.keeping(*manifests) as applied:
            eventually(holds, "the API server asks the policy")
            yield applied
    finally:
        eventually(lambda: not holds(), "the API server has forgotten the policy")


def refuses(cluster, sentence, manifest):
    """Return a check whether the API server refuses an object with a sentence."""
    return lambda: sentence in refusal(cluster, manifest)


def is_as_expected(cluster, manifest, sentence):
    message = refusal(cluster, manifest)
    return sentence in message if sentence else not message


@pytest.fixture(scope="module")
def surroundings(sites, release):
    """A cluster with the runtime classes and namespaces of the tests."""
    cluster = sites.site(release, "talos").cluster
    with cluster.keeping(*SURROUNDINGS):
        yield cluster


# --- GPUs for those that asked ----------------------------------------------------------------------------------


def env(*values, **source):
    """Return the variable with each of these values, or with a value from elsewhere."""
    return {
        "env": [
            *({"name": VISIBLE, "value": value} for value in values),
            *([{"name": VISIBLE, **source}] if source else []),
        ]
    }


ALL = env("all")
FIELD = env(valueFrom={"fieldRef": {"fieldPath": "metadata.name"}})
CONFIG = env(valueFrom={"configMapKeyRef": {"name": "a", "key": "b", "optional": True}})
OTHERS_VALUE = {"env": [{"name": "X", "value": "all"}, {"name": VISIBLE, "value": "$(X)"}]}
SIDECAR = {"restartPolicy": "Always"}
FROM_SECRET = {"envFrom": [{"secretRef": {"name": "a"}}]}


@pytest.fixture(scope="module")
def guarded(surroundings):
    is_refused = refuses(surroundings, OVERRIDE, pod(container(**ALL)))
    with holding(surroundings, policy(DenyVisibleDevicesOverride), is_refused):
        yield surroundings


@pytest.fixture
def guard(guarded, cluster):
    """A cluster with the policy, as the library makes it by default; what a test leaves there is deleted."""
    assert guarded is cluster
    return cluster


@pytest.mark.parametrize(
    ("manifest", "sentence"),
    [
        pytest.param(pod(container(**ALL)), OVERRIDE, id="a container"),
        pytest.param(pod(with_gpu(), container("b", **ALL)), OVERRIDE, id="the second container"),
        pytest.param(pod(initContainers=[container("a", **ALL)]), OVERRIDE, id="an init container"),
        pytest.param(pod(initContainers=[container("a", **SIDECAR, **ALL)]), OVERRIDE, id="a sidecar"),
        pytest.param(pod(with_gpu(**ALL), runtimeClassName="nvidia"), OVERRIDE, id="a pod with a GPU"),
        pytest.param(pod(container(**env("GPU-5e0c1a52"))), OVERRIDE, id="one GPU by name"),
        pytest.param(pod(container(**env("0"))), OVERRIDE, id="one GPU by number"),
        pytest.param(pod(container(**env("VOID"))), OVERRIDE, id="void in capitals"),
        pytest.param(pod(container(**FIELD)), OVERRIDE, id="a value from a field"),
        pytest.param(pod(container(**CONFIG)), OVERRIDE, id="a value from a ConfigMap"),
        pytest.param(pod(container(**OTHERS_VALUE)), OVERRIDE, id="the value of another variable"),
        pytest.param(pod(container(**env("void", "all"))), OVERRIDE, id="twice, the harmless one first"),
        pytest.param(pod(container(**env("all", "void"))), OVERRIDE, id="twice, the harmless one last"),
        pytest.param(pod(container(**env("void"))), None, id="void"),
        pytest.param(pod(container(**env("none"))), None, id="none"),
        pytest.param(pod(container(**env(""))), None, id="an empty value"),
        pytest.param(pod(container(env=[{"name": VISIBLE}])), None, id="no value"),
        pytest.param(pod(container(env=[{"name": "X", "value": "all"}])), None, id="another variable"),
        pytest.param(pod(with_gpu(**FROM_SECRET), runtimeClassName="nvidia"), None, id="all variables of a Secret"),
        pytest.param(pod(container(**ALL), namespace="kube-system"), None, id="in kube-system"),
        pytest.param(pod(container(**ALL), namespace="nvidia-gpu-operator"), None, id="in the namespace of the plugin"),
        pytest.param(pod(container(**ALL), namespace="gpu-monitoring"), None, id="in a namespace with the label"),
    ],
)
def test_a_pod_may_not_choose_the_gpus_it_sees(guard, manifest, sentence):
    assert is_as_expected(guard, manifest, sentence)


@pytest.mark.parametrize(
    ("manifest", "sentence"),
    [
        *(
            pytest.param(pod(with_gpu(count=count), runtimeClassName="nvidia"), NO_GPU, id=f"{count} GPUs")
            for count in ("0", "0k", "0.0", "0e3", "00", "0Ki", "0m")
        ),
        *(
            pytest.param(pod(runtimeClassName=name), NO_GPU, id=f"no GPU and the class {name}")
            for name in ("nvidia", "nvidia-cdi", "nvidia-legacy")
        ),
        pytest.param(pod(container(limits={"cpu": "1"}), runtimeClassName="nvidia"), NO_GPU, id="a CPU"),
        pytest.param(pod(with_gpu(resource="nvidia.com/hostdev"), runtimeClassName="nvidia"), NO_GPU, id="an adapter"),
        pytest.param(pod(runtimeClassName="nvidia", namespace="limited"), NO_GPU, id="0 GPUs by a LimitRange"),
        pytest.param(pod(with_gpu(count="1e0"), runtimeClassName="nvidia"), None, id="one GPU, written 1e0"),
        *(
            pytest.param(pod(with_gpu(resource=name), runtimeClassName="nvidia"), None, id=name)
            for name in (GPU, "nvidia.com/gpu.shared", "nvidia.com/mig-1g.10gb")
        ),
        pytest.param(
            pod(runtimeClassName="nvidia", initContainers=[with_gpu("a")]), None, id="a GPU of an init container"
        ),
        pytest.param(pod(runtimeClassName="kata"), None, id="another class"),
        pytest.param(pod(with_gpu()), None, id="a GPU and no class"),
    ],
)
def test_the_runtime_class_of_nvidia_is_for_pods_with_a_gpu(guard, manifest, sentence):
    assert is_as_expected(guard, manifest, sentence)


@pytest.mark.parametrize(
    ("manifest", "sentence"),
    [
        *(
            pytest.param(pod(with_gpu(resource=name), runtimeClassName="nvidia", nodeName="gpu-0"), NAMES_NODE, id=name)
            for name in (GPU, "nvidia.com/gpu.shared", "nvidia.com/mig-1g.10gb", "nvidia.com/mig-zz")
        ),
        pytest.param(pod(with_gpu(), nodeName="gpu-0"), None, id="no class"),
        pytest.param(pod(nodeName="gpu-0", runtimeClassName="kata"), None, id="another class"),
    ],
)
def test_a_pod_with_the_runtime_class_may_not_name_its_node(guard, manifest, sentence):
    assert is_as_expected(guard, manifest, sentence)


@pytest.mark.parametrize(
    ("manifest", "sentence"),
    [
        pytest.param(pod(with_gpu(**FROM_SECRET), runtimeClassName="nvidia"), ENV_FROM, id="the class"),
        pytest.param(pod(with_gpu(**FROM_SECRET, **env("void")), runtimeClassName="nvidia"), None, id="its own value"),
        pytest.param(pod(with_gpu(**FROM_SECRET)), None, id="no class"),
    ],
)
def test_the_strict_policy_refuses_variables_that_it_cannot_see(guard, manifest, sentence):
    is_refused = refuses(guard, ENV_FROM, pod(with_gpu(**FROM_SECRET), name="first", runtimeClassName="nvidia"))
    with holding(guard, policy(DenyVisibleDevicesOverride, name="strict", deny_env_from=True), is_refused):
        assert is_as_expected(guard, manifest, sentence)


def test_a_policy_that_warns_takes_the_pod_and_prints_why(guard):
    # The default policy leaves this namespace alone, so that only this one is asked.
    given = {"excluded_namespaces": ["default"], "validation_actions": ["Warn", "Audit"]}
    run = ("run", "probe", "--namespace=nvidia-gpu-operator", "--image=e2e.invalid/none", f"--env={VISIBLE}=all")

    def warned():
        answer = guard.kubectl(*run, "--dry-run=server")
        return answer if OVERRIDE in answer.stderr else None

    with holding(guard, policy(DenyVisibleDevicesOverride, name="trial", **given), warned):
        answer = warned()
    assert (answer.status, "Warning: " in answer.stderr, "created" in answer.stdout) == (0, True, True)


# --- what runs, and what controllers make -----------------------------------------------------------------------


def owner(kind, name, template, **spec):
    """Return a controller that makes pods as the one given."""
    labels = template["metadata"]["labels"]
    selector = {} if kind == "Job" else {"selector": {"matchLabels": labels}}
    return {
        "apiVersion": "batch/v1" if kind == "Job" else "apps/v1",
        "kind": kind,
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"template": {"metadata": {"labels": labels}, "spec": template["spec"]}, **selector, **spec},
    }


def is_running(cluster, name, namespace="default"):
    return cluster.get("v1", "Pod", name, namespace)["status"]["phase"] == "Running"


def test_the_pods_of_a_daemon_set_come_to_nodes_with_a_gpu(guard, kubelets):
    kubelets.register(Node("gpu-0", devices={GPU: 1}), Node("gpu-1", devices={GPU: 1}))
    guard.apply(owner("DaemonSet", "every-node", pod(with_gpu(), name="d", runtimeClassName="nvidia")))

    def nodes():
        return sorted(one["spec"]["nodeName"] for one in guard.pods() if one["status"]["phase"] == "Running")

    eventually(lambda: nodes() == ["gpu-0", "gpu-1"], "a pod runs on each node")


@pytest.mark.parametrize("kind", ["ReplicaSet", "DaemonSet", "StatefulSet", "Job"])
def test_the_event_of_a_controller_says_why_its_pods_are_refused(guard, kubelets, kind):
    kubelets.register(Node("gpu-0"))
    more = {"restartPolicy": "Never"} if kind == "Job" else {}
    (made,) = guard.apply(owner(kind, "refused", pod(container(**ALL), name="r", **more)))
    uid = made["metadata"]["uid"]
    events = eventually(
        lambda: [one for one in guard.events("FailedCreate") if one["involvedObject"]["uid"] == uid],
        f"the {kind} reports it",
    )
    assert all(OVERRIDE in one["message"] for one in events)
    assert not guard.pods("default")


@pytest.fixture
def old(guard, kubelets):
    """A cluster with a pod that came before the policy held in its namespace."""
    kubelets.register(Node("gpu-0", devices={GPU: 2}))
    running = pod(container(**ALL), name="old", namespace="old", runtimeClassName="nvidia")
    assert guard.kubectl("label", "namespace/old", f"{ALLOW_LABEL}=true").status == 0
    eventually(lambda: not refusal(guard, running), "the API server sees the label")
    guard.create(running)
    eventually(lambda: is_running(guard, "old", "old"), "the pod runs")
    assert guard.kubectl("label", "namespace/old", f"{ALLOW_LABEL}-").status == 0
    is_refused = refuses(guard, OVERRIDE, {**running, "metadata": {"name": "next", "namespace": "old"}})
    eventually(is_refused, "the API server sees that the label is gone")
    return guard


DEBUG = "debug pod/old --image=e2e.invalid/none --profile=baseline"


@pytest.mark.parametrize(
    ("command", "sentence"),
    [
        pytest.param("label pod/old team=research", None, id="a label"),
        pytest.param("set image pod/old main=e2e.invalid/other", None, id="an image"),
        pytest.param("delete pod/old --now", None, id="deletion"),
        pytest.param(DEBUG, None, id="a debug container without the variable"),
        pytest.param(f"{DEBUG} --env={VISIBLE}=void", None, id="a debug container with a harmless value"),
        pytest.param(f"{DEBUG} --env={VISIBLE}=all", OVERRIDE, id="a debug container that sees all"),
        pytest.param(f"{DEBUG} --copy-to=copy", OVERRIDE, id="a copy, which would come now"),
    ],
)
def test_what_runs_already_goes_on_and_nothing_joins_it_that_sees_more(old, command, sentence):
    answer = old.kubectl(*command.split(), "--namespace=old")
    assert answer.status == (1 if sentence else 0), answer.stderr
    assert (sentence or "") in answer.stderr


def test_a_patch_of_the_subresource_is_judged_as_well(old):
    change = {"spec": {"ephemeralContainers": [container("debugger", **ALL)]}}
    with pytest.raises(ApiError, match=OVERRIDE):
        old.patch(
            old.get("v1", "Pod", "old", "old") | {"apiVersion": "v1", "kind": "Pod"}, change, part="ephemeralcontainers"
        )


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        pytest.param(["--copy-to=copy"], None, id="anywhere"),
        pytest.param(["--copy-to=copy", f"--env={VISIBLE}=all"], OVERRIDE, id="that sees all"),
        pytest.param(["--copy-to=copy", "--same-node"], NAMES_NODE, id="on the same node, which it names"),
    ],
)
def test_a_copy_to_debug_is_judged_as_any_new_pod(guard, kubelets, more, sentence):
    kubelets.register(Node("gpu-0", devices={GPU: 2}))
    guard.create(pod(with_gpu(), name="server", runtimeClassName="nvidia"))
    eventually(lambda: is_running(guard, "server"), "the pod runs")
    answer = guard.kubectl("debug", "pod/server", "--image=e2e.invalid/none", "--profile=baseline", *more)
    assert answer.status == (1 if sentence else 0), answer.stderr
    assert (sentence or "") in answer.stderr


# --- what the API server thinks of the expressions ---------------------------------------------------------------

KIND, MUTATING = "ValidatingAdmissionPolicy", "MutatingAdmissionPolicy"


def guards():
    """Return the policy in each variant that has other expressions, and one with a wrong member."""
    app = App()
    chart = Chart(app, "policies")
    variants = {
        "default": {},
        "strict": {"deny_env_from": True},
        "variable-only": {"require_gpu_request": False},
        "one-class": {"runtime_class": "gpu"},
    }
    for name, given in variants.items():
        DenyVisibleDevicesOverride(chart, name, name=name, **given)
    DevicePluginChart(app, "plugin", mig_strategy="mixed")
    made = [one for one in Testing.synth(chart) if one["kind"] == KIND]
    other = Chart(App(), "policies")
    DenyVisibleDevicesOverride(other, "no-plugin", name="no-plugin")
    wrong = json.loads(json.dumps(made[0]).replace("runtimeClassName", "runtimeClass"))
    return [*made, Testing.synth(other)[0], {**wrong, "metadata": {"name": "wrong"}}]


def test_the_api_server_finds_nothing_wrong_with_the_types(cluster):
    names = [one["metadata"]["name"] for one in cluster.apply(*guards())]

    def statuses():
        found = {name: cluster.get("admissionregistration.k8s.io/v1", KIND, name).get("status", {}) for name in names}
        return found if all(one.get("observedGeneration") for one in found.values()) else None

    found = eventually(statuses, "every policy is checked")
    assert [name for name, one in found.items() if one["typeChecking"].get("expressionWarnings")] == ["wrong"]


# --- the runtime class for those that name none -------------------------------------------------------------------

DEDICATED = Toleration(key="dedicated", value="ai", effect="NoSchedule")
DEDICATED_TAINT = {"key": "dedicated", "value": "ai", "effect": "NoSchedule"}
OF_GPU, OF_TEAM = GPU_TAINT.to_manifest(), DEDICATED.to_manifest()


def injection(**given):
    return policy(GpuRuntimeInjection, tolerations=[GPU_TAINT, DEDICATED], **given)


def made_for(release):
    try:
        return injection(platform=Kubernetes(f"1.{release.minor}"), runtime_class="nvidia")
    except GpuConstructsError as error:
        return error.problem


def is_injected(cluster):
    """Check whether the API server gives a pod with a GPU the runtime class, whether or not there is one."""
    try:
        return "runtimeClassName" in cluster.create(pod(with_gpu()), dry_run=True)["spec"]
    except ApiError as error:
        return 'RuntimeClass "nvidia" not found' in error.message


def test_the_policy_is_made_for_the_releases_that_serve_it(cluster, release):
    served = cluster.kubectl("get", "--raw", "/apis/admissionregistration.k8s.io/v1").stdout
    if "mutatingadmissionpolicies" in served:
        with holding(cluster, made_for(release), lambda: is_injected(cluster)) as made:
            assert [one["kind"] for one in made] == [MUTATING, f"{MUTATING}Binding"]
    else:
        assert f"must have Kubernetes 1.36 or later, which serves {MUTATING}" in made_for(release)
    assert "validatingadmissionpolicies" in served


@pytest.fixture(scope="module")
def injecting(surroundings):
    excluded = ["kube-system", "nvidia-gpu-operator", "gpu-monitoring"]
    made = injection(platform=Talos("1.13"), excluded_namespaces=excluded)
    with holding(surroundings, made, lambda: is_injected(surroundings)):
        yield surroundings


def completed(cluster, manifest):
    """Return the runtime class of a pod that the API server takes, and the tolerations that were added."""
    spec = cluster.create(manifest, dry_run=True)["spec"]
    tolerations = [one for one in spec["tolerations"] if not one.get("key", "").startswith("node.kubernetes.io/")]
    for given in manifest["spec"].get("tolerations", ()):
        tolerations.remove(given)
    return spec.get("runtimeClassName"), tolerations


NOTHING = (None, [])


@pytest.mark.since(36)
@pytest.mark.parametrize(
    ("manifest", "added"),
    [
        *(
            pytest.param(pod(with_gpu(resource=name)), ("nvidia", [OF_GPU, OF_TEAM]), id=name)
            for name in (GPU, "nvidia.com/gpu.shared", "nvidia.com/mig-1g.10gb")
        ),
        pytest.param(pod(initContainers=[with_gpu("a")]), ("nvidia", [OF_GPU, OF_TEAM]), id="an init container"),
        pytest.param(
            pod(initContainers=[with_gpu("a", **SIDECAR)]), ("nvidia", [OF_GPU, OF_TEAM]), id="a sidecar with a GPU"
        ),
        pytest.param(pod(container("a"), with_gpu()), ("nvidia", [OF_GPU, OF_TEAM]), id="the second container"),
        pytest.param(pod(with_gpu(), tolerations=[OF_GPU]), ("nvidia", [OF_TEAM]), id="one toleration is there"),
        pytest.param(
            pod(with_gpu(), tolerations=[{"key": GPU, "operator": "Exists"}]), ("nvidia", [OF_TEAM]), id="a wider one"
        ),
        pytest.param(pod(with_gpu(), tolerations=[{"operator": "Exists"}]), ("nvidia", []), id="one of everything"),
        pytest.param(
            pod(with_gpu(), tolerations=[{**OF_TEAM, "value": "other"}]),
            ("nvidia", [OF_GPU, OF_TEAM]),
            id="one of another value",
        ),
        pytest.param(pod(with_gpu(), runtimeClassName="nvidia"), ("nvidia", []), id="the class is there"),
        pytest.param(pod(with_gpu(), runtimeClassName="kata"), ("kata", []), id="another class is there"),
        pytest.param(pod(with_gpu(count="0")), NOTHING, id="0 GPUs"),
        pytest.param(pod(with_gpu(count="0k")), NOTHING, id="0k GPUs"),
        pytest.param(pod(), NOTHING, id="no GPU"),
        pytest.param(pod(with_gpu(resource="nvidia.com/hostdev")), NOTHING, id="an adapter"),
        pytest.param(pod(namespace="limited"), NOTHING, id="0 GPUs by a LimitRange"),
        pytest.param(pod(with_gpu(), namespace="limited"), ("nvidia", [OF_GPU, OF_TEAM]), id="beside a LimitRange"),
        pytest.param(pod(with_gpu(), namespace="kube-system"), NOTHING, id="in kube-system"),
        pytest.param(pod(with_gpu(), namespace="nvidia-gpu-operator"), NOTHING, id="in the namespace of the plugin"),
    ],
)
def test_a_gpu_pod_gets_what_it_lacks(injecting, manifest, added):
    assert completed(injecting, manifest) == added


@pytest.mark.since(36)
def test_what_the_class_brings_comes_too_in_the_namespaces_that_are_named(injecting, cluster):
    given = {"name": "heavy", "runtime_class": "heavy", "namespaces": ["gpu-monitoring"]}

    def made():
        return cluster.create(pod(with_gpu(), namespace="gpu-monitoring"), dry_run=True)["spec"]

    policies = injection(platform=Talos("1.13"), **given)
    with holding(cluster, policies, lambda: made().get("runtimeClassName") == "heavy"):
        assert (made()["overhead"], made()["nodeSelector"]) == ({"memory": "64Mi"}, LINUX)
        assert completed(cluster, pod(with_gpu()))[0] == "nvidia"


@pytest.mark.since(36)
def test_a_pod_of_others_then_runs_on_a_tainted_node(injecting, cluster, kubelets):
    taints = ({"key": GPU, "value": "present", "effect": "NoSchedule"}, DEDICATED_TAINT)
    kubelets.register(Node("gpu-0", devices={GPU: 1}, taints=taints))
    injecting.apply(owner("ReplicaSet", "of-others", pod(with_gpu(), name="theirs")))
    eventually(lambda: [one["status"]["phase"] for one in cluster.pods("default")] == ["Running"], "the pod runs")
