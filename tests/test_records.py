import copy
import dataclasses
import inspect
import pickle
import re
import subprocess
import sys

import pytest

from gpu_constructs import Toleration, records


def made_by(dataclass):
    """Return two classes, of which the second extends the first."""

    @dataclass(frozen=True)
    class Base:
        name: str
        count: int = 1

        def doubled(self):
            return dataclasses.replace(self, count=2 * self.count)

    @dataclass(frozen=True, kw_only=True)
    class Derived(Base):
        labels: list = dataclasses.field(default_factory=list)

        def __post_init__(self):
            if self.count < 0:
                raise ValueError("count")

    class Plain(Derived):
        def __init__(self, name):
            super().__init__(name=name, count=7)

    return Base, Derived, Plain


USES = {
    "the representation": lambda base, derived, plain: repr(derived(name="a")).partition(".<locals>.")[2],
    "a subclass with its own constructor": lambda base, derived, plain: dataclasses.astuple(plain("a")),
    "equality": lambda base, derived, plain: (base("a") == base("a"), base("a") == derived(name="a")),
    "the hash": lambda base, derived, plain: len({base("a"), base("a"), base("b")}),
    "a replaced field": lambda base, derived, plain: base("a", 3).doubled().count,
    "fields of a class": lambda base, derived, plain: [one.name for one in dataclasses.fields(derived)],
    "whether a class has fields": lambda base, derived, plain: [*map(dataclasses.is_dataclass, (base, plain, str))],
    "the signature": lambda base, derived, plain: [str(inspect.signature(one)) for one in (base, derived, plain)],
    "positions in a pattern": lambda base, derived, plain: (base("a"), derived.__match_args__)[1],
    "a wrong keyword": lambda base, derived, plain: base(named="a"),
    "a field that is frozen": lambda base, derived, plain: setattr(base("a"), "name", "b"),
    "a check after the constructor": lambda base, derived, plain: derived(name="a", count=-1),
    "a default of a class": lambda base, derived, plain: base.count,
}


@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_a_class_behaves_as_with_the_decorator_of_the_standard_library(use):
    def result(dataclass):
        try:
            return use(*made_by(dataclass))
        except (AttributeError, TypeError, ValueError) as error:
            return type(error), str(error)

    assert result(records.dataclass) == result(dataclasses.dataclass)


def test_an_object_survives_a_copy_to_another_process():
    text = pickle.dumps([Toleration(key="gpu"), Toleration(key="gpu")])
    program = f"import pickle; a, b = pickle.loads({text!r}); print(a == b, a)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == f"True {Toleration(key='gpu')}\n"
    assert copy.copy(Toleration(key="gpu")) == Toleration(key="gpu")


def test_a_class_that_no_program_uses_has_no_generated_members():
    base, derived, _ = made_by(records.dataclass)
    assert "__eq__" not in vars(base)
    derived(name="a")
    assert "__eq__" in vars(base)


@pytest.mark.skipif(sys.version_info >= (3, 13), reason="the standard library compiles all methods at once")
def test_a_rare_method_is_compiled_at_its_first_call():
    base, derived, _ = made_by(records.dataclass)
    one = derived(name="a")
    before = {name: vars(base)[name] for name in ("__eq__", "__hash__")}
    assert (base("a") == base("a"), hash(base("a")) == hash(base("a")), repr(one) == repr(one)) == (True, True, True)
    after = {name: vars(base)[name] for name in before}
    assert all(after[name] is not before[name] for name in before)
    assert [one.__qualname__ for one in after.values()] == [one.__qualname__ for one in before.values()]


@pytest.mark.parametrize("use", ["fullmatch('AB')['second']", "match('c')", "sub('-', 'xaby')", "pattern", "groups"])
def test_a_late_expression_gives_what_the_standard_library_gives(use):
    given = {"a": records.regex(r"a(?P<second>b)?", re.IGNORECASE), "b": re.compile(r"a(?P<second>b)?", re.IGNORECASE)}
    assert eval(f"a.{use}", given) == eval(f"b.{use}", given)
