"""An installation in which nothing runs: the tests fire schedules themselves."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import timedelta
from typing import Any, TypeVar

import pytest

from penstock import Schedule
from penstock.store.schedules import firing
from penstock.store.session.database import Row, Transaction
from tests.flows import shop
from tests.flows.installation import Installation

T = TypeVar("T")
MARGIN = 10
"""Seconds that a test may take, on a busy machine, from a schedule's sleep to its fires."""


class House(Installation):
    """Plays the part of the executors' loop."""

    async def fire(self, ref: str | None = None, limit: int = 500) -> firing.Fired:
        """Fire what is due, once."""
        return await self.change(lambda tx: firing.fire_due(tx, limit, ref))

    async def change(self, work: Callable[[Transaction], Awaitable[T]]) -> T:
        async with self.session.transaction() as tx:
            return await work(tx)

    async def sleep(self, ref: str, past: timedelta) -> None:
        """Pretend that no replica has looked at a schedule for so long: as many minutes are due as went by, on the dot."""
        await self.away_from_the_full_minute()
        await self.rows(
            "update schedule set since = clock_timestamp() - $2::interval, "
            "next_due = clock_timestamp() - interval '1 ms' where ref = $1",
            ref,
            past,
        )

    async def away_from_the_full_minute(self) -> None:
        """Wait until no minute begins soon: a schedule of every minute would fire once more before the test looks."""
        [row] = await self.rows("select 60 - extract(second from clock_timestamp())::float8 as left")
        left = row["left"]
        if left < MARGIN:
            await asyncio.sleep(left)

    async def claim(self) -> None:
        """Claim all scheduled executions, as a worker does."""
        await self.rows(
            "update execution set status = 'running', attempt = 1, claim = id where status = 'scheduled'"
        )

    async def end(self, status: str = "completed", error: str | None = None) -> None:
        """End all open executions, as if they had run."""
        await self.claim()
        await self.rows(
            "with ended as (update execution set status = $1, finished_at = clock_timestamp() "
            "where finished_at is null returning id), "
            "gone as (delete from live using ended where execution_id = id) "
            "insert into result (execution_id, error) select id, $2::jsonb from ended",
            status,
            error,
        )

    async def fires(self, ref: str) -> list[Row]:
        """Oldest first."""
        return await self.rows("select * from fire where schedule = $1 order by due_at", ref)

    async def of(self, ref: str) -> Row:
        return (await self.rows("select * from schedule where ref = $1", ref))[0]


def every_minute(name: str = "clock.minutely", **options: Any) -> Schedule:
    options = {"action": shop.charge, "params": {"order": 1}, "cron": "* * * * *", **options}
    return Schedule(name, **options)


@pytest.fixture
async def house(database: str) -> AsyncIterator[House]:
    async with House(database, None) as house:
        yield house
