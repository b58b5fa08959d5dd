"""The execution of a durable function in a simulation. Its sleeps are timers of the simulation, and its children are
executions there."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from datetime import datetime
from typing import Any
from uuid import UUID

import orjson

from penstock.engine.durable.drive import Attempt
from penstock.engine.durable.journal import signal_key
from penstock.engine.durable.records import MAP, RUN, SIGNAL, STARTED, Child, ChildStart, Key
from penstock.errors import NotFound
from penstock.language.moves import CANCELLED, COMPLETED, FAILED, REQUESTED, WAITING
from penstock.language.policies.after_attempt import ending_of
from penstock.language.terms.ids import new_id
from penstock.language.terms.options import did_you_mean
from penstock.language.terms.system_triggers import schemas as system_schemas
from penstock.run import results
from penstock.run.calls import call
from penstock.run.capture import echoed
from penstock.run.outcomes import Outcome
from penstock.run.outgoing import LoopOutgoing, Request
from penstock.run.run import Run
from penstock.run.stored_json import stored_value
from penstock.testing.durable_memory import Memory
from penstock.testing.fakes import Fake
from penstock.testing.simulated_action import ActionExecution
from penstock.testing.simulated_wait import WaitExecution
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

    def _store(self, start: ChildStart) -> None:
        self._put(start.record)
        self.children[start.record.key] = Child(new_id(), STARTED, False)
        self.execution.start_child(start)

    def cancel(self, ids: Sequence[UUID]) -> None:
        keys = [key for key, child in self.children.items() if child.id in ids and not child.ended]
        super().cancel(ids)
        for key in keys:
            self.execution.cancel_children(key)


class DurableExecution(ActionExecution):
    """The execution of a durable function. Its attempts are those of any action, and a suspended attempt resumes when
    something arrives."""

    def __init__(self, world: World, call: Call) -> None:
        super().__init__(world, call)
        self.memory = SimulatedMemory(self)
        self._open: dict[Key, list[Execution]] = {}
        """The executions of each child: one, or those of the items of a map."""
        self._queued: dict[Key, list[Execution]] = {}
        self._stopped: tuple[str, str] | None = None

    def _call(self, fake: Fake | None, step: Step) -> Outcome:
        if fake is not None and fake.function is not None:
            return super()._call(fake, step)
        assert self.action is not None
        assert self.action.function is not None
        attempt = Attempt(
            self.memory.begin(),
            self.action.function,
            limit=results.RESULT_LIMIT,
            warm=0.0,
            grace=10.0,
            retried=lambda outcome: self._is_retried(outcome),
        )
        run = self._run(None, step)
        run.durable = attempt.run
        try:
            with echoed():
                return _wait_for(self._called(run))
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
        self.status = WAITING
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

    def signal(self, name: str, value: Any) -> None:
        """Send a signal to the function."""
        ordinal = 1 + sum(key.name == f"{SIGNAL}/{name}" for _, key, _ in self.memory.signals)
        self.memory.signals.append((self.memory.now, signal_key(name, ordinal), value))
        self._wake()

    # -- children ----------------------------------------------------------------------------------------------------

    def start_child(self, start: ChildStart) -> None:
        """Create the executions that a call of the function starts. The simulation begins them when the function
        waits."""
        key = start.record.key
        name = key.name.rpartition("/")[2]
        if start.record.kind == MAP:
            items = [
                self._execution(start.target, name, item, at)
                for at, item in enumerate(start.parameters["items"])
            ]
        elif start.record.kind == RUN:
            items = [self._execution(start.target, name, start.parameters, None)]
        else:
            trigger = start.parameters.get("trigger")
            if trigger is not None and trigger not in dict(system_schemas()):
                self.world.known.trigger(trigger)
            params = {**start.parameters, "bound": start.parameters.get("names")}
            items = [WaitExecution(self.world, self._call_of(start.target, name, params, None))]
        together = start.parameters.get("concurrency") if start.record.kind == MAP else None
        self._open[key], self._queued[key] = items, items[together:] if together else []
        for item in items[: together or None]:
            self.world.soon(item.begin)
        if not items:
            self._settle(key)

    def _execution(self, ref: str, name: str, parameters: Any, item: int | None) -> Execution:
        definitions, path = self.world.known, f"{self.call.path}.{name}"
        if definitions.target(ref, is_faked=not self.world.fakes.targets.isdisjoint((ref, path))) is None:
            raise NotFound(
                f"{self.call.ref} runs {ref}, which the simulation does not know",
                hint=did_you_mean(ref, [*definitions.actions, *definitions.workflows]),
            )
        return self.world.execution_of(self.world, self._call_of(ref, name, parameters, item))

    def _call_of(self, ref: str, name: str, parameters: Any, item: int | None) -> Call:
        return Call(
            ref, stored_value(results.encode(parameters)), f"{self.call.path}.{name}", self, name, item
        )

    def child_ended(self, child: Execution) -> None:
        key = next((key for key, items in self._open.items() if child in items), None)
        if key is None or self.memory.children[key].ended:
            return
        if self._queued[key]:
            self.world.soon(self._queued[key].pop(0).begin)
        if all(item.ended for item in self._open[key]):
            self._settle(key)
            self._wake()

    def _settle(self, key: Key) -> None:
        """End a child after all of its executions have ended."""
        items, child = self._open[key], self.memory.children[key]
        failed = next((item for item in items if item.status != COMPLETED), None)
        if failed is None:
            kind = self.memory.records[key].kind
            value = [item.result for item in items] if kind == MAP else items[0].result
            child.status, child.result = COMPLETED, orjson.dumps(value).decode()
        else:
            child.status = failed.status if self.memory.records[key].kind != MAP else FAILED
            child.error = orjson.dumps(failed.error).decode()
        child.ended, child.at = True, self.memory.now

    def cancel_children(self, key: Key) -> None:
        """End the executions of a child that the function no longer needs."""
        self._queued[key] = []
        for item in self._open[key]:
            if not item.ended:
                item.cancel("the function does not wait for it any more")


def _wait_for(main: Coroutine[Any, Any, Outcome]) -> Outcome:
    """Run a coroutine in its own event loop, in another thread if this thread has one."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(main)
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(copy_context().run, asyncio.run, main).result()
