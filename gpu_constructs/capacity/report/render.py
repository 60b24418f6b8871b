"""Fills the templates of the reports. Only what writes a report imports this module's templating library."""

from __future__ import annotations

import os
import re
import sys
from functools import cache
from importlib.util import cache_from_source
from typing import TYPE_CHECKING, Any
from xml.sax.saxutils import escape

from gpu_constructs.capacity.planned import PlanData
from gpu_constructs.capacity.report import verdict, words

if TYPE_CHECKING:
    from jinja2 import Environment, FileSystemBytecodeCache


def render(template: str, plan: PlanData, title: str, **more: Any) -> str:
    """Return the report that a template makes of a plan."""
    said = verdict.verdict(plan)
    return _templates().get_template(template).render(plan=plan, title=title, verdict=said, words=words, **more)


@cache
def _templates() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined, pass_eval_context, select_autoescape
    from markupsafe import Markup

    @pass_eval_context
    def shown(context: Any, value: Any) -> Any:
        """Return the value as markup of one line; names stand in texts, never in attributes without quotes."""
        if not context.autoescape or isinstance(value, Markup):
            return value
        return Markup(escape(words.readable(str(value)), {'"': "&quot;"}))

    def inline(markup: Markup) -> Markup:
        """Return elements of SVG as HTML has them: on one line, and none closed by itself."""
        lines = "".join(line.strip() for line in markup.splitlines())
        return Markup(re.sub(r"<(\w+)([^<>]*) />", r"<\1\2></\1>", lines).replace("</title>", "</title>\n"))

    made = Environment(
        loader=PackageLoader("gpu_constructs.capacity.report"),
        autoescape=select_autoescape(("html.j2", "svg.j2")),
        finalize=shown,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        bytecode_cache=_compiled(),
    )
    made.filters |= {"inline": inline, "number": "{:,}".format}
    return made


def _compiled() -> FileSystemBytecodeCache | None:
    """Return where compiled templates are kept: beside the bytecode of this module, if Python may write there."""
    from jinja2 import FileSystemBytecodeCache

    folder = os.path.dirname(cache_from_source(__file__))
    if sys.dont_write_bytecode or not os.access(folder, os.W_OK):
        return None
    return FileSystemBytecodeCache(folder, "template-%s.cache")
