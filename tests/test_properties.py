"""What holds for any input: what is accepted becomes correct manifests, what is refused says so in one line."""

from __future__ import annotations

import dataclasses
import hashlib
import inspect
import math
import re
from collections import OrderedDict
from datetime import timedelta
from enum import StrEnum
from types import MappingProxyType

import pytest
from cdk8s import App, Chart, Testing
from hypothesis import given, settings
from hypothesis import strategies as st

import invariants
import schemas
import talos_structure
from gpu_constructs import (
    AlertThresholds,
    BasicAuth,
    Configs,
    DcgmExporter,
    DebugDump,
    Delivery,
    DevicePlugin,
    DevicePluginChart,
    EnvValue,
    ExporterService,
    Flags,
    GpuAlerts,
    GpuConstructsError,
    GpuDashboard,
    GpuFeatureDiscovery,
    GpuOperator,
    GpuWorkload,
    KernelModule,
    Kubernetes,
    Metric,
    MetricsConfigMap,
    MpsControlDaemon,
    NodeFeatureDiscovery,
    NvidiaGpuExporter,
    PluginConfig,
    PluginFlags,
    PodMapping,
    PowerLimit,
    Probe,
    Relabeling,
    Scrape,
    Sharing,
    Taint,
    Talos,
    TalosGpuNode,
    TalosSchematic,
    Tls,
    Toleration,
    Unverified,
    UpdateStrategy,
    ValidationBridge,
    Volume,
)
from gpu_constructs.observability.metrics import metric_set
from gpu_constructs.operator.delivery import ArgoCd, Flux
from gpu_constructs.pod_specs import containers, pod_specs
from gpu_constructs.workload.backend import Backend
from gpu_constructs.workload.container import Container
from gpu_constructs.workload.gpu_profile import GpuProfile
from gpu_constructs.workload.gpu_request import GpuRequest
from gpu_constructs.workload.scheduling import Scheduling
from gpu_constructs.workload.strategy import Strategy
from gpu_constructs.workload.volume_claim import VolumeClaim

NEWEST = schemas.SUPPORTED_RELEASES[-1]
MACHINE_CONFIG = talos_structure.committed()
INT32 = 2**31 - 1

_LABEL_VALUE = re.compile(r"(([A-Za-z0-9][-A-Za-z0-9_.]{0,61})?[A-Za-z0-9])?\Z")
_DNS_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?\Z")
_IMAGE = re.compile(r"[a-z0-9][a-z0-9._/:-]*(:(?!latest\b)[\w.-]+|@sha256:[0-9a-f]{64})\Z", re.ASCII)
_PROBES = ("startupProbe", "readinessProbe", "livenessProbe")

quickly = settings(max_examples=60)

# --- what must hold ----------------------------------------------------------


def numbers(value):
    if isinstance(value, dict):
        for member in value.values():
            yield from numbers(member)
    elif isinstance(value, list):
        for item in value:
            yield from numbers(item)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield value


def schema_errors(manifest):
    if (manifest["apiVersion"], manifest["kind"]) in schemas.committed_crds():
        return schemas.custom_resource_errors(manifest, schemas.committed_crds())
    return schemas.kubernetes_errors(manifest, NEWEST)


def labels_of(manifest):
    yield manifest["metadata"].get("labels", {})
    template = manifest.get("spec", {}).get("template", {})
    yield template.get("metadata", {}).get("labels", {})
    for spec in pod_specs(manifest):
        yield spec.get("nodeSelector", {})


def assert_pod_is_sound(spec, claims=()):
    mounted = {mount["name"] for container in containers(spec) for mount in container.get("volumeMounts", ())}
    volumes = [volume["name"] for volume in spec.get("volumes", ())] + [claim["metadata"]["name"] for claim in claims]
    assert sorted(mounted) == sorted(volumes)
    for container in containers(spec):
        places = [mount["mountPath"] for mount in container.get("volumeMounts", ())]
        assert sorted(places) == sorted(set(places))
        assert _IMAGE.match(container["image"])
        ports = {value for port in container.get("ports", ()) for value in (port["name"], port["containerPort"])}
        for probe in (container[name] for name in _PROBES if name in container):
            for check in ("httpGet", "tcpSocket"):
                port = probe.get(check, {}).get("port", 1)
                assert isinstance(port, int) or port in ports
        for variable in container.get("env", ()):
            assert ("value" in variable) != ("valueFrom" in variable)


def assert_gpu_pod_holds_what_it_uses(spec):
    """What holds for the pods of the device plugin's image, whatever was asked for."""
    programs = {container["command"][0]: container for container in spec["containers"]}
    assert not (spec.get("hostPID") and spec.get("shareProcessNamespace"))
    asks_the_api = not programs.keys().isdisjoint({"gpu-feature-discovery", "config-manager"})
    assert spec["automountServiceAccountToken"] == ("serviceAccountName" in spec) == asks_the_api
    if "config-manager" in programs:
        assert spec.get("hostPID") or spec["shareProcessNamespace"]
    for container in containers(spec):
        security = container["securityContext"]
        is_mighty = security.get("privileged") or "SYS_ADMIN" in security["capabilities"].get("add", ())
        told = {variable["name"] for variable in container.get("env", ())}
        assert is_mighty or "NVIDIA_MIG_MONITOR_DEVICES" not in told
        assert security.get("privileged") or security["capabilities"]["drop"] == ["ALL"]
        assert all(variable.get("value", "by reference") for variable in container.get("env", ()))


def assert_sound(manifest):
    if manifest["kind"] == "CustomResourceDefinition":  # a constant, tested with its file
        return
    assert schema_errors(manifest) == []
    assert _DNS_LABEL.match(manifest["metadata"]["name"])
    for labels in labels_of(manifest):
        assert all(_LABEL_VALUE.match(value) for value in labels.values())
    assert all(isinstance(number, int) and abs(number) <= INT32 for number in numbers(manifest))
    for spec in pod_specs(manifest):
        assert_pod_is_sound(spec, manifest["spec"].get("volumeClaimTemplates", ()))
    selector = manifest["spec"].get("selector", {}).get("matchLabels") if "spec" in manifest else None
    if selector and "template" in manifest["spec"]:
        assert selector.items() <= manifest["spec"]["template"]["metadata"]["labels"].items()


def assert_machine_config_is_sound(node, patch, schematic):
    documents = schemas.load_yaml(patch.text)
    assert documents == node.machine_config
    for document in documents:
        if document.get("kind", talos_structure.CONFIG) in talos_structure.KINDS:
            assert list(talos_structure.problems(MACHINE_CONFIG[node.platform.line], document)) == []
    first, text = schematic.text.split("\n", 1)
    assert first == f"# Schematic {hashlib.sha256(text.encode()).hexdigest()}"
    assert schemas.load_yaml(text) == [node.schematic.to_dict()]


def assert_values_are_sound(operator, file):
    assert schemas.load_yaml(file.text) == [operator.values]


def make(construct, id, options, scope=None):
    return construct(scope or fresh_scope(construct), id, **options)


def side_files(made):
    return made.side_files() if isinstance(made, GpuOperator | TalosGpuNode) else []


def rendered(construct, id, options):
    made = make(construct, id, options)
    return [*Testing.synth(Chart.of(made)), *side_files(made)]


def assert_all_is_sound(made):
    """Check what a construct emits and the files it writes, and give the manifests."""
    manifests = Testing.synth(Chart.of(made))
    for manifest in manifests:
        assert_sound(manifest)
    if isinstance(made, GpuOperator):
        assert_values_are_sound(made, *side_files(made))
    if isinstance(made, TalosGpuNode):
        assert_machine_config_is_sound(made, *side_files(made))
    return manifests


def assert_accepted_and_sound(construct, options, id="app"):
    made = make(construct, id, options)
    manifests = assert_all_is_sound(made)
    assert manifests or side_files(made)
    identities = [(m["kind"], m["metadata"]["name"]) for m in manifests]
    assert len(set(identities)) == len(identities)


def assert_house_style(error, path=""):
    assert error.path == path
    assert str(error) == (f"{path}: {error.problem}" if path else error.problem)
    assert str(error).splitlines() == [str(error)]
    assert error.problem[0].islower()
    assert not error.problem.endswith(".")


def fresh_scope(construct):
    return App() if issubclass(construct, Chart) else Chart(App(), "gpu")


