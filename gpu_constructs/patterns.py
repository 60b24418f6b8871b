"""The function ``regex``, which returns a regular expression that Python compiles at its first use.

To compile all expressions of this library at the import takes a tenth of the import time. A program uses few of them.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from re import compile as regex
else:

    class regex:
        """A replacement for ``re.compile``."""

        def __init__(self, pattern: str, flags: int = 0) -> None:
            self.pattern, self._flags = pattern, flags

        def __getattr__(self, name: str) -> Any:
            made = getattr(re.compile(self.pattern, self._flags), name)
            setattr(self, name, made)
            return made


__all__ = ["regex"]
