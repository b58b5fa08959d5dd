"""The work that is staged again since its message was lost: it is old enough, has no message, and no other process has it in
hand."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from uuid import UUID

import pytest
from pydantic import SecretStr

from penstock.language.terms.ids import new_id
from penstock.settings import Settings
from penstock.store.session.database import Database, Session

KINDS = [
    ("execution.completed", "restage_ends", "untold", "execution_id"),
    ("event.created", "restage_events", "unmatched", "event_id"),
]


@pytest.fixture
async def home(database: str) -> AsyncIterator[Database]:
    made = Database(Settings(database_url=SecretStr(database)), role="test")
    yield made
    await made.close()


async def staged(session: Session, queue: str) -> list[UUID]:
    """Return the ids of the messages of this queue, in order."""
    rows = await session.fetch("select unnest(ids) as id from outbox where queue = $1 order by 1", queue)
    return [row["id"] for row in rows]


async def noted(session: Session, table: str, column: str, ids: Sequence[UUID], age: float) -> None:
    await session.fetch(
        f"insert into {table} ({column}, since) select unnest($1::uuid[]), now() - make_interval(secs => $2)",
        ids,
        age,
    )


@pytest.mark.parametrize(("queue", "function", "table", "column"), KINDS)
async def test_an_old_row_without_a_message_is_staged_again_once(
    home: Database, queue: str, function: str, table: str, column: str
) -> None:
    session, other = home.session(), home.session()
    old, young, known, held, elsewhere = ids = [new_id() for _ in range(5)]
    await noted(session, table, column, [old, known, held, elsewhere], 60)
    await noted(session, table, column, [young], 1)
    await session.fetch("insert into outbox (queue, ids) values ($1, $2)", queue, [new_id(), known])
    await session.fetch("insert into outbox (queue, ids) values ('another', $1)", [elsewhere])
    restage = f"select * from {function}(interval '30 seconds', 100)"
    async with other.transaction() as tx:
        await tx.fetch(f"select from {table} where {column} = $1 for update", held)
        async with asyncio.timeout(10):  # no lock is waited for
            await session.fetch(restage)
        before = await staged(session, queue)
        assert [id for id in before if id in ids] == sorted([old, known, elsewhere])
        await session.fetch(restage)
        assert await staged(session, queue) == before, "it was staged a moment ago"
    await session.fetch("delete from outbox")
    await session.fetch(f"update {table} set since = now() - interval '1 minute'")
    await session.fetch(restage.replace("100", "2"))
    assert await staged(session, queue) == sorted(ids)[:2], "a bounded batch, the first first"
