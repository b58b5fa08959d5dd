"""The schema: what the migrations make is what the tables say."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import asyncpg
import pytest
from alembic import command
from alembic.script import ScriptDirectory
from pydantic import SecretStr
from structlog.testing import capture_logs

from penstock.client.client import Client
from penstock.errors import ConfigurationError, NotMigrated
from penstock.language import moves
from penstock.language.loading import Definitions
from penstock.operate.apply import register
from penstock.service.startup import assembled_when_ready
from penstock.settings import Settings
from penstock.store.schema import functions, migrate
from penstock.store.session.database import Database, Session
from tests.flows import shop
from tests.penstock.store.schema.differences import difference


def settings(database: str) -> Settings:
    return Settings(database_url=SecretStr(database))


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The functions' files, in a copy of the migrations that is used instead of them."""
    copy = shutil.copytree(functions.folder(), tmp_path / "migrations")
    monkeypatch.setattr(functions, "folder", lambda: copy)
    return copy / "functions"


@pytest.fixture
async def session(database: str) -> AsyncIterator[Session]:
    home = Database(settings(database), role="test")
    yield home.session()
    await home.close()


def edit(file: Path, old: str, new: str) -> None:
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))


async def applied(session: Session) -> dict[str, object]:
    return {row["name"]: row["applied_at"] for row in await session.fetch("select * from penstock_function")}


async def test_a_changed_function_is_applied_anew_and_only_that_one(
    database: str, files: Path, session: Session
) -> None:
    before = await applied(session)
    assert before.keys() == functions.declared().keys()
    edit(files / "workflows/held_until.sql", "9000-01-01", "9001-01-01")
    assert await migrate.missing(session.fetch) == ["held_until"]
    with pytest.raises(ConfigurationError, match="held_until") as refused:
        await functions.check(session.fetch)
    assert "penstock migrate" in str(refused.value.hint)
    await migrate.upgrade(settings(database))
    after = await applied(session)
    assert {name for name in after if after[name] != before[name]} == {"held_until"}
    assert (await session.fetch("select held_until()::text"))[0][0].startswith("9001")
    await functions.check(session.fetch)


@pytest.mark.parametrize(
    "change",
    [
        "alter schema public rename to jobs",
        "grant execute on function sign_attempt to public",
    ],
)
async def test_function_with_the_rights_of_the_owner_is_fenced_again(database: str, change: str) -> None:
    """A dump was restored into another schema, or without its rights."""
    connection = await asyncpg.connect(database)
    schema = "jobs" if "jobs" in change else "public"
    renamed = Settings(database_url=SecretStr(database), database_schema=schema)
    try:
        await connection.execute(change)
        await connection.execute(f"set search_path = {schema}")
        with pytest.raises(NotMigrated) as refused:
            await functions.check(connection.fetch)
        assert "penstock migrate" in str(refused.value.hint)
        await migrate.upgrade(renamed)
        await functions.check(connection.fetch)
        async with Client.connect(renamed) as client:
            await register(client.session, Definitions(shop.ALL))
            await client.start("shop.count", {"words": "a b"})
    finally:
        if schema == "jobs":
            await connection.execute("alter schema jobs rename to public")
            await migrate.upgrade(settings(database))
        await connection.close()


async def test_nothing_is_applied_twice(database: str, session: Session) -> None:
    rows = "select proname, xmin::text from pg_proc where pronamespace = 'public'::regnamespace order by oid"
    before, when = await session.fetch(rows), await applied(session)
    await migrate.upgrade(settings(database))
    assert await session.fetch(rows) == before
    assert await applied(session) == when


