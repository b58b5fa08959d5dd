"""Brings a database's schema up to date, one process at a time."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory
from sqlalchemy import Connection
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.pool import NullPool

from penstock.errors import ConfigurationError
from penstock.settings import Settings
from penstock.store.database import Database

LOCK = 8_207_339_114_905_041
"""Advisory lock of whoever migrates."""


def folder() -> Path:
    """Where the migrations are: beside the code in a checkout, under share/ where installed."""
    for path in (Path(__file__).parents[3] / "migrations", Path(sys.prefix) / "share/penstock/migrations"):
        if (path / "env.py").exists():
            return path
    raise ConfigurationError("the migrations are not installed", hint="Install Penstock again with pip.")


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(folder()))
    config.set_main_option("path_separator", "os")
    return config


def newest() -> str:
    """The revision that this code needs."""
    return ScriptDirectory.from_config(_config()).get_current_head() or ""


async def current(database: Database) -> str | None:
    """The revision of the database; None where there is none yet."""
    session = database.session()
    if not (await session.fetch("select to_regclass('penstock_migration') is not null"))[0][0]:
        return None
    rows = await session.fetch("select version_num from penstock_migration")
    return str(rows[0][0]) if rows else None


async def upgrade(settings: Settings) -> str:
    """Create the schema if need be and run what is missing. Returns the revision. Safe to run anywhere, any time."""
    config = _config()

    def run(connection: Connection) -> None:
        config.attributes["connection"] = connection
        command.upgrade(config, "head")

    await with_connection(settings, run)
    return newest()


async def with_connection(settings: Settings, run: Any) -> None:
    database = Database(settings, role="migrate")

    async def connect() -> Any:
        connection = await database.connect(timeout=30)
        if settings.database_pooler:
            raise ConfigurationError(
                "migrations need a session of their own",
                hint="Run `penstock migrate` against PostgreSQL itself, not through the pooler.",
            )
        await connection.execute(f'create schema if not exists "{settings.database_schema}"')
        await connection.fetch("select pg_advisory_lock($1::bigint)", LOCK)
        return connection

    engine = create_async_engine("postgresql+asyncpg://", async_creator=connect, poolclass=NullPool)
    try:
        async with engine.connect() as connection:
            await connection.run_sync(run)
            await connection.commit()
    finally:
        await engine.dispose()
