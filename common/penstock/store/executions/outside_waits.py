"""The waits of executions for something outside, and how they end: see the database functions `wait_outside` and
`settle_outside`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from penstock.language.moves import REQUESTED
from penstock.language.policies.after_attempt import Ending
from penstock.store.session.database import Session, Transaction
from penstock.store.session.rows import first_as, rows_as


@dataclass(frozen=True, slots=True)
class OutsideWait:
    """The wait of an execution. `name` is the id that the other system knows. `remaining` is in seconds, and `waited`
    too. `progress` is from 0 to 1."""

    execution_id: UUID
    attempt: int
    name: str | None
    waited: float
    remaining: float | None
    due_at: datetime | None
    progress: float | None
    progress_text: str | None
    progress_at: datetime | None


OPEN = """
select execution_id, attempt, name, extract(epoch from clock_timestamp() - since)::float8 as waited,
    extract(epoch from due_at - clock_timestamp())::float8 as remaining, due_at, progress, progress_text, progress_at
from outside_wait where execution_id = $1
"""


async def find(session: Session | Transaction, execution: UUID) -> OutsideWait | None:
    """Return the latest wait of an execution."""
    return first_as(OutsideWait, await session.fetch(OPEN, execution))


@dataclass(frozen=True, slots=True)
class WaitingAttempt:
    """An attempt that waits, or still runs, with what decides about a retry: its `failures`, and its `options` and
    `definition` as JSON. `secrets` are the names of the stored secrets that it was given."""

    execution_id: UUID
    status: str
    attempt: int
    failures: int
    definition: str
    options: str | None
    tenant: str
    secrets: list[str]


ATTEMPTS = """
select e.id as execution_id, e.status, e.attempt, e.failures, d.body::text as definition, p.options::text as options,
    split_part(n.name, '::', 1) as tenant, array(
        select named #>> '{}' from jsonb_path_query(p.params, '$."$secrets"[*][1][*].secret') as named
        union select o.value from jsonb_each_text(d.body #> '{options,secrets}') o) as secrets
from execution e join definition d on d.id = e.definition_id join namespace n on n.id = e.namespace_id
left join payload p on p.execution_id = e.id
where e.id = any ($1::uuid[]) order by e.id
"""


async def attempts(session: Session | Transaction, ids: Sequence[UUID]) -> list[WaitingAttempt]:
    """Return the current attempts of executions."""
    return rows_as(WaitingAttempt, await session.fetch(ATTEMPTS, list(ids)))


@dataclass(frozen=True, slots=True)
class ArchivedEnd:
    """The end of an archived execution. `attempt` is the number of its last attempt. `result` and `error` are JSON."""

    status: str
    attempt: int
    result: str | None
    error: str | None


ARCHIVED = "select status, attempt, result::text as result, error::text as error from archive where id = $1"


async def archived(tx: Session | Transaction, id: UUID) -> ArchivedEnd | None:
    """Return the end of an execution that was archived."""
    return first_as(ArchivedEnd, await tx.fetch(ARCHIVED, id))


LOCK_NAME = "select lock_outside_name($1, $2)"
NAMED = """
select execution_id from outside_wait where tenant = $1 and name = $2 and settled_at is null
    and exists (select from execution e where e.id = execution_id and e.status = 'waiting')
order by 1
"""


async def named(tx: Transaction, tenant: str, name: str) -> list[UUID]:
    """Return the executions of a tenant that wait for this id, and lock the id: none begins to wait for it until the
    transaction ends."""
    await tx.fetch(LOCK_NAME, tenant, name)
    return [UUID(int=row["execution_id"].int) for row in await tx.fetch(NAMED, tenant, name)]


EARLY = """
insert into early_outcome (tenant, name, outcome)
values ($1, $2, case when $4::text is null then jsonb_build_object('result', $3::text::jsonb)
    else jsonb_build_object('error', $4::text::jsonb, 'reason', $5::text) end
    || case when $6::uuid is null then '{}' else jsonb_build_object('event', $6::uuid) end)
on conflict do nothing
"""


async def keep_early(
    tx: Transaction, tenant: str, name: str, outcome: Ending, event: UUID | None = None
) -> None:
    """Keep an outcome for the execution that will wait for this id, and the event that brought it. The first outcome stays."""
    await tx.fetch(EARLY, tenant, name, outcome.result, outcome.error, outcome.reason, event)


SETTLE = "select messages, answer from settle_outside($1, $2, $3, $4, $5, $6, $7)"


async def settle(tx: Transaction, execution: UUID, attempt: int, outcome: Ending, by: str) -> str:
    """Settle the wait of an attempt with the outcome of work outside. Return `settled`, `kept` (the attempt still runs), `same`
    (it was settled with this outcome before), or `over`."""
    delay = outcome.delay if outcome.status == REQUESTED else None
    [row] = await tx.stage(
        SETTLE, execution, attempt, outcome.result, outcome.error, outcome.reason, delay, by
    )
    answer: str = row["answer"]
    return answer


PROGRESS = """
update outside_wait w set progress = coalesce($3, progress), progress_text = case when $3 is null then progress_text else $4 end,
    progress_at = clock_timestamp(), due_at = least(deadline_at, clock_timestamp() + make_interval(secs => heartbeat))
where execution_id = $1 and attempt = $2 and settled_at is null
    and exists (select from execution e where e.id = w.execution_id and e.status = 'waiting')
returning execution_id
"""


async def note_progress(
    session: Session, execution: UUID, attempt: int, progress: float | None, text: str | None
) -> bool:
    """Note that the work goes on, with its progress from 0 to 1 (None: a heartbeat). Return False if the attempt does
    not wait."""
    return bool(await session.fetch(PROGRESS, execution, attempt, progress, text))
