"""What a decision asks for, and what it was told. Whoever drives it fills `Facts` with what `Needed`
names."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from penstock.engine.state import Record

WORKFLOW = -1
"""As the writer of a variable: the workflow's own `vars`."""
EVERYTHING = -2
"""As the reader of variables: what comes after all tasks, so that it sees what all have published."""


@dataclass(slots=True)
class Variables:
    """A request for the variables that `reader` sees: of these names (None: all), of each the value whose
    writer has the highest index among `writers` (None: all writers below `below`), or else WORKFLOW's."""

    names: frozenset[str] | None
    writers: tuple[int, ...] | None
    below: int


@dataclass(slots=True)
class Needed:
    """Everything that is missing for a decision. `items` are ranges of kept items, by task; `failures` asks
    for up to ten records of failed tasks that nobody handled, in order."""

    records: set[int] = field(default_factory=set)
    results: set[int] = field(default_factory=set)
    variables: dict[int, Variables] = field(default_factory=dict)
    items: dict[int, tuple[int, int]] = field(default_factory=dict)
    parameters: bool = False
    failures: bool = False

    def __bool__(self) -> bool:
        return bool(
            self.records or self.results or self.variables or self.items or self.parameters or self.failures
        )


class Ended(NamedTuple):
    """What came of a task. Of a fan-out: the results of its items in order, None where there is none; as many
    as the `fan.total` of its record in the facts, or if it is not there, of the one that is stored."""

    result: Any = None
    error: Any = None


@dataclass(slots=True)
class Facts:
    """What has been loaded. `records` has None for a task without a record. `variables`: by reader, what was
    asked for and name -> (writer, value). `parameters` is None until they are loaded,
    and with them `context`: what the run was told beside its parameters. `rerun`: results may also be those of
    the run before."""

    records: dict[int, Record | None] = field(default_factory=dict)
    results: dict[int, Ended] = field(default_factory=dict)
    variables: dict[int, tuple[frozenset[str] | None, dict[str, tuple[int, Any]]]] = field(
        default_factory=dict
    )
    items: dict[int, dict[int, Any]] = field(default_factory=dict)
    parameters: dict[str, Any] | None = None
    context: dict[str, Any] = field(default_factory=dict)
    failures: dict[int, Record] | None = None
    rerun: bool = False

    def missing(self, needed: Needed) -> Needed:
        """The part of `needed` that is not known yet."""
        missing = Needed(
            records=needed.records - self.records.keys(), results=needed.results - self.results.keys()
        )
        for reader, wanted in needed.variables.items():
            if not self._has(reader, wanted):
                missing.variables[reader] = wanted
        for task, (first, end) in needed.items.items():
            if any(item not in self.items.get(task, ()) for item in range(first, end)):
                missing.items[task] = (first, end)
        missing.parameters = needed.parameters and self.parameters is None
        missing.failures = needed.failures and self.failures is None
        return missing

    def _has(self, reader: int, wanted: Variables) -> bool:
        if reader not in self.variables:
            return False
        had = self.variables[reader][0]
        return had is None or (wanted.names is not None and wanted.names <= had)
