from gpu_constructs import (
    Backend,
    GpuProfile,
    GpuRequest,
    Kubernetes,
    Sharing,
    Vllm,
)
from recipe_objects import Recipe

MODEL = "Qwen/Qwen3-8B"
BOARD = "NVIDIA GeForce RTX 5070 Ti"
UNITS = GpuProfile(sharing=Sharing.vram_units(vram="16303Mi"))


SERVER = Recipe(Vllm, "models/vllm", model=MODEL)
chart_with, pod, container = SERVER.chart, SERVER.pod, SERVER.container


def flag(name, **given):
    """Return the value of a flag, or None without the flag."""
    args = container(**given)["args"]
    return args[args.index(name) + 1] if name in args else None


def shared_memory(**given):
    return [v["emptyDir"]["sizeLimit"] for v in pod(**given)["volumes"] if v.get("emptyDir", {}).get("medium")]


def test_the_default_server(objects, snapshot):
    assert objects(chart_with()) == snapshot


def test_a_full_variant(objects, snapshot, keywords):
    chart = chart_with(**keywords)
    assert objects(chart) == snapshot


def test_a_budget_is_the_part_of_the_memory_rounded_down(rows):
    for given, share in rows:
        assert flag("--gpu-memory-utilization", **given) == share


def test_a_server_requests_the_units_of_its_budget():
    given = {"gpus": GpuRequest(vram="7.5Gi", products=[BOARD]), "profile": UNITS}
    assert container(**given)["resources"]["limits"]["nvidia.com/gpu"] == "8"
    assert flag("--gpu-memory-utilization", **given) == "0.47"
    assert flag("--tensor-parallel-size", **given) is None
    assert shared_memory(**given) == []


def test_the_model_is_split_over_all_gpus(rows):
    for gpus, pipeline, by_tensor, by_pipeline in rows:
        given = {"gpus": gpus, "pipeline_parallel_size": pipeline}
        assert flag("--tensor-parallel-size", **given) == by_tensor
        assert flag("--pipeline-parallel-size", **given) == by_pipeline


def test_several_gpus_get_shared_memory(rows):
    for given, sizes in rows:
        assert shared_memory(**given) == sizes


def test_invalid_model_names_are_rejected():
    for taken in ("gpt2", "Qwen/Qwen3-8B", "/models/llama-3.1", "s3://bucket/llama", "a/b-GGUF:Q4_K_M"):
        assert container(model=taken)["args"][0] == taken
    said = "model must be a repository like 'Qwen/Qwen3-8B', or a path…"
    SERVER.refuses([({"model": name}, said) for name in ("", "--help", "a b", "a//b", "/", "../x", "a:", "a\n")])


def test_flags_of_the_recipe_are_rejected_in_args(rows):
    SERVER.refuses([({"args": ["--enforce-eager", word]}, f"args[1] must not be -…{said}…") for word, said in rows])


def test_the_error_for_impossible_options_has_a_path(rows):
    SERVER.refuses(rows)


def test_a_token_is_never_shown():
    assert "hf_secret" not in SERVER.refusal(hf_token="hf_secret")


def test_slots_and_an_existing_claim_need_a_budget_as_a_shared_profile_does():
    claims = GpuProfile(platform=Kubernetes(), backend=Backend.dra_claims())
    says = "request.vram must have a value for shared GPUs…"
    claimed = {"gpus": GpuRequest(resource_claim="shared-gpu"), "profile": claims}
    for given in (claimed, {"gpus": GpuRequest(resource="nvidia.com/gpu.shared")}):
        SERVER.refuses([(given, says)])
        assert flag("--gpu-memory-utilization", gpu_memory_utilization=0.4, **given) == "0.4"


def test_a_server_gets_one_mig_device():
    said = "request.count must be 1 for MIG devices, … got 2. Use a larger profile or more replicas"
    for mig in ({"mig_profile": "1g.10gb"}, {"resource": "nvidia.com/mig-1g.10gb"}):
        assert flag("--tensor-parallel-size", gpus=GpuRequest(**mig)) is None
        SERVER.refuses([({"gpus": GpuRequest(count=2, **mig)}, said)])
