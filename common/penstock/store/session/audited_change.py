"""The audit rows of changes, each written in the transaction of its change.

A route or a command begins a change. The first transaction of its task that writes anything inserts the audit row
before it commits, so that neither exists without the other. Each later transaction that adds details inserts another
row.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Protocol

import orjson

from penstock.run.cut_texts import cut_end

LONGEST_REASON = 10_000
LONGEST_DETAILS = 16_384
"""The maximum number of characters of a row's details. Longer details are replaced by their length."""

DONE, REFUSED, UNCHANGED = "done", "refused", "unchanged"
"""The outcomes: the change was made; the caller may not make it; there was nothing to change."""

NOTE = """
insert into audit (by, operation, target, outcome, reason, details) values ($1, $2, $3, $4, $5, $6)
"""
NOTE_WHERE_WRITTEN = """
insert into audit (by, operation, target, outcome, reason, details)
select $1, $2, $3, $4, $5, $6 where pg_current_xact_id_if_assigned() is not null
"""
"""Insert a row only if the transaction has written anything: otherwise it has no id."""
_TELLS_ROWS = re.compile(r"\s*(insert|update|delete)\b.*\breturning\b", re.IGNORECASE | re.DOTALL)
"""A pattern for statements that return each row that they write."""


class Statements(Protocol):
    """A session, a transaction or a connection, for single statements."""

    async def fetch(self, sql: str, *args: Any) -> list[Any]: ...


@dataclass(slots=True)
class Change:
    """A change that is under way. `by` is None until the caller is known: until then no row is written."""

    by: str | None
    operation: str
    target: str
    reason: str | None = None
    details: dict[str, Any] = field(default_factory=dict)
    noted: int = 0
    """The number of its committed audit rows."""
    task: asyncio.Task[Any] | None = None
    """The task that makes the change. Writes of other tasks do not belong to it."""


_CHANGE: ContextVar[Change | None] = ContextVar("change", default=None)


@contextmanager
def begun(change: Change) -> Iterator[Change]:
    """Let the transactions of this task write audit rows of the change, until the block ends."""
    change.task = asyncio.current_task()
    token = _CHANGE.set(change)
    try:
        yield change
    finally:
        change.task = None
        _CHANGE.reset(token)


@contextmanager
def apart() -> Iterator[None]:
    """Exclude the statements of the block from the change: they are bookkeeping, which a refused change leaves too."""
    token = _CHANGE.set(None)
    try:
        yield
    finally:
        _CHANGE.reset(token)


def current() -> Change | None:
    """Return the change that this task makes; None if it makes none, or the caller is not known yet."""
    change = _CHANGE.get()
    if change is None or change.by is None or change.task is not asyncio.current_task():
        return None
    return change


def made_by(by: str) -> None:
    """Set the caller of the change that this task has begun, if it has begun one."""
    change = _CHANGE.get()
    if change is not None:
        change.by = by


def details_text(details: Mapping[str, Any]) -> str:
    """Return details as JSON with sorted keys, as they are stored and hashed."""
    text = orjson.dumps(details, default=str, option=orjson.OPT_SORT_KEYS | orjson.OPT_NON_STR_KEYS).decode()
    if len(text) > LONGEST_DETAILS:
        return orjson.dumps({"bytes": len(text)}).decode()
    return text


def stored_text(text: str) -> str:
    """Return `text` as PostgreSQL can store it: without NUL, and with lone surrogates as escapes."""
    return text.replace("\0", "").encode("utf-8", "backslashreplace").decode()


def is_due() -> bool:
    """Return True if this task makes a change without a committed audit row."""
    change = current()
    return change is not None and not change.noted


async def note_written(execute: Callable[..., Awaitable[str]], details: Mapping[str, Any]) -> Change | None:
    """Insert the audit row of this task's change if the transaction has written anything. The row is due once, and
    for each transaction with details of its own. Return the change, or None if no row was inserted."""
    change = current()
    if change is None or (change.noted and not details):
        return None
    done = await execute(NOTE_WHERE_WRITTEN, *_values(change, DONE, {**change.details, **details}))
    return None if done.endswith(" 0") else change


def committed(change: Change | None) -> None:
    """Count the audit row of a change after its transaction has committed."""
    if change is not None:
        change.noted += 1


@cache
def _noting(sql: str, count: int) -> str | None:
    """Return a statement extended by the insert of an audit row, or None if its result does not show whether it wrote
    anything. The six values of the row follow the statement's `count` parameters."""
    if _TELLS_ROWS.match(sql) is None:
        return None
    values = ", ".join(f"${count + n}::text" for n in range(1, 7))
    return (
        f"with written_rows as ({sql}), audit_row as (\n"
        "    insert into audit (by, operation, target, outcome, reason, details)\n"
        f"    select {values} where exists (select from written_rows)\n"
        ") select * from written_rows"
    )


def in_one_statement(sql: str, args: tuple[Any, ...]) -> tuple[str, tuple[Any, ...], Change] | None:
    """Return a statement and its arguments that also insert the audit row of this task's change. This saves three
    round trips. Return None if no row is due, or the result does not show whether the statement wrote anything."""
    change = current()
    if change is None or change.noted or (noting := _noting(sql, len(args))) is None:
        return None
    return noting, (*args, *_values(change, DONE, change.details)), change


async def note(on: Statements, change: Change, outcome: str) -> None:
    """Insert the audit row of a change."""
    await on.fetch(NOTE, *_values(change, outcome, change.details))


def _values(change: Change, outcome: str, details: Mapping[str, Any]) -> tuple[str | None, ...]:
    reason = None if change.reason is None else cut_end(stored_text(change.reason), LONGEST_REASON)
    return (
        stored_text(change.by or "unknown"),
        change.operation,
        stored_text(change.target),
        outcome,
        reason,
        details_text(details).replace("\\u0000", ""),
    )
