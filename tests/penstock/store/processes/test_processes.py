"""The processes that are taken for dead, the answers to heartbeats, and the fate of claims. Each is there once as it should
be acted on, and once for every reason not to."""

from __future__ import annotations

import asyncio
import time
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from penstock.store.processes import processes
from tests.penstock.store.members import DEAD, ME, OTHER, SOON, STRANGER, claim, claims, process, runs
from tests.penstock.store.stand import AGO, Stand

NOW = timedelta(0)


async def beat(stand: Stand, *names: str, silence: str = "1 day") -> dict[str, Any]:
    [row] = await stand.sql(
        "select * from beat($1, $2, $3, $4::text::interval)",
        *(ME, [stand.ids[name] for name in names], [1] * len(names), silence),
    )
    return {name: stand.names(value) if isinstance(value, list) else value for name, value in row.items()}


async def test_a_held_execution_missing_from_two_beats_is_recovered(
    stand: Stand,
) -> None:
    await runs(
        stand, *(f"lost {n}" for n in range(1, 6)), "named", "named beside one", "new", "named since", "fresh"
    )
    await runs(stand, "lost and canceled", "canceled beside one", status="canceling", ends_as="cancelled")
    await runs(stand, "of another", claim=OTHER)
    await runs(stand, "over", status="completed")
    await runs(stand, "asleep", status="waiting")
    for number, names in enumerate(
        (
            ("lost 1", "lost and canceled"),
            ("lost 2", "named beside one"),
            ("lost 3", "canceled beside one"),
            ("lost 4", "of another"),
            ("lost 5", "over", "asleep"),
            ("named", "named since"),
            ("new",),
            ("over",),
        )
    ):
        await claim(stand, number, ME, *names)
    await claim(stand, 8, ME, "fresh", ago=NOW)
    await claim(stand, 9, OTHER, "of another", "lost 1")
    lost = {name for name in stand.ids if name.startswith("lost")}
    missing = [stand.ids[name] for name in (*lost, "named since", "over", "of another", "fresh")]
    await process(stand, ME, "me", missing=missing)
    await process(stand, OTHER, "other", missing=[stand.ids["new"]], holding=[stand.ids["of another"]])
    found = await beat(stand, "named", "named beside one", "canceled beside one", "named since")
    assert found["missing"] == lost
    assert await stand.with_status("scheduled") == {f"lost {n}" for n in range(1, 6)}
    assert await stand.with_status("canceling") == {"canceled beside one"}
    assert await claims(stand) == {1, 2, 5, 6, 7, 8, 9}
    rows = {row["id"]: row for row in await stand.sql("select * from process")}
    assert stand.names(rows[ME]["missing"]) == {*lost, "new"}
    assert stand.names(rows[ME]["holding"]) == {
        "named",
        "named beside one",
        "canceled beside one",
        "named since",
    }
    assert stand.names(rows[OTHER]["missing"]) == {"new"}
    assert (await beat(stand))["missing"] == {"new"}


async def test_beat_waits_for_the_answer_of_the_latest_claim(stand: Stand) -> None:
    """The claim of an earlier attempt stays while it names another execution that runs."""
    await runs(stand, "again", "beside", attempt=2)
    await claim(stand, 1, ME, "again", "beside")
    await claim(stand, 2, ME, "again", ago=timedelta(seconds=5))
    await stand.sql("update claim set assigned = true where id = $1", UUID(int=2))
    await process(stand, ME, "me", missing=[stand.ids["again"]])
    assert (await beat(stand, "beside"))["missing"] == set()
    await stand.sql("update claim set claimed_at = claimed_at - interval '6 s'")
    assert (await beat(stand, "beside"))["missing"] == set(), "the beat before did not miss it"
    assert (await beat(stand, "beside"))["missing"] == {"again"}


