"""The migration of a database's schema to this release, by one process at a time."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import asyncpg
import tenacity
from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory
from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection, create_async_engine
from sqlalchemy.pool import NullPool

from penstock.errors import ConfigurationError
from penstock.settings import Settings
from penstock.store.schema import functions, grants, sequences
from penstock.store.session.database import Database

LOCK = 8_207_339_114_905_041
"""The advisory lock that a process holds while it migrates."""
VERSIONS = "penstock_migration"
"""The table in which alembic stores the revision. `penstock_function` stores the applied functions."""
PATIENCE = "set lock_timeout = '3s'"
"""The longest wait for a table lock: all statements that ask for the table after this one wait behind it."""
LOCKED_OUT = ("40P01", "55P03")
"""SQLSTATEs of a deadlock, and of a lock that could not be taken in time."""
TRIES = 20
EXISTS = "select to_regclass($1::text) is not null as there"
SCHEMA_EXISTS = "select exists (select from pg_namespace where nspname = $1)"


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(functions.folder()))
    config.set_main_option("path_separator", "os")
    return config


def newest() -> str:
    """Return the revision that this code needs."""
    return ScriptDirectory.from_config(_config()).get_current_head() or ""


async def current(fetch: functions.Fetch) -> str | None:
    """Return the revision of the database; None if it has no schema yet."""
    if not [row for row in await fetch(EXISTS, VERSIONS) if row["there"]]:
        return None
    return next((str(row["version_num"]) for row in await fetch(f"select version_num from {VERSIONS}")), None)


async def missing(fetch: functions.Fetch) -> list[str]:
    """Return the revisions and functions that `penstock migrate` would apply. None are missing if a later release has
    migrated: this release runs on its schema. Raises ConfigurationError if the revision belongs to no release."""
    revision = await current(fetch)
    if revision is not None and not _is_known(revision):
        if not [row for row in await fetch(EXISTS, "penstock_function") if row["there"]]:
            raise ConfigurationError(
                f"the schema is at {revision}, which no release of Penstock made",
                hint="The schema is older than the first release. Start with an empty database (`penstock dev --fresh`).",
            )
        return []
    if revision is None:
        return [newest(), *functions.declared()]
    behind = [] if revision == newest() else [newest()]
    return behind + [function.name for function in await functions.missing(fetch)]


def named(missing: list[str]) -> str:
    """Return the names of the missing revisions and functions, shortened to three."""
    return ", ".join(missing[:3]) + (f" and {len(missing) - 3} more" if len(missing) > 3 else "")


async def upgrade(settings: Settings) -> str:
    """Create the schema if it does not exist, apply what is missing, and advance sequences that are behind their rows.
    Return the revision. It is safe to run at any time while replicas work, and again after it was interrupted. Raises the
    error of PostgreSQL if the locks of replicas are in the way of all TRIES."""
    tries = tenacity.AsyncRetrying(
        retry=tenacity.retry_if_exception(_is_locked_out),
        wait=tenacity.wait_random_exponential(multiplier=0.2, max=5),
        stop=tenacity.stop_after_attempt(TRIES),
        reraise=True,
    )
    revision: str = await tries(_upgrade_once, settings)
    return revision


def _is_locked_out(error: BaseException) -> bool:
    """Return True for a deadlock or a lock timeout. Replicas lock tables in various orders, so a replica and this
    process may wait for each other."""
    return getattr(error, "sqlstate", None) in LOCKED_OUT


async def _upgrade_once(settings: Settings) -> str:
    async with locked_connection(settings) as connection:
        driver: asyncpg.Connection[asyncpg.Record] | None = (
            await connection.get_raw_connection()
        ).driver_connection
        assert driver is not None
        if not await missing(driver.fetch):
            await sequences.advance(driver.fetch)
            return await current(driver.fetch) or ""
        await driver.execute(PATIENCE)
        if await current(driver.fetch) is None:  # the schema is empty, so no service works on it yet
            async with connection.begin():
                await connection.run_sync(_apply_versions)
                await functions.apply(driver)
                await driver.fetch("select make_partitions(7)")
                await driver.execute("analyze legal_move")
            return newest()
        await connection.run_sync(_apply_versions)
        await connection.rollback()  # the versions are committed: only reads are left in this transaction
        async with driver.transaction():
            await functions.apply(driver)
            await grants.renew(driver)
        await driver.fetch("select make_partitions(7)")
        await sequences.advance(driver.fetch)
    return newest()


def _apply_versions(connection: Connection) -> None:
    """Apply each version in a transaction of its own, unless the connection is in one, so that its locks are released
    early."""
    config = _config()
    config.attributes["connection"] = connection
    command.upgrade(config, "head")


def _is_known(revision: str) -> bool:
    return revision in {script.revision for script in ScriptDirectory.from_config(_config()).walk_revisions()}


@asynccontextmanager
async def locked_connection(settings: Settings) -> AsyncIterator[AsyncConnection]:
    """Open a connection that holds the lock of migrations."""
    database = Database(settings, role="migrate")

    async def connect() -> Any:
        connection = await database.connect(timeout=30)
        if settings.database_pooler:
            raise ConfigurationError(
                "migrations need a session of their own",
                hint="Run `penstock migrate` against PostgreSQL itself, not through the pooler.",
            )
        await _create_schema(connection, settings.database_schema)
        await connection.fetch("select pg_advisory_lock($1::bigint)", LOCK)
        return connection

    engine = create_async_engine("postgresql+asyncpg://", async_creator=connect, poolclass=NullPool)
    try:
        async with engine.connect() as connection:
            yield connection
    except DBAPIError as error:  # SQLAlchemy's error hides from the command line what PostgreSQL says
        raise getattr(error.orig, "__cause__", None) or error from None
    finally:
        await engine.dispose()


async def _create_schema(connection: asyncpg.Connection[asyncpg.Record], schema: str) -> None:
    """Create the schema unless it exists. The query comes first since `create schema if not exists` needs the right
    CREATE on the database even if it does nothing. Raises ConfigurationError if the role may not create it."""
    if await connection.fetchval(SCHEMA_EXISTS, schema):
        return
    try:
        await connection.execute(f'create schema if not exists "{schema}"')
    except asyncpg.InsufficientPrivilegeError:
        raise ConfigurationError(
            f"the schema {schema} does not exist, and this role may not create it",
            hint=f'As a superuser, type in psql: create schema "{schema}" authorization ROLE',
        ) from None
