"""The objects of an installation by construct path, as plain data without a construct tree."""

from gpu_constructs import DevicePlugin, Flags, GpuFeatureDiscovery, Kubernetes, MpsControlDaemon, PluginConfig
from gpu_constructs.catalog import versions
from gpu_constructs.device_plugin.agent import Installation
from gpu_constructs.device_plugin.installation import configs_of, manifests_of

PLAIN = PluginConfig()
OLD, NEW = (versions.DEVICE_PLUGIN[version] for version in ("0.18.2", "0.20.0"))
PLUGIN, LABELER, DAEMON = "Default", "gpu-feature-discovery/daemonset", "mps-control-daemon"


def installation(config=PLAIN, component=None, *, platform=Kubernetes(), release=NEW, defaults=None, **pods):  # noqa: B008
    """Return the options of an installation of all programs. One component can have its own options."""
    programs = {"plugin": DevicePlugin(), "labeler": GpuFeatureDiscovery(), "daemon": MpsControlDaemon()}
    for key, one in programs.items():
        programs[key] = component if isinstance(component, type(one)) else one
    return Installation(
        id="one",
        name="agent",
        instance="one",
        namespace="gpu",
        platform=platform,
        release=release,
        configs=configs_of(config, {}),
        defaults=defaults or Flags(mps_root="/run/nvidia/mps"),
        discovery=None,
        discovered_by="none",
        runtime_class=pods.get("runtime_class"),
        pods=pods,
        **programs,
    )


def manifests(*args, **given):
    return manifests_of(installation(*args, **given))


def pod(which, *args, **given):
    return manifests(*args, **given)[which]["spec"]["template"]["spec"]


def container(which, *args, **given):
    return pod(which, *args, **given)["containers"][-1]


def variables(found):
    names = [variable["name"] for variable in found["env"]]
    assert names == sorted(set(names))
    return {variable["name"]: variable.get("value", variable.get("valueFrom")) for variable in found["env"]}


def environment(*args, **given):
    """Return the variables of the plugin, without those of every installation."""
    return {name: variables(container(PLUGIN, *args, **given))[name] for name in _beyond(*args, **given)}


def _beyond(*args, **given):
    return sorted(variables(container(PLUGIN, *args, **given)).keys() - variables(container(PLUGIN)).keys())
