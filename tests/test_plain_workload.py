import copy

import pytest

from gpu_constructs import GpuConstructsError, Kubernetes, Probe, Volume
from gpu_constructs.workload.container import Container
from gpu_constructs.workload.controller import Controller
from gpu_constructs.workload.gpu_allocation import allocation
from gpu_constructs.workload.gpu_profile import GpuProfile
from gpu_constructs.workload.gpu_request import GpuRequest
from gpu_constructs.workload.plain_workload import PlainWorkload
from gpu_constructs.workload.volume import Mounts
from gpu_constructs.workload.volume_claim import VolumeClaim

IMAGE = "registry.example/app:1"
VOID = {"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"}
DISK = VolumeClaim(storage="1Gi")
PLAIN = GpuProfile(platform=Kubernetes())


class ConfigMap:
    kind = "ConfigMap"
    name = "settings"

    def __init__(self, data="a"):
        self.data = data


def of_pods(kind="Deployment", profile=PLAIN, **settings):
    made = PlainWorkload(
        controller=Controller(kind=kind, schedule="@daily" if kind == "CronJob" else None, **settings),
        metadata={"name": "app", "namespace": "llm", "labels": {"app": "x"}, "annotations": {"on": "object"}},
        selector={"app": "x"},
        pod_annotations={"on": "pods"},
        pod_spec={"containers": [{"name": "app", "image": IMAGE, "env": None, "volumeMounts": None}]},
        mounts=Mounts(),
        env={},
        allocation=allocation(GpuRequest(), profile),
        visible_devices="managed",
    )
    made.render()
    return made


def emitted(made):
    return made.manifest(lambda config_map: config_map.data)


def pod(made):
    body = emitted(made)
    spec = body["spec"]["jobTemplate"]["spec"] if body["kind"] == "CronJob" else body["spec"]
    return spec if body["kind"] == "Pod" else spec["template"]["spec"]


def template_annotations(made):
    return emitted(made)["spec"]["template"]["metadata"]["annotations"]


def changed(made, change):
    with made.all_or_nothing():
        change(made)


def helper(name="helper", **given):
    return Container(name=name, image=IMAGE, **given)


def test_the_first_container_holds_the_gpu():
    made = of_pods()
    assert made.holder["name"] == "app"
    assert pod(made)["containers"][0]["resources"]["limits"] == {"nvidia.com/gpu": 1}
    assert "resources" not in made.holder


def test_sidecars_start_after_the_init_containers_whatever_the_order_they_were_added_in():
    made = of_pods()
    changed(made, lambda it: it.add_sidecar(helper("side-a")))
    changed(made, lambda it: it.add_init_container(helper("init-a")))
    changed(made, lambda it: it.add_sidecar(helper("side-b")))
    changed(made, lambda it: it.add_init_container(helper("init-b")))
    inits = pod(made)["initContainers"]
    assert [(one["name"], one.get("restartPolicy")) for one in inits] == [
        ("init-a", None),
        ("init-b", None),
        ("side-a", "Always"),
        ("side-b", "Always"),
    ]
    assert all(VOID in one["env"] for one in inits)
    assert pod(made)["containers"][0]["env"] is None


def test_a_sidecar_needs_a_release_that_has_them():
    made = of_pods(profile=GpuProfile(platform=Kubernetes("1.28")))
    with pytest.raises(GpuConstructsError, match=r"^sidecars need Kubernetes 1\.29 or later, got 1\.28; before, such "):
        made.add_sidecar(helper())
    of_pods(profile=GpuProfile(platform=Kubernetes("1.29"))).add_sidecar(helper())


@pytest.mark.parametrize("probe", ["startup_probe", "readiness_probe", "liveness_probe"])
def test_an_init_container_has_no_probes(probe):
    with pytest.raises(GpuConstructsError, match=r"^container of init_containers must have no probes: it only runs "):
        of_pods().add_init_container(helper(**{probe: Probe.exec(["true"])}))


@pytest.mark.parametrize("add", ["add_init_container", "add_sidecar"])
@pytest.mark.parametrize("name", ["app", "there"])
def test_a_name_serves_one_container(add, name):
    made = of_pods()
    made.add_init_container(helper("there"))
    with pytest.raises(GpuConstructsError, match=rf"^container\.name '{name}' is taken already; choose another$"):
        getattr(made, add)(helper(name))


