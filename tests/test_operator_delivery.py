from dataclasses import FrozenInstanceError
from datetime import timedelta

import pytest

import schemas
from gpu_constructs import GpuConstructsError, versions
from gpu_constructs.operator.delivery import NVIDIA_OCI, Delivery, drifts_of

VALUES = {"driver": {"enabled": False}, "daemonsets": {"tolerations": [{"operator": "Exists"}]}}
MIRROR = "oci://registry.example/charts/nvidia-gpu-operator"
DIGEST = "sha256:" + "0" * 64
BOTH = pytest.mark.parametrize("make", [Delivery.flux, Delivery.argo_cd])
EVERY_FLUX_OPTION = {
    "version_prefix": "",
    "namespace": "flux-system",
    "secret_ref": "registry",
    "service_account_name": "deployer",
    "interval": "30m",
    "source_interval": timedelta(hours=12),
    "timeout": "20m",
    "retries": -1,
    "crds": "Create",
    "drift_detection": "enabled",
    "depends_on": ("cert-manager/cert-manager", "nfd"),
    "suspend": True,
}
EVERY_ARGO_OPTION = {
    "version_prefix": "",
    "name": "homelab-gpu-operator",
    "namespace": "gitops",
    "project": "platform",
    "destination_name": "homelab",
    "automated": ("prune",),
    "retries": -1,
    "sync_options": ("Validate=false", "ApplyOutOfSyncOnly=true"),
    "create_namespace": True,
    "deletion": "background",
}


def manifests(delivery, **changed):
    release = {
        "release_name": "gpu-operator",
        "namespace": "gpu-system",
        "chart_version": "v26.7.0",
        "values": VALUES,
        "labels": {"app.kubernetes.io/managed-by": "cdk8s"},
    }
    return delivery.manifests(**{**release, **changed})


def only(delivery, kind, **changed):
    (found,) = [manifest for manifest in manifests(delivery, **changed) if manifest["kind"] == kind]
    return found


def refusal(call, *given, **options):
    with pytest.raises(GpuConstructsError) as refused:
        call(*given, **options)
    assert "\n" not in str(refused.value)
    return str(refused.value)


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
def test_what_a_delivery_emits_is_valid_against_its_definition(delivery):
    for manifest in manifests(delivery):
        assert schemas.custom_resource_errors(manifest, schemas.committed_crds()) == []


def test_flux_gets_a_release_and_the_helm_repository_it_comes_from():
    source, release = manifests(Delivery.flux())
    assert source["kind"] == "HelmRepository"
    assert source["spec"] == {"interval": "24h", "url": "https://helm.ngc.nvidia.com/nvidia"}
    assert release["spec"] == {
        "interval": "1h",
        "chart": {
            "spec": {
                "chart": "gpu-operator",
                "version": "v26.7.0",
                "sourceRef": {"kind": "HelmRepository", "name": "gpu-operator"},
            }
        },
        "releaseName": "gpu-operator",
        "install": {"crds": "CreateReplace", "remediation": {"retries": 3}},
        "upgrade": {"crds": "CreateReplace", "remediation": {"retries": 3}},
        "driftDetection": {"mode": "warn"},
        "timeout": "15m",
        "values": VALUES,
    }


def test_flux_waits_as_long_as_it_does_by_itself_when_asked_to():
    assert "timeout" not in only(Delivery.flux(timeout=None), "HelmRelease")["spec"]


def test_flux_takes_a_chart_in_a_registry_whole_and_by_its_tag():
    source, release = manifests(Delivery.flux(source=MIRROR, version_prefix=""))
    assert (source["kind"], source["spec"]["url"]) == ("OCIRepository", MIRROR)
    assert source["spec"]["ref"] == {"tag": "26.7.0"}
    assert source["spec"]["layerSelector"] == {
        "mediaType": "application/vnd.cncf.helm.chart.content.v1.tar+gzip",
        "operation": "copy",
    }
    assert release["spec"]["chartRef"] == {"kind": "OCIRepository", "name": source["metadata"]["name"]}
    assert "chart" not in release["spec"]


def test_a_digest_pins_the_chart_beside_its_tag():
    source = only(Delivery.flux(source=MIRROR, digest=DIGEST), "OCIRepository")
    assert source["spec"]["ref"] == {"tag": "v26.7.0", "digest": DIGEST}


