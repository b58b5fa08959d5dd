"""The list of executions, open or archived, with its filter."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import orjson

from penstock.errors import InvalidInput
from penstock.language.moves import BAD
from penstock.language.terms.ids import first_id
from penstock.store.access.tenant_keys import encrypted_tenants
from penstock.store.session.database import Session, Transaction
from penstock.store.session.rows import rows_as

CLOCKS = 3660
"""Seconds by which the time in an id, which a client created, may differ from the instant of storage."""


@dataclass(frozen=True, slots=True)
class ExecutionFilter:
    """A filter of executions: all top-level executions, or those of them that match every field that is set. `since`
    and `until` (aware) bound the instant of creation. `params` are parameters that an execution has, among others.
    `event` is the event that started it, `parent` the workflow of tasks, and `key` the idempotency key in `tenant`
    (or public). `tenants` restricts the result to these tenants, whatever the other fields are. `ended`: only ended
    executions, or only open ones. `children`: include tasks of workflows."""

    status: Collection[str] | None = None
    action: str | None = None
    tenant: str | None = None
    tenants: Collection[str] | None = None
    since: datetime | None = None
    until: datetime | None = None
    params: Mapping[str, Any] | None = None
    event: UUID | None = None
    parent: UUID | None = None
    key: str | None = None
    ended: bool | None = None
    children: bool = False


@dataclass(slots=True)
class ListedExecution:
    """An execution of the list."""

    id: UUID
    status: str
    action: str
    namespace: str
    attempt: int
    created_at: datetime
    finished_at: datetime | None
    parent: UUID | None
    task: str | None
    item: int


ALIKE = """
    ($1::text[] is null or x.status = any($1)) and ($2::uuid is null or x.id < $2)
    and ($3::timestamptz is null or x.created_at >= $3) and ($4::timestamptz is null or x.created_at < $4)
    and ($5::uuid is null or x.id >= $5) and ($6::uuid is null or x.id < $6)
    and ($7::uuid is null or x.id = any(array(select f.execution_id from enforcement f where f.event_id = $7)))
    and ($8::uuid is null or x.parent = $8) and ($9::boolean or x.parent is null)
    and ($10::text is null or x.id = any(array(
        select i.execution_id from idempotency i where i.tenant = coalesce($11, 'public') and i.key = $10)))
"""
OPEN = f"""
join namespace n on n.id = x.namespace_id
where {ALIKE}
    and ($11::text is null or n.name ^@ ($11 || '::')) and ($12::text is null or n.action = $12)
    and ($13::jsonb is null or exists (select from payload p where p.execution_id = x.id and p.params @> $13))
    and ($14::boolean is null or (x.finished_at is not null) = $14)
    and ($15::text[] is null or split_part(n.name, '::', 1) = any($15))
"""
ARCHIVED = f"""
from archive x
where {ALIKE}
    and ($11::text is null or x.namespace ^@ ($11 || '::')) and ($12::text is null or x.action = $12)
    and ($13::jsonb is null or x.params @> $13) and coalesce($14, true)
    and ($15::text[] is null or split_part(x.namespace, '::', 1) = any($15))
"""
EVERY = "from execution x"
# Every execution that ended badly has an error, and errors have an index. Without it, the query would read all
# executions that completed since the last failure.
BADLY = """from (
    select r.execution_id from result r
    where r.error is not null and ($2::uuid is null or r.execution_id < $2)
        and ($5::uuid is null or r.execution_id >= $5) and ($6::uuid is null or r.execution_id < $6)
) r join execution x on x.id = r.execution_id"""
PAGE = f"""
select * from (
    (select x.id, x.status, n.action, n.name as namespace, x.attempt, x.created_at, x.finished_at, x.parent, x.task, x.item
    {{among}} {OPEN} order by x.id desc limit $16)
    union all
    (select x.id, x.status, x.action, x.namespace, x.attempt, x.created_at, x.finished_at, x.parent, x.task, x.item
    {ARCHIVED} order by x.id desc limit $16)
) y order by id desc limit $16
"""


async def refuse_encrypted(
    session: Session | Transaction, field: str, tenant: str | None, tenants: Collection[str] | None
) -> None:
    """Raise InvalidInput if the filter compares values of an encrypted tenant: the database cannot read them, and would
    match nothing. `field` names the filter. `tenant` and `tenants` are those of the filter (None: all)."""
    encrypted = set(await encrypted_tenants(session))
    if tenants is not None:
        encrypted &= set(tenants)
    if tenant is not None:
        encrypted &= {tenant}
    if encrypted:
        raise InvalidInput(
            f"the values of tenant {sorted(encrypted)[0]} are encrypted, so nothing can be searched by {field}",
            hint="Search by action, status, time, event or key, or in another tenant: --tenant NAME.",
        )


async def page(
    session: Session | Transaction,
    filters: ExecutionFilter = ExecutionFilter(),
    *,
    before: UUID | None = None,
    limit: int = 50,
) -> list[ListedExecution]:
    """Return at most `limit` executions, open, finished or archived, newest first. `before` is the last id of the
    page before. Raises InvalidInput for a filter by the parameters of an encrypted tenant."""
    if filters.params:
        await refuse_encrypted(session, "parameters", filters.tenant, filters.tenants)
    sql = _among(filters, PAGE)
    return rows_as(ListedExecution, await session.fetch(sql, *_given(filters, before), limit))


COUNT = f"select (select count(*) {{among}} {OPEN}) + (select count(*) {ARCHIVED}) as count"


async def count(session: Session, filters: ExecutionFilter) -> int:
    """Return the number of executions that match the filter."""
    if filters.params:
        await refuse_encrypted(session, "parameters", filters.tenant, filters.tenants)
    return int((await session.fetch(_among(filters, COUNT), *_given(filters, None)))[0]["count"])


def _among(filters: ExecutionFilter, statement: str) -> str:
    """Insert the tables that a statement reads for unarchived executions."""
    badly = filters.status is not None and BAD.issuperset(filters.status)
    return statement.replace("{among}", BADLY if badly else EVERY)


def _given(filters: ExecutionFilter, cursor: UUID | None) -> tuple[Any, ...]:
    # Ids are in the order of time, and indexed: bounds on ids make the bounds on time fast.
    return (
        None if filters.status is None else list(filters.status),
        cursor,
        filters.since,
        filters.until,
        first_id(filters.since, -CLOCKS) if filters.since else None,
        first_id(filters.until, CLOCKS) if filters.until else None,
        filters.event,
        filters.parent,
        filters.children or filters.parent is not None,
        filters.key,
        filters.tenant,
        filters.action,
        orjson.dumps(filters.params).decode() if filters.params else None,
        filters.ended,
        None if filters.tenants is None else list(filters.tenants),
    )
