"""NOTIFY and LISTEN: texts for the connections that listen at that moment. Each NOTIFY is a transaction of its own
that decides nothing: inside deciding transactions, it would make all such commits wait for each other."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import asyncpg

from penstock.store.session.database import Row, Session

LARGEST = 7900
"""The size of a text in bytes; PostgreSQL allows slightly more."""
NOTIFY = "select pg_notify($1, $2)"
NOTIFY_EACH = "select pg_notify(channel, body) from unnest($1::text[], $2::text[]) x (channel, body)"
NOTIFY_ALL = "select pg_notify($1, body) from unnest($2::text[]) body"
PING = "select 1"


async def notify(session: Session, channel: str, text: str) -> None:
    """Send one text to the connections that listen on the channel."""
    await session.fetch(NOTIFY, channel, text)


async def notify_each(session: Session, texts: Mapping[str, str]) -> None:
    """Send a text to each channel."""
    await session.fetch(NOTIFY_EACH, list(texts), list(texts.values()))


async def notify_all(session: Session, channel: str, texts: Sequence[str]) -> None:
    """Send each of these texts to the connections that listen on the channel."""
    await session.fetch(NOTIFY_ALL, channel, texts)


async def listen(connection: asyncpg.Connection[Row], channel: str, heard: Callable[[str], None]) -> None:
    """Call `heard` with each text of the channel from now on, as long as the connection lasts."""

    def on_notify(_connection: Any, _pid: int, _channel: str, text: object) -> None:
        heard(str(text))

    await connection.add_listener(channel, on_notify)


async def ping(session: Session) -> None:
    """Make a round trip to the server. Raises the error of the connection."""
    await session.fetch(PING)
