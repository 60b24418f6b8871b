from datetime import timedelta

import pytest
import yaml

from gpu_constructs import (
    Configs,
    Flags,
    GfdFlags,
    GpuConstructsError,
    Imex,
    Kubernetes,
    PluginConfig,
    PluginFlags,
    Sharing,
    Talos,
)
from gpu_constructs._config_map import sha256
from gpu_constructs.device_plugin.delivery import Defaults, deliveries, uses_of

LABEL = "nvidia.com/device-plugin.config"
NOTHING = Defaults(
    device_list_strategy=(), device_discovery_strategy=None, fail_on_init_error=None, mps_root="/run/nvidia/mps"
)
TALOS = Defaults(
    device_list_strategy=("envvar",), device_discovery_strategy="nvml", fail_on_init_error=False, mps_root="/run/mps"
)
PLAIN = PluginConfig()
MPS = PluginConfig(sharing=Sharing.mps(replicas=4))
MIG = PluginConfig(flags=Flags(mig_strategy="single"))
CDI = PluginConfig(flags=Flags(plugin=PluginFlags(device_list_strategy="cdi-cri")))
FAILING = PluginConfig(flags=Flags(fail_on_init_error=True))


def delivered(config, *, platform=Kubernetes(), defaults=NOTHING):  # noqa: B008
    configs = Configs.named({"default": config}, default="default") if isinstance(config, PluginConfig) else config
    return deliveries(configs, name="plugin", platform=platform, defaults=defaults)


def only(config, **given):
    (delivery,) = delivered(config, **given)
    return delivery


def managed(**configs):
    return Configs.managed(configs, default=next(iter(configs)))


def refusal(config, **given):
    with pytest.raises(GpuConstructsError) as refused:
        delivered(config, **given)
    return str(refused.value)


def files(delivery):
    return {name: yaml.safe_load(text) for name, text in delivery.data.items()}


# --- which pods read what -------------------------------------------------------------------------------------


def test_one_configuration_is_one_file_without_anything_to_choose_it():
    delivery = only(MIG)
    assert (delivery.suffix, delivery.node_expressions) == ("", [])
    assert (delivery.config_map, list(delivery.data)) == ("plugin-config", ["config.yaml"])
    assert delivery.config_manager is None
    assert delivery.volumes() == [{"name": "config", "configMap": {"name": "plugin-config"}}]
    assert delivery.mounts() == [{"name": "config", "mountPath": "/config", "readOnly": True}]


def test_a_single_named_configuration_is_the_same_whatever_its_name():
    assert only(Configs.named({"Only_one": MIG}, default="Only_one")) == only(MIG)


def test_each_named_configuration_has_pods_of_its_own_and_the_default_comes_first():
    found = delivered(Configs.named({"B_1": MIG, "plain": PLAIN, "c": MPS}, default="plain"))
    assert [(one.suffix, one.config_map) for one in found] == [
        ("", "plugin-config"),
        ("-b-1", "plugin-config-b-1"),
        ("-c", "plugin-config-c"),
    ]
    assert [list(one.data) for one in found] == [["config.yaml"]] * 3
    assert [one.config_manager for one in found] == [None] * 3


def test_the_default_serves_every_node_that_no_other_configuration_names():
    default, *others = delivered(Configs.named({"a": PLAIN, "b": MIG, "c": MPS}, default="b"))
    assert default.node_expressions == [{"key": LABEL, "operator": "NotIn", "values": ["a", "c"]}]
    assert [one.node_expressions for one in others] == [
        [{"key": LABEL, "operator": "In", "values": ["a"]}],
        [{"key": LABEL, "operator": "In", "values": ["c"]}],
    ]


def test_config_manager_gets_every_file_under_its_name_and_one_set_of_pods():
    delivery = only(managed(plain=PLAIN, mig=MIG))
    assert list(delivery.data) == ["plain", "mig"]
    assert (delivery.suffix, delivery.node_expressions) == ("", ())
    assert delivery.config_manager == {
        "CONFIG_FILE_DST": "/config/config.yaml",
        "CONFIG_FILE_SRCDIR": "/available-configs",
        "DEFAULT_CONFIG": "plain",
        "FALLBACK_STRATEGIES": "",
        "NODE_LABEL": LABEL,
    }


def test_the_file_that_config_manager_links_lies_in_a_directory_it_may_write():
    delivery = only(managed(a=PLAIN, b=MIG))
    assert delivery.volumes() == [
        {"name": "available-configs", "configMap": {"name": "plugin-config"}},
        {"name": "config", "emptyDir": {}},
    ]
    files_beside_it = {"name": "available-configs", "mountPath": "/available-configs", "readOnly": True}
    assert delivery.mounts() == [{"name": "config", "mountPath": "/config", "readOnly": True}, files_beside_it]
    assert delivery.mounts(writes=True) == [
        {"name": "config", "mountPath": "/config", "readOnly": None},
        files_beside_it,
    ]


