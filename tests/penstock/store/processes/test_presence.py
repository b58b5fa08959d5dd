"""The routes without workers, and the processes without their locks: each is there once as it should be noted, and once for
every reason not to."""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import UUID

import asyncpg

from tests.penstock.store.members import DEAD, ME, OTHER, SOON, STRANGER, process
from tests.penstock.store.stand import Stand


async def test_a_route_is_away_while_no_worker_that_lives_has_the_action_on_it(stand: Stand) -> None:
    async def away(limits: list[int], kind: str = "action") -> bool:
        [[said]] = await stand.sql("select is_away($1, $2, 'work.r', 'a.b')", limits, kind)
        return bool(said)

    there: dict[str, Any] = {"routes": ["r"], "actions": ["a.b"]}
    await process(stand, ME, "no worker", **there, kind="executor")
    await process(stand, OTHER, "draining", state="draining", **there)
    await process(stand, DEAD, "elsewhere", routes=["x"], actions=["a.b"])
    await process(stand, STRANGER, "without it", routes=["r"], actions=["a.c"])
    assert (await away([1]), await away([]), await away([1], "workflow")) == (True, False, False)
    await process(stand, UUID(int=9), "there", **there)
    assert not await away([1])


async def test_namespaces_are_away_from_when_the_last_worker_leaves(stand: Stand) -> None:
    rows = "select name from namespace where away_since is not null"
    there: dict[str, Any] = {"routes": ["default"], "actions": ["a.b"]}
    await process(stand, ME, "there", **there)
    await stand.sql("update namespace set limits = '{1}'")
    assert await stand.sql(rows) == []
    await stand.sql("delete from process")
    [since] = await stand.sql("select away_since from namespace")
    assert since["away_since"] is not None
    await stand.sql("select notice_workers()")
    assert await stand.sql("select away_since from namespace") == [since], "noted once"
    assert await stand.sql("select from wake") == []
    await process(stand, ME, "there", **there)
    assert await stand.sql(rows) == []
    assert len(await stand.sql("select from wake")) == 1


async def test_changed_processes_clear_the_lacking_mark_at_once(
    stand: Stand,
) -> None:
    for name, lacked in (("lacked", True), ("just being noted", True), ("lacked by nobody", False)):
        await stand.sql(
            "insert into namespace (name, action, kind, queue, lacked) values ($1, $1, 'action', 'work.r', $2)",
            *(name, lacked),
        )
    rows = "select name, ctid::text as place from namespace where not lacked"
    before = {row["name"]: row["place"] for row in await stand.sql(rows)}
    async with stand.home.session().transaction() as tx:
        await tx.fetch("select from namespace where name = 'just being noted' for update")
        await stand.home.session(timeout=SOON).fetch(
            "insert into process (id, kind, name) values ($1, 'worker', 'comes')", ME
        )
    after = {row["name"]: row["place"] for row in await stand.sql(rows)}
    assert after.keys() - before.keys() == {"lacked"}
    assert before.items() <= after.items(), "what nobody lacked is not written anew"


async def test_a_wait_until_changes_are_noted_blocks_no_notice(
    stand: Stand,
) -> None:
    await stand.sql("update namespace set lacked = true")
    async with stand.home.session().transaction() as tx:
        await tx.fetch("select pg_advisory_xact_lock(7, -2)")
        comes = stand.home.session().fetch(
            "insert into process (id, kind, name) values ($1, 'worker', 'comes')", ME
        )
        task = asyncio.create_task(comes)
        async with asyncio.timeout(SOON):
            while not await tx.fetch("select from pg_locks where not granted"):
                await asyncio.sleep(0.01)
        await stand.sql("select from namespace for update nowait")
    await task
    assert not await stand.sql("select from namespace where lacked")


async def test_one_looks_at_a_time_and_waits_before_it_does(stand: Stand) -> None:
    await stand.sql("update namespace set limits = '{1}'")
    async with stand.home.session().transaction() as tx:
        await tx.fetch("select pg_advisory_xact_lock(7, -2)")
        task = asyncio.create_task(stand.home.session().fetch("select notice_workers()"))
        async with asyncio.timeout(SOON):
            while not await tx.fetch("select from pg_locks where not granted"):
                await asyncio.sleep(0.01)
        await stand.sql("select from namespace for update nowait")
    await task


async def test_a_lost_lock_and_a_regained_lock_are_noted(stand: Stand, database: str) -> None:
    await process(stand, UUID(int=11), "lost it", lock_key=1)
    await process(stand, UUID(int=12), "has it", lock_key=2)
    await process(stand, UUID(int=13), "has it again", lock_key=3, unlocked="1 hour")
    await process(stand, UUID(int=14), "lost it before", lock_key=4, unlocked="1 hour")
    await process(stand, UUID(int=15), "dead", lock_key=5, state="dead")
    await process(stand, UUID(int=16), "without one")
    await process(stand, UUID(int=17), "in a hand", lock_key=7)
    await process(stand, UUID(int=18), "of two numbers", lock_key=8)
    await process(stand, UUID(int=19), "of another database", lock_key=9)
    elsewhere = await asyncpg.connect(database.rpartition("/")[0] + "/postgres")
    await elsewhere.execute("select pg_advisory_lock(9)")
    async with stand.home.session().transaction() as tx:
        await tx.fetch(
            "select pg_advisory_xact_lock(2), pg_advisory_xact_lock(3), pg_advisory_xact_lock(0, 8)"
        )
        await tx.fetch("select from process where name = 'in a hand' for update")
        before = await stand.sql("select unlocked_at from process where name = 'lost it before'")
        async with asyncio.timeout(SOON):
            [row] = await stand.sql("select * from note_locks()")
    await elsewhere.close()
    assert {2, 3} <= set(row["held"])
    rows = await stand.sql("select name from process where unlocked_at is not null")
    assert {row["name"] for row in rows} == {
        "lost it",
        "lost it before",
        "of two numbers",
        "of another database",
    }
    assert await stand.sql("select unlocked_at from process where name = 'lost it before'") == before
