"""Workflows on real servers."""

from __future__ import annotations

import asyncio
import itertools
from typing import Any

import pytest

from penstock import Workflow, action
from penstock.errors import Conflict, ExecutionFailed
from penstock.language.workflows import from_yaml
from penstock.store.session.staged_messages import StagedMessage
from tests.flows.installation import Installation


@action(pack="wf")
async def double(n: int) -> int:
    if n < 0:
        raise ValueError("negative")
    return n * 2


@action(pack="wf")
async def total(numbers: list[int]) -> int:
    return sum(numbers)


@action(pack="wf")
async def nap(seconds: float) -> str:
    """Sleep so long; of 0 seconds, until the test lets it end."""
    if seconds:
        await asyncio.sleep(seconds)
    else:
        await WAKE.wait()
    return "rested"


WAKE = asyncio.Event()


def written(text: str) -> Workflow:
    return from_yaml(text)


CHAIN = written("""
workflow: wf.chain
parameters: {n: {type: integer, required: true}}
tasks:
  one: {action: wf.double, input: {n: "{{ parameters.n }}"}}
  two: {action: wf.double, needs: [one], input: {n: "{{ tasks.one.result }}"}}
  three: {action: wf.double, needs: [two], input: {n: "{{ tasks.two.result }}"}}
output: {answer: "{{ tasks.three.result }}"}
""")

FAN = written("""
workflow: wf.fan
parameters: {numbers: {type: array, required: true}}
tasks:
  each: {action: wf.double, with_items: "{{ parameters.numbers }}", input: {n: "{{ item }}"}}
  sum: {action: wf.total, needs: [each], input: {numbers: "{{ tasks.each.result }}"}}
output: "{{ tasks.sum.result }}"
""")

HANDLED = written("""
workflow: wf.handled
tasks:
  bad:
    action: wf.double
    input: {n: -1}
    next:
      - when: failed()
        publish: {why: "{{ error.message }}"}
        do: mend
  mend: {action: wf.double, input: {n: 4}}
output: {mended: "{{ tasks.mend.result }}", why: "{{ vars.why }}"}
""")

OUTER = written("""
workflow: wf.outer
tasks:
  inner: {workflow: wf.chain, input: {n: 1}}
  after: {action: wf.double, needs: [inner], input: {n: "{{ tasks.inner.result.answer }}"}}
output: "{{ tasks.after.result }}"
""")

FAILING = written("""
workflow: wf.failing
tasks:
  bad: {action: wf.double, input: {n: -1}}
  never: {action: wf.double, needs: [bad], input: {n: 1}}
""")

NAPPING = written("""
workflow: wf.napping
tasks:
  nap: {action: wf.nap, input: {seconds: 60}}
  after: {action: wf.double, needs: [nap], input: {n: 1}}
""")

SLOWLY = written("""
workflow: wf.slowly
parameters: {seconds: {type: number, required: true}}
tasks:
  nap: {action: wf.nap, input: {seconds: "{{ parameters.seconds }}"}}
  after: {action: wf.double, needs: [nap], input: {n: 1}}
output: "{{ tasks.after.result }}"
""")

ALL: tuple[Any, ...] = (double, total, nap, CHAIN, FAN, HANDLED, OUTER, FAILING, NAPPING, SLOWLY)


async def test_a_chain_hands_results_on(house: Installation) -> None:
    await house.start(*ALL)
    assert await house.client.run("wf.chain", {"n": 3}, timeout=30) == {"answer": 24}
    await house.quiet()
    await house.sound()


async def test_a_fan_out_keeps_the_order_of_its_items(house: Installation) -> None:
    await house.start(*ALL, concurrency=100)
    assert await house.client.run("wf.fan", {"numbers": list(range(200))}, timeout=30) == 2 * sum(range(200))
    await house.quiet()
    await house.sound()


async def test_a_fan_out_over_nothing_completes_at_once(house: Installation) -> None:
    await house.start(*ALL)
    assert await house.client.run("wf.fan", {"numbers": []}, timeout=30) == 0


