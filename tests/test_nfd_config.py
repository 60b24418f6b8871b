import copy
import re

import pytest
import yaml

from gpu_constructs import GpuConstructsError, versions
from gpu_constructs._yaml import yaml_text
from gpu_constructs.feature_discovery import nfd_config

OLD, NEW = (versions.DEVICE_PLUGIN[release].node_feature_discovery for release in ("0.18.2", "0.20.0"))
GPU_RULE = {
    "name": "nvidia gpu present",
    "labels": {"nvidia.com/gpu.present": "true"},
    "matchFeatures": [
        {
            "feature": "pci.device",
            "matchExpressions": {
                "vendor": {"op": "In", "value": ["10de"]},
                "class": {"op": "In", "value": ["0300", "0302"]},
            },
        }
    ],
}
WHY = "else no node would get nvidia.com/gpu.present and no GPU pod a node"
SKIPPED = "which the program would skip without a word"


class CoreSchemaLoader(yaml.SafeLoader):
    """Takes plain scalars for what YAML 1.2 takes them for: 02 and 0300 are numbers there, too."""


CoreSchemaLoader.yaml_implicit_resolvers = {}
for tag, pattern in {
    "null": r"~|null|Null|NULL|",
    "bool": r"true|True|TRUE|false|False|FALSE",
    "int": r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+",
    "float": r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)",
}.items():
    CoreSchemaLoader.add_implicit_resolver(f"tag:yaml.org,2002:{tag}", re.compile(f"(?:{pattern})\\Z"), None)

LOADERS = pytest.mark.parametrize("loader", [yaml.SafeLoader, CoreSchemaLoader], ids=["yaml-1.1", "yaml-1.2"])


def worker(sources=None, core=None):
    return nfd_config.worker_config({"sources": sources or {}, "core": core or {}})


def rule(**given):
    return worker({"custom": [{"name": "mine", "labels": {"example.com/mine": "yes"}, **given}]})


def matching(expression):
    return rule(matchFeatures=[{"feature": "cpu.model", "matchExpressions": {"vendor_id": expression}}])


def refusal(function, *given, **named):
    with pytest.raises(GpuConstructsError) as refused:
        function(*given, **named)
    return str(refused.value)


# --- what stands in the files by default ----------------------------------------------------------------------


@LOADERS
def test_device_classes_stay_text_for_every_yaml_reader(loader):
    read = yaml.load(yaml_text(nfd_config.worker_config({})), loader)
    assert read == {
        "sources": {
            "pci": {"deviceClassWhitelist": ["02", "03"], "deviceLabelFields": ["vendor"]},
            "custom": [GPU_RULE],
        }
    }


def test_the_reader_for_yaml_1_2_would_notice_a_class_without_quotes():
    assert [type(item) for item in yaml.load("[0300, 02, 10de, yes]", CoreSchemaLoader)] == [int, int, str, str]


def test_the_master_allows_labels_of_nvidia():
    assert nfd_config.master_config({}) == {"extraLabelNs": ["nvidia.com"]}


def test_the_topology_updater_has_nothing_to_be_told():
    assert nfd_config.topology_updater_config({}) == {}


# --- the user's file over ours --------------------------------------------------------------------------------


def test_a_key_is_laid_over_ours_and_the_rest_stays():
    config = worker({"pci": {"deviceClassWhitelist": ["03"]}}, {"sleepInterval": "2m"})
    assert config["sources"]["pci"] == {"deviceClassWhitelist": ["03"], "deviceLabelFields": ["vendor"]}
    assert config["core"] == {"sleepInterval": "2m"}


def test_none_takes_a_key_of_ours_away():
    assert "pci" not in worker({"pci": None})["sources"]
    assert nfd_config.master_config({"extraLabelNs": None}) == {}


