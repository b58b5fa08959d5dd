"""The targets of tasks: the current versions of actions and workflows, from memory if possible."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from penstock.language.terms.waits import WAITS
from penstock.language.workflows.target import Target
from penstock.store.definitions import catalog
from penstock.store.session.database import Session, Transaction
from penstock.store.workflows import children


async def known_targets(tx: Transaction, refs: Collection[str]) -> dict[str, Target]:
    """Return the existing targets among `refs`, from memory if all of them were looked up before. The transaction
    that starts them lets the database check those that are `remembered`."""
    cached = {ref: target for ref in refs if (target := tx.cache.get(("target", ref))) is not None}
    return cached if len(cached) == len(refs) else await current_targets(tx, refs)


def remembered(targets: Mapping[str, Target]) -> dict[str, int]:
    """Return the definitions of the targets that may have changed since they were looked up, by ref."""
    return {
        ref: target.definition for ref, target in targets.items() if target.enabled and target.kind != "wait"
    }


async def current_targets(tx: Session | Transaction, refs: Collection[str]) -> dict[str, Target]:
    """Look up the existing targets among `refs`."""
    rows = await catalog.current(tx, ["action", "workflow"], refs)
    targets = {row.ref: Target(row.definition_id, row.kind, row.enabled) for row in rows}
    for ref in refs:
        target = targets.get(ref)
        if target is not None and target.enabled:
            tx.cache["target", ref] = target
        else:
            tx.cache.pop(("target", ref), None)
    if not WAITS.isdisjoint(refs):
        if "waits" not in tx.cache:
            waits = await children.read_wait_definitions(tx)
            tx.cache["waits"] = {ref: Target(id, "wait") for ref, id in waits.items()}
        targets |= {ref: target for ref, target in tx.cache["waits"].items() if ref in refs}
    return targets
