"""The time limits that tasks and rules of StackStorm give to actions of other packs. Almost all runners take the
parameter `timeout`, and no file of the pack names the runner of such an action."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from penstock_import.orquesta_expressions import is_whole

OF_OTHERS = "of another pack"
"""The runner of an action that no file of the pack has."""


def is_limit(value: Any) -> bool:
    """Return whether a value is a time limit that a task can have."""
    return isinstance(value, int | float) and not isinstance(value, bool) and value > 0


def with_default(timeout: Any, limit: float | None) -> Any:
    """Return a computed time limit that is `limit` where it would be null, as StackStorm's default for null."""
    if limit is None or not isinstance(timeout, str) or not is_whole(timeout):
        return timeout
    value = timeout.strip()[2:-2].strip()
    return f"{{{{ ({value}) if ({value}) is not none else {limit} }}}}"


def settle(
    name: str,
    task: dict[str, Any],
    timeout: Any,
    tell: Callable[[str, str], object],
    note: Callable[[str, str], object] | None,
) -> None:
    """Give a task the time limit in its input, and record a gap for it. `note` records a gap that is counted separately."""
    subject = f"the timeout {timeout} of {name}, for an action of another pack"
    if is_limit(timeout):
        task["timeout"] = timeout
        (note or tell)(
            subject,
            "In StackStorm the action's runner ends it after that time. In Penstock it is both `timeout` of the task and a "
            "parameter: remove one of them, and write `executor: process` of the action, so that it ends.",
        )
    else:
        tell(
            subject, "In StackStorm the action's runner ends it after that time: write `timeout` of the task."
        )
