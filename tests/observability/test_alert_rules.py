"""Tests of the alert rules: their content, their queries, and their evaluation by promtool."""

import itertools
import json
import re
import subprocess
from dataclasses import replace
from functools import partial

import promql_parser
import pytest

import alert_scenarios
import refusals
from alert_scenarios import ALERTS, SCENARIOS, TABLES, VARIANTS, Agent, Request, dcgm, nvidia_smi, rules_of
from gpu_constructs.observability.alert_rules import ALERT_NAMES, RULE_NAMES, Options, gpu_rules, rule_groups
from gpu_constructs.observability.alert_thresholds import AlertThresholds
from gpu_constructs.observability.gpu_series import dcgm_series
from gpu_constructs.observability.metrics import metric_set
from tables import beside

RECORDED = {
    "gpu:utilization:percent",
    "gpu:memory_used:mib",
    "gpu:memory_used:ratio",
    "gpu:power:watts",
    "gpu:temperature:celsius",
}
OF_DCGM_ONLY = {"GpuPcieReplays", "GpuIdleWhileAllocated"}
OF_NVIDIA_SMI_ONLY = {"GpuCollectionFailing", "GpuCollectionStale"}
OF_KUBE_STATE_METRICS = {
    "GpuNodeWithoutMetrics",
    "GpuPowerLimitUnavailable",
    "NvidiaDevicePluginUnavailable",
    "NvidiaDevicePluginNotScheduled",
    "GpuUnhealthyDevices",
    "GpuCapacityExhausted",
    "GpuPodUnschedulable",
}
COUNTERS = {metric.field for metric in metric_set("profiling", "4.8.2") if metric.prometheus_type == "counter"} | {
    "nvidia_smi_ecc_errors_uncorrected_volatile_total",
    "nvidia_smi_ecc_errors_corrected_volatile_total",
    "nvidia_smi_clocks_event_reasons_counters_hw_thermal_slowdown_seconds",
    "nvidia_smi_clocks_event_reasons_counters_sw_thermal_slowdown_seconds",
    "nvidia_smi_clocks_event_reasons_counters_sw_power_cap_seconds",
}


OF_NO_DEFAULT_METRIC = VARIANTS["dcgm-default-metrics"][1].leave_out


def rules(series=None, thresholds=None, **options):
    return gpu_rules(series or dcgm(), Options(thresholds or AlertThresholds(), **options))


def names(found):
    return {rule.name for rule in found}


def rule(found, name):
    (one,) = (rule for rule in found if rule.name == name)
    return one


refusal = partial(refusals.problem, rules)


# --- which rules -------------------------------------------------------------


def test_every_rule_is_there_for_the_recommended_metrics_of_the_dcgm_exporter():
    assert names(rules(power=Agent())) == set(RULE_NAMES) - OF_NVIDIA_SMI_ONLY
    assert set(RULE_NAMES) - set(ALERT_NAMES) == RECORDED
    assert len(ALERT_NAMES) == len(set(ALERT_NAMES)) == 30


def test_rules_without_a_metric_are_omitted():
    assert names(rules(nvidia_smi(), power=Agent())) == set(RULE_NAMES) - OF_DCGM_ONLY
    xids = {"GpuXidCritical", "GpuXidWarning", "GpuXidNew"}
    unknown = {"GpuExporterDown", "GpuNodeWithoutMetrics"}
    old = dcgm(release="3.4.2")
    assert "DCGM_FI_DEV_GET_GPU_RECOVERY_ACTION" not in old.metrics
    for every, some, missing in (
        (rules(nvidia_smi()), rules(nvidia_smi(nvml=False)), xids),
        (rules(power=Agent()), rules(), {"GpuPowerLimitDrift", "GpuPowerLimitUnavailable"}),
        (rules(), rules(device_plugin=None), {"NvidiaDevicePluginUnavailable", "NvidiaDevicePluginNotScheduled"}),
        (rules(), rules(dcgm(pods="none")), {"GpuIdleWhileAllocated"}),
        (rules(), rules(dcgm(job=None)), {*unknown, "GpuIdleWhileAllocated"}),
        (rules(nvidia_smi()), rules(nvidia_smi(job=None)), {*unknown, "GpuLost"}),
        (rules(), rules(old), {"GpuRecoveryActionNeeded"}),
        (rules(), rules(leave_out=["GpuLost", "gpu:power:watts"]), {"GpuLost", "gpu:power:watts"}),
        (rules(), rules(thresholds=AlertThresholds(xid_warning=[])), {"GpuXidWarning"}),
    ):
        assert names(every) - names(some) == missing
    assert not any("job=" in one.expr for one in rules(dcgm(job=None)))


