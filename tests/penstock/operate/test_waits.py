"""Every kind of wait that exists, made for real, and the sentence about each."""

from __future__ import annotations

import ast
import asyncio
import inspect
import re
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from types import ModuleType
from typing import Any
from uuid import UUID

import orjson
import pytest
from pydantic import SecretStr

from penstock import DurableContext, Limit, Trigger, action, later
from penstock.language.terms.ids import new_id
from penstock.language.workflows import from_yaml
from penstock.messaging import envelope
from penstock.operate.why import Why, answer, ended, not_started, queued, why, workflow
from penstock.operate.why import running as running_answers
from penstock.settings import Settings
from penstock.store.admission import admission_line
from penstock.store.session.database import Database
from tests.flows.installation import AS_USED, Installation
from tests.penstock.store.admission import test_budgets, test_weights
from tests.penstock.store.admission.desk import Desk
from tests.servers import databases
from tests.servers.postgres import Postgres

READERS: tuple[ModuleType, ...] = (not_started, queued, running_answers, workflow, ended)
ONE = Limit(1, ref="shop.one", scope="shop")
EXECUTOR = "insert into process (id, kind, name) values ($1, 'executor', 'executor-1') returning id"
LETTER = """
insert into dead_letter (id, queue, reason, body, fingerprint) values ($1, $2, 'its mapping is odd', $3, 'x') returning id
"""


class Scene:
    """A database of its own, and what makes waits in it. `broker`: the answer is asked as if RabbitMQ carried messages."""

    def __init__(self, house: Installation, desk: Desk, patch: pytest.MonkeyPatch) -> None:
        self.house, self.desk, self.patch = house, desk, patch
        self.broker = False
        self.task: str | None = None

    async def sql(self, statement: str, *args: Any) -> None:
        await self.desk.session.fetch(f"{statement} returning 1", *args)

    async def executor(self) -> None:
        await self.desk.session.fetch(EXECUTOR, new_id())

    async def letter(self, queue: str, id: UUID) -> None:
        await self.desk.session.fetch(LETTER, new_id(), queue, envelope.encode(queue, [id]))

    async def run(self, ref: str, until: str, **params: Any) -> UUID:
        """Start with services, and wait until a query about the execution gives rows."""
        await self.house.start(*DEFINITIONS, **AS_USED)
        id = await self.house.client.start(ref, params)
        await self.house.until(until, id)
        return id


Make = Callable[[Scene], Awaitable[UUID]]
KINDS: dict[str, tuple[str, Make]] = {}
"""By name, the pattern of the sentence, and the function that makes the wait and returns the execution."""


def kind(pattern: str) -> Callable[[Make], Make]:
    def keep(make: Make) -> Make:
        KINDS[make.__name__] = pattern, make
        return make

    return keep


async def requested(scene: Scene) -> UUID:
    await scene.desk.open()
    [id] = await scene.desk.request(1)
    return id


@kind(r"Waits for an executor, and none is online\.")
async def no_executor(scene: Scene) -> UUID:
    return await requested(scene)


@kind(r"Waits for the broker, which has not accepted its message for 90 s, tried 2 times \(no room\)\.")
async def broker_away(scene: Scene) -> UUID:
    id = await requested(scene)
    await scene.executor()
    await scene.sql(
        "update outbox set created_at = created_at - interval '90 s', tries = 2, error = 'no room'"
    )
    scene.broker = True
    return id


@kind(
    r"Waits for a fix: executors could not handle its message on execution\.requested \(1 time, last .* ago\): "
    r"its mapping is odd\."
)
async def message_given_up(scene: Scene) -> UUID:
    id = await requested(scene)
    await scene.executor()
    await scene.sql("delete from outbox")
    await scene.letter("execution.requested", id)
    return id


@kind(r"Has been ready for 60 min, but its message is not in the queue\.")
async def message_lost(scene: Scene) -> UUID:
    id = await requested(scene)
    await scene.executor()
    await scene.sql("delete from outbox")
    await scene.sql("update execution set ready_at = ready_at - interval '1 h'")
    return id


@kind(r"Waits for an executor to schedule it\.")
async def message_on_its_way(scene: Scene) -> UUID:
    id = await requested(scene)
    await scene.executor()
    return id


@kind(r"Waits for the action shop\.charge, which is held by ada \(the bank is down\)\.")
async def held(scene: Scene) -> UUID:
    await scene.desk.open()
    await scene.house.client.holds.hold("action", "shop.charge", by="ada", reason="the bank is down")
    [id] = await scene.desk.start(1)
    return id


