import json
from dataclasses import replace

import pytest
from jsonschema import Draft202012Validator

import capacity_examples as examples
from gpu_constructs.capacity.plan import Problem
from gpu_constructs.capacity.report.as_json import json_text


def thing(**properties):
    return {
        "type": "object",
        "properties": properties,
        "required": sorted(properties),
        "additionalProperties": False,
    }


def many(item):
    return {"type": "array", "items": item}


def of(item):
    return {"type": "object", "additionalProperties": item}


TEXT, FLAG, COUNT = {"type": "string"}, {"type": "boolean"}, {"type": "integer", "minimum": 0}
WHOLE, OPTIONAL = {"type": "integer"}, {"type": ["integer", "null"], "minimum": 0}
ANSWER = {"enum": ["yes", "no", "undecided", "conditional"]}

SCHEMA = thing(
    schemaVersion={"const": 1},
    title=TEXT,
    verdict=thing(
        alwaysFits=ANSWER,
        allFits=ANSWER,
        vram={"enum": ["safe", "depends", "overcommitted", "unknown", "undecided"]},
        sentences=many(thing(level={"enum": ["good", "warn", "bad", "unknown"]}, text=TEXT)),
    ),
    stock=of(thing(total=COUNT, always=COUNT, wanted=COUNT, placed=COUNT, left=WHOLE)),
    nodes=many(
        thing(
            pool=TEXT,
            title=TEXT,
            first=COUNT,
            count=COUNT,
            gpuModel=TEXT,
            sharing=TEXT,
            vramUnitMiB=OPTIONAL,
            rack=TEXT,
            labels=of(TEXT),
            taints=many(of(TEXT)),
            allocatable=of(COUNT),
            watts=OPTIONAL,
            gpuWatts=many(OPTIONAL),
            notes=many(TEXT),
            devices=many(
                thing(
                    title=TEXT,
                    resource=TEXT,
                    gpu=COUNT,
                    profile=TEXT,
                    slots=thing(total=COUNT, used=COUNT),
                    vramMiB=OPTIONAL,
                    vramEachMiB=OPTIONAL,
                    mostEach=OPTIONAL,
                    typicalMiB=COUNT,
                    seatedMiB=COUNT,
                    worstMiB=COUNT,
                    worstPercent=OPTIONAL,
                    hasUnknown=FLAG,
                    isAtLeast=FLAG,
                    seats=many(thing(consumer=COUNT, pods=COUNT, slots=COUNT)),
                )
            ),
        )
    ),
    consumers=many(
        thing(
            kind=TEXT,
            namespace=TEXT,
            name=TEXT,
            part=TEXT,
            asks=of(COUNT),
            mostAsked=of(COUNT),
            copies=COUNT,
            leastCopies=COUNT,
            podsEach=COUNT,
            pods=COUNT,
            leastPods=COUNT,
            surge=COUNT,
            surgeIsNeeded=FLAG,
            surgeTogether=COUNT,
            isGang=FLAG,
            startsWith=OPTIONAL,
            isStopped=FLAG,
            priority=WHOLE,
            preempts=FLAG,
            isForEachNode=FLAG,
            mostPerNode=OPTIONAL,
            vramMiB=OPTIONAL,
            typicalVramMiB=OPTIONAL,
            placed=COUNT,
            waiting=COUNT,
            notes=many(TEXT),
            eligibility=COUNT,
        )
    ),
    eligibility=many(thing(nodes=many(TEXT), refusals=many(thing(why=TEXT, nodes=many(TEXT))))),
    problems=many(
        thing(
            kind={"enum": ["placement", "slots", "rollout", "waiting", "vram", "power"]},
            object={"type": ["string", "null"]},
            text=TEXT,
            wayOut=TEXT,
        )
    ),
    conditions=many(thing(kind={"const": "unchecked"}, object={"type": ["string", "null"]}, text=TEXT, wayOut=TEXT)),
    conflicts=many(thing(device=TEXT, vramMiB=COUNT, togetherMiB=COUNT, pods=many(thing(consumer=COUNT, pods=COUNT)))),
    hasMoreConflicts=FLAG,
    power=thing(watts=COUNT, unknownBoards=COUNT, racks=of(thing(watts=COUNT, mostWatts=OPTIONAL))),
    advice=many(TEXT),
    notes=many(TEXT),
)


@pytest.mark.parametrize("name", [name for name in examples.PLANS if name != "fleet"])
def test_every_plan_has_the_keys_of_the_schema_and_no_others(name):
    made = json_text(examples.PLANS[name](), name)
    Draft202012Validator(SCHEMA).validate(json.loads(made))
    assert made == json_text(examples.PLANS[name](), name)


def test_its_keys_are_sorted():
    made = json_text(examples.mig(), "mig")
    assert made == json.dumps(json.loads(made), indent=2, sort_keys=True) + "\n"


def test_it_says_what_the_plan_says():
    made = json.loads(json_text(examples.waiting(), "workstation"))
    assert made["verdict"]["allFits"] == "no"
    assert made["nodes"][0]["devices"][1]["slots"] == {"total": 4, "used": 4}
    assert made["consumers"][0]["waiting"] == 1
    assert made["power"]["racks"] == {"garage": {"watts": 700, "mostWatts": 600}}
    assert made["problems"][0]["object"] == "Deployment ai/inference"


def test_the_worst_case_is_a_share_where_the_memory_is_known():
    def shares(plan):
        return [one["worstPercent"] for node in json.loads(json_text(plan, ""))["nodes"] for one in node["devices"]]

    assert shares(examples.one_gpu()) == [188]
    assert shares(examples.mig())[-1] is None


def test_nodes_that_refuse_for_one_reason_are_written_together():
    made = json.loads(json_text(examples.hostile(), "hostile"))
    assert len(made["eligibility"]) == 1
    assert {each["eligibility"] for each in made["consumers"]} == {0}
    assert made["eligibility"][0]["refusals"] == [{"why": examples.EVIL, "nodes": [examples.LONG]}]


def test_names_come_back_as_they_were():
    made = json.loads(json_text(examples.hostile(), "\ud800"))
    assert made["title"] == "\ud800"
    assert made["nodes"][0]["pool"] == examples.EVIL


def test_what_turns_or_commands_is_escaped_and_kept():
    evil = "a\u202eb\x1b[31mc\nd"
    made = json_text(replace(examples.waiting(), problems=[Problem("slots", 0, evil, evil)]), evil)
    assert made.isascii()
    assert "\x1b" not in made
    assert json.loads(made)["problems"][0]["text"] == evil
