"""The trial of code against the records of a run, without running any step."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from penstock.engine.durable.attempt_run import Attempt
from penstock.engine.durable.journal import CHANGED, CODE_CHANGED
from penstock.engine.durable.records import (
    END,
    STATE,
    TOLD,
    VALUE,
    VERSION,
    Child,
    ChildStart,
    History,
    Key,
    Record,
)
from penstock.run.outcomes import Outcome
from penstock.run.result_encoding import RESULT_LIMIT


@dataclass(frozen=True, slots=True)
class Replayed:
    """The result of a trial. `fits`: the code makes the recorded calls. `says` names the point from which the code
    continues, or its end, or the reason why it does not fit."""

    fits: bool
    says: str


TURNS = 50
"""Turns of the event loop without progress, after which every branch has reached its first new call."""


async def replay(
    function: Callable[..., Coroutine[Any, Any, Any]], arguments: Mapping[str, Any], history: History
) -> Replayed:
    """Run the function until each of its branches would begin a call that is not recorded."""
    reader = _Reader(history)
    attempt = Attempt(reader, function, limit=RESULT_LIMIT, warm=0.0, grace=0.0, retried=lambda outcome: True)
    task = asyncio.create_task(attempt.run(arguments))
    quiet = 0
    while quiet < TURNS and not task.done():
        asked_count = len(reader.asked)
        await asyncio.sleep(0)
        quiet = quiet + 1 if len(reader.asked) == asked_count else 0
    outcome = task.result() if task.done() else None
    task.cancel()
    await asyncio.wait({task})
    return _found(attempt, reader, outcome)


def _found(attempt: Attempt, reader: _Reader, outcome: Outcome | None) -> Replayed:
    error = None if outcome is None else outcome.error
    if error is not None:
        message = error.message.replace(CHANGED, f"{CODE_CHANGED}.")
        return Replayed(error.type != "ReplayMismatch", f"{error.type}: {message}")
    unasked = None if attempt.journal is None else attempt.journal.unasked()
    goes_on = f"it goes on with {', '.join(reader.asked)}" if reader.asked else "it waits"
    if unasked is not None:
        description = f"{unasked.kind} {unasked.key}, which is recorded at position {unasked.position}"
        return Replayed(False, f"{goes_on}, and has not come to {description}")
    if outcome is not None and outcome.kind == "completed":
        return Replayed(True, "it ends with its result")
    return Replayed(True, goes_on)


class _Reader:
    """A backend that has a history and does nothing. A call beyond the history waits for ever."""

    def __init__(self, history: History) -> None:
        self._history = history
        self.asked: list[str] = []

    async def load(self) -> History:
        """Return the history without an end that is only requested: a trial has no time to keep."""
        return replace(self._history, ends_as=None)

    async def begin(self, record: Record) -> None:
        await self._stop(record)

    async def record(self, records: Sequence[Record]) -> Mapping[Key, Record]:
        if any(
            record.kind not in (VALUE, VERSION, STATE, END) and record.status != TOLD for record in records
        ):
            await self._stop(records[-1])
        return {}

    async def start(self, children: Sequence[ChildStart]) -> Mapping[Key, Child]:
        await self._stop(children[0].record)
        return {}

    async def _stop(self, record: Record) -> None:
        self.asked.append(f"{record.kind} {record.key}")
        await asyncio.get_running_loop().create_future()

    async def ended(self, ids: Sequence[UUID], seconds: float) -> Mapping[UUID, Child]:
        return {}

    async def look(
        self, signals: Sequence[Key], children: Sequence[UUID]
    ) -> tuple[Sequence[Record], Mapping[UUID, Child]]:
        return [], {}

    async def resolved(self, result: Any) -> Any:
        return result  # a trial has no result store

    async def cancel(self, ids: Sequence[UUID]) -> None:
        """Do nothing, since no child runs."""

    def may_stay(self) -> bool:
        return False

    def asked_to_end(self) -> bool:
        return False

    def ends_at_once(self) -> bool:
        return False

    async def requested_end(self) -> str | None:
        return None
