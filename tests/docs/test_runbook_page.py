"""The runbook: a section for each alert, with what its rules say and with commands that exist."""

import ast
import dataclasses
import inspect
import re

import dist
import documents
from alert_scenarios import Agent, dcgm, nvidia_smi
from gpu_constructs import DcgmExporter, NvidiaGpuExporter
from gpu_constructs.observability.alert_rules import ALERT_NAMES, Options, gpu_rules
from gpu_constructs.observability.alert_thresholds import AlertThresholds, prometheus_duration

PAGE = dist.ROOT / "docs" / "runbook.md"
TEXT = PAGE.read_text(encoding="utf-8")
SECTIONS = {
    title: body
    for title, body in re.findall(r"^## (\S[^\n]*)\n(.*?)(?=^## |\Z)", TEXT, re.M | re.S)
    if title != "On the node"
}
PARTS = ["Means", "Causes", "Do", "Tune"]
# Source: nvidia-smi manual, "--display".
NVIDIA_SMI_DISPLAYS = set(
    "MEMORY UTILIZATION ECC TEMPERATURE POWER CLOCK COMPUTE PIDS PERFORMANCE SUPPORTED_CLOCKS PAGE_RETIREMENT "
    "ACCOUNTING ENCODER_STATS VOLTAGE FBC_STATS ROW_REMAPPER RESET_STATUS".split()
)
NVIDIA_SMI_FIELDS = set(
    "index name temperature.gpu fan.speed power.draw power.limit power.default_limit power.min_limit power.max_limit "
    "pcie.link.gen.current pcie.link.width.current pcie.link.width.max".split()
)
TALOSCTL = {"dmesg", "reboot"}
PUBLISHED = "https://wiki.example.com/runbook"
RULES = {
    rule.name: rule
    for series in (dcgm(), nvidia_smi())
    for rule in gpu_rules(series, Options(AlertThresholds(), power=Agent(), runbook_url=PUBLISHED))
    if rule.pending is not None
}


def test_every_alert_has_a_section_and_every_section_an_alert() -> None:
    assert list(SECTIONS) == [row[0].partition("]")[0].strip("[") for row in documents.table(PAGE, "alert")]
    assert set(SECTIONS) == set(ALERT_NAMES) == set(RULES)
    assert len(re.findall(r"^## ", TEXT, re.M)) == len(SECTIONS) + 1


def test_the_address_in_an_alert_leads_to_its_section() -> None:
    for rule in RULES.values():
        page, _, anchor = rule.annotations["runbook_url"].partition("#")
        assert page == PUBLISHED
        assert anchor in documents.anchors(PAGE)


def test_the_table_says_what_the_rules_say() -> None:
    for link, severity, waits in documents.table(PAGE, "alert"):
        rule = RULES[link.partition("]")[0].strip("[")]
        assert rule.pending is not None
        assert link == f"[{rule.name}](#{rule.name.lower()})"
        assert (severity, waits) == (rule.labels["severity"], prometheus_duration(rule.pending)), rule.name


def test_a_section_says_what_it_means_and_what_to_do_and_is_short() -> None:
    for title in SECTIONS:
        body = SECTIONS[title]
        assert re.findall(r"^\*\*(\w+)\.\*\*", body, re.M) == PARTS
        assert len(body.splitlines()) <= 30
        assert "```bash\n" in body


def test_a_section_tunes_what_there_is_to_tune() -> None:
    for title in SECTIONS:
        words = {field.name for field in dataclasses.fields(AlertThresholds)} | {
            "leave_out",
            "severities",
            "device_plugin",
            "GpuAlerts",
        }
        _, _, tune = SECTIONS[title].partition("**Tune.**")
        for code in re.findall(r"`([^`]+)`", tune):
            keyword, _, value = code.partition("=")
            if keyword in ("PowerLimit",):
                continue
            assert keyword in words, code
            if not value or "<" in value:
                continue
            given = ast.literal_eval(value)
            if keyword == "leave_out":
                assert given == [title]
            else:
                AlertThresholds(**{keyword: given})
                assert keyword != "pending" or list(given) == [title]


def test_every_threshold_is_named_where_it_counts() -> None:
    tuned = {name: re.findall(r"`(\w+)", body.partition("**Tune.**")[2]) for name, body in SECTIONS.items()}
    named = {word for words in tuned.values() for word in words}
    assert {field.name for field in dataclasses.fields(AlertThresholds)} <= named


