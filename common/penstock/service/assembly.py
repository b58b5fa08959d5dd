"""The acts of every service around its work: connect, send heartbeats, report its state, stop on a signal."""

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
from penstock.store.session.database import FEWEST, Database

log = structlog.get_logger()


BEATING = ("executor", "worker")
"""What is told with its heartbeats how many connections to PostgreSQL it may have, and begins with the fewest."""


@dataclass(slots=True)
class Stop:
    """Set once when the process was asked to end, a second time when it was asked to end now. `began` is set by the
    service, once it works and has something to finish."""

    asked: asyncio.Event = field(default_factory=asyncio.Event)
    at_once: asyncio.Event = field(default_factory=asyncio.Event)
    began: asyncio.Event = field(default_factory=asyncio.Event)
    patience: float | None = None
    """Seconds that what runs may take to end once it was asked; None: as the settings say (`grace`)."""

    def ask(self) -> None:
        if self.asked.is_set():
            self.at_once.set()
        self.asked.set()


def stop_on_signals() -> Stop:
    """SIGTERM and SIGINT ask for a drain; a second one ends at once."""
    stop = Stop()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.ask)
    return stop


YOUNG = 20_000
"""Objects that are made before the garbage collector looks for circles among them; Python's own 700 have it look at all that
is under way again and again where thousands are, while what one claim or one envelope brings is gone by itself."""


async def until_stopped(service: Coroutine[Any, Any, None], stop: Stop) -> None:
    """Run a service. One that is asked to stop while it still waits for its servers ends at once."""
    serving = asyncio.create_task(service)
    stopping = asyncio.create_task(stop.asked.wait())
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
    """Freeze the loaded code of a working service, so that the garbage collector does not go through it again and again. That
    takes a worker about a twentieth of its time, and more with large libraries. Other objects are collected less often,
    too."""
    await began.wait()
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG, *gc.get_threshold()[1:])


@dataclass(slots=True)
class Parts:
    """The parts of a running service. `process` is its random id, under which other processes know it."""

    settings: Settings
    database: Database
    transport: Transport
    publisher: Publisher
    supervisor: Supervisor
    metrics: Metrics = field(default_factory=Metrics)
    process: UUID = field(default_factory=new_id)


@asynccontextmanager
async def assembled(settings: Settings, *, role: str) -> AsyncIterator[Parts]:
    """Connect to PostgreSQL and the broker; close both at the end. What is logged meanwhile, by this task and by those that it
    starts, says which process logs it. Raises ConnectionFailed after the deadline."""
    tracing.describe_process(settings.name, settings.runner_name)
    tracing.is_on()  # what keeps it from tracing is said now, and what the process traces itself finds its way
    database = Database(settings, role=role)
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
