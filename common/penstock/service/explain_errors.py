"""The conversion of any exception of a command or a request into an error that says what to do next."""

from __future__ import annotations

import asyncpg

from penstock.errors import ConfigurationError, ConnectionFailed, InvalidInput, PenstockError
from penstock.extras import missing_extra

DEBUG = "For the traceback, run the command again with PENSTOCK_LOG_LEVEL=debug."


def explained(error: Exception) -> PenstockError:
    """Return a PenstockError unchanged, and for any other exception an error with a hint."""
    if isinstance(error, PenstockError):
        return error
    if isinstance(error, ModuleNotFoundError) and (missing := missing_extra(error)):
        return missing
    text = f"{type(error).__name__}: {error}".rstrip(": ")
    if isinstance(
        error, asyncpg.UndefinedTableError | asyncpg.UndefinedColumnError | asyncpg.UndefinedFunctionError
    ):
        return ConfigurationError(
            f"the database has no schema that this version of Penstock knows ({error})",
            hint="Create or update it with `penstock migrate`; `penstock dev` does so before it says that it is ready.",
        )
    if isinstance(error, asyncpg.InsufficientPrivilegeError):
        return ConfigurationError(
            f"PostgreSQL: {error}", hint="Grant the right, or connect as the owner of the tables."
        )
    if isinstance(error, asyncpg.DataError) or (
        isinstance(error, asyncpg.InterfaceError) and isinstance(error, ValueError)
    ):  # the value does not fit its column: too large a number, an instant that PostgreSQL cannot hold
        return InvalidInput(f"PostgreSQL cannot store this value: {error}", hint="Give a smaller value.")
    if isinstance(
        error,
        asyncpg.PostgresError | asyncpg.InterfaceError | asyncpg.InternalClientError | OSError | TimeoutError,
    ):
        return ConnectionFailed(text, hint=f"`penstock doctor` checks the servers and the settings. {DEBUG}")
    return PenstockError(f"this should not have happened: {text}", hint=f"Please report it. {DEBUG}")


def more_of(error: PenstockError) -> str:
    """Return the command that explains the error's class."""
    error_class = next(kind for kind in type(error).__mro__ if kind.__module__ == PenstockError.__module__)
    return f"penstock explain {error_class.__name__}"
