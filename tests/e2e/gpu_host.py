"""A node with GPUs: its device nodes, its driver, and the driver's files as its platform lays them out."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from assets import Nvidia
from container import Host, Image
from gpu_constructs import GpuNode, Kubernetes, Talos
from gpu_constructs.catalog.platforms import Platform
from mock_driver import DRIVER, MockDriver, boards_of

_LIBRARIES = ("libnvidia-ml.so", "libcuda.so", "libnvidia-ptxjitcompiler.so")
_CONTROL_NODES = ("nvidiactl", "nvidia-modeset", "nvidia-uvm", "nvidia-uvm-tools")


def layout(platform: Platform) -> tuple[str, str, Mapping[str, str]]:
    """Return where a platform has libraries and programs of the driver, and symbolic links to these folders.

    siderolabs/extensions@v1.12.11 and @v1.13.0: nvidia-gpu/nvidia-container-toolkit; elsewhere a package of Debian.
    """
    if isinstance(platform, Kubernetes):
        return "usr/lib/x86_64-linux-gnu", "usr/bin", {}
    if platform.line in ("1.10", "1.11", "1.12"):
        return "usr/local/glibc/usr/lib", "usr/local/bin", {}
    return "usr/local/lib", "usr/local/bin", {"usr/local/lib64": "lib"}


def gpu_host(
    folder: Path,
    nvidia: Nvidia,
    image: Image,
    node: GpuNode,
    platform: Platform,
    *,
    tools: Mapping[str, str] | None = None,
) -> Host:
    """Return a node of an inventory. On a platform other than Talos NVIDIA's runtime is the default one.

    Args:
        folder: An empty folder.
        nvidia: Where the mock of NVML is.
        image: Image of all containers.
        node: The GPUs.
        platform: Decides where files are.
        tools: Programs of the driver beside nvidia-smi, as scripts; in the node and in containers.
    """
    library, boards = nvidia.folder / "libnvidia-ml.so.1", boards_of(node)
    driver = MockDriver(folder / "driver", library, boards)
    default = "" if isinstance(platform, Talos) else "nvidia"
    tools = {"nvidia-smi": (driver.files() / "bin/nvidia-smi").read_text(), **(tools or {})}
    host = Host(folder / "node", image, driver=driver, tools=tools, default_runtime=default)
    libraries, programs, links = layout(platform)
    for name in _LIBRARIES:
        host.place(f"{libraries}/{name}.{DRIVER}", library if "nvidia-ml" in name else "")
        (host.root / libraries / f"{name}.1").symlink_to(f"{name}.{DRIVER}")
    for name, script in tools.items():
        host.place(f"{programs}/{name}", script).chmod(0o755)
    # The toolkit, whose hooks CDI specifications name: by a link on Talos, by its package on Debian.
    host.place("usr/bin/nvidia-ctk")
    for link, target in links.items():
        (host.root / link).symlink_to(target)
    minors = (driver.proc() / "nvidia-caps/mig-minors").read_text().split()[1::2]
    for name in (*_CONTROL_NODES, *(f"nvidia{number}" for number in range(len(boards)))):
        host.place(f"dev/{name}")
    for minor in minors:
        host.place(f"dev/nvidia-caps/nvidia-cap{minor}")
    return host
