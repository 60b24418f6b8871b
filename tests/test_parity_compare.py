import copy

import pytest

import deviations
import helm_like
from helm_like import NAME, NEW, NFD, OLD
from parity_chart import Release
from parity_compare import ABSENT, OneSided, compare, same, synthesize
from parity_fields import canonical, show


class Nothing:
    """Judges that nothing is intended."""

    def explain(self, difference, context):
        return None

    def left_out(self, context):
        return ()

    def added(self, context):
        return ()

    def repaired(self, manifest, release):
        return manifest, None

    def of_warning(self, text):
        return None


CONFIGS = {"default": "a", "map": {"a": "version: v1", "b": "flags: {migStrategy: single}"}}
GPU_ONLY = {
    "gfd": {"enabled": True},
    "nfd": {"enabled": False},
    "config": {"map": {"default": "sharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: 4}]}}"}},
}


def release_of(values, version=NEW):
    return Release(release=helm_like.RELEASE, namespace=helm_like.NAMESPACE, version=version, values=values)


def result_of(values, chart, ours, *, judge=None, warned=(), phantoms=None):
    return compare(release_of(values), chart, ours, warned, judge or Nothing(), phantoms)


def daemonset(name=NAME, *, env=(), mounts=(), volumes=(), expressions=(), label=None):
    containers = [{"name": "nvidia-device-plugin-ctr", "image": "i:1", "env": list(env), "volumeMounts": list(mounts)}]
    spec = {"containers": containers, "volumes": list(volumes)}
    if expressions:
        terms = [{"matchExpressions": list(expressions)}]
        required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
        spec["affinity"] = {"nodeAffinity": required}
    return {"kind": "DaemonSet", "metadata": {"name": name}, "spec": {"template": {"spec": spec}}}


def files(name, **data):
    return {
        "kind": "ConfigMap",
        "metadata": {"name": name},
        "data": {key.replace("_", "."): v for key, v in data.items()},
    }


def config_of(config_map):
    mounts = [{"name": "c", "mountPath": "/config"}]
    volumes = [{"name": "c", "configMap": {"name": config_map}}]
    return {"env": [{"name": "CONFIG_FILE", "value": "/config/config.yaml"}], "mounts": mounts, "volumes": volumes}


def told(result, field=""):
    return {
        (d.object, d.config, show(d.path)): (d.chart, d.ours)
        for d in result.unexplained
        if show(d.path).startswith(field)
    }


@pytest.mark.parametrize("others", [(True, 1), (False, 0), (1, "1"), ("", ABSENT), (False, ABSENT), ("a", "b")])
def test_leaves_are_the_same_only_if_value_and_type_are(others):
    one, other = others
    assert same(one, one)
    assert not same(one, other)
    assert not same(other, one)


def test_equal_objects_have_no_difference():
    result = result_of({}, [daemonset()], [daemonset()])
    assert result.unexplained == []
    assert result.matched == len({"image", "imagePullPolicy", "metadata.name"}) + 19 + len({"no label", "none of them"})


def test_an_object_that_one_side_lacks_is_unexplained_field_by_field():
    only_chart = result_of({}, [daemonset()], [])
    only_ours = result_of({}, [], [daemonset()])
    assert {ours for _, ours in told(only_chart).values()} == {ABSENT}
    assert {chart for chart, _ in told(only_ours).values()} == {ABSENT}
    assert told(only_chart).keys() == told(only_ours).keys()


@pytest.mark.parametrize("side", ["chart", "ours"])
def test_an_object_of_unknown_name_and_one_too_many_are_unexplained(side):
    stranger = daemonset("stranger")
    for more in ([stranger], [daemonset()]):
        sides = {"chart": [daemonset()], "ours": [daemonset()]}
        sides[side] = [*sides[side], *more]
        (difference,) = result_of({}, **sides).unexplained
        assert difference.object == f"{more[0]['metadata']['name']} DaemonSet"
        assert "one too many" in str(difference)


def test_settings_are_compared_wherever_they_are_said():
    values = {"config": {"map": {"default": "flags: {migStrategy: single}"}}, "deviceIDStrategy": "index"}
    chart = [
        daemonset(env=[{"name": "DEVICE_ID_STRATEGY", "value": "index"}]),
        files(f"{NAME}-configs", default="flags: {migStrategy: single}"),
    ]
    text = "flags: {migStrategy: single, plugin: {deviceIDStrategy: index}}"
    ours = [daemonset(**config_of(f"{NAME}-config")), files(f"{NAME}-config", config_yaml=text)]
    assert told(result_of(values, chart, ours), "settings") == {}
    ours[1]["data"]["config.yaml"] = text.replace("index", "uuid")
    where = ("plugin DaemonSet", None, "settings.flags.plugin.deviceIDStrategy")
    assert told(result_of(values, chart, ours), "settings") == {where: ("index", "uuid")}


