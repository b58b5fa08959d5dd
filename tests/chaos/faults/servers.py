"""Servers that are killed, restarted, lost with their disk, or have no more room on it."""

from __future__ import annotations

import asyncio
import random

from tests.chaos.cluster import VHOST, Cluster
from tests.chaos.faults.fault import Fault


async def kill_the_broker(cluster: Cluster, draw: random.Random) -> str:
    await asyncio.to_thread(cluster.rabbitmq.kill)
    await asyncio.sleep(draw.uniform(0, 2))
    await asyncio.to_thread(cluster.rabbitmq.start)
    return "kill -9"


async def restart_the_broker(cluster: Cluster, draw: random.Random) -> str:
    await asyncio.to_thread(cluster.rabbitmq.restart)
    return "stopped and started"


async def lose_the_broker(cluster: Cluster, draw: random.Random) -> str:
    """Its disk with it: every queue and message is gone."""

    def lose() -> None:
        cluster.rabbitmq.wipe()
        cluster.rabbitmq.add_vhost(VHOST)

    await asyncio.to_thread(lose)
    return "with its disk"


async def restart_postgresql(cluster: Cluster, draw: random.Random) -> str:
    await asyncio.to_thread(cluster.postgres.restart)
    return "stopped and started"


async def kill_postgresql(cluster: Cluster, draw: random.Random) -> str:
    await asyncio.to_thread(cluster.postgres.kill)
    await asyncio.sleep(draw.uniform(0, 1))
    await asyncio.to_thread(cluster.postgres.start)
    return "kill -9"


async def fill_the_disk(cluster: Cluster, draw: random.Random) -> str:
    if cluster.disk is None:
        return ""
    seconds = draw.uniform(0.5, 4.0)
    try:
        cluster.disk.fill()
        await asyncio.sleep(seconds)
    finally:
        cluster.disk.empty()
    return f"{seconds:.1f} s"


FAULTS = (
    Fault("disk full", 3, fill_the_disk),
    Fault("PostgreSQL restarted", 2, restart_postgresql),
    Fault("PostgreSQL killed", 2, kill_postgresql),
    Fault("broker killed", 2, kill_the_broker, spares=True),
    Fault("broker restarted", 1, restart_the_broker, spares=True),
    Fault("broker lost", 1, lose_the_broker, spares=True),
)
