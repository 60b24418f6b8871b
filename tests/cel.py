"""CEL as the API server evaluates it, by Google's own evaluator, on pods as plain data.

``JSONPatch{...}`` and ``Object...{...}`` are types that only the API server has; here they are read as maps.
"""

import copy
import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from cel_expr_python import cel as _cel

_MESSAGE = re.compile(r"\b(?:JSONPatch|Object(?:\.\w+)*)\{")
_MEMBER = re.compile(r"\b(op|path|value|key|operator|effect|tolerationSeconds): ")


@cache
def _program(expression: str) -> Any:
    plain = _MEMBER.sub(r'"\1": ', _MESSAGE.sub("{", expression))
    variables = dict.fromkeys(("object", "request", "variables"), _cel.Type.DYN)
    return _cel.NewEnv(variables=variables).compile(plain)


def evaluate(expression: str, **given: Any) -> Any:
    """What an expression gives; an error of the evaluation is one here."""
    found = _program(expression).eval(data={"object": {}, "request": {}, "variables": {}, **given})
    if "ERROR" in str(found.type()):
        raise ValueError(str(found.value()))
    return found.plain_value()


def denials(policy: Mapping[str, Any], pod: Mapping[str, Any], *, operation: str = "CREATE") -> list[str]:
    """The messages with which a ValidatingAdmissionPolicy refuses a pod."""
    spec, given = policy["spec"], {"object": pod, "request": {"operation": operation}}
    variables = {each["name"]: evaluate(each["expression"], **given) for each in spec["variables"]}
    verdicts = [(evaluate(v["expression"], variables=variables, **given), v["message"]) for v in spec["validations"]]
    assert all(verdict in (True, False) for verdict, _ in verdicts)
    return [message for verdict, message in verdicts if not verdict]


def mutated(policy: Mapping[str, Any], pod: Mapping[str, Any]) -> dict[str, Any]:
    """The pod after a MutatingAdmissionPolicy whose namespaces it is in."""
    spec, result = policy["spec"], copy.deepcopy(dict(pod))
    if not all(evaluate(condition["expression"], object=pod) for condition in spec["matchConditions"]):
        return result
    for mutation in spec["mutations"]:
        _apply(result, evaluate(mutation["jsonPatch"]["expression"], object=pod))
    return result


def selects(selector: Mapping[str, Any], name: str, labels: Mapping[str, str] | None = None) -> bool:
    """Whether a namespace is selected, by the rules of label selectors."""
    labels = {**(labels or {}), "kubernetes.io/metadata.name": name}
    fits = {"In": lambda value, values: value in values, "NotIn": lambda value, values: value not in values}
    return all(fits[t["operator"]](labels.get(t["key"]), t["values"]) for t in selector["matchExpressions"])


def _apply(target: Any, operations: Sequence[Mapping[str, Any]]) -> None:
    for operation in operations:
        assert operation["op"] == "add"
        *parents, last = operation["path"].split("/")[1:]
        place = target
        for key in parents:
            place = place[key]
        if last == "-":
            place.append(operation["value"])
        else:
            place[last] = operation["value"]
