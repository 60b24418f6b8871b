"""What a construct emits that runs a script from a ConfigMap on every node, part by part."""

from typing import Any

from cdk8s import App, Chart, Testing

import refusals
from gpu_constructs.kube.config_map import sha256


class ScriptedDaemonSet:
    """One construct, made anew with the keywords of each question."""

    def __init__(self, construct: Any, id: str) -> None:
        self.construct, self.id = construct, id

    def chart_with(self, **given: Any) -> Chart:
        chart = Chart(App(), "gpu")
        self.construct(chart, self.id, **given)
        return chart

    def rendered(self, **given: Any) -> list[dict[str, Any]]:
        return Testing.synth(self.chart_with(**given))

    def refusal(self, **given: Any) -> str:
        return refusals.refusal(self.chart_with, **given)

    def daemonset(self, **given: Any) -> dict[str, Any]:
        (found,) = (manifest for manifest in self.rendered(**given) if manifest["kind"] == "DaemonSet")
        return found

    def pod(self, **given: Any) -> dict[str, Any]:
        return self.daemonset(**given)["spec"]["template"]["spec"]

    def container(self, **given: Any) -> dict[str, Any]:
        (only,) = self.pod(**given)["containers"]
        return only

    def environment(self, **given: Any) -> dict[str, str]:
        return {variable["name"]: variable["value"] for variable in self.container(**given)["env"]}

    def script(self) -> str:
        (data,) = (manifest["data"] for manifest in self.rendered() if manifest["kind"] == "ConfigMap")
        (text,) = data.values()
        return text


def without_script(manifests: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The script is read where it lies; here only that it is there, and once."""
    (config_map,) = (manifest for manifest in manifests if manifest["kind"] == "ConfigMap")
    ((name, text),) = config_map["data"].items()
    short = {**config_map, "data": {name: "(the script)\n"}}
    manifests = [short if manifest is config_map else manifest for manifest in manifests]
    annotations = manifests[-1]["spec"]["template"]["metadata"]["annotations"]
    assert annotations == {"gpu-constructs/script-sha256": sha256(text)}
    annotations["gpu-constructs/script-sha256"] = "(its checksum)"
    return manifests
