"""Databases made and dropped around a test."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit, urlunsplit

import asyncpg

from penstock.store.schema import grants
from penstock.store.schema.rights import SERVICES
from tests.servers.postgres import Postgres, soon_proved


def new_name() -> str:
    """Unlike any other, also in a server that several runs share."""
    return f"penstock_test_{secrets.token_hex(6)}"


COPY = """
select current_setting('data_directory') like '/dev/shm/%' and current_setting('server_version_num')::integer >= 150000
"""
"""Whether files are copied sooner than pages are logged: in memory, where a checkpoint costs nothing."""
_kept: dict[Postgres, tuple[asyncpg.Connection[asyncpg.Record], asyncio.Lock]] = {}


@asynccontextmanager
async def kept_connection(server: Postgres) -> AsyncIterator[None]:
    """Meanwhile one session makes and drops the databases of this server: to connect is half of what one costs."""
    connection = await asyncpg.connect(server.dsn())
    _kept[server] = connection, asyncio.Lock()
    try:
        yield
    finally:
        del _kept[server]
        await connection.close()


@asynccontextmanager
async def connected(server: Postgres) -> AsyncIterator[asyncpg.Connection[asyncpg.Record]]:
    if server in _kept and not _kept[server][0].is_closed():
        connection, alone = _kept[server]
        async with alone:
            yield connection
        return
    connection = await asyncpg.connect(server.dsn())
    try:
        yield connection
    finally:
        await connection.close()


async def create(server: Postgres, name: str, *, template: str = "template1") -> str:
    """Create a database as a copy of `template`, which may have no session. Returns its address."""
    async with connected(server) as connection:
        strategy = "STRATEGY file_copy" if await connection.fetchval(COPY) else ""
        await connection.execute(f'CREATE DATABASE "{name}" TEMPLATE "{template}" {strategy}')
    return server.dsn(name)


PASSWORD = "of a service"
_with_roles: dict[str, str] = {}
"""What the names of the services' roles begin with, by the address of a database."""


async def give_roles(server: Postgres, name: str) -> None:
    """Give each service a role in this database, and so in its copies, as `penstock roles` does."""
    connection = await asyncpg.connect(server.dsn(name), server_settings={"search_path": '"public", pg_temp'})
    try:
        for service in SERVICES:
            role = f"{name}_{service}"
            await connection.execute(f"create role {role} login password '{soon_proved(PASSWORD)}'")
            await connection.execute(";".join(grants.statements("public", service, role)))
        await connection.fetch(grants.RENEW_PARTITIONS)
    finally:
        await connection.close()


async def drop_roles(server: Postgres, name: str) -> None:
    """Drop the roles, once all copies of the database are gone."""
    connection = await asyncpg.connect(server.dsn(name))
    try:
        for service in SERVICES:
            await connection.execute(f"drop owned by {name}_{service}; drop role {name}_{service}")
    finally:
        await connection.close()


def has_roles(database: str, of: str) -> None:
    """Remember that the database at this address is a copy of one that has roles."""
    _with_roles[database] = of


def as_service(database: str, service: str) -> str:
    """Return the address of a database for a service; the same address where it has no roles."""
    if database not in _with_roles or service not in SERVICES:
        return database
    parts = urlsplit(database)
    user = f"{_with_roles[database]}_{service}:{PASSWORD.replace(' ', '%20')}"
    return urlunsplit(parts._replace(netloc=f"{user}@{parts.netloc.rpartition('@')[2]}"))


async def drop(server: Postgres, name: str) -> None:
    """Drop a database, ending whatever is still connected to it."""
    async with connected(server) as connection:
        await connection.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')


@asynccontextmanager
async def limited(database: str, sessions: int) -> AsyncIterator[str]:
    """Yield the address of this database for a user that may have so many sessions at once, and read and write all
    tables."""
    role = new_name()
    address = urlsplit(database)
    connection = await asyncpg.connect(database)
    await connection.execute(
        f"create role {role} login password 'secret' connection limit {sessions};"
        f"grant all on all tables in schema public to {role};"
        f"grant all on all sequences in schema public to {role};"
        f"grant execute on all functions in schema public to {role}"
    )
    try:
        yield address._replace(netloc=f"{role}:secret@{address.netloc.rpartition('@')[2]}").geturl()
    finally:
        await connection.execute(f"drop owned by {role}; drop role {role}")
        await connection.close()
