"""A database of several hosts: each is asked by itself."""

from __future__ import annotations

from urllib.parse import urlsplit, urlunsplit

import asyncpg
import pytest
from pydantic import SecretStr

from penstock.errors import ConnectionFailed
from penstock.settings import Settings
from penstock.store.session.database import Database
from penstock.store.session.hosts import READ_WRITE, Hosts, one_by_one, wanting
from tests.kit.hostile_proxy import Cut, HostileProxy
from tests.servers.replicated import ReplicatedPostgres

PATIENCE = 4.0
"""Seconds for all hosts together."""


def of_hosts(url: str, *hosts: str) -> str:
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=f"{parts.netloc.rpartition('@')[0]}@{','.join(hosts)}"))


def place(url: str) -> str:
    return urlsplit(url).netloc.rpartition("@")[2]


@pytest.mark.parametrize(
    ("url", "hosts"),
    [
        ("postgresql://u:p@one/db", ["postgresql://u:p@one/db"]),
        (
            "postgresql://u:p,w@one:1,[::2]:2/db",
            [
                "postgresql://u:p,w@one:1/db?target_session_attrs=read-write",
                "postgresql://u:p,w@[::2]:2/db?target_session_attrs=read-write",
            ],
        ),
        (
            "postgres://one,other?sslmode=require",
            [
                "postgres://one?sslmode=require&target_session_attrs=read-write",
                "postgres://other?sslmode=require&target_session_attrs=read-write",
            ],
        ),
        (
            "postgresql://one,other/db?target_session_attrs=standby",
            [
                "postgresql://one/db?target_session_attrs=standby",
                "postgresql://other/db?target_session_attrs=standby",
            ],
        ),
        (
            "postgresql://one,other/db?target_session_attrs=prefer-standby",
            ["postgresql://one,other/db?target_session_attrs=prefer-standby"],
        ),
        ("postgresql:///db?host=/run/postgresql", ["postgresql:///db?host=/run/postgresql"]),
    ],
)
def test_an_address_of_several_hosts_is_one_for_each(url: str, hosts: list[str]) -> None:
    assert one_by_one(wanting(url, READ_WRITE)) == hosts


async def test_a_hanging_host_delays_the_next_only_once(database: str) -> None:
    with HostileProxy(urlsplit(database).port or 5432) as hung:
        hung.cut(Cut("hang"))
        url = of_hosts(database, f"127.0.0.1:{hung.port}", place(database))
        hosts, settings = Hosts(url), Settings(database_url=SecretStr(url))
        for _ in range(3):
            connection = await hosts.connect(settings, role="test", timeout=PATIENCE)
            assert await connection.fetchval("select 1") == 1
            await connection.close()
        assert hung.struck == 1


async def test_when_no_host_will_do_all_are_told(pair: ReplicatedPostgres) -> None:
    url = of_hosts(pair.dsn(), "127.0.0.1:1", place(pair.standby_dsn()))
    with pytest.raises(ConnectionFailed) as raised:
        await Hosts(url).connect(Settings(), role="test", timeout=PATIENCE)
    said = f"{raised.value.message} {raised.value.hint}"
    assert "127.0.0.1:1/" in said
    assert place(pair.standby_dsn()) in said
    assert "promote the standby" in said
    assert "Start PostgreSQL" in said


async def test_the_host_that_takes_writes_is_found_wherever_it_stands(pair: ReplicatedPostgres) -> None:
    url = of_hosts(pair.primary_dsn(), place(pair.standby_dsn()), place(pair.primary_dsn()))
    database = Database(Settings(database_url=SecretStr(url)), role="test")
    try:
        await database.session().fetch("create table written ()")
    finally:
        await database.close()


async def test_a_connection_that_leads_to_a_standby_is_left(pair: ReplicatedPostgres) -> None:
    """One address does so if the hosts behind it change places."""
    url = pair.standby_dsn()
    database = Database(Settings(database_url=SecretStr(url)), role="test")
    session = database.session()
    try:
        with pytest.raises(asyncpg.ReadOnlySQLTransactionError):
            await session.fetch("create table written ()")
        assert database.usage.open == 0
        with pytest.raises(asyncpg.ReadOnlySQLTransactionError):
            async with session.transaction() as tx:
                await tx.execute("create table written ()")
        assert database.usage.open == 0
    finally:
        await database.close()
