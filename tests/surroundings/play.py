"""One short flow through most of what Penstock stores: limits, retries, rules, workflows, schedules, durable functions."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import asyncpg
from pydantic import SecretStr

from penstock import Limit, Schedule, action, current
from penstock.language.workflows import from_yaml
from penstock.operate import doctor
from penstock.settings import Settings
from penstock.store.schema import migrate
from tests.flows import shop
from tests.flows.installation import Installation, started_by
from tests.servers.pgbouncer import PgBouncer
from tests.surroundings.roles import tenant


@action(pack="hostile", limits=[Limit(1)])
async def narrow(n: int) -> dict[str, Any]:
    return {"n": n, "exact": 0.1 + 0.2, "text": "back\\slash 'quoted' NULL"}


@action(pack="hostile")
async def noted() -> str:
    return str(current().context["scheduled_time"])


in_turn = from_yaml("""
workflow: hostile.in_turn
tasks:
  first: {action: shop.charge, input: {order: 1}}
  each: {action: hostile.narrow, with_items: "{{ [1, 2, 3] }}", input: {n: "{{ item }}"}, needs: [first]}
output: {n: "{{ tasks.each.result | map(attribute='n') | sum }}"}
""")
daily = Schedule("hostile.daily", action=noted, cron="0 12 * * *", timezone="Asia/Kathmandu")
DEFINITIONS = (*shop.ALL, narrow, noted, in_turn, daily)


OF_POOLER = ("statement_timeout", "transaction_timeout", "idle_session_timeout")
"""Settings that end PgBouncer's own statements and idle connections, before any of ours. Where a connection ends just as
PgBouncer names a client's settings on it, PgBouncer drops the client ("invalid server parameter")."""


async def through(
    database: str,
    broker: str | None,
    settings: Mapping[str, str],
    pooler: PgBouncer | None = None,
    schema: str = "penstock",
) -> None:
    """Migrate, play the flow, and look at what it leaves, in sessions of a role and a database that have these settings."""
    if pooler is not None:
        settings = {name: value for name, value in settings.items() if name not in OF_POOLER}
    async with tenant(database, schema, settings) as it:
        await migrate.upgrade(Settings(database_url=SecretStr(it.address), database_schema=schema))
        address = it.address if pooler is None else pooler.dsn(it.database)
        async with Installation(
            address, broker, database_schema=schema, database_pooler=pooler is not None
        ) as house:
            await play(house)
            await settle(house, it.control)


async def play(house: Installation) -> None:
    """Start the services, let everything run once, and compare the results with what an ordinary session gives."""
    await house.start(*DEFINITIONS)
    client = house.client
    narrow_ids = await client.start_many("hostile.narrow", [{"n": n} for n in range(8)])
    retried = await client.start("shop.flaky", {"failures": 1})
    deferred = await client.start("shop.later")
    workflow = await client.start("hostile.in_turn")
    await client.publish("shop.order_placed", {"id": 7, "amount": 500.25})
    late = await client.start("shop.slow", {"seconds": 60})
    results = await asyncio.gather(*(client.result(id, timeout=60) for id in narrow_ids))
    assert sorted(result["n"] for result in results) == list(range(8))
    assert {(result["exact"], result["text"]) for result in results} == {
        (0.1 + 0.2, "back\\slash 'quoted' NULL")
    }
    assert await client.result(retried, timeout=60) == 2
    assert await client.result(deferred, timeout=60) == "page 7"
    assert await client.result(workflow, timeout=60) == {"n": 6}
    await house.until("select from execution where id = $1 and status = 'timeout'", late, seconds=60)
    await house.until("select from enforcement where rule = 'shop.big_orders'", seconds=60)
    fire = await client.schedules.run("hostile.daily")
    noted_at = datetime.fromisoformat(await client.result(started_by(fire), timeout=60))
    assert noted_at == fire.due_at
    assert noted_at.utcoffset() == timedelta(hours=5, minutes=45)


async def settle(house: Installation, control: asyncpg.Connection[Any]) -> None:
    """Check that nothing is left open, that no invariant is violated, and that partitions begin and end at midnight in UTC."""
    await house.quiet(60)
    await house.sound()
    findings = await doctor.examine(house.settings())
    bad = [
        finding for finding in findings if finding.state == "bad" and finding.what != "durability"
    ]  # of tests
    assert not bad, bad
    bounds = await control.fetch("""
        select c.relname as name, pg_get_expr(c.relpartbound, c.oid) as bound
        from pg_class c join pg_inherits i on i.inhrelid = c.oid
        join pg_partitioned_table p on p.partrelid = i.inhparent
        where c.relname ~ '_[0-9]{8}$'""")
    assert len(bounds) >= 6
    for row in bounds:
        day = datetime.strptime(row["name"][-8:], "%Y%m%d").replace(tzinfo=UTC)
        begin, end = (f"'{one:%Y-%m-%d} 00:00:00+00'" for one in (day, day + timedelta(days=1)))
        assert row["bound"] == f"FOR VALUES FROM ({begin}) TO ({end})", row