def test_none_in_a_rule_of_the_users_is_a_condition_and_stays():
    made = rule(matchFeatures=[{"feature": "cpu.cpuid", "matchExpressions": {"AVX": None}}])
    assert made["sources"]["custom"][1]["matchFeatures"][0]["matchExpressions"] == {"AVX": None}


def test_the_rule_that_marks_gpu_nodes_stays_beside_rules_of_the_users():
    rules = rule()["sources"]["custom"]
    assert rules == [GPU_RULE, {"name": "mine", "labels": {"example.com/mine": "yes"}}]


@pytest.mark.parametrize("given", [{"custom": None}, {"custom": []}])
def test_the_rule_that_marks_gpu_nodes_cannot_be_taken_away(given):
    assert worker(given)["sources"]["custom"] == [GPU_RULE]
    assert nfd_config.worker_config({"sources": None})["sources"] == {"custom": [GPU_RULE]}


def test_a_rule_of_the_users_for_the_same_label_takes_its_place():
    mine = {**GPU_RULE, "name": "mine"}
    assert worker({"custom": [mine]})["sources"]["custom"] == [mine]


def test_neither_ours_nor_the_users_file_is_changed_by_laying_one_over_the_other():
    ours, given = copy.deepcopy(nfd_config.WORKER), {"sources": {"custom": [{"name": "a", "labels": {"a": "b"}}]}}
    before = copy.deepcopy(given)
    made = nfd_config.worker_config(given)
    made["sources"]["custom"][0]["labels"]["c"] = "d"
    made["sources"]["custom"][1]["labels"]["c"] = "d"
    assert (ours, before) == (nfd_config.WORKER, given)


def test_tuples_and_other_mappings_are_written_as_plain_yaml():
    config = worker({"pci": {"deviceClassWhitelist": ("03", "12")}})
    assert yaml.safe_load(yaml_text(config))["sources"]["pci"]["deviceClassWhitelist"] == ["03", "12"]


# --- keys and plain values ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"source": {}}, f"worker.config has no key 'source', {SKIPPED} (did you mean 'sources'?)"),
        (
            {"sources": {"pci": {"deviceClassWhitlist": ["02"]}}},
            f"worker.config.sources.pci has no key 'deviceClassWhitlist', {SKIPPED} (did you mean "
            "'deviceClassWhitelist'?)",
        ),
        (
            {"sources": {"memory": {}}},
            f"worker.config.sources has no key 'memory', {SKIPPED}; it has cpu, kernel, pci, usb, custom, fake, local",
        ),
        ({"sources": {"local": {"dir": "/"}}}, f"worker.config.sources.local has no key 'dir', {SKIPPED}"),
        ({"sources": []}, "worker.config.sources must hold keys and values; got []"),
        (
            {"core": {"sleepInterval": 60}},
            "worker.config.core.sleepInterval must be text with a unit, like '60s'; got 60, which the program takes "
            "for nanoseconds",
        ),
        (
            {"core": {"sleepInterval": "60"}},
            "worker.config.core.sleepInterval must be a duration with a unit, like '60s' or '1h30m'; got '60'",
        ),
        ({"core": {"noOwnerRefs": "no"}}, "worker.config.core.noOwnerRefs must be true or false; got 'no'"),
        (
            {"core": {"sources": ["pci"]}},
            "worker.config.core.sources must be left out; it is the old name of labelSources",
        ),
        (
            {"core": {"ownerRefs": []}},
            "worker.config.core.ownerRefs must be left out; set owner_refs, which would override it",
        ),
        (
            {"core": {"labelSources": ["all", "-pcii"]}},
            "worker.config.core.labelSources[1] must be one of 'all', 'cpu', 'fake', 'kernel', 'local', 'memory', "
            "'network', 'pci', 'storage', 'system', 'usb', 'custom'; got 'pcii' (did you mean 'pci'?)",
        ),
        (
            {"core": {"featureSources": ["custom", "pci"]}},
            "worker.config.core.featureSources[0] must be one of 'all', 'cpu', 'fake', 'kernel', 'local', 'memory', "
            "'network', 'pci', 'storage', 'system', 'usb'; got 'custom'",
        ),
        ({"core": {"klog": {"v": []}}}, "worker.config.core.klog.v must be text or a number; got []"),
        (
            {"core": {"klog": {"log_dir": "/"}}},
            f"worker.config.core.klog has no key 'log_dir', {SKIPPED} (did you mean 'logDir'?)",
        ),
        (
            {"sources": {"cpu": {"cpuid": {"attributeWhitelist": "AVX"}}}},
            "worker.config.sources.cpu.cpuid.attributeWhitelist must be a list; got 'AVX'",
        ),
        (
            {"sources": {"kernel": {"configOpts": [5]}}},
            "worker.config.sources.kernel.configOpts[0] must be text; got 5 (int); in YAML, quote it: 0300 without "
            "quotes is a number",
        ),
        (
            {"sources": {"fake": {"instanceFeatures": ["a"]}}},
            "worker.config.sources.fake.instanceFeatures[0] must hold keys and values; got 'a'",
        ),
        (
            {"sources": {"fake": {"labels": {"a": 1}}}},
            "worker.config.sources.fake.labels['a'] must be text; got 1 (int); in YAML, quote it: 0300 without quotes "
            "is a number",
        ),
    ],
    ids=lambda value: str(value)[:50] if isinstance(value, dict) else "",
)
def test_what_the_worker_would_skip_or_not_start_with_is_refused(given, message):
    assert refusal(nfd_config.worker_config, given) == message


