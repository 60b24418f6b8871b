import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

import tables
from gpu_constructs import (
    App,
    CapacityPlan,
    Chart,
    Cluster,
    ClusterGroup,
    DevicePluginChart,
    Fleet,
    FleetDelivery,
    GpuConstructsError,
    GpuConstructsWarning,
    GpuNode,
    GpuProfile,
    GpuWorkload,
    Kubernetes,
    Run,
    Sharing,
    SynthesisError,
    Talos,
)
from gpu_constructs.errors import warn
from gpu_constructs.fleet.selection import selected
from refusals import problems, refusal

NODES = [GpuNode(name="gpu", gpu_model="NVIDIA L4", gpus=2, count=3)]


def fill(app: App, cluster: Cluster) -> None:
    DevicePluginChart(app, "plugin", platform=cluster.platform, sharing=Sharing.time_slicing(replicas=4))
    replicas = cluster.value("replicas", 1)
    if replicas:
        chart = Chart(app, "apps", namespace="default")
        profile = GpuProfile(platform=cluster.platform, sharing=Sharing.time_slicing(replicas=4))
        GpuWorkload(
            chart,
            "app",
            image="registry.example.com/app:1",
            ports={"http": 8080},
            profile=profile,
            run=Run.deployment(replicas=replicas),
        )
    if cluster.nodes:
        CapacityPlan(app, cluster.inventory)


def cluster(name, **more):
    return Cluster(**{"name": name, "platform": Talos("1.13.9"), "nodes": NODES, **more})


def fleet(*names, fill=fill, **more):
    return Fleet(fill, clusters=[cluster(name) if isinstance(name, str) else name for name in names], **more)


