"""The execution of a workflow in a simulation. The engine decides, and this module carries out the decisions."""

from __future__ import annotations

from typing import Any

from penstock.engine import ChildEnded, Decision, Start
from penstock.engine.children import child_parameters
from penstock.errors import NotFound
from penstock.language.definitions.qualified_name import GENERATED
from penstock.language.moves import CANCELLED, FAILED, RUNNING
from penstock.language.terms.options import did_you_mean
from penstock.language.terms.waits import WAITS
from penstock.language.workflows.target import target_ref
from penstock.language.workflows.task import policies_of
from penstock.run.stored_json import stored_value
from penstock.testing.known_definitions import plan_of
from penstock.testing.memory_workflow import MemoryWorkflow
from penstock.testing.simulated_action import ActionExecution
from penstock.testing.simulated_durable import DurableExecution
from penstock.testing.simulated_wait import WaitExecution
from penstock.testing.world import Call, Execution, World


class WorkflowExecution(Execution):
    """The execution of a workflow. Its children are executions of the same world. `run` is its state as the engine
    keeps it."""

    def __init__(self, world: World, call: Call) -> None:
        super().__init__(world, call)
        self.workflow = world.known.workflows[call.ref]
        self.run = _Run(self)
        self.children: dict[tuple[str, int | None], Execution] = {}
        self.decisions: list[Decision] = []

    def begin(self) -> None:
        self.status = RUNNING
        self.limit(self.call.options.get("timeouts", {}).get("total", self.workflow.timeout))
        self.run.begin()
        self._act()

    def child_ended(self, child: Execution) -> None:
        if self.ended:
            return
        call = child.call
        assert call.task is not None
        self.run.ended[call.task, call.item] = (child.status, child.result, child.error)
        self.run.attempts[call.task, call.item] = child.attempt
        self.run.advance([ChildEnded(self.run.plan.index(call.task), child.status, call.item)])
        self._act()

    def stop(self, status: str, reason: str) -> None:
        state = self.run.state
        if state.phase == "running" or (state.phase == "stopping" and not state.stops):
            self._stop(status, reason)

    def cancel_by_hand(self, reason: str) -> None:
        self._stop(CANCELLED, reason)

    def _stop(self, status: str, reason: str) -> None:
        self.run.stop(status, {"type": status, "message": reason})
        self._act()

    def command(self, kind: str, task: str | None = None, value: Any = None) -> None:
        """Send a command as an operator. Raises NotFound if the workflow has no such task, and Conflict if it does not
        take the command now. Raises InvalidInput if the result does not answer the question of the task."""
        if kind == "pause":
            self.run.pause()
        else:
            if kind == "set_result" and task is not None:
                self._check_answer(task, value)
            self.run.command(kind, task, value)
        self._act()

    def _check_answer(self, task: str, value: Any) -> None:
        """Check a result that is to answer the question of a task. Raises InvalidInput if the result does not fit the
        schema of the question."""
        for question in self.world.questions:
            if question.execution is self.children.get((task, None)):
                question.check(value)

    def _act(self) -> None:
        """Carry out the decisions. An execution that a decision both starts and cancels has to exist before it can be
        cancelled."""
        while self.decisions:
            decision = self.decisions.pop(0)
            for start in decision.starts:
                self._start(start)
            for child in self._to_cancel(decision):
                if decision.by_hand:
                    child.cancel_by_hand("the end of its workflow was requested again")
                else:
                    child.cancel("its workflow does not need it any more")
            if decision.final is not None:
                self.end(decision.final.status, decision.final.output, decision.final.error)

    def _to_cancel(self, decision: Decision) -> list[Execution]:
        """Return the executions that a decision cancels. A decision that cancels all does not mean the exit task that
        it starts."""
        new = {(start.name, start.item) for start in decision.starts if decision.cancel_all}
        return [
            child
            for (task, item), child in self.children.items()
            if (decision.cancel_all or self.run.plan.index(task) in decision.cancel)
            and not child.ended
            and (task, item) not in new
        ]

    def _start(self, start: Start) -> None:
        definitions, ref = self.world.known, target_ref(start.step)
        if self.workflow.ref.endswith(GENERATED):  # the items of ctx.map have its path
            path = self.call.path
        else:
            path = f"{self.call.path}.{start.name}" if self.call.parent else start.name
        is_faked = not self.world.fakes.targets.isdisjoint((ref, path))
        target = definitions.target(ref, is_faked=is_faked)
        if target is None:
            raise NotFound(
                f"task `{path}` of {self.workflow.ref} runs {ref}, which the simulation does not know",
                hint=f"{did_you_mean(ref, [*definitions.actions, *definitions.workflows])} Load its module, or say "
                f"simulation.fake({ref!r}, returns=...).",
            )
        parameters, error = child_parameters(
            start, target, definitions.schemas(ref), self.depth + 2, self.world.max_workflow_depth
        )
        call = Call(
            ref,
            stored_value(parameters.encode()),
            path,
            self,
            start.name,
            start.item,
            policies_of(start.step),
        )
        child = execution_of(self.world, call)
        self.children[start.name, start.item] = child
        if error is not None:
            self.world.soon(lambda: child.end(FAILED, None, error))
        elif start.delay:
            child.later(start.delay, child.begin)
        else:
            self.world.soon(lambda: None if child.ended else child.begin())

    @property
    def task_statuses(self) -> dict[str, str]:
        unmet = {task.name: "pending" for task in self.workflow.tasks}
        return {**unmet, **self.run.statuses}


class _Run(MemoryWorkflow):
    """The state of a workflow, which passes its decisions on to the execution."""

    def __init__(self, execution: WorkflowExecution) -> None:
        super().__init__(execution.workflow, execution.call.parameters, plan=plan_of(execution.workflow))
        self.execution = execution

    @property
    def system(self) -> dict[str, Any]:
        execution = self.execution
        return {
            "id": str(execution.id),
            "workflow": execution.workflow.ref,
            "depth": execution.depth,
            "tenant": "public",
            "created_at": execution.world.clock.now.isoformat(),
        }

    def _write(self, decision: Decision) -> None:
        super()._write(decision)
        self.execution.decisions.append(decision)


def execution_of(world: World, call: Call) -> Execution:
    """Return a new execution for a call."""
    if call.ref in WAITS:
        return WaitExecution(world, call)
    if call.ref in world.known.workflows:
        return WorkflowExecution(world, call)
    action = world.known.actions.get(call.ref)
    return (DurableExecution if action is not None and action.durable else ActionExecution)(world, call)
