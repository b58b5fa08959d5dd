"""Requested, scheduled: which instant, which message, which worker it waits for."""

from __future__ import annotations

from typing import Any

import orjson

from penstock.operate.why import presence
from penstock.operate.why.answer import Why, count, span, why_of
from penstock.settings import Settings
from penstock.store import executions
from penstock.store.database import Row, Session
from penstock.store.queues import EXECUTION_REQUESTED

TIMER = """
select extract(epoch from due_at - clock_timestamp())::float8 as seconds, due_at from timer
where execution_id = $1 and kind = 'ready' order by due_at limit 1
"""
MESSAGE = """
select id, tries, error, extract(epoch from clock_timestamp() - created_at)::float8 as age,
    extract(epoch from due_at - clock_timestamp())::float8 as due
from outbox where queue = $1 and $2::uuid = any (ids) order by id desc limit 1
"""
BEFORE = """
select count(*) from live l join execution e on e.id = l.execution_id join namespace n on n.id = e.namespace_id
where e.status = 'scheduled' and n.queue = $1 and (e.ready_at, e.id) < ($2, $3)
"""
SINCE = "select extract(epoch from clock_timestamp() - $1::timestamptz)::float8"
PAUSED = "select from paused_workflow where execution_id = $1"
LATE = 5.0
"""Seconds after which a message that is not published is in trouble."""


async def requested(session: Session, row: Row, settings: Settings) -> Why:
    if row["parent"] is not None and await session.fetch(PAUSED, row["parent"]):
        says = f"Its workflow is paused. Resume it with: penstock resume {row['parent']}"
        return why_of(row, "paused", says, workflow=row["parent"])
    timers = await session.fetch(TIMER, row["id"])
    if timers and timers[0]["seconds"] > 0:
        return await _timed(session, row, timers[0])
    alive = await presence.executors(session, settings)
    message = await _message(session, row, EXECUTION_REQUESTED)
    facts: dict[str, Any] = {"executors": alive, "message": message}
    if timers:
        facts["due"] = timers[0]["due_at"]
    if not alive:
        return why_of(row, "outage", presence.NO_EXECUTOR, **facts)
    if message is not None and (trouble := _trouble(message, settings)):
        return why_of(row, "outage", trouble, **facts)
    [[age]] = await session.fetch(SINCE, row["ready_at"])
    if message is None and not timers and age > settings.restage_age:
        says = (
            f"Ready for {span(age)}, and no message of it waits here. If the broker lost it, an executor stages it again "
            f"after {span(settings.restage_age)}."
        )
        return why_of(row, "message", says, **facts)
    return why_of(
        row, "message", f"Ready for {span(age)}: an executor is about to schedule it.", **facts, seconds=age
    )


async def _timed(session: Session, row: Row, timer: Row) -> Why:
    when = f"in {span(timer['seconds'])}"
    facts: dict[str, Any] = {
        "seconds": timer["seconds"],
        "due": timer["due_at"],
        "failures": row["failures"],
    }
    past = await executions.attempts(session, row["id"])
    last = past[-1] if past else None
    if row["attempt"] == 0 or last is None:
        says = f"It was asked to start later: {when}."
        return why_of(row, "timer", says, **facts, timer="not_before")
    error = orjson.loads(last["error"]) if last["error"] else None
    if error is None or "carry" in error:
        return why_of(
            row, "timer", f"Its action put itself off; it runs again {when}.", **facts, timer="defer"
        )
    facts["error"] = error
    says = f"Attempt {last['attempt']} failed ({error.get('type')}: {error.get('message')}); the next one begins {when}."
    return why_of(row, "timer", says, **facts, timer="retry")


async def scheduled(session: Session, row: Row, settings: Settings) -> Why:
    found = await presence.workers(session, row, settings)
    message = await _message(session, row, row["queue"])
    [[age]] = await session.fetch(SINCE, row["ready_at"])
    facts: dict[str, Any] = {
        "route": row["queue"],
        "workers": dict(found),
        "message": message,
        "seconds": age,
    }
    if not found["able"]:
        return why_of(row, "worker", presence.missing(row, found), **facts)
    if message is not None and settings.broker_url is not None and (trouble := _trouble(message, settings)):
        return why_of(row, "outage", trouble, **facts)
    before = int((await session.fetch(BEFORE, row["queue"], row["ready_at"], row["id"]))[0][0])
    facts["before"] = before
    able = f"{count(found['able'], 'worker')} that could run it"
    if found["busy"] >= found["slots"]:
        says = (
            f"The {able} had all {count(found['slots'], 'slot')} taken at the last heartbeat; {before} stand before it on "
            f"{row['queue']}."
        )
        return why_of(row, "route", says, **facts)
    if message is not None and message["due"] > 0 and settings.broker_url is None:
        told = message["error"] or "it had no slot"
        says = f"A worker handed it back ({told}); it is offered again in {span(message['due'])}."
        return why_of(row, "route", says, **facts)
    if message is None and age > settings.restage_age and not before:
        says = (
            f"On its route for {span(age)} with {able}, and not taken. If the broker lost its message, an executor stages it "
            f"again after {span(settings.restage_age)}."
        )
        return why_of(row, "route", says, **facts)
    says = f"On its way to {able}, for {span(age)}; {before} stand before it on {row['queue']}."
    return why_of(row, "route", says, **facts)


async def _message(session: Session, row: Row, queue: str) -> dict[str, Any] | None:
    rows = await session.fetch(MESSAGE, queue, row["id"])
    return dict(rows[0]) if rows else None


def _trouble(message: dict[str, Any], settings: Settings) -> str | None:
    """Why a staged message does not get on, if it does not."""
    if settings.broker_url is None or (not message["tries"] and message["age"] < LATE):
        return None
    tried = f", tried {count(message['tries'], 'time')}" if message["tries"] else ""
    why = f" ({message['error']})" if message["error"] else ""
    return (
        f"Its message waits for the broker for {span(message['age'])}{tried}{why}: RabbitMQ is away, full, or lacks the queue. "
        "It goes out as soon as the broker takes it; `penstock doctor` tells more."
    )
