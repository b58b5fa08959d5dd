"""What the reference evaluator needs to know of rules."""

from __future__ import annotations

from typing import Any

FAILED = ("failed", "timeout", "cancelled", "abandoned")
NAMED = ("all_success", "all_done", "always", "one_success", "one_failed", "none_failed")


class Word:
    """`failed` in `failed()`."""

    def __init__(self, value: bool) -> None:
        self.value = value

    def __call__(self) -> bool:
        return self.value

    def __bool__(self) -> bool:
        return self.value


def words(status: str, result: Any, error: Any) -> dict[str, Any]:
    """What `publish` and `next` say of the end of their own task."""
    return {
        "status": status,
        "result": result,
        "error": error,
        "succeeded": Word(status == "completed"),
        "failed": Word(status in FAILED),
        "timed_out": Word(status == "timeout"),
        "cancelled": Word(status == "cancelled"),
    }


def speaks_of_outcomes(rule: Any) -> bool:
    if isinstance(rule, str):
        return rule in NAMED
    if set(rule) & {"success", "failed", "skipped"}:
        return True
    return any(speaks_of_outcomes(part) for key in ("all", "any", "none") for part in rule.get(key, ()))


def reads_values(rule: Any) -> bool:
    """Return whether a rule has a condition over values anywhere. Such parts come last."""
    if isinstance(rule, str):
        return rule not in NAMED
    return "context" in rule or any(
        reads_values(part) for key in ("all", "any", "none") for part in rule.get(key, ())
    )


def asks_for(rule: Any, name: str, sense: bool = True) -> bool:
    """Whether a rule asks for the failure of a task."""
    if rule == "one_failed" or (isinstance(rule, dict) and rule.get("failed") == name):
        return sense
    if isinstance(rule, dict):
        inner = [*rule.get("all", ()), *rule.get("any", ())]
        return any(asks_for(part, name, sense) for part in inner) or any(
            asks_for(part, name, not sense) for part in rule.get("none", ())
        )
    return False
