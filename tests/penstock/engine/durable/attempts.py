"""Attempts of durable functions whose surroundings a test decides: their records are in memory, and no time passes by itself."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from uuid import UUID

from penstock.engine.durable.attempt_run import Attempt
from penstock.engine.durable.records import Child, ChildStart, History, Key, Record
from penstock.errors import NotFound
from penstock.run.outcomes import Outcome
from penstock.testing.durable_memory import AttemptMemory, Memory
from penstock.testing.durable_run import BEGIN

LIMIT = 1000
"""Bytes of a result, and of the parameters of a child."""


class Outside(AttemptMemory):
    """The backend of an attempt that may be asked to end, refused its children, or kept on its worker while it waits. A write
    or a start waits while `held` is not set."""

    def __init__(
        self, memory: Memory, *, asked: bool = False, refused: bool = False, stays: bool = False
    ) -> None:
        super().__init__(memory, 0)
        self.asked = asked
        self.refused = refused
        self.stays = stays
        self.starts: list[ChildStart] = []
        self.cancels: list[UUID] = []
        self.held = asyncio.Event()
        self.held.set()

    async def load(self) -> History:
        """Begin the attempt."""
        self._memory._attempt += 1
        self._attempt = self._memory._attempt
        return await super().load()

    def asked_to_end(self) -> bool:
        return self.asked

    def may_stay(self) -> bool:
        return self.stays

    async def record(self, records: Sequence[Record]) -> Mapping[Key, Record]:
        await self.held.wait()
        return await super().record(records)

    async def start(self, children: Sequence[ChildStart]) -> Mapping[Key, Child]:
        await self.held.wait()
        self.starts += children
        if self.refused:
            raise NotFound("there is no t.child", hint="Apply it.")
        return await super().start(children)

    async def cancel(self, ids: Sequence[UUID]) -> None:
        self.cancels += ids
        await super().cancel(ids)


def memory_of_run() -> Memory:
    """Return the memory of a run that has just begun."""
    return Memory(BEGIN, lambda records, write: write())


def attempt_of(
    backend: AttemptMemory,
    function: Callable[..., Any],
    *,
    grace: float = 10.0,
    retried: bool = False,
    rollout: float = 0.0,
) -> Attempt:
    """Return an attempt that stays on its worker for 5 s where its backend lets it. `retried`: another attempt follows a failure,
    unless that is final."""

    def is_retried(outcome: Outcome) -> bool:
        return retried and outcome.error is not None and outcome.error.retryable is not False

    return Attempt(backend, function, limit=LIMIT, warm=5.0, grace=grace, retried=is_retried, rollout=rollout)


async def outcome_of(
    backend: AttemptMemory, function: Callable[..., Any], *, retried: bool = False
) -> Outcome:
    """Run an attempt without arguments to its end. Raises TimeoutError for one that hangs."""
    async with asyncio.timeout(60):
        return await attempt_of(backend, function, retried=retried).run({})


async def turns() -> None:
    """Let everything run that can run."""
    for _ in range(50):
        await asyncio.sleep(0)
