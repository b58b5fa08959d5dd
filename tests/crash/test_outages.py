"""PostgreSQL and RabbitMQ go away under load and come back: everything goes on by itself."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from pydantic import SecretStr

from penstock.errors import PenstockError
from penstock.settings import Settings
from penstock.store.schema import migrate
from tests.flows import shop
from tests.flows.installation import Installation
from tests.servers.postgres import Postgres
from tests.servers.rabbitmq import RabbitMQ

COUNT = 300


async def feed(house: Installation, outage: Callable[[], Any]) -> None:
    """Start executions one after the other, each under a key, with an outage in the middle, until it is over; a caller
    that gets an error tries again with the same key, as callers do."""
    for n in range(COUNT):
        if n == COUNT // 3:
            outage_end = asyncio.get_running_loop().run_in_executor(None, outage)
        while True:
            try:
                await house.client.start("shop.sturdy", {"n": n}, key=f"order-{n}")
                break
            except (PenstockError, OSError):
                await asyncio.sleep(0.2)
        await asyncio.sleep(0.01)
    await outage_end


async def everything_completed(house: Installation) -> None:
    await house.until(
        "select 1 where not exists (select from execution where finished_at is null)", seconds=60
    )
    assert await house.statuses() == {"completed": COUNT}
    await house.sound()


async def test_the_broker_is_restarted_under_load(
    database: str, private_rabbitmq: Callable[[], RabbitMQ]
) -> None:
    server = await asyncio.to_thread(private_rabbitmq)

    async with Installation(database, server.add_vhost("outage")) as house:
        await house.start(*shop.ALL, shop.sturdy)
        await feed(house, server.restart)
        await everything_completed(house)


async def test_the_broker_loses_everything_and_the_work_is_staged_again(
    database: str, private_rabbitmq: Callable[[], RabbitMQ]
) -> None:
    server = await asyncio.to_thread(private_rabbitmq)

    def outage() -> None:
        server.wipe()
        server.add_vhost("outage")

    async with Installation(database, server.add_vhost("outage")) as house:
        await house.start(*shop.ALL, shop.sturdy)
        await feed(house, outage)
        await everything_completed(house)


async def test_postgresql_is_restarted_under_load(private_postgres: Callable[[], Postgres]) -> None:
    server = await asyncio.to_thread(private_postgres)
    url = server.dsn("postgres")
    await migrate.upgrade(Settings(database_url=SecretStr(url)))

    async with Installation(url, None) as house:
        await house.start(*shop.ALL, shop.sturdy)
        await feed(house, server.restart)
        await everything_completed(house)
