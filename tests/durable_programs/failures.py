"""The errors that end an attempt of a program: their causes, the outcome that they are, and which are final."""

from __future__ import annotations

from typing import Any

from penstock import NonRetryable
from penstock.errors import StepFailed
from tests.durable_programs.interpreter import leaves
from tests.durable_programs.world import MARK


def chain(error: BaseException) -> list[BaseException]:
    """Return the errors that led to this one, itself included."""
    errors: list[BaseException] = []
    open_errors: list[BaseException | None] = [error]
    while open_errors:
        error_or_none = open_errors.pop()
        if error_or_none is None or error_or_none in errors:
            continue
        errors.append(error_or_none)
        if isinstance(error_or_none, BaseExceptionGroup):
            open_errors.extend(error_or_none.exceptions)
        context = None if error_or_none.__suppress_context__ else error_or_none.__context__
        open_errors.extend((error_or_none.__cause__, context))
    return errors


def failed_as(error: BaseException) -> tuple[Any, ...]:
    """Return the outcome that an error is."""
    places = [] if isinstance(error, BaseExceptionGroup) else sorted(set(MARK.findall(str(error))))
    return ("failed", type(error).__name__, places)


def final(error: BaseException) -> bool:
    """Return whether an error is never tried again."""
    return any(
        isinstance(leaf, NonRetryable) or (isinstance(leaf, StepFailed) and leaf.type == "NonRetryable")
        for leaf in leaves(error)
    )
