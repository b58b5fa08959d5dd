"""The loop that ends attempts that run past their timeout although their worker lives and should have ended them.

The worker enforces the timeout itself, and kills what does not stop within its grace. This loop handles only attempts
that exceed their timeout by twice the grace. They end as the worker would have ended them, so the same policy decides
on a retry. Later reports of their workers are rejected by the fence (I2). Attempts of workers without heartbeats are
left to `reap_workers`: they were lost, and not too slow.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from operator import attrgetter
from uuid import UUID

import orjson
import structlog

from penstock.language.policies.after_attempt import ending_of_overdue
from penstock.language.policies.policies import RetryPolicy
from penstock.service.assembly import Parts
from penstock.store.executions import attempts
from penstock.store.executions.attempts import AttemptEnd, OverdueAttempt
from penstock.store.session.database import Session
from penstock_executor.loop_runner import Loop

log = structlog.get_logger()

BATCH = 500


async def turn(parts: Parts, session: Session) -> bool:
    overdue = await attempts.overdue(session, 2 * parts.settings.grace, BATCH)
    # One transaction for each worker. Each end locks rows of executions first, and then the keys of their limits. A transaction
    # with ends of two workers would lock rows while it holds keys, and could deadlock.
    for worker, held in groupby(overdue, attrgetter("worker")):
        ends = [_end(attempt) for attempt in held]
        async with session.transaction() as tx:
            moved = await attempts.finish(tx, worker, ends)
        parts.publisher.publish(tx.staged)
        parts.metrics.overdue.inc(len(moved))
        _tell(ends, moved)
    return len(overdue) == BATCH


def _end(overdue: OverdueAttempt) -> AttemptEnd:
    definition = orjson.loads(overdue.definition)
    options = orjson.loads(overdue.options) if overdue.options else {}
    retry = RetryPolicy.model_validate(options.get("retry") or definition.get("retry") or {})
    ending = ending_of_overdue(overdue.timeout, retry, overdue.failures)
    followed = bool(definition.get("on_success") or definition.get("on_failure"))
    return AttemptEnd(overdue.execution_id, overdue.attempt, ending, followed)


def _tell(ends: Sequence[AttemptEnd], moved: set[UUID]) -> None:
    for end in ends:
        if end.execution_id in moved:
            log.warning("end_overdue.ended", execution_id=str(end.execution_id), attempt=end.attempt)


LOOP = Loop("end_overdue", lambda settings: settings.sweep_interval, turn)