def test_the_numbers_in_the_text_are_the_defaults() -> None:
    default = AlertThresholds()
    stated = {
        "GpuTemperatureHigh": f"more than {default.temperature_warning} °C",
        "GpuTemperatureCritical": f"above {default.temperature_critical} °C",
        "GpuMemoryNearlyFull": f"{default.vram_ratio:.0%}".replace("%", " %"),
        "GpuEccCorrectableRate": f"More than {default.ecc_corrected_per_hour} ",
        "GpuLost": f"{str(default.lost_window)[:-1]} hours",
        "GpuIdleWhileAllocated": f"{str(default.idle)[:-1]} hours",
        "GpuCollectionStale": f"{str(default.collection_stale)[:-1]} minutes",
    }
    for title, text in stated.items():
        assert text in SECTIONS[title], title
    assert default.slowdown_margin == 2
    assert "two degrees below" in SECTIONS["GpuTemperatureCritical"]


def test_the_xids_are_in_the_lists_that_the_sections_are_about() -> None:
    default = AlertThresholds()
    critical = {int(xid) for xid in re.findall(r"\b\d{2,3}\b", SECTIONS["GpuXidCritical"].partition("**Causes")[0])}
    assert critical - {20} == set(default.xid_critical)
    warning = {int(xid) for xid in re.findall(r"\b\d{2,3}\b", SECTIONS["GpuXidWarning"].partition("**Causes")[0])}
    assert warning == set(default.xid_warning)
    ignored = {int(xid) for xid in re.findall(r"\b\d{2,3}\b", SECTIONS["GpuXidNew"].partition("**Causes")[0])}
    assert ignored == set(default.xid_ignored)


# Source: docs.nvidia.com/deploy/xid-errors/analyzing-xid-catalog.html, column "Description"; 42, 56, 57, 58, 61 and 73
# by the table for GPUs before Ampere.


def test_an_xid_means_what_the_catalogue_of_nvidia_says(rows) -> None:
    for xid, meaning in rows:
        text = SECTIONS["GpuXidCritical"] + SECTIONS["GpuXidWarning"]
        lines = [" ".join(line.split()) for line in re.findall(r"^- .*(?:\n  .*)*", text, re.M)]
        (said,) = (line for line in lines if re.search(rf"\b{xid}\b", line))
        assert meaning in said


def test_the_names_to_replace_are_the_defaults_of_the_other_exporter() -> None:
    rows = documents.table(PAGE, "in the commands")
    assert [row[2] for row in rows[:2]] == ["`namespace` of the exporter", "`name` of the exporter"]
    assert [word.strip("`").removeprefix("-n ") for row in rows[:2] for word in row[:2]] == [
        default(keyword, exporter)
        for keyword in ("namespace", "name")
        for exporter in (DcgmExporter, NvidiaGpuExporter)
    ]
    for row in rows:
        assert f" {row[0].strip('`').removeprefix('-n ')}" in TEXT.replace("/name=", " "), row[0]


def default(keyword: str, construct: type) -> object:
    return inspect.signature(construct.__init__).parameters[keyword].default


def test_the_commands_ask_for_what_the_programs_know() -> None:
    commands = documents.commands(PAGE)
    assert {words[0] for words in commands} == {"kubectl", "talosctl", "grep"}
    for words in commands:
        if words[0] == "talosctl":
            assert words[1:3] == ["--nodes", "<node-ip>"]
            assert words[3] in TALOSCTL
        if "nvidia-smi" in words:
            _check_nvidia_smi(words[words.index("nvidia-smi") + 1 :])


def test_the_descriptions_ask_for_what_nvidia_smi_knows() -> None:
    for rule in RULES.values():
        for displays in re.findall(r"nvidia-smi -q -d ([A-Z_,]+)", rule.annotations["description"]):
            assert set(displays.split(",")) <= NVIDIA_SMI_DISPLAYS


def _check_nvidia_smi(words: list[str]) -> None:
    assert words[:1] in ([], ["-q"], ["-L"]) or words[0].startswith("--query-gpu="), words
    if words[1:2] == ["-d"]:
        assert set(words[2].split(",")) <= NVIDIA_SMI_DISPLAYS
    if words and words[0].startswith("--query-gpu="):
        assert set(words[0].partition("=")[2].split(",")) <= NVIDIA_SMI_FIELDS
        assert words[1:] == ["--format=csv"]
