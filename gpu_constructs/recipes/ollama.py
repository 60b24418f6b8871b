"""Ollama: a server of language models, and the Job that pulls them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from math import ceil
from typing import Any, Literal

from cdk8s import ApiObject
from constructs import Construct

from gpu_constructs import _durations, _fields, _references
from gpu_constructs._config_map import sha256
from gpu_constructs._construct import checked
from gpu_constructs._container_security import POD
from gpu_constructs._labels import object_labels, selector_labels
from gpu_constructs._manifest import Manifest
from gpu_constructs._references import NamedObject
from gpu_constructs._resources import Resources
from gpu_constructs.errors import GpuConstructsError, warn
from gpu_constructs.placement import GPU_TAINT, Toleration
from gpu_constructs.platforms import DEFAULT_PLATFORM, Platform
from gpu_constructs.recipes.http_server import HttpServer
from gpu_constructs.recipes.vram_budget import VramBudget, is_shared, vram_budget
from gpu_constructs.workload.container import Container
from gpu_constructs.workload.env import VISIBLE_DEVICES, AnyEnvValue
from gpu_constructs.workload.gpu_profile import GpuProfile
from gpu_constructs.workload.probe import Probe
from gpu_constructs.workload.volume import Mountable, Mounts, Volume
from gpu_constructs.workload.volume_claim import VolumeClaim
from gpu_constructs.workload.workload import Gpus

IMAGE = "docker.io/ollama/ollama:0.32.15"

_PORT = 11434
_DATA = "/data"
_RESOURCES: Resources = {"requests": {"cpu": "1", "memory": "4Gi"}, "limits": {"memory": "24Gi"}}
_PULL_RESOURCES: Resources = {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "512Mi"}}
_SMALLEST_CONTEXT = 4096
_RESERVED = ("HOME", "OLLAMA_HOST", "OLLAMA_MODELS")

_VARIABLES = {
    "context_length": "OLLAMA_CONTEXT_LENGTH",
    "flash_attention": "OLLAMA_FLASH_ATTENTION",
    "fit_target": "LLAMA_ARG_FIT_TARGET",
    "gpu_overhead": "OLLAMA_GPU_OVERHEAD",
    "keep_alive": "OLLAMA_KEEP_ALIVE",
    "kv_cache_type": "OLLAMA_KV_CACHE_TYPE",
    "load_timeout": "OLLAMA_LOAD_TIMEOUT",
    "max_loaded_models": "OLLAMA_MAX_LOADED_MODELS",
    "max_queue": "OLLAMA_MAX_QUEUE",
    "num_parallel": "OLLAMA_NUM_PARALLEL",
    "origins": "OLLAMA_ORIGINS",
}
_COUNTS = ("context_length", "max_loaded_models", "max_queue", "num_parallel")
_DURATIONS = ("keep_alive", "load_timeout")
_UNITS = {"fit_target": 1024 * 1024, "gpu_overhead": 1}

# ollama/ollama@v0.32.15:types/model/name.go
_HOST = r"[A-Za-z0-9_][-A-Za-z0-9_.:]{0,349}"
_NAMESPACE = r"[A-Za-z0-9_][-A-Za-z0-9_]{0,79}"
_PART = r"[A-Za-z0-9_][-A-Za-z0-9_.]{0,79}"
_MODEL = re.compile(rf"(?:(?:{_HOST}/)?{_NAMESPACE}/)?{_PART}(?::{_PART})?\Z")
_SECONDS = re.compile(r"-?[0-9]{1,9}\Z")

_PULL = """until ollama list > /dev/null 2>&1; do
  echo "waiting for $OLLAMA_HOST"
  sleep 5
done
for model in "$@"; do
  echo "pulling $model"
  ollama pull "$model"
