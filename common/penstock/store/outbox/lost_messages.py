"""Rows with a message that the broker lost. The message is staged again."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from penstock.store.session.database import Session, Transaction

QUEUES_OF_WORK = "select distinct queue from namespace where kind = 'action'"


async def queues_of_work(session: Session) -> list[str]:
    """Return the queues of routes that have namespaces."""
    return [row["queue"] for row in await session.fetch(QUEUES_OF_WORK)]


ANY_OPEN = "select from live limit 1"


async def any_open_execution(session: Session) -> bool:
    """Return True if an execution has not ended."""
    return bool(await session.fetch(ANY_OPEN))


ANY_EVENT = "select from unmatched limit 1"


async def any_unmatched_event(session: Session) -> bool:
    """Return True if an event was not matched with its rules yet."""
    return bool(await session.fetch(ANY_EVENT))


RESTAGE_EVENTS = "select restage_events(make_interval(secs => $1), $2) as messages"


async def restage_events(tx: Transaction, age: float, limit: int) -> None:
    """Stage events that no executor has matched with rules for `age` seconds. Commits by itself (`stage_alone`): `tx`
    must not have run a statement."""
    await tx.stage_alone(RESTAGE_EVENTS, age, limit)


ANY_END = "select from untold limit 1"


async def any_untold_end(session: Session) -> bool:
    """Return True if an execution has ended and its followers were not notified yet."""
    return bool(await session.fetch(ANY_END))


RESTAGE_ENDS = "select restage_ends(make_interval(secs => $1), $2) as messages"


async def restage_ends(tx: Transaction, age: float, limit: int) -> None:
    """Stage ends again that were not delivered to their followers for `age` seconds. Commits by itself (`stage_alone`):
    `tx` must not have run a statement."""
    await tx.stage_alone(RESTAGE_ENDS, age, limit)


RESTAGE_WORKFLOWS = "select restage_workflows(make_interval(secs => $1), $2, $3) as messages"


async def restage_workflows(tx: Transaction, age: float, cursor: UUID, limit: int) -> None:
    """Stage workflows that have waited for their own message for `age` seconds, among the next `limit` open
    executions after the id `cursor`."""
    await tx.stage(RESTAGE_WORKFLOWS, age, cursor, limit)


RESTAGE_EXECUTIONS = "select messages, next from restage_lost(make_interval(secs => $1), $2, $3, $4::text[])"


async def restage_executions(
    tx: Transaction, age: float, cursor: UUID, limit: int, queues: Sequence[str]
) -> UUID | None:
    """Stage executions that have waited for their message for `age` seconds, on these queues, among the next `limit`
    open executions after the id `cursor`. Return the id to continue after; None at the end."""
    [row] = await tx.stage(RESTAGE_EXECUTIONS, age, cursor, limit, list(queues))
    onward: UUID | None = row["next"]
    return onward