async def test_a_worker_learns_of_foreign_claims_and_of_cancellations(stand: Stand) -> None:
    await process(stand, ME, "me", state="cordoned", executors='{"kept": {}}', beat="1 hour")
    await runs(stand, "fine")
    await runs(stand, "canceled", status="canceling")
    await runs(stand, "asked to end", ends_as="canceled")
    await runs(stand, "of another", claim=OTHER)
    await runs(stand, "of another and canceled", status="canceling", claim=OTHER)
    await runs(stand, "another attempt", attempt=2)
    await runs(stand, "another attempt, canceled", status="canceling", attempt=2)
    await runs(stand, "over", status="completed")
    stand.ids["gone"] = UUID(int=99)
    canceling = {"canceled", "asked to end"}
    lost = set(stand.ids) - canceling - {"fine"}
    assert await beat(stand, *stand.ids) == {
        "known": True,
        "cordoned": True,
        "lost": lost,
        "canceling": canceling,
        "missing": set(),
    }
    [row] = await stand.sql(
        "select executors::text, beat_at > now() - interval '1 minute' as now from process"
    )
    assert (row["executors"], row["now"]) == ('{"kept": {}}', True)


async def test_a_heartbeat_reads_its_own_claims_however_many_others_have(stand: Stand) -> None:
    await process(stand, ME, "me")
    await runs(stand, "mine")
    await stand.sql(
        "insert into claim (id, worker, executions, claimed_at) select gen_random_uuid(), $1, array[gen_random_uuid()],"
        " now() - interval '1 hour' from generate_series(1, 300)",
        OTHER,
    )
    read = "select seq_tup_read + idx_tup_fetch from pg_stat_xact_user_tables where relname = 'claim'"
    async with stand.home.session().transaction() as tx:
        [[before]] = await tx.fetch(read)
        await tx.fetch("select from beat($1, '{}', '{}', '1 day')", ME)
        [[after]] = await tx.fetch(read)
    assert after - before < 10


async def test_a_process_taken_for_dead_has_lost_everything(stand: Stand) -> None:
    await runs(stand, "fine")
    for state, dead in (("dead", True), ("active", False)):
        await stand.sql("delete from process")
        await process(stand, ME, "me", state=state)
        found = await beat(stand, "fine")
        assert found == {
            "known": not dead,
            "cordoned": False,
            "lost": {"fine"} if dead else set(),
            "canceling": set(),
            "missing": set(),
        }


@pytest.mark.parametrize(
    "say", ["beat($1, '{}', '{}', '1 minute')", "reap_process('1 hour', '1 minute', '3 s')"]
)
async def test_a_silence_of_all_is_noted_before_a_beat_ends_it(stand: Stand, say: str) -> None:
    await stand.sql("update cluster set resumed_at = now() - interval '1 day'")
    await process(stand, ME, "me", beat="30 s")
    await process(stand, OTHER, "other", beat="10 minutes")
    await process(stand, DEAD, "dead", state="dead")
    await process(stand, STRANGER, "left", beat="-infinity", state="draining")
    values = [ME] if "$1" in say else []
    noted = "select resumed_at > now() - interval '1 hour' as noted from cluster"
    await stand.sql("select note_silence('1 minute')")
    assert not (await stand.sql(noted))[0]["noted"], "one has beaten"
    await stand.sql("update process set beat_at = now() - interval '2 minutes' where id = $1", ME)
    await stand.sql(f"select * from {say}", *values)
    assert (await stand.sql(noted))[0]["noted"]
    await stand.sql("update cluster set resumed_at = now() - interval '1 day'")
    await stand.sql("update process set state = 'dead' where beat_at <> '-infinity'")
    await stand.sql("select note_silence('1 minute')")
    assert not (await stand.sql(noted))[0]["noted"], "who left is not silence"


async def reap(stand: Stand) -> tuple[str, str, set[str]] | None:
    """The name, the reason, and what was taken back."""
    async with asyncio.timeout(SOON):
        rows = await stand.sql("select * from reap_process('10 minutes', '1 day', '3 s')")
    return (rows[0]["name"], rows[0]["reason"], stand.names(rows[0]["moved"])) if rows else None


