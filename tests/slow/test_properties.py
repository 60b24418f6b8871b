"""Properties of any input: accepted input becomes correct manifests, and rejected input raises a one-line error."""

import dataclasses
import hashlib
import inspect
import math
import re
from collections import OrderedDict
from enum import StrEnum
from types import MappingProxyType

import drawn
import pytest
from cdk8s import App, Chart, Testing
from drawn import HASH, call, required_of
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st

import gpu_constructs
import invariants
import schemas
import talos_structure
from gpu_constructs import (
    Backend,
    BasicAuth,
    CapacityPlan,
    ComfyUI,
    CudaSmokeTest,
    DcgmExporter,
    DevicePluginChart,
    FeatureRule,
    GpuConstructsError,
    GpuDeviceClass,
    GpuOperator,
    GpuProfile,
    GpuResourceClaim,
    GpuRuntimeInjection,
    KatibExperiment,
    KatibParameter,
    Kubernetes,
    NodeFeatureRule,
    NvidiaGpuExporter,
    PyTorchTraining,
    Sharing,
    Talos,
    TalosGpuNode,
    Toleration,
    TrainingPod,
    Volume,
)
from gpu_constructs.kube.pod_specs import containers, pod_specs
from house_style import assert_house_style

NEWEST = schemas.SUPPORTED_RELEASES[-1]
MACHINE_CONFIG = talos_structure.committed()
INT32 = 2**31 - 1

