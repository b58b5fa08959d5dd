"""The state of a worker that its runner shares with the source of its work."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Self
from uuid import UUID

from penstock.attempts.owned_attempt import OwnedAttempt
from penstock.run.task_executors import TaskExecutor
from penstock_worker.records.batches import Batches
from penstock_worker.records.executor_room import ExecutorRoom
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
        """Return the attempts in the queue, and empty it."""
        attempts = list(self._attempts)
        self._attempts.clear()
        self._arrived.clear()
        return attempts

    async def wait(self) -> None:
        """Wait until there is an attempt."""
        await self._arrived.wait()


@dataclass(slots=True)
class Running:
    """A running attempt. `is_executing`: its task executor has it, so that it may have had effects. `cancelled`: its end was
    requested. `ends_at_once`: its end was requested once more, so that it may not clean up. `claim_lost`: its claim is lost, or
    may be. `known_to_be_lost`: the database confirmed that. `given_up`: the reason why this worker ends it, if not because it
    stops. `is_durable`: a durable function, which cleans up once its end was requested. `is_stopped`: the worker has cancelled
    its task. `costs`: the true costs that it has reported so far, by unit."""

    attempt: OwnedAttempt
    task: asyncio.Task[None]
    is_executing: bool = False
    cancelled: bool = False
    ends_at_once: bool = False
    claim_lost: bool = False
    known_to_be_lost: bool = False
    given_up: str | None = None
    is_durable: bool = False
    is_stopped: bool = False
    costs: Mapping[str, Decimal] = field(default_factory=dict)

    def stop(self) -> None:
        """Cancel the task of the attempt."""
        self.is_stopped = True
        self.task.cancel()

    @property
    def may_begin(self) -> bool:
        """Return whether nothing has asked for the end of this attempt."""
        return not (self.cancelled or self.claim_lost or self.given_up is not None or self.task.cancelling())


@dataclass(frozen=True, slots=True)
class WorkerState:
    """The state of a worker: its `slots`, the `room` of its task executors, the arrived attempts (`inbox`), the
    `batches`, and the running attempts."""

    slots: Slots
    room: ExecutorRoom
    inbox: Inbox
    batches: Batches
    running: dict[UUID, Running] = field(default_factory=dict)

    @classmethod
    def of(cls, executors: Mapping[str, TaskExecutor], slots: int) -> Self:
        held, room = Slots(slots), ExecutorRoom(executors, slots)
        return cls(held, room, Inbox(), Batches(held, room))
