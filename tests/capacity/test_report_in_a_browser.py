import base64
import hashlib
import io
import json
import shutil
import struct
import subprocess
import tarfile
from dataclasses import replace
from functools import cache

import pytest

import capacity_examples as examples
from chromium import chromium
from gpu_constructs.capacity.report.written import html, svg

pytestmark = pytest.mark.system_tools

AXE = "4.14.1"
AXE_SHA512 = "FHfa+lmNjQZfJz1q8wKqIDwC6DExcHt/pkjNQb09a3NPjCKg2rhu5qb2S4r76ASyFNNtuFooJpZe37OgudVGtQ=="

# For every piece of text: how its colour stands out of what is painted behind it (WCAG 2, relative luminance).
CONTRASTS = """
(() => {
  const parsed = colour => (colour.match(/[\\d.]+/g) || []).map(Number);
  const light = ([r, g, b]) => [r, g, b].map(v => v / 255)
    .map(v => v <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [.2126, .7152, .0722][i], 0);
  const behind = element => {
    for (let e = element; e; e = e.parentElement) {
      const colour = parsed(getComputedStyle(e).backgroundColor);
      if (colour.length === 3 || colour[3] === 1) return colour;
    }
    return matchMedia('(prefers-color-scheme: dark)').matches ? [18, 18, 18] : [255, 255, 255];
  };
  const low = [];
  let seen = 0;
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || element.closest('svg')) continue;
    const [a, b] = [light(parsed(getComputedStyle(element).color)), light(behind(element))].sort((x, y) => y - x);
    const contrast = (a + .05) / (b + .05);
    seen += 1;
    if (contrast < 4.5) low.push([walker.currentNode.data, contrast]);
  }
  return {seen, low: low.slice(0, 5)};
})()
"""

# Texts of a picture that leave it, or lie over each other.
MISPLACED = """
(() => {
  const page = document.documentElement.getBoundingClientRect();
  const boxes = [...document.querySelectorAll('text')].map(e => [e.textContent, e.getBoundingClientRect()]);
  const out = boxes.filter(([, b]) => b.left < page.left || b.right > page.right || b.bottom > page.bottom + 1);
  const over = [];
  boxes.forEach(([text, a], i) => boxes.slice(i + 1, i + 40).forEach(([other, b]) => {
    if (Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1
      && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 4) over.push([text, other]);
  }));
  return {out: out.map(([text]) => text), over: over.slice(0, 5), texts: boxes.length};
})()
"""


# Words in more than one line; a name may go on behind a hyphen or a dot.
BROKEN = r"""
(() => {
  const broken = [];
  const range = document.createRange();
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode;
    if (node.parentElement.closest('svg')) continue;
    for (const word of node.data.matchAll(/[\p{L}\p{N}]+/gu)) {
      range.setStart(node, word.index);
      range.setEnd(node, word.index + word[0].length);
      if (new Set([...range.getClientRects()].map(each => Math.round(each.top))).size > 1) broken.push(word[0]);
    }
  }
  return broken;
})()
"""
PAPER = 717  # Pixels of an A4 page within its margins.


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with chromium(tmp_path_factory.mktemp("profile")) as started:
        yield started


@pytest.fixture(scope="module")
def axe(tmp_path_factory):
    """The source of the accessibility engine from npm."""
    npm = shutil.which("npm")
    assert npm, "no npm on the PATH: it comes with Node.js"
    folder = tmp_path_factory.mktemp("axe")
    subprocess.run([npm, "pack", "--silent", f"axe-core@{AXE}"], cwd=folder, check=True, timeout=120)
    packed = (folder / f"axe-core-{AXE}.tgz").read_bytes()
    assert base64.b64encode(hashlib.sha512(packed).digest()).decode() == AXE_SHA512
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        return archive.extractfile("package/axe.min.js").read().decode()


@cache
def html_of(name):
    """Write each example once, because one of them is a whole fleet."""
    return html(examples.PLANS[name](), name)


