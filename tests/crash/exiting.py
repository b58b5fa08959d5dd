"""An action whose tasks call `sys.exit()`, and an ordinary one."""

from __future__ import annotations

import asyncio
import sys

from penstock import action


async def _exit() -> None:
    await asyncio.sleep(0)
    sys.exit(3)


@action(pack="exiting")
async def gathers() -> None:
    await asyncio.gather(_exit(), asyncio.sleep(0.01))


@action(pack="exiting")
async def works(n: int) -> int:
    return n
