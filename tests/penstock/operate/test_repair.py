"""Every damage that `penstock repair` mends, planted: found by name, proposed, mended, and the work goes on."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID

import pytest

from penstock import AskInquiry, Limit, action
from penstock.errors import InvalidInput
from penstock.ids import new_id
from penstock.operate.check import check
from penstock.operate.repair import MENDS, repair
from penstock.service.assembly import Parts
from penstock.store.invariants import INVARIANTS
from tests.flows import shop
from tests.flows.installation import Installation
from tests.penstock.store.admission.desk import CLAIM

LOST = "clock_timestamp() - interval '1 hour'"


@action(pack="shop", limits=[Limit(1)])
async def alone(n: int) -> int:
    return n


@action(pack="shop")
async def ask() -> str:
    raise AskInquiry("Anybody?")


@pytest.fixture
async def house(database: str) -> AsyncIterator[Installation]:
    async with Installation(database, None) as house:
        await house.apply(*shop.ALL, alone, ask)
        yield house


@pytest.fixture
async def parts(house: Installation) -> Parts:
    return await house.parts()


async def broken(house: Installation) -> set[str]:
    return {finding.name for finding in await check(house.session) if finding.violations}


async def mend(house: Installation, parts: Parts, name: str, *more: str) -> None:
    """Exactly these are violated; they are proposed, which changes nothing, and then mended."""
    assert await broken(house) == {name, *more}
    proposed = await repair(parts.database.session(), parts.publisher, apply=False)
    assert {(one.name, one.state) for one in proposed} == {(n, "proposed") for n in (name, *more)}
    assert await broken(house) == {name, *more}
    done = await repair(parts.database.session(), parts.publisher, apply=True)
    assert [one.state for one in done if one.name == name] == ["mended"]
    assert await broken(house) == set()
    assert await repair(parts.database.session(), parts.publisher, apply=True) == []


async def requested(house: Installation, ref: str = "shop.charge", **params: Any) -> UUID:
    return await house.client.start(ref, params or {"order": 7})


async def scheduled(house: Installation, ref: str = "shop.charge", **params: Any) -> UUID:
    id = await requested(house, ref, **params)
    await house.rows("select * from schedule_executions(array[$1::uuid])", id)
    return id


async def hire(house: Installation) -> UUID:
    """A worker who is only a row."""
    worker = new_id()
    await house.rows(
        "insert into process (id, kind, name, routes, actions) "
        "values ($1, 'worker', 'w', '{default}', '{shop.alone}') returning 1",
        worker,
    )
    return worker


async def running(house: Installation, ref: str = "shop.charge", **params: Any) -> tuple[UUID, UUID]:
    """An execution and the worker that has claimed it."""
    worker = await hire(house)
    id = await scheduled(house, ref, **params)
    [row] = await house.rows("select definition_id from execution where id = $1", id)
    await house.rows(CLAIM, worker, new_id(), [id], "work.default", [row[0]])
    return id, worker


async def goes_on(house: Installation, id: UUID) -> None:
    await house.executor()
    await house.worker(*shop.ALL, alone, ask)
    await house.client.result(id, timeout=20)
    await house.quiet()
    await house.sound()


async def test_what_runs_for_nobody_runs_again(house: Installation, parts: Parts) -> None:
    id, _ = await running(house)
    await house.rows("delete from claim returning 1")
    await house.rows("update execution set claim = null where id = $1 returning 1", id)
    await mend(house, parts, "I2")
    [row] = await house.rows("select status, recoveries from execution")
    assert tuple(row) == ("requested", 1)
    await goes_on(house, id)


async def test_what_waits_for_a_worker_belongs_to_nobody(house: Installation, parts: Parts) -> None:
    id = await scheduled(house)
    await house.rows("update execution set claim = $1 returning 1", new_id())
    await mend(house, parts, "I2")
    await goes_on(house, id)


async def test_a_slot_of_nobody_is_freed_and_the_next_starts(house: Installation, parts: Parts) -> None:
    await hire(house)
    first = await scheduled(house, "shop.alone", n=1)
    [slot] = await house.rows("select limit_id from slot where execution_id = $1", first)
    await house.client.cancel(first)
    await house.rows(
        "insert into slot (limit_id, group_value, execution_id, attempt) values ($1, '', $2, 1) returning 1",
        slot["limit_id"],
        first,
    )
    second = await scheduled(house, "shop.alone", n=2)
    assert (await house.client.get(second)).status == "queued"
    await mend(house, parts, "I3s")
    assert (await house.client.get(second)).status == "scheduled"
    await goes_on(house, second)


async def test_a_gate_that_is_open_is_looked_at_again(house: Installation, parts: Parts) -> None:
    await hire(house)
    first = await scheduled(house, "shop.alone", n=1)
    second = await scheduled(house, "shop.alone", n=2)
    # As if whoever ended the first had forgotten the second.
    async with house.session.transaction() as tx:
        for statement in (
            "update execution set status = 'cancelled', finished_at = clock_timestamp() where id = $1",
            "insert into result (execution_id) values ($1)",
            "insert into finished (ids) values (array[$1::uuid])",
            "delete from live where execution_id = $1",
            "delete from slot where execution_id = $1",
        ):
            await tx.fetch(statement, first)
    await mend(house, parts, "I5")
    await goes_on(house, second)


async def test_who_is_queued_and_stands_nowhere_is_put_into_line(house: Installation, parts: Parts) -> None:
    await scheduled(house, "shop.alone", n=1)
    second = await scheduled(house, "shop.alone", n=2)
    await house.rows("delete from waiter returning 1")
    await mend(house, parts, "I5w", "I10a")
    await goes_on(house, second)


async def test_who_stands_in_line_without_being_queued_leaves_it(house: Installation, parts: Parts) -> None:
    await scheduled(house, "shop.alone", n=1)
    second = await scheduled(house, "shop.alone", n=2)
    third = await scheduled(house, "shop.alone", n=3)
    await house.rows("update execution set status = 'requested' where id = $1 returning 1", second)
    await house.rows("insert into live (execution_id) values ($1) returning 1", second)
    await mend(house, parts, "I5w")
    await goes_on(house, third)
    assert await house.client.result(second, timeout=20) == 2


async def test_a_lane_that_begins_too_late_knows_its_first_again(house: Installation, parts: Parts) -> None:
    await scheduled(house, "shop.alone", n=1)
    second = await scheduled(house, "shop.alone", n=2)
    third = await scheduled(house, "shop.alone", n=3)
    await house.rows(
        "update lane l set ready_at = w.ready_at, execution_id = w.execution_id from waiter w "
        "where w.execution_id = $1 returning 1",
        third,
    )
    await mend(house, parts, "I5w")
    await goes_on(house, second)


async def test_an_enforcement_without_its_execution_is_executed(house: Installation, parts: Parts) -> None:
    event = await house.client.publish("shop.order_placed", {"id": 1, "amount": 500})
    executor = await house.executor()
    [made] = await house.until("select execution_id as id from enforcement where status = 'executed'")
    executor.ask()
    await house.until("select 1 where not exists (select from process where kind = 'executor')")
    for table, column in (("execution", "id"), ("payload", "execution_id"), ("live", "execution_id")):
        await house.rows(f"delete from {table} where {column} = $1 returning 1", made["id"])
    await house.rows("delete from outbox returning 1")
    await house.rows("delete from history where execution_id = $1 returning 1", made["id"])
    await mend(house, parts, "I7")
    await goes_on(house, made["id"])
    assert event is not None


async def test_an_execution_that_was_is_not_made_twice(house: Installation, parts: Parts) -> None:
    await house.start(*shop.ALL)
    await house.client.publish("shop.order_placed", {"id": 1, "amount": 500})
    await house.until("select 1 from execution where status = 'completed'")
    for table in ("execution", "payload", "result", "finished"):
        await house.rows(f"delete from {table} returning 1")
    assert await broken(house) == {"I7"}
    [left] = await repair(parts.database.session(), parts.publisher, apply=True)
    assert (left.state, left.mended) == ("left", 0)
    assert await house.rows("select 1 from execution") == []


async def test_what_was_staged_and_not_published_is_published(database: str, vhost: str) -> None:
    async with Installation(database, vhost) as house:
        await house.apply(*shop.ALL)
        parts = await house.parts()
        await parts.transport.declare("execution.requested")
        id = await house.client.start("shop.charge", {"order": 7})
        await house.client.flush()
        await house.rows(
            "insert into outbox (queue, ids, due_at, created_at) "
            f"values ('execution.requested', array[$1::uuid], {LOST}, {LOST}) returning 1",
            id,
        )
        await mend(house, parts, "I8")
        await goes_on(house, id)


async def test_what_is_open_is_shown_to_recovery(house: Installation, parts: Parts) -> None:
    id = await requested(house)
    await house.rows("delete from outbox returning 1")
    await house.rows("delete from live returning 1")
    await house.rows(f"update execution set ready_at = {LOST} returning 1")
    await mend(house, parts, "I10a")
    await goes_on(house, id)


async def test_what_is_not_open_is_hidden_from_recovery(house: Installation, parts: Parts) -> None:
    id = await requested(house)
    await house.client.cancel(id)
    await house.rows("insert into live (execution_id) values ($1), ($2) returning 1", id, new_id())
    await mend(house, parts, "I10b")


async def test_whoever_waits_for_an_outcome_that_was_lost_is_told(house: Installation, parts: Parts) -> None:
    id = await requested(house)
    await house.client.cancel(id)
    await house.rows("delete from result returning 1")
    await mend(house, parts, "I10c")
    [row] = await house.rows("select error ->> 'type' as type from result")
    assert row["type"] == "ResultLost"


async def test_what_runs_on_a_worker_that_is_gone_runs_again(house: Installation, parts: Parts) -> None:
    id, worker = await running(house)
    await house.rows("delete from process where id = $1 returning 1", worker)
    await mend(house, parts, "I10d")
    [row] = await house.rows("select status, recoveries from execution")
    assert tuple(row) == ("requested", 1)
    await goes_on(house, id)


async def test_what_runs_on_a_worker_that_lives_is_left_to_it(house: Installation, parts: Parts) -> None:
    await house.start(*shop.ALL)
    id = await house.client.start("shop.wait_for", {"seconds": 3})
    await house.until("select 1 from claim")
    await house.until("select 1 from process where $1 = any(holding)", id)
    await house.rows("delete from claim returning 1")
    assert await broken(house) == {"I10d"}
    [one] = await repair(parts.database.session(), parts.publisher, apply=True)
    assert (one.name, one.state, one.mended) == ("I10d", "left", 0)
    assert await house.client.result(id, timeout=20) == "waited"
    await house.sound()
    assert (await house.client.get(id)).recoveries == 0


async def test_the_sweeper_takes_back_what_a_worker_claimed_after_it_had_left(house: Installation) -> None:
    id, worker = await running(house)
    await house.rows("delete from process where id = $1 returning 1", worker)
    await house.rows("update claim set claimed_at = clock_timestamp() - interval '5 seconds' returning 1")
    await goes_on(house, id)
    assert (await house.client.get(id)).recoveries == 1


async def test_who_waits_for_an_answer_to_nothing_asks_again(house: Installation, parts: Parts) -> None:
    await house.start(*shop.ALL, ask)
    id = await house.client.start("shop.ask")
    await house.until("select 1 from execution where status = 'waiting'")
    await house.rows("delete from inquiry returning 1")
    await mend(house, parts, "I10e")
    await house.until("select 1 from inquiry where execution_id = $1", id)
    await house.client.answer(id, "yes", by="ada")
    assert await house.client.result(id, timeout=20) == "yes"
    await house.sound()


async def test_what_ended_goes_to_the_archive(house: Installation, parts: Parts) -> None:
    id = await requested(house)
    await house.client.cancel(id)
    await house.rows("delete from untold")  # nobody is there to take note of it
    await house.rows("delete from finished returning 1")
    await mend(house, parts, "I10f")
    assert (await house.rows("select * from archive_finished(interval '-1 second', 20)"))[0][0] == 1
    assert (await house.client.get(id)).status == "cancelled"
    await house.sound()


async def test_what_happened_is_no_damage_to_mend(house: Installation, parts: Parts) -> None:
    id = await requested(house)
    await house.rows(
        "insert into history (execution_id, at, old, new, attempt) "
        "values ($1, clock_timestamp(), 'completed', 'running', 1) returning 1",
        id,
    )
    done = await repair(parts.database.session(), parts.publisher, apply=True)
    assert {(one.name, one.state) for one in done} == {("I9", "no mend"), ("moves", "no mend")}


async def test_only_what_is_named_is_mended(house: Installation, parts: Parts) -> None:
    id = await requested(house)
    await house.client.cancel(id)
    await house.rows("delete from result returning 1")
    assert await repair(parts.database.session(), parts.publisher, apply=True, only=["I2"]) == []
    [one] = await repair(parts.database.session(), parts.publisher, apply=True, only=["I10c"])
    assert (one.state, one.mended) == ("mended", 1)
    with pytest.raises(InvalidInput, match="I99"):
        await repair(parts.database.session(), parts.publisher, apply=True, only=["I99"])


def test_every_mend_is_of_an_invariant() -> None:
    assert set(MENDS) <= {invariant.name for invariant in INVARIANTS}
