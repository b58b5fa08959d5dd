"""`penstock apply`: makes definitions current. Applying the same ones twice changes nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import orjson

from penstock.errors import DefinitionError
from penstock.language import routing
from penstock.language.loading import Definitions
from penstock.store import limits, namespaces, polls
from penstock.store.database import Row, Session, Transaction, backoff, retried
from penstock.store.schedules import changes as schedules


class Document(Protocol):
    """A definition as it is stored."""

    @property
    def kind(self) -> str: ...
    @property
    def ref(self) -> str: ...
    @property
    def body(self) -> dict[str, Any]: ...
    @property
    def digest(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Change:
    """What applying did to a definition: `new`, `changed`, `unchanged`, `enabled` or `removed`; or `set by hand`: a
    limit that was changed, but is not in force while another version is that was set by hand."""

    kind: str
    ref: str
    what: str


KNOWN = "select kind, ref from catalog where kind in ('action', 'workflow', 'trigger')"
STORE = """
insert into definition (kind, ref, digest, body)
select k, r, d, b::jsonb from unnest($1::text[], $2::text[], $3::text[], $4::text[]) as x (k, r, d, b)
on conflict (kind, ref, digest) do nothing
"""
IDS = """
select d.id, d.kind, d.ref, c.definition_id as current
from definition d
join unnest($1::text[], $2::text[], $3::text[]) as x (kind, ref, digest) using (kind, ref, digest)
left join catalog c on c.kind = d.kind and c.ref = d.ref
"""
MAKE_CURRENT = """
insert into catalog as c (kind, ref, definition_id, trigger, enabled)
select k, r, d, t, e from unnest($1::text[], $2::text[], $3::integer[], $4::text[], $5::boolean[]) as x (k, r, d, t, e)
on conflict (kind, ref) do update
set definition_id = excluded.definition_id, trigger = excluded.trigger, updated_at = clock_timestamp()
where c.definition_id <> excluded.definition_id
"""


async def register(session: Session, definitions: Definitions) -> list[Change]:
    """Check that what refers to something finds it, here or among what is registered already, and apply. Raises
    DefinitionError that names every place."""
    known: dict[str, list[str]] = {}
    for row in await session.fetch(KNOWN):
        known.setdefault(row["kind"], []).append(row["ref"])
    definitions.check(known)
    for kind, other in (("action", "workflow"), ("workflow", "action")):
        both = sorted(set(definitions.of(kind)) & set(known.get(other, ())))
        if both:
            raise DefinitionError(
                f"{kind} {both[0]}: there is a {other} of that name", hint="Choose another name."
            )
    documents = definitions.documents()
    if session.settings.known_routes:
        there = [route.strip() for route in session.settings.known_routes.split(",")]
        routing.refuse_unknown(_routes(documents), there)
    for trigger in definitions.triggers.values():
        if trigger.poll is not None and trigger.function is None:
            raise trigger.source.wrong(
                f"trigger {trigger.ref}: there is no function to poll with",
                "Put @trigger(every=...) above the function that looks for events.",
            )
    return await apply(session, documents)


def _routes(documents: Sequence[Document]) -> Iterator[tuple[str, str]]:
    """The routes that these name, and where."""
    for document in documents:
        if document.body.get("route"):
            yield document.body["route"], f"{document.kind} {document.ref}"
        for task in [*document.body.get("tasks", ()), document.body.get("on_exit") or {}]:
            if task.get("route"):
                yield task["route"], f"workflow {document.ref}, task {task['name']}"


async def apply(session: Session, documents: Sequence[Document]) -> list[Change]:
    """Store these versions and make them current, all in one transaction."""
    changes: list[Change] = []
    async for attempt in backoff(deadline=30):
        with attempt:
            async with session.transaction() as tx:
                await tx.fetch(namespaces.ALONE)
                changes = await _apply(tx, documents)
    await retried(lambda: session.fetch(namespaces.NOTICE), deadline=30)
    session.cache.clear()
    return changes


async def _apply(tx: Transaction, documents: Sequence[Document]) -> list[Change]:
    kinds = [d.kind for d in documents]
    refs = [d.ref for d in documents]
    digests = [d.digest for d in documents]
    await tx.fetch(STORE, kinds, refs, digests, [orjson.dumps(d.body).decode() for d in documents])
    ids = {(row["kind"], row["ref"]): row for row in await tx.fetch(IDS, kinds, refs, digests)}
    changes = [Change(d.kind, d.ref, _what(ids[d.kind, d.ref])) for d in documents]
    moved = [d for d, change in zip(documents, changes, strict=True) if change.what != "unchanged"]
    await tx.fetch(
        MAKE_CURRENT,
        [d.kind for d in moved],
        [d.ref for d in moved],
        [ids[d.kind, d.ref]["id"] for d in moved],
        [d.body.get("trigger") if d.kind == "rule" else None for d in moved],
        [d.body.get("enabled", True) for d in moved],
    )
    await schedules.put(
        tx, [(d.ref, ids[d.kind, d.ref]["id"], d.body) for d in documents if d.kind == "schedule"]
    )
    await _put_polls(tx, documents, {ref: row["id"] for (kind, ref), row in ids.items() if kind == "action"})
    by_hand = await limits.set_by_hand(tx) if any(d.kind == "limit" for d in moved) else set()
    changes = [
        Change(c.kind, c.ref, "set by hand")
        if c.kind == "limit" and c.ref in by_hand and c.what != "unchanged"
        else c
        for c in changes
    ]
    stored = [
        await limits.store(tx, d.ref, ids[d.kind, d.ref]["id"], d.body)
        for d in moved
        if d.kind == "limit" and d.ref not in by_hand
    ]
    changes += [Change("limit", ref, "removed") for ref in await limits.drop_undeclared(tx, documents)]
    if any(change.what != "unchanged" for change in changes):
        await limits.regroup(tx, stored, await namespaces.replace_all(tx))
    return changes


async def _put_polls(tx: Transaction, documents: Sequence[Document], actions: Mapping[str, int]) -> None:
    """Poll triggers are called from now on, and triggers that were poll triggers are not any more."""
    triggers = [d for d in documents if d.kind == "trigger"]
    await polls.remove(tx, [d.ref for d in triggers if "poll" not in d.body])
    every = {d.ref: d.body["poll"]["every"] for d in triggers if "poll" in d.body}
    if every:
        names = {ref: namespaces.name("public", ref) for ref in every}
        spaces = await namespaces.places(tx, {names[ref]: ref for ref in every})
        await polls.put(
            tx, [polls.Polled(ref, actions[ref], spaces[names[ref]], every[ref]) for ref in every]
        )


def _what(row: Row) -> str:
    if row["current"] is None:
        return "new"
    return "unchanged" if row["current"] == row["id"] else "changed"
