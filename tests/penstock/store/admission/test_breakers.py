"""Breakers by hand: what the opening takes back, and what a claim refuses meanwhile."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

import pytest

from penstock import Limit
from penstock.errors import DefinitionError
from penstock.store.admission import breakers
from tests.penstock.store.admission.desk import Desk, racing

BANK = Limit(ref="shop.bank", scope="shop", breaker={"failures": 2, "of": 4, "within": "1h", "probe": "1h"})


SETTLE_OUTSIDE = "select * from settle_outside($1, 1, $2, $3, 'it is down', $4, 'ada')"


async def open_state(desk: Desk) -> breakers.BreakerState:
    [state] = await breakers.states(desk.session, "shop.bank", 10)
    return state


async def test_claim_refuses_executions_admitted_before_opening(desk: Desk) -> None:
    await desk.open(BANK)
    ids = await desk.start(5)
    await desk.claim(ids[:2])
    await desk.finish(ids[:2], "failed")
    assert (await open_state(desk)).state == "open"
    assert await desk.claim(ids[2:]) == []
    await desk.tidy()
    assert await desk.statuses(ids[2:]) == ["queued"] * 3
    await desk.sound()


async def test_opening_lets_calls_under_way_end(desk: Desk) -> None:
    await desk.open(BANK)
    ids = await desk.start(4)
    await desk.claim(ids)
    await desk.finish(ids[:2], "failed")
    await desk.finish(ids[2:], "completed")
    assert (await open_state(desk)).state == "open"
    assert await desk.statuses(ids[2:]) == ["completed"] * 2
    await desk.sound()


async def test_two_ends_at_once_open_exactly_at_the_threshold(desk: Desk) -> None:
    await desk.open(BANK)
    ids = await desk.start(3)
    await desk.claim(ids)
    other = desk.database.session()
    await racing(
        desk,
        lambda tx: desk.finish(ids[:1], "failed", session=tx),
        desk.finish(ids[1:2], "failed", session=other),
    )
    state = await open_state(desk)
    assert (state.state, state.failed, state.attempts) == ("open", 2, 2)
    await desk.sound()


async def test_lost_probe_is_followed_by_another(desk: Desk) -> None:
    await desk.open(BANK)
    ids = await desk.start(4)
    await desk.claim(ids[:2])
    await desk.finish(ids[:2], "failed")
    await desk.tidy()
    await desk.session.fetch("update breaker set probe_at = clock_timestamp() returning 1")
    await desk.session.fetch("update wake set at = clock_timestamp() returning 1")
    await desk.tidy()
    assert await desk.scheduled(ids) == [2]
    await desk.claim([ids[2]])
    await desk.session.fetch(
        "select * from recover_executions($1, $2::uuid[], 'lost')", desk.worker, [ids[2]]
    )
    assert await desk.scheduled(ids) == [2]
    await desk.run([ids[2]])
    state = await open_state(desk)
    assert (state.state, state.allowed) == ("releasing", 2)
    assert await desk.scheduled(ids) == [3]
    await desk.sound()


async def test_opened_breaker_shows_in_why_figures(desk: Desk) -> None:
    await desk.open(BANK)
    ids = await desk.start(3)
    await desk.claim(ids[:2])
    await desk.finish(ids[:2], "failed")
    await desk.tidy()
    state = await open_state(desk)
    assert (state.waiting, state.failures, state.of) == (1, 2, 4)
    assert state.probe_in is not None
    assert 3590 < state.probe_in <= 3600


async def wait_outside(desk: Desk, ids: Sequence[UUID]) -> None:
    """Claim these, and let their attempts wait for something outside."""
    await desk.claim(ids)
    await desk.finish(ids, "waiting", asked='{"outside": {"timeout": 3600}}')
    assert await desk.statuses(ids) == ["waiting"] * len(ids)


async def settle_outside(desk: Desk, ids: Sequence[UUID], outcome: str) -> None:
    """Give these waits their outcome."""
    for id in sorted(ids):
        if outcome == "timed out":
            await desk.session.fetch(
                "update outside_wait set due_at = clock_timestamp() where execution_id = $1 returning 1", id
            )
            await desk.session.fetch("select * from expire_outside(10)")
        elif outcome == "out of all its time":
            await desk.session.fetch(
                "select * from stop_executions(array[$1::uuid], 'timeout', 'its time')", id
            )
        else:
            await desk.session.fetch(
                SETTLE_OUTSIDE,
                id,
                "7" if outcome == "completed" else None,
                None if outcome == "completed" else '{"type": "Broken"}',
                3600.0 if outcome == "retried" else None,
            )


@pytest.mark.parametrize("end", ["requested", "waiting", "outside", "cancelled"])
async def test_probe_without_an_answer_keeps_the_interval(desk: Desk, end: str) -> None:
    await desk.open(BANK)
    ids = await desk.start(5)
    await desk.claim(ids[:2])
    await desk.finish(ids[:2], "failed")
    await desk.tidy()
    await desk.session.fetch("update breaker set probe_at = clock_timestamp() returning 1")
    await desk.session.fetch("update wake set at = clock_timestamp() returning 1")
    await desk.tidy()
    if end == "outside":
        await wait_outside(desk, [ids[2]])
    else:
        await desk.claim([ids[2]])
        await desk.finish([ids[2]], end, delay=600)
    await desk.tidy()
    assert await desk.scheduled(ids) == []
    state = await open_state(desk)
    assert state.probe_in is not None
    assert 3590 < state.probe_in <= 3600
    await desk.sound()


@pytest.mark.parametrize("while_waiting", ["release", "keep"])
@pytest.mark.parametrize("outcome", ["failed", "retried", "timed out", "out of all its time"])
async def test_breaker_counts_failures_outside_once(desk: Desk, outcome: str, while_waiting: str) -> None:
    await desk.open(BANK, Limit(100, ref="shop.all", scope="shop", while_waiting=while_waiting))  # type: ignore[arg-type]
    ids = await desk.start(4)
    await wait_outside(desk, ids[:3])
    await settle_outside(desk, ids[:1], outcome)
    assert await desk.session.fetch("select from breaker") == []
    await settle_outside(desk, ids[:1], outcome)
    assert await desk.session.fetch("select from breaker") == []
    await settle_outside(desk, ids[1:2], outcome)
    state = await open_state(desk)
    assert (state.state, state.failed, state.attempts) == ("open", 2, 2)
    assert await desk.claim(ids[3:]) == []
    await settle_outside(desk, ids[2:3], "completed")
    assert (await open_state(desk)).state == "open"
    await desk.sound()


@pytest.mark.parametrize("while_waiting", ["release", "keep"])
async def test_breaker_counts_completion_outside(desk: Desk, while_waiting: str) -> None:
    await desk.open(BANK, Limit(100, ref="shop.all", scope="shop", while_waiting=while_waiting))  # type: ignore[arg-type]
    ids = await desk.start(4)
    await desk.claim(ids[:2])
    await desk.finish(ids[:2], "failed")
    await desk.tidy()
    await desk.session.fetch("update breaker set probe_at = clock_timestamp() returning 1")
    await desk.session.fetch("update wake set at = clock_timestamp() returning 1")
    await desk.tidy()
    await wait_outside(desk, ids[2:3])
    await settle_outside(desk, ids[2:3], "completed")
    assert (await open_state(desk)).state == "releasing"
    assert await desk.scheduled(ids) == [3]
    await desk.sound()


KEEP = Limit(100, ref="shop.kept", scope="shop", while_waiting="keep")


async def test_kept_slots_of_waits_are_no_running_calls(desk: Desk) -> None:
    counting = {"failures": 2, "of": 4, "within": "1h", "probe": "1h", "counts_running": True}
    await desk.open(Limit(ref="shop.bank", scope="shop", breaker=counting), KEEP)
    ids = await desk.start(5)
    assert await desk.scheduled(ids) == [0, 1]
    await desk.run(ids[:2], "waiting")
    await desk.tidy()
    assert await desk.scheduled(ids) == [2, 3]
    await desk.sound()


async def test_probe_that_keeps_its_slots_keeps_the_interval(desk: Desk) -> None:
    await desk.open(BANK, KEEP)
    ids = await desk.start(5)
    await desk.claim(ids[:2])
    await desk.finish(ids[:2], "failed")
    await desk.tidy()
    await desk.session.fetch("update breaker set probe_at = clock_timestamp() returning 1")
    await desk.session.fetch("update wake set at = clock_timestamp() returning 1")
    await desk.tidy()
    await desk.run([ids[2]], "waiting")
    await desk.tidy()
    assert await desk.scheduled(ids) == []
    await desk.session.fetch("update attempt set at = at - interval '2 hours' returning 1")
    await desk.session.fetch("update wake set at = clock_timestamp() returning 1")
    await desk.tidy()
    assert await desk.scheduled(ids) == [3]
    await desk.sound()


@pytest.mark.parametrize(
    "options",
    [
        {"breaker": {"failures": 5, "of": 4}},
        {"breaker": {"failures": 0}},
        {"breaker": {"failures": 2}, "max": 3},
        {"breaker": {"failures": 2, "by": "host"}},
        {"breaker": {"failures": 2, "probe": 0}},
    ],
)
def test_breaker_that_cannot_work_is_refused(options: dict[str, object]) -> None:
    with pytest.raises(DefinitionError):
        Limit(ref="shop.bank", scope="shop", **options)  # type: ignore[arg-type]
