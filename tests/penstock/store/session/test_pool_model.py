"""The pool of connections under random lends, cancellations, losses and changes of its limit, in virtual time. No task waits
while a connection is idle or one more may be opened, and each wait ends."""

from __future__ import annotations

import asyncio
import random
import selectors
from typing import cast

import asyncpg
import pytest

from penstock.errors import ConnectionFailed, ServerFull
from penstock.store.session.connecting import Row
from penstock.store.session.connection_pool import CHANGES as OFTEN_CHANGES
from penstock.store.session.connection_pool import PATIENCE, REFUSED, ConnectionPool
from penstock.store.session.session_options import SessionOptions
from tests.durable_programs.virtual_time import VirtualLoop, run_virtually
from tests.shuffled_tasks import shuffled

BORROWERS, TIMES, CHANGES = 8, 10, 40
OPTIONS = (SessionOptions(), SessionOptions(), SessionOptions(relaxed=True))


class Fault(Exception):
    """A statement that fails."""


class Connection:
    """A connection without a server: it knows whether it is closed."""

    def __init__(self, server: Server) -> None:
        self._server = server
        server.connections.add(self)

    def is_closed(self) -> bool:
        return self not in self._server.connections

    def terminate(self) -> None:
        self._server.connections.discard(self)

    async def close(self, *, timeout: float) -> None:
        self.terminate()

    async def execute(self, sql: str) -> str:
        await asyncio.sleep(0.001)
        if self.is_closed():
            raise asyncpg.InterfaceError("connection is closed")
        return sql


class Server:
    """A server with room for some connections, which fails now and then."""

    def __init__(self, chance: random.Random) -> None:
        self.connections: set[Connection] = set()
        self.room = 10
        self.failures = 0.0
        self._chance = chance

    async def connect(self) -> asyncpg.Connection[Row]:
        await asyncio.sleep(self._chance.random() * 0.05)
        if self._chance.random() < self.failures:
            raise ConnectionFailed("the server does not answer")
        if len(self.connections) >= self.room:
            raise ServerFull("the server is full")
        return pooled(Connection(self))


def pooled(connection: Connection) -> asyncpg.Connection[Row]:
    return cast("asyncpg.Connection[Row]", connection)


