"""A fault deletes the claim of a running attempt: a live attempt goes on, and a lost one runs again."""

from __future__ import annotations

import pytest

from penstock.operate.check import check
from penstock.store.processes import heartbeats
from penstock_executor.loops import recover_messages
from tests.flows.installation import AS_USED, Installation
from tests.flows.test_two_attempts_in_a_worker import ACTIONS, SILENCE_S, a_worker, claim, ended

pytestmark = pytest.mark.either_transport

EARLIER = "update claim set claimed_at = claimed_at - interval '2 s' returning 1"


async def test_live_attempt_without_a_claim_ends_as_if_it_had_one(house: Installation) -> None:
    await house.apply(*ACTIONS)
    await house.executor(**AS_USED)  # the heartbeats are the test's
    async with a_worker(house) as (me, runner, backend):
        id = await house.client.start("again.fails_first", {"seconds": 3.0})
        await claim(house, backend, id)
        await ended(runner, backend)
        await claim(house, backend, id)
        await house.rows("delete from claim returning 1")
        parts = await house.parts()
        await recover_messages.turn(parts, parts.database.session())
        for _ in range(3):
            assert await house.rows(EARLIER), "it has a claim again"
            pulse = await heartbeats.beat(house.session, me.id, runner.slots.held(), SILENCE_S)
            assert (pulse.missing, pulse.lost_attempts) == ([], {})
        assert await house.client.result(id, timeout=20) == 2, "attempt 2 was not taken back"
        await ended(runner, backend)
        assert not [checked for checked in await check(house.session) if checked.violations]
        await house.client.start("again.fails_first", {"seconds": 0.0})
        session = parts.database.session()
        while await recover_messages.turn(parts, session):
            pass
        await recover_messages.turn(parts, session)
        assert not await house.rows("select from claim where id = $1", id)


async def test_lost_attempt_without_a_claim_runs_again(house: Installation) -> None:
    await house.apply(*ACTIONS)
    await house.executor(**AS_USED)  # the heartbeats are the test's
    async with a_worker(house) as (me, runner, backend):
        id = await house.client.start("again.lasts_first", {"seconds": 0.1})
        await claim(house, backend, id)
        await house.until("select 1 from execution where status = 'running'")
        await house.rows("delete from claim returning 1")
        first = runner.running[id]
        parts = await house.parts()
        await recover_messages.turn(parts, parts.database.session())
        for _ in range(2):
            await house.rows(EARLIER)
            pulse = await heartbeats.beat(house.session, me.id, {}, SILENCE_S)
        assert pulse.missing == [id]
        await claim(house, backend, id)
        assert first.claim_lost or runner.slots.held() == {id: 2}
        assert await house.client.result(id, timeout=20) == 2
        assert (await house.client.get(id)).recoveries == 1
        assert not [checked for checked in await check(house.session) if checked.violations]
