import pytest

from gpu_constructs import GpuConstructsError, Probe, Volume
from gpu_constructs.kube.container import Container
from gpu_constructs.kube.volume import Mounts, VolumeClaim

IMAGE = "registry.example/helper:1.0"


def made(**given):
    manifest = Container(**{"name": "helper", "image": IMAGE, **given}).to_manifest(Mounts())
    return {key: value for key, value in manifest.items() if value is not None}


def refusal(**given):
    with pytest.raises(GpuConstructsError) as refused:
        Container(**{"name": "helper", "image": IMAGE, **given})
    assert len(str(refused.value).splitlines()) == 1
    return str(refused.value)


def test_everything_given_arrives():
    manifest = made(
        command=["sh"],
        args=["-c", "true"],
        working_dir="/srv",
        env={"A": "b"},
        ports={"metrics": 9000},
        volumes={"/data": Volume.empty_dir()},
        readiness_probe=Probe.tcp_socket("metrics"),
        resources={"limits": {"memory": "1Gi"}},
        capabilities=["CHOWN"],
        read_only_root_filesystem=False,
        image_pull_policy="Always",
    )
    assert (manifest["command"], manifest["args"], manifest["workingDir"]) == (["sh"], ["-c", "true"], "/srv")
    assert manifest["env"] == [{"name": "A", "value": "b"}]
    assert manifest["ports"] == [{"name": "metrics", "containerPort": 9000}]
    assert manifest["volumeMounts"] == [{"name": "data", "mountPath": "/data", "readOnly": None, "subPath": None}]
    assert manifest["readinessProbe"]["tcpSocket"] == {"port": "metrics"}
    assert manifest["resources"] == {"limits": {"memory": "1Gi"}}
    assert manifest["securityContext"]["capabilities"] == {"drop": ["ALL"], "add": ["CHOWN"]}
    assert manifest["securityContext"]["readOnlyRootFilesystem"] is False
    assert manifest["imagePullPolicy"] == "Always"


@pytest.mark.parametrize(("user", "non_root"), [(1000, True), (0, False), (None, None)])
def test_a_user_of_its_own_says_whether_it_is_root(user, non_root):
    security = made(run_as_user=user)["securityContext"]
    assert (security["runAsUser"], security["runAsNonRoot"]) == (user, non_root)


def test_its_volumes_join_those_of_the_pod():
    shared, disk = Volume.empty_dir(), VolumeClaim(storage="1Gi")
    mounts = Mounts()
    mounts.mounted({"/shared": shared})
    helper = Container(name="helper", image=IMAGE, volumes={"/mine": shared, "/disk": disk})
    assert [one["name"] for one in helper.to_manifest(mounts)["volumeMounts"]] == ["shared", "disk"]
    assert ([one["name"] for one in mounts.sources], mounts.claims) == (["shared"], {"disk": disk})


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"name": "My Helper"}, "container.name must be a DNS label"),
        ({"image": "helper"}, "container.image must be pinned as "),
        ({"working_dir": "srv"}, "container.working_dir must be an absolute path"),
        ({"env": {"A": 1}}, "container.env['A'] must be str or an EnvValue; got int"),
        ({"ports": [0]}, "container.ports['tcp-0'] must be at least 1, got 0"),
        ({"volumes": {"data": Volume.empty_dir()}}, "container.volumes path must be an absolute path"),
        ({"volumes": {"/data": 5}}, "container.volumes['/data'] must be a Volume, "),
        ({"readiness_probe": Probe.tcp_socket("http")}, "container.readiness_probe port must be one of "),
        ({"resources": {"limits": {"nvidia.com/gpu": 1}}}, "container.resources['limits']['nvidia.com/gpu'] must not "),
        ({"run_as_user": -1}, "container.run_as_user must be at least 0, got -1"),
        ({"capabilities": ["CAP_CHOWN"]}, "container.capabilities[0] must be a capability"),
        ({"image_pull_policy": "always"}, "container.image_pull_policy must be one of "),
        ({"command": "sh"}, "container.command must be a list, got 'sh' (str)"),
        ({"imgae": IMAGE}, "imgae is not a member of Container (did you mean 'image'?)"),
    ],
    ids=str,
)
def test_a_value_that_kubernetes_would_not_take_is_refused_where_the_container_is_made(given, message):
    assert refusal(**given).startswith(message)
