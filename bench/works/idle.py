"""The cost of an idle system."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from bench.figures import Measured
from bench.meters import between, transactions
from bench.session import Session
from bench.works.effort import Effort

LATE = 11.0
"""Seconds until every idle session has handed in its counts."""


@asynccontextmanager
async def _no_upkeep(session: Session) -> AsyncIterator[None]:
    await session.postgres.execute("alter system set autovacuum = off")
    await session.postgres.execute("select pg_reload_conf()")
    try:
        yield
    finally:
        await session.postgres.execute("alter system reset autovacuum")
        await session.postgres.execute("select pg_reload_conf()")


async def idle(session: Session, effort: Effort) -> Measured:
    """Transactions a second on its database, and how much of a core its processes (not the client) use. PostgreSQL's own
    upkeep, which counts as transactions too, stays off meanwhile."""
    async with _no_upkeep(session):
        await asyncio.sleep(LATE if session.system.postgres else 1)
        reading, began = await session.read(), await transactions(session.database, session.postgres)
        await asyncio.sleep(effort.window)
        committed = await transactions(session.database, session.postgres) - began
    cost = between(reading, await session.read())
    own = sum(seconds for name, seconds in cost.cpu.items() if name in session.processes)
    core: Measured = {"core_percent": (100 * own / cost.seconds, "%")}
    if session.system.postgres:
        return {"transactions_per_second": (committed / cost.seconds, "1/s")} | core
    return core