async def test_only_left_silent_or_ended_processes_are_taken_for_dead(stand: Stand) -> None:
    await stand.sql("update cluster set resumed_at = now() - interval '1 day'")
    await process(stand, UUID(int=11), "ended", lock_key=1, unlocked="10 s")
    await process(stand, UUID(int=12), "silent", beat="100 hours")
    await process(stand, UUID(int=13), "left", beat="-infinity")
    await process(stand, UUID(int=14), "ended just now", lock_key=2, unlocked="0 s")
    await process(
        stand, UUID(int=15), "not heard since a restart", lock_key=3, unlocked="10 s", beat="5 minutes"
    )
    await stand.sql("update process set locked_at = now() - interval '1 day' where lock_key = 3")
    await process(stand, UUID(int=16), "without a lock", unlocked="10 s")
    await process(stand, UUID(int=17), "dead", beat="-infinity", state="dead")
    await process(stand, UUID(int=18), "healthy")
    async with stand.home.session().transaction() as tx:
        await tx.fetch("select from process where name = 'left' for update")
        found = await reap(stand)
    assert found is not None
    assert (found[0], found[2]) == ("silent", set())
    assert found[1].startswith("was lost (no heartbeat for 3600")
    assert await reap(stand) == ("left", "left with work in hand", set())
    async with stand.home.session().transaction() as tx:
        await tx.fetch("select pg_advisory_xact_lock(1)")
        assert await reap(stand) is None, "it has its lock"
    await stand.sql("update process set unlocked_at = now() - interval '10 s' where name = 'ended'")
    assert await reap(stand) == ("ended", "was lost (its session ended)", set())
    assert await reap(stand) is None
    rows = await stand.sql("select name from process where state = 'dead'")
    assert {row["name"] for row in rows} == {"ended", "silent", "left", "dead"}


async def test_disowned_process_is_reaped_only_without_its_lock(stand: Stand) -> None:
    await process(stand, UUID(int=11), "killed", lock_key=1, unlocked="10 s", beat="5 minutes")
    await process(stand, UUID(int=12), "without a lock", beat="5 minutes")
    await process(stand, UUID(int=13), "later", lock_key=2, unlocked="10 s", beat="5 minutes")
    await stand.sql(
        "update process set locked_at = now() - interval '1 day', started_at = now() - interval '1 day'"
    )
    await stand.sql("update process set locked_at = now() + interval '1 day' where name = 'later'")
    assert await reap(stand) is None, "it may have lost its lock with the server"
    await processes.disown(stand.home.session(), time.time())
    async with stand.home.session().transaction() as tx:
        await tx.fetch("select pg_advisory_xact_lock(1)")
        assert await reap(stand) is None, "it has taken its lock again"
    assert await reap(stand) is None, "its lock has just become free"
    await stand.sql("update process set unlocked_at = now() - interval '10 s'")
    assert await reap(stand) == ("killed", "was lost (its session ended)", set())
    assert await reap(stand) is None


async def test_a_locked_process_lives_though_its_new_lock_is_not_noted(stand: Stand) -> None:
    await process(stand, ME, "me", lock_key=1, unlocked="10 s", beat="1 minute")
    await stand.sql("update process set locked_at = now() - interval '1 day'")
    async with stand.home.session().transaction() as silence:
        await silence.fetch("select from cluster for update")
        async with stand.home.session().transaction() as beating:
            await beating.fetch("select pg_advisory_xact_lock(1) from process for update")
            looking = asyncio.create_task(
                stand.home.session().fetch("select * from reap_process('10 minutes', '1 second', '3 s')")
            )
            async with asyncio.timeout(SOON):
                while not await beating.fetch("select from pg_locks where not granted"):
                    await asyncio.sleep(0.01)
    assert await looking == []


async def test_no_process_is_silent_soon_after_an_outage_of_all(stand: Stand) -> None:
    await stand.sql("update cluster set resumed_at = now() - interval '1 minute'")
    await process(stand, ME, "silent", beat="1 hour")
    assert await reap(stand) is None


async def test_processes_are_taken_for_dead_after_the_clock_went_back(stand: Stand) -> None:
    """They were lost just before, and their instants are to come."""
    await stand.sql("update cluster set resumed_at = now() + interval '1 hour'")
    await process(stand, UUID(int=11), "ended", lock_key=1, unlocked="-1 hour", beat="-1 hour")
    await process(stand, UUID(int=12), "silent", beat="-1 hour")
    assert await reap(stand) is None
    ahead = (
        "select 1 from process, cluster where greatest(resumed_at, beat_at, unlocked_at) > clock_timestamp()"
    )
    assert await stand.sql(ahead) == []
    await stand.sql("update process set unlocked_at = unlocked_at - interval '10 s' where name = 'ended'")
    assert await reap(stand) == ("ended", "was lost (its session ended)", set())
    await stand.sql("update cluster set resumed_at = resumed_at - interval '11 minutes'")
    await stand.sql("update process set beat_at = beat_at - interval '11 minutes' where name = 'silent'")
    lost = await reap(stand)
    assert lost is not None
    assert lost[0] == "silent"


