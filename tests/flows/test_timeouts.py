"""Every timeout, and what ends by it."""

from __future__ import annotations

import asyncio

import pytest

from penstock import AskInquiry, Timeouts, action
from penstock.errors import ExecutionFailed
from penstock.language.workflows import from_yaml
from penstock_executor.loops import end_overdue
from tests.flows import shop
from tests.flows.installation import Installation

pytestmark = pytest.mark.either_transport


@action(pack="late", timeouts=Timeouts(schedule_to_start=0.2))
async def unwanted() -> None: ...


@action(pack="late", timeouts=Timeouts(total=0.4))
async def long() -> None:
    await asyncio.sleep(60)


@action(pack="late", timeouts=Timeouts(waiting=0.2))
async def ask() -> None:
    raise AskInquiry("Anybody there?")


release = asyncio.Event()


@action(pack="late", timeouts=Timeouts(attempt=None))
async def unbounded() -> str:
    await release.wait()
    return "in its own time"


SLOW = from_yaml("""
workflow: late.flow
timeout: 0.4s
tasks:
  nap: {action: shop.wait_for, input: {seconds: 60}}
""")


async def ends_as_timeout(house: Installation, ref: str) -> None:
    with pytest.raises(ExecutionFailed) as caught:
        await house.client.run(ref, timeout=30)
    assert caught.value.status == "timeout"
    await house.until("select 1 where not exists (select from execution where finished_at is null)")
    await house.sound()


async def test_an_execution_that_does_not_start_in_time_ends(house: Installation) -> None:
    await house.apply(unwanted)
    await house.executor()
    await ends_as_timeout(house, "late.unwanted")


async def test_an_execution_over_its_total_time_is_ended_while_it_runs(house: Installation) -> None:
    await house.start(long)
    id = await house.client.start("late.long")
    await house.until("select 1 from execution where id = $1 and finished_at is not null", id)
    row = await house.client.get(id)
    assert row.status == "timeout"
    assert "ran out" in (row.reason or "")
    await house.sound()


async def test_an_attempt_without_a_bound_is_never_over_its_time(house: Installation) -> None:
    release.clear()
    await house.start(unbounded)
    id = await house.client.start("late.unbounded")
    await house.until("select 1 from execution where status = 'running'")
    await house.rows("update claim set claimed_at = claimed_at - interval '30 days' returning 1")
    parts = await house.parts()
    for _ in range(2):
        await end_overdue.turn(parts, parts.database.session())
    release.set()
    assert await house.client.result(id, timeout=20) == "in its own time"
    await house.sound()


async def test_an_inquiry_without_a_timeout_of_its_own_takes_that_of_its_action(house: Installation) -> None:
    await house.start(ask)
    await ends_as_timeout(house, "late.ask")


async def test_a_workflow_that_takes_too_long_is_ended_with_all_its_tasks(house: Installation) -> None:
    await house.start(*shop.ALL, SLOW)
    await ends_as_timeout(house, "late.flow")
    assert await house.rows("select 1 from execution where task = 'nap' and status = 'cancelled'")


@pytest.mark.parametrize("status", ["timeout", "cancelled"])
async def test_a_workflow_ends_as_it_was_asked_to_before_it_had_begun(
    house: Installation, status: str
) -> None:
    await house.apply(*shop.ALL, SLOW)
    id = await house.client.start("late.flow")
    await house.rows("select * from schedule_executions(array[$1::uuid])", id)
    assert await house.statuses() == {"running": 1}  # and its message is not handled yet
    if status == "timeout":
        await house.rows("update timer set due_at = clock_timestamp() where execution_id = $1", id)
        await house.rows("select * from fire_timers(100)")
    else:
        await house.client.cancel(id)
    await house.executor()
    await house.worker(*shop.ALL)
    await house.until("select 1 from execution where id = $1 and status = $2", id, status)
    await house.quiet()
    assert not await house.rows("select 1 from execution where parent = $1 and attempt > 0", id), (
        "nothing of it ran"
    )
    await house.sound()


async def test_an_attempt_that_its_worker_forgot_is_recovered(house: Installation) -> None:
    await house.start(*shop.ALL, shop.sturdy)
    [worker] = await house.until("select id from process where kind = 'worker'")
    id = await house.client.start("shop.wait_for", {"seconds": 1.0}, delay=3600)
    # As if a claim was committed and its answer lost: the database has it, the worker does not. All in one
    # transaction, or the executor would send the work to the worker before its message is taken away; and without permits, or
    # the work would be assigned to the worker at once.
    async with house.session.transaction() as tx:
        await tx.execute("lock table permit in share row exclusive mode")
        await tx.execute("delete from permit")
        await tx.execute("update execution set not_before = null where id = $1", id)
        await tx.execute("select * from schedule_executions(array[$1::uuid])", id)
        assert await tx.fetch("delete from outbox where queue = 'work.default' returning 1")
        assert await tx.fetch(
            "update execution set status = 'running', attempt = 1, claim = $2 "
            "where id = $1 and status = 'scheduled' returning 1",
            id,
            worker["id"],
        )
        await tx.execute(
            "insert into claim (id, worker, executions, claimed_at) "
            "values ($1, $2, array[$1::uuid], clock_timestamp() - interval '5 s')",
            id,
            worker["id"],
        )
    assert await house.client.result(id, timeout=30) == "waited"
    assert (await house.client.get(id)).recoveries == 1
