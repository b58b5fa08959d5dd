"""The spans of workflows that advance: one for each written turn."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from penstock import tracing
from penstock.advance.open_workflows import OpenWorkflow
from penstock.engine import Turn
from penstock.tracing import Span
from penstock.tracing.carrier import span_id
from penstock.tracing.spans import ADVANCE, execution_span

Turns = Sequence[tuple[OpenWorkflow, Turn]]
"""Workflows, each with the turn that it took."""


def begin(workflows: Sequence[OpenWorkflow]) -> None:
    """Record the beginning of the turns of traced workflows."""
    for workflow in workflows:
        if workflow.trace is not None:
            workflow.turn_began = datetime.now(UTC)


def send(turns: Turns) -> None:
    """Send the spans of written turns of traced workflows. A retried transaction sends them again, with the same ids."""
    for workflow, turn in turns:
        if workflow.trace is None or workflow.turn_began is None:
            continue
        ref, ends = workflow.plan.workflow.ref, [(end.task, end.item) for end in workflow.ends]
        attributes = {
            "penstock.workflow.id": str(workflow.id),
            "penstock.action": ref,
            "penstock.ended": len(ends),
            "penstock.started": sum(map(len, turn.starts)),
        }
        id = span_id(ADVANCE, workflow.id, *ends, *(command.id for command in workflow.commands))
        parent = execution_span(workflow.id)
        began, now = workflow.turn_began, datetime.now(UTC)
        tracing.send(Span(f"{ADVANCE} {ref}", "internal", workflow.trace, id, parent, began, now, attributes))
