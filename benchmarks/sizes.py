"""How heavy the package and its tests are: each figure with its limit, which only goes down.

``uv run python benchmarks/sizes.py`` prints the figures and fails if one is over its limit in ``sizes.yaml``.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

import grimp
import yaml

from gpu_constructs.kube import pods

ROOT = Path(__file__).parents[1]
PACKAGE = "gpu_constructs"
LONGEST_MODULE = 400
MOST_PATHS = 15
_BRANCHES = (ast.If, ast.For, ast.While, ast.ExceptHandler, ast.IfExp, ast.comprehension, ast.Assert, ast.match_case)

Functions = ast.FunctionDef | ast.AsyncFunctionDef


def sources(folder: str, *, without: str = "-") -> dict[str, str]:
    """The Python files of a folder, by their path."""
    paths = sorted((ROOT / folder).rglob("*.py"))
    named = {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in paths}
    return {path: text for path, text in named.items() if not path.startswith(without)}


def statements(module: ast.Module) -> int:
    """The statements of a module, without docstrings."""
    return sum(isinstance(node, ast.stmt) and not _is_text(node) for node in ast.walk(module))


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def functions(module: ast.Module) -> Iterator[Functions]:
    """All functions of a module, methods too."""
    return (node for node in ast.walk(module) if isinstance(node, Functions))


def paths_through(function: Functions) -> int:
    """The cyclomatic complexity of a function."""
    nodes = list(ast.walk(function))
    joined = sum(len(node.values) - 1 for node in nodes if isinstance(node, ast.BoolOp))
    filters = sum(len(node.ifs) for node in nodes if isinstance(node, ast.comprehension))
    return 1 + sum(isinstance(node, _BRANCHES) for node in nodes) + joined + filters


def keywords(modules: Mapping[str, ast.Module]) -> list[list[str]]:
    """The keywords that each constructor declares itself."""
    made_by = (one for module in modules.values() for one in functions(module) if one.name == "__init__")
    return [[argument.arg for argument in one.args.kwonlyargs] for one in made_by]


def circles() -> list[list[str]]:
    """Modules that import each other in a circle, imports inside of functions counted."""
    graph = grimp.build_graph(PACKAGE)
    imports = {module: graph.find_modules_directly_imported_by(module) - {PACKAGE} for module in graph.modules}
    # Whatever imports nothing that is left, or is imported by nothing that is left, is in no circle.
    left = set(graph.modules)
    while True:
        imported = Counter(target for module in left for target in imports[module] & left)
        kept = {module for module in left if imports[module] & left and imported[module]}
        if kept == left:
            return [sorted(left)] if left else []
        left = kept


def cases() -> int:
    """The tests that the README's command runs."""
    command = [sys.executable, "-m", "pytest", "--collect-only", "-qq", "-n", "0", "-p", "no:cacheprovider"]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return sum(int(line.rpartition(": ")[2]) for line in listed.splitlines() if line.startswith("tests/"))


def figures() -> tuple[dict[str, int], list[str]]:
    """Each figure, and the names of what is too long or has too many paths."""
    library = sources(PACKAGE, without=f"{PACKAGE}/cli/")
    commands = sources(f"{PACKAGE}/cli")
    modules = {path: ast.parse(text) for path, text in library.items()}
    long = [path for path, text in library.items() if len(text.splitlines()) > LONGEST_MODULE]
    complex_ = [
        f"{path}:{one.name}"
        for path, module in modules.items()
        for one in functions(module)
        if paths_through(one) > MOST_PATHS
    ]
    constructors = keywords(modules)
    options = pods.ProgramOptions.__annotations__.keys()
    return {
        "statements in gpu_constructs": sum(map(statements, modules.values())),
        "statements in gpu_constructs.cli": sum(statements(ast.parse(text)) for text in commands.values()),
        f"modules over {LONGEST_MODULE} lines": len(long),
        f"functions over complexity {MOST_PATHS}": len(complex_),
        "declarations of options of pods": sum(name in options for names in constructors for name in names),
        "keywords of the longest constructor": max(map(len, constructors)),
        "circles of imports": len(circles()),
        "lines of tests and their helpers": sum(
            len(text.splitlines())
            for path, text in sources("tests", without="tests/e2e/").items()
            if not path.startswith("tests/cli/")
        ),
        "lines of tests of the command line": sum(len(text.splitlines()) for text in sources("tests/cli").values()),
        "cases of the README's test command": cases(),
    }, [*long, *complex_]


def main() -> int:
    limits = yaml.safe_load((ROOT / "benchmarks/sizes.yaml").read_text(encoding="utf-8"))
    found, named = figures()
    for name, figure in found.items():
        limit = limits["limits"][name]
        print(f"{name:40} {figure:7,}  (at most {limit:,})")
    unexplained = [name for name in named if limits["all_are_explained"] and name not in limits["reasons"]]
    for name in unexplained:
        print(f"too long or too complex, without a reason in sizes.yaml: {name}")
    is_over = any(figure > limits["limits"][name] for name, figure in found.items())
    return 1 if is_over or unexplained else 0


if __name__ == "__main__":
    sys.exit(main())
