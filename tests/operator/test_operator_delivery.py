from dataclasses import FrozenInstanceError

import pytest

import schemas
from gpu_constructs.catalog import versions
from gpu_constructs.operator.delivery import NVIDIA_OCI, Delivery
from gpu_constructs.operator.manifests import Release, drifts_of
from gpu_constructs.operator.manifests import manifests as manifests_of
from refusals import refusal
from tables import beside

VALUES = {"driver": {"enabled": False}, "daemonsets": {"tolerations": [{"operator": "Exists"}]}}
MIRROR = "oci://registry.example/charts/nvidia-gpu-operator"
DIGEST = "sha256:" + "0" * 64
BOTH = pytest.mark.parametrize("make", [Delivery.flux, Delivery.argo_cd])
EVERY_FLUX_OPTION = beside(__file__, "operator_delivery")["every_flux_option"]
EVERY_ARGO_OPTION = beside(__file__, "operator_delivery")["every_argo_option"]


def manifests(delivery, **changed):
    release = {
        "name": "gpu-operator",
        "namespace": "gpu-system",
        "chart_version": "v26.7.0",
        "values": VALUES,
        "labels": {"app.kubernetes.io/managed-by": "cdk8s"},
    }
    return manifests_of(delivery, Release(**{**release, **changed}))


def only(delivery, kind, **changed):
    (found,) = [manifest for manifest in manifests(delivery, **changed) if manifest["kind"] == kind]
    return found


@pytest.mark.parametrize(
    "delivery",
    [
        Delivery.flux(),
        Delivery.flux(source=NVIDIA_OCI),
        Delivery.flux(source="https://charts.example", chart="nvidia-gpu-operator", **EVERY_FLUX_OPTION),
        Delivery.flux(source=MIRROR, digest=DIGEST, **EVERY_FLUX_OPTION),
        Delivery.argo_cd(),
        Delivery.argo_cd(source=NVIDIA_OCI, destination_server="https://10.0.0.1:6443", deletion="foreground"),
        Delivery.argo_cd(source=MIRROR, automated=None),
        Delivery.argo_cd(source="https://charts.example", chart="nvidia-gpu-operator", **EVERY_ARGO_OPTION),
    ],
)
def test_the_objects_of_a_delivery_are_valid_against_their_crds(delivery):
    for manifest in manifests(delivery):
        assert schemas.custom_resource_errors(manifest, schemas.committed_crds()) == []


def test_flux_uses_a_chart_in_a_registry_by_its_tag(expected):
    source, release = manifests(Delivery.flux(source=MIRROR, version_prefix=""))
    assert (source["kind"], source["spec"]["url"]) == ("OCIRepository", MIRROR)
    assert source["spec"]["ref"] == {"tag": "26.7.0"}
    assert source["spec"]["layerSelector"] == expected
    assert release["spec"]["chartRef"] == {"kind": "OCIRepository", "name": source["metadata"]["name"]}
    assert "chart" not in release["spec"]

    source = only(Delivery.flux(source=MIRROR, digest=DIGEST), "OCIRepository")
    assert source["spec"]["ref"] == {"tag": "v26.7.0", "digest": DIGEST}


def test_a_release_in_flux_system_installs_into_the_namespace_of_the_operator():
    for same in (Delivery.flux(), Delivery.flux(namespace="gpu-system")):
        assert {manifest["metadata"]["namespace"] for manifest in manifests(same)} == {"gpu-system"}
    assert manifests(Delivery.flux()) == manifests(Delivery.flux(namespace="gpu-system"))
    source, release = manifests(Delivery.flux(namespace="flux-system"))
    assert {source["metadata"]["namespace"], release["metadata"]["namespace"]} == {"flux-system"}
    assert release["spec"]["targetNamespace"] == release["spec"]["storageNamespace"] == "gpu-system"


def test_all_options_of_flux(snapshot):
    assert manifests(Delivery.flux(source="https://charts.example", chart="other", **EVERY_FLUX_OPTION)) == snapshot
    assert "timeout" not in only(Delivery.flux(timeout=None), "HelmRelease")["spec"]


