"""The state of a worker that its runner shares with the source of its work."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Self
from uuid import UUID

from penstock.attempts.owned_attempt import OwnedAttempt
from penstock.run.task_executors import TaskExecutor
from penstock_worker.records.batches import Batches
from penstock_worker.records.executor_room import ExecutorRoom
from penstock_worker.records.running import Running
from penstock_worker.records.slots import Slots


class Inbox:
    """A queue of the attempts that a worker has claimed and has not begun. Their slots are taken before they are put in,
    so that it holds no more than there are slots."""

    def __init__(self) -> None:
        self._attempts: deque[OwnedAttempt] = deque()
        self._arrived = asyncio.Event()

    def put(self, attempts: Iterable[OwnedAttempt]) -> None:
        """Add attempts, in their order."""
        self._attempts.extend(attempts)
        if self._attempts:
            self._arrived.set()

    def take_all(self) -> list[OwnedAttempt]:
        """Return what is in the queue, and empty it."""
        attempts = list(self._attempts)
        self._attempts.clear()
        self._arrived.clear()
        return attempts

    async def wait(self) -> None:
        """Wait until there is an attempt."""
        await self._arrived.wait()


@dataclass(frozen=True, slots=True)
class WorkerState:
    """The `slots`, the `room` of the task executors, the attempts that have arrived (`inbox`), their `batches`, and those that
    run."""

    slots: Slots
    room: ExecutorRoom
    inbox: Inbox
    batches: Batches
    running: dict[UUID, Running] = field(default_factory=dict)

    @classmethod
    def of(cls, executors: Mapping[str, TaskExecutor], slots: int) -> Self:
        held, room = Slots(slots), ExecutorRoom(executors, slots)
        return cls(held, room, Inbox(), Batches(held, room))
