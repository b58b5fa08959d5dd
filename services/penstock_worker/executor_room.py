"""For how many more attempts the task executors of a worker have room."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from penstock.run.task_executors import TaskExecutor


class ExecutorRoom:
    """Asked before work is claimed: what an executor has no room for stays on its route, for another worker or for later."""

    def __init__(self, executors: Mapping[str, TaskExecutor]) -> None:
        self._executors = executors
        self._given: Counter[str] = Counter()

    def give(self, executor: str) -> None:
        """It is given an attempt, and begins it in a moment."""
        self._given[executor] += 1

    def take_back(self, executor: str) -> None:
        """An attempt that it was given has ended. A leaked one holds its place for longer, as the executor itself says."""
        self._given[executor] -= 1

    def below(self, most: int) -> dict[str, int]:
        """The executors that have room for fewer than `most` attempts, and for how many."""
        room = {name: self._left(name, executor) for name, executor in self._executors.items()}
        return {name: left for name, left in room.items() if left < most}

    def _left(self, name: str, executor: TaskExecutor) -> int:
        if not executor.has_capacity():
            return 0
        now = executor.metrics()
        not_begun = self._given[name] - (now.active - now.leaked)
        return max(0, now.available - max(0, not_begun))
