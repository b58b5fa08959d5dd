"""The loop that sends the spans of traced executions that have ended. Each end records the execution in its own
transaction."""

from __future__ import annotations

from penstock import tracing
from penstock.service.assembly import Parts
from penstock.store.executions import unsent_spans
from penstock.store.session.database import Session
from penstock_executor.execution_spans import spans_of
from penstock_executor.loop_runner import Loop

BATCH = 200
PAUSE = 1.0
"""Seconds between two turns of the loop while this process traces."""
OFF = 3600.0


async def turn(parts: Parts, session: Session) -> bool | float:
    if not tracing.is_on():
        return OFF
    async with session.transaction() as tx:
        executions = await unsent_spans.take(tx, BATCH)
        spans = await spans_of(tx, executions) if executions else []
    tracing.send(*spans)
    return True if len(executions) == BATCH else PAUSE


# Without `opens`: no attribute of a span is an encrypted value.
LOOP = Loop("send_spans", lambda settings: PAUSE, turn, opens=False)
