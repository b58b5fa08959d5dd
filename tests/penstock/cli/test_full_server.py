"""A PostgreSQL that has no room for one more session: a command does its work, or says what is wrong, and ends."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator

import pytest

from tests.flows import shop
from tests.flows.installation import QUICK, Installation
from tests.servers import databases

NEEDED = {"rabbitmq": 1, "postgres": 2}
"""One for all that a command does, and one that listens."""


@pytest.fixture
async def crowded(
    database: str, broker: str | None, transport: str, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Installation]:
    """An installation in whose database the user of commands is refused one session more than the fewest it can do with."""
    async with Installation(database, broker) as house, databases.limited(database, NEEDED[transport]) as url:
        await house.apply(*shop.ALL)
        await house.executor()  # whose queues take the message, so that there is something to delete
        monkeypatch.setenv("PENSTOCK_DATABASE_URL", url)
        if broker is None:
            monkeypatch.delenv("PENSTOCK_BROKER_URL", raising=False)
        else:
            monkeypatch.setenv("PENSTOCK_BROKER_URL", broker)
            monkeypatch.setenv("PENSTOCK_DELIVERY_LIMIT", str(QUICK["delivery_limit"]))
        yield house


async def test_an_event_is_published_though_its_message_cannot_be_deleted(crowded: Installation) -> None:
    command = [sys.executable, "-m", "penstock", "publish", "shop.order_placed", "id=7", "--json"]
    # An end that it comes to, however late; before, it came to none.
    said = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True, timeout=60)
    assert said.returncode == 0, said
    [row] = await crowded.rows("select id from event")
    assert json.loads(said.stdout) == {"id": str(row["id"])}
