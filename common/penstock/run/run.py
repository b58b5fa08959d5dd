"""The run of one attempt on a worker, and the parts of an action that it needs."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Protocol
from uuid import UUID

from penstock.run.outgoing import Outgoing
from penstock.run.result_encoding import RESULT_LIMIT
from penstock.run.run_log import RunLog

GRACE = 10.0
"""The default seconds that cancelled work has to end by itself before it is killed."""


@dataclass(slots=True)  # a frozen one takes four times as long to make
class TaskReadyEvent:
    """An attempt that this worker has claimed: its ids and names, without parameters."""

    execution_id: UUID
    attempt: int
    """The number of the attempt, from 1."""
    max_attempts: int
    namespace: str
    """The namespace: `tenant::pack::action`, or `tenant::pack::workflow::task`."""
    action: str
    """The action's ref."""
    root: UUID
    """The execution at the root of the tree: the outermost workflow, or this execution itself."""
    workflow: UUID | None = None
    """The execution of the workflow of which this is a task, or None."""
    task: str | None = None
    """The name of this task in the workflow, or None."""


class RunnableAction(Protocol):
    """The parts of an action that a task executor needs."""

    @property
    def ref(self) -> str: ...

    @property
    def function(self) -> Callable[..., Any] | None:
        """Return the Python function, or None for an action that is a command, a URL or an image."""

    @property
    def is_coroutine(self) -> bool: ...

    @property
    def executor(self) -> str | None:
        """Return the task executor that the action asks for. None means that of its route, or else the default for its
        kind."""

    @property
    def options(self) -> Mapping[str, Any]:
        """Return the options for the task executor, such as the command or the URL."""

    def bind(self, params: Mapping[str, Any], /) -> dict[str, Any]:
        """Return the validated keyword arguments of the function. Raises InvalidInput if the parameters do not fit the
        schema of the action."""


def executor_name(action: RunnableAction, of_route: str | None = None) -> str:
    """Return the name of the executor for `action`: the one that it asks for, else that of its route, else `async` for
    a coroutine function and `thread` for any other."""
    return action.executor or of_route or ("async" if action.is_coroutine else "thread")


@dataclass(slots=True)
class Run:
    """One attempt with all that a task executor needs to run it."""

    event: TaskReadyEvent
    params: Mapping[str, Any]
    action: RunnableAction
    log: RunLog
    timeout: float | None = None
    """The timeout of this attempt in seconds. `attempt()` enforces it by cancelling. An executor needs it only to pass
    it to a remote machine."""
    grace: float = GRACE
    """The seconds between cancelling work and killing it."""
    carry: Mapping[str, Any] = field(default_factory=dict)
    """The carry of the latest deferral of this execution (`Outcome.carry`), or empty."""
    context: Mapping[str, Any] = field(default_factory=dict)
    """The values besides parameters that the starter of the run passed, such as a schedule."""
    result_limit: int = RESULT_LIMIT
    """The maximum size of the result, in bytes of JSON."""
    cancelled: bool = False
    """True once the executor has cancelled the attempt, for work that has to check it by itself."""
    durable: Callable[[Mapping[str, Any]], Awaitable[Any]] | None = None
    """The function that runs a durable action's function with these arguments, and returns its Outcome. None for other
    actions."""
    trace: Mapping[str, str] = field(default_factory=dict)
    """The W3C trace context (`traceparent`, `tracestate`) for outgoing calls of the executor. Empty if the run is not
    traced."""
    outgoing: Outgoing | None = None
    """The way to publish events and start executions from inside the action. None on the machines of a cluster."""
    secrets: Mapping[str, str] = field(default_factory=dict)
    """The stored secrets that the action's options name, by the names that its templates use."""
    api_address: str | None = None
    """The address of the API, for a program that calls it, or None."""
    token: str | None = None
    """The token of this attempt for the API, or None. The token is valid while the attempt runs."""
    slept: int = 0
    """The number of durable sleeps that this attempt has passed (`penstock.run.steering.sleep`)."""
    inquiries: int = 0
    """The number of inquiries that this attempt has reached (`penstock.run.steering.ask`)."""
    costs: dict[str, Decimal] = field(default_factory=dict)
    """The true costs that the attempt has reported so far, by unit. The unit is '' for a cost without one."""
    items: Sequence[Run] | None = None
    """The runs of the items, for the call of a function that takes a batch. None for another function."""
    input: Any = None
    """The validated parameters of an item of a batch, or None."""
    task: asyncio.Task[Any] | None = None
    """The task in which a coroutine function runs, while it runs."""
    exited: BaseException | None = None
    """The SystemExit or KeyboardInterrupt of a task that the function started, or None."""

    def exit(self, error: BaseException) -> None:
        """End the attempt because a task that its function started raised `error`. Does nothing once the function has
        returned."""
        if self.task is not None and self.exited is None:
            self.exited = error
            self.task.cancel()