def assert_sound_or_refused(construct, options, id="app", scope=None):
    """Check one attempt; a refused one leaves the scope free for the next, and so tells that it does."""
    try:
        made = make(construct, id, options, scope)
    except GpuConstructsError as error:
        assert_house_style(error, id if issubclass(construct, Chart) else f"gpu/{id}")
        return False
    assert_all_is_sound(made)
    return True


# --- inputs --------------------------------------------------------------------

names = st.from_regex(r"\A[a-z]([-a-z0-9]{0,14}[a-z0-9])?\Z").filter(lambda name: name != "default")
images = st.sampled_from(
    [
        "app:1",
        "registry.example:5000/team/app:v1.2.3",
        "docker.io/library/app@sha256:" + "0" * 64,
        "docker.io/library/app:1@sha256:" + "f" * 64,
    ]
)
platforms = st.sampled_from([*(Talos(f"1.{minor}") for minor in range(10, 15)), Kubernetes(), Kubernetes("1.27")])
label_values = st.from_regex(r"\A[A-Za-z0-9]([-A-Za-z0-9_.]{0,8}[A-Za-z0-9])?\Z")
label_maps = st.dictionaries(
    st.from_regex(r"\A([a-z]{1,5}\.example/)?[A-Za-z]([-A-Za-z0-9_.]{0,8}[A-Za-z0-9])?\Z"), label_values, max_size=3
)
quantities = st.sampled_from(["128974848", "512Ki", "0.5Gi", "64Mi", "2Gi", "1G", "1Ti"])
effects = st.sampled_from([None, "NoSchedule", "PreferNoSchedule", "NoExecute"])
tolerations = st.lists(
    st.one_of(
        st.builds(Toleration, key=st.just("dedicated"), value=label_values, effect=effects),
        st.builds(Toleration, key=st.sampled_from([None, "gpu"]), operator=st.just("Exists"), effect=effects),
    ),
    max_size=3,
)
resources = st.sampled_from(
    [
        None,
        {},
        {"requests": {"cpu": 1}},
        {"limits": {"memory": "2Gi"}},
        {"requests": {"cpu": "250m", "memory": "1Gi"}, "limits": {"memory": "2Gi", "ephemeral-storage": "10Gi"}},
    ]
)
sharings = st.one_of(
    st.just(Sharing.none()),
    st.builds(Sharing.mps, replicas=st.integers(2, 48), rename_by_default=st.booleans()),
    st.builds(
        Sharing.time_slicing,
        replicas=st.integers(2, 100),
        fail_requests_greater_than_one=st.booleans(),
        rename_by_default=st.booleans(),
    ),
    st.builds(
        Sharing.vram_units,
        vram=st.sampled_from(["16303Mi", "24G", "80Gi"]),
        unit=st.sampled_from(["1Gi", "512Mi", "7Gi"]),
        rename_by_default=st.booleans(),
    ),
)


def is_of_whole_gpus(sharing):
    return sharing.strategy == "mps" or sharing.vram_unit is not None


common = {
    "namespace": names,
    "tolerations": tolerations,
    "node_selector": st.one_of(st.none(), label_maps),
    "image": images,
    "resources": resources,
}
probes = st.one_of(
    st.builds(Probe.http_get, st.just("/health"), port=st.integers(1, 65535), period_seconds=st.integers(1, 600)),
    st.builds(Probe.tcp_socket, st.just("main"), failure_threshold=st.integers(1, 600)),
    st.builds(Probe.exec, st.lists(st.text(min_size=1), min_size=1, max_size=3)),
)
volumes = st.dictionaries(
    st.from_regex(r"\A(/[A-Za-z0-9_.-]{1,4}){1,2}\Z").filter(lambda path: ".." not in path.split("/")),
    st.one_of(
        st.builds(Volume.persistent_volume_claim, names, read_only=st.booleans()),
        st.builds(Volume.config_map, names),
        st.builds(Volume.secret, names),
        st.builds(Volume.empty_dir, size_limit=st.one_of(st.none(), quantities)),
    ),
    max_size=4,
)
env = st.dictionaries(
    st.from_regex(r"\A[A-Za-z_][A-Za-z0-9_]{0,10}\Z"),
    st.one_of(
        st.text(),
        st.builds(EnvValue.secret, names, key=st.just("key")),
        st.builds(EnvValue.field, st.sampled_from(["metadata.name", "status.podIP"])),
    ),
    max_size=4,
)


def options(**keywords):
    return st.fixed_dictionaries({}, optional=keywords)


gpu_requests = st.one_of(
    st.builds(
        GpuRequest,
        count=st.integers(1, 8),
        products=st.lists(st.sampled_from(["NVIDIA H200", "NVIDIA-L4", "NVIDIA board"]), max_size=2),
        min_vram=st.sampled_from([None, "12Gi"]),
        min_compute_capability=st.sampled_from([None, "8.0", "8.6", "8.9"]),
        driver_capabilities=st.sampled_from([(), ("all",), ("compute", "video")]),
        vram=st.none() | quantities,
    ),
    st.builds(GpuRequest, vram=st.just("8Gi"), vram_typical=st.sampled_from([None, "0", "6.5Gi", "8192Mi"])),
    st.builds(
        GpuRequest,
        family=st.sampled_from(["hopper", ["ampere", "rubin"]]),
        mig_profile=st.sampled_from([None, "1g.10gb"]),
    ),
)
of_profiles = {"tolerations": tolerations, "node_selector": label_maps, "runtime_class": names}
gpu_profiles = st.one_of(
    st.builds(
        lambda platform, backend, more: GpuProfile(platform=platform, backend=backend, **more),
        st.sampled_from([Talos("1.14"), Kubernetes()]),
        st.sampled_from([Backend.device_plugin(), Backend.dra_claims(), Backend.dra_extended_resource()]),
        options(**of_profiles, mig_strategy=st.sampled_from([None, "single", "mixed"])),
    ),
    st.builds(
        lambda sharing, more: GpuProfile(sharing=sharing, **more),
        sharings,
        options(**of_profiles, mig_strategy=st.sampled_from([None, "mixed"])),
    ),
)
helpers = options(
    command=st.lists(st.text(), max_size=2),
    env=env,
    volumes=volumes,
    run_as_user=st.none() | st.integers(0, INT32),
    read_only_root_filesystem=st.booleans(),
)
helpers_of = {
    group: st.lists(helpers, max_size=2).map(
        lambda given, group=group: [Container(name=f"{group}-{i}", image="app:1", **one) for i, one in enumerate(given)]
    )
    for group in ("first", "side")
}
schedulings = st.builds(
    Scheduling,
    affinity=st.sampled_from(
        [
            None,
            {"podAntiAffinity": {}},
            {
                "nodeAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": {
                        "nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "Exists"}]}] * 2
                    }
                }
            },
        ]
    ),
    topology_spread_constraints=st.sampled_from(
        [None, [], [{"maxSkew": 2, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}]]
    ),
    scheduler_name=st.none() | names,
    scheduling_gates=st.sampled_from([(), ["kueue.x-k8s.io/admission"]]),
)
disks = st.dictionaries(
    st.sampled_from(["/disk", "/gpu"]),
    st.builds(
        VolumeClaim, storage=quantities, access_modes=st.just(["ReadWriteMany"]), storage_class_name=st.none() | names
    ),
    max_size=2,
)

