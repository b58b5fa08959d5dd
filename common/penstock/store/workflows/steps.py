"""Steps of workflows in as few round trips as possible: tasks end, their workflows advance, and the next tasks are
claimed."""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from uuid import UUID

import asyncpg
import orjson

from penstock.engine.serialization import load_task_state
from penstock.engine.state import TaskState
from penstock.store.executions.attempts import (
    FINISH_PARAMETERS,
    AttemptEnd,
    ClaimAnswer,
    Claimant,
    Finished,
    claim_answer,
    finish_arguments,
)
from penstock.store.session.database import Row, Session, Transaction
from penstock.store.session.staged_messages import StagedMessage, staged_in
from penstock.store.workflows.children import NewChild
from penstock.store.workflows.state import (
    EndedExecution,
    EndedWorkflow,
    NewState,
    StoredWorkflow,
    ended_and_stored,
    parsed_workflow,
)
from penstock.store.workflows.state import (
    finish_arguments as end_arguments,
)
from penstock.tracing import Trace, trace_of

MOST_STORED = 64
"""The largest number of stored task states of a workflow that a worker begins to remember."""
CHANGED = "PN003"
"""The SQLSTATE that take_steps raises if the state differs from what the worker remembers."""
REFUSED_S = 30.0
"""Seconds for which starts of an action are not tried as plain steps, after the database has refused one."""


@dataclass(slots=True)
class OpenedParents:
    """The executions with ended attempts (`moved`); those of them that have ended and need a follow-up
    (`ended_executions`); and their locked workflows. The last two are empty if a lock was taken. `tasks`: for
    workflows with few stored tasks, the version and the states of these tasks."""

    moved: set[UUID]
    ended_executions: list[EndedExecution]
    workflows: list[StoredWorkflow]
    tasks: dict[UUID, tuple[int, dict[int, TaskState]]]


FINISH_AND_OPEN = f"""
select f.messages, f.moved, o.*, r.version, r.tasks, r.records
from finish_attempts({FINISH_PARAMETERS}) f
-- If this statement opens the parents, it also deletes the messages that announce the ends to executors.
left join lateral open_parents_at_once(f.moved, array(
    select m.outbox_id from unnest(f.messages) m where m.queue = 'execution.completed')) o on true
left join lateral remembered_tasks(o.execution_id, {MOST_STORED}) r on true
"""


async def finish_and_open(
    tx: Transaction, worker: UUID, ends: Sequence[AttemptEnd], claims: Sequence[UUID]
) -> OpenedParents:
    """Record these ends (see attempts.finish), and open the workflows of the ended tasks. The workflows are opened only
    if no lock has to be waited for, and none of the ended executions held slots of limits."""
    rows = await tx.fetch(FINISH_AND_OPEN, *finish_arguments(worker, ends, claims))
    tx.keep(rows[:1])
    ended_executions, workflows = ended_and_stored([row for row in rows if row["id"] or row["execution_id"]])
    tasks = {
        row["execution_id"]: (row["version"], _tasks(row))
        for row in rows
        if row["execution_id"] and row["version"] is not None
    }
    return OpenedParents(set(rows[0]["moved"]), ended_executions, workflows, tasks)


@dataclass(slots=True)
class UnlockedWorkflow:
    """A running workflow as it was when it was read: its version, its trace and the states of its stored tasks."""

    stored: StoredWorkflow
    version: int
    trace: Trace | None
    tasks: dict[int, TaskState]


READ = f"select * from read_workflows($1::uuid[], {MOST_STORED})"


async def read_unlocked(session: Session, ids: Collection[UUID]) -> list[UnlockedWorkflow]:
    """Return the running workflows among these that have few stored tasks. The workflows are not locked: `take_steps`
    checks that they have not changed."""
    return [
        UnlockedWorkflow(
            parsed_workflow(row), row["version"], trace_of(orjson.loads(row["trace"] or "null")), _tasks(row)
        )
        for row in await session.fetch(READ, list(ids))
        if row["tasks"] is not None
    ]


def _tasks(row: Row) -> dict[int, TaskState]:
    pairs = zip(row["tasks"] or (), row["records"] or (), strict=True)
    return {task: load_task_state(record) for task, record in pairs}


@dataclass(slots=True)
class Step:
    """A step that follows the ends of tasks. The step was decided on the `versions` (version, stops) of their
    workflows. It has the new states of the workflows, the children to start, and the workflows that end."""

    versions: dict[UUID, tuple[int, int]]
    new: NewState
    children: Sequence[NewChild]
    remembered: dict[str, int]
    ends: Sequence[EndedWorkflow]


TAKE = """
select taken, messages, queue, claimed, parked
from take_steps($1::uuid[], $2::integer[], $3::integer[], $4, $5::uuid[], $6::integer[], $7::text[], $8::uuid[],
    $9::text[], $10::uuid[], $11::integer[], $12::boolean[], $13::text[], $14::uuid[], $15::integer[], $16::text[], $17::text[],
    $18::text[], $19::integer[], $20::uuid[], $21::integer[], $22::integer[], $23::text[], $24::text[], $25::text[],
    $26::uuid[], $27::text[], $28::uuid[], $29::text[], $30::text[], $31::text[], $32::text[],
    $33, $34::text[], $35::integer[], $36::integer[], $37::executor_room[])
"""


