"""What a recipe makes of what a test says."""

from cdk8s import App, Chart, Testing

from gpu_constructs.kube.pod_specs import pod_specs
from refusals import check_refusals, refusal


class Recipe:
    """A construct at a path, with the keywords that it needs in any case."""

    def __init__(self, construct, path, **given):
        self.construct, self.path, self.given = construct, path, given

    def chart(self, **more):
        name, id = self.path.split("/")
        chart = Chart(App(), name)
        self.construct(chart, id, **{**self.given, **more})
        return chart

    def manifests(self, **more):
        return Testing.synth(self.chart(**more))

    def by_kind(self, **more):
        return {manifest["kind"]: manifest for manifest in self.manifests(**more)}

    def pod(self, kind="Deployment", **more):
        (spec,) = pod_specs(self.by_kind(**more)[kind])
        return spec

    def container(self, kind="Deployment", **more):
        (only,) = self.pod(kind, **more)["containers"]
        return only

    def env(self, kind="Deployment", **more):
        return {one["name"]: one.get("value") for one in self.container(kind, **more).get("env", ())}

    def refusal(self, **more):
        return refusal(self.chart, **more)

    def refuses(self, rows):
        check_refusals(self.chart, rows, at=f"{self.path}: ")
