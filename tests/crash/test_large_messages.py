"""Large messages from outside do not fill an executor's memory, however many wait when it starts."""

from __future__ import annotations

import re
from pathlib import Path

import orjson

from penstock.language.terms.ids import new_id
from penstock.messaging.transports import Message
from penstock.store.outbox.queues import EVENT_RECEIVED
from tests.crash.processes import Fleet
from tests.flows import shop
from tests.flows.installation import Installation

COUNT, SIZE = 32, 10_000_000
MOST = 300_000_000
"""Bytes that the executor's memory may take at its peak. What waits is more than that."""


def peak(process: int) -> int:
    """The most bytes of memory that a process ever had."""
    match = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{process}/status").read_text())
    assert match is not None
    return int(match[1]) * 1024


async def test_an_executor_stays_small_while_large_messages_wait(
    house: Installation, database: str, broker: str | None, tmp_path: Path
) -> None:
    await house.apply(*shop.ALL)
    parts = await house.parts()
    for number in range(COUNT):
        body = orjson.dumps({"number": number, "blob": "x" * SIZE})
        sent = Message(EVENT_RECEIVED, body, str(new_id()), "shop.order_placed")
        assert await parts.transport.publish([sent]) == [True]
    with Fleet(database, broker, tmp_path / "log", lease=60.0) as fleet:
        executor = fleet.executor()
        await house.until("select from dead_letter having sum(count) >= $1", COUNT, seconds=120)
        used = peak(executor.pid)
    print(f"{COUNT} messages of {SIZE / 1e6:.0f} MB: {used / 1e6:.0f} MB at the peak")
    assert used < MOST, used
