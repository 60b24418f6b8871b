"""A credential in plain text is refused by every construct that takes variables, arguments or values."""

import warnings

import cdk8s_plus_27 as kplus
import pytest
from cdk8s import ApiObject, App, Chart, JsonPatch

from gpu_constructs import (
    ComfyUI,
    Container,
    CudaSmokeTest,
    DcgmExporter,
    Delivery,
    DevicePlugin,
    DevicePluginChart,
    EnvValue,
    External,
    GpuConstructsError,
    GpuConstructsWarning,
    GpuNamespace,
    GpuOperator,
    GpuWorkload,
    HelmValues,
    Kubernetes,
    MpsControlDaemon,
    NvidiaGpuExporter,
    Ollama,
    TrainingPod,
    Vllm,
    not_a_secret,
    synthesize,
)
from gpu_constructs.feature_discovery.node_feature_discovery import NfdMaster, NfdWorker
from refusals import refusal

PLAIN = {"WANDB_API_KEY": "hunter2"}
IMAGE = "registry.example/app:1"
COMFYUI = "docker.io/yanwk/comfyui-boot:cu130-slim-v2"
WORKLOAD = {"image": IMAGE, "platform": Kubernetes(), "namespace": "team"}
SERVER = {"platform": Kubernetes(), "namespace": "team", "storage": "100Gi"}
EXPORTER = {"platform": Kubernetes(), "namespace": "monitoring"}
HELM = {"release_name": "r", "namespace": "gpu"}


def sidecar(**given):
    return Container(name="beside", image=IMAGE, **given)


def variables(*where):
    """Values of a chart with the variable at a key."""
    values = [{"name": name, "value": value} for name, value in PLAIN.items()]
    for key in reversed(where):
        values = {key: values}
    return values


def operator(chart, values):
    GpuOperator(chart, "x", delivery=Delivery.values(), platform=Kubernetes(), values=values)


CONSTRUCTS = {
    "a workload's variable": lambda c: GpuWorkload(c, "x", **WORKLOAD, env=PLAIN),
    "a workload's argument": lambda c: GpuWorkload(c, "x", **WORKLOAD, args=["--token", "hunter2"]),
    "a workload's command": lambda c: GpuWorkload(c, "x", **WORKLOAD, command=["serve", "--token=hunter2"]),
    "a variable that is added": lambda c: GpuWorkload(c, "x", **WORKLOAD).add_env("HF_TOKEN", "hunter2"),
    "a variable of cdk8s-plus": lambda c: GpuWorkload(
        c, "x", **WORKLOAD, env={"HF_TOKEN": kplus.EnvValue.from_value("hunter2")}
    ),
    "a container's variable": lambda c: sidecar(env=PLAIN),
    "a container's argument": lambda c: sidecar(args=["--token=hunter2"]),
    "a training pod": lambda c: TrainingPod(image=IMAGE, env=PLAIN).render,
    "a smoke test": lambda c: CudaSmokeTest(c, "x", platform=Kubernetes(), namespace="team", slots=1, env=PLAIN),
    "Ollama": lambda c: Ollama(c, "x", **SERVER, env=PLAIN),
    "vLLM": lambda c: Vllm(c, "x", **SERVER, image="vllm/vllm-openai:v0.10.0", model="Qwen/Qwen3-8B", env=PLAIN),
    "the device plugin": lambda c: DevicePlugin(env=PLAIN),
    "the MPS control daemon": lambda c: MpsControlDaemon(env=PLAIN),
    "Node Feature Discovery": lambda c: NfdMaster(extra_envs=PLAIN),
    "a container before it": lambda c: NfdWorker(
        init_containers=[{"name": "a", "image": IMAGE, "args": ["--token=hunter2"]}]
    ),
    "the DCGM exporter": lambda c: DcgmExporter(c, "x", **EXPORTER, env=PLAIN),
    "the other exporter": lambda c: NvidiaGpuExporter(c, "x", **EXPORTER, env=PLAIN),
    "values of the DCGM exporter": lambda c: DcgmExporter.from_helm_values(
        c, "x", variables("extraEnv"), **HELM, version="4.8.2"
    ),
    "values of the other exporter": lambda c: NvidiaGpuExporter.from_helm_values(
        c, "x", variables("extraEnv"), **HELM, version="1.14.0"
    ),
    "values of Node Feature Discovery": lambda c: DevicePluginChart.from_helm_values(
        c.node.root, "y", {"gfd": {"enabled": True}, "nfd": variables("master", "extraEnvs")}, **HELM, version="0.19.3"
    ),
    "values of the operator": lambda c: operator(c, variables("devicePlugin", "env")),
    "an argument in values of the operator": lambda c: operator(c, {"gfd": {"args": ["--token=hunter2"]}}),
    "values of another chart": lambda c: HelmValues(c, "x", release="grafana", values={"adminPassword": "hunter2"}),
}


