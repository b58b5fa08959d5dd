"""Executions that somebody waits for: who ends one tells him, on a channel of his own."""

from __future__ import annotations

from collections.abc import Callable, Collection
from uuid import UUID

import asyncpg

from penstock.store import notifications
from penstock.store.database import Row, Session
from penstock.store.executions import ExecutionEnd
from penstock.store.queues import AWAITED
from penstock.store.rows import rows_as

MOST = notifications.LARGEST // 37
"""Ids that one notification names. Of more it names none: then all are looked for."""

# What ends while this runs may be missed: the next look finds it.
LOOK = """
with forgotten as (
    delete from awaited where watcher = $1 and execution_id = any ($4::uuid[])
), said as (
    insert into awaited (execution_id, watcher) select x, $1 from unnest($3::uuid[]) x order by 1 on conflict do nothing
)
select e.id, e.status, r.result::text as result, r.error::text as error
from execution e left join result r on r.execution_id = e.id
where e.id = any ($2::uuid[]) and e.finished_at is not null
"""


async def look(
    session: Session,
    watcher: UUID,
    ids: Collection[UUID],
    said: Collection[UUID],
    forgotten: Collection[UUID],
) -> list[ExecutionEnd]:
    """Those of `ids` that have ended and are not archived. The watcher waits for `said` from now on, and for `forgotten` no
    more."""
    return rows_as(ExecutionEnd, await session.fetch(LOOK, watcher, list(ids), list(said), list(forgotten)))


FORGET = "delete from awaited where watcher = $1"


async def forget(session: Session, watcher: UUID) -> None:
    """It waits for nothing any more."""
    await session.fetch(FORGET, watcher)


async def listen(
    connection: asyncpg.Connection[Row], watcher: UUID, heard: Callable[[list[UUID]], None]
) -> None:
    """Call `heard` with what has ended of all that the watcher waits for; with nothing, if it is much."""
    await notifications.listen(
        connection, AWAITED + str(watcher), lambda text: heard([UUID(id) for id in text.split(",") if id])
    )


async def tell(session: Session, channel: str, ids: Collection[UUID]) -> None:
    """Tell a watcher that these have ended."""
    await notifications.notify(session, channel, ",".join(map(str, ids)) if len(ids) <= MOST else "")
