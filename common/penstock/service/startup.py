"""The start of a service: it waits for its servers, and logs what it waits for."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TypeVar

import asyncpg
import structlog

from penstock.errors import ConnectionFailed, NotMigrated, PenstockError, ServersNotReady
from penstock.messaging.transports.choice import make_transport
from penstock.service.assembly import Parts, assembled
from penstock.settings import Settings
from penstock.store.schema import functions
from penstock.store.session.database import Database
from penstock.store.session.postgres_errors import in_our_words

log = structlog.get_logger()

T = TypeVar("T")

PAUSE = 1.0
"""Seconds between two tries."""
AGAIN = 60.0
"""Seconds after which the same reason is logged again."""
CONNECTING = 5.0
"""Seconds without an answer from a server after which the service logs that it waits."""

_NOT_READY = (NotMigrated, ConnectionFailed, asyncpg.PostgresError, asyncpg.InterfaceError, OSError)


@asynccontextmanager
async def assembled_when_ready(
    settings: Settings, *, role: str, pause: float = PAUSE
) -> AsyncIterator[Parts]:
    """Enter `assembled` once PostgreSQL and the broker answer and the database has the functions that this release
    calls. Raises ServersNotReady after `settings.wait` seconds, and ConfigurationError at once for an invalid
    address."""
    make_transport(Database(settings, role=role), role=role)  # raises if an address is invalid
    async with AsyncExitStack() as stack:

        async def enter() -> Parts:
            await _migrated(settings, role)
            return await stack.enter_async_context(assembled(settings, role=role))

        yield await _when_ready(enter, settings.wait, pause)


async def _migrated(settings: Settings, role: str) -> None:
    database = Database(settings, role=role)
    connection = await database.connect(timeout=CONNECTING)
    try:
        await database.session().begin(connection)  # behind a pooler only a transaction has the search path
        await functions.check(connection.fetch)
    finally:
        await connection.close()


async def _when_ready(work: Callable[[], Awaitable[T]], wait: float | None, pause: float) -> T:
    logged, logged_at, last = (
        "",
        0.0,
        PenstockError("the servers did not answer", hint="Find the cause with: penstock doctor"),
    )
    try:
        async with asyncio.timeout(wait) as deadline:
            while True:
                try:
                    return await work()
                except _NOT_READY as error:
                    last = _explained(error)
                now = time.monotonic()
                if last.message != logged or now - logged_at >= AGAIN:
                    log.error(
                        "service.waits", reason=last.message, hint=last.hint, next_try=f"in {pause:g} s"
                    )
                    logged, logged_at = last.message, now
                await asyncio.sleep(pause)
    except TimeoutError:
        if not deadline.expired():
            raise
        raise ServersNotReady(f"not ready after {wait:g} s: {last.message}", hint=last.hint) from None


def _explained(error: Exception) -> PenstockError:
    if isinstance(error, PenstockError):
        return error
    if translated := in_our_words(error):
        return translated
    return PenstockError(
        f"{type(error).__name__}: {error}".rstrip(": "), hint="Find the cause with: penstock doctor"
    )
