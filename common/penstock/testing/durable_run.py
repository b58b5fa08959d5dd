"""A run of a durable function in a test. Its records are kept in memory, and its time moves on request."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import orjson

from penstock.engine.durable.attempt_run import Attempt
from penstock.engine.durable.journal import state_key
from penstock.engine.durable.records import Record
from penstock.errors import ClaimLost, ExecutionFailed, InvalidInput
from penstock.language.definitions.action import Action
from penstock.language.schemas.storable_json import check_value
from penstock.language.terms.durations import seconds
from penstock.language.terms.ids import new_id
from penstock.run.calls import call
from penstock.run.capture import echoed
from penstock.run.durations import Span
from penstock.run.outcomes import Outcome
from penstock.run.outgoing import LoopOutgoing, Request
from penstock.run.result_encoding import RESULT_LIMIT
from penstock.run.run import Run, TaskReadyEvent
from penstock.run.run_log import RunLog
from penstock.run.stored_json import as_stored, stored_value
from penstock.testing.durable_memory import Memory
from penstock.testing.durable_requests import DurableRequests, StartedExecution
from penstock.testing.fakes import FakeAction, returning
from penstock.testing.world import PublishedEvent

ID = UUID(int=1)
"""The id of the execution, in every attempt and every test."""
BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
MOST_ATTEMPTS = 10_000


@dataclass
class DurableRun:
    """A run of a durable function in a test. `await run(function, name=value, ...)` runs it to its end. Declare
    answers, events and signals before."""

    crash_at: int | None = None
    commits: int = field(default=0, init=False)
    """The number of commits of records."""
    attempts: int = field(default=0, init=False)
    crashed: str = field(default="", init=False)
    """The record before or after which the run was crashed."""
    log: list[str] = field(default_factory=list, init=False)
    """The lines that the function and its steps logged, in all attempts."""

    def __post_init__(self) -> None:
        self._memory = Memory(BEGIN, self._commit)
        self._memory.run_of = lambda ref, parameters: self._new_run(new_id(), ref, None, parameters)
        self._requests = DurableRequests(ID, self._memory)

    @property
    def published(self) -> list[PublishedEvent]:
        """Return the events that steps published (`current().publish`), in order. A crash undoes none."""
        return list(self._requests.published)

    @property
    def started(self) -> list[StartedExecution]:
        """Return the executions that steps started (`current().start` and `run`), in order. A crash undoes none."""
        return list(self._requests.started)

    @property
    def signalled(self) -> list[tuple[UUID | str, str, Any]]:
        """Return the signals that steps sent (`current().signal`), in order: the receiver's id or key, the name and the value.
        The run receives a signal to itself."""
        return [
            (request.execution_id or str(request.key), str(request.name), request.value)
            for request in self._requests.signalled
        ]

    def answer(self, value: Any, *, name: str = "ask", after: Span = 0) -> None:
        """Declare the answer to `ctx.ask(..., name=name)`, which comes once `after` has passed since the question.
        Several calls answer several inquiries."""
        self._memory.answers.setdefault(name, []).append((seconds(after), value))

    def event(self, payload: Any, *, name: str = "wait_for", after: Span = 0) -> None:
        """Declare an event for `ctx.wait_for(..., name=name)`, which comes once `after` has passed since the wait
        began."""
        self._memory.answers.setdefault(name, []).append((seconds(after), {"payload": payload}))

    def signal(self, name: str, value: Any = None, *, after: Span = 0) -> None:
        """Declare a signal, which is sent once `after` has passed since the run began."""
        self._memory.signal(name, value, BEGIN + timedelta(seconds=seconds(after)))

    def child(self, action: Action[..., Any] | str, function: Callable[..., Any]) -> None:
        """Declare the function that `ctx.run` and `ctx.map` call in place of this action. Actions of the function's
        own module need no declaration: they are called themselves."""
        self._memory.functions[action if isinstance(action, str) else action.ref] = function

    def cancel(self, *, after: Span = 0) -> None:
        """Cancel the run at its next wait, once `after` has passed since it began."""
        self._memory.cancelled_at = BEGIN + timedelta(seconds=seconds(after))

    def state(self, key: str) -> Any:
        """Return the last value of `ctx.set` for this key, or None."""
        record = self._memory.records.get(state_key(key))
        return None if record is None else orjson.loads(record.result or "null")

    @property
    def now(self) -> datetime:
        return self._memory.now

    @property
    def recorded(self) -> list[str]:
        """Return the names of the recorded steps, in the order in which they were first requested."""
        return [str(key) for key in self._memory.records]

    @property
    def told(self) -> list[str]:
        """Return the steps of which the function got the results, in that order. A child, a sleep or a signal is
        included only if something was recorded after its result."""
        numbered = [(record.told, str(key)) for key, record in self._memory.records.items() if record.told]
        return [name for _, name in sorted(numbered)]

    async def __call__(self, action: Action[..., Any], /, **parameters: Any) -> Any:
        """Run the durable function, with all attempts that it needs. Return its result, converted to JSON and back.
        Raises ExecutionFailed if it did not complete, and InvalidInput for anything but a durable function."""
        function = _durable_function(action)
        self._memory.modules.append(function.__globals__)
        parameters = stored_value(check_value(parameters, what="the parameters"))
        action.bind(parameters)
        for _ in range(MOST_ATTEMPTS):
            self.attempts += 1
            outcome = await self._attempt(action, function, parameters)
            if outcome is not None:
                return _result(action, outcome)
        raise AssertionError(f"{action.ref} has not ended after {MOST_ATTEMPTS} attempts")

    async def _attempt(
        self, action: Action[..., Any], function: Callable[..., Any], parameters: dict[str, Any]
    ) -> Outcome | None:
        """Run an attempt. Return the outcome of the run, or None if another attempt follows."""
        attempt = Attempt(
            self._memory.begin(),
            function,
            limit=RESULT_LIMIT,
            warm=0.0,
            grace=10.0,
            retried=lambda outcome: self._is_retried(action, outcome),
            clock=lambda: self._memory.now,
            jitter=lambda: 0.0,
        )
        run = self._run(action, parameters)
        run.durable = attempt.run
        try:
            with echoed():
                outcome = await call(run)
        except ClaimLost:
            return None
        finally:
            run.durable = None  # the tasks of the attempt hold the run, which must not hold the attempt
        if outcome.kind == "suspended":
            self._memory.move_on(outcome.awaited or {})
            return None
        if outcome.error is not None and self._is_retried(action, outcome):
            self._memory.fail(outcome.error)
            return None
        return outcome

    def _run(self, action: Action[..., Any], parameters: Mapping[str, Any]) -> Run:
        run = self._new_run(ID, action.ref, self._memory.attempt, parameters)
        run.action, run.event.max_attempts = action, action.policies.retry.max_attempts
        return run

    def _new_run(self, id: UUID, ref: str, attempt: int | None, parameters: Mapping[str, Any]) -> Run:
        """Return the run that a function finds with `current()`. `attempt` is None for the function of a child."""

        async def carry_out(request: Request) -> Any:
            return await self._requests.carry_out(attempt, request)

        event = TaskReadyEvent(
            execution_id=id,
            attempt=attempt or 1,
            max_attempts=1,
            namespace=f"public::{ref.replace('.', '::')}",
            action=ref,
            root=ID,
        )
        log = RunLog(lambda _, line: self.log.append(line))
        return Run(
            event, parameters, FakeAction(ref, returning(None), None), log, outgoing=LoopOutgoing(carry_out)
        )

    def _is_retried(self, action: Action[..., Any], outcome: Outcome) -> bool:
        error, policy = outcome.error, action.policies.retry
        if error is None or self._memory.failures + 1 >= policy.max_attempts:
            return False
        return error.is_retried(policy.allows)

    def _commit(self, records: list[Record], write: Callable[[], None]) -> None:
        """Commit a write of the run, and crash before or after it if that is due."""
        place, self.commits = self.commits, self.commits + 1
        description = ", ".join(f"{record.kind} {record.key}" for record in records)
        if self.crash_at == 2 * place:
            self._crash(f"before it recorded {description}")
        write()
        if self.crash_at == 2 * place + 1:
            self._crash(f"after it recorded {description}")

    def _crash(self, where: str) -> None:
        self.crash_at, self.crashed = None, where
        raise ClaimLost(f"crashed {where}")


def _durable_function(action: Any) -> Callable[..., Any]:
    """Return the function of a durable action. Raises InvalidInput for anything else."""
    if isinstance(action, Action) and action.durable and action.function is not None:
        return action.function
    ref = getattr(action, "ref", None)
    if isinstance(action, str):
        raise InvalidInput(
            f"a crash test was given {action!r}, which is text", hint="Give it the durable function itself."
        )
    kind = getattr(action, "kind", type(action).__name__)
    raise InvalidInput(
        f"{ref or repr(action)} is not a durable function ({kind})",
        hint="crash_everywhere crashes functions that take a DurableContext. Test an action or a workflow with the fixture "
        "`simulation`: simulation.run(...), and simulation.lose_worker(...) for a crash.",
    )


def _result(action: Action[..., Any], outcome: Outcome) -> Any:
    if outcome.error is None:
        return as_stored(outcome.result)
    raise ExecutionFailed(f"{action.ref} failed: {outcome.error.type}: {outcome.error.message}")
