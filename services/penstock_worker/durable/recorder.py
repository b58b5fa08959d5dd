"""The reads and writes of a worker's durable functions. Those that arrive during a transaction share the next one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from uuid import UUID

import orjson

from penstock.engine.durable.records import CHILDREN, MAP, STATE, TOLD, Child, Failure, History, Key, Record
from penstock.store.durable import steps
from penstock.store.durable.run_records import child_of, record_of
from penstock.store.durable.steps import StepWrite, Unwritten
from penstock.store.executions import executions
from penstock.store.session.database import Session, retried
from penstock.store.session.group_commit import GroupCommit
from penstock.store.session.staged_messages import StagedMessage
from penstock_worker.durable.child_starts import Answer, ChildOrder, start_children
from penstock_worker.durable.item_workflow import ensure_item_workflow

Looked = tuple[Sequence[Record], Mapping[UUID, Child]]


@dataclass(frozen=True, slots=True)
class _LookOrder:
    """An order to look for signals to a run, and for children that have ended."""

    execution: UUID
    signals: Sequence[Key]
    children: Sequence[UUID]


class Recorder:
    """The reader and writer for a worker's durable functions. For each kind of work it has a session, and one
    transaction at a time.

    `sessions` creates these sessions. `publish` sends staged messages. `tell` notifies workers of executions that are
    to end.
    """

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
            self._write, max_items=200
        )
        self._reads: GroupCommit[UUID | _LookOrder, History | Looked] = GroupCommit(self._read, max_items=100)
        self._starts: GroupCommit[ChildOrder, Child | None] = GroupCommit(self._start, max_items=100)

    async def load(self, execution: UUID) -> History:
        """Return all records of a run."""
        history = await self._reads.submit(execution)
        assert isinstance(history, History), "what was asked for"
        return history

    async def look(self, execution: UUID, signals: Sequence[Key], children: Sequence[UUID]) -> Looked:
        """Return the signals among `signals` that were sent to a run, and the children among `children` that have
        ended."""
        looked = await self._reads.submit(_LookOrder(execution, signals, children))
        assert not isinstance(looked, History), "what was asked for"
        return looked

    async def record(self, writes: Sequence[StepWrite]) -> Sequence[Unwritten]:
        """Record the writes of one attempt. Return those that were refused."""
        return await self._writes.submit(writes)

    async def start(self, order: ChildOrder) -> Child | None:
        """Start a child, once. Return None if the attempt no longer belongs to this worker."""
        return await self._starts.submit(order)

    async def cancel(self, ids: Sequence[UUID]) -> None:
        """Ask these executions to end."""

        async def write() -> tuple[list[StagedMessage], list[UUID]]:
            async with self._starting.transaction() as tx:
                await executions.cancel(tx, ids, "the function that ran it has ended")
            return tx.staged, tx.canceling

        staged, canceling = await retried(write)
        self._publish(staged)
        if canceling:
            await self._tell(canceling)

    async def _write(self, groups: Sequence[Sequence[StepWrite]]) -> Sequence[Sequence[Unwritten]]:
        # A statement can write each row only once. If a state was set twice, the last value counts. A write that
        # records only the delivery of a result is merged into the write of its row.
        rows: dict[tuple[UUID, int, str, int], StepWrite] = {}
        for write in (w for group in groups for w in group):
            key = (write.execution_id, write.attempt, write.name, write.ordinal)
            previous = rows.get(key)
            marks = write.status == TOLD and previous is not None
            rows[key] = replace(previous, told=write.told) if marks and previous is not None else write
        writes = sorted(rows.values(), key=lambda w: (w.execution_id, w.name, w.ordinal))
        unwritten = {
            (w.execution_id, w.attempt, w.name, w.ordinal): row
            for row in await retried(lambda: steps.record(self._writing, self._worker, writes))
            for w in (writes[row.nth - 1],)
        }
        return [
            [
                replace(row, nth=nth)
                for nth, w in enumerate(group, 1)
                if (row := unwritten.get((w.execution_id, w.attempt, w.name, w.ordinal)))
            ]
            for group in groups
        ]

    async def _read(self, orders: Sequence[UUID | _LookOrder]) -> Sequence[History | Looked]:
        ids = [order for order in orders if isinstance(order, UUID)]
        looks = [order for order in orders if isinstance(order, _LookOrder)]
        histories = iter(await retried(lambda: self._histories(ids)) if ids else ())
        looked = iter(await retried(lambda: self._looked(looks)) if looks else ())
        return [next(histories) if isinstance(order, UUID) else next(looked) for order in orders]

    async def _looked(self, orders: Sequence[_LookOrder]) -> list[Looked]:
        keys = [(order.execution, *key) for order in orders for key in order.signals]
        sent = await steps.sent(self._reading, keys) if keys else []
        ids = [id for order in orders for id in order.children]
        finished = {c.id: c for c in await steps.ended_children(self._reading, ids)} if ids else {}
        return [
            (
                [record_of(step) for step in sent if step.execution_id == order.execution],
                {id: child_of(finished[id]) for id in order.children if id in finished},
            )
            for order in orders
        ]

    async def _histories(self, ids: Sequence[UUID]) -> list[History]:
        histories = {
            head.id: History(head.now, ends_as=head.ends_as, failure=_failure(head.failure))
            for head in await steps.heads(self._reading, ids)
        }
        for step in await steps.read(self._reading, ids):
            if step.kind != STATE:
                histories[step.execution_id].records[Key(step.name, step.ordinal)] = record_of(step)
        parents = [
            id for id, history in histories.items() if any(_has_child(r) for r in history.records.values())
        ]
        for child in await steps.children(self._reading, parents) if parents else ():
            histories[child.parent].children[Key(child.name, child.ordinal)] = child_of(child)
        return [histories[id] for id in ids]

    async def _start(self, orders: Sequence[ChildOrder]) -> Sequence[Answer]:
        for ref in sorted({order.start.target for order in orders if order.start.record.kind == MAP}):
            await retried(partial(ensure_item_workflow, self._starting, ref))
        answers, staged = await retried(lambda: start_children(self._starting, self._worker, orders))
        self._publish(staged)
        return answers


def _failure(text: str | None) -> Failure | None:
    if text is None:
        return None
    failure = orjson.loads(text)
    return Failure(
        tuple(Key(*step) for step in failure["steps"] or ()), failure["told"] or 0, failure["attempt"]
    )


def _has_child(record: Record) -> bool:
    return record.kind in CHILDREN and not record.final
