"""Definitions of workflows: their versions, and the differences between two of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from penstock.errors import NotFound
from penstock.language.workflows import Workflow, from_body
from penstock.language.workflows.diff import Difference, diff
from penstock.operate.masking import Masking
from penstock.store.definitions import catalog
from penstock.store.definitions.catalog import PastVersion
from penstock.store.session.database import Session


async def current(session: Session, ref: str, masking: Masking | None = None) -> Workflow:
    """Return the current version of a workflow, masked by `masking` for display. Raises NotFound if the workflow does
    not exist."""
    rows = await catalog.current(session, ["workflow"], [ref])
    if not rows:
        raise NotFound(f"no workflow {ref!r}", hint="`penstock actions` lists actions and workflows.")
    body = orjson.loads(rows[0].body)
    return from_body(body if masking is None else masking.definition("workflow", body))


async def versions(session: Session, ref: str) -> list[PastVersion]:
    """Return every stored version of a workflow, newest first. Raises NotFound if the workflow does not exist."""
    history = await catalog.history(session, "workflow", ref)
    if not history:
        raise NotFound(f"no workflow {ref!r}", hint="`penstock actions` lists actions and workflows.")
    return history


async def version(session: Session, ref: str, digest: str, masking: Masking | None = None) -> Workflow:
    """Return the version with a digest that begins with `digest`, masked by `masking`. Raises NotFound unless there
    is exactly one."""
    matches = await catalog.history(session, "workflow", ref, digest)
    if len(matches) != 1:
        raise NotFound(
            f"{'several versions' if matches else 'no version'} of {ref} begin with {digest}",
            hint=f"List its versions with: penstock workflow versions {ref}",
        )
    body = orjson.loads(matches[0].body)
    return from_body(body if masking is None else masking.definition("workflow", body))


async def differences(session: Session, old: Workflow, new: Workflow) -> list[Difference]:
    """Return the changes from `old` to `new`. Changed secrets are named, without their values."""
    old_body: Mapping[str, Any] = old.body()
    return (await Masking.load(session)).differences(diff(old, new), old_body, new.body())
