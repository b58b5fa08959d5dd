"""The connections that the sessions of a process share."""

from __future__ import annotations

import asyncio

import asyncpg
import pytest
from pydantic import SecretStr

from penstock.errors import ServerFull
from penstock.settings import Settings
from penstock.store.session.connection_pool import CHANGES, OFTEN, ConnectionPool
from penstock.store.session.hosts import Hosts
from penstock.store.session.session_options import SessionOptions
from tests.servers import databases
from tests.shuffled_tasks import shuffled_tasks  # noqa: F401  # tasks run in a random order

KINDS = (SessionOptions(), SessionOptions(relaxed=True))


async def pids(pool: ConnectionPool, times: int) -> list[tuple[int, int]]:
    """The server's process that each kind of session spoke with, one after the other."""
    found = []
    for _ in range(times):
        one = []
        for options in KINDS:
            async with pool.lend(options) as connection:
                one.append(int(await connection.fetchval("select pg_backend_pid()")))
        found.append((one[0], one[1]))
    return found


async def test_sessions_that_differ_and_take_turns_often_have_a_connection_each(database: str) -> None:
    pool = ConnectionPool(lambda: asyncpg.connect(database), 3)
    try:
        asked = await pids(pool, CHANGES + 5)
        assert len({pid for pair in asked for pid in pair}) == 2
        assert len(set(asked[-5:])) == 1
        assert asked[-1][0] != asked[-1][1]
    finally:
        await pool.close()


async def test_sessions_that_differ_share_one_while_they_seldom_ask(database: str) -> None:
    pool = ConnectionPool(lambda: asyncpg.connect(database), 3)
    try:
        asked = []
        for _ in range(4):
            asked += await pids(pool, 1)
            await asyncio.sleep(OFTEN / 3)
        assert len({pid for pair in asked for pid in pair}) == 1
    finally:
        await pool.close()


async def test_no_more_are_opened_than_there_may_be(database: str) -> None:
    pool = ConnectionPool(lambda: asyncpg.connect(database), 1)
    try:
        asked = await pids(pool, CHANGES + 5)
        assert len({pid for pair in asked for pid in pair}) == 1
    finally:
        await pool.close()


async def test_a_lowered_limit_closes_surplus_connections_once_unused(database: str) -> None:
    pool = ConnectionPool(lambda: asyncpg.connect(database), 3)
    try:
        async with pool.lend() as first:
            async with pool.lend() as second, pool.lend() as third:
                assert pool.usage.open == 3
            pool.limit(1)
            assert (pool.usage.open, second.is_closed(), third.is_closed()) == (1, True, True)
        async with pool.lend() as again:
            assert again is first
            pool.limit(2)
            async with pool.lend():
                pool.limit(1)
            assert pool.usage.open == 1
    finally:
        await pool.close()


async def test_a_raised_limit_wakes_a_waiting_borrower(database: str) -> None:
    pool = ConnectionPool(lambda: asyncpg.connect(database), 1)
    try:
        async with pool.lend():
            waiting = asyncio.ensure_future(pids(pool, 1))
            while not pool.usage.waiting:
                await asyncio.sleep(0)
            pool.limit(2)
            await waiting
    finally:
        await pool.close()


async def test_where_there_may_be_none_the_one_of_another_purpose_is_lent(database: str) -> None:
    pool = ConnectionPool(lambda: asyncpg.connect(database), 0)
    listens = await asyncpg.connect(database)
    try:
        async with pool.lend() as own:
            pool.may_lend(listens)
            async with pool.lend() as lent:
                assert lent is listens
            assert not own.is_closed()
        assert own.is_closed(), "there may be none"
        async with pool.lend() as lent:
            assert lent is listens
            pool.limit(1)
        assert not listens.is_closed()
        async with pool.lend() as lent:
            assert lent is not listens
            pool.limit(0)
        assert (lent.is_closed(), listens.is_closed()) == (True, False)
        await listens.close()
        async with pool.lend() as lent:
            assert lent is not listens, "nothing could be done without"
    finally:
        await pool.close()
        await listens.close()


async def test_a_pool_without_connections_waits_for_a_full_server(database: str) -> None:
    async with databases.limited(database, 1) as url:
        settings = Settings(database_url=SecretStr(url))
        hosts, asked = Hosts(url), 0

        async def connect() -> asyncpg.Connection[asyncpg.Record]:
            nonlocal asked
            asked += 1
            return await hosts.connect(settings, role="test")

        one, other = ConnectionPool(connect, 2), ConnectionPool(connect, 2)
        async with one.lend() as first:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.05), one.lend():
                    pass
            assert one.usage.open == 1
            told_at_once = ConnectionPool(connect, 1, full=0)
            with pytest.raises(ServerFull):
                async with told_at_once.lend():
                    pass
            before = asked
            waiting = asyncio.ensure_future(pids(other, 1))
            while asked == before:
                await asyncio.sleep(0)
            await first.close()
        assert await waiting
        await other.close()


async def test_new_connection_is_prepared_before_it_is_lent(database: str) -> None:
    prepared: list[asyncpg.Connection[asyncpg.Record]] = []

    async def prepare(connection: asyncpg.Connection[asyncpg.Record]) -> None:
        prepared.append(connection)
        if len(prepared) == 2:
            raise ValueError("not this one")

    pool = ConnectionPool(lambda: asyncpg.connect(database), 2, prepare)
    try:
        async with pool.lend() as first:
            assert prepared == [first]
            with pytest.raises(ValueError, match="not this one"):
                async with pool.lend():
                    pass
            assert (pool.usage.open, prepared[1].is_closed()) == (1, True)
            async with pool.lend() as third:
                assert prepared[2:] == [third]
    finally:
        await pool.close()


async def test_renewal_replaces_idle_and_lent_connections(database: str) -> None:
    pool = ConnectionPool(lambda: asyncpg.connect(database), 3)
    try:
        async with pool.lend() as lent:
            async with asyncio.timeout(10), pool.lend() as idle:
                assert idle is not lent
            pool.renew()
            assert idle.is_closed()
            assert not lent.is_closed(), "its statement goes on"
            assert not pool.is_new(lent)
            async with pool.lend() as opened:
                assert opened not in (lent, idle)
                assert pool.is_new(opened)
        assert lent.is_closed()
        async with pool.lend() as again:
            assert again is opened
    finally:
        await pool.close()
