"""A local copy of the GPU Operator's chart, which the ``helm`` program renders."""

from __future__ import annotations

import os
import shutil
import subprocess
import tarfile
import zlib
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from gpu_constructs.errors import GpuConstructsError
from gpu_constructs.kube import fields, kinds
from gpu_constructs.kube.yaml_text import yaml_text
from gpu_constructs.operator.delivery import CHART, NVIDIA_REPOSITORY, Made, check_release_name
from gpu_constructs.operator.manifests import Manifest, Release

_FIELD = "delivery.helm.chart"
_CHART_FILE = "Chart.yaml"
_BY_HOOKS = ("upgradeCRD", "cleanupCRD")
_LONGEST_MESSAGE = 400
_FIRST_WITH_DEVICE_CLASSES = 34


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """A YAML loader that keeps dates as text, as Kubernetes does."""

    yaml_implicit_resolvers = {  # noqa: RUF012
        first: [(tag, pattern) for tag, pattern in resolvers if not tag.endswith(":timestamp")]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }


def manifests(delivery: Made, release: Release, *, kubernetes: str | None = None) -> list[Manifest]:
    """Return the objects that ``helm template`` renders from a local copy of the GPU Operator's chart.

    Each object that is not cluster-scoped has a namespace. The function runs ``helm template --no-hooks``, because
    ``kubectl apply`` would create the objects of hooks in an arbitrary order.

    Args:
        delivery: Result of ``Delivery.helm``, with the paths of the chart and of the ``helm`` program.
        release: Name, namespace, chart version and values of the Helm release.
        kubernetes: Kubernetes release of the cluster, such as ``1.35``, for conditions in the templates. None: the
            default of ``helm``.

    Raises:
        GpuConstructsError: The ``helm`` program is missing, the chart is missing or has another version than
            ``release.chart_version``, or ``helm template`` fails. Also raised if the Helm values enable a hook, or if
            the output contains a hook, an object without a name, or the same object twice.

    Source: NVIDIA/gpu-operator@v26.7.0:deployments/gpu-operator/templates
    """
    check_release_name(release.name)
    chart, executable = delivery.options["chart"], delivery.options["executable"]
    path = _chart_of(chart, release.chart_version)
    program = shutil.which(executable)
    if program is None:
        raise GpuConstructsError(
            f"delivery.helm.executable must be the helm program, got {executable!r}, which does not exist. "
            "Install Helm, or use Delivery.flux(), Delivery.argo_cd() or Delivery.values()"
        )
    rendered = _rendered([str(Path(program).absolute()), "template", *_cluster(kubernetes)], path, release)
    _check_rendered(rendered, chart)
    cluster_scoped = {
        (one["spec"]["group"], one["spec"]["names"]["kind"])
        for one in rendered
        if one["kind"] == "CustomResourceDefinition" and one["spec"]["scope"] == "Cluster"
    }
    completed = [_completed(one, release.namespace, cluster_scoped) for one in rendered]
    _check_each_once(completed)
    return completed


def _chart_of(chart: str, chart_version: str) -> Path:
    """Return the absolute path of a chart on this machine. Raise an error unless the chart has the expected version.

    ``chart`` is the path of a folder or of a ``.tgz`` file.
    """
    path, wanted = Path(os.path.realpath(chart)), chart_version.removeprefix("v")
    try:
        problem = _mismatch(_chart_file(path), chart, wanted)
    except FileNotFoundError:
        problem = f"must exist, got {chart!r}, which resolves to {path}"
    except (OSError, tarfile.TarError, EOFError, UnicodeDecodeError, zlib.error) as error:
        problem = f"must be readable, got {chart!r}: {error}"
    if problem:
        raise GpuConstructsError(
            f"{_FIELD} {problem}. Get it with 'helm pull {CHART} --repo {NVIDIA_REPOSITORY} --version v{wanted}'"
        )
    return path


def _mismatch(text: str | None, chart: str, wanted: str) -> str | None:
    if text is None:
        return f"must contain a {_CHART_FILE}, got {chart!r}"
    try:
        about = yaml.load(text, Loader=_Loader)
    except yaml.YAMLError:
        about = None
    name, version = (about.get("name"), str(about.get("version"))) if isinstance(about, dict) else (None, "")
    if name != CHART:
        return f"must be the chart {CHART!r}, got {name!r} in {chart!r}"
    if version.removeprefix("v") != wanted:
        return f"must be release {wanted!r}, the version of the operator, got {version!r} in {chart!r}"
    return None