@pytest.fixture(params=examples.PLANS)
def page(request, tmp_path):
    file = tmp_path / f"{request.param}.html"
    file.write_text(html_of(request.param), encoding="utf-8")
    return file


@pytest.fixture(params=examples.PLANS)
def picture(request, tmp_path):
    file = tmp_path / f"{request.param}.svg"
    file.write_text(svg(examples.PLANS[request.param](), request.param), encoding="utf-8")
    return file


@pytest.mark.parametrize("width", [360, 768, 1280])
def test_no_page_is_wider_than_its_window(browser, page, width):
    browser.open(page, width=width)
    browser.run("document.querySelectorAll('details').forEach(each => each.open = true)")
    assert browser.run("document.documentElement.scrollWidth") <= width


def test_a_page_loads_nothing_and_logs_no_error(browser, page):
    browser.open(page)
    assert browser.requests == [page.as_uri()]
    assert browser.complaints == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_all_text_has_enough_contrast(browser, page, scheme):
    browser.open(page, scheme=scheme)
    found = browser.run(CONTRASTS)
    assert found["seen"] > 1
    assert found["low"] == []


def test_the_color_schemes_differ(browser, page):
    def background(scheme):
        browser.open(page, scheme=scheme)
        return browser.run("getComputedStyle(document.body).backgroundColor")

    assert background("light") != background("dark")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_accessibility_engine_finds_nothing(browser, page, axe, scheme):
    if page.stem == "fleet":  # The engine takes minutes for 40,000 cells: the first of each kind stand for all.
        page.write_text(html(smaller(examples.fleet()), "fleet"), encoding="utf-8")
    browser.open(page, scheme=scheme)
    browser.run(axe)
    found = browser.run("axe.run().then(r => JSON.stringify([r.passes.length, r.violations]))")
    passes, violations = json.loads(found)
    assert passes > 10
    told = [(each["id"], [node["html"][:200] for node in each["nodes"][:3]]) for each in violations]
    assert told == []


def smaller(plan):
    return replace(plan, nodes=plan.nodes[:10], consumers=plan.consumers[:200], problems=())


def test_folded_parts_are_printed_on_white(browser, page):
    browser.open(page, scheme="dark")
    dark = [{"name": "prefers-color-scheme", "value": "dark"}]
    browser.call("Emulation.setEmulatedMedia", media="print", features=dark)
    assert browser.run("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert browser.run("getComputedStyle(document.body).color") == "rgb(29, 39, 51)"
    assert browser.run("[...document.querySelectorAll('details table')].every(each => each.checkVisibility())")
    if page.stem != "fleet":
        printed = browser.printed()
        assert printed.startswith(b"%PDF")
        assert printed.count(b"/Type /Page\n") + printed.count(b"/Type /Page ") >= 1


def test_no_word_is_broken_on_paper(browser, tmp_path):
    plan = examples.one_gpu()
    kinds = ("Deployment", "InferenceService", "LeaderWorkerSet", "PyTorchJob", "StatefulSet")
    named = [
        replace(
            one, consumer=replace(one.consumer, kind=kind, namespace="kubeflow-user", name=f"recommendation-{kind}")
        )
        for one, kind in zip(plan.consumers, kinds, strict=True)
    ]
    for number, each in enumerate((replace(plan, consumers=named), examples.mig(), examples.waiting())):
        file = tmp_path / f"{number}.html"
        file.write_text(html(each, "paper"), encoding="utf-8")
        browser.open(file, width=PAPER)
        browser.call("Emulation.setEmulatedMedia", media="print")
        assert browser.run(BROKEN) == []
        assert browser.run("document.documentElement.scrollWidth") <= PAPER


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_picture_has_its_size_and_every_text_in_its_area(browser, picture, scheme):
    browser.open(picture, scheme=scheme)
    found = browser.run(MISPLACED)
    assert found["texts"] >= 3
    assert (found["out"], found["over"]) == ([], [])
    assert browser.requests == [picture.as_uri()]
    assert browser.complaints == []
    png = browser.picture()
    assert struct.unpack(">II", png[16:24]) == (1280, 900)
    assert len(png) > 5_000
