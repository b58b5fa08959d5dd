"""The list of executions, open or archived, with its filter."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

import orjson
from pydantic import Field

from penstock.errors import InvalidInput
from penstock.language.moves import BAD
from penstock.language.terms.ids import first_id
from penstock.store.access.tenant_keys import encrypted_tenants
from penstock.store.session.database import Session, Transaction
from penstock.store.session.http_field_types import Item
from penstock.store.session.rows import rows_as

CLOCKS = 3660
"""The seconds by which the time in an id may differ from the instant of storage, since the client's clock makes the
id."""


@dataclass(frozen=True, slots=True)
class ExecutionFilter:
    """A filter of executions: all top-level executions, or those of them that match every field that is set. `since`
    and `until` (aware) bound the instant of creation. `params` are parameters that an execution has, among others.
    `event` is the event that started it, `parent` the workflow of tasks, and `key` the idempotency key in `tenant`
    (or public). `labels` are labels that an execution has, among others; the list reads the index of the first of them.
    `tenants` restricts the result to these tenants, whatever the other fields are. `ended`: only ended executions, or
    only open ones. `children`: include tasks of workflows. `waits_for_answer`: only executions in which a question to a human
    is open. `paused`: only paused workflows, and the executions that contain them."""

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
    labels: Mapping[str, str] | None = None
    ended: bool | None = None
    children: bool = False
    waits_for_answer: bool = False
    paused: bool = False


FAILURE = (
    "One sentence that names the cause of the failure: the first task, item or step that failed, at any depth. "
    "null: it has not failed."
)
"""The description of the field `failure`."""


@dataclass(frozen=True, slots=True)
class ListedWait:
    """The wait of an execution in which nothing runs: for an answer, an event, an outside system, an instant, a resume,
    the release of a hold, a limit or a worker. A paused workflow has a wait although a task of it runs."""

    because: Annotated[
        Literal["inquiry", "event", "outside", "timer", "paused", "held", "limit", "worker", "route"],
        Field(
            description="The kind of wait: an answer (`inquiry`), an event or a signal (`event`), an outside system, "
            "an instant, the resume of a paused workflow (`paused`), the release of a hold (`held`), a slot of a limit "
            "(`limit`), a free worker (`worker`), or a worker that can run it, while none is online (`route`)."
        ),
    ]
    text: Annotated[
        str,
        Field(description="The wait in words, such as `waits for the signal paid`."),
    ]
    execution_id: Annotated[
        UUID,
        Field(
            description="The execution that waits: this execution, or the first waiting execution inside it."
        ),
    ]
    due_at: Annotated[
        datetime | None,
        Field(description="The instant at which the wait ends or times out; null: there is none."),
    ]


WAITS_FOR = (
    "The wait of an open execution in which nothing runs; for a paused workflow: the pause. null: something runs or is "
    "about to start, or something inside it waits for a limit or a worker."
)
"""The description of the field `waits_for`."""
PAUSED = "True: a paused workflow. Its status does not change with the pause."
"""The description of the field `paused`."""


@dataclass(slots=True)
class ListedExecution:
    """An execution of the list."""

    id: Annotated[UUID, Field(description="The id of the execution.")]
    status: str
    action: str
    namespace: str
    attempt: Annotated[
        int,
        Field(description="The number of times that a worker began it, whatever the outcome; 0 if none has."),
    ]
    created_at: datetime
    finished_at: datetime | None
    parent: UUID | None
    task: str | None
    item: Item
    title: Annotated[
        str | None, Field(description="The title of the run; null: its action declares none.")
    ] = None
    failure: Annotated[str | None, Field(description=FAILURE)] = None
    rerun: Annotated[
        UUID | None, Field(description="The newest rerun of this failed execution; null: there is none.")
    ] = None
    continued: Annotated[
        bool,
        Field(
            description="True: a durable function that waits, or that a worker has started more than once. Its "
            "`attempt` counts each start after a wait, too."
        ),
    ] = False
    waits_for: Annotated[ListedWait | None, Field(description=WAITS_FOR)] = None
    paused: Annotated[bool, Field(description=PAUSED)] = False


ALIKE = """
    ($1::text[] is null or x.status = any($1)) and ($2::uuid is null or x.id < $2)
    and ($3::timestamptz is null or x.created_at >= $3) and ($4::timestamptz is null or x.created_at < $4)
    and ($5::uuid is null or x.id >= $5) and ($6::uuid is null or x.id < $6)
    and ($7::uuid is null or x.id = any(array(select f.execution_id from enforcement f where f.event_id = $7)))
    and ($8::uuid is null or x.parent = $8) and ($9::boolean or x.parent is null)
    and ($10::text is null or x.id = any(array(
        select i.execution_id from idempotency i where i.tenant = coalesce($11, 'public') and i.key = $10)))
