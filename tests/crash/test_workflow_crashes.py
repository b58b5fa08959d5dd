"""Workflows with executors that are killed around their commits, or get every message twice: each task once, the
right result. tests/chaos/test_workflow_kills.py does it at every commit, on both transports."""

from __future__ import annotations

import asyncio

import pytest

from penstock.store.session.staged_messages import StagedMessage
from tests.crash import shapes
from tests.crash.dying import nursery
from tests.flows.installation import Installation

AGAIN = """
insert into outbox (queue, ids) select q.queue, x.ids
from (values ('execution.completed'), ('workflow.started'), ('execution.requested')) q (queue),
    (select array_agg(id) as ids from execution) x
where x.ids is not null returning id as outbox_id, queue, ids
"""


@pytest.mark.parametrize("transport", ["rabbitmq"])
async def test_two_replicas_that_are_told_everything_twice_do_everything_once(house: Installation) -> None:
    await house.apply(*shapes.ALL)
    await house.executor()
    await house.executor()
    await house.worker(*shapes.ALL)
    ids = [await house.client.start("cr.shapes", {"n": n}) for n in range(10)]
    parts = await house.parts()
    for _ in range(8):
        parts.publisher.publish([StagedMessage(*row) for row in await house.rows(AGAIN)])
        await asyncio.sleep(0.05)
    for n, id in enumerate(ids):
        assert await house.client.result(id, timeout=60) == shapes.result(n)
    await house.quiet()
    await shapes.each_ran_once(house, len(ids))


async def test_an_executor_killed_around_its_commits_loses_nothing_and_repeats_nothing(database: str) -> None:
    async with Installation(database, None, **shapes.SOON) as house, nursery() as forking:
        await house.apply(*shapes.ALL)
        await house.worker(*shapes.ALL)
        deaths = [("before", 1), ("after", 2), ("before", 3), ("after", 4)]  # a run has four such commits
        for when, number in deaths:
            assert await shapes.killed(house, forking, when, number)
        await house.executor()
        await house.quiet()
        await shapes.each_ran_once(house, len(deaths))
