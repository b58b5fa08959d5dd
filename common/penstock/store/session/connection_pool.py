"""The connections that the sessions of a process share.

A library's pool resets a connection whenever it is returned, which costs a round trip. If the server is full, it
raises an error although one of its own connections will be free in a moment (docs/decisions/0015). The limit of this
pool changes while it runs, since all processes share the server's connections (docs/decisions/0032).
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import asyncpg

from penstock.errors import ServerFull
from penstock.store.session.connecting import Row
from penstock.store.session.session_options import NO_OPTIONS, SessionOptions

PATIENCE = 0.002
"""Seconds to wait for a returned connection before another one is opened. The statements of an idle process take
less."""
UNUSED = 10.0
"""Seconds after which an idle connection is closed."""
REFUSED = 10.0
"""Seconds without attempts to open one more connection after the server was full."""
FULL, AGAIN = 12.0, 0.5
"""Seconds for which a caller without any connection waits for a full server, and seconds between its attempts. At
their next heartbeats, services close connections above their share, which leaves room for new processes."""
RENEWED = 60.0
"""Seconds after a renewal in which the connections that were opened since then count as new."""
CHANGES, OFTEN = 10, 1.0
"""This many changes of options within OFTEN seconds justify one more connection: each change is a round trip."""


@dataclass(slots=True, eq=False)
class PooledConnection:
    """A connection, its present options, and when it was last lent and returned."""

    connection: asyncpg.Connection[Row]
    options: SessionOptions = NO_OPTIONS
    lent_at: float = 0.0
    returned_at: float = 0.0
    opened_at: float = field(default_factory=time.monotonic)


@dataclass(frozen=True, slots=True)
class PoolUsage:
    """The numbers of open connections, of those in use, and of statements that wait for one."""

    open: int
    used: int
    waiting: int


class ConnectionPool:
    """A pool of connections with a limit. An idle connection is lent before another is opened, the most recently used
    one first. Connections that were idle for UNUSED seconds are closed.

    With a limit of zero, the pool lends a connection that has another purpose, such as listening (`may_lend`). If
    there is none, the pool keeps one connection, since nothing could be done without.
    """

    def __init__(
        self,
        connect: Callable[[], Awaitable[asyncpg.Connection[Row]]],
        size: int,
        opened: Callable[[asyncpg.Connection[Row]], Awaitable[None]] | None = None,
        *,
        full: float = FULL,
    ) -> None:
        """`opened` is called first on each new connection. `full`: seconds to wait for the first connection to a full
        server."""
        self._connect = connect
        self._full = full
        self._refused_at: float | None = None
        """When the full server first refused, while the pool has no connection; otherwise None."""
        self._most = size
        self._opened = opened
        self._all: set[PooledConnection] = set()
        self._opening = 0
        self._idle: list[PooledConnection] = []
        """Idle connections; the most recently returned one is at the end."""
        self._waiting: deque[asyncio.Future[PooledConnection | None]] = deque()
        self._other: PooledConnection | None = None
        """The connection that its owner uses for another purpose."""
        self._full_until = 0.0
        self._renewed_at = -math.inf
        self._changed_at: deque[float] = deque(maxlen=CHANGES)
        self._closed = False

    @asynccontextmanager
    async def lend(self, options: SessionOptions = NO_OPTIONS) -> AsyncIterator[asyncpg.Connection[Row]]:
        """Lend a connection with these options for the block. Raises ConnectionFailed if there is none and none can
        be opened."""
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
        """Set the number of connections. Idle ones above it are closed now, and lent ones when they are returned."""
        self._most = size
        self._fit()

    def may_lend(self, connection: asyncpg.Connection[Row]) -> None:
        """Allow the pool to lend a connection that its owner uses for another purpose, and closes itself. It can run
        statements meanwhile."""
        self._other = PooledConnection(connection)
        self._fit()

    def is_new(self, connection: asyncpg.Connection[Row]) -> bool:
        """Return True if this connection was opened after the last renewal, and that is not long ago."""
        now = time.monotonic()
        return now < self._renewed_at + RENEWED and any(
            pooled.opened_at >= self._renewed_at for pooled in self._all if pooled.connection is connection
        )

    def renew(self) -> None:
        """Replace all connections. Idle ones are closed now, and lent ones when they are returned."""
        self._renewed_at = time.monotonic()
        for pooled in tuple(self._idle):
            self._idle.remove(pooled)
            self._discard(pooled)
        self._hand_on_room()

    def _discard(self, pooled: PooledConnection) -> None:
        """Close a connection of an earlier schema. Its owner replaces a connection that has another purpose."""
        self._all.discard(pooled)
        pooled.connection.terminate()

    def _fit(self) -> None:
        """Shrink the pool to its limit, or allow growth. Include the connection with another purpose only while the
        limit is zero."""
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
        self._hand_on_room()

    def _is_above(self, pooled: PooledConnection) -> bool:
        """Return True if the limit requires to give up this connection, or its owner needs it alone."""
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
        """Return True if one more connection may be opened now."""
        return len(self._all) + self._opening < self._most and time.monotonic() >= self._full_until

    def _changes_often(self) -> bool:
        return len(self._changed_at) == CHANGES and time.monotonic() < self._changed_at[0] + OFTEN

    async def _take(self, options: SessionOptions) -> PooledConnection:
        """Return an idle connection, or the next returned one, or a new one if that takes too long. Only one is
        opened at a time: meanwhile others may be returned."""
        waited = False
        while True:
            if pooled := self._idle_one(options):
                return pooled
            if not self._opening and (not self._all or (waited and self._grows())):
                try:
                    return await self._open()
                except ServerFull:
                    if not self._all:
                        raise
                    self._full_until = time.monotonic() + REFUSED
            elif pooled := await self._returned(self._patience()):
                return pooled
            else:
                waited = True

    def _patience(self) -> float | None:
        """Return the seconds after which one more connection may be opened; None if there is no room for one."""
        if len(self._all) + self._opening >= self._most:
            return None
        return max(PATIENCE, self._full_until - time.monotonic())

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
        self._hand_on_room()
        return pooled

    async def _connected(self) -> asyncpg.Connection[Row]:
        """Open a connection. Raises ServerFull at once if there are others, and for later waiters after the first one
        failed."""
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
        """Return the next returned connection; None if none came in time, or there is room for a new one."""
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
        """Hand a connection, or the room for a new one (None), to the task that has waited longest. Return False if
        none waits."""
        if not self._waiting:
            return False
        self._waiting.popleft().set_result(pooled)
        return True

    def _hand_on_room(self) -> None:
        """Wake the task that has waited longest if one more connection may be opened. It wakes the next one."""
        if self._grows():
            self._hand_on(None)

    def _take_back(self, pooled: PooledConnection) -> None:
        if self._closed or pooled.opened_at < self._renewed_at:
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
        """Return the connections that have been lent for longer than `seconds`."""
        since = time.monotonic() - seconds
        return [
            pooled.connection for pooled in self._all if pooled not in self._idle and pooled.lent_at < since
        ]

    async def close(self) -> None:
        """Close all connections, lent ones too."""
        self._closed = True
        await asyncio.gather(*(_close(pooled.connection) for pooled in self._all))


async def _set(pooled: PooledConnection, options: SessionOptions) -> None:
    try:
        await pooled.connection.execute(options.sql)
    except BaseException:
        pooled.connection.terminate()  # it is unknown which options it has now
        raise
    pooled.options = options


async def _close(connection: asyncpg.Connection[Row]) -> None:
    if not connection.is_closed():
        try:
            await connection.close(timeout=2)
        except (TimeoutError, OSError, asyncpg.PostgresError, asyncpg.InterfaceError):
            connection.terminate()