"""
# Some executions, and the workflows and functions around them. The `offset` keeps the planner from reading all executions for a
# table that is never analyzed, since it has few rows.
AROUND = """
    with recursive around as (
        select e.id, e.parent from {source} s
        cross join lateral (select x.id, x.parent from execution x where x.id = s.execution_id offset 0) e where {condition}
        union
        select e.id, e.parent from around a
        cross join lateral (select x.id, x.parent from execution x where x.id = a.parent offset 0) e
    )
    select id from around
"""
ASKING = AROUND.format(source="inquiry", condition="s.status = 'created'")
PAUSED_AND_AROUND = AROUND.format(source="paused_workflow", condition="true")
OPEN = f"""
    {ALIKE} and ($11::text is null or n.name ^@ ($11 || '::')) and ($12::text is null or n.action = $12)
    and ($13::jsonb is null or exists (select from payload p where p.execution_id = x.id and p.params @> $13))
    and ($14::boolean is null or (x.finished_at is not null) = $14)
    and ($15::text[] is null or split_part(n.name, '::', 1) = any($15))
"""
ARCHIVED = f"""
    {ALIKE} and ($11::text is null or x.namespace ^@ ($11 || '::')) and ($12::text is null or x.action = $12)
    and ($13::jsonb is null or x.params @> $13) and coalesce($14, true)
    and ($15::text[] is null or split_part(x.namespace, '::', 1) = any($15))
"""
OPEN_COLUMNS = "x.id, x.status, n.action, n.name as namespace, x.attempt, x.created_at, x.finished_at, x.parent, x.task, x.item"
ARCHIVED_COLUMNS = OPEN_COLUMNS.replace("n.action, n.name as namespace", "x.action, x.namespace")
NAMESPACE = "join namespace n on n.id = x.namespace_id"
EVERY = f"from execution x {NAMESPACE} where"
# Every execution that ended badly has an error, and errors have an index. Without it, the query would read all
# executions that completed since the last failure.
BADLY = f"""from (
    select r.execution_id from result r
    where r.error is not null and ($2::uuid is null or r.execution_id < $2)
        and ($5::uuid is null or r.execution_id >= $5) and ($6::uuid is null or r.execution_id < $6)
) r join execution x on x.id = r.execution_id {NAMESPACE} where"""
# A list of few tenants, or of a label, reads a range of an index for each tenant. A range is in the order of ids, so the
# query stops at the end of its page.
TENANTS = "unnest(coalesce($15::text[], array(select distinct split_part(name, '::', 1) from namespace))) as t (tenant)"
CHILD = "unnest(case when $9 then '{false,true}'::boolean[] else '{false}' end) as c (child)"
IDS = """($2::uuid is null or l.{id} < $2) and ($5::uuid is null or l.{id} >= $5) and ($6::uuid is null or l.{id} < $6)"""
MORE_LABELS = """not exists (select from unnest($18::text[], $19::text[]) as m (key, value)
    where not exists (select from {same} and o.key = m.key and o.value = m.value))"""
LABEL = "l.tenant = t.tenant and l.key = $16 and l.value = $17 and l.child = c.child"
LABELLED = f"""
from (
    select l.execution_id as id from label l
    where {LABEL} and {IDS.format(id="execution_id")}
        and {MORE_LABELS.format(same="label o where o.execution_id = l.execution_id")}
    -- This order and the `offset` below keep the planner from joining before it sorts: each label of the page leads to one
    -- row. For a label that most executions have, the planner would otherwise read all of them.
    order by l.execution_id desc
) l cross join lateral (select * from execution x where x.id = l.id offset 0) x {NAMESPACE} where
"""
# A list of the executions with an open question, or of paused ones, reads these by their ids, however many others there are.
# None of them is archived.
MEMBERS = f"""
from unnest(array({{ids}})) as m (id)
cross join lateral (select * from execution x where x.id = m.id offset 0) x {NAMESPACE} where
"""
HAS_LABELS = f"""
    and exists (select from label l where l.execution_id = x.id and l.key = $16 and l.value = $17)
    and {MORE_LABELS.format(same="label o where o.execution_id = x.id")}
