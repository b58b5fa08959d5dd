"""Holds: what they cover takes no worker until they are released."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated
from uuid import UUID

from pydantic import Field

from penstock.store.session.database import Session, Transaction
from penstock.store.session.rows import first_as, rows_as

KINDS = ("action", "pack", "route", "tenant")


@dataclass(frozen=True, slots=True)
class Hold:
    """A hold, which keeps an action, a pack, a route or a tenant from starting."""

    kind: Annotated[
        str,
        Field(
            description="The kind of the hold: of an action (also a workflow), a pack, a route or a tenant."
        ),
    ]
    name: Annotated[str, Field(description="The name of the held action, pack, route or tenant.")]
    reason: str | None
    by: str
    since: Annotated[datetime, Field(description="The instant at which it was created.")]
    until: Annotated[
        datetime | None,
        Field(description="The instant at which it ends by itself; null: it stays until it is released."),
    ]
    rate_count: Annotated[
        int | None,
        Field(
            description="For a hold that is being released: the number of starts within `rate_seconds`; null: it is not."
        ),
    ]
    rate_seconds: Annotated[
        float | None,
        Field(
            description="For a hold that is being released: the seconds in which `rate_count` executions "
            "start; null: it is not."
        ),
    ]
    releasing_since: Annotated[
        datetime | None,
        Field(description="The instant at which its gradual release began; null: it is not being released."),
    ]
    held: Annotated[int, Field(description="The number of held executions.")]


COLUMNS = "h.kind, h.name, h.reason, h.by, h.since, h.until, h.rate_count, h.rate_seconds, h.releasing_since"
NAMES = {
    "action": "select ref as name from catalog where kind in ('action', 'workflow') union select action from namespace",
    "pack": """
select split_part(ref, '.', 1) as name from catalog where kind in ('action', 'workflow')
union select split_part(action, '.', 1) from namespace
""",
    "route": """
select substr(queue, 6) as name from namespace where queue like 'work.%'
union select jsonb_path_query(d.body, '$.**.route ? (@.type() == "string")') #>> '{}'
from catalog c join definition d on d.id = c.definition_id
union select unnest(routes) from process
""",
    "tenant": "select split_part(name, '::', 1) as name from namespace",
}
KNOWN = {
    kind: f"select name from ({text} union select name from hold where kind = '{kind}') n order by name"
    for kind, text in NAMES.items()
}


async def names(session: Session, kind: str) -> list[str]:
    """Return the names that are known for a hold of this kind: by the applied definitions, and by what was started."""
    return [row["name"] for row in await session.fetch(KNOWN[kind])]


ALL = f"""
select {COLUMNS}, (
    select count(*) from held_execution x join namespace n on n.id = x.namespace_id
    where is_covered(h.kind, h.name, n))::integer as held
