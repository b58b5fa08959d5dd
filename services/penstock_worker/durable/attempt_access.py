"""The access of one attempt to the records of its run: the worker's side of `penstock.engine.durable.backend`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID

from pydantic_core import to_jsonable_python

from penstock.attempts.traced_attempt import TracedAttempt
from penstock.engine.durable.records import (
    ASK,
    COMPLETED,
    GIVEN,
    WAIT_FOR,
    Child,
    ChildStart,
    History,
    Key,
    Record,
)
from penstock.errors import ClaimLost, InvalidInput
from penstock.run.task_executors import TaskReadyEvent
from penstock.store.durable.steps import StepWrite, Unwritten
from penstock.store.executions.executions import ExecutionEnd
from penstock.store.executions.result_watch import ResultWatch
from penstock_worker.durable.child_starts import ChildOrder
from penstock_worker.durable.recorder import Recorder


class AttemptAccess:
    """The access of one attempt to the records of its run.

    `conceal` masks secrets in a record, and `passed_on` replaces the store's secrets in a child's parameters by
    references. `free` says whether no other attempt needs the slot. `asked_to_end` says whether the execution is to
    end; if that was so before the attempt began, `ends` is called. `ends_at_once` says whether that was requested once more.
    """

    def __init__(
        self,
        event: TaskReadyEvent,
        traced: TracedAttempt | None,
        recorder: Recorder,
        watch: ResultWatch,
        *,
        conceal: Callable[[Record], None],
        passed_on: Callable[[Any], Any],
        free: Callable[[], bool],
        asked_to_end: Callable[[], bool],
        ends_at_once: Callable[[], bool],
        ends: Callable[[], None],
    ) -> None:
        self._event = event
        self._traced = traced
        self._recorder = recorder
        self._watch = watch
        self._conceal = conceal
        self._passed_on = passed_on
        self._free = free
        self._asked_to_end = asked_to_end
        self._ends_at_once = ends_at_once
        self._ends = ends
        self._awaited: dict[UUID, asyncio.Future[ExecutionEnd]] = {}

    async def load(self) -> History:
        history = await self._recorder.load(self._event.execution_id)
        if history.ends_as is not None:
            self._ends()
        return history

    async def begin(self, record: Record) -> None:
        """Check the name of a step before its function is called. A step that a crash interrupted is simply called
        again."""
        self._conceal(record)

    async def record(self, records: Sequence[Record]) -> Mapping[Key, Record]:
        for record in records:
            self._conceal(record)
        writes = [self._write(record) for record in records]
        unwritten = await self._recorder.record(writes)
        stored: dict[Key, Record] = {}
        for earlier in unwritten:
            if earlier.is_lost:
                raise self._lost()
            stored[records[earlier.nth - 1].key] = _kept(earlier)
        if self._traced is not None:
            for write in writes:
                self._traced.step(write)
        return stored

    async def start(self, children: Sequence[ChildStart]) -> Mapping[Key, Child]:
        event, started = self._event, {}
        tenant = event.namespace.partition("::")[0]
        for child_start in children:
            self._conceal(child_start.record)
            start = self._without_secrets(child_start)
            order = ChildOrder(event.execution_id, event.attempt, tenant, event.action, start)
            child = await self._recorder.start(order)
            if child is None:
                raise self._lost()
            started[start.record.key] = child
        return started

    def _without_secrets(self, start: ChildStart) -> ChildStart:
        if (
            start.record.kind == WAIT_FOR
        ):  # the stored filter is compared with events, so masking a secret in it would change its meaning
            values = to_jsonable_python(start.parameters)
            if self._passed_on(values) != values:
                raise InvalidInput(
                    "the condition of the wait contains a stored secret, and conditions are stored unmasked",
                    hint="Compare another value, such as an id, or the hash of the secret.",
                )
            return start
        if start.record.kind == ASK:
            default = to_jsonable_python(start.parameters["default"])
            if self._passed_on(default) != default:
                raise InvalidInput(
                    "the default answer of a question contains a stored secret, and default answers are stored and shown",
                    hint="Use another default, such as None, and let the function use the secret if it gets None.",
                )
        return replace(start, parameters=self._passed_on(start.parameters))

    async def ended(self, ids: Sequence[UUID], seconds: float) -> Mapping[UUID, Child]:
        for id in ids:
            if id not in self._awaited:
                self._awaited[id] = asyncio.ensure_future(self._watch.ended(id))
        waits = {self._awaited[id]: id for id in ids}
        done, _ = await asyncio.wait(waits, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        return {waits[task]: _child(waits[task], self._awaited.pop(waits[task]).result()) for task in done}

    async def look(
        self, signals: Sequence[Key], children: Sequence[UUID]
    ) -> tuple[Sequence[Record], Mapping[UUID, Child]]:
        return await self._recorder.look(self._event.execution_id, signals, children)

    async def resolved(self, result: Any) -> Any:
        return await self._watch.stored.resolved(result)

    def close(self) -> None:
        """Close the access at the end of the attempt. Nothing is awaited any more."""
        for task in self._awaited.values():
            task.cancel()
        self._awaited.clear()

    async def cancel(self, ids: Sequence[UUID]) -> None:
        await self._recorder.cancel(ids)

    def may_stay(self) -> bool:
        return self._free()

    def asked_to_end(self) -> bool:
        return self._asked_to_end()

    def ends_at_once(self) -> bool:
        return self._ends_at_once()

    async def requested_end(self) -> str | None:
        return (await self._recorder.load(self._event.execution_id)).ends_as

    def _lost(self) -> ClaimLost:
        return ClaimLost(
            f"attempt {self._event.attempt} of {self._event.execution_id} is not this worker's any more"
        )

    def _write(self, record: Record) -> StepWrite:
        return StepWrite(
            self._event.execution_id,
            self._event.attempt,
            *record.key,
            record.position,
            record.kind,
            record.status,
            record.tries,
            record.took,
            record.result,
            record.error,
            record.asked_after,
            record.told,
            record.unless,
        )


def _kept(write: Unwritten) -> Record:
    """Return a refused write as the record that an earlier writer has stored."""
    return Record(
        Key(write.name, write.ordinal),
        write.place,
        write.kind or GIVEN,
        write.status or COMPLETED,
        write.result,
        write.error,
        write.tries or 1,
        at=write.at,
    )


def _child(id: UUID, end: ExecutionEnd) -> Child:
    return Child(id, end.status, True, end.result, end.error)
