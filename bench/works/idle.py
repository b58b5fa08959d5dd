"""What a system costs while it has nothing to do."""

from __future__ import annotations

import asyncio

from bench.figures import Measured
from bench.meters import between, transactions
from bench.session import Session
from bench.works.effort import Effort

LATE = 11.0
"""Seconds until every idle session has handed in its counts."""


async def idle(session: Session, effort: Effort) -> Measured:
    """Transactions a second on its database, and how much of a core its processes (not the client) use."""
    await asyncio.sleep(LATE)
    before, began = await session.read(), await transactions(session.database, session.postgres)
    await asyncio.sleep(effort.window)
    committed = await transactions(session.database, session.postgres) - began
    cost = between(before, await session.read())
    own = sum(seconds for name, seconds in cost.cpu.items() if name in session.processes)
    return {
        "transactions_per_second": (committed / cost.seconds, "1/s"),
        "core_percent": (100 * own / cost.seconds, "%"),
    }
