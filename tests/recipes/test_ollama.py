import subprocess

import pytest

from gpu_constructs import GpuConstructsWarning, GpuProfile, GpuRequest, Ollama, Sharing, Talos, Toleration
from gpu_constructs.kube import pod_security
from recipe_objects import Recipe
from shell import PATIENCE

SHARING = Sharing.time_slicing(replicas=5)
SHARED = GpuProfile(sharing=SHARING)
BOARD = "NVIDIA GeForce RTX 5070 Ti"


SERVER = Recipe(Ollama, "models/ollama")
chart_with, by_kind, pod, env = SERVER.chart, SERVER.by_kind, SERVER.pod, SERVER.env


def job_name(**given):
    return by_kind(**given)["Job"]["metadata"]["name"]


def test_the_default_server(objects, snapshot):
    assert objects(chart_with()) == snapshot


def test_a_full_variant(objects, snapshot, keywords):
    chart = chart_with(**keywords)
    assert objects(chart) == snapshot


def test_server_and_job_satisfy_the_level_restricted():
    for kind in ("Deployment", "Job"):
        assert pod_security.violations(pod(kind, models=["qwen3"]), "restricted") == []


def test_on_a_shared_gpu_the_default_is_one_model_with_a_small_context():
    made = env(profile=SHARED)
    assert (made["OLLAMA_MAX_LOADED_MODELS"], made["OLLAMA_CONTEXT_LENGTH"]) == ("1", "4096")
    assert "LLAMA_ARG_FIT_TARGET" not in made
    assert env(profile=SHARED, context_length=16384)["OLLAMA_CONTEXT_LENGTH"] == "16384"
    assert env(profile=SHARED, env={"OLLAMA_CONTEXT_LENGTH": "2048"})["OLLAMA_CONTEXT_LENGTH"] == "2048"


def test_a_budget_leaves_the_rest_of_the_board_free():
    made = env(gpus=GpuRequest(vram="6Gi", products=[BOARD]))
    assert (made["LLAMA_ARG_FIT_TARGET"], made["OLLAMA_MAX_LOADED_MODELS"]) == (str(16303 - 6144), "1")
    assert env(gpus=GpuRequest(vram="6Gi"), gpu_memory="8Gi")["LLAMA_ARG_FIT_TARGET"] == "2048"
    assert env(gpus=GpuRequest(vram="6Gi"), fit_target="1Gi")["LLAMA_ARG_FIT_TARGET"] == "1024"


def test_a_budget_that_ollama_cannot_apply_warns():
    with pytest.warns(GpuConstructsWarning, match="models/ollama: request.vram of 6Gi has no effect on Ollama"):
        chart_with(gpus=GpuRequest(vram="6Gi"))


def test_settings_are_written_in_the_units_of_ollama(rows):
    for given, variable, value in rows:
        assert env(**given)[variable] == value


def test_the_job_holds_no_gpu_and_gets_tolerations_and_node_selector():
    spec = pod("Job", models=["qwen3"])
    assert env("Job", models=["qwen3"])["NVIDIA_VISIBLE_DEVICES"] == "void"
    assert not [name for name in spec["containers"][0]["resources"]["limits"] if "/" in name]
    assert not {"runtimeClassName", "nodeSelector", "tolerations"} & spec.keys()
    taints = [Toleration(key="dedicated", value="ai", effect="NoSchedule"), Toleration(key="arm", operator="Exists")]
    profile = GpuProfile(platform=Talos("1.12.11"), tolerations=taints[:1], node_selector={"pool": "gpu"})
    spec = pod("Job", models=["qwen3"], profile=profile, tolerations=taints[1:])
    assert spec["tolerations"] == [one.to_manifest() for one in taints]
    assert not {"runtimeClassName", "nodeSelector"} & spec.keys()
    # The selected nodes can have the GPU taint.
    spec = pod("Job", models=["qwen3"], node_selector={"kubernetes.io/arch": "amd64"})
    assert spec["nodeSelector"] == {"kubernetes.io/arch": "amd64"}
    assert [one["key"] for one in spec["tolerations"]] == ["nvidia.com/gpu"]


def test_the_service_does_not_select_the_pod_of_the_job():
    made = by_kind(models=["qwen3"])
    labels = made["Job"]["spec"]["template"]["metadata"]["labels"]
    assert not made["Service"]["spec"]["selector"].items() <= labels.items()


def test_the_name_of_the_job_changes_only_with_models_and_image(expected):
    others = expected
    assert len({job_name(**given) for given in others}) == len(others)
    assert job_name(models=["a"]) == job_name(models=["a"], context_length=8192, storage="1Ti")


@pytest.mark.parametrize("failing", ["", "b"])
def test_the_job_waits_for_the_server_and_pulls_each_model(tmp_path, failing):
    (container,) = pod("Job", models=["a:1", "b", "c"])["containers"]
    tools = {
        "ollama": f"""echo "$*" >> {tmp_path}/calls
case "$1" in
  list) [ -e {tmp_path}/up ] ;;
  pull) [ "$2" != "{failing}" ] ;;
esac""",
        "sleep": f"touch {tmp_path}/up",
    }
    for name, text in tools.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    environment = {"PATH": f"{tmp_path}:/usr/bin:/bin", "OLLAMA_HOST": "http://ollama:11434"}
    command = [*container["command"], *container["args"]]
    done = subprocess.run(command, env=environment, check=False, capture_output=True, timeout=PATIENCE)
    pulled = ["pull a:1", "pull b"] if failing else ["pull a:1", "pull b", "pull c"]
    assert (tmp_path / "calls").read_text().splitlines() == ["list", "list", *pulled]
    assert (done.returncode == 0) is (failing == "")


def test_model_names_that_ollama_would_reject_are_rejected():
    taken = ["qwen3", "user/model:tag", "hf.co/user/Some-Model.v2-GGUF:Q4_K_M", "localhost:5000/a/b:c"]
    assert pod("Job", models=taken)["containers"][0]["args"] == taken
    names = ("", "-f", "qwen3:", "qwen3 8b", "a/b/c/d", "http://a/b/c", "user.name/model", "a:b:c", "x" * 81, "a\n")
    said = "models[0] must be a name for 'ollama pull', such as 'qwen3:8b'…"
    SERVER.refuses([({"models": [name]}, said) for name in names])


def test_the_error_for_impossible_options_has_a_path(rows):
    SERVER.refuses(rows)
