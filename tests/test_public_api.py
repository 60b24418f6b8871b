import dataclasses
import inspect
import pydoc
import re
import tomllib
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages

import cdk8s
import mypy.api
import pytest
from cdk8s import Chart
from constructs import Construct

import gpu_constructs
from gpu_constructs import AlertThresholds, Kubernetes, Sharing, Talos, Toleration

SIX = ["GpuNamespace", "NvidiaRuntimeClass", "DevicePluginChart", "ValidationBridge", "DcgmExporter", "GpuWorkload"]
CDK8S = ["ApiObject", "App", "Chart", "Include", "JsonPatch", "Testing"]
FIXED = {
    "GpuNamespace": {"name": "nvidia-gpu-operator", "pod_security": "privileged", "labels": None},
    "NvidiaRuntimeClass": {"name": "nvidia", "handler": "nvidia"},
    "DevicePluginChart": {
        "namespace": "nvidia-gpu-operator",
        "platform": Talos("1.12"),
        "version": "0.20.0",
        "name": "nvidia-device-plugin",
        "instance": None,
        "config": None,
        "sharing": None,
        "mig_strategy": None,
        "device_list_strategy": None,
        "device_discovery_strategy": None,
        "fail_on_init_error": None,
        "device_plugin": True,
        "gpu_feature_discovery": True,
        "node_feature_discovery": True,
        "mps_control_daemon": None,
        "runtime_class": None,
        "tolerations": (),
        "node_selector": None,
        "affinity": None,
        "image": None,
        "image_pull_policy": "IfNotPresent",
        "image_pull_secrets": (),
        "resources": None,
        "priority_class_name": "system-node-critical",
        "update_strategy": None,
        "pod_annotations": None,
        "pod_security_context": None,
        "allow_default_namespace": False,
    },
    "ValidationBridge": {
        "namespace": "nvidia-gpu-operator",
        "platform": Talos("1.12"),
        "strategy": "markers",
        "expected_driver_version": None,
        "required_modules": None,
        "required_devices": (),
        "interval_seconds": 10,
        "retract_on_exit": True,
        "stage_dir": None,
        "tolerations": (),
        "node_selector": None,
        "resources": None,
    },
    "DcgmExporter": {
        "namespace": "nvidia-gpu-operator",
        "platform": Talos("1.12"),
        "version": "4.8.3",
        "name": "dcgm-exporter",
        "instance": None,
        "metrics": "recommended",
        "gpu_models": (),
        "collect_interval_seconds": 30,
        "pod_mapping": True,
        "sharing": None,
        "remote_hostengine": None,
        "tls": None,
        "basic_auth": None,
        "scrape": "ServiceMonitor",
        "scrape_labels": None,
        "dashboard": True,
        "service": True,
        "port": 9400,
        "host_network": False,
        "debug_dump": False,
        "env": None,
        "volumes": None,
        "runtime_class": None,
        "service_account": None,
        "tolerations": (),
        "node_selector": None,
        "affinity": None,
        "image": None,
        "image_pull_policy": "IfNotPresent",
        "image_pull_secrets": (),
        "resources": None,
        "priority_class_name": None,
        "update_strategy": None,
        "pod_labels": None,
        "pod_annotations": None,
        "security_context": None,
        "pod_security_context": None,
    },
    "NvidiaGpuExporter": {
        "namespace": "gpu-monitoring",
        "platform": Talos("1.12"),
        "version": "1.14.0",
        "name": "nvidia-gpu-exporter",
        "instance": None,
        "backend": "nvidia-smi",
        "nvidia_smi_command": "nvidia-smi",
        "query_field_names": ("AUTO",),
        "query_field_names_exclude": (),
        "collect_interval_seconds": 0,
        "collect_timeout_seconds": 10,
        "compute_apps": False,
        "compute_apps_mig": False,
        "pcie_throughput": False,
        "tls": None,
        "basic_auth": None,
        "scrape": "ServiceMonitor",
        "scrape_labels": None,
        "dashboard": True,
        "service": True,
        "port": 9835,
        "telemetry_path": "/metrics",
        "log_level": "info",
        "log_format": "logfmt",
        "host_network": False,
        "env": None,
        "volumes": None,
        "runtime_class": None,
        "service_account": None,
        "tolerations": (),
        "node_selector": None,
        "affinity": None,
        "image": None,
        "image_pull_policy": "IfNotPresent",
        "image_pull_secrets": (),
        "resources": None,
        "priority_class_name": None,
        "update_strategy": None,
        "pod_labels": None,
        "pod_annotations": None,
        "security_context": None,
        "pod_security_context": None,
    },
    "GpuAlerts": {
        "exporter": inspect.Parameter.empty,
        "kind": "PrometheusRule",
        "namespace": None,
        "name": "gpu-alerts",
        "labels": None,
        "thresholds": AlertThresholds(),
        "power_limit": None,
        "device_plugin": ".*nvidia-device-plugin.*",
        "kube_state_metrics": True,
        "leave_out": (),
        "severities": None,
        "runbook_url": None,
        "alert_labels": None,
    },
    "GpuDashboard": {
        "exporter": inspect.Parameter.empty,
        "namespace": None,
        "name": None,
        "labels": None,
        "folder": None,
        "folder_annotation": "grafana_folder",
        "title": None,
        "uid": None,
        "datasource_type": "prometheus",
        "kube_state_metrics": True,
        "refresh": "1m",
    },
    "GpuWorkload": {
        "image": inspect.Parameter.empty,
        "kind": "Deployment",
        "gpus": 1,
        "env": None,
        "namespace": None,
        "platform": Talos("1.12"),
        "tolerations": (),
        "node_selector": None,
        "resources": None,
    },
    "PowerLimit": {
        "namespace": "nvidia-gpu-operator",
        "platform": Talos("1.12"),
        "watts": 300,
        "limits": None,
        "interval_seconds": 1800,
        "retry_seconds": 15,
        "start_timeout_seconds": 300,
        "command_timeout_seconds": 20,
        "out_of_range": "clamp",
        "persistence_mode": True,
        "restore_on_exit": False,
        "gpu_models": (),
        "textfile_directory": None,
        "name": "nvidia-powerlimit",
        "tolerations": (),
        "node_selector": None,
        "affinity": None,
        "image_pull_policy": "IfNotPresent",
        "image_pull_secrets": (),
        "resources": None,
        "priority_class_name": None,
        "update_strategy": None,
        "pod_annotations": None,
    },
    "GpuOperator": {
        "delivery": inspect.Parameter.empty,
        "platform": Talos("1.12"),
        "version": "26.7.0",
        "namespace": "nvidia-gpu-operator",
        "release_name": "gpu-operator",
        "bridge": None,
        "tolerations": (),
        "values": None,
    },
    "TalosGpuNode": {
        "platform": inspect.Parameter.empty,
        "name": None,
        "role": "worker",
        "kernel_module_type": "open",
        "branch": "production",
        "fabric_manager": False,
        "gdrdrv": False,
        "extensions": (),
        "sysctls": None,
        "default_runtime": False,
        "operator_validator": True,
        "node_labels": None,
        "taints": (),
    },
}
WITHOUT_PODS = {"GpuNamespace", "NvidiaRuntimeClass", "GpuOperator", "TalosGpuNode", "GpuAlerts", "GpuDashboard"}
WHOLE = ["NvidiaGpuExporter", "GpuAlerts", "GpuDashboard"]
OURS = [name for name in gpu_constructs.__all__ if name not in CDK8S]
PUBLIC = [getattr(gpu_constructs, name) for name in OURS]
PACKAGE = Path(gpu_constructs.__file__).parent
USE = """import gpu_constructs
from gpu_constructs import {}
chart = Chart(App(), "chart")
version: str = gpu_constructs.__version__
"""

