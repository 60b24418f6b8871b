"""The README and the pages that it begins with: their apps write what they say, tables and links are true."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import dist
import documents
import gpu_constructs
from gpu_constructs import GpuConstructsError, Kubernetes, Talos
from gpu_constructs.catalog import versions
from gpu_constructs.catalog.platforms import DEFAULT_PLATFORM
from gpu_constructs.kube.side_files import FOLDERS

PAGES = dist.ROOT / "docs"
OWN_APP, SYNTHESIZE = PAGES / "your-own-app.md", PAGES / "synthesize.md"
PROJECT = tomllib.loads((dist.ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_the_readme_has_at_most_200_lines_and_begins_with_the_installation() -> None:
    assert len(documents.README.read_text(encoding="utf-8").splitlines()) <= 200
    assert documents.blocks(documents.README)[0] == documents.blocks(OWN_APP)[0]
    assert documents.blocks(documents.README)[0].text.startswith("pip install ")


def test_the_first_six_constructs_are_the_ones_that_the_package_shows_first() -> None:
    rows = re.findall(r"^\| `(\w+)` \|", documents.prose(documents.README), re.M)
    assert rows[:6] == gpu_constructs.__all__[:6]
    assert [row[0].strip("`") for row in documents.table(documents.README, "construct")] == rows[:6]
    assert set(rows) <= set(gpu_constructs.__all__)
    assert len(rows) == len(set(rows))


def written(app: str, folder: Path) -> tuple[str, list[str], list[str]]:
    """What an app prints, the files that it writes, and those that kubectl reads, in its order."""
    folder.mkdir()
    (folder / "app.py").write_text(app, encoding="utf-8")
    environment = {name: value for name, value in os.environ.items() if name != "CDK8S_OUTDIR"}
    environment["PYTHONPATH"] = str(dist.ROOT)
    ran = subprocess.run(
        [sys.executable, "app.py"], cwd=folder, env=environment, capture_output=True, text=True, check=True
    )
    every = [f"dist/{name}" for name in dist.all_texts(folder / "dist")]
    return ran.stdout + ran.stderr, every, [path.relative_to(folder).as_posix() for path in dist.files(folder / "dist")]


def test_the_first_apps_write_the_files_that_are_listed(tmp_path: Path) -> None:
    (first,) = documents.blocks(documents.README, "python")
    assert len([line for line in first.text.splitlines() if line]) == 3
    printed, _, read = written(first.text, tmp_path / "first")
    assert printed == f"wrote {len(read)} files to dist/\n"
    own = documents.blocks(OWN_APP, "python")[0]
    printed, every, read = written(own.text, tmp_path / "own")
    assert printed == "wrote 7 files to dist/\n"
    listed = [line.split()[0] for line in documents.blocks(OWN_APP, "text")[0].text.splitlines()]
    assert sorted(listed) == sorted(every)
    assert listed[:-1] == read, "kubectl reads all but the last, in this order"


def test_the_support_table_is_the_one_in_the_code() -> None:
    titles = "device plugin, GPU Feature Discovery | Node Feature Discovery | DCGM exporter | GPU Operator | Kubernetes"
    assert f"| gpu-constructs | {titles} | Talos |" in documents.prose(documents.README)
    (row,) = documents.table(documents.README, "gpu-constructs")
    talos = [line for line in (f"1.{minor}" for minor in range(30)) if _is_known(line)]
    assert row == [
        PROJECT["version"].rpartition(".")[0],
        documents.spans(versions.DEVICE_PLUGIN),
        documents.spans(versions.NODE_FEATURE_DISCOVERY),
        documents.spans(versions.DCGM_EXPORTER),
        documents.spans(versions.GPU_OPERATOR),
        f"{versions.KUBERNETES_RELEASES[0]} to {versions.KUBERNETES_RELEASES[-1]}",
        f"{talos[0]} to {talos[-1]}",
    ]


def _is_known(talos: str) -> bool:
    try:
        Talos(talos)
    except GpuConstructsError:
        return False
    return True


def test_the_defaults_are_the_ones_that_are_stated() -> None:
    assert "is the default, except for Talos: the default is 1.12." in documents.prose(documents.README)
    assert list(versions.DEVICE_PLUGIN)[-1] == versions.DEFAULT_DEVICE_PLUGIN
    assert list(versions.DCGM_EXPORTER)[-1] == versions.DEFAULT_DCGM_EXPORTER
    assert list(versions.GPU_OPERATOR)[-1] == versions.DEFAULT_GPU_OPERATOR
    assert Kubernetes().version == versions.KUBERNETES_RELEASES[-1]
    assert Talos("1.12") == DEFAULT_PLATFORM


def test_links_within_the_repository_lead_somewhere() -> None:
    for document in (*documents.DOCUMENTS, *documents.EXAMPLES):
        dead = []
        for target in documents.links(document):
            name, _, anchor = target.partition("#")
            path = (document.parent / name).resolve() if name else document
            if not path.exists() or (anchor and anchor not in documents.anchors(path)):
                dead.append(target)
        assert not dead


def test_every_folder_that_kubectl_does_not_read_is_named() -> None:
    text = documents.prose(SYNTHESIZE)
    assert all(f"`dist/{folder}/`" in text for folder in FOLDERS)
    assert f"`{dist.NEEDS_CRDS}/`" in text
    assert all((dist.DIST / folder).is_dir() for folder in FOLDERS)


def test_links_lead_from_the_readme_to_every_page() -> None:
    found, new = set(), [documents.README]
    while new:
        page = new.pop()
        found.add(page)
        targets = ((page.parent / target.partition("#")[0]).resolve() for target in documents.links(page))
        new += [target for target in targets if target in documents.DOCUMENTS and target not in found]
    assert found == set(documents.DOCUMENTS)


def test_field_notes_are_corrected_in_one_place() -> None:
    corrected = {row[0] for row in documents.table(PAGES / "field-notes.md", "field notes say")}
    elsewhere = {row[0] for row in documents.table(PAGES / "which-route.md", "claim")}
    assert corrected
    assert not corrected & elsewhere


def test_a_claim_that_no_one_checked_on_hardware_leads_to_its_page() -> None:
    claims = documents.table(documents.README, "claim")
    assert len(claims) > 5
    assert all(re.fullmatch(r"\[[^]]+\]\(docs/[\w-]+\.md#[\w-]+\)", page) for *_, page in claims)


def test_the_cluster_table_names_every_cluster() -> None:
    rows = documents.table(documents.EXAMPLE_CLUSTERS, "folder")
    assert sorted(row[0].strip("`") for row in rows) == [f"dist/{cluster}" for cluster in dist.CLUSTERS]


def test_the_flags_of_pytest_and_venv_exist(tmp_path: Path, pytestconfig: pytest.Config) -> None:
    assert "`uv run pytest --snapshot-update`" in documents.prose(SYNTHESIZE)
    assert pytestconfig.getoption("update_snapshots") in (True, False)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "venv")], check=True)
    assert (tmp_path / "venv" / "pyvenv.cfg").is_file()
