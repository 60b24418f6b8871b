import pytest

from gpu_constructs import GpuConstructsError
from gpu_constructs.workload.controller import Controller
from gpu_constructs.workload.strategy import Strategy

POD = {"containers": []}
SELECTOR = {"app": "x"}
METADATA = {"name": "llm", "labels": {"app": "x", "tier": "y"}}
TEMPLATE = {"metadata": {"labels": METADATA["labels"], "annotations": None}, "spec": POD}


def spec_of(**given):
    return Controller(**given).manifest(METADATA, POD, selector=SELECTOR)["spec"]


@pytest.mark.parametrize(
    ("kind", "api_version"),
    [("Deployment", "apps/v1"), ("StatefulSet", "apps/v1"), ("Job", "batch/v1"), ("Pod", "v1")],
)
def test_every_kind_has_its_api_version(kind, api_version):
    manifest = Controller(kind=kind).manifest(METADATA, POD, selector=SELECTOR)
    assert (manifest["apiVersion"], manifest["kind"], manifest["metadata"]) == (api_version, kind, METADATA)


def test_a_bare_pod_is_its_own_spec():
    assert spec_of(kind="Pod") == POD


@pytest.mark.parametrize("replicas", [0, 1])
def test_a_single_pod_gives_its_gpu_back_before_its_successor_starts(replicas):
    spec = spec_of(kind="Deployment", replicas=replicas)
    assert spec["strategy"] == {"type": "Recreate"}
    assert spec["replicas"] == replicas


def test_several_pods_are_replaced_one_by_one_without_a_spare_gpu():
    spec = spec_of(kind="Deployment", replicas=3)
    assert spec["strategy"] == {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}


def test_a_deployment_owns_the_pods_its_template_makes():
    spec = spec_of(kind="Deployment")
    assert (spec["selector"], spec["template"]) == ({"matchLabels": SELECTOR}, TEMPLATE)


def test_a_stateful_set_names_its_service():
    spec = {key: value for key, value in spec_of(kind="StatefulSet", replicas=2).items() if value is not None}
    assert spec == {
        "replicas": 2,
        "selector": {"matchLabels": SELECTOR},
        "serviceName": "llm",
        "template": TEMPLATE,
    }


def test_one_completion_needs_no_index():
    spec = spec_of(kind="Job")
    assert (spec["completionMode"], spec["completions"], spec["parallelism"]) == (None, None, None)


def test_several_completions_are_numbered():
    spec = spec_of(kind="Job", completions=8, parallelism=4)
    assert (spec["completionMode"], spec["completions"], spec["parallelism"]) == ("Indexed", 8, 4)


def test_all_completions_run_at_once_unless_told_otherwise():
    assert spec_of(kind="Job", completions=8)["parallelism"] == 8


def test_limits_of_a_job_are_written_as_given():
    spec = spec_of(kind="Job", backoff_limit=0, active_deadline_seconds=3600, ttl_seconds_after_finished=0)
    assert spec["backoffLimit"] == 0
    assert spec["activeDeadlineSeconds"] == 3600
    assert spec["ttlSecondsAfterFinished"] == 0


def test_a_job_is_never_deleted_or_stopped_by_default():
    spec = spec_of(kind="Job")
    assert (spec["activeDeadlineSeconds"], spec["ttlSecondsAfterFinished"]) == (None, None)


def test_a_cron_job_never_runs_two_jobs_at_once():
    spec = spec_of(kind="CronJob", schedule="0 3 * * *")
    assert spec["concurrencyPolicy"] == "Forbid"
    assert spec["schedule"] == "0 3 * * *"
    assert spec["jobTemplate"] == {"spec": spec_of(kind="Job")}
    assert (spec["failedJobsHistoryLimit"], spec["successfulJobsHistoryLimit"]) == (1, 1)


