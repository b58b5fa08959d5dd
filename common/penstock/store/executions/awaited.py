"""Executions that a process waits for. The process that ends one notifies the waiter of the end, on a channel of the
waiter's own."""

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
"""Ids that one notification names. Of more it names none: then all are looked for."""

LOOK = "select id, status, result, error from look_for_awaited($1, $2::uuid[], $3::uuid[], $4::uuid[])"


async def look(
    session: Session,
    watcher: UUID,
    ids: Collection[UUID],
    awaited: Collection[UUID],
    forgotten: Collection[UUID],
) -> list[ExecutionEnd]:
    """Return the finished, unarchived executions among `ids`. From now on the watcher waits for `awaited` and no longer
    for `forgotten`. The call can miss an execution that ends meanwhile; the next call returns it."""
    return rows_as(
        ExecutionEnd, await session.fetch(LOOK, watcher, list(ids), list(awaited), list(forgotten))
    )


FORGET = "delete from awaited where watcher = $1"


async def forget(session: Session, watcher: UUID) -> None:
    """It waits for nothing any more."""
    await session.fetch(FORGET, watcher)


@dataclass(frozen=True, slots=True)
class Told:
    """The content of a notification to a watcher: the ends of some executions; where these are too long, their ids,
    or only their number."""

    ends: list[ExecutionEnd] = field(default_factory=list)
    ids: list[UUID] = field(default_factory=list)


def read(text: str) -> Told:
    """Parse the text of a notification."""
    if text.startswith("["):
        return Told(ends=[ExecutionEnd(UUID(id), *end) for id, *end in orjson.loads(text)])
    return Told(ids=[UUID(id) for id in text.split(",") if id])


async def listen(connection: asyncpg.Connection[Row], watcher: UUID, heard: Callable[[Told], None]) -> None:
    """Call `heard` with what has ended of all that the watcher waits for."""
    await notifications.listen(connection, AWAITED + str(watcher), lambda text: heard(read(text)))


TELL = "select tell_watcher($1, $2::uuid[], $3, $4)"


async def tell(session: Session, channel: str, ids: Collection[UUID]) -> None:
    """Tell a watcher that these have ended, and how, if that is short enough."""
    if len(ids) > MOST:
        await notifications.notify(session, channel, "")
    else:
        await session.fetch(TELL, channel, list(ids), ",".join(map(str, ids)), notifications.LARGEST)