def test_an_external_config_map_is_named_and_neither_made_nor_checked_for_changes():
    delivery = only(Configs.external("theirs", default="a", fallback_strategies=["empty", "single"]))
    assert delivery.config_map == "theirs"
    assert delivery.manifest({"namespace": "gpu"}) is None
    assert delivery.checksum == {}
    assert delivery.config_manager["DEFAULT_CONFIG"] == "a"
    assert delivery.config_manager["FALLBACK_STRATEGIES"] == "empty,single"


def test_the_config_map_takes_everything_but_its_name_from_the_plugin():
    manifest = only(MIG).manifest({"name": "plugin", "namespace": "gpu", "labels": {"a": "b"}})
    assert manifest["metadata"] == {"name": "plugin-config", "namespace": "gpu", "labels": {"a": "b"}}
    assert yaml.safe_load(manifest["data"]["config.yaml"])["flags"] == {"migStrategy": "single"}


# --- checksums ------------------------------------------------------------------------------------------------


def test_a_file_restarts_its_own_pods_only():
    before = delivered(Configs.named({"a": PLAIN, "b": MIG}, default="a"))
    after = delivered(Configs.named({"a": PLAIN, "b": MPS}, default="a"))
    assert before[0].checksum == after[0].checksum == {"gpu-constructs/config-sha256": sha256("version: v1\n")}
    assert before[1].checksum.keys() == after[1].checksum.keys() == {"gpu-constructs/config-sha256"}
    assert before[1].checksum != after[1].checksum


def test_several_files_of_one_pod_have_a_checksum_each_which_says_which_one_changed():
    before = only(managed(Plain_1=PLAIN, b=MIG)).checksum
    after = only(managed(Plain_1=PLAIN, b=MPS)).checksum
    assert before.keys() == {"plain-1.gpu-constructs/config-sha256", "b.gpu-constructs/config-sha256"}
    assert {key for key in before if before[key] != after[key]} == {"b.gpu-constructs/config-sha256"}


def test_a_further_file_restarts_the_pods_of_config_manager():
    assert only(managed(a=PLAIN)).checksum != only(managed(a=PLAIN, b=PLAIN)).checksum


# --- settings have one place ----------------------------------------------------------------------------------


def test_what_no_file_states_is_a_variable_where_the_platform_needs_it():
    delivery = only(PLAIN, platform=Talos(), defaults=TALOS)
    assert files(delivery) == {"config.yaml": {"version": "v1"}}
    assert delivery.env == {
        "DEVICE_DISCOVERY_STRATEGY": "nvml",
        "FAIL_ON_INIT_ERROR": "false",
        "DEVICE_LIST_STRATEGY": "envvar",
    }


def test_what_nobody_states_is_left_to_the_programs():
    assert only(PLAIN).env == {}


@pytest.mark.parametrize(
    ("flags", "variable", "path"),
    [
        (Flags(device_discovery_strategy="auto"), "DEVICE_DISCOVERY_STRATEGY", ["deviceDiscoveryStrategy"]),
        (Flags(fail_on_init_error=True), "FAIL_ON_INIT_ERROR", ["failOnInitError"]),
        (
            Flags(plugin=PluginFlags(device_list_strategy="volume-mounts")),
            "DEVICE_LIST_STRATEGY",
            ["plugin", "deviceListStrategy"],
        ),
    ],
    ids=["discovery", "fail_on_init_error", "device_list_strategy"],
)
def test_what_the_file_states_is_no_variable(flags, variable, path):
    delivery = only(PluginConfig(flags=flags), defaults=TALOS)
    assert variable not in delivery.env
    assert len(delivery.env) == 2
    value = files(delivery)["config.yaml"]["flags"]
    for key in path:
        value = value[key]
    assert value in ("auto", True, "volume-mounts")


@pytest.mark.parametrize(
    ("stating", "variable", "moved"),
    [
        (PluginConfig(flags=Flags(device_discovery_strategy="auto")), "DEVICE_DISCOVERY_STRATEGY", "nvml"),
        (FAILING, "FAIL_ON_INIT_ERROR", False),
        (
            PluginConfig(flags=Flags(plugin=PluginFlags(device_list_strategy="volume-mounts"))),
            "DEVICE_LIST_STRATEGY",
            ["envvar"],
        ),
    ],
    ids=["discovery", "fail_on_init_error", "device_list_strategy"],
)
def test_as_soon_as_one_file_of_a_pod_states_it_the_default_moves_into_the_others(stating, variable, moved):
    delivery = only(managed(silent=PLAIN, stating=stating), defaults=TALOS)
    assert variable not in delivery.env
    silent = files(delivery)["silent"]["flags"]
    assert list({**silent, **silent.get("plugin", {})}.values())[-1] == moved
    assert delivery.data["stating"] == stating.to_yaml()