OBJECTS = """import cdk8s_plus_27 as kplus
from gpu_constructs import (
    ApiObject, App, Chart, DcgmExporter, EnvValue, GpuAlerts, GpuNamespace, GpuWorkload, NvidiaRuntimeClass, Ollama,
    PowerLimit, VolumeClaim,
)
chart = Chart(App(), "chart")
"""
RIGHT = """namespace = GpuNamespace(chart, "namespace")
secret = kplus.Secret(chart, "secret")
GpuWorkload(
    chart, "a", image="a:1", namespace=namespace, runtime_class=NvidiaRuntimeClass(chart, "class"),
    service_account=kplus.ServiceAccount(chart, "account"),
    image_pull_secrets=["a", secret, ApiObject(chart, "raw", api_version="v1", kind="Secret")],
    env={"A": "1", "B": EnvValue.secret(secret, key="k"), "C": kplus.EnvValue.from_value("c")},
    volumes={"/a": VolumeClaim(storage="1Gi"), "/b": secret},
)
Ollama(chart, "b", namespace=kplus.Namespace(chart, "other"))
GpuAlerts(chart, "c", exporter=DcgmExporter(chart, "d"), power_limit={"pool-.*": PowerLimit(chart, "e")})
"""
WRONG = """GpuWorkload(chart, "a", image="a:1", namespace=5)
GpuWorkload(chart, "b", image="a:1", env={"A": 1})
Ollama(chart, "c", volumes={"/a": "disk"})
GpuAlerts(chart, "d", exporter="dcgm-exporter")
"""


