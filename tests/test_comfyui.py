import argparse

import pytest
from cdk8s import App, Chart, Testing

from gpu_constructs import (
    DevicePluginChart,
    GpuConstructsError,
    GpuConstructsWarning,
    GpuNamespace,
    Kubernetes,
    Sharing,
    SynthesisError,
    Talos,
    Toleration,
    Volume,
    pod_security,
    synthesize,
)
from gpu_constructs.pod_specs import pod_specs
from gpu_constructs.recipes.comfyui import ComfyUI, ComfyUILayout
from gpu_constructs.workload.gpu_profile import GpuProfile
from gpu_constructs.workload.gpu_request import GpuRequest
from gpu_constructs.workload.volume_claim import VolumeClaim

KNOWN = "docker.io/yanwk/comfyui-boot:cu130-slim-v2"
OTHER = "registry.example/comfyui:0.3.50"
PLAIN = ComfyUILayout(base_directory="/app", data="/app/user", command=["python", "main.py"])
BOARD = "NVIDIA GeForce RTX 5070 Ti"


def chart_with(**given):
    chart = Chart(App(), "images")
    ComfyUI(chart, "comfyui", **{"image": KNOWN, **given})
    return chart


def by_kind(**given):
    return {manifest["kind"]: manifest for manifest in Testing.synth(chart_with(**given))}


def pod(**given):
    (spec,) = pod_specs(by_kind(**given)["Deployment"])
    return spec


def container(**given):
    (only,) = pod(**given)["containers"]
    return only


def flags(**given):
    return {one["name"]: one["value"] for one in container(**given).get("env", ())}.get("CLI_ARGS")


def refusal(**given):
    with pytest.raises(GpuConstructsError) as refused:
        chart_with(**given)
    return str(refused.value)


def test_the_known_image(objects, snapshot):
    assert objects(chart_with()) == snapshot


def test_a_full_variant_of_another_image(objects, snapshot):
    chart = chart_with(
        image=OTHER,
        layout=PLAIN,
        vram_mode="lowvram",
        args=["--disable-xformers", "--preview-method", "auto"],
        models=Volume.persistent_volume_claim("models", read_only=True),
        custom_nodes=VolumeClaim(storage="5Gi"),
        input=Volume.empty_dir(),
        output=VolumeClaim(storage="50Gi", access_modes=["ReadWriteMany"]),
        storage="10Gi",
        storage_class_name="fast",
        startup_seconds=600,
        gpus=GpuRequest(vram="12Gi", products=[BOARD]),
        profile=GpuProfile(sharing=Sharing.time_slicing(replicas=5)),
        name="studio",
        namespace="studio",
        tolerations=[Toleration(key="dedicated", value="ai", effect="NoSchedule")],
        node_selector={"example.com/pool": "ai"},
        env={"PYTORCH_ALLOC_CONF": "expandable_segments:True"},
        volumes={"/tmp": Volume.empty_dir(size_limit="10Gi")},
        resources={"requests": {"cpu": "4"}, "limits": {"memory": "48Gi"}},
        run_as_user=1000,
        priority_class_name="gpu-serving",
        image_pull_secrets=["registry"],
        labels={"team": "art"},
        annotations={"example.com/owner": "art"},
        ignore_rules=["R13"],
    )
    assert objects(chart) == snapshot


def app_with(tmp_path, level, platform=None, **given):
    platform = platform or Kubernetes()
    app = App(outdir=str(tmp_path))
    sharing = Sharing.time_slicing(replicas=5)
    DevicePluginChart(app, "plugin", platform=platform, sharing=sharing)
    chart = Chart(app, "comfyui", namespace="comfyui")
    GpuNamespace(chart, "namespace", name="comfyui", pod_security=level)
    ComfyUI(chart, "comfyui", profile=GpuProfile(platform=platform, sharing=sharing), **{"image": KNOWN, **given})
    return app


@pytest.mark.parametrize("platform", [Talos("1.12.11"), Kubernetes()])
def test_an_app_with_it_synthesizes_without_a_finding_in_a_baseline_namespace(tmp_path, platform):
    synthesize(app_with(tmp_path, "baseline", platform, gpus=GpuRequest(vram="12Gi", products=[BOARD])))


def test_the_known_image_is_root_s_which_a_restricted_namespace_refuses(tmp_path):
    assert pod_security.violations(pod(), "baseline") == []
    with pytest.raises(SynthesisError, match="runAsNonRoot"):
        synthesize(app_with(tmp_path, "restricted"))


def test_an_image_for_another_user_reaches_the_level_restricted(tmp_path):
    synthesize(app_with(tmp_path, "restricted", image=OTHER, layout=PLAIN, run_as_user=1000))


