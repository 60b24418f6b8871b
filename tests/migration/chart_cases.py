"""Helpers that convert the values of a chart, and the cases in ``cases/``: values with their expected results."""

import dataclasses
import warnings
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import yaml

import refusals
from gpu_constructs import GpuConstructsWarning, Kubernetes
from gpu_constructs.device_plugin.chart_values import chart_options
from gpu_constructs.observability import dcgm_exporter_values, nvidia_gpu_exporter_values

CASES = Path(__file__).parent / "cases"
WAY_OUT = ". Pass strict=False to drop it"


@dataclasses.dataclass(frozen=True)
class Mapped:
    """A chart, the function that converts its values, and the default installation of its cases."""

    options: Callable[..., dict[str, Any]]
    release: str
    version: str


CHARTS: Mapping[str, Mapped] = {
    "dcgm-exporter": Mapped(dcgm_exporter_values.exporter_options, "dcgm-exporter", "4.8.2"),
    "nvidia-device-plugin": Mapped(chart_options, "nvdp", "0.20.0"),
    "nvidia-gpu-exporter": Mapped(nvidia_gpu_exporter_values.exporter_options, "nvidia-gpu-exporter", "1.14.0"),
}


def options(chart: str, values: Any, *, strict: bool = True, **given: Any) -> tuple[dict[str, Any], list[str]]:
    """Return the keywords for values, and the warnings."""
    of = CHARTS[chart]
    said = {"release_name": of.release, "namespace": "gpu", "version": of.version, "platform": Kubernetes(), **given}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        made = of.options(values, strict=strict, **said)
    assert {warning.category for warning in caught} <= {GpuConstructsWarning}
    return made, [str(warning.message) for warning in caught]


@cache
def _usual(chart: str, version: str, release: str) -> dict[str, str]:
    return {k: short(v) for k, v in options(chart, {}, version=version, release_name=release)[0].items()}


def changes(chart: str, case: Mapping[str, Any], *, strict: bool) -> tuple[dict[str, str], list[str]]:
    """Return the keywords that differ from those for empty values, in short form, and the warnings."""
    of = CHARTS[chart]
    version, release = case.get("version", of.version), case.get("release", of.release)
    made, warned = options(chart, case["values"], strict=strict, version=version, release_name=release)
    usual = _usual(chart, version, release)
    words = {keyword: short(value) for keyword, value in made.items()}
    return {
        keyword: said for keyword, said in words.items() if said != usual.get(keyword, said if said in EMPTY else "")
    }, warned


EMPTY = ("null", "[]", "{}", "false")
WORDS = {None: "null", True: "true", False: "false"}


def short(value: Any) -> str:
    """Return a value in one line. Option classes show only members that are not the default."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        given = {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
        defaults = {
            f.name: f.default_factory() if f.default_factory is not dataclasses.MISSING else f.default
            for f in dataclasses.fields(value)
        }
        said = [f"{n}={short(v)}" for n, v in given.items() if short(v) != short(defaults[n])]
        return f"{type(value).__name__}({', '.join(said)})"
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{key}: {short(one)}' for key, one in value.items())}}}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(short, value))}]"
    return WORDS[value] if value is None or isinstance(value, bool) else str(value)


def read(name: str) -> list[dict[str, Any]]:
    """Return the cases of a file."""
    found: list[dict[str, Any]] = yaml.safe_load((CASES / f"{name}.yaml").read_text(encoding="utf-8"))
    return found


def refusal(chart: str, values: Any, **given: Any) -> str:
    """Return the text of the error."""
    return str(refusals.refused(options, chart, values, **given))