@pytest.mark.parametrize(
    "given",
    [
        {"core": {"klog": {"v": 4, "addDirHeader": True, "logDir": "/log"}}},
        {"core": {"labelSources": ["-usb", "all"], "featureSources": ["pci", "cpu"], "labelWhiteList": "gpu|cpu"}},
        {"core": {"noPublish": False, "noOwnerRefs": True, "noPublishFeatures": ["pci.*"]}},
        {"sources": {"cpu": {"cpuid": {"attributeBlacklist": [], "attributeWhitelist": ["AVX"]}}}},
        {"sources": {"kernel": {"kconfigFile": "/boot/config", "configOpts": ["NO_HZ"]}, "local": {}}},
        {"sources": {"usb": {"deviceClassWhitelist": [], "deviceLabelFields": ["class", "serial"]}}},
        {"sources": {"fake": {"labels": {"a": "b"}, "flagFeatures": ["a"], "instanceFeatures": [{"a": "b"}]}}},
    ],
    ids=str,
)
def test_what_the_worker_reads_is_written_as_it_is_given(given):
    made = nfd_config.worker_config(given)
    for section, members in given.items():
        assert {key: made[section][key] for key in members} == members


# --- device classes -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("classes", [["03"], ["0b40", "12"], ["0B"], ["0"]], ids=str)
def test_classes_are_the_first_hex_digits(classes):
    assert worker({"pci": {"deviceClassWhitelist": classes}})["sources"]["pci"]["deviceClassWhitelist"] == classes


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([], " must not be empty: no PCI device would be labelled; leave it out for ours"),
        ("03", " must be a list; got '03'"),
        (
            ["03", 2],
            "[1] must be text like '03'; got 2 (int); in YAML, quote it: 02 without quotes is the number 2, which "
            "matches no device",
        ),
        (["03000"], "[0] must be the 1 to 4 first hex digits of a class; got '03000'"),
        ([""], "[0] must be the 1 to 4 first hex digits of a class; got ''"),
        (["3g"], "[0] must be the 1 to 4 first hex digits of a class; got '3g'"),
    ],
    ids=str,
)
def test_classes_that_match_no_device_are_refused(given, message):
    got = refusal(worker, {"pci": {"deviceClassWhitelist": given}})
    assert got == f"worker.config.sources.pci.deviceClassWhitelist{message}"


