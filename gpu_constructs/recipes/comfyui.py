"""`ComfyUI`: a server that generates images and videos with graphs of processing steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite
from pathlib import PurePosixPath
from typing import ClassVar, Literal, Unpack

from constructs import Construct

from gpu_constructs.errors import GpuConstructsError, warn
from gpu_constructs.kube import container, credentials, fields
from gpu_constructs.kube.resources import Resources
from gpu_constructs.kube.volume import Mountable, VolumeClaim
from gpu_constructs.recipes.http_server import (
    HttpServer,
    VramBudget,
    is_image_of,
    refuse_flags,
    refuse_variables,
    startup_probe,
    vram_budget,
    with_defaults,
)
from gpu_constructs.records import dataclass, regex
from gpu_constructs.tree.construct import checked
from gpu_constructs.workload.options import WorkloadOptions

VramMode = Literal["gpu-only", "highvram", "lowvram", "novram"]

_PORT = 8188
_RESOURCES: Resources = {"requests": {"cpu": "2", "memory": "8Gi"}, "limits": {"memory": "32Gi"}}
_VRAM_FLAGS = ("--gpu-only", "--highvram", "--normalvram", "--lowvram", "--novram", "--cpu")
_KEYWORD_OF = {"--reserve-vram": "reserve_vram", **dict.fromkeys(_VRAM_FLAGS, "vram_mode")}
_FIXED = dict.fromkeys(
    ("--listen", "--port", "--cuda-device", "--tls-keyfile", "--tls-certfile"),
    "the Service, the probes or the allocated GPU depend on the value that the recipe sets",
)
_SAFE_IN_A_SHELL = regex(r"[-A-Za-z0-9_./:=,@%+]+\Z")


@dataclass(frozen=True, kw_only=True)
class ComfyUILayout(fields.Options):
    """The folders of a container image of ComfyUI, and the method by which the image gets command-line flags.

    Attributes:
        base_directory: Path of the folder with ``models``, ``input``, ``output`` and ``custom_nodes``.
        data: Mount path of the disk that ``ComfyUI`` creates. All files that must survive a restart must be below this
            path.
        flags_variable: Name of an environment variable. The entrypoint of the image appends the words in this variable
            to the flags of ComfyUI. None: the recipe passes the flags as arguments of the container.
        command: Command that replaces the entrypoint, such as ``["python", "main.py"]``. Empty: the entrypoint of the
            image.
        listens: Whether ComfyUI in the image listens on port 8188 of all addresses. If False, the recipe sets flags for
            this, because by default ComfyUI listens on 127.0.0.1, which Services and probes cannot reach.
        fills_base_directory: Whether the image copies ComfyUI and its folders to ``base_directory`` at the first start.
            The recipe then rejects read-only mounts in this folder, because the image must be able to write to it.

    Raises:
        GpuConstructsError: If a path is not absolute, or ``flags_variable`` is not a valid name.
    """

    base_directory: str
    data: str
    flags_variable: str | None = None
    command: Sequence[str] = ()
    listens: bool = False
    fills_base_directory: bool = False

    _NAME: ClassVar[str] = "layout"
    _CHECKS: ClassVar[fields.Checks] = {
        "base_directory": fields.absolute_path,
        "data": fields.absolute_path,
        "flags_variable": fields.environment_name,
    }


LAYOUTS: Mapping[str, ComfyUILayout] = {
    "yanwk/comfyui-boot": ComfyUILayout(
        base_directory="/root/ComfyUI",
        data="/root",
        flags_variable="CLI_ARGS",
        listens=True,
        fills_base_directory=True,
    )
}
"""Layouts of known container images of ComfyUI, by repository of the image.

