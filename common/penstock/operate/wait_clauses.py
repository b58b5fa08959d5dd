"""The clauses about waits, which the answer to why and the lists of executions share."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

SLEEP_END = "the end of the sleep"
"""The end of the wait of a step that only sleeps."""
FOR_RELEASE = "waits for the release of a hold"


def for_answer(prompt: str, assignee: str | None) -> str:
    """Return the clause about an open inquiry."""
    return f"waits for an answer{f' from {assignee}' if assignee else ''}: {prompt}"


def for_event(trigger: str, condition: str) -> str:
    """Return the clause about a wait for an event. `condition` is the text of its filter, empty without one."""
    return f"waits for {event_of(trigger, condition)}"


def event_of(trigger: str, condition: str) -> str:
    """Return the words about the events that end a wait: `an event of shop.paid where order_id = 42`."""
    return f"an event of {trigger}{f' {condition}' if condition else ''}"


def for_resume(is_itself: bool) -> str:
    """Return the clause about a paused workflow: the listed one (`is_itself`), or one inside it."""
    return "is paused" if is_itself else "waits for a workflow inside it, which is paused"


PAUSED_AND_RUNS = "is paused, but its running tasks continue"
"""The clause about a paused workflow of which a task still runs."""
KEPT_BY_PAUSE = "waits for its workflow, which is paused"
"""The clause about a task that starts when its workflow is resumed."""


def for_limit(limit: str) -> str:
    """Return the clause about a slot of a limit."""
    return f"waits for the limit {limit}"


REGROUPED = "waits for an executor to sort its queue again, since its limits have changed"
"""The clause about a queued execution of which the limits were changed."""


def for_worker(route: str, is_online: bool) -> str:
    """Return the clause about a worker of a route. `is_online`: a live worker can run the execution."""
    if is_online:
        return f"waits for a free worker of the route {route}"
    return f"waits for a worker: no online worker of the route {route} can run it"


def for_outside(name: str | None) -> str:
    """Return the clause about a wait for a system that completes the execution."""
    return f"waits for an outside system to complete {name or 'it'}"


def for_signals(names: Sequence[str], until: str = "") -> str:
    """Return the clause about the signals that a durable function waits for. `until` is the longest time."""
    return f"waits{until} for {' or '.join(f'the signal {name}' for name in names)}"


def until_instant(at: datetime) -> str:
    """Return the clause about a wait for an instant."""
    return f"waits until {at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
