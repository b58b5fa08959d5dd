"""The facts that a decision asks for (`Needed`), and those that it knows (`Facts`). The caller of the engine fills one with
what the other names."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

from penstock.engine.state import TaskState

WORKFLOW = -1
"""As the writer of a variable: the workflow's own `vars`."""
EVERYTHING = -2
"""As the reader of variables: what comes after all tasks, so that it sees what all have published."""


@dataclass(slots=True)
class VariablesRequest:
    """A request for the variables that `reader` sees: of these names (None: all), of each the value of the
    writer with the highest index among `writers` (None: all writers below `below`), or else WORKFLOW's."""

    names: frozenset[str] | None
    writers: tuple[int, ...] | None
    below: int

    def sees(self, writer: int, name: str) -> bool:
        """Return whether the reader sees this variable, if no later writer has it too."""
        if self.names is not None and name not in self.names:
            return False
        if writer == WORKFLOW:
            return True
        return writer < self.below if self.writers is None else writer in self.writers


@dataclass(slots=True)
class Needed:
    """Everything that is missing for a decision. `tasks` asks for states of tasks, `results` for results of tasks,
    `variables` for variables by reader. `items` asks for ranges (first, end) of the stored items of tasks. `failures` asks for
    up to ten tasks that are `failing`, in order. `item_errors` asks for the first failed items of tasks."""

    tasks: set[int] = field(default_factory=set)
    results: set[int] = field(default_factory=set)
    variables: dict[int, VariablesRequest] = field(default_factory=dict)
    items: dict[int, tuple[int, int]] = field(default_factory=dict)
    parameters: bool = False
    failures: bool = False
    item_errors: set[int] = field(default_factory=set)

    def __bool__(self) -> bool:
        return bool(
            self.tasks
            or self.results
            or self.variables
            or self.items
            or self.parameters
            or self.failures
            or self.item_errors
        )


SHOWN_ITEMS = 3
"""Of a fan-out that failed, so many items are named with their errors."""
T = TypeVar("T")
Asking = Generator[Needed, None, T]
"""A computation that yields what it needs to know and returns a T. When it goes on, `Facts` hold all of that."""


@dataclass(frozen=True, slots=True)
class Oversized:
    """The place of the results of a fan-out that are not read, since they have `bytes` of JSON together and `bound` are read."""

    bytes: int
    bound: int


class TaskResult(NamedTuple):
    """The result of a task. A fan-out has the results of its items in order, and None for an item without one. Their number
    is the `fan.total` of its state in the facts, or else of the stored state. Oversized stands for results over the bound."""

    result: Any = None
    error: Any = None


@dataclass(slots=True)
class Facts:
    """The loaded facts. `tasks` has None for a task of which nothing is stored. `variables`: by reader, the names that were
    asked for (None: all) and name -> (writer, value). `parameters` is None until they are loaded, and with them `context`:
    values that the run was started with beside its parameters. `rerun`: results may also be those of the run before."""

    tasks: dict[int, TaskState | None] = field(default_factory=dict)
    results: dict[int, TaskResult] = field(default_factory=dict)
    variables: dict[int, tuple[frozenset[str] | None, dict[str, tuple[int, Any]]]] = field(
        default_factory=dict
    )
    items: dict[int, dict[int, Any]] = field(default_factory=dict)
    parameters: dict[str, Any] | None = None
    context: dict[str, Any] = field(default_factory=dict)
    failures: dict[int, TaskState] | None = None
    item_errors: dict[int, dict[int, Any]] = field(default_factory=dict)
    rerun: bool = False

    def missing(self, needed: Needed) -> Needed:
        """The part of `needed` that is not known yet."""
        missing = Needed(tasks=needed.tasks - self.tasks.keys(), results=needed.results - self.results.keys())
        for reader, request in needed.variables.items():
            if not self._has(reader, request):
                missing.variables[reader] = request
        for task, (first, end) in needed.items.items():
            if any(item not in self.items.get(task, ()) for item in range(first, end)):
                missing.items[task] = (first, end)
        missing.parameters = needed.parameters and self.parameters is None
        missing.item_errors = needed.item_errors - self.item_errors.keys()
        missing.failures = needed.failures and self.failures is None
        return missing

    def _has(self, reader: int, request: VariablesRequest) -> bool:
        if reader not in self.variables:
            return False
        had = self.variables[reader][0]
        return had is None or (request.names is not None and request.names <= had)
