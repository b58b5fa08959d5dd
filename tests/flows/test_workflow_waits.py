"""Tasks that wait: for events, and for the answers of humans."""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import UUID

import orjson
import pytest

from penstock import Trigger, action
from penstock.errors import Conflict, ExecutionFailed, InvalidInput
from penstock.language.workflows import from_yaml
from tests.flows.installation import Installation


@action(pack="wf")
async def echo(value: Any = None) -> Any:
    return value


paid = Trigger("shop.paid")

ORDER = from_yaml("""
workflow: wf.order
parameters: {order: {type: integer, required: true}}
tasks:
  before: {action: wf.echo, input: {value: 1}}
  payment:
    needs: [before]
    wait_for_event: {trigger: shop.paid, filter: event.payload.order == parameters.order, timeout: 60}
  after: {action: wf.echo, needs: [payment], input: {value: "{{ tasks.payment.result.payload.amount }}"}}
output: "{{ tasks.after.result }}"
""")

IMPATIENT = from_yaml("""
workflow: wf.impatient
tasks:
  payment:
    wait_for_event: {trigger: shop.paid, timeout: 0.2}
    next: [{when: timed_out(), do: remind}]
  remind: {action: wf.echo, input: {value: reminded}}
output: "{{ tasks.remind.result }}"
""")

ASKING = from_yaml("""
workflow: wf.asking
parameters: {who: {}}
tasks:
  ask:
    inquiry:
      prompt: "May {{ parameters.who }} pass?"
      schema: {type: boolean}
      assignee: ada
      timeout: 60
  pass: {action: wf.echo, needs: [ask], input: {value: "{{ tasks.ask.result }}"}}
output: "{{ tasks.pass.result }}"
""")

DEFAULTING = from_yaml("""
workflow: wf.defaulting
parameters: {default: {}}
tasks:
  ask: {inquiry: {prompt: "How many?", schema: {type: integer}, timeout: 0.2, default: "{{ parameters.default }}"}}
output: "{{ tasks.ask.result }}"
""")

LARGE = from_yaml("""
workflow: wf.large
tasks:
  payment: {wait_for_event: {trigger: shop.paid, filter: event.payload.amount > 3}}
output: "{{ tasks.payment.result.payload.amount }}"
""")

TWICE = from_yaml("""
workflow: wf.twice
tasks:
  first: {wait_for_event: {trigger: shop.paid}}
  second: {needs: [first], wait_for_event: {trigger: shop.paid}}
output: ["{{ tasks.first.result.payload.n }}", "{{ tasks.second.result.payload.n }}"]
""")

EACH = from_yaml("""
workflow: wf.each
tasks:
  all:
    with_items: [1, 2, 3]
    wait_for_event: {trigger: shop.paid, filter: event.payload.n == item}
output: "{{ tasks.all.result | map(attribute='payload') | map(attribute='n') | list }}"
""")

ALL = (echo, paid, ORDER, IMPATIENT, ASKING, DEFAULTING, TWICE, EACH, LARGE)
WAITING = "select id from execution where parent = $1 and status = 'waiting'"


async def waiting(house: Installation, run: UUID) -> UUID:
    """The task of this run that waits."""
    id: UUID = (await house.until(WAITING, run))[0]["id"]
    return id


async def test_a_task_completes_with_the_event_that_it_waits_for(house: Installation) -> None:
    await house.start(*ALL)
    one, other = [await house.client.start("wf.order", {"order": n}) for n in (1, 2)]
    task = await waiting(house, one)
    await waiting(house, other)
    assert not await house.rows("select 1 from claim where $1 = any(executions)", task)
    assert not await house.rows("select 1 from slot")
    await house.client.publish("shop.paid", {"order": 3, "amount": 9})
    await house.client.publish("shop.paid", {"order": 2, "amount": 20})
    assert await house.client.result(other, timeout=30) == 20
    assert (await house.client.get(task)).status == "waiting"
    await house.client.publish("shop.paid", {"order": 1, "amount": 10})
    assert await house.client.result(one, timeout=30) == 10
    await house.quiet()
    assert not await house.rows("select 1 from event_wait")
    await house.sound()


