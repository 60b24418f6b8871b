"""Functions that adapt the messages of checks to users of ``lint``, who may have only manifests and no Python code."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Sequence

_EXTERNAL = r"(?P<verb>[Dd])eclare (?:it |the label )?(?:with )?External\(app, 'existing', (\w+)=(\[.*?\]|'[^']*')\)"
_WORDS: Sequence[tuple[str, str]] = (
    (", TalosGpuNode(node_labels=...) or GpuNode(labels=...)", ", or name an inventory that has the label"),
    ("Add an NvidiaRuntimeClass", "Add a RuntimeClass with the handler nvidia"),
    ("pass platform=Kubernetes() if", "leave runtimeClassName out if"),
    ("dd a NodeFeatureDiscoveryChart", "dd Node Feature Discovery"),
    ("dd a DevicePluginChart", "dd the device plugin"),
    (" with node_feature_discovery=True", " with Node Feature Discovery"),
    (" with gpu_feature_discovery=True", " with GPU Feature Discovery"),
    ("with DevicePluginChart(sharing=...)", "in the configuration of the device plugin"),
    ("(Sharing.time_slicing, Sharing.mps, MIG)", "(time-slicing, MPS or MIG)"),
    ("Use Sharing.time_slicing", "Use time-slicing"),
    ("declare GpuNode(sharing=...)", "state the sharing of the node in the inventory"),
    (
        "Pass sharing=Sharing.vram_units(..., rename_by_default=True) to the DevicePluginChart or GpuOperator",
        "Set renameByDefault: true in the plugin configuration",
    ),
    (" GpuRequest(vram=...) sets both if the GpuProfile of the workload has sharing=", ""),
    (" GpuRequest(vram=...) computes this number if the GpuProfile has this sharing", ""),
    ("raise ContainerLimits(max=...)", "raise max of the LimitRange"),
    ("with GpuNamespace(limit_range=ContainerLimits(default=...))", "in the LimitRange"),
    ("set run_as_user=... for", "set runAsUser for"),
    ("another GpuNamespace(pod_security=...)", "a namespace with another Pod Security level"),
    ("Leave shared_memory= and volumes", "Leave volumes"),
    (", or use not_a_secret(...) if the value is public", ""),
    ("use Configs.named(...)", "use one plugin with several configurations"),
    ("with node_selector", "with nodeSelector"),
    ("Pass the bridge: GpuOperator(..., bridge=...)", "Set hostPaths.driverInstallDir of the operator to this folder"),
    ("because it has no sharing= but", "because its configuration does not state that"),
    ("Pass the same sharing=, or a PodMapping", "Turn on its mapping of shared GPUs to pods"),
    ("Pass one Sharing to both", "Configure both alike"),
    ("Create it once, and pass it to every construct that needs it", "Keep one of the two"),
    ("Leave default_runtime=True out", "Use another default runtime"),
    ("which this app does not", "which these manifests do not"),
    ("nothing in this app", "nothing in these manifests"),
    ("in this app", "in these manifests"),
    ("of this app", "of these manifests"),
    ("The app needs", "The pods need"),
)
# The first text of a row is part of each message that the pattern matches: most messages need no pattern.
_PATTERNS: Sequence[tuple[str, str, str]] = (
    ("GpuNamespace(chart", r"GpuNamespace\(chart, 'namespace', name=('[^']*')\)", r"the Namespace \1"),
    ("has no RuntimeClass object", r"\bruntime_class (?=')", "runtimeClassName "),
    (
        "fail_requests_greater_than_one=",
        r"pass Sharing\.\w+\(\.\.\., fail_requests_greater_than_one=False\)",
        "set failRequestsGreaterThanOne: false in the plugin configuration",
    ),
    (
        "GpuNamespace(pod_security=",
        r"(Use|Pass) GpuNamespace\(pod_security='(\w+)'\)",
        r"Set its label pod-security.kubernetes.io/enforce to \2",
    ),
    ("GpuNamespace(..., labels=", r"with GpuNamespace\(\.\.\., labels=\{('[^']*'): 'true'\}\)", r"\1: 'true'"),
    ("GpuNamespace(labels=", r"Pass GpuNamespace\(labels=\{([^}]*)\}\)", r"Set the label \1 on the namespace"),
    ("tolerations=[", r"Pass tolerations=\[Toleration\((.*?)\)\]\Z", r"Add a toleration with \1"),
    ("runtime_class=[", r"Pass runtime_class=(\[.*?\])", r"Add all of \1 to the policy"),
)


def claims_absence(message: str) -> bool:
    """Check whether a message states that the user's app does not contain an object.

    For such a message, ``lint`` reports a warning and not an error, because the cluster can contain objects that are
    not among the manifests.
    """
    return "in this app" in message


def for_manifests(message: str) -> str:
    """Return the message of a check, with terms of manifests and command-line options in place of Python code.

    For example, ``in these manifests`` replaces ``in this app``.
    """
    if "External(" in message:
        message = re.sub(_EXTERNAL, _option, message)
    for words, replacement in _WORDS:
        message = message.replace(words, replacement)
    for part, pattern, replacement in _PATTERNS:
        if part in message:
            message = re.sub(pattern, replacement, message)
    return message


def _option(match: re.Match[str]) -> str:
    """Return advice to pass the option ``--external``, in place of advice to declare an ``External`` in Python.

    For example, the advice ``declare it with External(app, 'existing', secrets=['token'])`` becomes
    ``pass --external secrets=token``. If the names, here ``['token']``, are not Python literals, return the advice
    unchanged.

    Args:
        match: Match of the advice in the message.
    """
    verb = "Pass" if match["verb"] == "D" else "pass"
    try:
        names = ast.literal_eval(match[3])
    except (SyntaxError, ValueError):
        return match[0]
    values = [names] if isinstance(names, str) else names
    options = [f"--external {shlex.quote(f'{match[2]}={name}')}" for name in values]
    return f"{verb} {' '.join(options)}"
