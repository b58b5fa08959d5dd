"""Everything on one machine, nothing to install: an embedded PostgreSQL, an executor and a worker in this process."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import SecretStr

from penstock import settings as settings_
from penstock.cli.installed_services import service
from penstock.client.installation import HOME
from penstock.language.loading import load_all
from penstock.operate.apply import Change, register
from penstock.service import embedded
from penstock.service.assembly import Stop, configure_logging
from penstock.settings import Settings
from penstock.store import migrate
from penstock.store.database import Database


@dataclass(slots=True)
class LocalInstallation:
    """A whole installation in this process."""

    settings: Settings
    changes: Sequence[Change]
    worker: bool
    services: Sequence[asyncio.Task[None]] = ()

    async def until(self, asked: asyncio.Event) -> None:
        """Wait until it is asked to stop. Raises what a service ends with before that."""
        waiting = asyncio.ensure_future(asked.wait())
        done, _ = await asyncio.wait([waiting, *self.services], return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        for ended in done - {waiting}:
            await ended

    def describe(self) -> str:
        where = "embedded PostgreSQL" if "PENSTOCK_DATABASE_URL" not in os.environ else "PostgreSQL"
        carries = "RabbitMQ" if self.settings.broker_url else "PostgreSQL"
        parts = "executor and worker" if self.worker else "executor (no worker: give --module)"
        return f"{where}, messages by {carries}, {parts}, {len(self.changes)} definitions"

    @classmethod
    @asynccontextmanager
    async def started(
        cls,
        home: Path = HOME,
        *,
        modules: Sequence[str] = (),
        fresh: bool = False,
        overrides: Mapping[str, Any] | None = None,
    ) -> AsyncIterator[LocalInstallation]:
        """Start it, apply what the modules define, and stop it at the end."""
        given = {name: value for name, value in (overrides or {}).items() if value is not None}
        async with AsyncExitStack() as stack:
            base = settings_.load()
            if base.database_url is None:
                server = await asyncio.to_thread(embedded.start, home.resolve(), fresh=fresh)
                stack.push_async_callback(asyncio.to_thread, server.release)
                given["database_url"] = SecretStr(server.dsn)
            settings = settings_.load(modules=",".join(modules), **given)
            configure_logging(settings, service="dev")
            await migrate.upgrade(settings)
            definitions = load_all(settings.modules)
            database = Database(settings, role="dev")
            try:
                changes = await register(database.session(), definitions)
            finally:
                await database.close()
            stop = Stop()
            names = ["executor", *(["worker"] if definitions.actions else [])]
            # One port for one service: the others of this process take any that is free.
            beside = settings.model_copy(update={"port": 0})
            running = [
                asyncio.create_task(service(name)(beside if n else settings, stop), name=name)
                for n, name in enumerate(names)
            ]
            try:
                await asyncio.sleep(0)
                yield cls(settings, changes, bool(definitions.actions), running)
            finally:
                stop.ask()
                await asyncio.gather(*running)
