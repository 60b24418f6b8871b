"""Checks of values, each raising the house-style error, and option structs, which tables of such checks describe."""

from __future__ import annotations

import dataclasses
import inspect
import re
import sys
import types
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache, partial
from typing import Any, ClassVar, Literal, Union, get_args, get_origin

from gpu_constructs.errors import GpuConstructsError, ShortErrors
from gpu_constructs.errors import did_you_mean as did_you_mean

_DNS_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?\Z")
_QUALIFIED_NAME = re.compile(r"([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?\Z")
_LABEL_VALUE = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?\Z")
_CAPITAL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_MODULE = re.compile(r"\b(?:[a-z_]\w*\.)+(?=[A-Z])")
_BYTES = re.compile(
    r"(?:(?:requests\.|limits\.)?(?:memory|ephemeral-storage|storage|hugepages-.+)|.+/requests\.storage)\Z"
)
_UNITLESS = re.compile(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)m?\Z")
_MEBIBYTE = 2**20
_INT32_MAX = 2**31 - 1
Check = Callable[[str, Any], object]
"""Raises for a value that is not allowed; the first argument is the name of the option."""

Checks = Mapping[str, Check]
Kept = Mapping[str, Callable[[Any], Any]]
Conflict = tuple[object, str]
"""A condition, and what is wrong if it holds."""

FACTORS = {"n": Decimal("1e-9"), "u": Decimal("1e-6"), "m": Decimal("0.001"), "": Decimal(1)} | {
    unit: Decimal(base**power)
    for power, (decimal, binary) in enumerate(
        (("k", "Ki"), ("M", "Mi"), ("G", "Gi"), ("T", "Ti"), ("P", "Pi"), ("E", "Ei")), start=1
    )
    for unit, base in ((decimal, 1000), (binary, 1024))
}


def one_of(field: str, got: object, allowed: Sequence[str]) -> None:
    """Raise unless a word is in the list."""
    if got not in allowed:
        words = ", ".join(map(repr, allowed))
        raise GpuConstructsError(f"{field} must be one of {words}; got {got!r}{did_you_mean(got, allowed)}")


def whole_number(field: str, got: object, *, minimum: int, maximum: int = _INT32_MAX, way_out: str = "") -> None:
    """Raise unless a value is an ``int``, not a bool, within the limits, by default those of Kubernetes."""
    suffix = f"; {way_out}" if way_out else ""
    if isinstance(got, bool) or not isinstance(got, int):
        raise GpuConstructsError(f"{field} must be an int, got {got!r} ({type(got).__name__}){suffix}")
    if got < minimum:
        raise GpuConstructsError(f"{field} must be at least {minimum}, got {got}{suffix}")
    if got > maximum:
        raise GpuConstructsError(f"{field} must be at most {maximum}, got {got}{suffix}")


natural = partial(whole_number, minimum=0)
positive = partial(whole_number, minimum=1)


def matching(pattern: str, meaning: str) -> Callable[[str, str], None]:
    """Return the check of a text for a pattern, which raises with what the text must be."""
    form = re.compile(pattern)

    def check(field: str, got: str) -> None:
        if not form.match(got):
            raise GpuConstructsError(f"{field} must {meaning}; got {got!r}")

    return check


_REPOSITORY = r"(?:[a-z0-9]+(?:[.-][a-z0-9]+)*(?::[0-9]+)?/)?[a-z0-9]+(?:[._/-]+[a-z0-9]+)*"
_TAG = r":(?!latest(?:@|\Z))[A-Za-z0-9_][-A-Za-z0-9_.]{0,127}"
_DIGEST = r"@sha256:[0-9a-f]{64}"

