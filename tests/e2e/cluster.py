"""A cluster as tests see it: objects by kind and name, kubectl, and a way back to how it was."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import httpx

from assets import AssetsError
from control_plane import Access
from namespaces import Namespaces

Manifest = Mapping[str, Any]
Found = dict[str, Any]
T = TypeVar("T")

_ONLY_METADATA = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
_DISCOVERY = "application/json;as=APIGroupDiscoveryList;g=apidiscovery.k8s.io;v=v2"
# The cluster makes them by itself, and deletes them with what they belong to.
_NOT_OURS = frozenset({"APIService", "Event", "Lease", "EndpointSlice", "Endpoints", "ControllerRevision"})
# Controllers put them into each namespace, the last one in builds of some distributions.
_NEEDED_BY_PODS = (("ServiceAccount", "default"), ("ConfigMap", "kube-root-ca.crt"))
_OWNED_BY_A_NAMESPACE = frozenset({*_NEEDED_BY_PODS, ("ConfigMap", "openshift-service-ca.crt")})


class ApiError(Exception):
    """A request that the API server refused.

    Attributes:
        status: HTTP status, such as 403.
        message: Message of the API server.
    """

    def __init__(self, status: int, message: str) -> None:
        super().__init__(f"{status}: {message}")
        self.status, self.message = status, message


@dataclass(frozen=True)
class Answer:
    """What a command printed.

    Attributes:
        status: Exit status.
        stdout: Standard output.
        stderr: Standard error.
    """

    status: int
    stdout: str
    stderr: str

    @property
    def lines(self) -> list[str]:
        """Lines of standard output."""
        return self.stdout.splitlines()


class Cluster:
    """A cluster, reached as its administrator.

    Attributes:
        access: How to reach it.
        warnings: What the API server has warned of since the last ``clear`` of this list.
    """

    def __init__(self, access: Access, names: Namespaces | None = None) -> None:
        """Connect to a cluster.

        Args:
            access: How to reach it.
            names: Names of namespaces in a cluster that the suite shares with others. Default: as tests write them.
        """
        self.access = access
        self.warnings: list[str] = []
        self._names = names or Namespaces()
        self._made: set[tuple[str, str]] = set()
        self._client = access.client()
        self._paths: dict[tuple[str, str], tuple[str, bool]] = {}
        self._before: frozenset[str] = frozenset()

    def twin(self) -> Cluster:
        """Return the same cluster with connections of its own, for another thread."""
        other = Cluster(self.access, self._names)
        other._made = self._made
        return other

    # --- objects ----------------------------------------------------------------------------------------------

    def create(self, manifest: Manifest, *, dry_run: bool = False) -> Found:
        """Create an object, with strict validation.

        Raises:
            ApiError: The API server refuses it.
        """
        query = {"fieldValidation": "Strict"} | ({"dryRun": "All"} if dry_run else {})
        self._claim(manifest)
        body = self._names.in_manifest(manifest)
        return self._send("POST", self._path_of(manifest, named=False), json=body, params=query)

    def apply(self, *manifests: Manifest) -> list[Found]:
        """Apply objects on the server with strict validation: namespaces and definitions first.

        Wait for what the cluster adds by itself: what a pod needs of its namespace, and the API of a definition.

        Raises:
            ApiError: The API server refuses one.
        """
        first = ("Namespace", "CustomResourceDefinition", "PriorityClass", "RuntimeClass", "StorageClass")
        ordered = sorted(manifests, key=lambda manifest: manifest["kind"] not in first)
        applied = [self._apply(manifest) for manifest in ordered]
        names = {kind: {one["metadata"]["name"] for one in ordered if one["kind"] == kind} for kind in first[:2]}
        for namespace in names["Namespace"]:
            eventually(lambda name=namespace: self._takes_pods(name), f"{namespace} has what pods need")
        if names["CustomResourceDefinition"]:
            eventually(lambda: names["CustomResourceDefinition"] <= self._served(), "the definitions are served")
        return applied

    def get(self, api_version: str, kind: str, name: str, namespace: str | None = None) -> Found:
        """Return an object.

        Raises:
            ApiError: It does not exist.
        """
        return self._send("GET", self._path(api_version, kind, namespace, name))

    def find(self, api_version: str, kind: str, name: str, namespace: str | None = None) -> Found | None:
        """Return an object, or None if it does not exist."""
        try:
            return self.get(api_version, kind, name, namespace)
        except ApiError as error:
            if error.status == 404:
                return None
            raise

    def has(self, manifest: Manifest) -> bool:
        """Check whether an object exists."""
        metadata = manifest["metadata"]
        return (
            self.find(manifest["apiVersion"], manifest["kind"], metadata["name"], metadata.get("namespace")) is not None
        )

    def list(self, api_version: str, kind: str, namespace: str | None = None, *, labels: str = "") -> list[Found]:
        """Return all objects of a kind: of one namespace, or of all of them."""
        query = {"labelSelector": labels} if labels else {}
        found = self._send("GET", self._path(api_version, kind, namespace), params=query)
        return [{**item, "apiVersion": api_version, "kind": kind} for item in found["items"] or ()]

    def patch(self, manifest: Manifest, change: Any, *, part: str = "") -> Found:
        """Change an object by a JSON merge patch; ``part`` is a subresource such as ``status``.

        Raises:
            ApiError: The API server refuses the change.
        """
        path = self._path_of(manifest) + (f"/{part}" if part else "")
        return self._send(
            "PATCH", path, content=json.dumps(change), headers={"Content-Type": "application/merge-patch+json"}
        )

    def replace(self, manifest: Manifest, *, part: str = "") -> Found:
        """Replace an object, or a subresource of it.

        Raises:
            ApiError: The API server refuses it.
        """
        return self._send(
            "PUT", self._path_of(manifest) + (f"/{part}" if part else ""), json=self._names.in_manifest(manifest)
        )

    def delete(self, manifest: Manifest, *, propagation: str = "Background") -> None:
        """Delete an object without a grace period; an object that does not exist is deleted already."""
        options: Found = {"propagationPolicy": propagation, "gracePeriodSeconds": 0}
        if "uid" in manifest["metadata"]:
            # Not another object that has got its name.
            options["preconditions"] = {"uid": manifest["metadata"]["uid"]}
        try:
            self._send("DELETE", self._path_of(manifest), json=options)
        except ApiError as error:
            if error.status not in (404, 409):
                raise

    def delete_all(self, api_version: str, kind: str, namespace: str | None = None, *, labels: str = "") -> None:
        """Delete all objects of a kind at once, without a grace period: those of one namespace, or with labels."""
        options = {"propagationPolicy": "Background", "gracePeriodSeconds": 0}
        query = {"labelSelector": labels} if labels else {}
        self._send("DELETE", self._path(api_version, kind, namespace), json=options, params=query)

    def pods(self, namespace: str | None = None, *, labels: str = "") -> list[Found]:
        """Return all pods that are not being deleted."""
        found = self.list("v1", "Pod", namespace, labels=labels)
        return [pod for pod in found if "deletionTimestamp" not in pod["metadata"]]

    def events(self, reason: str | None = None, namespace: str | None = None) -> list[Found]:
        """Return the events with this reason."""
        found = self.list("v1", "Event", namespace)
        return [event for event in found if reason is None or event.get("reason") == reason]

    def token_of(self, service_account: str, namespace: str) -> str:
        """Return a token of a ServiceAccount."""
        path = f"{self._path('v1', 'ServiceAccount', namespace, service_account)}/token"
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
        return str(self._send("POST", path, json=body)["status"]["token"])

    def may(self, service_account: str, namespace: str, verb: str, resource: str) -> bool:
        """Check whether a ServiceAccount has a right in its namespace; ``resource`` is such as ``daemonsets.apps``."""
        name, _, group = resource.partition(".")
        where = self._names.outward(namespace)
        asked = {"namespace": where, "verb": verb, "resource": name, "group": group}
        spec = {"user": f"system:serviceaccount:{where}:{service_account}", "resourceAttributes": asked}
        review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "metadata": {}, "spec": spec}
        return bool(self.create(review)["status"]["allowed"])

    def watch(self, api_version: str, kind: str) -> httpx.Response:
        """Return a stream of the changes of a kind, from now on. The caller closes it."""
        request = self._client.build_request(
            "GET", self._path(api_version, kind), params={"watch": "1"}, timeout=httpx.Timeout(30, read=None)
        )
        return self._client.send(request, stream=True)

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    # --- kubectl ----------------------------------------------------------------------------------------------

    def kubectl(self, *args: str, stdin: str | None = None, folder: Path | None = None, timeout: float = 300) -> Answer:
        """Run kubectl against this cluster, whatever it answers. It reads no file of the user."""
        here = folder or Path.cwd()
        for manifest in self._names.manifests_in(args, here):
            self._claim(manifest)
        command = [self.access.kubectl, *self._names.in_arguments(args, here, self.access.home / "copies")]
        return self._run(command, folder, timeout, None if stdin is None else self._names.in_text(stdin))

    def shell(self, line: str, folder: Path, *, timeout: float = 300) -> Answer:
        """Run a line of shell that calls kubectl."""
        text = self._names.in_shell(line, folder, self.access.home / "copies")
        return self._run(["bash", "-c", f"set -o pipefail; {text}"], folder, timeout)

    def _run(self, command: Sequence[str], folder: Path | None, timeout: float, stdin: str | None = None) -> Answer:
        done = subprocess.run(
            command,
            env=self.environment,
            input=stdin,
            capture_output=True,
            text=True,
            cwd=folder,
            timeout=timeout,
            check=False,
        )
        return Answer(done.returncode, done.stdout, done.stderr)

    @property
    def environment(self) -> dict[str, str]:
        """Environment variables of commands that use this cluster."""
        folder = str(Path(self.access.kubectl).parent)
        return {
            "PATH": f"{folder}:/usr/local/bin:/usr/bin:/bin",
            "HOME": str(self.access.home),
            "KUBECONFIG": str(self.access.kubeconfig),
        }

    # --- the way back -----------------------------------------------------------------------------------------

    def remember(self) -> None:
        """Remember what is there: ``reset`` leaves it alone."""
        self._before = frozenset(item["metadata"]["uid"] for item in self._everything())

    @contextmanager
    def keeping(self, *manifests: Manifest) -> Iterator[list[Found]]:
        """Apply objects that ``reset`` leaves alone until the context ends, and delete them then."""
        before = self._before
        try:
            applied = self.apply(*manifests)
            self.remember()
            yield applied
        finally:
            self._before = before
            self.reset()

    def leftovers(self) -> list[Found]:
        """Return what has come since ``remember``, but for what the cluster made by itself."""
        return [
            item for item in self._everything() if item["metadata"]["uid"] not in self._before and self._is_ours(item)
        ]

    def reset(self, *, timeout: float = 180) -> None:
        """Delete what has come since ``remember``, and wait until it is gone."""
        end = time.monotonic() + timeout
        told: set[str] = set()
        definitions: set[str] = set()
        while left := self.leftovers():
            if time.monotonic() > end:
                names = [f"{item['kind']} {item['metadata']['name']}" for item in left]
                raise TimeoutError(f"still there after {timeout} s: {', '.join(names)}")
            # Owners first: what they own goes with them, and would come again without them.
            for item in sorted(left, key=lambda one: bool(one["metadata"].get("ownerReferences"))):
                if item["metadata"]["uid"] not in told:
                    told.add(item["metadata"]["uid"])
                    self.delete(item)
                    if item["kind"] == "CustomResourceDefinition":
                        definitions.add(item["metadata"]["name"])
            time.sleep(0.1)
        if definitions:
            # The next test that brings one would take the API of before for its own.
            eventually(lambda: not definitions & self._served(), "the definitions are served no longer")
        for namespace in filter(self._is_ours, self.list("v1", "Namespace")):
            self.delete_all("v1", "Event", namespace["metadata"]["name"])
        self._paths.clear()

    # --- what belongs to the suite in a cluster of others ---------------------------------------------------------

    def _claim(self, manifest: Manifest) -> None:
        """Remember an object of the whole cluster as ours, unless someone else made it."""
        kind, metadata = manifest["kind"], manifest["metadata"]
        key = (kind, metadata.get("name", ""))
        if not self._names.prefix or "namespace" in metadata or kind == "Namespace" or key in self._made:
            return
        if self.find(manifest["apiVersion"], *key) is not None:
            raise AssetsError(
                f"{kind} {key[1]} exists already in the cluster at {self.access.server}, and the suite would change it "
                "and delete it. Name a cluster without it"
            )
        self._made.add(key)

    def _is_ours(self, item: Manifest) -> bool:
        if not self._names.prefix:
            return True
        name, namespace = item["metadata"]["name"], item["metadata"].get("namespace")
        if item["kind"] == "Namespace":
            return bool(name.startswith(self._names.prefix))
        if namespace is not None:
            return bool(self._names.outward(namespace) != namespace)
        return (item["kind"], name) in self._made

    # --- inside -----------------------------------------------------------------------------------------------

    def _apply(self, manifest: Manifest) -> Found:
        query = {"fieldManager": "e2e", "fieldValidation": "Strict", "force": "true"}
        headers = {"Content-Type": "application/apply-patch+yaml"}
        self._claim(manifest)
        content = json.dumps(self._names.in_manifest(manifest))
        return self._send("PATCH", self._path_of(manifest), params=query, content=content, headers=headers)

    def _send(self, method: str, path: str, **given: Any) -> Found:
        def answered() -> httpx.Response | None:
            answer = self._client.request(method, path, **given)
            # The API server prepares the storage of a definition that was just made or changed.
            is_preparing = answer.status_code == 429 and "initializing" in answer.text
            return None if is_preparing else answer

        answer = eventually(answered, f"{path} is served")
        # RFC 9111: code, agent and the text in quotes.
        self.warnings += [text.split(" ", 2)[2].strip('"') for text in answer.headers.get_list("Warning")]
        if answer.is_success:
            found: Found = answer.json()
            return self._names.inward(found)
        try:
            message = answer.json().get("message", answer.text)
        except ValueError:
            message = answer.text
        raise ApiError(answer.status_code, message)

    def _path_of(self, manifest: Manifest, *, named: bool = True) -> str:
        metadata = manifest["metadata"]
        name = metadata["name"] if named else None
        return self._path(manifest["apiVersion"], manifest["kind"], metadata.get("namespace"), name)

    def _path(self, api_version: str, kind: str, namespace: str | None = None, name: str | None = None) -> str:
        plural, is_namespaced = self._resource(api_version, kind)
        parts = [_root(api_version)]
        if is_namespaced and (namespace is not None or name is not None):
            parts += ["namespaces", self._names.outward(namespace or "default")]
        if name is not None and kind == "Namespace":
            name = self._names.outward(name)
        return "/".join([*parts, plural, *([name] if name is not None else [])])

    def _resource(self, api_version: str, kind: str) -> tuple[str, bool]:
        if (api_version, kind) not in self._paths:
            # A definition is served a moment after it was made.
            eventually(lambda: self._discover(api_version, kind), f"{api_version} {kind} is served")
        return self._paths[api_version, kind]

    def _discover(self, api_version: str, kind: str) -> bool:
        try:
            served = self._send("GET", _root(api_version))["resources"]
        except ApiError:
            return False
        for one in served:
            if "/" not in one["name"]:
                self._paths[api_version, one["kind"]] = (one["name"], one["namespaced"])
        return (api_version, kind) in self._paths

    def _served(self) -> set[str]:
        """Return the names of the definitions whose objects kubectl finds, and of all other APIs beside ``v1``."""
        groups = self._send("GET", "/apis", headers={"Accept": _DISCOVERY})["items"]
        return {
            f"{resource['resource']}.{group['metadata']['name']}"
            for group in groups
            for version in group["versions"]
            for resource in version.get("resources", ())
        }

    def _takes_pods(self, namespace: str) -> bool:
        """Check whether controllers have put into a namespace what its pods need."""
        return all(self.find("v1", kind, name, namespace) is not None for kind, name in _NEEDED_BY_PODS)

    def _everything(self) -> Iterable[Found]:
        for api_version in self._versions():
            for one in self._found(_root(api_version), "resources"):
                if {"list", "delete"} <= set(one["verbs"]) and one["kind"] not in _NOT_OURS:
                    # The definition may be gone before an object is deleted.
                    self._paths[api_version, one["kind"]] = (one["name"], one["namespaced"])
                    yield from self._metadata(api_version, one)

    def _versions(self) -> list[str]:
        groups = self._send("GET", "/apis")["groups"]
        return ["v1", *(group["preferredVersion"]["groupVersion"] for group in groups)]

    def _metadata(self, api_version: str, resource: Mapping[str, Any]) -> Iterable[Found]:
        path = f"{_root(api_version)}/{resource['name']}"
        for item in self._found(path, "items", headers={"Accept": _ONLY_METADATA}):
            if (resource["kind"], item["metadata"]["name"]) not in _OWNED_BY_A_NAMESPACE:
                yield {"apiVersion": api_version, "kind": resource["kind"], "metadata": item["metadata"]}

    def _found(self, path: str, member: str, **given: Any) -> Sequence[Found]:
        """Return the members of a list; none if it went with its definition since it was named."""
        try:
            return self._send("GET", path, **given).get(member) or ()
        except ApiError as error:
            if error.status == 404:
                return ()
            raise


def eventually(
    check: Callable[[], T],
    what: str,
    *,
    timeout: float = 120,
    every: float = 0.1,
    state: Callable[[], Any] | None = None,
) -> T:
    """Wait until a check returns something true, and return that.

    Args:
        check: What is asked.
        what: What is waited for, as the error says it.
        timeout: Seconds to wait at most. Only a guard: a busy machine takes longer.
        every: Seconds between two checks.
        state: What the error shows beside it.

    Raises:
        TimeoutError: It did not happen.
    """
    end = time.monotonic() + timeout
    while not (found := check()):
        if time.monotonic() > end:
            shown = "" if state is None else f": {state()}"
            raise TimeoutError(f"not after {timeout} s: {what}{shown}")
        time.sleep(every)
    return found


def is_bound(pod: Manifest) -> bool:
    """Check whether a pod has a node."""
    return bool(pod["spec"].get("nodeName"))


def condition(manifest: Manifest, name: str) -> Mapping[str, Any]:
    """Return a condition of the status of an object; an empty one if it is not there."""
    conditions: Sequence[Mapping[str, Any]] = manifest.get("status", {}).get("conditions") or ()
    return next((one for one in conditions if one["type"] == name), {})


def is_unschedulable(pod: Manifest) -> bool:
    """Check whether the scheduler found no node for a pod."""
    scheduled = condition(pod, "PodScheduled")
    return scheduled.get("status") == "False" and scheduled.get("reason") in ("Unschedulable", "SchedulingGated")


def _root(api_version: str) -> str:
    return f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
