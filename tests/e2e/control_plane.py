"""A control plane of real programs on the loopback interface."""

from __future__ import annotations

import json
import secrets
import ssl
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import httpx
import yaml
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from assets import Kubernetes
from processes import Program, ProgramError, free_port, is_listening

Admission = Literal["plain", "talos"]

# siderolabs/talos@v1.12.0:internal/app/machined/pkg/controllers/k8s/control_plane.go, and the machine configuration
# that Talos generates: pkg/machinery/config/generate/init.go.
_TALOS_ADMISSION = {
    "apiVersion": "apiserver.config.k8s.io/v1",
    "kind": "AdmissionConfiguration",
    "plugins": [
        {
            "name": "PodSecurity",
            "configuration": {
                "apiVersion": "pod-security.admission.config.k8s.io/v1",
                "kind": "PodSecurityConfiguration",
                "defaults": {
                    "audit": "restricted",
                    "audit-version": "latest",
                    "enforce": "baseline",
                    "enforce-version": "latest",
                    "warn": "restricted",
                    "warn-version": "latest",
                },
                "exemptions": {"namespaces": ["kube-system"], "runtimeClasses": [], "usernames": []},
            },
        }
    ],
}
# A pod that found no node is tried again at once: a test waits for the last answer, not for the first.
_SCHEDULER = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "leaderElection": {"leaderElect": False},
    "podInitialBackoffSeconds": 1,
    "podMaxBackoffSeconds": 1,
}


@dataclass(frozen=True)
class Access:
    """How to reach a cluster.

    Attributes:
        server: URL of the API server.
        ca: File with the certificate authority.
        token: Token of an administrator.
        kubeconfig: File that says the same to kubectl.
        kubectl: Path of kubectl.
        home: Folder that stands in for the home of the user, so that kubectl reads no file of theirs.
        certificate: Files with a client certificate and its key, in place of a token.
    """

    server: str
    ca: Path
    token: str
    kubeconfig: Path
    kubectl: str
    home: Path
    certificate: tuple[Path, Path] | None = None

    def client(self, token: str | None = None) -> httpx.Client:
        """Return an HTTP client that speaks as the administrator, or as the owner of another token."""
        context = ssl.create_default_context(cafile=str(self.ca))
        if self.certificate is not None and token is None:
            context.load_cert_chain(*self.certificate)
        bearer = token or self.token
        headers = {"Authorization": f"Bearer {bearer}"} if bearer else {}
        return httpx.Client(base_url=self.server, headers=headers, verify=context, timeout=120, trust_env=False)


class ControlPlane:
    """The programs of a control plane, running.

    Attributes:
        release: The release.
        admission: Whose admission configuration it has.
        access: How to reach it.
    """

    def __init__(self, release: Kubernetes, admission: Admission, access: Access, programs: Sequence[Program]) -> None:
        self.release, self.admission, self.access, self._programs = release, admission, access, programs

    def check(self) -> None:
        """Check whether every program still runs.

        Raises:
            ProgramError: One has ended.
        """
        for program in self._programs:
            program.wait_until(lambda: True)
            if program.exit_status is not None:
                raise ProgramError(f"{program.name} has ended: {program.output()[-2000:]}")