async def test_only_work_of_dead_workers_is_taken_back(stand: Stand) -> None:
    await process(stand, OTHER, "other")
    await runs(stand, "claimed", "held", "claimed too")
    await runs(stand, "of another", claim=OTHER)
    await runs(stand, "unknown")
    held = [stand.ids[name] for name in ("held", "of another")]
    await process(stand, ME, "me", beat="-infinity", holding=held, missing=held)
    await claim(stand, 1, ME, "claimed")
    await claim(stand, 2, ME, "claimed too", "of another")
    await claim(stand, 3, OTHER, "of another", "unknown")
    await stand.sql(
        "insert into outbox (queue, ids, holder, due_at) "
        " values ('execution.requested', array[$1::uuid], $2, now() + interval '1 h')",
        *(stand.ids["unknown"], ME),
    )
    [row] = await stand.sql("select * from reap_process('10 minutes', '1 day', '3 s')")
    taken = {"claimed", "claimed too", "held"}
    assert stand.names(row["moved"]) == await stand.with_status("scheduled") == taken
    assert stand.names([id for one in row["messages"] for id in one["ids"]]) == {*taken, "unknown"}
    assert row["age"] == NOW
    assert await claims(stand) == {3}
    [me] = await stand.sql("select holding, missing from process where id = $1", ME)
    assert (me["holding"], me["missing"]) == ([], [])
    [reason] = await stand.sql("select reason from execution where id = $1", stand.ids["claimed"])
    assert reason["reason"] == "worker me left with work in hand"


async def test_claims_of_gone_workers_are_taken_back_once_no_more_come(stand: Stand) -> None:
    await process(stand, ME, "me")
    await process(stand, DEAD, "dead", state="dead")
    for n, who in enumerate((ME, DEAD, STRANGER, OTHER)):
        await runs(stand, f"first {n}", f"second {n}", claim=who)
        await claim(stand, 2 * n, who, f"first {n}")
        await claim(stand, 2 * n + 1, who, f"second {n}", ago=NOW if who == OTHER else AGO)
    found = [await reap(stand), await reap(stand)]
    assert sorted(filter(None, found)) == [
        (str(DEAD), "had left", {"first 1", "second 1"}),
        (str(STRANGER), "had left", {"first 2", "second 2"}),
    ]
    assert await reap(stand) is None
    assert await claims(stand) == {0, 1, 6, 7}


@pytest.mark.parametrize(
    ("state", "call"),
    [
        ("unknown", "reap_process('10 minutes', '1 day', '3 s')"),
        ("gone", "reap_process('10 minutes', '1 day', '3 s')"),
        ("forgetful", "beat($1, '{}', '{}', '1 day') b (a, b, c, d, moved)"),
    ],
)
async def test_rows_that_are_taken_back_are_locked_in_order_and_then_seen_as_they_are(
    stand: Stand, state: str, call: str
) -> None:
    """However they lie: one of them was asked to end meanwhile."""
    await runs(stand, "high", "low", "of another", claim=STRANGER)
    for n, name in ((3, "high"), (2, "low"), (1, "of another")):
        await stand.sql("update execution set id = $1 where id = $2", UUID(int=n), stand.ids[name])
        stand.ids[name] = UUID(int=n)
    await stand.sql("delete from live")
    await claim(stand, 1, STRANGER, "low", "high")
    if state != "unknown":
        beat = "-infinity" if state == "gone" else "0 s"
        await process(stand, STRANGER, state, beat=beat, missing=[stand.ids["low"], stand.ids["high"]])
    async with stand.home.session().transaction() as tx:
        await tx.fetch(
            "update execution set status = 'canceling', ends_as = 'cancelled' where id = $1", stand.ids["low"]
        )
        taking = asyncio.create_task(
            stand.home.session().fetch(f"select moved from {call}", *[STRANGER] * call.count("$1"))
        )
        async with asyncio.timeout(SOON):
            while not await tx.fetch("select from pg_locks where not granted"):
                await asyncio.sleep(0.01)
        free = await stand.sql("select id from execution for no key update skip locked")
        assert stand.names([row["id"] for row in free]) == {"of another", "high"}
    assert stand.names((await taking)[0]["moved"]) == {"low", "high"}
    assert await stand.with_status("cancelled") == {"low"}
    assert await stand.with_status("scheduled") == {"high"}
