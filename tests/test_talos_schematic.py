import hashlib

import pytest
import yaml

from gpu_constructs import GpuConstructsError
from gpu_constructs.talos.schematic import TalosSchematic, canonical_yaml

EMPTY = "376567988ad370138ad8b2698212367b8edcb69b5fd68c80be1f2ec7d603b4ba"


def sidero(*names):
    return [f"siderolabs/{name}" for name in names]


@pytest.mark.parametrize(
    ("document", "identifier"),
    [
        # siderolabs/image-factory@v1.5.0:pkg/schematic/schematic_test.go
        ({"customization": {}}, EMPTY),
        (
            {"customization": {"extraKernelArgs": ["noapic", "nolapic"]}},
            "9cba8e32753f91a16c1837ab8abf356af021706ef284aef07380780177d9a06c",
        ),
        (
            {"customization": {"meta": [{"key": 10, "value": "foo"}]}},
            "d308a2a5ee2277bed5fbaa104fcbc8d59122abfa737df987a95b4ca763459a7f",
        ),
        (
            {"customization": {"secureboot": {"includeWellKnownCertificates": True}}},
            "fa8e05f142a851d3ee568eb0a8e5841eaf6b0ebc8df9a63df16ac5ed2c04f3e6",
        ),
        (
            {"customization": {"diskImage": {"sectorSize": 4096}}},
            "92833e9ddd9bb9e11b2464fa5525429f01866306d52ebd882ee08d7918f6d1ea",
        ),
        (
            {
                "overlay": {"image": "siderolabs/sbc-raspberrypi", "name": "rpi_generic"},
                "customization": {},
            },
            "ee21ef4a5ef808a9b7484cc0dda0f25075021691c8c09a276591eedb638ea1f9",
        ),
    ],
)
def test_the_factorys_own_examples_have_the_factorys_identifiers(document, identifier):
    text = canonical_yaml(document)
    assert hashlib.sha256(text.encode()).hexdigest() == identifier
    assert yaml.safe_load(text) == document


@pytest.mark.parametrize(
    ("extensions", "arguments", "identifier"),
    [
        ((), (), EMPTY),
        ((), ("noapic", "nolapic"), "9cba8e32753f91a16c1837ab8abf356af021706ef284aef07380780177d9a06c"),
        # What factory.talos.dev gave to others for these.
        ((), ("talos.config=metal-iso",), "d0b273850841b13d0193fbfb0597bac2ca30387b8a0797a43238ecafc72ed329"),
        (
            sidero("nvidia-container-toolkit-production", "nvidia-open-gpu-kernel-modules-production"),
            (),
            "6698d6f136c5bb37ca8bb8482c9084305084da0a5ead1f4dcae760796f8ab3a2",
        ),
        (
            sidero(
                *("i915", "intel-ucode", "iscsi-tools", "util-linux-tools", "nfs-utils", "qemu-guest-agent"),
                "tailscale",
            ),
            (),
            "bb2bf97151447e3e0b8e3b0726805f1050a59e4e780b366211ba71bc19c07a7c",
        ),
        # The three other pairs, computed with the same writer.
        (
            sidero("nvidia-container-toolkit-lts", "nvidia-open-gpu-kernel-modules-lts"),
            (),
            "86a5d7c9beb23b4aea2777e44ca06c8c2ceea8a874ccd2b9a6743c4f734329e0",
        ),
        (
            sidero("nonfree-kmod-nvidia-production", "nvidia-container-toolkit-production"),
            (),
            "26124abcbd408be693df9fe852c80ef1e6cc178e34d7d7d8430a28d1130b4227",
        ),
        (
            sidero("nonfree-kmod-nvidia-lts", "nvidia-container-toolkit-lts"),
            (),
            "af8eb82417d3deaa94d2ef19c3b590b0dac1b2549d0b9b35b3da2bc325de75f7",
        ),
    ],
)
def test_the_identifier_is_the_factorys(extensions, arguments, identifier):
    assert TalosSchematic(official_extensions=extensions, extra_kernel_args=arguments).id == identifier


def test_the_canonical_text_is_indented_by_four():
    schematic = TalosSchematic(official_extensions=["siderolabs/gvisor"], extra_kernel_args=["quiet", "-console"])
    assert schematic.to_yaml() == (
        "customization:\n"
        "    extraKernelArgs:\n"
        "        - quiet\n"
        "        - -console\n"
        "    systemExtensions:\n"
        "        officialExtensions:\n"
        "            - siderolabs/gvisor\n"
    )


def test_the_order_counts():
    names = ["siderolabs/gvisor", "siderolabs/iscsi-tools"]
    assert TalosSchematic(official_extensions=names).id != TalosSchematic(official_extensions=names[::-1]).id


@pytest.mark.parametrize(
    "argument",
    [
        "console=ttyS0,115200n8",
        "ip=::::host::dhcp:",
        "it's:",
        "a#b",
        "a:b",
        "x=[1]",
        "iommu=on",
        "a=~",
        "net.ifnames=0",
        "_",
        "-quiet",
        "8250.nr_uarts=4",
        "-8250.nr_uarts=4",
        "1=2",
        "2001-12-14=",
        "1e5=:",
    ],
)
def test_a_kernel_argument_is_read_back_as_it_was_given(argument):
    schematic = TalosSchematic(extra_kernel_args=[argument])
    assert yaml.safe_load(schematic.to_yaml()) == schematic.to_dict()


def test_a_last_colon_is_quoted_as_the_factory_quotes_it():
    assert "        - 'ip=::::host::dhcp:'\n" in TalosSchematic(extra_kernel_args=["ip=::::host::dhcp:"]).to_yaml()


@pytest.mark.parametrize(
    "argument",
    [
        "",
        "a b",
        "a: b",
        "a #b",
        "on",
        "No",
        "null",
        "1",
        "0x10",
        "-1",
        "1e5",
        "1:20",
        "2001-12-14",
        "8250.nr_uarts",
        "#a",
        "--a",
        "ä",
        "a\n",
    ],
)
def test_a_kernel_argument_whose_text_is_not_certain_is_refused(argument):
    with pytest.raises(
        GpuConstructsError, match=r"^extra_kernel_args must hold one kernel argument in each item"
    ) as error:
        TalosSchematic(extra_kernel_args=[argument])
    assert str(error.value).endswith(f"got {argument!r}")


@pytest.mark.parametrize("name", ["gvisor", "siderolabs/g visor", "siderolabs/gvisor:v1", "ghcr.io/siderolabs/gvisor"])
def test_a_name_that_is_no_extension_is_refused(name):
    with pytest.raises(GpuConstructsError, match=r"^schematic.official_extensions must hold names like"):
        TalosSchematic(official_extensions=[name])