def _chart_file(path: Path) -> str | None:
    if path.is_dir():
        file = path / _CHART_FILE
        return file.read_text(encoding="utf-8") if file.is_file() else None
    with tarfile.open(path, "r:gz") as archive:
        for member in archive:
            parts = member.name.removeprefix("./").split("/")
            if len(parts) == 2 and parts[1] == _CHART_FILE and member.isfile():
                content = archive.extractfile(member)
                return content.read().decode("utf-8") if content else None
    return None


def _cluster(kubernetes: str | None) -> list[str]:
    """Return ``helm template`` flags that state the Kubernetes release and APIs of the cluster.

    Without these flags, ``helm template`` assumes defaults, because it does not connect to the cluster. If
    ``kubernetes`` is None, the list is empty.
    """
    if kubernetes is None:
        return []
    major, minor, *patch = kubernetes.split(".")
    flags = ["--kube-version", ".".join((major, minor, *(patch or "0")))]
    if int(minor) >= _FIRST_WITH_DEVICE_CLASSES:
        # If there is no cluster, helm knows only API groups and versions, but the chart checks for this kind.
        flags += ["--api-versions", "resource.k8s.io/v1/DeviceClass"]
    return flags


def without_hooks(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the Helm values with ``operator.upgradeCRD`` and ``operator.cleanupCRD`` set to false.

    If one of them were true, the chart would upgrade or delete its CRDs by a Helm hook. Without hooks, the CRDs are
    part of the rendered output.

    Raises:
        GpuConstructsError: One of these two values is already true.
    """
    operator = values.get("operator") or {}
    fields.refuse_first(
        (
            operator.get(key),
            f"values.operator.{key} must be false with delivery.helm, which runs no hooks, got True. Remove it, "
            "or use Delivery.flux(), Delivery.argo_cd() or Delivery.values()",
        )
        for key in _BY_HOOKS
    )
    return {**values, "operator": {**operator, **dict.fromkeys(_BY_HOOKS, False)}}


def _rendered(command: Sequence[str], chart: Path, release: Release) -> list[Manifest]:
    flags = ["--no-hooks", "--include-crds", "--namespace", release.namespace, "--values", "-"]
    done = subprocess.run(
        [*command, *flags, release.name, str(chart)],
        input=yaml_text(without_hooks(release.values)),
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    said = [line.strip() for line in done.stderr.splitlines() if not line.startswith("WARNING: ")]
    problem = " ".join(said).removeprefix("Error: ").strip() or "nothing"
    if done.returncode == 0:
        try:
            return [one for one in yaml.load_all(done.stdout, Loader=_Loader) if one]
        except yaml.YAMLError as error:
            problem = " ".join(str(error).split())
    shown = problem if len(problem) <= _LONGEST_MESSAGE else f"{problem[:_LONGEST_MESSAGE]}..."
    raise GpuConstructsError(
        f"{_FIELD} must render with these values, got this error of helm: {shown}. Change that value, or use another "
        "copy of the chart"
    )


def _check_rendered(rendered: Sequence[Manifest], chart: str) -> None:
    for one in rendered:
        metadata = one.get("metadata") or {}
        if not metadata.get("name"):
            prefix = f" and with generateName {metadata['generateName']!r}" if "generateName" in metadata else ""
            raise GpuConstructsError(
                f"{_FIELD} must render objects with names, got {one['kind']} "
                f"without one{prefix}. Add its metadata.name, for example in values.extraObjects"
            )
    hooks = [_named(one) for one in rendered if "helm.sh/hook" in (one["metadata"].get("annotations") or {})]
    if hooks:
        raise GpuConstructsError(
            f"{_FIELD} must render without hooks, which would run at once as plain objects, got "
            f"{', '.join(hooks)} from {chart!r}. Use a helm program that supports --no-hooks"
        )


def _check_each_once(completed: Sequence[Manifest]) -> None:
    made = Counter(map(kinds.identity_of, completed))
    fields.refuse_first(
        (
            made[kinds.identity_of(one)] > 1,
            f"{_FIELD} must render each object once, got {_named(one)} twice. Rename or remove the one in "
            "values.extraObjects",
        )
        for one in completed
    )


def _named(manifest: Mapping[str, Any]) -> str:
    return f"{manifest['kind']} {manifest['metadata']['name']}"


def _completed(manifest: Manifest, namespace: str, cluster_scoped: Collection[tuple[str, str]]) -> Manifest:
    api_version, kind = manifest["apiVersion"], manifest["kind"]
    metadata = {key: value for key, value in manifest["metadata"].items() if value is not None}
    if kinds.is_cluster_scoped(api_version, kind) or (kinds.group_of(api_version), kind) in cluster_scoped:
        metadata.pop("namespace", None)
    else:
        metadata.setdefault("namespace", namespace)
    return {**manifest, "metadata": metadata}
