from gpu_constructs import (
    DcgmExporter,
    DevicePluginChart,
    External,
    GpuNamespace,
    GpuWorkload,
    Kubernetes,
    Sharing,
    Talos,
)
from gpu_constructs.facts.provided import Provided, Provider, providers_in


def test_only_constructs_that_add_to_the_cluster_declare_it(app, chart):
    assert isinstance(DevicePluginChart(app, "plugin"), Provider)
    assert isinstance(External(app, "existing"), Provider)
    assert not isinstance(GpuNamespace(chart, "namespace"), Provider)
    assert not isinstance(chart, Provider)


def test_nothing_is_provided_by_default():
    assert Provided() == Provided(node_labels=(), runtime_classes=(), namespaces=(), gpu_resources={}, platform=None)
    assert Provided() == Provided(components=(), is_alone=False, needs={}, wants_node_labels={})


def test_the_chart_of_the_plugin_declares_its_components(app):
    everything = DevicePluginChart(app, "everything").provides
    assert everything.components == ("device-plugin", "gpu-feature-discovery", "node-feature-discovery")
    discovery = DevicePluginChart(app, "discovery", device_plugin=False, node_feature_discovery="external")
    assert discovery.provides.components == ("gpu-feature-discovery",)
    assert not everything.is_alone


def test_the_exporter_is_a_component(chart):
    assert DcgmExporter(chart, "exporter").provides.components == ("dcgm-exporter",)


def test_the_plugin_provides_the_labels_of_its_discovery_and_the_resource_of_its_sharing(app):
    sharing = Sharing.time_slicing(replicas=4, rename_by_default=True)
    provides = DevicePluginChart(app, "plugin", sharing=sharing).provides
    assert provides.gpu_resources == {"nvidia.com/gpu.shared": sharing}
    for label in ("feature.node.kubernetes.io/pci-10de.present", "nvidia.com/gpu.present", "nvidia.com/gpu.product"):
        assert provides.publishes(label)
    assert provides.pod_security_default == "baseline"


def test_the_plugin_alone_provides_no_labels(app):
    provides = DevicePluginChart(
        app, "plugin", platform=Kubernetes(), node_feature_discovery=False, gpu_feature_discovery=False
    ).provides
    assert provides.node_labels == ()
    assert provides.gpu_resources == {"nvidia.com/gpu": Sharing.none()}
    assert provides.pod_security_default is None


def test_equal_declarations_of_workloads_appear_once(chart):
    made = [GpuWorkload(chart, f"train-{number}", image="a:1", platform=Kubernetes()) for number in range(3)]
    other = GpuWorkload(chart, "other", image="a:1")
    providers, provided = providers_in([chart, *made, other])
    assert providers == [made[0], other]
    assert [one.platform for one in provided] == [Kubernetes(), Talos("1.12")]
    assert [one.pod_security_default for one in provided] == [None, None]
