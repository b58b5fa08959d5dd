"""The connections that the sessions of a process share."""

from __future__ import annotations

import asyncio

import asyncpg

from penstock.store.connection_pool import CHANGES, OFTEN, ConnectionPool, SessionOptions

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
