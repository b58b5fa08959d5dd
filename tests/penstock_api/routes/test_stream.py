"""The changes, as they happen, and after a pause at another replica."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import httpx
import pytest

from penstock.service.assembly import cancel
from penstock.store.executions import changes as moves
from penstock.store.session.database import Session
from penstock_api.app import make_app
from penstock_api.backend import Backend
from penstock_api.live import changes
from penstock_api.live.changes import Watched
from tests.penstock_api.conftest import THEIRS, Api
from tests.penstock_api.serving import serving


class Heard:
    """The events of a stream so far: names, ids, data."""

    def __init__(self) -> None:
        self.told: list[tuple[str, str | None, dict[str, Any]]] = []
        self.watching = False
        self._more = asyncio.Event()

    async def read(self, answer: httpx.Response) -> None:
        fields: dict[str, str] = {}
        async for line in answer.aiter_lines():
            name, _, value = line.partition(": ")
            if line == ": watching":
                self.watching = True
            elif line:
                fields[name] = value
                continue
            elif "event" in fields:
                self.told.append((fields["event"], fields.get("id"), json.loads(fields["data"])))
            fields = {}
            self._more.set()

    async def until(self, enough: Callable[[Heard], Any]) -> None:
        async with asyncio.timeout(30):
            while not enough(self):
                self._more.clear()
                await self._more.wait()

    async def until_ended(self, id: UUID) -> None:
        await self.until(lambda heard: heard.ends(id))

    @property
    def names(self) -> set[str]:
        return {name for name, _, _ in self.told}

    def ends(self, id: UUID) -> list[str]:
        """Count the announced ends of this execution."""
        found = [data["status"] for name, _, data in self.told if name == "changed" and data["id"] == str(id)]
        return [status for status in found if status in ("completed", "cancelled")]


@asynccontextmanager
async def listening(
    api: Api, to: str, who: str = "all", after: str = "", **query: Any
) -> AsyncIterator[Heard]:
    """Watch the stream of events, from its first event or after the event with the id `after`."""
    heard = Heard()
    headers = {"authorization": f"Bearer {api.secrets[who]}", **({"last-event-id": after} if after else {})}
    async with httpx.AsyncClient(base_url=to, headers=headers, timeout=30) as client:
        async with client.stream("GET", "/api/v1/stream", params={"seconds": 60, **query}) as answer:
            assert answer.status_code == 200
            reading = asyncio.create_task(heard.read(answer))
            try:
                await heard.until(lambda heard: heard.watching)
                yield heard
            finally:
                await cancel(reading)


@pytest.fixture
async def address(api: Api) -> AsyncIterator[str]:
    async with serving(api.app) as found:
        yield found


async def test_a_stream_sends_moves_and_goes_on_at_another_replica(api: Api, address: str) -> None:
    await api.token("stream of theirs", "viewer", tenants=(THEIRS,))
    start = api.house.client.start
    async with (
        listening(api, address) as seen,
        listening(api, address, action="shop.count", tenant="public") as one,
        listening(api, address, action="shop.charge") as other,
        listening(api, address, "stream of theirs") as others,
        listening(api, address, turns=True) as turns,
    ):
        id = await start("shop.count", {"words": "a stream"})
        theirs = await start("shop.count", {"words": "a stream"}, tenant=THEIRS)
        await seen.until_ended(id)
        await seen.until_ended(theirs)
        last = await start("shop.charge", {"order": 1})
        for heard in (seen, other):
            await heard.until_ended(last)
        await one.until_ended(id)
        await others.until_ended(theirs)
        await turns.until(lambda turns: turns.told)
    assert turns.names == {"turn"}
    assert None not in {id for _, id, _ in turns.told}
    mine = [data for _, _, data in seen.told if data["id"] == str(id)]
    assert (mine[-1]["status"], mine[-1]["action"], mine[-1]["namespace"]) == (
        "completed",
        "shop.count",
        "public::shop::count",
    )
    assert {data["id"] for _, _, data in one.told} == {str(id)}
    assert {data["id"] for _, _, data in other.told} == {str(last)}
    assert {data["namespace"] for _, _, data in others.told} == {f"{THEIRS}::shop::count"}
    # A client that heard everything but the last of it goes on elsewhere.
    replica = Backend.of(api.house.client)
    async with serving(make_app(replica)) as elsewhere:
        first = next(id for _, id, _ in seen.told)
        async with listening(api, elsewhere, after=str(first), execution=id) as again:
            await again.until_ended(id)
        await replica.changes.close()
    assert {data["id"] for _, _, data in again.told} == {str(id)}


async def test_a_move_committed_long_after_its_instant_is_sent(
    api: Api, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(changes, "OVERLAP", timedelta(seconds=30))  # this machine may be busy
    house = api.house
    late = await house.client.start("shop.charge", {"order": 1}, delay=3600)
    async with listening(api, address) as heard:
        async with house.session.transaction() as tx:
            await tx.fetch("select moved from cancel_executions(array[$1::uuid], 'late')", late)
            for _ in range(4):  # others are first, one look after the other
                id = await house.client.start("shop.charge", {"order": 2})
                await heard.until_ended(id)
            assert not heard.ends(late)
        await heard.until_ended(late)
        id = await house.client.start("shop.charge", {"order": 3})
        await heard.until_ended(id)
    assert heard.ends(late) == ["cancelled"]


@pytest.fixture
def five_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    """Six moves are more than one look can tell, and half a second is the pause after that."""
    monkeypatch.setattr(changes, "MOST", 5)
    monkeypatch.setattr(changes, "PAUSE", 0.5)


async def test_a_move_without_a_watcher_after_a_flood_is_sent(api: Api, five_at_most: None) -> None:
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


async def test_a_flood_of_moves_resets_the_watchers(api: Api, address: str, five_at_most: None) -> None:
    async with listening(api, address) as heard:
        await api.house.client.start_many("shop.charge", [{"order": n} for n in range(20)])
        await heard.until(lambda heard: "reset" in heard.names)


async def test_a_move_after_the_watch_has_begun_is_sent(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    """Though the first look at what moves was slow."""
    feed = Backend.of(api.house.client).changes
    settled, may_look = moves.settled, asyncio.Event()

    async def slow(session: Session, most: float) -> datetime:
        await may_look.wait()
        return await settled(session, most)

    monkeypatch.setattr(moves, "settled", slow)
    watching = feed.watch(Watched(), seconds=60)
    begun = asyncio.ensure_future(anext(watching))
    await asyncio.wait([begun], timeout=0.1)
    assert not begun.done()
    may_look.set()
    async with asyncio.timeout(30):
        assert await begun == []
        id = await api.house.client.start("shop.charge", {"order": 1}, delay=3600)
        while id not in {change.id for change in await anext(watching) or ()}:
            pass
    await watching.aclose()
    await feed.close()


async def test_the_feed_does_not_look_without_a_watcher(api: Api) -> None:
    """From the next look on, which may be a while after one that took long."""
    feed = api.app.state.backend.changes
    async with asyncio.timeout(30):
        while feed.looking:
            await asyncio.sleep(0.05)
