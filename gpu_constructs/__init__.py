"""cdk8s constructs that set up a Kubernetes cluster for NVIDIA GPU workloads.

The package also exports the classes of cdk8s that most apps need, such as ``App`` and ``Chart``. Import these classes
from this package instead of ``cdk8s``.

cdk8s runs JavaScript with jsii, which starts Node.js. This package changes how jsii starts Node.js. The change takes
effect only if Python imports this package before cdk8s.

The file ``__init__.pyi`` lists all public names. The first access to a public name imports the module that defines it.
"""

import re
from importlib import import_module
from pathlib import Path

from gpu_constructs.tree import kernel, node
from gpu_constructs.tree.garbage import kept_until_exit

_STUB = Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8")
_MODULE_OF = {name: module for module, name in re.findall(r"^from (\S+) import (\w+) as \2$", _STUB, re.MULTILINE)}
__all__ = list(_MODULE_OF)


def __getattr__(name: str) -> object:
    """Return the object with a public name. The first access to the name imports the module that defines the object."""
    if name == "__version__":
        from gpu_constructs.version import version

        return version()
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        with kept_until_exit():
            globals()[name] = getattr(import_module(_MODULE_OF[name]), name)
    except node.NodeMissing as error:
        raise error.with_traceback(None) from None
    return globals()[name]


def __dir__() -> list[str]:
    return [*globals(), *__all__, "__version__"]


node.use_node_from_wheel()
kernel.change_jsii_before_cdk8s()
