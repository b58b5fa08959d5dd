"""An installation as its users see it: commands, a client, tables, queues, services."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

import asyncpg

from penstock import Client, Settings
from tests.crash.processes import COMMAND_LINE, ROOT, python_path
from tests.parity.amqp import Amqp
from tests.parity.services import Service

MODULES = tuple(
    f"tests.parity.definitions.{name}" for name in ("flow", "scaling", "tasks", "cron", "dispatch")
)
TIMES = {
    "heartbeat_interval": 1,
    "stale_threshold": 3,
    "sweep_interval": 1,
    "relay_interval": 0.5,
    "relay_age": 0.5,
    "restage_age": 2,
    "poll_interval": 0.5,
    "lease": 5,
    "grace": 2,
    "delivery_limit": 3,
}
"""Thresholds in seconds, so that recovery can be watched; all of them are settings of the docs."""
FINAL = {"completed", "failed", "timeout", "cancelled", "abandoned", "skipped"}
commands = asyncio.Semaphore(os.cpu_count() or 4)
"""Commands are programs that start anew each time: more at once than there are processors only slow each other down."""


@dataclass(frozen=True, slots=True)
class Said:
    """The output of a command, and its exit code."""

    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[Any]:
        """Return the documents that `--json` printed, one a line."""
        return [json.loads(line) for line in self.out.splitlines()]

    @property
    def one(self) -> Any:
        [document] = self.lines
        return document

    @property
    def all(self) -> str:
        return self.out + self.err


class Site:
    """`settings`: for each of its commands and services."""

    def __init__(self, database: str, broker: str, folder: Path, **settings: Any) -> None:
        self.database, self.broker, self.folder = database, broker, folder
        self.settings = {**TIMES, **settings}
        self.services: list[Service] = []
        self.amqp = Amqp(broker)
        self.client: Client
        self._pool: asyncpg.Pool[asyncpg.Record]
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Site:
        given = Settings(**self._given())
        self.client = await self._stack.enter_async_context(Client.connect(given))
        self._pool = await asyncpg.create_pool(self.database, min_size=0, max_size=4)
        self._stack.push_async_callback(self._pool.close)
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.gather(*(asyncio.to_thread(service.close) for service in self.services))
        await self._stack.aclose()

    # -- services ------------------------------------------------------------------------------------------------

    def executor(self, name: str, **settings: Any) -> Service:
        return self._start("executor", name=name, **settings)

    def worker(self, name: str, *words: str, module: str = ",".join(MODULES), **settings: Any) -> Service:
        return self._start("worker", "--module", module, *words, name=name, **settings)

    def _start(self, role: str, *words: str, **settings: Any) -> Service:
        given = {
            "database": self.database,
            "broker": self.broker,
            "folder": self.folder,
            **self.settings,
            **settings,
        }
        service = Service(role, *words, **given)
        self.services.append(service)
        return service

    async def ready(self) -> Site:
        """Wait until all of its services are."""
        alive = [service for service in self.services if service.process.poll() is None]
        await asyncio.gather(*(service.ready() for service in alive))
        return self

    def _given(self) -> dict[str, Any]:
        return {**self.settings, "database_url": self.database, "broker_url": self.broker}

    # -- what users do -------------------------------------------------------------------------------------------

    async def command(self, *words: object, code: int | None = 0, **settings: Any) -> Said:
        """`penstock ...` as a program. Raises AssertionError if it ends with another exit code (None: any will do)."""
        given = {**self._given(), **settings}
        environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("PENSTOCK_")},
            **{f"PENSTOCK_{name.upper()}": str(value) for name, value in given.items()},
            "PYTHONPATH": python_path(),
            "COLUMNS": "300",
        }
        async with commands:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                *COMMAND_LINE,
                *(str(word) for word in words),
                env=environment,
                cwd=ROOT,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
            )
            out, err = await process.communicate()
        said = Said(process.returncode or 0, out.decode(), err.decode())
        name = f"penstock {' '.join(str(word) for word in words)}"
        assert "Traceback" not in said.err, f"`{name}` printed a traceback: {said.err[-300:]}"
        assert code is None or said.code == code, f"`{name}` ended with {said.code}: {said.all[-400:]}"
        return said

    async def prepare(self) -> None:
        """Migrate, and apply what rows run."""
        await self.command("migrate")
        await self.command("apply", *MODULES)

    async def apply(self, text: str, name: str, *, code: int | None = 0, **settings: Any) -> Said:
        """`penstock apply` of a file with this text; of `NAME/pack.yaml` as a pack."""
        file = self.folder / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
        if file.name == "pack.yaml":
            file = file.parent
        return await self.command("apply", file, code=code, **settings)

    async def schedule(
        self, ref: str, action: str, *words: str, code: int | None = 0, **options: str
    ) -> Said:
        """`penstock schedule create`; `options` by name, as `every="1s"`."""
        given = [word for name, value in options.items() for word in (f"--{name.replace('_', '-')}", value)]
        return await self.command("schedule", "create", ref, "--action", action, *words, *given, code=code)

    async def sql(self, query: str, *args: Any) -> list[asyncpg.Record]:
        """Return the output of psql."""
        rows: list[asyncpg.Record] = await self._pool.fetch(query, *args)
        return rows

    async def value(self, query: str, *args: Any) -> Any:
        return await self._pool.fetchval(query, *args)

    @asynccontextmanager
    async def holding(self, query: str, *args: Any) -> AsyncIterator[None]:
        """psql in the middle of a transaction: the locks that this takes are held meanwhile."""
        async with self._pool.acquire() as connection, connection.transaction():
            await connection.fetch(query, *args)
            yield

    async def refused(self, query: str, *args: Any) -> str:
        """Return the error of PostgreSQL to a statement that breaks a rule of its own. Raises AssertionError if it takes it."""
        try:
            async with self._pool.acquire() as connection, connection.transaction():
                await connection.execute(query, *args)
                raise AssertionError(f"PostgreSQL took {' '.join(query.split())[:80]}")
        except asyncpg.PostgresError as error:
            return type(error).__name__

    # -- what users see ------------------------------------------------------------------------------------------

    async def status(self, id: UUID) -> str:
        return (await self.client.get(id)).status

    async def ends(self, *ids: UUID, seconds: float = 120) -> list[str]:
        """The final status of each. Raises AssertionError with what `why` says of one that does not end."""
        found = []
        for id in ids:
            try:
                found.append(await self.until(lambda id=id: self._final(id), f"{id} to end", seconds))  # type: ignore[misc]
            except AssertionError as late:
                raise AssertionError(f"{late}: {(await self.client.why(id)).says}") from None
        return found

    async def _final(self, id: UUID) -> str | None:
        status = await self.status(id)
        return status if status in FINAL else None

    async def comes_to(self, id: UUID, *statuses: str, seconds: float = 90) -> str:
        """Wait until it has one of these statuses."""

        async def there() -> str | None:
            status = await self.status(id)
            return status if status in statuses else None

        return str(await self.until(there, f"{id} to be {' or '.join(statuses)}", seconds))

    async def until(self, look: Callable[[], Awaitable[Any]], what: object, seconds: float = 90) -> Any:
        """Return the value of `look` once it is true. Raises AssertionError."""
        end = time.monotonic() + seconds
        while not (found := await look()):
            assert time.monotonic() < end, f"waited {seconds:g} s in vain for {what}"
            await asyncio.sleep(0.05)
        return found

    async def runs_on(self, id: UUID, attempt: int = 1, seconds: float = 90) -> Service:
        """The worker that runs this attempt, once one does."""

        async def where() -> str | None:
            moves = await self.client.history(id)
            return next((m.actor for m in moves if (m.new, m.attempt) == ("running", attempt)), None)

        name = str(await self.until(where, f"attempt {attempt} of {id} to run", seconds)).removeprefix(
            "worker:"
        )
        return next(service for service in self.services if service.name == name)

    async def moves(self, id: UUID) -> list[str]:
        """The statuses it ever had."""
        return [move.new for move in await self.client.history(id)]

    async def began(self, ids: Sequence[UUID]) -> list[UUID]:
        """These in the order in which workers began them."""
        at = {id: next(m.at for m in await self.client.history(id) if m.new == "running") for id in ids}
        return sorted(ids, key=lambda id: at[id])

    async def executions_of(self, source: str, count: int) -> list[UUID] | None:
        """Return the executions that rules started for the events of a foreign client (its `app_id`), once there are so
        many."""
        rows = await self.sql(
            "select n.execution_id from enforcement n join event v on v.id = n.event_id "
            "join execution e on e.id = n.execution_id where v.source = $1",
            source,
        )
        return [row["execution_id"] for row in rows] if len(rows) >= count else None

    async def check(self) -> None:
        """`penstock check` finds nothing."""
        await self.command("check")
