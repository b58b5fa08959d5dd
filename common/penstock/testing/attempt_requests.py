"""The requests of an attempt in a simulation (`current().publish`, `start`, `signal`, `run`, `callback`): checked, and carried
out at once or with the end of the attempt."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import UUID

from penstock.errors import ClaimLost, Conflict, InvalidInput, OutsideRun
from penstock.language.definitions.action import Action
from penstock.language.moves import COMPLETED
from penstock.language.terms.durations import seconds
from penstock.run.outgoing import AwaitResult, Callback, Effect, Publish, Request, Signal, Start
from penstock.run.root_cause import child_failed, child_timed_out
from penstock.testing.request_checks import MAX_REQUESTS, check_request, no_transaction
from penstock.testing.simulated_effects import Effects
from penstock.testing.world import Execution


class AttemptRequests:
    """The requests of one attempt, as an Outgoing. Code of a plain action sends them from its own thread and loop."""

    def __init__(
        self, effects: Effects, execution: Execution, attempt: int, action: Action[..., Any] | None
    ) -> None:
        self._effects = effects
        self._execution = execution
        self._attempt = attempt
        self._action = action
        self._kept: list[Effect] = []
        self._is_over = False

    def close(self) -> None:
        """Refuse further requests: the attempt is over."""
        self._is_over = True

    async def send(self, request: Request) -> Any:
        return self.carry_out(request)

    def send_blocking(self, request: Request, is_cancelled: Callable[[], bool]) -> Any:
        refuse_blocking(self._action)
        return self.carry_out(request)

    def carry_out(self, request: Request) -> Any:
        """Carry out a request, and return its answer. Raises the errors that a worker raises."""
        execution = self._execution
        if self._is_over or execution.ended:
            raise ClaimLost(
                f"attempt {self._attempt} of {execution.id} is over",
                hint="Before the action returns, wait for its threads and tasks that publish, start or signal.",
            )
        match request:
            case AwaitResult(id, _, timeout):
                return self._result(id, timeout)
            case Callback():
                return self._effects.callback_address(execution, self._attempt)
            case Publish() | Start() | Signal() if request.transactional:
                self._keep(request)
                return None
            case Publish() | Start() | Signal():
                check_request(request)
                return self._effects.carry_out(execution, request)

    def _keep(self, request: Effect) -> None:
        """Keep a request for the end of the attempt. It is checked now, so that the code gets the error."""
        if self._action is not None and self._action.durable:
            raise no_transaction()
        if len(self._kept) >= MAX_REQUESTS:
            raise InvalidInput(
                f"an attempt keeps at most {MAX_REQUESTS} transactional requests",
                hint="Start a workflow with one task for each item instead.",
            )
        check_request(request)
        self._effects.check(request)
        self._kept.append(request)

    def store(self) -> None:
        """Carry out the transactional requests, with the end of the attempt. If one is refused, carry out none. Raises
        Conflict if a key belongs to another request, or a signal has no receiver."""
        requests, self._kept = self._kept, []
        for request in requests:
            self._effects.check_end(request)
        for request in requests:
            self._effects.carry_out(self._execution, request)

    def _result(self, id: UUID, timeout: float | None) -> Any:
        """Run all that the simulation has to do until an execution has ended, and return its result."""
        world = self._execution.world
        started = self._effects.execution(id)
        until = None if timeout is None else world.clock.now + timedelta(seconds=seconds(timeout))
        world.move_on(lambda: started.ended, until)
        if started.status == COMPLETED:
            return started.result
        if started.ended:
            raise child_failed(id, started.call.ref, started.status, started.error)
        if timeout is not None and until is not None:
            world.clock.now = max(world.clock.now, until)
            raise child_timed_out(id, started.call.ref, seconds(timeout), started.status)
        raise Conflict(
            f"{started.call.ref} has not ended, and nothing more is due that could end it",
            hint="Prepare what it waits for before the run, for example with simulation.answer(...).",
        )


def refuse_blocking(action: Action[..., Any] | None) -> None:
    """Raise OutsideRun for a blocking call in the thread of a running event loop, unless the action is run in a thread of
    its own."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    if action is None or action.executor in (None, "async"):
        raise OutsideRun(
            "a blocking call would stop the worker's event loop",
            hint="In an `async def` action write `await current().start(...)`, without `.sync`.",
        )
