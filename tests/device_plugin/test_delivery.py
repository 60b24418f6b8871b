"""The file and the environment of the pods of each configuration."""

import dataclasses
from functools import partial

import pytest
import yaml
from installed import DAEMON, LABELER, PLAIN, PLUGIN, container, environment, manifests, pod, variables

import refusals
from gpu_constructs import (
    Configs,
    Flags,
    Kubernetes,
    PluginConfig,
    PluginFlags,
    Sharing,
    Talos,
)
from tables import beside

TALOS = Flags(
    device_discovery_strategy="nvml",
    fail_on_init_error=False,
    mps_root="/run/mps",
    plugin=PluginFlags(device_list_strategy="envvar"),
)
MPS = PluginConfig(sharing=Sharing.mps(replicas=4))
MIG = PluginConfig(flags=Flags(mig_strategy="single"))


def strategies(*listed):
    return PluginConfig(flags=Flags(plugin=PluginFlags(device_list_strategy=listed)))


CDI, VOLUMES = strategies("cdi-cri"), strategies("envvar", "volume-mounts")


def managed(**configs):
    return Configs.managed(configs, default=next(iter(configs)))


refusal = partial(refusals.refusal, manifests)


def files(config, **given):
    return {name: yaml.safe_load(text) for name, text in manifests(config, **given)["config"]["data"].items()}


def checksums(config, child=PLUGIN):
    return manifests(config)[child]["spec"]["template"]["metadata"]["annotations"]


def test_the_name_of_a_single_configuration_has_no_effect():
    assert manifests(Configs.named({"Only_one": MIG}, default="Only_one")) == manifests(MIG)


def test_a_changed_file_restarts_the_pods_that_read_it():
    before, after = (Configs.named({"a": PLAIN, "b": config}, default="a") for config in (MIG, MPS))
    assert checksums(before) == checksums(after)
    assert checksums(before, "daemonset-b") != checksums(after, "daemonset-b")
    before, after = (checksums(managed(Plain_1=PLAIN, b=config)) for config in (MIG, MPS))
    assert before.keys() == {"plain-1.gpu-constructs/config-sha256", "b.gpu-constructs/config-sha256"}
    assert {key for key in before if before[key] != after[key]} == {"b.gpu-constructs/config-sha256"}
    assert checksums(managed(a=PLAIN)) != checksums(managed(a=PLAIN, b=PLAIN))
    assert checksums(Configs.external("theirs")) is None


def test_a_default_is_a_variable_unless_a_file_of_the_pod_sets_it(rows):
    assert environment(PLAIN, defaults=TALOS) == {
        "DEVICE_DISCOVERY_STRATEGY": "nvml",
        "FAIL_ON_INIT_ERROR": "false",
        "DEVICE_LIST_STRATEGY": "envvar",
    }
    assert files(PLAIN, defaults=TALOS) == {"config.yaml": {"version": "v1"}}
    for stating, variable, moved in rows:
        assert variable not in environment(stating, defaults=TALOS)
        assert files(stating, defaults=TALOS)["config.yaml"] == stating.document()
        several = managed(silent=PLAIN, stating=stating)
        assert variable not in environment(several, defaults=TALOS)
        silent = files(several, defaults=TALOS)["silent"]["flags"]
        assert list({**silent, **silent.get("plugin", {})}.values())[-1] == moved
        assert files(several, defaults=TALOS)["stating"] == stating.document()
        # Each named configuration has its own pods.
        assert variable in environment(Configs.named({"a": PLAIN, "b": stating}, default="a"), defaults=TALOS)


EVERY_FLAG = beside(__file__, "delivery")["every_flag"]


def test_flags_of_an_external_config_map_are_variables_of_the_programs_that_read_them(snapshot):
    config = Configs.external("theirs", flags=EVERY_FLAG)
    assert [environment(config), variables(container(LABELER, config, defaults=TALOS))] == snapshot
    external = Configs.external("theirs", flags=dataclasses.replace(EVERY_FLAG, mps_root=None), may_use=["mps"])
    assert variables(container(DAEMON, external)) == {**variables(container(DAEMON, MPS)), "MIG_STRATEGY": "none"}


