"""The functions that run a command's coroutine with a client, a session, or both a database and a transport."""

from __future__ import annotations

import asyncio
import contextlib
import getpass
import logging
import socket
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from contextvars import ContextVar
from typing import Any, TypeVar

import structlog

from penstock.cli import clock
from penstock.client.client import Client
from penstock.client.installation import find_installation
from penstock.errors import ConfigurationError, PenstockError
from penstock.messaging.outbox import Publisher
from penstock.messaging.transports.choice import make_transport
from penstock.service.assembly import Parts, assembled
from penstock.settings import Settings
from penstock.store.session import audited_change
from penstock.store.session.database import Database, Session

T = TypeVar("T")


def _me() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):  # a user without a name, as in containers
        return "unknown"


ME = _me()
"""The operating system's name of the user that runs the command."""
SERVER: ContextVar[tuple[str | None, str | None]] = ContextVar("server", default=(None, None))
"""The API's address for this command, and the profile that names it. With neither, the command works on the database.
"""
WAKING = 3.0
"""The timeout for notifying executors of a change, in seconds. They notice it themselves some seconds later."""


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end. Errors that it logs go to standard error; other log messages are dropped."""
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.KeyValueRenderer(key_order=["event"]),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR),
        logger_factory=lambda *_: structlog.PrintLogger(sys.stderr),
    )
    for noisy in ("aiormq", "aio_pika"):
        logging.getLogger(noisy).setLevel(logging.CRITICAL)
    return asyncio.run(work)


def _needs_the_database(either: bool) -> None:
    """Raise ConfigurationError if a server is named and the command has no HTTP variant. `either`: the caller has
    handled the choice."""
    if not either and any(SERVER.get()):
        raise not_over_http()


def not_over_http() -> ConfigurationError:
    return ConfigurationError(
        "this command only works on the database, and not over HTTP",
        hint="Run the command without --server and --profile (PENSTOCK_SERVER, PENSTOCK_PROFILE), on a machine "
        "that can reach the database. The page /docs of the server may list a route for the same purpose.",
    )


UNAUDITED = ("penstock publish", "penstock run")
"""Commands that are not audited: they only start work, which is stored with its starter."""


@contextlib.contextmanager
def _audited() -> Iterator[None]:
    """Record the command's changes in the audit, with the user, the machine and the arguments."""
    from typer._click.globals import get_current_context

    from penstock.operate.audit import kept

    context = get_current_context(silent=True)
    if context is None or context.command_path in UNAUDITED:
        yield
        return
    arguments = {name: value for name, value in context.params.items() if name not in ("json", "reason")}
    details = {
        **kept({name: value for name, value in arguments.items() if value}),
        "host": socket.gethostname(),
    }
    named = (arguments.get(name) for name in ("ref", "name", "id", "ids", "pattern", "rule", "source"))
    target = next(
        (
            ", ".join(map(str, value if isinstance(value, list | tuple) else [value]))
            for value in named
            if value
        ),
        "",
    )
    change = audited_change.Change(
        f"command:{ME}", context.command_path, target, context.params.get("reason"), details
    )
    with audited_change.begun(change):
        yield


def with_client(work: Callable[[Client], Awaitable[T]], *, either: bool = False, publishes: bool = True) -> T:
    """Run `work` with a client, and return its result. Without `publishes` the client is not connected to a broker."""
    _needs_the_database(either)

    async def start() -> T:
        settings = await find_installation()
        async with Client.connect(settings) if publishes else _without_broker(settings) as client:
            if not publishes:
                await clock.note(client.session)
            with _audited():
                answer = await work(client)
            await client.flush()
            return answer

    return run(start())


@contextlib.asynccontextmanager
async def _without_broker(settings: Settings) -> AsyncIterator[Client]:
    database = Database(settings, role="cli")
    client = Client(settings, database, Publisher(make_transport(database, role="cli"), database))
    try:
        yield client
    finally:
        await client.close()
        await database.close()


def with_session(work: Callable[[Session], Awaitable[T]], *, either: bool = False) -> T:
    """Run `work` with a session, and return its result. No broker is needed."""
    _needs_the_database(either)

    async def start() -> T:
        database = Database(await find_installation(), role="cli")
        try:
            session = database.session()
            await clock.note(session)
            with _audited():
                return await work(session)
        finally:
            await database.close()

    return run(start())


def wake_schedules() -> None:
    """Notify executors to look at schedules at once. Without a broker they do so some seconds later."""
    from penstock.client import schedules  # only few commands need this import

    async def start() -> None:
        database = Database(await find_installation(), role="cli")
        transport = make_transport(database, role="cli")
        with contextlib.suppress(PenstockError, TimeoutError):
            async with asyncio.timeout(WAKING):
                await transport.open()
                await schedules.wake(transport)
        await transport.close()
        await database.close()

    run(start())


def with_parts(work: Callable[[Parts], Awaitable[T]]) -> T:
    """Run `work` with a database and a transport, as services have them, and return its result."""
    _needs_the_database(False)

    async def start() -> T:
        async with assembled(await find_installation(), role="cli") as parts:
            with _audited():
                return await work(parts)

    return run(start())
