"""Mounted files, flags and environment variables of containers in plain manifests. Files come from ConfigMaps."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any

import yaml

from gpu_constructs.facts.readable import Manifest, at, kind_of, mapping, members, name_of, namespace_of

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_FLAG = re.compile(r"--?([a-z0-9-]+)(?:=(.*))?\Z", re.DOTALL)

Texts = Mapping[str, str]
"""Texts of the files in a folder, by name."""


class Files:
    """Manifests in which the library finds objects by name, and the files that containers mount from ConfigMaps.

    Attributes:
        objects: All manifests as plain data.
    """

    def __init__(self, objects: Sequence[Manifest]) -> None:
        self.objects = objects

    @cached_property
    def _maps(self) -> Mapping[tuple[str, str], Texts]:
        found = [one for one in self.objects if kind_of(one) == ("", "ConfigMap")]
        return {
            (namespace_of(one), name_of(one)): {
                key: text for key, text in at(one, "data").items() if isinstance(text, str)
            }
            for one in found
        }

    def named(self, kind: str, namespace: str, name: object) -> Manifest | None:
        """Return the object with the given kind, namespace and name. Return None if the manifests do not contain it.

        Args:
            kind: Kind of the object, such as ``ConfigMap``.
            namespace: Namespace of the object; ``default`` for an object whose manifest sets no namespace.
            name: Name of the object.
        """
        same = (one for one in self.objects if one["kind"] == kind and namespace_of(one) == namespace)
        return next((one for one in same if name_of(one) == name), None)

    def of_map(self, namespace: str, name: object) -> Texts | None:
        """Return the values in ``data`` of a ConfigMap, by key. If a pod mounts the ConfigMap, the keys are filenames.

        Return None if the manifests do not contain the ConfigMap.
        """
        return self._maps.get((namespace, str(name)))

    def folder(self, path: str, container: Manifest, pod: Manifest, namespace: str) -> Texts | None:
        """Return the texts of the files in a folder that a container mounts, by name of the file.

        Return None if the folder does not come from a ConfigMap among the manifests.

        Args:
            path: Path of the folder in the container.
            container: Container in the pod spec.
            pod: Pod spec.
            namespace: Namespace of the pod.
        """
        mounts = members(container.get("volumeMounts"))
        mount = next((one for one in mounts if posixpath.normpath(str(one.get("mountPath"))) == path), None)
        volumes = members(pod.get("volumes"))
        volume = next((one for one in volumes if mount and one.get("name") == mount.get("name")), None)
        source = mapping(mapping(volume).get("configMap"))
        texts = self.of_map(namespace, source.get("name"))
        if not mount or mount.get("subPath") or texts is None or not source.get("items"):
            return None if mount and mount.get("subPath") else texts
        chosen = {str(one.get("path")): str(one.get("key")) for one in members(source["items"])}
        return {name: texts[key] for name, key in chosen.items() if key in texts}

    def text(self, path: str, container: Manifest, pod: Manifest, namespace: str) -> str | None:
        """Return the text of a file that a container mounts.

        Return None if the file does not come from a ConfigMap among the manifests.

        Args:
            path: Path of the file in the container.
            container: Container in the pod spec.
            pod: Pod spec.
            namespace: Namespace of the pod.
        """
        home, name = posixpath.split(posixpath.normpath(path))
        for mount in members(container.get("volumeMounts")):
            if mount.get("mountPath") == path and mount.get("subPath"):
                # The mount is a single file: the same volume as a folder, and the name of the file in it.
                whole = {"volumeMounts": [{**mount, "mountPath": home, "subPath": None}]}
                return self.text(posixpath.join(home, str(mount["subPath"])), whole, pod, namespace)
        found = self.folder(home, container, pod, namespace)
        return None if found is None else found.get(name)


def loaded(text: str | None) -> Mapping[str, Any] | None:
    """Return the mapping that a YAML text contains. If the text is empty or None, return an empty mapping.

    Return None if the text is not YAML, or if its value is not a mapping.
    """
    try:
        value = yaml.load(text or "", _LOADER)
    except (yaml.YAMLError, ValueError, RecursionError):
        return None
    return {} if value is None else value if isinstance(value, Mapping) else None


def settings(container: Manifest) -> dict[str, str | None]:
    """Return the values of the environment variables and flags of a container, by name of the environment variable.

    The key of a flag such as ``--mig-strategy`` is ``MIG_STRATEGY``. The flag overrides the variable of this name. A
    value is None if the manifest does not contain the value, for example because it comes from a Secret.
    """
    variables = {str(one.get("name")): one.get("value") for one in members(container.get("env"))}
    unknown = {str(one.get("name")) for one in members(container.get("env")) if one.get("valueFrom")}
    found = {name: None if name in unknown else str(value or "") for name, value in variables.items()}
    return {**found, **dict(_flags(words_of(container)))}


def _flags(words: Sequence[str]) -> Iterator[tuple[str, str]]:
    for word, following in pairwise((*words, "--")):
        flag = _FLAG.match(word)
        if flag is not None:
            alone = "true" if following.startswith("-") else following
            yield flag[1].upper().replace("-", "_"), alone if flag[2] is None else flag[2]


def words_of(container: Manifest) -> list[str]:
    """Return the command and the arguments of a container as one list."""
    parts = (container.get(key) for key in ("command", "args"))
    return [str(word) for part in parts if isinstance(part, list) for word in part]
