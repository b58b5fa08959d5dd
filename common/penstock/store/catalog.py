"""Definitions: immutable versions, and which of them is current."""

from __future__ import annotations

from collections.abc import Collection
from difflib import get_close_matches
from typing import Any

import orjson

from penstock.language.schemas import Schema
from penstock.store.database import Row, Session, Transaction

BODIES = "select id, kind, ref, body::text as body from definition where id = any($1::integer[])"


async def bodies(db: Session | Transaction, ids: Collection[int]) -> dict[int, Any]:
    """The bodies of definitions, which never change, with their `kind` and `ref`."""
    rows = await db.fetch(BODIES, list(ids))
    return {row["id"]: {**orjson.loads(row["body"]), "kind": row["kind"], "ref": row["ref"]} for row in rows}


async def parameter_schemas(db: Session | Transaction, ids: Collection[int | None]) -> dict[int, Schema]:
    """What the actions of these definitions take. Compiled once for each definition."""
    wanted = {id for id in ids if id is not None}
    missing = [id for id in wanted if ("schema", id) not in db.cache]
    if missing:
        for id, body in (await bodies(db, missing)).items():
            db.cache["schema", id] = Schema(body.get("parameters"))
    return {id: db.cache["schema", id] for id in wanted if ("schema", id) in db.cache}


CURRENT = """
select c.kind, c.ref, c.definition_id, c.enabled, d.digest, d.body::text as body, c.updated_at
from catalog c join definition d on d.id = c.definition_id
where c.kind = any($1::text[]) and ($2::text[] is null or c.ref = any($2::text[]))
order by c.kind, c.ref
"""


async def current(
    db: Session | Transaction, kinds: Collection[str], refs: Collection[str] | None = None
) -> list[Row]:
    """The current definitions of these kinds (and refs), enabled or not."""
    return await db.fetch(CURRENT, list(kinds), None if refs is None else list(refs))


REFS = "select ref from catalog where kind = any($1::text[]) order by ref"


async def hint(db: Session | Transaction, kinds: Collection[str], ref: str, otherwise: str) -> str:
    """For somebody who named a definition of these kinds that does not exist: the one that was probably meant."""
    near = get_close_matches(ref, [row["ref"] for row in await db.fetch(REFS, list(kinds))], n=1)
    return f"Did you mean {near[0]!r}? {otherwise}" if near else otherwise
