"""Every damage that `penstock repair` mends, planted: found by name, proposed, mended, and the work goes on."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from penstock.errors import InvalidInput
from penstock.language.terms.ids import new_id
from penstock.operate.repair import MENDS, repair
from penstock.service.assembly import Parts
from penstock.store.upkeep.invariants import INVARIANTS
from penstock.store.upkeep.repairs import REPAIRS
from tests.flows import shop
from tests.flows.installation import Installation
from tests.penstock.operate.repair.damage import (
    LOST,
    ask,
    broken,
    goes_on,
    mend,
    requested,
    running,
    scheduled,
)


async def test_a_running_execution_without_a_claim_runs_again(house: Installation, parts: Parts) -> None:
    id, _ = await running(house)
    await house.rows("delete from claim returning 1")
    await house.rows("update execution set claim = null where id = $1 returning 1", id)
    await mend(house, parts, "I2")
    [row] = await house.rows("select status, recoveries from execution")
    assert tuple(row) == ("scheduled", 1)
    await goes_on(house, id)


async def test_an_execution_that_waits_for_a_worker_loses_its_claim(
    house: Installation, parts: Parts
) -> None:
    id = await scheduled(house)
    await house.rows("update execution set claim = $1 returning 1", new_id())
    await mend(house, parts, "I2")
    await goes_on(house, id)


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


async def test_a_staged_message_that_was_not_published_is_published(database: str, vhost: str) -> None:
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


async def test_an_open_execution_is_shown_to_recovery(house: Installation, parts: Parts) -> None:
    id = await requested(house)
    await house.rows("delete from outbox returning 1")
    await house.rows("delete from live returning 1")
    await house.rows(f"update execution set since = {LOST} returning 1")
    await mend(house, parts, "I10a")
    await goes_on(house, id)


async def test_an_execution_that_is_not_open_is_hidden_from_recovery(
    house: Installation, parts: Parts
) -> None:
    id = await requested(house)
    await house.client.cancel(id)
    await house.rows("insert into live (execution_id) values ($1), ($2) returning 1", id, new_id())
    await mend(house, parts, "I10b")


async def test_a_lost_outcome_is_replaced_by_an_error(house: Installation, parts: Parts) -> None:
    id = await requested(house)
    await house.client.cancel(id)
    await house.rows("delete from result returning 1")
    await mend(house, parts, "I10c")
    [row] = await house.rows("select error ->> 'type' as type from result")
    assert row["type"] == "ResultLost"


async def test_a_bad_end_without_a_reason_is_reported_as_lost(house: Installation, parts: Parts) -> None:
    id = await requested(house)
    await house.client.cancel(id)
    await house.rows("update result set error = null returning 1")
    assert not await broken(house)  # a cancelled execution needs no reason
    await house.rows("alter table execution disable trigger user")
    await house.rows("update execution set status = 'failed' returning 1")
    await house.rows("alter table execution enable trigger user")
    await mend(house, parts, "I10c")
    [row] = await house.rows("select error ->> 'type' as type from result")
    assert row["type"] == "ResultLost"


async def test_an_execution_on_a_worker_that_is_gone_runs_again(house: Installation, parts: Parts) -> None:
    id, worker = await running(house)
    await house.rows("delete from process where id = $1 returning 1", worker)
    await mend(house, parts, "I10d")
    [row] = await house.rows("select status, recoveries from execution")
    assert tuple(row) == ("scheduled", 1)
    await goes_on(house, id)


async def test_an_execution_on_a_live_worker_is_left_to_it(house: Installation, parts: Parts) -> None:
    await house.apply(*shop.ALL)
    await house.worker(*shop.ALL)
    id = await house.client.start("shop.wait_for", {"seconds": 3})
    await house.until("select 1 from claim")
    await house.until("select 1 from process where $1 = any(holding)", id)
    await house.rows("delete from claim returning 1")
    assert await broken(house) == {"I10d"}
    [one] = await repair(parts.database.session(), parts.publisher, apply=True)
    assert (one.name, one.state, one.mended) == ("I10d", "left", 0)
    await house.executor()
    assert await house.client.result(id, timeout=20) == "waited"
    await house.sound()
    assert (await house.client.get(id)).recoveries == 0


async def test_the_sweeper_takes_back_claims_of_a_worker_that_had_left(house: Installation) -> None:
    id, worker = await running(house)
    await house.rows("delete from process where id = $1 returning 1", worker)
    await house.rows("update claim set claimed_at = clock_timestamp() - interval '5 seconds' returning 1")
    await goes_on(house, id)
    assert (await house.client.get(id)).recoveries == 1


async def test_a_waiting_execution_without_an_inquiry_asks_again(house: Installation, parts: Parts) -> None:
    await house.start(*shop.ALL, ask)
    id = await house.client.start("shop.ask")
    await house.until("select 1 from execution where status = 'waiting'")
    await house.rows("delete from inquiry returning 1")
    await mend(house, parts, "I10e")
    await house.until("select 1 from inquiry where execution_id = $1", id)
    await house.client.answer(id, "yes", by="ada")
    assert await house.client.result(id, timeout=20) == "yes"
    await house.sound()


async def test_an_ended_execution_goes_to_the_archive(house: Installation, parts: Parts) -> None:
    id = await requested(house)
    await house.client.cancel(id)
    await house.rows("delete from untold")  # no process is there to take note of it
    await house.rows("delete from finished returning 1")
    await mend(house, parts, "I10f")
    assert (await house.rows("select * from archive_finished(interval '-1 second', 20)"))[0][0] == 1
    assert (await house.client.get(id)).status == "cancelled"
    await house.sound()


async def test_recorded_history_is_not_a_damage_to_mend(house: Installation, parts: Parts) -> None:
    id = await requested(house)
    await house.rows(
        "insert into history (execution_id, at, old, new, attempt) "
        "values ($1, clock_timestamp(), 'completed', 'running', 1) returning 1",
        id,
    )
    done = await repair(parts.database.session(), parts.publisher, apply=True)
    assert {(one.name, one.state) for one in done} == {("I9", "no mend"), ("moves", "no mend")}


async def test_result_of_a_cancelled_execution_is_evidence(house: Installation, parts: Parts) -> None:
    id = await requested(house)
    await house.client.cancel(id)
    await house.sound()
    await house.rows("""update result set result = '{"page": 7}' where execution_id = $1""", id)
    done = await repair(parts.database.session(), parts.publisher, apply=True)
    assert [(violated.name, violated.state, violated.violations) for violated in done] == [
        ("I10h", "no mend", [str(id)])
    ]


async def test_only_the_named_damage_is_mended(house: Installation, parts: Parts) -> None:
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
    assert set(MENDS) - set(REPAIRS) == {"I8"}
    assert set(REPAIRS) < set(MENDS)


def test_page_of_recovery_lists_each_invariant() -> None:
    page = (Path(__file__).parents[4] / "docs/recovery.md").read_text()
    _, _, section = page.partition("\n## Repair\n")
    section, _, _ = section.partition("\n## ")
    rows = [row for row in section.splitlines() if row.startswith("| I")]
    assert [name for row in rows for name in row.split("|")[1].replace(" ", "").split(",")] == list(MENDS)
    without_repair = re.search(r"invariants have no repair: (.*?)\.", section, re.DOTALL)
    assert without_repair is not None
    names = re.findall(r"I\d+\w?|moves", without_repair[1])
    assert set(names) == {invariant.name for invariant in INVARIANTS} - MENDS.keys()
