"""Changes to jsii, which cdk8s uses to run JavaScript in Node.js.

With these changes, jsii starts Node.js only if the Python program needs JavaScript, and starts one process instead of
two. The environment variable ``GPU_CONSTRUCTS_KERNEL`` selects another behavior. With ``node``, jsii starts Node.js at
the import of cdk8s. With ``stock``, jsii stays unchanged.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import Any

from gpu_constructs.tree.late_modules import check_plain_types_first, import_late, import_typeguard_alone
from gpu_constructs.tree.node import require_node

RELEASES = frozenset({"1.142.0"})
"""Releases of jsii that the tests cover. The library does not change other releases of jsii."""
_LINKS = "NODE_PRESERVE_SYMLINKS"
_ENTRY = Path(__file__).with_name("one_process.js")


def change_jsii_before_cdk8s() -> None:
    """Change how jsii starts Node.js: as one process, and by default only when the program needs JavaScript.

    The change takes effect only if the program imports this package before cdk8s.
    """
    if "constructs" not in sys.modules:
        sys.meta_path.insert(0, _BeforeConstructs())


class _BeforeConstructs:
    """An import hook that changes jsii in two steps.

    At the import of jsii, the hook puts placeholders in place of some modules that jsii imports. Just before the first
    import of the library ``constructs``, the hook changes how jsii starts Node.js.
    """

    def find_spec(self, fullname: str, path: object = None, target: object = None) -> None:
        wanted = os.environ.get("GPU_CONSTRUCTS_KERNEL", "")
        if fullname == "jsii" and wanted != "stock":
            import_late()
        if fullname == "constructs":
            _change_jsii(wanted)
            sys.meta_path.remove(self)


def _change_jsii(wanted: str) -> None:
    can_change = wanted != "stock" and "JSII_RUNTIME" not in os.environ and os.name == "posix" and _is_covered()
    if can_change:
        import_typeguard_alone()
        check_plain_types_first()
        _use_one_process()
    if can_change and wanted != "node":
        _start_node_late()
    else:
        require_node()


def _is_covered() -> bool:
    from jsii.__meta__ import __jsii_runtime_version__ as release

    return release in RELEASES


def _use_one_process() -> None:
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


def _start_node_late() -> None:
    from jsii import _runtime

    from gpu_constructs.tree.deferred import DeferredProvider

    _runtime.kernel.provider = DeferredProvider()
