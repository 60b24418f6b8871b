"""The GPU Operator's chart on this machine, rendered by ``helm`` through ``cdk8s.Helm``."""

from __future__ import annotations

import re
import shutil
import tarfile
import tempfile
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import cdk8s
import yaml

from gpu_constructs import _kinds
from gpu_constructs._yaml import yaml_text
from gpu_constructs.errors import GpuConstructsError
from gpu_constructs.operator.delivery import CHART, LocalChart, check_release_name

_FIELD = "delivery.helm.chart"
_HOOK = "helm.sh/hook"
_CHART_FILE = "Chart.yaml"
_ERROR_NAME = re.compile(r"^(?:[A-Za-z]*Error: )+")
_LONGEST_MESSAGE = 400
_FIRST_WITH_DEVICE_CLASSES = 34


def manifests(
    delivery: LocalChart,
    *,
    release_name: str,
    namespace: str,
    chart_version: str,
    values: Mapping[str, Any],
    kubernetes: str | None = None,
) -> list[dict[str, Any]]:
    """Render the chart.

    Its hooks are left out: nothing would run them in order, and one of them takes Node Feature Discovery's
    labels off all nodes. So are the two settings that need them, ``operator.upgradeCRD`` and
    ``operator.cleanupCRD``.

    Args:
        delivery: The chart and the program.
        release_name: Of the Helm release.
        namespace: Of every object that lives in one and names none.
        chart_version: The release that the chart must be, with or without a leading v.
        values: What it is rendered with.
        kubernetes: The cluster's release (``1.35``), for a chart that asks.

    Raises:
        GpuConstructsError: No such chart or program, a chart of another release, a chart that does not render
            or renders hooks all the same.

    Source:
        NVIDIA/gpu-operator@v26.7.0:deployments/gpu-operator/templates
    """
    check_release_name(release_name)
    path = _chart_of(delivery.chart, chart_version)
    program = shutil.which(delivery.executable)
    if program is None:
        raise GpuConstructsError(
            f"delivery.helm.executable must be the helm program; got {delivery.executable!r}, which is not found; "
            "install Helm, or use Delivery.flux(), Delivery.argo_cd() or Delivery.values(), which do without"
        )
    flags = ["--no-hooks", "--include-crds", *_cluster(kubernetes)]
    rendered = _rendered(path, str(Path(program).absolute()), release_name, namespace, _without_hooks(values), flags)
    hooks = [_named(one) for one in rendered if _HOOK in one["metadata"].get("annotations", {})]
    if hooks:
        raise GpuConstructsError(
            f"{_FIELD} must render without hooks, since applied as plain objects they run at once; got "
            f"{', '.join(hooks)} from {delivery.chart!r}; use a helm that heeds --no-hooks"
        )
    cluster_scoped = {
        (one["spec"]["group"], one["spec"]["names"]["kind"])
        for one in rendered
        if one["kind"] == "CustomResourceDefinition" and one["spec"]["scope"] == "Cluster"
    }
    return [_completed(one, namespace, cluster_scoped) for one in rendered]


def _chart_of(chart: str, chart_version: str) -> Path:
    """Give the chart's place once it is known for the one asked for."""
    path = Path(chart).resolve()
    wanted = chart_version.removeprefix("v")
    get_it = f"get it with 'helm pull {CHART} --repo https://helm.ngc.nvidia.com/nvidia --version v{wanted}'"
    try:
        text = _chart_file(path)
    except FileNotFoundError:
        raise GpuConstructsError(f"{_FIELD} must exist; got {chart!r}, which resolves to {path}; {get_it}") from None
    except (OSError, tarfile.TarError, EOFError, UnicodeDecodeError) as error:
        raise GpuConstructsError(f"{_FIELD} must be readable; got {chart!r}: {error}; {get_it}") from None
    if text is None:
        raise GpuConstructsError(f"{_FIELD} must hold a {_CHART_FILE}; got {chart!r}; {get_it}")
    try:
        about = yaml.safe_load(text)
    except yaml.YAMLError:
        about = None
    if not isinstance(about, dict) or about.get("name") != CHART:
        name = about.get("name") if isinstance(about, dict) else None
        raise GpuConstructsError(f"{_FIELD} must be the chart {CHART!r}; got {name!r} in {chart!r}; {get_it}")
    version = str(about.get("version"))
    if version.removeprefix("v") != wanted:
        raise GpuConstructsError(
            f"{_FIELD} must be release {wanted!r}, as the operator's version asks; got {version!r} in {chart!r}; "
            f"{get_it}"
        )
    return path


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
    """Tell helm what the chart would ask a cluster."""
    if kubernetes is None:
        return []
    major, minor, *patch = kubernetes.split(".")
    flags = ["--kube-version", ".".join((major, minor, *(patch or "0")))]
    if int(minor) >= _FIRST_WITH_DEVICE_CLASSES:
        # Without a cluster helm knows groups and versions, no kinds; the chart asks for this one.
        flags += ["--api-versions", "resource.k8s.io/v1/DeviceClass"]
    return flags


def _without_hooks(values: Mapping[str, Any]) -> dict[str, Any]:
    operator = values.get("operator") or {}
    return {**values, "operator": {**operator, "upgradeCRD": False, "cleanupCRD": False}}


def _rendered(
    chart: Path, program: str, release_name: str, namespace: str, values: Mapping[str, Any], flags: Sequence[str]
) -> list[dict[str, Any]]:
    """Give what helm prints; rendered in a tree of its own, so that every object can still be checked."""
    tree = cdk8s.Chart(cdk8s.App(), "rendered")
    with tempfile.TemporaryDirectory() as folder:
        # A file of ours: the values of cdk8s.Helm pass through JavaScript, which drops those that are null.
        file = Path(folder) / "values.yaml"
        file.write_text(yaml_text(dict(values)), encoding="utf-8")
        try:
            cdk8s.Helm(
                tree,
                "helm",
                chart=str(chart),
                helm_executable=program,
                helm_flags=[*flags, "-f", str(file)],
                namespace=namespace,
                release_name=release_name,
            )
            objects: list[dict[str, Any]] = tree.to_json()
        except RuntimeError as error:
            raise GpuConstructsError(
                f"{_FIELD} must render with these values; helm says: {_message(error)}; change what it names, or take "
                "another copy of the chart"
            ) from None
    return objects


def _message(error: RuntimeError) -> str:
    """Give what helm said in one line, without the layers of the JavaScript bridge."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    said = [line for line in lines if not line.startswith(("at ", "WARNING: "))]
    text = _ERROR_NAME.sub("", " ".join(said)) or "nothing"
    return text if len(text) <= _LONGEST_MESSAGE else f"{text[:_LONGEST_MESSAGE]}..."


def _named(manifest: Mapping[str, Any]) -> str:
    return f"{manifest['kind']} {manifest['metadata']['name']}"


def _completed(
    manifest: Mapping[str, Any],
    namespace: str,
    cluster_scoped: Collection[tuple[str, str]],
) -> dict[str, Any]:
    api_version, kind = manifest["apiVersion"], manifest["kind"]
    metadata = dict(manifest["metadata"])
    is_namespaced = not (
        _kinds.is_cluster_scoped(api_version, kind) or (_kinds.group_of(api_version), kind) in cluster_scoped
    )
    if is_namespaced:
        metadata.setdefault("namespace", namespace)
    return {**manifest, "metadata": metadata}
