import json
import re
import tempfile
import warnings
from functools import partial
from pathlib import Path

import cdk8s
import cdk8s_plus_27 as kplus
import constructs
import jsii
import pytest
from cdk8s import ApiObject, ApiObjectMetadata, App, Chart, JsonPatch, Lazy, Names, Testing
from constructs import Construct
from hypothesis import given
from hypothesis import strategies as st

import kernels
from depth import at_depth
from gpu_constructs import (
    CapacityPlan,
    DevicePluginChart,
    GpuAccess,
    GpuNamespace,
    GpuWorkload,
    NvidiaRuntimeClass,
    Talos,
    synthesize,
)
from gpu_constructs.tree.manifest import Manifest
from tables import beside

INCLUDED = Path(__file__).with_name("pod.yaml")
UNUSUAL_IDS = beside(__file__, "deferred_kernel")["unusual_ids"]
IDS = [*["a", "b", "c", "web", "db"] * 5, *UNUSUAL_IDS]
LABELS = [None, {}, {"team": "blue"}, {"team": "red", "stage": "test"}]


class OwnNames(Chart):
    def generate_object_name(self, api_object):
        return f"own-{api_object.node.id.lower()}"


class OwnNamespace(Chart):
    @property
    def namespace(self):
        return "own"


class WithText(Construct):
    def to_string(self):
        return "own text"


@jsii.implements(constructs.IValidation)
class Validation:
    def __init__(self, seen):
        self.seen = seen

    def validate(self):
        self.seen.append("validated")
        return ["problem"] if len(self.seen) % 5 == 4 else []


@jsii.implements(cdk8s.IAnyProducer)
class Produced:
    def produce(self):
        return "produced"


@jsii.implements(cdk8s.IResolver)
class Upper:
    def resolve(self, context):
        if isinstance(context.value, str) and context.value == "resolve-me":
            context.replace_value("resolved")


def manifest(scope, id, name="config"):
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"key": "resolve-me"}}
    return Manifest(scope, id, body)


