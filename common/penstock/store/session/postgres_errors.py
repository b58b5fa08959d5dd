"""The errors of PostgreSQL: which of them are transient, and the meaning of others for the caller."""

from __future__ import annotations

from typing import Any

import asyncpg

from penstock.errors import (
    ConfigurationError,
    ConnectionFailed,
    IllegalMove,
    InvalidInput,
    KeysChanged,
    NotAllowed,
    NotMigrated,
    PenstockError,
    WrongClock,
)

_TRANSIENT = (
    asyncpg.SerializationError,
    asyncpg.DeadlockDetectedError,
    asyncpg.LockNotAvailableError,
    asyncpg.PostgresConnectionError,
    asyncpg.CannotConnectNowError,
    asyncpg.AdminShutdownError,
    asyncpg.CrashShutdownError,
    asyncpg.IdleSessionTimeoutError,
    asyncpg.IdleInTransactionSessionTimeoutError,
    asyncpg.TooManyConnectionsError,
    asyncpg.ReadOnlySQLTransactionError,  # a failover's old primary
    asyncpg.QueryCanceledError,
    asyncpg.DiskFullError,
    asyncpg.OutOfMemoryError,
    asyncpg.ConfigurationLimitExceededError,
    asyncpg.InternalClientError,
    ConnectionFailed,
    KeysChanged,  # the next try seals what this one did not
    WrongClock,  # the next try makes its ids by the database's clock
    OSError,
    TimeoutError,
)


_UNDEFINED = (
    asyncpg.UndefinedTableError,
    asyncpg.UndefinedColumnError,
    asyncpg.UndefinedFunctionError,
    asyncpg.UndefinedObjectError,
    asyncpg.InvalidSchemaNameError,
)
"""Errors about statements that name what the schema of the database does not have."""


def is_transient(error: BaseException) -> bool:
    """Return True for an error that does not depend on the statement: the same work may succeed later."""
    if isinstance(error, asyncpg.InterfaceError):
        return "closed" in str(error) or "released" in str(error)
    if isinstance(error, PenstockError) and error.awaited:
        return True
    return isinstance(error, _TRANSIENT)


def in_our_words(error: BaseException, *, may_seal: bool = False) -> PenstockError | None:
    """Return the PenstockError for an error of PostgreSQL about the caller's input, rights or schema; None for other
    errors. `may_seal`: this process has a master key."""
    if isinstance(error, asyncpg.CharacterNotInRepertoireError | asyncpg.UntranslatableCharacterError):
        return InvalidInput(
            "a text holds a NUL character, which PostgreSQL refuses", hint="Remove it, or send it as base64."
        )
    if isinstance(error, asyncpg.InsufficientPrivilegeError):
        return NotAllowed(
            f"the role of PENSTOCK_DATABASE_URL may not do this: {error}",
            hint="Use the role of a service with this right. After an update, run `penstock migrate` as the "
            "owner of the schema.",
        )
    if isinstance(error, _UNDEFINED):
        return NotMigrated(
            f"the database has no schema that this version of Penstock knows ({error.args[0]})",
            hint="Create or update it with `penstock migrate`; `penstock dev` does so before it says that it is ready. If "
            "the tables are in another schema or database, correct PENSTOCK_DATABASE_SCHEMA or PENSTOCK_DATABASE_URL.",
        )
    match getattr(error, "sqlstate", None):
        case "PN001":  # raised by the triggers execution_moved and row_moved
            return IllegalMove(str(error))
        case "PN002":  # raised by check_ids
            return WrongClock(
                "this machine's clock is more than an hour off the database's",
                hint="Correct the clock (NTP), and try again.",
            )
        case "PN005" if may_seal:  # raised by refuse_clear
            return KeysChanged(str(error))
        case "PN005":
            return ConfigurationError(
                f"{error}, and this process has no master key",
                hint="Set PENSTOCK_SECRETS_KEY to the same value as on the services, or send the request to the API.",
            )
        case "PN006":
            return InvalidInput(
                str(error), hint="`$sealed` is reserved for encrypted values: name it otherwise."
            )
        case "PN007":  # raised by store_events
            return InvalidInput(str(error), hint="Publish a trigger of your own pack.")
    return None


def leave_standby(connection: asyncpg.Connection[Any], error: BaseException) -> None:
    """Close a connection to a server that rejects writes, since the next connection may lead to one that accepts
    them."""
    if isinstance(error, asyncpg.ReadOnlySQLTransactionError):
        connection.terminate()
