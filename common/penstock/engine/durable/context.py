"""The context of a durable function: every act of the function that has to survive goes through it."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any
from uuid import UUID

import orjson

from penstock.engine.durable import records
from penstock.engine.durable.arguments import map_items, span, step_policy
from penstock.engine.durable.child_runs import run_child
from penstock.engine.durable.core import Core
from penstock.engine.durable.first import First, first_of
from penstock.engine.durable.journal import state_key
from penstock.engine.durable.names import (
    called_name,
    child_name,
    signal_name,
    step_name,
    target_of,
    undo_name,
)
from penstock.engine.durable.records import Record
from penstock.engine.durable.step_runs import run_step
from penstock.engine.durable.time_limit import TimeLimit
from penstock.engine.durable.undo import Undo
from penstock.engine.durable.waits import await_signal, sleep_for
from penstock.errors import DefinitionError
from penstock.language.definitions.durable_functions import ContextMark
from penstock.language.policies.policies import RetryPolicy
from penstock.language.terms.ids import new_id
from penstock.run import result_encoding
from penstock.run.durations import Span

Retries = RetryPolicy | Mapping[str, Any] | int | None


class DurableContext(ContextMark):
    """The first parameter of a durable function. Its answers are recorded: a later attempt gets the same answers, and
    continues where the attempt before ended. So between these calls a function must not depend on time, chance or
    anything outside: that belongs into a step. A call takes its place in the order where it is made, not where it is
    awaited: `asyncio.gather(ctx.run(a), ctx.run(b))` starts both. Each call raises DefinitionError for an invalid name,
    and inside of a step."""

    def __init__(self, core: Core) -> None:
        """Make a context. Only the code that runs a durable function does so."""
        self._core = core
        self.undo = Undo(core)

    def step(
        self, name: str, function: Callable[..., Any], /, *args: Any, retry: Retries = None, **kwargs: Any
    ) -> Coroutine[Any, Any, Any]:
        """Call `function(*args, **kwargs)` and record its result as JSON. A plain function runs in a thread. The
        function runs at least once, but only one result is recorded and returned. `retry` is the maximum number of
        tries, or a RetryPolicy. Raises StepFailed when the step has failed for good."""
        policy = step_policy(name, retry)
        record = self._core.ask(records.STEP, called_name(name))
        return run_step(self._core, record, partial(function, *args, **kwargs), policy)

    def now(self) -> datetime:
        """Return the time by the database's clock, aware. It is the same in every attempt."""
        return datetime.fromisoformat(self._recorded("now", lambda: self._core.clock().isoformat()))

    def random(self) -> float:
        """Return a random number from 0 to below 1. It is the same in every attempt."""
        return float(self._recorded("random", random.random))

    def uuid(self) -> UUID:
        """Return a new id; later ids sort after earlier ones. It is the same in every attempt, so it can be the
        idempotency key of calls to other systems."""
        return UUID(self._recorded("uuid", lambda: str(new_id())))

    def _recorded(self, name: str, make: Callable[[], Any]) -> Any:
        record = self._core.ask(records.VALUE, name)
        if not record.final:
            self._keep(record, orjson.dumps(make()).decode())
        return orjson.loads(record.result or "null")

    def _keep(self, record: Record, result: str) -> None:
        """Keep a value, to be written before anything outside can learn of it."""
        record.status, record.result, record.tries = records.COMPLETED, result, 1
        self._core.unwritten[record.key] = record

    def version(self, change: str) -> bool:
        """Return whether this run uses this change of the code: False if the run had passed this place before the
        change. `penstock set-result` decides instead, if it comes before; `penstock skip` means False."""
        journal = self._core.journal
        override = journal.override(called_name(change))
        if override is not None and override.told is None and journal.replaying:
            return False
        if override is None and not journal.peek(records.VERSION, change) and journal.replaying:
            return False
        record = self._core.ask(records.VERSION, change)
        if override is not None and override.told is None:
            # Record that the function has read the override, so that later attempts take the same path.
            override.told = journal.told
            self._core.unwritten[override.key] = replace(override, status=records.TOLD)
        if not record.final:
            self._keep(record, "true")
        return bool(orjson.loads(record.result or "null"))

    def set(self, key: str, value: Any) -> None:
        """Show `value` (JSON) under this key of the run's state (`penstock show`). It is written together with the next
        record."""
        self._core.waiting.check()
        encoded = result_encoding.encode(value, self._core.limit, f"the state {key!r:.80}").decode()
        if not self._core.journal.replaying:
            self._keep(Record(state_key(step_name(key)), 0, records.STATE, records.STARTED), encoded)

    def sleep(self, duration: Span) -> Coroutine[Any, Any, None]:
        """Sleep for this duration. A long sleep holds no worker and no slot."""
        duration_s = span(duration, "the duration of ctx.sleep")
        return sleep_for(self._core, self._core.ask(records.SLEEP, "sleep"), timedelta(seconds=duration_s))

    def run(
        self, action: Any, parameters: Mapping[str, Any] | None = None, /, *, name: str | None = None, **extra: Any
    ) -> Coroutine[Any, Any, Any]:  # fmt: skip
        """Run an action or a workflow (the object, or its ref) as a child execution with its own limits and retries,
        and await its result. Parameters are a mapping, keyword arguments, or both. Raises StepFailed if the child ends
        with another status than completed."""
        ref = target_of(action)
        return self._child(records.RUN, name or ref.rpartition(".")[2], ref, {**(parameters or {}), **extra})

    def map(
        self, action: Any, items: Iterable[Mapping[str, Any]], *, concurrency: int | None = None, name: str | None = None
    ) -> Coroutine[Any, Any, list[Any]]:  # fmt: skip
        """Run an action for each of these parameters, at most `concurrency` at a time, and await the list of their
        results. The map is one child, which fans out. Raises StepFailed if one of the items fails."""
        ref = target_of(action)
        entries = map_items(items, ref)
        if concurrency is not None and (
            isinstance(concurrency, bool) or not isinstance(concurrency, int) or concurrency < 1
        ):
            raise DefinitionError(
                f"concurrency is a number of children at a time, at least 1, not {concurrency!r}",
                hint="Omit concurrency to run all children at once.",
            )
        body = {"items": entries, "concurrency": concurrency or max(1, len(entries))}
        return self._child(records.MAP, name or ref.rpartition(".")[2], ref, body)

    def ask(
        self,
        prompt: str,
        *,
        schema: Mapping[str, Any] | None = None,
        assignee: str | None = None,
        timeout: Span | None = None,
        default: Any = None,
        name: str = "ask",
    ) -> Coroutine[Any, Any, Any]:
        """Return the answer of a human (`penstock answer`), which fits the JSON Schema. After `timeout` the default is the
        answer; without a default it raises StepTimedOut. Raises DefinitionError for an invalid schema, and InvalidInput for
        a default that it refuses."""
        question = {
            "prompt": prompt,
            "schema": None if schema is None else dict(schema),
            "assignee": assignee,
            "timeout": None if timeout is None else span(timeout, f"the timeout of {name!r:.80}"),
            "default": default,
        }
        return self._child(records.ASK, name, "inquiry", question)

    def wait_for(
        self, trigger: Any, *, when: str | None = None, timeout: Span | None = None, name: str = "wait_for", **names: Any
    ) -> Coroutine[Any, Any, Any]:  # fmt: skip
        """Return the next event of this trigger that meets the condition `when`. That is an expression of `event` and
        of the keyword arguments: `wait_for("shop.paid", when="event.payload.order == order", order=order)`.

        An event that was stored before the wait began is not seen. Where it may come early, let a rule send a signal,
        which is kept, and take it with `signal`. Raises StepTimedOut if no such event came in time, NotFound for an
        unknown trigger, and DefinitionError for an undefined name."""
        waits = {
            "trigger": target_of(trigger),
            "filter": when,
            "names": names,
            "timeout": None if timeout is None else span(timeout, f"the timeout of {name!r:.80}"),
        }
        return self._child(records.WAIT_FOR, name, "wait_for_event", waits)

    def _child(
        self, kind: str, name: str, target: str, parameters: Mapping[str, Any]
    ) -> Coroutine[Any, Any, Any]:
        result_encoding.encode(
            parameters, self._core.limit, f"what {kind} {name!r:.80} is given"
        )  # raises ResultNotStorable in the line of the call
        named = parameters["trigger"] if kind == records.WAIT_FOR else target
        return run_child(self._core, self._core.ask(kind, child_name(name), named), target, parameters)

    def signal(self, name: str, *, timeout: Span | None = None) -> Coroutine[Any, Any, Any]:
        """Wait for a signal of this name to this run (`penstock signal`). The nth signal of a name goes to the nth call
        that receives a signal. Raises StepTimedOut if no signal was sent before the deadline. `timeout=0` takes a
        signal only if it was sent before."""
        core, wait = self._core, timedelta(seconds=span(timeout or 0, f"the timeout of signal {name!r:.80}"))
        core.refuse_inside_step(f"signal {signal_name(name)}")
        core.waiting.check()
        deadline = None if timeout is None else core.ask(records.SLEEP, f"timeout of {name}")
        return await_signal(core, name, core.deliveries.signals.number(), deadline, wait)

    def first(self, **arms: Awaitable[Any]) -> Coroutine[Any, Any, First]:
        """Wait for the first of these arms: `name, value = await ctx.first(paid=ctx.signal("paid"),
        late=ctx.sleep("14d"))`. The other arms are cancelled with their children, and have ended when this returns. If
        the first arm raised an error, that is raised. Each arm is a coroutine or a task; a coroutine becomes a
        branch."""
        self._core.refuse_inside_step("first")
        if not arms:
            raise DefinitionError(
                "ctx.first was called without anything to wait for",
                hint='Pass at least one wait: ctx.first(paid=ctx.signal("paid")).',
            )
        return first_of(self._core.loop, arms)

    def timeout(self, duration: Span) -> TimeLimit:
        """Limit the time of a block, on the database's clock: `async with ctx.timeout("5m"): ...`. The time counts from
        the first attempt that entered the block. When it is over, the block is cancelled and raises StepTimedOut."""
        return TimeLimit(self._core, timedelta(seconds=span(duration, "the duration of ctx.timeout")))

    def on_failure(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> None:
        """Register a function that is called as a step if this run fails, times out or is cancelled. The last
        registered function is called first, whichever branch registered it."""
        self._core.refuse_inside_step("on_failure")
        self._core.waiting.check()
        self.undo.register(undo_name(function), partial(function, *args, **kwargs))
