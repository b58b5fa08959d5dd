"""Workflows whose executors are killed around their commits, or told everything twice: each task once, the right result."""

from __future__ import annotations

import asyncio
from pathlib import Path
from uuid import UUID

import pytest

from penstock import action
from penstock.workflows import from_yaml
from tests.crash.processes import Fleet
from tests.flows.installation import Installation


@action(pack="cr", max_recoveries=1000)
async def double(n: int) -> int:
    return n * 2


SHAPES = from_yaml("""
workflow: cr.shapes
parameters: {n: {type: integer, required: true}}
vars: {seen: 0}
tasks:
  a: {action: cr.double, input: {n: "{{ parameters.n }}"}, publish: {seen: "{{ vars.seen + 1 }}"}}
  b: {action: cr.double, input: {n: 1}}
  fan: {action: cr.double, needs: [a], with_items: [1, 2, 3], concurrency: 2, input: {n: "{{ item }}"}}
  inner: {workflow: cr.inner, needs: [a, b], input: {n: "{{ tasks.a.result }}"}}
  sum: {action: noop, needs: [fan, inner], input: {all: "{{ tasks.fan.result | sum }}", seen: "{{ vars.seen }}"}}
output: ["{{ tasks.sum.result.all }}", "{{ tasks.inner.result }}", "{{ tasks.sum.result.seen }}"]
""")
INNER = from_yaml("""
workflow: cr.inner
parameters: {n: {type: integer, required: true}}
tasks:
  one: {action: cr.double, input: {n: "{{ parameters.n }}"}}
  two: {action: cr.double, needs: [one], input: {n: "{{ tasks.one.result }}"}}
output: "{{ tasks.two.result }}"
""")
ALL = (double, SHAPES, INNER)
CHILDREN = 8
"""Executions that a run has: a, b, three items, inner and its two."""

AGAIN = """
insert into outbox (queue, ids) select q.queue, x.ids
from (values ('execution.completed'), ('workflow.started'), ('execution.requested')) q (queue),
    (select array_agg(id) as ids from execution) x
where x.ids is not null returning id as outbox_id, queue, ids
"""


async def each_ran_once(house: Installation, runs: int) -> None:
    assert await house.statuses() == {"completed": runs * (CHILDREN + 1)}
    twice = await house.rows(
        "select parent, task, item from execution where parent is not null group by 1, 2, 3 having count(*) > 1"
    )
    assert not twice
    ends = await house.rows(
        "select execution_id from history where new = 'completed' group by 1 having count(*) > 1"
    )
    assert not ends
    await house.sound()


async def test_two_replicas_that_are_told_everything_twice_do_everything_once(house: Installation) -> None:
    await house.apply(*ALL)
    await house.executor()
    await house.executor()
    await house.worker(*ALL)
    ids = [await house.client.start("cr.shapes", {"n": n}) for n in range(10)]
    parts = await house.parts()
    for _ in range(15):
        parts.publisher.publish(await house.rows(AGAIN))
        await asyncio.sleep(0.1)
    for n, id in enumerate(ids):
        assert await house.client.result(id, timeout=60) == [12, n * 8, 1]
    await house.quiet()
    await each_ran_once(house, len(ids))


@pytest.mark.parametrize("when", ["before", "after"])
async def test_an_executor_killed_around_any_of_its_commits_loses_nothing_and_repeats_nothing(
    house: Installation, database: str, broker: str | None, tmp_path: Path, when: str
) -> None:
    await house.apply(*ALL)
    await house.worker(*ALL)
    log = tmp_path / "dying.log"
    ids: list[UUID] = []
    for number in range(1, 7):
        id = await house.client.start("cr.shapes", {"n": number})
        ids.append(id)
        with Fleet(database, broker, log, program=("-m", "tests.crash.dying", when, str(number))) as fleet:
            dying = fleet.executor()
            await asyncio.to_thread(dying.wait, 60)
            fleet.alive.remove(dying)
        assert dying.returncode == -9, log.read_text()[-2000:]
        healthy = await house.executor()
        assert await house.client.result(id, timeout=60) == [12, number * 8, 1]
        await house.until("select 1 where not exists (select from execution where finished_at is null)")
        healthy.ask()
    await house.executor()
    await house.quiet()
    await each_ran_once(house, len(ids))
