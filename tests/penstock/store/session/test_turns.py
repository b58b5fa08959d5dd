"""The turns of tasks on a session: one at a time, and none waits for itself."""

from __future__ import annotations

import asyncio

import pytest
from pydantic import SecretStr

from penstock.settings import Settings
from penstock.store.session.database import Database, Session


async def one(session: Session) -> int:
    [row] = await session.fetch("select 1 as one")
    return int(row["one"])


async def test_a_task_in_a_transaction_does_not_wait_for_itself(database: str) -> None:
    connected = Database(Settings(database_url=SecretStr(database)), role="test")
    session = connected.session()
    try:
        async with asyncio.timeout(30):
            async with session.transaction() as tx:
                with pytest.raises(RuntimeError, match="use the transaction"):
                    await session.fetch("select 1 as one")
                with pytest.raises(RuntimeError, match="use the transaction"):
                    async with session.transaction():
                        pass
                other = asyncio.create_task(one(session))
                await tx.fetch("select 1 as one")
                assert not other.done()
            assert await other == 1
            assert await one(session) == 1
    finally:
        await connected.close()
