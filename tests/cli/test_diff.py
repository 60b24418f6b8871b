"""What ``gpu-constructs diff`` says about changes of manifests."""

import io
import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest
import recording
import sarif
import yaml

import documents
from cli.changes import TABLE, changed, changes
from dist import ROOT
from gpu_constructs.cli.main import main

TABLES = yaml.safe_load((Path(__file__).parent / "tables" / "diff.yaml").read_text(encoding="utf-8"))


def written(path, *manifests):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("---\n".join(yaml.safe_dump(one, sort_keys=False) for one in manifests))
    return str(path)


def said(capsys, *arguments):
    """Return the exit status, and the result as JSON."""
    status = main(["diff", *map(str, arguments), "--format", "json"])
    return status, json.loads(capsys.readouterr().out)


def _texts(item):
    return [effect["text"] for effect in item["effects"]]


@pytest.mark.parametrize(("row", "old", "new"), changes())
def test_each_change_has_its_consequence(row, old, new, tmp_path, capsys):
    status, result = said(capsys, written(tmp_path / "old.yaml", old), written(tmp_path / "new.yaml", new))
    texts = [text for one in result["objects"] for text in (one["consequence"], *_texts(one))]
    topics = {effect["topic"] for one in result["objects"] for effect in one["effects"]}
    assert status == bool(texts)
    assert ("immutable" in topics) == (row.get("refused") is True)
    assert ("restart" in topics) == ("restarts" in row)
    assert row.get("says", "") in "\n".join(texts)


def _tables(name):
    return [pytest.param(row, id=row["about"]) for row in TABLES[name]]


def _object(row):
    return TABLE["objects"][row["of"]] if isinstance(row["of"], str) else row["of"]


@pytest.mark.parametrize("row", _tables("security"))
def test_rights_that_grow_or_shrink_are_named(row, tmp_path, capsys):
    old, folders = _object(row), [tmp_path / "old", tmp_path / "new"]
    written(folders[0] / "a.yaml", old)
    written(folders[0] / "b.yaml", TABLE["objects"]["configmap"])
    written(folders[1] / "b.yaml", TABLE["objects"]["configmap"])
    if "change" in row:
        written(folders[1] / "a.yaml", changed(old, row["change"]))
    for before, after, ways in ((*folders, ("broadens", "narrows")), (*reversed(folders), ("narrows", "broadens"))):
        _, result = said(capsys, before, after, "--security-only")
        found = [effect for one in result["objects"] for effect in one["effects"]]
        texts = [[one["text"] for one in found if one["topic"] == topic] for topic in ("broadening", "narrowing")]
        if "change" in row and before is folders[0]:
            assert texts == [row.get(way, []) for way in ways]
        assert bool(texts[0]) == bool(row.get(ways[0])) or "change" not in row
    status = main(["diff", *map(str, folders), "--security-only", "--fail-on", "broadening"])
    assert status == bool(row.get("broadens"))


@pytest.mark.parametrize("row", _tables("configuration"))
def test_pods_that_read_changed_configuration_are_named(row, tmp_path, capsys):
    kind = row.get("kind", "configmap")
    config = TABLE["objects"][kind]
    user = changed(TABLE["objects"]["deployment"], {"spec.template.spec": row["spec"]})
    after = changed(
        user, {"spec.template.metadata.annotations": {"checksum/config": "b"}} if row.get("restarts") else {}
    )
    new = changed(config, {"data" if kind == "configmap" else "stringData": {"a": "2"}})
    old_file, new_file = (
        written(tmp_path / f"{n}.yaml", *all_) for n, all_ in enumerate([(config, user), (new, after)])
    )
    _, result = said(capsys, old_file, new_file)
    assert row["says"] in " ".join([result["objects"][0]["consequence"], *_texts(result["objects"][0])])


@pytest.mark.parametrize("row", _tables("nodes"))
def test_files_that_no_apply_reads_have_their_own_commands(row, tmp_path, capsys):
    for side in ("old", "new"):
        written(tmp_path / side / "a.yaml", TABLE["objects"]["role"])
        if side in row:
            file = tmp_path / side / row["file"]
            file.parent.mkdir(parents=True)
            file.write_text(row[side])
    assert main(["diff", str(tmp_path / "old"), str(tmp_path / "new")]) == 1
    out = " ".join(capsys.readouterr().out.split())
    assert all(text in out for text in row["says"]), out


