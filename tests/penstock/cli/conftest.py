"""An installation on PostgreSQL alone that the commands find through the environment."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.flows.installation import Installation


@pytest.fixture
def named(database: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """A fresh database, named in the environment."""
    monkeypatch.setenv("PENSTOCK_DATABASE_URL", database)
    monkeypatch.delenv("PENSTOCK_BROKER_URL", raising=False)
    return database


@pytest.fixture
async def house(named: str) -> AsyncIterator[Installation]:
    """An installation with nothing running in it yet."""
    async with Installation(named, None) as installation:
        yield installation
