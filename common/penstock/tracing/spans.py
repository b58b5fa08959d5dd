"""All spans that Penstock sends, with their attributes. docs/reference/traces.md is generated from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from penstock.tracing.carrier import Trace, span_id

Kind = Literal["internal", "producer", "consumer"]
EVENT, RULE, EXECUTION, ATTEMPT, ADVANCE, STEP = "event", "rule", "execution", "attempt", "advance", "step"
PUBLISH, START = "publish", "start"


@dataclass(frozen=True, slots=True)
class Span:
    """A span that is over. `trace` is its trace; `parent` is the id of the span above it; `error` is its error, if it
    failed. Attributes with the value None are left out."""

    name: str
    kind: Kind
    trace: Trace
    id: int
    parent: int | None
    began_at: datetime
    ended_at: datetime
    attributes: Mapping[str, Any]
    links: Sequence[Trace] = field(default=())
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Described:
    """The documented properties of a span: its name, its parent span, its begin and end, and its attributes."""

    name: str
    kind: Kind
    above: str
    lasts: str
    attributes: tuple[str, ...]


ATTRIBUTES: Mapping[str, str] = {
    "penstock.trigger": "the ref of the trigger",
    "penstock.tenant": "the tenant",
    "penstock.event.id": "the event",
    "penstock.rule": "the ref of the rule",
    "penstock.execution.id": "the execution",
    "penstock.action": "the ref of the action or workflow",
    "penstock.namespace": "`tenant::pack::action`, or `tenant::pack::workflow::task`",
    "penstock.status": "the status that the execution ended with",
    "penstock.reason": "the reason of the last status change, if there is one",
    "penstock.route": "the route of the execution",
    "penstock.attempts": "the number of attempts",
    "penstock.attempt": "the number of the attempt, from 1",
    "penstock.outcome": "the outcome of the attempt: `completed`, `failed`, `timeout`, `cancelled`, `requested` (a retry "
    "follows), `waiting`, `claim_lost` or `lost` (with its worker)",
    "penstock.worker.id": "the worker that ran the attempt",
    "penstock.worker.name": "the name of that worker",
    "penstock.workflow.id": "the execution of the workflow that contains the task",
    "penstock.task": "the name of the task in that workflow",
    "penstock.item": "the index of the item, if the task has items",
    "penstock.ended": "the number of ended tasks that the workflow handled",
    "penstock.started": "the number of executions that the workflow started",
    "penstock.step": "the name of the step",
    "penstock.step.ordinal": "the ordinal of the step among the steps of the same name",
    "penstock.step.kind": "the kind of the step",
    "penstock.step.status": "the status of the step",
}

SPANS: Mapping[str, Described] = {
    PUBLISH: Described(
        "publish TRIGGER",
        "producer",
        "the caller's current span",
        "from `Client.publish` until the event is stored",
        ("penstock.trigger", "penstock.tenant"),
    ),
    START: Described(
        "start ACTION",
        "producer",
        "the caller's current span",
        "from `Client.start` (`start_many`, `rerun`) until the execution is stored",
        ("penstock.action", "penstock.tenant"),
    ),
    EVENT: Described(
        "event TRIGGER",
        "consumer",
        "the publisher's span",
        "while an executor evaluates the rules of the event's trigger",
        ("penstock.trigger", "penstock.tenant", "penstock.event.id"),
    ),
    RULE: Described(
        "rule RULE",
        "internal",
        "the event's span",
        "while an executor evaluates a rule that matches",
        ("penstock.rule", "penstock.event.id", "penstock.tenant", "penstock.execution.id"),
    ),
    EXECUTION: Described(
        "execution ACTION",
        "consumer",
        "the span of the rule, of the containing workflow or durable function, of the execution that it "
        "follows, or of the caller",
        "from the creation of the execution to its end",
        (
            "penstock.execution.id",
            "penstock.action",
            "penstock.namespace",
            "penstock.tenant",
            "penstock.route",
            "penstock.status",
            "penstock.reason",
            "penstock.attempts",
            "penstock.workflow.id",
            "penstock.task",
            "penstock.item",
        ),
    ),
    ATTEMPT: Described(
        "attempt ACTION",
        "consumer",
        "the execution's span",
        "while a worker runs the attempt; the action's own spans are below it",
        (
            "penstock.execution.id",
            "penstock.action",
            "penstock.attempt",
            "penstock.outcome",
            "penstock.worker.id",
            "penstock.worker.name",
        ),
    ),
    ADVANCE: Described(
        "advance WORKFLOW",
        "internal",
        "the span of the workflow's execution",
        "while an executor decides which tasks follow",
        ("penstock.workflow.id", "penstock.action", "penstock.ended", "penstock.started"),
    ),
    STEP: Described(
        "step NAME",
        "internal",
        "the span of the attempt of the durable function",
        "while the step runs; a replayed step has no span",
        (
            "penstock.execution.id",
            "penstock.attempt",
            "penstock.step",
            "penstock.step.ordinal",
            "penstock.step.kind",
            "penstock.step.status",
        ),
    ),
}


def event_span(id: UUID) -> int:
    """Return the id of the span of an event."""
    return span_id(EVENT, id)


def execution_span(id: UUID) -> int:
    """Return the id of the span of an execution."""
    return span_id(EXECUTION, id)


def attempt_span(id: UUID, attempt: int) -> int:
    """Return the id of the span of an attempt."""
    return span_id(ATTEMPT, id, attempt)


def rule_span(event: UUID | str, rule: str) -> int:
    """Return the id of the span of a rule that matched an event."""
    return span_id(RULE, event, rule)


def above(own: int, trace: Trace) -> int | None:
    """Return the parent of a span, given the trace that its carrier had: None if the trace begins with this span."""
    return None if trace.span_id == own else trace.span_id
