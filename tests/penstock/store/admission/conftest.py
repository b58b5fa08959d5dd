"""A desk for each test."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from pydantic import SecretStr

from penstock.settings import Settings
from penstock.store.session.database import Database
from tests.penstock.store.admission.desk import Desk


@pytest.fixture
async def desk(database: str) -> AsyncIterator[Desk]:
    home = Database(Settings(database_url=SecretStr(database)), role="test")
    yield Desk(home)
    await home.close()
