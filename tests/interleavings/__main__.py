"""Plays one order of a case again, on a PostgreSQL of its own: `python -m tests.interleavings "finish and sweep" 0110`."""

from __future__ import annotations

import asyncio
import sys

from pydantic import SecretStr

from penstock import migrate
from penstock.settings import Settings
from tests.interleavings.cases import CASES
from tests.interleavings.explore import play, theatre
from tests.servers import choose, databases


async def main(name: str, order: str) -> None:
    server = await asyncio.to_thread(choose.private_postgres)
    try:
        template = databases.new_name()
        await migrate.upgrade(Settings(database_url=SecretStr(await databases.create(server, template))))
        async with theatre(server, template, CASES[name]) as (scene, stage):
            try:
                await play(scene, stage, CASES[name], order)
                print("All ended well.")
            finally:
                for who in stage.actors:
                    print(
                        f"session {who.number}:",
                        *(" ".join(s.split())[:100] for s in who.statements),
                        sep="\n  ",
                    )
                print("order:", "".join(map(str, stage.played)))
    finally:
        server.close()


if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[1] not in CASES:
        raise SystemExit(f"usage: python -m tests.interleavings CASE ORDER\ncases: {', '.join(CASES)}")
    asyncio.run(main(*sys.argv[1:]))
