"""The codes of all findings of ``lint``, each with its title and its section of the documentation.

The code of a rule is its number in the documentation, such as ``R07``. The code of a check that is not a rule is the
name of its function with hyphens, such as ``runtime-classes-exist``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from functools import cache
from importlib.resources import files
from typing import Any

from gpu_constructs.checks.rules.table import RULES
from gpu_constructs.cli.exits import CommandError
from gpu_constructs.records import dataclass

IGNORED_RULES = "ignored-rules-are-known"
"""Code of the check for annotations that ignore rules: each annotation must name a rule that exists."""
_OF_RULES = "docs/rules.md#the-rules"


@dataclass(frozen=True)
class Code:
    """The description of a code of findings, such as ``R07``.

    Attributes:
        title: Statement that is true if the manifests have no finding with this code.
        reason: Sentences about the problem; empty for a rule such as ``R07``, because the documentation explains it.
        link: Page and section of the documentation.
    """

    title: str
    reason: str
    link: str


@cache
def codes() -> dict[str, Code]:
    """Return all codes in the order of their documentation: first the rules, then the other checks."""
    table = json.loads(files("gpu_constructs.cli.lint").joinpath("codes.json").read_text(encoding="utf-8"))
    return {
        **{rule.code: Code(rule.title, "", _OF_RULES) for rule in RULES},
        **{code: Code(*row) for code, row in table.items()},
    }


def code_of(check: Callable[..., Any]) -> str:
    """Return the code of a check that is not a rule: the name of its function with hyphens."""
    return check.__name__.replace("_", "-")


def require_codes(given: Iterable[str]) -> frozenset[str]:
    """Return the codes that the user passes to ``--ignore``, as a set.

    Raises:
        CommandError: A code does not exist. The message suggests a similar code.
    """
    known = codes()
    for code in given:
        if code not in known:
            from gpu_constructs.errors import did_you_mean

            near = did_you_mean(code, known)
            raise CommandError(
                f"--ignore must be the code of a rule or another check, got {code!r}{near}. "
                "See gpu-constructs explain --list"
            )
    return frozenset(given)
