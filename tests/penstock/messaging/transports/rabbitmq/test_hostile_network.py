"""Between a replica and its broker stands something that accepts connections and closes, resets or forgets them, after any
frame: replicas come back to their broker, each time, and every part of them.

PENSTOCK_TEST_CUTS=500 makes so many cuts, and `-s` prints how long replicas took to come back.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import random
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager
from urllib.parse import urlsplit

import pytest
import uvloop

from penstock.messaging.transports.rabbitmq import RabbitMQTransport
from tests.kit.hostile_proxy import Cut, HostileProxy, every_cut
from tests.penstock.messaging.transports.traffic import bodies, message, receive, until

CUTS = int(os.environ.get("PENSTOCK_TEST_CUTS", 60))
REPLICAS = 10
SECONDS = 1.5
"""How long a cut lasts at the most: until a connection has come to it, or so long."""
HUNG = 90.0
"""Seconds in which a replica finds out that a connection hangs which came as far as its channels: it has missed three heartbeats,
each of eleven seconds."""


class Replica:
    """A transport with all that a service has: consumers, a publisher, and an ear for broadcasts."""

    def __init__(self, url: str, number: int) -> None:
        self._url = url
        self._queue = f"work.r{number}"
        self.back: list[float] = []
        """Seconds that it took to be ready after each heal."""

    async def enter(self, stack: AsyncExitStack) -> None:
        port = urlsplit(self._url).port
        assert port is not None
        self.proxy = stack.enter_context(HostileProxy(port))
        self.transport = RabbitMQTransport(self.proxy.address(self._url))
        stack.push_async_callback(self.transport.close)
        await self.transport.open()
        self.subscription = await self.transport.subscribe(self._queue, 10)
        await self.transport.listen()

    async def suffers(self, cuts: list[Cut]) -> None:
        for cut in cuts:
            struck = self.proxy.struck
            self.proxy.cut(cut)
            # Now and then it is over before a connection came to it, or while one hangs in the middle of it.
            until_struck = asyncio.create_task(until(lambda before=struck: self.proxy.struck > before))
            await asyncio.wait([until_struck], timeout=SECONDS)
            until_struck.cancel()
            if random.random() < 0.3:
                await self.comes_back()
        await self.comes_back()

    async def comes_back(self) -> None:
        self.proxy.heal()
        began = time.monotonic()
        await until(lambda: self.transport.healthy)
        self.back.append(time.monotonic() - began)

    async def works(self) -> None:
        body = os.urandom(4).hex()

        async def taken() -> bool:
            return await self.transport.publish([message(body, queue=self._queue)]) == [True]

        await until(taken, HUNG)
        assert body in bodies(await receive(self.subscription, 1, ack=True, patience=HUNG))


@asynccontextmanager
async def replicas(url: str) -> AsyncIterator[list[Replica]]:
    async with AsyncExitStack() as stack:
        made = [Replica(url, number) for number in range(REPLICAS)]
        await asyncio.gather(*(replica.enter(stack) for replica in made))
        yield made


def on_uvloop(main: Callable[[], Coroutine[None, None, None]]) -> None:
    """Run as services do. A connection that ends as it begins is another error there than on asyncio's own loop."""
    with ThreadPoolExecutor(1) as pool:
        pool.submit(lambda: uvloop.run(main())).result()


def test_replicas_come_back_after_every_kind_of_cut(vhost: str) -> None:
    draw = random.Random(7)
    kinds = list(every_cut())
    draw.shuffle(kinds)
    cuts = list(itertools.islice(itertools.cycle(kinds), CUTS))

    async def main() -> None:
        async with replicas(vhost) as all:
            await asyncio.gather(*(r.suffers(cuts[n::REPLICAS]) for n, r in enumerate(all)))
            await asyncio.gather(*(replica.works() for replica in all))
            back = sorted(itertools.chain.from_iterable(replica.back for replica in all))
            struck = sum(replica.proxy.struck for replica in all)
            print(
                f"\n{CUTS} cuts, {struck} connections struck, {len(back)} times back; "
                f"p50 {back[len(back) // 2]:.1f} s, longest {back[-1]:.1f} s"
            )

    on_uvloop(main)


@pytest.mark.parametrize("cut", [Cut("close", 0), Cut("close", 1), Cut("reset", 3), Cut("hang", 4)], ids=str)
def test_replicas_come_back_from_one_kind(vhost: str, cut: Cut) -> None:
    """Seen in the field: a proxy that accepts and closes while the broker is away, and a reset while a channel opens."""

    async def main() -> None:
        async with replicas(vhost) as all:
            await asyncio.gather(*(replica.suffers([cut]) for replica in all))
            await asyncio.gather(*(replica.works() for replica in all))

    on_uvloop(main)


def test_every_frame_of_a_handshake_and_of_opening_a_channel_is_cut_at() -> None:
    kinds = set(every_cut())
    assert {Cut("close", 0), Cut("hang", 2), Cut("reset", 4), Cut("reset", 5, "up")} <= kinds
