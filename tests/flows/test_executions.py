"""From a request to a result."""

from __future__ import annotations

import asyncio
import json

import asyncpg
import pytest

from penstock.errors import Conflict, ExecutionFailed, InvalidInput, NotFound
from penstock.language.terms.ids import new_id
from penstock.messaging.messages import CancelRequested
from tests.flows import shop
from tests.flows.installation import Installation


async def test_an_action_runs_and_its_result_comes_back(house: Installation) -> None:
    await house.start(*shop.ALL)
    assert await house.client.run("shop.charge", {"order": 7, "amount": 1.5}, timeout=20) == {
        "order": 7,
        "charged": 1.5,
    }
    assert await house.client.run("shop.count", {"words": "a b c"}, timeout=20) == 3
    await house.quiet()
    await house.sound()


async def test_the_history_names_every_move_and_its_actor(house: Installation) -> None:
    await house.start(*shop.ALL)
    id = await house.client.start("shop.charge", {"order": 7})
    await house.client.result(id, timeout=20)
    history = await house.client.history(id)
    assert [row.new for row in history] == ["requested", "scheduled", "running", "completed"]
    assert [(row.actor or "").split(":")[0] for row in history] == ["client", "client", "worker", "worker"]
    assert [row.attempt for row in history] == [0, 0, 1, 1]


async def test_a_thousand_executions_all_complete(house: Installation) -> None:
    await house.start(*shop.ALL, concurrency=100)
    await asyncio.gather(*(house.client.start("shop.charge", {"order": n}) for n in range(300)))
    for _ in range(7):
        await house.client.start_many("shop.charge", [{"order": n} for n in range(100)])
    await house.quiet()
    assert await house.statuses() == {"completed": 1000}
    await house.sound()


async def test_a_failure_is_kept_with_type_message_and_traceback(house: Installation) -> None:
    await house.start(*shop.ALL)
    id = await house.client.start("shop.hopeless")
    with pytest.raises(ExecutionFailed, match="no such customer") as caught:
        await house.client.result(id, timeout=20)
    assert caught.value.status == "failed"
    row = await house.client.get(id)
    assert row.attempt == 1
    assert "NonRetryable" in (row.error or "")
    assert "hopeless" in (row.error or "")


async def test_a_retry_follows_its_policy_and_every_attempt_is_kept(house: Installation) -> None:
    await house.start(*shop.ALL)
    id = await house.client.start("shop.flaky", {"failures": 2})
    assert await house.client.result(id, timeout=20) == 3
    attempts = await house.client.attempts(id)
    assert [(a.attempt, a.outcome) for a in attempts] == [(1, "failed"), (2, "failed"), (3, "completed")]
    assert [a.error and json.loads(a.error)["type"] for a in attempts] == [*["ConnectionError"] * 2, None]
    history = await house.client.history(id)
    assert [move.reason for move in history if move.new in ("requested", "completed")] == [
        None,
        *["retry after ConnectionError"] * 2,
        None,
    ]
    assert (await house.client.get(id)).reason is None
    moves = [(move.at, move.actor) for move in history if move.new == "running"]
    assert [(a.started_at, f"worker:{a.worker}") for a in attempts] == moves
    spans = [(a.started_at, a.ended_at, a.duration) for a in attempts]
    assert all(began and end and end - began == seconds for began, end, seconds in spans)
    await house.quiet()
    await house.sound()


async def test_an_action_that_runs_out_of_attempts_fails(house: Installation) -> None:
    await house.start(*shop.ALL)
    with pytest.raises(ExecutionFailed, match="attempt 3 failed"):
        await house.client.run("shop.flaky", {"failures": 9}, timeout=20)


async def test_an_action_may_ask_for_a_retry_and_say_when(house: Installation) -> None:
    await house.start(*shop.ALL)
    assert await house.client.run("shop.impatient", timeout=20) == 3


async def test_an_attempt_that_takes_too_long_is_ended(house: Installation) -> None:
    await house.start(*shop.ALL)
    with pytest.raises(ExecutionFailed) as caught:
        await house.client.run("shop.slow", timeout=20)
    assert caught.value.status == "timeout"


async def test_a_deferred_execution_gives_its_slot_back_and_finds_its_state_again(
    house: Installation,
) -> None:
    await house.start(*shop.ALL)
    id = await house.client.start("shop.later")
    assert await house.client.result(id, timeout=20) == "page 7"
    row = await house.client.get(id)
    assert (row.attempt, row.failures) == (2, 0)


async def test_a_result_that_cannot_be_stored_fails_the_attempt(house: Installation) -> None:
    await house.start(*shop.ALL)
    with pytest.raises(ExecutionFailed, match="ResultNotStorable"):
        await house.client.run("shop.unstorable", timeout=20)


async def test_the_same_key_gives_the_same_execution(house: Installation) -> None:
    await house.apply(*shop.ALL)
    ids = await asyncio.gather(*(house.client.start("shop.charge", {"order": 1}, key="k") for _ in range(20)))
    assert len(set(ids)) == 1
    with pytest.raises(Conflict, match=str(ids[0])):
        await house.client.start("shop.charge", {"order": 2}, key="k")


