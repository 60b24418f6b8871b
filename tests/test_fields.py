from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_constructs import _fields
from gpu_constructs.errors import GpuConstructsError

TEXT_CHECKS = [
    _fields.dns_label,
    _fields.dns_subdomain,
    _fields.environment_name,
    _fields.quantity,
    _fields.image,
    _fields.absolute_path,
]
LETTERS_AND_DIGITS = "abcdefghijklmnopqrstuvwxyz0123456789"


def problem_of(check, *arguments, **keywords):
    """The message a check refuses its arguments with; None when it takes them."""
    try:
        check(*arguments, **keywords)
    except GpuConstructsError as error:
        return str(error)
    return None


def test_a_word_of_the_list_is_taken():
    assert problem_of(_fields.one_of, "scrape", "none", ["ServiceMonitor", "none"]) is None


def test_a_misspelt_word_is_refused_with_the_words_and_the_nearest_of_them():
    assert problem_of(_fields.one_of, "scrape", "ServceMonitor", ["ServiceMonitor", "none"]) == (
        "scrape must be one of 'ServiceMonitor', 'none'; got 'ServceMonitor' (did you mean 'ServiceMonitor'?)"
    )


def test_nothing_is_suggested_for_a_word_that_is_near_to_none():
    assert problem_of(_fields.one_of, "scrape", "xyz", ["ServiceMonitor", "none"]) == (
        "scrape must be one of 'ServiceMonitor', 'none'; got 'xyz'"
    )


@pytest.mark.parametrize(
    ("got", "problem"),
    [
        (2, None),
        (1, "replicas must be at least 2, got 1; use none"),
        (-1, "replicas must be at least 2, got -1; use none"),
        ("5", "replicas must be an int, got '5' (str); use none"),
        (2.5, "replicas must be an int, got 2.5 (float); use none"),
        (2.0, "replicas must be an int, got 2.0 (float); use none"),
        (True, "replicas must be an int, got True (bool); use none"),
        (None, "replicas must be an int, got None (NoneType); use none"),
    ],
)
def test_a_whole_number_is_an_int_of_a_least_size_and_no_bool(got, problem):
    assert problem_of(_fields.whole_number, "replicas", got, minimum=2, way_out="use none") == problem


def test_a_whole_number_without_a_way_out_ends_with_the_value():
    assert problem_of(_fields.whole_number, "watts", 0, minimum=1) == "watts must be at least 1, got 0"


@pytest.mark.parametrize("name", ["a", "0", "nvidia-gpu-operator", "a--b", "x" * 63])
def test_a_dns_label_is_taken(name):
    assert problem_of(_fields.dns_label, "name", name) is None


@pytest.mark.parametrize("name", ["", "-a", "a-", "A", "a.b", "a_b", "ä", "a\n", "٣", "x" * 64])
def test_what_is_no_dns_label_is_refused(name):
    assert problem_of(_fields.dns_label, "name", name) == (
        "name must be a DNS label (a-z, 0-9 and '-', at most 63 characters, letter or digit at both ends); "
        f"got {name!r}"
    )


@given(st.text(alphabet=LETTERS_AND_DIGITS + "-._A\nä", max_size=66))
def test_a_dns_label_is_what_rfc_1123_says(name):
    is_label = (
        0 < len(name) <= 63
        and set(name) <= set(LETTERS_AND_DIGITS + "-")
        and name[0] in LETTERS_AND_DIGITS
        and name[-1] in LETTERS_AND_DIGITS
    )
    assert (problem_of(_fields.dns_label, "name", name) is None) == is_label


@pytest.mark.parametrize("name", ["nvidia", "a.b-c.d", "0.0", ".".join(["x" * 62] * 4)])
def test_a_dns_subdomain_is_taken(name):
    assert problem_of(_fields.dns_subdomain, "name", name) is None


@pytest.mark.parametrize("name", ["", ".", "a.", ".a", "a..b", "a.-b", "A.b", ".".join(["x" * 63] * 4)])
def test_what_is_no_dns_subdomain_is_refused(name):
    assert problem_of(_fields.dns_subdomain, "name", name) == (
        f"name must be a DNS subdomain (DNS labels joined by '.', at most 253 characters); got {name!r}"
    )