def test_flux_objects_stand_where_the_operator_goes_unless_told_otherwise():
    for manifest in manifests(Delivery.flux()):
        assert manifest["metadata"]["namespace"] == "gpu-system"
    assert "targetNamespace" not in only(Delivery.flux(), "HelmRelease")["spec"]
    same = only(Delivery.flux(namespace="gpu-system"), "HelmRelease")
    assert "targetNamespace" not in same["spec"]


def test_a_release_in_flux_system_installs_and_keeps_its_record_beside_the_operator():
    source, release = manifests(Delivery.flux(namespace="flux-system"))
    assert {source["metadata"]["namespace"], release["metadata"]["namespace"]} == {"flux-system"}
    assert release["spec"]["targetNamespace"] == release["spec"]["storageNamespace"] == "gpu-system"


def test_every_option_of_flux_arrives():
    source, release = manifests(Delivery.flux(source="https://charts.example", chart="other", **EVERY_FLUX_OPTION))
    assert source["spec"] == {
        "interval": "43200s",
        "url": "https://charts.example",
        "secretRef": {"name": "registry"},
    }
    spec = release["spec"]
    assert (spec["chart"]["spec"]["chart"], spec["chart"]["spec"]["version"]) == ("other", "26.7.0")
    assert (spec["interval"], spec["timeout"], spec["suspend"]) == ("30m", "20m", True)
    assert spec["install"] == spec["upgrade"] == {"crds": "Create", "remediation": {"retries": -1}}
    assert spec["driftDetection"] == {"mode": "enabled"}
    assert spec["serviceAccountName"] == "deployer"
    assert spec["dependsOn"] == [{"name": "cert-manager", "namespace": "cert-manager"}, {"name": "nfd"}]


def test_argo_cd_gets_an_application():
    (application,) = manifests(Delivery.argo_cd())
    assert application["metadata"] == {
        "name": "gpu-operator",
        "namespace": "argocd",
        "labels": {"app.kubernetes.io/managed-by": "cdk8s"},
        "annotations": {"argocd.argoproj.io/compare-options": "ServerSideDiff=true"},
    }
    assert application["spec"] == {
        "project": "default",
        "source": {
            "repoURL": "https://helm.ngc.nvidia.com/nvidia",
            "chart": "gpu-operator",
            "targetRevision": "v26.7.0",
            "helm": {"releaseName": "gpu-operator", "valuesObject": VALUES},
        },
        "destination": {"server": "https://kubernetes.default.svc", "namespace": "gpu-system"},
        "syncPolicy": {
            "automated": {"prune": True, "selfHeal": True},
            "syncOptions": ["ServerSideApply=true"],
            "retry": {"limit": 5},
        },
        "ignoreDifferences": [
            {
                "group": "nvidia.com",
                "kind": "ClusterPolicy",
                "jsonPointers": ["/spec/cdi/default", "/spec/cdi/nriPluginEnabled", "/spec/hostPaths/kubeletRootDir"],
            }
        ],
    }


def test_argo_cd_is_given_a_registry_without_its_scheme_and_the_chart_apart():
    source = only(Delivery.argo_cd(source=NVIDIA_OCI), "Application")["spec"]["source"]
    assert (source["repoURL"], source["chart"]) == ("nvcr.io/nvidia/cloud-native-charts", "gpu-operator")


def test_a_registry_without_folders_is_taken():
    source = only(Delivery.argo_cd(source="oci://zot.lan/gpu-operator"), "Application")["spec"]["source"]
    assert (source["repoURL"], source["chart"]) == ("zot.lan", "gpu-operator")
    url = only(Delivery.flux(source="oci://zot.lan:5000/gpu-operator"), "OCIRepository")["spec"]["url"]
    assert url == "oci://zot.lan:5000/gpu-operator"


def test_every_option_of_argo_cd_arrives():
    (application,) = manifests(Delivery.argo_cd(**EVERY_ARGO_OPTION))
    assert application["metadata"]["name"] == "homelab-gpu-operator"
    assert application["metadata"]["namespace"] == "gitops"
    assert application["metadata"]["finalizers"] == ["resources-finalizer.argocd.argoproj.io/background"]
    spec = application["spec"]
    assert (spec["project"], spec["source"]["targetRevision"]) == ("platform", "26.7.0")
    assert spec["destination"] == {"name": "homelab", "namespace": "gpu-system"}
    assert spec["syncPolicy"]["automated"] == {"prune": True, "selfHeal": False}
    assert spec["syncPolicy"]["retry"] == {"limit": -1}
    assert set(spec["syncPolicy"]["syncOptions"]) == {
        "CreateNamespace=true",
        "ServerSideApply=true",
        "Validate=false",
        "ApplyOutOfSyncOnly=true",
    }


