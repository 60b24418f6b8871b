"""ComfyUI: images and videos by graphs of nodes."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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
    refuse_flags,
    refuse_variables,
    startup_probe,
    vram_budget,
    with_defaults,
)
from gpu_constructs.tree.construct import checked
from gpu_constructs.workload.options import WorkloadOptions

VramMode = Literal["gpu-only", "highvram", "lowvram", "novram"]

_PORT = 8188
_RESOURCES: Resources = {"requests": {"cpu": "2", "memory": "8Gi"}, "limits": {"memory": "32Gi"}}
_VRAM_FLAGS = ("--gpu-only", "--highvram", "--normalvram", "--lowvram", "--novram", "--cpu")
_KEYWORD_OF = {"--reserve-vram": "reserve_vram", **dict.fromkeys(_VRAM_FLAGS, "vram_mode")}
_FIXED = dict.fromkeys(
    ("--listen", "--port", "--cuda-device", "--tls-keyfile", "--tls-certfile"),
    "Service, probes and the allocated GPU count on the recipe's",
)
_SAFE_IN_A_SHELL = re.compile(r"[-A-Za-z0-9_./:=,@%+]+\Z")


@dataclass(frozen=True, kw_only=True)
class ComfyUILayout(fields.Options):
    """Where an image has ComfyUI, and how it takes flags.

    Attributes:
        base_directory: The folder with ``models``, ``input``, ``output`` and ``custom_nodes``.
        data: Where the disk is mounted; what the image writes and should keep must be below.
        flags_variable: The variable whose words the image's entrypoint appends to ComfyUI's flags. None: flags are
            arguments of the image.
        command: Replaces the image's entrypoint, such as ``["python", "main.py"]``. Empty: the image's.
        listens: Whether the image itself has ComfyUI listen on all addresses, port 8188. ComfyUI's own default is
            127.0.0.1, where no Service and no probe reaches it.
        fills_base_directory: Whether the image copies ComfyUI to ``base_directory`` at the first start, with all its
            folders. It has to be able to write to them then, so read-only mounts there are refused.

    Raises:
        GpuConstructsError: A path that is not absolute, or no name of a variable.
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
"""Images whose layout is known, by repository.

Source: YanWenKun/ComfyUI-Docker:cu130-slim-v2/runner-scripts/entrypoint.sh, July 2026
"""