@pytest.mark.parametrize(
    "labels", [{}, {"team": "ml"}, {"nvidia.com/gpu.present": "true"}, {"a": ""}, {"A_b.c-d": "A_b.c-d"}]
)
def test_labels_are_taken(labels):
    assert problem_of(_fields.labels, "labels", labels) is None


@pytest.mark.parametrize("key", ["", "a b", "/a", "a/", "a/b/c", "A.com/x", "-a", "a-", "x" * 64])
def test_a_label_key_that_kubernetes_refuses_is_refused(key):
    assert problem_of(_fields.labels, "labels", {key: "x"}) == f"labels has a key that is no label key; got {key!r}"


@pytest.mark.parametrize("value", ["a b", "-a", "a-", "a/b", "a\n", "x" * 64])
def test_a_label_value_that_kubernetes_refuses_is_refused(value):
    assert problem_of(_fields.labels, "labels", {"team": value}) == (
        "labels['team'] must be a label value (letters, digits, '-', '_', '.', at most 63 characters, "
        f"letter or digit at both ends); got {value!r}"
    )


@pytest.mark.parametrize("name", ["PATH", "_x", "a1"])
def test_a_variable_name_is_taken(name):
    assert problem_of(_fields.environment_name, "env", name) is None


@pytest.mark.parametrize("name", ["", "1A", "A-B", "A B", "A=B", "A\n"])
def test_what_a_shell_could_not_read_as_a_variable_is_refused(name):
    assert problem_of(_fields.environment_name, "env", name) == (
        f"env must be a variable name (letters, digits, '_'); got {name!r}"
    )


@pytest.mark.parametrize(
    ("quantity", "number"),
    [
        ("500m", Fraction(1, 2)), ("1.5", Fraction(3, 2)), ("1k", 1000), ("1Ki", 1024), ("2M", 2 * 10**6),
        ("2Mi", 2 * 2**20), ("1G", 10**9), ("1Gi", 2**30), ("1T", 10**12), ("1Ti", 2**40), ("1P", 10**15),
        ("1Pi", 2**50), ("1E", 10**18), ("1Ei", 2**60),
    ],
)  # fmt: skip
def test_a_quantity_says_a_number(quantity, number):
    assert _fields.amount(quantity) == number


@pytest.mark.parametrize("amount", ["0", "1", "500m", "1.5", "16Gi", "64Mi", "2k", "1T"])
def test_a_quantity_is_taken(amount):
    assert problem_of(_fields.quantity, "limit", amount) is None


@pytest.mark.parametrize("amount", ["", "16GB", "16 Gi", "gi", "-1", "1.", "16gi", "1\n"])
def test_what_kubernetes_could_not_read_as_an_amount_is_refused(amount):
    assert problem_of(_fields.quantity, "limit", amount) == (
        f"limit must be a Kubernetes quantity like '500m' or '16Gi'; got {amount!r}"
    )


@pytest.mark.parametrize(
    "image",
    [
        "busybox:1.37.0",
        "docker.io/library/busybox:1.37.0",
        "registry.home:5000/team/app:v1",
        "registry.home:5000/team/app@sha256:" + "0" * 64,
        "app:v1@sha256:" + "0" * 64,
    ],
)
def test_a_pinned_image_is_taken(image):
    assert problem_of(_fields.image, "image", image) is None


@pytest.mark.parametrize("image", ["", "busybox", "busybox:latest", "registry.home:5000/app", ":1", "a:1 ", "a:"])
def test_an_image_that_is_not_pinned_is_refused(image):
    assert problem_of(_fields.image, "image", image) == (
        f"image must be pinned as 'repository:tag' or 'repository@sha256:...', never 'latest'; got {image!r}"
    )


@pytest.mark.parametrize("path", ["/", "/data", "/a..b/c"])
def test_an_absolute_path_is_taken(path):
    assert problem_of(_fields.absolute_path, "path", path) is None


