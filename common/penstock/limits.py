"""Limits as admission reads them: stored with their definitions, changed while executions wait under them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from penstock.database import Transaction

FAIR_BEFORE = "select fair from concurrency_limit where ref = $1 and by = $2::text[]"
STORE = """
insert into concurrency_limit (ref, definition_id, scope, max, by, fair, when_full, max_waiting, rate_count,
    rate_seconds, while_waiting)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
on conflict (ref, by) do update set definition_id = excluded.definition_id, scope = excluded.scope,
    max = excluded.max, fair = excluded.fair, when_full = excluded.when_full, max_waiting = excluded.max_waiting,
    rate_count = excluded.rate_count, rate_seconds = excluded.rate_seconds, while_waiting = excluded.while_waiting
returning id
"""
DROP_UNDECLARED = """
delete from catalog c where c.kind = 'limit' and c.ref <> all($2::text[])
    and exists (select from unnest($1::text[]) r where starts_with(c.ref, r || '.'))
returning c.ref
"""
DROP = "delete from catalog where kind = 'limit' and ref = $1 returning ref"
CHANGED = "select limits_changed($1::integer[], $2::integer[])"
OF_LIMITS = "select id from namespace where limits && $1::integer[]"
NO_MAXIMUM = 2_147_483_647


class Document(Protocol):
    @property
    def kind(self) -> str: ...
    @property
    def ref(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Stored:
    """A limit that was stored. `turns`: between whom turns are taken is not what it was."""

    id: int
    turns: bool


async def store(tx: Transaction, ref: str, definition: int, body: dict[str, Any]) -> Stored:
    """Make this version of a limit the one that counts. Grouped by other parameters it is another limit."""
    rate = body.get("rate") or {}
    by, fair = list(body.get("by") or ()), list(body.get("fair") or ())
    before = await tx.fetch(FAIR_BEFORE, ref, by)
    rows = await tx.fetch(
        STORE,
        ref,
        definition,
        body.get("scope") or "*",
        body.get("max") or NO_MAXIMUM,
        by,
        fair,
        body.get("when_full") or "enqueue",
        body.get("max_waiting"),
        rate.get("count"),
        rate.get("seconds"),
        body.get("while_waiting") or "release",
    )
    return Stored(rows[0]["id"], turns=bool(before) and list(before[0]["fair"]) != fair)


async def drop_undeclared(tx: Transaction, documents: Sequence[Document]) -> list[str]:
    """The limits that came with these actions and workflows once, and do not any more, are no longer in force."""
    owners = [d.ref for d in documents if d.kind in ("action", "workflow")]
    declared = [d.ref for d in documents if d.kind == "limit"]
    return [row["ref"] for row in await tx.fetch(DROP_UNDECLARED, owners, declared)]


async def drop(tx: Transaction, ref: str) -> bool:
    """A limit is no longer in force. What holds its slots goes on. False where there is none."""
    return bool(await tx.fetch(DROP, ref))


async def regroup(tx: Transaction, stored: Sequence[Stored], namespaces: Sequence[int]) -> None:
    """Who waits is looked at anew: where other limits apply, it is put in line again, at its old place; where one has
    other numbers, what has room now starts. Call it in the transaction of the change, with the placement alone."""
    turned = [limit.id for limit in stored if limit.turns]
    again = set(namespaces)
    if turned:
        again |= {row["id"] for row in await tx.fetch(OF_LIMITS, turned)}
    await tx.fetch(CHANGED, sorted(again), [limit.id for limit in stored])