@pytest.mark.either_transport
@pytest.mark.parametrize(("first", "second"), [(1e16, 10**16), (0.0, -0.0)])
async def test_key_of_a_start_with_parameters_stored_alike(
    house: Installation, first: float, second: float
) -> None:
    await house.apply(*shop.ALL)
    id = await house.client.start("shop.charge", {"order": 1, "amount": first}, key="k")
    assert await house.client.start("shop.charge", {"order": 1, "amount": second}, key="k") == id
    rows = await house.rows("select $1::text::jsonb::text = $2::text::jsonb::text", repr(first), repr(second))
    assert [row[0] for row in rows] == [True]
    with pytest.raises(Conflict, match=str(id)):
        await house.client.start("shop.charge", {"order": 1, "amount": first + 5e15 + 1}, key="k")


async def test_bad_input_is_refused_at_the_door_and_stores_nothing(house: Installation) -> None:
    await house.apply(*shop.ALL)
    client = house.client
    with pytest.raises(NotFound, match=r"shop\.nothing"):
        await client.start("shop.nothing")
    with pytest.raises(InvalidInput, match="order"):
        await client.start("shop.charge", {"order": "seven"})
    with pytest.raises(InvalidInput, match="NUL"):
        await client.start("shop.count", {"words": "a\0b"})
    with pytest.raises(InvalidInput, match=r"bytes|large"):
        await client.start("shop.count", {"words": "x" * 1_000_000})
    with pytest.raises(InvalidInput):
        await client.start("shop.charge", {"order": 1, "amount": float("nan")})
    assert await house.statuses() == {}


async def test_one_bad_submit_does_not_harm_those_it_is_grouped_with(house: Installation) -> None:
    await house.start(*shop.ALL)
    answers = await asyncio.gather(
        *(house.client.start("shop.charge", {"order": n if n % 10 else "bad"}) for n in range(100)),
        return_exceptions=True,
    )
    assert sum(isinstance(a, InvalidInput) for a in answers) == 10
    await house.quiet()
    assert await house.statuses() == {"completed": 90}


async def test_a_start_inside_the_callers_transaction_happens_if_and_only_if_it_commits(
    house: Installation, database: str
) -> None:
    await house.start(*shop.ALL)
    connection = await asyncpg.connect(database)
    async with connection.transaction():
        committed = await house.client.start("shop.charge", {"order": 1}, connection=connection)
    undone = connection.transaction()
    await undone.start()
    rolled_back = await house.client.start("shop.charge", {"order": 2}, connection=connection)
    await undone.rollback()
    assert await house.client.result(committed, timeout=20) == {"order": 1, "charged": 0}
    with pytest.raises(NotFound):
        await house.client.get(rolled_back)
    await connection.close()


async def test_cancelling_an_unstarted_execution_ends_it_at_once(house: Installation) -> None:
    await house.apply(*shop.ALL)
    id = await house.client.start("shop.charge", {"order": 1})
    assert await house.client.cancel(id, reason="no longer needed") == 1
    row = await house.client.get(id)
    assert (row.status, row.reason) == ("cancelled", "no longer needed")
    assert await house.client.cancel(id) == 0
    await house.executor()
    await house.worker(*shop.ALL)
    assert await house.client.run("shop.charge", {"order": 2}, timeout=20) == {"order": 2, "charged": 0}
    assert (await house.client.get(id)).status == "cancelled"


async def test_a_forged_broadcast_cancels_nothing(house: Installation) -> None:
    """A client that may write to the exchange of broadcasts may send anything."""
    await house.start(shop.wait_for, heartbeat_interval=30.0, stale_threshold=90.0)
    victim, other = await house.client.start_many("shop.wait_for", [{"seconds": 2}, {"seconds": 600}])
    await house.until("select 1 from execution where status = 'running' having count(*) = 2")
    forged = CancelRequested(ids=[victim]).model_dump_json().encode()
    transport = (await house.parts()).transport
    await transport.broadcast(forged)
    await house.client.cancel(other)  # which the same worker hears after the forged one
    await house.until("select 1 from execution where id = $1 and status = 'cancelled'", other, seconds=10)
    assert await house.client.result(victim, timeout=20) == "waited"
    assert [move.new for move in await house.client.history(victim)][-2:] == ["running", "completed"]
    await house.sound()


async def test_cancelling_a_running_execution_needs_no_heartbeat(house: Installation) -> None:
    await house.start(*shop.ALL, heartbeat_interval=20.0, stale_threshold=60.0, sweep_interval=30.0)
    id = await house.client.start("shop.wait_for", {"seconds": 60})
    await house.until("select 1 from execution where id = $1 and status = 'running'", id)
    assert await house.client.cancel(id) == 1
    await house.until("select 1 from execution where id = $1 and status = 'cancelled'", id, seconds=10)
    assert [attempt.outcome for attempt in await house.client.attempts(id)] == ["cancelled"]
    await house.sound()


async def test_waiting_for_something_that_does_not_exist_says_so(house: Installation) -> None:
    with pytest.raises(NotFound):
        await house.client.result(new_id(), timeout=20)


async def test_a_delayed_execution_waits_for_its_instant(house: Installation) -> None:
    await house.start(*shop.ALL)
    id = await house.client.start("shop.charge", {"order": 1}, delay=0.3)
    await house.client.result(id, timeout=20)
    rows = await house.rows(
        "select (select at from history where execution_id = e.id and new = 'running') >= e.ready_at as waited "
        "from execution e where id = $1",
        id,
    )
    assert rows[0]["waited"]


async def test_applying_twice_changes_nothing(house: Installation) -> None:
    first = await house.apply(*shop.ALL)
    assert {change.what for change in first} == {"new"}
    second = await house.apply(*shop.ALL)
    assert {change.what for change in second} == {"unchanged"}
