"""The registration of the workflow that `ctx.map` runs, at its first use."""

from __future__ import annotations

import orjson

from penstock.engine.durable.item_workflow import item_workflow, item_workflow_ref
from penstock.language.schemas.secrets import has_secrets
from penstock.store.admission import limits, namespaces
from penstock.store.definitions import catalog
from penstock.store.session.database import Session, retried


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
    workflow = item_workflow(action, rows[0].kind, secret=has_secrets(parameters))
    async with session.transaction() as tx:
        await namespaces.lock_rules(tx)
        if await catalog.store_item_workflow(tx, workflow.document()):
            await limits.regroup(tx, [], await namespaces.replace_all(tx))
    await retried(lambda: namespaces.notice_workers(session), deadline=30)
    session.cache.clear()
    session.cache["items", ref] = True