def test_named_configurations_settle_each_for_itself():
    plain, failing = delivered(
        Configs.named({"plain": PLAIN, "failing": FAILING}, default="plain"), platform=Talos(), defaults=TALOS
    )
    assert plain.env["FAIL_ON_INIT_ERROR"] == "false"
    assert "FAIL_ON_INIT_ERROR" not in failing.env
    assert files(plain)["config.yaml"] == {"version": "v1"}


EVERY_FLAG = Flags(
    mig_strategy="none",
    fail_on_init_error=True,
    mps_root="/mps",
    nvidia_driver_root="/driver",
    nvidia_dev_root="/dev-root",
    gdrcopy_enabled=False,
    gds_enabled=True,
    mofed_enabled=False,
    use_node_feature_api=True,
    device_discovery_strategy="nvml",
    plugin=PluginFlags(
        pass_device_specs=False,
        device_list_strategy=["envvar", "cdi-annotations"],
        device_id_strategy="index",
        cdi_annotation_prefix="cdi.example/",
        nvidia_ctk_path="/bin/nvidia-ctk",
        container_driver_root="/root-of-driver",
        shared_devices_allocation_policy="packed",
    ),
    gfd=GfdFlags(
        oneshot=False,
        no_timestamp=True,
        sleep_interval=timedelta(minutes=5),
        output_file="/tmp/gfd",
        machine_type_file="/sys/machine",
    ),
)


def test_flags_beside_an_external_config_map_override_its_files_as_variables():
    assert only(Configs.external("theirs", flags=EVERY_FLAG)).env == {
        "MIG_STRATEGY": "none",
        "FAIL_ON_INIT_ERROR": "true",
        "MPS_ROOT": "/mps",
        "NVIDIA_DRIVER_ROOT": "/driver",
        "NVIDIA_DEV_ROOT": "/dev-root",
        "GDRCOPY_ENABLED": "false",
        "GDS_ENABLED": "true",
        "MOFED_ENABLED": "false",
        "DEVICE_DISCOVERY_STRATEGY": "nvml",
        "PASS_DEVICE_SPECS": "false",
        "DEVICE_LIST_STRATEGY": "envvar,cdi-annotations",
        "DEVICE_ID_STRATEGY": "index",
        "CDI_ANNOTATION_PREFIX": "cdi.example/",
        "NVIDIA_CDI_HOOK_PATH": "/bin/nvidia-ctk",
        "DRIVER_ROOT_CTR_PATH": "/root-of-driver",
        "SHARED_DEVICES_ALLOCATION_POLICY": "packed",
        "GFD_ONESHOT": "false",
        "GFD_NO_TIMESTAMP": "true",
        "GFD_SLEEP_INTERVAL": "300s",
        "GFD_OUTPUT_FILE": "/tmp/gfd",
        "GFD_MACHINE_TYPE_FILE": "/sys/machine",
    }


def test_each_program_reads_the_variables_of_its_own_sections():
    delivery = only(Configs.external("theirs", flags=EVERY_FLAG))
    assert delivery.variables(GfdFlags, besides=["MIG_STRATEGY"]).keys() == {
        "MIG_STRATEGY",
        "GFD_ONESHOT",
        "GFD_NO_TIMESTAMP",
        "GFD_SLEEP_INTERVAL",
        "GFD_OUTPUT_FILE",
        "GFD_MACHINE_TYPE_FILE",
    }
    of_plugin = delivery.variables(Flags, PluginFlags).keys()
    assert of_plugin == {name for name in delivery.env if not name.startswith("GFD_")}
    assert delivery.variables(besides=["MIG_STRATEGY"]) == {"MIG_STRATEGY": "none"}


def test_no_variable_is_ever_empty():
    for delivery in (
        only(PLAIN, platform=Talos(), defaults=TALOS),
        only(PLAIN),
        only(Configs.external("theirs", flags=EVERY_FLAG)),
        only(CDI, platform=Talos("1.13"), defaults=TALOS),
    ):
        assert all(delivery.env.values())