def test_the_known_image_gets_its_flags_in_a_variable_and_listens_by_itself():
    assert flags(args=["--disable-xformers"], vram_mode="novram") == "--novram --disable-xformers"
    assert "args" not in container(vram_mode="novram")


def test_without_flags_there_is_no_variable():
    assert "env" not in container()


@pytest.mark.parametrize(
    "image",
    [
        "yanwk/comfyui-boot:cu126-slim",
        f"localhost:5000/yanwk/comfyui-boot@sha256:{'0' * 64}",
        "a.b/yanwk/comfyui-boot:x",
    ],
)
def test_the_known_image_is_known_wherever_it_comes_from(image):
    assert flags(image=image, vram_mode="highvram") == "--highvram"


def test_another_image_is_told_to_listen_where_service_and_probes_ask():
    made = container(image=OTHER, layout=PLAIN)
    assert made["command"] == ["python", "main.py"]
    assert made["args"] == ["--listen", "0.0.0.0", "--port", "8188"]
    assert made["ports"] == [{"containerPort": 8188, "name": "http"}]


def test_a_layout_wins_over_what_is_known():
    assert container(layout=PLAIN)["args"][:2] == ["--listen", "0.0.0.0"]


@pytest.mark.parametrize("mode", ["gpu-only", "highvram", "lowvram", "novram"])
def test_each_mode_is_a_flag_that_comfyui_takes(mode):
    parser = argparse.ArgumentParser()
    group = parser.add_mutually_exclusive_group()
    for flag in ("--gpu-only", "--highvram", "--lowvram", "--novram"):
        group.add_argument(flag, action="store_true")
    parser.add_argument("--reserve-vram", type=float)
    made = parser.parse_args(flags(vram_mode=mode, reserve_vram=2).split())
    assert getattr(made, mode.replace("-", "_")) is True
    assert made.reserve_vram == 2


@pytest.mark.parametrize(
    ("given", "reserved"),
    [
        ({"reserve_vram": 4}, "4"),
        ({"reserve_vram": 0.6}, "0.6"),
        ({"reserve_vram": 0}, "0"),
        ({"gpus": GpuRequest(vram="12Gi", products=[BOARD])}, "4"),
        ({"gpus": GpuRequest(vram="10Gi"), "gpu_memory": "24Gi"}, "14"),
        ({"gpus": GpuRequest(vram="10200Mi"), "gpu_memory": "12Gi"}, "2.1"),
        ({"gpus": GpuRequest(vram="10Gi"), "gpu_memory": "24Gi", "reserve_vram": 1}, "1"),
    ],
)
def test_what_others_may_have_is_reserved_in_gib_rounded_up(given, reserved):
    assert flags(**given) == f"--reserve-vram {reserved}"


def test_a_server_asks_for_as_many_units_as_it_takes_and_is_told_of_its_budget():
    profile = GpuProfile(sharing=Sharing.vram_units(vram="16303Mi"))
    given = {"gpus": GpuRequest(vram="12Gi", products=["NVIDIA GeForce RTX 5070 Ti"]), "profile": profile}
    assert container(**given)["resources"]["limits"]["nvidia.com/gpu"] == "12"
    assert "--reserve-vram 4" in flags(**given)


def test_a_budget_that_comfyui_cannot_keep_is_a_warning():
    with pytest.warns(GpuConstructsWarning, match="images/comfyui: request.vram of 6Gi is not kept by ComfyUI"):
        chart_with(gpus=GpuRequest(vram="6Gi"))


def test_folders_can_be_volumes_of_their_own():
    made = by_kind(models=VolumeClaim(storage="1Ti"), output=Volume.empty_dir())
    (spec,) = pod_specs(made["Deployment"])
    paths = [mount["mountPath"] for mount in spec["containers"][0]["volumeMounts"]]
    assert paths == ["/root", "/root/ComfyUI/models", "/root/ComfyUI/output"]


READ_ONLY = Volume.persistent_volume_claim("models", read_only=True)


@pytest.mark.parametrize(
    "given",
    [
        {"models": READ_ONLY},
        {"output": Volume.config_map("x")},
        {"volumes": {"/root": READ_ONLY}},
        {"volumes": {"/root/ComfyUI": READ_ONLY}},
        {"volumes": {"/root/ComfyUI/models/loras/": READ_ONLY}},
    ],
    ids=lambda given: str([*given]),
)
def test_a_read_only_mount_where_the_image_copies_files_is_refused(given):
    said = refusal(**given)
    assert said.startswith("images/comfyui: volumes['/root"), said
    assert "must not be read-only: the image copies ComfyUI to '/root/ComfyUI' at the first start" in said
    assert "'/root/ComfyUI/models/checkpoints/shared'" in said