def test_the_classes_of_usb_have_two_digits():
    assert refusal(worker, {"usb": {"deviceClassWhitelist": ["0300"]}}) == (
        "worker.config.sources.usb.deviceClassWhitelist[0] must be the 1 to 2 first hex digits of a class; got '0300'"
    )


@pytest.mark.parametrize(
    ("source", "fields"),
    [
        ("pci", ["class", "vendor", "device", "subsystem_vendor", "subsystem_device"]),
        ("usb", ["class", "vendor", "device", "serial"]),
    ],
)
def test_a_label_can_hold_what_the_worker_knows_of_a_device(source, fields):
    assert worker({source: {"deviceLabelFields": fields}})["sources"][source]["deviceLabelFields"] == fields


def test_a_field_that_no_label_can_hold_is_refused():
    assert refusal(worker, {"pci": {"deviceLabelFields": ["vendr"]}}) == (
        "worker.config.sources.pci.deviceLabelFields[0] must be one of 'class', 'vendor', 'device', "
        "'subsystem_vendor', 'subsystem_device'; got 'vendr' (did you mean 'vendor'?)"
    )
    assert refusal(worker, {"pci": {"deviceLabelFields": []}}) == (
        "worker.config.sources.pci.deviceLabelFields must not be empty: that means class and vendor; leave it out for "
        "ours"
    )


# --- rules ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "given",
    [
        {"labels": {"example.com/a": True}},
        {"labels": {"example.com/a": "@cpu.model.vendor_id"}},
        {"labelsTemplate": "{{ range .pci.device }}a=b\n{{ end }}", "labels": {}},
        {"vars": {"a": "b"}, "labels": None},
        {"varsTemplate": "a=b"},
        {"matchFeatures": [{"feature": "kernel.loadedmodule", "matchName": {"op": "InRegexp", "value": ["^nv"]}}]},
        {"matchFeatures": [{"feature": "cpu.cpuid", "matchExpressions": ["AVX", "family=6"]}]},
        {"matchAny": [{"matchFeatures": [{"feature": "rule.matched", "matchExpressions": {"a": "b"}}]}]},
    ],
    ids=str,
)
def test_a_rule_that_the_worker_reads_is_written_as_it_is_given(given):
    made = rule(**given)["sources"]["custom"][1]
    assert {key: made.get(key) for key in given} == given


@pytest.mark.parametrize(
    "expression",
    [
        "Intel",
        True,
        ["Intel", "AMD"],
        {"op": "In", "value": "Intel"},
        {"op": "NotIn", "value": ["Intel"]},
        {"op": "In", "value": True},
        {"op": "Exists"},
        {"op": "DoesNotExist", "value": []},
        {"op": "IsTrue"},
        {"op": "IsFalse"},
        {"op": "Gt", "value": ["5"]},
        {"op": "Lt", "value": "-5"},
        {"op": "GtLt", "value": ["3", "10"]},
    ],
    ids=str,
)
def test_an_expression_that_the_worker_reads_is_written_as_it_is_given(expression):
    term = matching(expression)["sources"]["custom"][1]["matchFeatures"][0]
    assert term["matchExpressions"]["vendor_id"] == expression


