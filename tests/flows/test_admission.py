"""Limits in a whole installation: replicas, workers, messages that come twice, changes while it runs, workflows."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any
from uuid import UUID

import pytest

from penstock import Limit, RetryPolicy, Workflow, action
from penstock.language.workflows import from_body, from_yaml
from penstock.messaging.outbox import Publisher
from penstock.run.steering import Defer
from penstock.store.executions import attempts
from penstock.store.session.staged_messages import StagedMessage
from penstock_worker.claiming.claims import Claimed, Claims
from penstock_worker.claiming.permits import Permits
from tests.flows.installation import Installation

AGAIN = "select stage('execution.requested', $1::uuid[], 50) as messages"
running: dict[str, int] = {}
most: dict[str, int] = {}


async def busy(what: str, seconds: float = 0.01) -> None:
    """Note how many do this at the same time."""
    running[what] = running.get(what, 0) + 1
    most[what] = max(most.get(what, 0), running[what])
    try:
        await asyncio.sleep(seconds)
    finally:
        running[what] -= 1


@action(pack="mill", limits=[Limit(3)])
async def grind(n: int = 0) -> int:
    await busy("grind")
    return n


@action(pack="mill", limits=[Limit(2, by="customer"), Limit(rate="1000/min")])
async def sieve(customer: str) -> None:
    await busy(f"sieve {customer}")


@action(pack="mill", limits=[Limit(1)], retry=RetryPolicy(max_attempts=2, initial_delay=0.01))
async def break_down(how: str) -> None:
    await busy("break_down", 0.001)
    if how == "fail":
        raise ValueError("it broke")
    if how == "defer":
        from penstock import current

        if current().state is None:
            raise Defer(delay=0.05, state={"again": True})


@action(pack="mill", limits=[Limit(1)], timeout=0.2)
async def jam(seconds: float = 60) -> None:
    await busy("jam", seconds)


@action(pack="mill")
async def other() -> None: ...


ACTIONS = (grind, sieve, break_down, jam)
FIRST_COME = """
select 1 from (select seq, lag((ready_at, execution_id)) over (order by seq) > (ready_at, execution_id) as wrong,
    since < lag(admitted_at) over (order by seq) as stood from admission where limit_id = $1) x where wrong and stood
