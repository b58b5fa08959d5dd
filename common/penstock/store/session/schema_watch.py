"""The watch over the schema, which may vanish under running processes: after `drop schema`, a failover to a database
without tables, or during a restore.

PostgreSQL then reports errors about statements that are correct. A service must not take such an error for a fault of
the message or the attempt that it handles.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import asyncpg
import structlog

from penstock.errors import ConnectionFailed, NotMigrated
from penstock.store.session.connecting import Row

log = structlog.get_logger()

Fetch = Callable[..., Awaitable[Any]]
Check = Callable[[Fetch], Awaitable[None]]
"""A check of the schema (`store.schema.functions.check`). It raises NotMigrated if the schema is missing or incomplete."""

_OUTDATED = (asyncpg.InternalServerError, asyncpg.InvalidCachedStatementError)
"""Errors of a session that remembers types or plans of an earlier schema, such as `cache lookup failed for type`."""
_OF_SCHEMA = (asyncpg.SyntaxOrAccessError, asyncpg.InvalidSchemaNameError, *_OUTDATED)
"""Errors that come from the schema or from a statement, but never from the values of a statement."""


def is_about_schema(error: BaseException) -> bool:
    """Return True for an error that another schema would not give: a missing table, right, constraint or type."""
    return isinstance(error, _OF_SCHEMA)


def is_outdated(error: BaseException) -> bool:
    """Return True for an error that a new session would not give."""
    return isinstance(error, _OUTDATED)


def of_earlier_schema(error: BaseException) -> ConnectionFailed:
    """Return the error of a statement that is tried again in a new session."""
    return ConnectionFailed(
        f"a session with PostgreSQL knew an earlier schema, and was closed ({error})",
        hint="If this happens again and again, run `penstock doctor`.",
    )


class SchemaWatch:
    """The state of the schema, as the sessions of one Database know it. Once the schema is missing, no statement runs
    until a check finds the schema complete: an incomplete restore has tables without triggers and constraints, and
    would store what they do not permit. Without a `check`, callers get the errors of the server instead."""

    def __init__(self, check: Check | None) -> None:
        self._check = check
        self._is_missing = False

    @property
    def waits(self) -> bool:
        """Return True for the sessions of a service, which wait for the schema."""
        return self._check is not None

    @property
    def is_missing(self) -> bool:
        return self._is_missing

    async def look(
        self, connection: asyncpg.Connection[Row], begin: Callable[[asyncpg.Connection[Row]], Awaitable[None]]
    ) -> None:
        """Check the schema on this connection, which has no open transaction. Raises NotMigrated, for which services wait,
        if it is missing."""
        assert self._check is not None
        await begin(connection)  # behind a pooler only a transaction has the search path
        try:
            await self._check(connection.fetch)
        except (NotMigrated, *_OF_SCHEMA) as error:
            missing = (
                error
                if isinstance(error, NotMigrated)
                else NotMigrated(
                    f"the schema of the database cannot be used ({error})", hint="Run `penstock doctor`."
                )
            )
            missing.awaited = True
            if not self._is_missing:
                self._is_missing = True
                log.error("schema.missing", reason=missing.message, hint=missing.hint)
            raise missing from None
        finally:
            if not connection.is_closed():
                await connection.execute("rollback")
        if self._is_missing:
            self._is_missing = False
            log.warning("schema.complete")
