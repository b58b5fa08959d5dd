"""The partitions: each part from every part that it speaks to, alone and from all of a kind."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import combinations

from tests.chaos.partitions.topology import BROKERS, PARTIES, POOLER, PRIMARY, STANDBY, Topology
from tests.chaos.partitions.ways import How, link

Act = Callable[[Topology, How, float], Awaitable[int]]
"""Parts for so many seconds, and heals. How many connections it parted."""


@dataclass(frozen=True)
class Parting:
    name: str
    act: Act


def partings() -> Iterator[Parting]:
    for broker, other in combinations(BROKERS, 2):
        yield _of(link(broker, other), link(broker, other))
    for node in BROKERS:
        yield _of(link(node, "other nodes"), *(link(*p) for p in combinations(BROKERS, 2) if node in p))
    for party in PARTIES:
        for node in BROKERS:
            yield _of(link(party, node), link(party, node))
        yield _of(link(party, "all nodes"), *(link(party, node) for node in BROKERS))
        yield _of(link(party, POOLER), link(party, POOLER))
    yield Parting(link(POOLER, PRIMARY), _pooler_from_primary)
    yield _of(link(PRIMARY, STANDBY), link(PRIMARY, STANDBY))
    yield Parting(link(PRIMARY, "everybody"), _fail_over)


def _of(name: str, *links: str) -> Parting:
    async def act(it: Topology, how: How, seconds: float) -> int:
        return await _apart(it, links, how, seconds)

    return Parting(name, act)


async def _apart(it: Topology, links: Iterable[str], how: How, seconds: float) -> int:
    connections = it.ways.part(links, how)
    await asyncio.sleep(seconds)
    it.ways.heal()
    return connections


async def _pooler_from_primary(it: Topology, how: How, seconds: float) -> int:
    return await _apart(it, [it.to_primary], how, seconds)


async def _fail_over(it: Topology, how: How, seconds: float) -> int:
    """The standby takes over halfway, and PgBouncer is led to it. The old primary is ended before a client can reach
    it again, as an operator that promotes has to see to. It becomes the standby."""
    connections = it.ways.part([it.to_primary, link(PRIMARY, STANDBY)], how)
    await asyncio.sleep(seconds / 2)
    await asyncio.to_thread(it.postgres.promote)
    await asyncio.to_thread(it.lead_to_primary)
    await asyncio.sleep(seconds / 2)
    await asyncio.to_thread(it.postgres.kill_standby)
    it.ways.heal()
    await asyncio.to_thread(it.postgres.rejoin)
    return connections
