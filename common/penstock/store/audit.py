"""The audit: changes with their callers, and refusals. A change that is under way notes itself in the transaction that makes it.

A route or a command begins a change. The first transaction of its task that writes anything inserts the row before it commits, so
that neither is there without the other. Each later transaction that tells details of its own inserts a further row.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

import orjson

from penstock.store.rows import first_as, rows_as

LONGEST_REASON = 10_000
LONGEST_DETAILS = 16_384
"""Characters of the details of a row. Longer ones are replaced by their length."""

DONE, REFUSED, UNCHANGED = "done", "refused", "unchanged"
"""The outcomes: the change was made; the caller may not make it; nothing was there to be changed."""

NOTE = """
insert into audit (by, operation, target, outcome, reason, details) values ($1, $2, $3, $4, $5, $6)
"""
NOTE_WHERE_WRITTEN = """
insert into audit (by, operation, target, outcome, reason, details)
select $1, $2, $3, $4, $5, $6 where pg_current_xact_id_if_assigned() is not null
"""
"""A transaction that has written nothing has no id."""


class Statements(Protocol):
    """A session, a transaction or a connection."""

    async def fetch(self, sql: str, *args: Any) -> list[Any]: ...


@dataclass(slots=True)
class Change:
    """A change that is under way. `by` is None until the caller is known, and then nothing is noted yet."""

    by: str | None
    operation: str
    target: str
    reason: str | None = None
    details: dict[str, Any] = field(default_factory=dict)
    noted: int = 0
    """Rows that are committed."""
    task: asyncio.Task[Any] | None = None
    """The task that makes the change. What other tasks write meanwhile is not part of it."""


_CHANGE: ContextVar[Change | None] = ContextVar("change", default=None)


@contextmanager
def begun(change: Change) -> Iterator[Change]:
    """Let the transactions of this task note the change, until the block ends."""
    change.task = asyncio.current_task()
    token = _CHANGE.set(change)
    try:
        yield change
    finally:
        change.task = None
        _CHANGE.reset(token)


def current() -> Change | None:
    """Return the change that this task makes; None where it makes none, or the caller is not known yet."""
    change = _CHANGE.get()
    if change is None or change.by is None or change.task is not asyncio.current_task():
        return None
    return change


def made_by(by: str) -> None:
    """Name the caller of the change that this task has begun, if it has begun one."""
    change = _CHANGE.get()
    if change is not None:
        change.by = by


def details_text(details: Mapping[str, Any]) -> str:
    """Return details as JSON with sorted keys, as they are stored and hashed."""
    text = orjson.dumps(details, default=str, option=orjson.OPT_SORT_KEYS | orjson.OPT_NON_STR_KEYS).decode()
    if len(text) > LONGEST_DETAILS:
        return orjson.dumps({"bytes": len(text)}).decode()
    return text


def _cleaned(text: str) -> str:
    return text.replace("\0", "")


def is_due() -> bool:
    """Return whether this task makes a change of which no row is committed yet."""
    change = current()
    return change is not None and not change.noted


async def note_written(execute: Callable[..., Awaitable[str]], details: Mapping[str, Any]) -> Change | None:
    """Insert the row of the change that this task makes, where the transaction has written anything. It is due once, and for each
    transaction with details of its own. Return the change, or None where no row was inserted."""
    change = current()
    if change is None or (change.noted and not details):
        return None
    done = await execute(NOTE_WHERE_WRITTEN, *_values(change, DONE, {**change.details, **details}))
    return None if done.endswith(" 0") else change


def committed(change: Change | None) -> None:
    """Count the row of a change, whose transaction has committed."""
    if change is not None:
        change.noted += 1


async def note(on: Statements, change: Change, outcome: str) -> None:
    """Insert the row of a change."""
    await on.fetch(NOTE, *_values(change, outcome, change.details))


def _values(change: Change, outcome: str, details: Mapping[str, Any]) -> tuple[str | None, ...]:
    reason = None if change.reason is None else _cleaned(change.reason)[:LONGEST_REASON]
    return (
        _cleaned(change.by or "unknown"),
        change.operation,
        _cleaned(change.target),
        outcome,
        reason,
        details_text(details).replace("\\u0000", ""),
    )


@dataclass(frozen=True, slots=True)
class AuditedChange:
    """A row of the audit. `position`, `previous` and `seal` are its place in the chain; None until it is sealed."""

    id: int
    at: datetime
    by: str
    role: str
    operation: str
    target: str
    outcome: str
    reason: str | None
    details: str
    position: int | None
    previous: bytes | None
    seal: bytes | None


@dataclass(frozen=True, slots=True)
class AuditFilter:
    """The rows that are asked for. `operation` and `target` are beginnings of it."""

    by: str | None = None
    operation: str | None = None
    target: str | None = None
    outcome: str | None = None
    role: str | None = None
    since: datetime | None = None
    until: datetime | None = None


COLUMNS = "id, at, by, role, operation, target, outcome, reason, details, position, previous, seal"
MATCHING = """
($1::text is null or by = $1) and ($2::text is null or starts_with(operation, $2))
and ($3::text is null or starts_with(target, $3)) and ($4::text is null or outcome = $4)
and ($5::text is null or role = $5) and ($6::timestamptz is null or at >= $6) and ($7::timestamptz is null or at < $7)
"""
NEWEST = f"""
select {COLUMNS} from audit where {MATCHING} and ($8::bigint is null or id < $8) order by id desc limit $9
"""
SEALED = f"""
select {COLUMNS} from audit where {MATCHING} and position > $8 order by position limit $9
"""


async def newest(
    session: Statements, matching: AuditFilter = AuditFilter(), *, end: int | None = None, limit: int = 50
) -> list[AuditedChange]:
    """Return the newest rows, from the one before the id `end` on."""
    return rows_as(AuditedChange, await session.fetch(NEWEST, *_matching(matching), end, limit))


async def sealed_after(
    session: Statements, position: int, limit: int, matching: AuditFilter = AuditFilter()
) -> list[AuditedChange]:
    """Return sealed rows behind a position of the chain, in its order."""
    return rows_as(AuditedChange, await session.fetch(SEALED, *_matching(matching), position, limit))


async def all_sealed(
    session: Statements, position: int = 0, matching: AuditFilter = AuditFilter()
) -> AsyncIterator[AuditedChange]:
    """Yield all sealed rows behind a position, a batch at a time."""
    while rows := await sealed_after(session, position, AT_ONCE, matching):
        for row in rows:
            yield row
        position = rows[-1].position or 0


AT_ONCE = 1000
"""Rows that are read at once."""


def _matching(matching: AuditFilter) -> tuple[Any, ...]:
    return (
        matching.by,
        matching.operation,
        matching.target,
        matching.outcome,
        matching.role,
        matching.since,
        matching.until,
    )


@dataclass(frozen=True, slots=True)
class Chain:
    """The ends of the chain as the database notes them, and the rows that are not sealed yet."""

    position: int
    seal: bytes
    dropped_position: int
    dropped_seal: bytes
    dropped: str | None
    """The details of the newest row that says what was dropped."""
    unsealed: int
    unsealed_for: float | None
    """Seconds since the oldest of them was written."""


CHAIN = """
select c.position, c.seal, c.dropped_position, c.dropped_seal,
    (select a.details from audit a where a.operation = 'audit_drop' and a.by = 'penstock' order by a.id desc limit 1) as dropped,
    (select count(*) from audit a where a.position is null) as unsealed,
    (select extract(epoch from clock_timestamp() - min(a.at))::float8 from audit a where a.position is null) as unsealed_for
from audit_chain c
"""


async def chain(session: Statements) -> Chain | None:
    """Return the ends of the chain; None where its row is gone."""
    return first_as(Chain, await session.fetch(CHAIN))


@dataclass(frozen=True, slots=True)
class Sealed:
    """The rows that one call has sealed, and the end of the chain since."""

    sealed: int
    chain_position: int
    chain_seal: bytes


SEAL = "select sealed, chain_position, chain_seal from seal_audit($1)"


async def seal(session: Statements, limit: int) -> Sealed | None:
    """Seal rows; None where another replica does so at this moment."""
    return first_as(Sealed, await session.fetch(SEAL, limit))


DROP = f"select {COLUMNS} from drop_audit($1, $2)"


async def drop(tx: Statements, days: int, limit: int) -> Sequence[AuditedChange]:
    """Delete sealed rows that are older than so many days, oldest first, and return them."""
    return rows_as(AuditedChange, await tx.fetch(DROP, days, limit))
