"""The path of every call of a durable function. The call is compared with the journal and recorded, and its result is
delivered in the order of the run."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, TypeVar
from uuid import UUID

import orjson

from penstock.engine.durable.attempt_over import AttemptOver, Stopped, Suspended
from penstock.engine.durable.backend import Backend
from penstock.engine.durable.calls import Answer, Call, Work
from penstock.engine.durable.deliveries import Deliveries
from penstock.engine.durable.journal import Journal
from penstock.engine.durable.records import (
    CHILDREN,
    COMPLETED,
    SLEEP,
    Awaited,
    History,
    Key,
    Record,
    instant_of,
    until_json,
)
from penstock.engine.durable.run_loop import RunLoop
from penstock.engine.durable.step_tries import IN_STEP
from penstock.engine.durable.waiting import Waiting
from penstock.errors import (
    ClaimLost,
    DefinitionError,
    InvalidInput,
    NotFound,
    PenstockError,
    ReplayMismatch,
    ResultNotStorable,
    StepFailed,
    StepTimedOut,
)
from penstock.run.root_cause import cause_inside

T = TypeVar("T")
REFUSALS: tuple[type[PenstockError], ...] = (NotFound, InvalidInput, DefinitionError, ResultNotStorable)
"""The errors with which a child is refused at its start."""
LEAST_DELAY_S, MOST_DELAY_S = 2.0, 60.0
"""The shortest and the longest delay until a run looks again for a worker with code for its change."""


class Core:
    """One attempt: its records (`journal`, `children`), its waits, and the records that are still to be written. `rollout`: the
    seconds in which older code leaves a run with a new change to other workers."""

    def __init__(
        self,
        backend: Backend,
        history: History,
        *,
        limit: int,
        warm: float,
        clock: Callable[[], datetime] | None = None,
        jitter: Callable[[], float] = random.random,
        rollout: float = 0.0,
    ) -> None:
        self.backend = backend
        self._rollout = rollout
        self.journal = Journal(history)
        self.children = history.children
        self.limit = limit
        self.unwritten: dict[Key, Record] = {}
        self._writing: set[asyncio.Task[Mapping[Key, Record]]] = set()
        """The writes under way that carry values of the function."""
        self.open_children: set[UUID] = set()
        self.clock = clock or _clock(history.now)
        self.jitter = jitter
        self.loop = RunLoop()  # type: ignore[abstract]  # the rest is set by name
        self.waiting = Waiting(self, warm)
        self.deliveries = Deliveries(self, history)

    def ask(self, kind: str, name: str, target: str | None = None) -> Record:
        """Return the record of the next call of the calling branch, or a new record where there is none. `target`: the
        ref that the call names, if it has a child."""
        self.refuse_inside_step(f"{kind} {name}")
        self.waiting.check()
        try:
            return self.journal.ask(kind, name, target)
        except ReplayMismatch as error:
            raise self.stopped(error) from None

    async def result(self, record: Record, work: Work) -> Any:
        """Wait for the result of a call, as it is recorded or as `work` settles it."""
        call = Call(record, work)
        if record.final:
            call.answer, call.instant = self.answer_of(record), record.at
        elif record.kind == SLEEP and record.told is not None:
            call.answer = _nothing
        return await self.deliveries.result_of(call)

    def answer_of(self, record: Record) -> Answer:
        return lambda: value_of(record)

    def stopped(self, error: PenstockError) -> AttemptOver:
        """End the attempt, because the code does not fit the records. Return the exception that ends it."""
        self.waiting.end(self.left_to_newer_code() or Stopped(error))
        return AttemptOver()

    def left_to_newer_code(self) -> Suspended | None:
        """Return the suspension of a run with a new change that this code does not know: a worker with newer code goes on. Return
        None if there is no such change, if it was made before the rollout, or if the attempt cleans up."""
        change = self.journal.unknown_change
        if change is None or change.at is None or self.waiting.staying:
            return None
        now = self.clock()
        age = (now - change.at).total_seconds()
        if age >= self._rollout:
            return None
        delay = min(max(age, LEAST_DELAY_S), MOST_DELAY_S)
        cause = f"a worker with code for the change {change.key.label!r}"
        return Suspended(Awaited(until=now + timedelta(seconds=delay), causes=(cause,)))

    def refuse_inside_step(self, operation: str) -> None:
        if (step := IN_STEP.get()) is not None:
            raise DefinitionError(
                f"{operation} is called inside the step {step}, whose result is recorded as a whole",
                hint="Call it in the durable function itself, or call the inner function without ctx.step.",
            )

    # -- writes of records ---------------------------------------------------------------------------------------------

    @property
    def has_values(self) -> bool:
        """Return true if a value of the function, or the delivery of a result, is not recorded yet."""
        return bool(self.journal.changed or self.unwritten or self._writing)

    async def write_values(self) -> None:
        """Record the function's values and the delivered results, before anything outside can learn of them. Values
        that another call is just recording are awaited."""
        self.waiting.check()
        if self.journal.changed or self.unwritten:
            await self.ours(self._write([]))
        for write in list(self._writing):
            await self.ours(asyncio.shield(write))

    async def written(self, record: Record) -> Record:
        """Write a record, and return it as it is stored. A record that was stored before is kept."""
        self.waiting.check()
        stored = await self.ours(self._write([record]))
        return stored.get(record.key, record)

    def _write(self, records: Sequence[Record]) -> Awaitable[Mapping[Key, Record]]:
        """Write these records, with all values that are not recorded. A task of its own writes values: the cancellation
        of one branch must not end a write that carries another branch's values. Each later write is a task too, so that
        none overtakes an earlier one."""
        values = [*self.journal.changed, *self.unwritten.values()]
        self.journal.changed.clear()
        self.unwritten = {}
        if not values and not self._writing:
            return self._recorded(records)
        write = asyncio.ensure_future(self._recorded([*values, *records]))
        self._writing.add(write)
        write.add_done_callback(self._writing.discard)
        return asyncio.shield(write)

    async def _recorded(self, records: Sequence[Record]) -> Mapping[Key, Record]:
        """Write these records. If the write fails, the attempt is over: no later write may be stored without this
        one."""
        if self.waiting.verdict is not None:
            return {}
        try:
            return await self.backend.record(records)
        except Exception as error:
            self.waiting.end(Stopped(error))
            return {}

    async def ours(self, write: Awaitable[T]) -> T:
        """Return the answer of a write. If the claim is lost or the attempt is over, stop the function here."""
        try:
            answer = await write
        except ClaimLost as error:
            self.waiting.end(Stopped(error))
            raise AttemptOver from None
        self.waiting.check()
        return answer

    async def until_recorded(self, record: Record, span: timedelta) -> datetime:
        """Return the instant at which this sleep ends. The instant is recorded before the sleep begins."""
        if record.result is None:
            record.result = until_json(self.clock() + span)
            await self.written(record)
        return instant_of(record)

    def close(self) -> None:
        """Close the attempt, which awaits no write any more."""
        for write in self._writing:
            write.cancel()

    # -- looks for new signals and ended children ----------------------------------------------------------------------

    async def look(self) -> None:
        """Look for signals and for children that have ended. Their results are then delivered before a sleep or a
        deadline that ended later."""
        signals, children = self.deliveries.signals.awaited(), self.deliveries.open_children()
        if not signals and not children:
            return
        sent, ends = await self.ours(self.backend.look(signals, list(children)))
        self.waiting.resolve_children(dict(ends))
        if self.deliveries.signals.arrive(sent):
            self.deliveries.wake()
        settling = [
            call.task for id, call in children.items() if id in ends and call.task and not call.task.done()
        ]
        if settling:
            await asyncio.wait(settling)


def _clock(now: datetime) -> Callable[[], datetime]:
    """Return the database's clock: its time at the beginning of the attempt, plus the time that has passed since."""
    loaded = time.monotonic()
    return lambda: now + timedelta(seconds=time.monotonic() - loaded)