def test_without_kube_state_metrics_no_rule_queries_it():
    found = rules(kube_state_metrics=False, power=Agent())
    assert names(rules(power=Agent())) - names(found) == OF_KUBE_STATE_METRICS
    assert not any("kube_" in one.expr for one in found)
    asking = {one.name for one in rules(power=Agent()) if "kube_" in one.expr}
    # GpuExporterAbsent exists without kube-state-metrics too, but then does not know which nodes have GPUs.
    assert asking == OF_KUBE_STATE_METRICS | {"GpuExporterAbsent"}


# --- exported metrics --------------------------------------------------------


def test_a_missing_metric_is_an_error_that_names_two_solutions():
    series = dcgm_series(
        job="x", metrics=dcgm().metrics - {"DCGM_FI_DEV_FB_FREE"}, hostname_label="hostname", pods="one"
    )
    problem = (
        "exporter must export the metrics of the rules, got none of DCGM_FI_DEV_FB_FREE (for gpu:memory_used:ratio, "
        "GpuMemoryNearlyFull). Give the exporter metrics='recommended'. To omit the rules instead, pass "
        "leave_out=['gpu:memory_used:ratio', 'GpuMemoryNearlyFull']"
    )
    assert refusal(series) == problem
    rules(series, leave_out=["gpu:memory_used:ratio", "GpuMemoryNearlyFull"])


def test_leaving_out_the_rules_of_the_error_solves_it():
    for metrics in ["seed", "default"]:
        problem = refusal(dcgm(metrics), power=Agent())
        offered = re.findall(r"'([^']+)'", problem.partition("leave_out=")[2])
        assert {"GpuXidCritical", "GpuPowerLimitDrift"} <= set(offered), metrics
        assert names(rules(dcgm(metrics), power=Agent(), leave_out=offered)) == (
            set(RULE_NAMES) - set(offered) - OF_NVIDIA_SMI_ONLY - {"GpuRecoveryActionNeeded"}
        ), metrics


def test_a_rule_needs_exactly_the_metrics_in_its_expression():
    for variant in VARIANTS:
        for one in rules_of(variant):
            named = set(re.findall(r"\b(?:DCGM|nvidia_smi)_\w+", one.expr))
            told = {"nvidia_smi_gpu_info"} | {n for n in named if "last_collect" in n}
            if one.name == "GpuNodeWithoutMetrics":
                # Nodes with the other exporter count as watched.
                told |= {"DCGM_FI_DEV_GPU_TEMP", "nvidia_smi_temperature_gpu"} - one.needs
            assert named - told == one.needs, one.name


def test_ignored_namespaces_need_an_exporter_that_names_pods():
    thresholds = AlertThresholds(vram_ignored_namespaces=["serving"])
    assert refusal(dcgm(pods="none"), thresholds) == (
        "thresholds.vram_ignored_namespaces must be empty for an exporter whose series have no label with the pod, "
        "got ['serving']"
    )


# --- expressions ------------------------------------------------------------


def test_expressions_are_valid_and_treat_counters_as_counters():
    for variant in VARIANTS:
        for one in rules_of(variant):
            promql_parser.parse(one.expr)
            assert "_PROF_" not in one.expr, one.name
            assert "increase(" not in one.expr, one.name
            # No expression adds up copies, treats a gauge as a counter, or compares the value of a counter.
            assert not re.search(r"\bsum\b.*\b(DCGM|nvidia_smi)_", one.expr), one.name
            assert set(re.findall(r"rate\((\w+)", one.expr)) <= COUNTERS, one.name
            for metric in COUNTERS & one.needs:
                assert re.search(rf"(?:rate|-min_over_time)\({metric}\b", one.expr), one.name


def test_every_alert_states_its_cause_its_place_and_its_runbook():
    for variant in VARIANTS:
        series, _ = VARIANTS[variant]
        for one in rules_of(variant):
            if one.name not in ALERT_NAMES:
                continue
            summary, description = one.annotations["summary"], one.annotations["description"]
            assert set(one.annotations) == {"summary", "description"}, variant
            assert not re.search(r"<\w+>", summary + description), one.name
            assert one.labels["severity"] in ("critical", "warning", "info"), variant
            assert "Check first: " in description, one.name
            if one.needs and one.name != "GpuExporterAbsent" and "kube_" not in one.expr:
                assert f"$labels.{series.labels.node} " in description, one.name
                assert f"$labels.{series.labels.node} " in summary, one.name


