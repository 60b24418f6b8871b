"""Read access to a live cluster through the program kubectl, with the user's contexts, plugins and proxies."""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gpu_constructs.cli.exits import CommandError, Exit
from gpu_constructs.records import dataclass


class KubectlError(CommandError):
    """The error for a failed call of kubectl. The command of this library then ends with the status ``COULD_NOT_LOOK``.

    Attributes:
        is_forbidden: Whether the API server rejected the request because RBAC does not allow it.
        is_unknown: Whether the API server does not have the resource type, for example because its
            CustomResourceDefinition is missing.
    """

    def __init__(self, message: str, output: str = "") -> None:
        super().__init__(message, Exit.COULD_NOT_LOOK)
        self.is_forbidden = "(Forbidden)" in output or "forbidden:" in output
        self.is_unknown = "the server doesn't have a resource type" in output or "(NotFound)" in output


def add_cluster(parser: argparse.ArgumentParser) -> None:
    """Add the options ``--context`` and ``--kubeconfig`` to the parser of a command."""
    parser.add_argument("--context", help="context of the kubeconfig (default: the current context)")
    parser.add_argument("--kubeconfig", help="kubeconfig file (default: as kubectl chooses it)")


@dataclass(frozen=True)
class Kubectl:
    """The program kubectl with the options that select a cluster.

    Attributes:
        context: Context of the kubeconfig; None for the current context.
        kubeconfig: Path of the kubeconfig; None for the one that kubectl chooses.
    """

    context: str | None = None
    kubeconfig: str | None = None

    @classmethod
    def of(cls, args: argparse.Namespace) -> Kubectl:
        """Return a ``Kubectl`` for the options ``--context`` and ``--kubeconfig`` of a command.

        Raises:
            KubectlError: The program kubectl is not installed, or the kubeconfig does not exist.
        """
        if shutil.which("kubectl") is None:
            raise KubectlError("kubectl must be on the PATH, and it is not. Install kubectl, or name files instead")
        if args.kubeconfig and not Path(args.kubeconfig).exists():
            reason = (
                f"--kubeconfig must name a file that exists, got {args.kubeconfig!r}. Correct the path, or remove the "
            )
            raise KubectlError(f"{reason}option and use --context. The command doctor can also read a copy with --from")
        return cls(args.context, args.kubeconfig)

    @property
    def options(self) -> list[str]:
        """Options of kubectl that select the cluster."""
        chosen = {"--context": self.context, "--kubeconfig": self.kubeconfig}
        return [f"{option}={value}" for option, value in chosen.items() if value]

    def where(self) -> str:
        """Return a text that states which cluster kubectl reads: its context, and the URL of its API server.

        Raises:
            KubectlError: kubectl failed.
        """
        context = self.context or self.run("config", "current-context").strip()
        server = self.run("config", "view", "--minify", "--output=jsonpath={.clusters[0].cluster.server}")
        return f"context {context}, server {server}" + (f", kubeconfig {self.kubeconfig}" if self.kubeconfig else "")

    def run(self, *arguments: str, stdin: str | None = None) -> str:
        """Run kubectl and return what it prints.

        Args:
            arguments: Arguments of kubectl, without the options that select the cluster.
            stdin: Text for the standard input of kubectl; empty by default.

        Raises:
            KubectlError: kubectl failed. The message contains the last line that it printed.
        """
        done = subprocess.run(
            ["kubectl", *self.options, *arguments], input=stdin or "", capture_output=True, text=True, check=False
        )
        if done.returncode:
            last = (done.stderr.strip() or f"exit status {done.returncode}").splitlines()[-1]
            raise KubectlError(f"kubectl {' '.join(arguments[:3])}: {last}", done.stderr)
        return done.stdout

    def get(self, resources: Sequence[str], *arguments: str) -> list[Mapping[str, Any]]:
        """Return the objects of some resource types in all namespaces.

        Args:
            resources: Resource types with their API groups, such as ``daemonsets.apps``.
            arguments: Further arguments of ``kubectl get``, such as a selector; none by default.

        Raises:
            KubectlError: kubectl failed.
        """
        text = self.run("get", ",".join(resources), "--all-namespaces", "--output=json", *arguments)
        items: list[Mapping[str, Any]] = json.loads(text).get("items", [])
        return items
