"""What an exporter renders, for tests of either of them."""

from cdk8s import App, Chart, Testing

import refusals


class Rendering:
    """Renders one exporter with the keywords of a test."""

    def __init__(self, exporter, name):
        self.exporter, self.name = exporter, name

    def made(self, **given):
        return self.exporter(Chart(App(), "gpu"), "exporter", **given)

    def objects(self, **given):
        chart = Chart(App(), "gpu")
        self.exporter(chart, "exporter", **{"dashboard": False, **given})
        return Testing.synth(chart)

    def refusal(self, **given):
        return refusals.refusal(self.made, **given).removeprefix("gpu/exporter: ")

    def find(self, kind, *, called="", **given):
        name = given.get("name", self.name) + called
        (found,) = (m for m in self.objects(**given) if (m["kind"], m["metadata"]["name"]) == (kind, name))
        return found

    def daemonset(self, **given):
        return self.find("DaemonSet", **{"scrape": "none", **given})

    def pod(self, **given):
        return self.daemonset(**given)["spec"]["template"]["spec"]

    def container(self, **given):
        (only,) = self.pod(**given)["containers"]
        return only

    def variables(self, **given):
        return {one["name"]: one.get("value", one.get("valueFrom")) for one in self.container(**given)["env"]}

    def volumes(self, **given):
        """Source and mount of each volume, by its name."""
        spec = self.pod(**given)
        sources = {volume.pop("name"): volume for volume in spec.get("volumes", ())}
        mounts = {mount.pop("name"): mount for mount in spec["containers"][0].get("volumeMounts", ())}
        return {name: (source, mounts[name]) for name, source in sources.items()}

    def endpoint(self, **given):
        spec = self.find(given.get("scrape", "ServiceMonitor"), **given)["spec"]
        (endpoint,) = spec.get("endpoints") or spec["podMetricsEndpoints"]
        return endpoint
