"""The workflow that `ctx.map` runs. It has one task, which fans out, and is registered at its first use."""

from __future__ import annotations

import orjson

from penstock.language.definitions.qualified_name import GENERATED
from penstock.language.schemas.secrets import has_secrets
from penstock.language.workflows import Workflow, from_body
from penstock.store.admission import limits, namespaces
from penstock.store.definitions import catalog
from penstock.store.session.database import Session, retried


def item_workflow_ref(action: str) -> str:
    """Return the ref of the workflow that runs this action for each item. No user-defined ref can have its form, so it
    never replaces a user's workflow."""
    return f"{action}{GENERATED}"


async def ensure_item_workflow(session: Session, action: str) -> None:
    """Register the workflow for the current version of the action. Do nothing if the action does not exist.

    A worker has no right to write other definitions, so this does not use `penstock.operate.apply`.
    """
    ref = item_workflow_ref(action)
    if ("items", ref) in session.cache:
        return
    rows = await catalog.current(session, ["action", "workflow"], [action])
    if not rows:
        return
    parameters = orjson.loads(rows[0].body).get("parameters") or {}
    workflow = _workflow(ref, action, rows[0].kind, secret=has_secrets(parameters))
    async with session.transaction() as tx:
        await namespaces.lock_rules(tx)
        if await catalog.store_item_workflow(tx, workflow.document()):
            await limits.regroup(tx, [], await namespaces.replace_all(tx))
    await retried(lambda: namespaces.notice_workers(session), deadline=30)
    session.cache.clear()
    session.cache["items", ref] = True


def _workflow(ref: str, action: str, kind: str, *, secret: bool) -> Workflow:
    """Return the workflow. `secret`: the action has a secret parameter, so the items are secret too."""
    items = {"type": "array", "secret": True} if secret else {"type": "array"}
    return from_body(
        {
            "ref": ref,
            "parameters": {"items": items, "concurrency": {"type": "integer"}},
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
