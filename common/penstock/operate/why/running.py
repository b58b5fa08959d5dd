"""The answers for running, canceling and waiting executions: the worker, the time, and what they wait for."""

from __future__ import annotations

import shlex
from dataclasses import asdict
from datetime import datetime
from typing import Any
from uuid import UUID

import orjson

from penstock.engine.durable.records import SLEEP, STARTED, STEP, Key
from penstock.language.terms.waits import WAIT_FOR_EVENT
from penstock.operate import wait_clauses
from penstock.operate.awaited_events import condition_text
from penstock.operate.masking import Masking
from penstock.operate.why import workflow
from penstock.operate.why.answer import DEEPEST, URGENCY, WAITED, Child, Reason, Why, span, why_of
from penstock.settings import Settings
from penstock.store.admission import namespaces, waiting_for
from penstock.store.admission.waiting_for import ClaimHolder, Suspended
from penstock.store.durable import steps
from penstock.store.executions import outside_waits
from penstock.store.executions.executions import Execution
from penstock.store.executions.outside_waits import OutsideWait
from penstock.store.session import clock
from penstock.store.session.database import Session
from penstock.store.workflows import open_tasks


async def running(session: Session, row: Execution, settings: Settings) -> Why:
    if row.kind != namespaces.ACTION:
        return await workflow.running(session, row, settings)
    holder = await _holder(session, row)
    clause = f"{_runs(holder) or 'runs'}, attempt {row.attempt}{_silence(holder, settings)}"
    details = []
    if holder is not None and holder.within is not None and holder.seconds < holder.within:
        details = [
            f"The execution is collected into a batch. The batch runs with {holder.size} executions, or after "
            f"{span(holder.within)}."
        ]
    return why_of(row, "running", clause, *details, attempt=row.attempt, **_facts(holder))


async def canceling(session: Session, row: Execution, settings: Settings) -> Why:
    holder = await _holder(session, row)
    clause = (
        f"is being stopped ({row.reason}), and {_runs(holder) or 'still runs'}{_silence(holder, settings)}"
    )
    return why_of(
        row,
        "stopping",
        clause,
        "The execution holds its slots until it has stopped.",
        reason=row.reason,
        **_facts(holder),
    )


async def waiting(session: Session, row: Execution, settings: Settings) -> Why:
    suspended = await waiting_for.suspended(session, row.id)
    if suspended is not None:
        return await _suspended(session, row, suspended)
    inquiry = await waiting_for.inquiry(session, row.id)
    if inquiry is None and row.action == WAIT_FOR_EVENT:
        return await _for_event(session, row)
    if inquiry is None and (wait := await outside_waits.find(session, row.id)) is not None:
        return _outside(row, wait)
    if inquiry is None:
        return why_of(row, "inquiry", "has just received its answer, and is about to continue")
    age = f"The question was asked {span(inquiry.asked)} ago."
    # The sentence does not say what happens at the deadline: the default may become the answer, or the execution may
    # end.
    if inquiry.remaining is not None:
        age += f" The answer is due in {span(inquiry.remaining)}."
    author = "NAME" if inquiry.assignee is None else shlex.quote(inquiry.assignee)
    return why_of(
        row,
        "inquiry",
        wait_clauses.for_answer(inquiry.prompt, inquiry.assignee),
        age,
        f"To answer on the command line: penstock answer {row.id} ANSWER --by {author} (ANSWER: text or JSON)",
        prompt=inquiry.prompt,
        assignee=inquiry.assignee,
        due_at=inquiry.due_at,
    )


def _outside(row: Execution, wait: OutsideWait) -> Why:
    """Explain what outside an execution waits for."""
    clause = wait_clauses.for_outside(wait.name)
    details = [_waited(wait.waited, wait.remaining)]
    if wait.progress is not None:
        text = f": {wait.progress_text}" if wait.progress_text else ""
        details.append(f"The last reported progress was {wait.progress:.0%}{text}.")
    details.append(
        f"If the outside system cannot complete it, end the wait with: penstock complete {row.id} --result JSON"
    )
    return why_of(
        row, "outside", clause, *details, awaits=wait.name, due_at=wait.due_at, progress=wait.progress
    )