@pytest.mark.parametrize("use", ["cdi", "volume-mounts"])
def test_external_files_that_may_choose_how_devices_are_handed_over_are_not_overridden(use):
    platform, told = Talos("1.13"), "DEVICE_LIST_STRATEGY"
    assert only(Configs.external("theirs"), platform=platform, defaults=TALOS).env[told] == "envvar"
    assert told not in only(Configs.external("theirs", may_use=[use]), platform=platform, defaults=TALOS).env
    flags = Flags(plugin=PluginFlags(device_list_strategy="cdi-cri"))
    stated = Configs.external("theirs", may_use=[use], flags=flags)
    assert only(stated, platform=platform, defaults=TALOS).env[told] == "cdi-cri"


# --- what is used ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("config", "uses"),
    [
        (PLAIN, set()),
        (PluginConfig(sharing=Sharing.time_slicing(replicas=2)), set()),
        (MPS, {"mps"}),
        (MIG, {"mig"}),
        (PluginConfig(flags=Flags(mig_strategy="mixed")), {"mig"}),
        (CDI, {"cdi", "cdi-cri"}),
        (PluginConfig(flags=Flags(plugin=PluginFlags(device_list_strategy="cdi-annotations"))), {"cdi"}),
        (
            PluginConfig(flags=Flags(plugin=PluginFlags(device_list_strategy=["envvar", "volume-mounts"]))),
            {"volume-mounts"},
        ),
        (PluginConfig(flags=Flags(plugin=PluginFlags(pass_device_specs=True))), {"pass-device-specs"}),
        (PluginConfig(flags=Flags(plugin=PluginFlags(pass_device_specs=False))), set()),
        (PluginConfig(imex=Imex(channel_ids=[0])), {"imex"}),
    ],
)
def test_a_configuration_uses_what_it_turns_on(config, uses):
    assert uses_of(config) == uses
    assert only(config).uses == uses


def test_pods_with_several_files_hold_what_the_most_demanding_one_uses_and_no_other_pods_do():
    assert only(managed(a=PLAIN, b=MIG, c=MPS)).uses == {"mig", "mps"}
    found = delivered(Configs.named({"a": PLAIN, "b": MIG, "c": MPS}, default="a"))
    assert [one.uses for one in found] == [set(), {"mig"}, {"mps"}]


def test_an_external_config_map_uses_what_it_may_and_what_the_flags_turn_on():
    flags = Flags(mig_strategy="mixed")
    assert only(Configs.external("theirs", flags=flags, may_use=["mps"])).uses == {"mig", "mps"}


@pytest.mark.parametrize(
    ("strategies", "uses"),
    [
        (("envvar",), set()),
        (("volume-mounts", "envvar"), {"volume-mounts"}),
        (("cdi-annotations",), {"cdi"}),
        (("envvar", "cdi-cri"), {"cdi", "cdi-cri"}),
    ],
)
def test_a_strategy_of_the_whole_chart_is_used_by_configurations_that_name_none(strategies, uses):
    defaults = Defaults(
        device_list_strategy=strategies, device_discovery_strategy=None, fail_on_init_error=None, mps_root="/mps"
    )
    assert only(PLAIN, defaults=defaults).uses == uses
    stated = PluginConfig(flags=Flags(plugin=PluginFlags(device_list_strategy="envvar")))
    assert only(stated, defaults=defaults).uses == set()
    assert only(managed(plain=PLAIN, stated=stated), defaults=defaults).uses == uses


# --- roots ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("platform", "root"), [(Talos("1.13"), "/usr/local"), (Talos("1.14"), "/usr/local"), (Kubernetes(), "/")], ids=str
)
def test_cdi_names_the_driver_root_of_the_platform(platform, root):
    delivery = only(CDI, platform=platform)
    assert delivery.nvidia_driver_root == delivery.env["NVIDIA_DRIVER_ROOT"] == root
    assert delivery.container_driver_root == "/driver-root"


def test_of_external_files_it_is_not_known_where_they_look_for_the_driver():
    unseen = Configs.external("theirs", may_use=["cdi"])
    assert only(unseen).nvidia_driver_root is None
    assert "NVIDIA_DRIVER_ROOT" not in only(unseen).env
    for told in (
        Configs.external("theirs", may_use=["cdi"], flags=Flags(nvidia_driver_root="/")),
        Configs.external("theirs", flags=CDI.flags),
        Configs.external("theirs", may_use=["cdi"], flags=CDI.flags),
    ):
        assert only(told).nvidia_driver_root == only(told).env["NVIDIA_DRIVER_ROOT"] == "/"


