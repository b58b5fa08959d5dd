"""One attempt of an execution as a worker runs it, and what it needs to know of the action."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol
from uuid import UUID

from penstock.run.results import RESULT_LIMIT
from penstock.run.run_log import RunLog

GRACE = 10.0
"""Seconds that cancelled work has to end by itself before it is killed."""


@dataclass(slots=True)  # a frozen one takes four times as long to make
class TaskReadyEvent:
    """An attempt that this worker has claimed. It carries none of the run's data."""

    execution_id: UUID
    attempt: int
    """1 for the first."""
    max_attempts: int
    namespace: str
    """`tenant::pack::action`, or `tenant::pack::workflow::task`."""
    action: str
    """The action's ref."""
    root: UUID
    """The execution that all of it began with: the outermost workflow, or this execution itself."""
    workflow: UUID | None = None
    """The execution of the workflow that this is a task of."""
    task: str | None = None
    """Its name in that workflow."""


class RunnableAction(Protocol):
    """The needs of an executor from an action."""

    @property
    def ref(self) -> str: ...

    @property
    def function(self) -> Callable[..., Any] | None:
        """The Python function; None for an action that is a command, a URL or an image."""

    @property
    def is_coroutine(self) -> bool: ...

    @property
    def executor(self) -> str | None:
        """The task executor it asks for; None for that of its route, else the default of its kind."""

    @property
    def options(self) -> Mapping[str, Any]:
        """Return the options for the task executor, such as the command or the URL."""

    def bind(self, params: Mapping[str, Any], /) -> dict[str, Any]:
        """The function's keyword arguments, validated. Raises InvalidInput."""


def executor_name(action: RunnableAction, of_route: str | None = None) -> str:
    """The name of the executor that runs `action`: the one that it asks for, else the one of its route, else `async` for
    coroutine functions and `thread` for others."""
    return action.executor or of_route or ("async" if action.is_coroutine else "thread")


@dataclass(slots=True)
class Run:
    """One attempt, ready to run."""

    event: TaskReadyEvent
    params: Mapping[str, Any]
    action: RunnableAction
    log: RunLog
    timeout: float | None = None
    """Seconds that this attempt may take. `attempt()` enforces it by cancelling; an executor needs it only to
    tell a machine elsewhere."""
    grace: float = GRACE
    """Seconds between asking cancelled work to end and killing it."""
    carry: Mapping[str, Any] = field(default_factory=dict)
    """What the latest deferral of this execution carried (`Outcome.carry`), else empty."""
    context: Mapping[str, Any] = field(default_factory=dict)
    """What the run is told beside its parameters: by its schedule, if one started it."""
    result_limit: int = RESULT_LIMIT
    """Bytes of JSON that the result may have."""
    cancelled: bool = False
    """Set by the executor when the attempt was cancelled, for work that has to look by itself."""
    durable: Callable[[Mapping[str, Any]], Awaitable[Any]] | None = None
    """Runs the function of the action with these arguments, where it is durable, and gives the Outcome."""
    trace: Mapping[str, str] = field(default_factory=dict)
    """W3C trace context (`traceparent`, `tracestate`) for whatever the executor calls; empty where the run is not traced."""
    slept: int = 0
    """Durable sleeps that this attempt has passed so far (`penstock.run.steering.sleep`)."""
    asked: int = 0
    """Questions that this attempt has come to so far (`penstock.run.steering.ask`)."""
    task: asyncio.Task[Any] | None = None
    """The task in which a coroutine function runs, as long as it does."""
    exited: BaseException | None = None
    """SystemExit or KeyboardInterrupt of a task that the function made."""

    def exit(self, error: BaseException) -> None:
        """End the attempt because a task that its function made raised this. Nothing happens once the function has ended."""
        if self.task is not None and self.exited is None:
            self.exited = error
            self.task.cancel()
