"""A run of a durable function in a test. Its records are kept in memory, and its time moves on request."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson

from penstock.engine.durable.context import Span
from penstock.engine.durable.drive import Attempt
from penstock.engine.durable.journal import signal_key, state_key
from penstock.engine.durable.records import SIGNAL, Record
from penstock.errors import ClaimLost, ExecutionFailed
from penstock.language.definitions.action import Action
from penstock.language.terms.durations import seconds
from penstock.run.outcomes import Outcome
from penstock.run.results import RESULT_LIMIT
from penstock.testing.durable_memory import Memory

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

    def __post_init__(self) -> None:
        self._memory = Memory(BEGIN, self._commit)

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
        ordinal = 1 + sum(key.name == f"{SIGNAL}/{name}" for _, key, _ in self._memory.signals)
        due = BEGIN + timedelta(seconds=seconds(after))
        self._memory.signals.append((due, signal_key(name, ordinal), value))

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
        Raises ExecutionFailed."""
        function = action.function
        assert function is not None, "a durable action has a function"
        self._memory.modules.append(function.__globals__)
        arguments = action.bind(orjson.loads(orjson.dumps(parameters)))
        for _ in range(MOST_ATTEMPTS):
            self.attempts += 1
            outcome = await self._attempt(action, function, arguments)
            if outcome is not None:
                return _result(action, outcome)
        raise AssertionError(f"{action.ref} has not ended after {MOST_ATTEMPTS} attempts")

    async def _attempt(
        self, action: Action[..., Any], function: Callable[..., Any], arguments: dict[str, Any]
    ) -> Outcome | None:
        """Run an attempt. Return the outcome of the run, or None if another attempt follows."""
        attempt = Attempt(
            self._memory.begin(),
            function,
            limit=RESULT_LIMIT,
            warm=0.0,
            grace=10.0,
            retried=lambda outcome: self._is_retried(action, outcome),
        )
        try:
            outcome = await attempt.run(arguments)
        except ClaimLost:
            return None
        if outcome.kind == "suspended":
            self._memory.move_on(outcome.awaited or {})
            return None
        if outcome.error is not None and self._is_retried(action, outcome):
            self._memory.fail(outcome.error)
            return None
        return outcome

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


def _result(action: Action[..., Any], outcome: Outcome) -> Any:
    if outcome.error is None:
        return outcome.result
    raise ExecutionFailed(f"{action.ref} failed: {outcome.error.type}: {outcome.error.message}")
