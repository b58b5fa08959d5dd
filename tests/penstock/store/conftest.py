from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from pydantic import SecretStr

from penstock.settings import Settings
from penstock.store.session.database import Database
from tests.penstock.store.race_scene import Scene
from tests.penstock.store.stand import Stand


@pytest.fixture
async def scene(database: str) -> AsyncIterator[Scene]:
    home = Database(Settings(database_url=SecretStr(database)), role="test")
    made = Scene(home)
    await made.prepare()
    yield made
    await home.close()


@pytest.fixture
async def stand(database: str) -> AsyncIterator[Stand]:
    home = Database(Settings(database_url=SecretStr(database)), role="test")
    yield await Stand(home).prepare()
    await home.close()
