from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise

import capacity_examples as examples
from gpu_constructs.capacity.planned import Problem
from gpu_constructs.capacity.report.written import FIRST_ROWS, html


class Page(HTMLParser):
    """The elements of a page. It rejects elements that are nested incorrectly."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.open, self.texts = [], [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)

    def all(self, tag):
        return [attributes for name, attributes in self.tags if name == tag]


def test_every_page_loads_nothing_and_has_links_and_headings():
    for name, plan in examples.PLANS.items():
        made = html(plan(), name)
        page = Page(made)
        assert made.startswith("<!doctype html>\n<html lang="), name
        assert not {"script", "link", "img", "iframe", "object"} & {tag for tag, _ in page.tags}, name
        assert not [key for _, each in page.tags for key in each if key.startswith("on") or key == "src"], name
        ids = [each["id"] for _, each in page.tags if "id" in each]
        assert len(ids) == len(set(ids)), name
        assert {each["href"] for _, each in page.tags if "href" in each} <= {f"#{one}" for one in ids}, name
        levels = [int(tag[1]) for tag, _ in page.tags if tag in ("h1", "h2", "h3")]
        assert (levels[0], levels.count(1)) == (1, 1), name
        assert all(after <= before + 1 for before, after in pairwise(levels)), name


def test_the_content_security_policy_allows_only_inline_styles():
    (policy,) = [each for each in Page(html(examples.empty(), "")).all("meta") if "http-equiv" in each]
    assert policy["content"] == "default-src 'none'; style-src 'unsafe-inline'"


def test_names_never_become_markup_or_reverse_text():
    problem = Problem("slots", None, "a\u202eb\x1bc", "d\u202ee")
    made = html(replace(examples.hostile(), problems=[problem]), examples.EVIL)
    page = Page(made)
    assert "script" not in {tag for tag, _ in page.tags}
    assert not [each for _, each in page.tags if "<" in str(each)]
    assert f"GPU capacity: {examples.EVIL}" in page.texts
    assert not {"\u202e", "\x1b", "\x00"} & set(made)


def test_a_long_table_keeps_every_row_and_shows_the_first():
    made = html(examples.fleet(), "fleet")
    page = Page(made)
    assert f"{1_000 - FIRST_ROWS:,} more" in page.texts
    names = {text for text in page.texts if "-service-" in text and "/" in text}
    assert all(f"team-{number % 40:02}/team-{number % 40:02}-service-{number:04}" in names for number in range(1_000))
    seen = made[made.index('id="consumers"') :]
    assert seen.index("service-0321") < seen.index("service-0000")


def test_tables_have_captions_and_headers_and_scroll_by_keyboard():
    page = Page(html(examples.waiting(), "x"))
    places = [each for each in page.all("div") if each.get("class") == "scroll"]
    assert len(page.all("table")) == len(page.all("caption")) == len(page.all("thead")) == len(places) == 4
    assert {each["scope"] for each in page.all("th")} == {"row", "col"}
    assert all(each["tabindex"] == "0" and each["aria-label"] for each in places)


def test_a_problem_states_why_and_what_to_do():
    texts = Page(html(examples.one_gpu(), "home")).texts
    assert texts[texts.index("Why: ") + 1].startswith("The long-running pods want 24.0 GiB of the 15.9 GiB of")
    assert texts[texts.index("What to do: ") + 1].startswith("Share it by slices of memory")
