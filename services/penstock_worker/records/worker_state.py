"""The state of a worker that its runner shares with the source of its work."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self
from uuid import UUID

from penstock.run.task_executors import TaskExecutor
from penstock_worker.records.batches import Batches
from penstock_worker.records.executor_room import ExecutorRoom
from penstock_worker.records.inbox import Inbox
from penstock_worker.records.running import Running
from penstock_worker.records.slots import Slots


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
