"""Baseline files: JSON files with known findings, which ``lint`` does not report again."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gpu_constructs.cli.exits import CommandError, Exit
from gpu_constructs.cli.findings import Finding

Key = tuple[str, str, str]
_LINE = re.compile(r"(\.(?:ya?ml|json)|<stdin>):\d+")


def key_of(finding: Finding) -> Key:
    """Return the code, the object and the reason of a finding, without line numbers, which change often."""
    return finding.code, finding.object, _LINE.sub(r"\1", finding.reason)


def read(path: Path) -> list[Key]:
    """Return the known findings in a baseline file.

    Raises:
        CommandError: The file is not readable or is not a baseline.
    """
    try:
        content: Any = json.loads(path.read_text(encoding="utf-8"))
        if content["version"] != 1:
            raise ValueError
        return [(one["code"], one["object"], one["reason"]) for one in content["findings"]]
    except OSError as error:
        problem = f"cannot read the baseline {path}: {error.strerror}. Create it with --write-baseline {path}"
        raise CommandError(problem, Exit.COULD_NOT_LOOK) from None
    except (ValueError, KeyError, TypeError, RecursionError):
        problem = f"{path} must be a baseline of version 1. Create it again with --write-baseline {path}"
        raise CommandError(problem, Exit.COULD_NOT_LOOK) from None


def write(path: Path, findings: Sequence[Finding]) -> None:
    """Write findings to a baseline file, in an order that makes its diffs short.

    Raises:
        CommandError: The command cannot write the file.
    """
    rows = [
        {"code": code, "object": about, "reason": reason} for code, about, reason in sorted({*map(key_of, findings)})
    ]
    try:
        path.write_text(json.dumps({"version": 1, "findings": rows}, indent=2, ensure_ascii=False) + "\n", "utf-8")
    except OSError as error:
        raise CommandError(f"cannot write {path}: {error.strerror}. Pass another file") from None


def without_known(findings: Sequence[Finding], known: Sequence[Key]) -> tuple[list[Finding], list[Key]]:
    """Return two lists: the findings that are not in a baseline, and the entries of the baseline that match no finding.

    Args:
        findings: Findings of the checks.
        known: Entries of the baseline.
    """
    found = {key_of(one) for one in findings}
    return [one for one in findings if key_of(one) not in set(known)], [one for one in known if one not in found]
