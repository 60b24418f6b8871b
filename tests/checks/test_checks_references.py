"""Objects that others name: made by the app, declared, or missing."""

import pytest

from gpu_constructs import (
    EnvValue,
    External,
    GpuConstructsError,
    GpuConstructsWarning,
    GpuNamespace,
    Ollama,
    synthesize,
)
from gpu_constructs.catalog.platforms import Kubernetes
from gpu_constructs.checks.references import references_exist
from gpu_constructs.facts.app import Facts
from gpu_constructs.facts.provided import Provided


def obj(api_version, kind, name="x", namespace="team", **more):
    metadata = {"name": name} | ({"namespace": namespace} if namespace else {})
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **more}


def pod(container=None, namespace="team", **spec):
    return obj("v1", "Pod", namespace=namespace, spec={"containers": [{"name": "main", **(container or {})}], **spec})


def secret(name="hugging-face", namespace="team", **data):
    return obj("v1", "Secret", name, namespace, stringData=data or {"token": "a"})


def env(kind="secretKeyRef", **reference):
    return {"env": [{"name": "A", "valueFrom": {kind: {"name": "hugging-face", "key": "token", **reference}}}]}


def found(*manifests, provided=()):
    return list(references_exist(Facts(manifests, provided)))


def told(*manifests, provided=()):
    return [(finding.is_warning, finding.problem) for finding in found(*manifests, provided=provided)]


NAMING = [
    (pod(priorityClassName="training"), "PriorityClass 'training'", "priority_classes=['training']"),
    (
        pod(serviceAccountName="training"),
        "ServiceAccount 'training' of namespace 'team'",
        "service_accounts=['team/training']",
    ),
    *(
        (naming, "Secret 'hugging-face' of namespace 'team'", "secrets=['team/hugging-face']")
        for naming in (
            pod(env()),
            pod({"envFrom": [{"secretRef": {"name": "hugging-face"}}]}),
            pod(initContainers=[{"name": "first", **env()}]),
            pod(imagePullSecrets=[{"name": "hugging-face"}]),
            pod(volumes=[{"name": "a", "secret": {"secretName": "hugging-face"}}]),
            pod(volumes=[{"name": "a", "projected": {"sources": [{"secret": {"name": "hugging-face"}}]}}]),
            obj("batch/v1", "Job", spec={"template": {"spec": pod(env())["spec"]}}),
            obj("serving.kserve.io/v1beta1", "InferenceService", spec={"predictor": {"model": env()}}),
            obj("v1", "ServiceAccount", imagePullSecrets=[{"name": "hugging-face"}]),
            obj(
                "helm.toolkit.fluxcd.io/v2",
                "HelmRelease",
                spec={"valuesFrom": [{"kind": "Secret", "name": "hugging-face", "valuesKey": "token"}]},
            ),
            obj(
                "monitoring.coreos.com/v1",
                "ServiceMonitor",
                spec={"endpoints": [{"basicAuth": {"password": {"name": "hugging-face", "key": "token"}}}]},
            ),
            obj(
                "operator.victoriametrics.com/v1beta1",
                "VMServiceScrape",
                spec={"endpoints": [{"tlsConfig": {"ca": {"secret": {"name": "hugging-face", "key": "token"}}}}]},
            ),
        )
    ),
    (
        pod(env("configMapKeyRef")),
        "ConfigMap 'hugging-face' of namespace 'team'",
        "config_maps=['team/hugging-face']",
    ),
    (
        pod(volumes=[{"name": "a", "configMap": {"name": "hugging-face"}}]),
        "ConfigMap 'hugging-face' of namespace 'team'",
        "config_maps=['team/hugging-face']",
    ),
    (
        obj("batch.volcano.sh/v1alpha1", "Job", spec={"priorityClassName": "training"}),
        "PriorityClass 'training'",
        "priority_classes=['training']",
    ),
    (
        obj(
            "kubeflow.org/v1",
            "PyTorchJob",
            spec={"runPolicy": {"schedulingPolicy": {"priorityClass": "training"}}},
        ),
        "PriorityClass 'training'",
        "priority_classes=['training']",
    ),
]
IDS = [naming["kind"] for naming, _, _ in NAMING]


