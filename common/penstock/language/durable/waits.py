"""Waiting for an instant, and for what is told to a run."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from penstock.language.durable.core import Core, failure, value_of
from penstock.language.durable.records import COMPLETED, FAILED, Key, Record

Ask = tuple[Key, Record | None]


async def sleep_for(core: Core, record: Record, span: timedelta) -> None:
    """Wait until this is over, counted from when it began first. Whoever was given a result for it is not to wait."""
    if not record.final:
        await core.waiting.until(await core.until_recorded(record, span))


async def await_signal(core: Core, asked: Ask, deadline: Record | None, span: timedelta) -> Any:
    """What was told. Raises StepTimedOut once the deadline has passed and nothing was; that is recorded, and stays so. One that
    somebody has done away with never passes."""
    key, told = asked
    if deadline is None or deadline.status == COMPLETED:
        return (
            value_of(told) if told is not None else await core.waiting.for_signal(await _written(core, key))
        )
    if deadline.status == FAILED:
        raise failure(deadline, "timeout", deadline.error, late=True)
    if told is not None:
        return value_of(told)
    await core.waiting.for_signal(key, await core.until_recorded(deadline, span))
    deadline.status = FAILED
    deadline.error = '{"message": "nothing was told in time"}'
    deadline = await core.waiting.busy(core.written(deadline))
    core.journal.forget_signal(key)
    raise failure(deadline, "timeout", deadline.error, late=True)


async def _written(core: Core, key: Key) -> Key:
    await core.waiting.busy(core.write_values())
    return key
