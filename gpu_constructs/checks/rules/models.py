"""The rule R28: the memory of a GPU is enough for the memory budget and the model of a pod."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from gpu_constructs.catalog.gpu_models import GpuModel, board_called
from gpu_constructs.catalog.mig_profiles import mig_vram_mib, size_of
from gpu_constructs.catalog.model_sizes import least_weights
from gpu_constructs.checks.rules.placing import PRODUCT
from gpu_constructs.checks.rules.vram_units import slots_for, units_of
from gpu_constructs.facts.app import Ask, Facts, Pod
from gpu_constructs.facts.finding import Finding
from gpu_constructs.facts.readable import Manifest, annotations_of, namespace_of, quantity, texts
from gpu_constructs.kube.annotations import VRAM, VRAM_TYPICAL
from gpu_constructs.kube.pod_specs import containers, node_values_required

_MIG = "nvidia.com/mig-"
_MEBIBYTE = 2**20
_GIGABYTE = 10**9
_COMPUTED_BY_CPU = ("--cpu-offload-gb", "--kv-offloading-size", "--nnodes")
"""Flags of vLLM that let it store weights outside of the GPUs of the pod."""
_PULL = "model-pull"
_NAME, _COMPONENT = "app.kubernetes.io/name", "app.kubernetes.io/component"


def memory_fits(facts: Facts) -> Iterator[Finding]:
    """Yield problems: memory budgets and models that need more GPU memory than the pod gets (R28).

    A memory budget is the GPU memory that a pod may use, from the annotation ``gpu-constructs/vram``.
    """
    yield from _budgets_fit_a_gpu(facts)
    yield from _asks_are_less_than_budgets(facts)
    for ask in (ask for pod in facts.gpu_pods for ask in pod.lasting()):
        words = _words(ask.container)
        model = _model_of_vllm(ask.container, words)
        if model is not None:
            yield from _of_vllm(ask, model, words, facts)
    yield from _of_ollama(facts)


def _of_vllm(ask: Ask, model: str, words: Sequence[str], facts: Facts) -> Iterator[Finding]:
    """Yield a problem if the weights of a model for vLLM are larger than the GPU memory of the container.

    Args:
        ask: GPU request of the container.
        model: Name of the model, such as ``Qwen/Qwen2.5-7B-Instruct``.
        words: Words of the container's command line.
        facts: Facts that the library derives from the objects of the app.
    """
    parts = _number(words, "--tensor-parallel-size", "-tp") * _number(words, "--pipeline-parallel-size", "-pp")
    memory = _memory(ask, facts, min(_number(words, "--gpu-memory-utilization"), 1))
    # If the model has more parts than the container has GPUs, it runs in several pods.
    if memory is None or parts > ask.count or any(word.startswith(_COMPUTED_BY_CPU) for word in words):
        return
    weights = least_weights(model, _flag(words, "--quantization", "-q"))
    if weights is None:
        return
    has = memory * int(parts)
    certain, usual = weights
    if usual > has:
        yield Finding(
            ask.pod.index,
            f"serves {model!r}, whose weights take about {usual:.0f} GB, but its GPUs have {has:.0f} GB of memory. Use "
            "a smaller or quantized model, more or larger GPUs, or --cpu-offload-gb",
            is_warning=certain <= has,
        )


def _of_ollama(facts: Facts) -> Iterator[Finding]:
    """Yield a finding for each model whose weights are larger than the GPU memory of its Ollama server.

    The names of the models are in the arguments of the Job that pulls the models for this server.
    """
    servers = {_server(pod): pod.lasting()[0] for pod in facts.gpu_pods if pod.lasting()}
    for pod in facts.pods:
        ask = servers.get(_server(pod)) if _label(pod, _COMPONENT) == _PULL else None
        memory = None if ask is None else _memory(ask, facts)
        if ask is None or memory is None:
            continue
        has = memory * ask.count
        for model in (word for container in containers(pod.spec) for word in texts(container.get("args"))):
            weights = least_weights(model)
            if weights is not None and weights[0] > has and "cloud" not in model:
                yield Finding(
                    ask.pod.index,
                    f"serves {model!r}, whose weights take at least {weights[0]:.0f} GB, but its GPUs have {has:.0f} "
                    "GB of memory, so the CPU slowly computes the rest. Use a smaller model or larger GPUs",
                    is_warning=True,
                )


def _server(pod: Pod) -> tuple[str, str]:
    """Return the namespace of a pod, and its label ``app.kubernetes.io/name``.

    The pods of an Ollama server and of the Job that pulls its models have the same namespace and label.
    """
    return namespace_of(pod.manifest), str(_label(pod, _NAME))


def _model_of_vllm(container: Manifest, words: Sequence[str]) -> str | None:
    """Return the name of the model that a container serves with vLLM. Return None if it does not run vLLM.

    Args:
        container: Container in the pod spec.
        words: Words of its command line.
    """
    image = str(container.get("image") or "").rpartition("/")[2].partition("@")[0].partition(":")[0]
    if "vllm" not in image and not any(word in ("vllm", "vllm.entrypoints.openai.api_server") for word in words):
        return None
    model = _flag(words, "--model")
    if model is not None:
        return model
    if "serve" in words:
        words = words[words.index("serve") + 1 :]
    elif container.get("command"):
        return None
    return words[0] if words and not words[0].startswith("-") else None


def _memory(ask: Ask, facts: Facts, share: float = 1) -> float | None:
    """Return how much memory of one GPU a server can use, in GB. Return None if the memory is not known.

    If the pod can get GPUs of several sizes, the result is for the largest GPU.

    Args:
        ask: Request of the container for GPUs.
        facts: Facts that the library derives from the objects of the app.
        share: Share of the GPU memory that the server uses; 1 by default.
    """
    boards = _boards(ask.pod, facts)
    if ask.resource.startswith(_MIG):
        size = size_of(ask.resource.removeprefix(_MIG))
        known = [mig_vram_mib(None, size)] if size else []
    else:
        known = [] if boards is None else boards
    budget = quantity(_annotation(ask.pod, VRAM))
    amounts = [max(known) * _MEBIBYTE * share] if known else []
    amounts += [int(budget)] if budget is not None and ask.count == 1 else []
    return min(amounts) / _GIGABYTE if amounts else None


def _boards(pod: Pod, facts: Facts) -> list[int] | None:
    """Return the memory of each board that a pod can get, in MiB.

    These are the boards that the pod selects by ``nvidia.com/gpu.product``, or otherwise all boards of the inventory.
    Return None if the memory of one of these boards is not known.
    """
    selected = [values for label, values in node_values_required(pod.spec) if label == PRODUCT]
    mib: list[int | None]
    if selected:
        mib = [_vram(value) for value in selected[0]]
    elif facts.inventory is not None:
        mib = [node.vram_mib for node in facts.inventory.nodes]
    else:
        return None
    known = [one for one in mib if one is not None]
    return known if len(known) == len(mib) else None


def _vram(product: str) -> int | None:
    """Return the memory of the board with a product name, such as ``NVIDIA-L4-SHARED``, in MiB.

    Return None if the library does not know the board.
    """
    board: GpuModel | None = board_called(product.removesuffix("-SHARED"))
    return None if board is None else board.vram_mib


def _words(container: Manifest) -> list[str]:
    """Return all words in the command and the arguments of a container."""
    given = [*texts(container.get("command")), *texts(container.get("args"))]
    # The script of a shell is one argument.
    return [word for text in given for word in text.split()]


def _flag(words: Sequence[str], *names: str) -> str | None:
    """Return the value of a command-line flag.

    Return None if the flag does not occur, or if it is the last word and has no value.

    Args:
        words: Words of the command line.
        names: Alternative names of the flag, such as ``--quantization`` and ``-q``. The result is the value of the
            first word that is one of these names.
    """
    for place, word in enumerate(words):
        name, is_joined, value = word.partition("=")
        if re.sub("(?<=[a-z])_", "-", name) in names:
            return value if is_joined else next(iter(words[place + 1 :]), None)
    return None


def _number(words: Sequence[str], *names: str) -> float:
    """Return the value of a numeric command-line flag. Return 1 if the flag does not occur or has no number.

    Args:
        words: Words of the command line.
        names: Alternative names of the flag, such as ``--tensor-parallel-size`` and ``-tp``.
    """
    try:
        return float(_flag(words, *names) or 1)
    except ValueError:
        return 1


def _label(pod: Pod, key: str) -> object:
    """Return the value of a label of a pod. Return None if the pod does not have the label."""
    return (pod.metadata.get("labels") or {}).get(key)


def _budgets_fit_a_gpu(facts: Facts) -> Iterator[Finding]:
    """Yield a problem for each memory budget that is invalid or that exceeds the memory of every GPU.

    The annotation ``gpu-constructs/vram`` contains the memory budget of a pod.
    """
    reported: set[tuple[int, str]] = set()
    for pod in facts.gpu_pods:
        budget, typical = _annotation(pod, VRAM), _annotation(pod, VRAM_TYPICAL)
        key = pod.index, f"{budget!r} {typical!r}"
        if key in reported:
            continue
        reported.add(key)
        yield from _typical_exceeds_the_budget(pod, budget, typical)
        if budget is None:
            continue
        wanted = quantity(budget)
        if wanted is None or wanted < _MEBIBYTE:
            yield Finding(
                pod.index,
                f"annotation {VRAM} must be an amount of memory with its unit, like '12Gi', got {budget!r}",
            )
        elif facts.inventory is not None:
            known = [node.vram_mib for node in facts.inventory.nodes]
            largest = facts.inventory.vram_mib
            if largest is not None and wanted > largest * _MEBIBYTE:
                yield Finding(
                    pod.index,
                    f"has a budget of {budget} of GPU memory ({VRAM}), but the largest GPU of the inventory has "
                    f"{largest}Mi. Use a smaller model or quantization, or a larger GPU",
                    is_warning=None in known,
                )


def _annotation(pod: Pod, annotation: str) -> object:
    """Return the value of an annotation of a workload, or otherwise of its pod template.

    Return None if neither has the annotation.
    """
    return annotations_of(pod.manifest).get(annotation, (pod.metadata.get("annotations") or {}).get(annotation))


def _typical_exceeds_the_budget(pod: Pod, budget: object, typical: object) -> Iterator[Finding]:
    """Yield a finding if the annotation for the usual GPU memory of a pod is invalid or exceeds the memory budget."""
    if typical is None:
        return
    amount, most = quantity(typical), quantity(budget)
    if amount is None or amount < 0 or 0 < amount < _MEBIBYTE:
        yield Finding(
            pod.index,
            f"annotation {VRAM_TYPICAL} must be an amount of memory with its unit, like '6Gi', got {typical!r}",
        )
    elif budget is None:
        yield Finding(pod.index, f"annotation {VRAM_TYPICAL} needs {VRAM}. Write both")
    elif most is not None and amount > most:
        yield Finding(
            pod.index,
            f"annotation {VRAM_TYPICAL} must be at most the annotation {VRAM} ({budget!r}), got {typical!r}",
        )


def _asks_are_less_than_budgets(facts: Facts) -> Iterator[Finding]:
    """Yield a problem for each pod whose slots stand for less GPU memory than its memory budget."""
    counted_pods = [(pod, resource, count) for pod in facts.gpu_pods for resource, count in pod.counts().items()]
    for pod, resource, count in counted_pods:
        shared = facts.sharing_of(resource)
        if shared is None or units_of(facts, resource) != {shared[1].vram_unit} or shared[1].vram_unit is None:
            continue
        provider, sharing = shared
        counted = f"{count} x {resource}, which {{0}} counts in units of {sharing.vram_unit}"
        budget = _annotation(pod, VRAM)
        wanted = quantity(budget)
        if budget is None and count == 1:
            yield Finding(
                pod.index,
                f"requests {counted}, but has no memory budget. Annotate the object with {VRAM}, and request as many "
                "slots as this memory needs. GpuRequest(vram=...) sets both if the GpuProfile of the workload has "
                "sharing=",
                providers=(provider,),
                is_warning=True,
            )
        elif wanted is not None and count < slots_for(wanted, sharing):
            yield Finding(
                pod.index,
                f"has a budget of {budget} of GPU memory ({VRAM}), but requests {counted}. Request "
                f"{slots_for(wanted, sharing)}. GpuRequest(vram=...) computes this number if the GpuProfile has "
                "this sharing",
                providers=(provider,),
            )
