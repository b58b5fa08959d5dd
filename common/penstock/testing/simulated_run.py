"""A test's view of an execution that it started in a simulation."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from penstock.client.command_kinds import check_command
from penstock.errors import Conflict, ExecutionFailed, NotFound
from penstock.language.moves import COMPLETED
from penstock.language.schemas import check_value
from penstock.language.terms.options import did_you_mean
from penstock.run.root_cause import headline
from penstock.run.stored_json import stored_value
from penstock.testing.simulated_workflow import WorkflowExecution
from penstock.testing.steps import Step
from penstock.testing.world import Execution, PublishedEvent


class SimulatedRun:
    """An execution at the root of a tree, with all executions that it started."""

    def __init__(self, execution: Execution) -> None:
        self._world = execution.world
        self._execution = execution

    @property
    def id(self) -> UUID:
        return self._execution.id

    @property
    def ref(self) -> str:
        """Return the ref of the action or workflow."""
        return self._execution.call.ref

    @property
    def parameters(self) -> dict[str, Any]:
        return self._execution.call.parameters

    @property
    def status(self) -> str:
        """Return completed, failed, timeout, cancelled or abandoned. Before its end, return requested, running or
        waiting."""
        return self._execution.status

    @property
    def error(self) -> dict[str, Any] | None:
        """Return the error (`type`, `message` and possibly more), or None if it completed or has not ended."""
        return self._execution.error

    @property
    def result(self) -> Any:
        """Return the result. Raises ExecutionFailed for any end but completed, and Conflict before the end."""
        run = self._execution
        if not run.ended:
            raise Conflict(
                f"{run.call.ref} has not ended{self._reason()}",
                hint="Answer it (run.answer), publish its event, complete it (simulation.complete), or move the time on "
                "(run.finish()).",
            )
        if run.status != COMPLETED:
            failure = headline(run.error)
            text = f": {failure}" if failure else ""
            raise ExecutionFailed(f"{run.call.ref} ended as {run.status}{text}", status=run.status)
        return run.result

    def _reason(self) -> str:
        """Return what keeps the execution from its end: an answer, or the retry of a failed attempt, with its failure."""
        if self.waits_for:
            return f": {', '.join(f'`{path}`' for path in self.waits_for)} waits"
        for step in reversed(self._execution.steps):
            if step.status == "running":
                return ""
            if step.error is not None:
                return f": attempt {step.attempt} of `{step.path}` {step.status} ({headline(step.error)}), and may be tried again"
        return ""

    @property
    def published(self) -> list[PublishedEvent]:
        """Return the events that its code and the code of its tasks and children published, in order."""
        return list(self._execution.published)

    @property
    def started(self) -> list[SimulatedRun]:
        """Return the runs that its code started (`current().start` and `run`), with those of all below it, in order."""
        return [SimulatedRun(execution) for execution in self._execution.started]

    @property
    def steps(self) -> list[Step]:
        """Return every attempt and every wait, in the order in which they began."""
        return list(self._execution.steps)

    @property
    def ran(self) -> list[str]:
        """Return the paths of the steps, in order."""
        return [step.path for step in self._execution.steps]

    @property
    def tasks(self) -> dict[str, str]:
        """Return the status of each task of a workflow (`pending` if nothing has arrived at it)."""
        run = self._execution
        return run.task_statuses if isinstance(run, WorkflowExecution) else {}

    @property
    def waits_for(self) -> list[str]:
        """Return the paths of the tasks that wait for an answer, an event or work outside."""
        return [step.path for step in self._execution.steps if step.status == "waiting"]

    def attempts(self, path: str, item: int | None = None) -> list[Step]:
        """Return the steps of a task, or of one of its items. Raises NotFound if there are none."""
        steps = [step for step in self._execution.steps if (step.path, step.item) == (path, item)]
        if not steps:
            items = {step.item for step in self._execution.steps if step.path == path}
            hint = (
                f"It has items: say item=0 to {len(items) - 1}."
                if items
                else did_you_mean(path, set(self.ran))
            )
            raise NotFound(
                f"`{path}` did not run" if not items else f"`{path}` ran, but not for this item",
                hint=hint,
            )
        return steps

    def input(self, path: str, item: int | None = None) -> dict[str, Any]:
        """Return the input of a task. Raises NotFound if it did not run."""
        return self.attempts(path, item)[-1].input

    def answer(self, path: str, value: Any, *, by: str | None = None) -> None:
        """Answer the inquiry of a task. Raises NotFound if it has none, and InvalidInput for an answer that its schema
        refuses."""
        questions = [q for q in self._world.questions if q.execution.root is self._execution]
        question = next((q for q in questions if q.execution.call.path == path), None)
        if question is None:
            hint = did_you_mean(path, [q.execution.call.path for q in questions])
            raise NotFound(f"`{path}` asks nothing", hint=hint)
        self._world.answer(question, value, by)
        self._world.settle()

    def signal(self, name: str, value: Any = None) -> None:
        """Send a signal to a durable function. Raises Conflict for anything else."""
        self._execution.signal(name, value)
        self._world.settle()

    def cancel(self, reason: str = "asked by the test") -> None:
        self._execution.cancel_by_hand(reason)
        self._world.settle()

    def command(self, kind: str, task: str | None = None, value: Any = None) -> None:
        """Send a workflow the command `pause`, `resume`, `skip` (a task) or `set_result` (of a task). Raises Conflict
        if the execution does not take the command now, NotFound if it has no such task, and InvalidInput for another
        command or result."""
        if not isinstance(self._execution, WorkflowExecution):
            raise Conflict(
                f"{self.ref} is not a workflow",
                hint="Name a workflow or a durable function: only those take commands.",
            )
        check_command(kind)
        self._execution.command(kind, task, stored_value(check_value(value, what="result")))
        self._world.settle()

    def finish(self) -> SimulatedRun:
        """Move the clock until the execution has ended, or nothing more is due."""
        self._world.move_on(lambda: self._execution.ended)
        return self

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SimulatedRun) and other._execution is self._execution

    def __hash__(self) -> int:
        return hash(self.id)

    def __repr__(self) -> str:
        return f"<run of {self.ref}: {self.status}, ran {', '.join(self.ran) or 'nothing'}>"
