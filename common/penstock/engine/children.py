"""The executions that a workflow starts, its children: what each runs, in which namespace, and with which parameters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from penstock.engine.decision import Start
from penstock.errors import InvalidInput, PenstockError
from penstock.language.schemas import Schema
from penstock.language.secret_references import checked_parameters
from penstock.language.waits import INQUIRY, WAIT_FOR_EVENT
from penstock.language.workflows.task import Step


@dataclass(frozen=True, slots=True)
class Target:
    """The current version of what a task runs. `kind` is action, workflow or wait."""

    definition: int
    kind: str
    enabled: bool = True


def target_ref(step: Step) -> str:
    """The ref of what a task runs, or what it waits for."""
    if step.wait_for_event is not None:
        return WAIT_FOR_EVENT
    return INQUIRY if step.inquiry is not None else step.action or step.workflow or ""


def child_namespace(tenant: str, workflow: str, task: str, route: str | None = None) -> str:
    """The namespace of a task of a workflow: `tenant::pack::workflow::task`, and `@route` if the task names one."""
    name = f"{tenant}::{workflow.replace('.', '::')}::{task}"
    return f"{name}@{route}" if route else name


def child_parameters(
    start: Start, target: Target | None, schemas: Mapping[int, Schema], depth: int, max_depth: int
) -> tuple[str, dict[str, str] | None]:
    """What an execution is given, as JSON, and None; or nothing, and the error with which the task fails. `depth` is how
    many workflows would be inside one another, if it is one. `schemas` are of parameters, by definition."""
    ref = target_ref(start.step)
    if target is None or not target.enabled:
        return "{}", {"type": "NotFound", "message": f"{ref} is not registered, or is retired"}
    if target.kind == "workflow" and depth > max_depth:
        message = f"{ref} would be the workflow number {depth} inside one another, and max_workflow_depth is {max_depth}"
        return "{}", {"type": "WorkflowTooDeep", "message": message}
    try:
        if target.kind == "wait":
            return orjson.dumps(_wait_parameters(start)).decode(), None
        return checked_parameters(schemas[target.definition], start.body).decode(), None
    except PenstockError as error:
        return "{}", {"type": type(error).__name__, "message": error.message}


def _wait_parameters(start: Start) -> dict[str, Any]:
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
