"""What every call of a durable function goes through: held against the journal, recorded, and told when the attempt is over."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import Any, TypeVar
from uuid import UUID

import orjson

from penstock.errors import ClaimLost, DefinitionError, ReplayMismatch, StepFailed, StepTimedOut
from penstock.language.durable.attempt_over import AttemptOver, Stopped
from penstock.language.durable.backend import Backend
from penstock.language.durable.journal import Journal
from penstock.language.durable.records import COMPLETED, STARTED, History, Key, Record
from penstock.language.durable.step_tries import IN_STEP
from penstock.language.durable.waiting import Waiting

T = TypeVar("T")


class Core:
    """One attempt: what is recorded (`journal`, `children`), what it waits for, and what is still to be written."""

    def __init__(self, backend: Backend, history: History, *, limit: int, warm: float) -> None:
        self.backend = backend
        self.journal = Journal(history)
        self.children = history.children
        self.limit = limit
        self.unwritten: dict[Key, Record] = {}
        self.open_children: set[UUID] = set()
        self.clock = _clock(history.now)
        self.waiting = Waiting(backend, self.clock, warm)
        self.waiting.ends_as = history.ends_as

    def ask(self, kind: str, name: str) -> Record:
        """What is recorded of what the calling branch asks for now; a new record where nothing is."""
        self.refuse_inside_step(f"{kind} {name}")
        self.waiting.check()
        try:
            key, position, found = self.journal.ask(kind, name)
        except ReplayMismatch as error:
            raise self.stopped(error) from None
        return found or Record(key, position, kind, STARTED, tries=0)

    def stopped(self, error: ReplayMismatch) -> AttemptOver:
        """The code does not fit what is recorded: the attempt is over."""
        self.waiting.end(Stopped(error))
        return AttemptOver()

    def refuse_inside_step(self, what: str) -> None:
        if (step := IN_STEP.get()) is not None:
            raise DefinitionError(
                f"{what} is asked for inside of the step {step}, which is recorded as a whole",
                hint="Ask for it in the durable function itself, or call the function without ctx.step.",
            )

    async def write_values(self) -> None:
        """What was given to the function is recorded before anything outside can hear of it."""
        if self.unwritten:
            unwritten, self.unwritten = list(self.unwritten.values()), {}
            await self.ours(self.backend.record(unwritten))

    async def written(self, record: Record) -> Record:
        """As it stands now: what somebody else has recorded meanwhile stands."""
        unwritten, self.unwritten = list(self.unwritten.values()), {}
        kept = await self.ours(self.backend.record([*unwritten, record]))
        return kept.get(record.key, record)

    async def ours(self, write: Awaitable[T]) -> T:
        """What a write gives. Where the claim is lost, or the attempt over, nothing goes on."""
        self.waiting.check()
        try:
            answer = await write
        except ClaimLost as error:
            self.waiting.end(Stopped(error))
            raise AttemptOver from None
        self.waiting.check()
        return answer

    async def until_recorded(self, record: Record, span: timedelta) -> datetime:
        """The instant at which this sleep is over, recorded before it begins."""
        if record.result is None:
            record.result = until_json(self.clock() + span)
            await self.waiting.busy(self.written(record))
        return instant_of(record)


def _clock(now: datetime) -> Callable[[], datetime]:
    """The database's clock: what it said when the attempt began, and what has passed since."""
    loaded = time.monotonic()
    return lambda: now + timedelta(seconds=time.monotonic() - loaded)


def until_json(instant: datetime) -> str:
    return orjson.dumps({"until": instant.isoformat()}).decode()


def instant_of(record: Record) -> datetime:
    return datetime.fromisoformat(orjson.loads(record.result or "null")["until"])


def value_of(record: Record) -> Any:
    """What a step that is over gives. Raises StepFailed."""
    if record.status == COMPLETED:
        return orjson.loads(record.result or "null")
    raise failure(record, "failed", record.error)


def failure(record: Record, status: str, error: str | None, *, late: bool = False) -> StepFailed:
    """The exception of a step that ended like this. `late`: it waited for something that did not come."""
    told = orjson.loads(error or "null") or {}
    why = ": ".join(part for part in (told.get("type"), told.get("message")) if part)
    how = status if status in ("failed", "cancelled") else f"ended as {status}"
    kind = StepTimedOut if late else StepFailed
    return kind(
        f"{record.kind} {record.key} {how}" + (f": {why}" if why else ""),
        name=record.key.name,
        ordinal=record.key.ordinal,
        status=status,
        type=told.get("type") or "",
    )
