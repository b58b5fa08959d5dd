"""Processes that are killed, frozen, stopped, or told a wrong time."""

from __future__ import annotations

import asyncio
import random
import signal
import time

from tests.chaos.cluster import Cluster
from tests.chaos.faults.fault import Fault
from tests.chaos.machines import Replica, Role


def _victim(cluster: Cluster, draw: random.Random, role: Role | None = None) -> Replica | None:
    """Return a replica that works, or None if no replica does."""
    grown = [r for r in cluster.replicas(role) if r.old_enough and not r.leaving]
    return draw.choice(grown) if grown else None


async def kill_a_worker(cluster: Cluster, draw: random.Random) -> str:
    victim = _victim(cluster, draw, "worker")
    if victim is None:
        return ""
    cluster.killed.append((victim.name, time.time()))
    victim.machine.kill(victim)
    return victim.name


async def kill_all_workers(cluster: Cluster, draw: random.Random) -> str:
    """And freeze the executors, once there are new ones, until all that the old ones had is stale: it is taken back in one
    transaction, with many keys of limits, beside all that was asked for meanwhile."""
    victims = [r for r in cluster.replicas("worker") if r.old_enough and not r.leaving]
    executors = [r for r in cluster.replicas("executor") if not r.leaving]
    for victim in victims:
        cluster.killed.append((victim.name, time.time()))
        victim.machine.kill(victim)
    await asyncio.sleep(1.6)  # not so long that the first is stale already
    for executor in executors:
        executor.signal(signal.SIGSTOP)
    await asyncio.sleep(draw.uniform(2, 3))
    for executor in executors:
        executor.signal(signal.SIGCONT)
    await asyncio.sleep(draw.uniform(3, 5))  # the new ones take work, which the next fault takes from them
    return ", ".join(victim.name for victim in victims)


async def kill_an_executor(cluster: Cluster, draw: random.Random) -> str:
    victim = _victim(cluster, draw, "executor")
    if victim is None:
        return ""
    victim.machine.kill(victim)
    return victim.name


async def kill_a_gateway(cluster: Cluster, draw: random.Random) -> str:
    victim = _victim(cluster, draw, "gateway")
    if victim is None:
        return ""
    victim.machine.kill(victim)
    return victim.name


async def freeze(cluster: Cluster, draw: random.Random) -> str:
    """SIGSTOP, for less or more than the time after which others take its work over; SIGCONT."""
    victim = _victim(cluster, draw)
    if victim is None:
        return ""
    seconds = draw.uniform(0.3, 6.0)
    victim.signal(signal.SIGSTOP)
    await asyncio.sleep(seconds)
    victim.signal(signal.SIGCONT)
    return f"{victim.name}, {seconds:.1f} s"


async def stop(cluster: Cluster, draw: random.Random) -> str:
    """SIGTERM: it drains and leaves. Another one comes at once, as in a rolling deployment."""
    victim = _victim(cluster, draw)
    if victim is None:
        return ""
    victim.leaving = True
    victim.signal(signal.SIGTERM)
    victim.machine.replace(victim)
    try:
        await asyncio.to_thread(victim.process.wait, 30)
    except Exception:
        victim.signal(signal.SIGKILL)
        cluster.fallen.append(f"{victim.name} (did not drain within 30 s)")
    return victim.name


async def turn_a_clock(cluster: Cluster, draw: random.Random) -> str:
    odd = [r for r in cluster.replicas() if r.machine.name == "odd" and r.old_enough and not r.leaving]
    for replica in odd:
        replica.signal(signal.SIGUSR1)
    return ", ".join(replica.name for replica in odd)


FAULTS = (
    Fault("kill -9 a worker", 6, kill_a_worker),
    Fault("kill -9 all workers", 1, kill_all_workers),
    Fault("kill -9 an executor", 3, kill_an_executor, spares=True),
    Fault("kill -9 a gateway", 3, kill_a_gateway),
    Fault("SIGSTOP and SIGCONT", 4, freeze),
    Fault("SIGTERM", 2, stop),
    Fault("clock jump", 2, turn_a_clock, spares=True),
)