def test_the_six_constructs_come_first():
    assert gpu_constructs.__all__[:6] == SIX


def test_type_checkers_know_every_public_name_and_no_other(tmp_path, monkeypatch):
    static = re.findall(r"^    from \S+ import (\w+) as \1$", (PACKAGE / "__init__.py").read_text(), re.MULTILINE)
    assert sorted(static) == sorted(gpu_constructs.__all__)
    monkeypatch.chdir(PACKAGE.parent)
    (tmp_path / "use.py").write_text(USE.format(", ".join(gpu_constructs.__all__)))
    (tmp_path / "typo.py").write_text("from gpu_constructs import GpuOperater\n")
    used, _, code = mypy.api.run(["--strict", "--cache-dir", str(tmp_path), str(tmp_path / "use.py")])
    assert code == 0, used
    mistyped, _, _ = mypy.api.run(["--strict", "--cache-dir", str(tmp_path), str(tmp_path / "typo.py")])
    assert 'has no attribute "GpuOperater"; maybe "GpuOperator"?' in mistyped


def test_names_of_cdk8s_are_cdk8s_own():
    for name in CDK8S:
        assert getattr(gpu_constructs, name) is getattr(cdk8s, name)


def test_the_version_is_that_of_the_project(monkeypatch):
    project = tomllib.loads((PACKAGE.parent / "pyproject.toml").read_text())["project"]
    assert gpu_constructs.__version__ == project["version"]
    # A source tree that is on the path and not installed.
    monkeypatch.setattr("sys.path", [str(PACKAGE.parent)])
    assert gpu_constructs.__version__ == project["version"]


def test_every_public_name_is_there_once_and_listed():
    assert len(set(gpu_constructs.__all__)) == len(gpu_constructs.__all__)
    assert set(gpu_constructs.__all__) <= set(dir(gpu_constructs))
    namespace = {}
    exec("from gpu_constructs import *", namespace)
    assert set(gpu_constructs.__all__) <= set(namespace)


def test_an_unknown_name_is_an_import_error_that_says_which():
    with pytest.raises(ImportError, match="GpuNamespaces"):
        exec("from gpu_constructs import GpuNamespaces", {})
    with pytest.raises(AttributeError, match="GpuNamespaces"):
        gpu_constructs.GpuNamespaces  # noqa: B018


@pytest.mark.parametrize("name", FIXED)
def test_a_construct_takes_scope_and_id_and_the_fixed_keywords_with_their_defaults(name):
    parameters = inspect.signature(getattr(gpu_constructs, name).__init__).parameters
    assert list(parameters)[:3] == ["self", "scope", "id"]
    kinds = {parameter.kind for parameter in list(parameters.values())[3:]}
    assert kinds == {inspect.Parameter.KEYWORD_ONLY}
    assert {keyword: parameters[keyword].default for keyword in FIXED[name]} == FIXED[name]


@pytest.mark.parametrize("name", WHOLE)
def test_a_construct_of_which_all_keywords_are_fixed_has_no_other_in_any_other_order(name):
    assert list(inspect.signature(getattr(gpu_constructs, name).__init__).parameters)[3:] == list(FIXED[name])


def test_every_construct_that_makes_pods_takes_what_places_and_sizes_them():
    for name in set(FIXED) - WITHOUT_PODS:
        parameters = inspect.signature(getattr(gpu_constructs, name).__init__).parameters
        assert {"namespace", "platform", "tolerations", "node_selector", "image", "resources"} <= set(parameters)


def test_the_plugin_is_a_chart_and_the_other_constructs_go_into_one():
    assert issubclass(gpu_constructs.DevicePluginChart, Chart)
    for name in set(FIXED) - {"DevicePluginChart"}:
        construct = getattr(gpu_constructs, name)
        assert issubclass(construct, Construct)
        assert not issubclass(construct, Chart)


