"""The executions of workflows' tasks: started, found, held and released."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from penstock.store.session.database import Row, Session, Transaction
from penstock.store.workflows.state import NewState


@dataclass(slots=True)
class NewChild:
    """An execution to create for a task, or for one of its items. `parameters`, `options` and `origin` are JSON."""

    id: UUID
    namespace: int
    definition: int
    parameters: str
    options: str | None
    origin: str
    not_before: datetime | None
    parent: UUID
    task: str
    item: int | None


START = """
select messages, stale
from start_children($1::text[], $2::integer[], $3::uuid[], $4::integer[], $5::integer[], $6::text[], $7::text[],
    $8::text[], $9::timestamptz[], $10::uuid[], $11::text[], $12::integer[])
"""


async def start(tx: Transaction, children: Sequence[NewChild], remembered: Mapping[str, int]) -> bool:
    """Create the executions of tasks, once for each (workflow, task, item), and schedule them at once. `remembered`
    are definitions that the caller took from memory, by ref. Return False, and create nothing, if one of them is no
    longer current or enabled."""
    return _started(await tx.stage(START, *_columns(children, remembered)))


# One round trip writes and then starts: rows of workflows are locked before keys of limits.
WRITE_AND_START = """
select s.messages, s.stale from (
    select count(*) as n from write_workflows($13::uuid[], $14::text[], $15::uuid[], $16::integer[], $17::boolean[], $18::text[],
        $19::uuid[], $20::integer[], $21::text[], $22::text[])
) w
cross join lateral start_children(case when w.n = 1 then $1::text[] end, $2::integer[], $3::uuid[], $4::integer[],
    $5::integer[], $6::text[], $7::text[], $8::text[], $9::timestamptz[], $10::uuid[], $11::text[], $12::integer[]) s
"""


async def write_and_start(
    tx: Transaction, new: NewState, children: Sequence[NewChild], remembered: Mapping[str, int]
) -> bool:
    """Write the state, then start the children. Return False as `start` does; the state is written even so."""
    return _started(await tx.stage(WRITE_AND_START, *_columns(children, remembered), *new.columns()))


def _columns(children: Sequence[NewChild], remembered: Mapping[str, int]) -> list[list[Any]]:
    """Return the arguments of `start_children`."""
    return [
        list(remembered),
        list(remembered.values()),
        [child.id for child in children],
        [child.namespace for child in children],
        [child.definition for child in children],
        [child.parameters for child in children],
        [child.options for child in children],
        [child.origin for child in children],
        [child.not_before for child in children],
        [child.parent for child in children],
        [child.task for child in children],
        [-1 if child.item is None else child.item for child in children],
    ]


def _started(rows: Sequence[Row]) -> bool:
    return not rows[0]["stale"]


FIND_OPEN = """
select id from execution where parent = $1 and finished_at is null and ($2::text[] is null or task = any($2::text[]))
"""


async def find_open(tx: Transaction, workflow: UUID, tasks: Sequence[str] | None) -> list[UUID]:
    """Return the open executions of these tasks of a workflow (None: of all tasks)."""
    return [row["id"] for row in await tx.fetch(FIND_OPEN, workflow, tasks)]


LOCK = "select lock_runs($1::uuid[])"


async def lock(tx: Transaction, ids: Sequence[UUID]) -> None:
    """Lock executions that are about to end; for workflows, their states first."""
    await tx.fetch(LOCK, ids)


HOLD = "select hold_children($1::uuid[], $2) as messages"


async def hold(tx: Transaction, workflows: Sequence[UUID], reason: str) -> None:
    """Hold the tasks of these paused workflows that no worker has begun."""
    await tx.stage(HOLD, workflows, reason)


RELEASE = "select release_children($1::uuid[], $2) as messages"


async def release(tx: Transaction, workflows: Sequence[UUID], reason: str) -> None:
    """Release the held tasks of these resumed workflows."""
    await tx.stage(RELEASE, workflows, reason)


WAIT_DEFINITIONS = "select id, ref from definition where kind = 'wait'"


async def read_wait_definitions(tx: Session | Transaction) -> dict[str, int]:
    """Return the definitions of waiting tasks, by ref."""
    return {row["ref"]: row["id"] for row in await tx.fetch(WAIT_DEFINITIONS)}


READ_CLOCK = "select clock_timestamp()"


async def read_clock(tx: Transaction) -> datetime:
    """Return the clock of the database."""
    instant: datetime = (await tx.fetch(READ_CLOCK))[0][0]
    return instant
