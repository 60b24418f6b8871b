import pytest
from cdk8s import App, Chart, Testing

from gpu_constructs import (
    DevicePluginChart,
    EnvValue,
    GpuConstructsError,
    GpuNamespace,
    Kubernetes,
    Sharing,
    Talos,
    Toleration,
    Volume,
    pod_security,
    synthesize,
)
from gpu_constructs.pod_specs import pod_specs
from gpu_constructs.recipes.vllm import Vllm
from gpu_constructs.recipes.vram_budget import is_shared
from gpu_constructs.workload.backend import Backend
from gpu_constructs.workload.gpu_profile import GpuProfile
from gpu_constructs.workload.gpu_request import GpuRequest
from gpu_constructs.workload.volume_claim import VolumeClaim

MODEL = "Qwen/Qwen3-8B"
BOARD = "NVIDIA GeForce RTX 5070 Ti"
SHARED = GpuProfile(sharing=Sharing.time_slicing(replicas=2))
MPS = GpuProfile(sharing=Sharing.mps(replicas=2))
UNITS = GpuProfile(sharing=Sharing.vram_units(vram="16303Mi"))
FOR_MANY = {"/data": VolumeClaim(storage="1Ti", access_modes=["ReadWriteMany"])}


def chart_with(**given):
    chart = Chart(App(), "models")
    Vllm(chart, "vllm", **{"model": MODEL, **given})
    return chart


def by_kind(**given):
    return {manifest["kind"]: manifest for manifest in Testing.synth(chart_with(**given))}


def pod(**given):
    (spec,) = pod_specs(by_kind(**given)["Deployment"])
    return spec


def container(**given):
    (only,) = pod(**given)["containers"]
    return only


def flag(name, **given):
    """The value of a flag, None where it is not there."""
    args = container(**given)["args"]
    return args[args.index(name) + 1] if name in args else None


def shared_memory(**given):
    return [v["emptyDir"]["sizeLimit"] for v in pod(**given)["volumes"] if v.get("emptyDir", {}).get("medium")]


def refusal(**given):
    with pytest.raises(GpuConstructsError) as refused:
        chart_with(**given)
    return str(refused.value)


def test_the_default_server(objects, snapshot):
    assert objects(chart_with()) == snapshot


def test_a_full_variant(objects, snapshot):
    chart = chart_with(
        model="meta-llama/Llama-3.1-70B-Instruct",
        served_model_name="llama",
        max_model_len=32768,
        pipeline_parallel_size=2,
        hf_token=EnvValue.secret("hugging-face", key="token"),
        args=["--enable-auto-tool-choice", "--tool-call-parser", "llama3_json"],
        shared_memory="8Gi",
        startup_seconds=3600,
        replicas=2,
        gpus=GpuRequest(count=4, vram="70Gi", products=["NVIDIA H100 80GB HBM3"]),
        platform=Kubernetes(),
        image="registry.example/vllm-openai:v0.26.0",
        name="llama",
        namespace="models",
        runtime_class="nvidia",
        tolerations=[Toleration(key="dedicated", value="ai", effect="NoSchedule")],
        node_selector={"example.com/pool": "ai"},
        env={"VLLM_API_KEY": EnvValue.secret("vllm", key="key")},
        volumes={**FOR_MANY, "/extra": Volume.empty_dir(size_limit="1Gi")},
        resources={"requests": {"cpu": "8"}, "limits": {"memory": "256Gi"}},
        run_as_user=1234,
        priority_class_name="gpu-serving",
        image_pull_secrets=["registry"],
        labels={"team": "ml"},
        annotations={"example.com/owner": "ml"},
        ignore_rules=["R13"],
    )
    assert objects(chart) == snapshot


