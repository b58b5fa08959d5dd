"""What `ctx.map` runs: a workflow of one task that fans out, registered when it is first needed."""

from __future__ import annotations

from penstock.language.workflows import Workflow, from_body
from penstock.operate.apply import apply
from penstock.store import catalog
from penstock.store.database import Session


def item_workflow_ref(action: str) -> str:
    """The ref of the workflow that runs this action for each of its items."""
    return f"{action}_items"


async def ensure_item_workflow(session: Session, action: str) -> None:
    """Register it, unless it is. Of an action that is not there nothing is registered."""
    ref = item_workflow_ref(action)
    if ("items", ref) in session.cache:
        return
    kinds = {row.kind for row in await catalog.current(session, ["action", "workflow"], [action])}
    if not kinds:
        return
    if not await catalog.current(session, ["workflow"], [ref]):
        await apply(session, [_workflow(ref, action, kinds.pop()).document()])
    session.cache["items", ref] = True


def _workflow(ref: str, action: str, kind: str) -> Workflow:
    return from_body(
        {
            "ref": ref,
            "description": f"Runs {action} for each of its items. Made by Penstock for ctx.map.",
            "tasks": [
                {
                    "name": "item",
                    kind: action,
                    "with_items": "{{ parameters.items }}",
                    "concurrency": "{{ parameters.concurrency }}",
                    "input": "{{ item }}",
                }
            ],
            "output": "{{ tasks.item.result }}",
        }
    )
