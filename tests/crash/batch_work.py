"""A function with batches that notes each of its calls, for workers that are killed."""

from __future__ import annotations

import asyncio
import os
import signal
from dataclasses import dataclass
from uuid import uuid4

from penstock import Batch, Item, action

CALLS = "BATCH_CALLS"
"""The variable that names the file of the calls: a line has a call, and the execution, attempt and colour of one of its items."""
LOSSES = 1_000_000


@dataclass
class Number:
    """`dies`: the first attempt kills its worker in the call, or so many turns of the event loop after it."""

    n: int
    colour: int = 0
    dies: int | None = None


@action(
    pack="batches",
    batch=Batch(50, within="100ms", by="colour"),
    max_recoveries=LOSSES,
    retry={"max_attempts": 5, "initial_delay": 0.05},
)
async def double(items: list[Item[Number]]) -> list[dict[str, object] | Exception]:
    call = uuid4().hex
    _note(call, items)
    await asyncio.sleep(0.02)
    dying = next(
        (item.input.dies for item in items if item.attempt == 1 and item.input.dies is not None), None
    )
    if dying == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    if dying is not None:
        _kill_after(dying)
    return [
        ConnectionError("not yet")
        if item.input.n % 10 == 3 and item.attempt == 1
        else {"double": 2 * item.input.n, "execution": str(item.execution_id), "call": call}
        for item in items
    ]


@action(pack="batches", batch=Batch(50, within=60), max_recoveries=LOSSES)
async def patient(items: list[Item[Number]]) -> list[int]:
    _note(uuid4().hex, items)
    return [2 * item.input.n for item in items]


def _note(call: str, items: list[Item[Number]]) -> None:
    lines = [f"{call} {item.execution_id} {item.attempt} {item.input.colour}\n" for item in items]
    with open(os.environ[CALLS], "ab", buffering=0) as file:
        file.write("".join(lines).encode())


def _kill_after(turns: int) -> None:
    """Kill this process after so many turns of its event loop: at a step between the call and the commit of its ends."""
    loop = asyncio.get_running_loop()
    if turns:
        loop.call_soon(_kill_after, turns - 1)
    else:
        os.kill(os.getpid(), signal.SIGKILL)


ALL = (double, patient)
