"""What a cluster offers to pods: runtime classes, node labels, namespaces, GPU slots.

Constructs say it of themselves, ``External`` says it of what is installed some other way, and ``synth``
compares it with what the pods of an app ask for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol, runtime_checkable

from gpu_constructs.sharing import Sharing

Component = Literal[
    "the device plugin",
    "GPU Feature Discovery",
    "Node Feature Discovery",
    "the DCGM exporter",
    "the GPU Operator",
    "the validation bridge",
]


@dataclass(frozen=True, kw_only=True)
class Provided:
    """What one construct adds to the cluster, beyond the objects it emits.

    Attributes:
        node_labels: Labels it publishes on nodes; a trailing ``*`` stands for the rest of the key.
        runtime_classes: RuntimeClass objects that something else creates.
        namespaces: Namespaces that something else creates.
        gpu_resources: Resources it advertises on nodes, with the sharing behind them.
        pod_security_default: The Pod Security level of namespaces that state none, where it is known.
        components: What it runs on the GPU nodes of the whole cluster.
        is_alone: Whether none of its components may be there a second time, from another construct.
        needs: Components that must be there beside it, each with what to do where they are not.
        fixed_node_labels: Labels that the configuration of nodes gives them, with their values.
        wants_node_labels: Node labels, ``key=value``, that somebody must set for it to work, each with what
            else happens.
        privileged_namespaces: Namespaces whose pods it brings later, host paths and privileged ones among them.
    """

    node_labels: Sequence[str] = ()
    runtime_classes: Sequence[str] = ()
    namespaces: Sequence[str] = ()
    gpu_resources: Mapping[str, Sharing] = field(default_factory=dict)
    pod_security_default: str | None = None
    components: Sequence[Component] = ()
    is_alone: bool = False
    needs: Mapping[Component, str] = field(default_factory=dict)
    fixed_node_labels: Mapping[str, str] = field(default_factory=dict)
    wants_node_labels: Mapping[str, str] = field(default_factory=dict)
    privileged_namespaces: Sequence[str] = ()


@runtime_checkable
class Provider(Protocol):
    """A construct that says what it provides."""

    provides: Provided
