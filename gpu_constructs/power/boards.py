"""Comparison of the requested power limits of a `PowerLimit` with the watts that GPU boards allow."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from gpu_constructs.errors import GpuConstructsError
from gpu_constructs.power.options import OutOfRange, PowerRequest

if TYPE_CHECKING:
    from gpu_constructs.catalog.gpu_models import GpuModel


def check_boards(requests: Sequence[PowerRequest], names: Sequence[str], *, out_of_range: OutOfRange) -> list[str]:
    """Return warnings about requested power limits that a board does not allow, or that are above its default limit.

    The function compares each limit with the boards that the limit selects. If a limit selects a GPU by UUID, PCI bus
    ID or index, the board of this GPU is unknown. Such a limit causes a warning only if no board in ``names`` allows
    it.

    Args:
        requests: Requested power limits, in order of precedence.
        names: Names of the boards in the cluster, as ``nvidia-smi`` prints them. If a board is not in the catalog of
            the library, the function does not check its limits. It returns a warning if the name is probably wrong.
        out_of_range: Treatment of a limit that a board does not allow. ``clamp`` causes a warning, and ``refuse``
            causes an error.

    Raises:
        GpuConstructsError: If a board does not allow a limit and ``out_of_range`` is ``refuse``.
    """
    if not names:
        return [warning for request in requests for warning in _warnings(request, requests, {}, out_of_range)]
    from gpu_constructs.catalog.gpu_models import board_called, doubt_of

    found = [(name, board_called(name)) for name in names]
    boards = {name if board is None else board.name: board for name, board in found}
    doubts = [
        f"gpu_models: {name!r} is not the name of a known board{near}, so the library cannot check its limits"
        for name in boards
        if (near := doubt_of(name)) is not None
    ]
    return [
        *doubts,
        *(warning for request in requests for warning in _warnings(request, requests, boards, out_of_range)),
    ]


def _warnings(
    request: PowerRequest,
    requests: Sequence[PowerRequest],
    boards: Mapping[str, GpuModel | None],
    out_of_range: OutOfRange,
) -> Iterator[str]:
    yield from _without_a_board(request, boards)
    models = _reached(request, requests, boards)
    outside = {model: watts for model in models if (watts := _nearest(request, model)) is not None}
    above = [model for model in models if model not in outside and _is_above_default(request, model)]
    if request.is_for_one and len(outside) + len(above) < len(models):
        return
    if outside:
        yield _outside(request, outside, out_of_range)
    if above or (not outside and (request.percent or 0) > 100):
        yield _above(request, above)


def _without_a_board(request: PowerRequest, boards: Mapping[str, GpuModel | None]) -> Iterator[str]:
    if boards and request.target == "name" and not any(fnmatchcase(name, request.pattern) for name in boards):
        yield f"{request.keyword} applies to none of gpu_models {', '.join(map(repr, boards))}"


def _reached(
    request: PowerRequest, requests: Sequence[PowerRequest], boards: Mapping[str, GpuModel | None]
) -> Sequence[GpuModel]:
    """Return the boards of the catalog to which a requested power limit can apply.

    A limit by UUID, PCI bus ID or index can apply to any board, because such an ID does not name a board. For such a
    limit, the result contains all boards, or no board if one of them is not in the catalog.

    Args:
        request: Requested power limit to check.
        requests: All requested power limits, in order of precedence.
        boards: Data of each board by board name. The value is None for a board that is not in the catalog.
    """
    if request.is_for_one:
        known = [board for board in boards.values() if board is not None]
        return known if len(known) == len(boards) else []
    return [board for name, board in boards.items() if board is not None and _winner(name, requests) is request]


def _outside(request: PowerRequest, outside: Mapping[GpuModel, int], out_of_range: OutOfRange) -> str:
    ranges = " and ".join(f"{model.name} ({model.watts_in_words()})" for model in outside)
    if out_of_range == "refuse":
        raise GpuConstructsError(
            f"{request.keyword} must be within the range of the board, got {request.in_words} for {ranges}. Set "
            "another limit, add a limit for this board to limits, or use out_of_range='clamp' for the nearest allowed "
            "limit"
        )
    become = " and ".join(f"{watts} W" for watts in dict.fromkeys(outside.values()))
    return f"{request.keyword}: {request.in_words} is out of the range of {ranges}, so the limit becomes {become}"


def _above(request: PowerRequest, above: Sequence[GpuModel]) -> str:
    defaults = " and ".join(f"{model.name} ({model.default_watts} W)" for model in above) or "every board"
    return (
        f"{request.keyword}: {request.in_words} is above the default of {defaults}: cooling and power supply must "
        "support it"
    )


def _is_above_default(request: PowerRequest, model: GpuModel) -> bool:
    watts = request.watts_of(model.default_watts)
    return watts is not None and model.default_watts is not None and watts > model.default_watts


def _winner(name: str, requests: Sequence[PowerRequest]) -> PowerRequest | None:
    """Return the requested power limit that applies to a board. Return None if no limit applies.

    The function ignores limits by UUID, PCI bus ID or index.

    Args:
        name: Name of the board, as ``nvidia-smi`` prints it.
        requests: All requested power limits, in order of precedence.
    """
    return next(
        (w for w in requests if w.target is None or (w.target == "name" and fnmatchcase(name, w.pattern))),
        None,
    )


def _nearest(request: PowerRequest, model: GpuModel) -> int | None:
    """Return the nearest number of watts that a board allows, if the board does not allow the requested limit.

    Return None if the board allows the limit. Also return None if the request is a share of the board's default limit,
    and the catalog does not contain this default.
    """
    watts = request.watts_of(model.default_watts)
    if watts is None:
        return None
    raised = max(watts, model.min_watts or watts)
    nearest = min(raised, model.max_watts or raised)
    return None if nearest == watts else nearest