async def _suspended(session: Session, row: Execution, wait: Suspended) -> Why:
    """Explain what a durable function waits for."""
    way: list[UUID] = []
    if wait.children:
        ids = [id for *_, id in wait.children]
        way = await open_tasks.most_urgent(session, row.id, ids, URGENCY, DEEPEST)
    children = [Child(id, "step", step, way if id in way else ()) for step, _, id in wait.children]
    children.sort(key=lambda child: not child.way)
    until = ""
    if wait.remaining is not None and (wait.signals or wait.children):
        until = f" up to {span(wait.remaining)} more"
    own = wait_clauses.for_signals(wait.signals, until)
    if children:
        own = f"{own} or" if wait.signals else f"waits{until} for"
    elif not wait.signals and wait.remaining is not None:
        own = await _timed_step(session, row, span(wait.remaining))
    details = [f"{WAITED}{span(wait.seconds)}, and occupies no worker meanwhile."]
    details += [f"It also waits for step {child.name} ({child.id})." for child in children[1:]]
    details += [f"Send the signal with: penstock signal {row.id} {name} VALUE" for name in wait.signals]
    details += [
        f"The execution keeps its slot of the limit {limit} (while_waiting: keep), and its child waits for a slot of the same "
        f"limit. If no other slot becomes free, both wait forever. Raise the limit with: penstock limit set {limit} MAX"
        for limit in wait.kept
    ]
    because: Reason = "task" if wait.children else "event" if wait.signals else "timer"
    return why_of(row, because, own, *details, child=next(iter(children), None), **asdict(wait))


async def _timed_step(session: Session, row: Execution, remaining: str) -> str:
    """Return a clause about the next timed step of a durable function: a sleep, or a step that is tried again.
    The end of a sleep is not recorded."""
    now = await clock.now(session)
    timed = [
        (datetime.fromisoformat(orjson.loads(step.result)["until"]), step)
        for step in await steps.recorded(session, row.id)
        if step.status == STARTED and step.kind in (SLEEP, STEP) and step.result and "until" in step.result
    ]
    timed = [(until, step) for until, step in timed if until > now]
    if not timed:
        return f"waits for its next step, due in {remaining}"
    _, first = min(timed, key=lambda entry: entry[0])
    name = first.name.rpartition("/")[2]
    key = Key(name, first.ordinal).label
    if first.kind == SLEEP:
        return f"sleeps for {remaining} more, in step {key!r}"
    error = orjson.loads(first.error) if first.error else {}
    failed = f": attempt {first.tries} failed ({error.get('type')}: {error.get('message')})" if error else ""
    return f"waits for attempt {first.tries + 1} of step {key!r}, which is due in {remaining}{failed}"


def _waited(seconds: float, remaining: float | None) -> str:
    """Return a sentence about the time since a wait began, and until it times out."""
    until = "" if remaining is None else f", and times out in {span(remaining)}"
    return f"{WAITED}{span(seconds)}{until}."


async def _for_event(session: Session, row: Execution) -> Why:
    wait = await waiting_for.event(session, row.id)
    if wait is None:
        return why_of(row, "event", "has just received its event, and is about to continue")
    condition = condition_text(await Masking.load(session), wait.trigger, wait.params, wait.starter)
    details = [_waited(wait.seconds, wait.remaining)]
    details += [f"An event could not be checked: {row.reason}"] if row.reason else []
    return why_of(
        row,
        "event",
        wait_clauses.for_event(wait.trigger, condition),
        *details,
        trigger=wait.trigger,
        condition=condition or None,
        filter=orjson.loads(wait.params).get("filter"),
        seconds=wait.seconds,
        remaining=wait.remaining,
    )


async def _holder(session: Session, row: Execution) -> ClaimHolder | None:
    return await waiting_for.holder(session, row.claim, row.id)


def _runs(holder: ClaimHolder | None) -> str:
    if holder is None:
        return ""
    return f"has run on {holder.name or 'a worker that has left'} for {span(holder.seconds)}"


def _silence(holder: ClaimHolder | None, settings: Settings) -> str:
    if holder is None or holder.silent is None or holder.silent < settings.stale_threshold / 2:
        return ""
    return (
        f"; the last heartbeat of that worker was {span(holder.silent)} ago, and it counts as dead after "
        f"{span(settings.lost_after)} without one"
    )


def _facts(holder: ClaimHolder | None) -> dict[str, Any]:
    if holder is None:
        return {}
    return {"worker": holder.name, "seconds": holder.seconds, "silent": holder.silent}
