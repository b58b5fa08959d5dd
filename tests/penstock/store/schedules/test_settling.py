"""The settling of ends and the finding of losses: of the requested fires, and of no others."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from penstock.language.terms.ids import new_id
from tests.penstock.store.schedules.conftest import House
from tests.penstock.store.schedules.rows import BASE, NUMBER, A, B, Rows, instants

FIRST, LAST = BASE.format("0"), BASE.format("100")
RECOVER = f"""
select r.recovered from (select min(s.namespace_id) as n, min(c.definition_id) as d from schedule s, catalog c
where c.ref = 'shop.charge') x, recover_fires($1::text[], {instants("$2")}, $3::uuid[], $4::uuid[],
array_fill(x.n, array[$6::int]), array_fill(x.d, array[$6::int]), array_fill('{{}}'::text, array[$6::int]),
array_fill(null::text, array[$6::int]), array_fill(null::text, array[$6::int]), $5::text[]) r
"""
CROWD = f"""
with schedules as (
    insert into schedule select (jsonb_populate_record(s, jsonb_build_object('ref', 'clock.' || n))).*
    from schedule s, generate_series(1, 300) n where s.ref = $1 returning ref
)
insert into fire (schedule, due_at, status, kind, definition_id, execution_id)
select x.ref, x.due_at, 'created', 'due', 1, gen_random_uuid() from (
    select ref, {BASE.format("n")} as due_at from schedules, (values (1), (99)) v (n)
    union all select $1, {BASE.format("n")} from generate_series(2, 98, 0.5) n) x
