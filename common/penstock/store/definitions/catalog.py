"""Definitions: their immutable versions, and the current version of each."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol, TypeVar

import orjson

from penstock.language.schemas import Schema
from penstock.language.terms.options import nearest
from penstock.language.terms.windows import PATTERNS
from penstock.store.session.database import Session, Transaction
from penstock.store.session.rows import rows_as

T = TypeVar("T")


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
class Current:
    """The current version of a definition. `body` is JSON."""

    kind: str
    ref: str
    definition_id: int
    enabled: bool
    digest: str
    body: str
    updated_at: datetime


BODIES = "select id, kind, ref, body::text as body from definition where id = any($1::integer[])"


async def bodies(db: Session | Transaction, ids: Collection[int]) -> dict[int, Any]:
    """Return the bodies of definitions by id, with their `kind` and `ref`. A body never changes."""
    rows = await db.fetch(BODIES, list(ids))
    return {row["id"]: {**orjson.loads(row["body"]), "kind": row["kind"], "ref": row["ref"]} for row in rows}


async def compiled(
    db: Session | Transaction, name: str, ids: Collection[int], compile: Callable[[dict[str, Any]], T]
) -> dict[int, T]:
    """Return the compiled form of these definitions by id, from the cache of the process if possible. `name` is that of the form
    in the cache, and `compile` makes it of a body.

    The result holds each form itself. While this call or its caller waits for the database, another request of the process
    may apply a definition and clear the cache.
    """
    forms: dict[int, T] = {id: db.cache[name, id] for id in ids if (name, id) in db.cache}
    missing = [id for id in ids if id not in forms]
    if missing:
        for id, body in (await bodies(db, missing)).items():
            forms[id] = db.cache[name, id] = compile(body)
    return forms


async def parameter_schemas(db: Session | Transaction, ids: Collection[int | None]) -> dict[int, Schema]:
    """Return the parameter schemas of these definitions, by id. Each is compiled once."""
    definition_ids = {id for id in ids if id is not None}
    return await compiled(db, "schema", definition_ids, lambda body: Schema(body.get("parameters")))


CURRENT = """
select c.kind, c.ref, c.definition_id, c.enabled, d.digest, d.body::text as body, c.updated_at
from catalog c join definition d on d.id = c.definition_id
where c.kind = any($1::text[]) and ($2::text[] is null or c.ref = any($2::text[]))
order by c.kind, c.ref
"""


async def current(
    db: Session | Transaction, kinds: Collection[str], refs: Collection[str] | None = None
) -> list[Current]:
    """Return the current definitions of these kinds (and refs), enabled or not."""
    return rows_as(Current, await db.fetch(CURRENT, list(kinds), None if refs is None else list(refs)))


REFS = "select ref from catalog where kind = any($1::text[]) order by ref"


async def hint(db: Session | Transaction, kinds: Collection[str], ref: str, otherwise: str) -> str:
    """Return a hint for a reference to a definition that does not exist: the most similar ref, if any is similar."""
    near = nearest(ref, [row["ref"] for row in await db.fetch(REFS, list(kinds))])
    return f"Did you mean {near!r}? {otherwise}" if near else otherwise


NAMES = "select kind, ref from catalog where kind = any($1::text[])"


async def names(db: Session | Transaction, kinds: Collection[str]) -> dict[str, list[str]]:
    """Return all refs by kind, disabled ones too."""
    by_kind: dict[str, list[str]] = {}
    for row in await db.fetch(NAMES, list(kinds)):
        by_kind.setdefault(row["kind"], []).append(row["ref"])
    return by_kind


SCHEMAS = """
select c.kind, c.ref,
    case when c.ref = any($2::text[]) then d.body -> case c.kind when 'trigger' then 'schema' else 'parameters' end end::text
        as schema
from catalog c join definition d on d.id = c.definition_id
where c.kind = any($1::text[]) and c.enabled
"""


async def schemas(
    db: Session | Transaction, kinds: Collection[str], refs: Collection[str]
) -> dict[str, dict[str, dict[str, Any] | None]]:
    """Return the enabled refs by kind. Those among `refs` have a schema: of the parameters of an action or a
    workflow, or of the payload of a trigger."""
    by_kind: dict[str, dict[str, dict[str, Any] | None]] = {}
    for row in await db.fetch(SCHEMAS, list(kinds), list(refs)):
        schema = row["schema"]
        by_kind.setdefault(row["kind"], {})[row["ref"]] = orjson.loads(schema) if schema else None
    return by_kind


WITH_SECRETS = """
select kind, ref, body::text as body from definition
where kind in ('action', 'workflow', 'trigger') and body::text ~ '"(secret|writeOnly)": true'
"""


async def with_secrets(db: Session | Transaction) -> list[tuple[str, str, dict[str, Any]]]:
    """Return kind, ref and body of all versions that mark a value as secret."""
    return [(row["kind"], row["ref"], orjson.loads(row["body"])) for row in await db.fetch(WITH_SECRETS)]


STORE = """
insert into definition (kind, ref, digest, body)
select k, r, d, b::jsonb from unnest($1::text[], $2::text[], $3::text[], $4::text[]) as x (k, r, d, b)
on conflict (kind, ref, digest) do nothing
"""


async def store(tx: Transaction, documents: Sequence[Document]) -> None:
    """Store the versions among these that are new."""
    bodies = [orjson.dumps(d.body).decode() for d in documents]
    await tx.fetch(
        STORE, [d.kind for d in documents], [d.ref for d in documents], [d.digest for d in documents], bodies
    )


@dataclass(frozen=True, slots=True)
class Version:
    """A stored version. `current` is the id of the current version under its name, None for none, and `enabled` is
    that of the current version."""

    id: int
    kind: str
    ref: str
    current: int | None
    enabled: bool | None


VERSIONS = """
select d.id, d.kind, d.ref, c.definition_id as current, c.enabled
from definition d
join unnest($1::text[], $2::text[], $3::text[]) as x (kind, ref, digest) using (kind, ref, digest)
left join catalog c on c.kind = d.kind and c.ref = d.ref
"""


async def versions(tx: Transaction, documents: Sequence[Document]) -> dict[tuple[str, str], Version]:
    """Return the stored versions of these documents, by kind and ref."""
    rows = await tx.fetch(
        VERSIONS, [d.kind for d in documents], [d.ref for d in documents], [d.digest for d in documents]
    )
    return {(version.kind, version.ref): version for version in rows_as(Version, rows)}


@dataclass(frozen=True, slots=True)
class PastVersion:
    """A present or former version of a definition. `body` is JSON. `open_runs` executions of it have not ended."""

    digest: str
    created_at: datetime
    current: bool
    open_runs: int
    body: str


HISTORY = """
select d.digest, d.created_at, c.definition_id is not null as current, d.body::text as body,
    (select count(*) from execution e where e.definition_id = d.id and e.finished_at is null) as open_runs
