"""Steps that are functions, called here until one result is recorded."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from penstock.language.durable.core import Core, instant_of, until_json, value_of
from penstock.language.durable.records import STARTED, Record
from penstock.language.durable.step_tries import delay_of, try_once
from penstock.language.policies import RetryPolicy


async def run_step(core: Core, record: Record, call: Callable[[], Any], policy: RetryPolicy) -> Any:
    """The recorded result of this step. Raises StepFailed."""
    while not record.final:
        core.waiting.check()
        if record.result is not None:  # it waits for its next try
            await core.waiting.until(instant_of(record))
            record.result = None
        record = await core.waiting.busy(_try(core, record, call, policy))
    return value_of(record)


async def _try(core: Core, record: Record, call: Callable[[], Any], policy: RetryPolicy) -> Record:
    await core.write_values()
    await core.ours(core.backend.begin(record))
    record.tries += 1
    error = await try_once(record, call, core.limit)
    if error is not None and (delay := delay_of(policy, error, record.tries)) is not None:
        record.status, record.result = STARTED, until_json(core.clock() + timedelta(seconds=delay))
    return await core.written(record)
