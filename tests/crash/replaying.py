"""A process that replays all dead letters once it reads a line, and may be killed in between."""

from __future__ import annotations

import asyncio
import sys

from pydantic import SecretStr

from penstock.client import dead_letters
from penstock.client.client import Client
from penstock.settings import Settings
from penstock.store.outbox.dead_letters import LetterFilter


async def replay(database: str) -> None:
    dead_letters.BATCH = 3  # many transactions, between and in which it can end
    async with Client.connect(Settings(database_url=SecretStr(database))) as client:
        await client.session.fetch("select 1")
        print("ready", flush=True)
        await asyncio.to_thread(sys.stdin.readline)
        async for _ in dead_letters.replay(client, LetterFilter()):
            pass


if __name__ == "__main__":
    asyncio.run(replay(sys.argv[1]))
