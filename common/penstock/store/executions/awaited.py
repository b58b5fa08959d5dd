"""Executions that a process waits for. The process that ends such an execution notifies the waiting process, on that
process's own channel."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from uuid import UUID

import asyncpg
import orjson

from penstock.store.executions.executions import ExecutionEnd
from penstock.store.outbox.queues import AWAITED
from penstock.store.session import notifications
from penstock.store.session.database import Row, Session
from penstock.store.session.rows import rows_as

MOST = notifications.LARGEST // 37
"""Ids that one notification can name. A notification about more executions names none, and all are queried."""

LOOK = "select id, status, result, error from look_for_awaited($1, $2::uuid[], $3::uuid[], $4::uuid[])"


async def look(
    session: Session,
    watcher: UUID,
    ids: Collection[UUID],
    awaited: Collection[UUID],
    forgotten: Collection[UUID],
) -> list[ExecutionEnd]:
    """Return the finished, unarchived executions among `ids`. Record that the watcher waits for `awaited` from now
    on, and no longer for `forgotten`. The call can miss an execution that ends meanwhile; the next call returns it."""
    return rows_as(
        ExecutionEnd, await session.fetch(LOOK, watcher, list(ids), list(awaited), list(forgotten))
    )


FORGET = "select forget_awaited($1)"


async def forget(session: Session, watcher: UUID) -> None:
    """Delete all rows of a watcher: it waits for nothing any more."""
    await session.fetch(FORGET, watcher)


@dataclass(frozen=True, slots=True)
class Told:
    """The content of a notification to a watcher: the ends of executions. If they are too long, it has only the ids of
    the executions. If there are too many ids, it has nothing."""

    ends: list[ExecutionEnd] = field(default_factory=list)
    ids: list[UUID] = field(default_factory=list)


def read(text: str) -> Told:
    """Parse the text of a notification."""
    if text.startswith("["):
        return Told(ends=[ExecutionEnd(UUID(id), *end) for id, *end in orjson.loads(text)])
    return Told(ids=[UUID(id) for id in text.split(",") if id])


async def listen(connection: asyncpg.Connection[Row], watcher: UUID, heard: Callable[[Told], None]) -> None:
    """Listen on the watcher's channel, and call `heard` with each notification."""
    await notifications.listen(connection, AWAITED + str(watcher), lambda text: heard(read(text)))


TELL = "select tell_watcher($1, $2::uuid[], $3, $4)"


async def tell(session: Session, channel: str, ids: Collection[UUID]) -> None:
    """Notify a watcher that these executions have ended; with their ends, if these are short enough."""
    if len(ids) > MOST:
        await notifications.notify(session, channel, "")
    else:
        await session.fetch(TELL, channel, list(ids), ",".join(map(str, ids)), notifications.LARGEST)