@kind(r"Waits for an executor to schedule it: its hold was released a moment ago\.")
async def hold_just_released(scene: Scene) -> UUID:
    id = await held(scene)
    await scene.sql("delete from hold")
    return id


@kind(r"Is due to start in 60 min\.")
async def delayed(scene: Scene) -> UUID:
    await scene.desk.open()
    return await scene.house.client.start("shop.charge", {}, delay=3600)


@kind(r"Starts in 60 min, unless another request with the same debounce key comes first\.")
async def debounced(scene: Scene) -> UUID:
    await scene.desk.open()
    burst: dict[str, Any] = {"debounce": 3600, "debounce_key": "a", "at_most": 7200}
    await scene.house.client.start("shop.charge", {}, **burst)
    return await scene.house.client.start("shop.charge", {}, **burst)


async def ended_attempt(scene: Scene, result: str | None, error: str | None) -> UUID:
    await scene.desk.open()
    [id] = await scene.desk.start(1)
    await scene.desk.claim([id])
    await scene.desk.session.fetch(
        "select * from finish_attempts($1, array[$2::uuid], '{1}', '{requested}', array[$3], array[$4], '{30}', null, null, "
        "'{}', '{}')",
        scene.desk.worker,
        id,
        result,
        error,
    )
    return id


@kind(r"Waits for its next attempt, which is due in (30|29) s: the action deferred itself\.")
async def deferred(scene: Scene) -> UUID:
    return await ended_attempt(scene, '{"state": 1}', None)


@kind(r"Waits for attempt 2, which is due in (30|29) s: attempt 1 failed \(E: the bank is closed\)\.")
async def retried(scene: Scene) -> UUID:
    return await ended_attempt(scene, None, '{"type": "E", "message": "the bank is closed"}')


@kind(r"Waits for a worker that serves the route default and has shop\.charge: no worker is online\.")
async def no_worker(scene: Scene) -> UUID:
    await scene.desk.open(worker=False)
    [id] = await scene.desk.start(1)
    return id


@kind(r"Waits for a worker that .* has shop\.charge: 1 worker serves this route, but lacks the action\.")
async def no_worker_with_the_code(scene: Scene) -> UUID:
    id = await no_worker(scene)
    await scene.desk.hire("shop.refund")
    return id


@kind(r"Waits for the broker, which has not accepted its message for 90 s, tried 1 time\.")
async def broker_away_from_the_route(scene: Scene) -> UUID:
    await scene.desk.open()
    [id] = await scene.desk.start(1)
    await scene.sql("update outbox set created_at = created_at - interval '90 s', tries = 1")
    scene.broker = True
    return id


@kind(
    r"Waits for room on 1 worker that can run it: the task executor async of the worker worker had no room for it .* m?s ago\."
)
async def parked(scene: Scene) -> UUID:
    await scene.desk.open()
    [id] = await scene.desk.start(1)
    await scene.sql(
        "insert into parked (execution_id, queue, definition_id, ready_at, worker, executor) select id, 'work.default', "
        "definition_id, ready_at, $1, 'async' from execution",
        scene.desk.worker,
    )
    return id


@kind(r"Waits for a free slot of 1 worker that can run it: at the last heartbeat, all slots were in use\.")
async def workers_busy(scene: Scene) -> UUID:
    await scene.desk.open()
    [id] = await scene.desk.start(1)
    await scene.sql("update process set concurrency = 1, holding = array[$1::uuid]", new_id())
    return id


@kind(r"Has waited on its route for 60 min, and 1 worker that can run it did not claim it\.")
async def not_taken(scene: Scene) -> UUID:
    await scene.desk.open()
    [id] = await scene.desk.start(1)
    await scene.sql("delete from outbox")
    await scene.sql("update execution set ready_at = ready_at - interval '1 h', since = null")
    await scene.sql("update process set concurrency = 1")
    return id


@kind(r"Waits for a worker to claim it: 1 worker can run it\.")
async def on_its_route(scene: Scene) -> UUID:
    await scene.desk.open()
    [id] = await scene.desk.start(1)
    await scene.sql("update process set concurrency = 1")
    return id


async def in_line(scene: Scene) -> UUID:
    await scene.desk.open(ONE)
    ids = await scene.desk.start(2)
    return ids[1]


