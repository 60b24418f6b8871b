"""Random values by the types of keywords of constructs, of option structs and of their classmethods.

What contradicts each other is found by the library: of keywords that are refused together, one after the other is
left out until the rest is taken. Each refusal on the way has to be one good sentence.
"""

import dataclasses
import inspect
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from functools import cache
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, Union, Unpack, get_args, get_origin, get_type_hints

import yaml
from cdk8s import App, Chart
from constructs import Construct
from hypothesis import reject
from hypothesis import strategies as st

import gpu_constructs
from gpu_constructs import (
    Configs,
    DcgmExporter,
    Delivery,
    GpuConstructsError,
    Kubernetes,
    NvidiaGpuExporter,
    PluginConfig,
    PowerLimit,
    Run,
    Sharing,
    Talos,
    Unverified,
    ValidationBridge,
)
from gpu_constructs.catalog import versions
from house_style import assert_house_style

EXAMPLES: Mapping[str, list[Any]] = yaml.safe_load((Path(__file__).parent / "examples.yaml").read_text("utf-8"))
names = st.from_regex(r"\A[a-z]([-a-z0-9]{0,14}[a-z0-9])?\Z").filter(lambda name: name != "default")
label_keys = st.from_regex(r"\A([a-z]{1,5}\.example/)?[A-Za-z]([-A-Za-z0-9_.]{0,8}[A-Za-z0-9])?\Z")
KEYS = {
    "env": st.from_regex(r"\A[A-Za-z_][A-Za-z0-9_]{0,10}\Z"),
    "volumes": st.from_regex(r"\A(/[A-Za-z0-9_-]{1,4}){1,2}\Z") | st.sampled_from(["/tls", "/metrics", "/web/config"]),
    "users": names,
    "ports": names,
}
beside = Chart(App(), "beside")
HASH = "$2y$10$" + "a" * 53
READERS = ("of", "for_sharing", "from_file", "from_nodes", "from_yaml")
"""Classmethods that read files or other input."""