@pytest.mark.parametrize(
    ("platform", "sharing"),
    [
        (Talos("1.12.11"), Sharing.none()),
        (Talos("1.12.11"), Sharing.time_slicing(replicas=2)),
        (Kubernetes(), Sharing.mps(replicas=2)),
    ],
)
def test_an_app_with_it_synthesizes_without_a_finding_in_a_restricted_namespace(tmp_path, platform, sharing):
    app = App(outdir=str(tmp_path))
    DevicePluginChart(app, "plugin", platform=platform, sharing=sharing)
    chart = Chart(app, "vllm", namespace="vllm")
    GpuNamespace(chart, "namespace", name="vllm", pod_security="restricted")
    profile = GpuProfile(platform=platform, sharing=sharing)
    Vllm(chart, "vllm", model=f"{MODEL}-AWQ", gpus=GpuRequest(vram="7Gi", products=[BOARD]), profile=profile)
    synthesize(app)


def test_it_reaches_the_level_restricted():
    assert pod_security.violations(pod(), "restricted") == []


def test_it_serves_where_service_and_probes_ask():
    made = container()
    assert made["command"] == ["vllm", "serve"]
    assert made["args"] == [MODEL, "--host", "0.0.0.0", "--port", "8000"]
    assert made["ports"] == [{"containerPort": 8000, "name": "http"}]
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        assert made[probe]["httpGet"] == {"path": "/health", "port": "http"}
    assert made["startupProbe"]["periodSeconds"] * made["startupProbe"]["failureThreshold"] == 1800


def test_no_variable_of_a_service_called_vllm_reaches_it():
    assert pod()["enableServiceLinks"] is False


def test_what_it_downloads_and_compiles_is_on_the_disk():
    env = {one["name"]: one["value"] for one in container()["env"]}
    assert env["HOME"] == "/data"
    assert env["HF_HOME"].startswith("/data/")
    assert {"mountPath": "/data", "name": "data"} in container()["volumeMounts"]


@pytest.mark.parametrize(
    ("given", "share"),
    [
        ({}, None),
        ({"gpu_memory_utilization": 0.85}, "0.85"),
        ({"gpu_memory_utilization": 1}, "1"),
        ({"gpus": GpuRequest(vram="8Gi", products=[BOARD])}, "0.50"),
        ({"gpus": GpuRequest(vram="16303Mi", products=[BOARD])}, "1.00"),
        ({"gpus": GpuRequest(vram="1Gi", products=[BOARD])}, "0.06"),
        ({"gpus": GpuRequest(vram="8Gi"), "gpu_memory": "24564Mi"}, "0.33"),
        ({"gpus": GpuRequest(vram="8Gi", products=[BOARD]), "profile": SHARED}, "0.50"),
        ({"gpu_memory_utilization": 0.4, "profile": SHARED}, "0.4"),
    ],
)
def test_a_budget_is_the_part_of_the_memory_rounded_down(given, share):
    assert flag("--gpu-memory-utilization", **given) == share


def test_a_server_asks_for_as_many_units_as_it_takes_and_stays_whole():
    given = {"gpus": GpuRequest(vram="7.5Gi", products=[BOARD]), "profile": UNITS}
    assert container(**given)["resources"]["limits"]["nvidia.com/gpu"] == "8"
    assert flag("--gpu-memory-utilization", **given) == "0.47"
    assert flag("--tensor-parallel-size", **given) is None
    assert shared_memory(**given) == []


@pytest.mark.parametrize(
    ("gpus", "pipeline", "tensor_parallel", "pipeline_parallel"),
    [(1, 1, None, None), (2, 1, "2", None), (4, 2, "2", "2"), (3, 3, None, "3"), (GpuRequest(count=8), 1, "8", None)],
)
def test_the_model_is_split_over_all_gpus(gpus, pipeline, tensor_parallel, pipeline_parallel):
    given = {"gpus": gpus, "pipeline_parallel_size": pipeline}
    assert flag("--tensor-parallel-size", **given) == tensor_parallel
    assert flag("--pipeline-parallel-size", **given) == pipeline_parallel


@pytest.mark.parametrize(
    ("given", "size"),
    [
        ({}, []),
        ({"gpus": 2}, ["2Gi"]),
        ({"gpus": 2, "shared_memory": "8Gi"}, ["8Gi"]),
        ({"shared_memory": "1Gi"}, ["1Gi"]),
    ],
)
def test_several_gpus_get_shared_memory(given, size):
    assert shared_memory(**given) == size


