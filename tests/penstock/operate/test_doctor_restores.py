"""Doctor names what a restore of a part of a dump leaves out, and migrate mends what can be mended."""

from __future__ import annotations

import asyncpg
import pytest

from penstock import action
from penstock.operate import doctor
from penstock.operate.doctor.finding import Finding
from penstock.store.schema import migrate
from tests.flows import shop
from tests.flows.installation import Installation

pytestmark = pytest.mark.parametrize("transport", ["postgres"], indirect=True)


@action(pack="shop")
async def refund(order: int) -> int:
    return order


async def found(house: Installation, what: str) -> Finding:
    [finding] = [one for one in await doctor.examine(house.settings()) if one.what == what]
    return finding


async def test_doctor_names_executions_without_definition(house: Installation) -> None:
    """So a load of the data into migrated tables leaves them: the rows of `definition` collide with those of the migration."""
    await house.apply(*shop.ALL)
    await house.client.start_many("shop.charge", [{"order": 1}, {"order": 2}])
    assert (await found(house, "restored rows")).state == "ok"
    async with house.session.transaction() as tx:
        await tx.fetch(
            "set local session_replication_role = replica"
        )  # without foreign keys, as pg_restore may load
        await tx.fetch("delete from definition where kind = 'action' and ref = 'shop.charge'")
    finding = await found(house, "restored rows")
    assert finding.state == "bad"
    assert "2 executions and 1 current definition" in finding.says
    assert "whole dump" in (finding.fix or "")


async def test_migrate_advances_sequences_that_are_behind(house: Installation) -> None:
    """So logical replication leaves them: it copies the rows alone."""
    await house.start(*shop.ALL, shop.narrow)
    await house.client.run("shop.narrow", {"n": 1}, timeout=20)
    assert (await found(house, "sequences")).state == "ok"
    names = [
        row[0]
        for row in await house.rows("select sequencename from pg_sequences where schemaname = 'public'")
    ]
    for name in names:
        await house.rows(f"alter sequence {name} restart")
    finding = await found(house, "sequences")
    assert finding.state == "bad"
    assert {"definition_id_seq", "namespace_id_seq", "admission_seq"} <= set(
        finding.says.replace(",", "").split()
    )
    with pytest.raises(asyncpg.UniqueViolationError):
        await house.apply(refund)
    await migrate.upgrade(house.settings())
    assert (await found(house, "sequences")).state == "ok"
    await house.apply(refund)
    await house.client.start_many("shop.narrow", [{"n": n} for n in range(20)])
    await house.quiet()
    await house.sound()


async def test_migrate_leaves_sequences_alone_that_are_ahead(house: Installation) -> None:
    await house.apply(*shop.ALL)
    before = await house.rows("select last_value from definition_id_seq")
    await house.rows("select nextval('definition_id_seq')")
    await migrate.upgrade(house.settings())
    assert (await house.rows("select last_value from definition_id_seq"))[0][0] == before[0][0] + 1
