"""The batches of a simulation: attempts that are ready share a call, without a wait."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass
from typing import Any

from penstock.run.batch_calls import outcomes_of_items
from penstock.run.calls import call_plain
from penstock.run.capture import echoed
from penstock.run.outcomes import Outcome
from penstock.run.run import Run
from penstock.run.run_log import RunLog
from penstock.testing.own_loop import has_loop


@dataclass(frozen=True, slots=True)
class WaitingItem:
    """An attempt that waits for the call of its batch. `report` takes its outcome. `has_ended` returns whether its execution
    ended meanwhile."""

    run: Run
    report: Callable[[Outcome], None]
    has_ended: Callable[[], bool]


class SimulatedBatches:
    """The attempts that wait for a call, in groups that may share one."""

    def __init__(self) -> None:
        self._groups: dict[Hashable, list[WaitingItem]] = {}

    def join(self, key: Hashable, item: WaitingItem) -> None:
        """Let an attempt wait for the next call of its group. `key` begins with the size of a batch."""
        self._groups.setdefault(key, []).append(item)

    def call_next(self) -> bool:
        """Call the function of the group that waits longest with as many items as fit a batch. Return False if none waits."""
        if not self._groups:
            return False
        key: Any = next(iter(self._groups))
        waiting = [item for item in self._groups.pop(key) if not item.has_ended()]
        items, remaining = waiting[: key[0]], waiting[key[0] :]
        if remaining:
            self._groups[key] = remaining
        if items:
            _call(items)
        return True


def _call(items: list[WaitingItem]) -> None:
    first = items[0].run
    run = Run(
        event=first.event,
        params={},
        action=first.action,
        log=RunLog(first.log),
        timeout=first.timeout,
        result_limit=first.result_limit,
        items=[item.run for item in items],
    )
    try:
        outcome = call_here(run)
    finally:
        run.log.close()
        for item in items:
            item.run.log.close()
    for item, own in zip(items, outcomes_of_items(run, outcome), strict=True):
        item.report(own)


def call_here(run: Run) -> Outcome:
    """Call the function of a run. A coroutine function gets its own event loop, in another thread if this thread has
    one."""
    if not run.action.is_coroutine or not has_loop():
        with echoed():
            return call_plain(run)
    with echoed(), ThreadPoolExecutor(1) as thread:
        return thread.submit(copy_context().run, call_plain, run).result()
