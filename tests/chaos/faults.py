"""Everything that is broken on purpose. A fault breaks something, waits as long as it drew, and mends it."""

from __future__ import annotations

import asyncio
import random
import signal
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from urllib.parse import quote

from tests.chaos.cluster import VHOST, Cluster, Replica, Role
from tests.chaos.proxy import Direction
from tests.servers.rabbitmq import NativeRabbitMQ

Act = Callable[[Cluster, random.Random], Awaitable[str]]
"""Returns what was hit. An empty text: there was nothing that could be."""

WAYS: list[tuple[Direction, ...]] = [("up",), ("down",), ("up", "down")]


@dataclass(frozen=True, slots=True)
class Fault:
    name: str
    weight: int
    act: Act


def _victim(cluster: Cluster, draw: random.Random, role: Role | None = None) -> Replica | None:
    """A replica that works. Where none does, there is nobody to hit."""
    grown = [r for r in cluster.replicas(role) if r.old_enough and not r.leaving]
    return draw.choice(grown) if grown else None


async def kill_a_worker(cluster: Cluster, draw: random.Random) -> str:
    victim = _victim(cluster, draw, "worker")
    if victim is None:
        return ""
    cluster.killed.append((victim.name, time.time()))
    victim.machine.kill(victim)
    return victim.name


async def kill_an_executor(cluster: Cluster, draw: random.Random) -> str:
    victim = _victim(cluster, draw, "executor")
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


async def cut(cluster: Cluster, draw: random.Random) -> str:
    """Connections are reset, and for a while there are no new ones."""
    server = draw.choice(["postgres", "rabbitmq"])
    link = draw.choice(cluster.links(server))
    seconds = draw.choice([0.0, draw.uniform(0.2, 4.0)])
    link.cut()
    await asyncio.sleep(seconds)
    link.heal()
    return f"{server}, {seconds:.1f} s"


async def partition(cluster: Cluster, draw: random.Random) -> str:
    """What a machine sends does not arrive, or what it is sent, or neither."""
    server = draw.choice(["postgres", "rabbitmq"])
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


async def purge_all_queues(cluster: Cluster, draw: random.Random) -> str:
    server = cluster.rabbitmq
    if not isinstance(server, NativeRabbitMQ):
        return ""
    vhost = quote(VHOST, safe="")

    def purge() -> int:
        found = server.api.call("GET", f"queues/{vhost}?columns=name,exclusive")
        queues = [queue for queue in found if not queue.get("exclusive")]  # those only their owner may touch
        for queue in queues:
            server.api.call("DELETE", f"queues/{vhost}/{quote(queue['name'], safe='')}/contents")
        return len(queues)

    return f"{await asyncio.to_thread(purge)} queues"


OF_PROCESSES = (
    Fault("kill -9 a worker", 6, kill_a_worker),
    Fault("kill -9 an executor", 3, kill_an_executor),
    Fault("SIGSTOP, SIGCONT", 4, freeze),
    Fault("SIGTERM", 2, stop),
    Fault("clock jump", 2, turn_a_clock),
)
OF_SERVERS = (
    Fault("network cut", 5, cut),
    Fault("partition", 6, partition),
    Fault("slow network", 3, slow_down),
    Fault("queues purged", 3, purge_all_queues),
    Fault("disk full", 3, fill_the_disk),
    Fault("PostgreSQL restarted", 2, restart_postgresql),
    Fault("PostgreSQL killed", 2, kill_postgresql),
    Fault("broker killed", 2, kill_the_broker),
    Fault("broker restarted", 1, restart_the_broker),
    Fault("broker lost", 1, lose_the_broker),
)
