"""The class ``Finding``: a problem that a check reports, with its message."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from gpu_constructs.records import dataclass, replace


@dataclass(frozen=True)
class Finding:
    """A problem in an app that a check reports, with its message and the object that has the problem.

    Attributes:
        subject: Index in ``Facts.objects`` of the object that has the problem. If None, the first construct in
            ``providers`` has the problem. If ``providers`` is empty too, the message names the check instead.
        problem: Message without the construct path at its start. It can contain the placeholders ``{0}``, ``{1}`` and
            so on.
        others: Indices in ``Facts.objects`` of other objects that the message mentions. Their construct paths replace
            the first placeholders in the message.
        providers: Indices in ``Facts.provided`` of constructs that the message mentions. Their construct paths replace
            the placeholders after those of ``others``.
        is_warning: Whether the problem is a warning, because the app can still be correct; False by default.
        code: Code of the rule that the app violates. None if the finding comes from a check that the user cannot
            ignore.
    """

    subject: int | None
    problem: str
    others: tuple[int, ...] = ()
    providers: tuple[int, ...] = ()
    is_warning: bool = False
    code: str | None = None

    def about(self, origins: Sequence[int]) -> Finding:
        """Return a copy of this finding in which ``subject`` and ``others`` are indices in ``Facts.manifests``.

        The indices differ from those in ``Facts.objects``, because a manifest of the kind ``List`` contains several
        objects.

        Args:
            origins: ``Facts.origins``: for each object, the index of the manifest that contains the object.
        """
        subject = None if self.subject is None else origins[self.subject]
        return replace(self, subject=subject, others=tuple(origins[other] for other in self.others))

    def sentence(self, object_path: Callable[[int], str], provider_path: Callable[[int], str], finder: str = "") -> str:
        """Return the full message: the construct path of the object, the problem, and the code of the rule.

        Args:
            object_path: Function that returns the construct path of an object for its index in ``Facts.manifests``.
            provider_path: Function that returns the path of a construct for its index in ``Facts.provided``.
            finder: Start of the message for a problem that concerns no object and no construct; empty by default.
        """
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
