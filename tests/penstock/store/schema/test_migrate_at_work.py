"""The schema is brought up to date while replicas are at work."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import pytest
from pydantic import SecretStr

from penstock.settings import Settings
from penstock.store.schema import functions, migrate
from penstock.store.session.database import Database


async def test_replicas_at_work_are_let_by_and_it_comes_to_its_turn(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its trigger needs a lock of `execution`, which a long transaction is in the way of: no other session waits for
    both."""
    settings = Settings(database_url=SecretStr(database))
    monkeypatch.setattr(migrate, "PATIENCE", "set lock_timeout = '50ms'")
    copy = shutil.copytree(functions.folder(), tmp_path / "migrations")
    monkeypatch.setattr(functions, "folder", lambda: copy)
    trigger = copy / "functions" / "executions" / "execution_moved.sql"
    trigger.write_text(trigger.read_text() + "-- As of the next release.\n")
    home = Database(settings, role="test")
    async with home.session().transaction() as work:
        await work.fetch("update execution set reason = 'none'")
        migrating = asyncio.create_task(migrate.upgrade(settings))
        for _ in range(20):
            await asyncio.sleep(0.05)
            async with home.session().transaction() as other:
                await other.fetch("set local statement_timeout = '20s'")
                await other.fetch("update execution set reason = 'none'")
        assert not migrating.done()
    await migrating
    assert not await migrate.missing(home.session().fetch)
    await home.close()