def test_a_slot_of_mps_gets_no_shared_memory_of_its_own():
    assert shared_memory(profile=MPS, gpu_memory_utilization=0.4) == []
    assert "/dev/shm must not be mounted" in refusal(profile=MPS, gpu_memory_utilization=0.4, shared_memory="1Gi")


def test_one_replica_is_replaced_at_once_and_several_share_a_disk():
    assert by_kind()["Deployment"]["spec"]["strategy"] == {"type": "Recreate"}
    made = by_kind(replicas=2, volumes=FOR_MANY)
    assert made["PersistentVolumeClaim"]["spec"]["accessModes"] == ["ReadWriteMany"]
    assert "clusterIP" not in made["Service"]["spec"]


def test_a_token_is_read_from_its_secret():
    token = EnvValue.secret("hugging-face", key="token")
    found = [one for one in container(hf_token=token)["env"] if one["name"] == "HF_TOKEN"]
    assert found == [{"name": "HF_TOKEN", "valueFrom": {"secretKeyRef": {"name": "hugging-face", "key": "token"}}}]


def test_a_user_s_variable_wins():
    env = {one["name"]: one["value"] for one in container(env={"USER": "me"})["env"]}
    assert env["USER"] == "me"


@pytest.mark.parametrize(
    "model", ["gpt2", "Qwen/Qwen3-8B", "/models/llama-3.1", "s3://bucket/llama", "a/b-GGUF:Q4_K_M"]
)
def test_models_may_be_repositories_or_paths(model):
    assert container(model=model)["args"][0] == model


@pytest.mark.parametrize("model", ["", "--help", "a b", "a//b", "/", "../x", "a:", "a\n"])
def test_what_is_no_model_is_refused(model):
    assert "model must be a repository like 'Qwen/Qwen3-8B', or a path" in refusal(model=model)


@pytest.mark.parametrize(
    ("word", "says"),
    [
        ("--model", "use model="),
        ("--gpu-memory-utilization=0.5", "use gpu_memory_utilization="),
        ("--gpu_memory_utilization", "use gpu_memory_utilization="),
        ("--max-model-len", "use max_model_len="),
        ("--tensor-parallel-size", "use gpus="),
        ("-tp", "use gpus="),
        ("-pp=2", "use pipeline_parallel_size="),
        ("--served-model-name", "use served_model_name="),
        ("--hf-token", "use hf_token="),
        ("--host", "Service, probes and the allocated GPUs"),
        ("--port", "Service, probes and the allocated GPUs"),
        ("-dp", "Service, probes and the allocated GPUs"),
        ("--api-key", "it would stand in the manifest; pass env={'VLLM_API_KEY'"),
        ("--download_dir", "models belong on the disk"),
        ("--kv-cache-memory-bytes", "vLLM would then not look at gpu_memory_utilization"),
    ],
)
def test_flags_of_the_recipe_are_refused_among_the_others(word, says):
    said = refusal(args=["--enforce-eager", word])
    assert said.startswith("models/vllm: args[1] must not be -")
    assert says in said


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"profile": SHARED}, "gpus must say a budget where GPUs are shared: vLLM takes 0.92 of all memory"),
        ({"gpus": GpuRequest(vram="8Gi")}, "request.vram of 8Gi needs the memory of the GPU"),
        ({"gpus": GpuRequest(vram="100Mi"), "gpu_memory": "80Gi"}, "request.vram of 100Mi is less than a hundredth"),
        (
            {"gpus": GpuRequest(vram="8Gi", products=[BOARD]), "gpu_memory_utilization": 0.5},
            "gpu_memory_utilization and request.vram must not both be given",
        ),
        ({"gpu_memory_utilization": 0}, "gpu_memory_utilization must be above 0 and at most 1; got 0"),
        ({"gpu_memory_utilization": 90}, "gpu_memory_utilization must be above 0 and at most 1; got 90"),
        ({"gpu_memory_utilization": float("nan")}, "gpu_memory_utilization must be above 0 and at most 1; got nan"),
        ({"max_model_len": 0}, "max_model_len must be at least 1"),
        ({"gpus": 3, "pipeline_parallel_size": 2}, "pipeline_parallel_size must divide the number of GPUs, 3; got 2"),
        ({"pipeline_parallel_size": 0}, "pipeline_parallel_size must be at least 1"),
        ({"gpus": 0.5}, "gpus must be an int, got 0.5"),
        ({"gpus": 2, "profile": SHARED, "gpu_memory_utilization": 0.4}, "gpus"),
        ({"hf_token": "hf_secret"}, "hf_token"),
        ({"served_model_name": "a b"}, "served_model_name must be"),
        ({"replicas": 2}, "replicas of 2 need a disk that several nodes mount"),
        ({"startup_seconds": 0}, "startup_seconds must be at least 1"),
        ({"run_as_user": 0}, "run_as_user must be at least 1"),
        ({"env": {"HF_HOME": "/x"}}, "env['HF_HOME'] must be left to the recipe"),
        ({"env": {"HOME": "/x"}}, "env['HOME'] must be left to the recipe"),
        ({"args": "--fast"}, "args must be a list"),
        ({"gpu_memory": "16Gi"}, "gpu_memory is for the budget of a GpuRequest"),
        ({"tensor_parallel_size": 2}, "tensor_parallel_size is no keyword of Vllm"),
    ],
)
def test_what_would_not_work_is_refused_with_the_path(given, says):
    said = refusal(**given)
    assert said.startswith(f"models/vllm: {says}"), said
    assert "hf_secret" not in said


