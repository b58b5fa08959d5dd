"""Tables with daily partitions, which are made ahead of time, read block by block, and dropped as a whole."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import asyncpg

from penstock.errors import NotMigrated, PartitionDropped
from penstock.store.session.database import Session, Transaction

# Two processes that make or drop partitions of one table at once can cause an internal error of PostgreSQL. With this lock,
# the second one looks after the first has finished.
ALONE = "select pg_advisory_xact_lock(7, -3)"
MAKE = "select make_table_partitions($1, $2)"


async def make(session: Session, table: str, days: int) -> bool:
    """Make the missing partitions of a table for the next `days` days, in a transaction of its own. Return False if another
    session is using the table."""
    try:
        async with session.transaction() as tx:
            await tx.fetch(ALONE)
            await tx.fetch(MAKE, table, days)
    except asyncpg.LockNotAvailableError:
        return False
    return True


OLD = "select * from old_partitions($1, make_interval(days => $2))"


async def old(session: Session, table: str, days: int) -> list[str]:
    """Return the partitions of a table that ended more than `days` days ago."""
    return [name for (name,) in await session.fetch(OLD, table, days)]


@dataclass(frozen=True, slots=True)
class Need:
    """The number of rows of a partition that rows of another table, `needed_by`, refer to, and that stored work still needs."""

    needed_by: str
    rows: int


NEEDS = "select needed_by, rows from partition_needs($1)"


async def needs(session: Session, name: str) -> list[Need]:
    """Return why a partition cannot be dropped yet; nothing if it can."""
    return [Need(needed_by, rows) for needed_by, rows in await session.fetch(NEEDS, name)]


DROP = "select drop_partition($1)"
EXISTS = "select to_regclass(quote_ident($1)) is not null as there"


async def drop(session: Session, name: str) -> bool:
    """Drop a partition, in a transaction of its own. Return False if another session is using its table, or stored work has
    begun to need its rows."""
    try:
        async with session.transaction() as tx:
            await tx.fetch(ALONE)
            await tx.fetch(DROP, name)
            [row] = await tx.fetch(EXISTS, name)
    except asyncpg.LockNotAvailableError:
        return False
    return not row["there"]


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table, and its type as PostgreSQL writes it."""

    name: str
    type: str


COLUMNS = """
select attname::text as name, format_type(atttypid, null) as type from pg_attribute
where attrelid = quote_ident($1)::regclass and attnum > 0 and not attisdropped order by attnum
"""


async def columns(db: Session | Transaction, table: str) -> list[Column]:
    """Return the columns of a table, in the order of its rows' values. Raises PartitionDropped if the table is gone."""
    with _there(table):
        return [Column(name, type) for name, type in await db.fetch(COLUMNS, table)]


BLOCKS = "select pg_relation_size(quote_ident($1)::regclass) / current_setting('block_size')::integer"


async def blocks(session: Session, table: str) -> int:
    """Return the number of blocks (of 8 KB) of a table. Raises PartitionDropped if the table is gone."""
    with _there(table):
        [(count,)] = await session.fetch(BLOCKS, table)
    if count is None:  # another process dropped it between the two look-ups, of the name and of the size
        raise PartitionDropped(f"{table} is not there any more")
    return int(count)


ROWS = 'select * from "{name}" where ctid >= $1::tid and ctid < $2::tid'


async def rows(session: Session, table: str, first: int, last: int) -> list[tuple[Any, ...]]:
    """Return the rows in the blocks from `first` to before `last`. Raises PartitionDropped if the table is gone."""
    with _there(table):
        return [tuple(row) for row in await session.fetch(ROWS.format(name=table), (first, 0), (last, 0))]


TABLES = """
select c.relname::text as name from pg_partitioned_table p join pg_class c on c.oid = p.partrelid
where pg_table_is_visible(c.oid) order by 1
"""


async def tables(session: Session) -> list[str]:
    """Return the partitioned tables of the schema."""
    return [row["name"] for row in await session.fetch(TABLES)]


MISSING = """
select name from unnest($1::text[]) as name
except select relname::text from pg_class where pg_table_is_visible(oid) order by 1
"""


async def missing(session: Session, names: Sequence[str]) -> list[str]:
    """Return the tables among `names` that do not exist."""
    return [row["name"] for row in await session.fetch(MISSING, names)]


async def has_strays(session: Session, table: str) -> bool:
    """Return True if the default partition of a table has rows: those of days without a partition."""
    rows = await session.fetch(f'select exists (select from "{table}_default") as there')
    return bool(rows[0]["there"])


@contextmanager
def _there(table: str) -> Iterator[None]:
    try:
        yield
    except (NotMigrated, asyncpg.UndefinedTableError):
        raise PartitionDropped(f"{table} is not there any more") from None
