"""The place of a queued execution: the limit that it waits for, the number of executions before it, and the holders
of the slots."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from penstock.store.session.database import Session
from penstock.store.session.rows import first_as, rows_as


@dataclass(frozen=True, slots=True)
class LinePlace:
    """A place in line. `gate_kind` says what the lane waits for: `limit` (a key), `worker` (a live worker of its route)
    or `regroup` (lanes under its limits are being regrouped). Executions are ordered by `rank` (minus the priority), then
    by `turn` (the round of their group under `fair_limit`), then by `ready_at`. `waited` is the wait in line, and `away`
    the time without a live worker, both in seconds."""

    lane: UUID
    rank: int
    turn: int
    ready_at: datetime
    fair_group: str | None
    gate_kind: str
    gate_limit: int | None
    gate_group: str | None
    fair_limit: int | None
    waited: float
    away: float | None


PLACE = """
select w.lane, w.rank, w.turn, w.ready_at, w.fair_group, l.gate_limit, l.gate_group, l.fair_limit,
    case when l.gate_limit = any (regrouping_limits()) then 'regroup' else l.gate_kind end as gate_kind,
    extract(epoch from clock_timestamp() - w.since)::float8 as waited,
    extract(epoch from clock_timestamp() - n.away_since)::float8 as away
from waiter w join lane l on l.id = w.lane join namespace n on n.id = l.namespace_id
where w.execution_id = $1
"""


async def place(session: Session, execution: UUID) -> LinePlace | None:
    """Return the place of a queued execution in its lane; None if it has just left the lane."""
    return first_as(LinePlace, await session.fetch(PLACE, execution))


AHEAD = """
select count(*) as count from lane l join waiter w on w.lane = l.id
where l.gate_limit = $1 and l.gate_group = $2
    and (w.rank, case when l.id = $3 or l.fair_limit = $1 then w.turn else 0 end, w.ready_at, w.execution_id)
    < ($4::smallint, case when l.id = $3 or $5::boolean then $6::bigint else 0 end, $7::timestamptz, $8::uuid)
"""


async def ahead(session: Session, execution: UUID, place: LinePlace) -> int:
    """Return the number of executions that come before this place at its key."""
    rows = await session.fetch(
        AHEAD,
        place.gate_limit,
        place.gate_group,
        place.lane,
        place.rank,
        place.fair_limit == place.gate_limit,
        place.turn,
        place.ready_at,
        execution,
    )
    return int(rows[0]["count"])


@dataclass(frozen=True, slots=True)
class Pace:
    """The number of executions admitted since the lane formed, and the number admitted per second."""

    admitted: int | None
    per_second: float | None


PACE = """
select sum(admitted)::bigint as admitted,
    sum(admitted)::float8 / greatest(extract(epoch from clock_timestamp() - min(began_at))::float8, 1) as per_second
from lane where gate_limit = $1 and gate_group = $2
"""


async def pace(session: Session, place: LinePlace) -> Pace:
    """Return the pace of admission over all lanes of the same key."""
    return rows_as(Pace, await session.fetch(PACE, place.gate_limit, place.gate_group))[0]


@dataclass(frozen=True, slots=True)
class KeyLimit:
    """A key and its limit: at most `max` executions may hold it (None: any number), and `held` do. `next_look`:
    seconds until its rate is checked again. `group_value`: the values of the parameters that it is grouped by, as
    text. Under a limit with a cost, the execution needs `needs` of the `unit`, and `room` is what it could get now.
    `budget` is the amount of the tree's budget, if that bounds it. `breaker`: the limit is a breaker."""

    limit_id: int
    group_value: str
    ref: str
    max: int | None
    by: list[str]
    rate_count: int | None
    rate_seconds: float | None
    held: int
    next_look: float | None
    unit: str
    breaker: bool
    budget: float | None
    needs: float | None
    room: float | None


LIMITS = """
select k.limit_id, k.group_value, l.ref, nullif(l.max, 2147483647) as max, l.by, l.rate_count, l.rate_seconds,
    (select count(*) from slot s where s.limit_id = k.limit_id and s.group_value = k.group_value) as held,
    (select extract(epoch from min(w.at) - clock_timestamp())::float8 from wake w
     where w.limit_id = k.limit_id and w.group_value = k.group_value) as next_look,
    l.unit, l.breaker is not null as breaker,
    (select b.amount from budget b where l.budget = l.id and b.owner::text = k.group_value and b.unit = l.unit)::float8
        as budget,
    case when l.budget is not null then k.cost::float8
        when l.cost is not null then least(k.cost, l.max, coalesce(l.rate_count, l.max))::float8 end as needs,
    case when l.budget is not null then (
        select b.amount - (select coalesce(sum(coalesce(y.spent, y.reserved)), 0) from budget_entry y
                           where y.owner = b.owner and y.unit = b.unit)
        from budget b where b.owner::text = k.group_value and b.unit = l.unit)::float8
    when l.cost is not null then least(
        l.max - (select coalesce(sum(coalesce(s.cost, 1)), 0) from slot s
                 where l.max < 2147483647 and s.limit_id = k.limit_id and s.group_value = k.group_value),
        l.rate_count - (select coalesce(sum(coalesce(a.cost, 1)), 0) from admission a
                        where a.limit_id = k.limit_id and a.group_value = k.group_value and a.rated
                            and a.admitted_at > clock_timestamp() - make_interval(secs => l.rate_seconds)
                            and a.admitted_at <= clock_timestamp() + make_interval(secs => l.rate_seconds)))::float8 end as room
from lane cross join waiter w cross join lateral unnest(lane.keys, w.costs) k (limit_id, group_value, cost)
join concurrency_limit l on l.id = k.limit_id
where lane.id = $1 and w.lane = lane.id and w.execution_id = $2 order by l.id
"""


async def limits(session: Session, lane: UUID, execution: UUID) -> list[KeyLimit]:
    """Return the keys that an execution of this lane needs, with their limits."""
    return rows_as(KeyLimit, await session.fetch(LIMITS, lane, execution))


@dataclass(frozen=True, slots=True)
class SlotHolder:
    """An execution that has held a slot for `seconds`."""

    id: UUID
    action: str
    status: str
    worker: str | None
    seconds: float


HOLDERS = """
select s.execution_id as id, n.action, e.status, p.name as worker,
    extract(epoch from clock_timestamp() - s.admitted_at)::float8 as seconds
from slot s join execution e on e.id = s.execution_id join namespace n on n.id = e.namespace_id
left join process p on p.id = e.claim
where s.limit_id = $1 and s.group_value = $2 order by s.admitted_at, s.execution_id limit $3
"""


async def holders(session: Session, key: KeyLimit, limit: int = 10) -> list[SlotHolder]:
    """Return at most `limit` holders of this key, the longest holder first."""
    return rows_as(SlotHolder, await session.fetch(HOLDERS, key.limit_id, key.group_value, limit))
