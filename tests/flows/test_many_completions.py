"""Many completions from outside at once: doubled, contradicting, forged, early, late, and beside a cancel or a timeout."""

from __future__ import annotations

import asyncio
import os
import random
from collections import Counter
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

import httpx
import pytest

from tests.flows.installation import Installation
from tests.flows.test_from_outside import api, begin

pytestmark = pytest.mark.either_transport

COMPLETIONS = int(os.environ.get("PENSTOCK_TEST_COMPLETIONS", "66"))
"""The executions that wait for something outside. 1,000 take some minutes."""
AT_ONCE = 25
SHORT_S = 1.0
"""The timeout of the waits that time out, and about when their completion comes."""
ADDRESSES = """
select f.parent, v.payload ->> 'address' as address from event v join effect f on f.id = v.id
"""
ENDS = """
select e.id, e.status, r.result::text as result, r.error ->> 'message' as message
from execution e left join result r on r.execution_id = e.id
"""
KINDS = (
    "doubled", "rivals", "forged", "failed", "progress", "early",
    "cancelled", "beside a cancel", "timed out", "beside its timeout", "never",
)  # fmt: skip


class Caller:
    """An outside system. It keeps the answers to what it sent of each execution."""

    def __init__(self, apis: Sequence[httpx.AsyncClient], draw: random.Random) -> None:
        self.apis, self.draw = apis, draw

    async def send(self, path: str, body: dict[str, Any]) -> str:
        """Return the effect of a report, or the status that refused it."""
        answer = await self.draw.choice(self.apis).post(path, json=body)
        return str(answer.json()["effect"] if answer.status_code == 200 else answer.status_code)

    async def together(self, path: str, bodies: Sequence[dict[str, Any]]) -> list[str]:
        return await asyncio.gather(*(self.send(path, body) for body in bodies))


async def report(house: Installation, caller: Caller, kind: str, n: int) -> tuple[UUID, set[str]]:
    """Start an execution, report its end as `kind` says, and return its id and the ends that it may have."""
    parameters = {"timeout": SHORT_S} if "time" in kind else {}
    if kind == "early":
        id = await house.client.start("outside.is_slow", {"seconds": 1.0})
    else:
        id = await house.client.start("outside.waits", parameters)
    [row] = await house.until(f"{ADDRESSES} where f.parent = $1", id)
    path, done = str(urlsplit(row["address"]).path), {"result": n}
    if kind == "doubled":
        effects = await caller.together(path, [done] * 4)
        assert Counter(effects) == {"settled": 1, "same": 3}
        return id, {str(n)}
    if kind == "rivals":
        values = [n, n + 1_000_000, n + 2_000_000]
        effects = await caller.together(path, [{"result": value} for value in values])
        assert Counter(effects) == {"settled": 1, "409": 2}
        return id, {str(values[effects.index("settled")])}
    if kind == "forged":
        # The last character may have bits that mean nothing.
        at = caller.draw.randrange(len("/callbacks/"), len(path) - 1)
        changed = path[:at] + ("B" if path[at] == "A" else "A") + path[at + 1 :]
        others = [changed, f"{path[:-30]}{'A' * 30}", f"{path}AAAA", path[:-4]]
        for address in others:
            assert await caller.send(address, {"result": -1}) == "404"
        assert await caller.send(path, done) == "settled"
        return id, {str(n)}
    if kind == "failed":
        effects = await caller.together(path, [{"error": f"broke {n}"}] * 3)
        assert Counter(effects) == {"settled": 1, "same": 2}
        assert await caller.send(path, done) == "409"
        return id, {f"failed: broke {n}"}
    if kind == "progress":
        notes = await caller.together(path, [{"progress": share / 10} for share in range(5)])
        assert set(notes) == {"noted"}
        effects = await caller.together(path, [done, {"heartbeat": True}, {"progress": 0.9}])
        assert effects[0] == "settled"
        assert set(effects[1:]) <= {"noted", "409"}
        return id, {str(n)}
    if kind == "early":
        effects = await caller.together(path, [done] * 3)
        assert effects.count("same") == 2
        # On a slow machine it waits already when the first report comes.
        assert effects.count("kept") + effects.count("settled") == 1
        assert await caller.send(path, {"result": -1}) == "409"
        return id, {str(n)}
    return id, await _beside_its_end(house, caller, kind, n, id, path)


async def _beside_its_end(
    house: Installation, caller: Caller, kind: str, n: int, id: UUID, path: str
) -> set[str]:
    """Report the end of an execution that ends otherwise, and return the ends that it may have."""
    done = {"result": n}
    ended = "select 1 from execution where id = $1 and finished_at is not null"
    if kind in ("cancelled", "timed out", "never"):
        if kind != "timed out":
            await house.client.cancel(id)
        await house.until(ended, id)
        if kind == "never":
            return {"cancelled"}
        assert await caller.together(path, [done, done, {"error": "late"}]) == ["409"] * 3
        return {"cancelled" if kind == "cancelled" else "timeout"}
    if kind == "beside a cancel":
        cancels: asyncio.Task[Any] = asyncio.create_task(house.client.cancel(id))
        await asyncio.sleep(caller.draw.uniform(0, 0.02))
    else:
        cancels = asyncio.create_task(asyncio.sleep(0))
        await asyncio.sleep(caller.draw.uniform(0, 1.5 * SHORT_S))
    effects = Counter(await caller.together(path, [done] * 2))
    await cancels
    if effects["settled"]:
        assert effects == {"settled": 1, "same": 1}
        return {str(n)}
    assert effects == {"409": 2}
    return {"cancelled" if kind == "beside a cancel" else "timeout"}


async def test_each_of_many_completions_is_right(house: Installation) -> None:
    """Two API servers, and 25 executions at a time. Each answer fits the end that is stored, and `settled` is said once."""
    draw = random.Random(5)
    kinds = [KINDS[n % len(KINDS)] for n in range(COMPLETIONS)]
    draw.shuffle(kinds)
    await begin(house)
    await house.executor()
    expected: dict[UUID, set[str]] = {}
    room = asyncio.Semaphore(AT_ONCE)

    async def one(kind: str, n: int) -> None:
        async with room:
            id, ends = await report(house, caller, kind, n)
            expected[id] = ends

    async with api(house) as first, api(house) as second:
        caller = Caller((first, second), draw)
        await asyncio.gather(*(one(kind, n) for n, kind in enumerate(kinds)))
        await house.quiet(seconds=60)
    assert len(expected) == COMPLETIONS
    for row in await house.rows(ENDS):
        end = {"completed": row["result"], "failed": f"failed: {row['message']}"}.get(row["status"])
        assert (end or row["status"]) in expected.pop(row["id"])
    assert not expected, "an execution is there for each"
    await house.sound()
