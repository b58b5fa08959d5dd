"""The run to which the executing code belongs: its ids, its log, and whether it should stop.

It is kept in a context variable. So it is right in coroutines, in the tasks they start, in `asyncio.to_thread`, and in
Penstock's own threads and child processes. A bare `threading.Thread` of the action starts with an empty context. Run
its target through `contextvars.copy_context().run` to pass the run on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from decimal import Decimal
from typing import Any
from uuid import UUID

from penstock.errors import OutsideRun
from penstock.run.costs import cost_amount
from penstock.run.progress import STREAM, Progress
from penstock.run.run import Run

CURRENT: ContextVar[Run | None] = ContextVar("penstock_run", default=None)
"""The current run, which task executors set and `current()` reads. It is the run itself, so that entering a run
allocates nothing."""


class RunContext:
    """The facts that an action may read about its own run."""

    __slots__ = ("_run",)

    def __init__(self, run: Run) -> None:
        self._run = run

    @property
    def execution_id(self) -> UUID:
        return self._run.event.execution_id

    @property
    def attempt(self) -> int:
        """Return the number of this attempt, from 1. An attempt that was lost with its worker counts too."""
        return self._run.event.attempt

    @property
    def max_attempts(self) -> int:
        return self._run.event.max_attempts

    @property
    def namespace(self) -> str:
        """Return the namespace: `tenant::pack::action`, or `tenant::pack::workflow::task`."""
        return self._run.event.namespace

    @property
    def action(self) -> str:
        """Return the action's ref, `pack.action`."""
        return self._run.event.action

    @property
    def root(self) -> UUID:
        """Return the execution at the root of the tree: the outermost workflow, or this execution itself."""
        return self._run.event.root

    @property
    def workflow(self) -> UUID | None:
        """Return the execution of the workflow of which this is a task, or None outside of a workflow."""
        return self._run.event.workflow

    @property
    def task(self) -> str | None:
        """Return the name of this task in its workflow, or None outside of a workflow."""
        return self._run.event.task

    @property
    def params(self) -> Mapping[str, Any]:
        """Return the parameters as they were stored, before they were bound to the function's signature."""
        return self._run.params

    @property
    def context(self) -> Mapping[str, Any]:
        """Return the values besides parameters that the starter passed to the run.

        A schedule passes its own context, and `schedule`, `scheduled_time`, `timezone`, `expression`, `is_recovery`,
        `is_missed`, `is_backfill`. For other runs it is empty.
        """
        return self._run.context

    @property
    def idempotency_token(self) -> str:
        """Return a token that is the same in every attempt of this execution. Send it with a payment, for example, so
        that the payment is made once."""
        return str(self._run.event.execution_id)

    @property
    def attempt_token(self) -> str:
        """Return `<execution id>:<attempt>`, which distinguishes the attempts of one execution."""
        return f"{self._run.event.execution_id}:{self._run.event.attempt}"

    @property
    def state(self) -> Any:
        """Return the state of the latest `Defer(state=...)` of this execution, or None."""
        return self._run.carry.get("state")

    @property
    def answers(self) -> Sequence[Any]:
        """Return the answers to this execution's inquiries so far, oldest first, for those that it asked with `ask` or
        `resume=True`."""
        answers: list[Any] = self._run.carry.get("answers", [])
        return answers

    @property
    def cancelled(self) -> bool:
        """Return whether this attempt was cancelled or timed out. A thread cannot be killed, so a long function in one
        should check this between its steps, and return."""
        return self._run.cancelled

    def log(self, line: str, *, stream: str = "log") -> None:
        """Log a line, or several, for this attempt."""
        self._run.log(stream, line)

    def progress(self, done: float, text: str = "") -> None:
        """Report the progress, from 0 to 1, with an optional text. `penstock show` and the API show the latest within
        a second.

        It is stored as a log line on the stream `progress`. Raises ValueError for another number.
        """
        self._run.log(STREAM, Progress(done, text).line())

    def cost(self, amount: float | Decimal | None = None, /, **amounts: float | Decimal) -> None:
        """Report the true cost of this attempt, which replaces the reserved cost when the attempt ends: `cost(1234)`, or by
        unit `cost(tokens=1234)`.

        It counts for the limits on the action that have that unit. A later call replaces the amount of the same unit.
        Raises ValueError for an amount that is negative, or not finite.
        """
        if amount is not None:
            self._run.costs[""] = cost_amount(amount)
        for unit, value in amounts.items():
            self._run.costs[unit] = cost_amount(value)


def current() -> RunContext:
    """Return the current run. Raises OutsideRun if there is none."""
    run = CURRENT.get()
    if run is None:
        raise OutsideRun(
            "there is no run here",
            hint="Call penstock.run.context.current() inside an action, or where its context was taken along.",
        )
    return RunContext(run)
