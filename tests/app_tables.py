"""Apps in the tables of tests, whose objects of Kubernetes are in short, and what is said of them.

- ``apiVersion`` may be left out for the kinds below. The name is ``x``, in the namespace of the table if it has one.
- ``name``, ``namespace``, ``labels`` and ``annotations`` are of the metadata; null leaves one out.
- ``pod`` is the spec of the pods that it makes, ``pod_metadata`` their metadata.
- Of a container the name is ``main`` and the image ``a:1``; null leaves one out. ``limits`` and ``requests`` are its
  resources.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from gpu_constructs.facts.app import Facts
from gpu_constructs.facts.finding import Finding

API_VERSIONS = {
    **dict.fromkeys("ConfigMap LimitRange List Namespace Pod ResourceQuota Secret Service".split(), "v1"),
    **dict.fromkeys("DaemonSet Deployment ReplicaSet StatefulSet".split(), "apps/v1"),
    **dict.fromkeys(("CronJob", "Job"), "batch/v1"),
    "PodDisruptionBudget": "policy/v1",
    "RuntimeClass": "node.k8s.io/v1",
}
PODS = {"Pod": (), "CronJob": ("spec", "jobTemplate", "spec", "template")}
METADATA = ("name", "namespace", "labels", "annotations")


def objects(written: Sequence[Any], namespace: str | None = None) -> list[Any]:
    """Return objects in full."""
    return [_object(one, namespace) if isinstance(one, dict) and "kind" in one else one for one in written]


def _object(written: Mapping[str, Any], namespace: str | None) -> dict[str, Any]:
    given, kind = dict(written), written["kind"]
    usual = {} if kind == "List" else {"name": "x", "namespace": namespace}
    metadata = {key: value for key in METADATA if (value := given.pop(key, usual.get(key))) is not None}
    made = {"apiVersion": given.pop("apiVersion", API_VERSIONS.get(kind)), "kind": kind, "metadata": metadata}
    pod, of_pods = given.pop("pod", None), given.pop("pod_metadata", None)
    made |= {key: _filled(value) for key, value in given.items()}
    if "items" in given:
        made["items"] = objects(given["items"], namespace)
    if pod is not None:
        at = made
        for step in PODS.get(kind, ("spec", "template")):
            at[step] = dict(at.get(step, {}))
            at = at[step]
        at |= {"spec": _filled(pod)} | ({"metadata": of_pods} if of_pods else {})
    return {key: value for key, value in made.items() if value or key not in ("apiVersion", "metadata")}


def _filled(value: Any) -> Any:
    """Return a value with its containers in full."""
    if isinstance(value, list):
        return [_filled(one) for one in value]
    if not isinstance(value, dict):
        return value
    return {
        key: [_container(one) for one in inner] if key in ("containers", "initContainers") and inner else _filled(inner)
        for key, inner in value.items()
    }


def _container(written: Any) -> Any:
    if not isinstance(written, dict):
        return written
    given = {"name": "main", "image": "a:1", **written}
    resources = {key: given.pop(key) for key in ("limits", "requests") if key in given}
    made = given | ({"resources": resources} if resources else {})
    return {key: value for key, value in made.items() if value is not None or key not in ("name", "image")}


def said(findings: Sequence[Finding]) -> list[str]:
    """Return what findings say, each as a sentence: objects by their place in the row, those who provide by theirs."""
    return [
        ("warning " if one.is_warning else "error ")
        + one.sentence("objects[{}]".format, "provided[{}]".format, finder="app")
        for one in findings
    ]


def fits(says: Sequence[str], patterns: Sequence[str]) -> bool:
    """Check whether each of some texts is the one that is expected, in which ``…`` stands for any words."""
    return len(says) == len(patterns) and all(
        re.fullmatch(re.escape(pattern).replace("…", ".*"), text, re.DOTALL)
        for text, pattern in zip(says, patterns, strict=True)
    )


def check_findings(
    find: Callable[[Facts], Iterable[Finding]], rows: Sequence[Any], namespace: str | None = None
) -> None:
    """Check what is found of the app of each row, and its words."""
    for row in rows:
        facts = Facts(objects(row["objects"], namespace), row.get("provided", ()), row.get("inventory"))
        findings = said(list(find(facts)))
        assert fits(findings, row["says"]), (row["objects"], findings)
