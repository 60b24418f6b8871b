"""A values file for a Helm release that users install besides the manifests."""

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
    """A values file for ``helm install -f``.

    ``synth`` writes the values file to ``dist/helm-values/``, apart from the manifest files for ``kubectl apply``. The
    construct emits no Kubernetes object.
    """

    @checked
    def __init__(self, scope: Construct, id: str, *, release: str, values: Mapping[str, Any]) -> None:
        """Create the values file.

        Args:
            scope: App, or any construct in it.
            id: ID of the construct.
            release: Name of the Helm release. The name of the values file is ``<release>.values.yaml``.
            values: Content of the values file.

        Raises:
            GpuConstructsError: The release name is not a DNS label, or a value is a credential in plain text.
        """
        fields.dns_label("release", release)
        credentials.refuse_in_values(values, "use a Helm value that names a Secret, such as existingSecret")
        super().__init__(scope, id)
        self.release = release
        self.values = copy.deepcopy(dict(values))

    def side_files(self) -> list[SideFile]:
        """Return the values file as the only file that ``synth`` writes for this construct."""
        return [SideFile(folder="helm-values", stem=self.release, text=self.to_yaml())]

    def to_yaml(self) -> str:
        """Return the text of the values file. A value of None becomes ``null``, with which Helm removes a default."""
        return yaml_text(self.values)
