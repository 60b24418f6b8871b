"""The GPU Operator's chart on this machine, rendered by ``helm`` through ``cdk8s.Helm``."""

from __future__ import annotations

import os
import re
import shutil
import tarfile
import tempfile
import zlib
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
_BY_HOOKS = ("upgradeCRD", "cleanupCRD")
_NAMELESS = "(none)"
_ERROR_NAME = re.compile(r"^(?:[A-Za-z]*Error: )+")
_TWICE = re.compile(r"There is already a Construct with name '(.*?)' in Helm")
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
    """Render the chart. Objects that live in a namespace name it, others do not.

    Its hooks are left out: nothing would run them in order, and one of them takes Node Feature Discovery's
    labels off all nodes. So are the two settings that need them: see ``without_hooks``.

    Args:
        delivery: The chart and the program.
        release_name: Of the Helm release.
        namespace: Of every object that lives in one and names none.
        chart_version: The release that the chart must be, with or without a leading v.
        values: What it is rendered with.
        kubernetes: The cluster's release (``1.35``), for a chart that asks.

    Raises:
        GpuConstructsError: No such chart or program, a chart of another release, a chart that does not render
            or renders hooks all the same, an object without a name or rendered twice, values that ask for hooks.

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
    rendered = _rendered(path, str(Path(program).absolute()), release_name, namespace, without_hooks(values), flags)
    _check_names(rendered)
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
    completed = [_completed(one, namespace, cluster_scoped) for one in rendered]
    _check_each_once(completed)
    return completed


def _chart_of(chart: str, chart_version: str) -> Path:
    """Give the chart's place once it is known for the one asked for."""
    # Path.resolve() raises RuntimeError for links in a circle.
    path = Path(os.path.realpath(chart))
    wanted = chart_version.removeprefix("v")
    get_it = f"get it with 'helm pull {CHART} --repo https://helm.ngc.nvidia.com/nvidia --version v{wanted}'"
    try:
        text = _chart_file(path)
    except FileNotFoundError:
        raise GpuConstructsError(f"{_FIELD} must exist; got {chart!r}, which resolves to {path}; {get_it}") from None
    except (OSError, tarfile.TarError, EOFError, UnicodeDecodeError, zlib.error) as error:
        raise GpuConstructsError(f"{_FIELD} must be readable; got {chart!r}: {error}; {get_it}") from None
    if text is None:
        raise GpuConstructsError(f"{_FIELD} must hold a {_CHART_FILE}; got {chart!r}; {get_it}")
    try:
        about = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError):  # the latter for a date that is none
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


def without_hooks(values: Mapping[str, Any]) -> dict[str, Any]:
    """Switch off what the chart does by hooks alone: the definitions are rendered with the rest, and stay at the end.

    Raises:
        GpuConstructsError: The values switch it on.
    """
    operator = values.get("operator") or {}
    for key in _BY_HOOKS:
        if operator.get(key):
            raise GpuConstructsError(
                f"values.operator.{key} must be false with delivery.helm, which runs no hooks; got True; leave it out, "
                "or use Delivery.flux(), Delivery.argo_cd() or Delivery.values()"
            )
    return {**values, "operator": {**operator, **dict.fromkeys(_BY_HOOKS, False)}}


def _check_names(rendered: Sequence[Mapping[str, Any]]) -> None:
    for one in rendered:
        metadata = one["metadata"]
        if metadata["name"] == _NAMELESS or "generateName" in metadata:
            prefix = f" and with generateName {metadata['generateName']!r}" if "generateName" in metadata else ""
            raise GpuConstructsError(
                f"{_FIELD} must render objects with names, by which the next apply knows them; got {one['kind']} "
                f"without one{prefix}; give it a metadata.name, in values.extraObjects if it stands there"
            )


def _check_each_once(completed: Sequence[Mapping[str, Any]]) -> None:
    seen: set[tuple[str, ...]] = set()
    for one in completed:
        identity = _kinds.identity_of(one)
        if identity in seen:
            raise GpuConstructsError(
                f"{_FIELD} must render each object once; got {_named(one)} twice; rename or leave out the one in "
                "values.extraObjects"
            )
        seen.add(identity)


class _Tree(cdk8s.Chart):
    """A place to render in, where what has no name gets none that looks like one."""

    def generate_object_name(self, api_object: cdk8s.ApiObject) -> str:
        return _NAMELESS


def _rendered(
    chart: Path, program: str, release_name: str, namespace: str, values: Mapping[str, Any], flags: Sequence[str]
) -> list[dict[str, Any]]:
    """Give what helm prints; rendered in a tree of its own, so that every object can still be checked."""
    tree = _Tree(cdk8s.App(), "rendered")
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
            twice = _TWICE.search(str(error))
            if twice:
                raise GpuConstructsError(
                    f"{_FIELD} must render objects that differ in name, kind or stated namespace, by which cdk8s tells "
                    f"them apart; got {twice[1]!r} twice; rename or leave out the one in values.extraObjects"
                ) from None
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
    if _kinds.is_cluster_scoped(api_version, kind) or (_kinds.group_of(api_version), kind) in cluster_scoped:
        metadata.pop("namespace", None)
    else:
        metadata.setdefault("namespace", namespace)
    return {**manifest, "metadata": metadata}
