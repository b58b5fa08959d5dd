"""The servers of a run, and the installations on them: one that rows share, and one for each row that breaks things."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

from tests.parity.site import TIMES, Site
from tests.servers import choose, databases
from tests.servers.postgres import FAST, Postgres
from tests.servers.rabbitmq import RabbitMQ

ROOM = {**FAST, "max_connections": "500"}


class Host:
    def __init__(self, folder: Path, *, at_once: int = 3) -> None:
        """`at_once`: installations beside the shared one."""
        self.folder = folder
        self._stack = AsyncExitStack()
        self._free = asyncio.Semaphore(at_once)
        self._first = asyncio.Lock()
        self._shared: Site | None = None
        self._postgres: Postgres
        self._rabbitmq: RabbitMQ
        self._template: str

    async def __aenter__(self) -> Host:
        postgres, rabbitmq = await asyncio.gather(
            asyncio.to_thread(choose.private_postgres, ROOM), asyncio.to_thread(choose.private_rabbitmq)
        )
        self._postgres, self._rabbitmq = postgres, rabbitmq
        self._stack.callback(postgres.close)
        self._stack.callback(rabbitmq.close)
        self._template = databases.new_name()
        url = await databases.create(postgres, self._template)
        template = Site(url, rabbitmq.url(), self.folder)
        await template.prepare()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    async def shared(self) -> Site:
        """Return the installation that rows of the parity table share: three executors, and two workers, one of them on routes of
        its own. A row must not disturb the work of another row."""
        async with self._first:
            if self._shared is None:
                site = await self._stack.enter_async_context(
                    self._new(stale_threshold=20, heartbeat_interval=2)
                )
                for number in (1, 2, 3):
                    site.executor(f"executor-{number}")
                site.worker("worker-1", concurrency=60)
                site.worker("worker-2", "--labels", "zone=eu", concurrency=60)
                self._shared = await site.ready()
        return self._shared

    @asynccontextmanager
    async def alone(self, *, executors: int = 1, workers: int = 1) -> AsyncIterator[tuple[Site, Postgres]]:
        """An installation on a PostgreSQL of its own, to be stopped and killed."""
        async with self._free, AsyncExitStack() as stack:
            postgres = await asyncio.to_thread(choose.private_postgres, FAST)
            stack.callback(postgres.close)
            yield (
                await self._staffed(await stack.enter_async_context(self._new(postgres)), executors, workers),
                postgres,
            )

    @asynccontextmanager
    async def site(self, *, executors: int = 1, workers: int = 1, **settings: Any) -> AsyncIterator[Site]:
        """An installation of one's own: to be killed, starved and cut off."""
        async with self._free, self._new(**settings) as site:
            yield await self._staffed(site, executors, workers)

    async def _staffed(self, site: Site, executors: int, workers: int) -> Site:
        for number in range(executors):
            site.executor(f"executor-{number + 1}")
        for number in range(workers):
            site.worker(f"worker-{number + 1}")
        return await site.ready()

    @asynccontextmanager
    async def _new(self, postgres: Postgres | None = None, **settings: Any) -> AsyncIterator[Site]:
        name = databases.new_name()
        server = postgres or self._postgres
        url = await databases.create(server, name, template="template1" if postgres else self._template)
        folder = self.folder / name
        folder.mkdir()
        broker = await asyncio.to_thread(self._rabbitmq.add_vhost, name)
        async with Site(url, broker, folder, **{**TIMES, **settings}) as site:
            if postgres:
                await site.prepare()
            yield site
        await databases.drop(server, name)
