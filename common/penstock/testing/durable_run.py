"""A run of a durable function in a test: what it records is kept in memory, and its time is moved on."""

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
    """`await run(function, name=value, ...)` runs it to its end. What comes from outside is said before."""

    crash_at: int | None = None
    commits: int = field(default=0, init=False)
    """How often it recorded something."""
    attempts: int = field(default=0, init=False)
    crashed: str = field(default="", init=False)
    """Before or after which record it was crashed."""

    def __post_init__(self) -> None:
        self._memory = Memory(BEGIN, self._commit)

    def answer(self, value: Any, *, name: str = "ask", after: Span = 0) -> None:
        """`ctx.ask(..., name=name)` is answered so long after it was asked; several answers, several questions."""
        self._memory.answers.setdefault(name, []).append((seconds(after), value))

    def event(self, payload: Any, *, name: str = "wait_for", after: Span = 0) -> None:
        """`ctx.wait_for(..., name=name)` gets an event with this payload, so long after it began to wait."""
        self._memory.answers.setdefault(name, []).append((seconds(after), {"payload": payload}))

    def signal(self, name: str, value: Any = None, *, after: Span = 0) -> None:
        """This is told so long after the run began."""
        ordinal = 1 + sum(key.name == f"{SIGNAL}/{name}" for _, key, _ in self._memory.signals)
        due = BEGIN + timedelta(seconds=seconds(after))
        self._memory.signals.append((due, signal_key(name, ordinal), value))

    def child(self, action: Action[..., Any] | str, function: Callable[..., Any]) -> None:
        """`ctx.run` and `ctx.map` of this action call this function in its place. Actions that stand in the function's own module
        need nothing: they are called themselves."""
        self._memory.functions[action if isinstance(action, str) else action.ref] = function

    def cancel(self, *, after: Span = 0) -> None:
        """It is cancelled so long after it began, when it waits."""
        self._memory.cancelled_at = BEGIN + timedelta(seconds=seconds(after))

    def state(self, key: str) -> Any:
        """Return the last value of `ctx.set` for this key; None if there is none."""
        record = self._memory.records.get(state_key(key))
        return None if record is None else orjson.loads(record.result or "null")

    @property
    def now(self) -> datetime:
        return self._memory.now

    @property
    def recorded(self) -> list[str]:
        """The steps that are recorded, by name, in the order in which they were first asked for."""
        return [str(key) for key in self._memory.records]

    @property
    def told(self) -> list[str]:
        """The results that the run was told, by the names of their steps, in the order in which it was. Of a child, a sleep or a
        signal this is known once something was recorded after it."""
        numbered = [(record.told, str(key)) for key, record in self._memory.records.items() if record.told]
        return [name for _, name in sorted(numbered)]

    async def __call__(self, action: Action[..., Any], /, **parameters: Any) -> Any:
        """Run it, with the attempts that it takes. Returns its result, as JSON keeps it. Raises ExecutionFailed."""
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
        """Run an attempt, and return the outcome of the run; None if another attempt follows."""
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
        """Every write of the run, with the crash that is due."""
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
