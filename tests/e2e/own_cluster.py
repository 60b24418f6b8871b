"""A cluster of the user, in place of a control plane that the suite starts."""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

from assets import CLUSTER_VARIABLE, KUBERNETES_MINORS, KUBERNETES_VARIABLE, AssetsError, Kubernetes
from cluster import Cluster
from control_plane import Access
from namespaces import Namespaces

PREFIX_VARIABLE, SHARED_VARIABLE = "GPU_CONSTRUCTS_E2E_PREFIX", "GPU_CONSTRUCTS_E2E_SHARED"
_OF_THE_CLUSTER = ("kube-system", "local-path-storage")


def access(folder: Path) -> Access:
    """Return how to reach the cluster, by a copy of the kubeconfig.

    Raises:
        AssetsError: The kubeconfig cannot be used.
    """
    view = ["config", "view", "--raw", "--minify", "--flatten"]
    return _access(_kubectl(*view), folder)


def release() -> Kubernetes:
    """Return the release of the cluster, and the folder of the kubectl that reaches it.

    Raises:
        AssetsError: The cluster does not answer, or its release is not supported.
    """
    version = _kubectl("version")["serverVersion"]
    if int(re.findall(r"\d+", version["minor"])[0]) not in KUBERNETES_MINORS:
        raise AssetsError(
            f"the cluster runs Kubernetes {version['gitVersion']}; the suite supports 1.{KUBERNETES_MINORS[0]} to "
            f"1.{KUBERNETES_MINORS[-1]}: name another cluster"
        )
    return Kubernetes(version["gitVersion"].removeprefix("v"), Path(_program()).parent, Path())


def prefix() -> str:
    """Return the prefix of the namespaces in a cluster of the user."""
    return os.environ.get(PREFIX_VARIABLE, "gpu-constructs-e2e-")


def require_no_others(cluster: Cluster) -> None:
    """Check whether the suite has the cluster for itself.

    Raises:
        AssetsError: Other pods run there, and ``GPU_CONSTRUCTS_E2E_SHARED`` is not ``yes``.
    """
    if os.environ.get(SHARED_VARIABLE) == "yes":
        return
    others = [pod["metadata"] for pod in cluster.pods() if pod["metadata"]["namespace"] not in _OF_THE_CLUSTER]
    if others:
        first = f"{others[0]['namespace']}/{others[0]['name']}"
        raise AssetsError(
            f"the cluster at {cluster.access.server} runs {len(others)} pods of others, such as {first}; the suite "
            f"creates nodes, fills them and deletes them: name an empty cluster, or set {SHARED_VARIABLE}=yes"
        )


def _program() -> str:
    kubectl = shutil.which("kubectl", path=os.environ.get(KUBERNETES_VARIABLE)) or shutil.which("kubectl")
    if kubectl is None:
        raise AssetsError("kubectl is not on the PATH, and a cluster is reached by it. Install it")
    return kubectl


def _kubectl(*args: str) -> dict[str, Any]:
    path = Path(os.environ[CLUSTER_VARIABLE])
    if not path.is_file():
        raise AssetsError(f"{CLUSTER_VARIABLE} names {path}, which is not a file. Name a kubeconfig")
    command = [_program(), "--kubeconfig", path, *args, "--output=json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise AssetsError(f"{path} cannot be used: {done.stderr.strip().splitlines()[-1]}")
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def _access(config: dict[str, Any], folder: Path) -> Access:
    (user,), (cluster,) = ([one[key] for one in config[f"{key}s"]] for key in ("user", "cluster"))
    home = folder / "home"
    home.mkdir(parents=True, exist_ok=True)
    copy, ca = folder / "kubeconfig.json", folder / "ca.crt"
    copy.touch(mode=0o600)
    copy.write_text(json.dumps(config))
    ca.write_bytes(base64.b64decode(cluster.get("certificate-authority-data", "")))
    certificate = None
    if "client-certificate-data" in user:
        certificate = (folder / "client.crt", folder / "client.key")
        for path, data in zip(certificate, ("client-certificate-data", "client-key-data"), strict=True):
            path.touch(mode=0o600)
            path.write_bytes(base64.b64decode(user[data]))
    elif "token" not in user:
        raise AssetsError(
            f"the user in {os.environ[CLUSTER_VARIABLE]} has neither a token nor a client certificate. Write a "
            "kubeconfig with the token of a ServiceAccount that is bound to cluster-admin"
        )
    return Access(cluster["server"], ca, user.get("token", ""), copy, _program(), home, certificate)


def namespaces() -> Namespaces:
    """Return the names of namespaces in a cluster of the user."""
    return Namespaces(prefix())
