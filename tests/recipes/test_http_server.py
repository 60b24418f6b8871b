"""The shared parts of servers: their address, and budgets of GPU memory."""

import pytest

from gpu_constructs import App, Chart, ComfyUI, GpuProfile, GpuRequest, Jellyfin, Ollama, Plex, Sharing, Testing, Vllm
from gpu_constructs.recipes.http_server import is_shared, vram_budget
from refusals import check_refusals

SERVERS = {
    ComfyUI: {"image": "docker.io/yanwk/comfyui-boot:cu128-slim"},
    Jellyfin: {},
    Ollama: {},
    Plex: {},
    Vllm: {"model": "Qwen/Qwen3-8B"},
}


@pytest.mark.parametrize("recipe", SERVERS, ids=lambda recipe: recipe.__name__)
def test_the_url_is_that_of_the_service(recipe):
    chart = Chart(App(), "models")
    server = recipe(chart, "llm", namespace="ai", **SERVERS[recipe])
    (made,) = [manifest for manifest in Testing.synth(chart) if manifest["kind"] == "Service"]
    assert (server.service.name, server.namespace) == (made["metadata"]["name"], made["metadata"]["namespace"])
    (port,) = made["spec"]["ports"]
    assert server.url == f"http://llm.ai.svc:{port['port']}"


RTX_5070_TI, RTX_3090 = "NVIDIA GeForce RTX 5070 Ti", "NVIDIA GeForce RTX 3090"
SLICED = Sharing.time_slicing(replicas=4)


def budget(gpu_memory=None, **request):
    return vram_budget(GpuRequest(**request), gpu_memory)


def test_the_memory_of_known_boards_is_known():
    assert vram_budget(1, None) is budget(products=[RTX_3090]) is None
    made = budget(vram="8Gi", products=[RTX_5070_TI])
    assert (made.budget_mib, made.total_mib, made.rest_mib, made.hundredths) == (8192, 16303, 8111, 50)
    # The largest of several boards decides, so that a budget is exceeded on none.
    assert budget(vram="8Gi", products=[RTX_5070_TI, "NVIDIA-GeForce-RTX-3090"]).total_mib == 24576
    assert budget("20Gi", vram="10Gi", products=[RTX_3090]).hundredths == 50
    assert budget(vram="8G").budget_mib == 7629
    for mig in ({"mig_profile": "1g.10gb"}, {"resource": "nvidia.com/mig-1g.10gb"}):
        made = budget(vram="8Gi", products=["NVIDIA A100-SXM4-80GB"], **mig)
        assert (made.total_mib, made.rest_mib, made.hundredths) == (9728, 1536, 84)
    unheard = {"products": ["NVIDIA Unheard Of"]}
    for given in ({}, unheard, {"products": [RTX_3090, *unheard["products"]]}, {**unheard, "mig_profile": "1g.10gb"}):
        made = budget(vram="8Gi", **given)
        assert (made.total_mib, made.rest_mib, made.hundredths) == (None, None, None)


def test_impossible_amounts_are_rejected(rows):
    check_refusals(budget, rows)


def test_the_profile_or_the_request_decides_whether_gpus_are_shared(rows):
    for profile, shared in rows:
        assert is_shared(profile) is shared
    for given, shared in (
        ({"resource": "nvidia.com/gpu"}, False),
        ({"resource": "nvidia.com/gpu.shared"}, True),
        ({"resource": "nvidia.com/mig-1g.10gb.shared"}, True),
        ({"resource_claim": "shared-gpu"}, True),
    ):
        assert is_shared(None, GpuRequest(**given)) is shared
        assert is_shared(GpuProfile(sharing=SLICED), GpuRequest(**given))
    # Sharing of whole GPUs does not apply to MIG devices.
    mig = Sharing.time_slicing(resources={"nvidia.com/mig-3g.40gb": 2})
    for sharing, shared in ((SLICED, False), (mig, True)):
        profile = GpuProfile(sharing=sharing, mig_strategy="mixed")
        assert is_shared(profile, GpuRequest(mig_profile="3g.40gb")) is shared
