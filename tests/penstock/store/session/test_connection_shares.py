"""The number of connections that PostgreSQL has for services, and the share that each may have."""

from __future__ import annotations

import asyncpg
import pytest
from pydantic import SecretStr

from penstock.settings import Settings
from penstock.store.session import connection_shares
from penstock.store.session.connection_shares import ConnectionRoom
from penstock.store.session.database import Database
from tests.servers import databases

PROCESS = "insert into process (id, kind, name, state) values (gen_random_uuid(), $1, $2, $3)"


@pytest.mark.parametrize(
    ("room", "others", "services", "shares"),
    [
        (97, 0, 4, [22] * 4),
        (97, 0, 32, [3] * 24 + [2] * 8),  # 88
        (97, 30, 32, [2] * 26 + [1] * 6),  # 58: Database.limit gives each 2 all the same
        (97, 97, 32, [0] * 32),
        (5, 0, 2, [2, 2]),
        (0, 0, 0, []),
    ],
)
def test_nine_in_ten_of_those_that_others_do_not_have_are_shared(
    room: int, others: int, services: int, shares: list[int]
) -> None:
    found = ConnectionRoom(room, room, others, services)
    assert [found.share(place) for place in range(services)] == shares


async def _read(url: str, name: str = "asks") -> ConnectionRoom:
    database = Database(Settings(database_url=SecretStr(url), name=name), role="executor")
    try:
        return await connection_shares.read(database.session())
    finally:
        await database.close()


async def test_the_asking_session_and_own_services_are_not_counted(database: str) -> None:
    connection = await asyncpg.connect(database)
    for living in (
        ("executor", "one", "active"),
        ("worker", "other", "draining"),
        ("worker", "gone", "dead"),
    ):
        await connection.execute(PROCESS, *living)
    async with databases.limited(database, 5) as url:
        assert await _read(url) == ConnectionRoom(5, 0, 0, 2)
        one = await asyncpg.connect(url, server_settings={"application_name": "executor:one"})
        assert await _read(url) == ConnectionRoom(5, 1, 0, 2)
        other = await asyncpg.connect(url, server_settings={"application_name": "executor:other"})
        assert await _read(url) == ConnectionRoom(5, 2, 1, 2)
        await one.close()
        await other.close()
    await connection.close()


async def test_the_narrowest_of_server_database_and_role_counts(database: str) -> None:
    connection = await asyncpg.connect(database)
    whole = int(await connection.fetchval("show max_connections"))
    assert (await _read(database)).room < whole
    name = await connection.fetchval("select current_database()")
    await connection.execute(f'alter database "{name}" connection limit 7')
    assert await _read(database) == ConnectionRoom(7, 1, 1, 0)  # the one of this test
    async with databases.limited(database, 6) as url:
        assert await _read(url) == ConnectionRoom(7, 2, 2, 0), "of the role 6 are left, of the database 5"
    await connection.close()


async def test_sessions_of_other_roles_are_counted_without_privilege(database: str) -> None:
    connection = await asyncpg.connect(database)
    name = await connection.fetchval("select current_database()")
    await connection.execute(PROCESS, "worker", "one", "active")
    await connection.execute(f'alter database "{name}" connection limit 7')
    ours = await asyncpg.connect(database, server_settings={"application_name": "worker:one"})
    async with databases.limited(database, 100) as url:
        found = await _read(url)
    assert (found.room, found.used, found.foreign_connections, found.services) == (7, 3, 2, 1)
    await ours.close()
    await connection.close()