def test_what_nothing_in_the_app_makes_is_a_warning():
    for naming, what, declared in NAMING:
        assert told(naming) == [
            (
                True,
                f"names {what}, which nothing in this app makes; add it, or declare it with External(app, 'existing', "
                f"{declared})",
            )
        ]


@pytest.mark.parametrize(("naming", "what", "declared"), NAMING, ids=IDS)
def test_what_is_declared_as_the_warning_says_is_there(app, naming, what, declared):
    keyword, _, names = declared.partition("=")
    assert found(naming, provided=[External(app, "existing", **{keyword: eval(names)}).provides]) == []


def test_a_secret_of_the_app_or_of_an_operator_is_there():
    for made in [
        secret(),
        obj("v1", "Secret", "hugging-face", data={"token": "YQ=="}),
        obj("v1", "Secret", "hugging-face", type="kubernetes.io/service-account-token"),
        obj("bitnami.com/v1alpha1", "SealedSecret", "hugging-face", spec={}),
        obj("external-secrets.io/v1", "ExternalSecret", "hugging-face", spec={"target": {}}),
        obj("external-secrets.io/v1", "ExternalSecret", spec={"target": {"name": "hugging-face"}}),
        obj(
            "external-secrets.io/v1",
            "ClusterExternalSecret",
            namespace=None,
            spec={"externalSecretName": "hugging-face"},
        ),
        obj("cert-manager.io/v1", "Certificate", spec={"secretName": "hugging-face"}),
        obj("secrets.hashicorp.com/v1beta1", "VaultStaticSecret", spec={"destination": {"name": "hugging-face"}}),
        obj(
            "secrets-store.csi.x-k8s.io/v1",
            "SecretProviderClass",
            spec={"secretObjects": [{"secretName": "other"}, {"secretName": "hugging-face"}]},
        ),
        obj("onepassword.com/v1", "OnePasswordItem", "hugging-face", spec={}),
    ]:
        assert found(pod(env()), made) == [], made


JOB = {"template": {"spec": {"template": {"spec": pod(env())["spec"]}}}}
JOB_SET = {"spec": {"replicatedJobs": [JOB]}}


def test_what_is_there_anyway_or_optional_or_not_known_yet_is_left_alone():
    for naming in [
        pod(serviceAccountName="default"),
        pod(serviceAccountName="default-editor"),
        pod(priorityClassName="system-node-critical"),
        pod(volumes=[{"name": "a", "configMap": {"name": "kube-root-ca.crt"}}]),
        pod(env(optional=True)),
        pod(env(name="${trialParameters.secret}")),
        pod(volumes=[{"name": "a", "secret": {"secretName": "a", "optional": True}}]),
        pod({"envFrom": [{"secretRef": {"name": "a", "optional": True}}]}),
        obj("trainer.kubeflow.org/v1alpha1", "ClusterTrainingRuntime", namespace=None, spec={"template": JOB_SET}),
        pod({"env": [{"name": "A", "valueFrom": {"secretKeyRef": None}}], "envFrom": [{}]}, imagePullSecrets="a"),
    ]:
        assert found(naming) == [], naming


def test_a_namespaced_object_counts_in_its_namespace():
    assert [is_warning for is_warning, _ in told(pod(env()), secret(namespace="other"))] == [True]
    assert found(pod(env(), namespace=None), secret(namespace="default")) == []


def test_an_object_that_many_name_is_missed_once():
    assert len(found(pod(env()), pod(env()), pod(env(key="other")))) == 1


