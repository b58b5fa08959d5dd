"""Dramatiq: two processes of 8 threads, publisher confirms, four publisher threads.

It has no result backend on PostgreSQL and needs Redis or Memcached to join a group: nothing is recorded, and
there is no fan-out. A chain is a pipeline, of which nothing is durable but the message.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version

import dramatiq
from dramatiq.brokers.rabbitmq import RabbitmqBroker

from bench.marks import noop
from bench.systems import broker_url, command

VERSION = version("dramatiq")
PROCESSES = {"worker": [command("dramatiq", "bench.systems.dramatiq", "--processes", "2", "--threads", "8")]}
RECORDED = None

broker = RabbitmqBroker(url=broker_url(), confirm_delivery=True)
dramatiq.set_broker(broker)
NOOP = dramatiq.actor(noop, actor_name="noop", queue_name="bench")
PUBLISHERS = ThreadPoolExecutor(4)


async def prepare() -> None:
    broker.declare_queue("bench", ensure=True)


async def connect() -> None:
    pass


def start_chain(first: int, count: int) -> None:
    steps = (NOOP.message_with_options(args=(first + k,), pipe_ignore=True) for k in range(count))
    dramatiq.pipeline(steps).run()


async def send(index: int) -> None:
    await asyncio.get_running_loop().run_in_executor(PUBLISHERS, NOOP.send, index)


async def send_many(first: int, count: int) -> None:
    list(PUBLISHERS.map(NOOP.send, range(first, first + count)))


async def chain(first: int, count: int) -> None:
    await asyncio.get_running_loop().run_in_executor(PUBLISHERS, start_chain, first, count)


async def close() -> None:
    broker.close()


ORDERS = (send, send_many, chain)
