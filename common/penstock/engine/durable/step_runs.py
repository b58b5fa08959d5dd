"""Steps that are functions, called until one result is recorded."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any

from penstock.engine.durable.calls import Call
from penstock.engine.durable.core import Core
from penstock.engine.durable.records import STARTED, Record, cause_of, instant_of, until_json
from penstock.engine.durable.step_tries import delay_of, try_once
from penstock.language.policies.policies import RetryPolicy


async def run_step(core: Core, record: Record, function: Callable[[], Any], policy: RetryPolicy) -> Any:
    """Return the recorded result of this step, or call its function until there is one. Raises StepFailed if its last
    attempt has failed."""
    return await core.result(record, partial(_work, core, record, function, policy))


async def _work(
    core: Core, record: Record, function: Callable[[], Any], policy: RetryPolicy, call: Call
) -> None:
    while not record.final:
        core.waiting.check()
        if record.result is not None:  # the step waits until the instant of its next try
            await core.waiting.until(instant_of(record), cause_of(record))
            record.result = None
        call.calling = True
        record = await _try(core, record, function, policy, call)
        call.record, call.calling = record, False
        if core.deliveries.closing:
            return
    core.deliveries.settle(call, core.answer_of(record))


async def _try(
    core: Core, record: Record, function: Callable[[], Any], policy: RetryPolicy, call: Call
) -> Record:
    await core.write_values()
    await core.ours(core.backend.begin(record))
    error = await try_once(record, function, core.limit)
    record.tries += 1  # counted after the call, since a cancelled try does not count
    if error is not None and (delay := delay_of(policy, error, record.tries, core.jitter())) is not None:
        record.status, record.result = STARTED, until_json(core.clock() + timedelta(seconds=delay))
    elif not core.deliveries.closing:  # the number of the result is recorded together with the result
        record.told = core.deliveries.reserve(call)
    return await core.written(record)
