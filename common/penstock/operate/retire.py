"""Retiring actions, workflows and triggers, and bringing them back. Running executions go on, and nothing new begins."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import orjson

from penstock.errors import Conflict, NotFound
from penstock.language.terms.windows import PATTERNS
from penstock.store.definitions import catalog
from penstock.store.events import polls
from penstock.store.session.committed_once import committed_once
from penstock.store.session.database import Session, Transaction

RETIRABLE = ("action", "trigger", "workflow")


async def retire(session: Session, ref: str, *, undo: bool = False) -> list[str]:
    """Retire an action or a workflow, so that nothing new starts, or a trigger, so that it accepts no events; with
    `undo`, bring it back. Applying does not bring it back. Return the kinds with this ref. Raises NotFound if there is
    no such definition, and Conflict while a rule, a schedule, a workflow or an action refers to it."""

    async def write(tx: Transaction) -> list[str]:
        kinds = [row.kind for row in await catalog.current(tx, RETIRABLE, [ref])]
        if not kinds:
            otherwise = "`penstock actions` and `penstock triggers` list the definitions."
            raise NotFound(
                f"there is no action, workflow or trigger {ref!r}",
                hint=await catalog.hint(tx, RETIRABLE, ref, otherwise),
            )
        if not undo and (named := await _referrers(tx, ref)):
            raise Conflict(
                f"{ref} is in use by {', '.join(named)}",
                hint="First retire or disable these definitions, or apply versions without the reference.",
            )
        for kind in kinds:
            await catalog.set_enabled(tx, kind, ref, undo)
        if "trigger" in kinds:
            await polls.enable(tx, ref, undo)
        return kinds

    _, kinds = await committed_once(session, write)
    session.cache.clear()
    return kinds


async def _referrers(tx: Transaction, ref: str) -> list[str]:
    """Return the enabled definitions that refer to this one, except itself."""
    return [
        f"{row.kind} {row.ref}"
        for row in await catalog.current(tx, ["action", "rule", "schedule", "workflow"])
        if row.enabled and row.ref != ref and ref in _named(orjson.loads(row.body))
    ]


def _named(body: Mapping[str, Any]) -> Iterator[str]:
    """Yield the actions, workflows and triggers that a definition refers to."""
    of_window = [part for name in PATTERNS for part in (body.get("window") or {}).get(name, ())]
    for part in [body, *body.get("tasks", ()), body.get("on_exit") or {}, *of_window]:
        yield from (part[name] for name in ("action", "workflow", "trigger") if name in part)
        if "wait_for_event" in part:
            yield part["wait_for_event"]["trigger"]
    for name in ("on_success", "on_failure"):
        yield from body.get(name) or ()
