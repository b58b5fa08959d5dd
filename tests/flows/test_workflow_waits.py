"""Tasks that wait for events."""

from __future__ import annotations

import pytest

from penstock.language.workflows import from_yaml
from tests.flows.installation import Installation
from tests.flows.waits import ALL, waiting

pytestmark = pytest.mark.either_transport


async def test_a_task_completes_with_the_event_that_it_waits_for(house: Installation) -> None:
    await house.start(*ALL)
    first, other = [await house.client.start("wf.order", {"order": n}) for n in (1, 2)]
    task = await waiting(house, first)
    await waiting(house, other)
    assert not await house.rows("select 1 from claim where $1 = any(executions)", task)
    assert not await house.rows("select 1 from slot")
    await house.client.publish("shop.paid", {"order": 3, "amount": 9})
    await house.client.publish("shop.paid", {"order": 2, "amount": 20})
    assert await house.client.result(other, timeout=30) == 20
    assert (await house.client.get(task)).status == "waiting"
    await house.client.publish("shop.paid", {"order": 1, "amount": 10})
    assert await house.client.result(first, timeout=30) == 10
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
    await house.until(
        "select 1 from execution where id = $1 and reason like 'the filter of the wait failed%'", task
    )
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
