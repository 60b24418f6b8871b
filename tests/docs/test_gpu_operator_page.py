"""The page on the GPU Operator: each of its programs runs as written, and says what is shown below it."""

import io
import re
import tarfile
import warnings
from pathlib import Path

import pytest
import yaml
from cdk8s import App, Chart

import dist
import documents
from gpu_constructs import Delivery, GpuConstructsError, GpuConstructsWarning, GpuOperator, Talos
from gpu_constructs.catalog import versions

PAGE = dist.ROOT / "docs" / "gpu-operator.md"
BLOCKS = documents.blocks(PAGE)
PROGRAMS = [
    (block.text, below.text if below.language == "text" else "")
    for block, below in zip(BLOCKS, [*BLOCKS[1:], documents.Block("", "")], strict=True)
    if block.language == "python"
]
WRITES = [text for text, _ in PROGRAMS if "synth(app)" in text]
REFUSED = [(text, says) for text, says in PROGRAMS if "synth(app)" not in text]
WARNS = ["dist-markers"]
RENDERED = "apiVersion: nvidia.com/v1\nkind: ClusterPolicy\nmetadata: {name: cluster-policy}\nspec: {}\n"


@pytest.fixture(autouse=True)
def chart_and_helm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Create the files that the programs need: the pulled chart, a values file, and a helm."""
    (pull,) = (words for words in documents.commands(PAGE) if words[:2] == ["helm", "pull"])
    flags = dict(zip(pull[3::2], pull[4::2], strict=True))
    folder = tmp_path / flags["--destination"]
    folder.mkdir()
    with tarfile.open(folder / f"{pull[2]}-{flags['--version']}.tgz", "w:gz") as archive:
        text = f"apiVersion: v2\nname: {pull[2]}\nversion: {flags['--version']}\n".encode()
        member = tarfile.TarInfo(f"{pull[2]}/Chart.yaml")
        member.size = len(text)
        archive.addfile(member, io.BytesIO(text))
    (tmp_path / "rendered").write_text(RENDERED)
    (tmp_path / "values.yaml").write_text("dcgmExporter: {enabled: false}\n")
    helm = tmp_path / "bin" / "helm"
    helm.parent.mkdir()
    helm.write_text(f"#!/bin/sh\ncat {tmp_path}/rendered\n")
    helm.chmod(0o755)
    monkeypatch.setenv("PATH", str(helm.parent), prepend=":")
    monkeypatch.chdir(tmp_path)


def outdir_of(program: str) -> str:
    (name,) = re.findall(r'App\(outdir="([^"]+)"\)', program)
    return name


@pytest.mark.parametrize("program", WRITES, ids=outdir_of)
def test_a_program_writes_its_folder_and_warns_as_shown(program: str, tmp_path: Path) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        exec(compile(program, "gpu-operator.md", "exec"), {})
    assert list((tmp_path / outdir_of(program)).rglob("gpu-operator.values.yaml"))
    warned = [f"{one.message}\n" for one in caught if issubclass(one.category, GpuConstructsWarning)]
    assert warned == [says for text, says in PROGRAMS if text == program and outdir_of(text) in WARNS]


def test_a_refused_program_gives_the_error_that_is_shown() -> None:
    for program, says in REFUSED:
        with pytest.raises(GpuConstructsError) as refused:
            exec(compile(program, "gpu-operator.md", "exec"), {})
        assert says == f"{refused.value}\n"


def test_two_exporters_give_the_error_that_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    (program, says), *_ = (one for one in PROGRAMS if "dcgm_exporter=False" in one[0])
    with pytest.raises(SystemExit):
        exec(program.replace(", dcgm_exporter=False", ""), {})
    assert capsys.readouterr().err == f"1 problem found, nothing was written\n  {says}"


def test_no_quote_is_unchecked() -> None:
    quotes = {says for _, says in PROGRAMS if says}
    checked = {says for _, says in REFUSED}
    checked |= {says for text, says in PROGRAMS if "synth(app)" in text and outdir_of(text) in WARNS}
    assert {block.text for block in BLOCKS if block.language == "text"} == quotes
    (by_two_exporters,) = quotes - checked
    assert "dcgm-exporter" in by_two_exporters


FILES = documents.table(PAGE, "in the file")


def test_what_a_values_file_runs_into_is_what_the_table_says() -> None:
    for row in FILES:
        (values,), (says,) = (re.findall(r"`([^`]+)`", cell)[:1] for cell in row[:2])
        with pytest.raises(GpuConstructsError, match=re.escape(says)):
            GpuOperator(
                Chart(App(), "chart"),
                "gpu-operator",
                platform=Talos("1.13"),
                delivery=Delivery.values(),
                values=yaml.safe_load(values),
            )


def test_the_table_of_deliveries_names_them_all_and_what_they_write(tmp_path: Path) -> None:
    rows = {row[0]: row[1] for row in documents.table(PAGE, "`delivery=`")}
    ways = [name for name, member in vars(Delivery).items() if isinstance(member, classmethod)]
    assert [re.findall(r"Delivery\.(\w+)", row) for row in rows] == [[way] for way in ways]
    for way, program in zip(ways, WRITES, strict=False):
        exec(program, {})
        kinds = set(
            re.findall(r"^kind: (\w+)$", "\n".join(dist.all_texts(tmp_path / outdir_of(program)).values()), re.M)
        )
        if "needs-crds" in rows[f"`Delivery.{way}()`" if way != "helm" else "`Delivery.helm(chart=...)`"]:
            assert any(kind in rows[f"`Delivery.{way}()`"] for kind in kinds - {"Namespace"})
            assert [*(tmp_path / outdir_of(program)).glob("needs-crds/*.k8s.yaml")]
        else:
            assert kinds - {"Namespace"} == ({"ClusterPolicy"} if way == "helm" else set())


def test_the_helm_commands_are_about_the_release_and_the_files_of_the_programs(tmp_path: Path) -> None:
    helm = [words for words in documents.commands(PAGE) if words[0] == "helm"]
    assert [words[1] for words in helm] == ["pull", "install"]
    assert all(f"v{versions.DEFAULT_GPU_OPERATOR}" in words for words in helm)
    install = helm[1]
    exec(next(program for program in WRITES if "dist-values" in program), {})
    assert (tmp_path / install[install.index("--values") + 1]).is_file()
    namespaces = (tmp_path / "dist-values" / "00-namespaces.k8s.yaml").read_text(encoding="utf-8")
    assert f"name: {install[install.index('--namespace') + 1]}\n" in namespaces


def test_every_other_page_that_is_about_the_operator_leads_here() -> None:
    for page in (documents.README, PAGE.with_name("which-route.md"), PAGE.with_name("troubleshooting.md")):
        assert any(target.partition("#")[0].endswith("gpu-operator.md") for target in documents.links(page)), page.name
