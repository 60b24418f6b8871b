"""The capacity report as one page for browsers and paper: no script, nothing loaded from anywhere."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple
from xml.etree import ElementTree

from gpu_constructs.capacity.plan import Plan, PlannedConsumer, PlannedNode, Problem
from gpu_constructs.capacity.report import words
from gpu_constructs.capacity.report.as_svg import BAR_STYLE, legend, memory_bar, most_urgent, patterns, slot_bar
from gpu_constructs.capacity.report.markup import add, element

FIRST_ROWS = 50
"""Rows of a table that are seen at once; the others unfold."""

_POLICY = "default-src 'none'; style-src 'unsafe-inline'"

_STYLE = """
:root{color-scheme:light dark;--ink:#1d2733;--soft:#4d5968;--page:#f5f7fa;--card:#fff;--edge:#d5dbe3;--link:#1c5a9c;
--good:#1a7048;--warn:#8a5300;--bad:#b3261e;--unknown:#4d5968}
@media screen and (prefers-color-scheme:dark){:root{--ink:#e6ebf1;--soft:#a3afbd;--page:#0d1117;--card:#161b22;
--edge:#363e4a;--link:#7fb6f5;--good:#5fd39a;--warn:#f0b455;--bad:#ff9086;--unknown:#a3afbd}}
*{box-sizing:border-box}
body{margin:0;background:var(--page);color:var(--ink);font:16px/1.5 system-ui,sans-serif;overflow-wrap:anywhere}
header,main,footer{max-width:76rem;margin:0 auto;padding:0 1.25rem}
header{padding-top:2rem}
main{padding-bottom:3rem}
h1{font-size:1.75rem;line-height:1.2;margin:0 0 1rem}
h2{font-size:1.25rem;margin:2.5rem 0 .75rem}
h3{font-size:1rem;margin:0}
p{margin:.25rem 0}
a{color:var(--link)}
.skip{position:absolute;left:-99rem}
.skip:focus{left:1rem;top:1rem;background:var(--card);padding:.5rem 1rem;z-index:1}
:focus-visible{outline:3px solid var(--link);outline-offset:2px}
.verdict,.problems,.conflicts{list-style:none;margin:0;padding:0}
.verdict li,.problems li,.node{background:var(--card);border:1px solid var(--edge);border-radius:.5rem}
.verdict li,.problems li{border-left:.3rem solid var(--tone);padding:.65rem 1rem;margin:0 0 .5rem}
.verdict li,.problems li{display:flex;gap:.75rem}
.verdict li{font-weight:600}
.soft{color:var(--soft);font-size:.875rem}
.mark{color:var(--tone);font-weight:700;flex:none;width:1rem;text-align:center}
.soft.tone{color:var(--tone);font-weight:600}
.good{--tone:var(--good)}.warn{--tone:var(--warn)}.bad{--tone:var(--bad)}.unknown-tone{--tone:var(--unknown)}
nav ul{display:flex;flex-wrap:wrap;gap:.25rem 1.25rem;list-style:none;margin:1rem 0 0;padding:0}
.node{padding:1rem 1.25rem;margin:0 0 1rem}
.node>.head{display:flex;flex-wrap:wrap;gap:.1rem 1.5rem;justify-content:space-between;align-items:baseline}
.device{display:grid;grid-template-columns:minmax(9rem,2.5fr) minmax(0,3fr) minmax(0,5fr);gap:.5rem 1.75rem;
margin-top:.9rem}
.device p{line-height:1.4}
.device svg,.legend svg{display:block}
.holders{list-style:none;margin:.35rem 0 0;padding:0;display:flex;flex-wrap:wrap;gap:.1rem .9rem}
.holders b{color:var(--ink)}
.legend{list-style:none;display:flex;flex-wrap:wrap;gap:.25rem 1.25rem;margin:0 0 .75rem;padding:0}
.legend li{display:flex;gap:.5rem;align-items:center}
.scroll{overflow-x:auto;background:var(--card);border:1px solid var(--edge);border-radius:.5rem;margin:0 0 .75rem}
table{border-collapse:collapse;width:100%;font-size:.9rem;font-variant-numeric:tabular-nums}
caption{text-align:left;padding:.65rem .9rem;color:var(--soft)}
th,td{padding:.45rem .9rem;text-align:left;vertical-align:top;border-top:1px solid var(--edge);max-width:24rem;
overflow-wrap:break-word}
thead th{color:var(--soft);font-weight:600;white-space:nowrap}
tbody th{font-weight:600;min-width:12rem}
td:last-child{min-width:11rem}
.number{text-align:right;white-space:nowrap}
summary{cursor:pointer;padding:.4rem 0;color:var(--link)}
main>section>ul:not([class]) li{margin:.3rem 0}
footer{padding-bottom:2rem}
@media (max-width:48rem){.device{grid-template-columns:minmax(0,1fr)}header{padding-top:1.25rem}}
@media print{
body{background:#fff;font-size:10pt}
header,main,footer{max-width:none;padding:0}
nav,.skip,summary{display:none}
.node,tr,li{break-inside:avoid}
h2,h3,caption,.legend{break-after:avoid}
thead{display:table-header-group}
.scroll{overflow:visible;border:0}
table{font-size:8pt}
th,td{padding:.2rem .3rem;overflow-wrap:break-word}
tbody th,td:last-child{min-width:0}
thead th,.number{white-space:normal}
details::details-content{content-visibility:visible;display:block;height:auto}
*{-webkit-print-color-adjust:exact;print-color-adjust:exact}
}
"""

# A class of the bars means numbers there too, so those on the page are told apart by what they stand in.
_NUMBER_OF_BAR = ("\n.number{", "\nsvg .number{")


class _Column(NamedTuple):
    title: str
    is_number: bool = False


_STOCK = (
    _Column("Resource"),
    _Column("There are", True),
    _Column("Always held", True),
    _Column("Wanted at once", True),
    _Column("With a place", True),
    _Column("Left", True),
)
_DEVICES = (
    _Column("Node"),
    _Column("Nodes", True),
    _Column("Device"),
    _Column("Resource"),
    _Column("Slots held", True),
    _Column("Memory", True),
    _Column("Typical", True),
    _Column("At most", True),
    _Column("Worst case", True),
    _Column("Held by"),
)
_CONSUMERS = (
    _Column("Pods of"),
    _Column("Kind"),
    _Column("At once", True),
    _Column("Always", True),
    _Column("Waiting", True),
    _Column("Each takes"),
    _Column("Typical", True),
    _Column("At most", True),
    _Column("May run on"),
)
_RACKS = (_Column("Rack"), _Column("Draws", True), _Column("May draw", True), _Column("Verdict"))


def html(plan: Plan, title: str) -> str:
    """Write the page: the verdict and what does not fit, pictures of the nodes, then tables of everything."""
    root = element("html", lang="en")
    _head(root, title)
    body = add(root, "body")
    add(body, "a", "Skip to the report", class_="skip", href="#report")
    hidden = add(body, "svg", width=0, height=0, aria_hidden="true", style="position:absolute")
    hidden.append(patterns())
    header = add(body, "header")
    add(header, "h1", f"GPU capacity: {title}")
    verdict = add(header, "ul", class_="verdict")
    for said in words.verdict(plan):
        add(_marked(verdict, said.level), "span", said.text)
    main = add(body, "main", id="report", tabindex=-1)
    sections = [
        one
        for one in (
            _problems(plan, "problems", "What does not fit", plan.problems),
            _problems(plan, "conditions", "Fits, if", plan.conditions),
            _nodes(plan),
            _stock(plan),
            _consumers(plan),
            _conflicts(plan),
            _power(plan),
            _sentences("advice", "Advice", plan.advice),
            _sentences("assumed", "Assumed", words.assumptions(plan)),
        )
        if one is not None
    ]
    if len(sections) > 1:
        links = add(add(header, "nav", aria_label="Parts of the report"), "ul")
        for section in sections:
            add(add(links, "li"), "a", section[0].text or "", href=f"#{section.get('id')}")
    main.extend(sections)
    if not sections:
        add(main, "p", "There is nothing to report: no node is declared and nothing asks for GPUs.")
    for each in root.iter():
        if each.tag in _LINES and not each.tail:
            each.tail = "\n"
    return "<!doctype html>\n" + ElementTree.tostring(root, encoding="unicode", method="html")


_LINES = frozenset(
    "meta title style head header main section ul li table thead tbody tr caption div h1 h2 h3 p".split()
)


def _head(root: ElementTree.Element, title: str) -> None:
    head = add(root, "head")
    add(head, "meta", charset="utf-8")
    policy = add(head, "meta", content=_POLICY)
    policy.set("http-equiv", "Content-Security-Policy")
    add(head, "meta", name="viewport", content="width=device-width, initial-scale=1")
    add(head, "title", f"GPU capacity: {title}")
    style = add(head, "style")
    # Our own text, which ``readable`` would put on one line.
    style.text = BAR_STYLE.replace(*_NUMBER_OF_BAR) + _STYLE


def _section(name: str, heading: str) -> ElementTree.Element:
    made = element("section", id=name, aria_labelledby=f"{name}-heading")
    add(made, "h2", heading, id=f"{name}-heading")
    return made


def _tone(level: words.Level) -> str:
    return "unknown-tone" if level == "unknown" else level


def _marked(parent: ElementTree.Element, level: words.Level) -> ElementTree.Element:
    item = add(parent, "li", class_=_tone(level))
    add(item, "span", words.MARKS[level], class_="mark", aria_hidden="true")
    return item


def _problems(plan: Plan, name: str, heading: str, problems: Sequence[Problem]) -> ElementTree.Element | None:
    if not problems:
        return None
    section = _section(name, f"{heading} ({len(problems):,})")
    found = add(section, "ul", class_="problems")
    named = words.subjects(plan)
    for problem in problems:
        said = add(_marked(found, words.PROBLEM_LEVELS[problem.kind]), "div")
        add(said, "h3", words.problem_title(problem, named))
        for what, text in (("Why: ", problem.text), ("Way out: ", problem.way_out)):
            add(add(said, "p"), "strong", what).tail = words.readable(words.sentence(text))
    return section


def _nodes(plan: Plan) -> ElementTree.Element | None:
    if not plan.nodes:
        return None
    section = _section("nodes", f"Nodes ({sum(node.count for node in plan.nodes):,})")
    samples = add(section, "ul", class_="legend soft")
    for sample in legend():
        item = add(samples, "li")
        sample.bar.set("aria-hidden", "true")
        item.append(sample.bar)
        add(item, "span", sample.text)
    drawn, left_out = most_urgent(plan)
    for node in drawn:
        section.append(_card(plan, node))
    if left_out:
        add(section, "p", f"{left_out} The table has them all.", class_="soft")
    rows = [row for node in plan.nodes for row in _device_cells(plan, node)]
    folded = add(section, "details")
    add(folded, "summary", f"Every device as a table ({words.counted(len(rows), 'row')})")
    folded.append(_scrolling("Every device, those alike in one row", _DEVICES, rows))
    return section


def _card(plan: Plan, node: PlannedNode) -> ElementTree.Element:
    card = element("div", class_="node")
    head = add(card, "div", class_="head")
    add(head, "h3", node.title + (f" ({words.each_of(node)})" if node.count > 1 else ""))
    drawn = [] if node.watts is None else [words.watts(node.watts)]
    add(head, "p", ", ".join([words.board(node.offer), *drawn]), class_="soft")
    for row in words.device_rows(node):
        planned, device = row.planned, row.planned.device
        line = add(card, "div", class_="device")
        about = add(line, "div")
        add(add(about, "p"), "strong", row.title)
        add(about, "p", device.resource, class_="soft")
        each = " each" if row.alike > 1 else ""
        add(about, "p", f"{planned.used_slots:,} of {words.counted(device.slots, 'slot')}{each}", class_="soft")
        slots = add(line, "div")
        _bar(slots, slot_bar(plan, planned))
        if planned.seats:
            holders = add(slots, "ul", class_="holders soft")
            for number, seat in enumerate(planned.seats, 1):
                item = add(holders, "li")
                add(item, "b", str(number)).tail = f" {words.readable(words.holder(plan, seat))}"
        else:
            add(slots, "p", "held by nobody", class_="soft")
        room = add(line, "div")
        _bar(room, memory_bar(planned))
        said = words.state(planned)
        add(room, "p", f"{words.MARKS[said.level]} {said.text}", class_=f"tone soft {_tone(said.level)}")
        taken = "; ".join(f"{name} {amount}" for name, amount in words.short_amounts(plan, planned))
        of = f"of {words.capacity(device)}" if device.vram_mib else ""
        add(room, "p", " ".join(filter(None, (taken, of))), class_="soft")
    return card


def _bar(parent: ElementTree.Element, bar: ElementTree.Element) -> None:
    bar.set("aria-hidden", "true")  # The text below says the same.
    parent.append(bar)


def _device_cells(plan: Plan, node: PlannedNode) -> Iterable[Sequence[str]]:
    for row in words.device_rows(node):
        planned, device = row.planned, row.planned.device
        yield (
            node.title,
            f"{node.count:,}",
            row.title,
            device.resource,
            f"{planned.used_slots:,} of {device.slots:,}",
            words.memory_or(device.vram_mib, "?"),
            *(amount for _, amount in words.amounts(plan, planned)),
            ", ".join(words.holder(plan, seat) for seat in planned.seats) or "nobody",
        )


def _stock(plan: Plan) -> ElementTree.Element | None:
    if not plan.stock:
        return None
    section = _section("resources", "Resources")
    rows = [
        (name, *(f"{number:,}" for number in (one.total, one.always, one.wanted, one.placed, one.left)))
        for name, one in plan.stock.items()
    ]
    section.append(_scrolling("What the whole cluster has, and what is asked of it", _STOCK, rows))
    return section


def _consumers(plan: Plan) -> ElementTree.Element | None:
    if not plan.consumers:
        return None
    section = _section("consumers", f"Who asks for GPUs ({len(plan.consumers):,})")
    rows = [_consumer_cells(each) for each in words.most_urgent_first(plan.consumers)]
    section.append(_scrolling("Those that wait come first", _CONSUMERS, rows[:FIRST_ROWS]))
    if rows[FIRST_ROWS:]:
        folded = add(section, "details")
        add(folded, "summary", f"{len(rows) - FIRST_ROWS:,} more")
        folded.append(_scrolling("The others", _CONSUMERS, rows[FIRST_ROWS:]))
    return section


def _consumer_cells(each: PlannedConsumer) -> Sequence[str]:
    consumer = each.consumer
    return (
        consumer.title,
        consumer.kind,
        words.pods(consumer),
        f"{consumer.least_pods:,}",
        f"{each.waiting:,}",
        ", ".join(words.takes(consumer)),
        words.memory_or(words.typical(consumer), "?"),
        words.memory_or(consumer.vram_mib, "?"),
        words.some(each.nodes) or "nowhere",
    )


def _conflicts(plan: Plan) -> ElementTree.Element | None:
    said = [words.conflict(plan, one) for one in plan.conflicts]
    if plan.has_more_conflicts:
        said.append("there are others beyond these")
    return _sentences("conflicts", "What does not go together", said)


def _power(plan: Plan) -> ElementTree.Element | None:
    if not plan.power.watts and not plan.power.unknown:
        return None
    section = _section("power", "Power")
    add(section, "p", words.power(plan.power))
    rows = [
        (
            name,
            words.watts(drawn),
            "-" if most is None else words.watts(most),
            "nobody says what it may draw" if most is None else "too much" if drawn > most else "within its limit",
        )
        for name, drawn, most in words.rack_lines(plan)
    ]
    if rows:
        section.append(_scrolling("Racks, with all boards at their power limits", _RACKS, rows))
    return section


def _sentences(name: str, heading: str, said: Sequence[str]) -> ElementTree.Element | None:
    if not said:
        return None
    section = _section(name, heading)
    items = add(section, "ul")
    for sentence in said:
        add(items, "li", sentence)
    return section


def _scrolling(caption: str, columns: Sequence[_Column], rows: Iterable[Sequence[str]]) -> ElementTree.Element:
    """Make a table in a place of its own that scrolls, by keyboard too."""
    place = element("div", class_="scroll", role="region", aria_label=caption, tabindex=0)
    table = add(place, "table")
    add(table, "caption", caption)
    top = add(add(table, "thead"), "tr")
    for column in columns:
        add(top, "th", column.title, scope="col", class_="number" if column.is_number else None)
    body = add(table, "tbody")
    for row in rows:
        line = add(body, "tr")
        for number, (column, cell) in enumerate(zip(columns, row, strict=True)):
            if number:
                add(line, "td", cell, class_="number" if column.is_number else None)
            else:
                add(line, "th", cell, scope="row")
    return place