@cache
def hints_of(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the types of the keywords of a callable, including those in ``**options``."""
    target = function.__init__ if inspect.isclass(function) else function  # type: ignore[misc]
    found: dict[str, Any] = {}
    hints = get_type_hints(target)
    for parameter in inspect.signature(target).parameters.values():
        hint = hints.get(parameter.name)
        if get_origin(hint) is Unpack:
            found.update(get_type_hints(get_args(hint)[0]))
        elif hint is not None and parameter.name not in ("self", "scope", "id"):
            # The signature of a wrapped function contains its options, but not its own ``**options``.
            found[parameter.name] = hint
    for hint in hints.values():
        if get_origin(hint) is Unpack:
            found.update(get_type_hints(get_args(hint)[0]))
    return found


@cache
def required_of(function: Callable[..., Any]) -> list[str]:
    """Return the names of arguments without a default."""
    parameters = inspect.signature(function).parameters.values()
    empty = inspect.Parameter.empty
    kinds = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
    return [p.name for p in parameters if p.default is empty and p.kind not in kinds and p.name not in ("scope", "id")]


def accepted(make: Callable[[dict[str, Any]], Any], options: dict[str, Any], path: str = "") -> Any:
    """Return the result with as many options as are valid together. Remove the other options."""
    while True:
        try:
            return make(options)
        except GpuConstructsError as error:
            assert_house_style(error, path)
            if not options:
                raise
            said = [name for name in options if re.search(rf"\b{name}\b", error.problem)]
            del options[(said or list(options))[-1]]


@st.composite
def calls(draw: st.DrawFn, function: Callable[..., Any]) -> Any:
    """Draw a result of a callable for arguments of its types."""
    hints, required = hints_of(function), required_of(function)
    optional = {name: value(hint, name) for name, hint in hints.items() if name not in required}
    chosen = draw(st.sets(st.sampled_from(sorted(optional)), max_size=4)) if optional else set()
    needed = {name: draw(value(hints[name], name)) for name in required}
    options = {name: draw(optional[name]) for name in sorted(chosen)}
    try:
        return accepted(lambda given: call(function, {**needed, **given}), options)
    except GpuConstructsError:
        reject()


def call(function: Callable[..., Any], given: Mapping[str, Any]) -> Any:
    """Call a function with arguments by name, including its positional-only arguments."""
    parameters = inspect.signature(function).parameters.values()
    star = next((p.name for p in parameters if p.kind is p.VAR_POSITIONAL), None)
    positional = given.get(star, ()) if star else ()
    values = positional if isinstance(positional, list | tuple) else (positional,)
    return function(*values, **{name: one for name, one in given.items() if name != star})


@cache
def made_by(struct: type) -> st.SearchStrategy[Any]:
    """Return a strategy for an option struct: from its classmethods, or else from its constructor."""
    found = vars(struct).items()
    makers = [name for name, member in found if isinstance(member, classmethod) and not name.startswith("_")]
    ways = [getattr(struct, name) for name in makers if name not in (*READERS, "of_source")]
    direct = [struct] if not ways or struct.__name__ in ("PodMapping", "Scrape") else []
    return st.deferred(lambda: st.one_of(*(calls(way) for way in (*direct, *ways))))


configs = st.lists(names, min_size=1, max_size=2, unique=True).flatmap(
    lambda found: st.tuples(
        st.sampled_from([Configs.named, Configs.managed]), st.lists(made_by(PluginConfig), min_size=2, max_size=2)
    ).map(lambda pair: pair[0](dict(zip(found, pair[1], strict=False)), default=found[0]))
)
SPECIAL: Mapping[Any, st.SearchStrategy[Any]] = {
    "platform": st.sampled_from([*(Talos(f"1.{minor}") for minor in range(10, 15)), Kubernetes(), Kubernetes("1.27")]),
    "exporter": st.sampled_from(
        [
            DcgmExporter(beside, "dcgm", dashboard=False),
            DcgmExporter(beside, "old", dashboard=False, name="old", version="3.4.2", scrape="none", pod_mapping=False),
            NvidiaGpuExporter(beside, "smi", dashboard=False),
            NvidiaGpuExporter(beside, "nvml", dashboard=False, name="nvml", backend="nvml", compute_apps=True),
        ]
    ),
    "power_limit": st.sampled_from(
        [
            None,
            PowerLimit(beside, "limit"),
            PowerLimit(beside, "limits", name="limits", watts=None, limits={"name:*RTX [34]090": "80%"}),
        ]
    ),
    "bridge": st.sampled_from(
        [None, *(ValidationBridge(Chart(App(), "b"), "b", strategy=strategy) for strategy in ("markers", "stage"))]
    ),
    "delivery": made_by(Delivery).filter(lambda made: "helm" not in type(made).__name__.lower()),
    "users": st.dictionaries(names, st.just(HASH), min_size=1, max_size=2),
    "configs": st.dictionaries(names, made_by(PluginConfig), min_size=1, max_size=2),
    Run: st.one_of(*(calls(run) for run in (Run.deployment, Run.stateful_set, Run.job, Run.cron_job, Run.pod))),
    Configs: configs | calls(Configs.external),
    Sharing: made_by(Sharing),
    timedelta: st.sampled_from([timedelta(minutes=5), timedelta(hours=2)]),
    versions.Unverified: calls(Unverified),
}


def value(kind: Any, name: str) -> st.SearchStrategy[Any]:
    """Return a strategy for a keyword by its type and name."""
    for known in (name, kind):
        if isinstance(known, str | type) and known in SPECIAL:
            return SPECIAL[known]
    origin, inner = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return st.one_of(*(value(one, name) for one in inner))
    if origin is Literal:
        return st.sampled_from(inner)
    if origin is tuple:
        whole = [one for one in inner if one is not ...]
        return st.tuples(*(value(one, name) for one in whole))
    if kind is Any:
        return st.just("a")
    if kind is bool:
        return st.booleans()
    if kind is NoneType:
        return st.none()
    if origin is not None and issubclass(origin, Mapping):
        return _mappings(inner, name)
    if origin is not None and issubclass(origin, Sequence | Iterable):
        return st.lists(value(inner[0], name), max_size=2, unique_by=repr)
    if kind in (int, float, str):
        return _scalars(kind, name)
    is_ours = inspect.isclass(kind) and dataclasses.is_dataclass(kind) and not getattr(kind, "_is_protocol", False)
    return made_by(kind) if is_ours else st.nothing()


def _mappings(inner: Sequence[Any], name: str) -> st.SearchStrategy[Any]:
    known = [one for one in EXAMPLES.get(name, ()) if isinstance(one, dict)]
    if known:
        return st.sampled_from(known)
    if inner[1] is Any:
        return st.just({})
    key = value(inner[0], name) if get_origin(inner[0]) is Literal else KEYS.get(name, label_keys)
    return st.dictionaries(key, value(inner[1], "" if name in EXAMPLES else name), max_size=3)


def _scalars(kind: type, name: str) -> st.SearchStrategy[Any]:
    known = [one for one in EXAMPLES.get(name, ()) if isinstance(one, kind) and not isinstance(one, bool)]
    if known:
        return st.sampled_from(known)
    if kind is str:
        is_free = name in ("env", "command", "args")
        return st.text(st.characters(codec="utf-8"), max_size=12) if is_free else names
    return st.integers(0, 9999) if kind is int else st.floats(0.01, 0.99)


def constructs() -> list[type[Construct]]:
    """Return the public constructs that take a scope, an ID and keywords."""
    public = [getattr(gpu_constructs, name) for name in gpu_constructs.__all__]
    ours = [one for one in public if inspect.isclass(one) and issubclass(one, Construct)]
    return [one for one in ours if one.__module__.startswith("gpu_constructs.") and hints_of(one).keys() != {"id"}]
