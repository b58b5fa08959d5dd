"""A whole installation in this process: an embedded PostgreSQL, an executor, a worker and an API."""

from __future__ import annotations

import asyncio
import socket
import webbrowser
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from pydantic import SecretStr

from penstock.client.installation import HOME
from penstock.errors import ConfigurationError
from penstock.language.loading import Definitions, load_all
from penstock.language.terms.setting_values import LOOPBACK
from penstock.operate.apply import Change, register
from penstock.service import embedded
from penstock.service.assembly import Stop
from penstock.service.environment import load
from penstock.service.installed_services import service
from penstock.service.log_setup import configure_logging
from penstock.service.ports import listening
from penstock.service.process_secrecy import forget_secrets
from penstock.settings import Settings
from penstock.store.processes import processes
from penstock.store.schema import migrate
from penstock.store.session import clock
from penstock.store.session.database import Database

FOREVER = 365 * 86_400.0
REGISTRATION_S = 30.0
"""The maximum time that a start waits for the registration of its executor and its worker."""
REACHED_AT = {"0.0.0.0": "127.0.0.1", "::": "::1"}
"""The address at which this machine reaches an API that listens on all addresses."""


@dataclass(slots=True)
class LocalInstallation:
    """A whole installation in this process, while it runs."""

    settings: Settings
    definitions: Definitions
    """The definitions with which it was started."""
    changes: Sequence[Change]
    embedded: bool = False
    """True if the installation runs its own embedded PostgreSQL."""
    worker: Stop | None = None
    """The handle to stop the current worker, or None if there are no actions to run."""
    taken_port: int | None = None
    """The default port of its pages and API if another program has taken it, or None."""
    services: set[asyncio.Task[None]] = field(default_factory=set)
    _stops: list[Stop] = field(default_factory=list)

    async def until(self, stop: asyncio.Event) -> None:
        """Wait until the installation is asked to stop. Raises the error of a service that ends before that."""
        waiting = asyncio.ensure_future(stop.wait())
        while not waiting.done():
            await asyncio.wait([waiting, *self.services], timeout=1.0, return_when=asyncio.FIRST_COMPLETED)
            for finished in [task for task in self.services if task.done()]:
                # The task of a replaced worker ends once the worker's attempts have ended.
                self.services.discard(finished)
                await finished

    async def _registered(self, began: datetime) -> None:
        """Wait until the executor and the worker have registered, at most `REGISTRATION_S`."""
        kinds = {"executor"} | ({"worker"} if self.worker is not None else set())
        database = Database(self.settings, role="dev")
        with suppress(TimeoutError):
            async with asyncio.timeout(REGISTRATION_S):
                while not kinds <= await processes.registered_since(database.session(), began):
                    if any(task.done() for task in self.services):
                        break  # `until` raises the error of the service that has ended
                    await asyncio.sleep(0.05)
        await database.close()

    async def take_over(self, definitions: Definitions) -> Sequence[Change]:
        """Apply these definitions, and start a worker for them. The previous worker takes no new work, and finishes
        what it has begun, however long that takes.

        Return the changes. If a definition is not valid, raises DefinitionError and changes nothing.
        """
        database = Database(self.settings, role="dev")
        try:
            changes = await register(database.session(), definitions)
        finally:
            await database.close()
        if self.worker is not None:
            self.worker.patience = FOREVER
            self.worker.ask()
            self.worker = None
        if definitions.actions:
            self.worker = self._serve_worker()
        return changes

    def _serve(self, name: str, settings: Settings, *arguments: object) -> Stop:
        stop = Stop()
        self._stops.append(stop)
        self.services.add(asyncio.create_task(service(name)(settings, stop, *arguments), name=name))
        return stop

    def _serve_worker(self) -> Stop:
        """Start a worker. The worker knows the address of the API beside it, for callbacks and programs, unless a
        setting names another."""
        address = self.settings.api_address or self.address
        return self._serve("worker", self.settings.model_copy(update={"port": 0, "api_address": address}))

    async def stop(self) -> None:
        """Stop all services. Running work may end within its grace period."""
        for stop in self._stops:
            # A worker that `take_over` replaced drains without a time limit. Bound that by the grace.
            if stop.requested.is_set():
                asyncio.get_running_loop().call_later(self.settings.grace, stop.at_once.set)
            stop.requested.set()
        await asyncio.gather(*self.services)

    def describe(self) -> str:
        where = "embedded PostgreSQL" if self.embedded else "PostgreSQL"
        carries = "RabbitMQ" if self.settings.broker_url else "PostgreSQL"
        parts = "executor and worker" if self.worker is not None else "executor (no worker: give --module)"
        number = len(self.changes)
        return f"{where}, messages by {carries}, {parts}, {number} definition{'s' if number != 1 else ''}"

    @property
    def address(self) -> str:
        """Return the address of the pages and the API."""
        host = REACHED_AT.get(self.settings.api_host, self.settings.api_host)
        return f"http://{f'[{host}]' if ':' in host else host}:{self.settings.api_port}"

    def show(self) -> bool:
        """Open the pages in a browser. Return False if there is no browser."""
        return webbrowser.open(self.address)

    @classmethod
    @asynccontextmanager
    async def started(
        cls,
        home: Path = HOME,
        *,
        modules: Sequence[str] = (),
        fresh: bool = False,
        overrides: Mapping[str, Any] | None = None,
        apart: bool = False,
        owns_process: bool = False,
    ) -> AsyncIterator[LocalInstallation]:
        """Start the installation, apply the definitions of `modules`, and stop it at the end.

        `apart`: use an embedded database, and no broker but one in `overrides`, whatever the environment names.
        `owns_process`: this process serves only the installation, so our credentials are removed from its environment
        before the modules are imported.
        """
        values = {name: value for name, value in (overrides or {}).items() if value is not None}
        async with AsyncExitStack() as stack:
            base = load()
            server = None
            if apart or base.database_url is None:
                server = await asyncio.to_thread(embedded.start, home.resolve(), fresh=fresh)
                stack.push_async_callback(asyncio.to_thread, server.release)
                values["database_url"] = SecretStr(server.dsn)
            requested = load(modules=",".join(modules), **values)
            settings, listener = with_an_address(requested)
            stack.enter_context(listener)
            if apart:
                broker = requested.broker_url if "broker_url" in values else None
                settings = settings.model_copy(update={"broker_url": broker})
            configure_logging(settings, service="dev")
            if owns_process:
                forget_secrets()
            await migrate.upgrade(settings)
            definitions = load_all(settings.modules)
            database = Database(settings, role="dev")
            try:
                session = database.session()
                if server is not None and server.alone_at is not None:
                    await processes.disown(session, server.alone_at)
                changes = await register(session, definitions)
                began = await clock.now(session)
            finally:
                await database.close()
            local = cls(settings, definitions, changes, embedded="database_url" in values)
            if requested.api_port not in (0, settings.api_port):
                local.taken_port = requested.api_port
            local._serve("executor", settings)
            # Only one service gets the configured port. The others of this process take any free port.
            beside = settings.model_copy(update={"port": 0})
            if definitions.actions:
                local.worker = local._serve_worker()
            local._serve("api", beside, listener)
            try:
                await local._registered(began)
                yield local
            finally:
                await local.stop()


def with_an_address(settings: Settings) -> tuple[Settings, socket.socket]:
    """Return the settings with the address of the API, and the socket that listens there. Explicit settings are kept.

    By default the API listens on the loopback address only, on any free port if the default port is taken.
    """
    changes: dict[str, Any] = {}
    if "api_access" not in settings.model_fields_set and settings.api_host in LOOPBACK:
        changes["api_access"] = "open"
    try:
        listener = listening(settings.api_host, settings.api_port)
    except ConfigurationError:
        if "api_port" in settings.model_fields_set:
            raise
        listener = listening(settings.api_host, 0)
    changes["api_port"] = listener.getsockname()[1]
    return settings.model_copy(update=changes), listener
