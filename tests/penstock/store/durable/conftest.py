"""Durable functions for each test."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from pydantic import SecretStr

from penstock.settings import Settings
from penstock.store.session.database import Database
from tests.penstock.store.durable.functions import Functions


@pytest.fixture
async def stand(database: str) -> AsyncIterator[Functions]:
    home = Database(Settings(database_url=SecretStr(database)), role="test")
    yield await Functions(home).prepare()
    await home.close()