QUOTE = "in YAML, quote it: 0300 without quotes is a number"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"matchOn": []}, ".matchOn must be left out: it was the old way to write a rule, which yields nothing now; "),
        ({"taints": []}, ".taints must be left out: only NodeFeatureRule objects have it"),
        ({"annotations": {}}, ".annotations must be left out: only NodeFeatureRule objects have it"),
        ({"extendedResources": {}}, ".extendedResources must be left out: only NodeFeatureRule objects have it"),
        ({"matchFeature": []}, f" has no key 'matchFeature', {SKIPPED} (did you mean 'matchFeatures'?)"),
        ({"labels": {}}, " must have one of labels, labelsTemplate, vars, varsTemplate, else it yields nothing"),
        ({"labels": {"a": 5}}, f".labels['a'] must be text; got 5 (int); {QUOTE}"),
        ({"labels": {"a b": "c"}}, ".labels has a key that is no label key; got 'a b'"),
        ({"labels": {"a": "b c"}}, ".labels['a'] must be a label value (letters, digits, '-', '_', '.', at most 63 "),
        ({"labels": ["a"]}, ".labels must hold keys and values; got ['a']"),
        (
            {"matchFeatures": [{"feature": "pci.devices"}]},
            ".matchFeatures[0].feature must be a feature that the worker discovers, else the rule matches nothing; got "
            "'pci.devices' (did you mean 'pci.device'?)",
        ),
        (
            {"matchAny": [{"matchFeatures": [{"feature": "gpu"}]}]},
            ".matchAny[0].matchFeatures[0].feature must be a feature that the worker discovers, else the rule matches "
            "nothing; got 'gpu'; there are cpu.coprocessor, cpu.cpuid, ",
        ),
        ({"matchFeatures": [{}]}, ".matchFeatures[0].feature is required"),
        ({"matchAny": [{"matchName": {}}]}, f".matchAny[0] has no key 'matchName', {SKIPPED}"),
    ],
    ids=lambda value: str(value)[:50] if isinstance(value, dict) else "",
)
def test_a_rule_that_yields_nothing_or_less_than_it_says_is_refused(given, message):
    assert refusal(rule, **given).startswith(f"worker.config.sources.custom[0]{message}")


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        (192, f" must be text; got 192 (int); {QUOTE}"),
        ([192], f"[0] must be text; got 192 (int); {QUOTE}"),
        ([], " must hold 1 or more for In; got []"),
        ({"value": ["a"]}, ".op is required"),
        (
            {"op": "in", "value": ["a"]},
            ".op must be one of 'In', 'NotIn', 'InRegexp', 'Exists', 'DoesNotExist', 'Gt', 'Lt', 'GtLt', 'IsTrue', "
            "'IsFalse', else the worker does not start; got 'in'",
        ),
        ({"op": "Ge", "value": ["5"]}, ".op must be one of 'In', 'NotIn', "),
        ({"op": "In", "vlaue": ["a"]}, f" has no key 'vlaue', {SKIPPED} (did you mean 'value'?)"),
        ({"op": "In"}, ".value must hold 1 or more for In; got []"),
        ({"op": "In", "value": 192}, f".value must be text; got 192 (int); {QUOTE}"),
        ({"op": "Exists", "value": ["a"]}, ".value must hold none for Exists; got ['a']"),
        ({"op": "Gt", "value": ["1", "2"]}, ".value must hold exactly 1 for Gt; got ['1', '2']"),
        ({"op": "Gt", "value": ["a"]}, ".value must be whole numbers as text for Gt; got ['a']"),
        ({"op": "GtLt", "value": ["5"]}, ".value must hold exactly 2 for GtLt; got ['5']"),
        ({"op": "GtLt", "value": ["5", "5"]}, ".value must hold the smaller number first; got ['5', '5']"),
    ],
    ids=lambda value: str(value) if not isinstance(value, str) else "",
)
def test_an_expression_with_which_the_worker_would_not_start_is_refused(expression, message):
    where = "worker.config.sources.custom[0].matchFeatures[0].matchExpressions['vendor_id']"
    assert refusal(matching, expression).startswith(f"{where}{message}")


@pytest.mark.parametrize(
    ("operators", "counts"),
    [
        ("In NotIn InRegexp", {1, 2, 3}),
        ("Exists DoesNotExist IsTrue IsFalse", {0}),
        ("Gt Lt", {1}),
        ("GtLt", {2}),
    ],
)
def test_every_operator_takes_as_many_values_as_the_worker_reads(operators, counts):
    for operator in operators.split():
        for count in range(4):
            expression = {"op": operator, "value": ["3", "4", "5"][:count]}
            if count in counts:
                matching(expression)
            else:
                assert f"for {operator}; got " in refusal(matching, expression)