def test_a_file_that_is_not_there_is_no_file_of_defaults():
    ours = [daemonset(**config_of("elsewhere"))]
    result = result_of({}, [daemonset()], ours)
    assert told(result, "settings") == {("plugin DaemonSet", None, "settings.missing"): (ABSENT, "/config/config.yaml")}


LABEL = "nvidia.com/device-plugin.config"


def two(default, other):
    """Our DaemonSets for two configurations, each on the nodes that the expressions let in."""
    return [
        daemonset(**config_of(f"{NAME}-config"), expressions=default),
        daemonset(f"{NAME}-b", **config_of(f"{NAME}-config-b"), expressions=other),
        files(f"{NAME}-config", config_yaml="version: v1"),
        files(f"{NAME}-config-b", config_yaml="flags: {migStrategy: single}"),
    ]


def test_each_configuration_is_compared_with_the_daemonset_that_serves_it():
    values = {"config": CONFIGS}
    chart = [daemonset(), files(f"{NAME}-configs", **CONFIGS["map"])]
    ours = two(
        [{"key": LABEL, "operator": "NotIn", "values": ["b"]}], [{"key": LABEL, "operator": "In", "values": ["b"]}]
    )
    result = result_of(values, chart, ours)
    assert told(result, "settings") == {}
    assert told(result, "serves") == {}
    assert told(result, "pod.nodes") == {}


def test_a_configuration_that_the_charts_config_map_lacks_is_no_file_of_defaults():
    values = {"config": {"map": {"default": "version: v1"}}}
    chart = [daemonset(), files(f"{NAME}-configs")]
    ours = [daemonset(**config_of(f"{NAME}-config")), files(f"{NAME}-config", config_yaml="version: v1")]
    found = told(result_of(values, chart, ours), "settings")
    assert found == {("plugin DaemonSet", None, "settings.missing"): ("default", ABSENT)}


def test_without_a_default_nodes_without_a_label_run_with_nothing():
    values = {"config": {**CONFIGS, "default": "", "fallbackStrategies": ["empty"]}}
    chart = [daemonset(), files(f"{NAME}-configs", **CONFIGS["map"])]
    result = result_of(values, chart, [])
    served = {(config, path): chart for (_, config, path), (chart, _) in told(result, "serves").items()}
    assert {place for place, yes in served.items() if yes} == {
        ("a", "serves[a]"),
        ("b", "serves[b]"),
        (None, "serves[(no label)]"),
        (None, "serves[(none of them)]"),
    }


@pytest.mark.parametrize("text", ["- a", "a", "{"])
def test_a_file_of_nfd_that_is_no_mapping_is_compared_as_it_stands(text):
    def conf(name, data):
        return {"kind": "ConfigMap", "metadata": {"name": name}, "data": {"nfd-worker.conf": data}}

    name = f"{NFD}-worker-conf"
    where = ("nfd-worker ConfigMap", None, "data[nfd-worker.conf]")
    assert told(result_of({}, [conf(name, text)], [conf(name, "{}")])) == {where: (text, ABSENT)}
    assert told(result_of({}, [conf(name, text)], [conf(name, text)])) == {}


def test_a_checksum_is_compared_by_where_it_stands_unless_the_user_wrote_it():
    def summed(text):
        manifest = daemonset()
        manifest["spec"]["template"]["metadata"] = {"annotations": {"checksum/config": text}}
        return manifest

    where = ("plugin DaemonSet", None, "pod.annotations[checksum/config]")
    own = {"podAnnotations": {"checksum/config": "a" * 64}}
    assert told(result_of({}, [summed("a" * 64)], [daemonset()])) == {where: ("(a SHA-256)", ABSENT)}
    assert told(result_of({}, [summed("a")], [daemonset()])) == {where: ("a", ABSENT)}
    assert told(result_of(own, [summed("a" * 64)], [summed("a" * 64)])) == {}
    assert told(result_of(own, [summed("a" * 64)], [summed("b" * 64)])) == {where: ("a" * 64, "b" * 64)}


