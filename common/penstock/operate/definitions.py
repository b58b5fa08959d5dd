"""Definitions for display, with secrets masked; and rules, which can be enabled, disabled and deleted."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import orjson

from penstock.errors import NotFound
from penstock.language.definitions.declaration import declare
from penstock.language.definitions.rule import Rule
from penstock.language.definitions.schedule import Schedule
from penstock.language.loading import Definitions
from penstock.language.terms.sources import Source
from penstock.operate.apply import Change, register
from penstock.operate.masking import Masking
from penstock.store.admission import holds
from penstock.store.definitions import catalog
from penstock.store.definitions.catalog import Current
from penstock.store.events import rule_errors
from penstock.store.session.database import Session

HOLDABLE = ("action", "workflow")
"""The kinds of definitions that a hold of the kind `action` or `pack` covers."""
LISTED_BY = {
    "action": "actions",
    "workflow": "actions",
    "trigger": "triggers",
    "rule": "rules list",
    "schedule": "schedule list",
}
"""The command that lists the definitions of a kind."""


async def listed(
    session: Session, kinds: Collection[str], refs: Collection[str] | None = None
) -> list[dict[str, Any]]:
    """Return the current definitions of these kinds (and refs): kind, ref, enabled, digest, definition, held."""
    masking = await Masking.load(session)
    rows = await catalog.current(session, kinds, refs)
    held = await holds.of_actions(session, [row.ref for row in rows if row.kind in HOLDABLE])
    return [_shown(row, masking, held.get(row.ref) if row.kind in HOLDABLE else None) for row in rows]


async def one(session: Session, kinds: Collection[str], ref: str) -> dict[str, Any]:
    """Return the current definition with this ref. Raises NotFound if there is none."""
    rows = await listed(session, kinds, [ref])
    if not rows:
        otherwise = f"List the existing names with: penstock {LISTED_BY[next(iter(kinds))]}"
        raise NotFound(
            f"no {' or '.join(kinds)} {ref!r}", hint=await catalog.hint(session, kinds, ref, otherwise)
        )
    return rows[0]


async def rules(session: Session) -> list[dict[str, Any]]:
    """Return all rules, each with the number of events on which it has failed (`errors`)."""
    failed = {entry.rule: entry.count for entry in await rule_errors.counts(session)}
    return [{**rule, "errors": failed.get(rule["ref"], 0)} for rule in await listed(session, ["rule"])]


async def put_rule(session: Session, ref: str, options: Mapping[str, Any]) -> Change:
    """Create a rule, or replace its options, as `penstock apply` does. Raises DefinitionError if an option is not
    valid, or for an unknown trigger or action."""
    [change] = await register(session, Definitions([rule_of(ref, options)]))
    return change


def rule_of(ref: str, options: Mapping[str, Any]) -> Rule:
    """Return a rule with these options. Raises DefinitionError if an option is not valid."""
    return declare(Rule, {"ref": ref, **options}, Source("", 0))


def schedule_of(ref: str, options: Mapping[str, Any]) -> Schedule:
    """Return a schedule with these options. Raises DefinitionError if an option is not valid."""
    return declare(Schedule, {"ref": ref, **options}, Source("", 0))


async def enable_rule(session: Session, ref: str, enabled: bool) -> None:
    """Enable or disable a rule: a disabled rule matches nothing. Raises NotFound if the rule does not exist."""
    if not await catalog.set_enabled(session, "rule", ref, enabled):
        raise await _no_rule(session, ref)


async def delete_rule(session: Session, ref: str) -> None:
    """Delete a rule. Executions that it has started go on. Raises NotFound if the rule does not exist."""
    if not await catalog.delete(session, "rule", ref):
        raise await _no_rule(session, ref)


async def _no_rule(session: Session, ref: str) -> NotFound:
    otherwise = "List the rules with: penstock rules list"
    return NotFound(f"no rule {ref!r}", hint=await catalog.hint(session, ["rule"], ref, otherwise))


def _shown(row: Current, masking: Masking, held: str | None) -> dict[str, Any]:
    return {
        "kind": row.kind,
        "ref": row.ref,
        "enabled": row.enabled,
        "digest": row.digest,
        "definition": masking.definition(row.kind, orjson.loads(row.body)),
        "held": held,
    }