# --- disks -------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["Deployment", "Job", "CronJob", "Pod"])
def test_a_disk_is_a_claim_of_the_workloads_name_and_path(kind):
    made = of_pods(kind)
    changed(made, lambda it: it.attach_volume("/models", DISK))
    (disk,) = made.new_disks()
    assert (disk["kind"], disk["metadata"]["name"]) == ("PersistentVolumeClaim", "app-models")
    assert (disk["metadata"]["namespace"], disk["metadata"]["annotations"]) == ("llm", None)
    assert pod(made)["volumes"] == [{"name": "models", "persistentVolumeClaim": {"claimName": "app-models"}}]
    assert made.new_disks() == []


def test_a_stateful_set_holds_the_claims_of_its_pods_in_itself():
    made = of_pods("StatefulSet", replicas=3)
    changed(made, lambda it: it.attach_volume("/models", DISK))
    assert made.new_disks() == []
    assert emitted(made)["spec"]["volumeClaimTemplates"] == [{"metadata": {"name": "models"}, "spec": DISK.spec()}]
    assert pod(made)["volumes"] is None
    assert pod(made)["containers"][0]["volumeMounts"][0]["name"] == "models"


@pytest.mark.parametrize(("kind", "settings"), [("Deployment", {"replicas": 2}), ("Job", {"completions": 2})])
def test_pods_of_several_nodes_cannot_share_a_disk_of_one(kind, settings):
    made = of_pods(kind, **settings)
    with pytest.raises(GpuConstructsError, match=r"serves one node, but 2 pods run at once; use kind='StatefulSet'"):
        changed(made, lambda it: it.attach_volume("/models", DISK))
    changed(made, lambda it: it.attach_volume("/b", VolumeClaim(storage="1Gi", access_modes=["ReadWriteMany"])))
    assert len(made.new_disks()) == 1


# --- ConfigMaps ----------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet"])
def test_a_config_map_handed_over_as_an_object_restarts_pods_that_serve(kind):
    made, config_map = of_pods(kind), ConfigMap()
    assert template_annotations(made) == {"on": "pods"}
    changed(made, lambda it: it.attach_volume("/etc/app", Volume.config_map(config_map)))
    before = template_annotations(made)
    assert before.keys() == {"on", "gpu-constructs/config-checksum"}
    assert template_annotations(made) == before
    config_map.data = "b"
    assert template_annotations(made) != before


def test_a_config_map_of_a_helper_restarts_the_pods_too():
    made = of_pods()
    volumes = {"/etc/app": Volume.config_map(ConfigMap())}
    changed(made, lambda it: it.add_sidecar(helper(volumes=volumes)))
    assert "gpu-constructs/config-checksum" in template_annotations(made)


@pytest.mark.parametrize("volume", [Volume.config_map("settings"), Volume.empty_dir()], ids=["by-name", "no-map"])
def test_what_is_known_by_name_alone_cannot_restart_them(volume):
    made = of_pods()
    changed(made, lambda it: it.attach_volume("/etc/app", volume))
    assert template_annotations(made) == {"on": "pods"}


def test_what_ends_reads_the_new_one_at_its_next_start():
    made = of_pods("Job")
    changed(made, lambda it: it.attach_volume("/etc/app", Volume.config_map(ConfigMap())))
    assert template_annotations(made) == {"on": "pods"}


def test_annotations_of_a_bare_pod_are_those_of_object_and_pods():
    assert emitted(of_pods("Pod"))["metadata"]["annotations"] == {"on": "pods"}


# --- all or nothing ------------------------------------------------------------------------


def twice_the_same(made):
    made.attach_volume("/a", Volume.empty_dir())
    made.attach_volume("/a", Volume.empty_dir())


REFUSED = {
    "a disk for two": lambda made: made.attach_volume("/models", DISK),
    "a path twice": twice_the_same,
    "a variable twice": lambda made: (made.add_env("A", "b"), made.add_env("A", "b")),
    "a managed variable": lambda made: (made.add_env("A", "b"), made.add_env("NVIDIA_VISIBLE_DEVICES", "all")),
    "a name twice": lambda made: (made.add_sidecar(helper("x")), made.add_sidecar(helper("x"))),
    "a disk of a helper": lambda made: made.add_sidecar(helper(volumes={"/models": DISK})),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_refused_change_leaves_everything_as_it_was(name):
    made = of_pods(replicas=2)
    before = copy.deepcopy(emitted(made))
    with pytest.raises(GpuConstructsError):
        changed(made, REFUSED[name])
    assert emitted(made) == before
    made.render()
    assert emitted(made) == before
    assert made.new_disks() == []
    changed(made, lambda it: it.add_env("A", "b"))
    assert pod(made)["containers"][0]["env"] == [{"name": "A", "value": "b"}]