WORKLOAD = {
    **common,
    "name": names,
    "platform": platforms,
    "profile": gpu_profiles,
    "gpus": st.integers(1, 16) | gpu_requests,
    "gpu_resource": st.sampled_from(["nvidia.com/gpu", "nvidia.com/gpu.shared", "nvidia.com/mig-1g.10gb"]),
    "runtime_class": st.one_of(st.none(), names),
    "command": st.lists(st.text(), max_size=3),
    "args": st.lists(st.text(), max_size=3),
    "working_dir": st.one_of(st.none(), st.sampled_from(["/", "/workspace", "/srv/my app"])),
    "env": env,
    "visible_devices": st.sampled_from(["managed", "unmanaged"]),
    "volumes": st.builds(lambda some, more: {**some, **more}, volumes, disks),
    "shared_memory": st.sampled_from(["128974848", "64Mi", "1Gi", "1G"]),
    "init_containers": helpers_of["first"],
    "sidecars": helpers_of["side"],
    "scheduling": schedulings,
    "pod_disruption_budget": st.sampled_from([None, False]),
    "host_users": st.sampled_from([None, True, False]),
    "image_pull_policy": st.sampled_from(["Always", "IfNotPresent", "Never"]),
    "annotations": st.none() | label_maps,
    "pod_annotations": st.none() | label_maps,
    "ignore_rules": st.lists(st.sampled_from(["R20", "R13"]), max_size=2),
    "startup_probe": probes,
    "readiness_probe": probes,
    "liveness_probe": probes,
    "run_as_user": st.one_of(st.none(), st.integers(0, INT32)),
    "fs_group": st.one_of(st.none(), st.integers(0, INT32)),
    "capabilities": st.lists(st.sampled_from(["CHOWN", "SYS_PTRACE"]), max_size=2, unique=True),
    "read_only_root_filesystem": st.booleans(),
    "service_account": names,
    "image_pull_secrets": st.lists(names, max_size=2),
    "priority_class_name": names,
    "termination_grace_period_seconds": st.integers(0, 3600),
    "labels": label_maps,
}
OF_JOBS = {
    "completion_mode": st.sampled_from([None, "Indexed", "NonIndexed"]),
    "pod_failure_policy": st.sampled_from(
        [
            None,
            {"rules": [{"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42]}}]},
            {"rules": [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}]},
        ]
    ),
    "suspend": st.booleans(),
}
BY_KIND = {
    "Deployment": {
        "replicas": st.integers(0, 5),
        "strategy": st.sampled_from([None, Strategy.recreate(), Strategy.rolling_update(max_surge="25%")]),
    },
    "StatefulSet": {
        "replicas": st.integers(0, 5),
        "strategy": st.sampled_from([None, Strategy.on_delete(), Strategy.rolling_update(partition=1)]),
        "pod_management_policy": st.sampled_from([None, "OrderedReady", "Parallel"]),
    },
    "Job": {
        **OF_JOBS,
        "completions": st.integers(1, 9),
        "parallelism": st.integers(1, 9),
        "backoff_limit": st.integers(0, 9),
        "active_deadline_seconds": st.integers(1, 9999),
        "ttl_seconds_after_finished": st.integers(0, 9999),
    },
    "CronJob": {
        **OF_JOBS,
        "time_zone": st.sampled_from([None, "UTC", "Europe/Berlin"]),
        "concurrency_policy": st.sampled_from(["Allow", "Forbid", "Replace"]),
        "completions": st.integers(1, 9),
        "schedule": st.sampled_from(["0 3 * * *", "*/5 * * * 1-5", "@daily"]),
    },
    "Pod": {},
}


@st.composite
def workload_options(draw, kind="Deployment"):
    """Keywords of a workload that do not contradict each other or the platform."""
    given_options = draw(options(**WORKLOAD, **BY_KIND[kind]))
    if "profile" in given_options:
        given_options.pop("platform", None)
    platform = (
        given_options["profile"].platform if "profile" in given_options else given_options.get("platform", Talos())
    )
    if isinstance(given_options.get("gpus"), GpuRequest) or "profile" in given_options:
        given_options.pop("gpu_resource", None)
    if platform == Kubernetes("1.27"):
        given_options.pop("sidecars", None)
    if given_options.get("host_users") is False and not platform.supports_cdi:
        del given_options["host_users"]
    if given_options.get("parallelism", 1) > given_options.get("completions", 1):
        del given_options["parallelism"]
    # Behind an extended resource a DeviceClass says which boards, and of MIG devices of one kind boards and profile go
    # together.
    profile, gpus = given_options.get("profile"), given_options.get("gpus")
    is_told = profile is not None and (
        profile.backend.kind == "dra-extended-resource" or profile.mig_strategy == "single"
    )
    if is_told and isinstance(gpus, GpuRequest):
        given_options["gpus"] = GpuRequest(count=gpus.count, vram=gpus.vram)
    sharing = None if profile is None else profile.sharing
    if sharing is not None and sharing.vram_unit is not None:
        given_options["gpus"] = GpuRequest(vram=draw(st.sampled_from(["1Mi", "6.5Gi", sharing.vram_unit])))
    elif sharing is not None:
        given_options["gpus"] = draw(st.builds(GpuRequest, vram=st.none() | quantities))
        if sharing.strategy == "mps":
            given_options.pop("shared_memory", None)
    return given_options


files = st.builds(
    PluginConfig,
    flags=st.builds(
        Flags,
        fail_on_init_error=st.sampled_from([None, True, False]),
        gds_enabled=st.sampled_from([None, False]),
        plugin=st.builds(
            PluginFlags,
            pass_device_specs=st.sampled_from([None, True]),
            device_list_strategy=st.sampled_from([None, "envvar"]),
            device_id_strategy=st.sampled_from([None, "index"]),
        ),
    ),
    sharing=sharings,
)
demanding_files = st.one_of(
    files,
    st.builds(PluginConfig, flags=st.builds(Flags, mig_strategy=st.sampled_from(["single", "mixed"]))),
    st.just(PluginConfig(flags=Flags(plugin=PluginFlags(device_list_strategy="cdi-cri")))),
    st.just(PluginConfig(flags=Flags(plugin=PluginFlags(device_list_strategy=("volume-mounts", "envvar"))))),
)
config_names = st.from_regex(r"\A[A-Za-z]([-._A-Za-z0-9]{0,6}[A-Za-z0-9])?\Z")
configs = st.one_of(
    demanding_files,
    st.builds(
        lambda make, of, other, names: make(dict(zip(names, (of, other), strict=True)), default=names[0]),
        st.sampled_from([Configs.named, Configs.managed]),
        demanding_files,
        demanding_files,
        st.lists(config_names, min_size=2, max_size=2, unique_by=lambda name: re.sub("[^a-z0-9]+", "-", name.lower())),
    ),
    st.builds(
        Configs.external,
        names,
        default=st.one_of(st.none(), config_names),
        may_use=st.lists(st.sampled_from(["mig", "mps", "volume-mounts", "pass-device-specs", "imex"]), unique=True),
    ),
)
SHORTHAND = {
    "sharing": sharings,
    "mig_strategy": st.sampled_from([None, "none", "single", "mixed"]),
    "device_list_strategy": st.one_of(
        st.sampled_from([None, "envvar", "volume-mounts"]),
        st.lists(st.sampled_from(["envvar", "volume-mounts"]), min_size=1, unique=True),
    ),
    "device_discovery_strategy": st.sampled_from([None, "auto", "nvml", "tegra"]),
    "fail_on_init_error": st.sampled_from([None, True, False]),
}
components = {
    "env": st.dictionaries(st.sampled_from(["A", "NVIDIA_VISIBLE_DEVICES"]), st.just("0"), max_size=2),
    "host_network": st.booleans(),
    "node_selector": label_maps,
    "resources": resources,
    "security_context": st.sampled_from([None, {"privileged": True}]),
}
of_daemonsets = {
    "affinity": st.sampled_from(
        [
            None,
            {},
            {"podAffinity": {}},
            {
                "nodeAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": {
                        "nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "Exists"}]}]
                    }
                }
            },
        ]
    ),
    "image_pull_policy": st.sampled_from(["Always", "IfNotPresent", "Never"]),
    "image_pull_secrets": st.lists(names, max_size=2),
    "priority_class_name": st.one_of(st.none(), names),
    "update_strategy": st.sampled_from(
        [None, UpdateStrategy.on_delete(), UpdateStrategy.rolling_update(max_unavailable="10%")]
    ),
    "pod_annotations": st.one_of(st.none(), label_maps),
}
PLUGIN = {
    **common,
    **SHORTHAND,
    "platform": platforms,
    "version": st.sampled_from(["0.18.2", "0.19.3", "0.20.0", Unverified("0.19.4", like="0.19.3")]),
    "name": names,
    "instance": label_values,
    "config": configs,
    "device_plugin": st.one_of(
        st.booleans(),
        st.builds(
            DevicePlugin,
            **components,
            cdi_feature_flags=st.sampled_from([(), ("disable-nvsandboxutils", "enable-coherent-annotations")]),
            dp_disable_healthchecks=st.sampled_from([(), "all", (48, 79)]),
            kubelet_device_plugins_dir=st.sampled_from(["/var/lib/kubelet/device-plugins", "/k0s"]),
        ),
    ),
    "gpu_feature_discovery": st.one_of(st.booleans(), st.builds(GpuFeatureDiscovery, **components, vgpu=st.booleans())),
    "node_feature_discovery": st.sampled_from([True, False, "external", NodeFeatureDiscovery(namespace="nfd")]),
    "mps_control_daemon": st.one_of(
        st.none(),
        st.builds(MpsControlDaemon, **components, root=st.sampled_from(["/mps", "/run/mps/"]), host_pid=st.booleans()),
    ),
    "runtime_class": st.one_of(st.none(), names),
    **of_daemonsets,
    "pod_security_context": st.sampled_from([None, {}, {"fsGroup": 5}, {"seccompProfile": {"type": "Unconfined"}}]),
    "allow_default_namespace": st.booleans(),
}


@st.composite
def plugin_options(draw, **changes):
    """Keywords of the plugin's chart that do not contradict each other."""
    given_options = draw(options(**{**PLUGIN, **changes}))
    if "config" in given_options:
        given_options = {key: value for key, value in given_options.items() if key not in SHORTHAND}
    elif "sharing" in given_options and is_of_whole_gpus(given_options["sharing"]):
        given_options["mig_strategy"] = "none"
    platform = given_options.get("platform", Talos())
    if "volume-mounts" in (given_options.get("device_list_strategy") or ()) and not platform.accepts_volume_mounts:
        given_options["device_list_strategy"] = "envvar"
    given_options["node_feature_discovery"] = draw(changes.get("node_feature_discovery", st.just("external")))
    return given_options


STAGE = {
    "stage_dir": st.sampled_from([None, "/var/lib/driver", "/var/mnt/a/b"]),
    "source_lib_dir": st.sampled_from(["/usr/local/lib", "/opt/lib"]),
    "source_bin_dir": st.sampled_from(["/usr/local/bin", "/opt/bin"]),
}
BRIDGE = {
    **common,
    **STAGE,
    "platform": st.sampled_from([Talos("1.10"), Talos("1.12"), Kubernetes()]),
    "strategy": st.sampled_from(["markers", "stage"]),
    "expected_driver_version": st.sampled_from([None, "570.211.01"]),
    "required_modules": st.sampled_from([None, ["nvidia"], ["nvidia", "nvidia_uvm", "nvidia_modeset"]]),
    "required_devices": st.sampled_from([[], ["nvidiactl"], ["nvidia0", "dri/card0"]]),
    "interval_seconds": st.integers(1, 3600),
    "retract_on_exit": st.booleans(),
}


@st.composite
def bridge_options(draw):
    given_options = draw(options(**BRIDGE))
    if given_options.get("strategy", "markers") == "markers":
        return {key: value for key, value in given_options.items() if key not in STAGE}
    if given_options.get("platform") == Kubernetes():
        given_options |= {name: draw(STAGE[name]) for name in ("source_lib_dir", "source_bin_dir")}
    return given_options


durations = st.sampled_from(["30s", "1h30m", timedelta(minutes=5)])
sources = st.one_of(
    st.just({"source": "oci://registry.example/charts/gpu-operator"}),
    st.fixed_dictionaries({"source": st.just("https://charts.example:8443/a"), "chart": names}),
)
deliveries = st.one_of(
    st.just(Delivery.values()),
    st.builds(
        lambda source, more: Delivery.flux(**source, **more),
        sources,
        options(
            version_prefix=st.sampled_from(["v", ""]),
            namespace=names,
            secret_ref=names,
            service_account_name=names,
            interval=durations,
            source_interval=durations,
            timeout=st.none() | durations,
            retries=st.integers(-1, 100),
            crds=st.sampled_from(["Skip", "Create", "CreateReplace"]),
            drift_detection=st.sampled_from(["warn", "enabled", "disabled"]),
            depends_on=st.lists(st.sampled_from(["nfd", "cert-manager/cert-manager"]), max_size=2),
            suspend=st.booleans(),
        ),
    ),
    st.just(Delivery.flux(source="oci://registry.example/charts/gpu-operator", digest="sha256:" + "0" * 64)),
    st.builds(
        lambda source, more: Delivery.argo_cd(**source, **more),
        sources,
        options(
            version_prefix=st.sampled_from(["v", ""]),
            name=names,
            namespace=names,
            project=names,
            automated=st.none() | st.lists(st.sampled_from(["prune", "self-heal"]), unique=True),
            retries=st.integers(-1, 100),
            sync_options=st.lists(st.sampled_from(["Validate=false", "Replace=true"]), max_size=2),
            create_namespace=st.booleans(),
            deletion=st.sampled_from(["orphan", "foreground", "background"]),
            destination_server=st.just("https://10.0.0.1:6443"),
        ),
    ),
    st.builds(Delivery.argo_cd, destination_name=st.text(min_size=1).filter(str.strip)),
)
switch = st.sampled_from([None, True, False])
OPERATOR = {
    "delivery": deliveries,
    "platform": platforms,
    "version": st.sampled_from(["25.10.1", "26.3.3", "26.7.0"]),
    "namespace": names,
    "release_name": names,
    "bridge": st.sampled_from(
        [
            None,
            *(
                ValidationBridge(Chart(App(), "beside"), "bridge", platform=Talos("1.12"), strategy=strategy)
                for strategy in ("markers", "stage")
            ),
        ]
    ),
    "tolerations": tolerations,
    "config": st.one_of(
        st.none(),
        st.builds(PluginConfig, sharing=sharings),
        st.builds(
            lambda name, sharing: Configs.managed({name: PluginConfig(sharing=sharing)}, default=name), names, sharings
        ),
        st.builds(Configs.external, names, default=st.none() | config_names),
    ),
    "sharing": sharings,
    "mig_strategy": st.sampled_from([None, "none", "single", "mixed"]),
    "device_list_strategy": st.sampled_from([None, "envvar", ("cdi-annotations", "cdi-cri")]),
    **dict.fromkeys(
        (
            *("cdi", "driver", "toolkit", "mig_manager", "gpu_feature_discovery", "node_feature_discovery"),
            *("dcgm_exporter", "service_monitor"),
        ),
        switch,
    ),
    "values": st.none()
    | options(
        operator=options(logging=options(level=st.sampled_from(["debug", 3])), nodeSelector=label_maps),
        dcgmExporter=options(env=st.just([{"name": "A", "value": "b"}]), resources=st.just({"limits": {"cpu": 1}})),
        daemonsets=options(labels=label_maps, annotations=label_maps),
        psa=st.just({"enabled": True}),
    ),
}


@st.composite
def operator_options(draw):
    """Keywords of the operator that do not contradict each other or the platform."""
    given_options = {"delivery": Delivery.flux(), **draw(options(**OPERATOR))}
    platform = given_options.get("platform", Talos("1.12"))
    impossible = {"config": ("sharing", "mig_strategy")} if given_options.get("config") else {}
    if platform.brings_driver:
        impossible["platform"] = ("driver", "toolkit")
        if platform.supports_cdi:
            impossible["platform"] += ("version", "bridge")
        else:
            impossible["platform"] += ("cdi",)
    elif given_options.get("bridge"):
        impossible["bridge"] = ("driver", "toolkit", "cdi")
    for keyword in {keyword for keywords in impossible.values() for keyword in keywords}:
        given_options.pop(keyword, None)
    if "sharing" in given_options and is_of_whole_gpus(given_options["sharing"]):
        given_options["mig_strategy"] = "none"
    if given_options.get("device_list_strategy"):
        cdi = given_options.get("cdi")
        is_on = platform.supports_cdi and not given_options.get("bridge") if cdi is None else cdi
        given_options["device_list_strategy"] = ["cdi-annotations", "cdi-cri"] if is_on else "envvar"
    if given_options.get("dcgm_exporter") is False:
        given_options.pop("service_monitor", None)
    return given_options


taints = st.lists(
    st.builds(
        Taint,
        key=st.sampled_from(["nvidia.com/gpu", "dedicated", "bare"]),
        value=st.just("") | label_values,
        effect=st.sampled_from(["NoSchedule", "PreferNoSchedule", "NoExecute"]),
    ),
    max_size=3,
    unique_by=lambda taint: taint.key,
)
texts = st.text(st.characters(exclude_categories=["Cs", "Cc", "Cn", "Zl", "Zp"], include_characters="\n\t"))
PATCHES = {
    "v1alpha1": [
        {"machine": {"nodeLabels": {"patched": "1"}, "kubelet": {"extraConfig": {"topologyManagerPolicy": "none"}}}},
        {"machine": {"kernel": {"modules": [{"name": "nvidia-fs"}]}, "install": {"disk": "/dev/sda", "wipe": False}}},
        {"machine": {"files": [{"op": "create", "path": "/var/a", "permissions": 0o600, "content": "a\nb\n"}]}},
    ],
    "multi-document": [
        {"apiVersion": "v1alpha1", "kind": "KubeNodeConfig", "labels": {"patched": "1"}},
        {"apiVersion": "v1alpha1", "kind": "KubeletConfig", "image": "kubelet:1", "config": {"maxPods": 50}},
        {"apiVersion": "v1alpha1", "kind": "KernelModuleConfig", "name": "nvidia-fs", "parameters": []},
    ],
}
NODE = {
    "platform": st.sampled_from([Talos(f"1.{minor}{patch}") for minor in range(10, 15) for patch in ("", ".1")]),
    "name": names,
    "role": st.sampled_from(["worker", "controlplane"]),
    "kernel_module_type": st.sampled_from(["open", "proprietary"]),
    "branch": st.sampled_from(["production", "lts"]),
    "gpu_architecture": st.sampled_from([None, "turing", "hopper"]),
    "fabric_manager": st.booleans(),
    "gdrdrv": st.booleans(),
    "extensions": st.lists(st.sampled_from(["iscsi-tools", "siderolabs/util-linux-tools"]), max_size=3),
    "extra_kernel_args": st.lists(st.from_regex(r"\A-?[A-Za-z][a-z0-9_]{3,9}(=[!-~]{0,9})?\Z"), max_size=3),
    "kernel_modules": st.lists(
        st.builds(
            KernelModule,
            name=st.sampled_from(["nvidia", "nvidia-peermem", "i2c_dev"]),
            parameters=st.lists(st.from_regex(r"\A[A-Za-z_][a-z0-9_]{0,9}(=[!-~]{0,9})?\Z"), max_size=2),
        ),
        max_size=2,
        unique_by=lambda module: module.name,
    ),
    "sysctls": st.none() | st.dictionaries(st.sampled_from(["vm.nr_hugepages", "net/ipv4/ip_forward"]), texts),
    "default_runtime": st.booleans(),
    "operator_validator": st.booleans(),
    "node_labels": st.none() | label_maps,
    "node_annotations": st.none() | st.dictionaries(st.sampled_from(["a", "example.com/rack"]), texts),
    "taints": taints,
    "installer_platform": st.sampled_from(["metal", "aws", "equinixMetal"]),
    "secureboot": st.booleans(),
    "config_patches": st.lists(st.sampled_from(PATCHES["v1alpha1"]), max_size=3, unique_by=str),
}


@st.composite
def node_options(draw):
    given_options = {"platform": Talos("1.12.11"), **draw(options(**NODE))}
    platform = given_options["platform"]
    given_options["config_patches"] = draw(
        st.lists(st.sampled_from(PATCHES[platform.machine_config]), max_size=3, unique_by=str)
    )
    if not platform.has_gdrdrv:
        given_options.pop("gdrdrv", None)
    return given_options


LIMIT = {
    **common,
    **of_daemonsets,
    "platform": platforms,
    "name": names,
    "watts": st.one_of(st.integers(1, 9999), st.sampled_from(["80%", "default"])),
    "limits": st.one_of(st.none(), st.just({"uuid:GPU-5e0c": 280, "name:*RTX 3090": "90%", "index:0": "default"})),
    "interval_seconds": st.integers(10, 86400),
    "retry_seconds": st.integers(1, 600),
    "start_timeout_seconds": st.integers(0, 3600),
    "command_timeout_seconds": st.integers(1, 3600),
    "out_of_range": st.sampled_from(["clamp", "refuse"]),
    "gpu_models": st.sampled_from([(), ["NVIDIA GeForce RTX 3090"], ["NVIDIA A100-SXM4-80GB", "NVIDIA L4"]]),
    "persistence_mode": st.booleans(),
    "restore_on_exit": st.booleans(),
    "textfile_directory": st.sampled_from([None, "/var/lib/node_exporter/textfile"]),
    "runtime_class": st.one_of(st.none(), names),
}


@st.composite
def limit_options(draw):
    given_options = draw(options(**LIMIT))
    if given_options.get("out_of_range") == "refuse":
        given_options.pop("gpu_models", None)
    return given_options


HASH = "$2y$10$" + "a" * 53
tls = st.builds(
    Tls,
    secret=names,
    ca_filename=st.sampled_from(["ca.crt", "ca.pem"]),
    client_auth_type=st.sampled_from(["NoClientCert", "VerifyClientCertIfGiven", "RequireAndVerifyClientCert"]),
    server_name=st.sampled_from([None, "exporter.example"]),
    insecure_skip_verify=st.booleans(),
    client_secret=names,
)
basic_auths = st.builds(
    BasicAuth, users=st.dictionaries(names, st.just(HASH), min_size=1, max_size=2), secret=names, username_key=names
)
relabelings = st.lists(
    st.sampled_from(
        [
            Relabeling(target_label="cluster", replacement="homelab"),
            Relabeling(action="drop", source_labels=["gpu"], regex="[0-3]"),
            Relabeling(action="hashmod", source_labels=["instance"], target_label="shard", modulus=3),
        ]
    ),
    max_size=2,
)
BARE_SCRAPES = ("annotations", "none")
scrapes = st.one_of(
    st.sampled_from(["ServiceMonitor", "PodMonitor", "VMServiceScrape", "VMPodScrape", *BARE_SCRAPES]),
    st.builds(
        Scrape,
        kind=st.sampled_from(["ServiceMonitor", "PodMonitor", "VMServiceScrape", "VMPodScrape"]),
        labels=label_maps,
        interval_seconds=st.none() | st.integers(15, 3600),
        scrape_timeout_seconds=st.none() | st.integers(1, 15),
        honor_labels=st.booleans(),
        relabelings=relabelings,
        metric_relabelings=relabelings,
        sample_limit=st.none() | st.integers(1, INT32),
    ),
)
# Names that the exporters have for volumes of their own too.
exporter_volumes = st.dictionaries(
    st.sampled_from(["/data", "/metrics", "/tls", "/web/config", "/debug-dumps", "/pod/resources", "/tmp/x", "/tls-x"]),
    st.one_of(st.builds(Volume.empty_dir), st.builds(Volume.host_path, st.just("/run/jobs"))),
    max_size=4,
)
MONITORING = {
    **common,
    **of_daemonsets,
    "platform": platforms,
    "name": names,
    "instance": label_values,
    "tls": st.none() | tls,
    "basic_auth": st.none() | basic_auths,
    "scrape": scrapes,
    "scrape_labels": st.none() | label_maps,
    "dashboard": st.sampled_from([False, False, False, True]),
    "service": st.one_of(
        st.booleans(),
        st.builds(
            ExporterService,
            type=st.sampled_from(["ClusterIP", "NodePort"]),
            cluster_ip=st.sampled_from([None, "10.96.0.5", "fd00::5"]),
            internal_traffic_policy=st.sampled_from([None, "Cluster", "Local"]),
            annotations=label_maps,
        ),
    ),
    "port": st.integers(1, 65535),
    "host_network": st.booleans(),
    "env": env,
    "volumes": st.none() | exporter_volumes,
    "runtime_class": st.one_of(st.none(), names),
    "service_account": st.none() | names,
    "pod_labels": st.none() | label_maps,
    "security_context": st.sampled_from([None, {"privileged": True}]),
    "pod_security_context": st.sampled_from([None, {}, {"fsGroup": 5}, {"seccompProfile": {"type": "Unconfined"}}]),
}


def findable(given_options):
    """Take back what does not go with how the exporter is reached."""
    if given_options.get("host_network") and given_options.get("port", 1024) < 1024:
        del given_options["port"]
    scrape = given_options.get("scrape", "ServiceMonitor")
    if isinstance(scrape, Scrape) or scrape in BARE_SCRAPES:
        given_options.pop("scrape_labels", None)
    kind = scrape.kind if isinstance(scrape, Scrape) else scrape
    if kind not in ("PodMonitor", "VMPodScrape", "none") and given_options.get("service") is False:
        del given_options["service"]
    if kind == "annotations":
        given_options.pop("tls", None)
        given_options.pop("basic_auth", None)
    return given_options


EXPORTER = {
    **MONITORING,
    "version": st.sampled_from(["3.4.2", "4.8.2", "4.8.3"]),
    "metrics": st.one_of(
        st.sampled_from(["seed", "default", "recommended", "profiling"]),
        st.builds(MetricsConfigMap, config_map=names, key=names, is_profiled=st.booleans()),
        st.lists(
            st.sampled_from(
                [
                    *(metric for metric in metric_set("profiling", "3.4.2") if metric.prometheus_type != "label"),
                    "DCGM_FI_DEV_GPU_UTIL",
                    Metric(field="DCGM_FI_DEV_FAN_SPEED", prometheus_type="gauge", help="Fan in percent"),
                ]
            ),
            min_size=1,
            max_size=5,
            unique_by=lambda metric: getattr(metric, "field", metric),
        ),
    ),
    "gpu_models": st.sampled_from([(), ["NVIDIA GeForce RTX 3090"], ["NVIDIA A100-SXM4-80GB", "NVIDIA L4"]]),
    "collect_interval_seconds": st.integers(15, 3600),
    "pod_mapping": st.one_of(
        st.booleans(),
        st.builds(
            PodMapping,
            enable_pod_labels=st.just(True),
            pod_label_allowlist_regex=st.lists(st.sampled_from(["app", "team-.*"]), max_size=2),
            enable_pod_uid=st.booleans(),
            gpu_id_type=st.sampled_from(["uid", "device-name"]),
            kubelet_path=st.sampled_from(["/var/lib/kubelet/pod-resources", "/k0s"]),
        ),
        st.builds(
            PodMapping,
            virtual_gpus=st.just(True),
            host_pid=st.just(True),
            enable_pod_uid=st.just(True),
            nvidia_resource_names=st.just(["nvidia.com/gpu.shared"]),
        ),
        st.builds(PodMapping, enable_dra=st.just(True), enable_pod_uid=st.booleans()),
        st.builds(PodMapping.time_slicing),
    ),
    "sharing": st.none() | sharings,
    "remote_hostengine": st.sampled_from([None, "nvidia-dcgm:5555", "[::1]:5555", "$(NODE_NAME):5555"]),
    "debug_dump": st.booleans() | st.builds(DebugDump, retention=st.integers(1, 8760), compression=st.booleans()),
}


@st.composite
def exporter_options(draw):
    """Keywords of the exporter that do not contradict each other or the release."""
    given_options = findable({"dashboard": False, **draw(options(**EXPORTER))})
    if given_options.get("version") == "3.4.2":
        for keyword in ("tls", "basic_auth", "debug_dump", "sharing"):
            given_options.pop(keyword, None)
        if isinstance(given_options.get("pod_mapping"), PodMapping):
            given_options["pod_mapping"] = True
    if given_options.get("pod_mapping") is False:
        given_options.pop("sharing", None)
    metrics = given_options.get("metrics", "recommended")
    if isinstance(metrics, MetricsConfigMap):
        given_options["dashboard"] = False
    if metrics not in ("seed", "default", "recommended"):
        given_options.pop("gpu_models", None)
    return given_options


SMI_EXPORTER = {
    **MONITORING,
    "version": st.sampled_from(["1.14.0", Unverified("1.15.0", like="1.14.0", image="app:1")]),
    "backend": st.sampled_from(["nvidia-smi", "nvml"]),
    "nvidia_smi_command": st.sampled_from(["nvidia-smi", "ssh node nvidia-smi"]),
    "query_field_names": st.one_of(
        st.just(("AUTO",)),
        st.lists(st.sampled_from(["uuid", "power.draw", "temperature.gpu", "memory.used"]), min_size=1, unique=True),
    ),
    "query_field_names_exclude": st.lists(st.sampled_from(["remapped_rows.*", "fan.speed", "*"]), max_size=2),
    "collect_interval_seconds": st.just(0) | st.integers(15, 3600),
    "collect_timeout_seconds": st.integers(1, 300),
    "compute_apps": st.booleans(),
    "compute_apps_mig": st.booleans(),
    "pcie_throughput": st.booleans(),
    "telemetry_path": st.sampled_from(["/metrics", "/gpu/metrics"]),
    "log_level": st.sampled_from(["debug", "info", "warn", "error"]),
    "log_format": st.sampled_from(["logfmt", "json"]),
}


@st.composite
def smi_exporter_options(draw):
    """Keywords of the exporter that do not contradict each other or the backend."""
    given_options = findable({"dashboard": False, **draw(options(**SMI_EXPORTER))})
    if given_options.get("backend") == "nvml":
        given_options.pop("nvidia_smi_command", None)
    else:
        given_options.pop("pcie_throughput", None)
    if given_options.get("backend") != "nvml" or not given_options.get("compute_apps"):
        given_options.pop("compute_apps_mig", None)
    if not given_options.get("collect_interval_seconds"):
        given_options["collect_timeout_seconds"] = draw(st.integers(1, 14))
    return given_options


beside = Chart(App(), "beside")
EXPORTERS = [
    DcgmExporter(beside, "dcgm", dashboard=False),
    DcgmExporter(beside, "old", dashboard=False, name="old", version="3.4.2", scrape="none", pod_mapping=False),
    DcgmExporter(
        beside, "all", dashboard=False, name="all", metrics="profiling", sharing=Sharing.time_slicing(replicas=2)
    ),
    NvidiaGpuExporter(beside, "smi", dashboard=False),
    NvidiaGpuExporter(beside, "nvml", dashboard=False, name="nvml", backend="nvml", compute_apps=True),
]
LIMITS = [
    PowerLimit(beside, "limit"),
    PowerLimit(beside, "limits", name="limits", watts=None, limits={"name:*RTX [34]090": "80%", "index:0": "default"}),
]
thresholds = st.builds(
    AlertThresholds,
    temperature_warning=st.integers(40, 90),
    temperature_critical=st.integers(91, 110),
    temperatures_by_model=st.sampled_from([None, {"*RTX 3090*": (90, 97), "Tesla T[4]": (80, 85)}]),
    vram_ratio=st.floats(0.01, 0.99),
    vram_ignored_namespaces=st.lists(names, max_size=2),
    idle=st.sampled_from([300, "90m", "2h"]),
    ecc_corrected_per_hour=st.integers(1, INT32),
    xid_critical=st.sampled_from([(79,), (48, 62)]),
    xid_window=st.sampled_from(["15m", 60]),
    pending=st.sampled_from([None, {"GpuMemoryNearlyFull": "1h"}]),
)
ALERTS = {
    "exporter": st.sampled_from(EXPORTERS),
    "kind": st.sampled_from(["PrometheusRule", "VMRule"]),
    "namespace": st.none() | names,
    "name": names,
    "labels": st.none() | label_maps,
    "thresholds": thresholds,
    "power_limit": st.sampled_from([None, *LIMITS]),
    "device_plugin": st.sampled_from([None, "nvidia-device-plugin", ".*plugin|other"]),
    "kube_state_metrics": st.booleans(),
    "leave_out": st.lists(st.sampled_from(["GpuLost", "GpuMemoryNearlyFull", "gpu:power:watts"]), max_size=2),
    "severities": st.none() | st.dictionaries(st.just("GpuLost"), st.sampled_from(["critical", "warning", "info"])),
    "runbook_url": st.sampled_from([None, "https://wiki.example/gpu"]),
    "alert_labels": st.none() | st.dictionaries(st.sampled_from(["team", "cluster"]), label_values),
}


@st.composite
def alert_options(draw):
    given_options = {"exporter": EXPORTERS[0], **draw(options(**ALERTS))}
    if given_options["exporter"].series.pods == "none" and "thresholds" in given_options:
        given_options["thresholds"] = dataclasses.replace(given_options["thresholds"], vram_ignored_namespaces=())
    return given_options


DASHBOARD = {
    "exporter": st.sampled_from(EXPORTERS),
    "namespace": st.none() | names,
    "name": st.none() | names,
    "labels": st.none() | label_maps,
    "folder": st.sampled_from([None, "GPU", "Größen / GPUs"]),
    "folder_annotation": st.sampled_from(["grafana_folder", "k8s-sidecar-target-directory"]),
    "title": st.sampled_from([None, 'GPUs of "homelab" {{ x }}']),
    "uid": st.sampled_from([None, "gpus_1", "a" * 40]),
    "datasource_type": st.sampled_from(["prometheus", "victoriametrics-metrics-datasource"]),
    "kube_state_metrics": st.booleans(),
    "refresh": st.sampled_from(["1m", "", "30s"]),
}
CONSTRUCTS = {
    DevicePluginChart: (PLUGIN, {"gpu_feature_discovery": False, "node_feature_discovery": False}),
    ValidationBridge: (BRIDGE, {}),
    GpuOperator: (OPERATOR, {"delivery": Delivery.flux()}),
    TalosGpuNode: (NODE, {"platform": Talos("1.12.11")}),
    PowerLimit: (LIMIT, {}),
    DcgmExporter: (EXPORTER, {"dashboard": False}),
    NvidiaGpuExporter: (SMI_EXPORTER, {"dashboard": False}),
    GpuAlerts: (ALERTS, {"exporter": EXPORTERS[0]}),
    GpuDashboard: (DASHBOARD, {"exporter": EXPORTERS[0]}),
    GpuWorkload: (WORKLOAD, {"image": "app:1", "ports": {"main": 80}}),
}
COHERENT = {
    DevicePluginChart: plugin_options(config=files),
    ValidationBridge: bridge_options(),
    GpuOperator: operator_options(),
    TalosGpuNode: node_options(),
    PowerLimit: limit_options(),
    DcgmExporter: exporter_options(),
    NvidiaGpuExporter: smi_exporter_options(),
    GpuAlerts: alert_options(),
    GpuWorkload: workload_options(),
}
EACH_KEYWORD = [
    pytest.param(construct, keyword, id=f"{construct.__name__}-{keyword}")
    for construct in CONSTRUCTS
    for keyword, parameter in inspect.signature(construct.__init__).parameters.items()
    if parameter.kind is parameter.KEYWORD_ONLY
]
each_construct = pytest.mark.parametrize("construct", CONSTRUCTS, ids=lambda construct: construct.__name__)
without_warnings = pytest.mark.filterwarnings("ignore::gpu_constructs.GpuConstructsWarning")


class Word(StrEnum):
    A = "a"


JUNK = [
    None,
    True,
    False,
    0,
    -1,
    INT32 + 1,
    10**30,
    1.5,
    math.nan,
    math.inf,
    b"",
    "",
    " ",
    "\n",
    "a\nb",
    "a b:1",
    "ünïcödé",
    "٣",
    "²",
    "UPPER",
    "a" * 300,
    [],
    {},
    [None],
    {"": ""},
    {"a": None},
    {None: "a"},
    {"limits": None},
    {"requests": {"": ""}},
    {"limits": {"memory": "-1"}},
    object,
    object(),
    range(3),
    Talos(),
    Sharing.none(),
    Toleration(operator="Exists"),
    Volume.empty_dir(),
    Word.A,
    {Word.A: Word.A},
    OrderedDict(a="b"),
    MappingProxyType({"a": "b"}),
]
junk = st.sampled_from(JUNK)
ids = st.sampled_from(["app", "a\nb", "my app", "a/b", "App", "ünïcödé", "a" * 80, "-", "a_b", "a.b", "1"])

# --- accepted input ------------------------------------------------------------


@settings(quickly, max_examples=70)
@given(kind=st.sampled_from(sorted(BY_KIND)), data=st.data())
def test_any_workload_of_good_input_is_sound(kind, data):
    given_options = data.draw(workload_options(kind))
    required = {"image": "app:1", "ports": {"main": 80}, "kind": kind}
    if kind == "CronJob":
        required["schedule"] = "0 3 * * *"
    assert_accepted_and_sound(GpuWorkload, {**required, **given_options})


no_cdi_and_no_managed_mps = {"config": files}


@without_warnings
@quickly
@given(given_options=plugin_options(**no_cdi_and_no_managed_mps))
def test_any_device_plugin_of_good_input_is_sound(given_options):
    assert_accepted_and_sound(DevicePluginChart, given_options)


@without_warnings
@settings(quickly, max_examples=6)
@given(
    given_options=plugin_options(
        **no_cdi_and_no_managed_mps, node_feature_discovery=st.sampled_from([True, "external"])
    )
)
def test_any_device_plugin_with_its_discoveries_is_sound(given_options):
    assert_accepted_and_sound(DevicePluginChart, given_options)


@without_warnings
@settings(quickly, max_examples=40)
@given(given_options=plugin_options())
def test_any_options_of_the_device_plugin_pass_the_invariants_or_are_refused_in_one_line(given_options):
    try:
        chart = make(DevicePluginChart, "app", given_options)
    except GpuConstructsError as error:
        assert_house_style(error, "app")
    else:
        manifests = Testing.synth(chart)
        invariants.hold_for(manifests)
        for spec in (spec for manifest in manifests for spec in pod_specs(manifest)):
            assert_gpu_pod_holds_what_it_uses(spec)


@quickly
@given(given_options=bridge_options())
def test_any_bridge_of_good_input_is_sound(given_options):
    assert_accepted_and_sound(ValidationBridge, given_options)


@without_warnings
@quickly
@given(given_options=operator_options())
def test_any_operator_of_good_input_is_sound(given_options):
    assert_accepted_and_sound(GpuOperator, given_options)


@quickly
@given(given_options=node_options())
def test_any_talos_node_of_good_input_is_sound(given_options):
    assert_accepted_and_sound(TalosGpuNode, given_options)


@without_warnings
@settings(quickly, max_examples=40)
@given(given_options=limit_options())
def test_any_power_limit_of_good_input_is_sound(given_options):
    assert_accepted_and_sound(PowerLimit, given_options)


@settings(quickly, max_examples=50)
@given(given_options=exporter_options())
def test_any_exporter_of_good_input_is_sound(given_options):
    assert_accepted_and_sound(DcgmExporter, given_options)


@settings(quickly, max_examples=40)
@given(given_options=smi_exporter_options())
def test_any_exporter_without_privileges_of_good_input_is_sound(given_options):
    assert_accepted_and_sound(NvidiaGpuExporter, given_options)


@settings(quickly, max_examples=25)
@given(given_options=alert_options())
def test_any_alerts_of_good_input_are_sound(given_options):
    assert_accepted_and_sound(GpuAlerts, given_options)


@settings(quickly, max_examples=15)
@given(given_options=options(**DASHBOARD))
def test_any_dashboard_of_good_input_is_sound(given_options):
    assert_accepted_and_sound(GpuDashboard, {"exporter": EXPORTERS[0], **given_options})


@without_warnings
@each_construct
@settings(quickly, max_examples=10)
@given(data=st.data())
def test_the_same_input_gives_the_same_manifests_twice(construct, data):
    keywords, required = CONSTRUCTS[construct]
    drawn = COHERENT[construct] if construct in COHERENT else options(**keywords)
    given_options = {**required, **data.draw(drawn)}
    assert rendered(construct, "app", given_options) == rendered(construct, "app", given_options)


# --- any input -----------------------------------------------------------------


@without_warnings
@pytest.mark.parametrize(("construct", "keyword"), EACH_KEYWORD)
def test_junk_in_any_keyword_is_sound_or_refused_in_one_line(construct, keyword):
    required = CONSTRUCTS[construct][1]
    scope = fresh_scope(construct)
    for value in JUNK:
        try:
            accepted = assert_sound_or_refused(construct, {**required, keyword: value}, scope=scope)
        except Exception as error:
            error.add_note(f"{keyword}={value!r}")
            raise
        if accepted:
            scope = fresh_scope(construct)


OF_A_KIND = [(kind, keyword) for kind in BY_KIND for keyword in BY_KIND[kind]]


@pytest.mark.parametrize(("kind", "keyword"), OF_A_KIND)
def test_junk_in_a_keyword_of_one_kind_is_sound_or_refused_in_one_line(kind, keyword):
    required = {"image": "app:1", "kind": kind, **({"schedule": "@daily"} if kind == "CronJob" else {})}
    scope = fresh_scope(GpuWorkload)
    for value in JUNK:
        try:
            accepted = assert_sound_or_refused(GpuWorkload, {**required, keyword: value}, scope=scope)
        except Exception as error:
            error.add_note(f"{keyword}={value!r}")
            raise
        if accepted:
            scope = fresh_scope(GpuWorkload)


@without_warnings
@each_construct
@settings(quickly, max_examples=30)
@given(data=st.data())
def test_several_odd_values_at_once_are_sound_or_refused_in_one_line(construct, data):
    keywords, required = CONSTRUCTS[construct]
    odd = st.lists(st.tuples(st.sampled_from(sorted(keywords)), junk), max_size=2).map(dict)
    chosen = data.draw(st.sets(st.sampled_from(sorted(keywords)), max_size=4))
    good = {keyword: data.draw(keywords[keyword]) for keyword in sorted(chosen)}
    assert_sound_or_refused(construct, {**required, **good, **data.draw(odd)})


@each_construct
@settings(quickly, max_examples=10)
@given(id=ids)
def test_any_id_is_sound_or_refused_in_one_line(construct, id):
    try:
        made = make(construct, id, CONSTRUCTS[construct][1])
    except GpuConstructsError as error:
        assert_house_style(error, error.path)
    else:
        assert_all_is_sound(made)


def members(struct):
    return [field.name for field in dataclasses.fields(struct)]


NEEDED = {
    BasicAuth: {"users": {"prometheus": HASH}},
    Metric: {"field": "DCGM_FI_DEV_GPU_UTIL", "prometheus_type": "gauge", "help": ""},
    Container: {"name": "a", "image": "app:1"},
    MetricsConfigMap: {"config_map": "counters"},
    Strategy: {"type": "RollingUpdate"},
    VolumeClaim: {"storage": "1Gi"},
    Backend: {"kind": "dra-claims"},
    Relabeling: {"target_label": "a"},
    Tls: {"secret": "exporter-tls"},
}
OPTIONS = [
    lambda value: Talos(value),
    lambda value: Kubernetes(value),
    lambda value: Sharing.time_slicing(replicas=value),
    lambda value: Sharing.time_slicing(replicas=2, rename_by_default=value),
    lambda value: Sharing(strategy=value),
    lambda value: Sharing(strategy="time-slicing", replicas=value),
    lambda value: Toleration(key=value, operator="Exists"),
    lambda value: Toleration(key="a", value=value),
    lambda value: Toleration(key="a", operator=value),
    lambda value: Toleration(key="a", effect=value),
    lambda value: Probe.http_get(value, port=80),
    lambda value: Probe.http_get("/", port=value),
    lambda value: Probe.exec(value),
    lambda value: Probe.tcp_socket(80, period_seconds=value),
    lambda value: Volume.empty_dir(size_limit=value),
    lambda value: Volume.empty_dir(medium=value),
    lambda value: Volume.persistent_volume_claim(value),
    lambda value: Volume.of("volumes", value),
    lambda value: EnvValue.secret(value, key="key"),
    lambda value: EnvValue.secret("name", key=value),
    lambda value: EnvValue.field(value),
    lambda value: Unverified(value, like="0.20.0"),
    lambda value: Unverified("1.0.0", like=value),
    lambda value: UpdateStrategy.rolling_update(max_unavailable=value),
    lambda value: UpdateStrategy.rolling_update(max_unavailable=0, max_surge=value),
    lambda value: UpdateStrategy(type=value),
    lambda value: Configs.named(value, default="a"),
    lambda value: Configs.named({"a": PluginConfig()}, default=value),
    lambda value: Configs.named({"a": value}, default="a"),
    lambda value: Configs.external(value),
    lambda value: Configs.external("a", default=value),
    lambda value: Configs.external("a", flags=value),
    lambda value: Configs.external("a", may_use=value),
    lambda value: Configs.external("a", fallback_strategies=value),
    lambda value: Configs(delivery=value),
    lambda value: PodMapping.of(value, None, "4.8.3"),
    lambda value: PodMapping.of(True, value, "4.8.3"),
    lambda value: PodMapping.time_slicing(nvidia_resource_names=value),
    lambda value: PodMapping.time_slicing(kubelet_path=value),
    lambda value: PodMapping(enable_pod_labels=True, pod_label_allowlist_regex=value),
    lambda value: Scrape.of(value, None),
    lambda value: Scrape.of("PodMonitor", value),
    lambda value: Scrape.of(Scrape(), value),
    lambda value: Relabeling(action="drop", source_labels=value),
    lambda value: Relabeling(action="hashmod", source_labels=["a"], target_label="b", modulus=value),
    lambda value: Relabeling(action="labeldrop", regex=value),
    lambda value: AlertThresholds(temperatures_by_model={"*": value}),
    lambda value: AlertThresholds(pending={"GpuLost": value}),
    lambda value: Volume.of_source(value),
    lambda value: Volume.of_source({"nfs": value}),
    lambda value: Volume.empty_dir().at(value),
    lambda value: Strategy.rolling_update(max_surge=value),
    lambda value: Backend.dra_claims(device_class=value),
    lambda value: GpuRequest(products=[value]),
    lambda value: GpuRequest(family=[value]),
    lambda value: Scheduling(topology_spread_constraints=[value]),
    lambda value: Scheduling(scheduling_gates=[value]),
    lambda value: Container(name="a", image="app:1", env={"A": value}),
    lambda value: Container(name="a", image="app:1", volumes={"/a": value}),
    lambda value: VolumeClaim(storage="1Gi", access_modes=[value]),
    lambda value: BasicAuth(users={"prometheus": value}),
    lambda value: BasicAuth(users={value if isinstance(value, str) else "": HASH}),
    *(
        lambda value, struct=struct, member=member: struct(**{**NEEDED.get(struct, {}), member: value})
        for struct in (
            AlertThresholds,
            Backend,
            BasicAuth,
            Container,
            GpuProfile,
            GpuRequest,
            Scheduling,
            Strategy,
            VolumeClaim,
            DebugDump,
            ExporterService,
            Metric,
            MetricsConfigMap,
            PodMapping,
            Relabeling,
            Scrape,
            Tls,
            DevicePlugin,
            GpuFeatureDiscovery,
            MpsControlDaemon,
            PluginConfig,
            Flags,
            PluginFlags,
            Taint,
            TalosSchematic,
        )
        for member in members(struct)
    ),
    lambda value: KernelModule(name=value),
    lambda value: KernelModule(name="nvidia", parameters=value),
    *(lambda value, member=member: Delivery.flux(**{member: value}) for member in members(Flux)),
    *(lambda value, member=member: Delivery.argo_cd(**{member: value}) for member in members(ArgoCd)),
    lambda value: Delivery.helm(chart=value),
    lambda value: Delivery.helm(chart="x", executable=value),
]


@without_warnings
def test_anything_in_an_option_struct_is_taken_or_refused_in_one_line():
    for take in OPTIONS:
        for value in JUNK:
            try:
                take(value)
            except GpuConstructsError as error:
                assert_house_style(error)
            except Exception as error:
                error.add_note(f"{value!r} at line {take.__code__.co_firstlineno} {take.__defaults__ or ''}")
                raise


def test_a_password_in_place_of_a_hash_is_not_shown():
    for take in (
        lambda: BasicAuth({"prometheus": "hunter2"}),
        lambda: BasicAuth(users={"prometheus": "hunter2"}),
        lambda: BasicAuth(users=[("prometheus", "hunter2")]),
        lambda: BasicAuth(users={"prometheus:hunter2": ""}),
        lambda: BasicAuth(users={"prometheus": HASH}, password="hunter2"),
    ):
        with pytest.raises(GpuConstructsError) as refused:
            take()
        assert str(refused.value).splitlines() == [str(refused.value)]
        assert "hunter2" not in str(refused.value)


def test_every_keyword_of_every_construct_is_drawn():
    fixed = {"ports", "kind"}
    of_a_kind = {keyword for keywords in BY_KIND.values() for keyword in keywords}
    for construct, (keywords, _) in CONSTRUCTS.items():
        parameters = inspect.signature(construct.__init__).parameters.values()
        known = {p.name for p in parameters if p.kind is p.KEYWORD_ONLY}
        assert known - keywords.keys() <= fixed | of_a_kind
        assert keywords.keys() <= known