"""


async def test_no_more_run_at_once_than_may_with_two_replicas_and_every_message_twice(
    house: Installation,
) -> None:
    most.clear()
    await house.start(*ACTIONS)
    await house.executor()
    await house.worker(*ACTIONS)
    ids = await house.client.start_many("mill.grind", [{"n": n} for n in range(60)])
    publisher = (await house.parts()).publisher
    for _ in range(3):
        async with house.session.transaction() as tx:
            await tx.stage(AGAIN, ids)
        publisher.publish(tx.staged)
    await house.quiet()
    assert await house.statuses() == {"completed": 60}
    assert most["grind"] == 3
    [[limit]] = await house.rows("select distinct limit_id from admission")
    assert not await house.rows(FIRST_COME, limit)
    await house.sound()


async def test_each_customer_has_slots_of_its_own_and_all_share_a_rate(house: Installation) -> None:
    most.clear()
    await house.start(*ACTIONS)
    await house.client.start_many("mill.sieve", [{"customer": f"c{n % 4}"} for n in range(40)])
    await house.quiet()
    assert await house.statuses() == {"completed": 40}
    assert {name: count for name, count in most.items() if count > 2} == {}
    await house.sound()


async def test_whatever_ends_or_parks_an_execution_frees_its_slot(house: Installation) -> None:
    most.clear()
    await house.start(*ACTIONS)
    hows = ["fine", "fail", "defer", "fine", "fail"]
    await house.client.start_many("mill.break_down", [{"how": how} for how in hows])
    late, cancelled, _ = await house.client.start_many("mill.jam", [{}, {}, {"seconds": 0.01}])
    await house.client.cancel(cancelled)
    await house.quiet(60)
    assert await house.statuses() == {"completed": 4, "failed": 2, "timeout": 1, "cancelled": 1}
    assert (await house.client.get(late)).status == "timeout"
    assert most["break_down"] == 1
    await house.sound()


async def test_a_limit_is_raised_while_executions_wait(house: Installation) -> None:
    await house.start(*ACTIONS)
    ids = await house.client.start_many("mill.jam", [{"seconds": 0.15} for _ in range(4)])
    await house.until("select 1 from execution where status = 'queued' having count(*) = 3")
    assert (await house.client.why(ids[3])).facts["position"] == 3
    await house.client.limits.set("mill.jam.all", max=4)
    await house.quiet()
    await house.client.limits.remove("mill.jam.all")
    assert (await house.client.limits.get("mill.jam.all")).max == 1
    await house.sound()


def nested(ref: str, inner: list[dict[str, Any]], **more: Any) -> Workflow:
    return from_body({"ref": ref, "limits": [{"max": 1}], "tasks": inner, **more})


# One at once of each workflow and of each of its tasks' actions; and one that contains itself.
inner = nested(
    "mill.inner", [{"name": "first", "action": "mill.grind"}, {"name": "second", "action": "mill.grind"}]
)
outer = nested(
    "mill.outer", [{"name": "sub", "workflow": "mill.inner"}, {"name": "own", "action": "mill.grind"}]
)
down = from_yaml(
    """
    workflow: mill.down
    parameters: {left: {type: integer, required: true}}
    limits: [{max: 1}]
    tasks:
      work: {action: mill.grind, input: {n: "{{ parameters.left }}"}}
      deeper:
        workflow: mill.down
        needs: [work]
        when: {context: left, op: ">", value: 0}
        input: {left: "{{ parameters.left - 1 }}"}
    """
)


async def test_a_workflow_is_never_kept_waiting_by_its_own_children(house: Installation) -> None:
    await house.start(*ACTIONS, inner, outer, down)
    await house.client.limits.set("ops.everything", max=1, scope="*")
    for ref, count in (("mill.outer", 3), ("mill.inner", 2)):
        await house.client.start_many(ref, [{} for _ in range(count)])
    await house.client.start_many("mill.down", [{"left": 2}, {"left": 1}])
    await house.quiet(90)
    statuses = await house.statuses()
    assert set(statuses) <= {"completed", "skipped"}, statuses
    await house.sound()


async def test_workflows_pass_admission_under_limits_of_their_own(house: Installation) -> None:
    await house.start(*ACTIONS, inner)
    ids = await house.client.start_many("mill.inner", [{} for _ in range(4)])
    await house.until("select 1 from waiter having count(*) = 3")
    answer = await house.client.why(ids[3])
    assert (answer.because, answer.facts["limit"]) == ("limit", "mill.inner.all")
    await house.quiet(60)
    assert await house.statuses() == {"completed": 12}
    log = await house.rows(
        "select a.execution_id from admission a join execution e on e.id = a.execution_id where e.parent is null order by seq"
    )
    assert [row[0] for row in log] == ids
    await house.sound()


steps = from_body(
    {
        "ref": "mill.steps",
        "tasks": [
            {"name": "first", "action": "mill.grind"},
            {"name": "second", "action": "mill.grind", "needs": ["first"]},
            {"name": "third", "action": "mill.grind", "needs": ["second"]},
        ],
    }
)


async def test_why_follows_a_workflow_to_the_obstacles_of_its_tasks(house: Installation) -> None:
    await house.apply(*ACTIONS, steps)
    await house.executor()
    id = await house.client.start("mill.steps")
    [[first]] = await house.until("select id from execution where parent = $1 and status = 'queued'", id)
    answer = await house.client.why(id)
    assert answer.because == "task"
    assert answer.sentence.startswith("Task 'first' waits for a worker that serves the route ")
    assert str(first) in answer.says
    assert (await house.client.why(id, "first")).because == "worker"
    second = await house.client.why(id, "second")
    assert second.because == "dependency"
    assert "Task 'second' waits for 1 task of its workflow: first (queued)." in second.says
    assert (await house.client.why(id, "third")).facts["waits_for"] == {"second": "not begun"}
    await house.client.command(id, "pause", by="ada", reason="lunch")
    await house.until("select 1 from workflow where (head ->> 'paused')::boolean")
    answer = await house.client.why(id)
    assert answer.because == "paused"
    assert "paused by ada (lunch)" in answer.says
    await house.client.command(id, "resume", by="ada")
    await house.worker(*ACTIONS)
    await house.quiet()
    assert (await house.client.why(id)).because == "ended"
    assert (await house.client.why(id, "third")).sentence.startswith("Completed ")
    await house.sound()


async def test_a_worker_claims_its_admitted_work_and_leaves_none_over(
    house: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    published: list[str] = []
    publish = Publisher.publish

    def noted(self: Publisher, staged: Sequence[StagedMessage]) -> None:
        published.extend(message.queue for message in staged)
        publish(self, staged)

    monkeypatch.setattr(Publisher, "publish", noted)
    await house.start(*ACTIONS)
    ids = await house.client.start_many("mill.grind", [{"n": n} for n in range(30)])
    assert [await house.client.result(id, timeout=20) for id in ids] == list(range(30))
    assert 1 <= published.count("work.default") <= 3, "the first went round by the broker, no other"
    assert most["grind"] <= 3
    await house.quiet()
    await house.sound()


async def test_work_that_was_let_in_is_not_lost_with_the_claim_that_fails(
    house: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed = 0
    claim = Claims.claim

    def fails(self: Claims, queue: str, ids: Sequence[UUID]) -> AsyncIterator[Claimed]:
        nonlocal failed
        if asyncio.current_task().get_name().startswith("take ") and failed < 3:  # type: ignore[union-attr]
            failed += 1
            raise RuntimeError("as planned")
        return claim(self, queue, ids)

    monkeypatch.setattr(Claims, "claim", fails)
    monkeypatch.setattr(Permits, "_wanted", lambda *_: 0)  # what is admitted goes by its route
    await house.start(*ACTIONS)
    ids = await house.client.start_many("mill.grind", [{"n": n} for n in range(12)])
    assert [await house.client.result(id, timeout=20) for id in ids] == list(range(12))
    assert failed, "the first end has the next one claimed by itself"
    await house.quiet()
    await house.sound()


async def test_ends_are_not_lost_with_the_claim_of_admitted_work(
    house: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed = 0
    finish_and_claim = attempts.finish_and_claim

    async def fails(*args: Any) -> attempts.Finished:
        nonlocal failed
        if failed < 3:
            failed += 1
            raise RuntimeError("as planned")
        return await finish_and_claim(*args)

    monkeypatch.setattr(attempts, "finish_and_claim", fails)
    await house.start(*ACTIONS)
    ids = await house.client.start_many("mill.grind", [{"n": n} for n in range(30)])
    assert [await house.client.result(id, timeout=20) for id in ids] == list(range(30))
    assert failed == 3
    await house.quiet()
    await house.sound()


async def test_a_line_before_a_limit_does_not_keep_other_work_from_a_worker_that_is_full(
    house: Installation,
) -> None:
    await house.apply(*ACTIONS, other)
    await house.executor()
    await house.worker(*ACTIONS, other, concurrency=2)
    ids = await house.client.start_many("mill.grind", [{"n": n} for n in range(300)])
    await house.client.result(ids[10], timeout=20)
    await house.client.run("mill.other", timeout=20)
    assert await house.rows("select 1 from execution where finished_at is null and status = 'queued'")
    await house.quiet()
