"""What a manifest shows to everyone who reads it: R31."""

from __future__ import annotations

from collections.abc import Iterator

from gpu_constructs.credentials import in_container
from gpu_constructs.pod_specs import containers
from gpu_constructs.rules.facts import Facts
from gpu_constructs.rules.finding import Finding


def credentials_stay_in_secrets(facts: Facts) -> Iterator[Finding]:
    """R31: manifests end up in Git, so a credential in one is known to all who read the repository."""
    for pod in facts.pods:
        for container in containers(pod.spec):
            for field, found in in_container(container):
                yield Finding(
                    pod.index,
                    f"{field} of container {container.get('name')!r} must not be a credential in plain text; got "
                    f"{found}; use valueFrom.secretKeyRef, or not_a_secret(...) where it is public",
                )
