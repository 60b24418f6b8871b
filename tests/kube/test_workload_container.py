import pytest

from gpu_constructs import Volume
from gpu_constructs.kube.container import Container
from gpu_constructs.kube.volume import Mounts, VolumeClaim
from refusals import refusal
from tables import cases

IMAGE = "registry.example/helper:1.0"


def made(**given):
    manifest = Container(**{"name": "helper", "image": IMAGE, **given}).to_manifest(Mounts())
    return {key: value for key, value in manifest.items() if value is not None}


def test_every_option_appears_in_the_container(keywords):
    manifest = made(**keywords)
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
def test_run_as_user_determines_run_as_non_root(user, non_root):
    security = made(run_as_user=user)["securityContext"]
    assert (security["runAsUser"], security["runAsNonRoot"]) == (user, non_root)


def test_its_volumes_are_added_to_those_of_the_pod():
    shared, disk = Volume.empty_dir(), VolumeClaim(storage="1Gi")
    mounts = Mounts()
    mounts.mounted({"/shared": shared})
    helper = Container(name="helper", image=IMAGE, volumes={"/mine": shared, "/disk": disk})
    assert [one["name"] for one in helper.to_manifest(mounts)["volumeMounts"]] == ["shared", "disk"]
    assert ([one["name"] for one in mounts.sources], mounts.claims) == (["shared"], {"disk": disk})


@cases
def test_a_value_that_kubernetes_does_not_allow_is_rejected_when_the_container_is_created(given, message):
    assert refusal(Container, **{"name": "helper", "image": IMAGE, **given}).startswith(message)
