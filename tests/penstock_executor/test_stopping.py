"""A workflow is stopped by the same step that starts more of it: nothing is left behind. Nothing runs but what the test runs
by hand."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

import pytest

from penstock import Trigger, Workflow
from penstock.language.moves import COMPLETED, FAILED, WAITING
from penstock.language.workflows import from_yaml
from penstock.messaging.consumer import Batch
from penstock.store.executions import executions
from penstock_executor.handlers import execution_completed, execution_requested, workflow_started
from tests.flows.installation import Installation

IN_A_ROW = from_yaml("""
workflow: stop.in_a_row
tasks:
  one: {wait_for_event: {trigger: stop.never}}
  two: {wait_for_event: {trigger: stop.never}, needs: [one]}
on_exit: {action: noop, input: {}}
""")
ITEMS = from_yaml("""
workflow: stop.items
tasks:
  each:
    wait_for_event: {trigger: stop.never}
    with_items: [0, 1, 2, 3]
    concurrency: 2
    item_failures: {then: cancel}
""")
CHILDREN = "select id, task, item, status from execution where parent = $1 order by task, item"


@pytest.fixture
def transport() -> str:
    return "postgres"


async def begun(house: Installation, workflow: Workflow) -> UUID:
    """Start a run, the first tasks of which wait."""
    await house.apply(Trigger("stop.never"), workflow)
    run = await house.client.start(workflow.ref)
    for handler in (execution_requested, workflow_started):
        async with house.session.transaction() as tx:
            await handler.handle(Batch([run]), tx)
    return run


async def end(house: Installation, id: UUID, status: str) -> None:
    async with house.session.transaction() as tx:
        assert await executions.end(tx, [id], [WAITING], status, "by hand")


async def take_note(house: Installation, run: UUID) -> Sequence[tuple[str, int, str]]:
    """Tell the run of all that has ended, and what is cancelled by that, in two batches. Gives how its tasks stand."""
    for _ in range(2):
        async with house.session.transaction() as tx:
            ids = [row["id"] for row in await tx.fetch("select execution_id as id from untold order by 1")]
            await execution_completed.handle(Batch(ids), tx)
    return [tuple(row)[1:] for row in await house.rows(CHILDREN, run)]


async def test_a_task_that_starts_in_the_stopping_step_is_cancelled(house: Installation) -> None:
    run = await begun(house, IN_A_ROW)
    await end(house, (await house.rows(CHILDREN, run))[0]["id"], COMPLETED)
    await house.client.cancel(run)
    assert await take_note(house, run) == [("one", -1, "completed"), ("two", -1, "cancelled")]
    assert (await house.client.get(run)).status == "cancelled"


async def test_items_that_start_in_the_step_that_gives_the_list_up_are_cancelled(house: Installation) -> None:
    run = await begun(house, ITEMS)
    for row, status in zip(await house.rows(CHILDREN, run), (COMPLETED, FAILED), strict=True):
        await end(house, row["id"], status)
    assert await take_note(house, run) == [
        ("each", 0, "completed"),
        ("each", 1, "failed"),
        ("each", 2, "cancelled"),
    ]
    assert (await house.client.get(run)).status == "failed"
