"""`penstock apply`: makes definitions current. Applying the same ones twice changes nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import orjson

from penstock import limits, placement
from penstock.database import Row, Session, Transaction, backoff
from penstock.definitions import Definitions
from penstock.errors import DefinitionError
from penstock.scheduling import changes as schedules


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
    """What applying did to a definition: `new`, `changed`, `unchanged`, `enabled` or `removed`."""

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
    for workflow in definitions.workflows.values():
        _refuse_what_is_not_run(workflow)
    for trigger in definitions.triggers.values():
        if trigger.poll is not None:
            raise DefinitionError(
                f"trigger {trigger.ref}: poll triggers cannot be run yet",
                hint="Let a schedule start an action that looks for events and publishes them with a client.",
            )
    return await apply(session, definitions.documents())


def _refuse_what_is_not_run(workflow: Any) -> None:
    """Tasks that the executor does not know how to start yet are refused, not ignored."""
    exit = [("on_exit", workflow.on_exit)] if workflow.on_exit is not None else []
    for name, task in [*((task.name, task) for task in workflow.tasks), *exit]:
        if task.kind in ("event", "inquiry"):
            what = "wait_for_event" if task.kind == "event" else "inquiry"
            raise DefinitionError(
                f"workflow {workflow.ref}, task {name}: {what} tasks cannot be run yet",
                hint="Let an action ask instead: an action may raise AskInquiry, and a rule may start a workflow.",
            )
        if task.recovery is not None:
            raise DefinitionError(
                f"workflow {workflow.ref}, task {name}: recovery cannot be set on a task yet",
                hint="Set it on the action that the task runs.",
            )


async def apply(session: Session, documents: Sequence[Document]) -> list[Change]:
    """Store these versions and make them current, all in one transaction."""
    changes: list[Change] = []
    async for attempt in backoff(deadline=30):
        with attempt:
            async with session.transaction() as tx:
                await tx.fetch(placement.ALONE)
                changes = await _apply(tx, documents)
    await session.fetch(placement.NOTICE)
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
    stored = [
        await limits.store(tx, d.ref, ids[d.kind, d.ref]["id"], d.body) for d in moved if d.kind == "limit"
    ]
    changes += [Change("limit", ref, "removed") for ref in await limits.drop_undeclared(tx, documents)]
    if any(change.what != "unchanged" for change in changes):
        await limits.regroup(tx, stored, await placement.replace_all(tx))
    return changes


def _what(row: Row) -> str:
    if row["current"] is None:
        return "new"
    return "unchanged" if row["current"] == row["id"] else "changed"
