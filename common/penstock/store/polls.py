"""Poll triggers: beginning calls of those that are due, and taking in what the calls have found."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple
from uuid import UUID

from penstock.store.database import Row, Session, Transaction

LOOK = """
select extract(epoch from (select min(next_due) from poll where running is null and enabled) - statement_timestamp())::float8
        as seconds,
    exists (select from poll where running is not null) as running
"""


async def look(session: Session) -> Row:
    """Seconds until the next call is due (negative: it is late; None: there is none), and whether one is under way."""
    return (await session.fetch(LOOK))[0]


# A replica that stops between this and its commit loses the rows after ten seconds.
TAKE = """
select trigger, statement_timestamp() as now, set_config('idle_in_transaction_session_timeout', '10000', true) from poll
where next_due <= statement_timestamp() and running is null and enabled
order by next_due limit $1 for update skip locked
"""


async def take(tx: Transaction, limit: int) -> list[Row]:
    """Lock poll triggers that are due, the latest first, without waiting for those that others hold."""
    return await tx.fetch(TAKE, limit)


START = "select start_polls($1::text[], $2::uuid[]) as messages"


async def start(tx: Transaction, triggers: Sequence[str], ids: Sequence[UUID]) -> None:
    """Begin a call of each of these, which the transaction holds, as the execution of that id."""
    await tx.stage(START, list(triggers), list(ids))


ENDED = """
select p.trigger, p.running, e.id is null as gone, e.status, r.result::text as result, r.error::text as error,
    set_config('idle_in_transaction_session_timeout', '10000', true)
from poll p left join execution e on e.id = p.running left join result r on r.execution_id = p.running
where p.running is not null and (e.id is null or e.finished_at is not null)
order by p.trigger limit 1 for update of p skip locked
"""
ARCHIVED = "select status, result::text as result, error::text as error from archive where id = $1"


async def ended(tx: Transaction) -> Row | None:
    """Lock a poll trigger whose call has ended: `trigger`, `running`, and the status, result and error of the call; or
    `gone`, if it is neither open nor finished. None where there is none."""
    rows = await tx.fetch(ENDED)
    return rows[0] if rows else None


async def archived(tx: Transaction, id: UUID) -> Row | None:
    """How a call ended that is not among the open and finished ones any more."""
    rows = await tx.fetch(ARCHIVED, id)
    return rows[0] if rows else None


SETTLE = """
update poll set running = null, state = coalesce($3::text::jsonb, state), called_at = clock_timestamp(), found = found + $4,
    failures = case when $5::text is null then 0 else failures + 1 end, error = $5
where trigger = $1 and running = $2
"""


async def settle(
    tx: Transaction, trigger: str, call: UUID, state: str | None, found: int, error: str | None
) -> None:
    """Write down what became of a call. Without a state (JSON) the one before it stays."""
    await tx.fetch(SETTLE, trigger, call, state, found, error)


class Polled(NamedTuple):
    """A poll trigger to store: its ref, the definition and namespace of its action, and seconds between two calls."""

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
    """Make or change poll triggers. Those that are there keep their state."""
    if polled:
        await tx.fetch(PUT, *(list(column) for column in zip(*polled, strict=True)))


async def remove(tx: Transaction, triggers: Sequence[str]) -> None:
    """These do not poll any more."""
    if triggers:
        await tx.fetch("delete from poll where trigger = any($1::text[])", list(triggers))


LIST = """
select p.trigger, p.every, p.enabled, p.next_due, p.running, e.status as call, p.called_at, p.found, p.failures, p.error,
    p.state::text as state
from poll p left join execution e on e.id = p.running order by p.trigger
"""


async def listed(session: Session) -> list[Row]:
    """Every poll trigger, with how its last call ended."""
    return await session.fetch(LIST)


ENABLE = """
update poll set enabled = $2, next_due = case when $2 then clock_timestamp() else next_due end where trigger = $1
returning trigger
"""


async def enable(session: Session, trigger: str, enabled: bool) -> bool:
    """Let it be called again, at once, or not any more. Says whether there is one of that name."""
    return bool(await session.fetch(ENABLE, trigger, enabled))


FORGET = "update poll set state = '{}' where trigger = $1 returning trigger"


async def forget(session: Session, trigger: str) -> bool:
    """Drop its state: the next call begins anew. Says whether there is one of that name."""
    return bool(await session.fetch(FORGET, trigger))
