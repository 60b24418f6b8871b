"""The capacity report as one picture: the slots and the memory of every device, as SVG."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from typing import NamedTuple
from xml.etree import ElementTree

from gpu_constructs.capacity.plan import Plan, PlannedDevice, PlannedNode
from gpu_constructs.capacity.report import words
from gpu_constructs.capacity.report.markup import add, element

MOST_ROWS = 150
"""Rows of devices that are drawn; a picture of more is not looked at."""

BAR_HEIGHT = 20

# Paul Tol's "light" scheme: told apart by the colour-blind, and black numbers can be read on each.
_COLOURS = ("#77AADD", "#EE8866", "#EEDD88", "#FFAABB", "#99DDFF", "#44BB99", "#BBCC33", "#AAAA00")

BAR_STYLE = (
    "".join(f".c{number}{{fill:{colour}}}" for number, colour in enumerate(_COLOURS))
    + """
.number{fill:#000;font:600 11px system-ui,sans-serif;text-anchor:middle}
.between{stroke:#fff;stroke-width:1.5}
.slot{stroke:#fff;stroke-opacity:.55}
.free{fill:#eef1f5;stroke:#8a94a3;stroke-dasharray:3 3}
.room{fill:#eef1f5}
.beyond{fill:#fbe9e4}
.typical{fill:#2f6fb3}
.stripes{fill:#cfe1f3}
.stripe{stroke:#2f6fb3;stroke-width:2}
.worst{fill:none;stroke:#1d2733;stroke-width:1.5}
.halo{stroke:#fff;stroke-width:6}
.full{stroke:#b3261e;stroke-width:2.5}
.unknown{fill:none;stroke:#8a94a3;stroke-dasharray:3 3}
@media screen and (prefers-color-scheme:dark){
.between{stroke:#161b22}
.slot{stroke:#161b22}
.free,.room{fill:#262d37}
.beyond{fill:#43211f}
.typical{fill:#5b9ee6}
.stripes{fill:#1f3a57}
.stripe{stroke:#5b9ee6}
.worst{stroke:#f0f3f6}
.halo{stroke:#161b22}
.full{stroke:#ff7b6b}
}
"""
)
"""Of the bars alone, for whatever page they stand on."""

_STYLE = """
text{font:13px system-ui,sans-serif;fill:#1d2733}
.page{fill:#fff}
.card{fill:#fff;stroke:#d5dbe3}
.soft{fill:#556170;font-size:12px}
.strong{font-weight:600}
.head{font-size:22px;font-weight:700}
.name{font-size:15px;font-weight:600}
.good{fill:#1a7048}.warn{fill:#8a5300}.bad{fill:#b3261e}.none{fill:#556170}
@media screen and (prefers-color-scheme:dark){
text{fill:#e6ebf1}
.page{fill:#0d1117}
.card{fill:#161b22;stroke:#363e4a}
.soft,.none{fill:#a3afbd}
.good{fill:#5fd39a}.warn{fill:#f0b455}.bad{fill:#ff9086}
}
"""

_AXIS = 150
"""Where the bar of memory ends, in percent of what the device has; what is more breaks out of its end."""

_WIDTH, _EDGE = 1080, 24
_TITLE, _SLOTS, _MEMORY = (_EDGE + 16, 190), (262, 340), (634, 406)
"""Columns: where they begin and how wide they are."""
_HEAD, _ROW, _GAP = 42, 66, 14


def svg(plan: Plan, title: str) -> str:
    """Draw the plan: for every node a card, for every device who holds its slots and what its memory has to hold."""
    said = words.verdict(plan)
    drawn, left_out = most_urgent(plan)
    root = element("svg", xmlns="http://www.w3.org/2000/svg", role="img", lang="en")
    root.set("aria-labelledby", "gpu-plan-title gpu-plan-description")
    add(root, "title", f"GPU capacity: {title}", id="gpu-plan-title")
    add(root, "desc", " ".join(one.text for one in said), id="gpu-plan-description")
    add(root, "style").text = BAR_STYLE + _STYLE
    root.append(patterns())
    page = add(root, "rect", class_="page", width=_WIDTH)
    y = 44
    add(root, "text", fitting(f"GPU capacity: {title}", _WIDTH - 2 * _EDGE, 22, 1.1), class_="head", x=_EDGE, y=y)
    for one in said:
        for number, line in enumerate(lines(one.text, _WIDTH - 2 * _EDGE - 22, 13)):
            y += 21
            if not number:
                add(root, "text", words.MARKS[one.level], class_=f"strong {_TONES[one.level]}", x=_EDGE, y=y)
            add(root, "text", line, class_="strong" if not number else "", x=_EDGE + 22, y=y)
    y += 18
    if drawn:
        y = _legend(root, y)
    for node in drawn:
        y = _card(root, plan, node, y)
    if left_out:
        y += 16
        add(root, "text", left_out, class_="soft", x=_EDGE, y=y)
        y += 4
    height = y + 12
    page.set("height", str(height))
    root.set("viewBox", f"0 0 {_WIDTH} {height}")
    root.set("width", str(_WIDTH))
    root.set("height", str(height))
    ElementTree.indent(root, " ")
    return ElementTree.tostring(root, encoding="unicode") + "\n"


_TONES = {"good": "good", "warn": "warn", "bad": "bad", "unknown": "none"}


def most_urgent(plan: Plan) -> tuple[list[PlannedNode], str]:
    """Give the nodes that a picture shows, in their order, and a sentence on those that it does not."""
    urgent = sorted(
        plan.nodes, key=lambda node: max(map(words.fullness, node.devices), default=(0, 0, 0)), reverse=True
    )
    rows = 0
    kept: set[int] = set()
    for node in urgent:
        rows += max(1, len(words.device_rows(node)))
        if kept and rows > MOST_ROWS:
            break
        kept.add(id(node))
    shown = [node for node in plan.nodes if id(node) in kept]
    missing = sum(node.count for node in plan.nodes) - sum(node.count for node in shown)
    if not missing:
        return shown, ""
    return shown, f"{words.counted(missing, 'more node')} with less on them: not drawn here."


def patterns() -> ElementTree.Element:
    """Give the definitions that bars draw upon."""
    made = element("defs")
    stripes = add(made, "pattern", id="gpu-plan-stripes", width=6, height=6)
    stripes.set("patternUnits", "userSpaceOnUse")
    stripes.set("patternTransform", "rotate(45)")
    add(stripes, "rect", class_="stripes", width=6, height=6)
    add(stripes, "line", class_="stripe", x1=1, y1=0, x2=1, y2=6)
    return made


def slot_bar(plan: Plan, planned: PlannedDevice) -> ElementTree.Element:
    """Draw the slots of a device: a part for each who holds some, numbered as they are listed, and the free ones.

    Its measures across are percentages: it takes the width of what it stands in.
    """
    bar = element("svg", width="100%", height=BAR_HEIGHT)
    total = max(1, planned.device.slots)
    if planned.used_slots < total:
        start = 100 * planned.used_slots / total
        add(bar, "rect", class_="free", x=_share(start), y=0.5, width=_share(100 - start), height=BAR_HEIGHT - 1)
    at = 0
    ends = []
    for number, seat in enumerate(planned.seats, 1):
        start, width = 100 * at / total, 100 * seat.slots / total
        part = add(bar, "g")
        add(part, "title", words.holder(plan, seat))
        colour = f"c{seat.consumer % len(_COLOURS)}"
        add(part, "rect", class_=colour, x=_share(start), width=_share(width), height=BAR_HEIGHT)
        if total <= 40:
            for slot in range(1, seat.slots):
                x = _share(start + 100 * slot / total)
                add(part, "line", class_="slot", x1=x, x2=x, y2=BAR_HEIGHT)
        if width >= 5:
            add(part, "text", str(number), class_="number", x=_share(start + width / 2), y=BAR_HEIGHT - 6)
        at += seat.slots
        ends.append(100 * at / total)
    for end in ends:
        if end < 100:
            add(bar, "line", class_="between", x1=_share(end), x2=_share(end), y2=BAR_HEIGHT)
    return bar


def memory_bar(planned: PlannedDevice) -> ElementTree.Element:
    """Draw what the memory of a device has to hold, beside what it has: the line is at the same place in each."""
    bar = element("svg", width="100%", height=BAR_HEIGHT)
    vram = planned.device.vram_mib
    if not vram:
        add(bar, "rect", class_="unknown", x=1, y=1, width="99%", height=BAR_HEIGHT - 2)
        return bar

    def until(mib: int) -> str:
        return _share(min(100, 100 * 100 * mib / vram / _AXIS))

    line = until(vram)
    add(bar, "rect", class_="room", width=line, height=BAR_HEIGHT)
    add(bar, "rect", class_="beyond", x=line, width=_share(100 - 100 * 100 / _AXIS), height=BAR_HEIGHT)
    inner = {"y": 3, "height": BAR_HEIGHT - 6}
    if planned.seated_mib:
        add(bar, "rect", class_="most", fill="url(#gpu-plan-stripes)", width=until(planned.seated_mib), **inner)
    if planned.typical_mib:
        add(bar, "rect", class_="typical", width=until(planned.typical_mib), **inner)
    if 100 * planned.worst_mib > _AXIS * vram:
        add(bar, "path", class_="worst", d=f"M0 1h3000M0 {BAR_HEIGHT - 1}h3000M0.75 1v{BAR_HEIGHT - 2}")
        end = add(bar, "svg", x="100%", overflow="visible")
        add(end, "path", class_="worst", d=f"M-12 5l5 {BAR_HEIGHT / 2 - 5:g}l-5 {BAR_HEIGHT / 2 - 5:g}")
        add(end, "path", class_="worst", d=f"M-7 5l5 {BAR_HEIGHT / 2 - 5:g}l-5 {BAR_HEIGHT / 2 - 5:g}")
    elif planned.worst_mib:
        add(bar, "rect", class_="worst", x=0.75, y=1, width=until(planned.worst_mib), height=BAR_HEIGHT - 2)
    add(bar, "line", class_="halo", x1=line, x2=line, y2=BAR_HEIGHT)
    add(bar, "line", class_="full", x1=line, x2=line, y2=BAR_HEIGHT)
    return bar


def _share(percent: float) -> str:
    return f"{percent:.2f}".rstrip("0").rstrip(".") + "%"


class Sample(NamedTuple):
    """One entry of the legend: a device whose bar shows it, and what it says."""

    bar: ElementTree.Element
    text: str


def legend() -> list[Sample]:
    """Explain the bars by samples of what they are made of."""
    samples = []
    for shape, said in (
        ({"class_": "c0", "height": 12, "width": "100%"}, "held, numbered below"),
        ({"class_": "free", "height": 11, "width": "100%", "y": 0.5}, "free"),
        ({"class_": "typical", "height": 12, "width": "100%"}, "memory typically"),
        ({"fill": "url(#gpu-plan-stripes)", "height": 12, "width": "100%"}, "at most"),
        ({"class_": "worst", "height": 10, "width": "92%", "x": 1, "y": 1}, "worst case of who may meet here"),
        ({"class_": "full line", "height": 12, "width": 0.01, "x": "50%"}, "all it has"),
    ):
        bar = element("svg", width=24, height=12)
        add(bar, "rect", **shape)
        samples.append(Sample(bar, said))
    return samples


def _legend(root: ElementTree.Element, y: int) -> int:
    x = _EDGE
    for sample in legend():
        place = add(root, "svg", x=x, y=y, width=24, height=12)
        place.append(sample.bar)
        add(root, "text", sample.text, class_="soft", x=x + 30, y=y + 10)
        x += 30 + round(_length(sample.text, 12)) + 14
    return y + 28


def _card(root: ElementTree.Element, plan: Plan, node: PlannedNode, y: int) -> int:
    rows = words.device_rows(node)
    group = add(root, "g")
    height = _HEAD + _ROW * len(rows) + 4
    add(group, "title", node.title)
    add(group, "rect", class_="card", x=_EDGE, y=y, width=_WIDTH - 2 * _EDGE, height=height, rx=8)
    name = node.title + (f" ({words.each_of(node)})" if node.count > 1 else "")
    about = ", ".join([words.board(node.offer), *([] if node.watts is None else [words.watts(node.watts)])])
    room = _WIDTH - 2 * _EDGE - 32
    name = fitting(name, room * 0.45, 15, 1.1)
    add(group, "text", name, class_="name", x=_TITLE[0], y=y + 27)
    about = fitting(about, room - _length(name, 15, 1.1) - 24, 12)
    add(group, "text", about, class_="soft", x=_WIDTH - _EDGE - 16, y=y + 27, text_anchor="end")
    for number, row in enumerate(rows):
        _device(group, plan, row, y + _HEAD + _ROW * number)
    return y + height + _GAP


def _device(group: ElementTree.Element, plan: Plan, row: words.DeviceRow, y: int) -> None:
    planned, device = row.planned, row.planned.device
    x, width = _TITLE
    add(group, "text", fitting(row.title, width, 13, 1.1), class_="strong", x=x, y=y + 15)
    add(group, "text", fitting(device.resource, width, 12), class_="soft", x=x, y=y + 33)
    slots = f"{planned.used_slots:,} of {words.counted(device.slots, 'slot')}" + (" each" if row.alike > 1 else "")
    add(group, "text", fitting(slots, width, 12), class_="soft", x=x, y=y + 50)

    x, width = _SLOTS
    add(group, "svg", x=x, y=y, width=width, height=BAR_HEIGHT).append(slot_bar(plan, planned))
    held = [f"{number} {words.holder(plan, seat)}" for number, seat in enumerate(planned.seats, 1)]
    for number, line in enumerate(in_lines(held or ["held by nobody"], width, 12, 2)):
        add(group, "text", line, class_="soft", x=x, y=y + 36 + 16 * number)

    x, width = _MEMORY
    add(group, "svg", x=x, y=y, width=width, height=BAR_HEIGHT).append(memory_bar(planned))
    said = words.state(planned)
    taken = "; ".join(f"{name} {amount}" for name, amount in words.short_amounts(plan, planned))
    tone = _TONES[said.level]
    has = fitting(f"of {words.capacity(device)}", width / 2, 12) if device.vram_mib else ""
    add(group, "text", words.MARKS[said.level], class_=f"strong {tone}", x=x, y=y + 36)
    add(group, "text", fitting(said.text, width - 28 - _length(has, 12), 12), class_=f"soft {tone}", x=x + 16, y=y + 36)
    if has:
        add(group, "text", has, class_="soft", x=x + width, y=y + 36, text_anchor="end")
    if taken:
        add(group, "text", fitting(taken, width, 12), class_="soft", x=x, y=y + 52)


def in_lines(names: Sequence[str], width: float, size: int, most: int) -> list[str]:
    """Put names in few lines; the last says how many do not go in."""
    made = [""]
    for number, name in enumerate(names):
        rest = len(names) - number - 1

        def room(rest: int = rest) -> float:
            more = f" and {rest:,} more" if rest and len(made) == most else ""
            return width - _length(more, size)

        longer = f"{made[-1]} \u00b7 {name}" if made[-1] else name
        if _length(longer, size) <= room():
            made[-1] = longer
        elif made[-1] and len(made) < most:
            made.append("")
            made[-1] = fitting(name, room(), size)
        elif made[-1]:
            made[-1] += f" and {rest + 1:,} more"
            break
        else:
            made[-1] = fitting(name, room(), size)
    return made


def lines(sentence: str, width: float, size: int) -> list[str]:
    """Break a sentence at its spaces."""
    made: list[str] = []
    line = ""
    for word in sentence.split():
        longer = f"{line} {word}".strip()
        if line and _length(longer, size) > width:
            made.append(line)
            line = fitting(word, width, size)
        else:
            line = fitting(longer, width, size)
    return [*made, line]


def fitting(text: str, width: float, size: int, weight: float = 1) -> str:
    """Cut a text that is too long for its place."""
    text = words.readable(text)
    if _length(text, size, weight) <= width:
        return text
    used, kept = _length("\u2026", size, weight), 0
    for char in text:
        used += _advance(char) * size * weight
        if used > width:
            break
        kept += 1
    return f"{text[:kept].rstrip()}\u2026"


def _length(text: str, size: int, weight: float = 1) -> float:
    return sum(map(_advance, text)) * size * weight


def _advance(char: str) -> float:
    """Give the width of a character in the widest of the usual fonts: better short than cut."""
    if char in "fijlrtI.,:;'|!()[] -/\u2013":
        return 0.41
    if char in "mwMW@%\u2026":
        return 1.0
    if char in "<>=+~#&^":
        return 0.85
    if unicodedata.east_asian_width(char) in "WF":
        return 1.05
    return 0.74 if char.isupper() else 0.64