def test_an_annotation_uses_only_labels_of_the_expression():
    for variant in VARIANTS:
        for one in rules_of(variant):
            used = set(re.findall(r"\$labels\.(\w+)", " ".join(one.annotations.values())))
            if one.name == "GpuExporterDown":
                assert used == {"node", "instance", "exporter_pod", "pod"}, variant
            elif one.name.startswith("GpuCollection"):
                assert used == {"node", "instance"}, variant
            else:
                kept = {
                    word for by in re.findall(r"(?:by|on|group_left) \(([^()]+)\)", one.expr) for word in by.split(", ")
                }
                assert used <= kept, one.name


def test_only_alerts_about_past_events_fire_without_waiting():
    at_once = {one.name for one in rules(power=Agent()) if one.pending == 0}
    assert at_once == {
        "GpuXidCritical",
        "GpuXidWarning",
        "GpuXidNew",
        "GpuRecoveryActionNeeded",
        "GpuEccUncorrectable",
        "GpuRowRemapFailure",
    }


def test_each_requested_limit_has_a_rule_that_names_it_and_waits_for_the_agent(keywords):
    found = [one for one in rules(power=Agent()) if one.name == "GpuPowerLimitDrift"]
    limits = keywords
    assert [one.labels["request"] for one in found] == list(limits)
    for one, limit in zip(found, limits.values(), strict=True):
        assert f"The request is {limit} (" in one.annotations["description"]
        assert one.pending == 2100


CASES = beside(__file__, "alert_rules")["cases"]


def test_a_shell_pattern_is_a_regular_expression_in_the_rule():
    for pattern, expression in CASES:
        found = rules(power=Agent((Request("name", pattern, watts=300),)))
        drift = rule(found, "GpuPowerLimitDrift")
        assert f'modelName=~"{expression}"' in drift.expr, pattern
        promql_parser.parse(drift.expr)
    # Braces are not a template of Prometheus.
    assert '(name:{{ "{{" }} x)' in drift.annotations["description"]


def test_the_device_plugin_is_a_name_or_an_expression():
    assert '{daemonset="plugin"}' in rule(rules(device_plugin="plugin"), "NvidiaDevicePluginUnavailable").expr
    expr = rule(rules(device_plugin=r"my\.plugin.*"), "NvidiaDevicePluginUnavailable").expr
    assert r'{daemonset=~"my\\.plugin.*",daemonset!~' in expr


# --- pools of nodes ----------------------------------------------------------


def test_each_pool_has_its_own_limit_and_the_first_pattern_wins():
    found = [one for one in rules_of("dcgm-pools") if one.name == "GpuPowerLimitDrift"]
    assert [one.labels["power_limit"] for one in found] == ["nvidia-powerlimit", "power-serve"]
    assert [one.pending for one in found] == [2100, 300]
    first, second = (one.expr for one in found)
    assert first.startswith(
        'max by (hostname, gpu, UUID, modelName) (DCGM_FI_DEV_POWER_MGMT_LIMIT{job="dcgm-exporter",'
        'hostname=~"train-.*"} '
    )
    assert 'hostname=~".*-1",hostname!~"train-.*"} ' in second
    assert "power_limit" not in rule(rules(power=Agent((Request(watts=300),))), "GpuPowerLimitDrift").labels


def test_a_pattern_of_nodes_is_quoted():
    found = rules(nvidia_smi(), power={r"n\d": Agent((Request(watts=300),))})
    assert r'nvidia_smi_gpu_info{job="nvidia-gpu-exporter",node=~"n\\d"}' in rule(found, "GpuPowerLimitDrift").expr
    promql_parser.parse(rule(found, "GpuPowerLimitDrift").expr)


def test_two_pools_of_one_agent_are_one_alert_on_its_pods():
    power = {"a": Agent(), "b": Agent(), "c": Agent(name="other")}
    assert rule(rules(power=power), "GpuPowerLimitUnavailable").expr.count(" or label_replace(") == 0
    daemonsets = re.findall(r'daemonset="([^"]+)"', rule(rules(power=power), "GpuPowerLimitUnavailable").expr)
    assert set(daemonsets) == {"nvidia-powerlimit", "other"}
    assert daemonsets.count("nvidia-powerlimit") == daemonsets.count("other")


