"""The network between a machine and a server: cut, held up, slow, hostile; an answer that is lost on the way."""

from __future__ import annotations

import asyncio
import random

from tests.chaos.cluster import Cluster
from tests.chaos.faults.fault import Fault
from tests.chaos.proxy import Direction
from tests.kit.hostile_proxy import every_cut

SERVERS = ("postgres", "rabbitmq", "gateway")
WAYS: list[tuple[Direction, ...]] = [("up",), ("down",), ("up", "down")]
CUTS = list(every_cut())


async def cut(cluster: Cluster, draw: random.Random) -> str:
    """Connections are reset, and for a while there are no new ones."""
    server = draw.choice(SERVERS)
    link = draw.choice(cluster.links(server))
    seconds = draw.choice([0.0, draw.uniform(0.2, 4.0)])
    link.cut()
    await asyncio.sleep(seconds)
    link.heal()
    return f"{server}, {seconds:.1f} s"


async def partition(cluster: Cluster, draw: random.Random) -> str:
    """Drop the packets from a machine, to it, or both."""
    server = draw.choice(SERVERS)
    link = draw.choice(cluster.links(server))
    ways = draw.choice(WAYS)
    seconds = draw.uniform(0.3, 6.0)
    link.hold(*ways)
    await asyncio.sleep(seconds)
    link.heal()
    return f"{server} {' and '.join(ways)}, {seconds:.1f} s"


async def slow_down(cluster: Cluster, draw: random.Random) -> str:
    link, delay, seconds = draw.choice(cluster.links()), draw.uniform(0.02, 0.3), draw.uniform(1, 8)
    link.slow(delay)
    await asyncio.sleep(seconds)
    link.heal()
    return f"{delay * 1000:.0f} ms a piece, {seconds:.1f} s"


async def be_hostile(cluster: Cluster, draw: random.Random) -> str:
    """Whatever connects to the broker is accepted, and closed, reset or forgotten after so many frames."""
    proxy, cut = draw.choice(cluster.hostile), draw.choice(CUTS)
    struck = proxy.struck
    proxy.cut(cut)
    await asyncio.sleep(draw.uniform(0.5, 4))
    proxy.heal()
    return f"{proxy.struck - struck} times {cut.how} after {cut.frames} {cut.direction}"


async def lose_an_answer(cluster: Cluster, draw: random.Random) -> str:
    """Lose the answer to a statement that PostgreSQL has committed, or to a call that a gateway has carried out."""
    answers = draw.choice(cluster.networks).answers
    word = draw.choice(answers.words)
    return f"to {word.decode() or 'any'}" if await answers.lose(word, patience=3) else ""


FAULTS = (
    Fault("network cut", 5, cut),
    Fault("partition", 6, partition),
    Fault("slow network", 3, slow_down),
    Fault("hostile broker", 5, be_hostile, spares=True),
    Fault("answer lost", 5, lose_an_answer, spares=True),
)
