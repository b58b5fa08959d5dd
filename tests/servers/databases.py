"""Databases made and dropped around a test."""

from __future__ import annotations

import secrets

import asyncpg

from tests.servers.postgres import Postgres


def new_name() -> str:
    """Unlike any other, also in a server that several runs share."""
    return f"penstock_test_{secrets.token_hex(6)}"


async def create(server: Postgres, name: str, *, template: str = "template1") -> str:
    """Create a database as a copy of `template`, to which nobody may be connected; returns its address."""
    await _run(server, f'CREATE DATABASE "{name}" TEMPLATE "{template}"')
    return server.dsn(name)


async def drop(server: Postgres, name: str) -> None:
    """Drop a database, ending whatever is still connected to it."""
    await _run(server, f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')


async def _run(server: Postgres, statement: str) -> None:
    connection = await asyncpg.connect(server.dsn())
    try:
        await connection.execute(statement)
    finally:
        await connection.close()