"""
ARCHIVED_LABELLED = f"""
from (
    select l.id, l.finished_at from archived_label l
    where {LABEL} and {{status}} {IDS.format(id="id")}
        and {MORE_LABELS.format(same="archived_label o where o.id = l.id and o.finished_at = l.finished_at")}
    order by l.id desc
) l cross join lateral (select * from archive x where x.id = l.id and x.finished_at = l.finished_at offset 0) x where
"""
ONE_STATUS = "l.status = s.status and l.status <> 'completed' and"
ANY_STATUS = "($1::text[] is null or l.status = any($1)) and"
ARCHIVED_TENANT = "from archive x where split_part(x.namespace, '::', 1) = t.tenant and"
RANGES = 20
"""The maximum number of tenants for which a list reads a range each."""


@dataclass(frozen=True, slots=True)
class Branch:
    """A part of a list: open or archived executions. `ranges` are the tables with a row for each range to read."""

    columns: str
    source: str
    condition: str
    ranges: tuple[str, ...] = ()

    def page(self, limit: str) -> str:
        by = "l.id" if ") l cross join" in self.source else "x.id"
        rows = f"select {self.columns} {self.source} {self.condition} order by {by} desc limit {limit}"
        if not self.ranges:
            return f"({rows})"
        return f"(select x.* from {' cross join '.join(self.ranges)} cross join lateral ({rows}) x)"

    def count(self) -> str:
        if not self.ranges:
            return f"(select count(*) {self.source} {self.condition})"
        rows = f"select count(*) as number {self.source} {self.condition}"
        ranges = " cross join ".join(self.ranges)
        return f"(select coalesce(sum(x.number), 0)::bigint from {ranges} cross join lateral ({rows}) x)"


def _branches(filters: ExecutionFilter) -> tuple[Branch, ...]:
    """Return the parts of a list, which read the index that its filter needs."""
    members = [ASKING] * filters.waits_for_answer + [PAUSED_AND_AROUND] * filters.paused
    if members:
        ids = " intersect ".join(f"({member})" for member in members)
        return (Branch(OPEN_COLUMNS, MEMBERS.format(ids=ids), OPEN + HAS_LABELS * bool(filters.labels)),)
    badly = filters.status is not None and BAD.issuperset(filters.status)
    if filters.labels:
        ranges: tuple[str, ...] = (TENANTS, CHILD)
        archived, status = ranges, ANY_STATUS
        if badly:
            archived, status = (*ranges, "unnest($1::text[]) as s (status)"), ONE_STATUS
        return (
            Branch(OPEN_COLUMNS, LABELLED, OPEN, ranges),
            Branch(ARCHIVED_COLUMNS, ARCHIVED_LABELLED.replace("{status}", status), ARCHIVED, archived),
        )
    tenants = _tenants(filters)
    lists_tenants = tenants is not None and len(tenants) <= RANGES
    return (
        Branch(OPEN_COLUMNS, BADLY if badly else EVERY, OPEN),
        Branch(ARCHIVED_COLUMNS, ARCHIVED_TENANT, ARCHIVED, (TENANTS,))
        if lists_tenants
        else Branch(ARCHIVED_COLUMNS, "from archive x where", ARCHIVED),
    )


def _tenants(filters: ExecutionFilter) -> list[str] | None:
    """Return the tenants to which a filter restricts the list; None for all."""
    if filters.tenant is None:
        return None if filters.tenants is None else sorted(set(filters.tenants))
    return [filters.tenant] if filters.tenants is None or filters.tenant in filters.tenants else []


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
    filters = await _rarest_first(session, filters)
    arguments = _arguments(filters, before)
    limit_place = f"${len(arguments) + 1}"
    parts = " union all ".join(branch.page(limit_place) for branch in _branches(filters))
    sql = f"select * from ({parts}) y order by id desc limit {limit_place}"
    return rows_as(ListedExecution, await session.fetch(sql, *arguments, limit))


async def count(session: Session, filters: ExecutionFilter) -> int:
    """Return the number of executions that match the filter."""
    if filters.params:
        await refuse_encrypted(session, "parameters", filters.tenant, filters.tenants)
    parts = " + ".join(branch.count() for branch in _branches(filters))
    return int((await session.fetch(f"select {parts} as count", *_arguments(filters, None)))[0]["count"])


def _arguments(filters: ExecutionFilter, cursor: UUID | None) -> tuple[Any, ...]:
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
        _tenants(filters),
        *_label_arguments(filters.labels),
    )


AMONG = 5000
"""The maximum number of rows by which labels are compared for rarity."""
RARITY = f"""
select w.key from unnest($1::text[], $2::text[]) as w (key, value) cross join lateral (
    select count(*) as number from (
        select from unnest(coalesce($3::text[], array(select distinct split_part(name, '::', 1) from namespace))) as t (tenant)
        cross join unnest('{{false,true}}'::boolean[]) as c (child)
        cross join lateral (
            select from archived_label l
            where l.tenant = t.tenant and l.key = w.key and l.value = w.value and l.child = c.child limit {AMONG}) l
        limit {AMONG}) x) y
order by y.number limit 1
"""


async def _rarest_first(session: Session | Transaction, filters: ExecutionFilter) -> ExecutionFilter:
    """Return the filter with its rarest label at the beginning. A list by a frequent label and a rare one would otherwise
    read all executions of the frequent one."""
    if not filters.labels or len(filters.labels) == 1:
        return filters
    labels = dict(filters.labels)
    [row] = await session.fetch(RARITY, list(labels), list(labels.values()), _tenants(filters))
    return replace(filters, labels={row["key"]: labels[row["key"]], **labels})


def _label_arguments(labels: Mapping[str, str] | None) -> tuple[Any, ...]:
    """Return the first label, by which the list reads, and the keys and values of the further ones."""
    if not labels:
        return ()
    (key, value), *further = labels.items()
    return key, value, [key for key, _ in further], [value for _, value in further]