class Play:
    """A play of one random order: borrowers, and an operator who changes what they depend on."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.server = Server(self.chance)
        self.pool = ConnectionPool(self.server.connect, 2)
        self.lends: set[asyncio.Task[None]] = set()
        self.listening: Connection | None = None

    async def __call__(self) -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        await asyncio.sleep(1)
        with shuffled(loop, self.chance):
            borrowers = [asyncio.create_task(self.borrow()) for _ in range(BORROWERS)]
            watched(loop, self.pool)
            for _ in range(CHANGES):
                await asyncio.sleep(self.chance.random() * 0.3)
                self.chance.choice(
                    (
                        self.limit,
                        self.limit,
                        self.listen,
                        self.lose_listening,
                        self.lose_idle,
                        self.room,
                        self.cancel,
                        self.cancel,
                    )
                )()
            self.server.room, self.server.failures = 10, 0.0
            await asyncio.gather(*borrowers)
            await asyncio.sleep(REFUSED + 1)
            async with self.pool.lend() as connection:
                assert not connection.is_closed()
        usage = self.pool.usage
        assert (usage.used, usage.waiting) == (0, 0)
        await self.pool.close()

    async def borrow(self) -> None:
        for _ in range(TIMES):
            await asyncio.sleep(self.chance.random() * 0.5)
            lend = asyncio.create_task(self.lend())
            self.lends.add(lend)
            await asyncio.wait([lend])
            self.lends.discard(lend)
            if not lend.cancelled() and (error := lend.exception()) is not None:
                assert isinstance(error, Fault | ConnectionFailed | TimeoutError | asyncpg.InterfaceError)

    async def lend(self) -> None:
        patience = self.chance.choice((None, None, self.chance.random()))
        async with asyncio.timeout(patience), self.pool.lend(self.chance.choice(OPTIONS)) as connection:
            await asyncio.sleep(REFUSED + 5 if self.chance.random() < 0.03 else self.chance.random() * 0.5)
            if self.chance.random() < 0.1:
                self.cancel()  # one that may get this connection, or its room
            match self.chance.randrange(12):
                case 0:
                    connection.terminate()
                case 1:
                    raise Fault

    def limit(self) -> None:
        self.pool.limit(self.chance.randrange(5))

    def listen(self) -> None:
        self.lose_listening()
        self.listening = Connection(self.server)
        self.pool.may_lend(pooled(self.listening))

    def lose_listening(self) -> None:
        if self.listening is not None:
            self.listening.terminate()

    def lose_idle(self) -> None:
        for connection in [idle.connection for idle in self.pool._idle]:
            connection.terminate()

    def room(self) -> None:
        self.server.room = self.chance.randrange(6)
        self.server.failures = self.chance.choice((0.0, 0.3))

    def cancel(self) -> None:
        if self.lends:
            self.chance.choice(sorted(self.lends, key=lambda task: task.get_name())).cancel()


def watched(loop: VirtualLoop, pool: ConnectionPool) -> None:
    """Look at the pool whenever the loop has nothing to do for longer than the pool's patience."""
    select = loop.clock.select

    def looked(timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if (timeout is None or timeout > PATIENCE * 1.01) and pool._waiting:
            assert not pool._idle, "a task waits, and a connection is idle"
            assert pool._opening or not pool._grows(), "a task waits, and one more may be opened"
        return select(timeout)

    loop.clock.select = looked  # type: ignore[method-assign]


@pytest.mark.parametrize("seed", range(60))
def test_no_task_waits_without_need(seed: int) -> None:
    run_virtually(Play(seed)())


async def lend(pool: ConnectionPool, options: SessionOptions = OPTIONS[0], seconds: float = 0.0) -> None:
    async with pool.lend(options):
        await asyncio.sleep(seconds)


async def change(pool: ConnectionPool, times: int, pause: float) -> None:
    """Change the options of the only idle connection so many times."""
    for time in range(times):
        await asyncio.sleep(pause)
        await lend(pool, OPTIONS[2 if time % 2 == 0 else 0])


def test_changes_that_were_seldom_leave_one_connection() -> None:
    """Ten changes within a second are often, also after many that were seldom. Ten within a longer time are not."""

    async def play() -> None:
        pool = ConnectionPool(Server(random.Random(0)).connect, 3)
        await lend(pool)
        await change(pool, 2 * OFTEN_CHANGES, 0.5)
        assert pool.usage.open == 1
        await change(pool, OFTEN_CHANGES + 2, 0.01)
        assert pool.usage.open == 2
        await pool.close()

    run_virtually(play())


def test_changes_count_from_the_tenth_last_one() -> None:
    async def play() -> None:
        pool = ConnectionPool(Server(random.Random(0)).connect, 3)
        await lend(pool)
        await change(pool, 1, 5)
        await asyncio.sleep(0.9)
        await lend(pool)
        await change(pool, OFTEN_CHANGES - 2, 0.001)
        await asyncio.sleep(0.1)
        await lend(pool, OPTIONS[2])
        assert pool.usage.open == 1
        await pool.close()

    run_virtually(play())


def test_task_is_woken_once_no_connection_is_left() -> None:
    """The server was full a moment ago. A pool that has no connection at all opens one in spite of that."""

    async def play() -> None:
        server = Server(random.Random(0))
        pool = ConnectionPool(server.connect, 2)
        server.room = 1
        first, second = asyncio.create_task(lend(pool, seconds=1)), asyncio.create_task(lend(pool, seconds=2))
        await asyncio.sleep(0.5)
        assert (pool.usage.open, pool.usage.waiting) == (1, 1), "the server is full"
        pool.limit(0)
        server.room = 10
        pool.may_lend(pooled(Connection(server)))
        await first
        third = asyncio.create_task(lend(pool))
        await asyncio.sleep(0.1)
        pool.limit(1)
        await second
        async with asyncio.timeout(1):
            await third
        await pool.close()

    run_virtually(play())


def test_pool_names_long_lends_and_closes_all_connections() -> None:
    async def play() -> None:
        server = Server(random.Random(0))
        pool = ConnectionPool(server.connect, 3)
        tasks = [asyncio.create_task(lend(pool, seconds=20))]
        await asyncio.sleep(10)
        [longest] = server.connections
        tasks += [asyncio.create_task(lend(pool, seconds=seconds)) for seconds in (1, 10)]
        await asyncio.sleep(5)
        assert (pool.usage.open, pool.usage.used) == (3, 2)
        assert pool.lent_for(8) == [pooled(longest)]
        assert pool.lent_for(60) == []
        await pool.close()
        assert server.connections == set()
        await asyncio.gather(*tasks)
        assert pool.usage.open == 1, "the one that was idle"

    run_virtually(play())
