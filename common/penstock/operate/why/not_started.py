"""The answers for requested and scheduled executions: the instant, message or worker that they wait for."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import orjson

from penstock.operate.why import presence, workflow
from penstock.operate.why.answer import Why, count, span, why_of
from penstock.operate.why.given_up import given_up
from penstock.settings import Settings
from penstock.store.admission import holds, waiting_for
from penstock.store.admission.waiting_for import AheadOnRoute, Parked, ReadyTimer, StartBurst, WaitingMessage
from penstock.store.executions import past_attempts
from penstock.store.executions.executions import Execution
from penstock.store.outbox.queues import EXECUTION_REQUESTED, WORK
from penstock.store.session import clock
from penstock.store.session.database import Session
from penstock.store.workflows import open_tasks

BROKER_TROUBLE = (
    "RabbitMQ is unreachable, has no memory or disk space left, or lacks the queue. The message is sent "
    "as soon as RabbitMQ accepts it. Find the cause with: penstock doctor"
)
LATE = 5.0
"""Seconds after which an unpublished message counts as stuck."""


async def requested(session: Session, row: Execution, settings: Settings) -> Why:
    if row.parent is not None and await waiting_for.is_paused(session, row.parent):
        first = await open_tasks.paused_first(session, row.parent)
        clause = f"waits for its workflow, which is paused{await workflow.paused_by(session, first)}"
        return why_of(row, "paused", clause, f"Resume it with: penstock resume {first}", workflow=first)
    if await holds.is_held(session, row.id):
        return await _held(session, row)
    timer = await waiting_for.timer(session, row.id)
    if timer is not None and timer.seconds > 0:
        return await _timed(session, row, timer)
    alive = await presence.executors(session, settings)
    message = await waiting_for.message(session, EXECUTION_REQUESTED, row.id)
    facts: dict[str, Any] = {"executors": alive, "message": _document(message)}
    if timer is not None:
        facts["due"] = timer.due_at
    if not alive:
        return why_of(row, "outage", presence.NO_EXECUTOR, presence.START_EXECUTOR, **facts)
    if message is not None and (trouble := _trouble(message, settings)):
        return why_of(row, "outage", trouble, BROKER_TROUBLE, **facts)
    if message is None and (letter := await given_up(session, row.id, [EXECUTION_REQUESTED], settings)):
        return why_of(row, "outage", letter[0], letter[1], **facts, dead_letter=letter[2])
    age = await clock.seconds_since(session, row.since)
    if message is None and timer is None and age > settings.restage_age:
        remedy = (
            f"If the broker lost the message, an executor sends it again after {span(settings.restage_age)}."
        )
        clause = f"has been ready for {span(age)}, but its message is not in the queue"
        return why_of(row, "message", clause, remedy, **facts)
    clause, ready = "waits for an executor to schedule it", f"It has been ready for {span(age)}."
    return why_of(row, "message", clause, ready, **facts, seconds=age)


async def _held(session: Session, row: Execution) -> Why:
    hold = await holds.hold_of(session, row.id)
    if hold is None:
        return why_of(row, "held", "waits for an executor to schedule it: its hold was released a moment ago")
    reason = f" ({hold.reason})" if hold.reason else ""
    facts: dict[str, Any] = {
        "kind": hold.kind,
        "name": hold.name,
        "by": hold.by,
        "reason": hold.reason,
        "until": hold.until,
    }
    until = f" until {hold.until:%Y-%m-%d %H:%M:%S} UTC" if hold.until is not None else ""
    clause = f"waits for the {hold.kind} {hold.name}, which is held by {hold.by}{reason}{until}"
    if hold.releasing_since is not None:
        details = [
            f"The hold is being released: {hold.rate_count} executions start every {hold.rate_seconds:g} s."
        ]
    else:
        details = [
            "It keeps its place in line.",
            f"Release the hold with: penstock release {hold.kind} {hold.name}",
        ]
    return why_of(row, "held", clause, *details, **facts)


async def _timed(session: Session, row: Execution, timer: ReadyTimer) -> Why:
    when = f"in {span(timer.seconds)}"
    facts: dict[str, Any] = {
        "seconds": timer.seconds,
        "due": timer.due_at,
        "failures": row.failures,
    }
    last = await past_attempts.latest(session, row.id)
    if last is None and (burst := await waiting_for.start_burst(session, row.id)) is not None:
        return _debounced(row, timer, burst, facts)
    if last is None:
        return why_of(
            row,
            "timer",
            f"is due to start {when}",
            f"Change the start time with: penstock reschedule {row.id} --in SECONDS",
            **facts,
            timer="not_before",
        )
    error = orjson.loads(last.error) if last.error else None
    if error is None or "carry" in error:
        clause = f"waits for its next attempt, which is due {when}: the action deferred itself"
        return why_of(row, "timer", clause, **facts, timer="defer")
    facts["error"] = error
    clause = (
        f"waits for attempt {row.attempt + 1}, which is due {when}: attempt {last.attempt} failed "
        f"({error.get('type')}: {error.get('message')})"
    )
    sooner = f"Change the start time with: penstock reschedule {row.id} --in SECONDS"
    return why_of(row, "timer", clause, sooner, **facts, timer="retry")


def _debounced(row: Execution, timer: ReadyTimer, burst: StartBurst, facts: dict[str, Any]) -> Why:
    latest = []
    if burst.latest is not None:
        latest = [f"It starts at {burst.latest:%Y-%m-%d %H:%M:%S} UTC at the latest."]
    return why_of(
        row,
        "timer",
        f"starts in {span(timer.seconds)}, unless another request with the same debounce key comes first",
        *latest,
        f"So far, {count(burst.starts, 'request shares', 'requests share')} this execution.",
        f"The execution has the parameters of the {burst.keep} request.",
        f"Start it sooner with: penstock reschedule {row.id}",
        **facts,
        timer="debounce",
        starts=burst.starts,
        first_at=burst.first_at,
        latest=burst.latest,
    )


async def scheduled(session: Session, row: Execution, settings: Settings) -> Why:
    workers = await presence.workers(session, row, settings)
    message = await waiting_for.message(session, row.open_queue, row.id)
    parked = await waiting_for.parked(session, row.open_queue, row.id)
    age = await clock.seconds_since(session, row.since)
    facts: dict[str, Any] = {
        "route": row.queue,
        "workers": asdict(workers),
        "message": _document(message),
        "parked": _document(parked),
        "seconds": age,
    }
    if not workers.able:
        return why_of(row, "worker", *await presence.missing(session, row, workers), **facts)
    if message is not None and settings.broker_url is not None and (trouble := _trouble(message, settings)):
        return why_of(row, "outage", trouble, BROKER_TROUBLE, **facts)
    ahead = await waiting_for.ahead_on_route(session, row.open_queue, row.id)
    facts |= {"before": ahead.count, "of_higher_priority": ahead.higher, "of_other_tenants": ahead.turns}
    place_text = _place_text(row, ahead)
    able = f"{count(workers.able, 'worker')} that can run it"
    of_route = ""
    if workers.on_route > workers.able + workers.leaving:
        of_route = f" (of {workers.on_route} on its route)"
        able += of_route
    if parked is not None:
        clause = f"waits for room on {able}: {_refused(row, parked)}"
        return why_of(row, "route", clause, place_text, **facts)
    if workers.busy >= workers.slots:
        clause = f"waits for a free slot of {able}: at the last heartbeat, all slots were in use"
        return why_of(row, "route", clause, place_text, **facts)
    if message is None and age > settings.restage_age and not ahead.count:
        remedy = (
            f"If the broker lost the message, an executor sends it again after {span(settings.restage_age)}."
        )
        clause = f"has waited on its route for {span(age)}, and {able} did not claim it"
        return why_of(row, "route", clause, remedy, **facts)
    clause = f"waits for a worker to claim it: {count(workers.able, 'worker')} can run it{of_route}"
    return why_of(row, "route", clause, f"It has been ready for {span(age)}.", place_text, **facts)


def _place_text(row: Execution, ahead: AheadOnRoute) -> str:
    """Return a sentence with the number of executions that come before this one on its route, and the reasons."""
    route = (row.queue or "").removeprefix(WORK)
    text = f"{count(ahead.count, 'execution is', 'executions are')} ahead of it on the route {route}"
    reasons = [f"{ahead.higher} of higher priority"] if ahead.higher else []
    if ahead.turns:
        reasons.append(f"{ahead.turns} whose turn comes first")
    if reasons and ahead.older:
        reasons.append(f"{ahead.older} older")
    return f"{text}: {', '.join(reasons)}." if reasons else f"{text}."


def _refused(row: Execution, parked: Parked) -> str:
    """Return a clause about the worker that was offered the execution, and why it could not run it."""
    if not parked.offered:
        return f"some workers of its route lack {row.action}, so only the other workers get the execution"
    worker = f"the worker {parked.worker}" if parked.worker else "a worker that has left"
    if parked.executor is None:
        return f"it was offered to {worker}, which lacks {row.action}"
    return f"the task executor {parked.executor} of {worker} had no room for it {span(parked.seconds)} ago"


def _document(waiting: WaitingMessage | Parked | None) -> dict[str, Any] | None:
    return None if waiting is None else asdict(waiting)


def _trouble(message: WaitingMessage, settings: Settings) -> str | None:
    """Return a clause about why a staged message is stuck; None if it is not."""
    if settings.broker_url is None or (not message.tries and message.age < LATE):
        return None
    tried = f", tried {count(message.tries, 'time')}" if message.tries else ""
    why = f" ({message.error})" if message.error else ""
    return f"waits for the broker, which has not accepted its message for {span(message.age)}{tried}{why}"
