"""The observations of a partition: its effect, and the time until everything moved again."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field
from itertools import pairwise

import asyncpg

from tests.chaos.partitions.topology import DATABASE, Topology
from tests.chaos.partitions.ways import How

PATIENCE = 180.0
"""Seconds after a partition until all has to move again."""
REJOINS = 30.0
"""Seconds that the nodes of RabbitMQ have to find back to each other by themselves."""
LOOK = 0.1
OPEN = """
select coalesce(bool_or(e.finished_at is null and e.created_at < to_timestamp($1)), false)
    or not coalesce(bool_or(e.finished_at > to_timestamp($1)), false)
from execution e join namespace n on n.id = e.namespace_id
where n.name = 'public::chaos::double' and (e.finished_at is null or e.finished_at > to_timestamp($1))
"""
"""Whether something is open that was started before, or nothing has ended since. Of work without a line to stand in, that
takes 50 ms."""
ENDS = """
select extract(epoch from e.finished_at)::float8 from execution e join namespace n on n.id = e.namespace_id
where n.name = 'public::chaos::double' and e.finished_at between to_timestamp($1) and to_timestamp($2) order by 1
"""


@dataclass
class Parted:
    """One partition. `restarted`: nodes of RabbitMQ that did not find back to the others."""

    name: str
    how: How
    connections: int
    """That there were between them."""
    began: float
    healed: float
    whole: float | None = None
    """Seconds until the nodes of RabbitMQ were one cluster again, and the standby in step."""
    ready: float | None = None
    """Seconds until every replica said that it is ready."""
    moved: float | None = None
    """Seconds until all had ended that had been started before."""
    restarted: int = 0
    ends: list[float] = field(default_factory=list)
    """When something ended, from the beginning of the partition to the end of the watch."""

    @property
    def broken(self) -> list[str]:
        """Return the parts that did not come back."""
        marks = {
            "the servers are not whole": self.whole,
            "not every replica is ready": self.ready,
            "not all has ended": self.moved,
        }
        return [f"{self.name} ({self.how}): {words}" for words, mark in marks.items() if mark is None]

    @property
    def rate(self) -> float:
        """Ends a second while it lasted."""
        return sum(end <= self.healed for end in self.ends) / (self.healed - self.began)

    @property
    def gap(self) -> float:
        """The longest time without an end."""
        marks = [self.began, *self.ends]
        return max((b - a for a, b in pairwise(marks)), default=0.0)


async def watch(it: Topology, parted: Parted) -> Parted:
    """Until everything moves again."""
    parted.moved, parted.ready, parted.whole = await asyncio.gather(
        _moved(it, parted.healed), _ready(it, parted.healed), _whole(it, parted)
    )
    connection = await _connected(it)
    rows = await connection.fetch(ENDS, parted.began, time.time())
    await connection.close()
    parted.ends = [row[0] for row in rows]
    return parted


async def _connected(it: Topology) -> asyncpg.Connection[asyncpg.Record]:
    return await asyncpg.connect(it.postgres.primary_dsn(DATABASE))


async def _moved(it: Topology, since: float) -> float | None:
    connection = await _connected(it)
    try:
        while await connection.fetchval(OPEN, since):
            if time.time() > since + PATIENCE:
                return None
            await asyncio.sleep(LOOK)
    finally:
        await connection.close()
    return time.time() - since


async def _ready(it: Topology, since: float) -> float | None:
    return None if await it.unready(PATIENCE) else time.time() - since


async def _whole(it: Topology, parted: Parted) -> float | None:
    """Restart nodes that do not find back, one at a time, as their operator would."""
    again = parted.healed + REJOINS
    while not await asyncio.to_thread(_is_whole, it):
        if time.time() > parted.healed + PATIENCE:
            return None
        if time.time() > again and not await asyncio.to_thread(it.rabbitmq.whole):
            missing = await asyncio.to_thread(it.rabbitmq.lost)
            await asyncio.to_thread(it.rabbitmq.restart, missing)
            parted.restarted += 1
            again = time.time() + REJOINS
        await asyncio.sleep(LOOK)
    return time.time() - parted.healed


def _is_whole(it: Topology) -> bool:
    return it.postgres.follows() and it.rabbitmq.whole()
