"""Flows run on both transports, against real servers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from tests.flows.installation import Installation

Make = Callable[..., Installation]


@pytest.fixture(params=["postgres", "rabbitmq"])
def transport(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def broker(transport: str, request: pytest.FixtureRequest) -> str | None:
    url: str | None = request.getfixturevalue("vhost") if transport == "rabbitmq" else None
    return url


@pytest.fixture
async def house(database: str, broker: str | None) -> AsyncIterator[Installation]:
    """An installation with nothing running in it yet."""
    async with Installation(database, broker) as installation:
        yield installation


@pytest.fixture
def make_house(database: str, broker: str | None) -> Make:
    """Makes an installation with settings of one's own."""

    def make(**settings: Any) -> Installation:
        return Installation(database, broker, **settings)

    return make
