"""The connections that the sessions of a process share.

A library's pool resets a connection whenever it comes back, which is a round trip, and where the server is full it raises
though others of its connections will be free in a moment (docs/decisions/0015).
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

import asyncpg

from penstock.errors import ServerFull
from penstock.store.connecting import Row

PATIENCE = 0.002
"""Seconds to wait for a connection to come back before one more is opened. What an idle process asks takes less."""
UNUSED = 10.0
"""Seconds after which a connection that nobody needed is closed."""
REFUSED = 10.0
"""Seconds after which a full server is asked again for one more."""
CHANGES, OFTEN = 10, 1.0
"""So many changes of options within so many seconds, each of which is a round trip, are worth one more connection."""


@dataclass(frozen=True, slots=True)
class SessionOptions:
    """What a session asks of its connection: whether its commits may be lost in a crash of the server (`relaxed`), and after
    how many seconds a statement is cancelled (None: never)."""

    relaxed: bool = False
    most: float | None = None

    @property
    def sql(self) -> str:
        commit = "set synchronous_commit = off" if self.relaxed else "reset synchronous_commit"
        timeout = (
            f"set statement_timeout = {self.most * 1000:.0f}" if self.most else "reset statement_timeout"
        )
        return f"{commit}; {timeout}"


NO_OPTIONS = SessionOptions()


@dataclass(slots=True, eq=False)
class PooledConnection:
    """A connection, the options that it has now, when it was lent and when it came back last."""

    connection: asyncpg.Connection[Row]
    options: SessionOptions = NO_OPTIONS
    lent_at: float = 0.0
    returned_at: float = 0.0


@dataclass(frozen=True, slots=True)
class PoolUsage:
    """Connections that are open, those of them that somebody uses, and statements that wait for one."""

    open: int
    used: int
    waiting: int


class ConnectionPool:
    """At most so many connections. One that is back is lent again before another is opened, the one used last first; those
    that have not been needed for a while are closed."""

    def __init__(
        self,
        connect: Callable[[], Awaitable[asyncpg.Connection[Row]]],
        most: int,
        opened: Callable[[asyncpg.Connection[Row]], Awaitable[None]] | None = None,
    ) -> None:
        """`opened` is done first on each connection."""
        self._connect = connect
        self._most = most
        self._opened = opened
        self._all: set[PooledConnection] = set()
        self._opening = 0
        self._idle: list[PooledConnection] = []
        """The one that came back last is at the end."""
        self._waiting: deque[asyncio.Future[PooledConnection | None]] = deque()
        self._full_until = 0.0
        self._changed_at: deque[float] = deque(maxlen=CHANGES)
        self._closed = False

    @asynccontextmanager
    async def lend(self, options: SessionOptions = NO_OPTIONS) -> AsyncIterator[asyncpg.Connection[Row]]:
        """A connection with these options, for the block. Raises ConnectionFailed if there is none and none can be opened."""
        pooled = await self._take(options)
        pooled.lent_at = time.monotonic()
        try:
            if pooled.options != options:
                self._changed_at.append(time.monotonic())
                await _set(pooled, options)
            yield pooled.connection
        finally:
            self._take_back(pooled)

    @property
    def usage(self) -> PoolUsage:
        return PoolUsage(len(self._all), len(self._all) - len(self._idle), len(self._waiting))

    def _idle_one(self, options: SessionOptions) -> PooledConnection | None:
        if any(pooled.connection.is_closed() for pooled in self._idle):
            self._all -= {pooled for pooled in self._idle if pooled.connection.is_closed()}
            self._idle = [pooled for pooled in self._idle if not pooled.connection.is_closed()]
        if not self._idle:
            return None
        fitting = next(
            (i for i in reversed(range(len(self._idle))) if self._idle[i].options == options), None
        )
        if fitting is None and self._grows() and not self._opening and self._changes_often():
            return None
        return self._idle.pop(-1 if fitting is None else fitting)

    def _grows(self) -> bool:
        """There may be one more."""
        return len(self._all) + self._opening < self._most and time.monotonic() >= self._full_until

    def _changes_often(self) -> bool:
        return len(self._changed_at) == CHANGES and time.monotonic() < self._changed_at[0] + OFTEN

    async def _take(self, options: SessionOptions) -> PooledConnection:
        """One that is idle, or the one that comes back next, or a new one if that takes too long. One is opened at a time: it
        takes long enough for others to come back."""
        waited = False
        while True:
            if pooled := self._idle_one(options):
                return pooled
            grows = self._grows()
            if not self._opening and (not self._all or (grows and waited)):
                try:
                    return await self._open()
                except ServerFull:
                    if not self._all:
                        raise
                    self._full_until = time.monotonic() + REFUSED
            elif pooled := await self._returned(PATIENCE if grows else None):
                return pooled
            else:
                waited = True

    async def _open(self) -> PooledConnection:
        self._opening += 1
        try:
            connection = await self._connect()
            if self._opened is not None:
                try:
                    await self._opened(connection)
                except BaseException:
                    connection.terminate()
                    raise
        except BaseException:
            self._hand_on(None)
            raise
        finally:
            self._opening -= 1
        pooled = PooledConnection(connection)
        self._all.add(pooled)
        return pooled

    async def _returned(self, patience: float | None) -> PooledConnection | None:
        """The next that comes back; None if none did in time, or there is room for a new one."""
        turn: asyncio.Future[PooledConnection | None] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            await asyncio.wait((turn,), timeout=patience)
        except asyncio.CancelledError:
            if turn.done() and (pooled := turn.result()):
                self._take_back(pooled)
            elif turn.done():
                self._hand_on(None)
            raise
        finally:
            if not turn.done():
                self._waiting.remove(turn)
        return turn.result() if turn.done() else None

    def _hand_on(self, pooled: PooledConnection | None) -> bool:
        """Give this to who has waited longest, or the room for a new one; says whether somebody waited."""
        if not self._waiting:
            return False
        self._waiting.popleft().set_result(pooled)
        return True

    def _take_back(self, pooled: PooledConnection) -> None:
        if self._closed:
            pooled.connection.terminate()
        if pooled.connection.is_closed():
            self._all.discard(pooled)
            self._hand_on(None)
        elif not self._hand_on(pooled):
            pooled.returned_at = time.monotonic()
            self._idle.append(pooled)
            longest = self._idle[0]
            if longest.returned_at < pooled.returned_at - UNUSED:
                self._idle.remove(longest)
                self._all.discard(longest)
                longest.connection.terminate()

    def lent_for(self, seconds: float) -> list[asyncpg.Connection[Row]]:
        """Those that somebody has had for longer than this."""
        since = time.monotonic() - seconds
        return [one.connection for one in self._all if one not in self._idle and one.lent_at < since]

    async def close(self) -> None:
        """Close all, those that are lent too."""
        self._closed = True
        await asyncio.gather(*(_close(pooled.connection) for pooled in self._all))


async def _set(pooled: PooledConnection, options: SessionOptions) -> None:
    try:
        await pooled.connection.execute(options.sql)
    except BaseException:
        pooled.connection.terminate()  # it may have both options or one
        raise
    pooled.options = options


async def _close(connection: asyncpg.Connection[Row]) -> None:
    if not connection.is_closed():
        try:
            await connection.close(timeout=2)
        except (TimeoutError, OSError, asyncpg.PostgresError, asyncpg.InterfaceError):
            connection.terminate()
