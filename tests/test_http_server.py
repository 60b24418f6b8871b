"""What serves HTTP says where others reach it."""

import mypy.api
import pytest

from gpu_constructs import App, Chart, ComfyUI, Ollama, Testing, Vllm

SERVERS = {
    ComfyUI: {"image": "docker.io/yanwk/comfyui-boot:cu128-slim"},
    Ollama: {},
    Vllm: {"model": "Qwen/Qwen3-8B"},
}
USE = """from gpu_constructs import ComfyUI, Ollama, Vllm
def names(*servers: ComfyUI | Ollama | Vllm) -> list[str]:
    return [f"{server.url}/v1 {server.service.name}" for server in servers] + [server.url for server in servers]
"""


@pytest.mark.parametrize("recipe", SERVERS, ids=lambda recipe: recipe.__name__)
def test_the_url_is_that_of_the_service_that_is_made(recipe):
    chart = Chart(App(), "models")
    server = recipe(chart, "llm", namespace="ai", **SERVERS[recipe])
    (made,) = [manifest for manifest in Testing.synth(chart) if manifest["kind"] == "Service"]
    assert (server.service.name, server.namespace) == (made["metadata"]["name"], made["metadata"]["namespace"])
    (port,) = made["spec"]["ports"]
    assert server.url == f"http://llm.ai.svc:{port['port']}"


def test_url_and_service_are_never_none_for_a_type_checker(tmp_path):
    (tmp_path / "use.py").write_text(USE)
    said, _, code = mypy.api.run(["--strict", "--cache-dir", str(tmp_path), str(tmp_path / "use.py")])
    assert code == 0, said
