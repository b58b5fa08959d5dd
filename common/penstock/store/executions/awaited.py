"""Executions that a process waits for. The process that ends such an execution notifies the waiting process, on that
process's own channel."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from uuid import UUID

import asyncpg
import orjson

from penstock.errors import ConnectionFailed
from penstock.language.terms.ids import new_id
from penstock.store.executions.executions import ExecutionEnd
from penstock.store.outbox.queues import AWAITED
from penstock.store.session import notifications
from penstock.store.session.database import Database, Row, Session
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
class EndNotice:
    """The content of a notification to a watcher: the ends of executions. If they are too long, it has only the ids of
    the executions. If there are too many ids, it has nothing."""

    ends: list[ExecutionEnd] = field(default_factory=list)
    ids: list[UUID] = field(default_factory=list)


def read(text: str) -> EndNotice:
    """Parse the text of a notification."""
    if text.startswith("["):
        return EndNotice(ends=[ExecutionEnd(UUID(id), *end) for id, *end in orjson.loads(text)])
    return EndNotice(ids=[UUID(id) for id in text.split(",") if id])


class EndListener:
    """A listener that calls `heard` with each notification to its `watcher`. The listener has a connection of its own
    while a caller waits."""

    def __init__(self, database: Database, heard: Callable[[EndNotice], None]) -> None:
        self._database = database
        self._heard = heard
        self._connection: asyncpg.Connection[Row] | None = None
        self.watcher = new_id()

    @property
    def listens(self) -> bool:
        return self._connection is not None and not self._connection.is_closed()

    async def open(self) -> None:
        """Listen, if possible: not behind a pooler, nor if PostgreSQL has no free connection."""
        if self.listens or self._database.settings.database_pooler:
            return
        with contextlib.suppress(ConnectionFailed, asyncpg.PostgresError, asyncpg.InterfaceError, OSError):
            self._connection = await self._database.connect()
            await notifications.listen(
                self._connection, AWAITED + str(self.watcher), lambda text: self._heard(read(text))
            )

    def close(self) -> None:
        if self._connection is not None:
            self._connection.terminate()
            self._connection = None


TELL = "select tell_watcher($1, $2::uuid[], $3, $4)"


async def tell(session: Session, channel: str, ids: Collection[UUID]) -> None:
    """Notify a watcher that these executions have ended; with their ends, if these are short enough."""
    if len(ids) > MOST:
        await notifications.notify(session, channel, "")
    else:
        await session.fetch(TELL, channel, list(ids), ",".join(map(str, ids)), notifications.LARGEST)
