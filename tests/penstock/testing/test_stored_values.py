"""Values that a simulation keeps: those that an installation would read from its database."""

from __future__ import annotations

from typing import Any

import pytest

from penstock import DurableContext, Rule, Trigger, action
from penstock.errors import InvalidInput
from penstock.language.workflows import from_yaml
from penstock.testing import DurableRun, Simulation, try_rule

VALUE = {"bb": -0.0, "a": 1e16}
STORED = "{'a': 10000000000000000, 'bb': 0.0}"
noted = Trigger("kept.noted")


@action(pack="kept")
async def write(value: Any) -> str:
    return repr(value)


@action(pack="kept")
async def give() -> Any:
    return VALUE


@action(pack="kept")
async def collect(ctx: DurableContext, value: Any) -> list[str]:
    return [repr(value), repr(await ctx.run(give)), repr(await ctx.ask("Which?"))]


chain = from_yaml("""
workflow: kept.chain
tasks:
  first: {action: kept.give}
  second: {action: kept.write, needs: [first], input: {value: "{{ tasks.first.result }}"}}
output: {text: "{{ tasks.first.result }}", second: "{{ tasks.second.result }}"}
""")
on_noted = Rule("kept.on_noted", trigger=noted, action=write, params={"value": "{{ payload.v | string }}"})


def test_action_gets_stored_parameters() -> None:
    assert Simulation(write).run(write, value=VALUE).result == STORED


def test_workflow_gets_stored_result() -> None:
    result = Simulation(give, write, chain).run(chain).result
    assert (repr(result["text"]), result["second"]) == (STORED, STORED)


def test_rule_gets_stored_payload() -> None:
    match = try_rule(on_noted, {"v": VALUE})
    assert match.params == {"value": STORED}


async def test_durable_function_gets_stored_values() -> None:
    run = DurableRun()
    run.answer(VALUE)
    assert await run(collect, value=VALUE) == [STORED] * 3


async def test_durable_run_refuses_parameter_that_is_not_storable() -> None:
    with pytest.raises(InvalidInput, match="NUL character"):
        await DurableRun()(collect, value="a\0b")


def test_hint_has_the_order_of_the_stored_schema() -> None:
    @action(pack="kept")
    async def takes(query: str, pad: str = "") -> None: ...

    called = Trigger("kept.called", schema={"query": "string", "pad": "string"})
    simulation = Simulation(takes, called)
    with pytest.raises(InvalidInput) as refused:
        simulation.publish(called, {"pad": 1})
    assert refused.value.hint == "It takes: pad=string (optional), query=string (optional)."
    with pytest.raises(InvalidInput) as refused:
        simulation.run(takes, pad=1, query="a")
    assert refused.value.hint == "It takes: pad=string (optional), query=string."
