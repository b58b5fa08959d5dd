"""Trigger rules as Cloacina writes them in JSON, read as the rules of `penstock.language.workflows.task_trigger_rules`.

    {"type": "Always"}                                             always
    {"type": "All", "conditions": [...]}                           {all: [...]}     (Any, None in the same way)
    {"type": "TaskSuccess", "task_name": "a"}                      {success: a}     (TaskFailed, TaskSkipped)
    {"type": "ContextValue", "key": "n", "operator": "Equals",
     "value": 5}                                                   {context: n, op: "==", value: 5}

The name of a task may also stand under `value`. Rules may stand in rules, which Cloacina does not have.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from penstock.language.terms.options import Wrong, did_you_mean

GROUPS: Mapping[str, str] = {"All": "all", "Any": "any", "None": "none"}
OUTCOMES: Mapping[str, str] = {"TaskSuccess": "success", "TaskFailed": "failed", "TaskSkipped": "skipped"}
OPERATORS: Mapping[str, str] = {
    "Equals": "==",
    "NotEquals": "!=",
    "GreaterThan": ">",
    "LessThan": "<",
    "Contains": "contains",
    "NotContains": "not contains",
    "Exists": "exists",
    "NotExists": "not exists",
}
"""The operators of Cloacina, each with Penstock's operator."""
TYPES = ("Always", *GROUPS, *OUTCOMES, "ContextValue")
_KEYS: Mapping[str, frozenset[str]] = {
    "Always": frozenset(),
    **dict.fromkeys(GROUPS, frozenset({"conditions"})),
    **dict.fromkeys(OUTCOMES, frozenset({"task_name", "value"})),
    "ContextValue": frozenset({"key", "operator", "value"}),
}
_PAGE = "docs/coming-from/cloacina.md"


def is_cloacinas(rule: object) -> bool:
    """Return whether a rule is written with Cloacina's `type`."""
    return isinstance(rule, Mapping) and "type" in rule


def translated(rule: Any) -> Any:
    """Return the rule in our own form; a rule that is in our form already stays unchanged. Raises Wrong for a type, a
    key or an operator that Cloacina does not have."""
    if isinstance(rule, Mapping) and not is_cloacinas(rule):
        return {
            key: [translated(part) for part in value]
            if key in GROUPS.values() and isinstance(value, list | tuple)
            else value
            for key, value in rule.items()
        }
    if not isinstance(rule, Mapping):
        return rule
    kind = rule["type"]
    if kind not in TYPES:
        raise Wrong(
            f"is not a type of trigger rules: {kind!r}", f"{did_you_mean(str(kind), TYPES)} See {_PAGE}."
        )
    unknown = sorted(str(key) for key in rule if key != "type" and key not in _KEYS[kind])
    if unknown:
        raise Wrong(
            f"has {unknown[0]!r}, which {kind} does not take",
            f"{did_you_mean(unknown[0], _KEYS[kind])} See {_PAGE}.",
        )
    if kind == "Always":
        return "always"
    if kind in GROUPS:
        conditions = rule.get("conditions")
        if not isinstance(conditions, list | tuple) or not conditions:
            raise Wrong(f"{kind} has no conditions", f"Write a list of at least one condition. See {_PAGE}.")
        return {GROUPS[kind]: [translated(condition) for condition in conditions]}
    return _outcome(kind, rule) if kind in OUTCOMES else _comparison(rule)


def _outcome(kind: str, rule: Mapping[str, Any]) -> dict[str, Any]:
    names = [rule[key] for key in ("task_name", "value") if key in rule]
    if len(names) != 1:
        raise Wrong(
            f"{kind} names {'no task' if not names else 'two tasks'}", f"Write task_name. See {_PAGE}."
        )
    return {OUTCOMES[kind]: names[0]}


def _comparison(rule: Mapping[str, Any]) -> dict[str, Any]:
    key, operator = rule.get("key"), rule.get("operator")
    if not isinstance(key, str):
        raise Wrong("ContextValue has no key", f"Write the name of a value of the context. See {_PAGE}.")
    if not isinstance(operator, str) or operator not in OPERATORS:
        hint = did_you_mean(str(operator), OPERATORS)
        raise Wrong(f"is not an operator of ContextValue: {operator!r}", f"{hint} See {_PAGE}.")
    comparison = {"context": key, "op": OPERATORS[operator]}
    # Cloacina's JSON always has a value, even for Exists, which ignores it.
    if operator not in ("Exists", "NotExists"):
        if "value" not in rule:
            raise Wrong(f"{operator} has no value to compare with", f"Write value. See {_PAGE}.")
        comparison["value"] = rule["value"]
    return comparison
