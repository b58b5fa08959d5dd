"""Damaged slots and lines before limits: found by name, proposed, mended, and the work goes on."""

from __future__ import annotations

from penstock.service.assembly import Parts
from tests.flows.installation import Installation
from tests.penstock.operate.repair.damage import goes_on, hire, mend, scheduled


async def test_a_slot_without_a_holder_is_freed_and_the_next_starts(
    house: Installation, parts: Parts
) -> None:
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
    # As if the transaction that ended the first had forgotten the second.
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


async def test_a_queued_execution_without_a_place_is_put_into_line(house: Installation, parts: Parts) -> None:
    await scheduled(house, "shop.alone", n=1)
    second = await scheduled(house, "shop.alone", n=2)
    await house.rows("delete from waiter returning 1")
    await mend(house, parts, "I5w", "I10a")
    await goes_on(house, second)


async def test_an_execution_in_line_that_is_not_queued_leaves_it(house: Installation, parts: Parts) -> None:
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