async def test_a_profile_that_changed_is_applied_to_the_functions_that_name_it(
    database: str, files: Path, session: Session
) -> None:
    edit(files / "planner.toml", '[turns]\nenable_seqscan = "off"\n', '[turns]\nenable_material = "off"\n')
    assert await migrate.missing(session.fetch) == ["next_turn"]
    await migrate.upgrade(settings(database))
    chosen = (await session.fetch("select proconfig from pg_proc where proname = 'next_turn'"))[0][0]
    assert chosen == [f"{name}={value}" for name, value in functions.declared()["next_turn"].settings.items()]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("returns timestamptz", "returns text"),
        ("held_until()", "held_until(p_id uuid)"),
    ],
)
async def test_a_changed_signature_is_refused_with_a_hint_and_nothing_is_changed(
    database: str, files: Path, session: Session, old: str, new: str
) -> None:
    edit(files / "workflows/held_until.sql", old, new)
    edit(files / "outbox/stage.sql", "begin", "begin\n    -- Another one.")
    before = await applied(session)
    with pytest.raises(ConfigurationError, match="held_until has another signature") as refused:
        await migrate.upgrade(settings(database))
    assert "new name" in str(refused.value.hint)
    assert await applied(session) == before
    assert not await session.fetch("select from pg_proc where prosrc like '%Another one.%'")


async def test_a_function_that_is_not_sql_fails_the_migration(
    database: str, files: Path, session: Session
) -> None:
    edit(files / "outbox/stage.sql", "return v_messages", "hand over v_messages")
    with pytest.raises(asyncpg.PostgresSyntaxError) as refused:
        await migrate.upgrade(settings(database))
    assert refused.value.__notes__ == ["in stage.sql"]
    assert not await session.fetch("select from pg_proc where prosrc like '%hand over%'")


async def test_a_function_without_a_file_stays_for_the_release_before(
    database: str, files: Path, session: Session
) -> None:
    (files / "workflows/held_until.sql").unlink()
    await migrate.upgrade(settings(database))
    assert "held_until" in await applied(session)
    assert await session.fetch("select held_until()")