def test_a_driver_root_in_the_file_is_mounted_and_no_variable():
    flags = Flags(nvidia_driver_root="/opt/driver", plugin=PluginFlags(container_driver_root="/there"))
    delivery = only(PluginConfig(flags=flags))
    assert (delivery.nvidia_driver_root, delivery.container_driver_root) == ("/opt/driver", "/there")
    assert "NVIDIA_DRIVER_ROOT" not in delivery.env


def test_without_cdi_or_a_stated_one_there_is_no_driver_root():
    for delivery in (only(PLAIN, platform=Talos("1.13")), only(MPS), only(MIG)):
        assert delivery.nvidia_driver_root is None


def test_mps_takes_the_root_of_its_daemon_unless_the_file_states_one():
    assert only(MPS, defaults=TALOS).env["MPS_ROOT"] == only(MPS, defaults=TALOS).mps_root == "/run/mps"
    stated = only(PluginConfig(flags=Flags(mps_root="/var/mps"), sharing=MPS.sharing), defaults=TALOS)
    assert stated.mps_root == "/var/mps"
    assert "MPS_ROOT" not in stated.env
    assert "MPS_ROOT" not in only(PLAIN, defaults=TALOS).env


@pytest.mark.parametrize(
    ("member", "first", "second", "got"),
    [
        ("nvidia_driver_root", Flags(nvidia_driver_root="/a"), Flags(nvidia_driver_root="/b"), "'/a', '/b'"),
        ("mps_root", Flags(mps_root="/a"), Flags(), "'/a', None"),
        (
            "plugin.container_driver_root",
            Flags(),
            Flags(plugin=PluginFlags(container_driver_root="/b")),
            "None, '/b'",
        ),
    ],
)
def test_pods_with_several_files_have_one_mount_so_the_files_must_agree(member, first, second, got):
    assert refusal(managed(a=PluginConfig(flags=first), b=PluginConfig(flags=second))) == (
        f"flags.{member} must be the same in every configuration of Configs.managed, whose pods have one mount; got "
        f"{got}; use Configs.named"
    )
    named = Configs.named({"a": PluginConfig(flags=first), "b": PluginConfig(flags=second)}, default="a")
    assert len(delivered(named)) == 2


# --- where CDI cannot work ------------------------------------------------------------------------------------


@pytest.mark.parametrize("release", ["1.10", "1.11", "1.12"])
@pytest.mark.parametrize(
    ("config", "what"),
    [
        (CDI, "device_list_strategy 'cdi-cri'"),
        (managed(a=PLAIN, b=CDI), "device_list_strategy 'cdi-cri'"),
        (
            Configs.external("theirs", flags=Flags(plugin=PluginFlags(device_list_strategy=["envvar", "cdi-cri"]))),
            "device_list_strategy 'cdi-cri'",
        ),
        (Configs.external("theirs", may_use=["cdi"]), "configs.may_use 'cdi'"),
    ],
    ids=["one", "managed", "flags", "may_use"],
)
def test_cdi_is_refused_where_the_paths_of_a_spec_do_not_exist(release, config, what):
    assert refusal(config, platform=Talos(release), defaults=TALOS) == (
        f"{what} cannot work on Talos {release}: a CDI spec would name host paths that exist from Talos 1.13 on; use "
        "'envvar'"
    )


def test_cdi_fields_of_the_runtime_interface_are_refused_where_the_kubelet_has_none():
    assert refusal(CDI, platform=Kubernetes("1.27")) == (
        "device_list_strategy 'cdi-cri' cannot work on Kubernetes 1.27: kubelets hand no CDI devices to the runtime "
        "before Kubernetes 1.28; use 'cdi-annotations'"
    )
    assert only(CDI, platform=Kubernetes("1.28")).uses == {"cdi", "cdi-cri"}
    annotations = PluginConfig(flags=Flags(plugin=PluginFlags(device_list_strategy="cdi-annotations")))
    assert only(annotations, platform=Kubernetes("1.27")).uses == {"cdi"}


@pytest.mark.parametrize("release", ["1.10", "1.12", "1.13", "1.14"])
@pytest.mark.parametrize("listed", ["volume-mounts", ["envvar", "volume-mounts"]])
def test_volume_mounts_are_refused_where_the_toolkit_does_not_accept_them(release, listed):
    config = PluginConfig(flags=Flags(plugin=PluginFlags(device_list_strategy=listed)))
    assert only(config).uses == {"volume-mounts"}
    with pytest.raises(GpuConstructsError) as refused:
        only(config, platform=Talos(release), defaults=TALOS)
    assert refused.value.problem == (
        f"device_list_strategy 'volume-mounts' cannot work on Talos {release}: the container toolkit there does not "
        "accept devices as volume mounts (accept-nvidia-visible-devices-as-volume-mounts is false); use 'envvar'"
    )
