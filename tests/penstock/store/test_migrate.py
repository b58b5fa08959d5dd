"""The schema: what the migrations make is what the tables say."""

from __future__ import annotations

import asyncio
from pathlib import Path

from pydantic import SecretStr

from penstock import moves
from penstock.settings import Settings
from penstock.store import migrate
from penstock.store.database import Database
from tests.penstock.store.schema import difference


def settings(database: str) -> Settings:
    return Settings(database_url=SecretStr(database))


async def test_the_tables_and_the_migrations_agree(database: str) -> None:
    assert await difference(settings(database)) == []


async def test_several_may_migrate_at_once_and_again(empty_database: str) -> None:
    here = settings(empty_database)
    done = await asyncio.gather(*(migrate.upgrade(here) for _ in range(4)))
    assert set(done) == {migrate.newest()}
    database = Database(here, role="test")
    assert await migrate.current(database) == migrate.newest()
    await database.close()


async def test_the_database_holds_the_declared_moves(database: str) -> None:
    home = Database(settings(database), role="test")
    rows = await home.session().fetch("select old, new from legal_move")
    assert {(row["old"], row["new"]) for row in rows} == {
        (old, new) for old, news in moves.MOVES.items() for new in news
    }
    await home.close()


async def test_no_function_that_chooses_how_it_is_planned_is_compiled(database: str) -> None:
    home = Database(settings(database), role="test")
    rows = await home.session().fetch(
        "select proname, proconfig from pg_proc where pronamespace = 'public'::regnamespace and proconfig is not null"
    )
    planned = {row["proname"]: row["proconfig"] for row in rows if "enable_" in str(row["proconfig"])}
    assert len(planned) > 10
    assert [name for name, chosen in planned.items() if "jit=off" not in chosen] == []
    await home.close()


async def test_partitions_are_made_ahead_and_found_when_they_are_old(database: str) -> None:
    home = Database(settings(database), role="test")
    session = home.session()
    made = (await session.fetch("select make_partitions(9)"))[0][0]
    assert made > 0
    assert made % 2 == 0, "two more days of each table"
    assert (await session.fetch("select make_partitions(9)"))[0][0] == 0
    await session.fetch(
        "create table history_20200101 partition of history for values from ('2020-01-01') to ('2020-01-02')"
    )
    old = await session.fetch("select old_partitions('history', interval '30 days')")
    assert [row[0] for row in old] == ["history_20200101"]
    await home.close()


async def test_two_replicas_that_make_the_same_partitions_take_turns(database: str) -> None:
    home = Database(settings(database), role="test")
    first, second = home.session(), home.session()
    async with first.transaction() as tx:
        assert (await tx.fetch("select make_partitions(9)"))[0][0] > 0
        late = asyncio.create_task(second.fetch("select make_partitions(9)"))
        waits = "select count(*) from pg_locks where locktype = 'advisory' and not granted"
        while not (await tx.fetch(waits))[0][0]:
            assert not late.done(), "it waits for the first"
    assert (await late)[0][0] == 0
    await home.close()


def test_migrations_import_no_live_code() -> None:
    for path in migrate.folder().rglob("*.py"):
        assert "penstock" not in Path(path).read_text().replace("penstock_migration", "").replace(
            "`penstock", ""
        ), path
