"""Limits as admission reads them: stored with their definitions, changed while executions wait under them.

A limit is declared with the definitions, or set by hand, or both. While it is set by hand, that version is in force,
whatever is applied meanwhile.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, Protocol

import orjson
from pydantic import Field

from penstock.language.definitions.breaker import Breaker
from penstock.language.terms.costs import cost_terms
from penstock.store.definitions import catalog
from penstock.store.session.database import Row, Session, Transaction
from penstock.store.session.http_field_types import JsonTextOrNull
from penstock.store.session.rows import rows_as

DECLARED = "limit"
BY_HAND = "limit_by_hand"
"""The kinds in the catalog of a declared limit, and of a limit that is set by hand. The stored definitions of both have
the kind `limit`."""

BEFORE = "select fair, cost::text as cost, budget from concurrency_limit where ref = $1 and by = $2::text[]"
STORE = """
insert into concurrency_limit (ref, definition_id, scope, max, by, fair, when_full, max_waiting, rate_count,
    rate_seconds, while_waiting, cost, unit, budget, breaker)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12::text::jsonb, $13, $14, $15::text::jsonb)
on conflict (ref, by) do update set definition_id = excluded.definition_id, scope = excluded.scope,
    max = excluded.max, fair = excluded.fair, when_full = excluded.when_full, max_waiting = excluded.max_waiting,
    rate_count = excluded.rate_count, rate_seconds = excluded.rate_seconds, while_waiting = excluded.while_waiting,
    cost = excluded.cost, unit = excluded.unit, budget = excluded.budget, breaker = excluded.breaker
returning id
"""
UNIT_OF_BUDGETS = """
with made as (
    insert into concurrency_limit (ref, definition_id, scope, max, cost, unit)
    values ('budget.' || $1, $2, '', 2147483647, '{"terms": []}', $1)
    on conflict (ref, by) do nothing returning id
)
select id from made union all select id from concurrency_limit where ref = 'budget.' || $1 and by = '{}' limit 1
"""
NAME_UNIT = "update concurrency_limit set budget = id where id = $1 and budget is null"
DROP_UNDECLARED = """
delete from catalog c where c.kind = 'limit' and c.ref <> all($2::text[])
    and exists (select from unnest($1::text[]) r where starts_with(c.ref, r || '.'))
