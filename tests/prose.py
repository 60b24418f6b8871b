"""The sentences that the package says to its readers, as Markdown for a prose linter.

`python -m tests.prose FOLDER` writes one file for each module and each data file. A sentence keeps the line that it has
in the source, so that a finding of the linter points to that line.
"""

import ast
import re
import sys
import textwrap
import tokenize
from collections.abc import Iterator
from pathlib import Path

import yaml

ROOT = Path(__file__).parent.parent
FEWEST_WORDS = 4
"""A shorter string is a name or a value."""
_ENTRY = re.compile(r"(\s*)(\*{0,2}\w+(?: \([^)]*\))?):\s(.*)")
_SECTION = re.compile(r"\s*(Args|Attributes|Raises|Returns|Yields|Example|Examples|Source|Sources|Note):$")
_JOINT = re.compile(r"\b(a|an|and|for|in|is|must|no|of|on|or|the|to|with)\b")
"""A list of names has none of these words."""
_CODE = re.compile(r"(?<![`\w])([\w-]+@[\w.-]+:\S+|\w+_\w+|\w+(?:\.\w+)+(?:/[\w.-]+)?|\w+\([^)]*\))(?!`)")
_DEFINITIONS = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def sentences(path: Path) -> str:
    """Return the sentences of a file, each on its line."""
    lines = [""] * (len(path.read_text().splitlines()) + 1)
    of = _of_module if path.suffix == ".py" else _of_data
    for number, text in of(path):
        lines[number - 1] = f"{lines[number - 1]} {text}".strip() if not text.startswith(("-", " ")) else text
    return "\n".join(lines) + "\n"


def _of_module(path: Path) -> Iterator[tuple[int, str]]:
    source = path.read_text()
    tree = ast.parse(source)
    documentation = set()
    for node in ast.walk(tree):
        for constant in _docstrings(node):
            documentation.add(id(constant))
            yield from _of_docstring(constant.lineno, str(constant.value))
    parts = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in ast.walk(node)}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            text = "".join(str(part.value) if isinstance(part, ast.Constant) else "`x`" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documentation | parts:
            text = node.value
        else:
            continue
        yield from _of_message(node.lineno, text)
    with path.open("rb") as file:
        for token in tokenize.tokenize(file.readline):
            if token.type == tokenize.COMMENT and not re.match(r"# (type|noqa|pragma|fmt|pyright)\b", token.string):
                yield token.start[0], f"{_quiet(token.string.lstrip('#: '))}"


def _docstrings(node: ast.AST) -> Iterator[ast.Constant]:
    """Yield the docstring of a definition, and those that follow the members of a module or a class."""
    if isinstance(node, _DEFINITIONS):
        for statement in node.body:
            value = statement.value if isinstance(statement, ast.Expr) else None
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                yield value


def _of_docstring(first: int, text: str) -> Iterator[tuple[int, str]]:
    code = False
    lines = text.splitlines()
    rest = textwrap.dedent("\n".join(lines[1:])).splitlines()
    for number, line in enumerate([lines[0], *rest] if lines else [], first):
        if line.lstrip().startswith(("```", ">>>")) or _SECTION.match(line):
            code = code != line.lstrip().startswith("```")
            continue
        if code:
            continue
        if entry := _ENTRY.match(line):
            yield number, f"- `{entry[2]}`: {_quiet(entry[3])}"
        elif line.strip():
            yield number, _quiet(line.strip()) if not line.startswith(" ") else "  " + _quiet(line.strip())


def _of_message(number: int, text: str) -> Iterator[tuple[int, str]]:
    is_sentence = len(re.findall(r"[A-Za-z]{2,}", text)) >= FEWEST_WORDS and _JOINT.search(text)
    if is_sentence and not re.search(r"[{<\\^$]|\(\?|^\s*\S+ -|==|\n", text):
        text = re.sub(r"^(\w+)(?= must )|'([^']+)'", lambda match: f"`{match[1] or match[2]}`", text)
        yield number, f"- {_quiet(' '.join(text.split()))}"


def _quiet(text: str) -> str:
    """Return the text with its code as Markdown writes it."""
    text = re.sub(r"``([^`]+)``", r"`\1`", text)
    return "".join(part if part.startswith("`") else _CODE.sub(r"`\1`", part) for part in re.split(r"(`[^`]+`)", text))


def _of_data(path: Path) -> Iterator[tuple[int, str]]:
    def scalars(node: yaml.Node) -> Iterator[yaml.ScalarNode]:
        if isinstance(node, yaml.ScalarNode):
            yield node
        elif isinstance(node, yaml.MappingNode):
            for _, value in node.value:
                yield from scalars(value)
        elif isinstance(node, yaml.SequenceNode):
            for value in node.value:
                yield from scalars(value)

    for document in yaml.compose_all(path.read_text()):
        for scalar in scalars(document) if document else ():
            yield from _of_message(scalar.start_mark.line + 1, scalar.value)


def main(folder: Path) -> None:
    """Write the sentences of the package below a folder."""
    package = ROOT / "gpu_constructs"
    for path in [*package.rglob("*.py"), *package.rglob("*.yaml"), ROOT / "app.py"]:
        target = folder / f"{path.relative_to(ROOT)}.md"
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(sentences(path))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