class ComfyUI(HttpServer):
    """A ComfyUI server with a disk.

    Emits a Deployment of one pod (``Recreate``), a Service and a PersistentVolumeClaim. There is one replica, and no
    keyword for more: the queue is in the memory of the process, and clients must find the results of their own.

    There is no official image, so ``image`` is required. ``docker.io/yanwk/comfyui-boot`` is known; any other needs a
    ``layout``. That image runs as root and copies ComfyUI to ``/root`` at the first start, so its root file system is
    writable and its namespace is of level ``baseline``; capabilities are dropped all the same. With an image for
    another user pass ``run_as_user``, and a namespace of level ``restricted`` takes it.

    ComfyUI asks for no password and runs whatever a custom node contains: keep the Service inside.

    **A budget** (``gpus=GpuRequest(vram=...)``) with the board's memory known becomes ``--reserve-vram``: what it
    leaves to others in GiB, rounded up to a tenth. 16303 MiB of an RTX 5070 Ti less 12288 of ``vram="12Gi"`` is 4015,
    which is 4.0 GiB. ComfyUI subtracts that from what is free, unloads models and computes from memory what does not
    fit; so it is slower rather than refused, and beside a neighbour that has loaded already it takes less than the
    budget.

    Attributes:
        layout: Layout of the image.

    Source:
        comfyanonymous/ComfyUI:comfy/cli_args.py, comfy/model_management.py
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
        """Make the server.

        Args:
            scope: A chart, or a construct in one.
            id: Construct id, and the name unless ``name`` says otherwise.
            image: ``docker.io/yanwk/comfyui-boot:cu130-slim-v2`` (``cu126-slim`` for older drivers) or another. Its
                tags move, so a digest behind them (``@sha256:...``) makes every start the same.
            layout: Where the image has what. None: known from the image's repository.
            vram_mode: ``gpu-only`` keeps everything on the GPU, ``highvram`` models; ``lowvram`` and ``novram`` keep
                less there than ComfyUI would by itself. None: as it sees fit.
            reserve_vram: GiB of the GPU left to others. None: what the budget leaves, else ComfyUI's own 0.4.
            args: Further flags of ComfyUI, like ``--disable-xformers``.
            models: A volume for the models. None: on the disk. With a layout that ``fills_base_directory``, as the
                known image has, the image must be able to write to it: it belongs to the image's user and is not
                read-only. Models that others own are mounted one folder deeper, such as
                ``volumes={"/root/ComfyUI/models/checkpoints/shared": ...}``, which ComfyUI searches too.
            custom_nodes: Likewise for custom nodes.
            input: Likewise for what is uploaded.
            output: Likewise for results.
            storage: Size of the disk.
            storage_class_name: Kind of storage. None: the cluster's default.
            startup_seconds: How long a start may take, the first with its copies and downloads.
            gpu_memory: All memory of a GPU as ``nvidia-smi`` shows it, as a quantity, for the budget. None: that of
                ``request.products``, where they are known.
            run_as_user: User id, and group of the disk. None: the image's own user.
            options: ``gpus`` may be a ``GpuRequest``, whose ``vram`` is wired in as said above. ComfyUI computes on
                one. ``env`` leaves the variable for flags to the recipe. A volume at ``layout.data`` replaces the disk.
                ``resources`` are requests of 2 CPUs and 8Gi and a memory limit of 32Gi by default; what does not fit
                the GPU is kept in memory.

        Raises:
            GpuConstructsError: An image whose layout is not known, a read-only mount where it copies files, a flag that
                has a keyword or that the recipe sets, a word that the entrypoint would take apart, or what
                ``GpuWorkload`` refuses.
        """
        fields.image("image", image)
        where = layout_of(image, layout)
        budget = vram_budget(options.get("gpus"), gpu_memory)
        flags = flags_of(where, vram_mode=vram_mode, reserve_vram=reserve_vram, budget=budget, args=args)
        variable = where.flags_variable
        if variable is not None:
            refuse_variables(options, {variable: "which writes its flags there; pass args=[...]"})
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
            # No liveness probe: a server busy with a model may be slow to answer, and a restart loses the queue.
            readiness_probe=container.Probe.http_get(
                "/system_stats", port="http", timeout_seconds=10, failure_threshold=6
            ),
            run_as_user=run_as_user,
            fs_group=run_as_user or None,
            **given,
        )
        if budget is not None and budget.total_mib is None and reserve_vram is None:
            warn(
                f"{self.node.path}: request.vram of {budget.vram} is not kept by ComfyUI, since the memory of the GPU "
                "is not known; pass gpu_memory, e.g. '16303Mi' as nvidia-smi shows it, or reserve_vram"
            )
        self.layout = where


def layout_of(image: str, given: ComfyUILayout | None) -> ComfyUILayout:
    """Return the layout of an image.

    Raises:
        GpuConstructsError: It is not known.
    """
    if given is not None:
        return given
    repository = re.sub(r"(:[^:/]*)?(@.*)?\Z", "", image)
    for known, layout in LAYOUTS.items():
        if repository == known or repository.endswith(f"/{known}"):
            return layout
    raise GpuConstructsError(
        f"layout is required for an image other than {' or '.join(LAYOUTS)}, got {image!r}; pass "
        "ComfyUILayout(base_directory=..., data=...)"
    )


def _require_writable(layout: ComfyUILayout, mounted: Mapping[str, object]) -> None:
    """Raise if a folder that the image copies is mounted read-only."""
    base = PurePosixPath(layout.base_directory)
    for path, volume in mounted.items():
        where = PurePosixPath(path)
        if not getattr(volume, "read_only", False) or not (base.is_relative_to(where) or where.is_relative_to(base)):
            continue
        inside = where.parts[len(base.parts) :]
        # Deeper than models/<kind> the image has nothing to copy.
        if len(inside) < 2 or (inside[0] == "models" and len(inside) == 2):
            raise GpuConstructsError(
                f"volumes[{path!r}] must not be read-only: the image copies ComfyUI to {layout.base_directory!r} at "
                "the first start, and ends where it cannot; mount it one folder deeper, such as "
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
    """Return the flags of ComfyUI.

    Raises:
        GpuConstructsError: A number that is none, or a flag that fights the recipe's.
    """
    if reserve_vram is not None and not (isfinite(reserve_vram) and 0 <= reserve_vram < 1024):
        raise GpuConstructsError(f"reserve_vram must be GiB from 0 up, below a GPU's memory; got {reserve_vram!r}")
    if reserve_vram is None and budget is not None and budget.rest_mib is not None:
        reserve_vram = -(-10 * budget.rest_mib // 1024) / 10
    credentials.refuse_in_arguments("args", args)
    refuse_flags(args, keyword_of=_KEYWORD_OF, fixed=_FIXED)
    for index, word in enumerate(args):
        if layout.flags_variable is not None and not _SAFE_IN_A_SHELL.match(word):
            raise GpuConstructsError(
                f"args[{index}] must be one word of letters, digits and '-_./:=,@%+', since the image's entrypoint "
                f"takes {layout.flags_variable} apart; got {word!r}"
            )
    return [
        *(() if layout.listens else ("--listen", "0.0.0.0", "--port", str(_PORT))),
        *(() if vram_mode is None else (f"--{vram_mode}",)),
        *(() if reserve_vram is None else ("--reserve-vram", f"{reserve_vram:g}")),
        *args,
    ]