returning c.ref
"""
CURRENT = """
select c.kind, c.ref, c.definition_id, d.body::text as body
from catalog c join definition d on d.id = c.definition_id
where c.kind in ('limit', 'limit_by_hand') and ($1::text[] is null or c.ref = any($1::text[]))
"""
DEFINE = """
insert into definition (kind, ref, digest, body) values ('limit', $1, $2, $3::text::jsonb)
on conflict (kind, ref, digest) do nothing
"""
SET_BY_HAND = """
insert into catalog as c (kind, ref, definition_id)
select 'limit_by_hand', ref, id from definition where kind = 'limit' and ref = $1 and digest = $2
on conflict (kind, ref) do update set definition_id = excluded.definition_id, updated_at = clock_timestamp()
returning definition_id
"""
CHANGED = "select limits_changed($1::integer[], $2::integer[])"
OF_LIMITS = "select id from namespace where limits && $1::integer[]"
NO_MAXIMUM = 2_147_483_647


class Document(Protocol):
    @property
    def kind(self) -> str: ...
    @property
    def ref(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Stored:
    """A limit that was stored. `regroups`: its waiting executions join their lanes again, since the parameters that it is fair
    to, its cost or the unit of its budget have changed."""

    id: int
    regroups: bool


@dataclass(frozen=True, slots=True)
class Versions:
    """The declared version of a limit, and the version that is set by hand: (definition id, body) each."""

    declared: tuple[int, dict[str, Any]] | None = None
    by_hand: tuple[int, dict[str, Any]] | None = None

    @property
    def in_force(self) -> tuple[int, dict[str, Any]] | None:
        return self.by_hand or self.declared


async def versions(tx: Transaction | Session, ref: str) -> Versions:
    rows = {row["kind"]: row for row in await tx.fetch(CURRENT, [ref])}
    return Versions(*(_version(rows.get(kind)) for kind in (DECLARED, BY_HAND)))


def _version(row: Row | None) -> tuple[int, dict[str, Any]] | None:
    return None if row is None else (row["definition_id"], orjson.loads(row["body"]))


async def set_by_hand(tx: Transaction) -> set[str]:
    """Return the refs of limits that are set by hand."""
    return {row["ref"] for row in await tx.fetch(CURRENT, None) if row["kind"] == BY_HAND}


async def put_by_hand(tx: Transaction, ref: str, digest: str, body: dict[str, Any]) -> Stored:
    """Store a version of a limit that is in force even if another version is declared."""
    await tx.fetch(DEFINE, ref, digest, orjson.dumps(body).decode())
    [row] = await tx.fetch(SET_BY_HAND, ref, digest)
    return await store(tx, ref, row["definition_id"], body)


async def store(tx: Transaction, ref: str, definition: int, body: dict[str, Any]) -> Stored:
    """Put a version of a limit in force. If it is grouped by other parameters than before, it is a new
    limit with a row of its own."""
    rate = body.get("rate") or {}
    by, fair = list(body.get("by") or ()), list(body.get("fair") or ())
    cost = _stored_cost(body.get("cost"))
    old_rows = await tx.fetch(BEFORE, ref, by)
    budget = body.get("budget")
    unit_row = await _unit_of_budgets(tx, budget, definition) if budget else None
    rows = await tx.fetch(
        STORE,
        ref,
        definition,
        body.get("scope") or "*",
        body.get("max") or NO_MAXIMUM,
        by,
        fair,
        body.get("when_full") or "enqueue",
        body.get("max_waiting"),
        rate.get("count"),
        rate.get("seconds"),
        body.get("while_waiting") or "release",
        None if cost is None else orjson.dumps(cost).decode(),
        body.get("unit") or budget or "",
        unit_row,
        _stored_breaker(body.get("breaker")),
    )
    regroups = bool(old_rows) and (
        list(old_rows[0]["fair"]) != fair
        or orjson.loads(old_rows[0]["cost"] or b"null") != cost
        or old_rows[0]["budget"] != unit_row
    )
    return Stored(rows[0]["id"], regroups)


async def _unit_of_budgets(tx: Transaction, unit: str, definition: int) -> int:
    """Return the id of the row that all limits by budgets of a unit share."""
    [row] = await tx.fetch(UNIT_OF_BUDGETS, unit, definition)
    await tx.fetch(NAME_UNIT, row["id"])
    return int(row["id"])


def _stored_cost(cost: float | str | None) -> dict[str, Any] | None:
    """Return a cost with its terms, as admission reads it."""
    if cost is None:
        return None
    return {"text": cost, "terms": [list(term) for term in cost_terms(cost)]}


def _stored_breaker(breaker: dict[str, Any] | None) -> str | None:
    """Return a breaker with its defaults as JSON, as admission reads it."""
    return None if breaker is None else orjson.dumps(Breaker.model_validate(breaker).thresholds()).decode()


async def drop_undeclared(tx: Transaction, documents: Sequence[Document]) -> list[str]:
    """Remove the limits that were declared with these actions and workflows, and are not in `documents` any more.
    Return their refs."""
    owners = [d.ref for d in documents if d.kind in ("action", "workflow")]
    declared = [d.ref for d in documents if d.kind == "limit"]
    return [row["ref"] for row in await tx.fetch(DROP_UNDECLARED, owners, declared)]


async def drop(tx: Transaction, kind: str, ref: str) -> bool:
    """Remove a declared limit, or one that is set by hand (`kind`). Holders of its slots go on. Return False if it
    does not exist."""
    return await catalog.delete(tx, kind, ref)


async def regroup(tx: Transaction, stored: Sequence[Stored], namespaces: Sequence[int]) -> None:
    """Check waiting executions again after limits changed. An execution under other limits than before is put in line
    again, at its old place. Where only numbers changed, executions start that have room now. Call it in the
    transaction of the change, with the placement locked exclusively."""
    turned = [limit.id for limit in stored if limit.regroups]
    again = set(namespaces)
    if turned:
        again |= {row["id"] for row in await tx.fetch(OF_LIMITS, turned)}
    await tx.fetch(CHANGED, sorted(again), [limit.id for limit in stored])


@dataclass(frozen=True, slots=True)
class LimitInForce:
    """A limit that is in force."""

    ref: str
    scope: str
    max: int | None
    by: Annotated[
        list[str],
        Field(
            description="The parameters and labels (`labels.customer`) by which slots are counted: each combination of values "
            "has its own slots. Empty: all are counted together."
        ),
    ]
    fair: Annotated[
        list[str],
        Field(
            description="The parameters and labels whose values take turns: the long queue of one customer does not "
            "delay another customer. Empty: first come, first served."
        ),
    ]
    when_full: Annotated[
        str,
        Field(
            description="The treatment of a new execution if no slot is free. `enqueue`: it waits. "
            "`cancel_new`: it is cancelled. `cancel_running`: the oldest one is cancelled."
        ),
    ]
    max_waiting: Annotated[
        int | None,
        Field(
            description="The number of executions that may wait, for each combination of `by`. Further ones "
            "are cancelled. null: no bound."
        ),
    ]
    rate_count: int | None
    rate_seconds: float | None
    while_waiting: Annotated[
        str,
        Field(
            description="The fate of a slot while its execution waits: for an answer, for an end from outside, or as "
            "a durable function. `release` or `keep`."
        ),
    ]
    cost: Annotated[
        str | None,
        Field(
            description="The cost of an execution: a number, or a sum of parameters; null: each execution counts as 1."
        ),
    ]
    unit: Annotated[str, Field(description="The unit of the cost, such as tokens. Empty: no unit.")]
    budget: Annotated[
        bool,
        Field(
            description="True if executions are also bounded by the budget of their tree in the unit of the limit."
        ),
    ]
    breaker: Annotated[
        JsonTextOrNull,
        Field(
            description="The thresholds, if it is a breaker: failures, of, within (seconds), probe (seconds), "
            "counts_running; else null."
        ),
    ]
    by_hand: Annotated[
        bool,
        Field(
            description="True: it was set by hand, and overrides what is declared. False: it is in force as declared."
        ),
    ]
    declared: Annotated[
        JsonTextOrNull, Field(description="The declared limit; null if definitions declare none.")
    ]
    held: int
    used: Annotated[
        float | None,
        Field(
            description="The costs of the taken slots together; null: the limit counts executions and not costs."
        ),
    ]
    waiting: int
    covers: Annotated[
        int,
        Field(
            description="The number of actions and tasks under this limit that have had an execution. They are counted for "
            "each tenant."
        ),
    ]


IN_FORCE = """
select c.ref, l.scope, nullif(l.max, 2147483647) as max, l.by, l.fair, l.when_full, l.max_waiting, l.rate_count,
    l.rate_seconds, l.while_waiting, l.cost ->> 'text' as cost, l.unit, l.budget is not null as budget,
    l.breaker::text as breaker,
    c.kind = 'limit_by_hand' as by_hand,
    d.body::text as declared, coalesce(h.held, 0) as held,
    case when l.cost is not null then coalesce(h.used, 0)::float8 end as used, coalesce(s.waiting, 0) as waiting,
    (select count(*) from namespace n where l.id = any (n.limits)) as covers
