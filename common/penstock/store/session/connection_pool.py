"""The connections that the sessions of a process share.

A library's pool resets a connection whenever it comes back, which is a round trip. Where the server is full it raises
though others of its connections will be free in a moment (docs/decisions/0015). How many there may be is said anew while it
runs, as the server's are shared by all processes (docs/decisions/0032).
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
from penstock.store.session.connecting import Row
from penstock.store.session.session_options import NO_OPTIONS, SessionOptions

PATIENCE = 0.002
"""Seconds to wait for a connection to come back before one more is opened. What an idle process asks takes less."""
UNUSED = 10.0
"""Seconds after which a connection that nobody needed is closed."""
REFUSED = 10.0
"""Seconds after which a full server is asked again for one more."""
FULL, AGAIN = 12.0, 0.5
"""Seconds for which who has no connection at all waits for one of a full server, and after which it asks again: at their next
heartbeats services give back what is above their share, or what others need who have come."""
CHANGES, OFTEN = 10, 1.0
"""So many changes of options within so many seconds, each of which is a round trip, are worth one more connection."""


@dataclass(slots=True, eq=False)
class PooledConnection:
    """A connection, the options that it has now, when it was lent and when it came back last."""

    connection: asyncpg.Connection[Row]
    options: SessionOptions = NO_OPTIONS
    lent_at: float = 0.0
    returned_at: float = 0.0


@dataclass(frozen=True, slots=True)
class PoolUsage:
    """The open connections, those in use, and the statements that wait for one."""

    open: int
    used: int
    waiting: int


class ConnectionPool:
    """At most so many connections. One that is back is lent again before another is opened, the one used last first; those
    that have not been needed for a while are closed.

    Where there may be none, the pool lends a connection that serves another purpose, such as listening
    (`may_lend`); where there is no such one either, it has one, as nothing could be done without."""

    def __init__(
        self,
        connect: Callable[[], Awaitable[asyncpg.Connection[Row]]],
        size: int,
        opened: Callable[[asyncpg.Connection[Row]], Awaitable[None]] | None = None,
        *,
        full: float = FULL,
    ) -> None:
        """`opened` is done first on each connection. `full`: seconds for which a first one of a full server is waited for."""
        self._connect = connect
        self._full = full
        self._refused_at: float | None = None
        """Since when there has been none, because the server is full."""
        self._most = size
        self._opened = opened
        self._all: set[PooledConnection] = set()
        self._opening = 0
        self._idle: list[PooledConnection] = []
        """The one that came back last is at the end."""
        self._waiting: deque[asyncio.Future[PooledConnection | None]] = deque()
        self._other: PooledConnection | None = None
        """The one that somebody has for another purpose."""
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

    def limit(self, size: int) -> None:
        """From now on there may be so many. Those above are closed: idle ones now, lent ones when they come back."""
        self._most = size
        self._fit()

    def may_lend(self, connection: asyncpg.Connection[Row]) -> None:
        """Lend this connection, which a caller has for another purpose and closes itself. It can do statements meanwhile."""
        self._other = PooledConnection(connection)
        self._fit()

    def _fit(self) -> None:
        """Have as many as there may be, and the one of another purpose only where there may be none."""
        other = self._other
        if (
            other is not None
            and self._most == 0
            and other not in self._all
            and not other.connection.is_closed()
        ):
            self._all.add(other)
            self._take_back(other)
        for pooled in tuple(self._idle):
            if self._is_above(pooled):
                self._idle.remove(pooled)
                self._part_with(pooled)
        if self._grows():
            self._hand_on(None)

    def _is_above(self, pooled: PooledConnection) -> bool:
        """There may be fewer, or it is needed for its own purpose alone."""
        if pooled is self._other:
            return self._most > 0
        return len(self._all) > max(1, self._most)

    def _part_with(self, pooled: PooledConnection) -> None:
        self._all.discard(pooled)
        if pooled is not self._other:
            pooled.connection.terminate()
        if self._grows() or not self._all:
            self._hand_on(None)

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
            connection = await self._connected()
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

    async def _connected(self) -> asyncpg.Connection[Row]:
        """Open a connection. Raises ServerFull at once if there are others, and for waiters after the first one did."""
        while True:
            try:
                connection = await self._connect()
            except ServerFull:
                now = time.monotonic()
                self._refused_at = self._refused_at or now
                if self._all or now >= self._refused_at + self._full:
                    if not self._waiting:
                        self._refused_at = None
                    raise
                await asyncio.sleep(AGAIN)
            else:
                self._refused_at = None
                return connection

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
        """Give this connection, or the room for a new one, to the task that has waited longest. Return whether a task
        waited."""
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
        elif self._is_above(pooled):
            self._part_with(pooled)
        elif not self._hand_on(pooled):
            pooled.returned_at = time.monotonic()
            self._idle.append(pooled)
            longest = self._idle[0]
            if longest.returned_at < pooled.returned_at - UNUSED:
                self._idle.remove(longest)
                self._part_with(longest)

    def lent_for(self, seconds: float) -> list[asyncpg.Connection[Row]]:
        """Return the connections that have been lent for longer than this."""
        since = time.monotonic() - seconds
        return [
            pooled.connection for pooled in self._all if pooled not in self._idle and pooled.lent_at < since
        ]

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