@kind(r"Waits for a slot of the limit shop\.one\.")
async def limit_full(scene: Scene) -> UUID:
    return await in_line(scene)


@kind(r"Has just left the queue, and is about to be sent to a worker\.")
async def line_just_left(scene: Scene) -> UUID:
    id = await in_line(scene)
    await scene.sql("delete from waiter")
    return id


@kind(r"Waits for a new place in line, since its limits have just changed\.")
async def limits_just_changed(scene: Scene) -> UUID:
    id = await in_line(scene)

    async def none(*_: Any) -> list[Any]:
        return []

    scene.patch.setattr(admission_line, "limits", none)
    return id


@kind(r"Waits for an executor, and none is online\.")
async def limits_change_without_executor(scene: Scene) -> UUID:
    id = await in_line(scene)
    await scene.desk.apply(Limit(1, ref="shop.one", scope="shop", by="customer"))
    return id


@kind(r"Waits for an executor to sort its queue again, since limits have changed\.")
async def limits_change(scene: Scene) -> UUID:
    id = await limits_change_without_executor(scene)
    await scene.executor()
    return id


@kind(r"Waits for a worker that serves the route default and has shop\.charge: no worker is online\.")
async def limit_without_worker(scene: Scene) -> UUID:
    await scene.desk.open(ONE, worker=False)
    [id] = await scene.desk.start(1)
    return id


@kind(r"Is about to leave the queue: a worker that can run it is online now\.")
async def worker_just_came(scene: Scene) -> UUID:
    id = await limit_without_worker(scene)
    await scene.desk.hire("shop.charge")
    return id


@kind(r"Waits because the breaker of bank\.pay is open since .* UTC: ada opened it \(the bank moves\)\.")
async def breaker_open(scene: Scene) -> UUID:
    await scene.house.start(*DEFINITIONS, **AS_USED)
    await scene.house.client.breakers.open("bank.pay", by="ada", reason="the bank moves")
    id = await scene.house.client.start("bank.pay")
    await scene.house.until("select from waiter where execution_id = $1", id)
    return id


@kind(
    r"Waits for the breaker of bank\.pay_with_care: failed and running calls have reached its threshold of 1, "
    r"and 0 of the last 0 attempts failed\."
)
async def breaker_with_running_calls(scene: Scene) -> UUID:
    await scene.house.start(*DEFINITIONS, **AS_USED)
    await scene.house.client.start("bank.pay_with_care")
    await scene.house.until("select from execution where status = 'running'")
    id = await scene.house.client.start("bank.pay_with_care")
    await scene.house.until("select from waiter where execution_id = $1", id)
    return id


@kind(
    r"Waits for the limit shop\.tokens: it needs 12,300 tokens, and 8,100 of 90,000 are left in this minute, .*\."
)
async def rate_with_costs(scene: Scene) -> UUID:
    await scene.desk.open(test_weights.TOKENS)
    ids = await test_weights.start(scene.desk, {"tokens": 81_900}, {"tokens": 12_300})
    return ids[1]


@kind(r"Waits for the budget of its execution tree: it needs 140 tokens, and 10 of 100 are left\.")
async def budget_spent(scene: Scene) -> UUID:
    await scene.desk.open(test_budgets.TOKENS)
    top = await test_budgets.root(scene.desk, 100, "wait")
    ids = await test_budgets.children(scene.desk, top, 70, 140)
    await scene.desk.claim(ids[:1])
    await test_weights.end(scene.desk, ids[0], 90)
    await test_budgets.settled(scene.desk)
    return ids[1]


@kind(r"Waits for the rate limit shop\.rated \(1 start in 60 s\): the next start is allowed in (60|59) s\.")
async def rate_used_up(scene: Scene) -> UUID:
    await scene.desk.open(Limit(rate="1/min", ref="shop.rated", scope="shop"))
    ids = await scene.desk.start(2)
    return ids[1]


@kind(r"Waits for an executor, and none is online\.")
async def room_without_executor(scene: Scene) -> UUID:
    id = await in_line(scene)
    await scene.sql("delete from slot")
    return id


@kind(r"Is about to leave the queue: the limit shop\.one has room\.")
async def room(scene: Scene) -> UUID:
    id = await room_without_executor(scene)
    await scene.executor()
    return id


