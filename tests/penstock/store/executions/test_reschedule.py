"""Reschedules that race with a worker that claims, and with the loop of the timers."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from pydantic import SecretStr

from penstock import Limit
from penstock.settings import Settings
from penstock.store.executions import executions
from penstock.store.session.database import Database, Transaction
from tests.penstock.store.admission.desk import Desk, racing

FAR = datetime(2100, 1, 31, 9, tzinfo=UTC)


@pytest.fixture
async def desk(database: str) -> AsyncIterator[Desk]:
    home = Database(Settings(database_url=SecretStr(database)), role="test")
    yield Desk(home)
    await home.close()


async def reschedule(desk: Desk, id: UUID, at: datetime) -> str:
    async with desk.session.transaction() as tx:
        return await executions.reschedule(tx, id, at, "ada", "moved")


async def state(desk: Desk, id: UUID) -> tuple[str, datetime | None, list[datetime]]:
    """Return the status of an execution, its instant, and the instants of its timers."""
    [row] = await desk.session.fetch("select status, not_before from execution where id = $1", id)
    timers = await desk.session.fetch(
        "select due_at from timer where execution_id = $1 and kind = 'ready' order by 1", id
    )
    return row["status"], row["not_before"], [timer["due_at"] for timer in timers]


async def test_claim_after_a_changed_start_gets_nothing(desk: Desk) -> None:
    await desk.open()
    [id] = await desk.start(1)

    async def first(tx: Transaction) -> None:
        assert await executions.reschedule(tx, id, FAR, "ada", "moved") == "moved"

    async def second() -> None:
        assert await desk.claim([id]) == []

    await racing(desk, first, second())
    assert await desk.claim([id]) == []
    assert await state(desk, id) == ("requested", FAR, [FAR])
    await desk.sound()


async def test_changed_start_after_a_claim_is_refused(desk: Desk) -> None:
    await desk.open()
    [id] = await desk.start(1)
    outcomes: list[str] = []

    async def second() -> None:
        outcomes.append(await reschedule(desk, id, FAR))

    async def first(tx: Transaction) -> None:
        assert await desk.claim([id], tx) == [id]

    await racing(desk, first, second())
    assert outcomes == ["begun"]
    assert (await state(desk, id))[0] == "running"
    await desk.sound()


async def test_timer_that_fires_meanwhile_has_no_effect(desk: Desk) -> None:
    """The loop holds the timer that is due. The changed start waits for the row of the execution."""
    await desk.open()
    [id] = await desk.request(1)
    await desk.session.fetch("delete from outbox returning 1")
    past = datetime.now(UTC) - timedelta(seconds=1)
    await desk.session.fetch("update execution set not_before = $2 where id = $1 returning 1", id, past)
    await desk.session.fetch("insert into timer values ($2, 'ready', $1) returning 1", id, past)
    outcomes: list[str] = []

    async def first(tx: Transaction) -> None:
        [row] = await tx.fetch("select fired from fire_timers(10)")
        assert row["fired"] == 1

    async def second() -> None:
        outcomes.append(await reschedule(desk, id, FAR))

    await racing(desk, first, second())
    assert outcomes == ["moved"]
    assert await state(desk, id) == ("requested", FAR, [FAR])
    await desk.admit([id])  # the message of the timer, or a copy of it
    assert await state(desk, id) == ("requested", FAR, [FAR])
    await desk.sound()


async def test_message_from_before_the_change_starts_nothing(desk: Desk) -> None:
    await desk.open(Limit(1, ref="shop.one", scope="shop"))
    ids = await desk.start(2)
    assert await reschedule(desk, ids[1], FAR) == "moved"
    await desk.admit(ids)
    await desk.admit(ids)
    assert await desk.statuses(ids) == ["scheduled", "requested"]
    assert await reschedule(desk, ids[0], FAR) == "moved"
    assert await desk.slots() == {}
    await desk.sound()


async def test_slot_of_a_moved_execution_goes_to_the_next(desk: Desk) -> None:
    await desk.open(Limit(1, ref="shop.one", scope="shop"))
    ids = await desk.start(3)
    assert await desk.scheduled(ids) == [0]
    assert await reschedule(desk, ids[0], FAR) == "moved"
    assert await desk.scheduled(ids) == [1]
    await desk.sound()


async def test_random_changes_agree_with_a_plain_model(desk: Desk) -> None:
    """The model knows each execution as waiting for an instant, ready, running or ended."""
    chance = random.Random(7)
    await desk.open(Limit(2, ref="shop.two", scope="shop.charge"))
    ids = await desk.start(3) + await desk.start(3, ref="shop.refund")
    model: dict[UUID, str | datetime] = dict.fromkeys(ids, "ready")
    for _ in range(150):
        id = chance.choice(ids)
        match chance.choice(["later", "later", "now", "claim", "retry", "end", "copy"]):
            case "later":
                at = FAR + timedelta(seconds=chance.randrange(10**6))
                expected = {"running": "begun", "ended": "ended"}.get(str(model[id]), "moved")
                assert await reschedule(desk, id, at) == expected
                if expected == "moved":
                    model[id] = at
            case "now":
                expected = {"running": "begun", "ended": "ended", "ready": "ready"}.get(
                    str(model[id]), "moved"
                )
                assert await reschedule(desk, id, datetime(2000, 1, 1, tzinfo=UTC)) == expected
                if expected == "moved":
                    model[id] = "ready"
            case "claim":
                await desk.admit([id for id in ids if model[id] == "ready"])
                claimed = await desk.claim([id])
                assert set(claimed) <= {id for id in ids if model[id] == "ready"}
                model |= dict.fromkeys(claimed, "running")
            case "retry" if model[id] == "running":
                await desk.finish([id], "requested", delay=10**6)
                [row] = await desk.session.fetch("select not_before from execution where id = $1", id)
                model[id] = row["not_before"]
            case "end" if model[id] == "running" and chance.random() < 0.2:
                await desk.finish([id])
                model[id] = "ended"
            case "copy":
                await desk.admit(ids)
        for other, expected_state in model.items():
            status, instant, timers = await state(desk, other)
            if isinstance(expected_state, datetime):
                assert (status, instant, timers) == ("requested", expected_state, [expected_state])
            else:
                assert timers == []
                assert (
                    status
                    in {
                        "ready": ("requested", "queued", "scheduled"),
                        "running": ("running",),
                        "ended": ("completed",),
                    }[expected_state]
                )
    await desk.sound()
