"""The chain of the audit: whatever a superuser edits of sealed rows is found, and what the installation itself does is not."""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import asyncpg
import orjson
import pytest
from pydantic import SecretStr

from penstock.errors import InvalidInput
from penstock.operate import audit as operate
from penstock.operate.audit import Head, Verified
from penstock.settings import Settings
from penstock.store.access import audit as store
from penstock.store.session import audited_change
from penstock.store.session.database import Database, Session
from tests.penstock.operate.audit_edits import edit, snapshot
from tests.servers.databases import as_service

EDITS = int(os.environ.get("PENSTOCK_TEST_AUDIT_EDITS", "120"))
"""Random edits; PENSTOCK_TEST_AUDIT_EDITS=1000 tries a thousand."""
ROWS = 60


@pytest.fixture
async def session(database: str) -> AsyncIterator[Session]:
    home = Database(Settings(database_url=SecretStr(database)), role="test")
    yield home.session()
    await home.close()


@pytest.fixture
async def superuser(database: str) -> AsyncIterator[asyncpg.Connection[Any]]:
    connection = await asyncpg.connect(database)
    await connection.execute("set session_replication_role = replica")  # no trigger stands in the way
    yield connection
    await connection.close()


async def written(session: Session, count: int = ROWS) -> None:
    for number in range(count):
        change = audited_change.Change(
            f"token:{'ci' if number % 2 else 'ada'}",
            "limits_change",
            f"/api/v1/limits/shop.{number}",
            None if number % 3 else "a flood: ünïcode ✓",
            {"max": number, "tenants": ["a", "b"]},
        )
        await audited_change.note(session, change, audited_change.DONE)
    await sealed(session)


async def sealed(session: Session) -> None:
    while (done := await store.seal(session, 25)) is not None and done.sealed == 25:
        pass


async def test_rows_are_sealed_in_one_chain(session: Session) -> None:
    await written(session)
    found = await operate.verify(session)
    assert (found.faults, found.rows, found.first, found.last, found.unsealed) == ([], ROWS, 1, ROWS, 0)
    rows = await store.newest(session, limit=ROWS)
    assert [row.position for row in rows] == list(range(ROWS, 0, -1))
    assert rows[0].previous == rows[1].seal


async def test_a_second_sealing_changes_nothing(session: Session) -> None:
    await written(session, 3)
    before = await store.newest(session)
    assert await store.seal(session, 10) is None
    assert await store.newest(session) == before


async def test_a_row_that_is_written_during_the_sealing_is_sealed_next(
    session: Session, database: str
) -> None:
    late = await asyncpg.connect(database)
    await late.execute("begin")
    await late.execute(
        "insert into audit (by, operation, target, outcome, details) values ('a', 'b', 'c', 'done', '{}')"
    )
    await written(session, 5)
    await late.execute("commit")
    await late.close()
    await sealed(session)
    found = await operate.verify(session)
    assert (found.faults, found.rows) == ([], 6)
    assert [row.id for row in await store.sealed_after(session, 0, 10)][-1] == 1


async def test_each_random_edit_by_a_superuser_is_found(
    session: Session, superuser: asyncpg.Connection[Any]
) -> None:
    await written(session)
    await superuser.execute("create table audit_before as table audit")
    await superuser.execute("create table chain_before as table audit_chain")
    before = await snapshot(superuser)
    rng = random.Random(43)
    tried, kinds = 0, set()
    missed = []
    while tried < EDITS:
        done = await edit(superuser, rng)
        if await snapshot(superuser) == before:
            continue  # it was not an edit
        tried += 1
        kinds.add(done.translate(str.maketrans("", "", "0123456789")))
        if not (await operate.verify(session)).faults:
            missed.append(done)
        await superuser.execute(
            "truncate audit, audit_chain; insert into audit overriding system value table audit_before; "
            "insert into audit_chain table chain_before"
        )
    assert not missed
    assert len(kinds) > 20
    assert not (await operate.verify(session)).faults
    print(f"{tried} edits of {len(kinds)} kinds, all found")


