"""`penstock doctor`: what is wrong, and what to do."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

import asyncpg
import pytest
from pydantic import SecretStr

from tests.flows import shop
from tests.flows.installation import Installation
from tests.penstock.cli.commands import penstock
from tests.servers import databases

SPARED = """
select 1 from pg_stat_activity where datname = current_database() and application_name ~ '^(executor|worker):'
having count(*) < $1
"""
"""The first one has given back what it needs no more now that there is a second."""


async def findings(*, code: int | None = None) -> dict[str, Any]:
    """By what was looked at. The code is not known where it depends on the server that the tests were given, which
    may have autovacuum off."""
    said = await penstock("doctor", "--json")
    assert code in (None, said.code), said
    return {found["what"]: found for found in said.documents}


def unwell(found: dict[str, Any]) -> set[str]:
    return {what for what, one in found.items() if one["state"] != "ok"}


async def test_every_finding_that_is_not_ok_has_a_fix(house: Installation) -> None:
    found = [one for one in (await penstock("doctor", "--json")).documents if one["state"] != "ok"]
    assert found
    assert all(one["fix"] for one in found)
    said = await penstock("doctor")
    assert all(one["fix"] in said.out for one in found)


async def test_it_counts_live_services(house: Installation) -> None:
    nobody = await findings()
    assert {"executors", "workers"} <= unwell(nobody)
    await house.start(*shop.ALL)
    await house.until("select 1 from process having count(*) = 2")
    somebody = await findings()
    assert somebody["executors"]["says"] == "1 alive"
    assert not {"executors", "workers", "schema", "clocks", "postgresql", "transport"} & unwell(somebody)


async def test_it_sees_work_that_no_worker_can_do(house: Installation) -> None:
    await house.apply(*shop.ALL)
    await house.executor()
    await house.client.start("shop.charge", {"order": 1})
    await house.until("select 1 from execution where status = 'scheduled'")
    found = await findings(code=1)
    assert found["work.default"]["state"] == "bad"
    assert "penstock worker" in found["work.default"]["fix"]


async def test_it_sees_that_the_workers_of_a_route_differ(house: Installation) -> None:
    await house.apply(*shop.ALL)
    await house.worker(shop.charge, shop.count)
    await house.worker(shop.charge, shop.count)
    await house.until("select 1 from process having count(*) = 2")
    assert "workers of default" not in await findings()
    await house.worker(shop.charge, labels="gpu=a100")
    await house.until("select 1 from process having count(*) = 3")
    found = (await findings())["workers of default"]
    assert found["state"] == "warning"
    assert found["says"] == "its workers differ: 2 of 3 have shop.count, 1 of 3 have the labels gpu=a100"


async def test_it_sees_dead_letters_and_messages_that_were_not_sent(house: Installation) -> None:
    await house.rows(
        "insert into dead_letter (id, queue, reason, body, fingerprint) "
        "values (gen_random_uuid(), 'event.received', 'unknown trigger', '', 'f')"
    )
    await house.rows(
        "insert into outbox (queue, ids, created_at) values ('event.created', '{}', now() - interval '1 hour')"
    )
    found = await findings()
    assert "dead-letters counts" in found["dead letters"]["fix"]
    assert found["outbox event.created"]["state"] == "warning"
    await house.rows(
        "insert into outbox (queue, ids, created_at) values ('event.received', '{}', now() - interval '1 hour')"
    )
    fix = found["outbox event.created"]["fix"]
    said = (await penstock("doctor")).out
    assert said.count(fix) == 1
    assert f"outbox event.created, outbox event.received: {fix}" in said


async def test_it_sees_missing_partitions_and_rows_outside_of_them(house: Installation) -> None:
    today = f"history_{datetime.now(UTC):%Y%m%d}"
    await house.rows(f"drop table {today}")
    await house.rows(
        "insert into history (execution_id, at, new, attempt) values (gen_random_uuid(), now(), 'requested', 0)"
    )
    found = await findings(code=1)
    assert today in found["partitions"]["says"]
    assert "history_default" in found["default partitions"]["says"]


async def test_it_sees_long_transactions(house: Installation, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.operate.doctor.postgres.LONG", 0.0)
    url = house.settings().database_url
    assert url is not None
    other = await asyncpg.connect(url.get_secret_value(), server_settings={"application_name": "dawdler"})
    transaction = other.transaction()
    await transaction.start()
    await other.execute("select 1")
    await asyncio.sleep(0.01)
    found = await findings()
    await transaction.rollback()
    await other.close()
    assert "dawdler" in found["long transactions"]["says"]


@pytest.mark.parametrize(
    ("connections", "state", "says"),
    [
        (6, "ok", " of 6 connections are in use"),
        (
            5,
            "warning",
            "2 executors and workers need 4 of them, and other programs have 0. "
            "Another executor or worker needs 2, and only 1 would be free",
        ),
    ],
)
async def test_it_sees_whether_one_service_more_would_have_its_connections(
    house: Installation,
    database: str,
    monkeypatch: pytest.MonkeyPatch,
    connections: int,
    state: str,
    says: str,
) -> None:
    async with databases.limited(database, connections) as url:
        await house.apply(*shop.ALL)
        stops = [
            await house.executor(database_url=SecretStr(url)),
            await house.worker(*shop.ALL, database_url=SecretStr(url)),
        ]
        await house.until("select 1 from process having count(*) = 2")
        await house.until(SPARED, connections)
        monkeypatch.setenv("PENSTOCK_DATABASE_URL", url)
        found = (await findings())["connections"]
        assert found["state"] == state
        assert says in found["says"]
        assert state == "ok" or {"max_connections", "PgBouncer", "(PENSTOCK_DATABASE_CONNECTIONS)."} <= set(
            found["fix"].split()
        )
        for stop in stops:
            await house.ended(stop)


async def test_it_sees_that_live_services_need_more_connections(
    house: Installation, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await house.rows(
        "insert into process (id, kind, name) select gen_random_uuid(), 'worker', 'w' from generate_series(1, 3)"
    )
    async with databases.limited(database, 5) as url:
        monkeypatch.setenv("PENSTOCK_DATABASE_URL", url)
        found = (await findings(code=1))["connections"]
    assert found["state"] == "bad"
    assert (
        "3 executors and workers need 6 of them, and other programs have 0, and 1 more are needed"
        in found["says"]
    )


async def test_a_database_without_a_schema_is_to_be_migrated(
    empty_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PENSTOCK_DATABASE_URL", empty_database)
    found = await findings(code=1)
    assert found["schema"]["fix"] == "Run `penstock migrate`."


@pytest.mark.parametrize(
    ("url", "fix"),
    [
        ("postgresql://me@127.0.0.1:1/x", "Start PostgreSQL"),
        ("not a url", "Write postgresql://"),
    ],
)
async def test_a_server_that_does_not_answer_is_a_finding(
    url: str, fix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PENSTOCK_DATABASE_URL", url)
    found = await findings(code=1)
    assert fix in found["postgresql"]["fix"]


async def test_a_database_that_does_not_exist_is_to_be_created(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PENSTOCK_DATABASE_URL", f"{database}_gone")
    assert "createdb" in (await findings(code=1))["postgresql"]["fix"]


async def test_rabbitmq_is_looked_at_too(database: str, vhost: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PENSTOCK_DATABASE_URL", database)
    monkeypatch.setenv("PENSTOCK_BROKER_URL", vhost)
    bare = await findings(code=1)
    assert "Start an executor" in bare["rabbitmq"]["fix"]
    async with Installation(database, vhost) as house:
        await house.executor()
        await house.until("select 1 from process")
        found = await findings()
        assert not {"rabbitmq", "queues"} & unwell(found)
    monkeypatch.setenv("PENSTOCK_BROKER_URL", "amqp://guest:wrong@127.0.0.1:1/")
    monkeypatch.setattr("penstock.operate.doctor.broker.DEADLINE", 0.5)
    assert (await findings(code=1))["rabbitmq"]["state"] == "bad"
