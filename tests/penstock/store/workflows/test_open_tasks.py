"""The most urgent execution inside a workflow, by the order of statuses that the caller names."""

from __future__ import annotations

import pytest

from penstock.language.moves import QUEUED, REQUESTED, RUNNING, SCHEDULED, WAITING
from penstock.operate.why.answer import URGENCY
from penstock.store.workflows import open_tasks
from tests.penstock.store.stand import Stand


@pytest.mark.parametrize(("other", "is_first"), [(WAITING, False), (QUEUED, True), (SCHEDULED, True)])
async def test_running_workflow_without_open_task_ranks_as_requested(
    stand: Stand, other: str, is_first: bool
) -> None:
    whole = await stand.add("whole", RUNNING, kind="workflow")
    await stand.add("inner", RUNNING, kind="workflow", parent="whole")
    await stand.add("task", other, parent="whole")
    path = await open_tasks.most_urgent(stand.session, whole, None, URGENCY, 5)
    assert path == [stand.ids["inner" if is_first else "task"]]


async def test_rank_of_running_workflow_follows_order_of_statuses(stand: Stand) -> None:
    whole = await stand.add("whole", RUNNING, kind="workflow")
    await stand.add("inner", RUNNING, kind="workflow", parent="whole")
    await stand.add("task", QUEUED, parent="whole")
    last = [WAITING, QUEUED, RUNNING, REQUESTED]
    assert await open_tasks.most_urgent(stand.session, whole, None, last, 5) == [stand.ids["task"]]
