"""The client process of one system: orders on standard input, answers on standard output, as JSON lines.

Run as `python -m bench.client SYSTEM`, by the harness, with the Python that has the system installed.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import os
import sys
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Protocol, cast

import uvloop

ORDERS = (
    "send",
    "send_many",
    "callers",
    "events",
    "limited",
    "spread",
    "chain",
    "fanout",
    "wide",
    "workflows",
)


class SystemModule(Protocol):
    """What a module of `bench.systems` holds.

    It may also hold, each with the arguments (first, count):
    `send_many`: no-ops in the way that the system has for many;
    `callers`: no-ops from 100 callers at once, each of which submits one and waits until it is durable;
    `events`: events that each start a no-op;
    `limited`: as `send_many`, under a limit of 100 at once;
    `spread`: as `send_many`, under a limit of 100 for each of 1,000 values of a parameter;
    `chain`: no-ops one after the other;
    `fanout`: one no-op, `count` at once, and one more when all of them are done;
    `wide`: as `fanout`, if it can do 50,000 at once;
    `workflows`: `count` workflows at once, each of 10 no-ops one after the other.
    All of these return when the client may forget the work.
    """

    VERSION: str
    PROCESSES: Mapping[str, Sequence[Sequence[str]]]
    """The command lines of its processes, by process group."""
    RECORDED: str | None
    """SQL for (index, epoch seconds at which the end was committed) of the tasks in [$1, $2)."""

    async def prepare(self) -> None:
        """Before any of its processes starts: the tables, the queues."""

    async def connect(self) -> None:
        """Be ready to send."""

    async def send(self, index: int) -> None:
        """Submit one no-op, durably."""

    async def close(self) -> None:
        """Give everything back."""


async def pace(send: Callable[[int], Awaitable[None]], first: int, count: int, rate: float) -> list[float]:
    """Submit one by one at `rate` a second. Returns the time just before each of them."""
    sent = [0.0] * count

    async def one(offset: int) -> None:
        sent[offset] = time.time()
        await send(first + offset)

    began, tasks = time.monotonic(), []
    for offset in range(count):
        await asyncio.sleep(max(0.0, began + offset / rate - time.monotonic()))
        tasks.append(asyncio.create_task(one(offset)))
    await asyncio.gather(*tasks)
    return sent


async def obey(system: SystemModule, order: str, arguments: dict[str, Any]) -> object:
    """Carry out one order."""
    if order == "describe":
        return {
            "version": system.VERSION,
            "processes": system.PROCESSES,
            "recorded": system.RECORDED,
            "orders": [name for name in ORDERS if hasattr(system, name)],
        }
    if order == "pace":
        return await pace(system.send, **arguments)
    return await getattr(system, order)(**arguments)


async def serve(name: str) -> None:
    """Answer orders until standard input ends. What the system prints goes to standard error."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    system = cast(SystemModule, importlib.import_module(f"bench.systems.{name}"))
    while line := await asyncio.to_thread(sys.stdin.readline):
        order: dict[str, Any] = json.loads(line)
        began = time.time()
        given = await obey(system, order.pop("order"), order)
        print(json.dumps({"began": began, "given": given}), file=answers, flush=True)


if __name__ == "__main__":
    uvloop.run(serve(sys.argv[1]))
