"""The page on routes: its tables are the ones in the code, and what it quotes is what the code says."""

import contextlib
import re
from pathlib import Path

import pytest
from cdk8s import App, Chart

import dist
import documents
import gpu_constructs
from gpu_constructs import GpuConstructsError, Kubernetes, Talos, ValidationBridge
from gpu_constructs.catalog import versions
from gpu_constructs.catalog.platforms import ROUTES, Platform, require
from gpu_constructs.operator import bridge
from tables import beside

PAGE = dist.ROOT / "docs" / "which-route.md"
COLUMNS = beside(__file__, "which_route_page")["columns"]
ROWS = {row[0]: row[1:] for row in documents.table(PAGE, "platform")}
WHY = {row[0]: f"{row[1]} {row[2]}" for row in documents.table(PAGE, "letter")}
MESSAGES = [block.text for block in documents.blocks(PAGE, "text")]
ISSUE = re.compile(r"[\w.-]+/[\w.-]+#\d+")


def platforms_of(row: str) -> list[Platform]:
    """The platforms that a row is about: one Talos line, or a span of Kubernetes releases."""
    system, *words = row.split()
    if system == "Talos":
        return [Talos(*words)]
    first, last = (versions.KUBERNETES_RELEASES.index(word) for word in words if word != "to")
    return [Kubernetes(release) for release in versions.KUBERNETES_RELEASES[first : last + 1]]


CELLS = [
    (platform, route, cell)
    for row, cells in ROWS.items()
    for platform in platforms_of(row)
    for route, cell in zip(COLUMNS.values(), cells, strict=True)
]


def test_the_columns_are_the_routes() -> None:
    assert f"| platform | {' | '.join(COLUMNS)} |" in documents.prose(PAGE)
    assert list(COLUMNS.values()) == list(ROUTES)


def test_the_rows_are_all_platforms_that_we_know() -> None:
    talos = []
    for line in (f"1.{minor}" for minor in range(30)):
        try:
            talos.append(Talos(line))
        except GpuConstructsError:
            continue
    kubernetes = [Kubernetes(release) for release in versions.KUBERNETES_RELEASES]
    assert [platform for row in ROWS for platform in platforms_of(row)] == [*talos, *kubernetes]


def test_a_cell_says_what_the_code_says() -> None:
    for platform, route, cell in CELLS:
        why = platform.refusal_of(route)
        if why is None:
            assert cell == "yes"
            require(platform, route)
        else:
            (letter,) = re.fullmatch(r"no \((\w)\)", cell).groups()
            assert set(ISSUE.findall(why)) <= set(ISSUE.findall(WHY[letter]))


def test_a_letter_stands_for_one_reason_of_the_code() -> None:
    of_letter: dict[str, set[str | None]] = {}
    for platform, route, cell in CELLS:
        if cell != "yes":
            of_letter.setdefault(cell[4], set()).add(platform.refusal_of(route))
    assert sorted(of_letter) == list(WHY)
    assert all(len(reasons) == 1 for reasons in of_letter.values())
    assert len(set().union(*of_letter.values())) == len(of_letter)


def test_a_bridge_that_is_left_in_gives_the_error_that_is_shown() -> None:
    with pytest.raises(GpuConstructsError) as refused:
        ValidationBridge(Chart(App(), "gpu-operator"), "bridge", platform=Talos("1.13"))
    assert MESSAGES[1] == f"{refused.value}\n"


def test_what_the_short_answers_advise_is_possible() -> None:
    advised = re.findall(r'`(DevicePluginChart|GpuOperator)\(platform=Talos\("([\d.]+)"\)', documents.prose(PAGE))
    assert len(advised) >= 3
    for construct, line in advised:
        require(Talos(line), "device-plugin" if construct == "DevicePluginChart" else "gpu-operator")


def test_the_operator_s_releases_are_the_ones_in_the_code() -> None:
    known = versions.GPU_OPERATOR
    rows = {row[0]: row[1:] for row in documents.table(PAGE, "GPU Operator")}
    rows = {release: cells for title, cells in rows.items() for release in documents.releases_of(title, known)}
    assert list(rows) == list(known)
    for release, (until_1_12, from_1_13) in rows.items():
        fails = not known[release].reads_version_of_talos
        old = not known[release].is_at_least(versions.FIRST_GPU_OPERATOR_FOR_CDI_ON_TALOS)
        assert until_1_12 == ("no" if fails else "yes"), release
        assert from_1_13 == ("no" if fails or old else "yes"), release


@pytest.mark.parametrize("line", ["1.12", "1.13"])
def test_the_values_are_the_ones_that_the_operator_is_told(line: str) -> None:
    chart, platform = Chart(App(), "gpu-operator"), Talos(line)
    bridge = ValidationBridge(chart, "bridge", platform=platform, strategy="stage") if line == "1.12" else None
    delivery = gpu_constructs.Delivery.values()
    operator = gpu_constructs.GpuOperator(chart, "operator", platform=platform, bridge=bridge, delivery=delivery)
    for key, until_1_12, from_1_13, _ in documents.table(PAGE, "value"):
        section, name = key.strip("`").split(".")
        told = operator.values.get(section, {}).get(name)
        shown = until_1_12 if line == "1.12" else from_1_13
        if told is None:
            assert shown == "left at `true`", key
        elif bridge and told == bridge.driver_install_dir:
            assert shown.startswith("the folder of the bridge"), key
        else:
            assert shown == f"`{told}`".replace("False", "false"), key


@pytest.mark.parametrize("line", ["1.12", "1.13"])
def test_the_operator_takes_the_releases_that_the_table_says(line: str) -> None:
    chart, platform = Chart(App(), "gpu-operator"), Talos(line)
    bridge = ValidationBridge(chart, "bridge", platform=platform) if line == "1.12" else None
    rows = [
        (release, *cells)
        for title, *cells in documents.table(PAGE, "GPU Operator")
        for release in documents.releases_of(title, versions.GPU_OPERATOR)
    ]
    for number, (release, *cells) in enumerate(rows):
        allowed = cells[0 if bridge else 1] == "yes"
        with contextlib.nullcontext() if allowed else pytest.raises(GpuConstructsError, match=release):
            gpu_constructs.GpuOperator(
                chart,
                f"operator-{number}",
                platform=platform,
                bridge=bridge,
                version=release,
                release_name=f"operator-{number}",
                delivery=gpu_constructs.Delivery.values(),
            )


def test_the_markers_are_the_ones_that_the_bridge_writes() -> None:
    folder = Path(bridge.__file__).parent
    (markers,) = {
        match for path in folder.glob("*.sh") for match in re.findall(r'MARKERS:=([^}"]+)', path.read_text("utf-8"))
    }
    written_by = {row[0]: row[1] for row in documents.table(PAGE, "file")}
    assert [name for name in ("driver-ready", "toolkit-ready") if f"`{name}`" in written_by] == markers.split()
    for block in documents.blocks(PAGE, "mermaid"):
        assert all(f'["{marker}"]' in block.text for marker in markers.split())
        assert bridge.VALIDATIONS_DIR in block.text


def test_the_first_platforms_for_dra_are_the_ones_in_the_code() -> None:
    text = documents.prose(PAGE)
    assert "from Kubernetes 1.34 on, which Talos 1.11 installs by default." in " ".join(text.split())
    assert Talos("1.11").kubernetes == "1.34"
    assert next(r for r in versions.KUBERNETES_RELEASES if not Kubernetes(r).refusal_of("dra")) == "1.34"
    assert next(minor for minor in range(10, 15) if not Talos(f"1.{minor}").refusal_of("dra")) == 13
