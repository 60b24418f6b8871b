"""The tables of chart keys: they contain every key of the charts, and their keywords exist."""

import inspect

import chart_cases
import pytest

import chart_tables
import gpu_constructs
from gpu_constructs import DcgmExporter, DevicePluginChart, NvidiaGpuExporter
from gpu_constructs.feature_discovery import node_feature_discovery
from gpu_constructs.migration.chart import chart

CLASSES = {
    "dcgm-exporter": DcgmExporter,
    "nvidia-device-plugin": DevicePluginChart,
    "nvidia-gpu-exporter": NvidiaGpuExporter,
}


@pytest.mark.parametrize("name", CLASSES)
def test_the_table_has_exactly_the_keys_of_the_chart(name):
    for release, leaves in chart_tables.leaves(name).items():
        known = [p for p, k in chart(name).keys.items() if release in (k.releases or (release,))]
        unknown = [leaf for leaf in leaves if not any(f"{leaf}.".startswith(f"{key}.") for key in known)]
        leaves = [*leaves, "global"]  # Helm passes this key to every chart.
        invented = [key for key in known if not any(f"{leaf}.".startswith(f"{key}.") for leaf in leaves)]
        assert (release, unknown, invented) == (release, [], [])


@pytest.mark.parametrize("name", CLASSES)
def test_every_key_names_an_existing_keyword_or_a_reason(name):
    known = chart(name)
    for path, key in known.keys.items():
        assert bool(key.why_not) != bool(key.into or key.note), path
        holder = CLASSES[name].__init__
        words = key.into.split(".") if key.into else []
        for place, word in enumerate(words):
            assert word in inspect.signature(holder).parameters, (path, word)
            if place + 1 < len(words):
                struct = known.structs.get(".".join(words[: place + 1]), known.structs.get(word, ""))
                holder = getattr(gpu_constructs, struct, None) or getattr(node_feature_discovery, struct)


@pytest.mark.parametrize("name", CLASSES)
def test_an_unsupported_key_is_rejected_with_the_reason(name):
    known = chart(name).keys
    odd = {"bool": True, "text": "odd", "number": 7, "number or text": 7, "list": ["odd"], "map": {"odd": 1}}
    for path, key in known.items():
        if key.why_not and not key.is_ignored:
            value = not key.default if key.type == "bool" and key.default is not None else odd[key.type]
            for word in reversed(path.split(".")):
                value = {word: value}
            newest = chart_cases.CHARTS[name].version
            version = newest if newest in (key.releases or (newest,)) else key.releases[-1]
            text = chart_cases.refusal(name, value, version=version)
            assert text == f"values.{path} {key.why_not}{chart_cases.WAY_OUT}"


def test_a_key_of_another_release_is_dropped_with_the_release():
    _, warned = chart_cases.options("dcgm-exporter", {"hostPID": True}, version="3.4.2")
    assert warned == [
        "values.hostPID is dropped: it is not a key of release 3.4.2, which would silently skip it. Leave it out"
    ]
