"""No input ends a command with a traceback: mutated and truncated manifests of dist/ and of the tables of the tests.

A command that reads manifests adds a row to ``COMMANDS``.
"""

import contextlib
import io
import random
from copy import deepcopy
from functools import cache

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

import app_tables
import dist
import tables
from depth import at_depth
from gpu_constructs.cli.exits import Exit
from gpu_constructs.cli.main import main

INVENTORY = dist.ROOT / "examples" / "08-plain-yaml" / "gpus.yaml"
COMMANDS = {
    "lint": ["lint", "{path}"],
    "lint of a platform": ["lint", "{path}", "--platform", "talos", "--format", "sarif"],
    "doctor": ["doctor", "--from", "{path}"],
    "doctor of a plan": ["doctor", "--from", "{path}", "--plan", "{path}", "--format", "json"],
    "diff": ["diff", f"{dist.DIST}/talos-rtx5070ti", "{path}"],
    "diff of the way back": ["diff", "{path}", f"{dist.DIST}/talos-rtx5070ti", "--format", "markdown"],
    "plan": ["plan", "{path}", "--inventory", str(INVENTORY)],
    "plan with a change": ["plan", "{path}", "--inventory", str(INVENTORY), "--what-if", "replicas=2", "--format=json"],
    "recommend": ["recommend", "{path}", "--inventory", str(INVENTORY)],
}
"""Arguments of each command, where ``{path}`` stands for a file with odd manifests."""
BUG = "Report this as a bug"
ODD = (
    None,
    True,
    -1,
    0,
    1.5,
    10**30,
    "",
    "x",
    "0.5",
    "nvidia.com/gpu",
    "a" * 300,
    "\u0000é",
    [],
    {},
    [None],
    {"": None},
)
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@cache
def sources():
    """Objects of many kinds, some of them wrong already."""
    found = []
    for file in sorted(dist.DIST.rglob("*.k8s.yaml")):
        found += [one for one in yaml.load_all(file.read_text(encoding="utf-8"), _LOADER) if one]
    for name in ("rules", "apps", "references", "quotas"):
        for part in tables.beside(f"{dist.ROOT}/tests/checks/x", name).values():
            rows = part.get("broken", ()) if isinstance(part, dict) else part
            found += [one for row in rows if "objects" in row for one in app_tables.objects(row["objects"])]
    return [one for one in found if isinstance(one, dict)]


def places(value):
    """Every mapping and list in a value, with each of its keys."""
    if isinstance(value, dict | list):
        for key in value if isinstance(value, dict) else range(len(value)):
            yield value, key
            yield from places(value[key])


def mutated(seed):
    """A file with a few objects, of which some have odd values, missing or repeated members, or an end too soon."""
    chance = random.Random(seed)
    objects = deepcopy(chance.sample(sources(), chance.randint(1, 6)))
    for _ in range(chance.randint(0, 4)):
        holder, key = chance.choice(list(places(objects)))
        others = list(places(objects))
        odd = deepcopy(chance.choice([*ODD, chance.choice(others)[0]]))
        if isinstance(holder, dict) and chance.random() < 0.3:
            del holder[key]
        else:
            holder[key] = odd
    text = yaml.safe_dump_all(objects, allow_unicode=True)
    if chance.random() < 0.3:
        text = text[: chance.randrange(len(text))]
    if chance.random() < 0.2:
        lines = text.splitlines(keepends=True) or [""]
        lines.insert(
            chance.randrange(len(lines)), chance.choice(["---\n", "\t- x: [\n", "{{ if }}\n", "...\n", "a: &a *a\n"])
        )
        text = "".join(lines)
    return text


@pytest.mark.parametrize("command", COMMANDS)
@at_depth(500, quick=12)
@given(seed=st.integers(0, 10**9))
def test_odd_manifests_never_end_a_command_with_a_traceback(tmp_path, command, seed):
    path = tmp_path / "odd.yaml"
    path.write_bytes(mutated(seed).encode("utf-8", "surrogatepass"))
    output = io.StringIO()
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
        status = main([argument.format(path=path) for argument in COMMANDS[command]])
    assert status in [*Exit]
    assert BUG not in output.getvalue(), output.getvalue()
