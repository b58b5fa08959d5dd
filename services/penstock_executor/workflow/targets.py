"""What the executions of tasks run, and what they are given."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from penstock.engine.decision import Start
from penstock.errors import InvalidInput, PenstockError
from penstock.language.schemas import Schema
from penstock.language.waits import INQUIRY, WAIT_FOR_EVENT, WAITS
from penstock.language.workflows.model import Step
from penstock.store import catalog
from penstock.store.database import Transaction

WAIT_DEFINITIONS = "select id, ref from definition where kind = 'wait'"


@dataclass(frozen=True, slots=True)
class Target:
    """The current version of what a task runs. `kind` is action, workflow or wait."""

    definition: int
    kind: str
    enabled: bool = True


def target_of(step: Step) -> str:
    """The ref of what a task runs, or what it waits for."""
    if step.wait_for_event is not None:
        return WAIT_FOR_EVENT
    return INQUIRY if step.inquiry is not None else step.action or step.workflow or ""


async def known_targets(tx: Transaction, refs: Collection[str]) -> dict[str, Target]:
    """Those of `refs` that there are; from memory, if all of them were looked up before. Whoever starts them has the
    database check those that are `remembered`."""
    found = {ref: target for ref in refs if (target := tx.cache.get(("target", ref))) is not None}
    return found if len(found) == len(refs) else await current_targets(tx, refs)


def remembered(targets: Mapping[str, Target]) -> dict[str, int]:
    """The definitions of those that may have changed."""
    return {
        ref: target.definition for ref, target in targets.items() if target.enabled and target.kind != "wait"
    }


async def current_targets(tx: Transaction, refs: Collection[str]) -> dict[str, Target]:
    """Those of `refs` that there are, looked up."""
    rows = await catalog.current(tx, ["action", "workflow"], refs)
    found = {row.ref: Target(row.definition_id, row.kind, row.enabled) for row in rows}
    for ref in refs:
        target = found.get(ref)
        if target is not None and target.enabled:
            tx.cache["target", ref] = target
        else:
            tx.cache.pop(("target", ref), None)
    if not WAITS.isdisjoint(refs):
        if "waits" not in tx.cache:
            tx.cache["waits"] = {
                row["ref"]: Target(row["id"], "wait") for row in await tx.fetch(WAIT_DEFINITIONS)
            }
        found |= {ref: target for ref, target in tx.cache["waits"].items() if ref in refs}
    return found


def params_of(
    start: Start, target: Target | None, schemas: Mapping[int, Schema], depth: int, deepest: int
) -> tuple[str, dict[str, str] | None]:
    """What an execution is given, as JSON; or nothing, and the reason why the task fails. `depth` is that of a workflow
    if it is one."""
    if target is None or not target.enabled:
        return "{}", {
            "type": "NotFound",
            "message": f"{target_of(start.step)} is not registered, or is disabled",
        }
    if target.kind == "workflow" and depth > deepest:
        message = (
            f"{target_of(start.step)} would be the workflow number {depth} inside one another, and "
            f"max_workflow_depth is {deepest}"
        )
        return "{}", {"type": "WorkflowTooDeep", "message": message}
    try:
        if target.kind == "wait":
            return orjson.dumps(_awaited(start)).decode(), None
        return schemas[target.definition].check(start.body).decode(), None
    except PenstockError as error:
        return "{}", {"type": type(error).__name__, "message": error.message}


def _awaited(start: Start) -> dict[str, Any]:
    """What a task waits for: see `penstock.language.waits`. Raises InvalidInput."""
    event, inquiry = start.step.wait_for_event, start.step.inquiry
    if event is not None:
        return {"trigger": event.trigger, "timeout": event.timeout, **start.body}
    assert inquiry is not None
    assignee, default = start.body["assignee"], start.body["default"]
    if assignee is not None and not isinstance(assignee, str):
        raise InvalidInput(f"the assignee of `{start.name}` is a {type(assignee).__name__}, not a text")
    if default is not None:
        Schema(inquiry.answer or None).check(default, what=f"the default answer of `{start.name}`")
    return {
        "prompt": str(start.body["prompt"]),
        "schema": inquiry.answer or None,
        "assignee": assignee,
        "timeout": inquiry.timeout,
        "default": default,
    }
