"""Every kubectl command of the documents names things that are in dist/, or in one of two small tables."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import dist
import documents
import tables
from gpu_constructs.device_plugin.configs import NODE_LABEL
from gpu_constructs.kube.placement import GPU_PCI_PRESENT, GPU_PRESENT

NOT_OURS = {
    # cluster, kind, namespace, name, and who makes it
    ("talos-gpu-operator", "DaemonSet", "nvidia-gpu-operator", "nvidia-device-plugin-daemonset"): "the operator",
    ("talos-gpu-operator", "DaemonSet", "nvidia-gpu-operator", "nvidia-operator-validator"): "the operator",
    ("talos-gpu-operator", "ClusterPolicy", None, "cluster-policy"): "the operator's chart",
    ("talos-gpu-operator", "CustomResourceDefinition", None, "clusterpolicies.nvidia.com"): "the operator's chart",
}
TAINTS = {"dedicated": "of the example cluster, which all of its GPU pods tolerate"}
NODE_LABELS = {
    GPU_PRESENT: "published by our Node Feature Discovery",
    GPU_PCI_PRESENT: "published by our Node Feature Discovery",
    NODE_LABEL: "set by the reader, selected on by the DaemonSets of Configs.named",
    "nvidia.com/gpu.deploy.operator-validator": "set by the reader, read by the operator",
    "node-role.kubernetes.io/gpu": "an old label that the reader looks for",
}

KUBECTL = tables.read(Path(__file__).with_name("kubectl.yaml"))
NAMESPACED, CLUSTER_WIDE, WITH_VALUE = KUBECTL["namespaced"], KUBECTL["cluster_wide"], KUBECTL["with_value"]


class Call(NamedTuple):
    """A kubectl command, read."""

    verb: str
    words: list[str]
    flags: dict[str, str]


def read(command: list[str]) -> Call:
    """Read a command; a flag that no table knows is an error."""
    words: list[str] = []
    flags: dict[str, str] = {}
    rest = iter(command[1:])
    for word in rest:
        if word == "--":
            break
        name, has_value, value = word.partition("=")
        if word in KUBECTL["bare"]:
            flags[word] = ""
        elif name in WITH_VALUE:
            flags[WITH_VALUE[name]] = value if has_value else next(rest)
        elif word.startswith("-"):
            raise ValueError(f"unknown flag {word}")
        else:
            words.append(word)
    if words[:2] == ["rollout", "status"]:
        return Call("rollout status", words[2:], flags)
    return Call(words[0], words[1:], flags)


def is_placeholder(word: str) -> bool:
    return word.startswith(("<", "$"))


def target(call: Call) -> tuple[str, str | None]:
    """The kind and the name, if any, that the command is about."""
    if not call.words:
        return "Pod", None
    first, _, name = call.words[0].partition("/")
    if call.verb in KUBECTL["on_pods_of"] and not name:
        return "Pod", first
    kinds = {**NAMESPACED, **CLUSTER_WIDE}
    if first not in kinds:
        raise ValueError(f"unknown kind {first}")
    return kinds[first], name or (call.words[1] if len(call.words) > 1 else None)


def pod_labels(cluster: str, namespace: str | None) -> Iterator[dict[str, str]]:
    """The labels of the pods that a cluster's workloads make in a namespace, or in any."""
    for manifest in dist.objects(cluster):
        template = manifest.get("spec", {}).get("template", {})
        if "labels" in template.get("metadata", {}) and namespace in (None, manifest["metadata"]["namespace"]):
            yield template["metadata"]["labels"]


def selects(selector: str) -> dict[str, str]:
    return dict(term.split("=", 1) for term in selector.split(",") if term)


def fits(call: Call, cluster: str) -> bool:
    """Whether everything that the command names is in a cluster."""
    there: set[tuple[str, str | None, str]] = {
        (m["kind"], m["metadata"].get("namespace"), m["metadata"]["name"]) for m in dist.objects(cluster)
    }
    there |= {key[1:] for key in NOT_OURS if key[0] == cluster}
    namespace = call.flags.get("namespace")
    if namespace and not is_placeholder(namespace) and ("Namespace", None, namespace) not in there:
        return False
    kind, name = target(call)
    if kind in CLUSTER_WIDE.values():
        return kind == "Node" or name is None or (kind, None, name) in there
    if name and not is_placeholder(name) and (kind, namespace, name) not in there:
        return False
    if kind == "Pod" and "selector" in call.flags:
        wanted = selects(call.flags["selector"]).items()
        return any(wanted <= labels.items() for labels in pod_labels(cluster, namespace))
    return True


