"""Trees of depth 4 whose leaves take something of a budget, and note what they took."""

from __future__ import annotations

import asyncio
import os

from penstock import Limit, Workflow, action, current
from penstock.language.workflows import from_yaml

COSTS = "BUDGET_COSTS"
"""The variable that names the file of the costs: a line has an execution, an attempt and what the attempt took."""
RESERVED = 10
TRUE_COSTS = (4, 7, 10, 15)
LOSSES = 1_000_000


@action(
    pack="trees",
    limits=[Limit(budget="tokens", cost=str(RESERVED))],
    max_recoveries=LOSSES,
    retry={"max_attempts": 3, "initial_delay": 0.05},
)
async def call(n: int) -> int:
    """Take more or less than what was reserved. Every tenth call fails once, and has taken something all the same."""
    run = current()
    await asyncio.sleep(0.3)
    cost = TRUE_COSTS[(n + run.attempt) % len(TRUE_COSTS)]
    _note(f"{run.execution_id} {run.attempt} {cost}\n")
    run.cost(tokens=cost)
    if n % 10 == 3 and run.attempt == 1:
        raise ConnectionError("not yet")
    return cost


def _note(line: str) -> None:
    with open(os.environ[COSTS], "ab", buffering=0) as file:
        file.write(line.encode())


def _level(ref: str, task: str, parameter: str) -> Workflow:
    return from_yaml(f"""
workflow: {ref}
parameters: {{parts: {{type: array}}}}
tasks:
  parts:
    with_items: "{{{{ parameters.parts }}}}"
    {task}
    input: {{{parameter}: "{{{{ item }}}}"}}
""")


twig = _level("trees.twig", "action: trees.call", "n")
branch = _level("trees.branch", "workflow: trees.twig", "parts")
tree = _level("trees.tree", "workflow: trees.branch", "parts")
ALL = (call, twig, branch, tree)
