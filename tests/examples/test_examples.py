"""Each folder of examples/ is an app that writes its dist/, which is valid, and its README states what the app does."""

import contextlib
import io
import re
import runpy
import shutil
from collections.abc import Iterable
from pathlib import Path

import pytest
from test_troubleshooting import Call, fits, read

import dist
import documents
import invariants
import schemas

EXAMPLES = [path.parent for path in sorted(dist.ROOT.glob("examples/*/app.py"))]
EACH = pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
OVERVIEW = dist.ROOT / "examples" / "README.md"
PRODUCT = ("node label", "nvidia.com/gpu.product", "GPU Feature Discovery labels nodes with their board")
EXTERNALS = (
    dist.External("01-one-gpu-on-talos", *PRODUCT),
    dist.External("04-company-cluster", *PRODUCT),
    dist.External("04-company-cluster", "Namespace", "argocd", "its README requires Argo CD"),
    dist.External("04-company-cluster", "Secret", "hugging-face", "its README shows the command that creates it"),
    dist.External("07-several-clusters", *PRODUCT),
    dist.External("08-plain-yaml", "node label", "example.com/gpu", "its README requires it"),
)


def clusters(example: Path) -> list[Path]:
    """The folders of an example that `kubectl apply -f` reads."""
    return [path.parent for path in sorted(example.glob("dist/**/00-namespaces.k8s.yaml"))]


def run(example: Path, folder: Path) -> tuple[Path, str]:
    """Run a copy of an example as a program of a repository; return what it wrote, and what it printed."""
    (folder / ".git").mkdir()
    copy = folder / example.relative_to(dist.ROOT)
    shutil.copytree(example, copy, ignore=lambda _, names: {"dist"} & set(names))
    with contextlib.chdir(copy), contextlib.redirect_stderr(io.StringIO()) as printed:
        runpy.run_path(str(copy / "app.py"), run_name="__main__")
    return copy / "dist", printed.getvalue()


def outdated(example: Path, written: Path) -> list[str]:
    return dist.differences(dist.all_texts(example / "dist"), dist.all_texts(written))


@EACH
def test_dist_is_what_the_app_writes_and_the_readme_shows_the_line_that_it_prints(
    example: Path, tmp_path: Path
) -> None:
    written, printed = run(example, tmp_path)
    found = outdated(example, written)
    assert not found, f"run `make synth`: {example.name}\n" + "\n".join(found)
    assert printed in [block.text for block in documents.blocks(example / "README.md", "text")]
    assert "warning" not in printed


def test_a_difference_in_one_file_would_be_found(tmp_path: Path) -> None:
    (example, *_) = EXAMPLES
    copy = shutil.copytree(example / "dist", tmp_path / "dist")
    assert outdated(example, copy) == []
    changed = copy / "ollama.k8s.yaml"
    changed.write_text(changed.read_text(encoding="utf-8").replace("replicas: 1", "replicas: 2"), encoding="utf-8")
    (copy / "02-classes.k8s.yaml").unlink()
    classes, server = outdated(example, copy)
    assert "02-classes.k8s.yaml" in classes
    assert "-  replicas: 1\n+  replicas: 2\n" in server


def check_clusters(example: Path, externals: Iterable[dist.External]) -> None:
    """Fail with what keeps a cluster of an example from working."""
    for cluster in clusters(example):
        own = [row._replace(cluster=cluster.name) for row in externals if row.cluster == example.name]
        invariants.hold_for_cluster(cluster, externals=own)


@EACH
def test_its_manifests_work_on_an_empty_cluster(example: Path) -> None:
    assert clusters(example)
    check_clusters(example, EXTERNALS)
    crds = schemas.committed_crds()
    for cluster in clusters(example):
        custom = [one for documents_of in dist.files(cluster / dist.NEEDS_CRDS).values() for one in documents_of]
        assert [error for one in custom for error in schemas.custom_resource_errors(one, crds)] == []


@pytest.mark.parametrize("row", EXTERNALS, ids=lambda row: f"{row.cluster} {row.name}")
def test_every_row_of_the_externals_is_needed(row: dist.External) -> None:
    with pytest.raises(AssertionError, match=row.name):
        check_clusters(dist.ROOT / "examples" / row.cluster, set(EXTERNALS) - {row})


def kubectl_problem(words: list[str], example: Path) -> str | None:
    """What is wrong with a kubectl command of an example, or None."""
    call = read(words)
    if call.verb == "apply":
        path = call.flags["file"]
        return None if path.endswith("/") and (example / path).is_dir() else f"no such folder: {path}"
    if call.verb == "create":
        # A Job from a CronJob, or a Secret in a namespace.
        call = Call("get", [call.flags.get("from", f"namespace/{call.flags['namespace']}")], call.flags)
    return None if any(fits(call, str(cluster)) for cluster in clusters(example)) else "not in dist/"


@EACH
def test_its_readme_names_what_is_there_and_quotes_its_reports(example: Path) -> None:
    readme = example / "README.md"
    there = {
        (f"{one['kind']} `{one['metadata']['name']}`", one["metadata"].get("namespace", ""))
        for cluster in clusters(example)
        for one in dist.objects(str(cluster))
    }
    assert {(row[0], row[1].strip("`")) for row in documents.table(readme, "object")} <= there
    commands = documents.commands(readme)
    assert commands[0] == ["uv", "run", "python", "app.py"]
    kubectl = [words for words in commands if words[0] == "kubectl"]
    assert {words[0] for words in commands} <= {"uv", "kubectl", "helm", "diff"}
    assert [problem for words in kubectl if (problem := kubectl_problem(words, example))] == []
    reports = "".join(path.read_text(encoding="utf-8") for path in sorted(example.glob("dist/reports/**/*.txt")))
    printed = f"wrote {len(dist.all_texts(example / 'dist'))} files to dist/\n"
    quoted = [block.text for block in documents.blocks(readme, "text")]
    assert [text for text in quoted if text != printed and text not in reports] == []


def test_a_readme_that_names_what_is_not_there_would_be_found() -> None:
    (example, *_) = EXAMPLES
    assert kubectl_problem("kubectl logs -n ollama deploy/ollama".split(), example) is None
    assert kubectl_problem("kubectl logs -n ollama deploy/llama".split(), example) == "not in dist/"
    assert kubectl_problem("kubectl apply -f dist/needs-crds/".split(), example) == "no such folder: dist/needs-crds/"


def test_the_overview_links_each_example() -> None:
    linked = [row[0] for row in documents.table(OVERVIEW, "example")]
    assert linked == [f"[{example.name[:2]}]({example.name}/README.md)" for example in EXAMPLES]


def test_plain_yaml_that_breaks_a_rule_is_refused_and_its_plan_needs_no_app(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    example = dist.ROOT / "examples" / "08-plain-yaml"
    copy = shutil.copytree(example, tmp_path / "copy")
    with contextlib.chdir(copy):
        (program,) = (block.text for block in documents.blocks(example / "README.md", "python"))
        exec(compile(program, "README", "exec"), {})
        assert capsys.readouterr().out in [block.text for block in documents.blocks(example / "README.md", "text")]
        chat = copy / "rendered" / "chat.yaml"
        chat.write_text(chat.read_text(encoding="utf-8").replace("gpu: 1}", "gpu: 0.5}"), encoding="utf-8")
        with pytest.raises(SystemExit):
            runpy.run_path(str(copy / "app.py"))
    assert re.search(r"\[R01\]$", capsys.readouterr().err, re.MULTILINE)
