"""The number of attempts that a worker's task executors can still start."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from uuid import UUID

from penstock.run.task_executors import TaskExecutor


class ExecutorRoom:
    """The free places of a worker's task executors, checked before work is claimed. Work without a free place stays on
    its route, for another worker or for later. An executor with a place for each of the worker's `slots` is never full,
    since nothing is claimed without a slot."""

    def __init__(self, executors: Mapping[str, TaskExecutor], slots: int) -> None:
        self._executors = executors
        self._slots = slots
        self._given: Counter[str] = Counter()
        self._promised: dict[UUID, Mapping[str, int]] = {}

    def give(self, executor: str) -> None:
        """Count an attempt that was passed to the executor and begins in a moment."""
        self._given[executor] += 1

    def take_back(self, executor: str) -> None:
        """Stop counting an ended attempt. A leaked attempt occupies its place for longer, which the executor itself
        reports."""
        self._given[executor] -= 1

    def promise(self, claim: UUID, limit: int) -> dict[str, int]:
        """Return the free places of the executors that have fewer free places than this claim may take. The places are
        reserved until `over`, so that a concurrent claim does not count them too."""
        self.over(claim)
        room = self._room()
        self._promised[claim] = {name: min(free, limit) for name, free in room.items()}
        return {name: free for name, free in room.items() if free < limit}

    def full(self, limit: int) -> dict[str, int]:
        """Return the free places of the executors with fewer than `limit` free places. Nothing is reserved."""
        return {name: free for name, free in self._room().items() if free < limit}

    def _room(self) -> dict[str, int]:
        """Return the free places of the executors that have no place for each slot."""
        return {
            name: free
            for name, executor in self._executors.items()
            if (free := self._left(name, executor)) is not None
        }

    def over(self, claim: UUID) -> None:
        """Close a claim. Its attempts were passed to their executors, and it takes no more."""
        self._promised.pop(claim, None)

    def is_ample(self, executor: str) -> bool:
        """Return whether this executor has a place for each of the worker's slots."""
        return executor in self._executors and self._left(executor, self._executors[executor]) is None

    def has_place(self, executor: str) -> bool:
        """Return whether the executor would start an attempt now. Return True for an unknown executor, which raises the
        error when it is asked to start."""
        return executor not in self._executors or self._executors[executor].has_capacity()

    def _left(self, name: str, executor: TaskExecutor) -> int | None:
        """Return the number of free places of an executor, or None if it has a place for each slot."""
        now = executor.metrics()
        if now.available + now.active - now.leaked >= self._slots:
            return None
        if not executor.has_capacity():
            return 0
        not_begun = self._given[name] - (now.active - now.leaked)
        promised = sum(places.get(name, 0) for places in self._promised.values())
        return max(0, now.available - max(0, not_begun) - promised)
