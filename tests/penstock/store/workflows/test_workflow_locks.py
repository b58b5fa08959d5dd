"""The end of a workflow, the end of its task and its cancellation do not wait for each other in a circle."""

from __future__ import annotations

import asyncio

import pytest

from penstock.language.terms.ids import new_id
from tests.penstock.store.race_scene import CANCEL, CLAIM, FINISH, IN_PLACE, SCHEDULE, Scene


async def test_cancelling_a_workflow_and_ending_it_do_not_wait_for_each_other(scene: Scene) -> None:
    [id] = await scene.requested(1)
    await scene.one.fetch("update namespace set kind = 'workflow', queue = 'workflow.started'")
    await scene.one.fetch(SCHEDULE, [id])
    await scene.one.fetch(
        "insert into workflow (execution_id, definition_id, tenant) values ($1, $2, 'public')",
        id,
        scene.definition,
    )
    async with scene.one.transaction() as tx:  # as an advance does: its state first, then its end
        await tx.fetch("update workflow set head = '{}' where execution_id = $1", id)
        task = asyncio.create_task(scene.other.fetch(CANCEL, [id]))
        await scene.blocked()
        await tx.fetch(
            "select * from finish_workflows($1::uuid[], '{completed}', '{1}', array[null]::text[], array[null]::text[])",
            [id],
        )
    assert not any((await task)[0])
    assert await scene.statuses() == {"completed"}


@pytest.mark.parametrize("lock", ["lock_workflows", "lock_runs"])
async def test_the_end_of_a_task_waits_for_no_lock_of_its_workflow(scene: Scene, lock: str) -> None:
    """The holder of the lock may be waiting for the task's row, which has just been ended."""
    [workflow, task] = await scene.requested(2)
    await scene.one.fetch(SCHEDULE, [workflow, task])
    await scene.one.fetch(
        "insert into workflow (execution_id, definition_id, tenant) values ($1, $2, 'public')",
        workflow,
        scene.definition,
    )
    worker = new_id()
    await scene.one.fetch(CLAIM, worker, new_id(), [workflow, task], [scene.definition])
    await scene.one.fetch("update execution set parent = $1, task = 'a' where id = $2", workflow, task)
    async with scene.other.transaction() as holder:
        await holder.fetch(f"select {lock}(array[$1::uuid])", workflow)
        async with scene.one.transaction() as tx:
            await tx.fetch("set local lock_timeout = 1")
            await tx.fetch(FINISH, worker, [task], [1], ["completed"], [0.0])
            assert not await tx.fetch(IN_PLACE, [task])
    assert (
        len(await scene.one.fetch(IN_PLACE, [task])) == 2
    )  # the task, and the workflow that goes on with it
