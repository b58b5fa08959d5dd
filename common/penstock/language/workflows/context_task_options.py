"""The options of `@task`: those of an action, those of a task, and the retry options of Cloacina's tasks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from penstock.language.definitions.action import ActionOptions
from penstock.language.policies.policies import RetryPolicy
from penstock.language.terms.durations import seconds
from penstock.language.terms.options import Problem, Wrong, refusal, unknown_hint
from penstock.language.terms.sources import Source

OF_ACTION = frozenset(ActionOptions.names()) - {"limits", "batch"}
"""The options that are passed to the action; all others are passed to the task."""
OF_TASK = frozenset({"allow_failure", "delay", "join", "limits", "next"})
_OWN = frozenset({"dependencies", "id", "pack", "ref", "trigger_rule", "trigger_rules"})
RETRY_WORDS: Mapping[str, str] = {
    "retry_attempts": "max_attempts",
    "retry_delay": "initial_delay",
    "retry_delay_ms": "initial_delay",
    "retry_max_delay": "max_delay",
    "retry_max_delay_ms": "max_delay",
    "retry_backoff": "backoff",
    "retry_jitter": "jitter",
    "retry_condition": "retry_on",
}
"""The retry options of Cloacina's tasks, and the options of `RetryPolicy` that they stand for."""
NAMES = OF_ACTION | OF_TASK | _OWN | RETRY_WORDS.keys()
"""All options of `@task`."""


def refuse_unknown(task: str, options: Mapping[str, Any], at: Source) -> None:
    """Raise DefinitionError that names every unknown option of `@task`."""
    faults = [
        Problem((name,), "unknown option", unknown_hint("task", name, NAMES))
        for name in options
        if name not in NAMES
    ]
    if faults:
        raise refusal(f"task {task}", faults, at)


def folded_retry(task: str, options: Mapping[str, Any], at: Source) -> dict[str, Any]:
    """Return the options with `retry_attempts=3` and the like as `retry={"max_attempts": 3}`. Raises DefinitionError if
    both forms are present, or a value is invalid."""
    words = [word for word in RETRY_WORDS if word in options]
    folded = {name: value for name, value in options.items() if name not in RETRY_WORDS}
    if not words:
        return folded
    if "retry" in folded:
        fault = Problem((words[0],), "stands beside retry", "Write all of it inside retry={...}.")
        raise refusal(f"task {task}", [fault], at)
    policy: dict[str, Any] = {}
    faults: list[Problem] = []
    if options.get("retry_condition") == "never" and len(words) > 1:
        words, other = ["retry_condition"], next(word for word in words if word != "retry_condition")
        faults.append(
            Problem((other,), "does nothing beside retry_condition='never'", "Leave one of them out.")
        )
    for word in words:
        name = RETRY_WORDS[word]
        if name in policy:
            faults.append(Problem((word,), f"says {name} again", "Write one of them."))
            continue
        try:
            policy |= _policy(word, options[word])
        except Wrong as error:
            faults.append(Problem((word,), str(error), error.hint))
    if faults:
        raise refusal(f"task {task}", faults, at)
    if (
        "max_delay" not in policy
        and policy.get("initial_delay", 0) > RetryPolicy.model_fields["max_delay"].default
    ):
        policy["max_delay"] = policy["initial_delay"]
    folded["retry"] = policy
    return folded


def _policy(word: str, value: Any) -> dict[str, Any]:
    """Return the options of `RetryPolicy` for one retry option of `@task`."""
    name = RETRY_WORDS[word]
    if word.endswith("_ms"):
        if not isinstance(value, int | float) or isinstance(value, bool):
            raise Wrong(f"is not a number of milliseconds: {value!r}", f"Write {word}=1000.")
        return {name: seconds(value / 1000)}
    if word in ("retry_delay", "retry_max_delay"):
        return {name: seconds(value)}
    if word == "retry_jitter" and isinstance(value, bool):
        return {} if value else {name: 0.0}
    if word == "retry_condition":
        return _retried_errors(value)
    return {name: value}


def _retried_errors(value: Any) -> dict[str, Any]:
    """Return the retry policy for a value of Cloacina's option `retry_condition`."""
    if value == "all":
        return {}
    if value == "never":
        return {"max_attempts": 1}
    if value == "transient":
        raise Wrong(
            "is `transient`, which does not say which errors to retry",
            "Write retry={'max_attempts': 3, 'retry_on': [ConnectionError, TimeoutError]}.",
        )
    raise Wrong(
        f"is not a condition of retries: {value!r}", "Write 'all' or 'never', or retry={'retry_on': [...]}."
    )
