"""An event, an execution or a signal that the code of an attempt requested, checked and ready to be stored."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.run.outgoing import Effect
from penstock.run.task_executors import TaskReadyEvent
from penstock.store.durable.steps import NewSignal
from penstock.store.events.events import NewEvent
from penstock.store.executions.effects import Kind
from penstock.store.executions.executions import Submission


@dataclass(frozen=True, slots=True)
class NewEffect:
    """A checked request of an attempt (`event`), with the row that it becomes."""

    event: TaskReadyEvent
    request: Effect
    row: NewEvent | Submission | NewSignal

    @property
    def kind(self) -> Kind:
        """Return the kind of the stored effect. A signal is stored as a step of its receiver, and is not an effect."""
        return "event" if isinstance(self.row, NewEvent) else "execution"
