"""The lock that a process holds for as long as it lives: what a free one says of it, and when it says nothing."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import asyncpg
import pytest
from pydantic import SecretStr

from penstock.language.terms.ids import new_id
from penstock.settings import Settings
from penstock.store.processes import heartbeats, processes
from penstock.store.processes.heartbeats import Identity
from penstock.store.processes.processes import LostProcess
from penstock.store.session.database import Database, Row
from tests.servers.pgbouncer import PgBouncer

GRACE = 3.0


class Member:
    """A process, by its heartbeats alone."""

    def __init__(self, home: Database) -> None:
        self.me = Identity(new_id(), "worker", "member")
        self.lock: int | None = None
        self.session = home.session_of_its_own(self._opened)

    async def _opened(self, connection: asyncpg.Connection[Row]) -> None:
        self.lock = await heartbeats.hold_lock(connection, self.me.id)

    async def join(self) -> Member:
        await heartbeats.note_silence(self.session, 3600)
        await heartbeats.register(self.session, self.me, self.lock)
        return self

    async def beat(self) -> bool:
        return (await heartbeats.beat(self.session, self.me.id, {}, 3600)).is_registered


class Watch:
    """An executor that looks, on a session of its own."""

    def __init__(self, home: Database) -> None:
        self.home = home
        self.session = home.session()

    async def look(self) -> LostProcess | None:
        async with self.session.transaction() as tx:
            return await processes.reap(tx, 3600, 7200, GRACE)

    async def grace_goes_by(self) -> None:
        await self.session.fetch(
            "update process set unlocked_at = unlocked_at - make_interval(secs => $1)", GRACE + 1
        )

    async def row(self, member: Member) -> dict[str, Any]:
        [row] = await self.session.fetch("select * from process where id = $1", member.me.id)
        return dict(row)


@pytest.fixture
async def home(database: str) -> AsyncIterator[Database]:
    made = Database(Settings(database_url=SecretStr(database)), role="test")
    yield made
    await made.close()


async def cut(watch: Watch, member: Member) -> None:
    """The server ends its session."""
    await watch.session.fetch(
        "select pg_terminate_backend(l.pid, 5000) from pg_locks l where l.locktype = 'advisory' and l.objsubid = 1 "
        "and ((l.classid::bigint << 32) | l.objid::bigint) = $1",
        member.lock,
    )


async def test_a_process_whose_session_has_ended_is_gone_once_its_lock_stayed_free(home: Database) -> None:
    watch = Watch(home)
    assert await watch.look() is None
    member = await Member(home).join()
    await member.session.close()
    assert await watch.look() is None, "it may come back"
    assert await watch.look() is None
    await watch.grace_goes_by()
    lost = await watch.look()
    assert lost is not None
    assert (lost.id, lost.reason) == (member.me.id, "was lost (its session ended)")
    assert await watch.look() is None
    assert not await member.beat()


async def test_a_process_that_was_cut_off_and_locks_again_keeps_work(home: Database) -> None:
    watch = Watch(home)
    assert await watch.look() is None
    member = await Member(home).join()
    await cut(watch, member)
    assert await watch.look() is None
    assert (await watch.row(member))["unlocked_at"] is not None
    await watch.grace_goes_by()
    assert await member.beat()
    assert await watch.look() is None
    row = await watch.row(member)
    assert (row["state"], row["lock_key"], row["unlocked_at"]) == ("active", member.lock, None)


async def test_a_process_that_was_cut_off_locks_before_the_next_look(home: Database) -> None:
    watch = Watch(home)
    assert await watch.look() is None
    member = await Member(home).join()
    await cut(watch, member)
    assert await watch.look() is None
    await watch.grace_goes_by()
    connection = await home.connect()
    try:
        async with (
            watch.session.transaction() as tx
        ):  # between its lock and its record of it, another process looks
            await tx.fetch("select from process where id = $1 for update", member.me.id)
        lock = await heartbeats.hold_lock(connection, member.me.id)
        assert await watch.look() is None
        assert (await watch.row(member))["lock_key"] == lock
    finally:
        await connection.close()


async def test_locks_that_went_with_the_server_say_nothing_of_their_processes(home: Database) -> None:
    watch = Watch(home)
    member = await Member(home).join()
    await member.session.close()
    assert await watch.look() is None  # its session is younger than what it would be witness of
    await watch.grace_goes_by()
    assert await watch.look() is None
    assert (await watch.row(member))["state"] == "active"


async def test_a_process_that_stayed_alive_is_a_sufficient_witness(home: Database) -> None:
    witness = await Member(home).join()
    member = await Member(home).join()
    await member.session.close()
    watch = Watch(home)
    assert await watch.look() is None
    await watch.grace_goes_by()
    lost = await watch.look()
    assert lost is not None
    assert lost.id == member.me.id
    assert (await watch.row(witness))["state"] == "active"


async def test_a_process_without_a_lock_is_judged_by_its_heartbeats(home: Database) -> None:
    watch = Watch(home)
    assert await watch.look() is None
    member = Member(home)
    await heartbeats.register(home.session(), member.me, None)
    await watch.session.fetch("update process set unlocked_at = '-infinity'")
    assert await watch.look() is None
    await watch.session.fetch("update process set beat_at = clock_timestamp() - interval '90 minutes'")
    lost = await watch.look()
    assert lost is not None
    assert lost.reason.startswith("was lost (no heartbeat for 54")


async def test_a_silence_of_all_processes_loses_no_process(home: Database) -> None:
    watch = Watch(home)
    member, other = await Member(home).join(), await Member(home).join()
    await watch.session.fetch("update process set beat_at = clock_timestamp() - interval '1 day'")
    assert await watch.look() is None, "whoever looks first has noticed it"
    assert await other.beat()
    assert await watch.look() is None, "they have as long again to come back"
    assert await member.beat()


async def test_a_process_that_comes_anew_does_not_hide_the_silence_of_all_others(home: Database) -> None:
    watch = Watch(home)
    member = await Member(home).join()
    await watch.session.fetch("update process set beat_at = clock_timestamp() - interval '1 day'")
    await Member(home).join()
    assert await watch.look() is None
    assert await member.beat()


async def test_behind_a_pooler_no_session_is_ones_own(database: str, pgbouncer: PgBouncer) -> None:
    name = database.rsplit("/", 1)[1]
    settings = Settings(database_url=SecretStr(pgbouncer.dsn(name)), database_pooler=True)
    home = Database(settings, role="test")
    connection = await home.connect()
    try:
        assert await heartbeats.hold_lock(connection, new_id()) is None
        assert await connection.fetchval("select count(*) from pg_locks where locktype = 'advisory'") == 0
    finally:
        await connection.close()
        await home.close()
