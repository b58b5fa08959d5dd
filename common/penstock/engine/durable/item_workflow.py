"""The workflow that `ctx.map` runs. The workflow has one task, which fans out."""

from __future__ import annotations

from functools import cache

from penstock.language.definitions.qualified_name import GENERATED
from penstock.language.workflows import Workflow, from_body


def item_workflow_ref(target: str) -> str:
    """Return the ref of the workflow that runs this action or workflow for each item. No user-defined ref can have its
    form, so it never replaces a user's workflow."""
    return f"{target}{GENERATED}"


@cache
def item_workflow(target: str, kind: str, *, secret: bool) -> Workflow:
    """Return the workflow for a target of this kind (action or workflow). `secret`: the target has a secret parameter, so
    the items are secret too."""
    items = {"type": "array", "secret": True} if secret else {"type": "array"}
    return from_body(
        {
            "ref": item_workflow_ref(target),
            "parameters": {"items": items, "concurrency": {"type": "integer"}},
            "description": f"Runs {target} for each of its items. Made by Penstock for ctx.map.",
            "tasks": [
                {
                    "name": "item",
                    kind: target,
                    "with_items": "{{ parameters.items }}",
                    "concurrency": "{{ parameters.concurrency }}",
                    "input": "{{ item }}",
                }
            ],
            "output": "{{ tasks.item.result }}",
        }
    )