done
"""


class Ollama(HttpServer):
    """An Ollama server with a disk for its models.

    Emits a Deployment of one pod (``Recreate``), a Service, a PersistentVolumeClaim and, where ``models`` are named, a
    Job that has the server pull them. The pod runs as a user other than root on a read-only root, with ``HOME`` and the
    models on the disk, so a namespace of level ``restricted`` takes it.

    **The Job** runs in the same image without a GPU, on any node that ``tolerations`` and ``node_selector`` leave,
    waits until the server answers and runs ``ollama pull`` for one model after the other. Kubernetes lets nobody change
    a Job's pod, so the Job's name ends in a checksum of all it says: another list of models is another Job, and
    applying the same list twice changes nothing.
    The old Job stays until something prunes it or somebody deletes it, and so does a model that was taken off the list.
    A restart of the server pulls nothing: the models are on the disk.

    **On a shared GPU** (``profile.sharing``, or a ``GpuRequest`` with ``vram``) Ollama still sizes itself by the whole
    board, so these are set unless given: ``OLLAMA_MAX_LOADED_MODELS=1`` (its own default is 3 for each GPU) and
    ``OLLAMA_CONTEXT_LENGTH=4096`` (its own is 4096, 32768 from 23 GiB, 262144 from 47 GiB). With ``vram`` and the
    board's memory, ``LLAMA_ARG_FIT_TARGET`` is what the budget leaves to others, in MiB: 16303 of an RTX 5070 Ti less
    6144 of ``vram="6Gi"`` is 10159. That much stays free when a model is loaded; layers that do not fit are computed by
    the CPU. It is a margin of what is free at that moment, so beside a neighbour that has loaded already Ollama takes
    less than its budget, by what the neighbour holds: leave ``vram`` out then, or give a smaller ``fit_target``.

    Attributes:
        models: As given.
        pull_job: The Job that pulls them; None without models.

    Source:
        ollama/ollama@v0.32.15:envconfig/config.go, server/routes.go, llm/llama_server.go, Dockerfile
    """

    @checked
    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        models: Sequence[str] = (),
        context_length: int | None = None,
        keep_alive: str | None = None,
        max_loaded_models: int | None = None,
        num_parallel: int | None = None,
        max_queue: int | None = None,
        kv_cache_type: Literal["f16", "q8_0", "q4_0"] | None = None,
        flash_attention: bool | None = None,
        load_timeout: str | None = None,
        fit_target: str | None = None,
        gpu_overhead: str | None = None,
        origins: Sequence[str] = (),
        storage: str = "100Gi",
        storage_class_name: str | None = None,
        startup_seconds: int = 600,
        gpus: Gpus = 1,
        gpu_memory: str | None = None,
        profile: GpuProfile | None = None,
        image: str = IMAGE,
        name: str | None = None,
        namespace: str | NamedObject | None = None,
        platform: Platform = DEFAULT_PLATFORM,
        runtime_class: str | NamedObject | None = None,
        tolerations: Sequence[Toleration] = (),
        node_selector: Mapping[str, str] | None = None,
        env: Mapping[str, str | AnyEnvValue] | None = None,
        volumes: Mapping[str, Mountable] | None = None,
        resources: Resources | None = None,
        run_as_user: int = 1000,
        priority_class_name: str | None = None,
        image_pull_secrets: Sequence[str | NamedObject] = (),
        labels: Mapping[str, str] | None = None,
        annotations: Mapping[str, str] | None = None,
        ignore_rules: Sequence[str] = (),
    ) -> None:
        """Make the server.

        Args:
            scope: A chart, or a construct in one.
            id: Construct id, and the name unless ``name`` says otherwise.
            models: What to pull, as in ``ollama pull``: ``qwen3:8b``, or ``hf.co/<user>/<repository>:<quantization>``.
                Empty: nothing; clients may pull.
            context_length: Tokens of context where a request does not say; each costs memory, ``num_parallel`` times.
            keep_alive: How long a model stays loaded after its last request: ``10m``, seconds, or ``-1`` for ever.
                None: Ollama's own, five minutes; then the memory is free again.
            max_loaded_models: Models in memory at once. None: 3 for each GPU; 1 on a shared one.
            num_parallel: Requests to one model at once. None: 1.
            max_queue: Requests that may wait. None: 512.
            kv_cache_type: How the context is kept: ``q8_0`` takes half of the memory of ``f16``, ``q4_0`` a quarter,
                and both need flash attention. None: ``f16``.
            flash_attention: Forces it on or off. None: where the board has it.
            load_timeout: How long loading may stall: ``10m`` or seconds; 0 is for ever. None: five minutes; slow disks
                need more.
            fit_target: Memory of each GPU that stays free when a model is loaded, as a quantity. None: what the budget
                leaves, else llama.cpp's own.
            gpu_overhead: Memory of each GPU that is set aside, as a quantity. In 0.32.15 it only counts where the
                context length is chosen, not where a model is loaded: use ``fit_target``.
            origins: Web origins that may ask besides localhost.
            storage: Size of the disk for the models.
            storage_class_name: Kind of storage. None: the cluster's default.
            startup_seconds: How long the server may take to answer for the first time. Pulling and loading models is
                not part of it.
            gpus: Whole GPUs or slots, or a ``GpuRequest``, whose ``vram`` is wired in as said above.
            gpu_memory: All memory of a GPU as ``nvidia-smi`` shows it, as a quantity, for the budget. None: that of
                ``request.products``, where they are known.
            profile: What the GPU workloads of the cluster have in common; says whether GPUs are shared.
            image: A release of 0.32 or later, where models are fitted by ``LLAMA_ARG_FIT_TARGET``.
            name: Name of the objects; at most 49 characters beside ``models``.
            namespace: A name or an object. None: the chart's, else ``default``.
            platform: As of ``GpuWorkload``.
            runtime_class: As of ``GpuWorkload``.
            tolerations: As of ``GpuWorkload``; of the Job as well, with those of the profile.
            node_selector: As of ``GpuWorkload``; of the Job as well.
            env: Further variables; they win over those that sharing sets, and contradict no keyword. ``HOME``,
                ``OLLAMA_HOST`` and ``OLLAMA_MODELS`` are the recipe's.
            volumes: Further mounts; one at ``/data`` replaces the disk.
            resources: CPU and memory. By default requests of 1 CPU and 4Gi and a memory limit of 24Gi. Layers that do
                not fit the GPU stay in memory, so let the limit be the largest model and 2Gi more.
            run_as_user: User id, and group of the disk; not 0.
            priority_class_name: Name of a PriorityClass, of the server.
            image_pull_secrets: Names or objects, of server and Job.
            labels: Further labels of all objects.
            annotations: Of the Deployment.
            ignore_rules: Codes of rules that ``synth`` does not hold against the Deployment.

        Raises:
            GpuConstructsError: A model that Ollama would not know by that name, a setting it would not read or that is
                given twice, or what ``GpuWorkload`` refuses.
        """
        _check_models(models)
        settings = {
            "context_length": context_length,
            "flash_attention": flash_attention,
            "fit_target": fit_target,
            "gpu_overhead": gpu_overhead,
            "keep_alive": keep_alive,
            "kv_cache_type": kv_cache_type,
            "load_timeout": load_timeout,
            "max_loaded_models": max_loaded_models,
            "max_queue": max_queue,
            "num_parallel": num_parallel,
            "origins": origins or None,
        }
        _fields.whole_number("startup_seconds", startup_seconds, minimum=1)
        _fields.whole_number(
            "run_as_user",
            run_as_user,
            minimum=1,
            way_out="Ollama needs no root; use GpuWorkload for an image that does",
        )
        budget = vram_budget(gpus, gpu_memory)
        variables = variables_of(settings, env or {}, budget=budget, is_shared=is_shared(profile, gpus))
        own_name = id if name is None else name
        if models and len(own_name) > 49:
            raise GpuConstructsError(
                f"name must have at most 49 characters beside models, whose Job bears it too; got {len(own_name)}"
            )
        disk = VolumeClaim(storage=storage, storage_class_name=storage_class_name)
        well = Probe.http_get("/", port="http")
        super().__init__(
            scope,
            id,
            image=image,
            gpus=gpus,
            profile=profile,
            name=name,
            namespace=namespace,
            platform=platform,
            runtime_class=runtime_class,
            tolerations=tolerations,
            node_selector=node_selector,
            env={"HOME": _DATA, "OLLAMA_MODELS": f"{_DATA}/models", **variables},
            ports={"http": _PORT},
            startup_probe=Probe.http_get("/", port="http", failure_threshold=ceil(startup_seconds / 10)),
            readiness_probe=well,
            liveness_probe=Probe.http_get("/", port="http", failure_threshold=6),
            volumes={_DATA: disk, "/tmp": Volume.empty_dir(size_limit="10Gi"), **(volumes or {})},
            resources=_RESOURCES if resources is None else resources,
            run_as_user=run_as_user,
            fs_group=run_as_user,
            read_only_root_filesystem=True,
            # An answer takes longer than the usual minute.
            termination_grace_period_seconds=120,
            priority_class_name=priority_class_name,
            image_pull_secrets=image_pull_secrets,
            labels=labels,
            annotations=annotations,
            ignore_rules=ignore_rules,
        )
        if budget is not None and budget.total_mib is None and fit_target is None:
            warn(
                f"{self.node.path}: request.vram of {budget.vram} is not kept by Ollama, since the memory of the GPU "
                "is not known; pass gpu_memory, e.g. '16303Mi' as nvidia-smi shows it, or fit_target"
            )
        self.models = tuple(models)
        self._pull_job: Manifest | None = None
        if models:
            secrets = [{"name": _references.name_of("image_pull_secrets", one, "Secret")} for one in image_pull_secrets]
            job = pull_job(
                self.name,
                self.namespace,
                models,
                image=image,
                user=run_as_user,
                secrets=secrets,
                labels=labels or {},
                tolerations=[*(() if profile is None else profile.tolerations), *tolerations],
                node_selector=node_selector or {},
            )
            self._pull_job = Manifest(self, "pull", job)

    @property
    def pull_job(self) -> ApiObject | None:
        """The Job that pulls the models; None without models."""
        return self._pull_job


def variables_of(
    settings: Mapping[str, object], env: Mapping[str, str | AnyEnvValue], *, budget: VramBudget | None, is_shared: bool
) -> dict[str, str | AnyEnvValue]:
    """Give the variables of the server: of keywords, of sharing, of the user.

    Raises:
        GpuConstructsError: A setting that Ollama would not read, or one that is said twice.
    """
    made: dict[str, str | AnyEnvValue] = {}
    if is_shared or budget is not None:
        made = {"OLLAMA_MAX_LOADED_MODELS": "1", "OLLAMA_CONTEXT_LENGTH": str(_SMALLEST_CONTEXT)}
    if budget is not None and budget.rest_mib is not None:
        made["LLAMA_ARG_FIT_TARGET"] = str(budget.rest_mib)
    for variable in _RESERVED:
        if variable in env:
            raise GpuConstructsError(
                f"env[{variable!r}] must be left to the recipe, whose Service, Job and disk count on it; got "
                f"{env[variable]!r}"
            )
    for setting, value in settings.items():
        if value is None:
            continue
        variable = _VARIABLES[setting]
        if variable in env:
            raise GpuConstructsError(
                f"{setting} and env[{variable!r}] must not both be given; leave one of the two out"
            )
        made[variable] = _text(setting, value)
    return {**made, **env}


def _text(setting: str, value: Any) -> str:
    if setting in _COUNTS:
        _fields.whole_number(setting, value, minimum=1, way_out="leave it out for Ollama's own default")
    if setting in _DURATIONS and not _SECONDS.match(value):
        _durations.from_go_duration(setting, value)
    if setting in _UNITS:
        _fields.size(setting, value)
        return str(int(_fields.amount(value) // _UNITS[setting]))
    if setting == "origins":
        for index, origin in enumerate(value):
            if not origin or "," in origin or not origin.isprintable() or " " in origin:
                raise GpuConstructsError(
                    f"origins[{index}] must be one origin like 'https://*.example.com'; got {origin!r}"
                )
        return ",".join(value)
    return ("1" if value else "0") if isinstance(value, bool) else str(value)


def _check_models(models: Sequence[str]) -> None:
    for index, model in enumerate(models):
        if not _MODEL.match(model):
            raise GpuConstructsError(
                f"models[{index}] must be a name as ollama pull takes it, like 'qwen3:8b' or "
                f"'hf.co/<user>/<repository>:<quantization>'; got {model!r}"
            )
    if len(set(models)) < len(models):
        raise GpuConstructsError(f"models must not repeat a name; got {list(models)!r}")


def pull_job(
    name: str,
    namespace: str,
    models: Sequence[str],
    *,
    image: str,
    user: int,
    secrets: Sequence[Mapping[str, str]],
    labels: Mapping[str, str],
    tolerations: Sequence[Toleration] = (),
    node_selector: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Give the Job that has a server pull models; its name ends in a checksum of the rest."""
    mounts = Mounts()
    container = Container(
        name="pull",
        image=image,
        command=["sh", "-ec", _PULL, "pull"],
        args=models,
        # Without the variable an image with CUDA would be shown every GPU of the node.
        env={"HOME": "/tmp", "OLLAMA_HOST": f"http://{name}:{_PORT}", VISIBLE_DEVICES: "void"},
        volumes={"/tmp": Volume.empty_dir(size_limit="100Mi")},
        resources=_PULL_RESOURCES,
    ).to_manifest(mounts)
    own_labels = {**labels, **object_labels(selector_labels(name=name, instance=name, component="model-pull"))}
    pod = {
        "automountServiceAccountToken": False,
        "containers": [container],
        "enableServiceLinks": False,
        "imagePullSecrets": list(secrets) or None,
        "restartPolicy": "Never",
        "securityContext": {**POD, "runAsNonRoot": True, "runAsUser": user},
        "volumes": mounts.sources,
    }
    if node_selector:
        pod["nodeSelector"] = dict(node_selector)
        # The nodes that are selected may be those with GPUs.
        tolerations = [GPU_TAINT, *tolerations]
    if tolerations:
        pod["tolerations"] = [one.to_manifest() for one in tolerations]
    # Nothing is held while it tries again: no GPU, and what was pulled so far stays with the server.
    spec = {"backoffLimit": 6, "template": {"metadata": {"labels": own_labels}, "spec": pod}}
    checksum = sha256(json.dumps(spec, sort_keys=True))[:8]
    metadata = {"name": f"{name}-pull-{checksum}", "namespace": namespace, "labels": own_labels}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec}