@kind(r"Has run on worker for .* m?s, attempt 1\.")
async def running(scene: Scene) -> UUID:
    await scene.desk.open()
    [id] = await scene.desk.start(1)
    await scene.desk.claim([id])
    return id


@kind(r"Is being stopped \(asked\), and has run on worker for .* m?s\.")
async def canceling(scene: Scene) -> UUID:
    id = await running(scene)
    await scene.desk.cancel([id])
    return id


@kind(r"Waits for an answer from ops: Post 2,100 EUR\?$")
async def inquiry(scene: Scene) -> UUID:
    id = await running(scene)
    await scene.desk.finish([id], "waiting")
    await scene.sql("update inquiry set prompt = 'Post 2,100 EUR?', assignee = 'ops'")
    return id


@kind(r"Has just received its answer, and is about to continue\.")
async def just_answered(scene: Scene) -> UUID:
    id = await inquiry(scene)
    await scene.sql("delete from inquiry")
    return id


@kind(r"Waits for an outside system to complete build-7\.")
async def outside(scene: Scene) -> UUID:
    return await scene.run("wait.outside_action", "select from outside_wait where execution_id = $1")


@kind(r"Sleeps for 60 min more, in step 'sleep'\.")
async def sleep(scene: Scene) -> UUID:
    return await scene.run("wait.sleeps", "select from suspended where execution_id = $1")


@kind(
    r"Waits for attempt 2 of step 'call', which is due in .* min: attempt 1 failed \(ConnectionError: away\)\."
)
async def step_retried(scene: Scene) -> UUID:
    return await scene.run("wait.tries", "select from suspended where execution_id = $1")


@kind(r"Waits up to (5|6) min more for the signal paid\.")
async def signal(scene: Scene) -> UUID:
    return await scene.run("wait.listens", "select from suspended where execution_id = $1")


@kind(r"Step 'event' waits for an event of wait\.paid where n = 1\.")
async def event_of_a_function(scene: Scene) -> UUID:
    id = await scene.run(
        "wait.hears", "select from event_wait w join execution e on e.id = w.execution_id where e.parent = $1"
    )
    await scene.house.until("select from suspended where execution_id = $1", id)
    return id


async def awaited_event(scene: Scene) -> UUID:
    id = await scene.run(
        "wait.events",
        "select from event_wait w join execution e on e.id = w.execution_id where e.parent = $1",
    )
    [[task]] = await scene.house.rows("select id from execution where parent = $1", id)
    return UUID(str(task))


@kind(r"Waits for an event of wait\.paid where n > 3\.")
async def event(scene: Scene) -> UUID:
    return await awaited_event(scene)


@kind(r"Has just received its event, and is about to continue\.")
async def event_just_came(scene: Scene) -> UUID:
    id = await awaited_event(scene)
    await scene.sql("delete from event_wait")
    return id


@kind(r"Task 'ask' waits for an answer from ada: Post 2,100 EUR\?$")
async def task_that_asks(scene: Scene) -> UUID:
    return await scene.run("wait.asks", "select from execution where parent = $1 and status = 'waiting'")


DEEP = """
with recursive tree (id) as (
    select $1::uuid union all select e.id from execution e join tree t on e.parent = t.id)
select from execution e join tree using (id) where e.status = 'waiting' and e.task = 'ask'
"""


@kind(r"Task 'middle\.inner\.ask' waits for an answer from ada: Post 2,100 EUR\?$")
async def task_three_levels_down(scene: Scene) -> UUID:
    return await scene.run("wait.outer", DEEP)


@kind(r"Task '\S+\.ask' waits for an answer from ada: Post 2,100 EUR\?$")
async def child_of_a_function(scene: Scene) -> UUID:
    id = await scene.run("wait.calls", DEEP)
    await scene.house.until("select from suspended where execution_id = $1", id)
    return id


@kind(r"Task 'each\[0\]' has run on \S+ for .* m?s, attempt 1\.")
async def items(scene: Scene) -> UUID:
    return await scene.run(
        "wait.items", "select from execution where parent = $1 and status = 'running' having count(*) = 3"
    )


@kind(r"Task 'ask' waits for an answer: Go\?$")
async def task_that_asks_beside_one_that_runs(scene: Scene) -> UUID:
    """The one that runs began first, and ends by itself."""
    id = await scene.run("wait.both", "select from execution where parent = $1 and status = 'running'")
    await scene.house.until("select from execution where parent = $1 and status = 'waiting'", id)
    return id