async def test_a_chain_that_was_written_anew_differs_from_a_head_that_was_noted(
    session: Session, superuser: asyncpg.Connection[Any]
) -> None:
    await written(session, 10)
    noted = (await operate.verify(session)).head
    assert noted is not None
    await written(session, 5)
    assert not (await operate.verify(session, [noted])).faults
    await superuser.execute(
        "update audit set by = 'user:eve' where id = 4; update audit set position = null, previous = null, seal = null; "
        "update audit_chain set position = 0, seal = dropped_seal"
    )
    await sealed(session)
    assert not (await operate.verify(session)).faults  # a superuser can do that
    assert "the seal of row 10 differs" in (await operate.verify(session, [noted])).faults[0]
    await superuser.execute(
        "delete from audit where id > 8; update audit_chain set position = 8, seal = (select seal from audit where id = 8)"
    )
    assert "that you gave is not in the chain" in (await operate.verify(session, [noted])).faults[0]


async def test_old_rows_are_dropped_and_the_rest_still_verifies(
    session: Session, superuser: asyncpg.Connection[Any]
) -> None:
    await written(session, 10)
    await superuser.execute(
        "update audit set at = at - interval '40 days', position = null, previous = null, seal = null where id <= 6; "
        "update audit set position = null, previous = null, seal = null; "
        "update audit_chain set position = 0, seal = dropped_seal"
    )
    await sealed(session)
    noted = (await operate.verify(session)).head
    async with session.transaction() as tx:
        gone = await store.drop(tx, 30, 4)
    assert [row.position for row in gone] == [1, 2, 3, 4]
    async with session.transaction() as tx:
        assert [row.position for row in await store.drop(tx, 30, 4)] == [5, 6]
    async with session.transaction() as tx:
        assert not await store.drop(tx, 30, 4)
    await sealed(session)
    found = await operate.verify(session, [noted] if noted else [])
    assert (found.faults, found.first, found.last) == ([], 7, 12)
    [said, _] = await store.newest(session, store.AuditFilter(operation="audit_drop"))
    assert orjson.loads(said.details)["last"] == 6


async def test_an_export_verifies_and_an_edited_one_does_not(session: Session) -> None:
    await written(session, 12)
    lines = [
        orjson.dumps(operate.plain(row)) async for row in operate.exported(session, 3, store.AuditFilter())
    ]
    assert outcome(operate.verify_lines(lines)) == ([], 4, 12)
    assert operate.verify_lines([lines[0], *lines[2:]]).faults
    assert operate.verify_lines([lines[0].replace(b"token:", b"user:"), *lines[1:]]).faults
    assert operate.verify_lines(lines[:-1], [Head(12, b"x" * 32)]).faults
    with pytest.raises(InvalidInput, match="line 1"):
        operate.verify_lines([b"{}"])
    with pytest.raises(InvalidInput, match="not a head"):
        Head.read("12:abc")


def outcome(found: Verified) -> tuple[list[str], int, int]:
    return found.faults, found.first, found.last


async def test_a_service_writes_rows_and_changes_none(database: str, session: Session) -> None:
    await written(session, 2)
    insert = (
        "insert into audit (by, operation, target, outcome, details, at, role, position) "
        "values ($1, 'x', 'y', 'done', '{}', '2020-01-01', 'postgres', 77)"
    )
    for service in ("api", "executor"):
        connection = await asyncpg.connect(as_service(database, service))
        await connection.execute(insert, service)
        for sql in (
            "update audit set by = 'user:eve'",
            "delete from audit",
            "truncate audit",
            "update audit_chain set position = 0",
            "alter table audit disable trigger all",
        ):
            with pytest.raises(asyncpg.InsufficientPrivilegeError):
                await connection.execute(sql)
        await connection.close()
    rows = {row.by: row for row in await store.newest(session, limit=2)}
    for service in ("api", "executor"):  # it chooses neither the instant nor the role nor the place
        row = rows[service]
        assert (row.at.year > 2020, row.position, row.role.endswith(f"_{service}")) == (True, None, True)
    for service in ("worker", "client", "look"):
        connection = await asyncpg.connect(as_service(database, service))
        for sql in ("select * from audit", "select * from audit_chain", "select seal_audit(1)"):
            with pytest.raises(asyncpg.InsufficientPrivilegeError):
                await connection.execute(sql)
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await connection.execute(insert, service)
        await connection.close()


