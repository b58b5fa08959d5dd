"""The bare hops that an execution takes, and nothing else: what the servers and the drivers alone cost.

client: insert and commit, publish -> first hop: update and commit, publish -> second hop: update and commit,
and the no-op. Three commits, two deliveries, quorum queues, confirmed publishes, one connection each. In a chain the
second hop publishes the next step to the first, which inserts it: two commits and two deliveries a step.
"""

from __future__ import annotations

import asyncio
import sys
from importlib.metadata import version

import aiormq
import asyncpg
import uvloop
from aiormq.abc import AbstractChannel, DeliveredMessage

from bench.marks import noop
from bench.systems import broker_url, database_url, module

VERSION = f"aiormq {version('aiormq')}, asyncpg {version('asyncpg')}"
PROCESSES = {"executor": [module("bench.systems.probe", "0")], "worker": [module("bench.systems.probe", "1")]}
RECORDED = None

QUEUES = ("bench.first", "bench.second")
WRITES = (
    "insert into probe values ($1, 1) on conflict (id) do update set hop = 1",
    "update probe set hop = 2 where id = $1",
)
_turn = asyncio.Lock()  # a connection does one thing at a time
_connections: list[asyncpg.Connection] = []
_channels: list[AbstractChannel] = []


async def prepare() -> None:
    _connections.append(await asyncpg.connect(database_url()))
    await _connections[0].execute("create table probe (id int primary key, hop int) with (fillfactor = 50)")
    _channels.append(await open_channel())


async def open_channel() -> AbstractChannel:
    channel = await (await aiormq.connect(broker_url())).channel()
    for queue in QUEUES:
        await channel.queue_declare(queue, durable=True, arguments={"x-queue-type": "quorum"})
    return channel


async def publish(channel: AbstractChannel, queue: str, body: bytes) -> None:
    properties = aiormq.spec.Basic.Properties(delivery_mode=2)
    await channel.basic_publish(body, routing_key=queue, properties=properties, mandatory=True)


async def connect() -> None:
    pass


async def send(index: int) -> None:
    async with _turn:
        await _connections[0].execute("insert into probe values ($1, 0)", index)
    await publish(_channels[0], QUEUES[0], b"%d %d" % (index, index))


async def chain(first: int, count: int) -> None:
    await publish(_channels[0], QUEUES[0], b"%d %d" % (first, first + count - 1))


async def close() -> None:
    await _connections[0].close()
    await _channels[0].connection.close()


ORDERS = (send, chain)


async def hop(number: int) -> None:
    """Consume one queue for ever."""
    connection, consuming, publishing = (
        await asyncpg.connect(database_url()),
        await open_channel(),
        await open_channel(),
    )

    async def arrived(message: DeliveredMessage) -> None:
        index, last = map(int, message.body.split())
        await connection.execute(WRITES[number], index)
        if number == 0:
            await publish(publishing, QUEUES[1], message.body)
        else:
            noop(index)
            if index < last:
                await publish(publishing, QUEUES[0], b"%d %d" % (index + 1, last))
        assert message.delivery_tag
        await consuming.basic_ack(message.delivery_tag)

    # One at a time, so that the one connection is never asked twice at once.
    await consuming.basic_qos(prefetch_count=1)
    await consuming.basic_consume(QUEUES[number], arrived)
    await asyncio.Event().wait()


if __name__ == "__main__":
    uvloop.run(hop(int(sys.argv[1])))
