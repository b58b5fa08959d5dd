"""The tables that are partitioned by day."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.store.database import Session

TABLES = """
select c.relname::text as name from pg_partitioned_table p join pg_class c on c.oid = p.partrelid
where pg_table_is_visible(c.oid) order by 1
"""


async def tables(session: Session) -> list[str]:
    """Those that there are."""
    return [row["name"] for row in await session.fetch(TABLES)]


MISSING = """
select name from unnest($1::text[]) as name
except select relname::text from pg_class where pg_table_is_visible(oid) order by 1
"""


async def missing(session: Session, names: Sequence[str]) -> list[str]:
    """Those of these tables that are not there."""
    return [row["name"] for row in await session.fetch(MISSING, names)]


async def has_strays(session: Session, table: str) -> bool:
    """Whether its default partition has rows: those of days for which there was no partition."""
    rows = await session.fetch(f'select exists (select from "{table}_default") as there')
    return bool(rows[0]["there"])