async def test_a_release_leaves_alone_functions_of_a_later_release(
    database: str, files: Path, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as later:
        edit(files / "workflows/held_until.sql", "9000-01-01", "9001-01-01")
        later.setattr(functions, "release", lambda: "999.10")
        await migrate.upgrade(settings(database))
    edit(files / "workflows/held_until.sql", "9001-01-01", "9000-01-01")
    assert await migrate.missing(session.fetch) == []
    await functions.check(session.fetch)
    await migrate.upgrade(settings(database))
    assert (await session.fetch("select held_until()::text"))[0][0].startswith("9001")
    await session.fetch("update penstock_migration set version_num = '0099'")
    assert await migrate.missing(session.fetch) == []
    assert await migrate.upgrade(settings(database)) == "0099"


async def _starts_once_it_is_migrated(url: str) -> list[str]:
    """Assert that a starting service says that it waits for a migration, and the remedy; and then starts."""
    with capture_logs() as logs:

        async def start() -> None:
            async with assembled_when_ready(settings(url), role="executor", pause=0.01):
                pass

        replica = asyncio.create_task(start())
        while not logs:
            assert not replica.done()
            await asyncio.sleep(0.01)
        await migrate.upgrade(settings(url))
        await replica
    [line] = [line for line in logs if line["event"] == "service.waits"]
    return [line["reason"], line["hint"]]


async def test_a_replica_waits_until_its_functions_are_applied_and_says_so(
    database: str, files: Path
) -> None:
    edit(files / "workflows/held_until.sql", "9000-01-01", "9001-01-01")
    why, hint = await _starts_once_it_is_migrated(database)
    assert "held_until" in why
    assert "penstock migrate" in hint


async def test_a_replica_that_comes_before_the_schema_waits_for_it(empty_database: str) -> None:
    why, hint = await _starts_once_it_is_migrated(empty_database)
    assert "no schema yet" in why
    assert "penstock migrate" in hint


async def test_a_schema_from_before_the_first_release_is_refused_with_a_hint(
    database: str, session: Session
) -> None:
    await session.fetch("drop table penstock_function")
    await session.fetch("update penstock_migration set version_num = '9004'")
    with pytest.raises(ConfigurationError, match="9004"):
        await migrate.upgrade(settings(database))


def test_two_files_of_one_name_are_refused(files: Path) -> None:
    shutil.copy(files / "outbox/stage.sql", files / "upkeep/stage.sql")
    with pytest.raises(ConfigurationError, match="two files declare the function stage"):
        functions.declared()


def test_a_downgrade_is_refused_with_a_word() -> None:
    versions = list(ScriptDirectory(str(functions.folder())).walk_revisions())
    assert versions
    for version in versions:
        with pytest.raises(RuntimeError, match="never downgraded"):
            version.module.downgrade()
    assert "never downgraded" in (functions.folder() / "script.py.mako").read_text()


async def test_two_processes_may_migrate_at_once(empty_database: str) -> None:
    home = Database(settings(empty_database), role="test")
    command = [sys.executable, "-m", "penstock", "migrate"]
    environment = {**os.environ, "PENSTOCK_DATABASE_URL": empty_database}
    processes = [
        await asyncio.create_subprocess_exec(*command, env=environment, stdout=asyncio.subprocess.DEVNULL)
        for _ in range(2)
    ]
    assert [await process.wait() for process in processes] == [0, 0]
    when = await applied(home.session())
    assert when.keys() == functions.declared().keys()
    assert len(await home.session().fetch("select distinct xmin::text from penstock_function")) == 1
    await home.close()


async def test_the_tables_and_the_migrations_agree(database: str) -> None:
    assert await difference(settings(database)) == []


async def test_several_may_migrate_at_once_and_again(empty_database: str) -> None:
    here = settings(empty_database)
    done = await asyncio.gather(*(migrate.upgrade(here) for _ in range(4)))
    assert set(done) == {migrate.newest()}
    database = Database(here, role="test")
    assert await migrate.current(database.session().fetch) == migrate.newest()
    await database.close()


async def test_index_of_parked_work_is_replaced_while_processes_work(
    database: str, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a lock that claims would wait for, and although an earlier try has left its index behind."""
    for statement in (
        "drop index parked_turn",
        "alter table parked drop column rank",
        "create index parked_work on parked (queue, definition_id, ready_at, execution_id)",
        "create index parked_turn on parked (queue)",
        "insert into process (id, kind, name) values (gen_random_uuid(), 'worker', 'w')",
        "update penstock_migration set version_num = '0004'",
    ):
        await session.fetch(statement)
    upgrade = command.upgrade  # the tables of later versions are there
    monkeypatch.setattr(command, "upgrade", lambda config, revision: upgrade(config, "0005"))
    await migrate.upgrade(settings(database))
    rows = await session.fetch("select indexdef from pg_indexes where tablename = 'parked'")
    assert sum("(queue, definition_id, rank, ready_at, execution_id)" in row[0] for row in rows) == 1
    assert len(rows) == 2


async def test_labels_are_added_while_processes_work_and_again_after_an_interruption(
    database: str, session: Session
) -> None:
    """An execution that ends before the daily partitions are made has a place for its labels."""
    before = ScriptDirectory.from_config(migrate._config()).get_revision("0011").down_revision
    for statement in (
        "drop table label, archived_label",
        "drop index archive_tenant",
        "create index archive_default_tenant on archive_default (id)",
        "insert into process (id, kind, name) values (gen_random_uuid(), 'worker', 'w')",
        "create or replace function make_partitions(p_ahead integer) returns integer language sql as 'select 0'",
    ):
        await session.fetch(statement)
    whole = "select indisvalid from pg_index where indexrelid = 'archive_tenant'::regclass"
    for _ in range(2):
        await session.fetch(f"update penstock_migration set version_num = '{before}'")
        await migrate.upgrade(settings(database))
        assert [row[0] for row in await session.fetch(whole)] == [True]
    await session.fetch(
        "insert into archived_label (id, key, value, tenant, child, status, finished_at) "
        "values (gen_random_uuid(), 'team', 'billing', 'public', false, 'completed', now())"
    )
    assert len(await session.fetch("select from archived_label_default")) == 1


async def test_the_database_holds_the_declared_moves(database: str) -> None:
    home = Database(settings(database), role="test")
    rows = await home.session().fetch("select subject, old, new from legal_move")
    assert {(row["subject"], row["old"], row["new"]) for row in rows} == {
        (subject, old, new)
        for subject, of in moves.SUBJECTS.items()
        for old, news in of.items()
        for new in news
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
    for path in functions.folder().rglob("*.py"):
        assert "penstock" not in Path(path).read_text().replace("penstock_migration", "").replace(
            "`penstock", ""
        ), path