def test_argo_cd_makes_a_namespace_only_when_asked_and_then_a_privileged_one():
    assert "managedNamespaceMetadata" not in only(Delivery.argo_cd(), "Application")["spec"]["syncPolicy"]
    policy = only(Delivery.argo_cd(create_namespace=True), "Application")["spec"]["syncPolicy"]
    assert policy["managedNamespaceMetadata"]["labels"] == {
        "pod-security.kubernetes.io/enforce": "privileged",
        "pod-security.kubernetes.io/audit": "privileged",
        "pod-security.kubernetes.io/warn": "privileged",
    }


def test_argo_cd_waits_for_a_person_without_automated():
    assert "automated" not in only(Delivery.argo_cd(automated=None), "Application")["spec"]["syncPolicy"]
    policy = only(Delivery.argo_cd(automated=()), "Application")["spec"]["syncPolicy"]
    assert policy["automated"] == {"prune": False, "selfHeal": False}


@pytest.mark.parametrize(
    ("release", "drifts"),
    [
        ("25.10.1", ["/spec/cdi/default", "/spec/operator/defaultRuntime"]),
        ("v26.3.3", ["/spec/cdi/default", "/spec/cdi/nriPluginEnabled"]),
        ("26.7.0", ["/spec/cdi/default", "/spec/cdi/nriPluginEnabled", "/spec/hostPaths/kubeletRootDir"]),
    ],
)
def test_only_what_the_api_server_fills_in_for_a_release_is_ignored(release, drifts):
    assert release.removeprefix("v") in versions.GPU_OPERATOR
    assert drifts_of(release, VALUES) == drifts


def test_a_field_that_the_values_switch_on_is_not_ignored():
    values = {"cdi": {"nriPluginEnabled": True, "default": False}, "hostPaths": {"kubeletRootDir": "/data/kubelet"}}
    assert drifts_of("26.7.0", values) == ["/spec/cdi/default"]


def test_values_alone_are_no_object():
    assert manifests(Delivery.values()) == []


@BOTH
def test_the_given_values_and_labels_are_copied(make):
    values, labels = {"driver": {"enabled": False}}, {"a": "b"}
    first = manifests(make(), values=values, labels=labels)
    values["driver"]["enabled"], labels["a"] = True, "c"
    assert first == manifests(make(), values={"driver": {"enabled": False}}, labels={"a": "b"})


@BOTH
@pytest.mark.parametrize("chart_version", ["26.7.0", "v26.7.0"])
def test_the_version_is_written_as_the_source_has_it(make, chart_version):
    assert "'v26.7.0'" in str(manifests(make(), chart_version=chart_version))
    assert "v26.7.0" not in str(manifests(make(version_prefix=""), chart_version=chart_version))


@BOTH
def test_nvidias_registry_is_refused_for_releases_it_does_not_have(make):
    delivery = make(source=NVIDIA_OCI)
    assert refusal(manifests, delivery, chart_version="v26.3.3") == (
        f"delivery.{make.__name__}.source must be 'https://helm.ngc.nvidia.com/nvidia' for release 26.3.3: NVIDIA has "
        f"charts in its registry from 26.7.0 on; got '{NVIDIA_OCI}'"
    )
    assert manifests(delivery, chart_version="26.10.0")
    assert manifests(make(source=MIRROR), chart_version="25.10.1")


@BOTH
def test_a_release_name_that_helm_does_not_take_is_refused(make):
    assert refusal(manifests, make(), release_name="g" * 54) == (
        f"release_name must have at most 53 characters, as Helm has it; got '{'g' * 54}' (54)"
    )
    assert manifests(make(), release_name="g" * 53)
    assert "release_name must be a DNS label" in refusal(manifests, make(), release_name="GPU")