@pytest.mark.parametrize("use", ["cdi", "volume-mounts"])
def test_no_variable_overrides_the_device_list_strategy_of_external_files(use):
    given = {"platform": Talos("1.13"), "defaults": TALOS}
    assert environment(Configs.external("theirs"), **given)["DEVICE_LIST_STRATEGY"] == "envvar"
    assert "DEVICE_LIST_STRATEGY" not in environment(Configs.external("theirs", may_use=[use]), **given)
    stated = Configs.external("theirs", may_use=[use], flags=CDI.flags)
    assert environment(stated, **given)["DEVICE_LIST_STRATEGY"] == "cdi-cri"


# --- roots ----------------------------------------------------------------------------------------------------


def driver_root(config):
    return [one["hostPath"]["path"] for one in pod(PLUGIN, config)["volumes"] if one["name"] == "driver-root"]


def test_external_files_get_no_driver_root_by_default(rows):
    unseen = Configs.external("theirs", may_use=["cdi"])
    assert (driver_root(unseen), environment(unseen)) == ([], {})
    for (told,) in rows:
        assert (driver_root(told), environment(told)["NVIDIA_DRIVER_ROOT"]) == (["/"], "/")


def test_mps_uses_the_root_of_its_daemon_unless_the_file_sets_one():
    stated = PluginConfig(flags=Flags(mps_root="/var/mps"), sharing=MPS.sharing)
    for config, root, variable in ((MPS, "/run/mps", "/run/mps"), (stated, "/var/mps", None)):
        volumes = {one["name"]: one.get("hostPath") for one in pod(PLUGIN, config, defaults=TALOS)["volumes"]}
        assert volumes["mps-root"]["path"] == root
        assert environment(config, defaults=TALOS).get("MPS_ROOT") == variable
    assert "MPS_ROOT" not in environment(PLAIN, defaults=TALOS)


def test_all_files_of_one_pod_must_have_the_same_paths(rows):
    for member, first, second, got in rows:
        configs = {"a": PluginConfig(flags=first), "b": PluginConfig(flags=second)}
        assert refusal(managed(**configs)) == (
            f"flags.{member} must be the same in every configuration of Configs.managed, because its pods have one "
            f"mount, got {got}. Use Configs.named"
        )
        assert manifests(Configs.named(configs, default="a"))


# --- what cannot work -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("config", "what"),
    [
        (CDI, "device_list_strategy 'cdi-cri'"),
        (managed(a=PLAIN, b=CDI), "device_list_strategy 'cdi-cri'"),
        (Configs.external("theirs", flags=strategies("envvar", "cdi-cri").flags), "device_list_strategy 'cdi-cri'"),
        (Configs.external("theirs", may_use=["cdi"]), "configs.may_use 'cdi'"),
    ],
    ids=["one", "managed", "flags", "may_use"],
)
def test_cdi_is_rejected_on_platforms_without_the_paths_of_its_specs(config, what):
    for release in ("1.10", "1.12"):
        assert refusal(config, platform=Talos(release), defaults=TALOS) == (
            f"{what} cannot work on Talos {release}: a CDI spec would name host paths that exist only from Talos 1.13 "
            "on. Use 'envvar'"
        )


def test_a_strategy_that_the_kubelet_or_toolkit_does_not_support_is_rejected():
    assert refusal(CDI, platform=Kubernetes("1.27")) == (
        "device_list_strategy 'cdi-cri' cannot work on Kubernetes 1.27: the kubelet passes CDI devices only from "
        "Kubernetes 1.28 on. Use 'cdi-annotations'"
    )
    assert manifests(CDI, platform=Kubernetes("1.28"))
    assert manifests(strategies("cdi-annotations"), platform=Kubernetes("1.27"))
    for release in ("1.10", "1.14"):
        assert refusal(VOLUMES, platform=Talos(release), defaults=TALOS) == (
            f"device_list_strategy 'volume-mounts' cannot work on Talos {release}: the container toolkit there does "
            "not accept devices as volume mounts (accept-nvidia-visible-devices-as-volume-mounts is false). Use "
            "'envvar'"
        )
