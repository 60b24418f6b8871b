"""A replacement for the connection of jsii to Node.js. It starts Node.js at the first message that needs JavaScript."""

from __future__ import annotations

import atexit
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from jsii._kernel import types
from jsii._kernel.providers.process import ProcessProvider, _NodeProcess, jdefault

from gpu_constructs.tree.cdk8s_model import Model, Unknown
from gpu_constructs.tree.node import require_node

_AT_ONCE = 100
"""Number of messages that Node.js gets at once. The pipe has room for the responses to so many messages."""


def _answered_first(name: str) -> Any:
    """Return a method for ``DeferredProvider`` that answers jsii messages of one type, such as ``create``.

    The method returns the answer of the Python model. If the model cannot answer, the method sends the message to
    Node.js.

    Args:
        name: Name of the method of ``ProcessProvider`` that sends messages of this type to Node.js.
    """

    def send(self: DeferredProvider, request: Any) -> Any:
        return self._answered(request) or getattr(ProcessProvider, name)(self, request)

    return send


class DeferredProvider(ProcessProvider):
    """The connection of jsii to Node.js, in which a Python model answers messages until one of them needs Node.js.

    If the model cannot answer a message, the provider starts Node.js, and sends it the earlier messages that changed
    objects. A response that differs from the answer of the model is an error. All later messages go to Node.js.
    """

    def __init__(self) -> None:
        self._environment, self._folder = dict(os.environ), os.getcwd()
        self._model: Model | None = Model(self._environment)
        self._sent: list[tuple[Any, Any]] = []
        self._node: Any = None
        # Node.js stops at this point of the exit of Python, even if it starts after other exit handlers exist.
        atexit.register(self.close)

    load = _answered_first("load")
    create = _answered_first("create")
    get = _answered_first("get")
    invoke = _answered_first("invoke")
    sinvoke = _answered_first("sinvoke")

    def _answered(self, request: Any) -> Any:
        """Return the answer of the Python model to a message for Node.js. Return None if the model cannot answer."""
        if self._model is None:
            return None
        try:
            response, has_effect = self._model.answer(request)
        except Unknown:
            return None
        if has_effect:
            self._sent.append((request, response))
        return response

    @property
    def _process(self) -> Any:
        if self._node is None:
            require_node()
            self._model = None
            node: Any = _NodeProcess  # jsii does not annotate its methods.
            started = node()
            with self._as_at_import():
                started.start()
            atexit.unregister(started.stop)
            self._node = started
            self._repeat(started)
        return self._node

    @contextmanager
    def _as_at_import(self) -> Iterator[None]:
        """Run the ``with`` block with the environment variables and working folder of the first import of cdk8s.

        Restore the current environment variables and the current working folder afterwards.
        """
        environment, folder = dict(os.environ), os.getcwd()
        if (environment, folder) == (self._environment, self._folder):
            yield
            return
        try:
            _set_environment(self._environment)
            os.chdir(self._folder)
            yield
        finally:
            _set_environment(environment)
            os.chdir(folder)

    def _repeat(self, node: Any) -> None:
        serializer, pipe = node._serializer, node._process.stdin
        for start in range(0, len(self._sent), _AT_ONCE):
            sent = self._sent[start : start + _AT_ONCE]
            texts = [json.dumps(serializer.unstructure(request), default=jdefault) for request, _ in sent]
            pipe.write("".join(f"{text}\n" for text in texts).encode())
            pipe.flush()
            for _, expected in sent:
                answer = node._next_message()
                got = serializer.structure(answer["ok"], type(expected)) if "ok" in answer else answer
                if got != expected and not isinstance(got, types.LoadResponse):
                    raise RuntimeError(
                        f"cdk8s must answer {expected} to a repeated message, got {got}. Set "
                        "GPU_CONSTRUCTS_KERNEL=stock, and report this as a bug of gpu_constructs, with your app"
                    )
        self._sent.clear()

    @property
    def is_started(self) -> bool:
        """Whether Node.js runs."""
        return self._node is not None

    def close(self) -> None:
        """Stop Node.js if it runs."""
        atexit.unregister(self.close)
        if self.is_started:
            self._node.stop()


def _set_environment(wanted: dict[str, str]) -> None:
    for name in os.environ.keys() - wanted.keys():
        del os.environ[name]
    os.environ.update(wanted)