from hold h order by h.kind, h.name
"""


async def all_holds(session: Session) -> list[Hold]:
    """Return the holds, by kind and name."""
    return rows_as(Hold, await session.fetch(ALL))


NEWEST = f"select {COLUMNS}, 0 as held from hold h order by h.since desc limit $1"


async def newest(session: Session, limit: int) -> list[Hold]:
    """Return the newest holds. `held` is not counted, since that reads each held execution."""
    return rows_as(Hold, await session.fetch(NEWEST, limit))


OF_ACTION = f"""
select {COLUMNS}, 0 as held from hold h
where h.kind = 'action' and h.name = $1 or h.kind = 'pack' and h.name = split_part($1, '.', 1) order by h.since
"""


async def of_action(session: Session, ref: str) -> list[Hold]:
    """Return the holds of an action or a workflow, and of its pack. `held` is not counted."""
    return rows_as(Hold, await session.fetch(OF_ACTION, ref))


OF_ACTIONS = "select kind, name from hold where kind in ('action', 'pack') order by since"


async def of_actions(session: Session, refs: Sequence[str]) -> dict[str, str]:
    """Return the oldest hold of each held action or workflow, or of its pack, such as `pack shop`."""
    rows = await session.fetch(OF_ACTIONS) if refs else []
    held: dict[str, str] = {}
    for kind, name in rows:
        for ref in refs:
            if name == (ref if kind == "action" else ref.partition(".")[0]):
                held.setdefault(ref, f"{kind} {name}")
    return held


OF = f"""
select {COLUMNS}, 0 as held from execution e join namespace n on n.id = e.namespace_id
join hold h on is_covered(h.kind, h.name, n)
where e.id = $1 order by h.releasing_since nulls first, h.since limit 1
"""


async def hold_of(session: Session, execution: UUID) -> Hold | None:
    """Return the hold that covers an execution, without a count; None if none does."""
    return first_as(Hold, await session.fetch(OF, execution))


IS_HELD = "select from held_execution where execution_id = $1"


async def is_held(session: Session, execution: UUID) -> bool:
    return bool(await session.fetch(IS_HELD, execution))


PUT = """
insert into hold (kind, name, reason, by, until) values ($1, $2, $3, $4, $5)
on conflict (kind, name) do update set reason = excluded.reason, by = excluded.by, since = excluded.since, until = excluded.until,
    rate_count = null, rate_seconds = null, releasing_since = null, released = 0
"""
MARK = "select mark_holds(null)"


async def put(
    tx: Transaction, kind: str, name: str, reason: str | None, by: str, until: datetime | None
) -> None:
    """Insert a hold, or replace it, and mark the namespaces that it covers. The caller has locked the rules."""
    await tx.fetch(PUT, kind, name, reason, by, until)
    await tx.fetch(MARK)


REMOVE = "delete from hold where kind = $1 and name = $2 returning kind"
SLOW = """
update hold set rate_count = $3, rate_seconds = $4, releasing_since = clock_timestamp(), released = 0
where kind = $1 and name = $2 returning kind
"""


async def release(tx: Transaction, kind: str, name: str, rate: tuple[int, float] | None) -> bool:
    """Delete a hold, or begin to release what it holds at a rate (executions, seconds). Return False if it does not exist. The
    caller has locked the rules."""
    rows = await (tx.fetch(REMOVE, kind, name) if rate is None else tx.fetch(SLOW, kind, name, *rate))
    await tx.fetch(MARK)
    return bool(rows)


@dataclass(frozen=True, slots=True)
class HoldState:
    """The answer to three questions: there are `holds`, there are `new` holds (younger than some seconds), and there
    are `held` executions."""

    holds: bool
    new: bool
    held: bool


STATE = """
select exists (select from hold) as holds,
    exists (select from hold where since > clock_timestamp() - make_interval(secs => $1)) as new,
    exists (select from held_execution) as held
"""


async def state(session: Session, new_seconds: float) -> HoldState:
    return rows_as(HoldState, await session.fetch(STATE, new_seconds))[0]


WAITING = "select messages, next from hold_waiting($1, $2)"


async def hold_waiting(tx: Transaction, cursor: UUID, limit: int) -> UUID | None:
    """Hold covered executions that wait for a worker or a limit, among the next `limit` open executions after `cursor`.
    Return the id to continue after; None at the end. Commits by itself (`stage_alone`): `tx` must not have run a
    statement."""
    [row] = await tx.stage_alone(WAITING, cursor, limit)
    onward: UUID | None = row["next"]
    return onward


RELEASE = "select messages, released, over from release_held($1)"


async def release_held(tx: Transaction, limit: int) -> tuple[int, bool]:
    """Release at most `limit` executions that no hold covers any more, and of each hold with a rate as many as the rate
    allows. Return their number, and whether a hold is over. Commits by itself (`stage_alone`): `tx` must not have run a
    statement."""
    [row] = await tx.stage_alone(RELEASE, limit)
    return row["released"], row["over"]


END = "select end_holds()"


async def end_holds(tx: Transaction) -> None:
    """Delete the holds that are over. The caller has locked the rules."""
    await tx.fetch(END)