@kind(r"Task '\S+\.ask' waits for an answer from ada: Post 2,100 EUR\?$")
async def child_that_asks_beside_one_that_runs(scene: Scene) -> UUID:
    id = await scene.run("wait.wide", DEEP)
    await scene.house.until("select from execution where task = 'stays' and status = 'running'")
    return id


async def paused_run(scene: Scene) -> UUID:
    id = await scene.run("wait.queue", "select from execution where parent = $1 and status = 'queued'")
    await scene.house.client.command(id, "pause", by="ada", reason="lunch")
    await scene.house.until(
        "select from workflow where execution_id = $1 and (head ->> 'paused')::boolean", id
    )
    return id


@kind(r"Is paused by ada \(lunch\)\.")
async def paused(scene: Scene) -> UUID:
    return await paused_run(scene)


@kind(r"Waits for its workflow, which is paused by ada \(lunch\)\.")
async def task_of_a_paused_run(scene: Scene) -> UUID:
    id = await paused_run(scene)
    [[task], *_] = await scene.house.until(
        "select id from execution where parent = $1 and status = 'requested'", id
    )
    return UUID(str(task))


@kind(r"Is being stopped \(asked by ada\), and still runs task 'stays'\.")
async def stopping(scene: Scene) -> UUID:
    id = await scene.run("wait.stays_on", "select from execution where parent = $1 and status = 'running'")
    await scene.house.client.cancel(id, reason="asked by ada")
    await scene.house.until("select from workflow where execution_id = $1 and stop_status is not null", id)
    await scene.house.until("select from execution where parent = $1 and status = 'canceling'", id)
    return id


@kind(r"Task 'last' does not start: its workflow is being stopped \(asked by ada\)\.")
async def task_of_a_stopping_run(scene: Scene) -> UUID:
    scene.task = "last"
    id = await scene.run("wait.stops", "select from execution where parent = $1 and status = 'running'")
    await scene.house.client.cancel(id, reason="asked by ada")
    await scene.house.until("select from workflow where execution_id = $1 and stop_status is not null", id)
    return id


async def begun_by_hand(scene: Scene) -> UUID:
    """A run of a workflow of which none of its tasks runs, and no executor lives."""
    await scene.house.apply(*DEFINITIONS)
    id = await scene.house.client.start("wait.asks")
    await scene.house.until("select from execution where id = $1 and status = 'running'", id)
    return id


@kind(r"Waits for an executor, and none is online\.")
async def workflow_without_executor(scene: Scene) -> UUID:
    return await begun_by_hand(scene)


@kind(r"Waits for an executor to start its next tasks, and none of its tasks is running\.")
async def workflow_about_to_go_on(scene: Scene) -> UUID:
    id = await begun_by_hand(scene)
    await scene.executor()
    return id


@kind(
    r"Waits for a fix: executors could not handle its message on workflow\.started \(1 time, last .* ago\): its mapping is odd\."
)
async def workflow_given_up(scene: Scene) -> UUID:
    id = await begun_by_hand(scene)
    await scene.letter("workflow.started", id)
    return id


@kind(r"Is being stopped \(asked by ada\)\.")
async def stopping_without_tasks(scene: Scene) -> UUID:
    id = await begun_by_hand(scene)
    await scene.sql(
        "insert into workflow (execution_id, definition_id, tenant, depth) select id, definition_id, 'public', 0 from execution "
        "on conflict do nothing"
    )
    await scene.sql("update workflow set stop_status = 'cancelled', stop_reason = 'asked by ada', stops = 1")
    return id


async def task_of(scene: Scene, ref: str, task: str, until: str) -> UUID:
    scene.task = task
    return await scene.run(ref, until)


@kind(r"Task 'last' waits for 1 task of its workflow: ask \(waiting\)\.")
async def dependency(scene: Scene) -> UUID:
    return await task_of(
        scene, "wait.asks", "last", "select from execution where parent = $1 and status = 'waiting'"
    )


@kind(r"Task never began|Task 'last' never began: its workflow is cancelled\.")
async def task_never_began(scene: Scene) -> UUID:
    id = await dependency(scene)
    await scene.house.client.cancel(id)
    await scene.house.until("select from execution where id = $1 and finished_at is not null", id)
    return id


@kind(r"Task 'made' has the status completed, and no execution of its own\.")
async def task_without_execution(scene: Scene) -> UUID:
    return await task_of(
        scene, "wait.asks", "made", "select from execution where parent = $1 and status = 'waiting'"
    )


