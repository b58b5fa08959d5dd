"""The steps of durable functions for display: those that are recorded, and the signals that the function waits for now."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

import orjson
from pydantic import Field

from penstock.engine.durable.records import (
    ASK,
    CANCELLED,
    COMPLETED,
    END,
    FAILED,
    SIGNAL,
    SLEEP,
    STARTED,
    STATE,
    WAIT_FOR,
    Key,
)
from penstock.language.moves import REQUESTED, RUNNING, TIMEOUT, WAITING
from penstock.language.workflows.progress import HELD, PAUSED
from penstock.operate import awaited_steps
from penstock.operate.awaited_steps import SIGNAL_PREFIX, StepWait
from penstock.operate.titles import waits_of
from penstock.store.durable import steps
from penstock.store.durable.steps import StoredStep
from penstock.store.session import clock
from penstock.store.session.database import Session

DEADLINES = (SLEEP, ASK, WAIT_FOR)
"""The kinds of steps whose timeout is planned: the function gave a deadline and goes on without what it waited for."""
TIME_LIMIT = "timeout"
"""The name of the step of a block with a limit (`ctx.timeout`)."""
TIMED_OUT = "timed out"
"""The status for people of a step whose deadline has passed as planned."""


@dataclass(slots=True)
class Step:
    """A recorded step of a durable function."""

    label: Annotated[
        str,
        Field(
            description="The label for `skip`, `set-result` and `rerun`: `charge`, or `1/charge:2` for the second "
            "`charge` in the parallel branch 1."
        ),
    ]
    name: Annotated[str, Field(description="The name of the step, as in the code.")]
    ordinal: Annotated[int, Field(description="The ordinal among the steps of this name; 1 for the first.")]
    branch: Annotated[
        list[int],
        Field(description="The numbers of the parallel branches in which it runs, outermost first."),
    ]
    kind: Annotated[
        str,
        Field(
            description="`step`, `value`, `version`, `sleep`, `run`, `map`, `ask`, `wait_for` or `signal`. `given`: a result "
            "that was set before the step was asked for."
        ),
    ]
    status: Annotated[
        str,
        Field(
            description="`started`: it has begun. `completed` or `failed`: it has its result or error. `cancelled`: "
            "its branch was cancelled, or it is the deadline of a signal that came in time. "
            "`superseded`: a later attempt of the function did not make this step. `timeout`: the "
            "deadline that the function set for a signal, a block, an event or a question has passed. A "
            "step with a child execution has the status of the child."
        ),
    ]
    tries: Annotated[int, Field(description="The number of times that it was tried.")]
    took: Annotated[float, Field(description="The seconds for which its function ran, over all tries.")]
    at: Annotated[datetime, Field(description="The instant at which its status was recorded.")]
    result: Annotated[Any, Field(description="The result, any JSON; null: there is none.")]
    error: Annotated[Any, Field(description="The error, with `type` and `message`; null: there is none.")]
    execution: Annotated[UUID | None, Field(description="The id of its child execution; null: it has none.")]
    wait: Annotated[
        StepWait | None,
        Field(description="The wait of the function in this step; null: it does not wait in it now."),
    ] = None
    paused: Annotated[
        bool,
        Field(description="True: its child execution continues when a workflow is resumed."),
    ] = False
    held: Annotated[
        bool, Field(description="True: its child execution continues when a hold is released.")
    ] = False


def status_for_people(step: Step) -> str:
    """Return the status of a step, in which a planned deadline that has passed differs from an attempt that took too long. A
    step that has begun, and in which the function waits without a child, is `waiting`. A step with a child that waits for a
    resume or the release of a hold is `paused` or `held`."""
    if step.paused or step.held:
        return PAUSED if step.paused else HELD
    if step.status == STARTED and step.wait is not None and step.execution is None:
        return WAITING
    return TIMED_OUT if step.status == TIMEOUT and step.kind in DEADLINES else step.status


async def steps_of(session: Session, id: UUID) -> list[Step]:
    """Return the steps of a run, in order, without its state (`ctx.set`): those that are recorded, and then the signals that
    the function waits for."""
    return (await steps_and_state(session, id))[0]


async def steps_and_state(session: Session, id: UUID) -> tuple[list[Step], dict[str, Any]]:
    """Return the steps of a run as `steps_of`, and the latest state of `ctx.set`, by key."""
    recorded = await steps.recorded(session, id)
    state = {
        step.name.partition("/")[2]: orjson.loads(step.result or "null")
        for step in recorded
        if step.kind == STATE
    }
    return await _steps(session, id, [step for step in recorded if step.kind not in (STATE, END)]), state


async def _steps(session: Session, id: UUID, recorded: list[StoredStep]) -> list[Step]:
    run = await steps.open_run(session, id)
    children = (
        {(c.name, c.ordinal): c for c in await steps.children_of_any_age(session, id)} if recorded else {}
    )
    served = awaited_steps.served_deadlines(recorded)
    labels = {Key(step.name, step.ordinal).label for step in recorded if step.kind != SIGNAL}
    described = {
        Key(step.name, step.ordinal): _step(step, children.get((step.name, step.ordinal)), labels, served)
        for step in recorded
    }
    if sleeps := [step for step in described.values() if step.kind == SLEEP and step.status == STARTED]:
        now = await clock.now(session) if run is None else run.now
        for sleep in sleeps:  # a sleep has a record of its instant, and none of its end
            if awaited_steps.instant(sleep.result, now) <= now:
                sleep.status = COMPLETED
    if run is None:
        return list(described.values())
    await _mark_stopped(session, described.values())
    open_records = [
        step
        for step in recorded
        if described[Key(step.name, step.ordinal)].status not in (COMPLETED, CANCELLED)
    ]
    for key, wait in (await awaited_steps.waits(session, id, run, open_records)).items():
        if key not in described:
            described[key] = _awaited_signal(key, wait, labels)
        elif described[key].kind != SIGNAL:  # a signal that is recorded has come meanwhile
            described[key].wait = wait
    return list(described.values())


async def _mark_stopped(session: Session, described: Iterable[Step]) -> None:
    """Mark the steps with a child execution that waits for a resume or the release of a hold, by the rule of lists."""
    open_steps = {
        step.execution: step
        for step in described
        if step.execution is not None and step.status in (REQUESTED, RUNNING, WAITING)
    }
    waits, paused = await waits_of(session, {id: step.status for id, step in open_steps.items()})
    for id, step in open_steps.items():
        wait = waits.get(id)
        step.paused = id in paused or (wait is not None and wait.because == PAUSED)
        step.held = wait is not None and wait.because == HELD and not step.paused


def _awaited_signal(key: Key, wait: StepWait, labels: Collection[str]) -> Step:
    """Return the step of a signal that the function waits for, of which nothing is recorded."""
    name = key.name.removeprefix(SIGNAL_PREFIX)
    label = _signal_label(key, labels)
    return Step(label, name, key.ordinal, [], SIGNAL, STARTED, 0, 0.0, wait.since, None, None, None, wait)


def _signal_label(key: Key, labels: Collection[str]) -> str:
    """Return the label of a signal: its own name, unless a step has that label."""
    own = Key(key.name.removeprefix(SIGNAL_PREFIX), key.ordinal).label
    return key.label if own in labels else own


def _step(
    step: StoredStep, child: steps.StoredChild | None, labels: Collection[str], served: Collection[Key]
) -> Step:
    branch, _, name = step.name.rpartition("/")
    numbers = [int(part) for part in branch.split("/") if part.isdigit()]
    status, result, error = step.status, step.result, step.error
    key = Key(step.name, step.ordinal)
    if child is not None and status == STARTED:
        status, result, error = child.status, child.result, child.error
    elif step.kind == SLEEP and (status == FAILED or _is_passed_limit(step, name)):
        status = TIMEOUT
    elif key in served:
        status = CANCELLED
    return Step(
        _signal_label(key, labels) if step.kind == SIGNAL else key.label,
        name,
        step.ordinal,
        numbers,
        step.kind,
        status,
        step.tries,
        step.took,
        step.at,
        orjson.loads(result) if result else None,
        orjson.loads(error) if error else None,
        None if child is None else UUID(int=child.id.int),
    )


def _is_passed_limit(step: StoredStep, name: str) -> bool:
    """Return whether a step is the limit of a block, and the function was told that it has passed."""
    return name == TIME_LIMIT and step.status == STARTED and step.told is not None
