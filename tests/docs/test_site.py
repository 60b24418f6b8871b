"""The reference of the site: it has every name, and the pages that a program writes are those of the package."""

import ast
import re
from pathlib import Path

import reference
from constructs import Construct

import dist
import gpu_constructs

NAME = re.compile(r"^::: gpu_constructs\.(\w+)$", re.M)


def test_every_public_name_is_on_one_page() -> None:
    pages = sorted(reference.PAGES.glob("*.md"))
    names = [name for page in pages for name in NAME.findall(page.read_text(encoding="utf-8"))]
    assert sorted(names) == sorted(gpu_constructs.__all__)


def test_the_pages_from_the_package_are_fresh() -> None:
    for name, content in reference.WRITTEN.items():
        assert (reference.PAGES / f"{name}.md").read_text(encoding="utf-8") == content()


def test_the_page_of_objects_has_every_construct() -> None:
    public = {name: getattr(gpu_constructs, name) for name in gpu_constructs.__all__}
    constructs = {name for name, one in public.items() if isinstance(one, type) and issubclass(one, Construct)}
    assert {*reference.CALLS, *reference.WITHOUT_OBJECTS} == constructs - {"ApiObject", "App", "Chart", "Include"}


def texts(module: Path) -> list[str]:
    """The string constants of a module without its docstrings."""
    nodes = list(ast.walk(ast.parse(module.read_text(encoding="utf-8"))))
    docstrings = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    constants = (node for node in nodes if isinstance(node, ast.Constant) and id(node) not in docstrings)
    return [node.value for node in constants if isinstance(node.value, str)]


def test_the_page_of_labels_has_every_key_in_the_package() -> None:
    modules = sorted((dist.ROOT / "gpu_constructs").rglob("*.py"))
    # Most modules have no key, which their text tells sooner than their syntax tree.
    with_keys = [module for module in modules if reference.keys_in([module.read_text(encoding="utf-8")])]
    found = {key for module in with_keys for key in reference.keys_in(texts(module))}
    assert len(found) > 90
    assert [key for key in sorted(found) if not reference.is_explained(key)] == []
