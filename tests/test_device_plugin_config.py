import pytest
import yaml

from gpu_constructs import Sharing
from gpu_constructs._config_map import yaml_text
from gpu_constructs.device_plugin.config import CONFIG_FILE, plugin_config


def sharing_of(sharing):
    return plugin_config(sharing=sharing, mig_strategy="none")["sharing"]["timeSlicing"]


def test_without_sharing_the_file_states_the_mig_strategy_and_nothing_else():
    assert plugin_config(sharing=Sharing.none(), mig_strategy="none") == {
        "version": "v1",
        "flags": {"migStrategy": "none"},
    }


@pytest.mark.parametrize("strategy", ["none", "single", "mixed"])
def test_the_mig_strategy_is_a_flag_of_both_programs(strategy):
    assert plugin_config(sharing=Sharing.none(), mig_strategy=strategy)["flags"] == {"migStrategy": strategy}


def test_time_slicing_names_the_one_resource_that_can_be_shared_and_its_replicas():
    assert sharing_of(Sharing.time_slicing(replicas=5))["resources"] == [{"name": "nvidia.com/gpu", "replicas": 5}]


def test_time_slicing_refuses_requests_for_several_slots_unless_told_otherwise():
    assert sharing_of(Sharing.time_slicing(replicas=2))["failRequestsGreaterThanOne"] is True
    lenient = Sharing.time_slicing(replicas=2, fail_requests_greater_than_one=False)
    assert sharing_of(lenient)["failRequestsGreaterThanOne"] is False


def test_slots_keep_the_name_of_the_gpu_resource_unless_told_otherwise():
    assert sharing_of(Sharing.time_slicing(replicas=2))["renameByDefault"] is False
    assert sharing_of(Sharing.time_slicing(replicas=2, rename_by_default=True))["renameByDefault"] is True


def test_the_resource_keeps_its_plain_name_in_the_file_even_when_slots_are_renamed():
    renamed = sharing_of(Sharing.time_slicing(replicas=2, rename_by_default=True))
    assert renamed["resources"][0]["name"] == "nvidia.com/gpu"


def test_the_file_reads_back_as_it_was_meant():
    document = plugin_config(sharing=Sharing.time_slicing(replicas=4), mig_strategy="mixed")
    assert yaml.safe_load(yaml_text(document)) == document


def test_the_file_leaves_out_the_settings_that_travel_in_the_environment():
    document = plugin_config(sharing=Sharing.time_slicing(replicas=4), mig_strategy="none")
    assert document.keys() == {"version", "flags", "sharing"}
    assert document["flags"].keys() == {"migStrategy"}


def test_the_file_lies_where_the_config_map_is_mounted():
    assert CONFIG_FILE == "/config/config.yaml"
