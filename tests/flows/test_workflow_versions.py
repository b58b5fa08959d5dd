"""Workflows with tasks that run something else in their next version."""

from __future__ import annotations

import asyncio

import pytest

from penstock import Workflow, action
from penstock.language.workflows import from_yaml
from tests.flows.installation import Installation

pytestmark = pytest.mark.either_transport


@action(pack="ver")
async def old(n: int) -> int:
    await asyncio.sleep(0.2)
    return n


@action(pack="ver", route="elsewhere")
async def new(n: int) -> int:
    return n * 100


INNER = from_yaml("""
workflow: ver.inner
parameters: {n: integer}
tasks:
  one: {action: ver.old, input: {n: "{{ parameters.n }}"}}
output: "{{ tasks.one.result }}"
""")
TASKS = {
    "an action": "{action: ver.old, input: {n: 1}}",
    "an action of another route": "{action: ver.new, input: {n: 1}}",
    "a workflow": "{workflow: ver.inner, input: {n: 1}}",
    "a question": "{inquiry: {prompt: Go on, timeout: 1s, default: 7}}",
}
RESULTS = {"an action": 1, "an action of another route": 100, "a workflow": 1, "a question": 7}


def version(task: str) -> Workflow:
    return from_yaml(f"""
workflow: ver.flow
tasks:
  first: {{action: ver.old, input: {{n: 0}}}}
  step: {{needs: [first], {TASKS[task][1:]}
output: "{{{{ tasks.step.result }}}}"
""")


@pytest.mark.parametrize("after", [name for name in TASKS if name != "an action"])
async def test_a_task_may_run_something_else_in_the_next_version(house: Installation, after: str) -> None:
    await house.executor()
    await house.worker(old, new, INNER, routes="default,elsewhere")
    await house.apply(old, new, INNER, version("an action"))
    assert await house.client.run("ver.flow", timeout=30) == 1
    earlier = await house.client.start("ver.flow")
    await house.apply(version(after))
    assert await house.client.run("ver.flow", timeout=30) == RESULTS[after]
    assert await house.client.result(earlier, timeout=30) == 1  # what had begun goes on as it began
    await house.apply(version("an action"))
    assert await house.client.run("ver.flow", timeout=30) == 1
    await house.sound()
