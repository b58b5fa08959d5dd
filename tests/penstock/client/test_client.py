"""The values that a program gives to the client: refused with a remedy, and never stored where they would do harm."""

from __future__ import annotations

import secrets
import time
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from penstock import Trigger
from penstock.errors import Conflict, InvalidInput, NotFound
from penstock.language.terms import ids
from penstock.language.terms.ids import made_at, new_id
from penstock.store.events import events
from penstock.store.events.events import NewEvent
from penstock.store.session.database import retried
from tests.flows import shop
from tests.flows.installation import Installation

WRONG = ("", "a\0b", "\ud800", "x" * 1001)
WRONG_TENANTS = (*WRONG, "a::b", "*", "A", "a.b")


@pytest.mark.parametrize("transport", ["postgres"], indirect=True)
async def test_names_that_cannot_be_kept_are_refused(house: Installation) -> None:
    await house.apply(*shop.ALL)
    publish, start = house.client.publish, house.client.start
    for wrong in WRONG:
        with pytest.raises(InvalidInput, match="the key"):
            await publish("shop.order_placed", {"id": 1}, key=wrong)
        with pytest.raises(InvalidInput, match="the source"):
            await publish("shop.order_placed", {"id": 1}, source=wrong)
        with pytest.raises(InvalidInput, match="the key"):
            await start("shop.charge", {"order": 1}, key=wrong)
    for wrong in WRONG_TENANTS:
        with pytest.raises(InvalidInput, match="tenant"):
            await publish("shop.order_placed", {"id": 1}, tenant=wrong)
        with pytest.raises(InvalidInput, match="tenant"):
            await start("shop.charge", {"order": 1}, tenant=wrong)
        with pytest.raises(InvalidInput, match="tenant"):
            await house.client.start_many("shop.charge", [{"order": 1}], tenant=wrong)
    assert not await house.rows(
        "select from event union all select from execution union all select from event_key"
    )


@pytest.mark.parametrize("transport", ["postgres"], indirect=True)
async def test_the_longest_names_that_are_taken_can_be_kept(house: Installation) -> None:
    """Even where no two bytes of them are alike: an index has to hold them."""
    long = Trigger(f"{'p' * 64}.{'t' * 64}")
    await house.apply(*shop.ALL, long)
    key, source, tenant = secrets.token_hex(500), secrets.token_hex(500), "t" * 63
    event = await house.client.publish(long.ref, {}, key=key, source=source, tenant=tenant)
    assert await house.client.publish(long.ref, {}, key=key, source=source, tenant=tenant) == event
    id = await house.client.start("shop.charge", {"order": 1}, key=key, tenant=tenant)
    assert await house.client.start("shop.charge", {"order": 1}, key=key, tenant=tenant) == id


@pytest.mark.parametrize("transport", ["postgres"], indirect=True)
async def test_a_nul_anywhere_else_is_an_error_of_ours(house: Installation) -> None:
    """The session reports the refusal of PostgreSQL in our words if no check stands before it."""
    await house.apply(*shop.ALL)
    id = await house.client.start("shop.charge", {"order": 1})
    ours = (InvalidInput, NotFound, Conflict)
    with pytest.raises(ours):
        await house.client.publish("shop.\0", {})
    with pytest.raises(ours):
        await house.client.start("shop.\0", {})
    with pytest.raises(ours):
        await house.client.answer(id, "yes", by="a\0b")
    with pytest.raises(ours):
        await house.client.rerun(id, by="a\0b")
    with pytest.raises(ours):
        await house.client.cancel(id, reason="a\0b")


@pytest.mark.parametrize("transport", ["postgres"], indirect=True)
@pytest.mark.parametrize("off", [timedelta(days=3), timedelta(days=-3)])
async def test_ids_of_a_wrong_clock_are_made_anew_by_the_databases(
    house: Installation, monkeypatch: pytest.MonkeyPatch, off: timedelta
) -> None:
    await house.start(*shop.ALL)
    right = await house.client.start("shop.charge", {"order": 0})
    await house.client.result(right, timeout=20)
    monkeypatch.setattr(ids, "_state", (0, 0))
    monkeypatch.setattr(ids, "_ahead", 0)
    real = time.time_ns
    with monkeypatch.context() as wrong:
        wrong.setattr(time, "time_ns", lambda: real() + int(off.total_seconds()) * 10**9)
        assert near(made_at(new_id()), datetime.now(UTC) + off)
        made: list[Any] = [
            await house.client.start("shop.charge", {"order": 1}, key="one"),
            *await house.client.start_many("shop.charge", [{"order": 2}, {"order": 3}]),
            await house.client.publish("shop.order_placed", {"id": 1}, key="one"),
        ]
        assert await house.client.start("shop.charge", {"order": 1}, key="one") == made[0]
        wrong.setattr(ids, "_ahead", 0)
        made.append(await house.client.rerun(right, by="ada"))
    assert made == sorted(made)
    assert all(near(made_at(UUID(str(id))), datetime.now(UTC)) for id in made)
    stored = await house.rows("select id from execution union all select id from event")
    assert {row["id"] for row in stored} >= set(made)
    assert len(stored) == 6


@pytest.mark.parametrize("transport", ["postgres"], indirect=True)
async def test_a_replica_with_a_wrong_clock_drops_nothing_and_makes_ids_by_the_databases(
    house: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The id that a handler makes is refused, and made again by the database's clock at the next try."""
    monkeypatch.setattr(ids, "_state", (0, 0))
    monkeypatch.setattr(ids, "_ahead", 0)
    real = time.time_ns
    with monkeypatch.context() as wrong:
        wrong.setattr(time, "time_ns", lambda: real() + 3 * 86_400 * 10**9)
        parts = await house.parts()

        async def handle() -> None:
            async with parts.database.session().transaction() as tx:
                await events.store(tx, [NewEvent("t", "public", "{}", None)], matched=True)

        await retried(handle, deadline=20)
    [row] = await house.rows("select id from event")
    assert near(made_at(row["id"]), datetime.now(UTC))


def near(one: datetime, other: datetime) -> bool:
    """Within what is taken."""
    return abs(one - other) < timedelta(hours=1)
