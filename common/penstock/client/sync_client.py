"""The client for code that does not await: scripts, shells, views of Django and Flask.

with SyncClient.connect() as client:
    print(client.run("shop.charge", {"order": 7, "amount": 25}))
"""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from functools import cached_property
from typing import TYPE_CHECKING, Self

from penstock.client.blocking import BlockingClient, LoopThread, waiting
from penstock.client.client import Client
from penstock.client.start_and_wait import BlockingStartAndWait

if TYPE_CHECKING:
    from penstock.client.sync_subjects import (
        SyncBreakers,
        SyncHolds,
        SyncLimits,
        SyncRules,
        SyncSchedules,
        SyncViews,
        SyncWorkers,
    )
    from penstock.settings import Settings


class SyncClient(BlockingStartAndWait, BlockingClient[Client]):
    """The `Client` with blocking methods. They have the same parameters, results and errors. A client is safe to share between
    threads. Create one for each process, after it has forked. Coroutines must use `Client` instead."""

    def __init__(self, settings: Settings | None = None, *, thread: LoopThread | None = None) -> None:
        """Connect. Use `connect`, or call `close` at the end. Raises ConnectionFailed if PostgreSQL or the broker does
        not answer, and ConfigurationError if a setting is missing or not valid."""
        self._own_thread = thread is None
        self._thread = thread or LoopThread()
        self._connection: AbstractAsyncContextManager[Client] = Client.connect(settings)
        try:
            self._client = self._thread.wait(_entered(self._connection))
        except BaseException:
            self._close_thread()
            raise

    @classmethod
    def connect(cls, settings: Settings | None = None) -> Self:
        """Connect a client to the installation that the settings name, as `Client.connect` does. `with` or `close`
        closes it."""
        return cls(settings)

    @cached_property
    def breakers(self) -> SyncBreakers:
        """Return the operations on breakers."""
        from penstock.client.sync_subjects import SyncBreakers

        return SyncBreakers(self._client.breakers, self._thread)

    @cached_property
    def views(self) -> SyncViews:
        """Return the operations on saved views."""
        from penstock.client.sync_subjects import SyncViews

        return SyncViews(self._client.views, self._thread)

    @cached_property
    def holds(self) -> SyncHolds:
        """Return the operations on holds."""
        from penstock.client.sync_subjects import SyncHolds

        return SyncHolds(self._client.holds, self._thread)

    @cached_property
    def limits(self) -> SyncLimits:
        """Return the operations on limits."""
        from penstock.client.sync_subjects import SyncLimits

        return SyncLimits(self._client.limits, self._thread)

    @cached_property
    def rules(self) -> SyncRules:
        """Return the operations on rules."""
        from penstock.client.sync_subjects import SyncRules

        return SyncRules(self._client.rules, self._thread)

    @cached_property
    def schedules(self) -> SyncSchedules:
        """Return the operations on schedules."""
        from penstock.client.sync_subjects import SyncSchedules

        return SyncSchedules(self._client.schedules, self._thread)

    @cached_property
    def workers(self) -> SyncWorkers:
        """Return the operations on workers."""
        from penstock.client.sync_subjects import SyncWorkers

        return SyncWorkers(self._client.workers, self._thread)

    start = waiting(Client.start)
    start_many = waiting(Client.start_many)
    publish = waiting(Client.publish)
    result = waiting(Client.result)
    get = waiting(Client.get)
    history = waiting(Client.history)
    attempts = waiting(Client.attempts)
    why = waiting(Client.why)
    cancel = waiting(Client.cancel)
    set_priority = waiting(Client.set_priority)
    raise_budget = waiting(Client.raise_budget)
    complete = waiting(Client.complete)
    command = waiting(Client.command)
    signal = waiting(Client.signal)
    rerun = waiting(Client.rerun)
    replay_rule = waiting(Client.replay_rule)
    reschedule = waiting(Client.reschedule)
    answer = waiting(Client.answer)
    cancel_chosen = waiting(Client.cancel_chosen)
    rerun_chosen = waiting(Client.rerun_chosen)
    executions = waiting(Client.executions)
    enforcements = waiting(Client.enforcements)
    recoveries = waiting(Client.recoveries)
    definitions = waiting(Client.definitions)
    routes = waiting(Client.routes)
    routing_rules = waiting(Client.routing_rules)
    described = waiting(Client.described)
    event = waiting(Client.event)
    drawing = waiting(Client.drawing)
    inquiries = waiting(Client.inquiries)
    overview = waiting(Client.overview)
    flush = waiting(Client.flush)

    def close(self) -> None:
        """Publish all submitted messages, and close the connections. A second call does nothing, and neither does one in a
        process that was forked from the client's."""
        if self._thread.is_inherited or self._client.closed:
            return
        try:
            self._thread.wait(_left(self._connection))
        finally:
            self._close_thread()

    def _close_thread(self) -> None:
        if self._own_thread:
            self._thread.close()


async def _entered(connection: AbstractAsyncContextManager[Client]) -> Client:
    return await connection.__aenter__()


async def _left(connection: AbstractAsyncContextManager[Client]) -> None:
    await connection.__aexit__(None, None, None)