@pytest.mark.parametrize("path", ["", "data", "./data", "/a/../b", "/.."])
def test_a_path_that_is_relative_or_climbs_is_refused(path):
    assert problem_of(_fields.absolute_path, "path", path) == (
        f"path must be an absolute path without '..'; got {path!r}"
    )


@pytest.mark.parametrize("check", TEXT_CHECKS, ids=lambda check: check.__name__)
@given(got=st.text(max_size=80))
def test_whatever_the_text_it_is_taken_or_refused_in_one_line(check, got):
    problem = problem_of(check, "field", got)
    assert problem is None or (problem.startswith("field must be ") and problem.isprintable())


@pytest.mark.parametrize(
    ("annotation", "got"),
    [
        (str, "x"),
        (bool, True),
        (int | None, None),
        (int | None, 5),
        (Literal["a", "b"], "a"),
        (Literal["a", "b"] | None, None),
        (Literal["a", "b"] | Sequence[Literal["a", "b"]] | None, ["a", "b"]),
        (Sequence[str], ()),
        (Sequence[str], ("a",)),
        (Sequence[int] | Mapping[str, int], {"http": 80}),
        (Sequence[int] | Mapping[str, int], [80]),
        (Mapping[str, Mapping[str, str | int]] | None, {"limits": {"cpu": 1, "memory": "1Gi"}}),
    ],
)
def test_a_value_of_the_annotated_type_is_taken(annotation, got):
    assert problem_of(_fields.of_type, "field", got, annotation) is None


@pytest.mark.parametrize(
    ("annotation", "got", "problem"),
    [
        (str, 5, "field must be str; got int: 5"),
        (bool, "yes", "field must be bool; got str: 'yes'"),
        (bool, 1, "field must be bool; got int: 1"),
        (int | None, True, "field must be an int, got True (bool)"),
        (Literal["red", "green"], "gren", "field must be one of 'red', 'green'; got 'gren' (did you mean 'green'?)"),
        (Literal["red", "blue"] | None, "rde", "field must be one of 'red', 'blue'; got 'rde' (did you mean 'red'?)"),
        (Sequence[Literal["a", "b"]], ["a", "c"], "field[1] must be one of 'a', 'b'; got 'c'"),
        (Sequence[str], "abc", "field must be a list, got 'abc' (str)"),
        (Sequence[str] | None, "abc", "field must be a list, got 'abc' (str)"),
        (Sequence[str], ["a", 5], "field[1] must be str; got int: 5"),
        (Mapping[str, str], {"a": 1}, "field['a'] must be str; got int: 1"),
        (Mapping[str, str], {1: "a"}, "field key must be str; got int: 1"),
    ],
)
def test_a_value_of_another_type_is_refused_in_python_words(annotation, got, problem):
    assert problem_of(_fields.of_type, "field", got, annotation) == problem


def test_a_class_is_named_without_its_module():
    assert problem_of(_fields.of_type, "field", 5, Sample) == "field must be Sample; got int: 5"


@dataclass(frozen=True)
class Sample:
    size: int | None = None
    colour: Literal["red", "green"] = "red"


def test_each_member_of_a_struct_is_checked_by_its_annotation():
    assert problem_of(_fields.members, Sample(size=1, colour="green"), "sample") is None
    assert problem_of(_fields.members, Sample(size="1"), "sample").startswith("sample.size must be one of (int, ")
    assert problem_of(_fields.members, Sample(colour="gren"), "sample") == (
        "sample.colour must be one of 'red', 'green'; got 'gren' (did you mean 'green'?)"
    )


def test_each_argument_given_to_a_function_is_checked_by_its_annotation():
    def function(name: str, sizes: Sequence[str] = (), count: int = 1) -> None: ...

    assert problem_of(_fields.arguments, function, {"name": "a"}) is None
    assert problem_of(_fields.arguments, function, {"name": "a", "sizes": [1]}) == "sizes[0] must be str; got int: 1"


def test_plain_whole_numbers_are_left_to_the_check_that_knows_their_limits():
    def function(count: int = 1) -> None: ...

    assert problem_of(_fields.arguments, function, {"count": "many"}) is None