def problem(command: list[str]) -> str | None:
    """What is wrong with a kubectl command, or None."""
    try:
        call = read(command)
        if call.verb == "run":
            return _run_problem(call)
        if call.flags.get("file") == "-":
            return None  # What another command prints.
        if call.verb == "apply" or "file" in call.flags:
            path = dist.ROOT / call.flags["file"]
            folder_is_marked = call.flags["file"].endswith("/") == path.is_dir()
            return None if path.exists() and folder_is_marked else f"no such file: {call.flags['file']}"
        if call.verb not in (*KUBECTL["on_kind_and_name"], *KUBECTL["on_pods_of"]):
            return f"unknown verb {call.verb}"
        kind, _ = target(call)
    except (KeyError, ValueError) as error:
        return str(error)
    if kind == "Node":
        named = [*selects(call.flags["selector"])] if "selector" in call.flags else []
        named += [call.flags["columns"]] if "columns" in call.flags else []
        named += [word.rstrip("-").partition("=")[0] for word in call.words[2:]]
        unknown = [label for label in named if label not in (TAINTS if call.verb == "taint" else NODE_LABELS)]
        return f"node label that no one sets: {unknown[0]}" if unknown else None
    if kind not in CLUSTER_WIDE.values() and not {"namespace", "-A"} & call.flags.keys():
        return "no namespace"
    return None if any(fits(call, cluster) for cluster in dist.CLUSTERS) else "not in dist/"


def _run_problem(call: Call) -> str | None:
    overrides = json.loads(call.flags["overrides"])["spec"]
    (container,) = overrides["containers"]
    if (container["name"], container["image"]) != (call.words[0], call.flags["image"]):
        return "overrides are of another container"
    runtime_class, labels = ("RuntimeClass", None, overrides["runtimeClassName"]), overrides["nodeSelector"]
    there = {(m["kind"], None, m["metadata"]["name"]) for cluster in dist.CLUSTERS for m in dist.objects(cluster)}
    return None if runtime_class in there and set(labels) <= set(NODE_LABELS) else "overrides name what is not there"


def kubectl_commands(document: Path) -> list[list[str]]:
    found = documents.commands(document)
    return [words[1:] if "=" in words[0] else words for words in found if "kubectl" in words[:2]]


def test_the_commands_for_an_example_cluster_are_about_that_cluster() -> None:
    for cluster in dist.CLUSTERS:
        found = [
            words for words in documents.commands(documents.EXAMPLE_CLUSTERS, f"## {cluster}") if words[0] == "kubectl"
        ]
        assert ["kubectl", "apply", "-f", f"dist/{cluster}/"] in found
        for call in map(read, found):
            path = call.flags.get("file")
            assert path.startswith(f"dist/{cluster}/") if path else fits(call, cluster), call


def daemonsets(call: Call, cluster: str) -> set[str]:
    """The DaemonSets of a cluster whose pods a command takes, by their name or by a selector."""
    wanted = selects(call.flags.get("selector", "")).items()
    return {
        manifest["metadata"]["name"]
        for manifest in dist.objects(cluster)
        if manifest["kind"] == "DaemonSet" and wanted <= manifest["spec"]["template"]["metadata"]["labels"].items()
    }


def vague(command: list[str]) -> str | None:
    """How a command may show another pod than the one that is meant, or None."""
    call = read(command)
    if call.verb == "run":
        return None
    kind, name = target(call)
    if call.verb in {"logs", "exec"} and kind == "DaemonSet":
        return "takes the pod of any node"
    if kind == "Pod" and not name and call.flags.get("selector"):
        most = max(len(daemonsets(call, cluster)) for cluster in dist.CLUSTERS)
        return "takes pods of several DaemonSets" if most > 1 else None
    return None


def test_a_command_shows_the_pods_that_are_meant() -> None:
    """The example clusters have one GPU node each, so that any pod there is the one."""
    for document in sorted(set(documents.DOCUMENTS) - {documents.EXAMPLE_CLUSTERS}):
        assert not [" ".join(words) for words in kubectl_commands(document) if vague(words)]


def test_a_command_that_may_show_another_pod_would_be_found(rows) -> None:
    for line, says in rows:
        (command,) = documents.simple_commands(line)
        assert vague(command) == says


def test_a_drain_may_delete_the_pods_that_our_own_constructs_make() -> None:
    """They have emptyDir volumes, and pods of DaemonSets stand beside them."""
    text = "".join(document.read_text(encoding="utf-8") for document in documents.DOCUMENTS)
    drains = re.findall(r"kubectl drain[^`\n]*", text)
    assert drains
    assert [drain for drain in drains if not drain.endswith("--ignore-daemonsets --delete-emptydir-data")] == []


def test_no_kubectl_command_is_overlooked() -> None:
    for document in documents.DOCUMENTS:
        text = "".join(block.text for block in documents.blocks(document) if block.language != "console")
        assert text.count("kubectl ") == len(kubectl_commands(document)), document.name
    assert len(kubectl_commands(documents.EXAMPLE_CLUSTERS)) > 15
    assert len(kubectl_commands(dist.ROOT / "docs" / "troubleshooting.md")) > 40


def test_a_command_with_a_wrong_name_would_be_found(rows) -> None:
    for line, says in rows:
        (command,) = documents.simple_commands(line)
        assert problem(command) == (says or "node label that no one sets: nvidia.com/gpu.deploy.operator")


def test_commands_inside_pipes_and_substitutions_are_seen(expected) -> None:
    line = "POD=$(kubectl get pods -n a -o jsonpath='{.items[0]}' | grep x) && kubectl get ns  # kubectl get no"
    assert documents.simple_commands(line) == expected
