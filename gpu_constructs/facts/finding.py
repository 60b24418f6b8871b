"""What a check found, and how it is said."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Finding:
    """One problem.

    Attributes:
        subject: Index of the manifest it is about; None where it is about the first of the providers, or about whoever
            found it.
        problem: The message, without the construct path.
        others: Indexes of further manifests to name, in the order of ``{0}``, ``{1}`` in the message.
        providers: Indexes of providers to name likewise, after the manifests.
        is_warning: Whether the app may be right all the same.
        code: Of the rule that found it, where it is one that can be left out.
    """

    subject: int | None
    problem: str
    others: tuple[int, ...] = ()
    providers: tuple[int, ...] = ()
    is_warning: bool = False
    code: str | None = None

    def about(self, origins: Sequence[int]) -> Finding:
        """Return the same of the manifests that the objects come from, by the index of each object."""
        subject = None if self.subject is None else origins[self.subject]
        return replace(self, subject=subject, others=tuple(origins[other] for other in self.others))

    def sentence(self, object_path: Callable[[int], str], provider_path: Callable[[int], str], finder: str = "") -> str:
        """Return the message with the paths it names, and the code at the end."""
        named = [*map(object_path, self.others), *map(provider_path, self.providers)]
        problem = self.problem
        for number, path in enumerate(named):
            problem = problem.replace(f"{{{number}}}", path)
        subject = finder
        if self.subject is not None:
            subject = object_path(self.subject)
        elif self.providers:
            subject = named[len(self.others)]
        return f"{subject}: {problem}" + (f" [{self.code}]" if self.code else "")
