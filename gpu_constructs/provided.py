"""What a cluster offers to pods: runtime classes, node labels, namespaces, GPU slots.

Constructs say it of themselves, ``External`` says it of what is installed some other way, and ``synth``
compares it with what the pods of an app ask for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from gpu_constructs.sharing import Sharing


@dataclass(frozen=True, kw_only=True)
class Provided:
    """What one construct adds to the cluster, beyond the objects it emits.

    Attributes:
        node_labels: Labels it publishes on nodes; a trailing ``*`` stands for the rest of the key.
        runtime_classes: RuntimeClass objects that something else creates.
        namespaces: Namespaces that something else creates.
        gpu_resources: Resources it advertises on nodes, with the sharing behind them.
        pod_security_default: The Pod Security level of namespaces that state none, where it is known.
    """

    node_labels: Sequence[str] = ()
    runtime_classes: Sequence[str] = ()
    namespaces: Sequence[str] = ()
    gpu_resources: Mapping[str, Sharing] = field(default_factory=dict)
    pod_security_default: str | None = None


@runtime_checkable
class Provider(Protocol):
    """A construct that says what it provides."""

    provides: Provided
