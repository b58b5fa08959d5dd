"""Running, canceling, waiting: who has it, since when, and what it waits for."""

from __future__ import annotations

from typing import Any

from penstock.language.waits import WAIT_FOR_EVENT
from penstock.operate.why import workflow
from penstock.operate.why.answer import Why, span, why_of
from penstock.settings import Settings
from penstock.store import namespaces
from penstock.store.database import Row, Session

HOLDER = """
select c.worker, p.name, p.state, extract(epoch from clock_timestamp() - c.claimed_at)::float8 as seconds,
    extract(epoch from clock_timestamp() - greatest(p.beat_at, p.started_at))::float8 as silent
from claim c left join process p on p.id = c.worker
where c.worker = $1 and $2::uuid = any (c.executions) order by c.claimed_at desc limit 1
"""
INQUIRY = """
select prompt, assignee, due_at, extract(epoch from clock_timestamp() - created_at)::float8 as asked,
    extract(epoch from due_at - clock_timestamp())::float8 as left
from inquiry where execution_id = $1 and status = 'created'
"""
EVENT = """
select w.trigger, p.params ->> 'filter' as filter, extract(epoch from clock_timestamp() - w.since)::float8 as seconds,
    (select extract(epoch from t.due_at - clock_timestamp())::float8 from timer t
     where t.execution_id = w.execution_id and t.kind = 'expire' order by t.due_at limit 1) as left
from event_wait w join payload p on p.execution_id = w.execution_id where w.execution_id = $1
"""


async def running(session: Session, row: Row, settings: Settings) -> Why:
    if row["kind"] != namespaces.ACTION:
        return await workflow.running(session, row, settings)
    holder = await _holder(session, row)
    says = f"It runs{_on(holder)}, attempt {row['attempt']}{_silence(holder, settings)}."
    return why_of(row, "running", says, attempt=row["attempt"], **_facts(holder))


async def canceling(session: Session, row: Row, settings: Settings) -> Why:
    holder = await _holder(session, row)
    says = (
        f"It was asked to end ({row['reason']}); its worker has been told and is ending it{_on(holder)}"
        f"{_silence(holder, settings)}. It holds its slots until then."
    )
    return why_of(row, "stopping", says, reason=row["reason"], **_facts(holder))


async def waiting(session: Session, row: Row, settings: Settings) -> Why:
    rows = await session.fetch(INQUIRY, row["id"])
    if not rows and row["action"] == WAIT_FOR_EVENT:
        return await _for_event(session, row)
    if not rows:
        return why_of(row, "inquiry", "It has just been answered: ask again.")
    inquiry = rows[0]
    whom = f" of {inquiry['assignee']}" if inquiry["assignee"] else ""
    until = f", for {span(inquiry['left'])} more" if inquiry["left"] is not None else ""
    says = (
        f"Waits for an answer{whom}, asked {span(inquiry['asked'])} ago{until}: {inquiry['prompt']} "
        f"Answer with: penstock answer {row['id']} ANSWER --by NAME"
    )
    return why_of(row, "inquiry", says, **{name: inquiry[name] for name in ("prompt", "assignee", "due_at")})


async def _for_event(session: Session, row: Row) -> Why:
    rows = await session.fetch(EVENT, row["id"])
    if not rows:
        return why_of(row, "event", "Its event has just come: ask again.")
    wait = rows[0]
    which = f" that fits `{wait['filter']}`" if wait["filter"] else ""
    until = f", for {span(wait['left'])} more" if wait["left"] is not None else ""
    says = f"Waits for an event of {wait['trigger']}{which}, since {span(wait['seconds'])}{until}."
    if row["reason"]:
        says += f" The last that it saw: {row['reason']}"
    return why_of(
        row, "event", says, **{name: wait[name] for name in ("trigger", "filter", "seconds", "left")}
    )


async def _holder(session: Session, row: Row) -> Row | None:
    rows = await session.fetch(HOLDER, row["claim"], row["id"])
    return rows[0] if rows else None


def _on(holder: Row | None) -> str:
    if holder is None:
        return ""
    return f" on {holder['name'] or 'a worker that has left'} for {span(holder['seconds'])}"


def _silence(holder: Row | None, settings: Settings) -> str:
    if holder is None or holder["silent"] is None or holder["silent"] < settings.stale_threshold / 2:
        return ""
    return (
        f"; that worker was last heard of {span(holder['silent'])} ago, and is taken for dead after "
        f"{span(settings.stale_threshold)}"
    )


def _facts(holder: Row | None) -> dict[str, Any]:
    if holder is None:
        return {}
    return {"worker": holder["name"], "seconds": holder["seconds"], "silent": holder["silent"]}
