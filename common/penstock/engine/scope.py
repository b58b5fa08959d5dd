"""What an expression of a workflow sees."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import Any, TypeVar

from penstock.engine.decision import Published
from penstock.engine.facts import Ended, Facts, Needed
from penstock.engine.plan import NOTHING_READ, Plan, Reads
from penstock.engine.state import Record
from penstock.moves import CANCELLED, COMPLETED, FINAL, SKIPPED, TIMEOUT

T = TypeVar("T")
Steps = Generator[Needed, None, T]
"""A computation that stops to ask for facts. When it goes on, they are there."""


class Told(int):
    """`failed` and `failed()` are the same thing in a condition."""

    def __call__(self) -> bool:
        return bool(self)


_EMPTY: dict[str, Any] = {"parameters": {}, "vars": {}, "context": {}, "tasks": {}}


class Scope:
    """Builds namespaces from facts, and asks for those that are missing. `published` is what this very
    advance published, which nobody can load yet."""

    def __init__(
        self, plan: Plan, facts: Facts, system: Mapping[str, Any], published: list[Published]
    ) -> None:
        self.plan = plan
        self.facts = facts
        self.system = system
        self.published = published

    def wanted(self, needed: Needed, reads: Reads, reader: int) -> None:
        """Add to `needed` what a template that `reader` renders will ask for."""
        if reads is NOTHING_READ:
            return
        needed.records |= reads.tasks
        for task in reads.results:
            record = self.facts.records.get(task)
            if record is None or not record.given:
                needed.results.add(task)
        if reads.own:
            record = self.facts.records.get(reader)
            if record is None or not record.given:
                needed.results.add(reader)
        names = reads.variables
        if names != frozenset() and reader in self.facts.variables:
            had = self.facts.variables[reader][0]
            names = None if had is None or names is None else names | had
        variables = self.plan.variables(reader, names)
        if variables is not None:
            needed.variables[reader] = variables
        needed.parameters |= reads.parameters

    def namespace(self, reads: Reads, reader: int, **own: Any) -> Steps[dict[str, Any]]:
        """What a template with these reads sees; `own` are names of its own."""
        if reads is NOTHING_READ:
            return {**_EMPTY, "system": self.system, **own}
        needed = Needed(records=set(reads.tasks) | {reader} if reads.own else set(reads.tasks))
        yield from self.load(needed)
        self.wanted(needed, reads, reader)
        yield from self.load(needed)
        variables = self.variables(reader, reads.variables)
        parameters = self.facts.parameters or {}
        return {
            "parameters": parameters,
            "vars": variables,
            "context": {**self.facts.context, **parameters, **variables},
            "tasks": {
                self.plan.graph[task].name: self.task(task, task in reads.results) for task in reads.tasks
            },
            "system": self.system,
            **own,
        }

    def load(self, needed: Needed) -> Steps[None]:
        missing = self.facts.missing(needed)
        if missing:
            yield missing

    def variables(self, reader: int, names: frozenset[str] | None) -> dict[str, Any]:
        """The variables as `reader` sees them: of several values the one whose writer comes last in the
        workflow."""
        if names == frozenset():
            return {}
        found = dict(self.facts.variables[reader][1]) if reader in self.facts.variables else {}
        for writer, name, value in self.published:
            if (names is not None and name not in names) or not self.plan.sees(reader, writer):
                continue
            if name not in found or writer >= found[name][0]:
                found[name] = (writer, value)
        return {name: value for name, (_, value) in found.items()}

    def task(self, index: int, with_result: bool) -> dict[str, Any]:
        """`tasks.<name>`"""
        record = self.facts.records.get(index)
        seen: dict[str, Any] = {"status": "waiting" if record is None else record.status}
        if with_result:
            ended = self.ended(index, record)
            seen["result"], seen["error"] = ended
        return seen

    def ended(self, index: int, record: Record | None) -> Ended:
        """Result and error of a task. What the executor itself says of it comes before what its execution
        said."""
        if record is None or record.status not in FINAL or record.status == SKIPPED:
            return Ended()
        if record.given:
            return Ended(record.result, record.error)
        loaded = self.facts.results.get(index, Ended())
        return Ended(loaded.result, loaded.error if record.error is None else record.error)


def end_names(status: str, ended: Ended) -> dict[str, Any]:
    """The names about a task's own end, for its `publish` and `next`."""
    return {
        "status": status,
        "result": ended.result,
        "error": ended.error,
        "succeeded": Told(status == COMPLETED),
        "failed": Told(status not in (COMPLETED, SKIPPED)),
        "timed_out": Told(status == TIMEOUT),
        "cancelled": Told(status == CANCELLED),
    }