async def test_a_fan_out_larger_than_one_decision_goes_on_by_itself(house: Installation) -> None:
    await house.start(*ALL, concurrency=200)
    numbers = list(range(2500))
    assert await house.client.run("wf.fan", {"numbers": numbers}, timeout=90) == 2 * sum(numbers)
    await house.sound()


async def test_a_failure_that_is_handled_does_not_fail_the_workflow(house: Installation) -> None:
    await house.start(*ALL)
    answer = await house.client.run("wf.handled", timeout=30)
    assert answer == {"mended": 8, "why": "negative"}


async def test_an_unhandled_failure_fails_the_run_and_skips_the_rest(
    house: Installation,
) -> None:
    await house.start(*ALL)
    with pytest.raises(ExecutionFailed, match="negative"):
        await house.client.run("wf.failing", timeout=30)
    assert not await house.rows("select 1 from execution where task = 'never'")
    await house.quiet()
    await house.sound()


async def test_a_workflow_runs_inside_a_workflow(house: Installation) -> None:
    await house.start(*ALL)
    assert await house.client.run("wf.outer", timeout=30) == 16
    await house.sound()


async def test_cancelling_a_workflow_cancels_tasks_and_starts_no_more(
    house: Installation,
) -> None:
    await house.start(*ALL)
    id = await house.client.start("wf.napping")
    await house.until("select 1 from execution where task = 'nap' and status = 'running'")
    await house.client.cancel(id, reason="changed my mind")
    await house.until("select 1 from execution where id = $1 and status = 'cancelled'", id)
    await house.quiet()
    assert {row["status"] for row in await house.rows("select status from execution")} == {"cancelled"}
    await house.sound()


async def test_completions_delivered_twice_to_two_replicas_start_each_task_once(house: Installation) -> None:
    await house.apply(*ALL)
    await house.executor()
    await house.executor()
    await house.worker(*ALL)
    ids = [await house.client.start("wf.chain", {"n": n}) for n in range(20)]
    parts = await house.parts()
    for _ in range(10):  # every completion so far, again
        rows = await house.rows(
            "insert into outbox (queue, ids) select 'execution.completed', x.ids from "
            "(select array_agg(id) as ids from execution where parent is not null and finished_at is not null) x "
            "where x.ids is not null returning id as outbox_id, queue, ids"
        )
        parts.publisher.publish([StagedMessage(*row) for row in rows])
        await asyncio.sleep(0.1)
    results = [await house.client.result(id, timeout=30) for id in ids]
    assert results == [{"answer": n * 8} for n in range(20)]
    await house.quiet()
    assert await house.statuses() == {"completed": 80}
    await house.sound()


async def test_an_input_that_does_not_fit_fails_its_task_with_the_reason(house: Installation) -> None:
    wrong = written("""
workflow: wf.wrong
parameters: {n: {}}
tasks:
  one: {action: wf.double, input: {n: "{{ parameters.n }}"}}
""")
    await house.start(*ALL, wrong)
    with pytest.raises(ExecutionFailed, match="n"):
        await house.client.run("wf.wrong", {"n": "text"}, timeout=30)
    await house.quiet()
    await house.sound()


async def test_a_finished_workflow_is_archived_whole_and_can_still_be_seen(house: Installation) -> None:
    await house.start(*ALL)
    id = await house.client.start("wf.fan", {"numbers": [1, 2, 3]})
    await house.client.result(id, timeout=30)
    await house.quiet()
    assert (await house.rows("select moved as n from archive_finished(interval '0', 100)"))[0]["n"] == 5
    assert not await house.rows("select 1 from execution")
    for table in ("workflow", "workflow_task", "workflow_variable", "workflow_item", "payload", "result"):
        assert not await house.rows(f"select 1 from {table}"), table
    assert (await house.client.get(id)).status == "completed"
    assert await house.client.result(id, timeout=30) == 12
    assert len(await house.rows("select 1 from archive where root = $1", id)) == 5