@pytest.mark.parametrize(
    "path", ["/root/ComfyUI/models/checkpoints/shared", "/root/ComfyUI/custom_nodes/own", "/models", "/root/.ssh"]
)
def test_a_read_only_mount_beside_what_the_image_copies_is_taken(path):
    made = container(volumes={path: READ_ONLY})
    assert {"mountPath": path, "name": made["volumeMounts"][1]["name"], "readOnly": True} in made["volumeMounts"]


def test_an_image_that_copies_nothing_may_have_read_only_models():
    paths = [one["mountPath"] for one in container(image=OTHER, layout=PLAIN, models=READ_ONLY)["volumeMounts"]]
    assert "/app/models" in paths


def test_a_mount_at_data_replaces_the_disk():
    assert "PersistentVolumeClaim" not in by_kind(volumes={"/root": Volume.persistent_volume_claim("studio")})


def test_the_probes_ask_for_system_stats_and_none_restarts_a_busy_server():
    made = container()
    assert (
        made["startupProbe"]["httpGet"]
        == made["readinessProbe"]["httpGet"]
        == {"path": "/system_stats", "port": "http"}
    )
    assert made["startupProbe"]["periodSeconds"] * made["startupProbe"]["failureThreshold"] == 1200
    assert "livenessProbe" not in made


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"image": OTHER}, f"layout is required for an image other than yanwk/comfyui-boot, got '{OTHER}'"),
        ({"image": "notyanwk/comfyui-boot:x"}, "layout is required"),
        ({"image": "yanwk/comfyui-boot"}, "image must be pinned"),
        ({"vram_mode": "--lowvram"}, "vram_mode must be one of 'gpu-only', 'highvram', 'lowvram', 'novram'"),
        ({"reserve_vram": -1}, "reserve_vram must be GiB from 0 up"),
        ({"reserve_vram": float("nan")}, "reserve_vram must be GiB from 0 up"),
        ({"reserve_vram": 4096}, "reserve_vram must be GiB from 0 up, below a GPU's memory; got 4096"),
        ({"reserve_vram": True}, "reserve_vram must be a number, got True (bool)"),
        ({"args": "--fast"}, "args must be a list"),
        (
            {"args": ["--reserve-vram", "4"]},
            "args[0] must not be --reserve-vram, which has a keyword; use reserve_vram=",
        ),
        ({"args": ["--fast", "--lowvram"]}, "args[1] must not be --lowvram, which has a keyword; use vram_mode="),
        ({"args": ["--cpu"]}, "args[0] must not be --cpu"),
        ({"args": ["--port=80"]}, "args[0] must not be --port: Service, probes"),
        ({"args": ["--cuda-device", "1"]}, "args[0] must not be --cuda-device"),
        ({"args": ["--comfy-api-base", "a b"]}, "args[1] must be one word"),
        ({"args": ["$(id)"]}, "args[0] must be one word"),
        ({"env": {"CLI_ARGS": "--fast"}}, "env['CLI_ARGS'] must be left to the recipe"),
        ({"startup_seconds": 0}, "startup_seconds must be at least 1"),
        ({"storage": "1 TB"}, "volume_claim.storage must be a Kubernetes quantity"),
        ({"models": "/models"}, "volumes['/root/ComfyUI/models'] must be a Volume"),
        ({"gpu_memory": "16Gi"}, "gpu_memory is for the budget of a GpuRequest"),
        ({"replicas": 2}, "replicas is no keyword of ComfyUI"),
    ],
)
def test_what_would_not_work_is_refused_with_the_path(given, says):
    said = refusal(**given)
    assert said.startswith(f"images/comfyui: {says}"), said


def test_any_word_goes_where_no_shell_takes_flags_apart():
    assert container(image=OTHER, layout=PLAIN, args=["--comfy-api-base", "a b"])["args"][-1] == "a b"


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"base_directory": "app"}, "layout.base_directory must be an absolute path"),
        ({"data": "../x"}, "layout.data must be an absolute path"),
        ({"flags_variable": "CLI-ARGS"}, "layout.flags_variable must be a variable name"),
        ({"command": "python main.py"}, "layout.command must be a list"),
    ],
)
def test_a_layout_that_no_image_has_is_refused(given, says):
    with pytest.raises(GpuConstructsError) as refused:
        ComfyUILayout(**{"base_directory": "/app", "data": "/data", **given})
    assert str(refused.value).startswith(says)
