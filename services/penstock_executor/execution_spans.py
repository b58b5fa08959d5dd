"""The spans of ended executions, made from their rows, whichever process ended them."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import orjson

from penstock.advance.open_workflows import read_plans
from penstock.language.moves import COMPLETED
from penstock.store.executions import unsent_spans
from penstock.store.executions.unsent_spans import LostAttempt, TracedExecution
from penstock.store.outbox.queues import WORK
from penstock.store.session.database import Transaction
from penstock.store.session.sealed_marks import looks_sealed
from penstock.tracing import Span, Trace, trace_of
from penstock.tracing.spans import ATTEMPT, EXECUTION, above, attempt_span, execution_span, rule_span

MOST_LINKS = 100
"""The maximum number of preceding tasks to which an execution's span is linked."""


async def spans_of(tx: Transaction, executions: list[TracedExecution]) -> list[Span]:
    """Return the spans of these executions, and of their attempts that were lost with a worker."""
    spans: list[Span] = []
    traces: dict[UUID, tuple[TracedExecution, Trace]] = {}
    joined = await _joined(tx, executions)
    for row in executions:
        origin = orjson.loads(row.origin)
        trace = trace_of(origin["trace"])
        if trace is not None:
            traces[row.id] = row, trace
            spans.append(_span(row, origin, trace, _links(origin, trace, joined.get(row.id, []))))
    again = [row.id for row in executions if row.attempt > 1 or row.status != COMPLETED]
    if again:
        since = min(row.created_at for row in executions)
        attempts = await unsent_spans.lost_attempts(tx, again, since)
        spans += [
            _lost(attempt, *traces[attempt.execution_id])
            for attempt in attempts
            if attempt.execution_id in traces
        ]
    return spans


def _span(row: TracedExecution, origin: dict[str, Any], trace: Trace, links: list[Trace]) -> Span:
    own = execution_span(row.id)
    reason = "of an encrypted tenant" if looks_sealed(row.reason) else row.reason
    attributes = {
        "penstock.execution.id": str(row.id),
        "penstock.action": row.action,
        "penstock.namespace": row.namespace,
        "penstock.tenant": row.namespace.partition("::")[0],
        "penstock.route": row.queue.removeprefix(WORK) if row.queue is not None else None,
        "penstock.status": row.status,
        "penstock.reason": reason,
        "penstock.attempts": row.attempt or None,
        "penstock.workflow.id": str(row.parent) if row.parent is not None else None,
        "penstock.task": row.task,
        "penstock.item": row.item if row.item >= 0 else None,
    }
    error = None if row.status == COMPLETED else row.error or reason or row.status
    name, parent = f"{EXECUTION} {row.action}", _parent(row, origin, trace)
    return Span(
        name, "consumer", trace, own, parent, row.created_at, row.finished_at, attributes, links, error
    )


def _parent(row: TracedExecution, origin: dict[str, Any], trace: Trace) -> int | None:
    if row.parent is not None:
        return execution_span(row.parent)
    if "rule" in origin:
        return rule_span(origin["event"], origin["rule"])
    if "callback_of" in origin:
        return execution_span(UUID(origin["callback_of"]))
    return above(execution_span(row.id), trace)


async def _joined(tx: Transaction, executions: list[TracedExecution]) -> dict[UUID, list[UUID]]:
    """Return the preceding executions of each of these executions that is a task with predecessors."""
    tasks = [
        (row, row.workflow, row.task)
        for row in executions
        if row.workflow is not None and row.task is not None
    ]
    plans = await read_plans(tx, {workflow for _, workflow, _ in tasks})
    predecessors: list[tuple[TracedExecution, str]] = []
    for row, workflow, task in tasks:
        plan = plans[workflow]
        predecessors += [(row, plan.graph[source].name) for source in plan.graph[plan.index(task)].sources]
    return await unsent_spans.joined(tx, predecessors, MOST_LINKS) if predecessors else {}


def _links(origin: dict[str, Any], trace: Trace, joined: list[UUID]) -> list[Trace]:
    """Return links to the run that this one repeats, and to the preceding tasks of the same trace."""
    links = [
        link
        for traceparent in origin["trace"].get("links", ())
        if (link := trace_of({"traceparent": traceparent}))
    ]
    return links + [Trace(trace.trace_id, execution_span(id), True) for id in joined[:MOST_LINKS]]


def _lost(attempt: LostAttempt, row: TracedExecution, trace: Trace) -> Span:
    attributes = {
        "penstock.execution.id": str(row.id),
        "penstock.action": row.action,
        "penstock.attempt": attempt.attempt,
        "penstock.outcome": "lost",
        "penstock.worker.id": attempt.worker_id,
        "penstock.worker.name": attempt.worker,
    }
    own, parent = attempt_span(row.id, attempt.attempt), execution_span(row.id)
    name, error = f"{ATTEMPT} {row.action}", "its worker was lost"
    return Span(
        name, "consumer", trace, own, parent, attempt.began_at, attempt.ended_at, attributes, error=error
    )