def files(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.fixture
def out(tmp_path):
    return tmp_path / "dist"


def test_a_cluster_gets_the_platform_and_values_of_its_groups_and_its_own_win():
    made = fleet(
        Cluster(name="a", labels={"region": "eu"}, values={"own": 1}),
        Cluster(name="b", labels={"region": "us"}, platform=Talos("1.12")),
        groups=[
            ClusterGroup(platform=Kubernetes(), values={"own": 0, "all": 0, "late": 0}),
            ClusterGroup(match={"region": "eu"}, values={"late": 1}),
        ],
    )
    assert [(one.platform, one.values) for one in made.clusters] == [
        (Kubernetes(), {"own": 1, "all": 0, "late": 1}),
        (Talos("1.12"), {"own": 0, "all": 0, "late": 0}),
    ]


def test_a_missing_value_names_the_near_key():
    assert refusal(cluster("a", values={"replicas": 1}).value, "replica") == (
        "cluster 'a' has no value 'replica' (did you mean 'replicas'?). Add the key to the values of the cluster or of "
        "a group"
    )


def test_a_file_declares_what_python_declares(tmp_path, keywords):
    path = tmp_path / "clusters.yaml"
    path.write_text(
        "groups:\n- platform: {kubernetes: '1.35'}\n  values: {models: [a, {b: 1}]}\n"
        "clusters:\n- name: a\n  labels: {region: eu}\n  rack_watts: {r1: 500}\n"
        "  nodes: [{name: n, gpu_model: NVIDIA L4, rack: r1}]\n"
    )
    [one] = Fleet.from_file(path, fill).clusters
    assert one == Cluster(**keywords)


def test_a_wrong_file_is_one_error_with_its_line(tmp_path):
    path = tmp_path / "clusters.yaml"
    for case in tables.table(test_a_wrong_file_is_one_error_with_its_line):
        path.write_text(case["file"])
        assert refusal(Fleet.from_file, path, fill) == case["message"]


def test_a_run_writes_a_folder_for_each_cluster_and_the_sums_of_their_plans(out, expected):
    fleet(cluster("a", labels={"region": "eu"}), cluster("b")).synthesize(str(out))
    assert {"a/plugin.k8s.yaml", "b/plugin.k8s.yaml", "reports/a/capacity.json"} <= {
        name.replace("capacity-plan", "capacity") for name in files(out)
    }
    sums = json.loads((out / "reports/fleet-capacity.json").read_text())
    assert sums["all"] == expected
    assert {key: list(rows) for key, rows in sums["by"].items()} == {
        "region": ["eu", "no region"],
        "board": ["NVIDIA L4"],
    }
    assert sums["withoutPlan"] == []
    assert (out / "reports/fleet-capacity.txt").read_text().splitlines()[1:3] == [
        "fleet         clusters  nodes  boards   kW  resource        slots  used  free  waiting",
        "all clusters         2      6      12  0.9  nvidia.com/gpu     48     2    46        0",
    ]


def test_the_sums_name_the_clusters_without_a_plan(out):
    fleet("a", cluster("b", nodes=())).synthesize(str(out))
    assert (out / "reports/fleet-capacity.txt").read_text().endswith("Clusters without a capacity plan: b\n")


@given(
    st.sets(st.from_regex(r"[a-z][a-z0-9]{0,8}", fullmatch=True), min_size=1, max_size=30),
    st.integers(min_value=1, max_value=12),
    st.data(),
)
def test_each_cluster_is_in_one_shard_and_stays_there_if_others_join(names, count, data):
    def shards(names):
        clusters = [Cluster(name=name) for name in names]
        return [{one.name for one in selected(clusters, (), f"{i}/{count}")} for i in range(1, count + 1)]

    parts = shards(sorted(names))
    assert sum(map(len, parts)) == len(names)
    assert set().union(*parts) == names
    fewer = data.draw(st.sets(st.sampled_from(sorted(names)), min_size=1))
    assert shards(sorted(fewer)) == [part & fewer for part in parts]


def test_all_shards_and_finish_write_what_one_run_writes(tmp_path):
    made = fleet(*"abcdef", delivery=FleetDelivery.flux())
    made.synthesize(str(tmp_path / "whole"))
    for shard in ("1/3", "2/3", "3/3"):
        made.synthesize(str(tmp_path / "parts"), shard=shard)
    assert not (tmp_path / "parts/reports/fleet-capacity.txt").exists()
    made.finish(str(tmp_path / "parts"))
    assert files(tmp_path / "parts") == files(tmp_path / "whole")


def test_a_run_in_several_processes_writes_what_one_process_writes(tmp_path):
    made = fleet("a", "b", "c")
    made.synthesize(str(tmp_path / "one"))
    made.synthesize(str(tmp_path / "two"), jobs=2)
    assert files(tmp_path / "two") == files(tmp_path / "one")


def test_a_part_of_a_fleet_keeps_the_files_of_the_other_clusters(out):
    fleet("a", "b", "gone").synthesize(str(out))
    before = files(out)
    without_apps = cluster("a", values={"replicas": 0})
    left = fleet(without_apps, "b")
    report = left.synthesize(str(out), only=["a"])
    assert [path.name for path in report.removed] == ["apps.k8s.yaml"]
    assert before.keys() - files(out).keys() == {"a/apps.k8s.yaml"}
    assert left.synthesize(str(out), shard="1/1", only=["b"]).removed == []
    report = left.synthesize(str(out))
    assert {path.relative_to(out).parts[0] for path in report.removed} == {"gone", "reports"}
    assert not (out / "gone").exists()
    assert not (out / "reports/gone").exists()


def test_the_sums_of_a_part_count_the_plans_of_earlier_runs(out):
    made = fleet("a", "b")
    made.synthesize(str(out))
    before = files(out)
    made.synthesize(str(out), only=["a"])
    assert files(out) == before


def test_files_of_the_user_stay(out):
    made = fleet("a")
    made.synthesize(str(out))
    (out / "a/mine.k8s.yaml").write_text("kind: ConfigMap\n")
    (out / "old").mkdir()
    (out / "old/mine.k8s.yaml").write_text("kind: ConfigMap\n")
    assert made.synthesize(str(out)).removed == []


def test_clusters_with_the_same_problem_share_a_line_and_nothing_is_written(out):
    def failing(app, cluster):
        fill(app, cluster)
        if cluster.name != "c":
            GpuWorkload(Chart(app, "other", namespace="default"), "bad", image="")

    line = failing.__code__.co_firstlineno + 3
    for jobs in (1, 2):
        made = fleet("a", "b", "c", "d", "e", fill=failing if jobs == 1 else fill_with_problem)
        [problem] = problems(made.synthesize, str(out), jobs=jobs)
        assert problem.startswith("a, b, d and 1 more: other/bad: image must ")
        assert jobs == 2 or problem.endswith(f"(test_fleet.py:{line})")
        assert not out.exists()


def fill_with_problem(app, cluster):
    fill(app, cluster)
    if cluster.name != "c":
        GpuWorkload(Chart(app, "other", namespace="default"), "bad", image="")


def fill_with_warning(app, cluster):
    fill(app, cluster)
    warn("odd")


def test_clusters_with_the_same_warning_share_a_line(out):
    with pytest.warns(GpuConstructsWarning) as heard:
        report = fleet("a", "b", fill=fill_with_warning).synthesize(str(out))
    assert [str(one.message) for one in heard] == report.warnings == ["a, b: odd"]
    assert heard[0].filename == __file__


@pytest.mark.filterwarnings("default")
def test_strict_turns_a_warning_into_a_problem(out):
    assert problems(fleet("a", "b", fill=fill_with_warning).synthesize, str(out), strict=True) == ["a, b: odd"]
    assert not out.exists()


def test_another_error_of_the_function_names_the_cluster(out):
    with pytest.raises(ZeroDivisionError) as raised:
        fleet("a", "b", fill=lambda app, cluster: 1 / (cluster.name != "b")).synthesize(str(out))
    assert raised.value.__notes__ == ["This error is from the cluster 'b' of the fleet."]
    assert not out.exists()


def test_a_function_inside_a_function_cannot_run_in_several_processes(out):
    with pytest.raises(GpuConstructsError, match="fill must be a function at the top level of a module if jobs is mor"):
        fleet("a", "b", fill=lambda app, cluster: None).synthesize(str(out), jobs=2)


PROGRAM = """
from gpu_constructs import Chart, Cluster, Fleet, GpuNamespace, Talos

def fill(app, cluster):
    GpuNamespace(Chart(app, "a"), "gpu", name="gpu")

fleet = Fleet(fill, clusters=[Cluster(name=name, platform=Talos()) for name in "abcd"])
"""


def run_program(tmp_path, last_lines, *arguments):
    (tmp_path / "app.py").write_text(PROGRAM + last_lines)
    done = subprocess.run(
        [sys.executable, "app.py", *arguments], cwd=tmp_path, capture_output=True, text=True, timeout=120
    )
    return done.returncode, done.stderr.strip()


def test_the_command_line_of_a_program_selects_clusters_and_processes(tmp_path):
    guarded = 'if __name__ == "__main__":\n    fleet.main()\n'
    assert run_program(tmp_path, guarded, "--only", "a", "--only", "[bc]", "--jobs", "2") == (
        0,
        "wrote 3 files to dist/",
    )
    assert run_program(tmp_path, guarded) == (0, "wrote 1 of 4 files to dist/")
    status, error = run_program(tmp_path, guarded, "--shard", "4/3")
    assert (status, error.splitlines()[-1]) == (
        2,
        "app.py: error: shard must be the number of a shard and the number of all shards, such as '3/10', got '4/3'",
    )


def test_a_program_that_other_processes_cannot_import_gets_one_error(tmp_path):
    status, error = run_program(tmp_path, "fleet.main()\n", "--jobs", "2")
    assert (status, error.splitlines()[-1]) == (
        2,
        "app.py: error: jobs must be 1 if other processes cannot import the program. Create the fleet at the top "
        "level, and call its synth or main below 'if __name__ == \"__main__\":'",
    )
    assert "Traceback" not in error
    assert not (tmp_path / "dist").exists()


def test_a_fleet_of_own_constructs_needs_no_nodejs(tmp_path):
    guarded = (
        "import os\nos.environ['PATH'] = ''\nfleet.synth()\nimport jsii\nassert not jsii.kernel.provider.is_started\n"
    )
    if "GPU_CONSTRUCTS_KERNEL" not in os.environ:
        assert run_program(tmp_path, guarded) == (0, "wrote 4 files to dist/")


def delivered(out, delivery):
    fleet("a", "b", delivery=delivery).synthesize(str(out))
    return list(yaml.safe_load_all((out / "fleet.k8s.yaml").read_text()))


def test_argo_cd_gets_one_application_set_that_keeps_the_objects_of_former_clusters(out, expected):
    [made] = delivered(out, FleetDelivery.argo_cd(repository="https://git.example/gpu.git"))
    spec = made["spec"]
    assert spec["generators"] == [{"list": {"elements": [{"cluster": "a"}, {"cluster": "b"}]}}]
    assert spec["template"]["spec"]["source"] == expected
    assert spec["template"]["spec"]["destination"] == {"name": "{{.cluster}}"}
    assert spec["syncPolicy"] == {"preserveResourcesOnDeletion": True}


def test_flux_gets_one_kustomization_for_each_cluster(out, expected):
    made = delivered(out, FleetDelivery.flux(interval="5m"))
    assert [one["metadata"]["name"] for one in made] == ["gpu-a", "gpu-b"]
    assert made[1]["spec"] == expected


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (lambda: FleetDelivery.argo_cd(repository="https://me:key@git.example/x"), "delivery.repository must not cont"),
        (lambda: FleetDelivery.flux(path="../x"), "delivery.path must be a path in the repository without '..'"),
        (lambda: FleetDelivery.flux(interval="-5m"), "delivery.interval must be above zero"),
        (lambda: fleet("a", delivery=FleetDelivery.flux(name="x" * 62)), "delivery.name and the name of a cluster"),
        (lambda: fleet("a", "a"), "clusters must have different names, got 'a' twice"),
        (lambda: fleet(), "clusters must have at least one Cluster"),
        (lambda: Fleet("fill", clusters=[cluster("a")]), "fill must be a function that takes an App and a Cluster"),
        (lambda: fleet("a").synthesize(jobs=0), "jobs must be at least 1"),
        (lambda: fleet("a").synthesize(only=["b"]), "only must be names or patterns of clusters of the fleet, got 'b'"),
    ],
)
def test_a_wrong_argument_is_one_error(make, problem):
    assert problem in refusal(make)


def test_another_program_keeps_its_file(out):
    fleet("a", delivery=FleetDelivery.flux()).synthesize(str(out), program="other.py")
    with pytest.raises(SynthesisError, match=r"belongs to other\.py"):
        fleet("b", delivery=FleetDelivery.flux()).synthesize(str(out))
    assert not (out / "b").exists()
    assert Path(out / "a").exists()