@pytest.mark.parametrize(
    ("kind", "ports", "expected"),
    [
        ("Deployment", {"http": 80}, True),
        ("Deployment", {}, False),
        ("StatefulSet", {}, True),
        ("Pod", {"http": 80}, True),
        ("Job", {"http": 80}, False),
    ],
)
def test_what_is_talked_to_has_a_service(kind, ports, expected):
    assert Controller(kind=kind).has_service(ports) is expected


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"kind": "Job", "replicas": 2}, "replicas needs kind 'Deployment' or 'StatefulSet'; got 'Job'"),
        ({"kind": "Pod", "completions": 2}, "completions needs kind 'Job' or 'CronJob'; got 'Pod'"),
        ({"kind": "Job", "schedule": "@daily"}, "schedule needs kind 'CronJob'; got 'Job'"),
        ({"kind": "CronJob"}, "schedule is required with kind 'CronJob'; got None, e.g. '0 3 * * *'"),
        ({"kind": "Job", "active_deadline_seconds": 0}, "active_deadline_seconds must be at least 1, got 0"),
    ],
)
def test_a_setting_that_does_not_fit_the_kind_is_refused(given, message):
    with pytest.raises(GpuConstructsError) as refusal:
        Controller(**given)
    assert str(refusal.value) == message


def test_a_strategy_of_the_user_takes_the_place_of_ours():
    rolling = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
    strategy = Strategy.rolling_update(max_surge=1, max_unavailable=0)
    assert spec_of(kind="Deployment", strategy=strategy)["strategy"] == rolling
    assert spec_of(kind="StatefulSet", strategy=Strategy.on_delete())["updateStrategy"] == {"type": "OnDelete"}


def test_training_over_nodes_starts_all_pods_at_once():
    assert spec_of(kind="StatefulSet", pod_management_policy="Parallel")["podManagementPolicy"] == "Parallel"


def test_the_mode_of_completion_can_be_said():
    assert spec_of(kind="Job", completions=3, completion_mode="NonIndexed")["completionMode"] == "NonIndexed"
    indexed = spec_of(kind="Job", completion_mode="Indexed")
    assert (indexed["completionMode"], indexed["completions"]) == ("Indexed", 1)