def value_of(record: Record) -> Any:
    """Return the result of a step that has ended. Raises StepFailed if the step has failed, or the refusal of a child
    that could not be started."""
    if record.status == COMPLETED:
        return orjson.loads(record.result or "null")
    if record.kind in CHILDREN and record.error is not None:
        raise refusal(record)
    raise failure(record, "failed", record.error)


def refusal(record: Record) -> PenstockError:
    """Return the error with which a child could not be started."""
    stored = orjson.loads(record.error or "null") or {}
    kind = next((error_class for error_class in REFUSALS if error_class.__name__ == stored.get("type")), None)
    if kind is None:
        return failure(record, "failed", record.error)
    error = kind(stored.get("message") or "", hint=stored.get("hint"))
    error.__dict__["step"] = record.key
    return error


def failure(record: Record, status: str, error: str | None, *, late: bool = False) -> StepFailed:
    """Return the exception of a step with this failure. `late`: the step waited for something that did not come in
    time."""
    stored = orjson.loads(error or "null") or {}
    why = ": ".join(part for part in (stored.get("type"), stored.get("message")) if part)
    how = status if status in ("failed", "cancelled") else f"ended as {status}"
    kind = StepTimedOut if late else StepFailed
    inner = {"type": kind.__name__, "message": "no result came in time"} if late else stored or how
    return kind(
        f"{record.kind} {record.key} {how}" + (f": {why}" if why else ""),
        name=record.key.name,
        ordinal=record.key.ordinal,
        status=status,
        type=stored.get("type") or "",
        final=bool(stored.get("final")),
        cause=cause_inside(str(record.key), inner, record.tries or None),
        traceback=str(stored.get("traceback") or ""),
    )


def _nothing() -> None:
    return None
