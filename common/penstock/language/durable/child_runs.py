"""Steps that are executions of their own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from penstock.language.durable.core import Core, failure, value_of
from penstock.language.durable.records import ASK, WAIT_FOR, Child, ChildStart, Record

SLOW = (ASK, WAIT_FOR)
"""A human or the world outside answers: nothing is gained by waiting for that on a worker."""


async def run_child(core: Core, record: Record, target: str, parameters: Mapping[str, Any]) -> Any:
    """Start the child of this step, if nobody has, and await its end. Raises StepFailed, StepTimedOut."""
    if record.final:  # its result was given, or kept of the run before
        return await _resolved(core, value_of(record))
    child = core.children.get(record.key)
    if child is None:
        child = await core.waiting.busy(_start(core, ChildStart(record, target, parameters)))
    if not child.ended:
        core.open_children.add(child.id)
        child = await core.waiting.for_child(child.id, slow=record.kind in SLOW)
        core.open_children.discard(child.id)
    if child.status != "completed" and (given := await core.waiting.busy(core.written(record))).final:
        return await _resolved(core, value_of(given))  # somebody has given its result, and ended the child
    return await _resolved(core, _result_of(record, child))


async def _start(core: Core, start: ChildStart) -> Child:
    await core.write_values()
    return (await core.ours(core.backend.start([start])))[start.record.key]


async def _resolved(core: Core, value: Any) -> Any:
    return await core.waiting.busy(core.backend.resolved(value)) if value is not None else None


def _result_of(record: Record, child: Child) -> Any:
    if child.status == "completed":
        return orjson.loads(child.result or "null")
    late = child.status == "timeout" and record.kind in SLOW
    raise failure(record, child.status, child.error, late=late)