async def test_a_workflow_that_runs_for_the_first_time_places_its_later_tasks_too(
    house: Installation,
) -> None:
    await house.start(*ALL)
    await waiting(house, await house.client.start("wf.order", {"order": 1}))
    placed = await house.rows(
        "select name, queue from namespace where name like 'public::wf::order::%' order by 1"
    )
    assert [tuple(row) for row in placed] == [
        ("public::wf::order::after", "work.default"),
        ("public::wf::order::before", "work.default"),
        ("public::wf::order::payment", None),
    ]


async def test_every_wait_that_an_event_fits_is_met_by_it(house: Installation) -> None:
    await house.start(*ALL)
    runs = [await house.client.start("wf.order", {"order": 1}) for _ in range(10)]
    for run in runs:
        await waiting(house, run)
    await house.client.publish("shop.paid", {"order": 1, "amount": 5})
    assert [await house.client.result(run, timeout=30) for run in runs] == [5] * 10
    await house.sound()


async def test_an_event_that_came_before_the_wait_does_not_count(house: Installation) -> None:
    await house.start(*ALL)
    await house.client.publish("shop.paid", {"n": 0})
    run = await house.client.start("wf.twice")
    await waiting(house, run)
    await house.client.publish("shop.paid", {"n": 1})
    await house.until("select 1 from execution where task = 'second' and status = 'waiting'")
    await house.client.publish("shop.paid", {"n": 2})
    assert await house.client.result(run, timeout=30) == [1, 2]


async def test_of_a_fan_out_each_item_waits_for_its_own_event(house: Installation) -> None:
    await house.start(*ALL)
    run = await house.client.start("wf.each")
    await house.until(
        "select 1 from execution where parent = $1 and status = 'waiting' having count(*) = 3", run
    )
    for n in (3, 1, 2):
        await house.client.publish("shop.paid", {"n": n})
    assert await house.client.result(run, timeout=30) == [1, 2, 3]
    await house.sound()


async def test_events_of_another_tenant_are_not_for_this_one(house: Installation) -> None:
    await house.start(*ALL)
    run = await house.client.start("wf.twice", tenant="acme")
    await waiting(house, run)
    await house.client.publish("shop.paid", {"n": 1})
    await house.client.publish("shop.paid", {"n": 2}, tenant="acme")
    await house.until("select 1 from execution where task = 'second' and status = 'waiting'")
    await house.client.publish("shop.paid", {"n": 3}, tenant="acme")
    assert await house.client.result(run, timeout=30) == [2, 3]


async def test_a_wait_that_nothing_meets_times_out_and_the_workflow_may_handle_that(
    house: Installation,
) -> None:
    await house.start(*ALL)
    run = await house.client.start("wf.impatient")
    assert await house.client.result(run, timeout=30) == "reminded"
    [task] = await house.rows("select status from execution where task = 'payment'")
    assert task["status"] == "timeout"
    await house.quiet()
    assert not await house.rows("select 1 from event_wait")
    await house.sound()


async def test_an_event_with_which_the_filter_fails_does_not_fit_and_that_is_noted(
    house: Installation,
) -> None:
    await house.start(*ALL)
    run = await house.client.start("wf.large")
    task = await waiting(house, run)
    event = await house.client.publish("shop.paid", {"order": 1})
    await house.until("select 1 from execution where id = $1 and reason like 'its filter failed%'", task)
    why = await house.client.why(task)
    assert why.because == "event"
    for part in ("shop.paid", "event.payload.amount > 3", str(event)):
        assert part in why.says
    await house.client.publish("shop.paid", {"amount": 5})
    assert await house.client.result(run, timeout=30) == 5
    await house.quiet()
    await house.sound()


