import pytest

from gpu_constructs.workload import controller

TEMPLATE = {"metadata": {"labels": {"app": "x"}}, "spec": {"containers": []}}
SELECTOR = {"app": "x"}


def job(**given):
    defaults = {
        "completions": 1,
        "parallelism": 1,
        "backoff_limit": 2,
        "active_deadline_seconds": None,
        "ttl_seconds_after_finished": None,
    }
    return controller.job(TEMPLATE, **{**defaults, **given})


def test_every_kind_has_its_api_version():
    assert controller.API_VERSIONS == {
        "Deployment": "apps/v1",
        "StatefulSet": "apps/v1",
        "Job": "batch/v1",
        "CronJob": "batch/v1",
        "Pod": "v1",
    }


@pytest.mark.parametrize("replicas", [0, 1])
def test_a_single_pod_gives_its_gpu_back_before_its_successor_starts(replicas):
    spec = controller.deployment(TEMPLATE, selector=SELECTOR, replicas=replicas)
    assert spec["strategy"] == {"type": "Recreate"}
    assert spec["replicas"] == replicas


def test_several_pods_are_replaced_one_by_one_without_a_spare_gpu():
    spec = controller.deployment(TEMPLATE, selector=SELECTOR, replicas=3)
    assert spec["strategy"] == {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}


def test_a_deployment_owns_the_pods_its_template_makes():
    spec = controller.deployment(TEMPLATE, selector=SELECTOR, replicas=1)
    assert (spec["selector"], spec["template"]) == ({"matchLabels": SELECTOR}, TEMPLATE)


def test_a_stateful_set_names_its_service():
    assert controller.stateful_set(TEMPLATE, selector=SELECTOR, replicas=2, service_name="llm") == {
        "replicas": 2,
        "selector": {"matchLabels": SELECTOR},
        "serviceName": "llm",
        "template": TEMPLATE,
    }


def test_one_completion_needs_no_index():
    spec = job()
    assert (spec["completionMode"], spec["completions"], spec["parallelism"]) == (None, None, None)


def test_several_completions_are_numbered():
    spec = job(completions=8, parallelism=4)
    assert (spec["completionMode"], spec["completions"], spec["parallelism"]) == ("Indexed", 8, 4)


def test_limits_of_a_job_are_written_as_given():
    spec = job(backoff_limit=0, active_deadline_seconds=3600, ttl_seconds_after_finished=0)
    assert spec["backoffLimit"] == 0
    assert spec["activeDeadlineSeconds"] == 3600
    assert spec["ttlSecondsAfterFinished"] == 0


def test_a_job_is_never_deleted_or_stopped_by_default():
    assert (job()["activeDeadlineSeconds"], job()["ttlSecondsAfterFinished"]) == (None, None)


def test_a_cron_job_never_runs_two_jobs_at_once():
    spec = controller.cron_job(job(), schedule="0 3 * * *")
    assert spec["concurrencyPolicy"] == "Forbid"
    assert spec["schedule"] == "0 3 * * *"
    assert spec["jobTemplate"] == {"spec": job()}
    assert (spec["failedJobsHistoryLimit"], spec["successfulJobsHistoryLimit"]) == (1, 1)
