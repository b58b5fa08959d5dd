"""The answer for a queued execution: its limit, the executions before it, the holders of the slots, and the expected
wait."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import orjson

from penstock.operate.why import presence
from penstock.operate.why.answer import Reason, Why, count, ordinal, span, why_of
from penstock.settings import Settings
from penstock.store.admission import admission_line, breakers
from penstock.store.admission.admission_line import KeyLimit, LinePlace, SlotHolder
from penstock.store.admission.breakers import BreakerState
from penstock.store.executions.executions import Execution
from penstock.store.session.database import Session

HISTORY = 3
"""The number of admissions that an estimate of the wait needs."""


async def queued(session: Session, row: Execution, settings: Settings) -> Why:
    place = await admission_line.place(session, row.id)
    if place is None:
        return why_of(row, "message", "has just left the queue, and is about to be sent to a worker")
    limits = await admission_line.limits(session, place.lane, row.id)
    keys = [{"limit": limit.ref, "group": group_of(limit.group_value, limit.by)} for limit in limits]
    facts: dict[str, Any] = {"waited": place.waited, "keys": keys, "priority": -place.rank}
    if place.gate_kind == "regroup":
        changed = (
            "Limits have changed. An executor will sort the queue again. This execution keeps its place."
        )
        if not await presence.executors(session, settings):
            return why_of(row, "outage", presence.NO_EXECUTOR, changed, presence.START_EXECUTOR, **facts)
        clause = "waits for an executor to sort its queue again, since limits have changed"
        return why_of(row, "regroup", clause, "It keeps its place.", **facts)
    if place.gate_kind == "worker":
        workers = await presence.workers(session, row, settings)
        facts |= {"workers": asdict(workers), "route": row.queue}
        if workers.able:
            return why_of(
                row, "worker", "is about to leave the queue: a worker that can run it is online now", **facts
            )
        passed = "It keeps its place in line. Executions that have a worker can start before it."
        return why_of(row, "worker", *await presence.missing(session, row, workers), passed, **facts)
    return await _before(session, row, settings, place, limits, facts)


async def _before(
    session: Session,
    row: Execution,
    settings: Settings,
    place: LinePlace,
    limits: Sequence[KeyLimit],
    facts: dict[str, Any],
) -> Why:
    """Explain the wait before a key that is full, or was a moment ago. Each query has its own snapshot, so their
    results may differ."""
    limit = gate_of(place, limits)
    if limit is None:
        return why_of(
            row, "regroup", "waits for a new place in line, since its limits have just changed", **facts
        )
    further_limits = [entry for entry in limits if entry.limit_id != place.gate_limit]
    holders = await admission_line.holders(session, limit)
    position = 1 + await admission_line.ahead(session, row.id, place)
    seconds = await _guess(session, place, position)
    facts |= {
        "limit": limit.ref,
        "max": limit.max,
        "group": group_of(limit.group_value, limit.by),
        "also_needs": [entry.ref for entry in further_limits] or None,
        "position": position,
        "held": limit.held,
        "holders": [asdict(holder) for holder in holders],
        "about_seconds": seconds,
    }
    whose = "".join(f" for {name}={_short(value)}" for name, value in (facts["group"] or {}).items())
    turns = "" if place.fair_group is None else ", and the groups of this limit take turns"
    details = [f"This execution is {ordinal(position)} in line{turns}."]
    if seconds is not None:
        details.append(f"At the current pace it starts in about {span(seconds)}.")
    if further_limits:
        name = "limit" if len(further_limits) == 1 else "limits"
        details.append(
            f"It also needs a slot of the {name} {' and '.join(map(_with_slots, further_limits))}."
        )
    if limit.breaker:
        rows = [
            row
            for row in await breakers.states(session, limit.ref, 1000)
            if row.group_value == limit.group_value
        ]
        if rows and (rows[0].state != "closed" or rows[0].counts_running):
            facts = {**facts, "breaker": asdict(rows[0]), "holders": None}
            clause, probe = _broken(rows[0], whose)
            return why_of(row, "breaker", clause, *probe, *details, **facts)
    if limit.needs is not None and limit.room is not None and (limit.room < limit.needs or position > 1):
        facts |= {
            "needs": limit.needs,
            "left": limit.room,
            "unit": limit.unit or None,
            "next_look": limit.next_look,
        }
        because: Reason = "limit" if limit.rate_count is None else "rate"
        if limit.budget is not None:
            details.insert(0, f"Raise the budget with: penstock raise-budget {row.id} {limit.unit} AMOUNT")
        return why_of(row, because, _costs(limit, whose), *details, **facts)
    if limit.max is not None and is_full(limit):
        clause = f"waits for a slot of the limit {limit.ref}{whose}"
        return why_of(row, "limit", clause, *_held(limit, limit.max, holders), *details, **facts)
    facts["next_look"] = limit.next_look
    if limit.rate_count is not None and (limit.next_look or 0) > 0:
        clause = (
            f"waits for the rate limit {limit.ref}{whose} ({count(limit.rate_count, 'start')} in "
            f"{span(limit.rate_seconds)}): "
            f"the next start is allowed in {span(limit.next_look)}"
        )
        return why_of(row, "rate", clause, *details, **facts)
    room = f"The limit {limit.ref}{whose} has room."
    if not await presence.executors(session, settings):
        return why_of(row, "outage", presence.NO_EXECUTOR, room, presence.START_EXECUTOR, **facts)
    clause = f"is about to leave the queue: the limit {limit.ref}{whose} has room"
    return why_of(row, "limit", clause, **facts)


def gate_of(place: LinePlace, limits: Sequence[KeyLimit]) -> KeyLimit | None:
    """Return the limit that a place in line waits for; None if its limits have just changed."""
    return next((entry for entry in limits if entry.limit_id == place.gate_limit), None)


def is_full(limit: KeyLimit) -> bool:
    """Return whether all slots of a limit are held. A limit with a cost, or a budget, has no slots."""
    return limit.needs is None and limit.max is not None and limit.held >= limit.max


def _with_slots(limit: KeyLimit) -> str:
    """Return the name of a limit, with the slots that are in use if it has slots."""
    if limit.needs is not None or limit.max is None:
        return limit.ref
    return f"{limit.ref} ({limit.held} of {limit.max} in use)"


def _broken(breaker: BreakerState, whose: str) -> tuple[str, list[str]]:
    """Explain the wait at a breaker that is open, or releases what has waited: as a clause, and sentences about its end."""
    name = breaker.ref.removesuffix(".breaker")
    if breaker.state == "releasing":
        calls = count(breaker.allowed or 0, "call")
        return f"waits because the breaker of {name}{whose} releases waiting executions gradually", [
            f"The breaker lets at most {calls} run at once until it is closed."
        ]
    if breaker.state == "closed":
        return (
            f"waits for the breaker of {name}{whose}: failed and running calls have reached its threshold of "
            f"{breaker.failures}, and {breaker.failed} of the last {breaker.attempts} attempts failed"
        ), []
    since = "" if breaker.since is None else f" since {breaker.since:%Y-%m-%d %H:%M:%S} UTC"
    if breaker.by_whom is not None:
        reason = f" ({breaker.reason})" if breaker.reason else ""
        cause = f"{breaker.by_whom} opened it{reason}"
    else:
        cause = f"{breaker.failed} of the last {breaker.attempts} attempts failed"
    if breaker.probe_in is None:
        probe = f"Close the breaker with: penstock breaker close {name}"
    elif breaker.probe_in > 0:
        probe = f"The next probe of the breaker starts in {span(breaker.probe_in)}."
    else:
        probe = "A probe of the breaker is running."
    return f"waits because the breaker of {name}{whose} is open{since}: {cause}", [probe]


def _costs(limit: KeyLimit, whose: str) -> str:
    """Explain the wait for a share of a limit with a cost."""
    unit = f" {limit.unit}" if limit.unit else ""
    if limit.budget is not None:
        remainder = f"{_amount(max(0.0, limit.room or 0.0))} of {_amount(limit.budget)} are left"
        return f"waits for the budget of its execution tree: it needs {_amount(limit.needs)}{unit}, and {remainder}"
    whole = limit.rate_count if limit.rate_count is not None else limit.max
    where = "" if limit.rate_seconds is None else f" in {_window(limit.rate_seconds)}"
    remainder = f"{_amount(max(0.0, limit.room or 0.0))} of {whole:,} are left{where}"
    refill = f", refilled in {span(limit.next_look)}" if (limit.next_look or 0) > 0 else ""
    return f"waits for the limit {limit.ref}{whose}: it needs {_amount(limit.needs)}{unit}, and {remainder}{refill}"


def _amount(value: float | None) -> str:
    return f"{value or 0:,.6f}".rstrip("0").rstrip(".")


def _window(seconds: float) -> str:
    names = {1.0: "this second", 60.0: "this minute", 3600.0: "this hour", 86_400.0: "this day"}
    return names.get(seconds, f"the last {span(seconds)}")


def _held(limit: KeyLimit, maximum: int, holders: list[SlotHolder]) -> list[str]:
    """Return sentences about the executions that hold the slots of a full limit."""
    if not holders:  # all holders have ended since the place in line was read
        return ["A slot has just become free."]
    oldest = holders[0]
    worker = f", on worker {oldest.worker}" if oldest.worker else ""
    duration = span(oldest.seconds)
    if maximum == limit.held == 1:
        return [f"{oldest.id} ({oldest.action}) has held the only slot for {duration}{worker}."]
    return [
        f"{limit.held} of {count(maximum, 'slot')} are in use.",
        f"{oldest.id} ({oldest.action}) has held its slot the longest: {duration}{worker}.",
    ]


async def _guess(session: Session, place: LinePlace, position: int) -> float | None:
    """Return the estimated seconds until the execution is admitted, at the pace since the line formed; None without
    enough admissions."""
    pace = await admission_line.pace(session, place)
    enough = (pace.admitted or 0) >= HISTORY
    return position / pace.per_second if enough and pace.per_second else None


def group_of(values: str | None, by: Sequence[str] | None) -> dict[str, Any] | None:
    """Return the parameter values of a limit's key; None if the limit is not grouped. Of long values only a hash is
    known."""
    if not by or values is None:
        return None
    try:
        return dict(zip(by, orjson.loads(values), strict=True))
    except orjson.JSONDecodeError:
        return dict.fromkeys(by, values)


def group_text(values: str | None, by: Sequence[str] | None) -> str:
    """Return a limit's key as text, such as `customer=acme`; empty if the limit is not grouped."""
    return ", ".join(f"{name}={value}" for name, value in (group_of(values, by) or {}).items())


def _short(value: Any) -> str:
    return "(none)" if value is None else str(value)
