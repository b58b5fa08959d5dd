"""An installation for a test: executors and workers in this process, on a fresh database (and vhost)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack
from functools import cached_property
from typing import Any, Self
from uuid import UUID

from pydantic import SecretStr

from penstock.client.client import Client
from penstock.language.loading import Definitions
from penstock.messaging.transports import Message
from penstock.operate.apply import Change, register
from penstock.operate.check import check
from penstock.service.assembly import Parts, Stop, assembled
from penstock.settings import Settings
from penstock.store.schedules.reading import Fire
from penstock.store.session.database import Row, Session
from penstock_executor import main as executor
from penstock_worker import main as worker
from tests.servers import brokers, databases

QUICK: dict[str, Any] = {
    "heartbeat_interval": 0.3,
    "stale_threshold": 1.0,
    "sweep_interval": 0.3,
    "relay_interval": 0.2,
    "relay_age": 0.3,
    "restage_age": 1.0,
    "poll_interval": 0.5,
    "lease": 5.0,
    "grace": 1.0,
    "archive_after": 3600.0,
    "delivery_limit": 3,
    "log_level": "error",
}
"""Thresholds in tenths of seconds, so that recovery can be watched."""

AS_USED = {"heartbeat_interval": 10.0, "stale_threshold": 60.0}
"""As users have it: nothing is taken for dead because a busy machine let it wait for a second."""

STANDS = """
select 'event' as what, null as name, null as detail, count(*) as count from event
union all select 'enforcement', rule, status, count(*) from enforcement group by 2, 3
union all select 'execution', task, status || coalesce(' ' || reason, ''), count(*) from execution group by 2, 3
union all select 'letter', queue, reason, count(*) from dead_letter group by 2, 3
union all select 'outbox', queue, null, count(*) from outbox group by 2
"""
"""What a test waited for in vain is told by what there was instead."""


class Installation:
    """Starts what a test asks for, and stops it at the end."""

    def __init__(self, database: str, broker: str | None, **settings: Any) -> None:
        self._given = {
            **QUICK,
            "database_url": SecretStr(database),
            "broker_url": SecretStr(broker) if broker else None,
            **settings,
        }
        self._stack = AsyncExitStack()
        self._running: list[tuple[Stop, asyncio.Task[None]]] = []
        self._count = 0
        self.client: Client

    async def __aenter__(self) -> Self:
        self.client = await self._stack.enter_async_context(Client.connect(self.settings()))
        return self

    async def __aexit__(self, *_: object) -> None:
        for stop, _task in self._running:
            stop.ask()
        async with asyncio.timeout(20):
            await asyncio.gather(*(task for _, task in self._running))
            await self._stack.aclose()

    @cached_property
    def _settings(self) -> Settings:
        return Settings(**self._given)

    def settings(self, **more: Any) -> Settings:
        self._count += 1
        name = f"test-{self._count}"
        if more:
            return Settings(**{**self._given, "name": name, **more})
        return self._settings.model_copy(update={"name": name})  # a thousand tests read the environment once

    @property
    def session(self) -> Session:
        return self.client.session

    async def apply(self, *definitions: Any) -> list[Change]:
        return await register(self.session, _collected(definitions))

    async def executor(self, **settings: Any) -> Stop:
        return await self._start("executor", settings, lambda parts, stop: executor.work(parts, stop))

    async def worker(self, *definitions: Any, **settings: Any) -> Stop:
        collected = _collected(definitions)
        return await self._start("worker", settings, lambda parts, stop: worker.work(parts, collected, stop))

    async def _start(self, role: str, settings: dict[str, Any], work: Any) -> Stop:
        """Run each service as its own role in the database, and as its own user of the broker.

        The users of the tests' broker may use the names of the ordinary prefix alone.
        """
        stop, ready = Stop(), asyncio.Event()
        prefix = {**self._given, **settings}.get("prefix", brokers.PREFIX)
        of_service = {
            name: SecretStr(address(setting.get_secret_value(), role))
            for name, address in (("database_url", databases.as_service), ("broker_url", brokers.as_service))
            if isinstance(setting := self._given[name], SecretStr)
            and (name == "database_url" or prefix == brokers.PREFIX)
        }

        async def run() -> None:
            async with assembled(self.settings(**{**of_service, **settings}), role=role) as parts:
                ready.set()
                await work(parts, stop)

        self._running.append((stop, asyncio.create_task(run(), name=role)))
        await ready.wait()
        return stop

    async def start(self, *definitions: Any, **settings: Any) -> None:
        """Apply, and run one executor and one worker for them."""
        await self.apply(*definitions)
        await self.executor(**settings)
        if _collected(definitions).actions:
            await self.worker(*definitions, **settings)

    async def ended(self, stop: Stop) -> None:
        """Stop one of those that were started, and wait until it is gone."""
        stop.ask()
        await next(task for other, task in self._running if other is stop)

    async def parts(self, role: str = "test", **settings: Any) -> Parts:
        """Connections of one's own, to play a part by hand."""
        return await self._stack.enter_async_context(assembled(self.settings(**settings), role=role))

    async def put(self, *sent: Message) -> None:
        """Publish as the owner of a message does: again until it is in a queue. A service that has just started may
        not have declared its queues yet. The broker gives back a message for a missing queue."""
        transport = (await self.parts()).transport
        unsent = list(sent)
        async with asyncio.timeout(20):
            while unsent := [
                m for m, accepted in zip(unsent, await transport.publish(unsent), strict=True) if not accepted
            ]:
                await asyncio.sleep(0.05)

    async def rows(self, sql: str, *args: Any) -> list[Row]:
        return await self.session.fetch(sql, *args)

    async def until(self, sql: str, *args: Any, seconds: float = 20) -> list[Row]:
        """Wait until a query gives rows. Raises TimeoutError, with what there is instead."""
        try:
            async with asyncio.timeout(seconds):
                while not (rows := await self.session.fetch(sql, *args)):
                    await asyncio.sleep(0.03)
        except TimeoutError as error:
            stands = [tuple(row) for row in await self.session.fetch(STANDS)]
            raise TimeoutError(f"in vain: {sql}\nthere is: {stands}") from error
        return rows

    async def quiet(self, seconds: float = 30) -> None:
        """Wait until nothing is open any more and the outbox is empty."""
        await self.until(
            "select 1 where not exists (select from execution where finished_at is null) "
            "and not exists (select from outbox) and not exists (select from slot) and not exists (select from untold)",
            seconds=seconds,
        )

    async def statuses(self) -> dict[str, int]:
        return {r[0]: r[1] for r in await self.rows("select status, count(*) from execution group by 1")}

    async def sound(self) -> None:
        """No invariant is violated."""
        broken = [finding for finding in await check(self.session) if finding.violations]
        assert not broken, broken


def _collected(definitions: Sequence[Any]) -> Definitions:
    return Definitions(definitions)


def started_by(fire: Fire) -> UUID:
    """The execution that a fire made."""
    assert fire.execution_id is not None
    return fire.execution_id
