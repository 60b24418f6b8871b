import argparse

import pytest

from gpu_constructs import (
    ComfyUI,
    ComfyUILayout,
    GpuConstructsWarning,
    GpuRequest,
    Volume,
)
from recipe_objects import Recipe
from refusals import check_refusals

KNOWN = "docker.io/yanwk/comfyui-boot:cu130-slim-v2"
OTHER = "registry.example/comfyui:0.3.50"
PLAIN = ComfyUILayout(base_directory="/app", data="/app/user", command=["python", "main.py"])


SERVER = Recipe(ComfyUI, "images/comfyui", image=KNOWN)
chart_with, container = SERVER.chart, SERVER.container


def flags(**given):
    return SERVER.env(**given).get("CLI_ARGS")


def test_the_known_image(objects, snapshot):
    assert objects(chart_with()) == snapshot


def test_a_full_variant_of_another_image(objects, snapshot, keywords):
    chart = chart_with(**keywords)
    assert objects(chart) == snapshot


def test_the_known_image_gets_its_flags_in_a_variable_and_listens_by_itself():
    assert flags(args=["--disable-xformers"], vram_mode="novram") == "--novram --disable-xformers"
    assert "args" not in container(vram_mode="novram")


def test_the_known_image_has_its_layout_in_any_registry_unless_the_user_sets_one():
    digest = f"localhost:5000/yanwk/comfyui-boot@sha256:{'0' * 64}"
    for image in ("yanwk/comfyui-boot:cu126-slim", digest, "a.b/yanwk/comfyui-boot:x"):
        assert flags(image=image, vram_mode="highvram") == "--highvram"
    assert container(layout=PLAIN)["args"][:2] == ["--listen", "0.0.0.0"]


@pytest.mark.parametrize("mode", ["gpu-only", "highvram", "lowvram", "novram"])
def test_each_mode_is_a_flag_of_comfyui(mode):
    parser = argparse.ArgumentParser()
    group = parser.add_mutually_exclusive_group()
    for flag in ("--gpu-only", "--highvram", "--lowvram", "--novram"):
        group.add_argument(flag, action="store_true")
    parser.add_argument("--reserve-vram", type=float)
    made = parser.parse_args(flags(vram_mode=mode, reserve_vram=2).split())
    assert getattr(made, mode.replace("-", "_")) is True
    assert made.reserve_vram == 2


def test_the_memory_of_others_is_reserved_in_gib_rounded_up(rows):
    for given, reserved in rows:
        assert flags(**given) == f"--reserve-vram {reserved}"


def test_a_budget_that_comfyui_cannot_apply_warns():
    with pytest.warns(GpuConstructsWarning, match="images/comfyui: request.vram of 6Gi has no effect on ComfyUI"):
        chart_with(gpus=GpuRequest(vram="6Gi"))


READ_ONLY = Volume.persistent_volume_claim("models", read_only=True)


def test_a_read_only_mount_is_rejected_only_if_the_image_copies_files_there():
    base = "/root/ComfyUI"
    said = f"… must allow writes: the image copies ComfyUI to '{base}' at the first start…'{base}/models/checkpoin…"
    mounts = ("/root", base, f"{base}/models/loras/")
    folders = [{"models": READ_ONLY}, {"output": Volume.config_map("x")}]
    SERVER.refuses(
        [(given, f"volumes['/root{said}") for given in (*folders, *({"volumes": {path: READ_ONLY}} for path in mounts))]
    )
    for path in (f"{base}/models/checkpoints/shared", f"{base}/custom_nodes/own", "/models", "/root/.ssh"):
        made = container(volumes={path: READ_ONLY})
        assert {"mountPath": path, "name": made["volumeMounts"][1]["name"], "readOnly": True} in made["volumeMounts"]


def test_the_error_for_impossible_options_has_a_path(rows):
    SERVER.refuses(rows)


def test_without_a_shell_any_flag_is_allowed():
    assert container(image=OTHER, layout=PLAIN, args=["--comfy-api-base", "a b"])["args"][-1] == "a b"


def test_an_impossible_layout_is_rejected(rows):
    check_refusals(lambda **given: ComfyUILayout(**{"base_directory": "/app", "data": "/data", **given}), rows)
