"""Plays one order of a case again, on a PostgreSQL of its own: `python -m tests.interleavings "finish and sweep" 0110`, or
one that was drawn: `python -m tests.interleavings "messages of a join" --seed "7 3" 0.05` (the seed, and the faults).
"""

from __future__ import annotations

import asyncio
import random
import sys

from pydantic import SecretStr

from penstock.settings import Settings
from penstock.store.schema import migrate
from tests.interleavings.cases import CASES, MESSAGES
from tests.interleavings.explore import gated, play, theatre
from tests.servers import choose, databases


async def main(name: str, order: str, seed: str | None = None, faults: str = "0") -> None:
    case = {**CASES, **MESSAGES}[name]
    server = await asyncio.to_thread(choose.private_postgres)
    try:
        template = databases.new_name()
        await migrate.upgrade(Settings(database_url=SecretStr(await databases.create(server, template))))
        async with gated(server, template) as stages, theatre(server, stages, case) as (scene, stage):
            try:
                drawn = None if seed is None else random.Random(f"{name} {seed}")
                await play(scene, stage, case, order, drawn, float(faults))
                print("All ended well.")
            finally:
                for actor in stage.actors:
                    print(
                        f"session {actor.number}:",
                        *(" ".join(s.split())[:100] for s in actor.statements),
                        sep="\n  ",
                    )
                print("order:", "".join(map(str, stage.played)))
    finally:
        server.close()


if __name__ == "__main__":
    if len(sys.argv) < 3 or sys.argv[1] not in {**CASES, **MESSAGES}:
        raise SystemExit(
            f"usage: python -m tests.interleavings CASE (ORDER | --seed SEED [FAULTS])\ncases: "
            f"{', '.join([*CASES, *MESSAGES])}"
        )
    name, *rest = sys.argv[1:]
    asyncio.run(main(name, "", *rest[1:]) if rest[0] == "--seed" else main(name, rest[0]))
