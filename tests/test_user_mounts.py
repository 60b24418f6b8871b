"""What a user mounts beside what the exporters mount themselves."""

import pytest
from cdk8s import App, Chart, Testing

from gpu_constructs import DcgmExporter, GpuConstructsError, NvidiaGpuExporter, Tls, Volume
from gpu_constructs.observability.user_mounts import beside_own
from gpu_constructs.workload.volume import mounts

OWN = [{"name": "tls", "mountPath": "/etc/own/tls"}, {"name": "tmp", "mountPath": "/tmp"}]


def given(*paths):
    return mounts({path: Volume.empty_dir() for path in paths}, shared_memory=None)


def names(mounted, sources):
    assert [mount["name"] for mount in mounted] == [source["name"] for source in sources]
    return {mount["mountPath"]: mount["name"] for mount in mounted}


def test_a_mount_keeps_the_name_it_has_from_its_path():
    assert names(*beside_own(OWN, *given("/data", "/srv/models"))) == {"/data": "data", "/srv/models": "srv-models"}


def test_a_volume_called_like_one_of_the_exporters_gets_another_name():
    assert names(*beside_own(OWN, *given("/tls", "/tls-x", "/tmp/a"))) == {
        "/tls": "tls-x",
        "/tls-x": "tls-x-x",
        "/tmp/a": "tmp-a",
    }


def test_what_is_mounted_stays_the_same():
    _, sources = beside_own(OWN, *given("/tls"))
    assert sources == [{"name": "tls-x", "emptyDir": {}}]


def test_what_was_given_is_not_changed():
    mounted, sources = given("/tls")
    beside_own(OWN, mounted, sources)
    assert (mounted[0]["name"], sources[0]["name"]) == ("tls", "tls")


@pytest.mark.parametrize("path", ["/tmp", "/tmp/", "//tmp", "///tmp", "/./tmp", "/etc/own/tls"])
def test_a_path_where_the_exporter_has_something_is_refused(path):
    with pytest.raises(GpuConstructsError) as refused:
        beside_own(OWN, *given(path))
    assert str(refused.value) == f"volumes must not hold {path!r}: the exporter has its own there; take another path"


@pytest.mark.parametrize("exporter", [DcgmExporter, NvidiaGpuExporter])
@pytest.mark.parametrize("path", ["/tls", "/web/config"])
def test_no_exporter_has_two_volumes_of_one_name(exporter, path):
    chart = Chart(App(), "gpu")
    tls = Tls(secret="certificate")
    exporter(chart, "exporter", tls=tls, volumes={path: Volume.config_map("own")}, dashboard=False)
    (pod,) = (m["spec"]["template"]["spec"] for m in Testing.synth(chart) if m["kind"] == "DaemonSet")
    called = [volume["name"] for volume in pod["volumes"]]
    assert sorted(called) == sorted(set(called))
    mounted = {mount["mountPath"]: mount["name"] for mount in pod["containers"][0]["volumeMounts"]}
    (own,) = (volume for volume in pod["volumes"] if volume["name"] == mounted[path])
    assert own["configMap"] == {"name": "own"}


def test_an_exporter_says_where_it_was_made_when_it_refuses_a_path():
    with pytest.raises(GpuConstructsError, match=r"^gpu/exporter: volumes must not hold '/tmp': "):
        DcgmExporter(Chart(App(), "gpu"), "exporter", volumes={"/tmp": Volume.empty_dir()}, dashboard=False)