def test_an_object_with_a_new_name_replaces_the_old_one(tmp_path, capsys):
    web, config = TABLE["objects"]["deployment"], TABLE["objects"]["configmap"]
    agent = TABLE["objects"]["daemonset"]
    old = [web, changed(config, {"metadata.name": "config-0123456789"}), agent]
    new = [
        changed(web, {"metadata.name": "site"}),
        changed(config, {"metadata.name": "config-abcdef0123", "data": {"b": "2"}}),
        changed(agent, {"metadata.name": "agents", "spec.selector.matchLabels": {"app": "agents"}}),
    ]
    _, result = said(capsys, written(tmp_path / "old.yaml", *old), written(tmp_path / "new.yaml", *new))
    assert [(one["action"], one["object"]) for one in result["objects"]] == [
        ("replaced", "Deployment changes/site"),
        ("replaced", "ConfigMap changes/config-abcdef0123"),
        ("replaced", "DaemonSet changes/agents"),
    ]
    assert "Both have the same selector, so delete the old object first" in result["objects"][0]["consequence"]
    commands = [one["command"] for one in result["steps"]]
    assert commands[0] == "kubectl delete deployment.apps web --namespace changes"
    assert commands[-1] == "kubectl delete configmap config-0123456789 --namespace changes"


@pytest.mark.parametrize("row", _tables("plugins"))
def test_the_old_device_plugin_goes_before_the_new_one_comes(row, tmp_path, capsys):
    folders = []
    for side in ("old", "new"):
        agents = [changed(TABLE["objects"]["daemonset"], agent) for agent in row[side]]
        folders.append(Path(written(tmp_path / side / "a.yaml", TABLE["objects"]["role"], *agents)).parent)
    _, result = said(capsys, *folders)
    steps = {one["command"].split()[1]: one["comment"] for one in result["steps"]}
    assert list(steps) == row["order"]
    is_first = row["order"][0] == "delete"
    assert ("Running GPU pods keep their devices, but no new pod gets one" in steps["delete"]) == is_first


def test_an_object_in_another_file_is_no_difference(tmp_path, capsys):
    written(tmp_path / "old" / "a.yaml", TABLE["objects"]["role"])
    written(tmp_path / "new" / "b.yaml", TABLE["objects"]["role"])
    status, result = said(capsys, tmp_path / "old", tmp_path / "new")
    assert (status, result["steps"]) == (0, [])
    assert result["objects"][0]["action"] == "moved"


def test_commands_are_in_the_order_in_which_they_must_run(tmp_path, capsys):
    job, role = TABLE["objects"]["job"], TABLE["objects"]["role"]
    written(tmp_path / "old" / "a.yaml", job, TABLE["objects"]["daemonset"])
    written(tmp_path / "new" / "a.yaml", changed(job, {"spec.completions": 3}))
    written(tmp_path / "new" / "needs-crds" / "b.yaml", role)
    _, result = said(capsys, tmp_path / "old", tmp_path / "new")
    assert [one["command"] for one in result["steps"]] == [
        "kubectl delete job.batch train --namespace changes",
        f"kubectl apply --server-side -f {tmp_path}/new",
        f"kubectl apply --server-side -f {tmp_path}/new/needs-crds",
        "kubectl delete daemonset.apps agent --namespace changes",
    ]
    assert result["steps"][0]["comment"].startswith("Warning: this stops its pods")
    assert result["steps"][2]["comment"] == "once the cluster has the definitions of these kinds"


def test_folders_with_the_same_objects_are_different_clusters(tmp_path, capsys):
    for side, data in (("old", "1"), ("new", "2")):
        for cluster in ("home", "office"):
            one = changed(TABLE["objects"]["configmap"], {"data": {"a": data if cluster == "office" else "1"}})
            written(tmp_path / side / cluster / "a.yaml", one)
    _, result = said(capsys, tmp_path / "old", tmp_path / "new")
    assert [one["file"] for one in result["objects"]] == [f"{tmp_path}/new/office/a.yaml"]


@pytest.mark.parametrize(
    ("topics", "status"),
    [("any", 1), ("never", 0), ("immutable", 0), ("immutable,restart", 1), ("capacity", 0), ("broadening", 0)],
)
def test_fail_on_selects_the_consequences(topics, status, tmp_path, capsys):
    old = TABLE["objects"]["deployment"]
    new = changed(old, {"spec.template.spec.containers.0.args": []})
    files = [written(tmp_path / "old.yaml", old), written(tmp_path / "new.yaml", new)]
    assert main(["diff", *files, "--fail-on", topics]) == status


def test_values_of_secrets_are_hidden(tmp_path, capsys):
    old = TABLE["objects"]["secret"]
    files = [
        written(tmp_path / "old.yaml", old),
        written(tmp_path / "new.yaml", changed(old, {"stringData": {"a": "x"}})),
    ]
    for name in ("text", "json", "markdown", "sarif", "github"):
        assert main(["diff", *files, "--format", name]) == 1
        out = capsys.readouterr().out
        assert "c2VjcmV0" not in out
        assert "secret-value" not in out


