"""What a workload emits, as plain data that may still grow."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from gpu_constructs._config_map import sha256
from gpu_constructs.annotations import CONFIG_CHECKSUM
from gpu_constructs.errors import GpuConstructsError
from gpu_constructs.versions import KUBERNETES_RELEASES
from gpu_constructs.workload.container import Container
from gpu_constructs.workload.controller import Controller
from gpu_constructs.workload.env import EnvValue, environment
from gpu_constructs.workload.gpu_allocation import GpuAllocation, VisibleDevices
from gpu_constructs.workload.volume import Mounts

_FIRST_WITH_SIDECARS = "1.29"


@dataclass(kw_only=True)
class PlainWorkload:
    """A workload before its GPUs are given to it, and the objects that come of it.

    Attributes:
        pod_spec: The pod, without anything that its GPUs need; its first container holds them.
        metadata: Of the main object.
        selector: Labels that tell its pods from others.
    """

    controller: Controller
    metadata: Mapping[str, Any]
    selector: Mapping[str, str]
    pod_annotations: Mapping[str, str]
    pod_spec: dict[str, Any]
    mounts: Mounts
    env: Mapping[str, object]
    allocation: GpuAllocation
    visible_devices: VisibleDevices
    _config_maps: list[object] = field(default_factory=list)
    _disks_given: set[str] = field(default_factory=set)
    _body: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._note_config_maps(self.env)

    @contextmanager
    def all_or_nothing(self) -> Iterator[None]:
        """Compute the main object anew after a change; one that is refused leaves everything as it was."""
        pod_spec, mounts = {**self.pod_spec, "containers": [{**self.holder}]}, self.mounts.copy()
        config_maps = [*self._config_maps]
        try:
            yield
            self.render()
        except GpuConstructsError:
            self.pod_spec, self.mounts, self._config_maps = pod_spec, mounts, config_maps
            raise

    @property
    def holder(self) -> dict[str, Any]:
        """The container that holds the GPUs."""
        container: dict[str, Any] = self.pod_spec["containers"][0]
        return container

    @property
    def claim_template(self) -> str:
        """Name of its ResourceClaimTemplate."""
        return f"{self.metadata['name']}-gpu"

    def attach_volume(self, path: str, volume: object) -> None:
        """Mount something more where the GPUs are."""
        if any(mount["mountPath"] == path for mount in self.holder["volumeMounts"] or ()):
            raise GpuConstructsError(f"volumes[{path!r}] is given already; leave one of the two out")
        self.holder["volumeMounts"] = [*(self.holder["volumeMounts"] or ()), *self.mounts.mounted({path: volume})]
        self._note_config_maps({})

    def add_env(self, name: str, value: object) -> None:
        """Set one more variable where the GPUs are."""
        there = self.holder["env"] or []
        if any(variable["name"] == name for variable in there):
            raise GpuConstructsError(f"env[{name!r}] is set already; leave one of the two out")
        managed = self.visible_devices == "managed"
        self.holder["env"] = [*there, *environment({name: value}, visible_devices_is_managed=managed)]
        self._note_config_maps({name: value})

    def add_init_container(self, container: Container) -> None:
        """Run a container before the others, and before the sidecars."""
        if container.startup_probe or container.readiness_probe or container.liveness_probe:
            raise GpuConstructsError("container of init_containers must have no probes: it only runs to its end")
        self._add(container, {})

    def add_sidecar(self, container: Container) -> None:
        """Run a container beside the main one."""
        release = self.allocation.profile.platform.kubernetes
        if KUBERNETES_RELEASES.index(release) < KUBERNETES_RELEASES.index(_FIRST_WITH_SIDECARS):
            raise GpuConstructsError(
                f"sidecars need Kubernetes {_FIRST_WITH_SIDECARS} or later, got {release}; before, such a container "
                "keeps a Job from ending: run it as a workload of its own"
            )
        self._add(container, {"restartPolicy": "Always"})

    def _add(self, container: Container, more: Mapping[str, str]) -> None:
        before = self.pod_spec.get("initContainers") or []
        for other in (self.holder, *before):
            if other["name"] == container.name:
                raise GpuConstructsError(f"container.name {container.name!r} is taken already; choose another")
        made = {**container.to_manifest(self.mounts), **more}
        first_sidecar = next((i for i, one in enumerate(before) if "restartPolicy" in one), len(before))
        place = len(before) if more else first_sidecar
        self.pod_spec["initContainers"] = [*before[:place], made, *before[place:]]
        self._note_config_maps(container.env or {})

    def _note_config_maps(self, env: Mapping[str, object]) -> None:
        """Remember ConfigMaps that were handed over as objects; pods that end read the new one at their next start."""
        if not self.controller.serves:
            return
        of_env = [value.of_object for value in env.values() if isinstance(value, EnvValue) and value.of_object]
        for one in (*self.mounts.objects, *of_env):
            kind = getattr(getattr(one, "api_object", one), "kind", None)
            if kind == "ConfigMap" and all(one is not other for other in self._config_maps):
                self._config_maps.append(one)

    def new_disks(self) -> list[dict[str, Any]]:
        """Give the PersistentVolumeClaims that were not given yet; a StatefulSet holds them in itself."""
        if self.controller.kind == "StatefulSet":
            return []
        claims = {name: claim for name, claim in self.mounts.claims.items() if name not in self._disks_given}
        self._disks_given.update(claims)
        return [
            {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "metadata": {**self.metadata, "name": self._disk(name), "annotations": None},
                "spec": claim.spec(),
            }
            for name, claim in claims.items()
        ]

    def _disk(self, volume: str) -> str:
        return f"{self.metadata['name']}-{volume}"

    def render(self) -> None:
        """Compute the main object anew.

        Raises:
            GpuConstructsError: What was given contradicts itself.
        """
        is_pod = self.controller.kind == "Pod"
        annotations = {**(self.metadata["annotations"] or {}), **(self.pod_annotations if is_pod else {})}
        sources, templates = self._volumes()
        pod = self.allocation.give(
            {**self.pod_spec, "securityContext": self._security() or None, "volumes": sources or None},
            claim_template=self.claim_template,
            visible_devices=self.visible_devices,
        )
        if pod.get("initContainers"):
            pod = dict(self.allocation.hide_from_others(pod))
        self._body = self.controller.manifest(
            {**self.metadata, "annotations": annotations or None},
            pod,
            selector=self.selector,
            pod_annotations=self.pod_annotations,
            volume_claim_templates=templates,
        )

    def _security(self) -> Mapping[str, Any]:
        """Give the pod's security context; where a user that is not root has a disk, the group that may write it."""
        given: Mapping[str, Any] = self.pod_spec.get("securityContext") or {}
        if given.get("fsGroup") is not None or not given.get("runAsUser") or not self.mounts.has_disk:
            return given
        # Else the kubelet walks through a disk full of models at every start.
        return {**given, "fsGroup": given["runAsUser"], "fsGroupChangePolicy": "OnRootMismatch"}

    def _volumes(self) -> tuple[list[Mapping[str, Any]], Sequence[Mapping[str, Any]]]:
        sources: list[Mapping[str, Any]] = list(self.mounts.sources)
        templates = []
        for volume, claim in self.mounts.claims.items():
            if self.controller.kind == "StatefulSet":
                templates.append({"metadata": {"name": volume}, "spec": claim.spec()})
                continue
            if self.controller.pods_at_once > 1 and not claim.serves_several_nodes:
                raise GpuConstructsError(
                    f"volumes: a VolumeClaim with access_modes {list(claim.access_modes)} serves one node, but "
                    f"{self.controller.pods_at_once} pods run at once; use kind='StatefulSet' for a disk of each, or "
                    "access_modes=['ReadWriteMany']"
                )
            sources.append({"name": volume, "persistentVolumeClaim": {"claimName": self._disk(volume)}})
        return sources, templates

    def manifest(self, content_of: Callable[[object], object]) -> dict[str, Any]:
        """Give the main object, with the checksum of the ConfigMaps that its pods read.

        Args:
            content_of: Gives what a ConfigMap object will be emitted as.
        """
        if not self._config_maps:
            return self._body
        text = json.dumps([content_of(one) for one in self._config_maps], sort_keys=True)
        spec = self._body["spec"]
        metadata = spec["template"]["metadata"]
        annotations = {**(metadata["annotations"] or {}), CONFIG_CHECKSUM: sha256(text)}
        template = {**spec["template"], "metadata": {**metadata, "annotations": annotations}}
        return {**self._body, "spec": {**spec, "template": template}}
