"""Breakers by hand: what the opening takes back, and what a claim refuses meanwhile."""

from __future__ import annotations

import pytest

from penstock import Limit
from penstock.errors import DefinitionError
from penstock.store.admission import breakers
from tests.penstock.store.admission.desk import Desk, racing

BANK = Limit(ref="shop.bank", scope="shop", breaker={"failures": 2, "of": 4, "within": "1h", "probe": "1h"})


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
