"""The titles of executions: the template of the action or workflow, rendered over the masked parameters when it is shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Literal
from uuid import UUID

import orjson

from penstock.errors import ExpressionError
from penstock.language.expressions import compile_template
from penstock.language.moves import QUEUED, REQUESTED, RUNNING, SCHEDULED, WAITING
from penstock.language.terms.redaction import MASK
from penstock.language.terms.waits import INQUIRY
from penstock.operate import wait_clauses
from penstock.operate.awaited_events import condition_text
from penstock.operate.masking import Masking
from penstock.run.cut_texts import cut_end
from penstock.run.root_cause import failure_sentence
from penstock.store.executions import execution_list, inquiries, listed_errors, listed_waits, title_templates
from penstock.store.executions.execution_list import ExecutionFilter, ListedExecution, ListedWait
from penstock.store.executions.listed_waits import InnerWait, StartWait
from penstock.store.session.database import Session, Transaction
from penstock.store.session.sealed_marks import KEY

MAX_TITLE = 200
"""The maximum length of a shown title, in characters."""

_compiled = lru_cache(maxsize=1000)(compile_template)


def title_of(template: str, params: Any) -> str | None:
    """Return the title for masked parameters, or None if its template fails for them."""
    try:
        text = str(_compiled(template)({"parameters": params}))
    except ExpressionError:
        return None
    return _in_one_line(text)


def _in_one_line(text: str) -> str:
    return cut_end(" ".join(text.split()), MAX_TITLE)


def with_defaults(params: Any, defaults: Mapping[str, Any]) -> Any:
    """Return the parameters, and the defaults of those that were left out. Sealed parameters stay as they are."""
    return {**defaults, **params} if isinstance(params, Mapping) and KEY not in params else params


def defaults_of(schema: Any) -> dict[str, Any]:
    """Return the defaults of the parameters of a schema. The default of a secret is not in it, and is masked."""
    properties = schema.get("properties") if isinstance(schema, Mapping) else None
    fields = properties if isinstance(properties, Mapping) else {}
    objects = {name: field for name, field in fields.items() if isinstance(field, Mapping)}
    defaults = {name: field["default"] for name, field in objects.items() if "default" in field}
    return defaults | {name: MASK for name, field in objects.items() if field.get("secret") is True}


@lru_cache(maxsize=1000)
def _stored_defaults(schema: str | None) -> Mapping[str, Any]:
    return defaults_of(orjson.loads(schema)) if schema else {}


async def listed(
    session: Session, filters: ExecutionFilter, *, cursor: UUID | None = None, limit: int = 50
) -> list[ListedExecution]:
    """Return a page of `execution_list.page`, with the titles of its executions and the causes of their failures. `cursor` is
    the last id of the page before."""
    rows = await execution_list.page(session, filters, before=cursor, limit=limit)
    titles = {**await of_executions(session, rows), **await _of_inquiries(session, rows)}
    # A durable function that waits in its first attempt continues in its second attempt, so it counts here, too.
    begun_again = [row for row in rows if row.attempt > 1 or (row.attempt and row.status == WAITING)]
    continued = await title_templates.durable_among(session, begun_again) if begun_again else set()
    for row in rows:
        row.title = titles.get(row.id)
        row.continued = row.id in continued
    await add_failures(session, rows)
    await _add_waits(session, rows)
    return rows


async def _add_waits(session: Session, rows: Sequence[ListedExecution]) -> None:
    """Set the waits of listed executions, and mark the paused workflows among them."""
    waits, paused = await waits_of(session, {row.id: row.status for row in rows})
    for row in rows:
        row.waits_for = waits.get(row.id)
        row.paused = row.id in paused


async def waits_of(
    session: Session, statuses: Mapping[UUID, str]
) -> tuple[dict[UUID, ListedWait], set[UUID]]:
    """Return the waits of executions, and the paused workflows among them. `statuses` has the status of each execution.
    Without an open execution no statement is sent."""
    starting = [id for id, status in statuses.items() if status in (QUEUED, SCHEDULED)]
    stale = session.settings.stale_threshold
    starts = await listed_waits.starts_of(session, starting, stale) if starting else []
    before_start = {start.id: wait for start in starts if (wait := _start_wait(start)) is not None}
    ids = [id for id, status in statuses.items() if status in (REQUESTED, RUNNING, WAITING)]
    if not ids:
        return before_start, set()
    inner = await listed_waits.of_listed(session, ids)
    masking = await Masking.load(session) if any(wait.trigger for wait in inner) else None
    waits = {wait.root: _listed_wait(wait, masking, statuses[wait.root]) for wait in inner}
    paused = await listed_waits.paused_among(session, ids)
    still_running = {id: ListedWait("paused", wait_clauses.PAUSED_AND_RUNS, id, None) for id in paused}
    return {**before_start, **still_running, **waits}, paused


def _start_wait(start: StartWait) -> ListedWait | None:
    """Return the wait of a queued or scheduled execution for display; None if nothing keeps it from its start."""
    if start.limit is not None:
        return ListedWait("limit", wait_clauses.for_limit(start.limit), start.id, None)
    if start.gate == "regroup":
        return ListedWait("limit", wait_clauses.REGROUPED, start.id, None)
    return ListedWait(
        "worker" if start.is_online else "route",
        wait_clauses.for_worker(start.route, start.is_online),
        start.id,
        None,
    )


def _listed_wait(wait: InnerWait, masking: Masking | None, status: str) -> ListedWait:
    """Return a wait for display. `masking` is None if no listed execution waits for an event. `status` is the status of the
    listed execution."""
    if wait.stopped == "paused" and status == REQUESTED and not wait.is_paused:
        return ListedWait("paused", wait_clauses.KEPT_BY_PAUSE, wait.root, None)
    if wait.stopped == "paused":
        return ListedWait("paused", wait_clauses.for_resume(wait.is_paused), wait.execution_id, None)
    because: Literal["inquiry", "event", "outside", "timer", "held"]
    if wait.prompt is not None:
        because, text = "inquiry", wait_clauses.for_answer(_in_one_line(wait.prompt), wait.assignee)
    elif wait.signals:
        because, text = "event", wait_clauses.for_signals(wait.signals)
    elif wait.trigger is not None and masking is not None:
        condition = condition_text(masking, wait.trigger, wait.params, wait.starter)
        because, text = "event", wait_clauses.for_event(wait.trigger, condition)
    elif wait.is_outside:
        because, text = "outside", wait_clauses.for_outside(wait.outside_name)
    elif wait.stopped == "held":
        because, text = "held", wait_clauses.FOR_RELEASE
    else:
        because = "timer"
        text = "is about to continue" if wait.due_at is None else wait_clauses.until_instant(wait.due_at)
    suffix = f" (and {wait.inside - 1} more)" if wait.inside > 1 else ""
    paused = "is paused, and " if wait.is_paused else ""
    return ListedWait(because, paused + cut_end(text, MAX_TITLE) + suffix, wait.execution_id, wait.due_at)


async def _of_inquiries(session: Session, rows: Sequence[ListedExecution]) -> Mapping[UUID, str | None]:
    """Return the questions of the inquiries among listed executions, as their titles."""
    ids = [row.id for row in rows if row.action == INQUIRY]
    prompts = await inquiries.prompts(session, ids) if ids else {}
    return {id: _in_one_line(prompt) for id, prompt in prompts.items()}


async def add_failures(session: Session, rows: Sequence[ListedExecution]) -> None:
    """Set the sentences about the causes of the failures among listed executions, and the executions that ran them again.
    Without failures no statement is sent."""
    errors = await listed_errors.of_listed(session, rows)
    for row in rows:
        if listed_error := errors.get(row.id):
            row.failure = failure_sentence(row.status, listed_error.error, listed_error.reason)
            row.rerun = listed_error.rerun


async def of_executions(
    session: Session | Transaction, rows: Sequence[title_templates.Titled]
) -> Mapping[UUID, str | None]:
    """Return the titles of executions by id. Without a title in its definition, an execution is not in it."""
    templates = await title_templates.of_executions(session, rows) if rows else []
    if not templates:
        return {}
    masking = await Masking.load(session)
    titles: dict[UUID, str | None] = {}
    for row in templates:
        params = with_defaults(orjson.loads(row.params), _stored_defaults(row.schema))
        titles[row.id] = title_of(row.template, masking.parameters(row.action, params))
    return titles
