import pytest

from gpu_constructs import GpuConstructsError
from gpu_constructs.workload.controller import Controller

POD = {"containers": []}
SELECTOR = {"app": "x"}
METADATA = {"name": "llm", "labels": {"app": "x", "tier": "y"}}
TEMPLATE = {"metadata": {"labels": METADATA["labels"]}, "spec": POD}


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
    assert spec_of(kind="StatefulSet", replicas=2) == {
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