def test_a_slip_of_a_name_that_the_app_makes_is_an_error():
    for written in ["huging-face", "huggingface", "hugging-faec", "hugging-faces", "hugginq-face"]:
        assert told(pod(env(name=written)), secret()) == [
            (
                False,
                f"names Secret {written!r} of namespace 'team', which is not there but 'hugging-face' is; write "
                f"'hugging-face', or declare it with External(app, 'existing', secrets=['team/{written}']) where both "
                "exist",
            )
        ]


def test_a_slip_of_a_declared_name_is_an_error():
    provided = [Provided(objects={"PriorityClass": ["training"]})]
    assert [is_warning for is_warning, _ in told(pod(priorityClassName="trainig"), provided=provided)] == [False]


def test_a_name_of_its_own_is_no_slip():
    for written, made in [
        ("redis-credentials", "minio-credentials"),
        ("worker-1", "worker-2"),
        ("config-v1", "config-v2"),
        ("token-a", "token-b"),
        ("cache-ro", "cache-rw"),
        ("models-east", "models-west"),
        ("hugging-face", "hugging-face-staging"),
    ]:
        assert [is_warning for is_warning, _ in told(pod(env(name=written)), secret(made))] == [True]


def test_a_key_that_the_object_does_not_have_is_an_error():
    assert told(pod(env(key="tokn")), secret()) == [
        (
            False,
            "names key 'tokn' of Secret 'hugging-face' of namespace 'team', which does not have it (did you mean "
            "'token'?); it has token; name one of its keys, or make the reference optional",
        )
    ]
    volume = {"name": "a", "secret": {"secretName": "hugging-face", "items": [{"key": "other", "path": "b"}]}}
    assert [is_warning for is_warning, _ in told(pod(volumes=[volume]), secret())] == [False]


def test_of_an_object_that_somebody_else_fills_the_keys_are_not_known():
    for others in [
        [obj("v1", "Secret", "hugging-face")],
        [obj("v1", "Secret", "hugging-face", data={})],
        [secret(), obj("external-secrets.io/v1", "ExternalSecret", "hugging-face", spec={})],
        [obj("bitnami.com/v1alpha1", "SealedSecret", "hugging-face", spec={})],
    ]:
        assert found(pod(env(key="other")), *others) == [], others


@pytest.mark.parametrize("declared", ["hugging-face", "team/hugging-face", "team/*", "hugging-*", "*"])
def test_a_star_declares_the_rest_of_the_name(app, declared):
    assert found(pod(env()), provided=[External(app, "existing", secrets=[declared]).provides]) == []


@pytest.mark.parametrize("declared", ["other/hugging-face", "other/*", "other*"])
def test_what_is_declared_elsewhere_is_not_here(app, declared):
    assert len(found(pod(env()), provided=[External(app, "existing", secrets=[declared]).provides])) == 1


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"secrets": ["Not A Name"]}, "secrets must be a DNS subdomain"),
        ({"config_maps": ["Team/a"]}, "config_maps must be a DNS label"),
        ({"service_accounts": ["a/"]}, "service_accounts must be a DNS subdomain"),
        ({"priority_classes": ["team/a"]}, "priority_classes must be names alone, for they are in no namespace"),
        ({"secrets": "hugging-face"}, "secrets must be a list"),
    ],
)
def test_a_name_that_cannot_be_is_refused(app, given, problem):
    with pytest.raises(GpuConstructsError) as refused:
        External(app, "existing", **given)
    assert refused.value.problem.startswith(problem)


def test_an_app_that_keeps_its_secrets_elsewhere_says_so_once(app, chart):
    GpuNamespace(chart, "namespace", name="team")
    token = EnvValue.secret("hugging-face", key="token")
    Ollama(chart, "ollama", namespace="team", platform=Kubernetes(), env={"HF_TOKEN": token})
    with pytest.warns(GpuConstructsWarning, match=r"names Secret 'hugging-face' of namespace 'team', which nothing"):
        synthesize(app)
    External(app, "secrets", secrets=["*"])
    synthesize(app)