@pytest.mark.parametrize("name", [name for name in OURS if name != "GpuConstructsWarning"])
def test_editors_and_help_show_the_keywords_of_every_public_name(name):
    public = getattr(gpu_constructs, name)
    parameters = inspect.signature(public).parameters
    # ``synth`` takes any number of apps; no name hides its keywords.
    assert inspect.Parameter.VAR_KEYWORD not in {parameter.kind for parameter in parameters.values()}
    assert list(parameters)[:1] != ["args"]
    if inspect.isclass(public) and issubclass(public, Construct):
        assert list(parameters) == list(inspect.signature(public.__init__).parameters)[1:]
        heading = pydoc.plain(pydoc.render_doc(public)).partition("\n |  \n")[0]
        assert all(f"{keyword}: " in heading for keyword in parameters)


def test_no_public_keyword_is_typed_as_any_object():
    """A type checker would take everything, and an editor would show nothing."""
    untyped = [
        f"{name}.{member}({parameter.name})"
        for name, public in zip(OURS, PUBLIC, strict=True)
        for member, target in {"": public, **(vars(public) if inspect.isclass(public) else {})}.items()
        if not member.startswith("_") and inspect.isroutine(getattr(target, "__func__", target)) | (member == "")
        if name != "GpuConstructsWarning"
        for parameter in inspect.signature(getattr(target, "__func__", target)).parameters.values()
        if re.search(r"\bobject\b", str(parameter.annotation))
    ]
    assert untyped == []


def test_objects_of_every_library_fit_the_types_of_keywords_and_other_values_do_not(tmp_path, monkeypatch):
    monkeypatch.chdir(PACKAGE.parent)
    for file, text in {"right": RIGHT, "wrong": WRONG}.items():
        (tmp_path / f"{file}.py").write_text(OBJECTS + text)
    right, _, code = mypy.api.run(["--strict", "--cache-dir", str(tmp_path), str(tmp_path / "right.py")])
    assert code == 0, right
    wrong, _, _ = mypy.api.run(["--strict", "--cache-dir", str(tmp_path), str(tmp_path / "wrong.py")])
    assert [line.split(": error: ")[1].split(" has ")[0] for line in wrong.splitlines()[:-1] if "error" in line] == [
        'Argument "namespace" to "GpuWorkload"',
        "Dict entry 0",
        "Dict entry 0",
        'Argument "exporter" to "GpuAlerts"',
    ]


def test_options_are_made_as_documented():
    assert Sharing.time_slicing(replicas=5).replicas == 5
    assert Toleration(key="dedicated", operator="Equal", value="ai", effect="NoSchedule").value == "ai"
    assert {Talos("1.12"), Talos(), Kubernetes()} == {Talos(version="1.12"), Kubernetes(version="1.37")}


@pytest.mark.parametrize("public", PUBLIC, ids=OURS)
def test_a_public_name_and_its_members_say_what_they_are_for(public):
    assert (public.__doc__ or "").strip()
    assert not public.__doc__.startswith(f"{public.__name__}(")
    members = (
        [member for name, member in vars(public).items() if not name.startswith("_")] if inspect.isclass(public) else []
    )
    for member in members:
        target = getattr(member, "__func__", member)
        if inspect.isfunction(target) or isinstance(target, property):
            assert (inspect.getdoc(target) or "").strip()


@pytest.mark.parametrize("name", FIXED)
def test_every_keyword_of_a_construct_is_documented(name):
    init = getattr(gpu_constructs, name).__init__
    for keyword in list(inspect.signature(init).parameters)[1:]:
        assert re.search(rf"^\s+{keyword}: \S", init.__doc__, re.MULTILINE), keyword


STRUCTS = [public for public in PUBLIC if dataclasses.is_dataclass(public)]


@pytest.mark.parametrize("struct", STRUCTS, ids=lambda struct: struct.__name__)
def test_every_member_of_an_option_struct_is_documented(struct):
    documentation = "\n".join(inspect.getdoc(base) or "" for base in struct.__mro__)
    for field in dataclasses.fields(struct):
        assert re.search(rf"^\s+{field.name}: \S", documentation, re.MULTILINE), field.name


@pytest.mark.parametrize("struct", STRUCTS, ids=lambda struct: struct.__name__)
def test_an_option_struct_cannot_be_changed_after_it_was_checked(struct):
    assert struct.__dataclass_params__.frozen


def test_every_module_says_its_concept_in_its_first_line():
    names = [module.name for module in walk_packages([str(PACKAGE)], "gpu_constructs.")]
    assert "gpu_constructs.synthesis" in names
    for name in names:
        assert (import_module(name).__doc__ or "").splitlines()[0].strip(), name


def test_the_package_is_typed():
    assert (PACKAGE / "py.typed").is_file()
