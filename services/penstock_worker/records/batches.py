"""The batches of a worker: attempts of one action that it holds until it calls their function once with all of them.

A batch is not a row. Its attempts are claimed, fenced and ended one by one, so a crash loses no more than with single attempts.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Hashable
from uuid import UUID

import orjson

from penstock.attempts.owned_attempt import OwnedAttempt
from penstock.language.terms.parameter_paths import key_values
from penstock.run.run import Run, executor_name
from penstock_worker.records.executor_room import ExecutorRoom
from penstock_worker.records.slots import Slots

MOST_WAITING = 1000
"""The maximum number of attempts of one action that wait for their calls in one worker, if its slots have no more room
for full batches."""


RECHECK_S = 0.5
"""Seconds after which a full task executor is asked again."""


class ItemBatch:
    """Attempts that share one call, one slot and one place in a task executor. `members` were claimed and have not left.
    `ready` are the runs of those that wait for the call. While it is open, other attempts can join."""

    def __init__(self, key: Hashable, first: OwnedAttempt, size: int, executor: str) -> None:
        self.key = key
        self.ref = first.event.action
        self.size = size
        self.executor = executor
        self.members: dict[UUID, OwnedAttempt] = {}
        self.ready: dict[UUID, Run] = {}
        self.is_open = True
        self.is_called = False
        self.timer: asyncio.TimerHandle | None = None


class Batches:
    """The batches of a worker that were not called yet. A batch is called when it is full or its time has passed, all
    its members are ready, and it has a slot. The batch takes a slot when its first attempt arrives.

    Attempts of an action with `by` may need more batches than there are free slots. Then some batches wait for a slot."""

    def __init__(self, slots: Slots, room: ExecutorRoom) -> None:
        self._slots = slots
        self._room = room
        self._open: dict[Hashable, ItemBatch] = {}
        self._due: list[ItemBatch] = []
        self._of: dict[UUID, ItemBatch] = {}
        """The batches that were not called, by their members."""
        self._waiting: Counter[str] = Counter()
        """The number of attempts that wait for their call, by action."""
        self._is_draining = False
        self._recheck: asyncio.TimerHandle | None = None
        self.call: Callable[[ItemBatch], None] = lambda _: None
        """Called with each batch whose function is to be called now."""
        slots.can_fill = self.can_fill
        slots.freed.append(self._call_waiting)

    # -- claims ----------------------------------------------------------------------------------------------------

    def can_fill(self) -> bool:
        """Return whether an open batch can take another attempt."""
        return any(self._waiting[batch.ref] < self._most(batch.size) for batch in self._open.values())

    def room_of(self, ref: str, size: int, *, places: int) -> int:
        """Return the number of attempts of an action that can be claimed: the free places of its open batches, and
        `places` full batches. Attempts of other groups may not fit the open batches. Then they form batches of their
        own, which wait for a slot."""
        lacking = sum(size - len(batch.members) for batch in self._open.values() if batch.ref == ref)
        return max(0, min(lacking + size * places, self._most(size) - self._waiting[ref]))

    def _most(self, size: int) -> int:
        """Return the maximum number of attempts of one action that wait in this worker."""
        return max(MOST_WAITING, size * self._slots.count)

    # -- members ---------------------------------------------------------------------------------------------------

    def join(self, owned: OwnedAttempt) -> ItemBatch | None:
        """Put a claimed attempt into a batch, and return the batch. None: its action takes no batches."""
        options = owned.version.batch
        if options is None:
            return None
        key = _key(owned)
        batch = self._open.get(key)
        if batch is None:
            batch = ItemBatch(key, owned, options.size, executor_name(owned.version.action, owned.of_route))
            self._room.give(batch.executor)
            self._open[key] = batch
            wait = 0.0 if self._is_draining else options.within
            batch.timer = asyncio.get_running_loop().call_later(wait, self._expire, batch)
        id = owned.event.execution_id
        batch.members[id] = owned
        self._of[id] = batch
        self._waiting[batch.ref] += 1
        if len(batch.members) >= batch.size:
            self._close(batch)
        return batch

    def ready(self, owned: OwnedAttempt, run: Run) -> None:
        """Note that an attempt can be in the call of its batch."""
        batch = self._of[owned.event.execution_id]
        batch.ready[owned.event.execution_id] = run
        self._call_due()

    def leave(self, owned: OwnedAttempt) -> None:
        """Take an attempt out of its batch, unless the batch was called."""
        id = owned.event.execution_id
        batch = self._of.get(id)
        if batch is None or batch.members[id] is not owned:
            return
        self._forget(batch, id)
        del batch.members[id]
        batch.ready.pop(id, None)
        if not batch.members:
            self._close(batch)
            self._due.remove(batch)
            self.over(batch)
        self._call_due()

    def drain(self) -> None:
        """Wait for no further attempts: call the batches as they are."""
        self._is_draining = True
        for batch in list(self._open.values()):
            self._expire(batch)

    def over(self, batch: ItemBatch) -> None:
        """Give back the place of a batch in its task executor. Its call has ended, or it has no members left."""
        self._room.take_back(batch.executor)
        self._call_due()

    # -- calls -----------------------------------------------------------------------------------------------------

    def _close(self, batch: ItemBatch) -> None:
        if not batch.is_open:
            return
        batch.is_open = False
        if batch.timer is not None:
            batch.timer.cancel()
        del self._open[batch.key]
        self._due.append(batch)

    def _expire(self, batch: ItemBatch) -> None:
        self._close(batch)
        self._call_due()

    def _call_waiting(self) -> None:
        """Call the batches that waited for a slot."""
        if self._due:
            self._call_due()

    def _call_due(self) -> None:
        for batch in list(self._due):
            if batch.is_called or len(batch.ready) < len(batch.members) or not batch.members:
                continue
            if not self._has_slot():
                continue
            if not self._room.has_place(batch.executor):
                self._check_later()
                continue
            batch.is_called = True
            self._due.remove(batch)
            for id in batch.members:
                self._forget(batch, id)
            self.call(batch)
        self._slots.tell()

    def _check_later(self) -> None:
        """Check the due batches again after a while. A thread that was given up frees its place without a notice when
        it ends."""
        if self._recheck is None:
            self._recheck = asyncio.get_running_loop().call_later(RECHECK_S, self._check)

    def _check(self) -> None:
        self._recheck = None
        self._call_due()

    def _has_slot(self) -> bool:
        """Return whether attempts and called batches take fewer slots than there are."""
        return self._slots.used - len(self._open) - len(self._due) < self._slots.count

    def _forget(self, batch: ItemBatch, id: UUID) -> None:
        del self._of[id]
        self._waiting[batch.ref] -= 1


def _key(owned: OwnedAttempt) -> Hashable:
    """Return the properties that the attempts of one batch have in common: the action, the tenant, the grouping
    parameters and labels, the timeout and the task executor."""
    options = owned.version.batch
    assert options is not None
    values = key_values(owned.params, owned.labels, options.by)
    return (
        owned.event.action,
        owned.event.namespace.partition("::")[0],
        orjson.dumps(values, option=orjson.OPT_SORT_KEYS),
        owned.version.timeout,
        owned.of_route,
    )
