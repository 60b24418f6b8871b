"""Properties of junk anywhere in mappings that users write: values of charts and patches of Talos."""

import pytest
from cdk8s import App, Chart, Testing
from hypothesis import given, settings
from hypothesis import strategies as st
from test_properties import (
    JUNK,
    MACHINE_CONFIG,
    assert_all_is_sound,
    assert_values_are_sound,
    make,
    quickly,
    schema_errors,
    without_warnings,
)

import talos_structure
from gpu_constructs import (
    DcgmExporter,
    Delivery,
    GpuConstructsError,
    GpuOperator,
    Kubernetes,
    NvidiaGpuExporter,
    Talos,
)
from gpu_constructs.migration.chart import chart
from gpu_constructs.operator.chart_keys import KEYS
from gpu_constructs.talos.config_patches import patched
from house_style import assert_house_style

ODD = [
    *JUNK,
    {"a\nb": "c"},
    {"a\nb": None},
    [{}],
    [""],
    [1],
    [{"name": "a\nb", "value": "c"}],
    "a\x00b",
    {1: 2},
    {"a": object()},
]
ID = "0" * 64
_NOT_FOLLOWED = ("acceptedCAs", "ca", "env", "extraArgs", "pods")
"""Keys whose values the library does not check, because they do not concern GPU nodes."""


def nested(path, value):
    for key in reversed(path):
        value = {key: value}
    return value


def paths(keys):
    sections = {path[:dot] for path in keys for dot, letter in enumerate(path) if letter == "."}
    return sorted({*keys, *sections})


@without_warnings
@settings(quickly, max_examples=150)
@given(
    path=st.sampled_from(paths(KEYS)),
    value=st.sampled_from(ODD),
    delivery=st.sampled_from([Delivery.flux(), Delivery.argo_cd(), Delivery.values()]),
    platform=st.sampled_from([Talos("1.12"), Kubernetes()]),
)
def test_junk_anywhere_in_the_values_is_sound_or_rejected_in_one_line(path, value, delivery, platform):
    values = nested(path.split("."), value)
    try:
        made = make(GpuOperator, "app", {"delivery": delivery, "platform": platform, "values": values})
    except GpuConstructsError as error:
        assert_house_style(error, "gpu/app")
        return
    assert_values_are_sound(made, *made.side_files())
    for manifest in Testing.synth(made.node.scope):
        assert schema_errors(manifest) == []


@without_warnings
@pytest.mark.parametrize(
    ("exporter", "keys"),
    [(DcgmExporter, chart("dcgm-exporter").keys), (NvidiaGpuExporter, chart("nvidia-gpu-exporter").keys)],
)
@settings(quickly, max_examples=100)
@given(data=st.data())
def test_junk_anywhere_in_the_values_of_an_exporter_chart_is_sound_or_rejected_in_one_line(exporter, keys, data):
    path = data.draw(st.sampled_from(paths(keys)))
    value = data.draw(st.sampled_from([odd for odd in ODD if not (isinstance(odd, dict) and "a\nb" in odd)]))
    strict = data.draw(st.booleans())
    options = {"release_name": "gpu", "namespace": "monitoring", "strict": strict}
    try:
        made = exporter.from_helm_values(Chart(App(), "gpu"), "app", nested(path.split("."), value), **options)
    except GpuConstructsError as error:
        assert_house_style(error, "gpu/app")
    else:
        assert_all_is_sound(made)


def places(structure, path=()):
    """Yield every key of a document, with the keys of list items after a 0."""
    if path:
        yield path
    for name, below in structure.get("properties", {}).items():
        if name not in _NOT_FOLLOWED:
            yield from places(below, (*path, name))
    if "properties" in structure.get("items", {}):
        yield from places(structure["items"], (*path, 0))


def at(path, value):
    for key in reversed(path):
        value = [value] if key == 0 else {key: value}
    return value


def documents_with_junk(line):
    for kind, structure in MACHINE_CONFIG[line].items():
        head = {} if kind == talos_structure.CONFIG else {"apiVersion": "v1alpha1", "kind": kind, "name": "own"}
        known = {key: value for key, value in head.items() if key in structure.get("properties", ())}
        for path in places(structure):
            for value in ODD:
                yield {**known, **at(path, value)}


@pytest.mark.parametrize("platform", [Talos("1.12"), Talos("1.14")], ids=str)
def test_junk_anywhere_in_a_patch_is_valid_or_rejected_in_one_line(platform):
    ours = [{"machine": {}}] if platform.machine_config == "v1alpha1" else []
    structures, taken = MACHINE_CONFIG[platform.line], 0
    for patch in documents_with_junk(platform.line):
        try:
            made = patched(ours, [patch], platform=platform, role="worker", schematic_id=ID)
        except GpuConstructsError as error:
            assert_house_style(error)
        except Exception as error:
            error.add_note(repr(patch))
            raise
        else:
            taken += 1
            known = [document for document in made if document.get("kind", talos_structure.CONFIG) in structures]
            assert [problem for one in known for problem in talos_structure.problems(structures, one)] == [], patch
    assert taken > 20
