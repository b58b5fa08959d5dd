"""Workers, slots and gates as a repair leaves them, and whom it locks: each once as it should be mended, and once for every
reason not to."""

from __future__ import annotations

import asyncio

import asyncpg
import pytest

from penstock.language.terms.ids import new_id
from tests.penstock.store.members import DEAD, ME, OTHER, SOON, STRANGER, claim, process, runs
from tests.penstock.store.mending import limit, mend, slot, there
from tests.penstock.store.stand import Stand

LOCKING = ("forgotten", "lines", "live", "orphans", "slots", "suspended")


@pytest.mark.parametrize("what", LOCKING)
async def test_only_rows_that_are_looked_at_are_locked(stand: Stand, what: str) -> None:
    await stand.add("one", "completed", live=False)
    await stand.add("other", "completed", live=False)
    async with stand.home.session().transaction() as tx:
        await tx.fetch(f"select mend_{what}($1)", [stand.ids["one"]])
        await stand.sql("select from execution where id = $1 for no key update nowait", stand.ids["other"])
        with pytest.raises(asyncpg.LockNotAvailableError):
            await stand.sql("select from execution where id = $1 for no key update nowait", stand.ids["one"])


@pytest.mark.parametrize("what", [*LOCKING, "owners"])
async def test_rows_are_locked_in_the_order_of_their_ids_however_they_lie(stand: Stand, what: str) -> None:
    first = new_id()
    for name in ("second", "first"):
        await stand.add(name, "running", live=False)
    await stand.sql("update execution set id = $1 where id = $2", first, stand.ids["first"])
    ids = [stand.ids["second"], first]
    async with stand.home.session().transaction() as tx:
        await tx.fetch("select from execution where id = $1 for update", first)
        mending = asyncio.create_task(stand.home.session().fetch(f"select mend_{what}($1)", ids))
        async with asyncio.timeout(SOON):
            while not await tx.fetch("select from pg_locks where not granted"):
                await asyncio.sleep(0.01)
        await stand.sql("select from execution where id = $1 for no key update nowait", stand.ids["second"])
    await mending


@pytest.mark.parametrize(("what", "before", "after"), [
    ("live", "queued", "requested"), ("slots", "requested", "scheduled"), ("suspended", "running", "waiting"),
    ("forgotten", "requested", "cancelled"), ("owners", "running", "requested"),
])  # fmt: skip
async def test_a_row_being_moved_is_waited_for_and_then_looked_at(
    stand: Stand, what: str, before: str, after: str
) -> None:
    key = await limit(stand)
    await stand.add("one", before, keys=[(key, "")], live=what == "live", claim=ME)
    if what == "slots":
        await slot(stand, key, "one")
    if what == "suspended":
        await stand.sql("insert into suspended (execution_id) values ($1)", stand.ids["one"])
    async with stand.home.session().transaction() as tx:
        await tx.fetch(
            "update execution set status = $2, finished_at = case $2 when 'cancelled' then now() end where id = $1",
            *(stand.ids["one"], after),
        )
        task = asyncio.create_task(mend(stand, f"mend_{what}"))
        async with asyncio.timeout(SOON):
            while not await tx.fetch("select from pg_locks where not granted"):
                await asyncio.sleep(0.01)
    assert await task == ({"one"} if what == "suspended" else set())
    assert await there(stand, "live") == ({"one"} if what in ("live", "suspended") else set())
    assert len(await there(stand, "slot")) == (what == "slots")
    [[claim]] = await stand.sql("select claim from execution")
    assert claim == (None if what == "owners" else ME)


async def test_gates_are_looked_at_once_and_others_are_not(stand: Stand) -> None:
    names = (
        "limit",
        "limit too",
        "known limit",
        "worker",
        "known worker",
        "regroup",
        "not asked for",
        "not asked for worker",
        "none",
    )
    for n, name in enumerate(names):
        stand.ids[name] = new_id()
        kind = "limit" if "limit" in name or name == "not asked for" else name.split()[-1]
        if name == "none":
            continue
        gate = {"limit too": 0}.get(name, n)
        await stand.sql(
            "insert into lane (id, namespace_id, keys, gate_kind, gate_limit, gate_group, rank, turn, ready_at, execution_id)"
            " values ($1, $2, '{}', $3, $4, $5, 0, 0, now(), $1)",
            *(
                stand.ids[name],
                100 + n,
                kind,
                gate if kind == "limit" else None,
                "g" if kind == "limit" else None,
            ),
        )
    await stand.sql("insert into wake (limit_id, group_value) values (2, 'g'), (0, 'another'), (7, 'g')")
    await stand.sql("insert into wake (namespace_id) values (104)")
    before = len(await stand.sql("select from wake"))
    for _ in ("mended", "mended again"):
        await mend(stand, "mend_gates", *(name for name in names if not name.startswith("not")))
        rows = await stand.sql("select limit_id, group_value, namespace_id from wake offset $1", before)
        assert [tuple(row) for row in rows] == [(0, "g", None), (None, None, 103)]


