"""A values file for a Helm release that the cluster's owner installs beside the manifests."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from constructs import Construct

from gpu_constructs.kube import credentials, fields
from gpu_constructs.kube.side_files import SideFile
from gpu_constructs.kube.yaml_text import yaml_text
from gpu_constructs.tree.construct import GpuConstruct, checked


class HelmValues(GpuConstruct):
    """Values for ``helm install -f``; written by ``synth`` to ``dist/helm-values/``, never where kubectl reads.

    Emits no Kubernetes object.
    """

    @checked
    def __init__(self, scope: Construct, id: str, *, release: str, values: Mapping[str, Any]) -> None:
        """Make the values file.

        Args:
            scope: The App, or anything in it.
            id: Construct id.
            release: Name of the Helm release; the file is called ``<release>.values.yaml``.
            values: What the values file holds.

        Raises:
            GpuConstructsError: The release name is not a DNS label, or a value is a credential in plain text.
        """
        fields.dns_label("release", release)
        credentials.refuse_in_values(values, "name a Secret there, as the chart takes it, such as existingSecret")
        super().__init__(scope, id)
        self.release = release
        self.values = copy.deepcopy(dict(values))

    def side_files(self) -> list[SideFile]:
        """Return the values file."""
        return [SideFile(folder="helm-values", stem=self.release, text=self.to_yaml())]

    def to_yaml(self) -> str:
        """Return the file's text; a value of None, by which Helm drops a default, is kept as null."""
        return yaml_text(self.values)
