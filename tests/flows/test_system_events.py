"""System events in a whole installation: each move that a rule asks for raises one event, and a rule never starts itself."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Annotated, Any
from uuid import UUID

import asyncpg
import orjson
import pytest
from pydantic import SecretStr

from penstock import AskInquiry, Limit, NonRetryable, Rule, Schedule, Secret, Trigger, action, current
from penstock.errors import DefinitionError, ExecutionFailed, InvalidInput
from penstock.language.schemas import Schema
from penstock.language.terms.system_triggers import SYSTEM_TRIGGERS
from penstock.language.workflows import from_yaml
from penstock.operate import encryption, event_rules, webhooks
from penstock.store.session.staged_messages import StagedMessage
from tests.flows.installation import AS_USED, Installation
from tests.penstock.operate.keys import KEY

pytestmark = pytest.mark.either_transport

HEARD: list[dict[str, Any]] = []
"""The payloads that rules passed to their action."""
GATE = asyncio.Event()

told = Trigger("alerts.told", schema={"n": "integer"})


@action(pack="alerts")
async def hear(event: dict[str, Any]) -> None:
    HEARD.append(event)


@action(pack="alerts")
async def cry(event: dict[str, Any]) -> None:
    HEARD.append(event)
    raise NonRetryable("nobody picks up")


@action(pack="alerts")
async def fail_and_tell(event: dict[str, Any]) -> None:
    HEARD.append(event)
    await current().publish("alerts.told", {"n": 1})
    await current().start("alerts.break_down", {"n": 0})


@action(pack="alerts", on_failure="alerts.fall_too")
async def fall(event: dict[str, Any]) -> None:
    HEARD.append(event)
    raise NonRetryable("the first falls")


@action(pack="alerts")
async def fall_too(execution: str, status: str, result: Any, error: Any) -> None:
    raise NonRetryable("and the one after it")


@action(
    pack="alerts",
    title="order {{ parameters.n }} of {{ parameters.password }}",
    run_labels={"team": "billing"},
)
async def break_down(n: int, password: Annotated[str, Secret] = "") -> None:
    raise NonRetryable(f"order {n} is lost")


@action(pack="alerts", retry={"max_attempts": 3, "initial_delay": 0.01})
async def recover() -> int:
    if current().attempt < 3:
        raise ConnectionError("not yet")
    return current().attempt


@action(pack="alerts", timeout=0.2)
async def tarry() -> None:
    await asyncio.sleep(60)


@action(pack="alerts", warn_after=0.3)
async def stay(seconds: float = 60.0) -> None:
    async with asyncio.timeout(seconds):
        await GATE.wait()


@action(pack="alerts", warn_after=0.4, retry={"max_attempts": 5, "initial_delay": 0.01})
async def try_again() -> None:
    if current().attempt < 4:
        raise ConnectionError("not yet")
    await GATE.wait()


@action(pack="alerts")
async def ask() -> bool:
    raise AskInquiry("Deploy?", schema={"type": "boolean"}, assignee="ada", timeout=60)


@action(pack="alerts", breaker={"failures": 2, "probe": "1h"})
async def call(n: int) -> None:
    raise ConnectionError("the bank is down")


@action(pack="alerts", limits=[Limit(budget="tokens", cost="{{ parameters.tokens }}")])
async def spend(tokens: float) -> float:
    return tokens


@action(pack="alerts", route="nowhere")
async def idle() -> None: ...


flow = from_yaml("""
workflow: alerts.flow
warn_after: 300ms
tasks:
  first: {action: alerts.break_down, input: {n: 7}}
""")
slow_flow = from_yaml("""
workflow: alerts.slow_flow
warn_after: 300ms
tasks:
  first: {action: alerts.stay}
""")
spending = from_yaml("""
workflow: alerts.spending
parameters: {parts: {type: array}}
tasks:
  parts:
    with_items: "{{ parameters.parts }}"
    concurrency: 1
    action: alerts.spend
    input: {tokens: "{{ item }}"}
""")
watching = from_yaml("""
workflow: alerts.watching
tasks:
  wait:
    wait_for_event: {trigger: penstock.execution.failed, filter: "event.payload.action == 'alerts.break_down'"}
