"""Servers that are not Penstock's alone: a pooler before the database, a schema of its own, a prefix on the broker."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import urlsplit

import pytest
from pydantic import SecretStr

from penstock.settings import Settings
from penstock.store.schema import migrate
from tests.flows import shop
from tests.flows.installation import Installation
from tests.servers.pgbouncer import PgBouncer


async def test_everything_works_behind_a_transaction_pooler(
    database: str, broker: str | None, pgbouncer: PgBouncer
) -> None:
    pooled = pgbouncer.dsn(urlsplit(database).path.lstrip("/"))
    async with Installation(pooled, broker, database_pooler=True) as house:
        await house.start(*shop.ALL)
        assert await house.client.run("shop.flaky", {"failures": 1}, timeout=30) == 2
        await house.client.publish("shop.order_placed", {"id": 7, "amount": 500})
        await house.until("select 1 from enforcement")
        ids = await house.client.start_many("shop.charge", [{"order": n} for n in range(200)])
        assert len(ids) == 200
        await house.quiet()
        await house.sound()


async def test_an_installation_may_have_a_schema_of_its_own(empty_database: str, broker: str | None) -> None:
    for schema in ("blue", "green"):
        await migrate.upgrade(Settings(database_url=SecretStr(empty_database), database_schema=schema))
    async with Installation(empty_database, broker, database_schema="blue", prefix="blue") as house:
        await house.start(*shop.ALL)
        assert await house.client.run("shop.count", {"words": "a b"}, timeout=30) == 2
        assert (await house.rows("select count(*) as n from green.execution"))[0]["n"] == 0
        await house.sound()


@pytest.mark.parametrize("transport", ["rabbitmq"], indirect=True)
async def test_two_installations_share_a_broker_by_their_prefixes(
    make_house: Callable[..., Installation], empty_database: str
) -> None:
    await migrate.upgrade(Settings(database_url=SecretStr(empty_database)))
    async with (
        make_house(prefix="one") as first,
        make_house(prefix="two", database_url=SecretStr(empty_database)) as two,
    ):
        await first.start(*shop.ALL)
        await two.start(*shop.ALL)
        assert await first.client.run("shop.count", {"words": "a b"}, timeout=30) == 2
        assert await two.client.run("shop.count", {"words": "a b c"}, timeout=30) == 3
        assert await first.statuses() == await two.statuses() == {"completed": 1}
