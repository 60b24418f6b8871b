"""The cases of a parity run: a chart's values beside what Helm rendered from them."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

INDEX = "cases.json"
FOLDER = Path(__file__).parent / "parity_tables"
_SAFE_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_DOCUMENT = re.compile(r"^---(?=\s|\Z)", re.M)


class UnreadableCase(Exception):
    """A case whose files cannot be read as what they should be."""


@dataclass(frozen=True)
class Case:
    """One render of a chart: ``helm template <release> <chart> -n <namespace> -f <values>``."""

    name: str
    chart: str
    version: str
    release: str
    namespace: str
    values: Path
    render: Path

    def read_values(self) -> dict[str, Any]:
        """The values, of several documents laid over each other."""
        values: dict[str, Any] = {}
        for text in _DOCUMENT.split(_text(self.values)):
            read = load(text, self.values)
            if read is not None and not isinstance(read, dict):
                raise UnreadableCase(f"{self.values} holds no mapping")
            values = _merged(values, read or {})
        return values

    def read_objects(self) -> list[dict[str, Any]]:
        """The objects of the render; one document that stands in several files is read once and must not be changed."""
        found = []
        for text in _DOCUMENT.split(_text(self.render)):
            manifest = load(text, self.render)
            if manifest is None:
                continue
            if not isinstance(manifest, dict):
                raise UnreadableCase(f"{self.render} holds a document that is no object: {text.strip()[:60]!r}")
            found.append(manifest)
        return found


def _merged(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    both = {key: (one.get(key), value) for key, value in other.items()}
    nested = {k: _merged(a, b) if isinstance(a, dict) and isinstance(b, dict) else b for k, (a, b) in both.items()}
    return {**one, **nested}


@lru_cache(maxsize=1)
def _facts() -> dict[str, Any]:
    read: dict[str, Any] = yaml.load((FOLDER / "programs.yaml").read_text(encoding="utf-8"), Loader=_SAFE_LOADER)
    return read


def facts(name: str) -> Any:
    """Return what is known of a program, a chart or Kubernetes."""
    return _facts()[name]


def find_cases(folder: Path) -> list[Case]:
    """Every case in the folder, at any depth."""
    return [case for index in sorted(folder.rglob(INDEX)) for case in _cases_of(index, folder)]


def _cases_of(index: Path, folder: Path) -> Iterator[Case]:
    try:
        listed = json.loads(_text(index))
    except json.JSONDecodeError as error:
        raise UnreadableCase(f"{index}: {error}") from None
    if not isinstance(listed, Mapping):
        raise UnreadableCase(f"{index} must map the names of cases to their facts")
    inside = index.parent.relative_to(folder.parent if folder.name else folder)
    for name, facts in listed.items():
        missing = {"chart", "version", "release", "namespace", "values", "render"} - set(facts)
        if missing:
            raise UnreadableCase(f"{index}: case {name} lacks {', '.join(sorted(missing))}")
        yield Case(
            name=f"{inside.as_posix()}/{name}",
            chart=facts["chart"],
            version=facts["version"],
            release=facts["release"],
            namespace=facts["namespace"],
            values=index.parent / facts["values"],
            render=index.parent / facts["render"],
        )


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise UnreadableCase(f"{path}: {error.strerror}") from None


def load(text: str, source: object = "text") -> Any:
    """Read YAML as Helm does; the keys of mappings are strings."""
    try:
        return _load(text)
    except yaml.YAMLError as error:
        raise UnreadableCase(f"{source}: {error}") from None


class _Loader(_SAFE_LOADER):
    """Reads plain words as the YAML reader of Helm and Kubernetes does, which is not PyYAML's way.

    ``n`` and ``y`` are booleans, ``1e3`` is a number, ``12:30`` and dates are text. Keys are text, as in JSON: in
    Python 1 and true would be one key. Of two keys the last counts.

    Source: kubernetes-sigs/yaml@v1.4.0:goyaml.v2/resolve.go
    """


_Loader.yaml_implicit_resolvers = {}
_WORDS = "y|Y|yes|Yes|YES|n|N|no|No|NO|true|True|TRUE|false|False|FALSE|on|On|ON|off|Off|OFF"
_INTEGER = r"[-+]?(?:0b[01_]+|0x[0-9a-fA-F_]+|0o?[0-7_]+|0|[1-9][0-9_]*)"
_FLOAT = r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)"
for _tag, _pattern, _first in (
    ("bool", _WORDS, "yYnNtTfFoO"),
    ("null", "~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("int", _INTEGER, "-+0123456789"),
    ("float", _FLOAT, "-+.0123456789"),
    ("merge", "<<", "<"),
):
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(rf"(?:{_pattern})\Z"), list(_first))


def _boolean(loader: Any, node: yaml.ScalarNode) -> bool:
    return str(node.value).lower() in ("y", "yes", "true", "on")


def _integer(loader: Any, node: yaml.ScalarNode) -> int:
    text = node.value.replace("_", "")
    digits = text.lstrip("-+")
    if digits.startswith("0") and digits.isdigit() and digits != "0":
        digits = f"0o{digits}"
    return -int(digits, 0) if text.startswith("-") else int(digits, 0)


def _number(loader: Any, node: yaml.ScalarNode) -> int | float:
    number = float(node.value.lower().replace(".inf", "inf").replace(".nan", "nan"))
    # In JSON 1.0 is 1.
    return int(number) if number.is_integer() and abs(number) < 1e15 else number


def _mapping(loader: Any, node: yaml.MappingNode) -> Iterator[dict[str, Any]]:
    found: dict[str, Any] = {}
    yield found
    loader.flatten_mapping(node)
    for key, value in node.value:
        found[_key(loader.construct_object(key, deep=True))] = loader.construct_object(value, deep=True)


_Loader.add_constructor("tag:yaml.org,2002:map", _mapping)
_Loader.add_constructor("tag:yaml.org,2002:bool", _boolean)
_Loader.add_constructor("tag:yaml.org,2002:int", _integer)
_Loader.add_constructor("tag:yaml.org,2002:float", _number)


# The custom resource definitions are the same in every case, and most of the text.
@lru_cache(maxsize=4096)
def _load(text: str) -> Any:
    return yaml.load(text, Loader=_Loader)


def _key(key: Any) -> str:
    return json.dumps(key) if isinstance(key, bool | None) else str(key)