@pytest.mark.parametrize("release", [OLD, NEW], ids=lambda release: release.version)
@pytest.mark.parametrize(
    "feature",
    "cpu.coprocessor cpu.cpuid cpu.cstate cpu.model cpu.pstate cpu.rdt cpu.security cpu.sst cpu.topology "
    "fake.attribute fake.flag fake.instance kernel.config kernel.enabledmodule kernel.loadedmodule "
    "kernel.selinux kernel.version local.feature local.label memory.numa memory.nv memory.swap network.device "
    "network.virtual pci.device rule.matched storage.block system.dmiid system.name system.osrelease "
    "usb.device".split(),
)
def test_a_rule_can_match_every_feature_of_both_releases(feature, release):
    rules = [{"name": "a", "labels": {"a": "b"}, "matchFeatures": [{"feature": feature, "matchExpressions": ["c"]}]}]
    nfd_config.worker_config({"sources": {"custom": rules}})
    nfd_config.check_release({"worker": {"sources": {"custom": rules}}}, release)


# --- the mark of GPU nodes ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("core", "message"),
    [
        ({"noPublish": True}, f"noPublish must not be true, {WHY}"),
        ({"labelSources": ["pci"]}, f"labelSources must keep the source 'custom', {WHY}; got ['pci']"),
        ({"labelSources": ["all", "-custom"]}, f"labelSources must keep the source 'custom', {WHY}; got "),
        ({"featureSources": ["all", "-pci"]}, f"featureSources must keep the source 'pci', {WHY}; got "),
        ({"featureSources": []}, f"featureSources must keep the source 'pci', {WHY}; got []"),
        ({"labelWhiteList": "^pci-"}, f"labelWhiteList must match 'gpu.present', {WHY}; got '^pci-'"),
    ],
    ids=str,
)
def test_a_worker_that_would_not_mark_gpu_nodes_is_refused(core, message):
    assert refusal(worker, core=core).startswith(f"worker.config.core.{message}")


def test_a_source_taken_away_before_all_are_named_is_there_again():
    assert worker(core={"labelSources": ["-custom", "all"]})


def test_an_expression_that_python_cannot_read_is_left_to_go():
    assert worker(core={"labelWhiteList": r"(?U)\z["})


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"noPublish": True}, f"master.config.noPublish must not be true, {WHY}"),
        (
            {"labelWhiteList": "pci"},
            f"master.config.labelWhiteList must match 'gpu.present', {WHY}; got 'pci'",
        ),
        (
            {"restrictions": {"disableLabels": True}},
            f"master.config.restrictions.disableLabels must not be true, {WHY}",
        ),
        *(
            (
                {"denyLabelNs": [domain], "extraLabelNs": []},
                f"master.config.denyLabelNs must not deny 'nvidia.com', {WHY}; got {domain!r}; name 'nvidia.com' among "
                "the extra domains as well",
            )
            for domain in ("nvidia.com", "*", "*.com", "*nvidia.com")
        ),
    ],
    ids=lambda value: str(value) if isinstance(value, dict) else "",
)
def test_a_master_that_would_keep_the_mark_from_gpu_nodes_is_refused(given, message):
    assert refusal(nfd_config.master_config, given) == message


@pytest.mark.parametrize("denied", ["example.com", "*.example.com", "vidia.com", "*.nvidia.com"])
def test_other_domains_may_be_denied(denied):
    assert nfd_config.master_config({"denyLabelNs": [denied], "extraLabelNs": []})["denyLabelNs"] == [denied]


def test_domains_of_the_command_line_count_instead_of_those_of_the_file():
    assert nfd_config.master_config({}, deny=["nvidia.com"]) == {"extraLabelNs": ["nvidia.com"]}
    assert nfd_config.master_config({"denyLabelNs": ["nvidia.com"], "extraLabelNs": []}, deny=["a.b"])
    assert refusal(nfd_config.master_config, {}, deny=["nvidia.com"], extra=["a.b"]).startswith(
        f"master.deny_label_ns must not deny 'nvidia.com', {WHY}"
    )