Source: YanWenKun/ComfyUI-Docker:cu130-slim-v2/runner-scripts/entrypoint.sh, July 2026
"""


class ComfyUI(HttpServer):
    """A ComfyUI server with a disk, which generates images and videos.

    Emits a Deployment of one pod with the strategy ``Recreate``, a Service and a PersistentVolumeClaim. There is always
    exactly one replica: each process has its own queue in memory, so clients would not find their results on another
    replica.

    ComfyUI has no official image, so ``image`` has no default. The library knows the layout of
    ``docker.io/yanwk/comfyui-boot``. Any other image needs a ``layout``. The image ``yanwk/comfyui-boot`` runs as root
    and copies ComfyUI to ``/root`` at the first start. The root file system of its container is therefore writable, and
    the namespace needs the Pod Security level ``baseline``. The container still drops all capabilities. If your image
    does not run as root, set ``run_as_user``. The pods then satisfy the level ``restricted``.

    ComfyUI has no login and runs the code of each custom node. Do not expose the Service outside of the cluster.

    **A memory budget** (``gpus=GpuRequest(vram=...)``) becomes the flag ``--reserve-vram`` if the library knows the
    memory of the board. The value of the flag is the memory that the budget leaves to other pods, in GiB, rounded up to
    a tenth. For example, an RTX 5070 Ti has 16303 MiB. With ``vram="12Gi"`` (12288 MiB), 4015 MiB remain, so the value
    is 4.0. ComfyUI subtracts this value from the free memory of the GPU, and uses the rest. If the models need more
    than the rest, ComfyUI moves a part of them to main memory. The pod then becomes slower, but does not fail. If
    another pod already uses memory of the board, ComfyUI uses less than its budget.

    Attributes:
        layout: Layout of the image.

    Source: comfyanonymous/ComfyUI:comfy/cli_args.py, comfy/model_management.py
    """

    @checked
    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        image: str,
        layout: ComfyUILayout | None = None,
        vram_mode: VramMode | None = None,
        reserve_vram: int | float | None = None,
        args: Sequence[str] = (),
        models: Mountable | None = None,
        custom_nodes: Mountable | None = None,
        input: Mountable | None = None,  # noqa: A002
        output: Mountable | None = None,
        storage: str = "100Gi",
        storage_class_name: str | None = None,
        startup_seconds: int = 1200,
        gpu_memory: str | None = None,
        run_as_user: int | None = None,
        **options: Unpack[WorkloadOptions],
    ) -> None:
        """Create the objects of the server.

        Args:
            scope: Chart, or a construct in a chart.
            id: ID of the construct. It is also the name of the objects, unless you set ``name``.
            image: Image of ComfyUI, such as ``docker.io/yanwk/comfyui-boot:cu130-slim-v2`` (``cu126-slim`` for older
                NVIDIA drivers). The content behind the tags of this image changes. To pin the content, append a digest
                (``@sha256:...``).
            layout: Paths and flags of the image. None: the layout that the library knows for the repository.
            vram_mode: Memory strategy of ComfyUI. ``gpu-only`` stores all data on the GPU, and ``highvram`` only the
                models. ``lowvram`` and ``novram`` store less data on the GPU. None: the default of ComfyUI.
            reserve_vram: Memory of the GPU that ComfyUI leaves to other processes, in GiB. None: the memory of the GPU
                that exceeds the memory budget. Without a budget, 0.4, the default of ComfyUI.
            args: Flags of ComfyUI to add, such as ``--disable-xformers``.
            models: Volume for the models. None: a folder of the disk. If the layout has
                ``fills_base_directory``, as for ``yanwk/comfyui-boot``, this volume must be writable. Use the
                option ``volumes`` for a read-only volume, and mount it deeper in the folder of the models. For example,
                ComfyUI also searches ``/root/ComfyUI/models/checkpoints/shared``.
            custom_nodes: Volume for custom nodes. None: a folder of the disk.
            input: Volume for uploads. None: a folder of the disk.
            output: Volume for results. None: a folder of the disk.
            storage: Size of the disk, as a quantity.
            storage_class_name: Name of the StorageClass of the disk. None: the default of the cluster.
            startup_seconds: Time that the server may need to start, in seconds. At the first start, the image can copy
                and download files.
            gpu_memory: Memory of one whole GPU, as ``nvidia-smi`` shows it, such as ``16303Mi``. The recipe needs this
                value only for a memory budget (``vram``). None: the memory of the largest board in
                ``GpuRequest(products=...)``, if the library knows each of these boards.
            run_as_user: User ID of the processes and group ID of the disk. None: the user of the image.
            options: Options of ``GpuWorkload``. For this recipe:

                - ``gpus`` can be a ``GpuRequest``, whose ``vram`` is the memory budget. ComfyUI computes on one GPU.
                - ``env`` must not contain ``layout.flags_variable``.
                - A volume at the path ``layout.data`` in ``volumes`` replaces the disk.
                - ``resources`` by default request 2 CPUs and 8Gi, with a memory limit of 32Gi. Models that do not fit
                  on the GPU stay in main memory.

        Raises:
            GpuConstructsError: If the library does not know the layout of the image, or if the user mounts a volume
                read-only although the image copies files to it. Also raised if ``args`` contains a flag that a keyword
                or the recipe sets, the entrypoint would split an argument, or ``GpuWorkload`` rejects an option.
        """
        fields.image("image", image)
        where = layout_of(image, layout)
        budget = vram_budget(options.get("gpus"), gpu_memory)
        flags = flags_of(where, vram_mode=vram_mode, reserve_vram=reserve_vram, budget=budget, args=args)
        variable = where.flags_variable
        if variable is not None:
            refuse_variables(options, {variable: "the variable contains the flags of ComfyUI. Pass args=[...]"})
        folders = {"models": models, "custom_nodes": custom_nodes, "input": input, "output": output}
        given = with_defaults(
            options,
            env={variable: " ".join(flags)} if variable is not None and flags else {},
            volumes={
                where.data: VolumeClaim(storage=storage, storage_class_name=storage_class_name),
                **{f"{where.base_directory}/{name}": one for name, one in folders.items() if one is not None},
            },
            resources=_RESOURCES,
        )
        if where.fills_base_directory:
            _require_writable(where, given["volumes"])
        super().__init__(
            scope,
            id,
            image=image,
            command=where.command,
            args=() if variable is not None else flags,
            ports={"http": _PORT},
            startup_probe=startup_probe("/system_stats", startup_seconds),
            # There is no liveness probe: a server that loads a model can answer late, and a restart would lose the
            # queue.
            readiness_probe=container.Probe.http_get(
                "/system_stats", port="http", timeout_seconds=10, failure_threshold=6
            ),
            run_as_user=run_as_user,
            fs_group=run_as_user or None,
            **given,
        )
        if budget is not None and budget.total_mib is None and reserve_vram is None:
            warn(
                f"{self.node.path}: request.vram of {budget.vram} has no effect on ComfyUI, because the library does "
                "not know the memory of the GPU. Set gpu_memory, such as '16303Mi' from nvidia-smi, or reserve_vram"
            )
        self.layout = where


def layout_of(image: str, given: ComfyUILayout | None) -> ComfyUILayout:
    """Return the layout of an image of ComfyUI.

    Args:
        image: Image of ComfyUI.
        given: Layout that the user sets. If None, the function returns the layout in ``LAYOUTS`` for the repository.

    Raises:
        GpuConstructsError: The user sets no layout, and ``LAYOUTS`` does not contain the repository.
    """
    if given is not None:
        return given
    for known, layout in LAYOUTS.items():
        if is_image_of(image, known):
            return layout
    raise GpuConstructsError(
        f"layout must have a value for an image other than {' or '.join(LAYOUTS)}, got {image!r}. Pass "
        "ComfyUILayout(base_directory=..., data=...)"
    )


def _require_writable(layout: ComfyUILayout, mounted: Mapping[str, object]) -> None:
    """Raise an error for a read-only volume at a path to which the image copies files.

    Args:
        layout: Layout of the image.
        mounted: Volumes by mount path.
    """
    base = PurePosixPath(layout.base_directory)
    for path, volume in mounted.items():
        where = PurePosixPath(path)
        if not getattr(volume, "read_only", False) or not (base.is_relative_to(where) or where.is_relative_to(base)):
            continue
        inside = where.parts[len(base.parts) :]
        # The image copies nothing into the folders below models/<kind>.
        if len(inside) < 2 or (inside[0] == "models" and len(inside) == 2):
            raise GpuConstructsError(
                f"volumes[{path!r}] must allow writes: the image copies ComfyUI to {layout.base_directory!r} at "
                "the first start, and fails if it cannot. Mount the volume one folder deeper, such as "
                f"{f'{layout.base_directory}/models/checkpoints/shared'!r}, which ComfyUI searches too"
            )


def flags_of(
    layout: ComfyUILayout,
    *,
    vram_mode: VramMode | None,
    reserve_vram: float | None,
    budget: VramBudget | None,
    args: Sequence[str],
) -> list[str]:
    """Return the command-line flags of ComfyUI for the keywords of the recipe.

    ``budget`` is the memory budget of the pod, and ``ComfyUI`` describes the other arguments.

    Raises:
        GpuConstructsError: A number is out of range, or ``args`` contains a flag that has its own keyword or that the
            recipe sets.
    """
    if reserve_vram is not None and not (isfinite(reserve_vram) and 0 <= reserve_vram < 1024):
        raise GpuConstructsError(f"reserve_vram must be from 0 to the memory of a GPU, in GiB, got {reserve_vram!r}")
    if reserve_vram is None and budget is not None and budget.rest_mib is not None:
        reserve_vram = -(-10 * budget.rest_mib // 1024) / 10
    credentials.refuse_in_arguments("args", args)
    refuse_flags(args, keyword_of=_KEYWORD_OF, fixed=_FIXED)
    for index, word in enumerate(args):
        if layout.flags_variable is not None and not _SAFE_IN_A_SHELL.match(word):
            raise GpuConstructsError(
                f"args[{index}] must be one word of letters, digits and '-_./:=,@%+', because the entrypoint of the "
                f"image splits {layout.flags_variable}, got {word!r}"
            )
    return [
        *(() if layout.listens else ("--listen", "0.0.0.0", "--port", str(_PORT))),
        *(() if vram_mode is None else (f"--{vram_mode}",)),
        *(() if reserve_vram is None else ("--reserve-vram", f"{reserve_vram:g}")),
        *args,
    ]
