"""The tasks of every service around its work: connect, send heartbeats, report its state, stop on a signal."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import structlog

from penstock import tracing
from penstock.language.terms.ids import new_id
from penstock.messaging.metrics import Metrics
from penstock.messaging.outbox import Publisher
from penstock.messaging.supervision import Supervisor
from penstock.messaging.transports import Transport
from penstock.messaging.transports.choice import make_transport
from penstock.run.event_loop import run_to_end
from penstock.settings import Settings
from penstock.store.schema import functions
from penstock.store.session.database import FEWEST, Database

log = structlog.get_logger()


BEATING = ("executor", "worker")
"""Roles that learn from their heartbeats how many connections to PostgreSQL they may have. They start with the
fewest."""


@dataclass(slots=True)
class Stop:
    """The request to stop. `requested` is set when the process was asked to end, and `at_once` when it was asked again,
    to end now. The service sets `began` once it works and has something to finish."""

    requested: asyncio.Event = field(default_factory=asyncio.Event)
    at_once: asyncio.Event = field(default_factory=asyncio.Event)
    began: asyncio.Event = field(default_factory=asyncio.Event)
    patience: float | None = None
    """Seconds that running work has to end after the request; None: as the settings say (`grace`)."""

    def ask(self) -> None:
        if self.requested.is_set():
            self.at_once.set()
        self.requested.set()


def stop_on_signals() -> Stop:
    """Return a stop that SIGTERM or SIGINT requests; a second signal requests to end at once."""
    stop = Stop()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.ask)
    return stop


YOUNG = 20_000
"""Allocations between two runs of the garbage collector. With Python's default of 700, a process with thousands of
objects in use runs it again and again, although the objects of a claim or an envelope need no collector."""


async def until_stopped(service: Coroutine[Any, Any, None], stop: Stop) -> None:
    """Run a service. If the stop is requested while the service still waits for its servers, it ends at once."""
    serving = asyncio.create_task(service)
    stopping = asyncio.create_task(stop.requested.wait())
    leaving_alone = asyncio.create_task(_leave_code_alone(stop.began))
    await asyncio.wait({serving, stopping}, return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    leaving_alone.cancel()
    if serving.done() or stop.began.is_set():
        await serving
    else:
        await cancel(serving)
        log.info("service.stopped_before_it_began")


async def _leave_code_alone(began: asyncio.Event) -> None:
    """Exclude the loaded code of a working service from garbage collection, once `began` is set. Collecting it takes
    about a twentieth of a worker's time, and more with large libraries. Other objects are collected less often, too."""
    await began.wait()
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG, *gc.get_threshold()[1:])


@dataclass(slots=True)
class Parts:
    """The parts of a running service. `process` is its random id, by which other processes know it."""

    settings: Settings
    database: Database
    transport: Transport
    publisher: Publisher
    supervisor: Supervisor
    metrics: Metrics = field(default_factory=Metrics)
    process: UUID = field(default_factory=new_id)


@asynccontextmanager
async def assembled(settings: Settings, *, role: str) -> AsyncIterator[Parts]:
    """Connect to PostgreSQL and the broker, and close both at the end. Log lines of this task, and of tasks that it
    starts, name this process meanwhile. Raises ConnectionFailed after the deadline."""
    tracing.describe_process(settings.name, settings.runner_name)
    tracing.set_up()
    database = Database(settings, role=role, check=functions.check if role in BEATING else None)
    if role in BEATING:
        database.limit(FEWEST)
    supervisor, process = Supervisor(), new_id()
    structlog.contextvars.bind_contextvars(service=role, replica=settings.name, replica_id=str(process))
    transport = make_transport(database, role=role, supervisor=supervisor, process=process)
    publisher = Publisher(transport, database)
    try:
        await transport.open()
        yield Parts(settings, database, transport, publisher, supervisor, process=process)
    finally:
        await publisher.close()
        await transport.close()
        await database.close()
        await tracing.flush()


async def cancel(*tasks: asyncio.Future[Any]) -> None:
    """Cancel tasks and wait until they have ended."""
    for task in tasks:
        task.cancel()
    for task in tasks:
        with contextlib.suppress(asyncio.CancelledError, Exception):
            await task


def run(main: Callable[[], Awaitable[None]]) -> None:
    """Run a service on uvloop."""
    import uvloop

    async def start() -> None:
        await main()

    run_to_end(start(), uvloop.new_event_loop)