# --- the master's file ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"restrictions": {"disableTaints": True}},
            f"master.config.restrictions has no key 'disableTaints', {SKIPPED} (did you mean 'disableLabels'?)",
        ),
        (
            {"restrictions": {"nodeFeatureNamespaceSelector": {"matchLabel": {}}}},
            f"master.config.restrictions.nodeFeatureNamespaceSelector has no key 'matchLabel', {SKIPPED} (did you mean "
            "'matchLabels'?)",
        ),
        (
            {"restrictions": {"nodeFeatureNamespaceSelector": {"matchExpressions": [{"key": "a", "op": "In"}]}}},
            "master.config.restrictions.nodeFeatureNamespaceSelector.matchExpressions[0] has no key 'op', "
            f"{SKIPPED}; it has key, operator, values",
        ),
        ({"nfdApiParallelism": 0}, "master.config.nfdApiParallelism must be at least 1, got 0"),
        ({"informerPageSize": "50"}, "master.config.informerPageSize must be an int, got '50' (str)"),
        (
            {"resyncPeriod": 3600},
            "master.config.resyncPeriod must be text with a unit, like '60s'; got 3600, which the program takes for "
            "nanoseconds",
        ),
        (
            {"leaderElection": {"leaseDuration": "10s"}},
            "master.config.leaderElection must have leaseDuration above renewDeadline, and that above 1.2 times "
            "retryPeriod, else the master does not start; got leaseDuration 10s, renewDeadline 10s, retryPeriod 2s",
        ),
        (
            {"leaderElection": {"retryPeriod": "9s"}},
            "master.config.leaderElection must have leaseDuration above renewDeadline, and that above 1.2 times "
            "retryPeriod, else the master does not start; got leaseDuration 15s, renewDeadline 10s, retryPeriod 9s",
        ),
    ],
    ids=lambda value: str(value)[:60] if isinstance(value, dict) else "",
)
def test_what_the_master_would_skip_or_not_start_with_is_refused(given, message):
    assert refusal(nfd_config.master_config, given) == message


def test_what_the_master_reads_is_written_as_it_is_given():
    given = {
        "denyLabelNs": ["example.com"],
        "enableTaints": True,
        "klog": {"v": "4"},
        "labelWhiteList": "gpu",
        "leaderElection": {"leaseDuration": "30s", "renewDeadline": "20s", "retryPeriod": "5s"},
        "nfdApiParallelism": 5,
        "informerPageSize": 0,
        "resyncPeriod": "2h",
        "restrictions": {"denyNodeFeatureLabels": True, "nodeFeatureNamespaceSelector": {"matchLabels": {"a": "b"}}},
    }
    assert nfd_config.master_config(given) == {"extraLabelNs": ["nvidia.com"], **given}


NAME = "kubernetes.io/metadata.name"


@pytest.mark.parametrize(
    "selector",
    [
        None,
        {},
        {"matchLabels": {"team": "gpu"}},
        {"matchLabels": {NAME: "gpu"}},
        {"matchExpressions": [{"key": NAME, "operator": "In", "values": ["other", "gpu"]}]},
        {"matchExpressions": [{"key": NAME, "operator": "NotIn", "values": ["other"]}]},
        {"matchExpressions": [{"key": "team", "operator": "In", "values": ["other"]}]},
    ],
    ids=str,
)
def test_a_master_may_look_at_the_namespace_of_its_workers(selector):
    nfd_config.check_namespace({"restrictions": {"nodeFeatureNamespaceSelector": selector}}, "gpu")
    nfd_config.check_namespace({}, "gpu")


