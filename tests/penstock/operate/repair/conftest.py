"""An installation to be damaged, in which nothing runs yet."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from penstock.service.assembly import Parts
from tests.flows import shop
from tests.flows.installation import Installation
from tests.penstock.operate.repair.damage import alone, ask


@pytest.fixture
async def house(database: str) -> AsyncIterator[Installation]:
    async with Installation(database, None) as house:
        await house.apply(*shop.ALL, alone, ask)
        yield house


@pytest.fixture
async def parts(house: Installation) -> Parts:
    return await house.parts()
