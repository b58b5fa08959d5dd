"""A client of a database without tables names the command that creates them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import asyncpg
import pytest
from pydantic import SecretStr

from penstock import Client, SyncClient
from penstock.errors import NotMigrated
from penstock.language.terms.ids import new_id
from penstock.settings import Settings

CALLS: dict[str, Callable[[Client], Awaitable[Any]]] = {
    "start": lambda client: client.start("shop.charge", {"order": 1}),
    "start with a key": lambda client: client.start("shop.charge", {"order": 1}, key="order-1"),
    "start_many": lambda client: client.start_many("shop.charge", [{"order": 1}]),
    "publish": lambda client: client.publish("shop.paid", {"order": 1}),
    "result": lambda client: client.result(new_id(), timeout=20),
    "get": lambda client: client.get(new_id()),
    "cancel": lambda client: client.cancel(new_id()),
    "signal": lambda client: client.signal(new_id(), "paid", 1),
    "why": lambda client: client.why(new_id()),
    "schedules": lambda client: client.schedules.all(),
}


def no_tables(database: str) -> Settings:
    return Settings(database_url=SecretStr(database), broker_url=None)


def refused() -> Any:
    return pytest.raises(NotMigrated, match=r"no schema that this version of Penstock knows .*does not exist")


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS.keys())
async def test_call_without_tables_names_the_remedy(
    empty_database: str, call: Callable[[Client], Awaitable[Any]]
) -> None:
    async with Client.connect(no_tables(empty_database)) as client, asyncio.timeout(30):
        with refused() as error:
            await call(client)
    assert "penstock migrate" in str(error.value.hint)


async def test_start_in_the_transaction_of_the_caller_names_the_remedy(empty_database: str) -> None:
    connection = await asyncpg.connect(empty_database)
    try:
        async with Client.connect(no_tables(empty_database)) as client, asyncio.timeout(30):
            with refused():
                async with connection.transaction():
                    await client.start("shop.charge", {"order": 1}, connection=connection)
    finally:
        await connection.close()


def test_blocking_client_without_tables_names_the_remedy(empty_database: str) -> None:
    with SyncClient.connect(no_tables(empty_database)) as client, refused():
        client.start("shop.charge", {"order": 1})