capability = matching(r"(?!CAP_)[A-Z][A-Z_]*\Z", "be a capability like 'SYS_PTRACE', without 'CAP_'")
cron_schedule = matching(
    r"@(?:yearly|annually|monthly|weekly|daily|midnight|hourly|every [0-9]+[a-z0-9]*)\Z|"
    r"[0-9*?/,-]+(?: +[0-9*?/,-]+){2}(?: +(?:[0-9*?/,-]|[A-Za-z]{3})+){2}\Z",
    "have cron's five fields, or be '@daily' or its like",
)
dns_label = matching(
    r"(?=.{1,63}\Z)[a-z0-9]([-a-z0-9]*[a-z0-9])?\Z",
    "be a DNS label (a-z, 0-9 and '-', at most 63 characters, letter or digit at both ends)",
)
environment_name = matching(r"[A-Za-z_][A-Za-z0-9_]*\Z", "be a variable name (letters, digits, '_')")
image = matching(
    rf"{_REPOSITORY}(?:{_TAG}(?:{_DIGEST})?|{_DIGEST})\Z",
    "be pinned as 'repository:tag' or 'repository@sha256:...', never 'latest'",
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
    """Return the check of a list of texts for a pattern, which raises with what the list must be."""
    form = re.compile(pattern)

    def check(field: str, got: Sequence[str]) -> None:
        for item in got:
            if not form.match(item):
                raise GpuConstructsError(f"{field} must {meaning}; got {item!r}")

    return check


def dns_subdomain(field: str, got: str) -> None:
    """Raise unless a name is a DNS subdomain: DNS labels joined by dots."""
    if len(got) > 253 or not all(len(part) <= 63 and _DNS_LABEL.match(part) for part in got.split(".")):
        raise GpuConstructsError(
            f"{field} must be a DNS subdomain (DNS labels joined by '.', at most 253 characters); got {got!r}"
        )


def labels(field: str, got: Mapping[str, str]) -> None:
    """Raise unless Kubernetes takes keys and values as labels."""
    for key, value in got.items():
        if not _QUALIFIED_NAME.match(key):
            raise GpuConstructsError(f"{field} has a key that is not a label key; got {key!r}")
        label_value(f"{field}[{key!r}]", value)


def annotation_keys(field: str, got: Mapping[str, str]) -> None:
    """Raise unless Kubernetes takes the keys as those of annotations, whose values may be any text."""
    labels(field, dict.fromkeys(got, ""))


def label_key(field: str, got: str) -> None:
    """Raise unless Kubernetes takes a text as the key of a label, an annotation or a taint."""
    labels(field, {got: ""})


def is_label_value(text: str) -> bool:
    """Check whether Kubernetes takes a text as the value of a label."""
    return _LABEL_VALUE.match(text) is not None


def amount(quantity: str) -> Decimal:
    """Return what a quantity says as a number."""
    number, unit = re.fullmatch(r"([0-9.]+)(\D*)", quantity).groups()  # type: ignore[union-attr]
    return Decimal(number) * FACTORS[unit]


def lacks_unit(got: object) -> bool:
    """Check whether an amount of bytes is so small that its unit was forgotten: ``4`` or ``400m``."""
    number = _UNITLESS.match(str(got))
    return number is not None and 0 < Decimal(number[1]) < _MEBIBYTE


def without_unit(got: object) -> str:
    """Return what is wrong with such an amount, as the end of a sentence about it."""
    number = str(got).removesuffix("m")
    is_what = "thousandths of a byte" if str(got).endswith("m") else "bytes"
    return f"must have a unit; got {got!r}, which is {number} {is_what}; write '{number}Gi' or '{number}Mi'"


def size(field: str, got: str) -> None:
    """Check for text that Kubernetes would read as an amount of bytes, and for its unit."""
    quantity(field, got)
    if lacks_unit(got):
        raise GpuConstructsError(f"{field} {without_unit(got)}")


def counts_bytes(resource: str) -> bool:
    """Check whether amounts of a resource, or of a key of a quota, are bytes."""
    return bool(_BYTES.match(resource))


def amount_of(field: str, resource: str, got: str) -> None:
    """Check for text that Kubernetes would read as an amount of a resource, with a unit where it is bytes."""
    (size if counts_bytes(resource) else quantity)(field, got)


def port_number(field: str, got: object) -> None:
    """Raise unless a value is a port from 1 to 65535."""
    whole_number(field, got, minimum=1, maximum=65535)


def absolute_path(field: str, got: str) -> None:
    """Raise unless a path starts at the root and has no '..'."""
    if not got.isprintable():
        raise GpuConstructsError(f"{field} must be a path of printable characters; got {got!r}")
    if not got.startswith("/") or ".." in got.split("/"):
        raise GpuConstructsError(f"{field} must be an absolute path without '..'; got {got!r}")


def each(check: Check, field: str, got: Sequence[Any]) -> None:
    """Check each item of a list."""
    for index, item in enumerate(got):
        check(f"{field}[{index}]", item)


def entries(check: Check, key_check: Check | None = None) -> Check:
    """Return the check of a mapping whose values, and keys, have checks."""

    def checked(field: str, got: Mapping[str, Any]) -> None:
        for key, value in got.items():
            if key_check is not None:
                key_check(f"{field} key", key)
            check(f"{field}[{key!r}]", value)

    return checked


def unless(allowed: str, check: Check) -> Check:
    """Return a check that takes one word as well."""

    def checked(field: str, got: str) -> None:
        if got != allowed:
            check(field, got)

    return checked


path_or_nothing = unless("", absolute_path)


def _typeguard_form(annotation: Any) -> Any:
    """Rewrite ``A | B``, which typeguard 2.13 does not know, as ``Union[A, B]``, at every depth."""
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
    """Raise unless an annotation allows a value; the error names Python types and allowed words."""
    alternatives = _alternatives(annotation)
    if _is_left_to_caller(alternatives) or (got is None and type(None) in alternatives):
        return
    words = _allowed_words(alternatives)
    is_plain = any(isinstance(option, type) and isinstance(got, option) for option in alternatives)
    if words and not is_plain and not isinstance(got, list | tuple):
        one_of(field, got, words)
        return
    _refuse_lookalikes(field, got, alternatives)
    sequence = [option for option in alternatives if get_origin(option) is Sequence]
    if isinstance(got, list | tuple) and len(sequence) == 1:
        for index, item in enumerate(got):
            of_type(f"{field}[{index}]", item, *get_args(sequence[0]))
    elif not is_plain:
        _by_typeguard(field, got, annotation)


def _allowed_words(alternatives: tuple[Any, ...]) -> list[str]:
    return [word for option in alternatives if get_origin(option) is Literal for word in get_args(option)]


def _is_left_to_caller(alternatives: tuple[Any, ...]) -> bool:
    """Check whether the caller takes an object of any library: it looks at that, and says more than the type."""
    return any(getattr(option, "_is_protocol", option in (Any, object)) for option in alternatives)


def _refuse_lookalikes(field: str, got: object, alternatives: tuple[Any, ...]) -> None:
    """Raise for what Python takes for a number or a list and Kubernetes does not: a bool, a text."""
    if isinstance(got, bool) and bool not in alternatives and (int in alternatives or float in alternatives):
        number = "a number" if float in alternatives else "an int"
        raise GpuConstructsError(f"{field} must be {number}, got {got!r} (bool)")
    takes_list = any(get_origin(option) is Sequence for option in alternatives)
    if isinstance(got, str | bytes) and takes_list and str not in alternatives:
        raise GpuConstructsError(f"{field} must be a list, got {got!r} ({type(got).__name__})")


def _by_typeguard(field: str, got: object, annotation: Any) -> None:
    # Costs as much to import as half of this library: only for what the lines above could not decide.
    import typeguard

    alternatives = _alternatives(annotation)
    try:
        typeguard.check_type(field, got, _typeguard_form(annotation))
    except TypeError as error:
        message = _MODULE.sub("", str(error).removeprefix("type of ").replace(" instead", ""))
        message = message.replace("NoneType)", "None)")
        shown = "not shown here, since it may hold a secret" if _holds_secrets(alternatives) else repr(got)
        raise GpuConstructsError(f"{message}: {shown}") from None
    for option in alternatives:
        if get_origin(option) is Mapping and isinstance(got, Mapping):
            key_type, value_type = get_args(option)
            for key, value in got.items():
                of_type(f"{field} key", key, key_type)
                of_type(f"{field}[{key!r}]", value, value_type)


def _holds_secrets(alternatives: tuple[Any, ...]) -> bool:
    return any("_IS_SECRET" in vars(option) for option in alternatives if isinstance(option, type))


def snake(name: str) -> str:
    """Return a name as members are called: ``deny_label_ns`` for ``denyLabelNs``."""
    return _CAPITAL.sub("_", name).lower()


@lru_cache(maxsize=1024)
def hint(owner: Any, name: str) -> Any:
    """Return what the annotation of one name means: to ask for all of them at once costs more than most checks."""
    holder = next(each for each in getattr(owner, "__mro__", (owner,)) if name in inspect.get_annotations(each))
    one = types.SimpleNamespace(__annotations__={name: holder.__annotations__[name]})
    return typing.get_type_hints(one, vars(sys.modules[holder.__module__]))[name]


def arguments(function: Any, given: Mapping[str, object]) -> None:
    """Check each keyword given to a function against the function's own annotations.

    Plain ``int`` keywords are left to ``whole_number``, which the function calls with their limits.
    """
    for name, value in given.items():
        if name in function.__annotations__ and hint(function, name) is not int:
            of_type(name, value, hint(function, name))


def members(struct: Any, name: str) -> None:
    """Check each member of an option struct that is not its default against the annotations of its class."""
    for member in dataclasses.fields(struct):
        got = getattr(struct, member.name)
        if got is not member.default:
            of_type(f"{name}.{member.name}", got, hint(type(struct), member.name))  # type: ignore[arg-type]


def options(given: Mapping[str, Any], checks: Mapping[str, Check], prefix: str = "") -> None:
    """Check each option that has a check and a value, in the order of the checks; None is not checked.

    Args:
        given: The options.
        checks: Checks by the name of the option.
        prefix: What stands before the names in messages.
    """
    for name, check in checks.items():
        if given.get(name) is not None:
            check(prefix + name, given[name])


def refuse_first(conflicts: Iterable[Conflict]) -> None:
    """Raise the message of the first condition that holds.

    Raises:
        GpuConstructsError: A condition holds.
    """
    for holds, message in conflicts:
        if holds:
            raise GpuConstructsError(message)


@dataclass(frozen=True, kw_only=True)
class Options(metaclass=ShortErrors):
    """Options that are checked when they are made: types, values, then combinations.

    Attributes:
        _NAME: Name of the struct in messages; by default that of the class, in lower case.
        _CHECKS: Check of each option whose type alone does not say what is allowed; None is not checked.
        _KEPT: What is kept of an option in place of its value, such as a copy; None stays None.
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
        """Return what options that are allowed one by one get wrong together."""
        return ()
