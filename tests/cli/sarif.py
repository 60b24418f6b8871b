"""The members that SARIF 2.1.0 requires of a log: sections 3.13, 3.14, 3.18, 3.19, 3.27 and 3.49 of the standard."""

from collections.abc import Iterator
from typing import Any


def problems(log: dict[str, Any]) -> list[str]:
    """Return what a log lacks or has beyond the standard."""
    return list(_problems(log))


def _problems(log: dict[str, Any]) -> Iterator[str]:
    if log.get("version") != "2.1.0" or not log.get("$schema", "").endswith("sarif-2.1.0.json"):
        yield "version and $schema"
    for run in log["runs"]:
        driver = run["tool"]["driver"]
        rules = [rule["id"] for rule in driver.get("rules", ())]
        if not driver.get("name") or len(rules) != len(set(rules)):
            yield "name of the driver, and rules once each"
        if any(not rule["shortDescription"]["text"] for rule in driver.get("rules", ())):
            yield "shortDescription"
        for result in run["results"]:
            if result["level"] not in ("none", "note", "warning", "error") or not result["message"]["text"]:
                yield f"level and message of {result}"
            if result.get("ruleId") not in rules:
                yield f"ruleId of {result}"
            for location in result.get("locations", ()):
                place = location["physicalLocation"]
                uri = place["artifactLocation"]["uri"]
                if not uri or set(uri) & set(' <>"') or place["region"]["startLine"] < 1:
                    yield f"place of {result}"
