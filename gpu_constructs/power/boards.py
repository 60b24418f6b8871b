"""Power limits compared with what the boards of a cluster take, as far as that is known."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from gpu_constructs.errors import GpuConstructsError
from gpu_constructs.power.options import OutOfRange, PowerWish

if TYPE_CHECKING:
    from gpu_constructs.catalog.gpu_models import GpuModel


def check_boards(wishes: Sequence[PowerWish], names: Sequence[str], *, out_of_range: OutOfRange) -> list[str]:
    """Return warnings of limits that boards do not take as they are, or that are above the default of boards.

    A limit by name, or for all others, counts on each board it is for. One for a single device counts if it is wrong
    for every board, since which of them the device is, is not known.

    Args:
        wishes: Limits, in the order in which they win.
        names: Names of all boards, as ``nvidia-smi`` prints them; one that is not known has no limits here.
        out_of_range: What the agent does with a limit that a board does not take.

    Raises:
        GpuConstructsError: A limit that a board does not take, and that the agent will refuse.
    """
    if not names:
        return [warning for wish in wishes for warning in _warnings(wish, wishes, {}, out_of_range)]
    from gpu_constructs.catalog.gpu_models import board_called, doubt_of

    found = [(name, board_called(name)) for name in names]
    boards = {name if board is None else board.name: board for name, board in found}
    doubts = [
        f"gpu_models: {name!r} is not the name of a known board{near}; its limits are not checked"
        for name in boards
        if (near := doubt_of(name)) is not None
    ]
    return [*doubts, *(warning for wish in wishes for warning in _warnings(wish, wishes, boards, out_of_range))]


def _warnings(
    wish: PowerWish, wishes: Sequence[PowerWish], boards: Mapping[str, GpuModel | None], out_of_range: OutOfRange
) -> Iterator[str]:
    yield from _without_a_board(wish, boards)
    models = _reached(wish, wishes, boards)
    outside = {model: watts for model in models if (watts := _nearest(wish, model)) is not None}
    above = [model for model in models if model not in outside and _is_above_default(wish, model)]
    if wish.is_for_one and len(outside) + len(above) < len(models):
        return
    if outside:
        yield _outside(wish, outside, out_of_range)
    if above or (not outside and (wish.percent or 0) > 100):
        yield _above(wish, above)


def _without_a_board(wish: PowerWish, boards: Mapping[str, GpuModel | None]) -> Iterator[str]:
    if boards and wish.target == "name" and not any(fnmatchcase(name, wish.pattern) for name in boards):
        yield f"{wish.keyword} is for none of gpu_models {', '.join(map(repr, boards))}"


def _reached(wish: PowerWish, wishes: Sequence[PowerWish], boards: Mapping[str, GpuModel | None]) -> Sequence[GpuModel]:
    """Return the known boards that a limit is for; of a limit for one device all boards, if all are known."""
    if wish.is_for_one:
        known = [board for board in boards.values() if board is not None]
        return known if len(known) == len(boards) else []
    return [board for name, board in boards.items() if board is not None and _winner(name, wishes) is wish]


def _outside(wish: PowerWish, outside: Mapping[GpuModel, int], out_of_range: OutOfRange) -> str:
    ranges = " and ".join(f"{model.name} ({model.watts_in_words()})" for model in outside)
    if out_of_range == "refuse":
        raise GpuConstructsError(
            f"{wish.keyword} must be a limit that the board takes; got {wish.in_words} for {ranges}; give another "
            "limit, one for that board alone in limits, or out_of_range='clamp' for the nearest it takes"
        )
    become = " and ".join(f"{watts} W" for watts in dict.fromkeys(outside.values()))
    return f"{wish.keyword}: {wish.in_words} is out of the range of {ranges}, so the limit becomes {become}"


def _above(wish: PowerWish, above: Sequence[GpuModel]) -> str:
    defaults = " and ".join(f"{model.name} ({model.default_watts} W)" for model in above) or "every board"
    return (
        f"{wish.keyword}: {wish.in_words} is above the default of {defaults}: cooling and power supply must be made "
        "for it"
    )


def _is_above_default(wish: PowerWish, model: GpuModel) -> bool:
    watts = wish.watts_of(model.default_watts)
    return watts is not None and model.default_watts is not None and watts > model.default_watts


def _winner(name: str, wishes: Sequence[PowerWish]) -> PowerWish | None:
    """Return the limit that wins on boards of that name, as far as the name decides."""
    return next(
        (w for w in wishes if w.target is None or (w.target == "name" and fnmatchcase(name, w.pattern))),
        None,
    )


def _nearest(wish: PowerWish, model: GpuModel) -> int | None:
    """Return the watts that a limit becomes on a board, or None if it stays as it is, as far as is known."""
    watts = wish.watts_of(model.default_watts)
    if watts is None:
        return None
    raised = max(watts, model.min_watts or watts)
    nearest = min(raised, model.max_watts or raised)
    return None if nearest == watts else nearest
