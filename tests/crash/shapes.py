"""A workflow of several shapes, killed around its commits, and what must hold of it after that."""

from __future__ import annotations

import asyncio
import os
import signal

from penstock import action
from penstock.language.workflows import from_yaml
from penstock.service.assembly import Stop
from tests.crash.dying import Nursery
from tests.flows.installation import Installation

SOON = {"lease": 0.5, "relay_age": 0.15, "relay_interval": 0.1, "restage_age": 0.5, "poll_interval": 0.2}
"""What died with an executor comes again soon."""


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
LAST = 60
"""More commits than a run has."""


def result(n: int) -> list[int]:
    """Return the result of a run with this parameter."""
    return [12, n * 8, 1]


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


async def killed(house: Installation, nursery: Nursery, when: str, number: int) -> bool:
    """Run with an executor that dies at its commit `number`; another one brings the run to its end. Returns false if
    there were not so many commits, and the first executor ended the run."""
    await nursery.begin(when, number, house.settings(name="dying").model_dump(exclude_unset=True))
    id = await house.client.start("cr.shapes", {"n": number})
    dying = asyncio.create_task(nursery.ended())
    coming = asyncio.create_task(house.client.result(id, timeout=60))
    await asyncio.wait([dying, coming], return_when=asyncio.FIRST_COMPLETED)
    if not dying.done():
        assert await coming == result(number)
        os.kill(nursery.pid, signal.SIGTERM)
        return await dying
    assert await dying, "it ended in another way than by its own SIGKILL"
    healthy: Stop = await house.executor()
    assert await coming == result(number)
    await house.until("select 1 where not exists (select from execution where finished_at is null)")
    await house.ended(healthy)
    return True
