"""Start of the JavaScript half of jsii in one Node.js process.

jsii starts two processes: its entry point only relays messages to the process that does the work. With the entry point
``one_process.js``, a message takes about half the time. The environment variable ``GPU_CONSTRUCTS_KERNEL=stock`` keeps
the entry point of jsii.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import Any

RELEASES = frozenset({"1.142.0"})
"""Releases of jsii that the tests cover. With other releases, jsii starts its own entry point."""
_LINKS = "NODE_PRESERVE_SYMLINKS"
_ENTRY = Path(__file__).with_name("one_process.js")


def use_one_process() -> None:
    """Configure jsii to start one Node.js process. This works only if the program imports this package before cdk8s."""
    is_wanted = os.environ.get("GPU_CONSTRUCTS_KERNEL") != "stock" and "JSII_RUNTIME" not in os.environ
    if is_wanted and os.name == "posix" and "constructs" not in sys.modules:
        sys.meta_path.insert(0, _BeforeConstructs())


class _BeforeConstructs:
    """An import hook that changes jsii before the first import of the library ``constructs``, which starts Node.js."""

    def find_spec(self, fullname: str, path: object = None, target: object = None) -> None:
        if fullname == "constructs":
            sys.meta_path.remove(self)
            _change_jsii()


def _change_jsii() -> None:
    from jsii.__meta__ import __jsii_runtime_version__ as release

    if release not in RELEASES:
        return
    from jsii._kernel.providers import process as processes

    node: Any = processes._NodeProcess
    extract, start = node._jsii_runtime, node.start

    def extract_with_entry(process: Any) -> str:
        entry = Path(extract(process)).with_name("one-process.js")
        shutil.copyfile(_ENTRY, entry)
        return str(entry)

    def start_with_links(process: Any) -> None:
        # jsii links its cached packages into a folder. Without the variable, Node.js resolves the links, and does not
        # find the dependencies of the packages.
        before = os.environ.get(_LINKS)
        os.environ[_LINKS] = "1"
        try:
            start(process)
        finally:
            os.environ.pop(_LINKS) if before is None else os.environ.update({_LINKS: before})

    node._jsii_runtime, node.start = extract_with_entry, start_with_links
