"""The answers for running, canceling and waiting executions: the worker, the time, and what they wait for."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any
from uuid import UUID

from penstock.language.terms.waits import WAIT_FOR_EVENT
from penstock.operate.why import workflow
from penstock.operate.why.answer import Reason, Why, span, why_of
from penstock.settings import Settings
from penstock.store.admission import namespaces, waiting_for
from penstock.store.admission.waiting_for import AwaitedEvent, ClaimHolder, Suspended
from penstock.store.executions import outside_waits
from penstock.store.executions.executions import Execution
from penstock.store.executions.outside_waits import OutsideWait
from penstock.store.session.database import Session


async def running(session: Session, row: Execution, settings: Settings) -> Why:
    if row.kind != namespaces.ACTION:
        return await workflow.running(session, row, settings)
    holder = await _holder(session, row)
    says = f"It runs{_on(holder)}, attempt {row.attempt}{_silence(holder, settings)}."
    if holder is not None and holder.within is not None and holder.seconds < holder.within:
        says += f" It waits up to {span(holder.within)} for a batch of up to {holder.size} to be called."
    return why_of(row, "running", says, attempt=row.attempt, **_facts(holder))


async def canceling(session: Session, row: Execution, settings: Settings) -> Why:
    holder = await _holder(session, row)
    says = (
        f"It was asked to end ({row.reason}); its worker has been told and is ending it{_on(holder)}"
        f"{_silence(holder, settings)}. It holds its slots until then."
    )
    return why_of(row, "stopping", says, reason=row.reason, **_facts(holder))


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
        return why_of(row, "inquiry", "It has just been answered: ask again.")
    whom = f" of {inquiry.assignee}" if inquiry.assignee else ""
    until = f", for {span(inquiry.remaining)} more" if inquiry.remaining is not None else ""
    says = (
        f"Waits for an answer{whom}, asked {span(inquiry.asked)} ago{until}: {inquiry.prompt} "
        f"Answer with: penstock answer {row.id} ANSWER --by NAME"
    )
    return why_of(
        row, "inquiry", says, prompt=inquiry.prompt, assignee=inquiry.assignee, due_at=inquiry.due_at
    )


def _outside(row: Execution, wait: OutsideWait) -> Why:
    """Explain what outside an execution waits for."""
    name = wait.name or "its callback"
    until = f", for {span(max(0.0, wait.remaining))} more" if wait.remaining is not None else ""
    done = ""
    if wait.progress is not None:
        text = f" {wait.progress_text}" if wait.progress_text else ""
        done = f" It was {wait.progress:.0%} done{text}."
    says = f"Waits for {name} outside, since {span(wait.waited)}{until}.{done}"
    return why_of(row, "outside", says, awaits=wait.name, due_at=wait.due_at, progress=wait.progress)


async def _suspended(session: Session, row: Execution, wait: Suspended) -> Why:
    """Explain what a durable function waits for."""
    waits = [await _child(session, *child) for child in wait.children]
    waits += [f"the signal {name}: penstock signal {row.id} {name} VALUE" for name in wait.signals]
    if wait.remaining is not None:
        waits.append(f"its time to come, in {span(wait.remaining)}")
    says = f"A durable function that waits, without a worker, since {span(wait.seconds)}, for {'; or '.join(waits)}."
    for limit in wait.kept:
        says += (
            f" It keeps its slot of {limit} meanwhile (while_waiting: keep), and a child of it is in line for a slot of {limit}: "
            "where no other slot gets free, neither goes on. Raise the limit, or let it release its slots."
        )
    because: Reason = "task" if wait.children else "event" if wait.signals else "timer"
    return why_of(row, because, says, **asdict(wait))


async def _child(session: Session, step: str, status: str, id: UUID) -> str:
    event = await waiting_for.event(session, id) if status == "waiting" else None
    return f"{step}, which is {status} ({id})" if event is None else f"{step}, {_awaited(event)} ({id})"


def _awaited(wait: AwaitedEvent) -> str:
    which = f" that fits `{wait.filter}`" if wait.filter else ""
    until = f", for {span(wait.remaining)} more" if wait.remaining is not None else ""
    return f"an event of {wait.trigger}{which}{until}"


async def _for_event(session: Session, row: Execution) -> Why:
    wait = await waiting_for.event(session, row.id)
    if wait is None:
        return why_of(row, "event", "Its event has just come: ask again.")
    which = f" that fits `{wait.filter}`" if wait.filter else ""
    until = f", for {span(wait.remaining)} more" if wait.remaining is not None else ""
    says = f"Waits for an event of {wait.trigger}{which}, since {span(wait.seconds)}{until}."
    if row.reason:
        says += f" The last that it saw: {row.reason}"
    return why_of(row, "event", says, **asdict(wait))


async def _holder(session: Session, row: Execution) -> ClaimHolder | None:
    return await waiting_for.holder(session, row.claim, row.id)


def _on(holder: ClaimHolder | None) -> str:
    if holder is None:
        return ""
    return f" on {holder.name or 'a worker that has left'} for {span(holder.seconds)}"


def _silence(holder: ClaimHolder | None, settings: Settings) -> str:
    if holder is None or holder.silent is None or holder.silent < settings.stale_threshold / 2:
        return ""
    return (
        f"; that worker was last heard of {span(holder.silent)} ago, and is taken for dead after "
        f"{span(settings.lost_after)}"
    )


def _facts(holder: ClaimHolder | None) -> dict[str, Any]:
    if holder is None:
        return {}
    return {"worker": holder.name, "seconds": holder.seconds, "silent": holder.silent}