POLICY = {"rules": [{"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42]}}]}


def test_settings_of_a_job_reach_the_jobs_of_a_cron_job():
    template = spec_of(kind="CronJob", schedule="@daily", pod_failure_policy=POLICY)["jobTemplate"]["spec"]
    assert template["podFailurePolicy"] == POLICY


def test_a_suspended_cron_job_makes_jobs_that_run():
    spec = spec_of(kind="CronJob", schedule="@daily", suspend=True, time_zone="Europe/Berlin")
    assert (spec["suspend"], spec["timeZone"], spec["jobTemplate"]["spec"]["suspend"]) == (True, "Europe/Berlin", None)
    assert spec_of(kind="Job", suspend=True)["suspend"] is True


@pytest.mark.parametrize("zone", ["UTC", "Etc/GMT+5", "America/Argentina/Buenos_Aires", "Europe/Berlin"])
def test_a_time_zone_has_a_name(zone):
    assert spec_of(kind="CronJob", schedule="@daily", time_zone=zone)["timeZone"] == zone


@pytest.mark.parametrize("zone", ["", "Local", "local", "Europe/", "Europe Berlin", "/etc", "a\n"])
def test_a_time_zone_that_is_none_is_refused(zone):
    with pytest.raises(GpuConstructsError, match=r"^time_zone must be a name like 'Europe/Berlin'; got "):
        Controller(kind="CronJob", schedule="@daily", time_zone=zone)


@pytest.mark.parametrize(
    ("given", "wanted", "expected"),
    [
        ({"kind": "Deployment"}, None, False),
        ({"kind": "Deployment", "replicas": 2}, None, True),
        ({"kind": "StatefulSet", "replicas": 2}, None, True),
        ({"kind": "Deployment", "replicas": 2}, False, False),
        ({"kind": "Deployment", "replicas": 2}, True, True),
        ({"kind": "Job", "completions": 4}, None, False),
    ],
    ids=str,
)
def test_two_pods_or_more_that_serve_have_a_disruption_budget(given, wanted, expected):
    assert Controller(**given).has_budget(wanted) is expected


@pytest.mark.parametrize(("given", "got"), [({"kind": "Deployment"}, "1"), ({"kind": "Job", "completions": 4}, "Job")])
def test_a_budget_that_would_block_every_drain_is_refused(given, got):
    with pytest.raises(GpuConstructsError) as refused:
        Controller(**given).has_budget(True)
    assert str(refused.value) == (
        f"pod_disruption_budget=True needs two replicas or more, got {got}: of a single pod it would block every drain "
        "of its node"
    )


@pytest.mark.parametrize(
    ("given", "number"),
    [
        ({"kind": "Deployment", "replicas": 3}, 3),
        ({"kind": "Job", "completions": 4}, 4),
        ({"kind": "Job", "completions": 4, "parallelism": 2}, 2),
        ({"kind": "Pod"}, 1),
    ],
    ids=str,
)
def test_it_knows_how_many_pods_run_at_once(given, number):
    assert Controller(**given).pods_at_once == number


@pytest.mark.parametrize(
    ("kind", "setting", "kinds"),
    [
        ("Job", {"strategy": Strategy.recreate()}, "'Deployment' or 'StatefulSet'"),
        ("Deployment", {"pod_management_policy": "Parallel"}, "'StatefulSet'"),
        ("Deployment", {"completion_mode": "Indexed"}, "'Job' or 'CronJob'"),
        ("Pod", {"pod_failure_policy": POLICY}, "'Job' or 'CronJob'"),
        ("StatefulSet", {"suspend": True}, "'Job' or 'CronJob'"),
        ("Job", {"concurrency_policy": "Allow"}, "'CronJob'"),
        ("Job", {"time_zone": "UTC"}, "'CronJob'"),
    ],
)
def test_a_word_of_another_kind_is_refused(kind, setting, kinds):
    with pytest.raises(GpuConstructsError) as refused:
        Controller(kind=kind, **setting)
    assert str(refused.value) == f"{next(iter(setting))} needs kind {kinds}; got {kind!r}"


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        ({}, "pod_failure_policy must hold 'rules' alone, with at least one; got {}"),
        ({"rules": []}, "pod_failure_policy must hold 'rules' alone"),
        ({**POLICY, "more": 1}, "pod_failure_policy must hold 'rules' alone"),
        ({"rules": "x"}, "pod_failure_policy['rules'] must be a list, got 'x' (str)"),
        ({"rules": [{"acton": "Ignore"}]}, "pod_failure_policy['rules'][0] key must be one of "),
        ({"rules": [{"action": "Fail"}]}, "pod_failure_policy['rules'][0]['action'] must be one of "),
        ({"rules": [{"action": "Count"}]}, "pod_failure_policy['rules'][0] must hold either 'onExitCodes' or "),
    ],
    ids=str,
)
def test_a_failure_policy_that_kubernetes_would_not_take_is_refused(policy, message):
    with pytest.raises(GpuConstructsError) as refused:
        Controller(kind="Job", pod_failure_policy=policy)
    assert str(refused.value).startswith(message)


@pytest.mark.parametrize(
    ("strategy", "message"),
    [
        (Strategy.on_delete(), "strategy of a Deployment must be recreate() or rolling_update(); got 'OnDelete'"),
        (Strategy.rolling_update(partition=1), "strategy.partition needs kind 'StatefulSet'; got 'Deployment'"),
    ],
)
def test_a_strategy_that_the_kind_does_not_have_is_refused_at_once(strategy, message):
    with pytest.raises(GpuConstructsError) as refused:
        Controller(kind="Deployment", strategy=strategy)
    assert str(refused.value) == message