async def test_a_change_and_its_row_are_committed_together(session: Session) -> None:
    change = audited_change.Change("user:ada", "limits_change", "shop.x")
    with audited_change.begun(change):

        async def failing() -> None:
            async with session.transaction() as tx:
                await tx.execute("update audit_chain set position = 7")
                raise RuntimeError

        with pytest.raises(RuntimeError):
            await failing()
        assert await session.fetch("select 1")
        assert not change.noted
        await session.fetch(
            "insert into catalog (kind, ref, definition_id) select kind, ref, id from definition limit 0"
        )
        assert not await store.newest(session)
        async with session.transaction() as tx:
            await tx.execute("update audit_chain set position = position")
            tx.tell(told=3)
        await session.fetch("update audit_chain set position = position")
    [row] = await store.newest(session)
    assert (row.by, row.details, change.noted) == ("user:ada", '{"told":3}', 1)


@pytest.fixture
def round_trips(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the statements that sessions send."""
    sent: list[str] = []

    def counting(method: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def counted(self: asyncpg.Connection[Any], sql: str, *args: Any, **options: Any) -> Any:
            sent.append(sql)
            return await method(self, sql, *args, **options)

        return counted

    for name in ("fetch", "execute"):
        monkeypatch.setattr(asyncpg.Connection, name, counting(getattr(asyncpg.Connection, name)))
    return sent


RENAME = "update person set name = $2 where name = $1 returning id, name"


async def test_statement_that_returns_its_rows_is_noted_in_one_round_trip(
    session: Session, superuser: asyncpg.Connection[Any], round_trips: list[str]
) -> None:
    await superuser.execute(
        "insert into person (id, name, password, created_by) values (gen_random_uuid(), 'eve', '', 'test')"
    )
    change = audited_change.Change("user:ada", "users_rename", "eve", "it's \\ 'hers'", {"to": "eva"})
    await session.fetch("select 1")  # the connection is open
    with audited_change.begun(change):
        round_trips.clear()
        assert not await session.fetch(RENAME, "nobody", "eva")
        assert (len(round_trips), change.noted) == (1, 0)
        [row] = await session.fetch(RENAME, "eve", "eva")
        assert (len(round_trips), change.noted, row["name"]) == (2, 1, "eva")
        await session.fetch(RENAME, "eva", "eve")
        assert round_trips[2:] == [RENAME], "the row is due once"
    [noted] = await store.newest(session)
    assert (noted.by, noted.operation, noted.outcome) == ("user:ada", "users_rename", "done")
    assert (noted.reason, noted.details) == ("it's \\ 'hers'", '{"to":"eva"}')


async def test_statement_whose_row_cannot_be_written_changes_nothing(
    session: Session, superuser: asyncpg.Connection[Any]
) -> None:
    await superuser.execute(
        "insert into person (id, name, password, created_by) values (gen_random_uuid(), 'eve', '', 'test');"
        "alter table audit add check (operation <> 'users_rename')"
    )
    change = audited_change.Change("user:ada", "users_rename", "eve")
    with audited_change.begun(change), pytest.raises(asyncpg.CheckViolationError):
        await session.fetch(RENAME, "eve", "eva")
    assert not change.noted
    assert [row["name"] for row in await session.fetch("select name from person")] == ["eve"]


async def test_writes_of_another_task_are_no_part_of_a_change(session: Session, database: str) -> None:
    home = Database(Settings(database_url=SecretStr(database)), role="test")
    change = audited_change.Change("user:ada", "limits_change", "shop.x")
    with audited_change.begun(change):
        await asyncio.create_task(home.session().fetch("update audit_chain set position = position"))
    await home.close()
    assert not change.noted
    assert not await store.newest(session)