def _git(folder, *arguments):
    identity = ["-c", "user.name=a", "-c", "user.email=a@example.com"]
    subprocess.run(["git", "-C", str(folder), *identity, *arguments], check=True, capture_output=True)


def test_a_committed_folder_is_compared_with_the_working_tree(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    _git(tmp_path, "init", "-b", "main")
    for data in ("1", "2", "3"):
        written(tmp_path / "dist" / "a.yaml", changed(TABLE["objects"]["configmap"], {"data": {"a": data}}))
        if data != "3":
            _git(tmp_path, "add", ".")
            _git(tmp_path, "commit", "-m", data)
    for revisions, change in (("HEAD", "2 → 3"), ("HEAD~1", "1 → 3"), ("HEAD~1..HEAD", "1 → 2")):
        assert main(["diff", "--git", revisions]) == 1
        assert f"data.a: {change}" in capsys.readouterr().out
    assert main(["diff", "--git", "missing"]) == 3
    assert "Pass a commit, a branch or a tag" in capsys.readouterr().err


def test_the_plan_names_the_slots_and_the_pods_that_no_longer_fit(tmp_path, capsys):
    (tmp_path / "gpus.yaml").write_text("nodes: [{name: gpu-1, gpus: 1, gpu_model: NVIDIA GeForce RTX 3090}]")
    old = changed(TABLE["objects"]["deployment"], {"spec.replicas": 1, "spec.strategy": {"type": "Recreate"}})
    old = changed(old, {"spec.template.spec.containers.0.resources.limits": {"nvidia.com/gpu": 1}})
    files = [written(tmp_path / "old.yaml", old), written(tmp_path / "new.yaml", changed(old, {"spec.replicas": 2}))]
    status, result = said(capsys, *files, "--inventory", tmp_path / "gpus.yaml", "--fail-on", "capacity")
    texts = " ".join(one["reason"] for one in result["findings"])
    assert status == 1
    assert "requests of nvidia.com/gpu: 1 → 2" in texts
    assert "1 of 2 pods stay Pending (before: 0)" in texts


def test_a_created_object_states_that_rights_grow_as_a_changed_one_does(tmp_path, capsys):
    config, role = TABLE["objects"]["configmap"], changed(TABLE["objects"]["role"], {"rules.0.verbs": ["get", "list"]})
    role = changed(role, {"rules": [*role["rules"], {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}]})
    files = [written(tmp_path / "old.yaml", config), written(tmp_path / "new.yaml", config, role)]
    _, result = said(capsys, *files)
    number = sum(one["code"] == "broadening" for one in result["findings"])
    assert number == 2
    assert result["summary"] == f"1 created; consequences: {number} broadening"
    for name in ("text", "markdown"):
        main(["diff", *files, "--format", name])
        assert "created; broadening: may get, list pods" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["text", "json"])
@pytest.mark.parametrize("given", ["folder", "stdin", "broken"])
def test_an_empty_new_version_deletes_nothing(given, name, tmp_path, capsys, monkeypatch):
    old, new = written(tmp_path / "old.yaml", TABLE["objects"]["daemonset"]), str(tmp_path / "new")
    (tmp_path / "new").mkdir()
    if given != "folder":
        text = b"" if given == "stdin" else b"Error: no chart"
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text)))
        new = "-"
    assert main(["diff", old, new, "--format", name]) == 3
    out, err = capsys.readouterr()
    assert out == ""
    assert f"found no Kubernetes objects in {new}" in err
    if given == "folder":
        assert main(["diff", new, old]) == 1
        assert "+ DaemonSet changes/agent" in capsys.readouterr().out