output: "{{ tasks.wait.result.payload.error.message }}"
""")

ACTIONS = (
    hear, cry, fail_and_tell, fall, fall_too, break_down, recover, tarry, stay, try_again, ask, call, spend, idle,
)  # fmt: skip
LATE_TIMER = "select due_at from timer where execution_id = $1 and kind = 'late'"
EVENTS = "select id, tenant, payload::text as payload from event where trigger = $1 order by id"


def rule(kind: str, name: str = "alerts.rule", **options: Any) -> Rule:
    return Rule(
        name, trigger=f"penstock.{kind}", **{"action": hear, "params": {"event": "{{ payload }}"}, **options}
    )


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    global GATE
    HEARD.clear()
    GATE = asyncio.Event()
    yield
    GATE.set()


async def settled(house: Installation) -> None:
    await house.until(
        "select 1 where not exists (select from unmatched) and not exists (select from outbox) "
        "and not exists (select from untold) and not exists (select from execution where finished_at is null)",
        seconds=60,
    )


async def raised(house: Installation, kind: str, count: int = 1) -> list[dict[str, Any]]:
    """Return the payloads that the rule heard, once so many events are stored. Each has the shape of its trigger."""
    trigger = f"penstock.{kind}"
    await house.until(
        "select 1 from event where trigger = $1 having count(*) >= $2", trigger, count, seconds=30
    )
    await house.until(
        "select 1 where not exists (select from unmatched) and not exists (select from execution e join namespace n "
        "on n.id = e.namespace_id where n.action = 'alerts.hear' and e.finished_at is null)"
    )
    assert len(await house.rows(EVENTS, trigger)) == count
    heard = [event for event in HEARD if set(event) == set(SYSTEM_TRIGGERS[trigger].fields)]
    for event in heard:
        Schema(SYSTEM_TRIGGERS[trigger].schema()).validate(event, what=trigger)
        assert event["version"] == 1
    assert len(heard) == count
    return heard


async def failed(house: Installation, id: UUID) -> None:
    with pytest.raises(ExecutionFailed):
        await house.client.result(id, timeout=30)


async def test_failed_execution_raises_one_event(house: Installation) -> None:
    await house.start(*ACTIONS, rule("execution.failed"))
    await house.executor()
    id = await house.client.start(break_down, {"n": 7, "password": "hunter2"}, labels={"customer": "acme"})
    await failed(house, id)
    [event] = await raised(house, "execution.failed")
    assert event["execution"] == event["root"] == str(id)
    assert (event["status"], event["attempt"], event["parent"], event["task"]) == ("failed", 1, None, None)
    assert (event["action"], event["pack"], event["tenant"]) == ("alerts.break_down", "alerts", "public")
    assert event["namespace"] == "public::alerts::break_down"
    assert event["error"] == {"type": "NonRetryable", "message": "order 7 is lost"}
    assert event["labels"] == {"team": "billing", "customer": "acme"}
    assert event["title"] == "order 7 of ***"
    assert event["created_at"] < event["started_at"] < event["ended_at"]
    assert event["path"] == f"/executions/{id}"
    [row] = await house.rows(EVENTS, "penstock.execution.failed")
    assert "hunter2" not in row["payload"]
    assert '"order 7 of ***"' in row["payload"]
    await settled(house)
    await house.sound()


async def test_only_the_last_attempt_raises_an_event(house: Installation) -> None:
    await house.start(*ACTIONS, rule("execution.failed"))
    assert await house.client.run(recover, timeout=30) == 3
    await failed(house, await house.client.start(tarry))
    [event] = await raised(house, "execution.failed")
    assert (event["action"], event["status"]) == ("alerts.tarry", "timeout")
    await settled(house)


async def test_cancelled_execution_raises_no_event(house: Installation) -> None:
    await house.start(*ACTIONS, rule("execution.failed"))
    id = await house.client.start(stay)
    await house.until("select 1 from execution where id = $1 and status = 'running'", id)
    await house.client.cancel(id)
    await settled(house)
    assert not await house.rows("select 1 from event")


async def test_task_and_workflow_raise_an_event_each_with_one_root(house: Installation) -> None:
    await house.start(*ACTIONS, flow, rule("execution.failed"), rule(
        "execution.failed", "alerts.roots", action=cry, when="payload.parent is none",
    ))  # fmt: skip
    id = await house.client.start(flow)
    await failed(house, id)
    await house.until("select 1 from event having count(*) >= 2")
    await settled(house)
    assert len(await house.rows("select 1 from event")) == 2
    by_task = {event["task"]: event for event in HEARD}
    assert {event["root"] for event in HEARD} == {str(id)}
    assert by_task["first"]["parent"] == str(id)
    assert by_task["first"]["namespace"] == "public::alerts::flow::first"
    assert by_task[None]["execution"] == str(id)
    assert len(HEARD) == 3, "the second rule has heard of the root alone"
    await house.sound()


async def test_without_a_rule_nothing_is_written(house: Installation) -> None:
    asked = rule("execution.failed", enabled=False), rule("execution.failed", "alerts.other", tenant="acme")
    await house.start(*ACTIONS, flow, *asked)
    await failed(house, await house.client.start(flow))
    await failed(house, await house.client.start(break_down, {"n": 1}))
    await settled(house)
    for table in ("event", "unmatched", "chain_step"):
        assert not await house.rows(f"select 1 from {table}")


async def test_rule_of_a_tenant_hears_of_its_own_executions(house: Installation) -> None:
    await house.start(*ACTIONS, rule("execution.failed", tenant="acme"))
    for tenant in ("bolt", "acme", "public"):
        await failed(house, await house.client.start(break_down, {"n": 1}, tenant=tenant))
    [event] = await raised(house, "execution.failed")
    assert event["tenant"] == "acme"
    await settled(house)
    rows = await house.rows(
        "select split_part(n.name, '::', 1) as tenant from execution e join namespace n on n.id = e.namespace_id "
        "where n.action = 'alerts.hear'"
    )
    assert [row["tenant"] for row in rows] == ["acme"]


async def test_waiting_task_gets_the_event(house: Installation) -> None:
    await house.start(*ACTIONS, watching)
    id = await house.client.start(watching)
    await house.until("select 1 from event_wait")
    await failed(house, await house.client.start(break_down, {"n": 9}))
    assert await house.client.result(id, timeout=30) == "order 9 is lost"


async def test_values_of_an_encrypted_tenant_stay_sealed(
    make_house: Callable[..., Installation], database: str
) -> None:
    async with make_house(secrets_key=SecretStr(KEY)) as house:
        await house.start(*ACTIONS, rule("execution.failed"), rule("inquiry.opened", "alerts.asked"))
        await encryption.encrypt(house.session, "acme", by="ada")
        await failed(house, await house.client.start(break_down, {"n": 77}, tenant="acme"))
        await house.client.start(ask, tenant="acme")
        [event] = await raised(house, "execution.failed")
        assert event["title"] == "order 77 of ***"
        assert event["error"]["message"] == "order 77 is lost"
        [opened] = await raised(house, "inquiry.opened")
        assert opened["prompt"] == "Deploy?"
        connection = await asyncpg.connect(database)
        stored = str(await connection.fetch("select payload from event"))
        await connection.close()
        assert "$sealed" in stored
        for value in ("order 77", "Deploy?"):
            assert value not in stored


# -- no loops ---------------------------------------------------------------------------------------------------------


async def test_action_that_always_fails_is_started_once(house: Installation) -> None:
    await house.start(*ACTIONS, rule("execution.failed", action=cry))
    await house.executor()
    for n in range(3):
        await failed(house, await house.client.start(break_down, {"n": n}))
    await house.until("select 1 from event having count(*) >= 3")
    await settled(house)
    assert len(await house.rows("select 1 from event")) == 3
    assert len(HEARD) == 3
    await house.sound()


async def test_effects_and_callbacks_of_its_action_raise_nothing_again(house: Installation) -> None:
    after = Rule("alerts.after", trigger=told, action=cry, params={"event": {"n": "{{ payload.n }}"}})
    await house.start(
        *ACTIONS, told, after,
        rule("execution.failed", action=fail_and_tell),
        rule("execution.failed", "alerts.second", action=fall),
    )  # fmt: skip
    await failed(house, await house.client.start(break_down, {"n": 1}))
    await house.until("select 1 from event where trigger = 'alerts.told'")
    await house.until(
        "select 1 from execution e join namespace n on n.id = e.namespace_id where n.action = 'alerts.fall_too'"
    )
    await settled(house)
    rows = await house.rows("select trigger, count(*) from event group by 1 order by 1")
    assert [tuple(row) for row in rows] == [("alerts.told", 1), ("penstock.execution.failed", 1)]
    assert await house.statuses() == {"failed": 5, "completed": 1}
    await house.sound()


async def test_bounds_of_a_chain_reach_beyond_its_failures(house: Installation) -> None:
    """A rule that starts what fails: each failure is of a chain with a bound, and so is what its event starts."""
    begin = Rule("alerts.begin", trigger=told, action=break_down, params={"n": "{{ payload.n }}"})
    await house.start(*ACTIONS, told, begin, rule("execution.failed"))
    await house.client.publish("alerts.told", {"n": 1}, max_depth=1)
    await house.until("select 1 from enforcement where error like 'ChainCut: max_depth=1%'")
    await settled(house)
    assert not HEARD


# -- the doors --------------------------------------------------------------------------------------------------------


async def test_no_door_takes_a_system_event(house: Installation) -> None:
    @action(pack="alerts")
    async def forge() -> None:
        await current().publish("penstock.execution.failed", {})

    await house.start(*ACTIONS, forge, rule("execution.failed", action=hear))
    with pytest.raises(InvalidInput, match=r"penstock\.execution\.failed is not published") as refused:
        await house.client.publish("penstock.execution.failed", {})
    assert "your own pack" in str(refused.value.hint)
    with pytest.raises(InvalidInput, match="is not published"):
        await webhooks.put(
            house.session,
            "hook",
            trigger="penstock.worker.lost",
            signature="secret",
            secret="s" * 20,
            by="ada",
        )
    with pytest.raises(InvalidInput, match="written by Penstock alone"):
        await house.rows(
            "select * from store_events(array[gen_random_uuid()], array['penstock.execution.failed'], array['public'], "
            "array['{}'], array['me'], array[null], array[null], false)"
        )
    id = await house.client.start(forge)
    with pytest.raises(ExecutionFailed, match="is not published"):
        await house.client.result(id, timeout=30)
    [event] = await raised(house, "execution.failed")
    assert event["execution"] == str(id)


def test_unknown_system_trigger_is_refused_with_the_list() -> None:
    with pytest.raises(DefinitionError) as refused:
        rule("execution.fails")
    assert "is not a system trigger: 'penstock.execution.fails'" in str(refused.value)
    assert "penstock.execution.failed, penstock.execution.late" in str(refused.value.hint)
    with pytest.raises(DefinitionError, match="pack of system triggers"):
        Trigger("penstock.failed")


async def test_rule_with_an_unknown_field_is_refused(house: Installation) -> None:
    with pytest.raises(DefinitionError, match=r"there is no `acton` in `payload`"):
        await house.apply(*ACTIONS, rule("execution.failed", when="payload.acton == 'alerts.hear'"))


async def test_rule_is_tried_on_a_system_event(house: Installation) -> None:
    await house.apply(*ACTIONS, rule("execution.failed", when="payload.parent is none"))
    for parent, verdict in ((None, "matched"), ("x", "no match")):
        [tried] = await event_rules.tried_on(house.session, "penstock.execution.failed", {"parent": parent})
        assert tried["verdict"] == verdict


# -- the other triggers -----------------------------------------------------------------------------------------------


async def test_inquiry_raises_one_event(house: Installation) -> None:
    await house.start(*ACTIONS, rule("inquiry.opened"))
    id = await house.client.start(ask)
    [event] = await raised(house, "inquiry.opened")
    assert (event["execution"], event["prompt"], event["assignee"]) == (str(id), "Deploy?", "ada")
    await house.client.answer(id, True, by="ada")
    await settled(house)
    assert len(await house.rows(EVENTS, "penstock.inquiry.opened")) == 1


async def test_opened_breaker_raises_one_event(house: Installation) -> None:
    await house.start(*ACTIONS, rule("breaker.opened"), concurrency=1)
    ids = await house.client.start_many(call, [{"n": n} for n in range(2)])
    [event] = await raised(house, "breaker.opened")
    assert (event["breaker"], event["scope"]) == ("alerts.call.breaker", "alerts.call")
    assert (event["failed"], event["attempts"]) == (2, 2)
    assert event["execution"] in map(str, ids)
    await settled(house)
    await house.sound()


async def test_spent_budget_raises_one_event(house: Installation) -> None:
    await house.start(*ACTIONS, spending, rule("budget.spent"))
    good = await house.client.start(spending, {"parts": [10, 20]}, budget={"tokens": 30})
    await house.client.result(good, timeout=30)
    bad = await house.client.start(spending, {"parts": [10, 21, 22]}, budget={"tokens": 30})
    await failed(house, bad)
    [event] = await raised(house, "budget.spent")
    assert (event["root"], event["unit"], event["amount"], event["left"]) == (str(bad), "tokens", 30, 20)
    assert event["needed"] in (21, 22)
    assert event["when_spent"] == "refuse"
    await settled(house)
    await house.sound()


async def test_skipped_fires_raise_an_event_each(house: Installation) -> None:
    nightly = Schedule("alerts.nightly", action=recover, every="1h", missed={"policy": "skip"})
    await house.apply(*ACTIONS, nightly, rule("schedule.missed"))
    await house.rows(
        "update schedule set since = clock_timestamp() - interval '4 hours', "
        "next_due = clock_timestamp() - interval '3 hours' returning 1"
    )
    await asyncio.gather(house.executor(), house.executor(), house.worker(*ACTIONS))
    [fires] = await house.until(
        "select array_agg(due_at order by due_at) as due from fire where status = 'skipped' having count(*) > 0"
    )
    events = await raised(house, "schedule.missed", len(fires["due"]))
    assert sorted(event["due_at"] for event in events) == [
        f"{due:%Y-%m-%dT%H:%M:%S.%fZ}" for due in fires["due"]
    ]
    assert {(event["schedule"], event["action"]) for event in events} == {
        ("alerts.nightly", "alerts.recover")
    }


async def test_late_execution_raises_one_event(house: Installation) -> None:
    await house.start(*ACTIONS, slow_flow, rule("execution.late"))
    await house.executor()
    in_time = await house.client.start(recover)
    late = await house.client.start(stay)
    run = await house.client.start(slow_flow)
    await house.client.result(in_time, timeout=30)
    events = await raised(house, "execution.late", 3)
    roots = [event["root"] for event in events]
    assert sorted(roots) == sorted([str(late), str(run), str(run)])
    assert {event["warn_after"] for event in events} == {0.3}
    assert all(event["ended_at"] is None and event["status"] == "running" for event in events)
    assert all(event["started_at"] is not None for event in events)
    GATE.set()
    await settled(house)
    assert len(await house.rows(EVENTS, "penstock.execution.late")) == 3
    await house.sound()


async def test_lateness_counts_from_the_first_start(house: Installation) -> None:
    """The time that an execution waits for its worker does not count, and a retry does not begin it again."""
    await house.apply(*ACTIONS, rule("execution.late"))
    await house.executor()
    waiting = await house.client.start(stay)
    [timer] = await house.until(LATE_TIMER, waiting)
    # The timer fires before any worker has come, and is set again.
    await house.until(f"{LATE_TIMER} and due_at > $2", waiting, timer["due_at"])
    assert not await house.rows("select 1 from event")
    await house.worker(*ACTIONS)
    retried = await house.client.start(try_again)
    events = {event["execution"]: event for event in await raised(house, "execution.late", 2)}
    starts = await house.rows(
        "select h.execution_id, min(h.at) + make_interval(secs => case when h.execution_id = $1 then 0.2 else 0.3 end) <= "
        "(select v.created_at from event v where v.payload ->> 'execution' = h.execution_id::text) as was_late "
        "from history h where h.execution_id in ($1, $2) and h.new = 'running' group by 1",
        waiting, retried,
    )  # fmt: skip
    assert [row["was_late"] for row in starts] == [True, True]
    assert events[str(retried)]["attempt"] > 1  # how many retries fit into 0.3 s is up to the machine
    GATE.set()
    await settled(house)


async def test_ended_execution_is_not_late(house: Installation) -> None:
    await house.start(*ACTIONS, rule("execution.late"))
    GATE.set()
    await house.client.run(stay, timeout=30)
    await settled(house)
    assert not await house.rows("select 1 from timer")
    assert not await house.rows("select 1 from event")


async def test_stuck_execution_raises_one_event(house: Installation) -> None:
    await house.start(*ACTIONS, rule("execution.stuck"), stuck_after=0.2)
    await house.executor(stuck_after=0.2)
    id = await house.client.start(idle)
    [event] = await raised(house, "execution.stuck")
    assert (event["execution"], event["route"], event["status"]) == (str(id), "nowhere", "scheduled")
    await asyncio.sleep(1)
    assert len(await house.rows(EVENTS, "penstock.execution.stuck")) == 1
    await house.worker(idle, routes="nowhere")
    await house.client.result(id, timeout=30)
    await settled(house)
    await house.until("select 1 where not exists (select from stuck)")


async def test_stuck_waiter_of_a_limit_raises_one_event(house: Installation) -> None:
    limited = idle.with_options(ref="alerts.limited", limits=[Limit(1)])
    await house.start(*ACTIONS, limited, rule("execution.stuck"), stuck_after=0.2)
    ids = await house.client.start_many(limited, [{}, {}])
    events = await raised(house, "execution.stuck", 2)
    assert sorted(event["execution"] for event in events) == sorted(map(str, ids))


async def test_two_tenants_hear_of_a_lost_worker(house: Installation) -> None:
    await house.start(*ACTIONS, rule("worker.lost"), **AS_USED)
    ids = [await house.client.start(stay, tenant=tenant) for tenant in ("acme", "bolt", "acme")]
    await house.until("select 1 from execution where status = 'running' having count(*) = 3")
    # As a worker that left with work in hand.
    await house.rows("update process set beat_at = '-infinity' where kind = 'worker' returning 1")
    events = {event["tenant"]: event for event in await raised_by_hand(house, 2)}
    assert events["acme"]["executions"] == sorted(map(str, (ids[0], ids[2])))
    assert (events["acme"]["count"], events["bolt"]["count"]) == (2, 1)
    assert events["bolt"]["routes"] == ["default"]
    assert "left with work in hand" in events["bolt"]["reason"]


async def raised_by_hand(house: Installation, count: int) -> list[dict[str, Any]]:
    """Return the payloads of lost workers as they are stored: their worker may still be away."""
    rows = await house.until(
        "select payload::text as payload from event where trigger = 'penstock.worker.lost' and (select count(*) from event "
        "where trigger = 'penstock.worker.lost') >= $1", count,
    )  # fmt: skip
    assert len(rows) == count
    events = [orjson.loads(row["payload"]) for row in rows]
    for event in events:
        Schema(SYSTEM_TRIGGERS["penstock.worker.lost"].schema()).validate(event, what="worker.lost")
    return events


async def test_two_executors_that_handle_one_message_start_once(house: Installation) -> None:
    await house.start(*ACTIONS, rule("execution.failed"))
    await house.executor()
    ids = await asyncio.gather(*(house.client.start(break_down, {"n": n}) for n in range(20)))
    for id in ids:
        await failed(house, id)
    events = await raised(house, "execution.failed", 20)
    parts = await house.parts()
    for _ in range(2):
        rows = await house.rows(
            "insert into outbox (queue, ids) select 'event.created', array_agg(id order by id desc) from event "
            "returning id as outbox_id, queue, ids"
        )
        parts.publisher.publish([StagedMessage(*row) for row in rows])
        await parts.publisher.flush()
    await settled(house)
    assert sorted(event["execution"] for event in events) == sorted(map(str, ids))
    assert len(HEARD) == 20
    await house.sound()