from catalog c
join concurrency_limit l on l.ref = c.ref and l.definition_id = c.definition_id
left join catalog o on o.kind = 'limit' and o.ref = c.ref
left join definition d on d.id = o.definition_id
left join (select limit_id as id, count(*) as held, sum(coalesce(cost, 1)) as used from slot group by 1) h on h.id = l.id
left join (
    select gate_limit as id, sum(n)::bigint as waiting
    from lane cross join lateral (select count(*) as n from waiter where waiter.lane = lane.id) w
    where gate_kind = 'limit' group by 1
) s on s.id = l.id
where ($1::text is null or c.ref = $1) and (c.kind = 'limit_by_hand'
    or c.kind = 'limit' and not exists (select from catalog b where b.kind = 'limit_by_hand' and b.ref = c.ref))
order by c.ref
"""


async def in_force(session: Session, ref: str | None = None) -> list[LimitInForce]:
    """Return all limits in force by ref, or the one with this ref."""
    return rows_as(LimitInForce, await session.fetch(IN_FORCE, ref))


@dataclass(frozen=True, slots=True)
class LimitTotals:
    """The counts of a limit since an instant, at most a day ago."""

    ref: str
    enqueued: Annotated[int, Field(description="The number of attempts that requested a slot.")]
    admitted: Annotated[int, Field(description="The number of attempts that got a slot.")]
    completed: Annotated[
        int, Field(description="The number of attempts that released their slot, whatever their outcome.")
    ]
    held: int
    waiting: int
    since: Annotated[datetime, Field(description="The instant from which on attempts are counted.")]


TOTALS = """
with of_limit as (
    select l.id, c.ref from catalog c
    join concurrency_limit l on l.ref = c.ref and l.definition_id = c.definition_id
    where ($1::text is null or c.ref = $1) and (c.kind = 'limit_by_hand'
        or c.kind = 'limit' and not exists (select from catalog b where b.kind = 'limit_by_hand' and b.ref = c.ref))
), let_in as (
    select a.limit_id, count(*) as n from admission a join of_limit o on o.id = a.limit_id
    where a.admitted_at >= $2 group by 1
), holding as (
    -- `recent` counts slots and not admissions: an execution has an admission for each of its attempts, and only the last
    -- attempt holds the slot.
    select s.limit_id, count(*) as n, count(*) filter (where exists (
        select from admission a where a.limit_id = s.limit_id and a.group_value = s.group_value
            and a.execution_id = s.execution_id and a.admitted_at >= $2)) as recent
    from slot s join of_limit o on o.id = s.limit_id group by 1
), in_line as (
    select gate_limit as id, sum(n)::bigint as n
    from lane cross join lateral (select count(*) as n from waiter where waiter.lane = lane.id) w
    where gate_kind = 'limit' group by 1
)
select o.ref, coalesce(i.n, 0) + coalesce(w.n, 0) as enqueued, coalesce(i.n, 0) as admitted,
    coalesce(i.n, 0) - coalesce(h.recent, 0) as completed, coalesce(h.n, 0) as held, coalesce(w.n, 0) as waiting,
    $2::timestamptz as since
from of_limit o left join let_in i on i.limit_id = o.id left join holding h on h.limit_id = o.id
left join in_line w on w.id = o.id
order by o.ref
"""
TOTALS_HOURS = 24
"""The hours for which admissions are kept at the least."""


async def totals(session: Session, since: datetime, ref: str | None = None) -> list[LimitTotals]:
    """Return the totals of all limits in force by ref, or of the limit of that ref. Admissions are kept for a day."""
    return rows_as(LimitTotals, await session.fetch(TOTALS, ref, since))


REFS = "select distinct ref from catalog where kind in ('limit', 'limit_by_hand')"


async def refs(db: Session | Transaction) -> list[str]:
    """Return the refs of all limits."""
    return [row["ref"] for row in await db.fetch(REFS)]


WAKE = "select messages, woken from wake_keys(100)"


async def wake_keys(tx: Transaction) -> bool:
    """Handle due wake rows: promote executions that have room. Return False if none was due. Commits by itself
    (`stage_alone`): `tx` must not have run a statement."""
    [row] = await tx.stage_alone(WAKE)
    return bool(row["woken"])