@kind(r"Task 'unpaid' was skipped: its condition is false: 1 > 2\.")
async def task_skipped(scene: Scene) -> UUID:
    return await task_of(
        scene, "wait.skips", "unpaid", "select from execution where parent = $1 and status = 'waiting'"
    )


@kind(r"Task 'second' starts when its workflow is resumed and has room for it\.")
async def task_due(scene: Scene) -> UUID:
    scene.task = "second"
    id = await scene.run("wait.two", "select from execution where parent = $1 and status = 'waiting'")
    await scene.house.client.command(id, "pause", by="ada")
    await scene.house.until(
        "select from workflow where execution_id = $1 and (head ->> 'paused')::boolean", id
    )
    [[first]] = await scene.house.rows("select id from execution where parent = $1", id)
    await scene.house.client.answer(first, True, by="ada")
    await scene.house.until(
        "select from workflow_task where execution_id = $1 and record ->> 'status' = 'due'", id
    )
    return id


@kind(r"All tasks before task 'second' have ended, and an executor starts or skips it next\.")
async def task_about_to_be_decided(scene: Scene) -> UUID:
    id = await task_due(scene)
    await scene.sql("delete from workflow_task where record ->> 'status' = 'due'")
    return id


@kind(r"Failed .* m?s ago: charge, attempt 2: ValueError: too much\.")
async def failed(scene: Scene) -> UUID:
    return await scene.run("wait.fails", "select from execution where id = $1 and finished_at is not null")


@action(pack="bank", breaker={"failures": 20, "of": 50, "within": "1m", "probe": "30s"})
async def pay() -> None: ...


@action(pack="bank", breaker={"failures": 1, "counts_running": True})
async def pay_with_care() -> None:
    await asyncio.sleep(600)


@action(pack="wait")
async def stays() -> None:
    while True:
        try:
            await asyncio.sleep(600)
        except asyncio.CancelledError:
            await asyncio.sleep(2)  # so that a test sees it end
            raise


@action(pack="wait", limits=[Limit(1)])
async def alone() -> None:
    await asyncio.sleep(600)


@action(pack="wait")
async def naps(n: int) -> None:
    await asyncio.sleep(600)


@action(pack="wait", retry={"max_attempts": 2, "initial_delay": 0.0})
async def too_much() -> None:
    raise ValueError("too much")


@action(pack="wait")
async def outside_action(n: int = 0) -> Any:
    return later("build-7", timeout=330)


paid = Trigger("wait.paid")


def away() -> None:
    raise ConnectionError("away")


@action(pack="wait")
async def sleeps(ctx: DurableContext) -> None:
    await ctx.sleep(3600)


@action(pack="wait")
async def tries(ctx: DurableContext) -> None:
    await ctx.step("call", away, retry={"max_attempts": 3, "initial_delay": 3600, "max_delay": 3600})


@action(pack="wait")
async def listens(ctx: DurableContext) -> None:
    await ctx.signal("paid", timeout=330)


@action(pack="wait")
async def hears(ctx: DurableContext) -> None:
    await ctx.wait_for("wait.paid", when="event.payload.n == n", n=1, timeout=330, name="event")


@action(pack="wait")
async def calls(ctx: DurableContext) -> None:
    await ctx.run("wait.asks", {})


