"""The client process of one system: orders on standard input, answers on standard output, as JSON lines.

Run as `python -m bench.client SYSTEM`, by the harness, with the Python that has the system installed. The client of a
system of Node.js is its own module, which takes the same orders.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import os
import sys
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Protocol, cast

import uvloop

KNOWN = (
    "send", "result", "send_many", "events", "limited", "spread", "chain", "fanout", "wide", "workflows", "recorded",
    "durable", "durables", "doze",
)  # fmt: skip
CALLERS = 100

Order = Callable[..., Awaitable[Any]]


class SystemModule(Protocol):
    """The members of a module of `bench.systems`."""

    VERSION: str
    PROCESSES: Mapping[str, Sequence[Sequence[str]]]
    """The command lines of its processes, by process group. They are started in this order after `prepare`."""
    RECORDED: str | None
    """SQL for (index, epoch seconds at which the end was committed) of the tasks in [$1, $2). None where PostgreSQL does
    not know."""
    ORDERS: Sequence[Order]
    """What it can do, beside `prepare`, `connect` and `close`; nothing else of the module is called. By their names:

    `send(index)`: submit one no-op, durably;
    `result(index)`: submit one and wait for its result;
    `recorded(first, count)`: as RECORDED, asked of the system itself;
    `durable(first, count)`: start a durable function of `count` steps, one after the other;
    `durables(first, count)`: start `count` of them, of 10 steps each;
    and with the arguments (first, count), returning when the client may forget the work:
    `send_many`: no-ops in the way that the system has for many;
    `events`: events that each start a no-op;
    `limited`: as `send_many`, under a limit of 100 at once;
    `spread`: as `send_many`, under a limit of 100 for each of 1,000 values of a parameter;
    `chain`: no-ops one after the other;
    `fanout`: one no-op, `count` at once, and one more when all of them are done;
    `wide`: as `fanout`, if it can do 50,000 at once;
    `doze`: `count` durable functions that sleep; also with `since` (epoch seconds) and `seconds`, in which they wake;
    `workflows`: `count` workflows at once, each of 10 no-ops one after the other.
    """

    async def prepare(self) -> None:
        """Before any of its processes starts: the tables, the queues."""

    async def connect(self) -> None:
        """Be ready to send: wait for what its processes have to do first."""

    async def close(self) -> None:
        """Give everything back."""


async def crowd(call: Order, first: int, count: int) -> list[float]:
    """100 callers at once, each of which makes one call after the other. Gives the seconds that each call took."""
    indexes, latencies = iter(range(first, first + count)), [0.0] * count

    async def caller() -> None:
        for index in indexes:
            began = time.monotonic()
            await call(index)
            latencies[index - first] = time.monotonic() - began

    await asyncio.gather(*(caller() for _ in range(CALLERS)))
    return latencies


async def pace(call: Order, firsts: Iterable[int], rate: float) -> dict[str, list[float]]:
    """Make one call after the other at `rate` a second, whether those before it have returned or not. Gives the times
    just before each of them (`sent`) and just after (`done`)."""
    sent: list[float] = []
    done: list[float] = []

    async def one(offset: int, first: int) -> None:
        sent[offset] = time.time()
        await call(first)
        done[offset] = time.time()

    began, tasks = time.monotonic(), []
    for offset, first in enumerate(firsts):
        sent.append(0.0)
        done.append(0.0)
        await asyncio.sleep(max(0.0, began + offset / rate - time.monotonic()))
        tasks.append(asyncio.create_task(one(offset, first)))
    await asyncio.gather(*tasks)
    return {"sent": sent, "done": done}


def orders_of(system: SystemModule) -> dict[str, Order]:
    """Return the orders of a system by name: its own, and those that combine them."""
    own = {order.__name__: order for order in system.ORDERS}
    if unknown := own.keys() - set(KNOWN):
        raise TypeError(f"no such orders: {', '.join(sorted(unknown))}")

    async def paced(call: str, first: int, count: int, rate: float, steps: int = 0) -> dict[str, list[float]]:
        """`call`, `count` times at a rate; with `steps`, each with so many of the indexes."""
        order = partial(own[call], count=steps) if steps else own[call]
        return await pace(order, range(first, first + count * (steps or 1), steps or 1), rate)

    derived: dict[str, Order] = {"pace": paced}
    if "send" in own:
        derived["callers"] = partial(crowd, own["send"])
    if "result" in own:
        derived["results"] = partial(crowd, own["result"])
    return own | derived


async def obey(system: SystemModule, order: str, arguments: dict[str, Any]) -> object:
    """Carry out one order."""
    orders = orders_of(system)
    if order == "describe":
        return {
            "version": system.VERSION,
            "processes": system.PROCESSES,
            "recorded": system.RECORDED,
            "orders": list(orders),
        }
    if order in ("prepare", "connect", "close"):
        return await getattr(system, order)()
    return await orders[order](**arguments)


async def serve(name: str) -> None:
    """Answer orders until standard input ends. What the system prints goes to standard error."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    system = cast(SystemModule, importlib.import_module(f"bench.systems.{name}"))
    while line := await asyncio.to_thread(sys.stdin.readline):
        order: dict[str, Any] = json.loads(line)
        began = time.time()
        result = await obey(system, order.pop("order"), order)
        print(json.dumps({"began": began, "given": result}), file=answers, flush=True)


if __name__ == "__main__":
    uvloop.run(serve(sys.argv[1]))
