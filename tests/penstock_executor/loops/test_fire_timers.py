"""The clocks of an execution, row by row of the table in docs/timeouts.md. Nothing runs but what the test runs by hand: an hour
goes by, and everything looks what is due."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import orjson
import pytest

from penstock import AskInquiry, Limit, RetryPolicy, Rule, Timeouts, Trigger, action
from penstock.language.workflows import from_yaml
from penstock.language.workflows.task import policies_of
from penstock.messaging.consumer import Batch
from penstock_executor.handlers import event_created
from penstock_executor.loops import fire_timers
from tests.penstock_executor.by_hand import ByHand

MINUTE = 60.0


@action(
    pack="clock", timeouts=Timeouts(schedule_to_start=MINUTE, attempt=None), retry=RetryPolicy(max_attempts=3)
)
async def start() -> None: ...


@action(pack="clock", limits=[Limit(1)], timeouts=Timeouts(schedule_to_start=MINUTE, attempt=None))
async def start_in_line() -> None: ...


@action(
    pack="clock",
    limits=[Limit(1)],
    timeouts=Timeouts(queued=MINUTE, attempt=None),
    retry=RetryPolicy(max_attempts=3),
)
async def queued() -> None: ...


@action(pack="clock", limits=[Limit(1)], timeouts=Timeouts(total=MINUTE, attempt=None))
async def total() -> None: ...


@action(pack="clock", timeout=MINUTE)
async def attempt() -> None: ...


@action(pack="clock", timeout=MINUTE, retry=RetryPolicy(max_attempts=2))
async def attempt_again() -> None: ...


@action(pack="clock", timeouts=Timeouts(waiting=MINUTE))
async def ask() -> None:
    raise AskInquiry("Anybody?")


@action(pack="clock", limits=[Limit(1)], timeouts=Timeouts(attempt=None))
async def plain() -> None: ...


placed = Trigger("clock.placed")
expiring = Rule("clock.expiring", trigger=placed, action=plain, expires=MINUTE)
ACTIONS = (start, start_in_line, queued, total, attempt, attempt_again, ask, plain)


@pytest.fixture
async def house(database: str) -> AsyncIterator[ByHand]:
    async with ByHand(database, None) as house:
        await house.open(*ACTIONS, placed, expiring)
        yield house
        await house.sound()


async def test_an_execution_that_no_worker_starts_in_time_ends(house: ByHand) -> None:
    requested, scheduled = await house.client.start("clock.start"), await house.scheduled("clock.start")
    await house.later()
    for id in (requested, scheduled):
        row = await house.client.get(id)
        assert (row.status, row.reason) == ("timeout", "no worker started it in time")


async def test_each_attempt_has_its_own_time_to_be_started(house: ByHand) -> None:
    failed, lost, handed_back = [await house.running("clock.start") for _ in range(3)]
    await house.later()
    assert [await house.stands(id) for id in (failed, lost, handed_back)] == ["running"] * 3
    await house.finish(failed, "requested")
    await house.finish(handed_back, "requested", None)
    await house.rows("select * from recover_executions($1, array[$2::uuid], 'lost')", house.claimer, lost)
    session = house.own.database.session()
    await house.rows("update timer set due_at = now() where kind = 'start' returning 1")
    await fire_timers.turn(house.own, session)
    assert [await house.stands(id) for id in (failed, lost, handed_back)] == ["scheduled"] * 3, (
        "what was due for the attempt before says nothing of this one"
    )
    for id in (failed, lost, handed_back):
        await house.rows("select set_clocks(array[$1::uuid])", id)
    await house.later()
    assert [await house.stands(id) for id in (failed, lost, handed_back)] == ["timeout"] * 3


async def test_the_next_attempt_gets_its_timer_by_itself(house: ByHand) -> None:
    for end in ("requested", "lost"):
        id = await house.running("clock.start")
        if end == "lost":
            await house.rows(
                "select * from recover_executions($1, array[$2::uuid], 'lost')", house.claimer, id
            )
        else:
            await house.finish(id, end)
        await house.rows(
            "delete from timer where due_at < clock_timestamp() + interval '59 seconds' returning 1"
        )
        await house.schedule(id)
        await house.later()
        assert await house.stands(id) == "timeout"


async def test_while_a_limit_holds_it_no_time_to_start_goes_by(house: ByHand) -> None:
    first, second = await house.running("clock.start_in_line"), await house.scheduled("clock.start_in_line")
    await house.later()
    assert await house.stands(second) == "queued"
    await house.finish(first, "completed")
    assert await house.stands(second) == "scheduled"
    await house.later()
    assert await house.stands(second) == "timeout"


async def test_an_execution_that_its_limits_do_not_admit_in_time_ends(house: ByHand) -> None:
    first, second = await house.running("clock.queued"), await house.scheduled("clock.queued")
    await house.later()
    assert await house.stands(first) == "running"
    row = await house.client.get(second)
    assert (row.status, row.reason) == ("timeout", "its limits did not let it in in time")


async def test_an_admitted_execution_may_wait_and_queue_again(house: ByHand) -> None:
    first, second = await house.running("clock.queued"), await house.scheduled("clock.queued")
    await house.finish(first, "completed")
    await house.later()
    assert await house.stands(second) == "scheduled"
    third = await house.scheduled("clock.queued")
    await house.claim(second)
    await house.finish(second, "requested")  # it goes to the end of the line
    assert await house.stands(third) == "scheduled"
    await house.schedule(second)
    assert await house.stands(second) == "queued"
    await house.later()
    assert await house.stands(second) == "timeout"


async def test_an_attempt_that_takes_too_long_is_tried_again_as_one_that_failed(house: ByHand) -> None:
    once, twice = await house.running("clock.attempt"), await house.running("clock.attempt_again")
    await house.later()
    assert [await house.stands(id) for id in (once, twice)] == ["timeout", "requested"]
    assert (await house.client.get(twice)).failures == 1
    await house.rows("update execution set not_before = null where id = $1 returning 1", twice)
    await house.schedule(twice)
    await house.claim(twice)
    await house.later()
    assert await house.stands(twice) == "timeout"


async def test_neither_deferrals_nor_losses_use_up_its_attempts(house: ByHand) -> None:
    id = await house.running("clock.attempt_again")
    await house.finish(id, "requested")  # without an error: a deferral
    await house.schedule(id)
    await house.claim(id)
    await house.rows("select * from recover_executions($1, array[$2::uuid], 'lost')", house.claimer, id)
    await house.schedule(id)
    await house.claim(id)
    await house.later()
    row = await house.client.get(id)
    assert (row.status, row.attempt, row.failures) == ("requested", 3, 1), "one failure of two"


@pytest.mark.parametrize("state", ["requested", "queued", "scheduled", "running", "waiting"])
async def test_an_execution_over_its_total_time_ends_in_any_state(house: ByHand, state: str) -> None:
    if state == "requested":
        id = await house.requested("clock.total")
    elif state == "queued":
        await house.running("clock.total")
        id = await house.scheduled("clock.total")
    elif state == "scheduled":
        id = await house.scheduled("clock.total")
    else:
        id = await house.running("clock.total")
        if state == "waiting":
            await house.finish(id, "waiting")
    assert await house.stands(id) == state
    await house.later()
    if state == "running":
        assert await house.stands(id) == "canceling"
        await house.finish(id, "cancelled")  # as workers say of what they were told to end
    row = await house.client.get(id)
    assert (row.status, row.reason) == ("timeout", "its time to complete ran out")
    assert orjson.loads(row.error or "{}")["type"] == "timeout"


async def test_an_execution_over_its_time_and_lost_ends_as_timeout(house: ByHand) -> None:
    id = await house.running("clock.total")
    await house.later()
    await house.rows("select * from recover_executions($1, array[$2::uuid], 'lost')", house.claimer, id)
    assert await house.stands(id) == "timeout"


async def test_a_completion_during_a_requested_end_counts(house: ByHand) -> None:
    id = await house.running("clock.total")
    await house.later()
    await house.finish(id, "completed")
    assert await house.stands(id) == "completed"


@pytest.mark.parametrize("state", ["requested", "queued", "scheduled"])
async def test_an_execution_that_has_not_begun_ends_when_it_expires(house: ByHand, state: str) -> None:
    expires = {"expires_at": datetime.now(UTC) + timedelta(minutes=1)}
    if state == "queued":
        await house.running("clock.plain")
    id = await (house.requested if state == "requested" else house.scheduled)("clock.plain", **expires)
    assert await house.stands(id) == state
    await house.later()
    assert await house.stands(id) == "timeout"


@pytest.mark.parametrize("state", ["running", "scheduled", "waiting"])
async def test_an_execution_that_has_begun_once_never_expires(house: ByHand, state: str) -> None:
    id = await house.running("clock.plain", expires_at=datetime.now(UTC) + timedelta(minutes=1))
    if state == "waiting":
        await house.finish(id, state)
    elif state != "running":
        await house.finish(id, "requested")
        if state == "scheduled":
            await house.schedule(id)
    assert await house.stands(id) == state
    await house.later()
    assert await house.stands(id) == state


async def test_an_execution_of_a_rule_expires_only_before_it_has_begun(house: ByHand) -> None:
    for begun in (True, False):
        event = await house.client.publish("clock.placed", {})
        async with house.session.transaction() as tx:
            await event_created.handle(Batch([event]), tx)
        [row] = await house.rows("select execution_id from enforcement where event_id = $1", event)
        if begun:
            await house.claim(row[0])
        await house.later()
        assert await house.stands(row[0]) == ("running" if begun else "timeout")


@pytest.mark.parametrize("ref", ["clock.plain", "clock.start"])
@pytest.mark.parametrize("start", ["alone", "delayed", "own transaction"])
async def test_start_that_has_expired_on_arrival_never_begins(house: ByHand, ref: str, start: str) -> None:
    past = datetime.now(UTC) - timedelta(hours=1)
    if start == "own transaction":
        id = await house.requested(ref, expires_at=past)
    else:
        id = await house.client.start(ref, expires_at=past, delay=3600 if start == "delayed" else None)
    row = await house.client.get(id)
    assert (row.status, row.reason) == ("timeout", "it had not begun when it expired")
    assert await house.rows("select from slot") == []


@pytest.mark.parametrize("by", ["start", "rule"])
async def test_expired_execution_is_not_claimed(house: ByHand, by: str) -> None:
    if by == "start":
        id = await house.scheduled("clock.plain", expires_at=datetime.now(UTC) + timedelta(minutes=1))
    else:
        event = await house.client.publish("clock.placed", {})
        async with house.session.transaction() as tx:
            await event_created.handle(Batch([event]), tx)
        [[id]] = await house.rows("select execution_id from enforcement where event_id = $1", event)
    await house.pass_time()
    with pytest.raises(AssertionError):
        await house.claim(id)
    assert await house.stands(id) == "scheduled"
    await house.look()
    assert await house.stands(id) == "timeout"


async def test_an_inquiry_that_is_not_answered_in_time_ends(house: ByHand) -> None:
    id = await house.running("clock.ask")
    await house.finish(id, "waiting")
    await house.later()
    assert await house.stands(id) == "timeout"


async def test_unclaimed_work_may_be_bounded_for_all(house: ByHand) -> None:
    never = {"options": {"timeouts": {"schedule_to_start": None}}}
    ids = [await house.scheduled("clock.plain"), await house.scheduled("clock.attempt", **never)]
    await house.later()
    assert [await house.stands(id) for id in ids] == ["scheduled"] * 2, "nothing is bounded by default"
    house.own.settings = house.settings(schedule_to_start=MINUTE)
    await house.later()
    assert [await house.stands(id) for id in ids] == ["timeout", "scheduled"], (
        "null means that there is no bound"
    )


async def test_a_task_that_says_null_has_no_bound_whatever_its_action_says(house: ByHand) -> None:
    null = {"options": {"timeouts": {"schedule_to_start": None}}}
    id = await house.scheduled("clock.start", **null)
    await house.later()
    assert await house.stands(id) == "scheduled"
    asked = await house.running("clock.ask", options={"timeouts": {"waiting": None}})
    await house.finish(asked, "waiting")
    await house.later()
    assert await house.stands(asked) == "waiting"
    endless = await house.scheduled("clock.total", options={"timeouts": {"total": None}})
    await house.later()
    assert await house.stands(endless) == "scheduled"


def test_a_timeout_of_a_task_is_kept_even_if_it_is_the_default() -> None:
    workflow = from_yaml("""
workflow: clock.flow
tasks:
  one: {action: clock.start, timeouts: {schedule_to_start: null, attempt: 300}}
""")
    [body] = workflow.body()["tasks"]
    assert body["timeouts"] == {"attempt": 300, "schedule_to_start": None}
    assert policies_of(workflow.tasks[0])["timeouts"] == {"attempt": 300, "schedule_to_start": None}
