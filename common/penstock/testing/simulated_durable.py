"""The execution of a durable function in a simulation. Its sleeps are timers of the simulation, and its children are
executions there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any
from uuid import UUID

import orjson

from penstock.client.sent_signals import sent_signal
from penstock.engine.durable.attempt_run import Attempt
from penstock.engine.durable.item_workflow import item_workflow
from penstock.engine.durable.records import MAP, RUN, SIGNAL, STARTED, WAIT_FOR, Child, ChildStart, Key
from penstock.errors import Conflict, NotFound
from penstock.language.moves import CANCELLED, COMPLETED, REQUESTED, WAITING
from penstock.language.policies.after_attempt import ending_of
from penstock.language.terms.ids import new_id
from penstock.language.terms.options import did_you_mean
from penstock.language.terms.system_triggers import schemas as system_schemas
from penstock.run import result_encoding
from penstock.run.calls import call
from penstock.run.capture import echoed
from penstock.run.outcomes import Outcome
from penstock.run.outgoing import LoopOutgoing, Request
from penstock.run.run import Run
from penstock.run.sent_signal import SentSignal
from penstock.run.stored_json import stored_value
from penstock.testing.durable_memory import Memory, run_parameters
from penstock.testing.fakes import Fake
from penstock.testing.own_loop import run_in_own_loop
from penstock.testing.simulated_action import ActionExecution
from penstock.testing.steps import Step
from penstock.testing.world import Call, Execution, World


class SimulatedMemory(Memory):
    """The records of a run, with the clock and the children of the simulation."""

    def __init__(self, execution: DurableExecution) -> None:
        self.execution = execution
        super().__init__(execution.world.clock.now, lambda _, write: write())

    @property
    def now(self) -> datetime:
        return self.execution.world.clock.now

    @now.setter
    def now(self, instant: datetime) -> None:
        """Ignore the new time: only the simulation moves its clock."""

    def end_as(self, status: str) -> None:
        """Tell the function that it has to end, with this status."""
        self.ends_as = status

    def checked(self, start: ChildStart) -> ChildStart:
        """Return a start with checked parameters. Raises NotFound for what the simulation does not know."""
        kind = start.record.kind
        if kind in (RUN, MAP):
            target = self.execution.target_of(start)
            params = run_parameters(self.execution.world.known.schema(target), start.parameters)
            return replace(start, target=target, parameters=params)
        return super().checked(start)

    def payload_schema(self, trigger: str) -> Mapping[str, Any] | None:
        schemas = dict(system_schemas())
        return (
            schemas[trigger]
            if trigger in schemas
            else self.execution.world.known.trigger(trigger).payload_schema
        )

    def _store(self, start: ChildStart) -> None:
        self._put(start.record)
        self.children[start.record.key] = Child(new_id(), STARTED, False)
        self.execution.start_child(start)

    def cancel(self, ids: Sequence[UUID]) -> None:
        keys = [key for key, child in self.children.items() if child.id in ids and not child.ended]
        super().cancel(ids)
        for key in keys:
            self.execution.cancel_child(key)


class DurableExecution(ActionExecution):
    """The execution of a durable function. Its attempts are those of any action, and a suspended attempt resumes when
    something arrives."""

    def __init__(self, world: World, call: Call) -> None:
        super().__init__(world, call)
        self.memory = SimulatedMemory(self)
        self._open: dict[Key, Execution] = {}
        """The execution of each child."""
        self._stopped: tuple[str, str] | None = None
        self._awaited: dict[str, Any] = {}

    def _call(self, fake: Fake | None, step: Step) -> Outcome:
        if fake is not None and fake.function is not None:
            return super()._call(fake, step)
        assert self.action is not None
        assert self.action.function is not None
        attempt = Attempt(
            self.memory.begin(),
            self.action.function,
            limit=result_encoding.RESULT_LIMIT,
            warm=0.0,
            grace=10.0,
            retried=lambda outcome: self._is_retried(outcome),
            clock=lambda: self.memory.now,
            jitter=lambda: 0.0,
        )
        run = self._run(None, step)
        run.durable = attempt.run
        try:
            with echoed():
                return run_in_own_loop(self._called(run))
        finally:
            run.durable = None  # the tasks of the attempt hold the run, which must not hold the attempt
            run.log.close()
            self._close_requests()

    async def _called(self, run: Run) -> Outcome:
        """Run the attempt. Its steps find their run with `current()`. Its body gets the refusals that it gets on a worker."""
        assert self._requests is not None
        carry_out = self._requests.carry_out

        async def answer(request: Request) -> Any:
            return carry_out(request)

        run.outgoing = LoopOutgoing(answer)
        return await call(run)

    def _is_retried(self, outcome: Outcome) -> bool:
        return outcome.error is not None and ending_of(outcome, self.retry, self.failures).status == REQUESTED

    def _report(self, outcome: Outcome) -> None:
        if self.ended:
            return
        if outcome.kind == "suspended":
            self._suspend(outcome.awaited or {})
        elif self._stopped is not None and outcome.kind != "completed":
            status, reason = self._stopped
            super().stop(status, reason)
        else:
            if outcome.error is not None and self._is_retried(outcome):
                self.memory.fail(outcome.error)
            super()._report(outcome)

    def _suspend(self, awaited: dict[str, Any]) -> None:
        self.status, self._awaited = WAITING, awaited
        if awaited.get("until") is not None:
            self.later(self._until(datetime.fromisoformat(awaited["until"])), self._wake)
        ended_ids = {str(child.id) for child in self.memory.children.values() if child.ended}
        if ended_ids.intersection(awaited.get("children", ())):
            self._wake()

    def _wake(self) -> None:
        if self.status == WAITING:
            self.world.soon(self._resume)

    def _resume(self) -> None:
        if self.status == WAITING:
            self.status = "running"
            self._report(self._call(None, self.steps[-1]))

    def stop(self, status: str, reason: str) -> None:
        """Stop the execution. A function that waits resumes once more, to clean up and to compensate."""
        if self._stopped is not None:
            return
        if self.status != WAITING:
            super().stop(status, reason)
            return
        self._stopped = status, reason
        self.memory.end_as(status)
        self._wake()

    def cancel_by_hand(self, reason: str) -> None:
        """Cancel the execution. A function that cleans up already ends at once."""
        if self._stopped is not None:
            super().stop(CANCELLED, reason)
        else:
            self.cancel(reason)

    def check_signal(self) -> None:
        """Raise Conflict if the function has ended."""
        if self.ended:
            raise Conflict(
                f"{self.call.ref} has ended: it is {self.status}",
                hint="Send the signal before the function ends.",
            )

    def signal(self, name: str, value: Any) -> SentSignal:
        """Send a signal to the function. Raises Conflict if it has ended."""
        self.check_signal()
        awaits = None
        if self.status == WAITING:
            awaits = [name.removeprefix(f"{SIGNAL}/") for name, _ in self._awaited.get("signals", ())]
        self.memory.signal(name, value, self.memory.now)
        self._wake()
        return sent_signal(name, awaits, self.id)

    # -- children ----------------------------------------------------------------------------------------------------

    def target_of(self, start: ChildStart) -> str:
        """Return the ref that a child runs. The items of a map are run by a workflow, as on a worker. Raises NotFound
        if the simulation does not know it."""
        ref, definitions = start.target, self.world.known
        path = f"{self.call.path}.{start.record.key.name.rpartition('/')[2]}"
        target = definitions.target(ref, is_faked=not self.world.fakes.targets.isdisjoint((ref, path)))
        if target is None:
            raise NotFound(
                f"{self.call.ref} runs {ref}, which the simulation does not know",
                hint=did_you_mean(ref, [*definitions.actions, *definitions.workflows]),
            )
        if start.record.kind != MAP:
            return ref
        workflow = item_workflow(ref, target.kind, secret=False)
        definitions.workflows[workflow.ref] = workflow
        return workflow.ref

    def start_child(self, start: ChildStart) -> None:
        """Create the execution that a call of the function starts. The simulation begins it when the function waits."""
        key = start.record.key
        name = key.name.rpartition("/")[2]
        parameters = dict(start.parameters)
        if start.record.kind == WAIT_FOR:
            parameters["bound"] = parameters.get("names")
        call = Call(
            start.target,
            stored_value(result_encoding.encode(parameters)),
            f"{self.call.path}.{name}",
            self,
            name,
        )
        child = self._open[key] = self.world.execution_of(self.world, call)
        self.world.soon(child.begin)

    def child_ended(self, child: Execution) -> None:
        key = next((key for key, other in self._open.items() if child is other), None)
        if key is None or self.memory.children[key].ended:
            return
        stored = self.memory.children[key]
        stored.status, stored.ended, stored.at = child.status, True, self.memory.now
        if child.status == COMPLETED:
            stored.result = orjson.dumps(child.result).decode()
        else:
            stored.error = orjson.dumps(child.error).decode()
        self._wake()

    def cancel_child(self, key: Key) -> None:
        """End the execution of a child that the function no longer needs."""
        if not self._open[key].ended:
            self._open[key].cancel("the function does not wait for it any more")
