"""A process that does a scenario, and ends at the point that it was told."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
import threading
import traceback
from collections import Counter
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import asdict, dataclass, field
from typing import Any

import asyncpg
from pydantic import SecretStr

from penstock.client.client import Client
from penstock.language.loading import Definitions
from penstock.operate.check import check
from penstock.service.assembly import assembled
from penstock.service.log_setup import configure_logging
from penstock.settings import Settings
from penstock.store.session import crash_points
from penstock.store.session.database import Database, Session
from penstock_executor import main as executor
from penstock_executor.loops import fire_schedules, fire_timers
from penstock_worker import main as worker
from tests.crash.points.scenarios import SCENARIOS
from tests.crash.points.sites import site_of
from tests.crash.points.world import SETTLED, World

QUICK: dict[str, Any] = {
    "heartbeat_interval": 0.15,
    "stale_threshold": 0.6,
    "sweep_interval": 0.15,
    "relay_interval": 0.1,
    "relay_age": 0.15,
    "restage_age": 0.5,
    "poll_interval": 0.15,
    "lease": 0.6,
    "grace": 0.6,
    "concurrency": 4,
    "log_level": "error",
}
PATIENCE = 60.0
"""Seconds after which what has not happened is taken for stuck."""


@dataclass
class Job:
    """`point` and `hit`: where to end, and at which time it is passed. `how`: `kill`, or `cut` the connection once its
    commit has been sent. `first`: this is the process to be ended, not the one that comes after it."""

    scenario: str
    database: str
    broker: str | None = None
    first: bool = True
    point: str | None = None
    hit: int = 1
    how: str = "kill"


@dataclass
class Report:
    reached: dict[str, int] = field(default_factory=dict)
    cut: bool = False
    left: bool = False
    """It went while there was work to do: what comes of that is seen once another process has done it."""
    broken: str | None = None


class Hook:
    """Counts the points that are passed, and ends the process, or the connection, at one of them."""

    def __init__(self, job: Job) -> None:
        self.passed: Counter[str] = Counter()
        self.cut = False
        self._job = job
        self._lock = threading.Lock()

    def __call__(self, what: str, connection: object) -> None:
        site = site_of(sys._getframe(2), what)
        if site is None:
            return
        point = f"{site} {what} @ {_who()}"
        with self._lock:
            self.passed[point] += 1
            if point != self._job.point or self.passed[point] != self._job.hit:
                return
        if self._job.how == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        assert isinstance(connection, asyncpg.Connection)
        self.cut = True
        connection.terminate()
        raise asyncpg.ConnectionDoesNotExistError("connection was closed in the middle of operation")


def _who() -> str:
    """Name the task that passes: a handler, a loop, the heartbeat ..."""
    try:
        task = asyncio.current_task()
    except RuntimeError:
        task = None
    if threading.current_thread() is not threading.main_thread():
        return threading.current_thread().name
    name = task.get_name() if task is not None else ""
    return "main" if re.fullmatch(r"Task-\d+", name) else name


def _shared(make: Callable[..., Session]) -> Callable[..., Session]:
    """A few sessions for each part of a process: to open more connections is most of what so short a life would cost."""
    sessions: dict[tuple[Database, bool, bool], Session] = {}

    def session(
        database: Database, *, relaxed: bool = False, timeout: float | None = None, opens: bool = True
    ) -> Session:
        key = (database, relaxed, opens)
        if key not in sessions:
            sessions[key] = make(database, relaxed=relaxed, timeout=timeout, opens=opens)
        return sessions[key]

    return session


def run(job: Job) -> Report:
    Database.session = _shared(Database.session)  # type: ignore[method-assign]
    fire_timers.RECHECK = fire_schedules.RECHECK = fire_schedules.WAITING = 0.1
    fire_schedules.SETTLE = 0.1
    hook = Hook(job)
    if job.first:
        crash_points.reached = hook
    report = Report()
    try:
        report.left = asyncio.run(asyncio.wait_for(_run(job), PATIENCE))
    except TimeoutError:
        report.broken = f"it is stuck: {asyncio.run(_open_rows(job))}"
    except Exception:
        report.broken = traceback.format_exc(limit=-3)
    report.reached, report.cut = dict(hook.passed), hook.cut
    return report


async def _open_rows(job: Job) -> str:
    """Describe the open rows, for a reader of the failure."""
    connection = await asyncpg.connect(job.database)
    try:
        executions = await connection.fetch(
            "select id::text, status, attempt, claim::text, task, reason from execution where finished_at is null"
        )
        outbox = await connection.fetch("select queue, ids::text, tries, due_at - now() as due from outbox")
    finally:
        await connection.close()
    return f"{[tuple(row) for row in executions]}, outbox {[tuple(row) for row in outbox]}"


async def _run(job: Job) -> bool:
    """A life. Whether it left work to others."""
    scenario = SCENARIOS[job.scenario]
    settings = Settings(
        **{
            **QUICK,
            "database_url": SecretStr(job.database),
            "broker_url": SecretStr(job.broker) if job.broker else None,
            "name": "first" if job.first else "second",
            **scenario.settings,
        }
    )
    configure_logging(settings)
    definitions = Definitions(scenario.definitions)
    async with AsyncExitStack() as stack:
        parts = await stack.enter_async_context(assembled(settings, role="executor"))
        hands = await stack.enter_async_context(assembled(settings, role="worker"))
        client = Client(settings, parts.database, parts.publisher)
        world = World(client, parts, Database(settings, role="test").session(), job.broker, job.first)
        if not job.first:
            # The lease of a relay that died is half a minute: it has passed.
            await world.rows(
                "update outbox set due_at = least(due_at, clock_timestamp()) where queue <> 'work.nowhere'"
            )
        world.services += [
            asyncio.create_task(executor.work(parts, world.stop), name="executor"),
            asyncio.create_task(worker.work(hands, definitions, world.stop), name="worker"),
        ]
        await scenario.drive(world)
        handed_over = world.stop.requested.is_set()
        if not handed_over:
            await world.until(SETTLED)
        if not job.first or (job.how == "cut" and not handed_over):
            await scenario.expect(world)
            broken = [asdict(f) for f in await check(world.session) if f.violations]
            assert not broken, broken
        world.stop.ask()
        await asyncio.wait(world.services, timeout=5)
        return handed_over
