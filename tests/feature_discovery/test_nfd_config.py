import yaml

from gpu_constructs.feature_discovery.node_feature_discovery import NfdMaster, NfdTopologyUpdater, NfdWorker
from gpu_constructs.kube.yaml_text import yaml_text
from refusals import refusal
from tables import beside
from yaml_readers import Yaml12

GPU_RULE = beside(__file__, "nfd_config")["gpu_rule"]


def worker(sources=None, core=None):
    return NfdWorker(config={"sources": sources or {}, "core": core or {}}).document()


def rule(**given):
    return worker({"custom": [{"name": "mine", "labels": {"example.com/mine": "yes"}, **given}]})


def matching(expression):
    return rule(matchFeatures=[{"feature": "cpu.model", "matchExpressions": {"vendor_id": expression}}])


# --- the user's file over ours --------------------------------------------------------------------------------


def test_device_classes_stay_text_in_every_yaml_parser():
    # In YAML 1.2, 02 and 0300 are numbers too.
    for loader in (yaml.SafeLoader, Yaml12):
        assert yaml.load(yaml_text(NfdWorker().document()), loader) == {
            "sources": {
                "pci": {"deviceClassWhitelist": ["02", "03"], "deviceLabelFields": ["vendor"]},
                "custom": [GPU_RULE],
            }
        }
    assert [type(item) for item in yaml.load("[0300, 02, 10de, yes]", Yaml12)] == [int, int, str, str]


def test_default_files_allow_labels_of_nvidia_and_exclude_no_resource():
    assert NfdMaster().document() == {"extraLabelNs": ["nvidia.com"]}
    assert NfdTopologyUpdater().document() == {}


def test_a_key_overrides_the_default_and_the_rest_stays():
    config = worker({"pci": {"deviceClassWhitelist": ("03", "12")}}, {"sleepInterval": "2m"})
    assert config["sources"]["pci"] == {"deviceClassWhitelist": ["03", "12"], "deviceLabelFields": ["vendor"]}
    assert config["core"] == {"sleepInterval": "2m"}
    assert "pci" not in worker({"pci": None})["sources"]
    assert NfdMaster(config={"extraLabelNs": None}).document() == {}


def test_the_rule_for_gpu_nodes_stays_with_rules_of_the_user():
    assert rule()["sources"]["custom"] == [GPU_RULE, {"name": "mine", "labels": {"example.com/mine": "yes"}}]
    for custom in (None, []):
        assert worker({"custom": custom})["sources"]["custom"] == [GPU_RULE]
    assert NfdWorker(config={"sources": None}).document()["sources"] == {"custom": [GPU_RULE]}
    mine = {**GPU_RULE, "name": "mine"}
    assert worker({"custom": [mine]})["sources"]["custom"] == [mine]


# --- keys and plain values ------------------------------------------------------------------------------------


def test_keys_that_the_worker_would_skip_or_that_hide_gpu_nodes_are_rejected(refused):
    refused(NfdWorker)


def test_values_of_the_worker_are_written_unchanged(rows):
    for (given,) in rows:
        made = NfdWorker(config=given).document()
        for section, members in given.items():
            assert {key: made[section][key] for key in members} == members


# --- rules ----------------------------------------------------------------------------------------------------


def test_rules_of_the_worker_are_written_unchanged(rows):
    for (given,) in rows:
        made = rule(**given)["sources"]["custom"][1]
        assert {key: made.get(key) for key in given} == given


def test_a_rule_without_effect_is_rejected(refused):
    refused(rule)


def test_an_expression_that_stops_the_worker_is_rejected(refused):
    refused(matching)


def test_every_operator_has_the_number_of_values_that_the_worker_reads():
    for operators, counts in (
        ("In NotIn InRegexp", {1, 2, 3}),
        ("Exists DoesNotExist IsTrue IsFalse", {0}),
        ("Gt Lt", {1}),
        ("GtLt", {2}),
    ):
        for operator in operators.split():
            for count in range(4):
                expression = {"op": operator, "value": ["3", "4", "5"][:count]}
                if count in counts:
                    term = matching(expression)["sources"]["custom"][1]["matchFeatures"][0]
                    assert term["matchExpressions"]["vendor_id"] == expression
                else:
                    assert f"for {operator}, got " in refusal(matching, expression)
    for short in ("Intel", True, {"op": "In", "value": True}, {"op": "Lt", "value": "-5"}, {"op": "Exists"}):
        assert matching(short)


# --- the master and the topology updater ----------------------------------------------------------------------


def test_keys_that_the_master_would_skip_or_that_hide_gpu_nodes_are_rejected(refused):
    refused(NfdMaster)


def test_other_domains_can_be_denied_and_the_command_line_has_priority():
    for denied in ("example.com", "*.example.com", "vidia.com", "*.nvidia.com"):
        assert NfdMaster(config={"denyLabelNs": [denied], "extraLabelNs": []}).document()["denyLabelNs"] == [denied]
    assert NfdMaster(deny_label_ns=["nvidia.com"]).document() == {"extraLabelNs": ["nvidia.com"]}


def test_values_of_master_and_topology_updater_are_written_unchanged(keywords):
    given = keywords
    assert NfdMaster(config=given).document() == {"extraLabelNs": ["nvidia.com"], **given}
    given = {"excludeList": {"*": ["cpu"], "node-1": ["memory", "example.com/x"]}}
    assert NfdTopologyUpdater(config=given).document() == given


NO_UPDATER = beside(__file__, "nfd_config")["no_updater"]


def test_keys_that_the_topology_updater_would_skip_are_rejected(snapshot):
    """The snapshot contains one message for each row of NO_UPDATER."""
    assert "\n".join(refusal(NfdTopologyUpdater, config=given) for given in NO_UPDATER) == snapshot