def test_pools_need_series_that_name_their_node():
    assert refusal(nvidia_smi(job=None), power={"a": Agent()}) == (
        "power_limit must be one PowerLimit, because the series of the exporter have no label with the node, got "
        "1. Set scrape='ServiceMonitor' on the exporter, which adds the label"
    )
    assert rules(nvidia_smi(job=None), power=Agent())


# --- scrape interval -------------------------------------------------


def test_a_scrape_interval_above_two_minutes_is_rejected():
    assert refusal(replace(dcgm(), scrape_interval_seconds=121)) == (
        "exporter must have a scrape interval of 120 seconds or less for alerts, because Prometheus forgets a value "
        "after five minutes, got 121 seconds. Give the exporter scrape=Scrape(interval_seconds=60), or leave out the "
        "alerts"
    )


def test_a_window_spans_four_scrapes():
    def of(interval, name, **thresholds):
        series = replace(dcgm(), scrape_interval_seconds=interval)
        return rule(rules(series, AlertThresholds(**thresholds)), name).expr

    assert "[5m]" in of(30, "GpuThermalThrottling")
    assert "[8m]" in of(120, "GpuThermalThrottling")
    assert "[2m]" in of(30, "GpuXidCritical", xid_window=60)
    assert "[8m]" in of(120, "GpuXidCritical", xid_window=60)
    assert "[15m]" in of(120, "GpuXidCritical")


# --- options -----------------------------------------------------------------


def test_an_unknown_rule_name_is_rejected(refused):
    refused(rules)


def test_severity_waiting_time_labels_and_runbook_can_be_replaced(keywords):
    found = rules(**keywords)
    lost = rule(found, "GpuLost")
    assert lost.labels == {"team": "gpu", "severity": "warning"}
    assert lost.annotations["runbook_url"] == "https://wiki.example/gpus#gpulost"
    written = {one["alert"]: one for group in rule_groups("a", found) for one in group["rules"] if "alert" in one}
    assert written["GpuLost"]["for"] == "1h30m"
    assert "for" not in written["GpuTemperatureHigh"]
    assert written["GpuPodUnschedulable"]["labels"]["team"] == "gpu"


def test_thresholds_reach_their_rules(keywords):
    found = rules(
        thresholds=AlertThresholds(**keywords),
        power=Agent(),
    )
    for name, texts in {
        "GpuTemperatureHigh": ["> 71"],
        "GpuTemperatureCritical": ["> 72", "- 7)"],
        "GpuMemoryNearlyFull": ["> 0.73"],
        "GpuIdleWhileAllocated": ["[1h14m]", "offset 1h14m"],
        "GpuThermalThrottling": ["> 0.75"],
        "GpuPowerCapped": ["> 0.76", "> 77"],
        "GpuEccCorrectableRate": ["> 78"],
        "GpuPcieReplays": ["> 79"],
        "GpuPowerLimitDrift": ["> 80"],
        "GpuXidCritical": ['"81"', "[1h24m]"],
        "GpuXidWarning": ['"82"'],
        "GpuXidNew": ['"0|81|82|83"', "[1h24m]"],
        "GpuLost": ["[1h25m:5m]"],
    }.items():
        for one in found:
            if one.name == name:
                assert all(text in one.expr for text in texts), one.expr
    gauge = rules(dcgm("default"), AlertThresholds(xid_ignored=[83], xid_window="84m"), leave_out=OF_NO_DEFAULT_METRIC)
    assert all(text in rule(gauge, "GpuXidNew").expr for text in ('"0|83"', "offset 1h24m"))
    stale = rules(nvidia_smi(), AlertThresholds(collection_stale=86, xid_window=87))
    assert rule(stale, "GpuCollectionStale").expr.endswith("> 86")
    assert rule(stale, "GpuXidCritical").expr.endswith("< 87")


# --- Prometheus --------------------------------------------------------------