@BOTH
def test_a_value_of_none_that_a_manifest_would_drop_is_refused(make):
    values = {"daemonsets": {"labels": None}}
    assert refusal(manifests, make(), values=values) == (
        f"values.daemonsets.labels must not be None with delivery.{make.__name__}: a manifest drops it, and the "
        "chart's default would stay; state a value, or use Delivery.helm(...) or Delivery.values()"
    )
    assert "values.args[1] must not be None" in refusal(manifests, make(), values={"args": ["a", None]})


@BOTH
@pytest.mark.parametrize(
    "source",
    [
        "",
        "helm.ngc.nvidia.com/nvidia",
        "ftp://charts.example",
        "https://",
        "https:///nvidia",
        "https://[charts.example",
        "https://charts.example/a b",
        "https://charts.example\n",
        "https://charts.example/#nvidia",
        "oci://",
    ],
)
def test_a_source_that_is_no_address_is_refused(make, source):
    assert refusal(make, source=source) == (
        f"delivery.{make.__name__}.source must be a plain address that opens with https:// or http:// or oci://; "
        f"got {source!r}"
    )


@BOTH
@pytest.mark.parametrize(
    "source",
    ["https://user:hunter2@charts.example", "oci://hunter2@registry.example/charts/x", "https://a.example/?t=hunter2"],
)
def test_credentials_in_a_source_are_refused_and_not_repeated(make, source):
    problem = refusal(make, source=source)
    assert problem.startswith(f"delivery.{make.__name__}.source must ")
    assert "hunter2" not in problem


@BOTH
@pytest.mark.parametrize("source", ["oci://registry.example", "oci://registry.example/", f"{NVIDIA_OCI}:v26.7.0"])
def test_a_registry_must_be_followed_to_the_chart_and_no_tag(make, source):
    assert refusal(make, source=source) == (
        f"delivery.{make.__name__}.source must name the chart in a registry without a tag, like '{NVIDIA_OCI}'; got "
        f"'{source}'; the operator's version gives the tag"
    )


@BOTH
def test_a_chart_is_named_once(make):
    assert refusal(make, source=MIRROR, chart="nvidia-gpu-operator") == (
        f"delivery.{make.__name__}.chart must be left out for a source in a registry, whose address names the chart; "
        "got 'nvidia-gpu-operator'"
    )
    assert "must be a chart's name" in refusal(make, chart="charts/gpu operator")


