"""The sequences that number rows.

Logical replication and a load by hand copy rows, but not the state of the sequences. Then a sequence gives numbers that
rows already have.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

Fetch = Callable[..., Awaitable[Any]]

OWNED = """
select format('%I', c.relname) as sequence, format('%I', t.relname) as numbered, format('%I', a.attname) as number
from pg_class c
join pg_sequence s on s.seqrelid = c.oid
join pg_depend d on d.classid = 'pg_class'::regclass and d.objid = c.oid
    and d.refclassid = 'pg_class'::regclass and d.deptype = 'i'
join pg_class t on t.oid = d.refobjid
join pg_attribute a on a.attrelid = t.oid and a.attnum = d.refobjsubid
where c.relnamespace = quote_ident(current_schema())::regnamespace
    and has_sequence_privilege(s.seqrelid, 'select') and has_column_privilege(t.oid, a.attnum, 'select')
order by 1
"""
"""The sequences that this role may read, and the columns that they number."""
BEHIND = """
select '{sequence}' as sequence, x.highest from {sequence} s, lateral (select max({number}) as highest from {numbered}) x
where x.highest >= s.last_value + s.is_called::integer
"""
ADMISSIONS = """
select 'admission_seq' as sequence, x.highest
from admission_seq s, lateral (select max(seq) as highest from admission where not s.is_called) x
where x.highest is not null
"""
"""The sequence of admissions. They have no index by number, so they are read only if the sequence gave no number yet."""
READABLE = """
select has_sequence_privilege('admission_seq', 'select') and has_table_privilege('admission', 'select') as readable
"""
ADVANCE = "select setval($1::text::regclass, $2::bigint) where nextval($1::text::regclass) < $2::bigint"
"""Advances a sequence, unless services have drawn further numbers since the look at it."""


async def behind(fetch: Fetch) -> dict[str, int]:
    """Return the sequences that would give a number which a row already has, each with the highest number of its rows.
    Sequences that the role may not read are left out."""
    queries = [
        BEHIND.format(sequence=row["sequence"], numbered=row["numbered"], number=row["number"])
        for row in await fetch(OWNED)
    ]
    [access] = await fetch(READABLE)
    if access["readable"]:
        queries.append(ADMISSIONS)
    if not queries:
        return {}
    return {row["sequence"]: row["highest"] for row in await fetch("union all".join(queries))}


async def advance(fetch: Fetch) -> list[str]:
    """Set each sequence that is behind to the highest number of its rows, and return their names. A sequence that is not behind
    is left alone, so services may draw numbers meanwhile."""
    names = await behind(fetch)
    for sequence, highest in names.items():
        await fetch(ADVANCE, sequence, highest)
    return list(names)
