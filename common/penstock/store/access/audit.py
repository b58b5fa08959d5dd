"""The audit: the rows of changes and refusals, and the chain of their seals. `audited_change` writes the rows."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any

from pydantic import Field

from penstock.store.session.audited_change import Statements
from penstock.store.session.http_field_types import HexOrNull, JsonObject
from penstock.store.session.rows import first_as, rows_as


@dataclass(frozen=True, slots=True)
class AuditedChange:
    """A row of the audit. `position`, `previous` and `seal` are its place in the hash chain."""

    id: Annotated[int, Field(description="The number of the row, in the order of writing.")]
    at: Annotated[datetime, Field(description="The instant of the change.")]
    by: str
    role: Annotated[str, Field(description="The database role that wrote the row.")]
    operation: Annotated[
        str,
        Field(
            description="The id of the operation in the OpenAPI description, such as `limits_change`; or a command."
        ),
    ]
    target: Annotated[str, Field(description="The requested address, or the object of the command.")]
    outcome: Annotated[
        str,
        Field(
            description="`done`, `refused`, or `unchanged` (the request was valid, and nothing had to change)."
        ),
    ]
    reason: str | None
    details: Annotated[JsonObject, Field(description="The values of the change. Of a secret, only its size.")]
    position: Annotated[
        int | None, Field(description="The position in the hash chain; null: the row is not in it yet.")
    ]
    previous: Annotated[
        HexOrNull,
        Field(
            description="The seal of the row before, in hexadecimal; null: this is the first row, or it is not "
            "in the hash chain yet."
        ),
    ]
    seal: Annotated[
        HexOrNull,
        Field(
            description="The seal of the row: a hash, in hexadecimal, over the row and the previous seal; null: the "
            "row is not in the hash chain yet."
        ),
    ]


@dataclass(frozen=True, slots=True)
class AuditFilter:
    """A filter of audit rows; None matches all. `operation` and `target` match values that begin with them.
    `tokens_` also matches the commands `penstock tokens`. `tenant`
    matches rows that have it in their details, as `tenant` or among `tenants`."""

    by: str | None = None
    operation: str | None = None
    target: str | None = None
    outcome: str | None = None
    role: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    tenant: str | None = None


COLUMNS = "id, at, by, role, operation, target, outcome, reason, details, position, previous, seal"
MATCHING = """
($1::text is null or by = $1) and ($2::text is null or starts_with(operation, $2)
    or starts_with(operation, 'penstock ' || replace($2, '_', ' ')))
and ($3::text is null or starts_with(target, $3)) and ($4::text is null or outcome = $4)
and ($5::text is null or role = $5) and ($6::timestamptz is null or at >= $6) and ($7::timestamptz is null or at < $7)
and ($8::text is null or details::jsonb -> 'tenant' = to_jsonb($8) or details::jsonb -> 'tenants' ? $8)
"""
NEWEST = f"""
select {COLUMNS} from audit where {MATCHING} and ($9::bigint is null or id < $9) order by id desc limit $10
"""
SEALED = f"""
select {COLUMNS} from audit where {MATCHING} and position > $9 order by position limit $10
"""


async def newest(
    session: Statements, matching: AuditFilter = AuditFilter(), *, end: int | None = None, limit: int = 50
) -> list[AuditedChange]:
    """Return the newest rows that match, newest first. With `end`, only rows with a smaller id."""
    return rows_as(AuditedChange, await session.fetch(NEWEST, *_matching(matching), end, limit))


async def sealed_after(
    session: Statements, position: int, limit: int, matching: AuditFilter = AuditFilter()
) -> list[AuditedChange]:
    """Return at most `limit` sealed rows after a position of the chain, in the order of the chain."""
    return rows_as(AuditedChange, await session.fetch(SEALED, *_matching(matching), position, limit))


async def all_sealed(
    session: Statements, position: int = 0, matching: AuditFilter = AuditFilter()
) -> AsyncIterator[AuditedChange]:
    """Yield all sealed rows after a position, in the order of the chain. They are read in batches."""
    while rows := await sealed_after(session, position, AT_ONCE, matching):
        for row in rows:
            yield row
        position = rows[-1].position or 0


AT_ONCE = 1000
"""Rows that one batch reads."""


def _matching(matching: AuditFilter) -> tuple[Any, ...]:
    return (
        matching.by,
        matching.operation,
        matching.target,
        matching.outcome,
        matching.role,
        matching.since,
        matching.until,
        matching.tenant,
    )


@dataclass(frozen=True, slots=True)
class Chain:
    """The two ends of the chain, as the database stores them, and the unsealed rows."""

    position: int
    seal: bytes
    dropped_position: int
    dropped_seal: bytes
    dropped: str | None
    """The details of the newest row that records a deletion of old rows."""
    unsealed: int
    unsealed_for: float | None
    """Seconds since the oldest unsealed row was written."""


CHAIN = """
select c.position, c.seal, c.dropped_position, c.dropped_seal,
    (select a.details from audit a where a.operation = 'audit_drop' and a.by = 'penstock' order by a.id desc limit 1) as dropped,
    (select count(*) from audit a where a.position is null) as unsealed,
    (select extract(epoch from clock_timestamp() - min(a.at))::float8 from audit a where a.position is null) as unsealed_for
from audit_chain c
"""


async def chain(session: Statements) -> Chain | None:
    """Return the ends of the chain; None if its row is missing."""
    return first_as(Chain, await session.fetch(CHAIN))


@dataclass(frozen=True, slots=True)
class Sealed:
    """The number of rows that one call has sealed, and the new end of the chain."""

    sealed: int
    chain_position: int
    chain_seal: bytes


SEAL = "select sealed, chain_position, chain_seal from seal_audit($1)"


async def seal(session: Statements, limit: int) -> Sealed | None:
    """Seal at most `limit` rows. Return None if another replica is sealing now, or no row is unsealed."""
    return first_as(Sealed, await session.fetch(SEAL, limit))


DROP = f"select {COLUMNS} from drop_audit($1, $2)"


async def drop(tx: Statements, days: int, limit: int) -> Sequence[AuditedChange]:
    """Delete at most `limit` sealed rows that are older than `days`, oldest first, and return them."""
    return rows_as(AuditedChange, await tx.fetch(DROP, days, limit))
