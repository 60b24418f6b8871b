import json
from dataclasses import replace

import capacity_examples as examples
from gpu_constructs.capacity.planned import Problem
from gpu_constructs.capacity.report.as_json import json_text


def members(value, path=""):
    """Yield each member of a report with its type; names of labels, resources and racks depend on the plan."""
    if isinstance(value, dict):
        for key, each in value.items():
            is_data = path.endswith(("labels", "taints[]", "allocatable", "sks", "mostAsked", "stock", "racks"))
            yield from members(each, f"{path}.{'*' if is_data else key}")
    elif isinstance(value, list):
        for each in value:
            yield from members(each, f"{path}[]")
    else:
        yield f"{path.removeprefix('.')}: {type(value).__name__}"


def test_reports_have_these_members_sorted_and_no_others(snapshot):
    found = set()
    for name, plan in examples.PLANS.items():
        if name != "fleet":
            made = json_text(plan(), name)
            found.update(members(json.loads(made)))
            assert made == json.dumps(json.loads(made), indent=2, sort_keys=True) + "\n", name
    assert "\n".join(sorted(found)) == snapshot


def test_the_json_states_what_the_plan_states():
    made = json.loads(json_text(examples.waiting(), "workstation"))
    assert made["verdict"]["allFits"] == "no"
    assert made["nodes"][0]["devices"][1]["slots"] == {"total": 4, "used": 4}
    assert made["consumers"][0]["waiting"] == 1
    assert made["power"]["racks"] == {"garage": {"watts": 700, "mostWatts": 600}}
    assert made["problems"][0]["object"] == "Deployment ai/inference"


def test_the_worst_case_is_a_percentage_if_the_memory_is_known():
    def shares(plan):
        return [one["worstPercent"] for node in json.loads(json_text(plan, ""))["nodes"] for one in node["devices"]]

    assert shares(examples.one_gpu()) == [188]
    assert shares(examples.mig())[-1] is None


def test_nodes_with_the_same_refusal_share_an_entry():
    made = json.loads(json_text(examples.hostile(), "hostile"))
    assert len(made["eligibility"]) == 1
    assert {each["eligibility"] for each in made["consumers"]} == {0}
    assert made["eligibility"][0]["refusals"] == [{"why": examples.EVIL, "nodes": [examples.LONG]}]


def test_control_characters_are_escaped_and_kept():
    evil = "a\u202eb\x1b[31mc\nd\ud800"
    made = json_text(replace(examples.waiting(), problems=[Problem("slots", 0, evil, evil)]), evil)
    assert made.isascii()
    assert "\x1b" not in made
    assert json.loads(made)["problems"][0]["text"] == json.loads(made)["title"] == evil


def test_lower_bounds_of_amounts_are_marked():
    plan = examples.one_gpu()
    consumers = [replace(one, consumer=replace(one.consumer, vram_mib=None)) for one in plan.consumers]
    marked = [
        json.loads(json_text(one, ""))["nodes"][0]["devices"][0]["isAtLeast"]
        for one in (plan, replace(plan, consumers=consumers))
    ]
    assert marked == [False, True]