async def test_many_wait_and_each_event_is_tried_on_those_alone_that_it_may_fit(house: Installation) -> None:
    await house.start(*ALL)
    runs = [await house.client.start("wf.order", {"order": n}) for n in range(40)]
    await house.until("select 1 from event_wait having count(*) = 40")
    keys = await house.rows("select path::text as path, key from event_wait order by key limit 1")
    assert tuple(keys[0]) == ('["payload", "order"]', "n0")
    for n in reversed(range(40)):
        await house.client.publish("shop.paid", {"order": float(n), "amount": n})
    assert [await house.client.result(run, timeout=60) for run in runs] == list(range(40))
    await house.quiet()
    assert [row["trigger"] for row in await house.rows("select trigger from event_path")] == ["shop.paid"]
    await house.sound()


async def test_the_answer_to_an_inquiry_is_the_result_of_its_task(house: Installation) -> None:
    await house.start(*ALL)
    run = await house.client.start("wf.asking", {"who": "Bob"})
    task = await waiting(house, run)
    [asked] = await house.rows("select prompt, assignee, schema::text as schema, due_at from inquiry")
    assert (asked["prompt"], asked["assignee"], orjson.loads(asked["schema"])) == (
        "May Bob pass?",
        "ada",
        {"type": "boolean"},
    )
    with pytest.raises(InvalidInput, match="ada"):
        await house.client.answer(task, True, by="bob")
    with pytest.raises(InvalidInput, match="boolean"):
        await house.client.answer(task, 3, by="ada")
    answers = await asyncio.gather(
        *(house.client.answer(task, n % 2 == 0, by="ada") for n in range(4)), return_exceptions=True
    )
    assert [type(a) for a in answers].count(Conflict) == 3
    assert await house.client.result(run, timeout=30) is (answers[0] is None or answers[2] is None)
    await house.quiet()
    await house.sound()


async def test_without_an_answer_in_time_the_default_is_the_result(house: Installation) -> None:
    await house.start(*ALL)
    assert await house.client.run("wf.defaulting", {"default": 7}, timeout=30) == 7


async def test_a_default_that_is_no_answer_fails_the_task_before_anybody_is_asked(
    house: Installation,
) -> None:
    await house.start(*ALL)
    with pytest.raises(ExecutionFailed, match=r"default answer.*ask"):
        await house.client.run("wf.defaulting", {"default": "many"}, timeout=30)
    assert not await house.rows("select 1 from inquiry")
    await house.sound()


async def test_without_a_default_the_task_times_out(house: Installation) -> None:
    await house.start(*ALL)
    with pytest.raises(ExecutionFailed, match="nobody answered"):
        await house.client.run("wf.defaulting", {"default": None}, timeout=30)


async def test_cancelling_the_workflow_withdraws_what_it_waits_for(house: Installation) -> None:
    await house.start(*ALL)
    asking = await house.client.start("wf.asking", {"who": "Bob"})
    order = await house.client.start("wf.order", {"order": 1})
    task = await waiting(house, asking)
    await waiting(house, order)
    assert await house.client.cancel(asking, order) == 2
    await house.quiet()
    assert set(await house.statuses()) == {"cancelled", "completed"}
    with pytest.raises(Conflict, match="cancelled"):
        await house.client.answer(task, True, by="ada")
    assert not await house.rows("select 1 from event_wait")
    await house.sound()


async def test_a_wait_that_is_given_a_result_by_hand_waits_no_more(house: Installation) -> None:
    await house.start(*ALL)
    run = await house.client.start("wf.order", {"order": 1})
    await waiting(house, run)
    await house.client.command(run, "set_result", task="payment", value={"payload": {"amount": 3}}, by="ada")
    assert await house.client.result(run, timeout=30) == 3
    await house.quiet()
    assert not await house.rows("select 1 from event_wait")


async def test_a_wait_may_begin_later(house: Installation) -> None:
    late = from_yaml("""
workflow: wf.late
tasks:
  wait: {delay: 0.3, wait_for_event: {trigger: shop.paid}}
output: "{{ tasks.wait.result.payload.n }}"
""")
    await house.start(*ALL, late)
    run = await house.client.start("wf.late")
    await house.until("select 1 from execution where task = 'wait'")
    await house.client.publish("shop.paid", {"n": 1})
    await waiting(house, run)
    await house.client.publish("shop.paid", {"n": 2})
    assert await house.client.result(run, timeout=30) == 2
