"""The waits of a durable function, by the step in which it waits: since when, until when, and what ends each.

The database has a record of each sleep, child and deadline. A signal without a deadline has none before it comes: a suspended
function names it, and a function that a worker still runs does not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

import orjson
from pydantic import Field

from penstock.engine.durable.records import MAP, RUN, SIGNAL, SLEEP, STARTED, STEP, Key
from penstock.operate.awaited_events import condition_text
from penstock.operate.masking import Masking
from penstock.operate.wait_clauses import SLEEP_END, event_of
from penstock.store.durable import steps
from penstock.store.durable.steps import ChildWait, OpenRun, StoredStep
from penstock.store.session.database import Session

SIGNAL_PREFIX = f"{SIGNAL}/"
"""The beginning of the recorded name of a signal."""
DEADLINE_PREFIX = "timeout of "
"""The beginning of the name of a signal's deadline."""


@dataclass(frozen=True, slots=True)
class StepWait:
    """The wait of a durable function in one of its steps."""

    since: Annotated[
        datetime,
        Field(
            description="The beginning of the wait. For a signal without a deadline: the last instant at which the "
            "function was suspended."
        ),
    ]
    until: Annotated[
        datetime | None,
        Field(description="The instant at which the wait ends at the latest; null: it has none."),
    ]
    awaits: Annotated[
        str,
        Field(
            description="What ends the wait, such as `the signal paid` or `an event of shop.paid where order_id = 42`."
        ),
    ]


def instant(result: Any, otherwise: datetime) -> datetime:
    """Return the instant that the record of a sleep, a deadline or a failed try names, or `otherwise` if it names none."""
    until = result.get("until") if isinstance(result, dict) else None
    try:
        return datetime.fromisoformat(until) if isinstance(until, str) else otherwise
    except ValueError:
        return otherwise


def served_deadlines(recorded: Sequence[StoredStep]) -> set[Key]:
    """Return the deadlines of signals that have come in time: their records do not change when the signal comes. Each received
    signal goes to the call that was made first, and that was made before the function received it."""
    deadlines = sorted(
        (step for step in recorded if _deadline_of(step) is not None and step.status == STARTED),
        key=lambda step: (step.asked_after, step.at, step.place),
    )
    received = sorted(
        (step for step in recorded if step.kind == SIGNAL and step.told is not None),
        key=lambda step: step.told or 0,
    )
    served: set[Key] = set()
    for signal in received:
        for deadline in deadlines:
            key = Key(deadline.name, deadline.ordinal)
            is_own = _deadline_of(deadline) == signal.name.removeprefix(SIGNAL_PREFIX)
            if is_own and key not in served and deadline.asked_after < (signal.told or 0):
                served.add(key)
                break
    return served


def _deadline_of(step: StoredStep) -> str | None:
    """Return the name of the signal of which a step is the deadline; None for any other step."""
    name = step.name.rpartition("/")[2]
    is_deadline = step.kind == SLEEP and name.startswith(DEADLINE_PREFIX)
    return name.removeprefix(DEADLINE_PREFIX) if is_deadline else None


async def waits(
    session: Session, id: UUID, run: OpenRun, recorded: Sequence[StoredStep]
) -> dict[Key, StepWait]:
    """Return the waits of an open run, by the keys of their steps. `recorded` are its steps that are not over. A signal that the
    function waits for has a key here, although no step is recorded for it."""
    by_key = {Key(step.name, step.ordinal): step for step in recorded if step.status == STARTED}
    by_step = {key: wait for key, step in by_key.items() if (wait := _timed(step, run)) is not None}
    children = await steps.child_waits(session, id)
    masking = await Masking.load(session) if any(child.trigger for child in children) else None
    for child in children:
        key = Key(child.name, child.ordinal)
        if key in by_key:
            awaits = _awaited_by_child(by_key[key], child, run.action, masking)
            by_step[key] = StepWait(child.since, child.until, awaits)
    return by_step | _signals(run, [step for step in by_key.values() if _deadline_of(step) is not None])


def _timed(step: StoredStep, run: OpenRun) -> StepWait | None:
    """Return the wait of a sleep, a deadline, or a step between two tries; None if it does not wait."""
    until = instant(orjson.loads(step.result) if step.result else None, run.now)
    if step.kind not in (SLEEP, STEP) or until <= run.now:
        return None
    if step.kind == STEP:
        return StepWait(step.at, until, f"its attempt {step.tries + 1}")
    signal, name = _deadline_of(step), step.name.rpartition("/")[2]
    if signal is not None:
        return StepWait(step.at, until, f"the signal {signal}, or this deadline")
    return StepWait(
        step.at, until, "the end of its block, or this deadline" if name == "timeout" else SLEEP_END
    )


def _awaited_by_child(step: StoredStep, child: ChildWait, action: str, masking: Masking | None) -> str:
    if step.kind in (RUN, MAP):
        return "the end of its child execution"
    if child.prompt is not None:
        return f"an answer{f' from {child.assignee}' if child.assignee else ''}: {child.prompt}"
    if child.trigger is not None and masking is not None:
        return event_of(child.trigger, condition_text(masking, child.trigger, child.params, action))
    return "an executor, which begins the wait or has just ended it"


def _signals(run: OpenRun, deadlines: Sequence[StoredStep]) -> dict[Key, StepWait]:
    """Return the waits for signals. The deadlines of a name belong to its signals in their order, if each of
    these signals has a deadline."""
    by_name: dict[str, list[StoredStep]] = {}
    for step in sorted(deadlines, key=lambda step: (step.asked_after, step.at, step.place)):
        by_name.setdefault(_deadline_of(step) or "", []).append(step)
    awaited = [Key(*entry) for entry in orjson.loads(run.signals or "[]")]
    by_step: dict[Key, StepWait] = {}
    for key in sorted(awaited):
        name = key.name.removeprefix(SIGNAL_PREFIX)
        same = [other for other in sorted(awaited) if other.name == key.name]
        own = by_name.get(name, [])
        deadline = own[same.index(key)] if len(own) == len(same) else None
        by_step[key] = _signal(run, name, deadline)
    return by_step


def _signal(run: OpenRun, name: str, deadline: StoredStep | None) -> StepWait:
    if deadline is None:
        return StepWait(run.since or run.now, None, f"the signal {name}")
    until = instant(orjson.loads(deadline.result) if deadline.result else None, run.now)
    return StepWait(deadline.at, until, f"the signal {name}")
