"""The conversion of any exception of a command or a request into an error that says what to do next."""

from __future__ import annotations

import asyncpg

from penstock.errors import ConnectionFailed, InvalidInput, PenstockError
from penstock.extras import missing_extra
from penstock.store.session.postgres_errors import in_our_words

DEBUG = "For the traceback, run the command again with PENSTOCK_LOG_LEVEL=debug."


def explained(error: Exception) -> PenstockError:
    """Return a PenstockError unchanged, and for any other exception an error with a hint."""
    if isinstance(error, PenstockError):
        return error
    if isinstance(error, ModuleNotFoundError) and (missing := missing_extra(error)):
        return missing
    text = f"{type(error).__name__}: {error}".rstrip(": ")
    if translated := in_our_words(error):
        return translated
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