_LABEL_VALUE = re.compile(r"(([A-Za-z0-9][-A-Za-z0-9_.]{0,61})?[A-Za-z0-9])?\Z")
_DNS_NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?(\.[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)*\Z")

quickly = settings(max_examples=60)
without_warnings = pytest.mark.filterwarnings("ignore::gpu_constructs.GpuConstructsWarning")

# --- what must hold ----------------------------------------------------------


def numbers(value):
    if isinstance(value, dict):
        for member in value.values():
            yield from numbers(member)
    elif isinstance(value, list):
        for item in value:
            yield from numbers(item)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield value


def schema_errors(manifest):
    return schemas.schema_errors(manifest, [NEWEST])


def labels_of(manifest):
    yield manifest["metadata"].get("labels", {})
    template = manifest.get("spec", {}).get("template", {})
    yield template.get("metadata", {}).get("labels", {})
    for spec in pod_specs(manifest):
        yield spec.get("nodeSelector", {})


def assert_gpu_pod_holds_what_it_uses(spec):
    """Check the pods of the device plugin's image, which have the same properties for any input."""
    programs = {container["command"][0]: container for container in spec["containers"]}
    assert not (spec.get("hostPID") and spec.get("shareProcessNamespace"))
    asks_the_api = not programs.keys().isdisjoint({"gpu-feature-discovery", "config-manager"})
    assert spec["automountServiceAccountToken"] == ("serviceAccountName" in spec) == asks_the_api
    if "config-manager" in programs:
        assert spec.get("hostPID") or spec["shareProcessNamespace"]
    for container in containers(spec):
        security = container["securityContext"]
        is_mighty = security.get("privileged") or "SYS_ADMIN" in security["capabilities"].get("add", ())
        told = {variable["name"] for variable in container.get("env", ())}
        assert is_mighty or "NVIDIA_MIG_MONITOR_DEVICES" not in told
        assert security.get("privileged") or security["capabilities"]["drop"] == ["ALL"]
        assert all(variable.get("value", "by reference") for variable in container.get("env", ()))


def assert_sound(manifests):
    invariants.hold_for(manifests, [NEWEST])
    for manifest in manifests:
        if manifest["kind"] != "CustomResourceDefinition":  # a constant, tested with its file
            assert _DNS_NAME.match(manifest["metadata"]["name"])
            assert all(_LABEL_VALUE.match(value) for labels in labels_of(manifest) for value in labels.values())
            # The goal of an Experiment can be any number.
            assert manifest["kind"] == "Experiment" or all(abs(number) <= INT32 for number in numbers(manifest))


def assert_machine_config_is_sound(node, *files):
    *patches, schematic = files
    documents = [document for patch in patches for document in schemas.load_yaml(patch.text)]
    assert documents == node.machine_config
    for document in documents:
        if document.get("kind", talos_structure.CONFIG) in talos_structure.KINDS:
            assert list(talos_structure.problems(MACHINE_CONFIG[node.platform.line], document)) == []
    first, text = schematic.text.split("\n", 1)
    assert first == f"# Schematic {hashlib.sha256(text.encode()).hexdigest()}"
    assert schemas.load_yaml(text) == [node.schematic.to_dict()]


def assert_values_are_sound(operator, file):
    assert schemas.load_yaml(file.text) == [operator.values]


def fresh_scope(construct):
    return App() if issubclass(construct, Chart) else Chart(App(), "gpu")


def make(construct, id, options, scope=None):
    return construct(scope or fresh_scope(construct), id, **options)


def side_files(made):
    return made.side_files() if isinstance(made, GpuOperator | TalosGpuNode) else []


def assert_all_is_sound(made):
    """Check the manifests and files of a construct, and return the manifests."""
    manifests = Testing.synth(Chart.of(made))
    assert_sound(manifests)
    if isinstance(made, GpuOperator):
        assert_values_are_sound(made, *side_files(made))
    if isinstance(made, TalosGpuNode):
        assert_machine_config_is_sound(made, *side_files(made))
    if isinstance(made, DevicePluginChart):
        for spec in (spec for manifest in manifests for spec in pod_specs(manifest)):
            if spec["containers"][0]["command"][0] in ("nvidia-device-plugin", "gpu-feature-discovery"):
                assert_gpu_pod_holds_what_it_uses(spec)
    return manifests


def assert_sound_or_refused(construct, options, scope):
    """Check one attempt. A rejected attempt must leave the scope free for the next one."""
    try:
        made = make(construct, "app", options, scope)
    except GpuConstructsError as error:
        assert_house_style(error, "app" if issubclass(construct, Chart) else "gpu/app")
        return False
    assert_all_is_sound(made)
    return True


# --- any input -----------------------------------------------------------------

CONSTRUCTS = [construct for construct in drawn.constructs() if construct is not CapacityPlan]
CLAIMS = GpuProfile(platform=Kubernetes(), backend=Backend.dra_claims())
NEEDED = {
    NodeFeatureRule: {"rules": [FeatureRule(name="gpu", labels={"example.com/gpu": "true"})]},
    # These take half a second to draw and to check: definitions of Node Feature Discovery, a dashboard.
    DevicePluginChart: {"node_feature_discovery": "external"},
    DcgmExporter: {"dashboard": False},
    NvidiaGpuExporter: {"dashboard": False},
    ComfyUI: {"image": "docker.io/yanwk/comfyui-boot:cu130-slim-v2"},
    CudaSmokeTest: {"slots": 4},
    GpuDeviceClass: {"profile": CLAIMS},
    GpuResourceClaim: {"profile": CLAIMS},
    GpuRuntimeInjection: {"platform": Kubernetes(), "runtime_class": "nvidia"},
    KatibExperiment: {
        "trial": TrainingPod(script="print()", args=["${trialParameters.x}"]),
        "parameters": {"x": KatibParameter.discrete(1, 2)},
    },
    PyTorchTraining: {"pod": TrainingPod(script="print()")},
}
each_construct = pytest.mark.parametrize("construct", CONSTRUCTS, ids=lambda construct: construct.__name__)


def keywords_of(construct):
    hints = drawn.hints_of(construct)
    return {name: drawn.value(hint, name) for name, hint in hints.items()}


def least(strategy):
    """Return the smallest value of a strategy."""
    return find(strategy, lambda _: True, settings=settings(phases=[Phase.generate]))


def needed_by(construct):
    """Return the keywords that a construct needs, or that make it faster."""
    keywords = keywords_of(construct)
    return {**{name: least(keywords[name]) for name in required_of(construct)}, **NEEDED.get(construct, {})}


@without_warnings
@each_construct
def test_valid_combinations_of_any_input_are_sound_and_deterministic(construct):
    keywords, needed, taken = keywords_of(construct), needed_by(construct), set()
    path = "app" if issubclass(construct, Chart) else "gpu/app"
    most = min(8, len(keywords))

    @settings(quickly, max_examples=40)
    @given(data=st.data())
    def any_input(data):
        chosen = data.draw(st.sets(st.sampled_from(sorted(keywords)), min_size=most // 2, max_size=most))
        options, scope = {name: data.draw(keywords[name]) for name in sorted(chosen)}, fresh_scope(construct)
        made = drawn.accepted(lambda given: make(construct, "app", {**needed, **given}, scope), options, path)
        manifests = assert_all_is_sound(made)
        again = make(construct, "app", {**needed, **options})
        assert (Testing.synth(Chart.of(again)), side_files(again)) == (manifests, side_files(made))
        taken.update(options)

    any_input()
    assert len(taken) >= len(keywords) * 0.7, sorted(set(keywords) - taken)


class Word(StrEnum):
    A = "a"


JUNK = [
    *(None, True, False, 0, -1, INT32 + 1, 10**30, 1.5, math.nan, math.inf, b"", "", " ", "\n", "a\nb", "a b:1"),
    *("ünïcödé", "٣", "²", "UPPER", "a" * 300, [], {}, [None], {"": ""}, {"a": None}, {None: "a"}, {"limits": None}),
    *({"requests": {"": ""}}, {"limits": {"memory": "-1"}}, object, object(), range(3), Talos(), Sharing.none()),
    *(Toleration(operator="Exists"), Volume.empty_dir(), Word.A, {Word.A: Word.A}, OrderedDict(a="b")),
    MappingProxyType({"a": "b"}),
]


@without_warnings
@each_construct
def test_junk_in_any_keyword_is_sound_or_rejected_in_one_line(construct):
    needed, scope = needed_by(construct), fresh_scope(construct)
    for keyword in keywords_of(construct):
        # Other tests draw the first entries of the list often enough.
        for value in JUNK[3:]:
            try:
                accepted = assert_sound_or_refused(construct, {**needed, keyword: value}, scope)
            except Exception as error:
                error.add_note(f"{keyword}={value!r}")
                raise
            if accepted:
                scope = fresh_scope(construct)


@without_warnings
@each_construct
def test_any_id_is_sound_or_rejected_in_one_line(construct):
    for id in ("app", "a\nb", "my app", "a/b", "App", "ünïcödé", "a" * 80, "-", "a_b", "a.b", "1"):
        try:
            made = make(construct, id, needed_by(construct))
        except GpuConstructsError as error:
            assert_house_style(error, error.path)
        else:
            assert_all_is_sound(made)


STRUCTS = [one for one in map(vars(gpu_constructs).get, gpu_constructs.__all__) if dataclasses.is_dataclass(one)]


def ways_to_make(struct):
    found = vars(struct).items()
    makers = [name for name, member in found if isinstance(member, classmethod) and name not in drawn.READERS]
    return [struct, *(getattr(struct, name) for name in makers)]


@without_warnings
@pytest.mark.parametrize("struct", STRUCTS, ids=lambda struct: struct.__name__)
def test_any_option_struct_is_accepted_or_rejected_in_one_line(struct):
    for way in ways_to_make(struct):
        hints = drawn.hints_of(way)
        needed = {name: least(drawn.value(hints[name], name)) for name in required_of(way) if name in hints}
        for name in inspect.signature(way).parameters:
            for value in JUNK:
                try:
                    call(way, {**needed, name: value})
                except GpuConstructsError as error:
                    assert_house_style(error)
                except Exception as error:
                    error.add_note(f"{way.__qualname__}({name}={value!r})")
                    raise


def test_a_password_in_place_of_a_hash_is_not_shown():
    for given_options in (
        {"users": {"prometheus": "hunter2"}},
        {"users": [("prometheus", "hunter2")]},
        {"users": {"prometheus:hunter2": ""}},
        {"users": {"prometheus": HASH}, "password": "hunter2"},
    ):
        with pytest.raises(GpuConstructsError) as refused:
            BasicAuth(**given_options)
        assert str(refused.value).splitlines() == [str(refused.value)]
        assert "hunter2" not in str(refused.value)