from definition d left join catalog c on c.definition_id = d.id and c.kind = d.kind and c.ref = d.ref
where d.kind = $1 and d.ref = $2 and d.digest ^@ $3
order by d.id desc
"""


async def history(db: Session, kind: str, ref: str, digest: str = "") -> list[PastVersion]:
    """Return the versions of a definition with digests that begin with `digest`, newest first."""
    return rows_as(PastVersion, await db.fetch(HISTORY, kind, ref, digest))


@dataclass(frozen=True, slots=True)
class FormerRuns:
    """The open executions of former versions of a definition. `running` of them have an attempt on a worker, or are
    workflows under way."""

    kind: str
    ref: str
    open: int
    running: int


FORMER_RUNS = """
select d.kind, d.ref, count(*)::integer as open, (count(*) filter (where e.status = 'running'))::integer as running
from unnest($1::text[], $2::text[]) as x (kind, ref) join catalog c using (kind, ref)
join definition d on d.kind = c.kind and d.ref = c.ref and d.id <> c.definition_id
join execution e on e.definition_id = d.id and e.finished_at is null
group by d.kind, d.ref order by d.kind, d.ref
"""


async def former_runs(session: Session, names: Sequence[tuple[str, str]]) -> list[FormerRuns]:
    """Return the open executions of former versions of these definitions, each named by kind and ref."""
    rows = await session.fetch(FORMER_RUNS, [kind for kind, _ in names], [ref for _, ref in names])
    return rows_as(FormerRuns, rows)


MAKE_CURRENT = """
insert into catalog as c (kind, ref, definition_id, trigger, triggers, enabled)
select k, r, d, t, w::text[], e
from unnest($1::text[], $2::text[], $3::integer[], $4::text[], $5::text[], $6::boolean[]) as x (k, r, d, t, w, e)
on conflict (kind, ref) do update
set definition_id = excluded.definition_id, trigger = excluded.trigger, triggers = excluded.triggers,
    updated_at = clock_timestamp(), watches_since = case
        when (select body -> 'window' from definition where id = c.definition_id)
            is distinct from (select body -> 'window' from definition where id = excluded.definition_id)
        then clock_timestamp() else c.watches_since end
where c.definition_id <> excluded.definition_id
"""


async def make_current(tx: Transaction, documents: Sequence[Document], ids: Sequence[int]) -> None:
    """Make these versions current: document i has the id `ids[i]`. A disabled definition stays disabled."""
    await tx.fetch(
        MAKE_CURRENT,
        [d.kind for d in documents],
        [d.ref for d in documents],
        list(ids),
        [d.body.get("trigger") if d.kind == "rule" else None for d in documents],
        [_triggers(d.body["window"]) if d.kind == "rule" and "window" in d.body else None for d in documents],
        [d.body.get("enabled", True) for d in documents],
    )


def _triggers(window: Mapping[str, Any]) -> str:
    """Return the triggers of a rule's window, as the text of an array. Refs need no quotes."""
    triggers = (part["trigger"] for name in PATTERNS for part in window.get(name, ()))
    return f"{{{','.join(dict.fromkeys(triggers))}}}"


STORE_ITEM_WORKFLOW = "select store_item_workflow($1, $2, $3::text::jsonb) as changed"


async def store_item_workflow(tx: Transaction, document: Document) -> bool:
    """Store the workflow that runs an action for each of its items, and make it current. Return True if it was not
    current before."""
    [row] = await tx.fetch(
        STORE_ITEM_WORKFLOW, document.ref, document.digest, orjson.dumps(document.body).decode()
    )
    return bool(row["changed"])


SET_ENABLED = """
update catalog set enabled = $3, updated_at = clock_timestamp(),
    watches_since = case when $3 and not enabled then clock_timestamp() else watches_since end
where kind = $1 and ref = $2 returning ref
"""


async def set_enabled(db: Session | Transaction, kind: str, ref: str, enabled: bool) -> bool:
    """Enable or disable a definition. Return False if none has that name."""
    return bool(await db.fetch(SET_ENABLED, kind, ref, enabled))


DELETE = "delete from catalog where kind = $1 and ref = $2 returning ref"


async def delete(db: Session | Transaction, kind: str, ref: str) -> bool:
    """Delete the current version from the catalog; stored versions stay. Return False if none has that name."""
    return bool(await db.fetch(DELETE, kind, ref))
