"""What changes, as it changes; and after a pause, at another replica."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import httpx
import pytest

from penstock.service.assembly import cancel
from penstock_api import changes
from penstock_api.app import make_app
from penstock_api.backend import Backend
from penstock_api.changes import Watched
from tests.penstock_api.conftest import THEIRS, Api

STREAM = "/api/v1/stream"
Told = list[tuple[str, str | None, dict[str, Any]]]


def told(text: str) -> Told:
    """The events of a stream: name, id, data."""
    found: Told = []
    for block in text.split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.splitlines() if not line.startswith(":"))
        if "event" in fields:
            found.append((fields["event"], fields.get("id"), json.loads(fields["data"])))
    return found


async def test_a_stream_tells_what_moves_and_goes_on_at_another_replica(
    api: Api, call: httpx.AsyncClient
) -> None:
    start = {"action": "shop.count", "parameters": {"words": "a stream"}}
    await api.token("stream of theirs", "viewer", tenants=(THEIRS,))

    async def during(caller: httpx.AsyncClient, **query: Any) -> Told:
        return told((await caller.get(STREAM, params={"seconds": 1.5, **query})).text)

    async def work() -> str:
        await asyncio.sleep(0.4)
        id = (await call.post("/api/v1/executions", json=start)).json()["id"]
        await call.post("/api/v1/executions", json={**start, "tenant": THEIRS})
        return str(id)

    async with api.caller("stream of theirs") as theirs:
        id, seen, one, other, others, turns = await asyncio.gather(
            work(),
            during(call),
            during(call, action="shop.count", tenant="public"),
            during(call, action="shop.charge"),
            during(theirs),
            during(call, turns=True),
        )
    assert {name for name, _, _ in turns} == {"turn"}
    assert None not in {id for _, id, _ in turns}
    mine = [data for name, _, data in seen if name == "changed" and data["id"] == id]
    assert (mine[-1]["status"], mine[-1]["action"], mine[-1]["namespace"]) == (
        "completed",
        "shop.count",
        "public::shop::count",
    )
    assert {data["id"] for _, _, data in one} == {id}
    assert other == []
    assert {data["namespace"] for _, _, data in others} == {f"{THEIRS}::shop::count"}
    # Somebody who heard everything but the last of it goes on elsewhere.
    first = next(id for _, id, _ in seen)
    replica = Backend.of(api.house.client)
    transport = httpx.ASGITransport(make_app(replica))
    headers = {"authorization": f"Bearer {api.secrets['all']}", "last-event-id": str(first)}
    async with httpx.AsyncClient(
        transport=transport, base_url="http://penstock", headers=headers
    ) as elsewhere:
        again = await during(elsewhere, execution=id, seconds=0.5)
    assert [(data["id"], data["status"]) for _, _, data in again][-1:] == [(id, "completed")]
    await replica.changes.close()


async def test_what_was_committed_long_after_it_moved_is_told(api: Api, call: httpx.AsyncClient) -> None:
    house = api.house
    late = await house.client.start("shop.charge", {"order": 1}, delay=3600)

    async def work() -> None:
        await asyncio.sleep(0.3)
        async with house.session.transaction() as tx:
            await tx.fetch("select cancel_executions(array[$1::uuid], 'late')", late)
            for _ in range(4):  # others are first, one look after the other
                await asyncio.sleep(0.3)
                await house.client.start("shop.charge", {"order": 2})

    answer, _ = await asyncio.gather(call.get(STREAM, params={"seconds": 2.5}), work())
    changed = [data for name, _, data in told(answer.text) if name == "changed"]
    # That it was made may be told as well, if somebody was at a statement when the stream began: it was only just before.
    ended = [n for n, data in enumerate(changed) if data["id"] == str(late) and data["status"] != "requested"]
    assert [changed[n]["status"] for n in ended] == ["cancelled"]
    [first] = ended
    assert any(data["status"] == "completed" for data in changed[:first])


@pytest.fixture
def five_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    """Six moves are more than one look can tell, and half a second is the pause after that."""
    monkeypatch.setattr(changes, "MOST", 5)
    monkeypatch.setattr(changes, "PAUSE", 0.5)


async def test_what_moves_while_nobody_looks_after_too_much_is_told(api: Api, five_at_most: None) -> None:
    async def start() -> UUID:
        return await api.house.client.start("shop.charge", {"order": 1}, delay=3600)  # moves once

    flood = asyncio.gather(*(start() for _ in range(20)))
    late: UUID | None = None
    async with asyncio.timeout(30):
        async for turn in api.app.state.backend.changes.watch(Watched(), seconds=60, since=datetime.now(UTC)):
            if late is not None and (turn is None or late in {change.id for change in turn}):
                break
            if turn is None:
                await flood
                late = await start()


async def test_after_too_much_has_moved_less_is_told_one_by_one_again(api: Api, five_at_most: None) -> None:
    async def trickle() -> None:
        """In a pause more than one look can tell, and in a turn less."""
        await api.house.client.start_many("shop.charge", [{"order": n} for n in range(20)])
        while True:
            await api.house.client.start("shop.charge", {"order": 1}, delay=3600)  # moves once
            await asyncio.sleep(0.1)

    moving: asyncio.Task[None] | None = None
    flooded = False
    async with asyncio.timeout(30):
        async for turn in api.app.state.backend.changes.watch(Watched(), seconds=60, since=datetime.now(UTC)):
            moving = moving or asyncio.create_task(trickle())
            if flooded and turn:
                break
            flooded = flooded or (turn is None)
    assert moving is not None
    await cancel(moving)


async def test_where_too_much_moves_who_watches_is_told_to_look(
    api: Api, call: httpx.AsyncClient, five_at_most: None
) -> None:
    async def flood() -> None:
        await asyncio.sleep(0.4)
        await api.house.client.start_many("shop.charge", [{"order": n} for n in range(20)])

    answer, _ = await asyncio.gather(call.get(STREAM, params={"seconds": 1.2}), flood())
    assert "reset" in {name for name, _, _ in told(answer.text)}


async def test_nobody_looks_while_nobody_watches(api: Api) -> None:
    """From the next look on, which may be a while after one that took long."""
    feed = api.app.state.backend.changes
    async with asyncio.timeout(2 * changes.LONGEST):
        while feed.looking:
            await asyncio.sleep(0.05)