@pytest.mark.parametrize(
    ("selector", "got"),
    [
        ({"matchLabels": {NAME: "other"}}, ["other"]),
        ({"matchExpressions": [{"key": NAME, "operator": "In", "values": ["a", "b"]}]}, ["a", "b"]),
    ],
    ids=str,
)
def test_a_master_that_looks_elsewhere_is_refused(selector, got):
    config = {"restrictions": {"nodeFeatureNamespaceSelector": selector}}
    assert refusal(nfd_config.check_namespace, config, "gpu") == (
        "master.config.restrictions.nodeFeatureNamespaceSelector must take the namespace 'gpu' of the workers, "
        f"{WHY}; got {got}"
    )


# --- the topology updater's file ------------------------------------------------------------------------------


def test_what_the_topology_updater_reads_is_written_as_it_is_given():
    given = {"excludeList": {"*": ["cpu"], "node-1": ["memory", "example.com/x"]}}
    assert nfd_config.topology_updater_config(given) == given


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"excludelist": {}}, f" has no key 'excludelist', {SKIPPED} (did you mean 'excludeList'?)"),
        ({"excludeList": {"*": "cpu"}}, ".excludeList['*'] must be a list; got 'cpu'"),
        ({"excludeList": ["cpu"]}, ".excludeList must hold keys and values; got ['cpu']"),
    ],
    ids=str,
)
def test_what_the_topology_updater_would_skip_is_refused(given, message):
    assert refusal(nfd_config.topology_updater_config, given) == f"topology_updater.config{message}"


# --- releases -------------------------------------------------------------------------------------------------


def lacks(field, first):
    return (
        f"{field} needs Node Feature Discovery {first}, and this is 0.17.3; leave it out or take a later release of "
        "the device plugin"
    )


def terms(feature):
    return [{"feature": feature, "matchExpressions": ["a"]}]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"worker": {"core": {"noPublishFeatures": ["pci.*"]}}},
            lacks("worker.config.core.noPublishFeatures", "0.19.0"),
        ),
        ({"master": {"informerPageSize": 50}}, lacks("master.config.informerPageSize", "0.18.0")),
        (
            {"worker": {"sources": {"custom": [{"matchFeatures": [*terms("cpu.model"), *terms("kernel.kvm")]}]}}},
            lacks("worker.config.sources.custom[0].matchFeatures[1].feature 'kernel.kvm'", "0.19.0"),
        ),
        (
            {"worker": {"sources": {"custom": [{}, {"matchAny": [{"matchFeatures": terms("memory.hugepages")}]}]}}},
            lacks("worker.config.sources.custom[1].matchAny[0].matchFeatures[0].feature 'memory.hugepages'", "0.18.0"),
        ),
    ],
    ids=lambda value: str(value)[:60] if isinstance(value, dict) else "",
)
def test_what_came_later_is_refused_with_its_first_release(given, message):
    nfd_config.check_release(given, NEW)
    assert refusal(nfd_config.check_release, given, OLD) == message


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"master": {"autoDefaultNs": False}},
            "master.config.autoDefaultNs is not read any more by Node Feature Discovery 0.19.0; set "
            "feature_gates={'DisableAutoPrefix': True}",
        ),
        (
            {"worker": {"core": {"noOwnerRefs": True}}},
            "worker.config.core.noOwnerRefs beats owner_refs in Node Feature Discovery 0.19.0; set owner_refs=[] "
            "instead",
        ),
    ],
    ids=["autoDefaultNs", "noOwnerRefs"],
)
def test_what_went_away_is_refused_with_what_took_its_place(given, message):
    nfd_config.check_release(given, OLD)
    assert refusal(nfd_config.check_release, given, NEW) == message


@pytest.mark.parametrize("release", [OLD, NEW], ids=lambda release: release.version)
def test_empty_sections_suit_every_release(release):
    nfd_config.check_release({"worker": {"core": None, "sources": {"custom": None}}, "master": {}}, release)
    nfd_config.check_release({}, release)
