"""What people tell a workflow: pause, resume, skip a task, set its result."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from penstock.engine.commands import pause, resume, set_result, skip
from penstock.engine.decision import Decision
from penstock.engine.facts import Facts
from penstock.engine.plan import Plan
from penstock.engine.scope import Steps
from penstock.engine.state import Head
from penstock.errors import InvalidInput, NotFound
from penstock.store.database import Row


def obey(plan: Plan, head: Head, facts: Facts, system: Mapping[str, Any], command: Row) -> Steps[Decision]:
    """What follows from a command. Raises NotFound, Conflict or InvalidInput if it cannot be obeyed."""
    kind = command["kind"]
    if kind == "pause":
        pause(head)
        return Decision(head)
    if kind == "resume":
        return (yield from resume(plan, head, facts, system))
    if command["task"] not in plan.graph.index:
        raise NotFound(f"{plan.workflow.ref} has no task {command['task']!r}")
    task = plan.index(command["task"])
    if kind == "skip":
        return (yield from skip(plan, head, facts, system, task))
    if kind == "set_result":
        value = None if command["value"] is None else orjson.loads(command["value"])
        return (yield from set_result(plan, head, facts, system, task, value))
    raise InvalidInput(f"a workflow does not understand {kind!r}")
