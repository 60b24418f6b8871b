"""Functions that choose the manifest file in ``dist/`` for each object of an app."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from cdk8s import ApiObject, App, JsonPatch, Names
from constructs import IConstruct

from gpu_constructs.errors import GpuConstructsError
from gpu_constructs.kube import kinds, side_files, yaml_text
from gpu_constructs.output.examination import Examined
from gpu_constructs.output.files import METADATA_FILE, NEEDS_CRDS_FOLDER, SUFFIX, OutputFiles
from gpu_constructs.output.rendering import Rendered

NAMESPACES_FILE = "00-namespaces"
CRDS_FILE = "01-crds"
CLASSES_FILE = "02-classes"
HEADER = side_files.first_line(SUFFIX)


def add_files(checked: Examined, rendered: Rendered, output: OutputFiles) -> list[str]:
    """Add the manifest files, values files, machine configurations and reports of an app to ``output``.

    Return a list that contains the first problem as text, or an empty list if there is no problem.

    Args:
        checked: Result of the checks of the app.
        rendered: Rendered objects of the app.
        output: Output files that ``synth`` writes later.
    """
    given_outdir = Path(checked.app.outdir)
    outdir = given_outdir.resolve()
    try:
        for name, manifests in _sorted_into_files(rendered).items():
            path = outdir / name
            text = "---\n".join(map(yaml_text.manifest_text, manifests))
            output.texts[path] = side_files.marked(path.name, text, output.program)
    except UnicodeEncodeError as error:
        held = error.object[error.start : error.end]
        return [f"{path.name}: objects must contain text that UTF-8 can encode, got {held!r}. Leave it out"]
    except GpuConstructsError as error:
        return [str(error)]
    if _records_metadata(checked.app):
        path = outdir / METADATA_FILE
        output.texts[path] = side_files.marked(path.name, _metadata(checked.constructs), output.program)
    for construct in checked.constructs:
        for file in construct.side_files() if hasattr(construct, "side_files") else ():
            path = output.folder(file.folder, given_outdir) / file.name
            if path in output.texts:
                return [
                    f"{construct.node.path}: another construct already writes {file.folder}/{path.name}. "
                    "Give one of them another name"
                ]
            output.texts[path] = side_files.marked(file.name, file.text, output.program)
    return []


def _sorted_into_files(rendered: Rendered) -> dict[str, list[dict[str, Any]]]:
    """Return the objects of each manifest file, by the path of the file in the output folder of the app.

    Raises:
        GpuConstructsError: If a cdk8s chart has the name of a file for objects of all charts, such as
            ``00-namespaces``.
    """
    files: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for chart, own in rendered.charts:
        name = Names.to_dns_label(chart)
        if name in (NAMESPACES_FILE, CRDS_FILE, CLASSES_FILE):
            problem = f"id must not be {name!r}, which is the file for {name[3:]} of all charts. Choose another ID"
            raise GpuConstructsError(problem, path=chart.node.path)
        for index in own:
            manifest = rendered.manifests[index]
            # This runs after the checks, because messages of the checks quote amounts as the user wrote them.
            kinds.make_canonical(manifest)
            files[_file_of(manifest, name)].append(manifest)
    return files


def _records_metadata(app: App) -> bool:
    """Check whether the user set ``App(record_construct_metadata=True)``. cdk8s does not expose it as an attribute."""

    def is_set_to(value: bool) -> bool:
        try:
            JsonPatch.apply(app, JsonPatch.test("/recordConstructMetadata", value))
        except RuntimeError:
            return False
        return True

    return not is_set_to(False) and is_set_to(True)


def _metadata(constructs: Sequence[IConstruct]) -> str:
    """Return the text of ``construct-metadata.json``: the construct path of each object, in the format of cdk8s."""
    made = [construct for construct in constructs if isinstance(construct, ApiObject)]
    resources = {one.name: {"path": one.node.path} for one in made}
    return json.dumps({"version": "1.0.0", "resources": resources}, indent=2) + "\n"


def _file_of(manifest: Mapping[str, Any], chart: str) -> str:
    group = kinds.group_of(manifest["apiVersion"])
    if (group, manifest["kind"]) == ("", "Namespace"):
        return NAMESPACES_FILE + SUFFIX
    if (group, manifest["kind"]) == ("apiextensions.k8s.io", "CustomResourceDefinition"):
        return CRDS_FILE + SUFFIX
    # Kubernetes rejects or delays a pod until its RuntimeClass, PriorityClass, DeviceClass or StorageClass exists.
    if manifest["kind"].endswith("Class") and kinds.is_cluster_scoped(manifest["apiVersion"], manifest["kind"]):
        return CLASSES_FILE + SUFFIX
    # This applies even if the app defines the kind, because kubectl looks up all kinds before it applies the first
    # object.
    if group not in kinds.BUILT_IN_GROUPS:
        return f"{NEEDS_CRDS_FOLDER}/{chart}{SUFFIX}"
    return chart + SUFFIX
