"""Checks of option values, and ``Options``, the base class of structs: dataclasses that group options."""

from __future__ import annotations

import dataclasses
import inspect
import re
import sys
import types
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from functools import lru_cache, partial
from typing import Any, ClassVar, Literal, Union, get_args, get_origin

from gpu_constructs.errors import GpuConstructsError, ShortErrors, then
from gpu_constructs.errors import did_you_mean as did_you_mean
from gpu_constructs.records import dataclass
from gpu_constructs.records import regex as regex

_DNS_LABEL = regex(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?\Z")
_QUALIFIED_NAME = regex(r"([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?\Z")
_LABEL_VALUE = regex(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?\Z")
_CAPITAL = regex(r"(?<=[a-z])(?=[A-Z])")
_MODULE = regex(r"\b(?:[a-z_]\w*\.)+(?=[A-Z])")
_BYTES = regex(r"(?:(?:requests\.|limits\.)?(?:memory|ephemeral-storage|storage|hugepages-.+)|.+/requests\.storage)\Z")
_UNITLESS = regex(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)m?\Z")
_MEBIBYTE = 2**20
_INT32_MAX = 2**31 - 1
Check = Callable[[str, Any], object]
"""A check: a function that takes the name and the value of an option, and raises an error if the value is not valid."""

Checks = Mapping[str, Check]
Kept = Mapping[str, Callable[[Any], Any]]
Conflict = tuple[object, str]
"""A condition, and the message of the error to raise if the condition is true."""

FACTORS = {"n": Decimal("1e-9"), "u": Decimal("1e-6"), "m": Decimal("0.001"), "": Decimal(1)} | {
    unit: Decimal(base**power)
    for power, (decimal, binary) in enumerate(
        (("k", "Ki"), ("M", "Mi"), ("G", "Gi"), ("T", "Ti"), ("P", "Pi"), ("E", "Ei")), start=1
    )
    for unit, base in ((decimal, 1000), (binary, 1024))
}


def one_of(field: str, got: object, allowed: Sequence[str]) -> None:
    """Raise unless ``got``, the value of the option ``field``, is one of the allowed words."""
    if got not in allowed:
        words = ", ".join(map(repr, allowed))
        raise GpuConstructsError(f"{field} must be one of {words}, got {got!r}{did_you_mean(got, allowed)}")


def whole_number(field: str, got: object, *, minimum: int, maximum: int = _INT32_MAX, way_out: str = "") -> None:
    """Raise unless ``got`` is an ``int`` (not a bool) in a range. The text ``way_out``, if any, ends the message."""
    suffix = then(way_out)
    if isinstance(got, bool) or not isinstance(got, int):
        raise GpuConstructsError(f"{field} must be an int, got {got!r} ({type(got).__name__}){suffix}")
    if got < minimum:
        raise GpuConstructsError(f"{field} must be at least {minimum}, got {got}{suffix}")
    if got > maximum:
        raise GpuConstructsError(f"{field} must be at most {maximum}, got {got}{suffix}")


natural = partial(whole_number, minimum=0)
positive = partial(whole_number, minimum=1)


def matching(pattern: str, meaning: str) -> Callable[[str, str], None]:
    """Return a check that a text matches a pattern. The error message is "<field> must <meaning>, got <text>"."""
    form = regex(pattern)

    def check(field: str, got: str) -> None:
        if not form.match(got):
            raise GpuConstructsError(f"{field} must {meaning}, got {got!r}")

    return check


_REPOSITORY = r"(?:[a-z0-9]+(?:[.-][a-z0-9]+)*(?::[0-9]+)?/)?[a-z0-9]+(?:[._/-]+[a-z0-9]+)*"
_TAG = r":(?!latest(?:@|\Z))[A-Za-z0-9_][-A-Za-z0-9_.]{0,127}"
_DIGEST = r"@sha256:[0-9a-f]{64}"

capability = matching(r"(?!CAP_)[A-Z][A-Z_]*\Z", "be a capability like 'SYS_PTRACE', without 'CAP_'")
cron_schedule = matching(
    r"@(?:yearly|annually|monthly|weekly|daily|midnight|hourly|every [0-9]+[a-z0-9]*)\Z|"
    r"[0-9*?/,-]+(?: +[0-9*?/,-]+){2}(?: +(?:[0-9*?/,-]|[A-Za-z]{3})+){2}\Z",
    "be a cron schedule with five fields, or a macro like '@daily'",
)
dns_label = matching(
    r"(?=.{1,63}\Z)[a-z0-9]([-a-z0-9]*[a-z0-9])?\Z",
    "be a DNS label (a-z, 0-9 and '-', at most 63 characters, letter or digit at both ends)",
)
environment_name = matching(r"[A-Za-z_][A-Za-z0-9_]*\Z", "be a variable name (letters, digits, '_')")
image = matching(
    rf"{_REPOSITORY}(?:{_TAG}(?:{_DIGEST})?|{_DIGEST})\Z",
    "be 'repository:tag' or 'repository@sha256:...', without the tag 'latest'",
)
label_value = matching(
    _LABEL_VALUE.pattern,
    "be a label value (letters, digits, '-', '_', '.', at most 63 characters, letter or digit at both ends)",
)
port_name = matching(
    r"(?=.*[a-z])(?!.*--)[a-z0-9]([-a-z0-9]{0,13}[a-z0-9])?\Z",
    "be a port name (a-z, 0-9 and single '-', at most 15 characters, at least one letter)",
)
quantity = matching(
    r"[0-9]+(\.[0-9]+)?(m|k|Ki|M|Mi|G|Gi|T|Ti|P|Pi|E|Ei)?\Z", "be a Kubernetes quantity like '500m' or '16Gi'"
)


def each_matching(pattern: str, meaning: str) -> Check:
    """Return a check that each text of a list matches a pattern. The error is "<field> must <meaning>, got <text>"."""
    form = regex(pattern)

    def check(field: str, got: Sequence[str]) -> None:
        for item in got:
            if not form.match(item):
                raise GpuConstructsError(f"{field} must {meaning}, got {item!r}")

    return check


def dns_subdomain(field: str, got: str) -> None:
    """Raise unless the value of the option ``field`` is a DNS subdomain: DNS labels joined by dots."""
    if len(got) > 253 or not all(len(part) <= 63 and _DNS_LABEL.match(part) for part in got.split(".")):
        raise GpuConstructsError(
            f"{field} must be a DNS subdomain (DNS labels joined by '.', at most 253 characters), got {got!r}"
        )


def labels(field: str, got: Mapping[str, str]) -> None:
    """Raise unless Kubernetes accepts the keys and values of the option ``field`` as labels of an object."""
    for key, value in got.items():
        if not _QUALIFIED_NAME.match(key):
            raise GpuConstructsError(f"{field} must have valid label keys, got {key!r}")
        label_value(f"{field}[{key!r}]", value)


def annotation_keys(field: str, got: Mapping[str, str]) -> None:
    """Raise unless all keys of the option ``field`` are valid keys of annotations. The values can be any text."""
    labels(field, dict.fromkeys(got, ""))


def label_key(field: str, got: str) -> None:
    """Raise unless a text is a valid key of a label, an annotation or a taint."""
    labels(field, {got: ""})


def is_label_value(text: str) -> bool:
    """Check whether a text is a valid value of a label."""
    return _LABEL_VALUE.match(text) is not None


def amount(quantity: str) -> Decimal:
    """Return a Kubernetes quantity, such as ``500m`` or ``8Gi``, as a decimal number."""
    number, unit = re.fullmatch(r"([0-9.]+)(\D*)", quantity).groups()  # type: ignore[union-attr]
    return Decimal(number) * FACTORS[unit]


def lacks_unit(got: object) -> bool:
    """Check whether an amount of bytes, such as ``4`` or ``400m``, is below 1 MiB and so probably lacks its unit."""
    number = _UNITLESS.match(str(got))
    return number is not None and 0 < Decimal(number[1]) < _MEBIBYTE


def without_unit(got: object) -> str:
    """Return the end of the error message about an amount of bytes without a unit, such as ``must have a unit, …``."""
    number = str(got).removesuffix("m")
    is_what = "thousandths of a byte" if str(got).endswith("m") else "bytes"
    return f"must have a unit, got {got!r}, which is {number} {is_what}. Write '{number}Gi' or '{number}Mi'"


def size(field: str, got: str) -> None:
    """Raise unless the value of the option ``field`` is a quantity of bytes with a unit, such as ``16Gi``."""
    quantity(field, got)
    if lacks_unit(got):
        raise GpuConstructsError(f"{field} {without_unit(got)}")


def counts_bytes(resource: str) -> bool:
    """Check whether the amounts of a resource, or of a ResourceQuota key such as ``requests.memory``, are in bytes."""
    return bool(_BYTES.match(resource))


def amount_of(field: str, resource: str, got: str) -> None:
    """Raise unless a text is a valid amount of ``resource``. An amount of bytes must have a unit, such as ``4Gi``."""
    (size if counts_bytes(resource) else quantity)(field, got)


def port_number(field: str, got: object) -> None:
    """Raise unless the value of the option ``field`` is a port number from 1 to 65535."""
    whole_number(field, got, minimum=1, maximum=65535)


def absolute_path(field: str, got: str) -> None:
    """Raise unless the value of the option ``field`` is an absolute path without ``..``."""
    if not got.isprintable():
        raise GpuConstructsError(f"{field} must be a path of printable characters, got {got!r}")
    if not got.startswith("/") or ".." in got.split("/"):
        raise GpuConstructsError(f"{field} must be an absolute path without '..', got {got!r}")


def each(check: Check, field: str, got: Sequence[Any]) -> None:
    """Apply ``check`` to each item of a list, the value of the option ``field``. Raise if an item is invalid."""
    for index, item in enumerate(got):
        check(f"{field}[{index}]", item)


def entries(check: Check, key_check: Check | None = None) -> Check:
    """Return a check for mappings that applies ``check`` to each value, and ``key_check``, if any, to each key."""

    def checked(field: str, got: Mapping[str, Any]) -> None:
        for key, value in got.items():
            if key_check is not None:
                key_check(f"{field} key", key)
            check(f"{field}[{key!r}]", value)

    return checked


def unless(allowed: str, check: Check) -> Check:
    """Return a check of option values that accepts the word ``allowed``, and applies ``check`` to all other values."""

    def checked(field: str, got: str) -> None:
        if got != allowed:
            check(field, got)

    return checked


path_or_nothing = unless("", absolute_path)


def _typeguard_form(annotation: Any) -> Any:
    """Return a type annotation with ``Union[A, B]`` instead of ``A | B``, which typeguard 2.13 does not support."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Literal or not arguments:
        return annotation
    arguments = tuple(_typeguard_form(argument) for argument in arguments)
    if origin is types.UnionType or origin is Union:
        return Union[arguments]  # noqa: UP007
    return origin[arguments] if origin is not None else annotation


def _alternatives(annotation: Any) -> tuple[Any, ...]:
    return get_args(annotation) if get_origin(annotation) in (Union, types.UnionType) else (annotation,)


def of_type(field: str, got: object, annotation: Any) -> None:
    """Raise unless the value of the option ``field`` matches a type annotation, such as ``Literal["a"] | None``."""
    alternatives = _alternatives(annotation)
    if _is_left_to_caller(alternatives) or (got is None and type(None) in alternatives):
        return
    words = _allowed_words(alternatives)
    is_plain = any(isinstance(option, type) and isinstance(got, option) for option in alternatives)
    if words and not is_plain and not isinstance(got, list | tuple):
        one_of(field, got, words)
        return
    _refuse_lookalikes(field, got, alternatives)
    entries = _entries(field, got, alternatives)
    for entry in entries or ():
        of_type(*entry)
    if entries is None and not is_plain:
        _by_typeguard(field, got, annotation)


def _entries(field: str, got: object, alternatives: tuple[Any, ...]) -> list[tuple[str, object, Any]] | None:
    """Return the path, the value and the expected type for each item of a list, or for each key and value of a dict.

    For a list, exactly one type in ``alternatives`` must be a list type; for a dict, a dict type. If not, return None.
    """
    items, pairs = ([get_args(one) for one in alternatives if get_origin(one) is kind] for kind in (Sequence, Mapping))
    if isinstance(got, list | tuple) and len(items) == 1:
        return [(f"{field}[{index}]", item, *items[0]) for index, item in enumerate(got)]
    if isinstance(got, Mapping) and len(pairs) == 1:
        keys = [(f"{field} key", key, pairs[0][0]) for key in got]
        return keys + [(f"{field}[{key!r}]", value, pairs[0][1]) for key, value in got.items()]
    return None


def _allowed_words(alternatives: tuple[Any, ...]) -> list[str]:
    return [word for option in alternatives if get_origin(option) is Literal for word in get_args(option)]


def _is_left_to_caller(alternatives: tuple[Any, ...]) -> bool:
    """Check whether a type among ``alternatives`` accepts every value: a protocol, ``Any`` or ``object``."""
    return any(getattr(option, "_is_protocol", option in (Any, object)) for option in alternatives)


def _refuse_lookalikes(field: str, got: object, alternatives: tuple[Any, ...]) -> None:
    """Raise for a bool in place of a number, and for a text in place of a list. ``isinstance`` accepts both."""
    if isinstance(got, bool) and bool not in alternatives and (int in alternatives or float in alternatives):
        number = "a number" if float in alternatives else "an int"
        raise GpuConstructsError(f"{field} must be {number}, got {got!r} (bool)")
    takes_list = any(get_origin(option) is Sequence for option in alternatives)
    if isinstance(got, str | bytes) and takes_list and str not in alternatives:
        raise GpuConstructsError(f"{field} must be a list, got {got!r} ({type(got).__name__})")


def _by_typeguard(field: str, got: object, annotation: Any) -> None:
    # The import of typeguard is slow, so this function imports it only for types that `of_type` cannot check itself.
    import typeguard

    try:
        typeguard.check_type(field, got, _typeguard_form(annotation))
    except TypeError as error:
        message = _MODULE.sub("", str(error).removeprefix("type of ").replace(" instead", ""))
        message = message.replace("NoneType)", "None)").replace("; got ", ", got ")
        shown = "not shown, because it can contain a secret" if _holds_secrets(_alternatives(annotation)) else repr(got)
        raise GpuConstructsError(f"{message}: {shown}") from None


def _holds_secrets(alternatives: tuple[Any, ...]) -> bool:
    return any("_IS_SECRET" in vars(option) for option in alternatives if isinstance(option, type))


def snake(name: str) -> str:
    """Return a name in ``snake_case``: ``deny_label_ns`` for ``denyLabelNs``."""
    return _CAPITAL.sub("_", name).lower()


@lru_cache(maxsize=1024)
def hint(owner: Any, name: str) -> Any:
    """Return the type annotation of an attribute of a class or of a parameter of a function."""
    holder = next(each for each in getattr(owner, "__mro__", (owner,)) if name in inspect.get_annotations(each))
    one = types.SimpleNamespace(__annotations__={name: holder.__annotations__[name]})
    return typing.get_type_hints(one, vars(sys.modules[holder.__module__]))[name]


def arguments(function: Any, given: Mapping[str, object]) -> None:
    """Raise unless the keyword arguments of a function have the types in its annotations.

    The check skips arguments with the annotation ``int``: ``function`` itself checks them with ``whole_number``.
    """
    for name, value in given.items():
        if name in function.__annotations__ and hint(function, name) is not int:
            of_type(name, value, hint(function, name))


def members(struct: Any, name: str) -> None:
    """Raise unless each attribute of ``struct`` has its annotated type. Messages begin with the text ``name``."""
    for member in dataclasses.fields(struct):
        got = getattr(struct, member.name)
        if got is not member.default:
            of_type(f"{name}.{member.name}", got, hint(type(struct), member.name))  # type: ignore[arg-type]


def options(given: Mapping[str, Any], checks: Mapping[str, Check], prefix: str = "") -> None:
    """Check options, and raise for the first invalid one. The function skips options with the value None.

    Args:
        given: Options by name.
        checks: Functions by name of the option, which raise for an invalid value. They run in the order of this dict.
        prefix: Text before the name of the option in messages; empty by default.
    """
    for name, check in checks.items():
        if given.get(name) is not None:
            check(prefix + name, given[name])


def refuse_first(conflicts: Iterable[Conflict]) -> None:
    """Raise an error for the first true condition. ``conflicts`` has pairs of a condition and its error message."""
    for holds, message in conflicts:
        if holds:
            raise GpuConstructsError(message)


@dataclass(frozen=True, kw_only=True)
class Options(metaclass=ShortErrors):
    """Base class of option structs. A new instance checks each option, and then the combinations of options.

    Attributes:
        _NAME: Name of the struct in messages; by default the name of the class in ``snake_case``.
        _CHECKS: Checks by name of the option, besides the check of its type.
        _KEPT: Functions by name of the option. Each function converts the value that the user passes to the value that
            the struct stores.
    """

    _NAME: ClassVar[str] = ""
    _CHECKS: ClassVar[Checks] = {}
    _KEPT: ClassVar[Kept] = {}

    def __post_init__(self) -> None:
        name = self._NAME or snake(type(self).__name__)
        members(self, name)
        for member in dataclasses.fields(self):
            value = getattr(self, member.name)
            check = self._CHECKS.get(f"{name}.{member.name}") or self._CHECKS.get(member.name)
            if check is not None and value is not None:
                check(f"{name}.{member.name}", value)
        for option, keep in self._KEPT.items():
            value = getattr(self, option)
            if value is not None:
                object.__setattr__(self, option, keep(value))
        refuse_first(self._conflicts())

    def _conflicts(self) -> Iterable[Conflict]:
        """Return pairs: whether the struct has an invalid combination of options, and the error message about it."""
        return ()
