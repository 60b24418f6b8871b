"""The page's table of the keys of nvidia_gpu_exporter's chart."""

from __future__ import annotations

from itertools import groupby

from gpu_constructs.observability.nvidia_gpu_exporter_helm import KEYS


def rows() -> dict[str, str]:
    """Give where each key goes; a section whose keys all go one way is one row."""
    said = {path: key.to or f"refused: it {key.why_not}" for path, key in KEYS.items()}
    found: dict[str, str] = {}
    for section, paths in groupby(KEYS, key=lambda path: path.partition(".")[0]):
        together = list(paths)
        if len(together) > 1 and len({said[path] for path in together}) == 1:
            found[f"{section}.*"] = said[together[0]]
        else:
            found.update({path: said[path] for path in together})
    return found


def markdown() -> str:
    """The table of the page."""
    return "\n".join(["| key | where it goes |", "|---|---|", *(f"| `{path}` | {to} |" for path, to in rows().items())])
