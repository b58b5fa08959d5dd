"""A run of a workflow on the engine alone. The driver is like that of an executor, with dictionaries for tables. From
one decision to the next it keeps only what the decision said to store."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

import orjson

from penstock.bounds import RESULTS_CAPS
from penstock.engine import (
    WORKFLOW,
    Asking,
    ChildEnded,
    Command,
    Decision,
    Facts,
    Final,
    Inbox,
    KeptTask,
    Needed,
    Plan,
    Start,
    TaskResult,
    TaskState,
    Turn,
    WorkflowState,
    advance,
    apply_command,
    begin,
    pause,
    resume,
    set_result,
    skip,
    stop,
    take_turn,
)
from penstock.engine.facts import SHOWN_ITEMS, Oversized
from penstock.engine.serialization import (
    dump_task_state,
    dump_workflow_state,
    load_task_state,
    load_workflow_state,
)
from penstock.engine.state import OPEN
from penstock.language.moves import CANCELLED, COMPLETED, SKIPPED
from penstock.language.workflows.model import Workflow
from penstock.run.stored_json import as_stored

T = TypeVar("T")
Key = tuple[str, int | None]
System = Mapping[str, Any]


class MemoryWorkflow:
    """A running workflow. `open` are the executions under way, which `finish` ends."""

    def __init__(
        self,
        workflow: Workflow,
        parameters: Mapping[str, Any] | None = None,
        *,
        budget: int = 1_000,
        kept_tasks: Mapping[int, KeptTask] | None = None,
        previous_run: MemoryWorkflow | None = None,
        plan: Plan | None = None,
    ) -> None:
        self.plan = plan or Plan(workflow)
        self.parameters = dict(parameters or {})
        self.budget = budget
        self.kept_tasks = kept_tasks
        self.previous_run = previous_run
        self.state: WorkflowState
        self.tasks: dict[int, TaskState] = {}
        self.started: dict[Key, Start] = {}
        self.ended: dict[Key, tuple[str, Any, Any]] = {}
        self.attempts: dict[Key, int] = {}
        """The number of the last attempt of executions that have ended."""
        self.variables: list[tuple[int, str, Any]] = []
        self.items: dict[int, list[Any]] = {}
        self.final: Final | None = None
        self.rounds: list[Needed] = []
        """The facts that were requested, by round trip."""
        self.decisions = 0

    # -- commands of operators, and ends of executions -----------------------------------------------------------------

    def begin(self) -> MemoryWorkflow:
        facts = Facts()
        self._decide(
            begin(self.plan, facts, self.system, kept_tasks=self.kept_tasks, budget=self.budget), facts
        )
        return self._go_on()

    def finish(self, *ends: tuple[Any, ...]) -> MemoryWorkflow:
        """End executions, in one batch: (task or (task, item), result) or (task, status, result or error)."""
        child_ends = []
        for key, *values in ends:
            task, item = key if isinstance(key, tuple) else (key, None)
            status, value = values if len(values) == 2 else (COMPLETED, values[0] if values else None)
            result, error = (value, None) if status == COMPLETED else (None, value)
            self.ended.setdefault((task, item), (status, result, error))
            child_ends.append(ChildEnded(self.plan.index(task), self.ended[task, item][0], item))
        return self.advance(child_ends)

    def advance(self, ends: Iterable[ChildEnded]) -> MemoryWorkflow:
        self._with(lambda facts: advance(self.plan, self.state, ends, facts, self.system, budget=self.budget))
        return self._go_on()

    def pause(self) -> bool:
        return pause(self.state)

    def resume(self) -> MemoryWorkflow:
        self._with(lambda facts: resume(self.plan, self.state, facts, self.system, budget=self.budget))
        return self._go_on()

    def command(self, kind: str, task: str | None = None, value: Any = None) -> list[Start]:
        """Send a command, as a person does. Return the starts that follow."""
        command = Command(1, kind, task, value)
        self._with(lambda facts: apply_command(self.plan, self.state, facts, self.system, command))
        started = self.decision.starts
        self._go_on()
        return started

    def stop(self, status: str, error: Any = None) -> MemoryWorkflow:
        self._with(lambda facts: stop(self.plan, self.state, facts, self.system, status, error))
        return self._go_on()

    def skip(self, task: str) -> MemoryWorkflow:
        self._with(lambda facts: skip(self.plan, self.state, facts, self.system, self.plan.index(task)))
        return self._go_on()

    def set_result(self, task: str, result: Any) -> MemoryWorkflow:
        index = self.plan.index(task)
        self._with(lambda facts: set_result(self.plan, self.state, facts, self.system, index, result))
        return self._go_on()

    def take_turn(self, inbox: Inbox) -> Turn:
        facts, state = Facts(), getattr(self, "state", None)
        turn = self._run(
            take_turn(self.plan, state, facts, self.system, inbox, kept_tasks=self.kept_tasks), facts
        )
        for decision in turn.decisions:
            self._write(decision)
        return turn

    # -- the visible state ---------------------------------------------------------------------------------------------

    @property
    def system(self) -> dict[str, Any]:
        return {"id": "run-1", "workflow": self.plan.workflow.ref, "depth": 0}

    @property
    def open(self) -> list[Key]:
        return [key for key in self.started if key not in self.ended and self._is_open(key)]

    def _is_open(self, key: Key) -> bool:
        task_state = self.tasks[self.plan.index(key[0])]
        if task_state.status != OPEN:
            return False
        return task_state.fan is None or not task_state.fan.settled[key[1] >> 3] & 1 << (key[1] & 7)  # type: ignore[operator]

    @property
    def statuses(self) -> dict[str, str]:
        return {self.plan.graph[task].name: task_state.status for task, task_state in self.tasks.items()}

    def input(self, task: str, item: int | None = None) -> dict[str, Any]:
        return self.started[task, item].body

    # -- the tables ----------------------------------------------------------------------------------------------------

    def _with(self, steps: Callable[[Facts], Asking[Decision]]) -> None:
        facts = Facts()
        self._decide(steps(facts), facts)

    def _decide(self, steps: Asking[Decision], facts: Facts) -> None:
        self._write(self._run(steps, facts))

    def _run(self, steps: Asking[T], facts: Facts) -> T:
        """Load the requested facts until the generator returns, and return its value."""
        try:
            while True:
                needed = next(steps)
                assert needed, "it asked for nothing"
                self.rounds.append(needed)
                self._answer(needed, facts)
        except StopIteration as end:
            result: T = end.value
            return result

    def _write(self, decision: Decision) -> None:
        self.decisions += 1
        self.state = load_workflow_state(dump_workflow_state(decision.state))
        self.tasks.update(
            {task: load_task_state(dump_task_state(state)) for task, state in decision.tasks.items()}
        )
        self.variables += [(writer, name, as_stored(value)) for writer, name, value in decision.published]
        self.items.update({task: as_stored(items) for task, items in decision.store_items.items()})
        for start in decision.starts:
            assert (start.name, start.item) not in self.started, "started twice"
            self.started[start.name, start.item] = copy.deepcopy(start)
        if decision.final is not None:
            assert self.final is None, "ended twice"
            self.final = decision.final
        self.decision = decision

    def _go_on(self) -> MemoryWorkflow:
        turns = 0
        while self.decision.more_due:
            turns += 1
            assert turns < 1_000
            self._with(
                lambda facts: advance(self.plan, self.state, [], facts, self.system, budget=self.budget)
            )
        return self

    def _answer(self, needed: Needed, facts: Facts) -> None:
        for task in needed.tasks:
            facts.tasks[task] = copy.deepcopy(self.tasks.get(task))
        for task in needed.results:
            facts.results[task] = self.result_of(task, facts.tasks.get(task) or self.tasks.get(task))
        for task in needed.item_errors:
            name = self.plan.graph[task].name
            failed = [
                (status == CANCELLED, item, error)
                for (other, item), (status, _, error) in self.ended.items()
                if other == name and item is not None and status not in (COMPLETED, SKIPPED)
            ]
            failed.sort(key=lambda entry: entry[0])
            facts.item_errors[task] = {
                item: TaskResult(error=error, attempt=self.attempts.get((name, item)))
                for _, item, error in failed[:SHOWN_ITEMS]
            }
        for reader, request in needed.variables.items():
            latest: dict[str, tuple[int, Any]] = {}
            for writer, name, value in self.variables:
                sees = writer == WORKFLOW or (
                    writer < request.below if request.writers is None else writer in request.writers
                )
                if (
                    sees
                    and (request.names is None or name in request.names)
                    and writer >= latest.get(name, (-9,))[0]
                ):
                    latest[name] = (writer, copy.deepcopy(value))
            facts.variables[reader] = (request.names, latest)
        for task, (first, end) in needed.items.items():
            stored = facts.items.setdefault(task, {})
            stored.update({item: copy.deepcopy(self.items[task][item]) for item in range(first, end)})
        if needed.parameters:
            facts.parameters = copy.deepcopy(self.plan.parameters(self.parameters))
        if needed.failures:
            failing = {t: r for t, r in sorted(self.tasks.items()) if r.final and not r.handled}
            facts.failures = copy.deepcopy(
                {t: r for t, r in failing.items() if r.status not in ("completed", "skipped")}
            )

    def result_of(self, task: int, task_state: TaskState | None) -> TaskResult:
        """Return the result of a task from its executions. For a fan-out it has the results of all items in order, if
        they are within the bound."""
        name = self.plan.graph[task].name
        if task_state is not None and task_state.fan is not None:
            results = [self._one(name, item).result for item in range(task_state.fan.total)]
            size, bound = len(orjson.dumps(results)), RESULTS_CAPS * self.plan.payload_cap
            return TaskResult(results if size <= bound else Oversized(size, bound))
        return self._one(name, None)

    def _one(self, name: str, item: int | None) -> TaskResult:
        if (name, item) not in self.ended and self.previous_run is not None:
            return self.previous_run._one(name, item)
        _, result, error = copy.deepcopy(self.ended.get((name, item), ("", None, None)))
        return TaskResult(result, error, self.attempts.get((name, item)))
