"""What runs the pods of a workload and where, and which settings each kind has."""

from gpu_constructs import Run, Scheduling, Strategy
from refusals import check_refusals
from tables import cases

POD = {"containers": []}
SELECTOR = {"app": "x"}
METADATA = {"name": "llm", "labels": {"app": "x", "tier": "y"}}
POLICY = {"rules": [{"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42]}}]}
ONE_BY_ONE = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}


def manifest(run):
    return run.manifest(METADATA, POD, selector=SELECTOR)


def spec_of(run):
    return {key: value for key, value in manifest(run)["spec"].items() if value is not None}


@cases
def test_settings_are_written_as_kubernetes_has_them(run, expected):
    assert spec_of(run) == expected


def test_pods_are_replaced_without_a_spare_gpu_unless_told_otherwise():
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


def daily(**given):
    return Run.cron_job(**{"schedule": "@daily", **given})


def test_what_a_kind_does_not_take_is_refused():
    zone, policy = "time_zone must be a name like 'Europe/Berlin'; got", "pod_failure_policy"
    for make, rows in {
        Run.deployment: [
            ({"replica": 2}, "replica is not a member of Deployment (did you mean 'replicas'?)"),
            ({"replicas": -1}, "replicas must be at least 0, got -1"),
            ({"replicas": None}, "replicas must be an int, got None"),
            (
                {"strategy": Strategy.on_delete()},
                "strategy of a Deployment must be recreate() or rolling_update(); got",
            ),
            (
                {"strategy": Strategy.rolling_update(partition=1)},
                "strategy.partition needs kind 'StatefulSet'; got 'De",
            ),
            ({"pod_disruption_budget": True}, "pod_disruption_budget=True needs two replicas or more, got 1: "),
        ],
        Run.stateful_set: [
            ({"replicas": True}, "replicas must be an int, got True (bool)"),
            ({"pod_management_policy": "All"}, "pod_management_policy must be one of "),
            (
                {"strategy": Strategy.recreate()},
                "strategy of a StatefulSet must be rolling_update() or on_delete(); go",
            ),
            (
                {"strategy": Strategy.rolling_update(max_surge=1)},
                "strategy.max_surge needs kind 'Deployment'; got 'Sta",
            ),
        ],
        Run.job: [
            ({"replicas": 2}, "replicas is not a member of Job"),
            ({"completions": 0}, "completions must be at least 1, got 0"),
            ({"parallelism": 0}, "parallelism must be at least 1, got 0"),
            ({"parallelism": 2}, "parallelism must be at most completions, which are 1; got 2"),
            ({"backoff_limit": -1}, "backoff_limit must be at least 0, got -1"),
            ({"active_deadline_seconds": 0}, "active_deadline_seconds must be at least 1, got 0"),
            ({"ttl_seconds_after_finished": 2**31}, "ttl_seconds_after_finished must be at most 2147483647"),
            ({"completion_mode": "indexed"}, "completion_mode must be one of 'Indexed', 'NonIndexed'"),
            ({policy: {}}, f"{policy} must hold 'rules' alone, with at least one; got {{}}"),
            ({policy: {"rules": []}}, f"{policy} must hold 'rules' alone"),
            ({policy: {**POLICY, "more": 1}}, f"{policy} must hold 'rules' alone"),
            ({policy: {"rules": "x"}}, f"{policy}['rules'] must be a list, got 'x' (str)"),
            ({policy: {"rules": [{"acton": "Ignore"}]}}, f"{policy}['rules'][0] key must be one of "),
            ({policy: {"rules": [{"action": "Fail"}]}}, f"{policy}['rules'][0]['action'] must be one of "),
            ({policy: {"rules": [{"action": "Count"}]}}, f"{policy}['rules'][0] must hold either 'onExitCodes' or "),
        ],
        Run.cron_job: [({}, "schedule is required by CronJob")],
        daily: [
            ({"concurrency_policy": "Never"}, "concurrency_policy must be one of 'Allow', 'Forbid', 'Replace'"),
            ({"schedule": "0 3"}, "schedule must have cron's five fields, or be '@daily' or its like; got '0 3'"),
            ({"schedule": "@dayly"}, "schedule must have cron's five fields"),
            *(
                ({"time_zone": name}, f"{zone} {name!r}")
                for name in ("", "Local", "local", "Europe/", "Europe Berlin", "/etc", "a\n")
            ),
        ],
        Strategy: [
            ({"type": "RollingUpdate", "max_surge": 0, "max_unavailable": 0}, "strategy must let pods either "),
            ({"type": "RollingUpdate", "max_surge": "0%", "max_unavailable": 0}, "strategy must let pods either "),
            ({"type": "RollingUpdate", "max_surge": 0, "max_unavailable": "0%"}, "strategy must let pods either "),
            ({"type": "Recreat"}, "strategy.type must be one of "),
            ({"type": "Recreate", "max_surge": 1}, "strategy takes no numbers with Recreate; use Strategy."),
            ({"type": "OnDelete", "partition": 1}, "strategy takes no numbers with OnDelete; use Strategy."),
            ({"type": "RollingUpdate", "max_surge": -1}, "strategy.max_surge must be at least 0, got -1"),
            ({"type": "RollingUpdate", "max_unavailable": "x"}, "strategy.max_unavailable must be a number or a "),
            ({"type": "RollingUpdate", "partition": -1}, "strategy.partition must be at least 0, got -1"),
        ],
    }.items():
        check_refusals(make, rows)


def test_a_time_zone_has_a_name():
    for zone in ("UTC", "Etc/GMT+5", "America/Argentina/Buenos_Aires"):
        assert daily(time_zone=zone).time_zone == zone


@cases
def test_a_strategy_is_written_as_the_kind_writes_it(strategy, kind, expected):
    assert strategy.to_manifest(kind) == expected


# --- where the pods run -----------------------------------------------------------

SPREAD = {
    "labelSelector": {"matchLabels": {"app": "y"}},
    "maxSkew": 1,
    "topologyKey": "topology.kubernetes.io/zone",
    "whenUnsatisfiable": "DoNotSchedule",
}
AFFINITY = {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []}}


def placed(replicas=1, **given):
    manifest = Scheduling(**given).to_manifest(replicas=replicas, selector=SELECTOR)
    return {key: value for key, value in manifest.items() if value is not None}


def test_two_pods_or_more_are_spread_over_nodes_unless_told_otherwise():
    by_node = {"maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "ScheduleAnyway"}
    assert placed(0) == placed(1) == placed(2, topology_spread_constraints=[]) == {}
    spread = [{**by_node, "labelSelector": {"matchLabels": SELECTOR}}]
    assert placed(2) == {"topologySpreadConstraints": spread}
    assert placed(2, topology_spread_constraints=[SPREAD]) == {"topologySpreadConstraints": [SPREAD]}


def test_affinity_scheduler_and_gates_are_written_as_given():
    assert placed(affinity=AFFINITY, scheduler_name="volcano", scheduling_gates=["kueue.x-k8s.io/admission"]) == {
        "affinity": AFFINITY,
        "schedulerName": "volcano",
        "schedulingGates": [{"name": "kueue.x-k8s.io/admission"}],
    }


def test_scheduling_that_kubernetes_would_not_take_is_refused(rows):
    check_refusals(Scheduling, rows)
