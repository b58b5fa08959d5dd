"""The ends that a gateway changes before it stores them: a cancellation that was not requested, and an attempt that
workers have handed back many times. Each becomes a failure, so that no work is handed back for ever."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from uuid import UUID

from penstock.language.moves import CANCELLED, REQUESTED
from penstock.language.policies.after_attempt import End, Ending, Unfinished
from penstock.run.outcomes import Outcome, TaskError
from penstock.store.executions import attempts, past_attempts
from penstock.store.executions.past_attempts import HandedBack
from penstock.store.session.database import Session

MOST_HANDED_BACK = 100
"""The number of attempts in a row that workers may hand back, if the first of them is older than HANDED_BACK_FOR."""
HANDED_BACK_FOR = timedelta(hours=24)

Ends = Mapping[tuple[UUID, int], End]
"""Ends by execution and attempt."""


def needs_check(ends: Ends) -> bool:
    """Return whether some of these ends need a query of the database. Most messages have no such end."""
    return any(_is_cancelled(end) or _may_be_too_often(key, end) for key, end in ends.items())


async def checked_ends(session: Session, ends: Ends) -> Ends:
    """Return the ends as they are stored."""
    cancelled = [key for key, end in ends.items() if _is_cancelled(end)]
    handed_back = [key for key, end in ends.items() if _may_be_too_often(key, end)]
    changed: dict[tuple[UUID, int], End] = {}
    if cancelled:
        requested = await attempts.canceling(session, [execution for execution, _ in cancelled])
        changed |= {key: _cancelled_by_itself() for key in cancelled if key[0] not in requested}
    if handed_back:
        rows = await past_attempts.handed_back(session, [execution for execution, _ in handed_back])
        by_execution = {row.execution: row for row in rows}
        for key in handed_back:
            row = by_execution.get(key[0])
            if row is not None and row.attempts + 1 >= MOST_HANDED_BACK and row.seconds >= HANDED_BACK_FOR:
                changed[key] = _handed_back_too_often(row)
    return {**ends, **changed}


def _is_cancelled(end: End) -> bool:
    return isinstance(end, Ending) and end.status == CANCELLED


def _may_be_too_often(key: tuple[UUID, int], end: End) -> bool:
    if key[1] < MOST_HANDED_BACK:
        return False
    is_not_begun = isinstance(end, Ending) and end.status == REQUESTED and end.delay is None
    return is_not_begun or isinstance(end, Unfinished)


def _cancelled_by_itself() -> Outcome:
    """Return the failure of an attempt that was cancelled by its own code. On other workers such an attempt fails, too:
    it counts, and may be retried."""
    message = "its worker ended it as cancelled, and no end was requested"
    return Outcome.failed(TaskError("CancelledError", message, kinds=("CancelledError", "BaseException")))


def _handed_back_too_often(row: HandedBack) -> Outcome:
    hours = row.seconds.total_seconds() / 3600
    message = (
        f"workers handed it back {row.attempts + 1} times in a row within {hours:.0f} h, the workers "
        f"{', '.join(row.workers)}; find out why they do not run it"
    )
    return Outcome.failed(TaskError("HandedBack", message, retryable=False))
