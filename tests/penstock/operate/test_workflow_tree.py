"""The tree of a run's tasks marks those that a pause or a hold stops, as lists do."""

from __future__ import annotations

import re
from uuid import UUID

import pytest

from penstock import AskInquiry, DurableContext, action, workflow
from penstock.language.workflows.progress import TaskProgress
from penstock.operate.executions import described_execution, drawing, plain
from tests.flows.installation import Installation
from tests.penstock.cli.commands import penstock


@action(pack="tree")
async def asks() -> object:
    return AskInquiry("Well?")


@action(pack="tree", route="nowhere")
async def never() -> None: ...


@action(pack="tree")
async def quick() -> None: ...


@workflow(pack="tree")
def inner():  # type: ignore[no-untyped-def]
    asks()
    never()


@workflow(pack="tree")
def chain():  # type: ignore[no-untyped-def]
    never()


@workflow(pack="tree")
def outer():  # type: ignore[no-untyped-def]
    inner()
    chain()
    quick()


@action(pack="tree")
async def durable(ctx: DurableContext) -> None:
    await ctx.run(chain)


ALL = (asks, never, quick, inner, chain, outer, durable)
INSIDE = """
select 1 from execution e join execution p on p.id = e.parent where p.parent = '{}' and e.status in ('scheduled', 'waiting')
having count(*) = 3
"""
CHILD = "select 1 from execution c join execution e on e.parent = c.id where c.parent = '{}' and e.status = 'scheduled'"


@pytest.fixture
def transport() -> str:
    return "postgres"


async def tree(house: Installation, id: UUID) -> dict[str, TaskProgress]:
    document = await described_execution(house.session, id)
    return {task.name: task for task in document["tasks"]}


def shown(tasks: dict[str, TaskProgress]) -> dict[str, tuple[str, str]]:
    return {name: (task.status, task.shown_status) for name, task in tasks.items()}


async def test_pause_of_a_run_shows_on_the_workflows_inside(house: Installation) -> None:
    await house.start(*ALL)
    id = await house.client.start("tree.outer")
    await house.until(INSIDE.format(id))
    await house.until(
        f"select 1 from execution where parent = '{id}' and task = 'quick' and status = 'completed'"
    )
    running = {"inner": ("running",) * 2, "chain": ("running",) * 2, "quick": ("completed",) * 2}
    assert shown(await tree(house, id)) == running
    await house.client.command(id, "pause", by="ada")
    await house.until("select 1 from paused_workflow having count(*) = 3")
    tasks = await tree(house, id)
    paused = ("running", "paused")
    assert shown(tasks) == {"inner": paused, "chain": paused, "quick": ("completed", "completed")}
    assert tasks["chain"].inside[0].shown_status == "paused"  # requested, and kept by the pause
    inside = {task.name: task.shown_status for task in tasks["inner"].inside}
    assert inside == {"asks": "waiting", "never": "paused"}
    answer = await house.client.why(id)
    assert (
        "Tasks that are still open: inner (running, paused), chain (running, paused)." in answer.all_details
    )
    assert re.search(r"class t_inner,t_chain paused", await drawing(house.session, id, "mermaid"))
    await house.client.command(id, "resume", by="ada")
    await house.until(INSIDE.format(id))
    assert shown(await tree(house, id)) == running


async def test_pause_of_a_workflow_inside_shows_in_the_run_around_it(house: Installation) -> None:
    await house.start(*ALL)
    id = await house.client.start("tree.outer")
    await house.until(INSIDE.format(id))
    chain_id = (await tree(house, id))["chain"].execution
    assert chain_id is not None
    await house.client.command(chain_id, "pause", by="ada")
    await house.until("select 1 from paused_workflow")
    tasks = await tree(house, id)
    assert (tasks["chain"].shown_status, tasks["inner"].shown_status) == ("paused", "running")


async def test_hold_shows_on_the_tasks_that_it_keeps(
    house: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    await house.start(*ALL)
    await house.client.holds.hold("action", "tree.never", by="ada")
    id = await house.client.start("tree.outer")
    await house.until(INSIDE.replace("= 3", "= 1").format(id))
    await house.until("select 1 from held_execution having count(*) = 2")
    tasks = await tree(house, id)
    assert shown(tasks)["chain"] == ("running", "held")
    assert tasks["chain"].inside[0].shown_status == "held"
    assert tasks["inner"].shown_status == "running"  # a question is open in it
    database_url = house.settings().database_url
    assert database_url is not None
    monkeypatch.setenv("PENSTOCK_DATABASE_URL", database_url.get_secret_value())
    monkeypatch.setenv("COLUMNS", "200")
    printed = (await penstock("show", str(id))).out
    assert "running, held" in printed
    assert "requested, held" in printed


async def test_pause_of_a_child_shows_on_the_step_of_a_function(house: Installation) -> None:
    await house.start(*ALL)
    id = await house.client.start("tree.durable")
    await house.until(CHILD.format(id))
    [before] = (await described_execution(house.session, id))["steps"]
    assert (before.status, before.paused) == ("running", False)
    await house.client.command(before.execution, "pause", by="ada")
    await house.until("select 1 from paused_workflow")
    [step] = (await described_execution(house.session, id))["steps"]
    assert (step.status, step.paused, step.held) == ("running", True, False)
    await house.client.command(before.execution, "resume", by="ada")
    await house.until(CHILD.format(id))
    await house.client.holds.hold("route", "nowhere", by="ada")
    await house.until("select 1 from held_execution")
    [step] = (await described_execution(house.session, id))["steps"]
    assert (step.paused, step.held) == (False, True)


async def test_marks_are_in_the_json_of_a_run(house: Installation) -> None:
    await house.start(*ALL)
    id = await house.client.start("tree.outer")
    await house.until(INSIDE.format(id))
    await house.client.command(id, "pause", by="ada")
    await house.until("select 1 from paused_workflow having count(*) = 3")
    tasks = {task["name"]: task for task in plain(await described_execution(house.session, id))["tasks"]}
    assert (tasks["chain"]["paused"], tasks["chain"]["held"], tasks["chain"]["status"]) == (
        True,
        False,
        "running",
    )
