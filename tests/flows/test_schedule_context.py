"""The context that a run gets from its schedule, whatever runs it."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from penstock import Schedule, action, command_action, current
from penstock.language.definitions import Action
from penstock.language.workflows import from_yaml
from tests.flows.installation import Installation, started_by

pytestmark = pytest.mark.either_transport


@action(pack="told")
async def coroutine() -> dict[str, Any]:
    return dict(current().context)


@action(pack="told", executor="process")
def process() -> dict[str, Any]:
    return dict(current().context)


program = command_action(
    "told.program", [sys.executable, "-c", "import os; print(os.environ['PENSTOCK_CONTEXT'])"]
)
WORKFLOW = """
workflow: told.flow
parameters: {shop: string}
tasks:
  - name: look
    action: noop
    input: {at: "{{ context.scheduled_time }}", region: "{{ context.region }}", shop: "{{ context.shop }}"}
  - name: missed
    needs: look
    when: {context: is_missed, op: "==", value: true}
    action: noop
output: {looked: "{{ tasks.look.result }}", missed: "{{ tasks.missed.status }}", all: "{{ context }}"}
"""


@pytest.mark.parametrize("what", [coroutine, process, program], ids=lambda action: action.ref)
async def test_an_action_finds_the_context_of_its_schedule(
    house: Installation, what: Action[..., Any]
) -> None:
    schedule = Schedule(
        "told.daily", action=what, cron="0 12 * * *", timezone="Asia/Kathmandu", context={"region": "east"}
    )
    await house.start(what, schedule)
    fire = await house.client.schedules.run("told.daily")
    context = await house.client.result(started_by(fire), timeout=30)
    assert context.pop("scheduled_time").endswith("+05:45")
    assert context == {
        "region": "east",
        "schedule": "told.daily",
        "timezone": "Asia/Kathmandu",
        "expression": "0 12 * * *",
        "is_recovery": False,
        "is_missed": False,
        "is_backfill": False,
    }


async def test_a_run_without_a_schedule_is_told_nothing(house: Installation) -> None:
    await house.start(coroutine)
    assert await house.client.run("told.coroutine", timeout=20) == {}


async def test_a_workflow_finds_it_below_its_parameters(house: Installation) -> None:
    schedule = Schedule(
        "told.flow",
        action="told.flow",
        every="1d",
        params={"shop": "a"},
        context={"region": "east", "shop": "b"},
    )
    await house.start(from_yaml(WORKFLOW, "flow.yaml"), schedule)
    fire = await house.client.schedules.run("told.flow")
    context = await house.client.result(started_by(fire), timeout=20)
    assert context["looked"] == {"at": context["all"]["scheduled_time"], "region": "east", "shop": "a"}
    assert context["missed"] == "skipped"
    assert context["all"]["schedule"] == "told.flow"
