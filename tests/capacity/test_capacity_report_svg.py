from xml.etree import ElementTree

import capacity_examples as examples
from gpu_constructs.capacity.report.written import MOST_ROWS, fitting, in_lines, svg

S = "{http://www.w3.org/2000/svg}"


def drawn(plan, title="x"):
    return ElementTree.fromstring(svg(plan, title))


def written(root):
    return [each.text for each in root.iter(f"{S}text")]


def test_every_picture_loads_and_runs_nothing():
    for name, plan in examples.PLANS.items():
        made = svg(plan(), name)
        root = ElementTree.fromstring(made)
        tags = {each.tag.removeprefix(S) for each in root.iter()}
        assert tags <= set("svg title desc style defs pattern rect line path text g".split()), name
        keys = [key for each in root.iter() for key in each.attrib]
        assert not [key for key in keys if key.endswith("href") or key.startswith("on")], name
        assert "@import" not in made, name
        assert made.count("url(") == made.count("url(#gpu-plan-stripes)"), name


def test_a_screen_reader_gets_the_title_and_the_verdict():
    root = drawn(examples.one_gpu(), "home & away")
    assert root.get("role") == "img"
    assert root.find(f"{S}title").text == "GPU capacity: home & away"
    assert root.find(f"{S}desc").text.startswith(
        "Everything fits: every pod has a place at once. Memory does not suffice"
    )
    assert root.get("aria-labelledby").split() == [root.find(f"{S}{tag}").get("id") for tag in ("title", "desc")]


def test_holders_of_slots_have_the_numbers_of_the_list():
    root = drawn(examples.one_gpu())
    numbers = [each.text for each in root.iter(f"{S}text") if each.get("class") == "number"]
    assert numbers == ["1", "2", "3", "4", "5"]
    listed = " ".join(written(root))
    assert "1 ai/ollama · 2 ai/comfyui · 3 ai/notebook" in listed


def bars(root, kind):
    return [each for each in root.iter() if kind in (each.get("class") or "").split()]


def test_capacity_is_at_the_same_place_in_every_bar_of_memory():
    assert {each.get("x1") for each in bars(drawn(examples.mig()), "full") if each.tag == f"{S}line"} == {"66.67%"}


def test_memory_is_drawn_to_scale():
    root = drawn(examples.waiting())
    assert bars(root, "typical")[-1].get("width") == "44.44%"
    assert bars(root, "most")[-1].get("width") == "66.67%"
    assert bars(root, "worst")[-1].get("width") == "66.67%"


def test_a_worst_case_beyond_the_axis_has_an_open_end():
    ends = [each.tag for each in bars(drawn(examples.one_gpu()), "worst")]
    assert ends.count(f"{S}path") == 3


def test_beyond_150_rows_only_the_most_urgent_are_drawn():
    root = drawn(examples.fleet())
    cards = bars(root, "card")
    rows = [each for each in root.iter(f"{S}text") if (each.text or "").startswith("GPU ")]
    assert 30 < len(cards) <= MOST_ROWS
    assert len(rows) - 1 <= MOST_ROWS
    assert written(root)[-1] == f"The picture omits {800 - len(cards):,} more nodes with less on them."
    assert any("runs out with these pods" in text for text in written(root))


def test_no_text_exceeds_its_area():
    assert fitting("short", 100, 12) == "short"
    assert fitting("m" * 50, 120, 12).endswith("…")
    assert in_lines(["one", "two"], 300, 12, 2) == ["one · two"]
    first, last = in_lines(["a" * 10] * 9, 100, 12, 2)
    assert first == "a" * 10
    assert last.startswith("a")
    assert last.endswith("… and 7 more")
    assert fitting(last, 100, 12) == last