MAKERS = {
    "Chart": lambda scope, id, n: Chart(scope, id, namespace=[None, "ns", ""][n % 3], labels=LABELS[n % 4]),
    "Chart without hashes": lambda scope, id, n: Chart(scope, id, disable_resource_name_hashes=True),
    "Chart with own names": lambda scope, id, n: OwnNames(scope, id),
    "Chart with own namespace": lambda scope, id, n: OwnNamespace(scope, id),
    "Construct": lambda scope, id, n: Construct(scope, id),
    "Construct with text": lambda scope, id, n: WithText(scope, id),
    "DevicePluginChart": lambda scope, id, n: DevicePluginChart(scope, id, platform=Talos("1.12.11")),
    "GpuNamespace": lambda scope, id, n: GpuNamespace(scope, id, name=["gpu", "apps"][n % 2]),
    "NvidiaRuntimeClass": lambda scope, id, n: NvidiaRuntimeClass(scope, id),
    "GpuWorkload": lambda scope, id, n: GpuWorkload(scope, id, image="registry.k8s.io/pause:3.10"),
    "CapacityPlan": lambda scope, id, n: CapacityPlan(scope, id),
    "Manifest": lambda scope, id, n: manifest(scope, id, f"config-{n}"),
    "ApiObject": lambda scope, id, n: ApiObject(
        scope,
        id,
        api_version=["v1", "a/b/c", "apps/v1"][n % 3],
        kind="ConfigMap",
        metadata=ApiObjectMetadata(name=f"config-{n}", labels=LABELS[n % 4], annotations=LABELS[(n + 1) % 4]),
    ),
    "ApiObject without name": lambda scope, id, n: ApiObject(scope, id, api_version="v1", kind="ConfigMap"),
    "ApiObject with a lazy label": lambda scope, id, n: ApiObject(
        scope,
        id,
        api_version="v1",
        kind="ConfigMap",
        metadata=ApiObjectMetadata(name="lazy", labels={"lazy": Lazy.any(Produced())}),
    ),
    "ConfigMap": lambda scope, id, n: kplus.ConfigMap(scope, id, data={"key": "value"}),
    "Deployment": lambda scope, id, n: kplus.Deployment(
        scope, id, containers=[kplus.ContainerProps(image="pause")], replicas=n % 3
    ),
    "Include": lambda scope, id, n: cdk8s.Include(scope, id, url=str(INCLUDED)),
}
READERS = {
    "path": lambda one, n: one.node.path,
    "id": lambda one, n: one.node.id,
    "addr": lambda one, n: one.node.addr,
    "scope": lambda one, n: one.node.scope,
    "root": lambda one, n: one.node.root,
    "scopes": lambda one, n: one.node.scopes,
    "children": lambda one, n: one.node.children,
    "find_all": lambda one, n: one.node.find_all(),
    "find_all postorder": lambda one, n: one.node.find_all(constructs.ConstructOrder.POSTORDER),
    "find_child": lambda one, n: one.node.find_child(IDS[n % len(IDS)]),
    "try_find_child": lambda one, n: one.node.try_find_child(IDS[n % len(IDS)]),
    "default_child": lambda one, n: one.node.default_child,
    "dependencies": lambda one, n: one.node.dependencies,
    "locked": lambda one, n: one.node.locked,
    "metadata of the node": lambda one, n: len(one.node.metadata),
    "context": lambda one, n: one.node.try_get_context("key"),
    "validate": lambda one, n: one.node.validate(),
    "string": lambda one, n: one.to_string(),
    "Chart.of": lambda one, n: Chart.of(one),
    "ApiObject.of": lambda one, n: ApiObject.of(one),
    "App.of": lambda one, n: App.of(one),
    "is_construct": lambda one, n: Construct.is_construct(one),
    "dns label": lambda one, n: Names.to_dns_label(one),
    "label value": lambda one, n: Names.to_label_value(one, max_len=20),
    "namespace": lambda one, n: one.namespace,
    "labels": lambda one, n: one.labels,
    "name": lambda one, n: one.name,
    "kind": lambda one, n: (one.api_version, one.kind, one.api_group),
    "chart": lambda one, n: one.chart,
    "label of the metadata": lambda one, n: one.metadata.get_label("team"),
    "json": lambda one, n: one.to_json(),
    "api_objects": lambda one, n: one.api_objects,
    "charts": lambda one, n: one.charts,
    "outdir": lambda one, n: one.outdir,
    "extension": lambda one, n: (one.output_file_extension, one.yaml_output_type),
    "resolvers": lambda one, n: [type(resolver).__name__ for resolver in one.resolvers],
    "topology": lambda one, n: cdk8s.DependencyGraph(one.node).topology(),
    "yaml": lambda one, n: one.synth_yaml(),
    "Testing": lambda one, n: Testing.synth(one),
}
CHANGES = {
    "remove child": lambda one, n, seen: one.node.try_remove_child(IDS[n % len(IDS)]),
    "set context": lambda one, n, seen: one.node.set_context("key", n),
    "add metadata": lambda one, n, seen: one.node.add_metadata("kind", n),
    "add label": lambda one, n, seen: one.metadata.add_label("added", str(n)),
    "add patch": lambda one, n, seen: one.add_json_patch(JsonPatch.add("/data", {"n": str(n)})),
    "wrong patch": lambda one, n, seen: one.add_json_patch(JsonPatch.remove("/none/at/all")),
    "add validation": lambda one, n, seen: one.node.add_validation(Validation(seen)),
    "lock": lambda one, n, seen: one.node.lock(),
    "default child": lambda one, n, seen: setattr(one.node, "default_child", one.node.children[0]),
    "mixin": lambda one, n, seen: one.with_(),
    "access": lambda one, n, seen: GpuAccess(one, gpus=1),
    "synthesize": lambda one, n, seen: str(synthesize(one, program="program")),
    "synth": lambda one, n, seen: one.synth(),
}


def shown(value, names):
    """Return a value as text, with constructs by their path."""
    if isinstance(value, Construct):
        return f"<{type(value).__name__} {names(value)}>"
    if isinstance(value, list | tuple):
        return [shown(one, names) for one in value]
    return repr(value)


def suited_to(step, made):
    """Return the constructs to which a step applies."""
    if step in CHARTS:
        return [one for one in made if isinstance(one, App)]
    if step in MAKERS:
        return [one for one in made if isinstance(one, Construct) and not isinstance(one, App)]
    return [one for one in made if step not in METHODS or hasattr(one, METHODS[step])]


METHODS = {
    **dict.fromkeys(["add patch", "wrong patch", "kind", "chart", "name"], "add_json_patch"),
    **dict.fromkeys(["add label", "label of the metadata"], "metadata"),
    **dict.fromkeys(["namespace", "labels", "api_objects", "Testing"], "generate_object_name"),
    **dict.fromkeys(["outdir", "extension", "resolvers", "charts", "yaml"], "outdir"),
    "json": "to_json",
}


def done(step, one, id, n, made, seen):
    """Run a step on a construct, and return its result."""
    if step in MAKERS:
        made.append(MAKERS[step](one, id, n))
        return made[-1]
    if step in READERS:
        return READERS[step](one, n)
    if step == "depend":
        return one.node.add_dependency(made[n % len(made)])
    if step == "another app":
        return made.append(App(outdir=f"{made[0].outdir}-other"))
    return CHANGES[step](one, n, seen)


