"""Running attempts without a claim get one, and then count as lost like any others. No live attempt is taken back."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any
from uuid import UUID

import orjson
import pytest

from penstock.store.processes import processes
from tests.penstock.store.members import DEAD, ME, OTHER, SOON, STRANGER, claim, process, runs
from tests.penstock.store.processes.test_processes import beat
from tests.penstock.store.stand import Stand

FIRST = UUID(int=0)


async def restored(stand: Stand, after: UUID = FIRST, limit: int = 100) -> int:
    return await processes.restore_claims(stand.session, after, limit)


async def named(stand: Stand) -> set[tuple[str, UUID]]:
    """Return the executions that claims name, with the workers of the claims."""
    names = {id: name for name, id in stand.ids.items()}
    rows = await stand.sql("select x, worker from claim cross join unnest(executions) x")
    return {(names[row["x"]], row["worker"]) for row in rows}


async def let_seconds_pass(stand: Stand) -> None:
    await stand.sql("update claim set claimed_at = claimed_at - interval '2 s'")


async def test_exactly_running_attempts_without_a_claim_get_one(stand: Stand) -> None:
    await runs(stand, "lost", "claimed", "claimed by another")
    await runs(stand, "lost and canceled", status="canceling", ends_as="cancelled")
    await runs(stand, "of a stranger", claim=STRANGER)
    await runs(stand, "scheduled", status="scheduled")
    await runs(stand, "ended", status="completed")
    await stand.add("without an owner", "running", attempt=1)
    await stand.add("workflow", "running", kind="workflow", queue="work.flow")
    await claim(stand, 1, ME, "claimed", "ended")
    await claim(stand, 2, OTHER, "claimed by another")
    assert await restored(stand) == 4
    assert await named(stand) == {
        *((name, ME) for name in ("claimed", "ended", "lost", "lost and canceled", "claimed by another")),
        ("claimed by another", OTHER),
        ("of a stranger", STRANGER),
    }
    assert await restored(stand) == 0
    assert not await stand.sql("select from claim where assigned"), "a worker would begin it again"


async def test_attempt_that_two_heartbeats_do_not_name_is_lost(stand: Stand) -> None:
    await process(stand, ME, "me")
    await runs(stand, "lost", "fenced", "once", "often")
    await stand.sql("update execution set recoveries = 3 where id = $1", stand.ids["often"])
    body = orjson.dumps({"recovery": {"on_worker_loss": "fail"}}).decode()
    [[definition]] = await stand.sql(
        "insert into definition (kind, ref, digest, body) values ('action', 'a.once', 'y', $1::text::jsonb) returning id",
        body,
    )
    await stand.sql("update execution set definition_id = $1 where id = $2", definition, stand.ids["once"])
    assert await restored(stand) == 4
    await let_seconds_pass(stand)
    assert (await beat(stand))["missing"] == set(), "one heartbeat does not decide"
    assert (await beat(stand))["missing"] == {"lost", "fenced", "once", "often"}
    assert await stand.with_status("scheduled") == {"lost", "fenced"}
    assert await stand.with_status("failed") == {"once"}
    assert await stand.with_status("abandoned") == {"often"}
    rows = await stand.sql("select execution_id from attempt where outcome = 'lost' and attempt = 1")
    assert stand.names([row[0] for row in rows]) == set(stand.ids)
    [row] = await stand.sql("select recoveries from execution where id = $1", stand.ids["lost"])
    assert row["recoveries"] == 1
    [late] = await stand.sql(
        "select moved from finish_attempts($1, array[$2::uuid], array[1], array['completed'], null, null, array[0.0],"
        " null, null, '{}', '{}')",
        *(ME, stand.ids["fenced"]),
    )
    assert late["moved"] == []
    assert await named(stand) == set()


async def test_attempt_that_heartbeats_name_is_never_lost(stand: Stand) -> None:
    await process(stand, ME, "me")
    await runs(stand, "live")
    assert await restored(stand) == 1
    for names in (("live",), (), ("live",), (), ("live",), ("live",)):
        await let_seconds_pass(stand)
        assert (await beat(stand, *names))["missing"] == set()
        assert await restored(stand) == 0
    assert await stand.with_status("running") == {"live"}


@pytest.mark.parametrize("gone", ["dead", "deleted"])
async def test_attempt_of_a_worker_that_is_gone_is_taken_back(stand: Stand, gone: str) -> None:
    if gone == "dead":
        await process(stand, DEAD, "dead", state="dead")
    await runs(stand, "lost", claim=DEAD)
    assert await restored(stand) == 1
    await stand.sql("update claim set claimed_at = claimed_at - interval '1 h'")
    [row] = await stand.sql("select * from reap_process('10 minutes', '1 day', '3 s')")
    assert stand.names(row["moved"]) == await stand.with_status("scheduled") == {"lost"}


async def test_restored_claim_is_deleted_after_the_end_of_its_attempt(stand: Stand) -> None:
    await runs(stand, "a", "b", "c", "d")
    assert await restored(stand) == 4
    await claim(stand, 1, ME, "a")
    await stand.sql("update execution set status = 'completed' where id = $1", stand.ids["a"])
    await stand.sql("update execution set status = 'waiting', claim = null where id = $1", stand.ids["b"])
    await stand.sql("update execution set claim = $2 where id = $1", stand.ids["c"], OTHER)
    assert await restored(stand, after=stand.ids["d"]) == 0
    assert len(await stand.sql("select from claim")) == 5, "a later step of the way does not look"
    assert await restored(stand) == 1
    assert await named(stand) == {("a", ME), ("c", OTHER), ("d", ME)}


async def test_open_executions_are_gone_through_in_steps(stand: Stand) -> None:
    await runs(stand, *"abcde")
    assert await restored(stand, after=stand.ids["a"], limit=2) == 2
    assert await named(stand) == {("b", ME), ("c", ME)}


@pytest.mark.parametrize("then", ["ends", "is claimed by another worker"])
async def test_attempt_that_ends_at_this_moment_is_left_alone(stand: Stand, then: str) -> None:
    """Two connections: the end of the attempt is not committed when the first look finds it."""
    await runs(stand, "a", "b")
    change: tuple[str, Any] = (
        ("update execution set status = 'completed' where id = $1 and claim = $2", ME)
        if then == "ends"
        else ("update execution set claim = $2, attempt = 2 where id = $1", OTHER)
    )
    async with stand.home.session().transaction() as tx:
        await tx.fetch(change[0], stand.ids["a"], change[1])
        if then != "ends":
            await tx.fetch(
                "insert into claim (id, worker, executions) values ($1, $2, array[$3::uuid])",
                *(UUID(int=9), OTHER, stand.ids["a"]),
            )
        assert await asyncio.wait_for(restored(stand), SOON) == 1, "a locked row is not waited for"
        assert await named(stand) == {("b", ME)}
    assert await restored(stand) == 0
    assert await named(stand) == {("b", ME)} | ({("a", OTHER)} if then != "ends" else set())


async def test_attempt_that_ended_between_the_looks_is_left_alone(stand: Stand) -> None:
    """Two connections: the attempt ends after the first look, and before the lock."""
    await runs(stand, "a", "b")
    [source] = await stand.sql("select prosrc from pg_proc where proname = 'restore_claims'")
    first = "if v_unclaimed <> '{}' then"
    assert source["prosrc"].count(first) == 1
    waits = source["prosrc"].replace(first, f"perform pg_advisory_xact_lock(42); {first}")
    await stand.sql(
        "create or replace function restore_claims(p_after uuid, p_limit integer) returns integer"
        f" language plpgsql as $body$ {waits} $body$"
    )
    async with stand.home.session().transaction() as tx:
        await tx.fetch("select pg_advisory_xact_lock(42)")
        looking = asyncio.create_task(processes.restore_claims(stand.home.session(), FIRST, 100))
        async with asyncio.timeout(SOON):
            while not await tx.fetch("select from pg_locks where not granted"):
                await asyncio.sleep(0.01)
        await stand.sql("update execution set claim = $2, attempt = 2 where id = $1", stand.ids["a"], OTHER)
        await claim(stand, 9, OTHER, "a", ago=timedelta(0))
    assert await looking == 1
    assert await named(stand) == {("a", OTHER), ("b", ME)}