"""
READ = """
select sum(seq_tup_read + coalesce(idx_tup_fetch, 0))::integer from pg_stat_xact_user_tables where relname ~ $1
"""


async def outcomes(rows: Rows) -> dict[tuple[str, int], str | None]:
    found = await rows.sql(f"select schedule, {NUMBER} as n, outcome from fire")
    return {(row["schedule"], row["n"]): row["outcome"] for row in found}


async def write(rows: Rows, *ended: tuple[str, int, UUID]) -> int:
    schedules, numbers, ids = [list(column) for column in zip(*ended, strict=True)]
    [row] = await rows.sql(
        "select write_outcomes(array(select (id, schedule, due_at, 'completed', now(), null)::ended_fire "
        f"from unnest($1::text[], {instants('$2')}, $3::uuid[]) u (schedule, due_at, id)), {FIRST}, {LAST}) as count",
        *(schedules, numbers, ids),
    )
    return int(row["count"])


async def test_an_end_is_written_to_its_own_fire(house: House) -> None:
    rows = await Rows.prepare(house)
    ended = await rows.fire(A, 1, opened=True)
    for ref, n in ((A, 2), (B, 1)):
        await rows.fire(ref, n, opened=True)
    replaced, late = new_id(), await rows.fire(A, 101, opened=True)
    await rows.fire(A, 3)
    assert await write(rows, (A, 1, ended), (A, 3, replaced), (A, 101, late)) == 2
    written = {key: outcome for key, outcome in (await outcomes(rows)).items() if outcome is not None}
    assert written == {(A, 1): "completed"}, (
        "not to one that has another execution by now, nor where nobody looked"
    )
    assert await rows.numbers("open_fire") == {(A, 2), (B, 1)}


async def settle(rows: Rows, limit: int = 10) -> tuple[int, list[UUID]]:
    [row] = await rows.sql(
        "select settled, array(select l.execution_id from unnest(lost) l) as lost from settle_fires($1)",
        limit,
    )
    return row["settled"], row["lost"]


async def test_no_more_are_settled_at_a_time_than_asked_for(house: House) -> None:
    rows = await Rows.prepare(house)
    for n in (1, 2):
        await rows.run("completed", id=await rows.fire(A, n, opened=True))
    await rows.run("running", id=await rows.fire(A, 3, opened=True))
    assert await settle(rows, 1) == (1, [])
    assert len(await rows.numbers("open_fire")) == 2
    assert await settle(rows, 1) == (1, [])
    assert await settle(rows, 1) == (0, [])
    assert await rows.numbers("open_fire") == {(A, 3)}


async def archive(rows: Rows, id: UUID) -> None:
    await rows.sql(
        "insert into archive (id, finished_at, status, action, namespace, root, created_at, attempt, failures, recoveries,"
        " priority, definition_id) values ($1, clock_timestamp(), 'failed', 'a', 'b', $1, now(), 1, 0, 0, 0, 1)",
        id,
    )


async def test_ends_that_were_archived_are_written_a_batch_at_a_time_too(house: House) -> None:
    rows = await Rows.prepare(house)
    for n in (1, 2):
        await archive(rows, await rows.fire(A, n, opened=True))
    await archive(rows, new_id())
    assert await settle(rows, 1) == (0, [])
    assert [outcome for _, outcome in sorted((await outcomes(rows)).items())].count("failed") == 1
    assert len(await rows.numbers("open_fire")) == 1
    lost = await rows.fire(B, 1, opened=True)
    await archive(rows, new_id())
    assert await settle(rows) == (0, [lost])
    assert await outcomes(rows) == {(A, 1): "failed", (A, 2): "failed", (B, 1): None}


async def lost_of(rows: Rows, ids: list[UUID]) -> set[UUID]:
    [row] = await rows.sql(
        "select array(select l.execution_id from unnest(f) l) as lost, f is null as none "
        f"from find_lost_fires($1, {FIRST}, {LAST}) f",
        ids,
    )
    assert not row["none"]
    return set(row["lost"])


async def test_only_requested_fires_without_a_run_are_lost(house: House) -> None:
    rows = await Rows.prepare(house)
    lost = await rows.fire(A, 1, opened=True)
    other = await rows.fire(B, 1, opened=True)
    there = await rows.fire(A, 2, opened=True)
    await rows.run("running", id=there)
    late = await rows.fire(A, 101, opened=True)
    dropped, replaced, elsewhere = new_id(), new_id(), new_id()
    await rows.open(A, 50, dropped)
    await rows.open(A, 2, replaced)
    await rows.open(B, 2, elsewhere)
    unasked = new_id()
    await rows.open(A, 51, unasked)
    assert await lost_of(rows, [lost, there, late, dropped, replaced, elsewhere]) == {lost}
    found = {row["execution_id"] for row in await rows.sql("select execution_id from open_fire")}
    assert found == {lost, other, there, late, unasked}, "what has no fire any more is forgotten"
    await rows.open(A, 50, dropped)
    assert await lost_of(rows, [dropped]) == set()
    assert await lost_of(rows, [there]) == set()


async def recover(rows: Rows, *given: tuple[str, int, UUID, str | None]) -> tuple[int, list[UUID]]:
    """Schedule, instant, the execution before, and why there is none after it."""
    schedules, numbers, old, errors = [list(column) for column in zip(*given, strict=True)]
    ids = [new_id() for _ in given]
    [row] = await rows.sql(RECOVER, schedules, numbers, old, ids, errors, len(given))
    return row["recovered"], ids


async def executions(rows: Rows) -> dict[Any, Any]:
    found = await rows.sql(f"select schedule, {NUMBER} as n, execution_id from fire")
    return {(row["schedule"], row["n"]): row["execution_id"] for row in found}


async def test_a_lost_fire_gets_another_execution_and_no_other_fire_does(house: House) -> None:
    rows = await Rows.prepare(house)
    lost = await rows.fire(A, 1, opened=True)
    hopeless = await rows.fire(A, 2, opened=True)
    mine, others = await rows.fire(A, 3, opened=True), await rows.fire(B, 1, opened=True)
    await rows.sql(
        "update schedule set last_execution = case ref when $1 then $2::uuid else $3::uuid end",
        A,
        lost,
        hopeless,
    )
    recovered, [new, _, none] = await recover(
        rows, (A, 1, lost, None), (A, 2, hopeless, "lost too often"), (A, 3, new_id(), None)
    )
    assert recovered == 1
    assert await executions(rows) == {(A, 1): new, (A, 2): hopeless, (A, 3): mine, (B, 1): others}
    assert await rows.fires() == {(A, 1): "created", (A, 2): "failed", (A, 3): "created", (B, 1): "created"}
    assert await rows.numbers("open_fire") == {(A, 1), (A, 3), (B, 1)}
    assert (await rows.schedule(A))["last_execution"] == new
    assert (await rows.schedule(B))["last_execution"] == hopeless
    assert [row["id"] for row in await rows.sql("select id from execution")] == [new]
    assert none != new
    assert await house.statuses() == {"queued": 1}


async def test_a_fire_that_is_not_restarted_stays_the_last_run(house: House) -> None:
    rows = await Rows.prepare(house)
    lost, later = await rows.fire(A, 1, opened=True), await rows.run("running", last_of=A)
    [failed] = [await rows.fire(B, 1, opened=True)]
    await rows.sql("update schedule set last_execution = $2 where ref = $1", B, failed)
    assert (await recover(rows, (A, 1, lost, None), (B, 1, failed, "lost too often")))[0] == 1
    assert (await rows.schedule(A))["last_execution"] == later
    assert (await rows.schedule(B))["last_execution"] == failed
    assert (await recover(rows, (B, 1, new_id(), "again")))[0] == 0


async def test_fires_and_their_schedules_are_looked_up_however_many_there_are(house: House) -> None:
    """Rows are counted, not time: many are due at these instants, and many of this schedule between them."""
    rows = await Rows.prepare(house)
    await rows.sql(CROWD, A)
    ended, lost = await rows.fire(A, 1, opened=True), await rows.fire(A, 99, opened=True)
    await rows.run("completed", id=ended)
    async with (await house.parts()).database.session().transaction() as tx:

        async def read(what: str, statement: str, *values: Any) -> int:
            [[before]] = await tx.fetch(READ, what)
            await tx.fetch(statement, *values)
            [[after]] = await tx.fetch(READ, what)
            return int(after - before)

        assert await read("^fire", "select * from settle_fires(10)") < 20
        again = ([A], [99], [lost], [new_id()], [None], 1)
        await tx.fetch("select set_config('enable_seqscan', 'off', true)")  # of the calling transaction
        assert (
            await read(
                "^(fire|schedule)",
                RECOVER.replace("schedule s,", "(select * from schedule limit 1) s,"),
                *again,
            )
            < 20
        )
