"""However many large messages wait, a consumer holds no more bytes than it may, and one message more."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from pydantic import SecretStr

from penstock.messaging.transports import Delivery, Subscription, Transport
from penstock.messaging.transports.postgres import PostgresTransport
from penstock.messaging.transports.rabbitmq import RabbitMQTransport
from penstock.messaging.transports.rabbitmq.prefetch import FIRST, GROWTH, Window
from penstock.settings import Settings
from penstock.store.session.database import Database
from tests.penstock.messaging.transports.conftest import Make
from tests.penstock.messaging.transports.traffic import PATIENCE, QUEUE, message, numbered, receive

MOST = 2**20
LARGE = MOST // 4


@pytest.fixture
def rabbitmq(vhost: str) -> Make:
    return lambda: RabbitMQTransport(vhost, prefetch_bytes=MOST)


@pytest.fixture
async def postgres(database: str) -> AsyncIterator[Make]:
    home = Database(Settings(database_url=SecretStr(database), prefetch_bytes=MOST), role="test")
    yield lambda: PostgresTransport(home)
    await home.close()


async def large(transport: Transport, count: int, size: int = LARGE) -> None:
    for number in range(count):
        assert all(await transport.publish([message(str(number).zfill(size))]))


async def all_that_comes(subscription: Subscription) -> list[Delivery]:
    """Return the messages that arrive, unsettled, until no more do."""
    held: list[Delivery] = []
    while True:
        try:
            async with asyncio.timeout(0.5 if held else PATIENCE):
                held += await subscription.receive(500)
        except TimeoutError:
            return held


async def held_at_once(subscription: Subscription, count: int) -> int:
    """Takes so many messages, and settles them when no more come; returns the most bytes that were held at a time."""
    got: list[Delivery] = []
    most = 0
    while len(got) < count:
        held = await all_that_comes(subscription)
        assert held, f"{len(got)} of {count} came"
        await subscription.ack(held)
        most = max(most, sum(len(delivery.body) for delivery in held))
        got += held
    assert sorted(int(delivery.body[-9:]) for delivery in got) == list(range(count))
    return most


async def test_waiting_messages_are_taken_as_far_as_there_is_room(transport: Transport) -> None:
    await transport.declare(QUEUE)
    await large(transport, 40)
    assert LARGE <= await held_at_once(await transport.subscribe(QUEUE, 500), 40) <= MOST + LARGE


async def test_one_that_is_larger_than_the_bound_comes_alone(transport: Transport) -> None:
    await transport.declare(QUEUE)
    await large(transport, 3, 2 * MOST)
    assert await held_at_once(await transport.subscribe(QUEUE, 500), 3) <= 2 * 2 * MOST


async def test_messages_that_grow_all_of_a_sudden_stay_within_the_bound(transport: Transport) -> None:
    subscription = await transport.subscribe(QUEUE, 500)
    for _ in range(6):
        assert all(await transport.publish(numbered(300)))
        await receive(subscription, 300, ack=True)
    await large(transport, 40)
    assert await held_at_once(subscription, 40) <= MOST + LARGE


def test_a_window_grows_while_messages_are_small_and_many() -> None:
    window = Window(MOST)
    window.settled([100])
    assert window.messages == FIRST
    window.settled([100] * FIRST)
    assert window.messages == GROWTH * FIRST
    window.arrived(LARGE)
    assert (window.messages, window.has_room) == (4, True)
    window.settled([LARGE] * 4)
    assert window.messages == 4