@contextmanager
def control_plane(
    release: Kubernetes, folder: Path, *, admission: Admission = "plain", feature_gates: Sequence[str] = ()
) -> Iterator[ControlPlane]:
    """Start etcd, API server, controller manager and scheduler, and end them.

    Args:
        release: The programs.
        folder: An empty folder for their files.
        admission: ``talos`` for Pod Security as Talos configures it, ``plain`` for that of Kubernetes.
        feature_gates: Feature gates of all programs, such as ``DRAExtendedResource=true``.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        started: list[Program] = []

        def start(path: str, *flags: str) -> Program:
            program = Program([path, *flags], folder / f"{Path(path).name}.log")
            stack.callback(program.stop)
            started.append(program)
            return program

        store, peers, port = free_port(), free_port(), free_port()
        etcd = start(
            str(release.etcd),
            f"--data-dir={folder / 'etcd'}",
            f"--listen-client-urls=http://127.0.0.1:{store}",
            f"--advertise-client-urls=http://127.0.0.1:{store}",
            f"--listen-peer-urls=http://127.0.0.1:{peers}",
            f"--initial-advertise-peer-urls=http://127.0.0.1:{peers}",
            f"--initial-cluster=default=http://127.0.0.1:{peers}",
            "--unsafe-no-fsync=true",
            "--log-level=error",
        )
        etcd.wait_until(lambda: is_listening(store))
        access = _access(release, folder, port)
        gates = [f"--feature-gates={','.join(feature_gates)}"] if feature_gates else []
        server = start(
            release.program("kube-apiserver"),
            f"--etcd-servers=http://127.0.0.1:{store}",
            "--bind-address=127.0.0.1",
            "--advertise-address=127.0.0.1",
            "--endpoint-reconciler-type=none",
            f"--secure-port={port}",
            f"--cert-dir={access.ca.parent}",
            f"--token-auth-file={folder / 'tokens.csv'}",
            "--authorization-mode=Node,RBAC",
            "--service-cluster-ip-range=10.96.0.0/16",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={folder / 'service-accounts.pub'}",
            f"--service-account-signing-key-file={folder / 'service-accounts.key'}",
            "--allow-privileged=true",
            # Its watches would take half of the start.
            "--profiling=false",
            *_admission(folder, admission),
            *gates,
        )
        with_client = _Ready(access)
        server.wait_until(with_client.is_ready)
        start(
            release.program("kube-controller-manager"),
            f"--kubeconfig={access.kubeconfig}",
            f"--service-account-private-key-file={folder / 'service-accounts.key'}",
            f"--root-ca-file={access.ca}",
            "--leader-elect=false",
            "--secure-port=0",
            "--allocate-node-cidrs=false",
            "--node-monitor-period=1s",
            # No node is lost for want of a heartbeat.
            "--node-monitor-grace-period=1h",
            "--namespace-sync-period=2s",
            "--pvclaimbinder-sync-period=2s",
            # By default each controller sends 20 requests a second, for which tests would wait.
            "--kube-api-qps=500",
            "--kube-api-burst=500",
            *gates,
        )
        (folder / "scheduler.yaml").write_text(
            json.dumps({**_SCHEDULER, "clientConnection": {"kubeconfig": str(access.kubeconfig), "qps": 500}})
        )
        start(release.program("kube-scheduler"), f"--config={folder / 'scheduler.yaml'}", "--secure-port=0", *gates)
        started[-2].wait_until(with_client.has_controllers)
        yield ControlPlane(release, admission, access, started)


def kubeconfig(server: str, ca: Path, token: str) -> dict[str, Any]:
    """Return the content of a kubeconfig file."""
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "e2e",
        "clusters": [{"name": "e2e", "cluster": {"server": server, "certificate-authority": str(ca)}}],
        "users": [{"name": "e2e", "user": {"token": token}}],
        "contexts": [{"name": "e2e", "context": {"cluster": "e2e", "user": "e2e"}}],
    }


def _access(release: Kubernetes, folder: Path, port: int) -> Access:
    token, home, certificates = secrets.token_urlsafe(24), folder / "home", folder / "certificates"
    home.mkdir()
    certificates.mkdir()
    (folder / "tokens.csv").write_text(f'{token},e2e-admin,e2e-admin,"system:masters"\n')
    key = ec.generate_private_key(ec.SECP256R1())
    (folder / "service-accounts.key").write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    (folder / "service-accounts.pub").write_bytes(
        key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    )
    server, ca = f"https://127.0.0.1:{port}", certificates / "apiserver.crt"
    config = folder / "kubeconfig.yaml"
    config.write_text(yaml.safe_dump(kubeconfig(server, ca, token)))
    return Access(server, ca, token, config, release.program("kubectl"), home)


def _admission(folder: Path, admission: Admission) -> list[str]:
    if admission == "plain":
        return []
    path = folder / "admission.yaml"
    path.write_text(yaml.safe_dump(_TALOS_ADMISSION))
    return [f"--admission-control-config-file={path}"]


class _Ready:
    """Whether the API server and the controllers answer."""

    def __init__(self, access: Access) -> None:
        self._access = access

    def is_ready(self) -> bool:
        return self._answers("/readyz")

    def has_controllers(self) -> bool:
        return self._answers("/api/v1/namespaces/default/serviceaccounts/default")

    def _answers(self, path: str) -> bool:
        if not self._access.ca.exists():
            return False
        try:
            with self._access.client() as client:
                return client.get(path).status_code == 200
        except (httpx.HTTPError, ssl.SSLError, OSError):
            return False
