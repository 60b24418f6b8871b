import pytest
import yaml

import refusals
from gpu_constructs import App, GpuConstructsError, Talos, TalosGpuNode, TalosSchematic
from gpu_constructs.talos.installer import (
    driver_branch,
    driver_version,
    newest_known_release,
    replacement,
)


def test_a_release_ships_one_driver_of_each_branch(rows):
    for release, lts, production in rows:
        assert driver_version(Talos(release), "lts") == lts, release
        assert driver_version(Talos(release), "production") == production, release


def test_the_driver_of_a_line_or_of_an_unknown_release_is_not_guessed():
    for release in ("1.12", "1.12.12", "1.14.0", "1.14.0-rc.0", "1.14.0-rc.2", "1.12.4-rc.1"):
        assert driver_version(Talos(release), "production") is None, release


def test_every_line_has_branches_and_a_release_to_name():
    assert [driver_branch(Talos("1.12"), branch) for branch in ("lts", "production")] == [580, 570]
    assert newest_known_release(Talos("1.12")) == "1.12.11"
    for line in ("1.10", "1.11", "1.12", "1.13", "1.14"):
        newest = Talos(newest_known_release(Talos(line)))
        assert newest.line == line
        assert driver_version(newest, "lts").startswith(str(driver_branch(newest, "lts"))), line


def extensions(version="1.12", **given):
    names = TalosGpuNode(App(), "node", platform=Talos(version), **given).extensions
    return [name.removeprefix("siderolabs/") for name in names]


def refusal(version="1.12", **given):
    return refusals.refusal(extensions, version, **given).removeprefix("node: ")


def test_kernel_modules_and_toolkit_are_of_one_branch():
    assert extensions() == ["nvidia-container-toolkit-production", "nvidia-open-gpu-kernel-modules-production"]
    assert extensions(branch="lts") == ["nvidia-container-toolkit-lts", "nvidia-open-gpu-kernel-modules-lts"]
    proprietary = extensions(kernel_module_type="proprietary", branch="lts")
    assert proprietary == ["nonfree-kmod-nvidia-lts", "nvidia-container-toolkit-lts"]


def test_an_extension_that_conflicts_with_others_is_rejected(rows):
    for name, says in rows:
        assert refusal(extensions=[name]) == says


@pytest.mark.parametrize("asked", [{"gdrdrv": True}, {"extensions": ["nvidia-gdrdrv-device"]}])
def test_gdrdrv_is_refused_where_talos_has_no_extension_of_it(asked):
    assert refusal("1.11", **asked).startswith(
        "extensions must not contain 'nvidia-gdrdrv-device', which Talos 1.11 does not have. Leave"
    )
    assert "nvidia-gdrdrv-device" in extensions(**asked)


def test_every_driver_supports_turing_to_hopper():
    for architecture in ("turing", "ampere", "ada", "hopper"):
        for version in ("1.10", "1.14"):
            for branch in ("lts", "production"):
                for modules in ("open", "proprietary"):
                    given = {"kernel_module_type": modules, "branch": branch}
                    assert extensions(version, gpu_architecture=architecture, **given)


def test_blackwell_needs_open_modules_of_a_branch_that_supports_it():
    assert refusal(gpu_architecture="blackwell", kernel_module_type="proprietary") == (
        "kernel_module_type must be 'open' for gpu_architecture 'blackwell', because the other kernel modules do not "
        "support it, got 'proprietary'"
    )
    assert refusal("1.11", gpu_architecture="blackwell", branch="lts") == (
        "branch must support gpu_architecture 'blackwell', got 'lts', which is driver 535 on Talos 1.11. "
        "Use branch 'production'"
    )
    assert extensions(gpu_architecture="blackwell", branch="lts")
    assert extensions(gpu_architecture="blackwell")


@pytest.mark.parametrize("architecture", ["maxwell", "pascal", "volta"])
def test_before_turing_only_proprietary_modules_up_to_branch_580_work(architecture):
    old = {"gpu_architecture": architecture, "kernel_module_type": "proprietary"}
    assert "must be 'proprietary'" in refusal(gpu_architecture=architecture)
    assert extensions(**old)
    assert extensions("1.13", branch="lts", **old)
    assert refusal("1.13", **old) == (
        f"branch must support gpu_architecture {architecture!r}, got 'production', which is driver 595 on Talos 1.13. "
        "Use branch 'lts'"
    )


def test_an_extension_image_has_a_keyword_instead(rows):
    for image, keyword in rows:
        assert replacement(f"localhost:5000/siderolabs/{image}") == keyword


# Extensions, kernel arguments and the ID, from siderolabs/image-factory@v1.5.0:pkg/schematic/schematic_test.go, from
# published results of factory.talos.dev, and from the YAML writer of the factory.


def schematic(extensions="", arguments=""):
    names = [f"siderolabs/{name}" for name in extensions.split()]
    return TalosSchematic(official_extensions=names, extra_kernel_args=arguments.split())


def test_the_identifier_is_the_factorys(rows):
    for extensions, arguments, identifier in rows:
        assert schematic(extensions, arguments).id == identifier, (extensions, arguments)


def test_the_canonical_text_is_indented_by_four_and_keeps_the_order():
    assert schematic("gvisor iscsi-tools", "quiet -console ip=::::host::dhcp:").to_yaml() == (
        "customization:\n"
        "    extraKernelArgs:\n"
        "        - quiet\n"
        "        - -console\n"
        "        - 'ip=::::host::dhcp:'\n"
        "    systemExtensions:\n"
        "        officialExtensions:\n"
        "            - siderolabs/gvisor\n"
        "            - siderolabs/iscsi-tools\n"
    )


def test_a_kernel_argument_is_read_back_as_it_was_given():
    arguments = """console=ttyS0,115200n8 ip=::::host::dhcp: it's: a#b a:b x=[1] iommu=on a=~ net.ifnames=0 _ -quiet
        8250.nr_uarts=4 -8250.nr_uarts=4 1=2 2001-12-14= 1e5=:"""
    made = schematic(arguments=arguments)
    assert yaml.safe_load(made.to_yaml()) == made.to_dict()
    assert made.to_dict() == {"customization": {"extraKernelArgs": arguments.split()}}


UNCERTAIN = [
    *("", "a b", "a: b", "a #b", "on", "No", "null", "1", "0x10", "-1", "1e5", "1:20", "2001-12-14"),
    *("8250.nr_uarts", "#a", "--a", "ä", "a\n"),
]


def test_a_kernel_argument_whose_text_is_not_certain_is_refused():
    for argument in UNCERTAIN:
        with pytest.raises(
            GpuConstructsError, match=r"^extra_kernel_args must contain one kernel argument in each"
        ) as refused:
            TalosSchematic(extra_kernel_args=[argument])
        assert f", got {argument!r}. Write name=value" in str(refused.value)


def test_an_invalid_extension_name_is_rejected():
    for name in ("gvisor", "siderolabs/g visor", "siderolabs/gvisor:v1", "ghcr.io/siderolabs/gvisor"):
        with pytest.raises(GpuConstructsError, match=r"^schematic.official_extensions must contain names like"):
            TalosSchematic(official_extensions=[name])