def promtool(*words):
    done = subprocess.run(["promtool", *map(str, words)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def written(folder, name, content):
    file = folder / f"{name}.json"
    file.write_text(json.dumps(content))
    return file


@pytest.mark.system_tools
@pytest.mark.parametrize("variant", VARIANTS)
def test_promtool_accepts_the_rules(variant, tmp_path):
    found = rules_of(variant)
    said = promtool("check", "rules", written(tmp_path, "rules", {"groups": rule_groups("gpu-alerts", found)}))
    assert f"SUCCESS: {len(found)} rules found" in said
    assert "duplicate" not in said


def test_every_alert_has_a_scenario_in_which_it_fires_and_one_in_which_it_does_not():
    assert {one.alert for one in SCENARIOS if one.fires} == set(ALERT_NAMES)
    assert {one.alert for one in SCENARIOS if not one.fires} == set(ALERT_NAMES)


def test_every_alert_on_a_gpu_has_a_scenario_of_each_exporter():
    fired = {(one.variant.partition("-")[0], one.alert) for one in SCENARIOS if one.fires}
    of_gpus = {name for variant in VARIANTS for name in (r.name for r in rules_of(variant) if "kube_" not in r.expr)}
    of_gpus &= set(ALERT_NAMES)
    assert {name for dialect, name in fired if dialect == "dcgm"} >= of_gpus - OF_NVIDIA_SMI_ONLY
    assert {name for dialect, name in fired if dialect == "nvidia_smi"} >= of_gpus - OF_DCGM_ONLY


@pytest.mark.system_tools
@pytest.mark.parametrize("variant", sorted({one.variant for one in SCENARIOS}))
def test_the_alerts_fire_when_they_should(variant, tmp_path):
    found = rules_of(variant)
    of_variant = sorted((one for one in SCENARIOS if one.variant == variant), key=lambda one: one.alert)
    tests = []
    # One file for each alert, so that promtool evaluates only its rule.
    for alert, scenarios in itertools.groupby(of_variant, key=lambda one: one.alert):
        only = [one for one in found if one.name == alert]
        assert only, alert
        file = written(tmp_path, alert, {"groups": rule_groups("gpu-alerts", only)})
        tests.append(written(tmp_path, f"{alert}-test", alert_scenarios.promtool_test(scenarios, str(file))))
    promtool("test", "rules", *tests)


def hold_rules_against(folder, found, series, **expected):
    """Let promtool compare the results of rules with the expected ones."""
    file = written(folder, "rules", {"groups": rule_groups("gpu-alerts", found)})
    group = {"interval": "1m", "input_series": series, **expected}
    test = {"rule_files": [str(file)], "evaluation_interval": "1m", "tests": [group]}
    promtool("test", "rules", written(folder, "test", test))


@pytest.mark.system_tools
def test_a_gpu_that_pods_share_is_recorded_once(tmp_path):
    asked = [
        {
            "expr": expr,
            "eval_time": "3m",
            "exp_samples": [{"labels": labels, "value": value} for labels, value in samples.items()],
        }
        for expr, samples in TABLES["recorded"]["answers"].items()
    ]
    series = alert_scenarios.input_series(TABLES["recorded"]["series"])
    hold_rules_against(tmp_path, rules_of("dcgm"), series, promql_expr_test=asked)


def reads_as(name, series, reads, labels, folder):
    annotations = {"summary": reads["summary"], "description": reads["description"]}
    alert = {"exp_labels": labels, "exp_annotations": annotations}
    expected = [{"eval_time": "40m", "alertname": name, "exp_alerts": [alert]}]
    hold_rules_against(folder, [one for one in rules_of("dcgm") if one.name == name], series, alert_rule_test=expected)


@pytest.mark.system_tools
@pytest.mark.parametrize("name", [name for name, said in ALERTS.items() if "reads" in said])
def test_the_texts_of_an_alert_are_readable(name, tmp_path):
    reads = ALERTS[name]["reads"]
    series = alert_scenarios.input_series(reads["series"])
    reads_as(name, series, reads, {**ALERTS[name]["labels"], **reads.get("labels", {})}, tmp_path)


@pytest.mark.system_tools
@pytest.mark.parametrize(("label", "said"), [('pod="p",', ", pod p)"), ("", ")")])
def test_the_text_names_the_pod_of_the_exporter_if_a_label_has_it(label, said, tmp_path):
    reads = ALERTS["GpuExporterDown"]["reads"]
    text = reads["description"].replace(", pod exporter-x)", said)
    series = [{"series": f'up{{{label}job="dcgm-exporter",instance="n1:9400",node="n1"}}', "values": "0x60"}]
    labels = {"job": "dcgm-exporter", "instance": "n1:9400", "node": "n1", "severity": "warning"}
    if label:
        labels["pod"] = "p"
    reads_as("GpuExporterDown", series, {**reads, "description": text}, labels, tmp_path)
