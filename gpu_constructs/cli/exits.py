"""The exit statuses of all commands, and the error that ends a command with one of them."""

from __future__ import annotations

from enum import IntEnum


class Exit(IntEnum):
    """The exit status of a command. Each status has one meaning for all commands."""

    NOTHING = 0
    """The command found nothing to report."""
    FOUND = 1
    """The command found a problem or a difference."""
    USAGE = 2
    """The user called the command with wrong arguments."""
    COULD_NOT_LOOK = 3
    """The command could not read its whole input, for example because a cluster does not answer.

    Commands also use this status if the process that reads their output, such as ``head``, ends first.
    """


class CommandError(Exception):
    """The error that ends a command. Its message is one line that states the problem and the solution.

    Attributes:
        status: Exit status of ``gpu-constructs``.
    """

    def __init__(self, message: str, status: Exit = Exit.USAGE) -> None:
        super().__init__(message)
        self.status = status
