"""The parameters of a workflow's children, which are the executions that it starts. The parameters are checked against
the schemas of the actions and workflows that the children run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from penstock.engine.decision import Start
from penstock.errors import InvalidInput, PenstockError
from penstock.language.rules.secret_references import checked_parameters
from penstock.language.schemas import PAYLOAD_CAP, Schema, check_value
from penstock.language.workflows.target import Target, target_ref


def child_parameters(
    start: Start,
    target: Target | None,
    schemas: Mapping[int, Schema],
    depth: int,
    max_depth: int,
    payload_cap: int = PAYLOAD_CAP,
) -> tuple[str, dict[str, str] | None]:
    """Return a child's parameters as JSON, and None. If they are invalid, return "{}" and the error that fails the
    task.

    `depth` is the nesting depth of the child if it is a workflow. `schemas` are the parameter schemas by definition
    id.
    """
    ref = target_ref(start.step)
    if target is None or not target.enabled:
        return "{}", {"type": "NotFound", "message": f"{ref} is not registered, or is retired"}
    if target.kind == "workflow" and depth > max_depth:
        message = f"{ref} would be at nesting level {depth}, but max_workflow_depth is {max_depth}"
        return "{}", {"type": "WorkflowTooDeep", "message": message}
    try:
        if target.kind == "wait":
            return check_value(
                _wait_parameters(start, payload_cap), payload_cap, what="what it waits for"
            ).decode(), None
        return checked_parameters(schemas[target.definition], start.body, payload_cap).decode(), None
    except PenstockError as error:
        return "{}", {"type": type(error).__name__, "message": error.message}


def _wait_parameters(start: Start, payload_cap: int) -> dict[str, Any]:
    """Return the parameters of a task that waits for an event or an inquiry, in the form of
    `penstock.language.terms.waits`. Raises InvalidInput if the assignee is not a text, or the default answer does not
    fit the schema."""
    event, inquiry = start.step.wait_for_event, start.step.inquiry
    if event is not None:
        return {"trigger": event.trigger, "timeout": event.timeout, **start.body}
    assert inquiry is not None
    assignee, default = start.body["assignee"], start.body["default"]
    if assignee is not None and not isinstance(assignee, str):
        raise InvalidInput(f"the assignee of `{start.name}` is a {type(assignee).__name__}, not a text")
    if default is not None:
        schema = Schema(inquiry.answer or None)
        schema.check(default, what=f"the default answer of `{start.name}`", cap=payload_cap)
    return {
        "prompt": str(start.body["prompt"]),
        "schema": inquiry.answer or None,
        "assignee": assignee,
        "timeout": inquiry.timeout,
        "default": default,
    }
