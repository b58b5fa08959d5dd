"""Steps of workflows in as few round trips as may be: tasks end, their workflows are advanced, and what follows is claimed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from uuid import UUID

import asyncpg

from penstock.engine.serialization import load_task_state
from penstock.engine.state import TaskState
from penstock.store.executions.attempts import (
    FINISH_PARAMETERS,
    AttemptEnd,
    ClaimAnswer,
    Claimant,
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
)
from penstock.store.workflows.state import (
    finish_arguments as end_arguments,
)

MOST_STORED = 64
"""How many tasks of a workflow may have begun, or have an end before them, when one begins to remember it."""
CHANGED = "PN003"
"""What take_steps raises where something is not as it was remembered."""


@dataclass(slots=True)
class OpenedParents:
    """The executions with ended attempts (`moved`), those of them that are followed, and their workflows, locked; none of
    these two where they could not be had without waiting. `tasks`: of workflows, where they are few, how those stand that
    are stored, and of which version that is."""

    moved: set[UUID]
    ended: list[EndedExecution]
    workflows: list[StoredWorkflow]
    tasks: dict[UUID, tuple[int, dict[int, TaskState]]]


# The messages that tell of the ends are taken back where that is done here.
FINISH_AND_OPEN = f"""
select f.messages, f.moved, o.*, r.version, r.tasks, r.records
from finish_attempts({FINISH_PARAMETERS}) f
left join lateral open_parents_at_once(f.moved, array(
    select m.outbox_id from unnest(f.messages) m where m.queue = 'execution.completed')) o on true
left join lateral remembered_tasks(o.execution_id, {MOST_STORED}) r on true
"""


async def finish_and_open(
    tx: Transaction, worker: UUID, ends: Sequence[AttemptEnd], claims: Sequence[UUID]
) -> OpenedParents:
    """Write down these ends (see attempts.finish), and open the workflows that the ended tasks belong to. They are opened
    only if no lock has to be waited for, and none of the ended held slots of limits."""
    rows = await tx.fetch(FINISH_AND_OPEN, *finish_arguments(worker, ends, claims))
    tx.keep(rows[:1])
    ended_executions, workflows = ended_and_stored([row for row in rows if row["id"] or row["execution_id"]])
    tasks = {
        row["execution_id"]: (row["version"], _tasks(row))
        for row in rows
        if row["execution_id"] and row["version"] is not None
    }
    return OpenedParents(set(rows[0]["moved"]), ended_executions, workflows, tasks)


def _tasks(row: Row) -> dict[int, TaskState]:
    pairs = zip(row["tasks"] or (), row["records"] or (), strict=True)
    return {task: load_task_state(record) for task, record in pairs}


@dataclass(slots=True)
class Step:
    """The step that follows the ends of tasks. It was decided on the `versions` of their workflows and the numbers of
    `stops`. It has the new states of the workflows, their starts, and their ends."""

    versions: dict[UUID, tuple[int, int]]
    new: NewState
    children: Sequence[NewChild]
    remembered: dict[str, int]
    ends: Sequence[EndedWorkflow]


@dataclass(slots=True)
class StepTaken:
    """`taken`: the step is committed. `staged` is to be published. What was for `queue` was claimed as far as `claimed` says."""

    taken: bool
    staged: list[StagedMessage] = field(default_factory=list)
    queue: str | None = None
    claimed: ClaimAnswer = field(default_factory=ClaimAnswer)


TAKE = """
select taken, messages, queue, claimed, parked
from take_steps($1::uuid[], $2::integer[], $3::integer[], $4, $5::uuid[], $6::integer[], $7::text[], $8::uuid[],
    $9::text[], $10::uuid[], $11::integer[], $12::boolean[], $13::text[], $14::uuid[], $15::integer[], $16::text[], $17::text[],
    $18::text[], $19::integer[], $20::uuid[], $21::integer[], $22::integer[], $23::text[], $24::text[], $25::text[],
    $26::uuid[], $27::text[], $28::uuid[], $29::text[], $30::text[], $31::text[], $32::text[],
    $33, $34::text[], $35::integer[], $36::integer[], $37::executor_room[])
"""


async def take_steps(
    session: Session,
    step: Step,
    ends: Sequence[AttemptEnd],
    claims: Sequence[UUID],
    claimant: Claimant,
    queues: Sequence[str],
) -> StepTaken:
    """Write the step, and claim of what it starts that is on one of these queues no more than what it ends. The whole
    transaction, in one round trip. Nothing is done, and it is not `taken`, where another transaction has changed the facts
    of the decision, or is about to."""
    try:
        [row] = await session.fetch(
            TAKE, *_as_ended(step, claimant, ends, claims), *_as_started(step), *_as_claimed(claimant, queues)
        )
    except asyncpg.PostgresError as error:
        if error.sqlstate == CHANGED:
            return StepTaken(taken=False)
        raise
    claimed = claim_answer(row["claimed"], [], (), row["parked"])
    return StepTaken(row["taken"], staged_in(row["messages"]), row["queue"], claimed)


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
        [end.result for end in ends],
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
