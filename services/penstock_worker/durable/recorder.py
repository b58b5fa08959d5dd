"""What the durable functions of a worker read and write: whatever has come together while one transaction was under way shares
the next one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from uuid import UUID

import orjson

from penstock.language.durable.records import CHILDREN, MAP, STATE, Child, History, Key, Record
from penstock.store import executions, steps
from penstock.store.database import Session, retried
from penstock.store.group_commit import GroupCommit
from penstock.store.staged_messages import StagedMessage
from penstock.store.steps import StepWrite, StoredChild, StoredStep, Unwritten
from penstock_worker.durable.child_starts import Answer, ChildOrder, start_children
from penstock_worker.durable.item_workflow import ensure_item_workflow


class Recorder:
    """`sessions` makes one for each kind of work: of each kind one is under way at a time. `publish` sends what was staged;
    `tell` tells workers which executions are to end."""

    def __init__(
        self,
        sessions: Callable[[], Session],
        worker: UUID,
        publish: Callable[[Sequence[StagedMessage]], None],
        tell: Callable[[Sequence[UUID]], Awaitable[None]],
    ) -> None:
        self._writing, self._reading, self._starting = sessions(), sessions(), sessions()
        self._publish = publish
        self._tell = tell
        self._worker = worker
        self._writes: GroupCommit[Sequence[StepWrite], Sequence[Unwritten]] = GroupCommit(
            self._write, most=200
        )
        self._reads: GroupCommit[UUID, History] = GroupCommit(self._read, most=100)
        self._starts: GroupCommit[ChildOrder, Child | None] = GroupCommit(self._start, most=100)

    async def load(self, execution: UUID) -> History:
        """All that is recorded of a run."""
        return await self._reads.submit(execution)

    async def record(self, writes: Sequence[StepWrite]) -> Sequence[Unwritten]:
        """Record these, of one attempt, and say what was not."""
        return await self._writes.submit(writes)

    async def start(self, order: ChildOrder) -> Child | None:
        """Start a child, once; None if the attempt is not this worker's any more."""
        return await self._starts.submit(order)

    async def cancel(self, ids: Sequence[UUID]) -> None:
        """Ask for these executions to end."""

        async def write() -> tuple[list[StagedMessage], list[UUID]]:
            async with self._starting.transaction() as tx:
                await executions.cancel(tx, ids, "the function that ran it has ended")
            return tx.staged, tx.canceling

        staged, canceling = await retried(write)
        self._publish(staged)
        if canceling:
            await self._tell(canceling)

    async def _write(self, groups: Sequence[Sequence[StepWrite]]) -> Sequence[Sequence[Unwritten]]:
        # Of a state that was set twice the last counts; a statement writes each row once.
        rows = {(w.execution_id, w.attempt, w.name, w.ordinal): w for group in groups for w in group}
        writes = sorted(rows.values(), key=lambda w: (w.execution_id, w.name, w.ordinal))
        found = await retried(lambda: steps.record(self._writing, self._worker, writes))
        unwritten = {id(writes[one.nth - 1]): one for one in found}
        return [
            [
                one
                for w in group
                if (one := unwritten.get(id(rows[w.execution_id, w.attempt, w.name, w.ordinal])))
            ]
            for group in groups
        ]

    async def _read(self, ids: Sequence[UUID]) -> Sequence[History]:
        return await retried(lambda: self._histories(ids))

    async def _histories(self, ids: Sequence[UUID]) -> list[History]:
        found = {
            head.id: History(head.now, ends_as=head.ends_as, failed_by=_key(head.failed_step))
            for head in await steps.heads(self._reading, ids)
        }
        for step in await steps.read(self._reading, ids):
            if step.kind != STATE:
                found[step.execution_id].records[Key(step.name, step.ordinal)] = _record(step)
        parents = [
            id for id, history in found.items() if any(_has_child(r) for r in history.records.values())
        ]
        for child in await steps.children(self._reading, parents) if parents else ():
            found[child.parent].children[Key(child.name, child.ordinal)] = child_of(child)
        return [found[id] for id in ids]

    async def _start(self, orders: Sequence[ChildOrder]) -> Sequence[Answer]:
        for ref in sorted({order.start.target for order in orders if order.start.record.kind == MAP}):
            await retried(partial(ensure_item_workflow, self._starting, ref))
        answers, staged = await retried(lambda: start_children(self._starting, self._worker, orders))
        self._publish(staged)
        return answers


def _key(step: str | None) -> Key | None:
    return None if step is None else Key(*orjson.loads(step))


def _has_child(record: Record) -> bool:
    return record.kind in CHILDREN and not record.final


def _record(step: StoredStep) -> Record:
    return Record(
        Key(step.name, step.ordinal),
        step.place,
        step.kind,
        step.status,
        step.result,
        step.error,
        step.tries,
        step.took,
    )


def child_of(stored: StoredChild) -> Child:
    return Child(UUID(int=stored.id.int), stored.status, stored.ended, stored.result, stored.error)