@pytest.mark.parametrize("place", CONSTRUCTS)
def test_a_credential_in_plain_text_is_refused_and_never_shown(place):
    chart = Chart(App(), "gpu")
    message = refusal(CONSTRUCTS[place], chart)
    assert " must not be a credential in plain text, got " in message
    assert "not_a_secret(...)" in message
    assert "hunter2" not in message
    assert max(map(len, message.splitlines())) <= 250


def test_the_message_names_the_variable_and_the_secret_to_read_it_from():
    assert refusal(GpuWorkload, Chart(App(), "gpu"), "train", **WORKLOAD, env=PLAIN) == (
        "gpu/train: env['WANDB_API_KEY'] must not be a credential in plain text, got 7 characters (its name says so). "
        "Pass EnvValue.secret(<name>, key=<key>), or use not_a_secret(...) if the value is public"
    )


def test_secrets_references_and_admitted_texts_are_taken_and_nobody_is_warned(tmp_path):
    app = App(outdir=str(tmp_path))
    chart = Chart(app, "gpu")
    namespace = GpuNamespace(chart, "namespace", name="team")
    External(app, "existing", secrets=["team/hugging-face"])
    GpuWorkload(
        chart,
        "train",
        image=IMAGE,
        platform=Kubernetes(),
        namespace=namespace,
        resources={"limits": {"memory": "8Gi"}},
        args=["--token", "$(HF_TOKEN)", "--api-key", not_a_secret("an-admitted-argument"), "--max-tokens=4096"],
        env={
            "HF_TOKEN": EnvValue.secret("hugging-face", key="token"),
            "DEMO_TOKEN": not_a_secret("an-admitted-text"),
            "TOKENIZERS_PARALLELISM": "false",
            "TOKEN_PATH": "here",
        },
    )
    HelmValues(chart, "values", release="grafana", values={"admin": {"existingSecret": "grafana"}})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        synthesize(app)


def deployment(chart, annotations=None):
    container = {"name": "app", "image": IMAGE, "env": [{"name": "DB_PASSWORD", "value": "hunter2"}]}
    metadata = {"name": "shop", "annotations": annotations or {}}
    made = ApiObject(chart, "shop", api_version="apps/v1", kind="Deployment", metadata=metadata)
    made.add_json_patch(JsonPatch.add("/spec", {"template": {"spec": {"containers": [container]}}}))


WARNED = (
    "gpu/shop: env['DB_PASSWORD'] of container 'app' must not be a credential in plain text, got 7 characters (its "
    "name says so). Use valueFrom.secretKeyRef, or use not_a_secret(...) if the value is public [R31]"
)


def test_an_object_of_somebody_else_is_warned_of(tmp_path):
    app = App(outdir=str(tmp_path))
    deployment(Chart(app, "gpu"))
    with pytest.warns(GpuConstructsWarning) as caught:
        synthesize(app)
    assert [str(warning.message) for warning in caught] == [WARNED]


def test_a_credential_that_a_patch_writes_into_our_object_is_warned_of(tmp_path):
    app = App(outdir=str(tmp_path))
    chart = Chart(app, "gpu")
    namespace = GpuNamespace(chart, "namespace", name="team")
    made = GpuWorkload(chart, "train", image=IMAGE, platform=Kubernetes(), namespace=namespace)
    patch = JsonPatch.add("/spec/template/spec/containers/0/env", [{"name": "HF_TOKEN", "value": "hunter2"}])
    made.api_object.add_json_patch(patch)
    with pytest.warns(GpuConstructsWarning, match=r"env\['HF_TOKEN'\].*R31"):
        synthesize(app)


def test_an_annotation_leaves_the_rule_out_for_an_object(tmp_path):
    app = App(outdir=str(tmp_path))
    deployment(Chart(app, "gpu"), {"gpu-constructs/ignore-rules": "R31"})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        synthesize(app)


def test_a_flag_of_comfyui_is_refused_too():
    with pytest.raises(GpuConstructsError, match="must not be a credential in plain text"):
        ComfyUI(Chart(App(), "gpu"), "x", **SERVER, image=COMFYUI, args=["--comfy-api-key", "hunter2"])
