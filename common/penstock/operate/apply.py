"""`penstock apply`: makes definitions current. Applying the same definitions twice changes nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from penstock.errors import DefinitionError
from penstock.language.definitions.qualified_name import is_generated
from penstock.language.loading import Definitions
from penstock.language.terms import routing
from penstock.language.terms.executor_names import refuse_unknown_executors
from penstock.operate.encryption import POLLED_TENANT
from penstock.operate.retire import RETIRABLE
from penstock.operate.routes import named_routes
from penstock.store.access.tenant_keys import encrypted_tenants
from penstock.store.admission import limits, namespaces
from penstock.store.definitions import catalog
from penstock.store.definitions.catalog import Document, Version
from penstock.store.events import polls
from penstock.store.schedules import changes as schedules
from penstock.store.session.committed_once import committed_once
from penstock.store.session.database import Session, Transaction, retried

MOST_TOLD = 100
"""The maximum number of changes that the audit names."""


@dataclass(frozen=True, slots=True)
class Change:
    """The effect of applying a definition: `new`, `changed`, `unchanged`, `enabled`, `removed`, `set by hand` or
    `retired`. `set by hand`: a limit was changed, but the version that was set by hand stays in force. `retired`: the
    definition stays out of use."""

    kind: str
    ref: str
    what: str


async def register(session: Session, definitions: Definitions) -> list[Change]:
    """Check that each reference of the definitions exists, among them or in the catalog, and apply them. Raises
    DefinitionError that names every wrong place."""
    definitions.check(await catalog.schemas(session, RETIRABLE, definitions.refers_to()))
    registered = await catalog.names(session, RETIRABLE)
    for kind, other in (("action", "workflow"), ("workflow", "action")):
        both = sorted(set(definitions.of(kind)) & set(registered.get(other, ())))
        if both:
            raise DefinitionError(
                f"{kind} {both[0]}: a {other} of this name exists", hint="Choose another name."
            )
    refuse_unknown_executors(definitions.actions.values(), session.settings.executors)
    documents = definitions.documents()
    if generated := [d.ref for d in documents if is_generated(d.ref)]:
        raise DefinitionError(
            f"{generated[0]} is a name that only Penstock may give", hint="Choose another name."
        )
    if session.settings.known_routes:
        known_routes = [route.strip() for route in session.settings.known_routes.split(",")]
        named = (pair for d in documents for pair in named_routes(d.kind, d.ref, d.body))
        routing.refuse_unknown(named, known_routes)
    for trigger in definitions.triggers.values():
        if trigger.poll is not None and trigger.function is None:
            raise trigger.source.wrong(
                f"trigger {trigger.ref}: there is no function to poll with",
                "Put @trigger(every=...) above the function that looks for events.",
            )
    return await apply(session, documents)


async def apply(session: Session, documents: Sequence[Document]) -> list[Change]:
    """Store these versions and make them current, all in one transaction. Return the change of each."""

    async def write(tx: Transaction) -> list[Change]:
        await namespaces.lock_rules(tx)
        changes = await _apply(tx, documents)
        told_changes = [
            f"{change.what} {change.kind} {change.ref}" for change in changes if change.what != "unchanged"
        ]
        if told_changes:
            tx.tell(changes=told_changes[:MOST_TOLD], changed=len(told_changes))
        return changes

    _, changes = await committed_once(session, write)
    await retried(lambda: namespaces.notice_workers(session), deadline=30)
    session.cache.clear()
    return changes


async def _apply(tx: Transaction, documents: Sequence[Document]) -> list[Change]:
    await catalog.store(tx, documents)
    versions = await catalog.versions(tx, documents)
    changes = [Change(d.kind, d.ref, _what(versions[d.kind, d.ref])) for d in documents]
    moved = [d for d, change in zip(documents, changes, strict=True) if change.what != "unchanged"]
    await catalog.make_current(tx, moved, [versions[d.kind, d.ref].id for d in moved])
    await schedules.put(
        tx, [(d.ref, versions[d.kind, d.ref].id, d.body) for d in documents if d.kind == "schedule"]
    )
    await _put_polls(
        tx, documents, {ref: version.id for (kind, ref), version in versions.items() if kind == "action"}
    )
    by_hand = await limits.set_by_hand(tx) if any(d.kind == "limit" for d in moved) else set()
    changes = [
        Change(c.kind, c.ref, "set by hand")
        if c.kind == "limit" and c.ref in by_hand and c.what != "unchanged"
        else c
        for c in changes
    ]
    stored = [
        await limits.store(tx, d.ref, versions[d.kind, d.ref].id, d.body)
        for d in moved
        if d.kind == "limit" and d.ref not in by_hand
    ]
    changes += [Change("limit", ref, "removed") for ref in await limits.drop_undeclared(tx, documents)]
    if any(change.what != "unchanged" for change in changes):
        await limits.regroup(tx, stored, await namespaces.replace_all(tx))
    return [
        c if _in_use(c, versions.get((c.kind, c.ref))) else Change(c.kind, c.ref, "retired") for c in changes
    ]


async def _put_polls(tx: Transaction, documents: Sequence[Document], actions: Mapping[str, int]) -> None:
    """Store the poll triggers among these, and remove the polls of other triggers."""
    triggers = [d for d in documents if d.kind == "trigger"]
    await polls.remove(tx, [d.ref for d in triggers if "poll" not in d.body])
    every = {d.ref: d.body["poll"]["every"] for d in triggers if "poll" in d.body}
    if every:
        if POLLED_TENANT in await encrypted_tenants(tx):
            raise DefinitionError(
                f"trigger {min(every)}: polls run in tenant {POLLED_TENANT}, whose values are encrypted, "
                "but the state of a poll would not be encrypted",
                hint="Publish the events from a program instead, or run `penstock encryption off public` first.",
            )
        spaces = {ref: namespaces.of("public", ref) for ref in every}
        places = await namespaces.places(tx, spaces.values())
        await polls.put(
            tx, [polls.Polled(ref, actions[ref], places[spaces[ref]], every[ref]) for ref in every]
        )


def _in_use(change: Change, version: Version | None) -> bool:
    return change.kind not in RETIRABLE or version is None or version.enabled is not False


def _what(version: Version) -> str:
    if version.current is None:
        return "new"
    return "unchanged" if version.current == version.id else "changed"
