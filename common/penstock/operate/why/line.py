"""Queued: which limit it waits for, who is before it, who holds the slots, and for how long about."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson

from penstock.operate.why import presence
from penstock.operate.why.answer import Why, count, ordinal, span, why_of
from penstock.settings import Settings
from penstock.store.database import Row, Session

PLACE = """
select w.lane, w.rank, w.turn, w.ready_at, w.fair_group, l.gate_kind, l.gate_limit, l.gate_group, l.fair_limit,
    extract(epoch from clock_timestamp() - w.since)::float8 as waited,
    extract(epoch from clock_timestamp() - n.away_since)::float8 as away
from waiter w join lane l on l.id = w.lane join namespace n on n.id = l.namespace_id
where w.execution_id = $1
"""
AHEAD = """
select count(*) from lane l join waiter w on w.lane = l.id
where l.gate_limit = $1 and l.gate_group = $2
    and (w.rank, case when l.id = $3 or l.fair_limit = $1 then w.turn else 0 end, w.ready_at, w.execution_id)
    < ($4::smallint, case when l.id = $3 or $5::boolean then $6::bigint else 0 end, $7::timestamptz, $8::uuid)
"""
PACE = """
select sum(admitted)::bigint as admitted,
    sum(admitted)::float8 / greatest(extract(epoch from clock_timestamp() - min(began_at))::float8, 1) as per_second
from lane where gate_limit = $1 and gate_group = $2
"""
LIMITS = """
select l.id, l.ref, nullif(l.max, 2147483647) as max, l.by, l.rate_count, l.rate_seconds, k.group_value,
    (select count(*) from slot s where s.limit_id = k.limit_id and s.group_value = k.group_value) as held,
    (select extract(epoch from min(w.at) - clock_timestamp())::float8 from wake w
     where w.limit_id = k.limit_id and w.group_value = k.group_value) as next_look
from lane cross join unnest(keys) k join concurrency_limit l on l.id = k.limit_id
where lane.id = $1 order by l.id
"""
HOLDERS = """
select s.execution_id as id, n.action, e.status, p.name as worker,
    extract(epoch from clock_timestamp() - s.admitted_at)::float8 as seconds
