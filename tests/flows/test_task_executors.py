"""The choice of a task executor, the attempt that it gets, and its own report."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import orjson
import pytest

from penstock import action, current, register_executor
from penstock.errors import ConfigurationError
from penstock.language.workflows import from_yaml
from penstock.run.executor_registry import REGISTERED
from penstock.run.task_executors import Outcome, Run, TaskReadyEvent
from penstock_worker.executors import build
from penstock_worker.executors.python.async_ import AsyncExecutor
from penstock_worker.executors.python.thread import ThreadExecutor
from tests.flows.installation import Installation
from tests.flows.reading import metrics
from tests.servers.process import free_port

seen: list[TaskReadyEvent] = []


class Noting(AsyncExecutor):
    """Notes what it is given."""

    async def execute(self, run: Run) -> Outcome:
        seen.append(run.event)
        return await super().execute(run)


@pytest.fixture
def noting() -> Iterator[None]:
    seen.clear()
    register_executor("noting", Noting, capacity=3)
    yield
    REGISTERED.clear()


@action(pack="runs", route="heavy")
async def where() -> dict[str, str | None]:
    run = current()
    return {"root": str(run.root), "workflow": str(run.workflow), "task": run.task}


@action(pack="runs", route="heavy", executor="thread")
def asks_for_a_thread() -> None: ...


@action(pack="runs")
async def elsewhere() -> None: ...


inner = from_yaml("""
workflow: runs.inner
tasks:
  leaf: {action: runs.where}
output: "{{ tasks.leaf.result }}"
""")
outer = from_yaml("""
workflow: runs.outer
tasks:
  sub: {workflow: runs.inner}
output: "{{ tasks.sub.result }}"
""")


async def test_an_executor_is_chosen_by_action_and_route_told_the_run_and_counted(
    house: Installation, noting: None
) -> None:
    port = free_port()
    actions = (where, asks_for_a_thread, elsewhere)
    await house.apply(*actions, inner, outer)
    await house.executor()
    await house.worker(*actions, routes="default,heavy", route_executors={"heavy": "noting"}, port=port)
    for ref in ("runs.asks_for_a_thread", "runs.elsewhere"):
        await house.client.run(ref, timeout=20)
    alone = await house.client.start("runs.where")
    assert await house.client.result(alone, timeout=20) == {
        "root": str(alone),
        "workflow": "None",
        "task": None,
    }
    root = await house.client.start("runs.outer")
    environment = await house.client.result(root, timeout=20)
    [sub] = await house.rows("select id from execution where parent = $1", root)
    assert environment == {"root": str(root), "workflow": str(sub["id"]), "task": "leaf"}
    assert [(event.action, event.root, event.workflow, event.task) for event in seen] == [
        ("runs.where", alone, None, None),
        ("runs.where", root, sub["id"], "leaf"),
    ]

    numbers = await metrics(port)
    assert numbers['penstock_executor_executed_total{executor="noting"}'] == 2
    assert numbers['penstock_executor_available{executor="noting"}'] == 3
    assert numbers['penstock_executor_executed_total{executor="thread"}'] == 1
    assert numbers['penstock_executor_executed_total{executor="async"}'] == 1
    async with asyncio.timeout(20):
        while (report := await of_its_heartbeat(house)).get("noting", {}).get("executed") != 2:
            await asyncio.sleep(0.05)
    assert report["noting"]["active"] == report["noting"]["failed"] == 0
    assert report["noting"]["average_duration"] > 0


async def of_its_heartbeat(house: Installation) -> dict[str, Any]:
    [row] = await house.rows("select executors::text as said from process where kind = 'worker'")
    return dict(orjson.loads(row["said"]))


def test_a_registered_executor_has_one_name_and_obeys_the_settings(noting: None) -> None:
    assert build(7, {})["noting"].metrics().available == 3
    assert build(7, {"noting": {"capacity": 5}})["noting"].metrics().available == 5
    assert "noting" not in build(7, {"noting": None})
    register_executor("noting", Noting)  # its module was imported anew
    with pytest.raises(ConfigurationError, match="registered twice"):
        register_executor("noting", ThreadExecutor)
    register_executor("process", Noting)
    with pytest.raises(ConfigurationError, match="Penstock itself has a task executor 'process'"):
        build(7, {})
