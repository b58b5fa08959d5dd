"""Values in an installation and in a simulation of it: both give code and expressions the same."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from penstock import DurableContext, Rule, Trigger, action
from penstock.language.workflows import from_yaml
from penstock.testing import DurableRun, Simulation
from tests.flows.installation import Installation

pytestmark = pytest.mark.either_transport

VALUE = {"bb": -0.0, "a": 1e16, "ccc": [{"zz": 1e300, "y": 1.0, "é": 1.5e-7}, 1e19, 2e19]}
noted = Trigger("odd.noted")


@action(pack="odd")
async def give() -> Any:
    return VALUE


@action(pack="odd")
async def write(value: Any = None, text: str = "") -> str:
    return f"{value!r} {text}"


@action(pack="odd")
async def collect(ctx: DurableContext, value: Any) -> list[str]:
    stepped = await ctx.step("give", give)
    child = await ctx.run(give)
    items = await ctx.map(write, [{"value": VALUE}])
    signal = await ctx.signal("go")
    answer = await ctx.ask("Which?", default=VALUE, timeout=0.1)
    return [*map(repr, (value, stepped, child, signal, answer)), *items]


chain = from_yaml("""
workflow: odd.chain
parameters: {value: {}}
vars: {kept: null}
tasks:
  first: {action: odd.give, publish: {kept: "{{ result }}"}}
  second:
    action: odd.write
    needs: [first]
    input: {value: "{{ tasks.first.result }}", text: "{{ tasks.first.result }} and {{ parameters.value }}"}
  third:
    action: odd.write
    needs: [second]
    input: {value: "{{ vars.kept }}", text: "{{ vars.kept }}."}
  fourth:
    needs: [third]
    action: odd.write
    with_items: "{{ [tasks.first.result] }}"
    input: {value: "{{ item }}", text: "{{ item }}."}
output: {texts: "{{ [tasks.second.result, tasks.third.result, tasks.fourth.result] }}", last: "{{ vars.kept | string }}"}
""")
on_noted = Rule(
    "odd.on_noted",
    trigger=noted,
    action=write,
    params={"value": "{{ payload }}", "text": "{{ payload.v }} !"},
)
PARTS = (noted, give, write, collect, chain, on_noted)


async def test_workflow_gets_values_of_a_simulation(house: Installation) -> None:
    await house.start(*PARTS)
    simulation = Simulation(*PARTS)
    expected = simulation.run(chain, value=VALUE).result
    id = await house.client.start(chain, {"value": VALUE})
    assert await house.client.result(id, timeout=30) == expected


async def test_rule_gets_values_of_a_simulation(house: Installation) -> None:
    await house.start(*PARTS)
    [run] = Simulation(*PARTS).publish(noted, {"v": VALUE})
    await house.client.publish("odd.noted", {"v": VALUE})
    [row] = await house.until(
        "select result #>> '{}' as text from execution join result on execution_id = id"
    )
    assert row["text"] == run.result


async def test_durable_function_gets_values_of_a_simulation(house: Installation) -> None:
    await house.start(*PARTS)
    simulated = Simulation(*PARTS).start(collect, value=VALUE)
    simulated.signal("go", VALUE)
    expected = simulated.finish().result
    run = DurableRun()
    run.signal("go", VALUE)
    assert await run(collect, value=VALUE) == expected
    id = await house.client.start(collect, {"value": VALUE})
    await house.client.signal(id, "go", VALUE)
    assert await asyncio.wait_for(house.client.result(id), 30) == expected
