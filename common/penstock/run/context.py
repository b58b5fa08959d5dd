"""The run to which the executing code belongs: its ids, its log, and whether it should stop.

It is kept in a context variable. So it is right in coroutines, in the tasks they start, in `asyncio.to_thread`, and in
Penstock's own threads and child processes. A bare `threading.Thread` of the action starts with an empty context. Run
its target through `contextvars.copy_context().run` to pass the run on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, Literal, Protocol, TypeVar, overload
from uuid import UUID

from penstock.errors import InvalidInput, OutsideRun
from penstock.run.action_call import ActionCall
from penstock.run.costs import cost_amount
from penstock.run.durations import HINT, Span, WrongDuration, seconds
from penstock.run.outgoing import AwaitResult, Callback, Outgoing, Publish, Request, Signal, Start
from penstock.run.progress import STREAM, Progress
from penstock.run.run import Run
from penstock.run.sent_signal import SentSignal

CURRENT: ContextVar[Run | None] = ContextVar("penstock_run", default=None)
"""The current run, which task executors set and `current()` reads. The value is the run itself, so that entering a run
allocates nothing."""


R = TypeVar("R")


class Named(Protocol):
    """An action, a workflow or a reference to an action."""

    @property
    def ref(self) -> str: ...


Target = str | Named | ActionCall[Any]
"""The target of a start: a ref, an object with a ref, or an action with its parameters. Parameters beside an ActionCall
are added to its own."""
Parameters = Mapping[str, Any] | None


class RunContext:
    """The facts that an action may read about its own run, and what it may do through its worker."""

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

    # -- requests to the worker ----------------------------------------------------------------------------------

    @property
    def sync(self) -> SyncRunContext:
        """Return `publish`, `start`, `signal` and `run` as blocking methods, for a plain function in a thread or a process."""
        return SyncRunContext(self._run)

    @overload
    async def publish(
        self,
        trigger: str,
        payload: Any = None,
        *,
        key: str | None = None,
        transactional: Literal[False] = False,
    ) -> UUID: ...
    @overload
    async def publish(
        self, trigger: str, payload: Any = None, *, key: str | None = None, transactional: Literal[True]
    ) -> None: ...
    async def publish(
        self, trigger: str, payload: Any = None, *, key: str | None = None, transactional: bool = False
    ) -> UUID | None:
        """Publish an event of this execution's tenant, and return its id once it is durably stored. A second publish
        with the same `key`, from any action, returns the same event. Pass a key in an action that may be retried.

        `transactional`: store the event with the completion of this execution, and not if the attempt fails, is
        cancelled or loses its claim. Then return None. An attempt that ends with a question or with `later` stores it
        as the wait begins. A retry of a failed wait stores it again, unless it has a `key`.

        Raises NotFound for an unknown trigger. Raises InvalidInput for a payload that its schema refuses. Raises
        Conflict if the payload of the key differs; a transactional publish then fails the attempt. Raises ClaimLost
        if the attempt no longer belongs to its worker. Raises OutsideRun where the code has no worker, as on a cluster.
        """
        request = Publish(trigger, payload, key, transactional)
        answer: UUID | None = await _outgoing(self._run).send(request)
        return answer

    @overload
    async def start(
        self,
        target: Target,
        params: Parameters = None,
        *,
        key: str | None = None,
        priority: int = 0,
        delay: Span | None = None,
        at: datetime | None = None,
        labels: Mapping[str, str] | None = None,
        debounce: Span | None = None,
        debounce_key: str | None = None,
        at_most: Span | None = None,
        keep: str = "last",
        transactional: Literal[False] = False,
    ) -> UUID: ...
    @overload
    async def start(
        self,
        target: Target,
        params: Parameters = None,
        *,
        key: str | None = None,
        priority: int = 0,
        delay: Span | None = None,
        at: datetime | None = None,
        labels: Mapping[str, str] | None = None,
        debounce: Span | None = None,
        debounce_key: str | None = None,
        at_most: Span | None = None,
        keep: str = "last",
        transactional: Literal[True],
    ) -> None: ...
    async def start(
        self,
        target: Target,
        params: Parameters = None,
        *,
        key: str | None = None,
        priority: int = 0,
        delay: Span | None = None,
        at: datetime | None = None,
        labels: Mapping[str, str] | None = None,
        debounce: Span | None = None,
        debounce_key: str | None = None,
        at_most: Span | None = None,
        keep: str = "last",
        transactional: bool = False,
    ) -> UUID | None:
        """Start an action or workflow in this execution's tenant, and return its id once it is durably stored. It runs
        on by itself, whatever becomes of this execution, which `penstock show` names as its starter.

        A second start with the same `key` returns the same execution. Pass a key in an action that may be retried.
        `delay` (90, "5m") or `at` delays the start. Lists find it by its `labels`. `transactional` as in `publish`.
        `debounce`, `debounce_key`, `at_most` and `keep` as in `Client.start`: all starts of a burst have one execution.

        Raises NotFound for an unknown action, InvalidInput for wrong parameters, Conflict if the parameters of the key
        differ, and ClaimLost and OutsideRun as `publish` does.
        """
        request = _start(
            target,
            params,
            key,
            priority,
            delay,
            at,
            transactional,
            debounce,
            debounce_key,
            at_most,
            keep,
            labels,
        )
        answer: UUID | None = await _outgoing(self._run).send(request)
        return answer

    @overload
    async def run(
        self,
        target: ActionCall[R],
        params: Parameters = None,
        *,
        timeout: Span | None = None,
        key: str | None = None,
        priority: int = 0,
        labels: Mapping[str, str] | None = None,
    ) -> R: ...
    @overload
    async def run(
        self,
        target: Target,
        params: Parameters = None,
        *,
        timeout: Span | None = None,
        key: str | None = None,
        priority: int = 0,
        labels: Mapping[str, str] | None = None,
    ) -> Any: ...
    async def run(
        self,
        target: Target,
        params: Parameters = None,
        *,
        timeout: Span | None = None,
        key: str | None = None,
        priority: int = 0,
        labels: Mapping[str, str] | None = None,
    ) -> Any:
        """Start an execution as `start` does, and return its result. Wait at most `timeout` (60, "5m").

        This attempt keeps its slot meanwhile. A durable function (`ctx.run`) gives its slot back for a long wait. The
        started execution needs a slot too: an action that runs itself, or others of its route, needs more than one.

        Raises the errors of `start`, ExecutionFailed if the execution does not complete, and TimeoutError if it has not
        ended in time.
        """
        outgoing = _outgoing(self._run)
        start = _start(target, params, key, priority, labels=labels)
        id: UUID = await outgoing.send(start)
        return await outgoing.send(AwaitResult(id, start.ref, _timeout(timeout)))

    @overload
    async def signal(
        self, id: UUID, name: str, value: Any = None, *, transactional: Literal[False] = False
    ) -> SentSignal: ...
    @overload
    async def signal(
        self, id: UUID, name: str, value: Any = None, *, transactional: Literal[True]
    ) -> None: ...
    @overload
    async def signal(
        self, *, key: str, name: str, value: Any = None, transactional: Literal[False] = False
    ) -> SentSignal: ...
    @overload
    async def signal(
        self, *, key: str, name: str, value: Any = None, transactional: Literal[True]
    ) -> None: ...
    async def signal(
        self,
        id: UUID | None = None,
        name: str | None = None,
        value: Any = None,
        *,
        key: str | None = None,
        transactional: bool = False,
    ) -> SentSignal | None:
        """Send a durable function of this execution's tenant a signal. There `ctx.signal(name)` returns its value. The answer
        says whether the function waits for this signal now. A retried attempt sends the signal again.

        The receiver is named by its id, or by the idempotency key of its start: `signal(key="order-7", name="paid")`.

        `transactional`: send it with the completion of this execution, as `publish` does. Then return None.

        Raises NotFound for an execution of another tenant, and for a key that no start has. Raises Conflict if the
        execution has ended, or is not a durable function; a transactional signal then fails the attempt. Raises
        DefinitionError for a wrong name, InvalidInput for a value that is not JSON, and ClaimLost and OutsideRun as
        `publish` does.
        """
        answer: SentSignal | None = await _outgoing(self._run).send(
            Signal(id, name, value, transactional, key)
        )
        return answer

    async def callback(self) -> str:
        """Return a signed address by which an outside system completes this attempt, once. Pass it on, and then
        `return later(...)`. An outcome that comes before that is kept.

        A POST of `{"result": ...}` completes the execution, and `{"error": "..."}` fails it. `{"progress": 0.4}` and
        `{"heartbeat": true}` report that the work goes on. Raises ConfigurationError if the worker does not know the
        address of the API, and ClaimLost and OutsideRun as `publish` does.
        """
        address: str = await _outgoing(self._run).send(Callback())
        return address

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


class SyncRunContext:
    """The blocking twins of a run's `publish`, `start`, `signal` and `run`, with the same parameters, results and errors.

    They are for plain functions (`def`), which run in threads or processes. In an `async def` action on the worker's
    event loop they raise OutsideRun, since they would stop it.
    """

    __slots__ = ("_run",)

    def __init__(self, run: Run) -> None:
        self._run = run

    def callback(self) -> str:
        """Return the address of a callback, as `RunContext.callback` does."""
        address: str = self._send(Callback())
        return address

    def _send(self, request: Request) -> Any:
        return _outgoing(self._run).send_blocking(request, lambda: self._run.cancelled)

    def publish(
        self, trigger: str, payload: Any = None, *, key: str | None = None, transactional: bool = False
    ) -> UUID | None:
        """Publish an event, as `RunContext.publish` does."""
        answer: UUID | None = self._send(Publish(trigger, payload, key, transactional))
        return answer

    def signal(
        self,
        id: UUID | None = None,
        name: str | None = None,
        value: Any = None,
        *,
        key: str | None = None,
        transactional: bool = False,
    ) -> SentSignal | None:
        """Send a durable function a signal, as `RunContext.signal` does."""
        answer: SentSignal | None = self._send(Signal(id, name, value, transactional, key))
        return answer

    def start(
        self,
        target: Target,
        params: Parameters = None,
        *,
        key: str | None = None,
        priority: int = 0,
        delay: Span | None = None,
        at: datetime | None = None,
        labels: Mapping[str, str] | None = None,
        debounce: Span | None = None,
        debounce_key: str | None = None,
        at_most: Span | None = None,
        keep: str = "last",
        transactional: bool = False,
    ) -> UUID | None:
        """Start an action or workflow, as `RunContext.start` does."""
        request = _start(
            target,
            params,
            key,
            priority,
            delay,
            at,
            transactional,
            debounce,
            debounce_key,
            at_most,
            keep,
            labels,
        )
        answer: UUID | None = self._send(request)
        return answer

    def run(
        self,
        target: Target,
        params: Parameters = None,
        *,
        timeout: Span | None = None,
        key: str | None = None,
        priority: int = 0,
        labels: Mapping[str, str] | None = None,
    ) -> Any:
        """Start an execution and return its result, as `RunContext.run` does."""
        start = _start(target, params, key, priority, labels=labels)
        id: UUID = self._send(start)
        return self._send(AwaitResult(id, start.ref, _timeout(timeout)))


def _start(
    target: Target,
    params: Parameters,
    key: str | None,
    priority: int,
    delay: Span | None = None,
    at: datetime | None = None,
    transactional: bool = False,
    debounce: Span | None = None,
    debounce_key: str | None = None,
    at_most: Span | None = None,
    keep: str = "last",
    labels: Mapping[str, str] | None = None,
) -> Start:
    if isinstance(target, ActionCall):
        ref, params = target.ref, {**target.parameters, **(params or {})}
    else:
        ref = target if isinstance(target, str) else target.ref
    return Start(
        ref,
        params or {},
        key,
        priority,
        _plain(delay),
        at,
        transactional,
        _plain(debounce),
        debounce_key,
        _plain(at_most),
        keep,
        labels,
    )


def _plain(duration: Span | None) -> float | str | None:
    """Return a duration in a form that is also JSON."""
    return duration.total_seconds() if isinstance(duration, timedelta) else duration


def _timeout(duration: Span | None) -> float | None:
    try:
        return None if duration is None else seconds(duration)
    except WrongDuration as wrong:
        raise InvalidInput(f"the timeout {wrong}", hint=HINT) from None


def _outgoing(run: Run) -> Outgoing:
    if run.outgoing is None:
        raise OutsideRun(
            "this code does not run in a worker, so it cannot publish events, start executions or send signals",
            hint="On the machines of a cluster, and in a program, call the API with PENSTOCK_API_ADDRESS and PENSTOCK_TOKEN.",
        )
    return run.outgoing


def current() -> RunContext:
    """Return the current run. Raises OutsideRun if there is none."""
    run = CURRENT.get()
    if run is None:
        raise OutsideRun(
            "this code does not run inside an action",
            hint="Call penstock.run.context.current() inside an action, or in a thread or task that has a copy of its"
            " context.",
        )
    if run.items is not None:
        raise OutsideRun(
            "a batch has a run for each item, and none of its own",
            hint="Ask the items: item.execution_id, item.attempt, item.log(...), await item.publish(...).",
        )
    return RunContext(run)