@pytest.mark.parametrize("revisions", ["HEAD", "HEAD~1..HEAD"])
def test_an_empty_folder_in_git_deletes_nothing(revisions, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    _git(tmp_path, "init", "-b", "main")
    file = Path(written(tmp_path / "dist" / "a.yaml", TABLE["objects"]["configmap"]))
    for number in range(2):
        _git(tmp_path, "add", ".")
        _git(tmp_path, "commit", "-m", str(number))
        file.unlink(missing_ok=True)
        (tmp_path / "dist" / "README.md").write_text("empty")
        if revisions == "HEAD":
            break
    assert main(["diff", "--git", revisions]) == 3
    where = "dist" if revisions == "HEAD" else "HEAD:dist"
    assert f"found no Kubernetes objects in {where}." in capsys.readouterr().err


@pytest.mark.parametrize("paths", [[], ["a"], ["a", "b", "c"], ["-", "-"], ["--git", "HEAD", "a", "b"], ["--cluster"]])
def test_wrong_arguments_end_the_command(paths, capsys, monkeypatch):
    monkeypatch.setattr("shutil.which", lambda _: "kubectl")
    assert main(["diff", *paths]) == 2
    assert "PATH must be" in capsys.readouterr().err


@pytest.mark.parametrize("seed", range(60))
def test_odd_objects_never_end_the_command_with_a_traceback(seed, tmp_path, capsys):
    chosen = random.Random(seed)
    objects = list(TABLE["objects"].values())
    files = []
    for side in ("old", "new"):
        texts = yaml.safe_dump_all(chosen.sample(objects, 6)).split("\n")
        for _ in range(8):
            line = chosen.randrange(len(texts))
            head, _, _ = texts[line].partition(":")
            texts[line] = chosen.choice(["", f"{head}: 5", f"{head}: [1, null]", f"{head}: {{a: 1}}", f"{head}: x"])
        files.append(tmp_path / f"{side}.yaml")
        files[-1].write_text("\n".join(texts))
    for name in ("text", "json", "markdown"):
        assert main(["diff", *map(str, files), "--format", name]) in (0, 1, 3)


def test_the_picture_of_the_page_is_current(tmp_path, monkeypatch):
    page, picture = ROOT / "docs" / "command-diff.md", ROOT / "docs" / "images" / "diff.svg"
    for block in documents.blocks(page, "yaml"):
        name, _, text = block.text.partition("\n")
        (tmp_path / name.removeprefix("# ")).write_text(text)
    monkeypatch.chdir(tmp_path)
    drawn = recording.svg(recording.output_of("gpu-constructs diff before.yaml after.yaml --inventory gpus.yaml"))
    if os.environ.get("UPDATE_PAGES"):
        picture.write_text(drawn, encoding="utf-8")
    assert picture.read_text(encoding="utf-8") == drawn


KUBECTL = """#!{python}
import json, sys
args, given = sys.argv[1:], sys.stdin.read()
items = json.loads(given)["items"] if given else []
if "current-context" in args:
    print("home")
elif "view" in args:
    print("https://home:6443")
elif "get" in args:
    print(json.dumps({{"kind": "List", "items": json.load(open({state!r}))}}))
elif len(items) > 1:
    sys.exit("error: several")
elif items[0]["kind"] == "ConfigMap" and "--force-conflicts" not in args:
    sys.exit('error: Apply failed with 1 conflict: conflict with "helm": .data.a')
elif items[0]["kind"] == "Role":
    sys.exit({refusal!r})
else:
    print(json.dumps(items[0]))
"""


@pytest.mark.parametrize(
    ("refusal", "how", "says"),
    [
        ("refused by a policy", "dry-run=server", "refused by the API server: refused by a policy"),
        ('Error (Forbidden): User "a" cannot patch resource "roles"', "compared locally", "may list pods"),
    ],
)
def test_a_cluster_is_asked_what_an_apply_would_do(refusal, how, says, tmp_path, capsys, monkeypatch):
    config, role, web = (TABLE["objects"][one] for one in ("configmap", "role", "deployment"))
    owned = changed(
        config, {"metadata.annotations": {"meta.helm.sh/release-name": "r", "meta.helm.sh/release-namespace": "n"}}
    )
    (tmp_path / "state.json").write_text(json.dumps([owned, changed(role, {"rules.0.verbs": ["get"]})]))
    kubectl = tmp_path / "kubectl"
    kubectl.write_text(KUBECTL.format(python=sys.executable, state=str(tmp_path / "state.json"), refusal=refusal))
    kubectl.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    new = [changed(config, {"data": {"a": "2"}}), changed(role, {"rules.0.verbs": ["get", "list"]}), web]
    file = written(tmp_path / "new.yaml", *new)
    assert main(["diff", "--cluster", file]) == 1
    out = " ".join(capsys.readouterr().out.split())
    for text in ("context home", how, says, "takes over an object of the Helm release n/r", "+ Deployment changes/web"):
        assert text in out


def test_findings_have_the_form_of_sarif_and_of_annotations(tmp_path, capsys):
    old = TABLE["objects"]["job"]
    files = [written(tmp_path / "old.yaml", old), written(tmp_path / "new.yaml", changed(old, {"spec.completions": 3}))]
    assert main(["diff", *files, "--format", "github", "--report", f"sarif={tmp_path / 'a.sarif'}"]) == 1
    assert f"::error file={tmp_path}/new.yaml,line=1,title=immutable::" in capsys.readouterr().out.replace("%3A", ":")
    assert sarif.problems(json.loads((tmp_path / "a.sarif").read_text())) == []
