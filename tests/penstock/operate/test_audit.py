"""The chain of the audit: whatever a superuser edits of sealed rows is found, and what the installation itself does is not."""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import asyncpg
import orjson
import pytest
from pydantic import SecretStr

from penstock.errors import InvalidInput
from penstock.operate import audit as operate
from penstock.operate.audit import Head, Verified
from penstock.settings import Settings
from penstock.store import audit as store
from penstock.store.database import Database, Session
from tests.servers.databases import as_service

EDITS = int(os.environ.get("PENSTOCK_TEST_AUDIT_EDITS", "120"))
"""Random edits; PENSTOCK_TEST_AUDIT_EDITS=1000 tries a thousand."""
ROWS = 60
EDITED = (
    *("text", "text", "at", "id", "position", "hash", "delete", "tail", "head", "middle", "truncate"),
    *("swap", "insert", "copy", "chain", "resealed", "dropped", "end", "moved"),
)


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
        change = store.Change(
            f"token:{'ci' if number % 2 else 'ada'}",
            "limits_change",
            f"/api/v1/limits/shop.{number}",
            None if number % 3 else "a flood: ünïcode ✓",
            {"max": number, "tenants": ["a", "b"]},
        )
        await store.note(session, change, store.DONE)
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


async def snapshot(superuser: asyncpg.Connection[Any]) -> list[tuple[Any, ...]]:
    rows = [tuple(row) for row in await superuser.fetch("select * from audit order by id")]
    return rows + [tuple(row) for row in await superuser.fetch("select * from audit_chain")]


async def some_id(superuser: asyncpg.Connection[Any], random: random.Random) -> int:
    ids = [row["id"] for row in await superuser.fetch("select id from audit order by id")]
    return int(random.choice(ids))


TEXTS = ("by", "role", "operation", "target", "outcome", "reason", "details")


async def edit(superuser: asyncpg.Connection[Any], random: random.Random) -> str:
    """Do one random edit, as a superuser who knows the scheme may do it. Return what was done."""
    id = await some_id(superuser, random)
    match random.choice(EDITED):
        case "text":
            column = random.choice(TEXTS)
            value = random.choice(["x", "", "user:eve", "{}", None if column == "reason" else "1"])
            await superuser.execute(f"update audit set {column} = $2 where id = $1", id, value)
            return f"{column} of {id}"
        case "at":
            microseconds = random.choice([1, -1, 10**6, -(10**9)])
            await superuser.execute(
                "update audit set at = at + $2 where id = $1", id, timedelta(microseconds=microseconds)
            )
            return f"at of {id}"
        case "id":
            await superuser.execute("update audit set id = default where id = $1", id)
            return f"id of {id}"
        case "position":
            await superuser.execute(
                "update audit set position = $2 where id = $1", id, random.choice([-1, 0, 10_000, None])
            )
            return f"position of {id}"
        case "hash":
            column = random.choice(["previous", "seal"])
            digest = random.choice([None, b"", random.randbytes(32)])
            await superuser.execute(f"update audit set {column} = $2 where id = $1", id, digest)
            return f"{column} of {id}"
        case "delete":
            await superuser.execute("delete from audit where id = $1", id)
            return f"row {id} is gone"
        case "tail":
            await superuser.execute("delete from audit where id >= $1", id)
            return f"rows from {id} on are gone"
        case "head":
            await superuser.execute("delete from audit where id <= $1", id)
            return f"rows up to {id} are gone"
        case "middle":
            await superuser.execute("delete from audit where id between $1 and $1 + 5", id)
            return f"rows about {id} are gone"
        case "truncate":
            await superuser.execute("truncate audit")
            return "all rows are gone"
        case "swap":
            other = await some_id(superuser, random)
            columns = random.choice(
                [("by",), ("at",), ("target", "details"), ("reason",), ("previous", "seal")]
            )
            names = ", ".join(columns)
            await superuser.execute(
                f"update audit a set ({names}) = (select {names} from audit b where b.id = $1 + $2 - a.id) "
                "where id in ($1, $2)",
                id,
                other,
            )
            return f"{names} of {id} and {other}"
        case "insert":
            await superuser.execute(
                "insert into audit (by, operation, target, outcome, details, position, previous, seal) "
                "values ('user:eve', 'x', 'y', 'done', '{}', $1, $2, $2)",
                random.choice([0, -3, 61, 5000]),
                random.randbytes(32),
            )
            return "a row was added"
        case "copy":
            await superuser.execute(
                "insert into audit (at, by, operation, target, outcome, reason, details, position, previous, seal) "
                "select at, by, operation, target, outcome, reason, details, 61, previous, seal from audit where id = $1",
                id,
            )
            return f"row {id} was copied"
        case "chain":
            column = random.choice(["position", "seal", "dropped_position", "dropped_seal"])
            end = random.choice([3, 59, 77]) if column.endswith("position") else random.randbytes(32)
            await superuser.execute(f"update audit_chain set {column} = $1", end)
            return f"{column} of the chain"
        case "resealed":  # one row is right again, by the scheme; the row after it is not
            await superuser.execute("update audit set by = 'user:eve' where id = $1", id)
            [row] = [r for r in await store.newest(superuser, limit=1000) if r.id == id]
            await superuser.execute(
                "update audit set seal = $2 where id = $1", id, operate.seal_of(row, row.previous or b"")
            )
            return f"row {id} was sealed anew"
        case "dropped":  # as retention does it, but for the row that says so
            await superuser.execute(
                "with gone as (delete from audit where id <= $1 returning position, seal), "
                "last as (select * from gone order by position desc limit 1) "
                "update audit_chain set dropped_position = last.position, dropped_seal = last.seal from last",
                id,
            )
            return f"rows up to {id} look as if they were dropped"
        case "end":  # a row at the end that is linked by the scheme
            last = (await store.newest(superuser, limit=1))[0]
            forged = replace(
                last, id=10_000, position=(last.position or 0) + 1, by="user:eve", previous=last.seal
            )
            await superuser.execute(
                "insert into audit (id, at, by, role, operation, target, outcome, reason, details, position, previous, seal) "
                "overriding system value values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)",
                *(getattr(forged, name) for name in store.COLUMNS.split(", ")[:-1]),
                operate.seal_of(forged, last.seal or b""),
            )
            return "a linked row was added at the end"
        case _:
            other = await some_id(superuser, random)
            await superuser.execute("update audit set position = -position where id in ($1, $2)", id, other)
            await superuser.execute(
                "update audit set position = -(select min(b.position) from audit b where b.id = $1 + $2 - audit.id) "
                "where id in ($1, $2)",
                id,
                other,
            )
            return f"places of {id} and {other}"


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
            continue  # it was no edit
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
    assert "row 10 has another seal" in (await operate.verify(session, [noted])).faults[0]
    await superuser.execute(
        "delete from audit where id > 8; update audit_chain set position = 8, seal = (select seal from audit where id = 8)"
    )
    assert "noted elsewhere is not in the chain" in (await operate.verify(session, [noted])).faults[0]


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
    with pytest.raises(InvalidInput, match="no head"):
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
    change = store.Change("user:ada", "limits_change", "shop.x")
    with store.begun(change):

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


async def test_what_another_task_writes_is_not_part_of_a_change(session: Session, database: str) -> None:
    home = Database(Settings(database_url=SecretStr(database)), role="test")
    change = store.Change("user:ada", "limits_change", "shop.x")
    with store.begun(change):
        await asyncio.create_task(home.session().fetch("update audit_chain set position = position"))
    await home.close()
    assert not change.noted
    assert not await store.newest(session)
