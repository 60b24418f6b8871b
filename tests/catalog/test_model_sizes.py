"""Estimates of the memory for the weights of a model from its name, and findings about GPUs that are too small."""

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
from tables import cases


def test_the_name_determines_the_size_and_the_format_of_the_weights(rows):
    for model, quantization, certain, usual in rows:
        assert tuple(round(amount) for amount in least_weights(model, quantization)) == (certain, usual)


def test_a_name_without_a_size_has_no_estimate(rows):
    for (model,) in rows:
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


LLAMA = "meta-llama/Llama-3.1-70B-Instruct"
ONE_3090 = GpuInventory(nodes=[GpuNode(name="one", gpu_model="RTX 3090")])
(R28,) = (rule for rule in RULES if rule.code == "R28")


def severities(manifest, inventory=None):
    return ["warning" if f.is_warning else "error" for f in R28.check(Facts([manifest], [Provided()], inventory))]


@cases
def test_a_model_of_vllm_is_compared_with_its_gpus(args, given, inventory, found):
    assert severities(vllm(*args, **(given or {})), inventory) == ([found] if found else [])


def test_a_model_of_vllm_that_is_too_large_is_an_error_with_a_solution(app):
    served(app, lambda chart: Vllm(chart, "llm", model=LLAMA, gpus=GpuRequest(products=["RTX 4090"]), platform=PLAIN))
    said = rf"team/llm: serves '{LLAMA}', whose weights take about 130 GB, but its GPUs have 26 GB of memory"
    with pytest.raises(SynthesisError, match=said):
        synthesize(app)


def test_the_rule_on_models_can_be_ignored(app):
    served(
        app,
        lambda chart: Vllm(
            chart, "llm", model=LLAMA, gpus=GpuRequest(products=["L4"]), platform=PLAIN, ignore_rules=["R28"]
        ),
    )
    synthesize(app)


def test_a_model_of_ollama_that_is_too_large_is_a_warning(app):
    models = ["llama3:70b", "qwen3:8b", "gpt-oss:120b-cloud", "nomic-embed-text"]
    served(app, lambda chart: Ollama(chart, "llm", models=models, platform=PLAIN))
    GpuRules.enforce(app, inventory=ONE_3090)
    with pytest.warns(GpuConstructsWarning) as told:
        synthesize(app)
    (said,) = (str(one.message) for one in told)
    assert said.startswith(
        "team/llm: serves 'llama3:70b', whose weights take at least 33 GB, but its GPUs have 26 GB of memory"
    )


PLAIN = Kubernetes()


def served(app: App, make) -> None:
    External(app, "labels", node_labels=["nvidia.com/*"])
    chart = Chart(app, "team", namespace="team")
    GpuNamespace(chart, "namespace", name="team")
    make(chart)
