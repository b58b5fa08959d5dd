"""The transports under the contract, and brokers to be cruel to."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any

import pytest
from pydantic import SecretStr

from penstock.messaging.transports import Transport
from penstock.messaging.transports.postgres import PostgresTransport
from penstock.messaging.transports.rabbitmq import RabbitMQTransport
from penstock.settings import Settings
from penstock.store.session.database import Database
from tests.servers import choose
from tests.servers.rabbitmq import RabbitMQ

DELIVERY_LIMIT = 2
"""What every transport of the contract is made with."""

Make = Callable[[], Transport]
"""Makes one more transport, not open yet, of the same installation: as another process would."""


@pytest.fixture
def rabbitmq(vhost: str) -> Make:
    return lambda: RabbitMQTransport(vhost, delivery_limit=DELIVERY_LIMIT)


@pytest.fixture
async def postgres(database: str) -> AsyncIterator[Make]:
    home = Database(
        Settings(database_url=SecretStr(database), delivery_limit=DELIVERY_LIMIT, database_connections=100),
        role="test",
    )
    yield lambda: PostgresTransport(home)
    await home.close()


# A transport is under the contract once its name is in `params` and a fixture of that name gives its Make.
@pytest.fixture(params=["rabbitmq", "postgres"])
def make(request: pytest.FixtureRequest) -> Make:
    made: Make = request.getfixturevalue(request.param)
    return made


@pytest.fixture
async def connect(make: Make) -> AsyncIterator[Callable[[], Awaitable[Transport]]]:
    """Opens one more transport of the installation, and closes it after the test."""
    opened: list[Transport] = []

    async def open_one() -> Transport:
        transport = make()
        opened.append(transport)
        await transport.open()
        return transport

    yield open_one
    for transport in opened:
        await transport.close()


@pytest.fixture
async def transport(connect: Callable[[], Awaitable[Transport]]) -> Transport:
    return await connect()


@pytest.fixture(scope="session")
def broker() -> Iterator[RabbitMQ]:
    """A RabbitMQ for the tests of this folder alone, to block and to cut off. A test that ends a broker takes one of
    its own."""
    server = choose.private_rabbitmq()
    yield server
    server.close()


@pytest.fixture
async def on_broker(
    broker: RabbitMQ, request: pytest.FixtureRequest
) -> AsyncIterator[Callable[..., Awaitable[RabbitMQTransport]]]:
    """Opens transports on that broker, in a vhost of the test's own."""
    name = request.node.name
    url = broker.add_vhost(name)
    opened: list[RabbitMQTransport] = []

    async def open_one(**options: Any) -> RabbitMQTransport:
        transport = RabbitMQTransport(options.pop("url", url), **options)
        opened.append(transport)
        await transport.open()
        return transport

    yield open_one
    for transport in opened:
        await transport.close()
    broker.start()
    broker.drop_vhost(name)
