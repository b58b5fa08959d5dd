"""An event or an execution that the code of an attempt asked for, checked and ready to be stored."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.run.outgoing import Publish, Start
from penstock.run.task_executors import TaskReadyEvent
from penstock.store.events.events import NewEvent
from penstock.store.executions.effects import Kind
from penstock.store.executions.executions import Submission


@dataclass(frozen=True, slots=True)
class NewEffect:
    """A checked request of an attempt (`event`), with the row that it becomes."""

    event: TaskReadyEvent
    request: Publish | Start
    row: NewEvent | Submission

    @property
    def kind(self) -> Kind:
        return "event" if isinstance(self.row, NewEvent) else "execution"
