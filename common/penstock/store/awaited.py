"""Who waits for the ends of which executions, and is told of them by NOTIFY on a channel of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from uuid import UUID

import asyncpg

from penstock.store import notifications
from penstock.store.database import Row, Session
from penstock.store.staged_messages import StagedMessage

AWAIT = """
insert into awaited (execution_id, channel) select id, $2 from unnest($1::uuid[]) id on conflict do nothing
"""
FORGET = "delete from awaited where channel = $1"


async def register(session: Session, ids: Sequence[UUID], channel: str) -> None:
    """Tell this channel of the ends of these executions, from now on. What ends just now may not be told."""
    await session.fetch(AWAIT, ids, channel)


async def forget(session: Session, channel: str) -> None:
    """Nobody there waits for anything any more."""
    await session.fetch(FORGET, channel)


async def listen(connection: asyncpg.Connection[Row], channel: str, heard: Callable[[], None]) -> None:
    """Call `heard` when something ended that the channel was registered for."""
    await notifications.listen(connection, channel, lambda _: heard())


async def tell(session: Session, hints: Sequence[StagedMessage]) -> None:
    """Send these hints."""
    for hint in hints:
        await notifications.notify(session, hint.queue, "")
