"""The run that the code now executing belongs to: its ids, its log, and whether it should stop.

It travels in a context variable. So it is right in coroutines, in the tasks they start, in `asyncio.to_thread`
and in Penstock's own threads and child processes. A bare `threading.Thread` of the action starts with an empty
context. Run its target through `contextvars.copy_context().run` to pass the run on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from typing import Any
from uuid import UUID

from penstock.errors import OutsideRun
from penstock.run.progress import STREAM, Progress
from penstock.run.run import Run

CURRENT: ContextVar[Run | None] = ContextVar("penstock_run", default=None)
"""Set by the task executors, read through `current()`. The variable holds the run itself, so that entering
a run allocates nothing."""


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
        """1 for the first try. A crash of the worker uses one up."""
        return self._run.event.attempt

    @property
    def max_attempts(self) -> int:
        return self._run.event.max_attempts

    @property
    def namespace(self) -> str:
        """`tenant::pack::action`, or `tenant::pack::workflow::task`."""
        return self._run.event.namespace

    @property
    def action(self) -> str:
        """The action's ref, `pack.action`."""
        return self._run.event.action

    @property
    def root(self) -> UUID:
        """The execution that all of it began with: the outermost workflow, or this execution itself."""
        return self._run.event.root

    @property
    def workflow(self) -> UUID | None:
        """The execution of the workflow that this is a task of; None outside of one."""
        return self._run.event.workflow

    @property
    def task(self) -> str | None:
        """The name of the task in its workflow; None outside of one."""
        return self._run.event.task

    @property
    def params(self) -> Mapping[str, Any]:
        """The parameters as they were stored, before they were bound to the function's signature."""
        return self._run.params

    @property
    def context(self) -> Mapping[str, Any]:
        """Return the context of the run beside its parameters. Of a schedule: its own context, and `schedule`,
        `scheduled_time`, `timezone`, `expression`, `is_recovery`, `is_missed`, `is_backfill`. Else empty."""
        return self._run.context

    @property
    def idempotency_token(self) -> str:
        """Return the token that is the same in every attempt of this execution. A payment that is sent with it is
        made once."""
        return str(self._run.event.execution_id)

    @property
    def attempt_token(self) -> str:
        """`<execution id>:<attempt>`: tells the attempts of one execution apart."""
        return f"{self._run.event.execution_id}:{self._run.event.attempt}"

    @property
    def state(self) -> Any:
        """Return the state of the latest `Defer(state=...)` of this execution, or None."""
        return self._run.carry.get("state")

    @property
    def answers(self) -> Sequence[Any]:
        """Return the answers of humans to this execution so far, oldest first, for inquiries after which it goes on
        (`ask`)."""
        answers: list[Any] = self._run.carry.get("answers", [])
        return answers

    @property
    def cancelled(self) -> bool:
        """True once this attempt was cancelled or timed out. A thread cannot be killed: a long function that
        runs in one should look here between steps and return."""
        return self._run.cancelled

    def log(self, line: str, *, stream: str = "log") -> None:
        """Keep a line (or several) with this attempt."""
        self._run.log(stream, line)

    def progress(self, done: float, text: str = "") -> None:
        """Say how far it is: from 0 to 1, and what it is at. `penstock show` and the API show the latest, within a second.
        It is kept as a line of the log, stream `progress`. Raises ValueError for another number."""
        self._run.log(STREAM, Progress(done, text).line())


def current() -> RunContext:
    """The run that calls. Raises OutsideRun where there is none."""
    run = CURRENT.get()
    if run is None:
        raise OutsideRun(
            "there is no run here",
            hint="Call penstock.run.context.current() inside an action, or where its context was taken along.",
        )
    return RunContext(run)
