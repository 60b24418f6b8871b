"""Renders like Helm's of the charts in ``charts/``, which hold what the tests of the parity proof ask for."""

import copy
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jinja2
import yaml

import parity_exporter
import parity_smi_exporter
from gpu_constructs.feature_discovery.manifests import custom_resource_definitions
from parity_chart import CHART, NFD_VERSIONS
from parity_told import merged

OLD, NEW = NFD_VERSIONS
RELEASES = {CHART: "r", parity_exporter.CHART: "dcgm-exporter", parity_smi_exporter.CHART: "nvidia-gpu-exporter"}
NAMESPACE = "gpu"
_FOLDER = Path(__file__).parent / "charts"
_CHARTS = jinja2.Environment(
    loader=jinja2.FileSystemLoader(_FOLDER), undefined=jinja2.ChainableUndefined, trim_blocks=True, lstrip_blocks=True
)
_CHARTS.filters["merge"] = lambda one, other: {**one, **(other or {})}
_CHARTS.policies["json.dumps_kwargs"] = {}
Manifest = dict[str, Any]


def render(chart: str, values: Mapping[str, Any], version: str = NEW) -> list[Manifest]:
    """Render a chart's objects."""
    where = {"version": version, "values": values, "release": RELEASES[chart], "namespace": NAMESPACE}
    if chart == parity_smi_exporter.CHART:
        smi = parity_smi_exporter.SmiRelease(**where)
        return _rendered(chart, smi.values, release=smi, program=parity_smi_exporter.PROGRAM)
    if chart == parity_exporter.CHART:
        dcgm = parity_exporter.DcgmRelease(**where)
        own = yaml.safe_load((_FOLDER / f"{chart}.values.yaml").read_text(encoding="utf-8"))[version]
        known = merged(merged(own, parity_exporter.DEFAULTS[version]), values)
        metrics = parity_exporter.CHART_LIST[version]
        return _rendered(chart, known, release=dcgm, metrics=metrics, is_old=version == parity_exporter.OLD)
    is_old, nfd = version == OLD, values.get("nfd", {})
    found = _rendered(chart, values, **where, is_old=is_old)
    if nfd.get("enabled", values.get("gfd", {}).get("enabled", False)):
        found += [
            *_definitions(NFD_VERSIONS[version]),
            *_rendered("node-feature-discovery", nfd, **where, is_old=is_old),
        ]
    return found


def _rendered(chart: str, given: Mapping[str, Any], **facts: Any) -> list[Manifest]:
    text = _CHARTS.get_template(f"{chart}.yaml").render(v=given, **facts)
    found = [yaml.load(one, Loader=yaml.CSafeLoader) for one in re.split(r"^---$", text, flags=re.MULTILINE)]
    return [manifest for manifest in found if manifest]


def _definitions(version: str) -> list[Manifest]:
    definitions = copy.deepcopy(list(custom_resource_definitions(version)))
    for definition in definitions:
        schema = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
        schema["description"] = "What it is."
        definition["metadata"]["annotations"] = {"controller-gen.kubebuilder.io/version": "v0.16.3"}
    return definitions