FLOWS = from_yaml("""
workflow: wait.asks
tasks:
  made: {action: noop}
  ask: {needs: [made], inquiry: {prompt: "Post 2,100 EUR?", assignee: ada, timeout: 60}}
  last: {action: wait.stays, needs: [ask]}
"""), from_yaml("""
workflow: wait.skips
tasks:
  unpaid: {action: noop, when: "{{ 1 > 2 }}"}
  ask: {inquiry: {prompt: "Post?", timeout: 60}}
"""), from_yaml("""
workflow: wait.middle
tasks: {inner: {workflow: wait.asks}}
"""), from_yaml("""
workflow: wait.outer
tasks: {middle: {workflow: wait.middle}}
"""), from_yaml("""
workflow: wait.items
tasks: {each: {action: wait.naps, with_items: [1, 2, 3], input: {n: "{{ item }}"}}}
"""), from_yaml("""
workflow: wait.events
tasks: {paid: {wait_for_event: {trigger: wait.paid, filter: event.payload.n > 3, timeout: 330}}}
"""), from_yaml("""
workflow: wait.queue
tasks: {a: {action: wait.alone}, b: {action: wait.alone}}
"""), from_yaml("""
workflow: wait.stays_on
tasks: {stays: {action: wait.stays}}
"""), from_yaml("""
workflow: wait.stops
tasks: {stays: {action: wait.stays}, last: {action: noop, needs: [stays]}}
"""), from_yaml("""
workflow: wait.wide
tasks: {first: {workflow: wait.stays_on}, second: {workflow: wait.asks}}
"""), from_yaml("""
workflow: wait.both
tasks:
  runs: {action: wait.naps, input: {n: 1}}
  ask: {inquiry: {prompt: "Go?"}}
"""), from_yaml("""
workflow: wait.two
tasks:
  first: {inquiry: {prompt: "Go?"}}
  second: {action: wait.stays, needs: [first]}
"""), from_yaml("""
workflow: wait.fails
tasks: {charge: {action: wait.too_much}}
""")  # fmt: skip
DEFINITIONS = (
    *(
        pay,
        pay_with_care,
        stays,
        alone,
        naps,
        too_much,
        outside_action,
        sleeps,
        tries,
        listens,
        hears,
        calls,
        paid,
    ),
    *FLOWS,
)


@asynccontextmanager
async def scene_of(server: Postgres, template: str, patch: pytest.MonkeyPatch) -> AsyncIterator[Scene]:
    name = databases.new_name()
    address = await databases.create(server, name, template=template)
    home = Database(Settings(database_url=SecretStr(address)), role="test")
    try:
        async with Installation(address, None) as house:
            yield Scene(house, Desk(home), patch)
    finally:
        await home.close()
        await databases.drop(server, name)


@pytest.fixture
def sites(monkeypatch: pytest.MonkeyPatch) -> set[tuple[str, int]]:
    """Return the places that made answers so far, as module and line."""
    places: set[tuple[str, int]] = set()

    def noting(*args: Any, **options: Any) -> Why:
        frame = sys._getframe(1)
        places.add((Path(frame.f_code.co_filename).stem, frame.f_lineno))
        return answer.why_of(*args, **options)

    for module in READERS:
        monkeypatch.setattr(module, "why_of", noting)
    return places


def written_sites() -> dict[tuple[str, int], tuple[str, range]]:
    """Return the places in the code that make answers, with their lines."""
    calls = {}
    for module in READERS:
        stem = Path(inspect.getfile(module)).stem
        for node in ast.walk(ast.parse(inspect.getsource(module))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "why_of":
                lines = range(node.lineno, (node.end_lineno or node.lineno) + 1)
                calls[stem, node.lineno] = stem, lines
    return calls


AT_ONCE = 6
"""The number of kinds that are made at the same time."""


async def faults_of(name: str, server: Postgres, template: str) -> list[str]:
    """Make a wait of this kind, and return what is wrong with its answer."""
    pattern, make = KINDS[name]
    with pytest.MonkeyPatch.context() as patch:
        async with scene_of(server, template, patch) as scene:
            id = await make(scene)
            settings = scene.house.settings(
                broker_url=SecretStr("amqp://nowhere") if scene.broker else None, **AS_USED
            )
            answered = await why(scene.desk.session, id, settings, scene.task)
    orjson.dumps(answered.document(), default=str)
    faults = [f"{name}: {detail}" for detail in answered.all_details if not re.match(r"[A-Z\d]", detail)]
    if not re.fullmatch(pattern, answered.sentence) or not answered.says.startswith(answered.sentence):
        faults.append(f"{name}: {answered.says}")
    return faults


async def test_every_wait_has_its_sentence(
    postgres_server: Postgres, template: str, sites: set[tuple[str, int]]
) -> None:
    turns = asyncio.Semaphore(AT_ONCE)

    async def in_turn(name: str) -> list[str]:
        async with turns:
            return await faults_of(name, postgres_server, template)

    names = [name for name in KINDS if name != limits_just_changed.__name__]
    faults = [fault for found in await asyncio.gather(*map(in_turn, names)) for fault in found]
    faults += await faults_of(
        limits_just_changed.__name__, postgres_server, template
    )  # it changes a function
    assert not faults, "\n".join(faults)
    unmade = [
        place
        for place, (stem, lines) in written_sites().items()
        if not any(module == stem and number in lines for module, number in sites)
    ]
    assert unmade == [], "these answers were not made by any kind of wait"
