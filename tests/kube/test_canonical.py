import copy

import cdk8s_plus_27 as kplus
import yaml
from cdk8s import ApiObject, Chart

import dist
from gpu_constructs import synthesize
from gpu_constructs.kube import kinds
from gpu_constructs.kube.kinds import canonical_quantity, make_canonical


def test_a_quantity_has_the_canonical_form_of_the_api_server(rows):
    for given, stored in rows:
        assert canonical_quantity(given) == stored


def canonical(manifest):
    made = copy.deepcopy(manifest)
    make_canonical(made)
    return made


# These fields are pointers in Go, so the API server stores false and 0 (kubernetes/api@v0.36.0:core/v1/types.go).
STORED_IF_FALSE = {
    *("allowPrivilegeEscalation", "automountServiceAccountToken", "enableServiceLinks", "privileged"),
    *("backoffLimit", "readOnlyRootFilesystem", "runAsGroup", "runAsNonRoot", "runAsUser", "setHostnameAsFQDN"),
    "shareProcessNamespace",
}


def empty_members(value, key=""):
    if isinstance(value, dict):
        for name, member in value.items():
            yield from empty_members(member, name)
    elif isinstance(value, list) and value:
        for member in value:
            yield from empty_members(member) if isinstance(member, dict) else ()
    elif value in (False, 0, [], ""):
        yield key


def test_no_object_of_the_example_contains_a_field_that_the_api_server_omits():
    for cluster in dist.CLUSTERS:
        judged = [
            manifest
            for manifest in dist.objects(cluster)
            if kinds.group_of(manifest["apiVersion"]) in kinds.BUILT_IN_GROUPS - {"apiextensions.k8s.io"}
            and manifest["kind"] not in ("ConfigMap", "Secret")
        ]
        assert {key for manifest in judged for key in empty_members(manifest)} - STORED_IF_FALSE == set(), cluster


def test_objects_from_other_libraries_have_the_canonical_form_too(rows):
    for api_version, kind, body, stored in rows:
        given = {"apiVersion": api_version, "kind": kind, "metadata": {"name": "a"}, **body}
        assert canonical(given) == {"apiVersion": api_version, "kind": kind, "metadata": {"name": "a"}, **stored}


def test_synth_writes_the_service_of_cdk8s_plus_without_its_empty_list(app, tmp_path):
    chart = Chart(app, "web", namespace="default")
    kplus.Service(chart, "service", ports=[kplus.ServicePort(port=80)], selector=kplus.Pods.all(chart, "pods"))
    ApiObject(chart, "pod", api_version="v1", kind="ConfigMap")
    synthesize(app)
    service, _ = yaml.safe_load_all((tmp_path / "dist" / "web.k8s.yaml").read_text())
    assert "externalIPs" not in service["spec"]
