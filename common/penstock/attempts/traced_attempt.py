"""A traced attempt. The spans of its work are nested in its own span, which is sent at its end."""

from __future__ import annotations

from contextlib import AbstractContextManager
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson

from penstock import tracing
from penstock.language.moves import COMPLETED
from penstock.run.task_executors import TaskReadyEvent
from penstock.service.heartbeat import Identity
from penstock.store.durable.steps import StepWrite
from penstock.tracing import Carrier, Span, Trace
from penstock.tracing.carrier import span_id
from penstock.tracing.spans import ATTEMPT, STEP, attempt_span, execution_span

CLAIM_LOST = "claim_lost"
OVER = ("completed", "failed")
"""The statuses of a step that has run."""


class TracedAttempt:
    def __init__(self, trace: Trace, event: TaskReadyEvent, worker: Identity, *, tells: bool = True) -> None:
        """`tells`: False where the messages of its errors are encrypted, and so are in no span."""
        self._tells = tells
        self._own = Trace(trace.trace_id, attempt_span(event.execution_id, event.attempt), True, trace.state)
        self._event = event
        self._worker = worker
        self._began: datetime | None = None
        self.carrier: Carrier = self._own.carrier()
        """The trace context for the attempt's outgoing calls."""

    def begin(self) -> AbstractContextManager[None]:
        """Return a context manager in which the attempt runs."""
        self._began = datetime.now(UTC)
        return tracing.inside(self._own)

    def end(self, outcome: str, error: str | None = None) -> None:
        """Send the span at the end of the attempt. `error` is JSON. An attempt that never ran has no span."""
        if self._began is None:
            return
        event, trace = self._event, self._own
        attributes = {
            **self._of_event(),
            "penstock.action": event.action,
            "penstock.outcome": outcome,
            "penstock.worker.id": str(self._worker.id),
            "penstock.worker.name": self._worker.name,
        }
        parent, name = execution_span(event.execution_id), f"{ATTEMPT} {event.action}"
        failed = self._message(error) if error is not None else outcome if outcome == CLAIM_LOST else None
        now = datetime.now(UTC)
        tracing.send(
            Span(name, "consumer", trace, trace.span_id, parent, self._began, now, attributes, error=failed)
        )

    def step(self, write: StepWrite) -> None:
        """Send the span of a recorded step of a durable function, if the step has run."""
        if write.status not in OVER or not write.took:
            return
        attributes: dict[str, Any] = {
            **self._of_event(),
            "penstock.step": write.name,
            "penstock.step.ordinal": write.ordinal,
            "penstock.step.kind": write.kind,
            "penstock.step.status": write.status,
        }
        id = span_id(STEP, write.execution_id, write.name, write.ordinal, write.attempt)
        now = datetime.now(UTC)
        began = now - timedelta(seconds=write.took)
        failed = None if write.status == COMPLETED else self._message(write.error)
        name, trace = f"{STEP} {write.name}", self._own
        tracing.send(Span(name, "internal", trace, id, trace.span_id, began, now, attributes, error=failed))

    def _message(self, error: str | None) -> str:
        document = orjson.loads(error) if error is not None else None
        if not isinstance(document, dict):
            return "failed"
        return str(document.get("message" if self._tells else "type", "failed"))

    def _of_event(self) -> dict[str, Any]:
        return {
            "penstock.execution.id": str(self._event.execution_id),
            "penstock.attempt": self._event.attempt,
        }


def traced(
    trace: str | None, event: TaskReadyEvent, worker: Identity, *, tells: bool = True
) -> TracedAttempt | None:
    """Return the traced attempt for the trace context (JSON) with which it was claimed, or None if this process does
    not trace."""
    if trace is None or not tracing.is_on():
        return None
    context = tracing.trace_of(orjson.loads(trace))
    return None if context is None else TracedAttempt(context, event, worker, tells=tells)
