"""The names that an expression of a workflow sees."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from penstock.engine.decision import Published
from penstock.engine.facts import Asking, Facts, Needed, Oversized, TaskResult
from penstock.engine.plan import NOTHING_READ, Plan, Reads
from penstock.engine.state import TaskState
from penstock.language.expressions import Unreadable
from penstock.language.moves import CANCELLED, COMPLETED, FINAL, SKIPPED, TIMEOUT

OVERSIZED_HINT = (
    "Let each item return less: put large data in a store and return a link. Or split the items between sub-workflows "
    "that each return a summary, or raise PENSTOCK_PAYLOAD_CAP."
)


class CallableFlag(int):
    """A flag that conditions may also call: `failed` and `failed()` mean the same."""

    def __call__(self) -> bool:
        return bool(self)


_EMPTY: dict[str, Any] = {"parameters": {}, "vars": {}, "context": {}, "tasks": {}}


class Scope:
    """A builder of namespaces for expressions. The builder requests the facts that are missing. `published` are the
    values that this decision publishes, which are not stored yet."""

    def __init__(
        self, plan: Plan, facts: Facts, system: Mapping[str, Any], published: list[Published]
    ) -> None:
        self.plan = plan
        self.facts = facts
        self.system = system
        self.published = published

    def add_needed(self, needed: Needed, reads: Reads, reader: int) -> None:
        """Add to `needed` the facts that a template reads which `reader` renders."""
        if reads is NOTHING_READ:
            return
        needed.tasks |= reads.tasks
        for task in reads.results:
            task_state = self.facts.tasks.get(task)
            if task_state is None or not task_state.given:
                needed.results.add(task)
        if reads.own:
            task_state = self.facts.tasks.get(reader)
            if task_state is None or not task_state.given:
                needed.results.add(reader)
        names = reads.variables
        if names != frozenset() and reader in self.facts.variables:
            had = self.facts.variables[reader][0]
            names = None if had is None or names is None else names | had
        variables = self.plan.variables(reader, names)
        if variables is not None:
            needed.variables[reader] = variables
        needed.parameters |= reads.parameters

    def namespace(self, reads: Reads, reader: int, **own: Any) -> Asking[dict[str, Any]]:
        """Return the names that a template with these reads sees. `own` are names for this template alone, such as
        `item`."""
        if reads is NOTHING_READ:
            return {**_EMPTY, "system": self.system, **own}
        needed = Needed(tasks=set(reads.tasks) | {reader} if reads.own else set(reads.tasks))
        yield from self.load(needed)
        self.add_needed(needed, reads, reader)
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

    def load(self, needed: Needed) -> Asking[None]:
        missing = self.facts.missing(needed)
        if missing:
            yield missing

    def variables(self, reader: int, names: frozenset[str] | None) -> dict[str, Any]:
        """Return the variables as `reader` sees them, from name to value. Of several values the last writer in the
        workflow's order wins."""
        if names == frozenset():
            return {}
        latest = dict(self.facts.variables[reader][1]) if reader in self.facts.variables else {}
        for writer, name, value in self.published:
            if (names is not None and name not in names) or not self.plan.sees(reader, writer):
                continue
            if name not in latest or writer >= latest[name][0]:
                latest[name] = (writer, value)
        return {name: value for name, (_, value) in latest.items()}

    def task(self, index: int, with_result: bool) -> dict[str, Any]:
        """Return the value of `tasks.<name>`: the task's status, and its result and error if `with_result`."""
        task_state = self.facts.tasks.get(index)
        names: dict[str, Any] = {"status": "waiting" if task_state is None else task_state.status}
        if with_result:
            outcome = self.result_of(index, task_state)
            end = readable(self.plan.graph[index].name, outcome)
            names["result"], names["error"] = end.result, end.error
        return names

    def result_of(self, index: int, task_state: TaskState | None) -> TaskResult:
        """Return the result and error of a task. An error that the engine found wins over the execution's own."""
        if task_state is None or task_state.status not in FINAL or task_state.status == SKIPPED:
            return TaskResult()
        if task_state.given:
            return TaskResult(task_state.result, task_state.error)
        loaded = self.facts.results.get(index, TaskResult())
        error = loaded.error if task_state.error is None else task_state.error
        return TaskResult(loaded.result, error, loaded.attempt)


def readable(task: str, end: TaskResult) -> TaskResult:
    """Return a task's result and error as expressions see them. An expression that uses results over the bound fails."""
    if not isinstance(end.result, Oversized):
        return end
    reason = (
        f"the results of the items of task `{task}` have {end.result.bytes:,} bytes of JSON together; "
        f"at most {end.result.bound:,} are read"
    )
    return TaskResult(Unreadable(reason, hint=OVERSIZED_HINT), end.error)


def end_names(status: str, end: TaskResult) -> dict[str, Any]:
    """Return the names for a task's own end, which its `publish` and `next` see."""
    return {
        "status": status,
        "result": end.result,
        "error": end.error,
        "succeeded": CallableFlag(status == COMPLETED),
        "failed": CallableFlag(status not in (COMPLETED, SKIPPED)),
        "timed_out": CallableFlag(status == TIMEOUT),
        "cancelled": CallableFlag(status == CANCELLED),
    }
