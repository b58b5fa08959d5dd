"""Steps that are executions of their own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import orjson

from penstock.engine.durable.calls import Answer, Call
from penstock.engine.durable.core import REFUSALS, Core, failure, value_of
from penstock.engine.durable.records import ASK, FAILED, WAIT_FOR, Child, ChildStart, Record, cause_of
from penstock.errors import PenstockError

SLOW = (ASK, WAIT_FOR)
"""The kinds of steps that a human or the outside world answers. A worker gains nothing by waiting for them."""


async def run_child(core: Core, record: Record, target: str, parameters: Mapping[str, Any]) -> Any:
    """Start the child of this step, unless there is one, and await its end. Raises StepFailed if the child could not be
    started or ended otherwise than as completed, and StepTimedOut if its time ran out."""
    return await core.result(record, partial(_work, core, record, target, parameters))


async def _work(core: Core, record: Record, target: str, parameters: Mapping[str, Any], call: Call) -> None:
    child = core.children.get(record.key)
    if child is None:
        call.starting = True
        try:
            child = await _start(core, ChildStart(record, target, parameters))
        except REFUSALS as error:
            await _refused(core, record, error, call)
            return
        finally:
            call.starting = False
        core.children[record.key] = child
    if not child.ended:
        # The call was cancelled while its child was being started.
        if call.future is None or call.future.done():
            core.deliveries.cancel_started(call, child.id)
            return
        call.child = child.id
        child = await core.waiting.for_child(child.id, cause_of(record), slow=record.kind in SLOW)
        core.open_children.discard(child.id)
    await _settle(core, record, child, call)


async def _start(core: Core, start: ChildStart) -> Child:
    await core.write_values()
    return await core.ours(_started(core, start))


async def _started(core: Core, start: ChildStart) -> Child:
    """Start a child, and note it as open. Its attempt may be over by then, and cancels its open children."""
    child = (await core.backend.start([start]))[start.record.key]
    if not child.ended:
        core.open_children.add(child.id)
    return child


async def _refused(core: Core, record: Record, error: PenstockError, call: Call) -> None:
    record.status = FAILED
    description = {"type": type(error).__name__, "message": error.message, "hint": error.hint}
    record.error = orjson.dumps(description).decode()
    record.told = core.deliveries.reserve(call)
    record = await core.written(record)
    core.deliveries.settle(call, core.answer_of(record))


async def _settle(core: Core, record: Record, child: Child, call: Call) -> None:
    if child.status == "completed":
        value = await _resolved(core, orjson.loads(child.result or "null"))
        core.deliveries.settle(call, _giver(value), child.at or core.clock())
        return
    if record.told is None:
        record = await core.written(record)
    if record.final:  # an operator has set the result of the step, which also ended the child
        call.record = record
        value = await _resolved(core, value_of(record))
        core.deliveries.settle(call, _giver(value))
    else:
        late = child.status == "timeout" and record.kind in SLOW
        core.deliveries.settle(call, _raiser(record, child, late=late), child.at or core.clock())


async def _resolved(core: Core, value: Any) -> Any:
    return await core.backend.resolved(value) if value is not None else None


def _giver(value: Any) -> Answer:
    return lambda: value


def _raiser(record: Record, child: Child, *, late: bool) -> Callable[[], Any]:
    def answer() -> Any:
        raise failure(record, child.status, child.error, late=late)

    return answer
