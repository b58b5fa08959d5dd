"""An attempt that goes on after its time. If its worker lives, it took too long; if its worker is dead, it was lost."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from penstock import RetryPolicy, action
from penstock.language.policies.after_attempt import Ending
from penstock.store.executions import attempts, past_attempts
from penstock.store.executions.attempts import AttemptEnd
from penstock_executor.loops import end_overdue, reap_workers
from tests.penstock_executor.by_hand import ByHand

MINUTE = 60.0


@action(pack="late", timeout=MINUTE, retry=RetryPolicy(max_attempts=5, initial_delay=0))
async def patient() -> None: ...


@action(pack="late", timeout=MINUTE)
async def once() -> None: ...


@action(pack="late", timeout=MINUTE, retry=RetryPolicy(max_attempts=5, never_on="TimeoutError"))
async def choosy() -> None: ...


ACTIONS = (patient, once, choosy)


@pytest.fixture
async def house(database: str) -> AsyncIterator[ByHand]:
    async with ByHand(database, None) as house:
        await house.open(*ACTIONS)
        yield house
        await house.sound()


@pytest.mark.parametrize("ref", ["late.patient", "late.once"])
async def test_an_attempt_lost_with_its_worker_is_not_overdue(house: ByHand, ref: str) -> None:
    id = await house.running(ref)
    await house.pass_time()  # and its worker is heard of no more since it claimed that
    await house.rows("update process set beat_at = clock_timestamp() - interval '1 hour' returning 1")
    await house.rows(
        "insert into process (id, kind, name) values (gen_random_uuid(), 'executor', 'lives') returning 1"
    )
    session = house.own.database.session()
    await end_overdue.turn(house.own, session)
    assert await house.stands(id) == "running", "who is dead is the sweeper's to say"
    await reap_workers.turn(house.own, session)
    row = await house.client.get(id)
    assert (row.status, row.recoveries, row.failures) == ("scheduled", 1, 0)


async def test_an_attempt_of_a_worker_dead_before_the_deadline_is_lost(house: ByHand) -> None:
    id = await house.running("late.once")
    await house.pass_time()
    await house.rows(  # it was heard of until its attempt was about to be over its time, and so looks alive for a while
        "update process set beat_at = clock_timestamp() - interval '1 hour' + interval '61 seconds' returning 1"
    )
    await end_overdue.turn(house.own, house.own.database.session())
    assert await house.stands(id) == "running"


async def test_the_worker_and_the_executor_apply_the_same_retry_policy(house: ByHand) -> None:
    ids = {ref: await house.running(ref) for ref in ("late.patient", "late.once", "late.choosy")}
    await house.later()
    stands = {ref: await house.stands(id) for ref, id in ids.items()}
    assert stands == {"late.patient": "scheduled", "late.once": "timeout", "late.choosy": "timeout"}
    [tried] = await past_attempts.attempts(house.session, await house.client.get(ids["late.patient"]))
    assert "took longer than its 60 s" in (tried.error or "")


async def test_time_of_an_attempt_begins_with_its_latest_claim(house: ByHand) -> None:
    """Attempt 2 is on the worker of attempt 1, whose claim stays: it names another execution that still runs."""
    id = await house.running("late.patient")
    await house.pass_time()
    await house.rows("update execution set attempt = 2 where id = $1 returning 1", id)
    await house.rows(
        "insert into claim (id, worker, executions) values (gen_random_uuid(), $1, array[$2::uuid]) returning 1",
        *(house.claimer, id),
    )
    await house.rows("update process set beat_at = clock_timestamp() returning 1")
    await end_overdue.turn(house.own, house.own.database.session())
    assert await house.stands(id) == "running"


async def test_attempt_is_not_overdue_when_the_clock_leapt(house: ByHand) -> None:
    """An hour passes on the clock of the database, and no time for the worker, which sends its next heartbeat."""
    id = await house.running("late.once")
    await house.pass_time()
    await house.rows("update process set beat_at = beat_at - interval '1 hour' returning 1")
    await house.rows("select from beat($1, array[$2::uuid], array[1], interval '30 s')", house.claimer, id)
    await end_overdue.turn(house.own, house.own.database.session())
    assert await house.stands(id) == "running"
    await house.rows("update cluster set resumed_at = resumed_at - interval '1 hour' returning 1")
    await end_overdue.turn(house.own, house.own.database.session())
    assert await house.stands(id) == "timeout", "the time begins again with the leap"


async def test_a_late_report_of_the_worker_changes_nothing(house: ByHand) -> None:
    id = await house.running("late.patient")
    await house.later()
    late = AttemptEnd(id, 1, Ending("completed", "7"))
    async with house.own.database.session().transaction() as tx:
        moved = await attempts.finish(tx, house.claimer, [late])
    assert moved == set()
    assert await house.stands(id) == "scheduled"


async def test_an_overdue_attempt_that_is_canceling_is_cancelled(house: ByHand) -> None:
    id = await house.running("late.patient")
    await house.client.cancel(id, reason="enough")
    await house.later()
    row = await house.client.get(id)
    assert (row.status, row.reason) == ("cancelled", "enough")
