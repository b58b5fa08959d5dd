"""Restate: one server on its own log (synced before an append is acknowledged, 24 partitions, as by default), and a service of
two processes under Granian. It has no part in PostgreSQL.

A no-op is one call of a handler through the ingress. A step of a chain or fan-out is a `ctx.run` within one handler; in the
rows of calls it is a call of another handler.
"""

from __future__ import annotations

import asyncio
import os
from importlib.metadata import version
from typing import Any

import aiohttp
import restate

from bench.client import crowd
from bench.marks import noop
from bench.systems import CALLS, NODE_FOLDER, TRANSPORT, command, folder, port

INGRESS, ADMIN, NODE, SERVICE = (port(number) for number in range(4))
LOCAL = "127.0.0.1"
SETTINGS = {
    "INGRESS__BIND_ADDRESS": f"{LOCAL}:{INGRESS}",
    "ADMIN__BIND_ADDRESS": f"{LOCAL}:{ADMIN}",
    "BIND_ADDRESS": f"{LOCAL}:{NODE}",
    "ADVERTISED_ADDRESS": f"http://{LOCAL}:{NODE}",
    "LISTEN_MODE": "tcp",
    "DISABLE_TELEMETRY": "true",
    "LOG_FILTER": "warn",
}
[BINARY] = NODE_FOLDER.glob("node_modules/@restatedev/restate-server-*/bin/restate-server")
SERVER = [
    "env",
    *(f"RESTATE_{name}={value}" for name, value in SETTINGS.items()),
    *(str(BINARY), "--no-logo", "--base-dir", str(folder()), "--node-name", "bench"),
]
GRANIAN = command(
    "granian", "--interface", "asgi", "--http", "2", "--host", LOCAL, "--port", str(SERVICE), "--workers", "2",
    "--log-level", "warning", "bench.systems.restate:app",
)  # fmt: skip
PROCESSES = {"server": [SERVER], "worker": [GRANIAN]}
VERSION = f"Python {version('restate-sdk')}"
RECORDED = None
PATIENCE = 120
"""Times to try to register the service, half a second apart."""

bench = restate.Service("bench")


@bench.handler("noop")
async def run_noop(ctx: restate.Context, index: int) -> int:
    return noop(index)


async def step(ctx: restate.Context, index: int) -> int:
    return await ctx.run_typed("step", noop, restate.RunOptions(), index)


async def call(ctx: restate.Context, index: int) -> int:
    return await ctx.service_call(run_noop, index)


STEP = call if os.environ[TRANSPORT] == CALLS else step


@bench.handler("chain")
async def run_chain(ctx: restate.Context, of: list[int]) -> None:
    first, count = of
    for index in range(first, first + count):
        await STEP(ctx, index)


@bench.handler("fanout")
async def run_fanout(ctx: restate.Context, of: list[int]) -> None:
    first, count = of
    await STEP(ctx, first)
    if STEP is call:
        await restate.gather(*(ctx.service_call(run_noop, first + 1 + k) for k in range(count)))
    else:
        options: restate.RunOptions[int] = restate.RunOptions()
        await restate.gather(*(ctx.run_typed("step", noop, options, first + 1 + k) for k in range(count)))
    await STEP(ctx, first + 1 + count)


app = restate.app([bench])

_http: aiohttp.ClientSession


async def prepare() -> None:
    pass


async def connect() -> None:
    """Register the service, once both it and the server answer."""
    global _http
    _http = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0))
    deployment = {"uri": f"http://{LOCAL}:{SERVICE}"}
    for _ in range(PATIENCE):
        try:
            async with _http.post(f"http://{LOCAL}:{ADMIN}/deployments", json=deployment) as answer:
                if answer.ok:
                    return
        except aiohttp.ClientError:
            pass
        await asyncio.sleep(0.5)
    raise TimeoutError("the service is not registered")


async def asked(path: str, body: object) -> Any:
    async with _http.post(f"http://{LOCAL}:{INGRESS}/bench/{path}", json=body) as answer:
        answer.raise_for_status()
        return await answer.json()


async def send(index: int) -> None:
    _sent[(await asked("noop/send", index))["invocationId"]] = index


async def result(index: int) -> int:
    return int(await asked("noop", index))


async def send_many(first: int, count: int) -> None:
    await crowd(send, first, count)  # there is no call that sends many


async def chain(first: int, count: int) -> None:
    await asked("chain/send", [first, count])


async def durable(first: int, count: int) -> None:
    """Run a chain as steps of one function."""
    await chain(first, count)


async def fanout(first: int, count: int) -> None:
    await asked("fanout/send", [first, count])


_sent: dict[str, int] = {}
"""Indexes by invocation."""
COMPLETED = """
select id, cast(completed_at as bigint) as ms from sys_invocation_status
where target_handler_name = 'noop' and status = 'completed'
"""


async def recorded(first: int, count: int) -> list[tuple[int, float]]:
    """In whole milliseconds, rounded down, and taken before the append is synced: early by one or so."""
    headers = {"accept": "application/json"}
    async with _http.post(
        f"http://{LOCAL}:{ADMIN}/query", json={"query": COMPLETED}, headers=headers
    ) as answer:
        answer.raise_for_status()
        rows = (await answer.json())["rows"]
    times = [(_sent.get(row["id"], -1), row["ms"] / 1000) for row in rows]
    return [(index, at) for index, at in times if first <= index < first + count]


async def close() -> None:
    await _http.close()


ORDERS = (send, result, send_many, chain, fanout, recorded, durable)
