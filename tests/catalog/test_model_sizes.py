"""What the name of a model tells about the memory of its weights, and which GPUs are too small for them."""

import pytest
from cdk8s import App, Chart

from gpu_constructs import (
    External,
    GpuInventory,
    GpuNamespace,
    GpuNode,
    GpuRequest,
    GpuRules,
    Kubernetes,
    Ollama,
    Vllm,
    synthesize,
)
from gpu_constructs.catalog.model_sizes import least_weights
from gpu_constructs.checks.rules.table import RULES
from gpu_constructs.errors import GpuConstructsWarning, SynthesisError
from gpu_constructs.facts.app import Facts
from gpu_constructs.facts.provided import Provided


def test_the_name_tells_the_size_and_the_format_of_the_weights(rows):
    for model, quantization, certain, usual in rows:
        assert tuple(round(amount) for amount in least_weights(model, quantization)) == (certain, usual)


def test_a_name_without_a_size_tells_nothing():
    for model in [
        *("BAAI/bge-m3", "deepseek-ai/DeepSeek-R1", "microsoft/Phi-3.5-mini-instruct", "gemma3n:e4b", "/models/own"),
        *("Qwen/Qwen1.5-MoE-A2.7B", "org/llama-4bit", "org/7bb", "nomic-embed-text", "org/v2b3"),
    ]:
        assert least_weights(model) is None, model


def vllm(*args, count=1, product=None, command=("vllm", "serve"), image="vllm/vllm-openai:v1", annotations=None):
    resources = {"limits": {"nvidia.com/gpu": count, "memory": "8Gi"}}
    container = {"name": "x", "image": image, "command": [*command], "args": [*args], "resources": resources}
    selector = {"nodeSelector": {"nvidia.com/gpu.product": product}} if product else {}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "x", "annotations": annotations or {}},
        "spec": {"template": {"spec": {"containers": [container], **selector}}},
    }


RTX, H100, L40 = "NVIDIA-GeForce-RTX-4090", "NVIDIA-H100-80GB-HBM3-SHARED", "NVIDIA-L40"
LLAMA = "meta-llama/Llama-3.1-70B-Instruct"
SIX = {"gpu-constructs/vram": "6Gi"}
ONE_3090 = GpuInventory(nodes=[GpuNode(name="one", gpu_model="RTX 3090")])
(R28,) = (rule for rule in RULES if rule.code == "R28")


def severities(manifest, inventory=None):
    return ["warning" if f.is_warning else "error" for f in R28.check(Facts([manifest], [Provided()], inventory))]


def test_a_model_of_vllm_is_compared_with_the_gpus_that_hold_it():
    for manifest, inventory, found in [
        (vllm(LLAMA, product=RTX), None, ["error"]),
        (vllm(LLAMA), ONE_3090, ["error"]),
        (vllm("--model", LLAMA, command=(), product=RTX), None, ["error"]),
        (
            vllm(f"--model={LLAMA}", command=("python3", "-m", "vllm.entrypoints.openai.api_server")),
            ONE_3090,
            ["error"],
        ),
        (vllm(f"vllm serve {LLAMA}", command=("sh", "-c"), image="own:1"), ONE_3090, ["error"]),
        (vllm(LLAMA, product=RTX, count=4), None, ["error"]),
        (vllm(LLAMA, "--tensor-parallel-size", "4", product=RTX, count=4), None, ["warning"]),
        (vllm(LLAMA, "-tp=2", "--pipeline_parallel_size=4", product=RTX, count=8), None, []),
        (vllm(LLAMA, "--tensor-parallel-size", "8", product=RTX, count=4), None, []),
        (vllm(LLAMA, product=H100), None, ["warning"]),
        (vllm(LLAMA, "--quantization", "fp8", product=H100), None, []),
        (vllm(f"{LLAMA}-AWQ", product=L40), None, []),
        (vllm(f"{LLAMA}-AWQ", product=RTX), None, ["error"]),
        (vllm(f"{LLAMA}-AWQ", "--cpu-offload-gb", "40", product=RTX), None, []),
        (vllm("Qwen/Qwen3-8B", product=RTX), None, []),
        (vllm("Qwen/Qwen3-8B", "--gpu-memory-utilization", "0.5", product=RTX), None, ["warning"]),
        (vllm("Qwen/Qwen3-8B-AWQ", product=RTX, annotations={"gpu-constructs/vram": "3Gi"}), None, ["error"]),
        (vllm("Qwen/Qwen3-8B-AWQ", "--gpu-memory-utilization", "0.2", product=RTX, annotations=SIX), None, []),
        (vllm("org/own", product=RTX), None, []),
        (vllm(LLAMA), None, []),
        (vllm(LLAMA, product="NVIDIA-Unheard-Of"), None, []),
        (vllm(LLAMA, image="own:1", command=("serve",)), ONE_3090, []),
        (vllm(LLAMA), GpuInventory(nodes=[*ONE_3090.nodes, GpuNode(name="dark")]), []),
    ]:
        assert severities(manifest, inventory) == found, (manifest, inventory, found)


def test_a_model_of_vllm_that_is_too_large_is_an_error_with_the_way_out(app):
    served(app, lambda chart: Vllm(chart, "llm", model=LLAMA, gpus=GpuRequest(products=["RTX 4090"]), platform=PLAIN))
    said = rf"team/llm: serves '{LLAMA}', whose weights take about 130 GB, on GPU memory of 26 GB"
    with pytest.raises(SynthesisError, match=said):
        synthesize(app)


def test_a_model_of_vllm_that_is_too_large_may_be_meant(app):
    served(
        app,
        lambda chart: Vllm(
            chart, "llm", model=LLAMA, gpus=GpuRequest(products=["L4"]), platform=PLAIN, ignore_rules=["R28"]
        ),
    )
    synthesize(app)


def test_ollama_is_warned_of_a_model_that_its_gpu_does_not_hold(app):
    models = ["llama3:70b", "qwen3:8b", "gpt-oss:120b-cloud", "nomic-embed-text"]
    served(app, lambda chart: Ollama(chart, "llm", models=models, platform=PLAIN))
    GpuRules.enforce(app, inventory=ONE_3090)
    with pytest.warns(GpuConstructsWarning) as told:
        synthesize(app)
    (said,) = (str(one.message) for one in told)
    assert said.startswith(
        "team/llm: is to serve 'llama3:70b', whose weights take at least 33 GB, on GPU memory of 26 GB"
    )


PLAIN = Kubernetes()


def served(app: App, make) -> None:
    External(app, "labels", node_labels=["nvidia.com/*"])
    chart = Chart(app, "team", namespace="team")
    GpuNamespace(chart, "namespace", name="team")
    make(chart)
