import pytest

from gpu_constructs import GpuConstructsError, Talos
from gpu_constructs.talos.extensions import gpu_extensions, replacement


def extensions(**given):
    defaults = {
        "platform": Talos("1.12"),
        "kernel_module_type": "open",
        "branch": "production",
        "fabric_manager": False,
        "gdrdrv": False,
        "further": (),
        "gpu_architecture": None,
    }
    return gpu_extensions(**{**defaults, **given})


def refusal(**given):
    with pytest.raises(GpuConstructsError) as refused:
        extensions(**given)
    return str(refused.value)


@pytest.mark.parametrize(
    ("kernel_module_type", "branch", "names"),
    [
        ("open", "production", ("container-toolkit-production", "open-gpu-kernel-modules-production")),
        ("open", "lts", ("container-toolkit-lts", "open-gpu-kernel-modules-lts")),
    ],
)
def test_kernel_modules_and_toolkit_are_of_one_branch(kernel_module_type, branch, names):
    expected = tuple(f"siderolabs/nvidia-{name}" for name in names)
    assert extensions(kernel_module_type=kernel_module_type, branch=branch) == expected


def test_proprietary_modules_are_another_extension():
    assert extensions(kernel_module_type="proprietary", branch="lts") == (
        "siderolabs/nonfree-kmod-nvidia-lts",
        "siderolabs/nvidia-container-toolkit-lts",
    )


def test_everything_is_sorted_and_named_once():
    names = extensions(
        fabric_manager=True,
        gdrdrv=True,
        further=["util-linux-tools", "siderolabs/iscsi-tools", "nvidia-fabricmanager-production", "iscsi-tools"],
    )
    assert names == (
        "siderolabs/iscsi-tools",
        "siderolabs/nvidia-container-toolkit-production",
        "siderolabs/nvidia-fabricmanager-production",
        "siderolabs/nvidia-gdrdrv-device",
        "siderolabs/nvidia-open-gpu-kernel-modules-production",
        "siderolabs/util-linux-tools",
    )


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "nonfree-kmod-nvidia-production",
            "extensions[0] would be the second extension with kernel modules; got 'nonfree-kmod-nvidia-production' "
            "beside 'nvidia-open-gpu-kernel-modules-production'; choose by kernel_module_type",
        ),
        (
            "nvidia-container-toolkit-lts",
            "extensions[0] must be of branch 'production', like the others; got 'nvidia-container-toolkit-lts'",
        ),
        (
            "siderolabs/nvidia-fabricmanager-lts",
            "extensions[0] must be of branch 'production', like the others; got 'siderolabs/nvidia-fabricmanager-lts'",
        ),
        (
            "nvidia-fabricmanager",
            "extensions[0] must end in '-production' or '-lts' since Talos 1.8; got 'nvidia-fabricmanager'; "
            "use 'nvidia-fabricmanager-production' or leave it to fabric_manager=True",
        ),
        (
            "nvidia-fabric-manager-lts",
            "extensions[0] is no NVIDIA extension of Talos; got 'nvidia-fabric-manager-lts' "
            "(did you mean 'nvidia-fabricmanager-lts'?)",
        ),
        (
            "ghcr.io/siderolabs/nonfree-kmod-nvidia:535.154.05-v1.7.6",
            "extensions[0] must be a name, Image Factory picks the version; got the image "
            "'ghcr.io/siderolabs/nonfree-kmod-nvidia:535.154.05-v1.7.6'; use kernel_module_type='proprietary'",
        ),
        (
            "ISCSI tools",
            "extensions[0] must be the name of an official extension like 'siderolabs/iscsi-tools'; got 'ISCSI tools'",
        ),
        (
            "someone/iscsi-tools",
            "extensions[0] must be the name of an official extension like 'siderolabs/iscsi-tools'; "
            "got 'someone/iscsi-tools'",
        ),
    ],
)
def test_an_extension_that_does_not_go_with_the_others_is_refused(name, message):
    assert refusal(further=[name]) == message


@pytest.mark.parametrize("asked", [{"gdrdrv": True}, {"further": ["nvidia-gdrdrv-device"]}])
def test_gdrdrv_is_refused_where_talos_has_no_extension_of_it(asked):
    assert refusal(platform=Talos("1.11"), **asked).startswith(
        "extensions must not hold 'nvidia-gdrdrv-device': Talos 1.11 has none; leave"
    )
    assert "siderolabs/nvidia-gdrdrv-device" in extensions(**asked)


@pytest.mark.parametrize("architecture", ["turing", "ampere", "ada", "hopper"])
@pytest.mark.parametrize("kernel_module_type", ["open", "proprietary"])
@pytest.mark.parametrize("branch", ["lts", "production"])
@pytest.mark.parametrize("line", ["1.10", "1.14"])
def test_from_turing_to_hopper_everything_drives(architecture, kernel_module_type, branch, line):
    assert extensions(
        platform=Talos(line), gpu_architecture=architecture, kernel_module_type=kernel_module_type, branch=branch
    )


def test_blackwell_needs_open_modules():
    assert refusal(gpu_architecture="blackwell", kernel_module_type="proprietary") == (
        "kernel_module_type must be 'open' for gpu_architecture 'blackwell', which the other kernel modules do not "
        "drive; got 'proprietary'"
    )
    assert extensions(gpu_architecture="blackwell")


def test_blackwell_needs_a_branch_that_knows_it():
    assert refusal(platform=Talos("1.11"), gpu_architecture="blackwell", branch="lts") == (
        "branch must drive gpu_architecture 'blackwell'; got 'lts', which is driver 535 on Talos 1.11; "
        "use branch 'production'"
    )
    assert extensions(platform=Talos("1.12"), gpu_architecture="blackwell", branch="lts")


@pytest.mark.parametrize("architecture", ["maxwell", "pascal", "volta"])
def test_before_turing_only_proprietary_modules_of_a_branch_until_580_drive(architecture):
    old = {"gpu_architecture": architecture, "kernel_module_type": "proprietary"}
    assert "must be 'proprietary'" in refusal(gpu_architecture=architecture)
    assert extensions(platform=Talos("1.12"), **old)
    assert refusal(platform=Talos("1.13"), **old) == (
        f"branch must drive gpu_architecture {architecture!r}; got 'production', which is driver 595 on Talos 1.13; "
        "use branch 'lts'"
    )
    assert extensions(platform=Talos("1.13"), branch="lts", **old)


@pytest.mark.parametrize(
    ("image", "keyword"),
    [
        (
            "ghcr.io/siderolabs/nvidia-container-toolkit:535.154.05-v1.14.6",
            "branch='lts' or branch='production' (which brings the toolkit too)",
        ),
        ("ghcr.io/siderolabs/nonfree-kmod-nvidia:535.154.05-v1.7.6", "kernel_module_type='proprietary'"),
        (
            f"localhost:5000/siderolabs/nvidia-open-gpu-kernel-modules-lts@sha256:{'0' * 64}",
            "kernel_module_type='open'",
        ),
        ("ghcr.io/siderolabs/nvidia-fabricmanager:535", "fabric_manager=True"),
        ("ghcr.io/siderolabs/nvidia-gdrdrv-device:v2.5.1", "gdrdrv=True"),
        ("ghcr.io/siderolabs/iscsi-tools:v0.1.4", "extensions=['siderolabs/iscsi-tools']"),
    ],
)
def test_an_image_of_the_old_way_has_a_keyword(image, keyword):
    assert replacement(image) == keyword
