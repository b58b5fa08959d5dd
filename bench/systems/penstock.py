"""Penstock: one executor and one worker process, submitted 100 a call by four callers.

The transport is the one whose broker the run names: RabbitMQ with quorum queues, or PostgreSQL alone.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import Callable
from contextlib import AsyncExitStack
from importlib.metadata import version
from typing import Any, cast

from pydantic import SecretStr

from bench.client import crowd
from bench.systems import ACCOUNTS, command
from penstock import Client, Settings
from penstock.operate.roles import with_user

VERSION = version("penstock")
WORKLOADS = "bench/workloads.py"
PASSWORD = "bench"


def settings_of(name: str) -> Settings:
    """Return the settings of a service: with the owner's account, or with one of its own."""
    settings = Settings()
    if ACCOUNTS not in os.environ:
        return settings
    return Settings(database_url=SecretStr(with_user(settings, f"penstock_{name}", PASSWORD)))


def service(name: str, *arguments: str) -> list[list[str]]:
    url = settings_of(name).database_url
    assert url
    return [
        ["env", f"PENSTOCK_DATABASE_URL={url.get_secret_value()}", *command("penstock", name, *arguments)]
    ]


PROCESSES = {
    "executor": service("executor"),
    "worker": service("worker", "--module", WORKLOADS, "--concurrency", "500"),
}
RECORDED = """
    select (given.params->>'index')::int, extract(epoch from pg_xact_commit_timestamp(ended.xmin))::float8
    from result ended join payload given using (execution_id)
    where (given.params->>'index')::int between $1 and $2 - 1
"""
CUSTOMERS = 1000

_open = AsyncExitStack()
_client: Client


def set_up() -> None:
    subprocess.run(command("penstock", "migrate"), check=True)
    subprocess.run(command("penstock", "apply", WORKLOADS), check=True)
    if ACCOUNTS in os.environ:
        passwords = {f"ROLE_PASSWORD_{name}": PASSWORD for name in ("EXECUTOR", "WORKER", "CLIENT")}
        subprocess.run(
            command("penstock", "roles", "--apply"),
            check=True,
            env=os.environ | passwords,
            stdout=subprocess.DEVNULL,
        )


async def prepare() -> None:
    await asyncio.to_thread(set_up)


async def connect() -> None:
    global _client
    _client = await _open.enter_async_context(Client.connect(settings_of("client")))


async def send(index: int) -> None:
    await _client.start("bench.noop", {"index": index})


async def result(index: int) -> int:
    return cast(int, await _client.run("bench.noop", {"index": index}))


async def send_many(first: int, count: int) -> None:
    await submit("bench.noop", first, count, lambda index: {"index": index})


async def limited(first: int, count: int) -> None:
    await submit("bench.limited", first, count, lambda index: {"index": index})


async def spread(first: int, count: int) -> None:
    await submit("bench.spread", first, count, lambda index: {"index": index, "customer": index % CUSTOMERS})


async def submit(ref: str, first: int, count: int, params: Callable[[int], dict[str, Any]]) -> None:
    groups = iter(range(first, first + count, 100))

    async def caller() -> None:
        for start in groups:
            await _client.start_many(ref, [params(i) for i in range(start, min(start + 100, first + count))])

    await asyncio.gather(*(caller() for _ in range(4)))


async def events(first: int, count: int) -> None:
    await crowd(publish, first, count)


async def publish(index: int) -> None:
    await _client.publish("bench.ticked", {"index": index})


async def chain(first: int, count: int) -> None:
    await _client.start(f"bench.chain_{count}", {"first": first})


async def fanout(first: int, count: int) -> None:
    await _client.start("bench.fanout", {"first": first, "after": first + count + 1})


async def wide(first: int, count: int) -> None:
    await fanout(first, count)


async def workflows(first: int, count: int) -> None:
    starts = [{"first": first + 10 * n} for n in range(count)]
    for begin in range(0, count, 100):
        await _client.start_many("bench.chain_10", starts[begin : begin + 100])


async def durable(first: int, count: int) -> None:
    await _client.start("bench.durable", {"first": first, "count": count})


async def durables(first: int, count: int) -> None:
    starts = [{"first": first + 10 * n, "count": 10} for n in range(count)]
    for begin in range(0, count, 100):
        await _client.start_many("bench.durable", starts[begin : begin + 100])


async def doze(first: int, count: int, since: float, seconds: float) -> None:
    """Start `count` durable functions that sleep, and wake one after the other within `seconds` from `since`."""
    await submit(
        "bench.doze", first, count, lambda n: {"index": n, "until": since + seconds * (n - first) / count}
    )


async def close() -> None:
    await _open.aclose()


ORDERS = (
    send,
    result,
    send_many,
    events,
    limited,
    spread,
    chain,
    fanout,
    wide,
    workflows,
    durable,
    durables,
    doze,
)
