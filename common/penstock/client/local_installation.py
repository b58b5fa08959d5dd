"""Everything on one machine, nothing to install: an embedded PostgreSQL, an executor, a worker and an API in this process."""

from __future__ import annotations

import asyncio
import socket
import webbrowser
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
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
from penstock.store.schema import migrate
from penstock.store.session.database import Database

FOREVER = 365 * 86_400.0


@dataclass(slots=True)
class LocalInstallation:
    """A whole installation in this process."""

    settings: Settings
    definitions: Definitions
    """As it was started with."""
    changes: Sequence[Change]
    embedded: bool = False
    """True if the installation has a PostgreSQL of its own."""
    worker: Stop | None = None
    """Stops the worker that takes work now; None where there are no actions to run."""
    taken_port: int | None = None
    """Where its pages and its API would be, had another program not been there first."""
    services: set[asyncio.Task[None]] = field(default_factory=set)
    _stops: list[Stop] = field(default_factory=list)

    async def until(self, stop: asyncio.Event) -> None:
        """Wait until it is asked to stop. Raises what a service ends with before that."""
        waiting = asyncio.ensure_future(stop.wait())
        while not waiting.done():
            await asyncio.wait([waiting, *self.services], timeout=1.0, return_when=asyncio.FIRST_COMPLETED)
            for finished in [task for task in self.services if task.done()]:
                self.services.discard(finished)  # a worker that was replaced ends once its work has
                await finished

    async def take_over(self, definitions: Definitions) -> Sequence[Change]:
        """Apply these, and let a new worker run them. The one before takes nothing more, and ends what it has begun, however
        long that takes. Raises DefinitionError; then everything is as it was."""
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
            self.worker = self._serve("worker", self.settings.model_copy(update={"port": 0}))
        return changes

    def _serve(self, name: str, settings: Settings, *arguments: object) -> Stop:
        stop = Stop()
        self._stops.append(stop)
        self.services.add(asyncio.create_task(service(name)(settings, stop, *arguments), name=name))
        return stop

    async def stop(self) -> None:
        """Let what runs end within its grace."""
        for stop in self._stops:
            if stop.asked.is_set():  # it was replaced, and would wait for ever
                asyncio.get_running_loop().call_later(self.settings.grace, stop.at_once.set)
            stop.asked.set()
        await asyncio.gather(*self.services)

    def describe(self) -> str:
        where = "embedded PostgreSQL" if self.embedded else "PostgreSQL"
        carries = "RabbitMQ" if self.settings.broker_url else "PostgreSQL"
        parts = "executor and worker" if self.worker is not None else "executor (no worker: give --module)"
        number = len(self.changes)
        return f"{where}, messages by {carries}, {parts}, {number} definition{'s' if number != 1 else ''}"

    @property
    def address(self) -> str:
        """Return the address of its pages and its API."""
        host = self.settings.api_host
        return f"http://{f'[{host}]' if ':' in host else host}:{self.settings.api_port}"

    def show(self) -> bool:
        """Open the pages in a browser. False where there is none."""
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
        """Start it, apply what the modules define, and stop it at the end. `apart`: whatever servers the environment
        names, it has an embedded database, and no broker. `owns_process`: the process is for it alone, and its environment is
        rid of our credentials before the modules are imported."""
        values = {name: value for name, value in (overrides or {}).items() if value is not None}
        async with AsyncExitStack() as stack:
            base = load()
            if apart or base.database_url is None:
                server = await asyncio.to_thread(embedded.start, home.resolve(), fresh=fresh)
                stack.push_async_callback(asyncio.to_thread, server.release)
                values["database_url"] = SecretStr(server.dsn)
            requested = load(modules=",".join(modules), **values)
            settings, listener = with_an_address(requested)
            stack.enter_context(listener)
            if apart:
                settings = settings.model_copy(update={"broker_url": None})
            configure_logging(settings, service="dev")
            if owns_process:
                forget_secrets()
            await migrate.upgrade(settings)
            definitions = load_all(settings.modules)
            database = Database(settings, role="dev")
            try:
                changes = await register(database.session(), definitions)
            finally:
                await database.close()
            local = cls(settings, definitions, changes, embedded="database_url" in values)
            if requested.api_port not in (0, settings.api_port):
                local.taken_port = requested.api_port
            local._serve("executor", settings)
            # One port for one service: the others of this process take any that is free.
            beside = settings.model_copy(update={"port": 0})
            if definitions.actions:
                local.worker = local._serve("worker", beside)
            local._serve("api", beside, listener)
            try:
                await asyncio.sleep(0)
                yield local
            finally:
                await local.stop()


def with_an_address(settings: Settings) -> tuple[Settings, socket.socket]:
    """Return the settings with the address of the API, and the socket that listens there. Settings that were set stay.
    Otherwise the API is open to this machine alone, on any free port if the default port is taken."""
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
