import pytest
import yaml
from cdk8s import Testing

import refusals
from gpu_constructs import GpuConstructsError, KernelModule, Talos, TalosGpuNode, synthesize
from tables import cases

VALIDATOR = "nvidia.com/gpu.deploy.operator-validator"


def refusal(app, **given):
    return refusals.refusal(TalosGpuNode, app, "node", **{"platform": Talos("1.12.11"), **given})


@pytest.mark.parametrize("version", ["1.12.11", "1.14.0"])
def test_the_files_of_a_node(app, tmp_path, snapshot, version, keywords):
    TalosGpuNode(app, "gpu-worker", platform=Talos(version), **keywords)
    synthesize(app)
    folder = tmp_path / "dist" / "machine-config"
    assert [path.name for path in sorted(folder.iterdir())] == ["gpu-worker.schematic.yaml", "gpu-worker.yaml"]
    for path in sorted(folder.iterdir()):
        assert path.read_text() == snapshot(name=path.stem)


def test_a_node_emits_no_object(chart):
    TalosGpuNode(chart, "gpu-worker", platform=Talos("1.12.11"))
    assert Testing.synth(chart) == []


def test_the_default_name_is_the_id(app):
    assert TalosGpuNode(app, "a", platform=Talos()).name == "a"
    assert TalosGpuNode(app, "B", platform=Talos(), name="c").side_files()[0].stem == "c"
    assert refusal(app, name="../c").startswith("node: name must be a DNS label")


@cases
def test_the_installer_is_the_factorys_image_of_the_schematic(app, given, image):
    node = TalosGpuNode(app, "node", platform=Talos("v1.12.11"), **given)
    expected = f"factory.talos.dev/{image}/6698d6f136c5bb37ca8bb8482c9084305084da0a5ead1f4dcae760796f8ab3a2:v1.12.11"
    assert node.installer_image == expected
    assert node.machine_config[0]["machine"]["install"] == {"image": expected}
    assert f"# Installer: {expected}\n" in node.side_files()[0].text


def test_a_release_line_has_no_installer_tag(app):
    node = TalosGpuNode(app, "node", platform=Talos("1.12"))
    with pytest.raises(GpuConstructsError) as refused:
        _ = node.installer_image
    assert str(refused.value) == (
        "node: installer_image needs a platform with a patch release, because the image tag contains it, got "
        "Talos('1.12'). Use the release that you run, for example Talos('1.12.11')"
    )
    assert "install" not in node.machine_config[0]["machine"]
    assert "v<release>, because Talos 1.12 has no patch release" in node.side_files()[0].text
    assert node.driver_version is None


@pytest.mark.parametrize("line", ["1.10", "1.11", "1.12", "1.13", "1.14"])
def test_the_four_modules_are_loaded_and_the_sysctl_set_where_it_is_needed(app, line):
    documents = TalosGpuNode(app, "node", platform=Talos(line)).machine_config
    named = documents if line == "1.14" else documents[0]["machine"]["kernel"]["modules"]
    assert [module["name"] for module in named] == ["nvidia", "nvidia_uvm", "nvidia_drm", "nvidia_modeset"]
    has_sysctl = "net.core.bpf_jit_harden: '1'" in yaml.safe_dump_all(documents)
    assert has_sysctl == (line in ("1.10", "1.11", "1.12"))


def test_gdrdrv_is_an_extension_and_a_module(app):
    parameters = KernelModule(name="gdrdrv", parameters=["dbg_enabled=1"])
    node = TalosGpuNode(
        app, "x", platform=Talos("1.13"), kernel_modules=[parameters], extensions=["nvidia-gdrdrv-device"]
    )
    assert "siderolabs/nvidia-gdrdrv-device" in node.extensions
    assert node.machine_config[0]["machine"]["kernel"]["modules"][-1] == parameters.to_dict()
    assert refusal(app, kernel_modules=[parameters]) == (
        "node: kernel_modules must not contain 'gdrdrv' without its extension. Use gdrdrv=True"
    )


def test_the_validators_label_is_provided_where_it_keeps_the_validator_off(app):
    cases = [
        ({"operator_validator": False}, "false"),
        ({"node_labels": {VALIDATOR: "false"}}, "false"),
        ({"node_labels": {VALIDATOR: "true"}}, "true"),
        ({}, None),
    ]
    for version in ("1.12", "1.14"):
        for number, (given, value) in enumerate(cases):
            node = TalosGpuNode(app, f"n{version[2:]}-{number}", platform=Talos(version), **given)
            assert node.provides.gpu_nodes.labels.get(VALIDATOR) == value, (version, given)


def test_invalid_settings_are_rejected_in_one_line(app, rows):
    for given, says in rows:
        assert refusal(app, **given) == says
