"""An end admits the execution that waits for its slot, and its worker claims it in the same transaction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from penstock import Limit
from penstock.language.policies.after_attempt import Ending
from penstock.language.terms.ids import new_id
from penstock.store.executions.attempts import AttemptEnd, Claimant, Finished, finish_and_claim
from tests.penstock.store.admission.desk import Desk

ONE = Limit(1, ref="shop.one", scope="shop")
THREE = Limit(3, ref="shop.three", scope="shop")
HERE = "work.default"


async def end(
    desk: Desk, ids: Sequence[UUID], queues: Sequence[str] = (HERE,), attempt: int = 1, **who: Any
) -> Finished:
    known = list(desk._definitions.values())
    given = {"known": known, "lacking": [], "limited": [], **who}
    ends = [AttemptEnd(id, attempt, Ending("completed")) for id in sorted(ids)]
    return await finish_and_claim(desk.session, Claimant(desk.worker, new_id(), **given), queues, ends, [])


async def staged(desk: Desk) -> list[UUID]:
    """Return the executions that are offered on the route."""
    rows = await desk.session.fetch("select unnest(ids) as id from outbox where queue = $1", HERE)
    return [row["id"] for row in rows]


async def test_the_next_in_line_is_claimed_and_not_offered(desk: Desk) -> None:
    await desk.open(ONE)
    ids = await desk.start(3)
    await desk.claim(ids[:1])
    await desk.session.fetch("delete from outbox")
    answer = await end(desk, ids[:1])
    assert answer.moved == {ids[0]}
    assert answer.queue == HERE
    assert [one.execution_id for one in answer.claimed.attempts] == [ids[1]]
    assert answer.staged == []
    assert await staged(desk) == []
    assert await desk.statuses(ids) == ["completed", "running", "queued"]
    rows = await desk.session.fetch(
        "select new from history where execution_id = $1 order by at, attempt", ids[1]
    )
    assert [row["new"] for row in rows] == ["requested", "queued", "scheduled", "running"]
    [claim] = await desk.session.fetch("select worker, executions from claim where executions = $1", [ids[1]])
    assert claim["worker"] == desk.worker
    await desk.sound()


async def test_no_more_are_claimed_than_end(desk: Desk) -> None:
    """A limit that was raised lets in more than one for an end; the others are offered on their route."""
    await desk.open(ONE)
    ids = await desk.start(5)
    await desk.claim(ids[:1])
    await desk.session.fetch("delete from outbox")
    await desk.session.fetch("update concurrency_limit set max = 3 returning 1")
    answer = await end(desk, ids[:1])
    assert len(answer.claimed.attempts) == 0
    assert {id for message in answer.staged for id in message.ids} == set(ids[1:4])
    assert sorted(await staged(desk)) == sorted(ids[1:4])
    assert await desk.statuses(ids) == ["completed", "scheduled", "scheduled", "scheduled", "queued"]
    await desk.sound()


async def test_of_several_envelopes_as_many_are_claimed_as_have_room(desk: Desk) -> None:
    await desk.open(ONE)
    await desk.session.fetch("update namespace set envelope = 1 returning 1")
    ids = await desk.start(5)
    await desk.claim(ids[:1])
    await desk.session.fetch("delete from outbox")
    await desk.session.fetch("update concurrency_limit set max = 3 returning 1")
    answer = await end(desk, ids[:1])
    assert [one.execution_id for one in answer.claimed.attempts] == ids[1:2]
    assert [message.ids for message in answer.staged] == [ids[2:3], ids[3:4]]
    assert await staged(desk) == ids[2:4]
    await desk.sound()


async def test_all_that_end_are_followed_whatever_envelopes_they_come_in(desk: Desk) -> None:
    await desk.open(THREE)
    await desk.session.fetch("update namespace set envelope = 1 returning 1")
    ids = await desk.start(7)
    await desk.claim(ids[:3])
    await desk.session.fetch("delete from outbox")
    answer = await end(desk, ids[:3])
    assert [one.execution_id for one in answer.claimed.attempts] == ids[3:6]
    assert await staged(desk) == []
    await desk.sound()


async def test_admitted_work_that_a_worker_does_not_know_is_offered(desk: Desk) -> None:
    await desk.open(ONE)
    ids = await desk.start(2)
    await desk.claim(ids[:1])
    await desk.session.fetch("delete from outbox")
    answer = await end(desk, ids[:1], known=[])
    assert answer.claimed.attempts == []
    assert [message.ids for message in answer.staged] == [ids[1:]]
    assert await staged(desk) == ids[1:]
    await desk.sound()


async def test_a_worker_that_takes_nothing_more_claims_nothing(desk: Desk) -> None:
    await desk.open(ONE)
    ids = await desk.start(2)
    await desk.claim(ids[:1])
    answer = await end(desk, ids[:1], queues=())
    assert answer.queue is None
    assert await desk.statuses(ids) == ["completed", "scheduled"]
    assert ids[1] in await staged(desk)
    await desk.sound()


async def test_an_attempt_that_was_taken_away_neither_ends_nor_admits(desk: Desk) -> None:
    await desk.open(ONE)
    ids = await desk.start(2)
    await desk.claim(ids[:1])
    answer = await end(desk, ids[:1], attempt=7)
    assert answer.moved == set()
    assert answer.queue is None
    assert await desk.statuses(ids) == ["running", "queued"]
    await desk.sound()
