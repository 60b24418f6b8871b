"""The object that runs the pods of a workload, its settings, and the placement of the pods."""

from gpu_constructs import Run, Scheduling, Strategy
from refusals import check_refusals
from tables import beside, cases

POD = {"containers": []}
SELECTOR = {"app": "x"}
METADATA = {"name": "llm", "labels": {"app": "x", "tier": "y"}}
ONE_BY_ONE = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}


def manifest(run):
    return run.manifest(METADATA, POD, selector=SELECTOR)


def spec_of(run):
    return {key: value for key, value in manifest(run)["spec"].items() if value is not None}


@cases
def test_settings_are_written_in_the_form_of_kubernetes(run, expected):
    assert spec_of(run) == expected


def test_by_default_an_update_needs_no_spare_gpu():
    assert spec_of(Run.deployment(replicas=1))["strategy"] == {"type": "Recreate"}
    assert spec_of(Run.deployment(replicas=2))["strategy"] == ONE_BY_ONE
    own = Strategy.rolling_update(max_surge=1, max_unavailable=0)
    assert spec_of(Run.deployment(strategy=own))["strategy"]["rollingUpdate"] == {"maxSurge": 1, "maxUnavailable": 0}


def test_a_cron_job_runs_one_job_at_a_time_with_the_settings_of_a_job():
    run = Run.cron_job(
        schedule="0 3 * * *", time_zone="Europe/Berlin", suspend=True, completions=3, completion_mode="NonIndexed"
    )
    spec = spec_of(run)
    assert (spec["schedule"], spec["timeZone"], spec["suspend"]) == ("0 3 * * *", "Europe/Berlin", True)
    job = spec["jobTemplate"]["spec"]
    assert (job["completions"], job["parallelism"], job["completionMode"]) == (3, 3, "NonIndexed")
    assert job["suspend"] is None


@cases
def test_two_pods_or_more_that_serve_have_a_disruption_budget(run, pods, has_budget):
    assert (run.pods_at_once, run.has_budget) == (pods, has_budget)


def test_settings_that_a_kind_does_not_have_are_rejected(rows):
    for make, given, says in rows:
        check_refusals(make, [(given, says)])


def test_a_time_zone_must_be_a_name():
    for zone in ("UTC", "Etc/GMT+5", "America/Argentina/Buenos_Aires"):
        assert Run.cron_job(schedule="@daily", time_zone=zone).time_zone == zone


@cases
def test_a_strategy_is_written_in_the_form_of_its_kind(strategy, kind, expected):
    assert strategy.to_manifest(kind) == expected


# --- where the pods run -----------------------------------------------------------

SPREAD = beside(__file__, "run")["spread"]
AFFINITY = {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []}}


def placed(replicas=1, **given):
    manifest = Scheduling(**given).to_manifest(replicas=replicas, selector=SELECTOR)
    return {key: value for key, value in manifest.items() if value is not None}


def test_by_default_two_pods_or_more_spread_over_nodes():
    by_node = {"maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "ScheduleAnyway"}
    assert placed(0) == placed(1) == placed(2, topology_spread_constraints=[]) == {}
    spread = [{**by_node, "labelSelector": {"matchLabels": SELECTOR}}]
    assert placed(2) == {"topologySpreadConstraints": spread}
    assert placed(2, topology_spread_constraints=[SPREAD]) == {"topologySpreadConstraints": [SPREAD]}


def test_affinity_scheduler_and_gates_are_written_unchanged(expected):
    assert (
        placed(affinity=AFFINITY, scheduler_name="volcano", scheduling_gates=["kueue.x-k8s.io/admission"]) == expected
    )


def test_scheduling_that_kubernetes_would_reject_is_rejected(rows):
    check_refusals(Scheduling, rows)