async def test_a_paused_workflow_starts_nothing_until_it_is_resumed(house: Installation) -> None:
    await house.start(*ALL)
    id = await house.client.start("wf.slowly", {"seconds": 0.5})
    await house.until("select 1 from execution where task = 'nap' and status = 'running'")
    await house.client.command(id, "pause", by="ada", reason="let me look")
    await house.until("select 1 from execution where task = 'nap' and status = 'completed'")
    await house.until("select 1 where not exists (select from outbox)")
    assert not await house.rows("select 1 from execution where task = 'after'")
    await house.client.command(id, "resume", by="ada")
    assert await house.client.result(id, timeout=30) == 2
    [command, _] = await house.rows(
        "select kind, by, reason, obeyed_at, error from workflow_command order by id"
    )
    assert (command["kind"], command["by"], command["reason"], command["error"]) == (
        "pause",
        "ada",
        "let me look",
        None,
    )
    assert command["obeyed_at"] is not None
    await house.sound()


async def test_a_task_can_be_skipped_or_given_a_result_by_hand(house: Installation) -> None:
    await house.start(*ALL)
    id = await house.client.start("wf.slowly", {"seconds": 60})
    await house.until("select 1 from execution where task = 'nap' and status = 'running'")
    await house.client.command(id, "set_result", task="nap", value="by hand", by="ada")
    assert await house.client.result(id, timeout=30) == 2
    await house.quiet()
    assert (await house.rows("select status from execution where task = 'nap'"))[0]["status"] == "cancelled"
    with pytest.raises(Conflict):
        await house.client.command(id, "pause", by="ada")
    await house.sound()


async def test_the_end_of_a_task_claims_the_next_task_with_it(house: Installation) -> None:
    tasks = "".join(
        f"  t{n}: {{action: wf.double, needs: [t{n - 1}], input: {{n: 1}}}}\n" for n in range(1, 8)
    )
    chain = written(f"workflow: wf.long\ntasks:\n  t0: {{action: wf.double, input: {{n: 1}}}}\n{tasks}")
    await house.start(*ALL, chain)
    await house.client.result(await house.client.start("wf.long"), timeout=20)
    moves = await house.rows(
        "select e.task, h.new, split_part(h.actor, ':', 1) as who, h.xmin::text as transaction "
        "from history h join execution e on e.id = h.execution_id where e.task > 't1' order by e.task, h.at"
    )
    by_task = {task: list(rows) for task, rows in itertools.groupby(moves, lambda row: row["task"])}
    for (_, earlier), (_, later) in itertools.pairwise(by_task.items()):
        assert [(row["new"], row["who"]) for row in later] == [
            (status, "worker") for status in ("requested", "scheduled", "running", "completed")
        ]
        assert earlier[3]["transaction"] == later[0]["transaction"] == later[2]["transaction"]
        assert later[0]["transaction"] != later[3]["transaction"]
    await house.sound()


async def test_a_workflow_whose_message_was_lost_goes_on_by_itself(house: Installation) -> None:
    await house.apply(*ALL)
    executor = await house.executor()
    await house.worker(*ALL)
    WAKE.clear()
    id = await house.client.start("wf.slowly", {"seconds": 0})
    await house.until("select 1 from execution where task = 'nap' and status = 'running'")
    parts = await house.parts()
    async with parts.database.session().transaction() as tx:
        # No process advances it: neither its worker, nor an executor that hears of the end.
        await tx.fetch("select lock_workflows(array[$1::uuid])", id)
        await house.ended(executor)
        WAKE.set()
        await house.until("select 1 from execution where task = 'nap' and status = 'completed'")
    if parts.transport.name == "postgres":
        await house.rows("delete from outbox returning 1")
    else:
        subscription = await parts.transport.subscribe("execution.completed", 10)
        await subscription.ack(await subscription.receive(10))
        await subscription.close()
    await house.executor()
    assert await house.client.result(id, timeout=30) == 2
    await house.sound()
