"""Tests that Python collects garbage less often while this library creates long-lived objects."""

import gc
import subprocess
import sys

import pytest

from gpu_constructs.tree.garbage import collected_rarely
from tables import cases


@pytest.fixture
def threshold():
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)


@cases
@pytest.mark.usefixtures("threshold")
def test_collections_are_rarer_and_then_as_before(given, meanwhile):
    gc.set_threshold(given, 10, 10)
    with collected_rarely():
        assert gc.get_threshold()[0] == meanwhile
    assert gc.get_threshold() == (given, 10, 10)


@pytest.mark.usefixtures("threshold")
def test_an_error_restores_the_threshold():
    gc.set_threshold(700, 10, 10)
    with pytest.raises(KeyError), collected_rarely():
        raise KeyError
    assert gc.get_threshold() == (700, 10, 10)


MADE_MEANWHILE = """
import gc
from gpu_constructs.tree.garbage import collected_rarely
gc.collect()
runs = gc.get_stats()[0]["collections"]
with collected_rarely():
    kept = [[] for _ in range(5_000)]
kept.append([])
print(gc.get_stats()[0]["collections"] - runs, gc.get_freeze_count())
"""


FROZEN = """
import gc
from gpu_constructs.tree.garbage import collected_rarely
gc.freeze()
before = gc.get_freeze_count()
with collected_rarely():
    pass
print(gc.get_freeze_count() / before > 0.9)
"""


def printed(program: str) -> str:
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout


def test_new_objects_start_no_collection():
    assert printed(MADE_MEANWHILE) == "0 0\n"


def test_what_the_user_froze_stays_frozen():
    assert printed(FROZEN) == "True\n"


KEPT = """
import gc
from gpu_constructs.tree.garbage import collected_rarely, kept_until_exit
{before}
frozen = gc.get_freeze_count()
for _ in range(2):
    with kept_until_exit():
        kept = [[] for _ in range(5_000)]
with collected_rarely():
    pass
print(gc.get_freeze_count() - frozen > 9_000, gc.get_threshold() == (700, 10, 10))
"""


@pytest.mark.parametrize(
    ("before", "keeps"),
    [("", True), ("gc.freeze()", False), ("gc.disable()", False)],
    ids=["the default", "frozen by the user", "off"],
)
def test_the_collector_leaves_imported_modules_alone(before, keeps):
    assert printed(KEPT.format(before=f"gc.set_threshold(700, 10, 10)\n{before}")) == f"{keeps} True\n"
