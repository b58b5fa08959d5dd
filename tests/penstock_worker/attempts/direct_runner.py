"""A runner with a session with the database, for tests that act on its parts."""

from __future__ import annotations

from collections.abc import Mapping

from penstock.run.task_executors import RunnableAction, TaskExecutor
from penstock.service.assembly import Parts
from penstock.service.heartbeat import Identity
from penstock_worker.attempts.runner import Runner
from penstock_worker.direct.direct_backend import DirectBackend
from penstock_worker.ending.slow_actions import ActionDurations
from penstock_worker.records.worker_state import WorkerState


def runner_with_backend(
    parts: Parts,
    worker: Identity,
    actions: Mapping[str, RunnableAction],
    executors: Mapping[str, TaskExecutor],
    slots: int | None = None,
) -> tuple[Runner, DirectBackend]:
    """Return a runner of these actions with its backend. Nothing runs until the test starts it."""
    state = WorkerState.of(executors, slots or parts.settings.concurrency)
    durations = ActionDurations(parts.database.session(relaxed=True))
    backend = DirectBackend(parts, worker, actions.get, state, durations=durations, sink=lambda *_: None)
    return Runner(parts.settings, parts.metrics, executors, state, backend), backend
