import pytest
from cdk8s import ApiObject

from gpu_constructs import GpuConstructsError
from gpu_constructs.observability.exporter_options import DebugDump, ExporterService, MetricsConfigMap

NAME = "must be a DNS subdomain (DNS labels joined by '.', at most 253 characters)"


@pytest.mark.parametrize(
    ("struct", "given", "problem"),
    [
        (MetricsConfigMap, {}, "config_map is required by MetricsConfigMap"),
        (
            MetricsConfigMap,
            {"config_map": 5},
            "metrics.config_map must be the name of a ConfigMap or a ConfigMap object; got int",
        ),
        (MetricsConfigMap, {"config_map": "My_List"}, f"metrics.config_map {NAME}; got 'My_List'"),
        (
            MetricsConfigMap,
            {"config_map": "a", "key": "x/y"},
            "metrics.key must be letters, digits, '-', '_' or '.'; got 'x/y'",
        ),
        (
            ExporterService,
            {"cluster_ip": "none"},
            "service.cluster_ip must be an address, or 'None' for a headless Service; got 'none'",
        ),
        (MetricsConfigMap, {"config_map": "a", "key": 5}, "metrics.key must be str; got int: 5"),
        (MetricsConfigMap, {"config_map": "a", "is_profiled": 1}, "metrics.is_profiled must be bool; got int: 1"),
        (
            ExporterService,
            {"type": "ExternalName"},
            "service.type must be one of 'ClusterIP', 'NodePort', 'LoadBalancer'; got 'ExternalName'",
        ),
        (
            ExporterService,
            {"type": "NodePort", "cluster_ip": "None"},
            "service.cluster_ip must not be 'None' with type 'NodePort'; leave it out",
        ),
        (
            ExporterService,
            {"internal_traffic_policy": "local"},
            "service.internal_traffic_policy must be one of 'Cluster', 'Local'; got 'local' (did you mean 'Local'?)",
        ),
        (
            ExporterService,
            {"annotations": {"a b": "x"}},
            "service.annotations has a key that is no label key; got 'a b'",
        ),
        (ExporterService, {"annotations": {"a": 5}}, "service.annotations['a'] must be str; got int: 5"),
        (ExporterService, {"annotations": ["a"]}, "service.annotations must be Mapping; got list: ['a']"),
        (ExporterService, {"kind": "ClusterIP"}, "kind is no member of ExporterService"),
        (DebugDump, {"retention": 0}, "debug_dump.retention must be at least 1, got 0"),
        (DebugDump, {"retention": 8761}, "debug_dump.retention must be at most 8760, got 8761"),
        (DebugDump, {"retention": True}, "debug_dump.retention must be an int, got True (bool)"),
        (DebugDump, {"compression": 1}, "debug_dump.compression must be bool; got int: 1"),
    ],
    ids=str,
)
def test_what_cannot_work_is_refused(struct, given, problem):
    with pytest.raises(GpuConstructsError) as refused:
        struct(**given)
    assert str(refused.value) == problem


def test_a_list_of_somebody_else_is_named_or_handed_over(chart):
    made = ApiObject(chart, "list", api_version="v1", kind="ConfigMap")
    assert MetricsConfigMap(config_map=made) == MetricsConfigMap(config_map=made.name)


def test_a_secret_is_no_list(chart):
    with pytest.raises(GpuConstructsError) as refused:
        MetricsConfigMap(config_map=ApiObject(chart, "list", api_version="v1", kind="Secret"))
    assert str(refused.value) == (
        "metrics.config_map must be the name of a ConfigMap or a ConfigMap object; got a Secret"
    )


def test_a_list_of_somebody_else_is_the_exporters_key_and_not_profiled_unless_said():
    assert (MetricsConfigMap(config_map="a").key, MetricsConfigMap(config_map="a").is_profiled) == ("metrics", False)


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"cluster_ip": "None"},
        {"cluster_ip": "10.96.0.10", "type": "LoadBalancer"},
        {"internal_traffic_policy": "Local", "type": "NodePort"},
        {"annotations": {"example.com/note": "any text: with {braces}"}},
    ],
    ids=str,
)
def test_a_service_that_kubernetes_takes_is_taken_as_it_is(given):
    service = ExporterService(**given)
    assert {name: getattr(service, name) for name in given} == given


def test_annotations_changed_afterwards_change_nothing():
    annotations = {"a": "b"}
    service = ExporterService(annotations=annotations)
    annotations["c"] = "d"
    assert service.annotations == {"a": "b"}


def test_dumps_are_kept_a_day_and_compressed():
    assert DebugDump() == DebugDump(retention=24, compression=True)


@pytest.mark.parametrize("hours", [1, 8760])
def test_a_dump_is_kept_from_an_hour_to_a_year(hours):
    assert DebugDump(retention=hours).retention == hours
