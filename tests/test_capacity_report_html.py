from dataclasses import replace
from functools import cache
from html.parser import HTMLParser
from itertools import pairwise

import pytest

import capacity_examples as examples
from gpu_constructs.capacity.plan import Problem
from gpu_constructs.capacity.report.as_html import FIRST_ROWS, html

VOID = {"meta"}


class Page(HTMLParser):
    """What a page is made of; ill-nested markup is refused."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.open, self.texts = [], [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)

    def all(self, tag):
        return [attributes for name, attributes in self.tags if name == tag]


@cache
def made_of(name):
    """Write an example once: one of them is of a whole fleet."""
    return html(examples.PLANS[name](), name)


@cache
def page_of(name):
    return Page(made_of(name))


@pytest.mark.parametrize("name", examples.PLANS)
def test_it_is_one_page_that_loads_and_runs_nothing(name):
    made, page = made_of(name), page_of(name)
    assert made.startswith("<!doctype html>\n<html lang=")
    assert not {"script", "link", "img", "iframe", "object"} & {tag for tag, _ in page.tags}
    assert all(each["href"].startswith("#") for _, each in page.tags if "href" in each)
    assert not [key for _, each in page.tags for key in each if key.startswith("on") or key == "src"]
    if name != "fleet":
        assert made == html(examples.PLANS[name](), name)


def test_its_policy_forbids_all_but_its_own_style():
    (policy,) = [each for each in Page(html(examples.empty(), "")).all("meta") if "http-equiv" in each]
    assert policy["content"] == "default-src 'none'; style-src 'unsafe-inline'"


@pytest.mark.parametrize("name", examples.PLANS)
def test_ids_are_unique_and_links_lead_somewhere(name):
    page = page_of(name)
    ids = [each["id"] for _, each in page.tags if "id" in each]
    assert len(ids) == len(set(ids))
    assert {each["href"][1:] for each in page.all("a")} <= set(ids)


@pytest.mark.parametrize("name", examples.PLANS)
def test_headings_go_down_one_step_at_a_time(name):
    levels = [int(tag[1]) for tag, _ in page_of(name).tags if tag in ("h1", "h2", "h3")]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))


def test_names_never_become_markup():
    page = Page(html(examples.hostile(), examples.EVIL))
    assert "script" not in {tag for tag, _ in page.tags}
    assert f"GPU capacity: {examples.EVIL}" in page.texts


def test_every_row_of_a_long_table_is_kept_and_the_first_are_seen():
    made, page = made_of("fleet"), page_of("fleet")
    assert f"{5_000 - FIRST_ROWS:,} more" in page.texts
    names = {text for text in page.texts if "-service-" in text and "/" in text}
    assert all(f"team-{number % 40:02}/team-{number % 40:02}-service-{number:04}" in names for number in range(5_000))
    seen = made[made.index('id="consumers"') :]
    assert seen.index("service-4321") < seen.index("service-0000")


def test_tables_have_captions_and_headers_and_scroll_by_keyboard():
    page = Page(html(examples.waiting(), "x"))
    count = len(page.all("table"))
    assert count == 4
    assert len(page.all("caption")) == len(page.all("thead")) == count
    assert {each["scope"] for each in page.all("th")} == {"row", "col"}
    places = [each for each in page.all("div") if each.get("class") == "scroll"]
    assert all(each["tabindex"] == "0" and each["aria-label"] for each in places)
    assert len(places) == count


def test_a_problem_says_why_and_what_to_do_in_sentences():
    page = page_of("one-gpu")
    why, way_out = page.texts.index("Why: "), page.texts.index("Way out: ")
    assert page.texts[why + 1] == "The pods that always run want 24.0 GiB of the 15.9 GiB of k8s-worker4 GPU 0"
    assert page.texts[way_out + 1].startswith("Share it by slices of memory")


def test_no_problem_turns_the_page_round():
    problem = Problem("slots", None, "a\u202eb\x1bc", "d\u202ee")
    made = html(replace(examples.one_gpu(), problems=[problem]), "x")
    assert not {"\u202e", "\x1b"} & set(made)