@pytest.mark.parametrize("member", ["interval", "source_interval", "timeout"])
@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ("1 hour", "must be a duration with a unit, like '60s' or '1h30m'; got '1 hour'"),
        ("1d", "must be a duration with a unit, like '60s' or '1h30m'; got '1d'"),
        ("60", "must be a duration with a unit, like '60s' or '1h30m'; got '60'"),
        ("0s", "must be above zero; got '0s'"),
        ("-1h", "must be above zero; got '-1h'"),
        (timedelta(0), "must be above zero; got datetime.timedelta(0)"),
        ("+1h", "must be a duration in h, m, s or ms without a sign; got '+1h'"),
        ("500us", "must be a duration in h, m, s or ms without a sign; got '500us'"),
    ],
)
def test_a_duration_that_flux_does_not_read_is_refused(member, given, problem):
    assert refusal(Delivery.flux, **{member: given}) == f"delivery.flux.{member} {problem}"


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"namespace": "Flux"}, "delivery.flux.namespace must be a DNS label"),
        ({"secret_ref": "my_secret"}, "delivery.flux.secret_ref must be a DNS subdomain"),
        ({"service_account_name": "-x"}, "delivery.flux.service_account_name must be a DNS subdomain"),
        ({"retries": -2}, "delivery.flux.retries must be at least -1, got -2; -1 never stops, 0 never tries again"),
        ({"retries": True}, "delivery.flux.retries must be an int, got True (bool)"),
        ({"crds": "Replace"}, "delivery.flux.crds must be one of 'Skip', 'Create', 'CreateReplace'; got 'Replace'"),
        ({"drift_detection": "on"}, "delivery.flux.drift_detection must be one of 'warn', 'enabled', 'disabled'"),
        ({"depends_on": "nfd"}, "delivery.flux.depends_on must be a list, got 'nfd' (str)"),
        ({"depends_on": ["a/b/c"]}, "delivery.flux.depends_on[0] must be 'name' or 'namespace/name'; got 'a/b/c'"),
        ({"depends_on": ["a", "b/"]}, "delivery.flux.depends_on[1] must be a DNS subdomain"),
        ({"version_prefix": "V"}, "delivery.flux.version_prefix must be one of 'v', ''; got 'V'"),
        ({"digest": DIGEST}, "delivery.flux.digest must go with a source in a registry ('oci://...')"),
        ({"digest": "sha256:1", "source": MIRROR}, "delivery.flux.digest must be 'sha256:' and 64 hexadecimal digits"),
        ({"suspend": "yes"}, "delivery.flux.suspend must be bool; got str: 'yes'"),
        ({"intervall": "1h"}, "intervall is no keyword of Delivery.flux (did you mean 'interval'?)"),
    ],
)
def test_what_flux_would_not_take_is_refused(options, problem):
    assert refusal(Delivery.flux, **options).startswith(problem)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (
            {"destination_server": "https://k8s", "destination_name": "a"},
            "delivery.argo_cd takes either destination_server or destination_name; got both, 'https://k8s' and 'a'",
        ),
        ({"destination_server": "10.0.0.1"}, "delivery.argo_cd.destination_server must be a plain address"),
        ({"destination_server": "https://u:p@10.0.0.1"}, "delivery.argo_cd.destination_server must not hold cred"),
        ({"destination_name": " "}, "delivery.argo_cd.destination_name must be a cluster's name"),
        ({"name": "GPU"}, "delivery.argo_cd.name must be a DNS subdomain"),
        ({"namespace": "argo.cd"}, "delivery.argo_cd.namespace must be a DNS label"),
        ({"project": ""}, "delivery.argo_cd.project must be a DNS subdomain"),
        ({"automated": ["selfHeal"]}, "delivery.argo_cd.automated[0] must be one of 'prune', 'self-heal'"),
        ({"automated": True}, "delivery.argo_cd.automated must be"),
        ({"retries": "5"}, "delivery.argo_cd.retries must be int; got str: '5'"),
        ({"sync_options": ["Validate"]}, "delivery.argo_cd.sync_options[0] must be 'Name=value'"),
        (
            {"sync_options": ["ServerSideApply=false"]},
            "delivery.argo_cd.sync_options[0] must not be 'ServerSideApply=false': the operator and the API server",
        ),
        (
            {"sync_options": ["CreateNamespace=true"]},
            "delivery.argo_cd.sync_options[0] must not be 'CreateNamespace=true': such a namespace lacks the Pod "
            "Security labels; use create_namespace",
        ),
        ({"deletion": "cascade"}, "delivery.argo_cd.deletion must be one of 'orphan', 'foreground', 'background'"),
    ],
)
def test_what_argo_cd_would_not_take_is_refused(options, problem):
    assert refusal(Delivery.argo_cd, **options).startswith(problem)


@pytest.mark.parametrize("chart", ["https://charts.example/gpu-operator.tgz", "oci://nvcr.io/nvidia/gpu-operator"])
def test_a_chart_that_synth_would_have_to_download_is_refused(chart):
    assert refusal(Delivery.helm, chart=chart) == (
        "delivery.helm.chart must be a folder or a .tgz file on this machine, since synth must not need a network; got "
        f"'{chart}'; get it once with 'helm pull' and keep it beside the app"
    )


@pytest.mark.parametrize(
    "options",
    [{"chart": " "}, {"chart": "--help"}, {"chart": "a\nb"}, {"chart": "a\0b"}, {"chart": "x", "executable": ""}],
)
def test_a_path_that_helm_would_take_for_something_else_is_refused(options):
    assert "must be a path; got" in refusal(Delivery.helm, **options)


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (lambda: Delivery.helm(), "chart is required by Delivery.helm; pass chart=..."),
        (lambda: Delivery.flux("https://a.example"), "Delivery.flux takes everything by keyword; got 'https://a.exa"),
        (lambda: Delivery.values({}), "Delivery.values takes everything by keyword; got {} without one; it has none"),
    ],
)
def test_a_delivery_called_wrongly_is_refused_in_the_house_style(make, problem):
    assert refusal(make).startswith(problem)


def test_a_delivery_is_made_by_one_of_its_four_forms():
    assert refusal(Delivery) == (
        "Delivery must be made by one of Delivery.flux(), Delivery.argo_cd(), Delivery.helm(chart=...), "
        "Delivery.values()"
    )


def test_a_delivery_cannot_be_changed_after_it_was_checked():
    with pytest.raises(FrozenInstanceError):
        Delivery.flux().interval = "never"