from slot s join execution e on e.id = s.execution_id join namespace n on n.id = e.namespace_id
left join process p on p.id = e.claim
where s.limit_id = $1 and s.group_value = $2 order by s.admitted_at, s.execution_id limit 10
"""
HISTORY = 3
"""So many must have been let in before a guess is made."""


async def queued(session: Session, row: Row, settings: Settings) -> Why:
    places = await session.fetch(PLACE, row["id"])
    if not places:
        return why_of(row, "message", "It has just left the line: ask again.")
    place = places[0]
    limits = await session.fetch(LIMITS, place["lane"])
    keys = [{"limit": limit["ref"], "group": group_of(limit["group_value"], limit["by"])} for limit in limits]
    facts: dict[str, Any] = {"waited": place["waited"], "keys": keys, "priority": -place["rank"]}
    if place["gate_kind"] == "regroup":
        says = "Its limits have changed, and it is being put in line anew, at its old place."
        if not await presence.executors(session, settings):
            return why_of(row, "outage", f"{says} {presence.NO_EXECUTOR}", **facts)
        return why_of(row, "regroup", says, **facts)
    if place["gate_kind"] == "worker":
        found = await presence.workers(session, row, settings)
        facts |= {"workers": dict(found), "route": row["queue"]}
        if found["able"]:
            says = "A worker has come, and it is about to be let in."
            return why_of(row, "worker", says, **facts)
        says = f"{presence.missing(row, found)} It lets others pass meanwhile, and keeps its place."
        return why_of(row, "worker", says, **facts)
    return await _before(session, row, settings, place, limits, facts)


async def _before(
    session: Session, row: Row, settings: Settings, place: Row, limits: Sequence[Row], facts: dict[str, Any]
) -> Why:
    """It stands before a key that is full, or was a moment ago."""
    gate = place["gate_limit"], place["gate_group"]
    [limit] = [limit for limit in limits if limit["id"] == place["gate_limit"]]
    others = [limit["ref"] for limit in limits if limit["id"] != place["gate_limit"]]
    holders = [dict(holder) for holder in await session.fetch(HOLDERS, *gate)]
    position = 1 + int((await session.fetch(AHEAD, *gate, place["lane"], *_place_of(row, place)))[0][0])
    seconds = await _guess(session, gate, position)
    facts |= {
        "limit": limit["ref"],
        "max": limit["max"],
        "group": group_of(limit["group_value"], limit["by"]),
        "also_needs": others or None,
        "position": position,
        "held": limit["held"],
        "holders": holders,
        "about_seconds": seconds,
    }
    whose = "".join(f" for {name}={_short(value)}" for name, value in (facts["group"] or {}).items())
    turn = f"it is {ordinal(position)} in line"
    if place["fair_group"] is not None:
        turn += ", where the groups take turns"
    about = "" if seconds is None else f" At the pace so far its turn comes in about {span(seconds)}."
    also = f" It needs a slot of {' and '.join(others)} as well." if others else ""
    if limit["max"] is not None and limit["held"] >= limit["max"]:
        says = f"Waits for {_held(limit, whose, turn, holders)}.{about}{also}"
        return why_of(row, "limit", says, **facts)
    facts["next_look"] = limit["next_look"]
    if limit["rate_count"] is not None and (limit["next_look"] or 0) > 0:
        says = (
            f"Waits for the rate of {limit['ref']}{whose} ({limit['rate_count']} in {span(limit['rate_seconds'])}): {turn}, "
            f"and the next may start in {span(limit['next_look'])}.{about}{also}"
        )
        return why_of(row, "rate", says, **facts)
    if not await presence.executors(session, settings):
        return why_of(
            row, "outage", f"There is room under {limit['ref']}{whose}. {presence.NO_EXECUTOR}", **facts
        )
    return why_of(
        row, "limit", f"There is room under {limit['ref']}{whose}, and it is about to be let in.", **facts
    )


def _held(limit: Row, whose: str, turn: str, holders: list[dict[str, Any]]) -> str:
    oldest = holders[0]
    who = f" on {oldest['worker']}" if oldest["worker"] else ""
    since = f"for {span(oldest['seconds'])}{who}"
    if limit["max"] == limit["held"] == 1:
        return f"the slot of {limit['ref']}{whose}: {turn}; {oldest['id']} ({oldest['action']}) holds it, {since}"
    return (
        f"one of {count(limit['max'], 'slot')} of {limit['ref']}{whose}: {turn}; {count(limit['held'], 'execution')} "
        f"{'holds' if limit['held'] == 1 else 'hold'} a slot, the oldest ({oldest['id']}, {oldest['action']}) {since}"
    )


def _place_of(row: Row, place: Row) -> tuple[Any, ...]:
    return (
        place["rank"],
        place["fair_limit"] == place["gate_limit"],
        place["turn"],
        place["ready_at"],
        row["id"],
    )


async def _guess(session: Session, gate: tuple[int, str], position: int) -> float | None:
    """Seconds until its turn, at the pace since the line formed; None without a history."""
    [pace] = await session.fetch(PACE, *gate)
    return position / pace["per_second"] if (pace["admitted"] or 0) >= HISTORY else None


def group_of(values: str, by: list[str]) -> dict[str, Any] | None:
    """The values of the parameters that a limit is grouped by, of one of its keys. None where it is not grouped; long
    values are not known, only a hash of them."""
    if not by:
        return None
    try:
        return dict(zip(by, orjson.loads(values), strict=True))
    except orjson.JSONDecodeError:
        return dict.fromkeys(by, values)


def _short(value: Any) -> str:
    return "(none)" if value is None else str(value)