def test_argo_cd_gets_registry_and_chart_separately_and_without_a_scheme():
    source = only(Delivery.argo_cd(source=NVIDIA_OCI), "Application")["spec"]["source"]
    assert (source["repoURL"], source["chart"]) == ("nvcr.io/nvidia/cloud-native-charts", "gpu-operator")
    source = only(Delivery.argo_cd(source="oci://zot.lan/gpu-operator"), "Application")["spec"]["source"]
    assert (source["repoURL"], source["chart"]) == ("zot.lan", "gpu-operator")
    url = only(Delivery.flux(source="oci://zot.lan:5000/gpu-operator"), "OCIRepository")["spec"]["url"]
    assert url == "oci://zot.lan:5000/gpu-operator"


def test_all_options_of_argo_cd(snapshot):
    assert manifests(Delivery.argo_cd(**EVERY_ARGO_OPTION)) == snapshot
    policy = only(Delivery.argo_cd(automated=()), "Application")["spec"]["syncPolicy"]
    assert policy["automated"] == {"prune": False, "selfHeal": False}
    assert "automated" not in only(Delivery.argo_cd(automated=None), "Application")["spec"]["syncPolicy"]


def test_argo_cd_ignores_only_fields_that_the_api_server_adds():
    cdi, nri, kubelet = "/spec/cdi/default", "/spec/cdi/nriPluginEnabled", "/spec/hostPaths/kubeletRootDir"
    runtime = "/spec/operator/defaultRuntime"
    of_line = {"25.3": [runtime], "25.10": [cdi, runtime], "26.3": [cdi, nri], "26.7": [cdi, nri, kubelet]}
    for release in versions.GPU_OPERATOR:
        assert drifts_of(f"v{release}", VALUES) == of_line[release.rpartition(".")[0]], release
    values = {"cdi": {"nriPluginEnabled": True, "default": False}, "hostPaths": {"kubeletRootDir": "/data/kubelet"}}
    assert drifts_of("26.7.0", values) == [cdi]


def test_values_alone_emit_no_object():
    assert manifests(Delivery.values()) == []


@BOTH
def test_the_registry_of_nvidia_is_rejected_for_earlier_releases(make):
    delivery = make(source=NVIDIA_OCI)
    assert refusal(manifests, delivery, chart_version="v26.3.3") == (
        f"delivery.{make.__name__}.source must be 'https://helm.ngc.nvidia.com/nvidia' for release 26.3.3, got "
        f"'{NVIDIA_OCI}': the registry of NVIDIA contains charts from 26.7.0 on only"
    )
    assert manifests(delivery, chart_version="26.10.0")
    assert manifests(make(source=MIRROR), chart_version="25.10.1")


@BOTH
def test_a_value_of_none_that_a_manifest_would_drop_is_rejected(make):
    values = {"daemonsets": {"labels": None}}
    assert refusal(manifests, make(), values=values) == (
        f"values.daemonsets.labels must not be None with delivery.{make.__name__}, because a manifest drops null "
        "values and the default of the chart would stay. Set a value, or use Delivery.helm(...) or Delivery.values()"
    )
    assert "values.args[1] must not be None" in refusal(manifests, make(), values={"args": ["a", None]})


def test_values_that_no_delivery_accepts_are_rejected(refused):
    refused(Delivery.flux, Delivery.argo_cd)


def test_values_that_flux_would_reject_are_rejected(refused):
    refused(Delivery.flux)


def test_values_that_argo_cd_would_reject_are_rejected(refused):
    refused(Delivery.argo_cd)


def test_a_chart_that_is_not_on_the_machine_is_rejected():
    chart = "oci://nvcr.io/nvidia/gpu-operator"
    assert refusal(Delivery.helm, chart=chart) == (
        "delivery.helm.chart must be a folder or a .tgz file on this machine, because synth must not need a network, "
        f"got '{chart}'. Get it once with 'helm pull', and keep it with the app"
    )


def test_a_path_that_helm_would_misread_is_rejected():
    for options in ({"chart": " "}, {"chart": "--help"}, {"chart": "a\nb"}, {"chart": "x", "executable": ""}):
        assert "must be a path, got" in refusal(Delivery.helm, **options)


def test_a_delivery_comes_from_one_of_four_methods_and_is_immutable():
    assert refusal(Delivery.values, {}).startswith("Delivery.values takes only keywords, got {} without a keyword")
    assert refusal(Delivery) == (
        "Delivery must come from Delivery.flux(), Delivery.argo_cd(), Delivery.helm(chart=...) or Delivery.values()"
    )
    with pytest.raises(FrozenInstanceError):
        Delivery.flux().kind = "values"
