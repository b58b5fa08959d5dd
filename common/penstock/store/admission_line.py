"""Where an execution that is `queued` stands: before which limit, behind how many, and who holds the slots."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from penstock.store.database import Session
from penstock.store.rows import first_as, rows_as


@dataclass(frozen=True, slots=True)
class LinePlace:
    """A place in line: before the key `gate`, of the `keys` that it needs. What it is sorted by: `rank` (minus the
    priority), `turn`, `ready_at`. `waited` and `away` (since no worker lives for it) are in seconds."""

    lane: str
    rank: int
    turn: int
    ready_at: datetime
    fair_group: str | None
    gate: str
    keys: list[str]
    fair: str | None
    waited: float
    away: float | None


PLACE = """
select w.lane, w.rank, w.turn, w.ready_at, w.fair_group, l.gate, l.keys, l.fair,
    extract(epoch from clock_timestamp() - w.since)::float8 as waited,
    extract(epoch from clock_timestamp() - n.away_since)::float8 as away
from waiter w join lane l on l.id = w.lane join namespace n on n.id = l.namespace_id
where w.execution_id = $1
"""


async def place(session: Session, execution: UUID) -> LinePlace | None:
    """Where it stands; None if it has just left the line."""
    return first_as(LinePlace, await session.fetch(PLACE, execution))


AHEAD = """
select count(*) as count from lane l join waiter w on w.lane = l.id
where l.gate = $1 and (w.rank, case when l.id = $2 or l.fair = l.gate then w.turn else 0 end, w.ready_at, w.execution_id)
    < ($3::smallint, case when l.id = $2 or $4::boolean then $5::bigint else 0 end, $6::timestamptz, $7::uuid)
"""


async def ahead(session: Session, execution: UUID, place: LinePlace) -> int:
    """How many stand before it."""
    takes_turns = place.fair == place.gate
    rows = await session.fetch(
        AHEAD, place.gate, place.lane, place.rank, takes_turns, place.turn, place.ready_at, execution
    )
    return int(rows[0]["count"])


@dataclass(frozen=True, slots=True)
class Pace:
    """How many were let in since the line formed, and how many that is a second."""

    admitted: int | None
    per_second: float | None


PACE = """
select sum(admitted)::bigint as admitted,
    sum(admitted)::float8 / greatest(extract(epoch from clock_timestamp() - min(began_at))::float8, 1) as per_second
from lane where gate = $1
"""


async def pace(session: Session, gate: str) -> Pace:
    return rows_as(Pace, await session.fetch(PACE, gate))[0]


@dataclass(frozen=True, slots=True)
class KeyLimit:
    """The limit of a key: how many may hold it (None: any number), how many do, and in how many seconds its rate is
    looked at next."""

    key: str
    ref: str
    max: int | None
    by: list[str]
    rate_count: int | None
    rate_seconds: float | None
    held: int
    next_look: float | None


LIMITS = """
select x.key, l.ref, nullif(l.max, 2147483647) as max, l.by, l.rate_count, l.rate_seconds,
    (select count(*) from slot s where s.key = x.key) as held,
    (select extract(epoch from min(w.at) - clock_timestamp())::float8 from wake w where w.key = x.key) as next_look
from unnest($1::text[]) x (key) join concurrency_limit l on l.id = split_part(x.key, ':', 1)::integer
"""


async def limits(session: Session, keys: Sequence[str]) -> dict[str, KeyLimit]:
    """The limits of these keys, by key."""
    return {limit.key: limit for limit in rows_as(KeyLimit, await session.fetch(LIMITS, keys))}


@dataclass(frozen=True, slots=True)
class SlotHolder:
    """An execution that holds a slot, for so many seconds."""

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
where s.key = $1 order by s.admitted_at, s.execution_id limit 10
"""


async def holders(session: Session, key: str) -> list[SlotHolder]:
    """Who holds a slot of this key, the longest first; ten at the most."""
    return rows_as(SlotHolder, await session.fetch(HOLDERS, key))