def observed(program, settings, folder):
    """Run a program of random steps, and return all that it can observe: results, errors, warnings and files."""
    made, seen = [App(outdir=str(folder), **settings)], []

    def path(one):
        return one.node.path

    def record(step, run):
        try:
            seen.append((step, shown(run(), path)))
        except Exception as error:
            seen.append((step, type(error).__name__, str(error), str(error.__cause__).partition("\n")[0]))

    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        first, second, third, ends = program
        for step, which, id, n in [*first, *second, *third]:
            suitable = suited_to(step, made) or made
            record(step, partial(done, step, suitable[which % len(suitable)], id, n, made, seen))
        for end in ends:
            record(end, partial(done, end, made[0], "", 0, made, seen))
    files = {str(file.relative_to(folder)): file.read_text() for file in sorted(folder.rglob("*")) if file.is_file()}
    return seen, [str(one.message) for one in told], files


CHARTS = [name for name in MAKERS if "Chart" in name]
OURS = ["Chart", "Construct", "DevicePluginChart", "GpuNamespace", "NvidiaRuntimeClass", "GpuWorkload", "Manifest"]
BARE = ["ApiObject", "ApiObject without name"]
ENDS = [("synthesize",), ("synth",), ("synthesize", "synth"), ("synthesize", "synthesize")]


def steps_of(names, most):
    step = st.tuples(st.sampled_from(names), st.integers(0, 20), st.sampled_from(IDS), st.integers(0, 99))
    return st.lists(step, min_size=1, max_size=most)


START = [("Chart", 0, "a", 0), ("Chart", 0, "b", 1), ("DevicePluginChart", 0, "plugin", 0)]
programs = st.tuples(
    st.sampled_from([START, START[:1], []]),
    st.one_of(steps_of(OURS, 8), steps_of([*OURS, *BARE] * 2 + [*READERS], 12), steps_of([*MAKERS], 8)),
    st.one_of(st.just([]), steps_of([*READERS, *CHANGES, "depend", "another app", *MAKERS], 10)),
    st.sampled_from(ENDS),
)
app_settings = st.one_of(
    st.just({}),
    st.sampled_from(
        [
            {"record_construct_metadata": True},
            {"record_construct_metadata": False},
            {"output_file_extension": ".yaml"},
            {"resolvers": "upper"},
            *({"yaml_output_type": kind} for kind in cdk8s.YamlOutputType),
        ]
    ),
)


def with_objects(settings):
    return {**settings, **({"resolvers": [Upper()]} if "resolvers" in settings else {})}


def run(kernel, program, settings):
    """Return what a program observes with a kernel, and the kernel. Folders and references have one name."""
    with tempfile.TemporaryDirectory() as name, kernel as used:
        results = observed(program, with_objects(settings), Path(name, "dist"))
        return used, json.loads(re.sub(r"@\d{5,}", "@1", json.dumps(results).replace(name, "FOLDER")))


FIRST = START[:1]
CASES = beside(__file__, "deferred_kernel")["cases"]


# Each case starts Node.js: by default, a third of them has metadata too.
WITH_METADATA = [
    pytest.param(case, marks=() if number % 3 == 0 else pytest.mark.slow) for number, case in enumerate(CASES)
]


@pytest.mark.parametrize("case", CASES)
def test_a_kernel_that_starts_node_js_late_gives_the_same_result_for(case):
    compare_kernels((FIRST, CASES[case], [], ("synthesize", "synth")), {})


@pytest.mark.parametrize("case", WITH_METADATA)
def test_a_kernel_that_starts_node_js_late_gives_the_same_metadata_for(case):
    compare_kernels((FIRST, CASES[case], [], ("synthesize", "synth")), {"record_construct_metadata": True})


def compare_kernels(program, settings):
    _, expected = run(kernels.stock().used(), program, settings)
    _, got = run(kernels.deferred(), program, settings)

    assert got == expected


def test_an_app_of_this_library_does_not_start_node_js(tmp_path):
    with kernels.deferred() as kernel:
        app = App(outdir=str(tmp_path))
        DevicePluginChart(app, "plugin")
        synthesize(app)
        assert not kernel.provider.is_started
        assert len(app.charts) == 1
        assert kernel.provider.is_started


@at_depth(150, quick=4)
@given(programs, app_settings)
def test_a_kernel_that_starts_node_js_late_gives_the_same_results(program, settings):
    compare_kernels(program, settings)
