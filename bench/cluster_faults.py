"""The faults of three RabbitMQ nodes and of a PostgreSQL with a standby. Each fault is caused once, and then repaired."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from tests.servers.rabbitmq_cluster import RabbitMQCluster
from tests.servers.replicated import ReplicatedPostgres

GONE = 3.0
"""Seconds until what was killed is started again."""
AWAY = 8.0
"""Seconds for which what is cut off is away: more than a node of RabbitMQ may be silent here."""

REJOINS = 30.0
"""Seconds that a node has to find back to the others."""


class Clusters(NamedTuple):
    postgres: ReplicatedPostgres
    rabbitmq: RabbitMQCluster


Fault = Callable[[Clusters], Awaitable[float]]
"""Has it, makes all whole again, and gives when (seconds of the clock) what is needed served again."""


async def primary_killed(clusters: Clusters) -> float:
    await asyncio.to_thread(clusters.postgres.fail_over)
    served = time.time()
    await asyncio.sleep(GONE)
    await asyncio.to_thread(clusters.postgres.rejoin)
    return served


async def primary_frozen(clusters: Clusters) -> float:
    """Freeze the primary: its connections stay open and get no answer."""
    clusters.postgres.freeze()
    await asyncio.to_thread(clusters.postgres.promote)
    served = time.time()
    await asyncio.sleep(3 * AWAY)
    await asyncio.to_thread(clusters.postgres.rejoin)
    return served


async def standby_cut_off(clusters: Clusters) -> float:
    clusters.postgres.freeze_standby()
    await asyncio.sleep(AWAY)
    clusters.postgres.thaw_standby()
    return time.time()


async def standby_taken_out(clusters: Clusters) -> float:
    clusters.postgres.freeze_standby()
    await asyncio.sleep(AWAY)
    await asyncio.to_thread(clusters.postgres.take_out_standby)
    served = time.time()
    await asyncio.to_thread(clusters.postgres.rejoin)
    return served


async def node_killed(clusters: Clusters) -> float:
    """Kill the node that leads most queues."""
    node = await asyncio.to_thread(clusters.rabbitmq.leads_most)
    at = time.time()
    await asyncio.to_thread(clusters.rabbitmq.kill, node)
    await asyncio.sleep(GONE)
    await asyncio.to_thread(clusters.rabbitmq.start, node)
    return at


async def node_cut_off(clusters: Clusters) -> float:
    """Freeze a node for longer than clients keep a silent connection (30 s)."""
    node = await asyncio.to_thread(clusters.rabbitmq.leads_most)
    at = time.time()
    clusters.rabbitmq.freeze(node)
    await asyncio.sleep(5 * AWAY)
    clusters.rabbitmq.thaw(node)
    try:
        await asyncio.to_thread(clusters.rabbitmq.rejoined, node, REJOINS)
    except (
        TimeoutError
    ):  # RabbitMQ 3.10 does not always find back by itself; whoever watches over nodes restarts it
        await asyncio.to_thread(clusters.rabbitmq.kill, node)
        await asyncio.to_thread(clusters.rabbitmq.start, node)
    return at


async def both_killed(clusters: Clusters) -> float:
    node = await asyncio.to_thread(clusters.rabbitmq.leads_most)
    await asyncio.to_thread(clusters.rabbitmq.kill, node)
    served = await primary_killed(clusters)
    await asyncio.to_thread(clusters.rabbitmq.start, node)
    return served


FAULTS: dict[str, Fault] = {
    "primary-killed": primary_killed,
    "primary-frozen": primary_frozen,
    "standby-cut-off": standby_cut_off,
    "standby-taken-out": standby_taken_out,
    "node-killed": node_killed,
    "node-cut-off": node_cut_off,
    "both-killed": both_killed,
}
