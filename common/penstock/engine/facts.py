"""The facts that a decision asks for (`Needed`) and the facts that are loaded (`Facts`). The caller of the engine adds
to `Facts` what `Needed` names."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

from penstock.engine.state import TaskState

WORKFLOW = -1
"""The writer of the workflow's own `vars`, in place of a task's index."""
EVERYTHING = -2
"""The reader of variables that comes after all tasks, in place of a task's index. Such a reader sees what all tasks
published."""


@dataclass(slots=True)
class VariablesRequest:
    """A request for the variables that `reader` sees. `names` None means all names.

    The value of a name is that of the writer with the highest index among `writers`, or else that of WORKFLOW.
    `writers` None means all writers below `below`.
    """

    names: frozenset[str] | None
    writers: tuple[int, ...] | None
    below: int

    def sees(self, writer: int, name: str) -> bool:
        """Return whether the reader sees the value that `writer` gave to `name`, unless a later writer gave another
        value."""
        if self.names is not None and name not in self.names:
            return False
        if writer == WORKFLOW:
            return True
        return writer < self.below if self.writers is None else writer in self.writers


@dataclass(slots=True)
class Needed:
    """The facts that a decision lacks. `tasks` asks for states of tasks, `results` for results of tasks, and
    `variables` for variables by reader. `items` asks for ranges (first, end) of the stored items of tasks. `failures`
    asks for at most ten tasks that are `failing`, in order. `item_errors` asks for the ends of the first failed items
    of tasks, in the order in which they failed, with cancelled items last."""

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
"""The number of failed items that the error of a fan-out names."""
T = TypeVar("T")
Asking = Generator[Needed, None, T]
"""A computation that yields requests for facts and returns a T. The caller loads each request into `Facts` before it
resumes the generator."""


@dataclass(frozen=True, slots=True)
class Oversized:
    """The mark in place of the results of a fan-out that are too large to load: they have `bytes` of JSON, and at most
    `bound` are read."""

    bytes: int
    bound: int


class TaskResult(NamedTuple):
    """The result of a task. For a fan-out it is the list of its items' results, in order, with None for an item
    without one. The length of the list is `fan.total` of the task's state in the facts, or else of the stored state.
    Oversized stands for results over the bound. `attempt` is the number of the last attempt, if an execution has the
    result."""

    result: Any = None
    error: Any = None
    attempt: int | None = None


@dataclass(slots=True)
class Facts:
    """The loaded facts. `tasks` maps a task without stored state to None. `variables` maps a reader to the names that
    were loaded (None: all) and to a mapping from each name to (writer, value).

    `parameters` is None until loaded. `context` is loaded with it: the values besides parameters with which the run
    was started. `rerun` is true for a re-run. Its tasks may have results of the run before.
    """

    tasks: dict[int, TaskState | None] = field(default_factory=dict)
    results: dict[int, TaskResult] = field(default_factory=dict)
    variables: dict[int, tuple[frozenset[str] | None, dict[str, tuple[int, Any]]]] = field(
        default_factory=dict
    )
    items: dict[int, dict[int, Any]] = field(default_factory=dict)
    parameters: dict[str, Any] | None = None
    context: dict[str, Any] = field(default_factory=dict)
    failures: dict[int, TaskState] | None = None
    item_errors: dict[int, dict[int, TaskResult]] = field(default_factory=dict)
    rerun: bool = False

    def missing(self, needed: Needed) -> Needed:
        """Return the part of `needed` that is not loaded yet."""
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