@pytest.mark.parametrize(
    "given",
    [
        {
            "gpus": GpuRequest(resource_claim="shared-gpu"),
            "profile": GpuProfile(platform=Kubernetes(), backend=Backend.dra_claims()),
        },
        {"gpus": GpuRequest(resource="nvidia.com/gpu.shared")},
    ],
    ids=["claim", "slots"],
)
def test_slots_and_an_existing_claim_need_a_budget_as_a_shared_profile_does(given):
    assert refusal(**given).startswith("models/vllm: gpus must say a budget where GPUs are shared")
    assert flag("--gpu-memory-utilization", gpu_memory_utilization=0.4, **given) == "0.4"


@pytest.mark.parametrize("mig", [{"mig_profile": "1g.10gb"}, {"resource": "nvidia.com/mig-1g.10gb"}], ids=str)
def test_a_server_gets_one_mig_device(mig):
    assert flag("--tensor-parallel-size", gpus=GpuRequest(**mig)) is None
    assert refusal(gpus=GpuRequest(count=2, **mig)) == (
        "models/vllm: request.count must be 1 for MIG devices, of which CUDA shows a process one; got 2; ask for a "
        "larger profile, or for replicas"
    )


def test_several_slots_of_mps_get_no_shared_memory_of_their_own():
    gpus = GpuRequest(count=2, vram="4Gi", products=["NVIDIA L4"])
    slots = {"replicas": 4, "fail_requests_greater_than_one": False}
    assert shared_memory(gpus=gpus, profile=GpuProfile(sharing=Sharing.mps(**slots))) == []
    assert shared_memory(gpus=gpus, profile=GpuProfile(sharing=Sharing.time_slicing(**slots))) == ["2Gi"]


def test_a_mig_device_is_not_shared_where_whole_gpus_are():
    profile = GpuProfile(sharing=Sharing.time_slicing(replicas=2), mig_strategy="mixed")
    assert not is_shared(profile, GpuRequest(mig_profile="3g.40gb"))
    assert is_shared(profile, GpuRequest())
    shared = Sharing.time_slicing(resources={"nvidia.com/mig-3g.40gb": 2})
    assert is_shared(GpuProfile(sharing=shared, mig_strategy="mixed"), GpuRequest(mig_profile="3g.40gb"))
