"""Command line flags of NFD's programs that ``extra_args`` may hold: those without a member of their own.

A program that is given a flag it does not know exits, and of a flag given twice the last one counts.

Source: kubernetes-sigs/node-feature-discovery@v0.17.3 and @v0.19.0, cmd; kubernetes/klog@v2.130.1 and @v2.140.0.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from gpu_constructs import _fields
from gpu_constructs.errors import GpuConstructsError
from gpu_constructs.versions import NodeFeatureDiscoveryRelease

_ALWAYS = "0"
LOGGING: Mapping[str, str] = {
    **dict.fromkeys(
        "add_dir_header alsologtostderr log_backtrace_at log_dir log_file log_file_max_size logtostderr one_output "
        "skip_headers skip_log_headers stderrthreshold v vmodule".split(),
        _ALWAYS,
    ),
    "alsologtostderrthreshold": "0.19.0",
    "legacy_stderr_threshold_behavior": "0.19.0",
}
"""Flags of the logging library, each with the first release of NFD that has it."""

_FREE: Mapping[str, Mapping[str, str]] = {
    "master": {"kubeconfig": _ALWAYS, "informer-page-size": "0.18.0"},
    "worker": {"kubeconfig": _ALWAYS},
    "gc": {"kubeconfig": _ALWAYS, "list-size": "0.18.0"},
    "topology_updater": {"kubeconfig": _ALWAYS, "no-publish": _ALWAYS, "api-auth-token-file": _ALWAYS},
}

_IN_ITS_CONFIG = "set it in config, where it is checked"
_PORTS = {
    "port": "set port, which the probes and the metrics follow",
    "metrics": "set metrics_port, which the metrics follow",
}
_HEALTH = {"grpc-health": "set health_port, which the probes follow"}
_ENDS = "the program would end and be restarted for ever"
_TAKEN: Mapping[str, Mapping[str, str]] = {
    "master": {
        **_PORTS,
        **_HEALTH,
        "config": _IN_ITS_CONFIG,
        "deny-label-ns": "set deny_label_ns",
        "enable-leader-election": "set replica_count, which brings it with the rights it needs",
        "enable-taints": "set enable_taints",
        "extra-label-ns": "set extra_label_ns",
        "feature-gates": "set feature_gates of NodeFeatureDiscovery",
        "instance": "set instance",
        "label-whitelist": f"{_IN_ITS_CONFIG}, as labelWhiteList",
        "nfd-api-parallelism": "set nfd_api_parallelism",
        "no-publish": f"{_IN_ITS_CONFIG}, as noPublish",
        "options": _IN_ITS_CONFIG,
        "prune": "it takes every label of NFD off the nodes",
        "resync-period": "set resync_period",
        "version": _ENDS,
    },
    "worker": {
        **_PORTS,
        **_HEALTH,
        "config": _IN_ITS_CONFIG,
        "feature-gates": "set feature_gates of NodeFeatureDiscovery",
        "feature-sources": f"{_IN_ITS_CONFIG}, as core.featureSources",
        "label-sources": f"{_IN_ITS_CONFIG}, as core.labelSources",
        "no-owner-refs": f"{_IN_ITS_CONFIG}, as core.noOwnerRefs, or set owner_refs from release 0.19.0 on",
        "no-publish": f"{_IN_ITS_CONFIG}, as core.noPublish",
        "no-publish-features": f"{_IN_ITS_CONFIG}, as core.noPublishFeatures",
        "oneshot": _ENDS,
        "options": _IN_ITS_CONFIG,
        "owner-refs": "set owner_refs",
        "version": _ENDS,
    },
    "gc": {**_PORTS, "gc-interval": "set interval", "version": _ENDS},
    "topology_updater": {
        **_PORTS,
        **_HEALTH,
        "config": _IN_ITS_CONFIG,
        "kubelet-config-uri": "set kubelet_config_path",
        "kubelet-state-dir": "set kubelet_state_dir",
        "oneshot": _ENDS,
        "pods-fingerprint": "set pod_set_fingerprint",
        "podresources-socket": "set kubelet_pod_resources_sock_path",
        "sleep-interval": "set update_interval",
        "version": _ENDS,
        "watch-namespace": "set watch_namespace",
    },
}


def _flags(field: str, arguments: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Give each flag's field and name; a word without a dash is the value of the flag before it."""
    takes_value = False
    for index, argument in enumerate(arguments):
        where = f"{field}[{index}]"
        if argument.startswith("-") and argument.strip("-"):
            takes_value = "=" not in argument
            yield where, argument.removeprefix("-").removeprefix("-").partition("=")[0]
        elif takes_value:
            takes_value = False
        else:
            raise GpuConstructsError(f"{where} must be a flag like '-v=4' or the value of one; got {argument!r}")


def check(component: str, arguments: Sequence[str]) -> None:
    """Refuse flags that no supported release has, or that have a member of their own.

    Args:
        component: ``master``, ``worker``, ``gc`` or ``topology_updater``.
        arguments: The user's ``extra_args``.
    """
    known = {**LOGGING, **_FREE[component]}
    for where, flag in _flags(f"{component}.extra_args", arguments):
        if flag in _TAKEN[component]:
            raise GpuConstructsError(f"{where} must not hold -{flag}; {_TAKEN[component][flag]}")
        if flag not in known:
            raise GpuConstructsError(
                f"{where} must be a flag of nfd-{component.replace('_', '-')}, which exits on any other; got -{flag}"
                f"{_fields.did_you_mean(flag, known)}"
            )


def check_release(component: str, arguments: Sequence[str], release: NodeFeatureDiscoveryRelease) -> None:
    """Refuse flags that came with a later release."""
    known = {**LOGGING, **_FREE[component]}
    for where, flag in _flags(f"{component}.extra_args", arguments):
        release.require(f"{where} -{flag}", known[flag])
