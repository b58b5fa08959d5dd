"""The loss of objects on the broker, as an operator would lose them: messages, queues, bindings."""

from __future__ import annotations

import asyncio
import random
from typing import Any
from urllib.parse import quote

from penstock.store.outbox.queues import EXECUTION_REQUESTED
from tests.chaos.cluster import VHOST, Cluster
from tests.chaos.faults.fault import Fault
from tests.servers.management import Api
from tests.servers.rabbitmq import NativeRabbitMQ

PLACE = quote(VHOST, safe="")


def _api(cluster: Cluster) -> Api | None:
    return cluster.rabbitmq.api if isinstance(cluster.rabbitmq, NativeRabbitMQ) else None


def _queues(api: Api) -> list[str]:
    """But for those that only their owner may touch."""
    queues = api.call("GET", f"queues/{PLACE}?columns=name,exclusive")
    return sorted(queue["name"] for queue in queues if not queue.get("exclusive"))


def _purge(api: Api, queue: str) -> None:
    api.call("DELETE", f"queues/{PLACE}/{quote(queue, safe='')}/contents")


async def purge_all_queues(cluster: Cluster, draw: random.Random) -> str:
    api = _api(cluster)
    if api is None:
        return ""

    def purge() -> int:
        queues = _queues(api)
        for queue in queues:
            _purge(api, queue)
        return len(queues)

    return f"{await asyncio.to_thread(purge)} queues"


async def lose_requests(cluster: Cluster, draw: random.Random) -> str:
    """While no executor is there messages pile up, and are purged: what they ask for has to be found and asked for again,
    when what came later is asked for already."""
    api = _api(cluster)
    if api is None:
        return ""
    executors = [r for r in cluster.replicas("executor") if not r.leaving]
    for replica in executors:
        replica.machine.end(replica)
    try:
        await asyncio.sleep(draw.uniform(0.5, 2))
        [queue] = [
            queue for queue in await asyncio.to_thread(_queues, api) if queue.endswith(EXECUTION_REQUESTED)
        ]
        await asyncio.to_thread(_purge, api, queue)
    finally:
        for replica in executors:
            replica.machine.replace(replica)
    await asyncio.sleep(draw.uniform(5, 9))  # they start, and look for what was lost
    return f"{queue}, {len(executors)} executors killed"


async def delete_topology(cluster: Cluster, draw: random.Random) -> str:
    """A queue, with what is in it, or a binding."""
    api = _api(cluster)
    if api is None:
        return ""

    def delete() -> str:
        queues = _queues(api)
        listed: list[dict[str, Any]] = api.call("GET", f"bindings/{PLACE}")
        bindings = [b for b in listed if b["source"] and b["destination"] in queues]
        if draw.random() < 0.5:
            queue = draw.choice(queues)
            api.call("DELETE", f"queues/{PLACE}/{quote(queue, safe='')}")
            return f"the queue {queue}"
        binding = draw.choice(
            sorted(bindings, key=lambda b: (b["source"], b["destination"], b["routing_key"]))
        )
        parts = (binding["source"], "q", binding["destination"], binding["properties_key"])
        source, kind, queue, key = (quote(part, safe="") for part in parts)
        api.call("DELETE", f"bindings/{PLACE}/e/{source}/{kind}/{queue}/{key}")
        return f"the binding {binding['source']} -> {binding['destination']}"

    return await asyncio.to_thread(delete)


FAULTS = (
    Fault("queues purged", 3, purge_all_queues, spares=True),
    Fault("requests lost", 2, lose_requests, spares=True),
    Fault("topology deleted", 3, delete_topology, spares=True),
)
