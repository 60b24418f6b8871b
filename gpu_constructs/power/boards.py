"""Power limits compared with what the boards of a cluster take, as far as that is known."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Literal

from gpu_constructs.errors import GpuConstructsError
from gpu_constructs.power.wish import PowerWish

if TYPE_CHECKING:
    from gpu_constructs.gpu_models import GpuModel

OutOfRange = Literal["clamp", "refuse"]


def check_boards(wishes: Sequence[PowerWish], names: Sequence[str], *, out_of_range: OutOfRange) -> list[str]:
    """Give warnings of limits that the boards would not take as they are, or that ask more of them than their default.

    A limit by name, or for all others, counts on each board it is for. One for a single device counts where it is
    wrong for every board, since nobody knows which of them the device is.

    Args:
        wishes: In the order in which they win.
        names: Of all boards, as ``nvidia-smi`` prints them; one that is not known has no limits here.
        out_of_range: What the agent will do with a limit that a board does not take.

    Raises:
        GpuConstructsError: A limit that a board does not take, and that the agent will refuse.
    """
    boards = _boards(names) if names else {}
    doubts = _doubts(boards) if names else ()
    return [*doubts, *(warning for wish in wishes for warning in _warnings(wish, wishes, boards, out_of_range))]


def _doubts(boards: Mapping[str, GpuModel | None]) -> Iterator[str]:
    from gpu_constructs.gpu_models import doubt_of

    for name in boards:
        near = doubt_of(name)
        if near is not None:
            yield f"gpu_models: {name!r} is not the name of a known board{near}; its limits are not checked"


def _boards(names: Sequence[str]) -> dict[str, GpuModel | None]:
    """Give what is known of each board, by its whole name."""
    from gpu_constructs.gpu_models import board_called

    found = [(name, board_called(name)) for name in names]
    return {name if board is None else board.name: board for name, board in found}


def _warnings(
    wish: PowerWish, wishes: Sequence[PowerWish], boards: Mapping[str, GpuModel | None], out_of_range: OutOfRange
) -> Iterator[str]:
    is_for_one = wish.target not in ("name", None)
    reached = [board for name, board in boards.items() if is_for_one or _winner(name, wishes) is wish]
    if wish.target == "name" and boards and not any(fnmatchcase(name, wish.pattern) for name in boards):
        yield f"{wish.keyword} is for none of gpu_models {', '.join(map(repr, boards))}"
    models = [board for board in reached if board is not None]
    if is_for_one and len(models) < len(reached):
        models = []
    outside = {model: watts for model in models if (watts := _nearest(wish, model)) is not None}
    above = [model for model in models if model not in outside and _is_above_default(wish, model)]
    if is_for_one and len(outside) + len(above) < len(models):
        return
    said = wish.limit if wish.watts is None else f"{wish.watts} W"
    if outside:
        ranges = " and ".join(f"{model.name} ({model.watts_in_words()})" for model in outside)
        if out_of_range == "refuse":
            raise GpuConstructsError(
                f"{wish.keyword} must be a limit that the board takes; got {said} for {ranges}; give another "
                "limit, one for that board alone in limits, or out_of_range='clamp' for the nearest it takes"
            )
        become = " and ".join(f"{watts} W" for watts in dict.fromkeys(outside.values()))
        yield f"{wish.keyword}: {said} is out of the range of {ranges}, so the limit becomes {become}"
    if above or (not outside and wish.percent is not None and wish.percent > 100):
        defaults = " and ".join(f"{model.name} ({model.default_watts} W)" for model in above) or "every board"
        yield (
            f"{wish.keyword}: {said} is above the default of {defaults}: cooling and power supply must be made for it"
        )


def _is_above_default(wish: PowerWish, model: GpuModel) -> bool:
    watts = wish.watts_of(model.default_watts)
    return watts is not None and model.default_watts is not None and watts > model.default_watts


def _winner(name: str, wishes: Sequence[PowerWish]) -> PowerWish | None:
    """Give the wish for boards of that name, as far as the name decides."""
    return next(
        (w for w in wishes if w.target is None or (w.target == "name" and fnmatchcase(name, w.pattern))),
        None,
    )


def _nearest(wish: PowerWish, model: GpuModel) -> int | None:
    """Give the watts that a wish becomes on a board; None where it stays as it is, as far as is known."""
    watts = wish.watts_of(model.default_watts)
    if watts is None:
        return None
    if model.min_watts is not None and watts < model.min_watts:
        return model.min_watts
    if model.max_watts is not None and watts > model.max_watts:
        return model.max_watts
    return None
