"""Poll triggers: the start of due calls, and the results of ended ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from penstock.store.executions.executions import ExecutionEnd
from penstock.store.session.database import Session, Transaction
from penstock.store.session.rows import first_as, rows_as


@dataclass(slots=True)
class Outlook:
    """`seconds` until the next call is due (negative if it is late, None if no trigger is idle), and whether a call
    is running."""

    seconds: float | None
    running: bool


LOOK = """
select extract(epoch from (select min(next_due) from poll where running is null and enabled) - statement_timestamp())::float8
        as seconds,
    exists (select from poll where running is not null) as running
"""


async def look(session: Session) -> Outlook:
    """Return when the next call is due, and whether a call is running."""
    [outlook] = rows_as(Outlook, await session.fetch(LOOK))
    return outlook


@dataclass(slots=True)
class DuePoll:
    """A poll trigger that is due; `now` is the database's clock."""

    trigger: str
    now: datetime


# The timeout releases the row locks of a replica that hangs between this statement and its commit for ten seconds.
TAKE = """
select trigger, statement_timestamp() as now, set_config('idle_in_transaction_session_timeout', '10000', true) from poll
where next_due <= statement_timestamp() and running is null and enabled
order by next_due limit $1 for update skip locked
"""


async def take(tx: Transaction, limit: int) -> list[DuePoll]:
    """Lock at most `limit` due poll triggers, the most overdue first. Rows that other transactions have locked are
    skipped."""
    return [DuePoll(row["trigger"], row["now"]) for row in await tx.fetch(TAKE, limit)]


START = "select start_polls($1::text[], $2::uuid[]) as messages"


async def start(tx: Transaction, triggers: Sequence[str], ids: Sequence[UUID]) -> None:
    """Begin a call of each trigger, as the execution with the id at the same index. The transaction has locked the
    triggers."""
    await tx.stage(START, list(triggers), list(ids))


@dataclass(slots=True)
class EndedCall:
    """A poll trigger and the execution that was its call. `end` is None if the execution is neither open nor
    finished."""

    trigger: str
    execution_id: UUID
    end: ExecutionEnd | None


ENDED = """
select p.trigger, p.running, e.id is null as gone, e.status, r.result::text as result, r.error::text as error,
    set_config('idle_in_transaction_session_timeout', '10000', true)
from poll p left join execution e on e.id = p.running left join result r on r.execution_id = p.running
where p.running is not null and (e.id is null or e.finished_at is not null)
order by p.trigger limit 1 for update of p skip locked
"""


async def ended(tx: Transaction) -> EndedCall | None:
    """Lock a poll trigger with a call that has ended. Return None if there is none."""
    for row in await tx.fetch(ENDED):
        call = row["running"]
        end = None if row["gone"] else ExecutionEnd(call, row["status"], row["result"], row["error"])
        return EndedCall(row["trigger"], call, end)
    return None


ARCHIVED = "select id, status, result::text as result, error::text as error from archive where id = $1"


async def archived(tx: Transaction, execution: UUID) -> ExecutionEnd | None:
    """Return the end of a call from the archive; None if the archive does not have it."""
    return first_as(ExecutionEnd, await tx.fetch(ARCHIVED, execution))


SETTLE = """
update poll set running = null, state = coalesce($3::text::jsonb, state), called_at = clock_timestamp(), found = found + $4,
    failures = case when $5::text is null then 0 else failures + 1 end, error = $5
where trigger = $1 and running = $2
"""


async def settle(
    tx: Transaction, trigger: str, call: UUID, state: str | None, event_count: int, error: str | None
) -> None:
    """Record the outcome of a call. With `state` None (else JSON) the trigger keeps its former state."""
    await tx.fetch(SETTLE, trigger, call, state, event_count, error)


class Polled(NamedTuple):
    """A poll trigger to store: its ref, the definition and namespace of its action, and the seconds between two
    calls."""

    trigger: str
    definition_id: int
    namespace_id: int
    every: float


PUT = """
insert into poll as p (trigger, definition_id, namespace_id, every)
select * from unnest($1::text[], $2::integer[], $3::integer[], $4::float8[])
on conflict (trigger) do update
set definition_id = excluded.definition_id, namespace_id = excluded.namespace_id, every = excluded.every,
    next_due = least(p.next_due, clock_timestamp() + make_interval(secs => excluded.every))
where (p.definition_id, p.namespace_id, p.every) <> (excluded.definition_id, excluded.namespace_id, excluded.every)
"""


async def put(tx: Transaction, polled: Sequence[Polled]) -> None:
    """Insert or change poll triggers. A trigger that exists keeps its state."""
    if polled:
        await tx.fetch(PUT, *(list(column) for column in zip(*polled, strict=True)))


REMOVE = "delete from poll where trigger = any($1::text[])"


async def remove(tx: Transaction, triggers: Sequence[str]) -> None:
    """Delete poll triggers: they are not called any more."""
    if triggers:
        await tx.fetch(REMOVE, list(triggers))


@dataclass(slots=True)
class Poll:
    """A poll trigger. `running` is the execution of its present call, and `call` that execution's status. `found` is
    the number of events of all calls, and `failures` the number of failed calls since the last success. `state` is
    JSON."""

    trigger: str
    every: float
    enabled: bool
    next_due: datetime
    running: UUID | None
    call: str | None
    called_at: datetime | None
    found: int
    failures: int
    error: str | None
    state: str


LIST = """
select p.trigger, p.every, p.enabled, p.next_due, p.running, e.status as call, p.called_at, p.found, p.failures, p.error,
    p.state::text as state
from poll p left join execution e on e.id = p.running order by p.trigger
"""


async def listed(session: Session) -> list[Poll]:
    """Return every poll trigger, with the end of its last call."""
    return rows_as(Poll, await session.fetch(LIST))


ENABLE = """
update poll set enabled = $2, next_due = case when $2 then clock_timestamp() else next_due end where trigger = $1
returning trigger
"""


async def enable(db: Session | Transaction, trigger: str, enabled: bool) -> bool:
    """Enable a poll trigger, and make its next call due now; or disable it. Return False if it does not exist."""
    return bool(await db.fetch(ENABLE, trigger, enabled))


FORGET = "update poll set state = '{}' where trigger = $1 returning trigger"


async def forget(session: Session, trigger: str) -> bool:
    """Reset the state of a poll trigger: the next call begins from the start. Return False if it does not exist."""
    return bool(await session.fetch(FORGET, trigger))