def with_terms(manifest, *terms):
    required = {"nodeSelectorTerms": [{"matchExpressions": term} for term in terms]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    manifest["spec"]["template"]["spec"]["affinity"] = affinity
    return manifest


def test_every_term_lets_the_same_nodes_in():
    values = {"config": {"map": {"default": "version: v1"}}}
    gpu = {"key": "gpu", "operator": "Exists"}
    of_label = {"key": LABEL, "operator": "In", "values": ["default"]}
    chart = [with_terms(daemonset(), [gpu]), files(f"{NAME}-configs", default="version: v1")]

    def written(*expressions):
        return f"pod.nodes[{canonical({'matchExpressions': list(expressions)})}]"

    def serves(*terms):
        ours = with_terms(daemonset(**config_of(f"{NAME}-config")), *terms)
        result = result_of(values, chart, [ours, files(f"{NAME}-config", config_yaml="version: v1")])
        return {show(difference.path) for difference in result.unexplained if difference.path[1] == "nodes"}

    assert serves([gpu, of_label]) == serves([gpu]) == set()
    assert serves([gpu, of_label], [gpu]) == {written(gpu, of_label)}
    assert serves([gpu, of_label], [of_label]) == {"pod.nodes[{}]"}
    of_another = {"key": LABEL, "operator": "NotIn", "values": ["b"]}
    assert serves([gpu, of_another]) == {written(gpu), written(gpu, of_another)}


def test_an_expression_about_the_label_that_nobody_writes_lets_nobody_in():
    chart = [daemonset(), files(f"{NAME}-configs", **CONFIGS["map"])]
    ours = two([{"key": LABEL, "operator": "Gt"}], [{"key": LABEL, "operator": "In", "values": ["b"]}])
    found = told(result_of({"config": CONFIGS}, chart, ours), "serves")
    nodes = ("(no label)", "(none of them)", "a")
    assert {(config, path) for _, config, path in found} == {("a", f"serves[{node}]") for node in nodes}


@pytest.mark.parametrize(
    ("default", "other", "expected"),
    [
        (
            [{"key": LABEL, "operator": "DoesNotExist"}],
            [{"key": LABEL, "operator": "Exists"}],
            {
                ("a", "serves[a]"): (True, False),
                ("b", "serves[a]"): (False, True),
                ("a", "serves[(none of them)]"): (True, False),
                ("b", "serves[(none of them)]"): (False, True),
            },
        ),
        (
            [{"key": LABEL, "operator": "In", "values": ["a"]}],
            [{"key": LABEL, "operator": "In", "values": ["b"]}],
            {("a", "serves[(no label)]"): (True, False), ("a", "serves[(none of them)]"): (True, False)},
        ),
    ],
)
def test_nodes_that_the_wrong_daemonset_serves_are_unexplained(default, other, expected):
    chart = [daemonset(), files(f"{NAME}-configs", **CONFIGS["map"])]
    result = result_of({"config": CONFIGS}, chart, two(default, other))
    assert {(config, path): values for (_, config, path), values in told(result, "serves").items()} == expected


def test_names_do_not_matter_but_what_they_stand_for():
    values = {"config": {"map": {"default": "version: v1"}}}
    mounts = [{"name": "c", "mountPath": "/files"}]

    def pod(config_map):
        return daemonset(mounts=mounts, volumes=[{"name": "c", "configMap": {"name": config_map}}])

    chart = [pod(f"{NAME}-configs"), files(f"{NAME}-configs", default="version: v1")]
    ours = [pod(f"{NAME}-config"), files(f"{NAME}-config", default="version: v1")]
    path = "pod.containers[nvidia-device-plugin-ctr].mounts[/files].configMap"
    assert told(result_of(values, chart, ours), path) == {}
    assert told(result_of(values, chart, [pod("other"), ours[1]]), path) != {}


class Knows(Nothing):
    """Knows of one object, or a part of one, that one side alone holds."""

    def __init__(self, manifest, *, is_added=False, **options):
        self.row = OneSided("plugin", manifest, number="D1", **options)
        self.is_added = is_added

    def left_out(self, context):
        return () if self.is_added else (self.row,)

    def added(self, context):
        return (self.row,) if self.is_added else ()


@pytest.mark.parametrize("is_added", [False, True])
def test_what_one_side_alone_holds_is_explained_field_by_field(is_added):
    account = {"kind": "ServiceAccount", "metadata": {"namespace": "gpu"}, "secrets": ["a"]}
    name = NAME if is_added else f"{NAME}-service-account"
    named = {**account, "metadata": {**account["metadata"], "name": name}}

    def result(manifests):
        sides = ([], manifests) if is_added else (manifests, [])
        return result_of({}, *sides, judge=Knows(account, is_added=is_added))

    good = result([named])
    assert (good.unexplained, [number for number, _ in good.intended]) == ([], ["D1", "D1"])
    (difference,) = result([{**named, "secrets": ["b"]}]).unexplained
    assert str(difference).endswith("(D1 has 'a' here)")
    assert result([{**named, "secrets": ["a", "b"]}]).unexplained
    assert result([]).unexplained
    assert result([{**named, "secrets": []}]).unexplained


def test_a_part_that_one_side_alone_holds_explains_no_more_than_itself():
    part = {"kind": "DaemonSet", "metadata": {}, "spec": {"template": {"spec": {"hostPID": True}}}}
    chart = daemonset()
    chart["spec"]["template"]["spec"] |= {"hostPID": True, "hostIPC": True}
    result = result_of({}, [chart], [daemonset()], judge=Knows(part, is_part=True))
    assert [show(difference.path) for _, difference in result.intended] == ["pod.hostPID"]
    assert [show(difference.path) for difference in result.unexplained] == ["pod.hostIPC"]


def test_a_phantom_is_compared_but_never_equal():
    result = result_of({}, [daemonset()], [daemonset()], phantoms={("DaemonSet", NAME): "D41"})
    assert (result.matched, result.unexplained) == (0, [])
    assert {(number, difference.ours) for number, difference in result.intended} == {("D41", ABSENT)}


def test_a_warning_about_a_value_must_be_a_deviation():
    warned = ["values.x is dropped: it is odd", "think twice"]
    result = result_of({}, [], [], warned=warned)
    assert [difference.ours for difference in result.unexplained] == warned[:1]
    assert result.advice == warned[1:]


def leaves(value, path=()):
    if isinstance(value, dict):
        for key, member in value.items():
            yield from leaves(member, (*path, key))
    elif isinstance(value, list):
        for place, item in enumerate(value):
            yield from leaves(item, (*path, place))
    else:
        yield path


def changed(manifest, path):
    manifest = copy.deepcopy(manifest)
    *parents, last = path
    place = manifest
    for parent in parents:
        place = place[parent]
    old = place[last]
    place[last] = not old if isinstance(old, bool) else 7 if old is None else old + ("x" if isinstance(old, str) else 1)
    return manifest


def test_no_changed_value_of_a_chart_goes_unexplained():
    """But for the name of a volume that nothing mounts, which is nobody's."""
    release = release_of(GPU_ONLY)
    chart = helm_like.render(GPU_ONLY)
    ours, warned = synthesize(release)
    assert compare(release, chart, ours, warned, deviations).unexplained == []
    missed = []
    for place, manifest in enumerate(chart):
        for path in leaves(manifest):
            others = [*chart[:place], changed(manifest, path), *chart[place + 1 :]]
            if not compare(release, others, ours, warned, deviations).unexplained:
                missed.append((manifest["kind"], manifest["metadata"]["name"], *path))
    unmounted = [f"{NAME}-gpu-feature-discovery", "spec", "template", "spec", "volumes", 2, "name"]
    assert missed == [("DaemonSet", *unmounted)]


def test_no_object_of_a_chart_can_go_or_come_unexplained():
    values = {**GPU_ONLY, "nfd": {"enabled": True}}
    release = release_of(values, OLD)
    chart = helm_like.render(values, OLD)
    ours, warned = synthesize(release)
    assert compare(release, chart, ours, warned, deviations).unexplained == []
    for place, manifest in enumerate(chart):
        for others in ([*chart[:place], *chart[place + 1 :]], [*chart, manifest]):
            assert compare(release, others, ours, warned, deviations).unexplained, manifest["metadata"]["name"]


def test_no_object_of_ours_can_go_or_come_unexplained():
    values = {**GPU_ONLY, "nfd": {"enabled": True}, "runtimeClassName": "nvidia"}
    release = release_of(values)
    chart = helm_like.render(values)
    ours, warned = synthesize(release)
    assert compare(release, chart, ours, warned, deviations).unexplained == []
    for place, manifest in enumerate(ours):
        for others in ([*ours[:place], *ours[place + 1 :]], [*ours, manifest]):
            assert compare(release, chart, others, warned, deviations).unexplained, manifest["metadata"]["name"]
