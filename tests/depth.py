"""How deep properties look: with a few examples in the default run, with all of them among the slow tests."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import settings

is_deep = False
"""Whether the run asks for slow tests; conftest.py sets it before tests are read."""


def at_depth(examples: int, *, quick: int) -> Callable[[Any], Any]:
    """Return a decorator of a property that tries so many examples in a run that asks for slow tests, or else fewer."""

    def decorated(test: Any) -> Any:
        with_examples = settings(max_examples=examples if is_deep else quick)(test)
        return pytest.mark.slow(with_examples) if is_deep else with_examples

    return decorated
