import dataclasses
import re

import pytest

from gpu_constructs import GpuConstructsError, versions
from gpu_constructs.feature_discovery import nfd_flags
from gpu_constructs.feature_discovery.node_feature_discovery import NfdTopologyUpdater, NodeFeatureDiscovery

OLD, NEW = (versions.DEVICE_PLUGIN[release].node_feature_discovery for release in ("0.18.2", "0.20.0"))
COMPONENTS = ("master", "worker", "gc", "topology_updater")


# kubernetes-sigs/node-feature-discovery@v0.17.3 and @v0.19.0:cmd/*/main.go, but for flags of the logging library
FLAGS = {
    "master": "config deny-label-ns enable-leader-election enable-taints extra-label-ns feature-gates grpc-health "
    "informer-page-size instance kubeconfig label-whitelist metrics nfd-api-parallelism no-publish options port prune "
    "resync-period version",
    "worker": "config feature-gates feature-sources grpc-health kubeconfig label-sources metrics no-owner-refs "
    "no-publish no-publish-features oneshot options owner-refs port version",
    "gc": "gc-interval kubeconfig list-size metrics port version",
    "topology_updater": "api-auth-token-file config grpc-health kubeconfig kubelet-config-uri kubelet-state-dir "
    "metrics no-publish oneshot pods-fingerprint podresources-socket port sleep-interval version watch-namespace",
}
FREE = {
    "master": "informer-page-size kubeconfig",
    "worker": "kubeconfig",
    "gc": "kubeconfig list-size",
    "topology_updater": "api-auth-token-file kubeconfig no-publish",
}
EVERY_FLAG = [(component, flag) for component, flags in FLAGS.items() for flag in flags.split()]


def check(component, arguments, release):
    nfd_flags.check(component, arguments)
    nfd_flags.check_release(component, arguments, release)


def refusal(component, *arguments, release=NEW):
    with pytest.raises(GpuConstructsError) as refused:
        check(component, arguments, release)
    return str(refused.value)


@pytest.mark.parametrize(("component", "flag"), EVERY_FLAG)
def test_every_flag_of_every_program_is_free_or_refused_with_a_member_that_is_there(component, flag):
    if flag in FREE[component].split():
        return check(component, [f"-{flag}=1"], NEW)
    message = refusal(component, f"-{flag}=1")
    assert message.startswith(f"{component}.extra_args[0] must not hold -{flag}; ")
    struct = NodeFeatureDiscovery(topology_updater=NfdTopologyUpdater())
    if "NodeFeatureDiscovery" not in message:
        struct = getattr(struct, component)
    named = re.findall(r"set (\w+)", message.replace("set it in config", "set config"))
    members = {field.name for field in dataclasses.fields(struct)}
    assert set(named) <= members
    assert named or flag in ("oneshot", "prune", "version")


@pytest.mark.parametrize("component", COMPONENTS)
@pytest.mark.parametrize(
    "arguments",
    [["-v=4"], ["--v=4"], ["-v", "4"], ["-logtostderr"], ["-kubeconfig=/k"], ["-vmodule=nfd=3", "-v=1"]],
    ids=" ".join,
)
def test_every_program_logs_as_it_is_told(component, arguments):
    check(component, arguments, OLD)


@pytest.mark.parametrize(
    ("component", "argument"),
    [
        ("master", "-informer-page-size=50"),
        ("gc", "-list-size=50"),
        ("topology_updater", "-no-publish"),
        ("topology_updater", "-api-auth-token-file=/token"),
    ],
)
def test_a_flag_without_a_member_may_be_given_to_its_program_only(component, argument):
    check(component, [argument], NEW)
    others = [other for other in COMPONENTS if other != component]
    assert all("extra_args[0] must" in refusal(other, argument) for other in others)


@pytest.mark.parametrize(
    ("component", "argument", "first"),
    [
        ("master", "-informer-page-size=50", "0.18.0"),
        ("gc", "-list-size=50", "0.18.0"),
        ("worker", "-legacy_stderr_threshold_behavior=false", "0.19.0"),
    ],
)
def test_a_flag_that_came_later_is_refused_with_its_first_release(component, argument, first):
    check(component, [argument], NEW)
    flag = argument.partition("=")[0]
    assert refusal(component, argument, release=OLD) == (
        f"{component}.extra_args[0] {flag} needs Node Feature Discovery {first}, and this is 0.17.3; leave it out or "
        "take a later release of the device plugin"
    )


@pytest.mark.parametrize(
    ("component", "argument", "message"),
    [
        ("master", "-vv=4", "be a flag of nfd-master, which exits on any other; got -vv (did you mean 'v'?)"),
        ("gc", "-feature-gates=A=true", "be a flag of nfd-gc, which exits on any other; got -feature-gates"),
        ("worker", "4", "be a flag like '-v=4' or the value of one; got '4'"),
        ("worker", "", "be a flag like '-v=4' or the value of one; got ''"),
        ("worker", "--", "be a flag like '-v=4' or the value of one; got '--'"),
        ("master", "-port=1", "not hold -port; set port, which the probes and the metrics follow"),
        ("master", "--prune", "not hold -prune; it takes every label of NFD off the nodes"),
        ("master", "-options={}", "not hold -options; set it in config, where it is checked"),
        ("worker", "-oneshot", "not hold -oneshot; the program would end and be restarted for ever"),
        ("worker", "-owner-refs=pod", "not hold -owner-refs; set owner_refs"),
        ("gc", "-grpc-health=1", "be a flag of nfd-gc, which exits on any other; got -grpc-health"),
        ("gc", "-gc-interval=1m", "not hold -gc-interval; set interval"),
        ("topology_updater", "-pods-fingerprint=false", "not hold -pods-fingerprint; set pod_set_fingerprint"),
        ("topology_updater", "-featurerules-controller", "be a flag of nfd-topology-updater, which exits on any other"),
    ],
)
def test_a_flag_with_a_member_or_unknown_to_the_program_is_refused_with_the_way_out(component, argument, message):
    assert refusal(component, argument).startswith(f"{component}.extra_args[0] must {message}")


def test_only_one_value_may_follow_a_flag():
    check("master", ["-v", "4"], NEW)
    assert refusal("master", "-v", "4", "5").startswith("master.extra_args[2] must be a flag like '-v=4'")
    assert refusal("master", "-v=4", "5").startswith("master.extra_args[1] must be a flag like '-v=4'")


def test_the_leader_is_elected_by_replicas_so_that_the_rights_come_with_it():
    assert refusal("master", "-enable-leader-election") == (
        "master.extra_args[0] must not hold -enable-leader-election; set replica_count, which brings it with the "
        "rights it needs"
    )
