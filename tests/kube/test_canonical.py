import copy

import cdk8s_plus_27 as kplus
import yaml
from cdk8s import ApiObject, Chart

import dist
from gpu_constructs import synthesize
from gpu_constructs.kube import kinds
from gpu_constructs.kube.kinds import canonical_quantity, make_canonical

# As Go prints resource.MustParse(given).
STORED = [
    (1, "1"),
    ("1000m", "1"),
    ("500m", "500m"),
    ("0.5", "500m"),
    (0.5, "500m"),
    ("1.5", "1500m"),
    ("0.0001", "100u"),
    ("2000", "2k"),
    (1000000, "1M"),
    ("1024", "1024"),
    ("1024Mi", "1Gi"),
    ("1.5Gi", "1536Mi"),
    ("16303Mi", "16303Mi"),
    ("0.5Ki", "512"),
    ("0Gi", "0"),
    ("-2048Ki", "-2Mi"),
    # Not decided here: another notation, and what is not an amount.
    ("1e3", "1e3"),
    ("much", "much"),
    (True, True),
]


def test_an_amount_is_written_as_the_api_server_writes_it():
    assert [canonical_quantity(given) for given, _ in STORED] == [stored for _, stored in STORED]


def canonical(manifest):
    made = copy.deepcopy(manifest)
    make_canonical(made)
    return made


# Pointers in Go: the server stores what is false or 0 (kubernetes/api@v0.36.0:core/v1/types.go).
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


def test_no_object_of_the_example_says_what_the_api_server_leaves_out():
    for cluster in dist.CLUSTERS:
        judged = [
            manifest
            for manifest in dist.objects(cluster)
            if kinds.group_of(manifest["apiVersion"]) in kinds.BUILT_IN_GROUPS - {"apiextensions.k8s.io"}
            and manifest["kind"] not in ("ConfigMap", "Secret")
        ]
        assert {key for manifest in judged for key in empty_members(manifest)} - STORED_IF_FALSE == set(), cluster


CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1024Gi"}}}
POD = {
    "hostNetwork": False,
    "tolerations": [],
    "automountServiceAccountToken": False,
    "containers": [
        {
            "name": "a",
            "image": "a:1",
            "tty": False,
            "resources": {"limits": {"cpu": 1, "memory": "1024Mi"}},
            "securityContext": {"privileged": False},
            "volumeMounts": [{"name": "v", "mountPath": "/v", "readOnly": False}],
            "ports": [{"containerPort": 80, "hostPort": 0}],
            "startupProbe": {"initialDelaySeconds": 0, "periodSeconds": 5},
        }
    ],
    "volumes": [{"name": "v", "emptyDir": {"sizeLimit": "1024Mi"}}, {"name": "w", "emptyDir": {}}],
}
STORED_POD = {
    "automountServiceAccountToken": False,
    "containers": [
        {
            "name": "a",
            "image": "a:1",
            "resources": {"limits": {"cpu": "1", "memory": "1Gi"}},
            "securityContext": {"privileged": False},
            "volumeMounts": [{"name": "v", "mountPath": "/v"}],
            "ports": [{"containerPort": 80}],
            "startupProbe": {"periodSeconds": 5},
        }
    ],
    "volumes": [{"name": "v", "emptyDir": {"sizeLimit": "1Gi"}}, {"name": "w", "emptyDir": {}}],
}


def test_objects_of_others_are_written_as_the_api_server_stores_them_too():
    for api_version, kind, body, stored in [
        ("v1", "Pod", {"spec": POD}, {"spec": STORED_POD}),
        ("kubeflow.org/v1", "Notebook", {"spec": {"template": {"spec": POD}}}, {"spec": {"template": {"spec": POD}}}),
        (
            "v1",
            "PersistentVolumeClaim",
            {"spec": CLAIM},
            {"spec": {**CLAIM, "resources": {"requests": {"storage": "1Ti"}}}},
        ),
        ("v1", "ResourceQuota", {"spec": {"hard": {"pods": 4}}}, {"spec": {"hard": {"pods": "4"}}}),
        (
            "v1",
            "LimitRange",
            {"spec": {"limits": [{"type": "Container", "max": {"cpu": 2}}]}},
            {"spec": {"limits": [{"type": "Container", "max": {"cpu": "2"}}]}},
        ),
        (
            "v1",
            "Service",
            {"spec": {"externalIPs": [], "ports": [{"port": 80, "nodePort": 0}]}},
            {"spec": {"ports": [{"port": 80}]}},
        ),
        ("apps/v1", "Deployment", {"spec": {"minReadySeconds": 0, "replicas": 0}}, {"spec": {"replicas": 0}}),
        # Whatever stands in a ConfigMap is text.
        ("v1", "ConfigMap", {"data": {"limits": "1024Mi"}}, {"data": {"limits": "1024Mi"}}),
        # Broken objects are for the rules to report.
        (
            "v1",
            "Pod",
            {"spec": {"containers": "none", "volumes": [1]}},
            {"spec": {"containers": "none", "volumes": [1]}},
        ),
    ]:
        given = {"apiVersion": api_version, "kind": kind, "metadata": {"name": "a"}, **body}
        assert canonical(given) == {"apiVersion": api_version, "kind": kind, "metadata": {"name": "a"}, **stored}


def test_synth_writes_the_service_of_cdk8s_plus_without_its_empty_list(app, tmp_path):
    chart = Chart(app, "web", namespace="default")
    kplus.Service(chart, "service", ports=[kplus.ServicePort(port=80)], selector=kplus.Pods.all(chart, "pods"))
    ApiObject(chart, "pod", api_version="v1", kind="ConfigMap")
    synthesize(app)
    service, _ = yaml.safe_load_all((tmp_path / "dist" / "web.k8s.yaml").read_text())
    assert "externalIPs" not in service["spec"]
