"""A channel that takes nothing, though its queue is well, is given up. RabbitMQ has such channels: those that are opened
between the death of a queue's leader and the election of the next one (seen with 3.10.8)."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

import pytest

from penstock.messaging.transports.rabbitmq import RabbitMQTransport
from penstock.messaging.transports.rabbitmq.channel_refusals import LATEST, SOON, Refusals
from tests.kit.hostile_proxy import Direction, HostileProxy
from tests.penstock.messaging.transports.broker import short_of_memory
from tests.penstock.messaging.transports.traffic import QUEUE, message, until
from tests.servers.rabbitmq import RabbitMQ

Open = Callable[..., Awaitable[RabbitMQTransport]]

METHOD = 1
CONFIRM_SELECT, CLOSE, ACK, NACK = (85, 10), (20, 40), (60, 80), (60, 120)


def method(frame: bytes) -> tuple[int, int] | None:
    return (int.from_bytes(frame[7:9]), int.from_bytes(frame[9:11])) if frame[0] == METHOD else None


class SickChannel:
    """The first channel with confirms has its acks turned into refusals, or taken away, until it is closed."""

    def __init__(self, *, silent: bool) -> None:
        self._silent = silent
        self._which: tuple[int, bytes] | None = None
        self._closed = False
        self.kept = 0
        """Acks that it did not get."""

    def instead(self, connection: int, way: Direction, frame: bytes) -> bytes:
        which, what = (connection, frame[1:3]), method(frame)
        if way == "up" and what == CONFIRM_SELECT and self._which is None:
            self._which = which
        if which != self._which or self._closed:
            return frame
        if way == "up" and what == CLOSE:
            self._closed = True  # the next one may have its number
        if way == "down" and what == ACK:
            self.kept += 1
            return b"" if self._silent else frame[:9] + NACK[1].to_bytes(2) + frame[11:]
        return frame


@asynccontextmanager
async def through(url: str, sick: SickChannel) -> AsyncIterator[RabbitMQTransport]:
    port = urlsplit(url).port
    assert port is not None
    with HostileProxy(port, sick.instead) as proxy:
        transport = RabbitMQTransport(proxy.address(url), publish_timeout=1)
        try:
            await transport.open()
            await transport.declare(QUEUE)
            yield transport
        finally:
            await transport.close()


@pytest.mark.parametrize("silent", [False, True], ids=["refuses", "says nothing"])
async def test_a_channel_that_takes_nothing_is_given_up(vhost: str, silent: bool) -> None:
    sick = SickChannel(silent=silent)
    async with through(vhost, sick) as transport:
        again = message("again and again")

        async def taken() -> bool:
            return await transport.publish([again]) == [True]

        assert not await taken()
        await until(taken)
        assert sick.kept == 1
        assert await transport.publish([again, message("another")]) == [True, True]


async def test_a_blocked_broker_is_no_reason_to_give_a_channel_up(on_broker: Open, broker: RabbitMQ) -> None:
    transport = await on_broker(publish_timeout=10)  # a slow broker says within it that it blocks
    await transport.declare(QUEUE)
    assert await transport.publish([message("before")]) == [True]
    channel = transport._publisher._channel
    async with short_of_memory(broker):
        assert await transport.publish([message("late")]) == [False]

    async def taken() -> bool:
        return await transport.publish([message("after")]) == [True]

    await until(taken)
    assert transport._publisher._channel is channel


def test_a_queue_that_goes_on_refusing_counts_later_and_later(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.0
    monkeypatch.setattr("time.monotonic", lambda: now)
    refusals, at = Refusals(), []
    while now < 3000:
        if refusals.count({"full"}):
            at.append(now - 1000)
        now += 0.5
    waits = [after - before for before, after in itertools.pairwise(at)]
    assert waits[:4] == [SOON, 2 * SOON, 4 * SOON, 8 * SOON]
    assert waits[-1] == LATEST


def test_one_queue_that_takes_again_begins_anew_and_others_do_not() -> None:
    refusals = Refusals()
    assert refusals.count({"one", "other"})
    assert not refusals.count({"one", "other"})
    refusals.over({"one", "third"})
    assert not refusals.count({"other"})
    assert refusals.count({"one"})
    refusals.over({"one", "other"})
    assert not refusals
