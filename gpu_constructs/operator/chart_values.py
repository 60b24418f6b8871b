"""Conversion of the Helm values of the GPU Operator's chart into keyword arguments of ``GpuOperator``.

The conversion drops Helm keys that have no effect.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gpu_constructs.catalog import versions
from gpu_constructs.catalog.platforms import Platform
from gpu_constructs.kube import credentials, plain_data
from gpu_constructs.migration.problems import Installation, Problems, reported_at_once
from gpu_constructs.operator import chart_keys, options, values_rules
from gpu_constructs.operator import values as operator_values

_WAY_OUT = "use a Helm value that names a Secret, such as driver.secretEnv"


@reported_at_once
def chart_values(values: Mapping[str, Any], installation: Installation, problems: Problems) -> dict[str, Any]:
    """Return the keyword arguments of ``GpuOperator`` that install the Helm chart with the given Helm values.

    Args:
        values: Helm values of the user.
        installation: Name and namespace of the Helm release, release of the GPU Operator, and platform.
        problems: Empty list to which the function adds the problems of the values. ``reported_at_once`` passes it.

    Returns:
        A dict with the keys ``release_name``, ``namespace`` and ``values``. Its ``values`` are the Helm values without
        the keys that have a problem.

    Raises:
        GpuConstructsError: The function adds a problem, such as a misspelled key, a value that the chart or operator
            would reject, or a credential in plain text.
    """
    release = options.release_for(installation.version, installation.platform)
    kept: Any = plain_data.plain("values", values, may_be_none=True)
    for problem in list(chart_keys.problems_of(kept, release)):
        problems.refuse(problem.path, problem.message, is_ignored=problem.is_ignored)
        kept = plain_data.without(kept, problem.path)
    for place, credential in list(credentials.in_values(kept)):
        path = place.removeprefix("values.")
        problems.refuse(path, credential.refusal(place, _WAY_OUT).problem)
        kept = plain_data.without(kept, path)
    return {
        "release_name": installation.release_name,
        "namespace": installation.namespace,
        "values": _without_contradictions(kept, release, installation.platform, problems),
    }


def _without_contradictions(
    values: Any, release: versions.GpuOperatorRelease, platform: Platform, problems: Problems
) -> Any:
    """Return the Helm values without keys that contradict another key, the platform or the code of the GPU Operator.

    For example, ``driver.enabled: true`` contradicts Talos. For each key that the function removes, it adds a problem
    to ``problems``.
    """
    derived = operator_values.of_platform(platform, driver_install_dir=None, has_bridge=False)
    while True:
        merged = operator_values.merged(derived, {}, values)
        path, message = next(values_rules.contradictions(merged, release, platform), ("", ""))
        kept = plain_data.without(values, path)
        if kept == values:
            return values
        problems.refuse(path, message)
        values = kept
