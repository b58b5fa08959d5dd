"""Budgets in a whole installation: given by starts and rules, spent by tasks, raised by command and over HTTP."""

from __future__ import annotations

import pytest

from penstock import Limit, Rule, Trigger, action
from penstock.errors import Conflict, ExecutionFailed, InvalidInput, NotFound
from penstock.language.workflows import from_yaml
from penstock.operate.executions import described
from tests.flows.installation import Installation

pytestmark = pytest.mark.either_transport

asking = Trigger("texts.asked", schema={"n": "integer"})


@action(pack="texts", limits=[Limit(budget="tokens", cost="{{ parameters.tokens }}")])
async def ask(tokens: float) -> float:
    return tokens


report = from_yaml("""
workflow: texts.report
parameters: {parts: {type: array}}
tasks:
  parts:
    with_items: "{{ parameters.parts }}"
    concurrency: 1
    action: texts.ask
    input: {tokens: "{{ item }}"}
""")
rule = Rule(
    "texts.on_asked",
    trigger=asking,
    action="texts.report",
    params={"parts": "{{ [payload.n, payload.n] }}"},
    budget={"tokens": 15},
)


async def test_tasks_spend_the_budget_of_their_workflow(house: Installation) -> None:
    await house.start(ask, report)
    good = await house.client.start(report, {"parts": [10, 20]}, budget={"tokens": 30})
    await house.client.result(good, timeout=30)
    bad = await house.client.start(report, {"parts": [10, 21]}, budget={"tokens": 30})
    with pytest.raises(ExecutionFailed):
        await house.client.result(bad, timeout=30)
    document = await described(house.session, bad)
    assert document is not None
    [budget] = document["budgets"]
    assert (budget["used"], budget["reserved"], budget["remaining"]) == (10, 0, 20)
    assert budget["shares"] == [{"action": "texts.ask", "attempts": 1, "used": 10, "reserved": 0}]
    await house.quiet()
    await house.sound()


async def test_a_rule_gives_each_execution_a_budget(house: Installation) -> None:
    await house.start(ask, report, asking, rule)
    for n in (7, 8):
        await house.client.publish("texts.asked", {"n": n})
    rows = await house.until(
        "select array_agg(status order by status) as statuses from execution "
        "where parent is null having count(finished_at) = 2"
    )
    assert rows[0]["statuses"] == ["completed", "failed"]
    await house.quiet()
    await house.sound()


async def test_a_raised_budget_lets_the_tree_go_on(house: Installation) -> None:
    await house.start(ask, report)
    id = await house.client.start(report, {"parts": [10, 25]}, budget={"tokens": 30}, when_spent="wait")
    await house.until("select 1 from execution where status = 'queued'")
    with pytest.raises(Conflict, match="20 is less"):
        await house.client.raise_budget(id, "tokens", 20)
    with pytest.raises(NotFound, match="no budget of eur"):
        await house.client.raise_budget(id, "eur", 20)
    with pytest.raises(InvalidInput):
        await house.client.raise_budget(id, "tokens", float("nan"))
    await house.client.raise_budget(id, "tokens", 35)
    await house.client.result(id, timeout=30)
    await house.quiet()
    await house.sound()