TAKE_PLAIN = """
select taken, queue, claimed
from take_plain_step($1, $2, $3, $4, $5, $6, $7, $8::uuid[], $9, $10::integer[], $11::boolean[], $12::text[],
    $13, $14, $15, $16, $17, $18, $19, $20, $21, $22::text[], $23::integer[])
"""


async def take_steps(
    session: Session,
    step: Step,
    ends: Sequence[AttemptEnd],
    claims: Sequence[UUID],
    claimant: Claimant,
    queues: Sequence[str],
) -> Finished | None:
    """Write the step, and claim executions that it starts on one of `queues`, at most as many as it ends. Commits by
    itself, mostly in one round trip. If another transaction has changed the state that the decision used, or is about
    to, do nothing and return None."""
    try:
        answer = await _take_plain(session, step, ends, claims, claimant, queues)
        if answer is None:
            [row] = await session.fetch(
                TAKE,
                *_as_ended(step, claimant, ends, claims),
                *_as_started(step),
                *_as_claimed(claimant, queues),
            )
            claimed = claim_answer(row["claimed"] or (), [], (), row["parked"])
            answer = row["taken"], staged_in(row["messages"]), row["queue"], claimed
    except asyncpg.PostgresError as error:
        if error.sqlstate == CHANGED:
            return None
        raise
    was_taken, staged, queue, claimed = answer
    return Finished({end.execution_id for end in ends}, staged, queue, claimed) if was_taken else None


Taken = tuple[bool, list[StagedMessage], str | None, ClaimAnswer]
"""The answer to a step: whether it was written, its messages, the queue from which it claimed, and what it claimed."""


async def _take_plain(
    session: Session,
    step: Step,
    ends: Sequence[AttemptEnd],
    claims: Sequence[UUID],
    claimant: Claimant,
    queues: Sequence[str],
) -> Taken | None:
    """Write a step with one end and one start, if nothing has to be decided in the database. Otherwise return None, and
    nothing is written. The arguments of the general statement alone take 50 us more."""
    if not is_plain(step, ends, claimant):
        return None
    [child] = step.children
    refused: dict[int, float] = session.cache.setdefault("steps that are not plain", {})
    if refused and refused.get(child.definition, 0.0) > time.monotonic():
        return None
    [row] = await session.fetch(TAKE_PLAIN, *plain_arguments(step, ends, claims, claimant, queues))
    if row["taken"] is None:
        refused[child.definition] = time.monotonic() + REFUSED_S
        return None
    return row["taken"], [], row["queue"], claim_answer(row["claimed"] or (), [], (), False)


def is_plain(step: Step, ends: Sequence[AttemptEnd], claimant: Claimant) -> bool:
    """Return True if a step has one end and one start, and neither variables nor the end of a workflow."""
    return (
        len(step.versions) == 1
        and len(ends) == 1
        and len(step.children) == 1
        and len(step.remembered) == 1
        and step.children[0].options is None
        and not step.new.variables
        and not step.ends
        and not claimant.limited
    )


def plain_arguments(
    step: Step, ends: Sequence[AttemptEnd], claims: Sequence[UUID], claimant: Claimant, queues: Sequence[str]
) -> list[object]:
    """Return the arguments of take_plain_step."""
    [(workflow, (version, stops))] = step.versions.items()
    [end], [child], [(ref, current)] = ends, step.children, step.remembered.items()
    _, [head], _, tasks, failing, records, *_ = step.new.columns()
    return [
        *(workflow, version, stops),
        *(claimant.worker, end.execution_id, end.attempt, end.ending.result, claims),
        *(head, tasks, failing, records),
        *(ref, current, child.id, child.namespace, child.definition),
        *(child.parameters, child.origin, child.task),
        *(claimant.claim, queues, claimant.known),
    ]


def _as_ended(
    step: Step, claimant: Claimant, ends: Sequence[AttemptEnd], claims: Sequence[UUID]
) -> list[object]:
    return [
        list(step.versions),
        [version for version, _ in step.versions.values()],
        [stops for _, stops in step.versions.values()],
        claimant.worker,
        [end.execution_id for end in ends],
        [end.attempt for end in ends],
        [end.ending.result for end in ends],
        claims,
    ]


def _as_started(step: Step) -> list[object]:
    children = step.children
    return [
        *step.new.columns()[1:],
        list(step.remembered),
        list(step.remembered.values()),
        [child.id for child in children],
        [child.namespace for child in children],
        [child.definition for child in children],
        [child.parameters for child in children],
        [child.options for child in children],
        [child.origin for child in children],
        [child.parent for child in children],
        [child.task for child in children],
        *end_arguments(step.ends),
    ]


def _as_claimed(claimant: Claimant, queues: Sequence[str]) -> list[object]:
    return [claimant.claim, queues, claimant.known, claimant.lacking, claimant.limited]