async def test_attempts_without_a_live_holder_are_taken_back(stand: Stand) -> None:
    await process(stand, ME, "me")
    await process(stand, DEAD, "dead", state="dead")
    await runs(stand, "of nobody")
    await runs(stand, "of a stranger", claim=STRANGER)
    await runs(stand, "of the dead", claim=DEAD)
    await runs(stand, "canceled", status="canceling", ends_as="cancelled")
    await runs(stand, "held by another")
    await runs(stand, "claimed by another")
    lost = set(stand.ids) - {"canceled"}
    await runs(stand, "claimed", "held")
    await runs(stand, "not running", status="waiting")
    await runs(stand, "not asked for", claim=STRANGER)
    await process(stand, OTHER, "other", holding=[stand.ids["held by another"]])
    await stand.sql("update process set holding = array[$1::uuid] where id = $2", stand.ids["held"], ME)
    await stand.sql(
        "update process set holding = array[$1::uuid] where id = $2", stand.ids["of the dead"], DEAD
    )
    await claim(stand, 1, ME, "claimed")
    await claim(stand, 2, OTHER, "claimed by another")
    await claim(stand, 3, STRANGER, "of a stranger")
    assert await mend(stand, "mend_orphans", *(set(stand.ids) - {"not asked for"})) >= lost
    assert await stand.with_status("scheduled") == lost
    assert await stand.with_status("running") == {"claimed", "held", "not asked for"}
    assert await stand.with_status("cancelled") == {"canceled"}


async def test_rows_are_locked_before_keys_and_the_keys_of_all_workers_in_one_order(stand: Stand) -> None:
    for ref in ("l", "another"):
        await limit(stand, ref)
    low, high = await stand.sql("select id, key_lock((id, '')) as lock from concurrency_limit order by 2")
    await runs(stand, "one", claim=ME, keys=[(high["id"], "")])
    await runs(stand, "other", claim=OTHER, keys=[(low["id"], "")])

    async def free(*keys: int) -> list[bool]:
        return [(await stand.sql("select pg_try_advisory_xact_lock(7, $1)", key))[0][0] for key in keys]

    async with stand.home.session().transaction() as key:
        async with stand.home.session().transaction() as row:
            await row.fetch("select from execution where id = $1 for update", stand.ids["one"])
            mending = asyncio.create_task(
                stand.home.session().fetch("select mend_orphans($1)", list(stand.ids.values()))
            )
            async with asyncio.timeout(SOON):
                while not await row.fetch("select from pg_locks where not granted"):
                    await asyncio.sleep(0.01)
            assert await free(low["lock"], high["lock"]) == [True, True], (
                "they may be somebody's who waits for the row"
            )
            await key.fetch("select pg_advisory_xact_lock(7, $1)", low["lock"])
        async with asyncio.timeout(SOON):
            while not await key.fetch("select from pg_locks where not granted and locktype = 'advisory'"):
                await asyncio.sleep(0.01)
        assert await free(high["lock"]) == [True], "they may be somebody's who waits for the lower one"
    await mending
    assert await stand.with_status("scheduled") == {"one", "other"}


async def test_only_a_running_execution_has_a_worker(stand: Stand) -> None:
    await stand.add("of nobody", "running", attempt=1)
    await stand.add("canceled", "canceling", attempt=1, ends_as="cancelled")
    await runs(stand, "runs")
    await runs(stand, "is canceled", status="canceling")
    await runs(stand, "requested", status="requested")
    await runs(stand, "ended", status="completed")
    await stand.add("workflow", "running", kind="workflow", attempt=1)
    await stand.add("not asked for", "running", attempt=1)
    await runs(stand, "not asked for too", status="requested")
    asked = {name for name in stand.ids if not name.startswith("not")}
    async with stand.home.session().transaction() as tx:
        await tx.fetch("select mend_owners($1)", [stand.ids[name] for name in asked])
        free = await stand.sql("select id from execution for no key update skip locked")
        assert stand.names([row[0] for row in free]) == {"ended", "not asked for", "not asked for too"}
    assert await stand.with_status("scheduled") == {"of nobody"}
    assert await stand.with_status("requested") == {"requested", "not asked for too"}
    assert await stand.with_status("cancelled") == {"canceled"}
    rows = await stand.sql("select id from execution where claim is not null")
    assert stand.names([row[0] for row in rows]) == {"runs", "is canceled", "ended", "not asked for too"}


async def test_slots_of_those_that_need_none_are_freed(stand: Stand) -> None:
    key, another = await limit(stand), await limit(stand, "another")
    need = ("scheduled", "running", "canceling", "waiting")
    for status in (*need, "requested", "queued", "completed"):
        await stand.add(status, status, keys=[(key, "")])
        await slot(stand, key, status)
    await slot(stand, another, "running")
    await slot(stand, key, "running", "group")
    await stand.add("not asked for", "requested", keys=[(key, "")])
    await slot(stand, key, "not asked for")
    stand.ids["gone"] = new_id()
    await slot(stand, key, "gone")
    assert await mend(stand, "mend_slots", *need) == set()
    await mend(stand, "mend_slots", *(set(stand.ids) - {"not asked for"}))
    rows = await stand.sql("select execution_id, limit_id, group_value from slot")
    assert {(*stand.names([row[0]]), *row[1:]) for row in rows} == {
        (name, key, "") for name in (*need, "not asked for")
    }
