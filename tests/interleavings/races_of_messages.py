"""Whole flows of two executors and a worker, over a broker that does whatever a transport may do: drops, repeats, delays
and reorders messages, forgets what it confirmed. Consumers, publishers and relays are those that run in production."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, cast

from penstock.messaging import envelope
from penstock.messaging.consumer import Consumer, Route
from penstock.messaging.outbox import Publisher
from penstock.messaging.relay import relay
from penstock.messaging.transports import Delivery
from penstock.store.events import events
from penstock.store.outbox.queues import WORK
from penstock.store.session.database import Database, Session, retried
from penstock_executor.loops import recover_messages
from tests.interleavings.broker import Fickle, Settled
from tests.interleavings.case import (
    ACTIONS,
    LIMITED,
    Case,
    completed_once,
    each_ran_once,
    join,
    on_placed,
    one_execution,
    placed,
)
from tests.interleavings.races_of_flows import three_children
from tests.interleavings.scene import HANDLERS, Scene
from tests.interleavings.stage import Order, Work

ROUNDS = 40
"""Messages that a replica takes before it leaves the rest to the others."""
LOST = """
update execution set since = coalesce(since, ready_at) - interval '1 hour' where finished_at is null;
update live set restaged_at = restaged_at - interval '1 hour';
update execution set finished_at = finished_at - interval '1 hour' where finished_at is not null;
update unmatched set since = since - interval '1 hour'
"""
"""An hour goes by."""


class Only:
    """A database with one session."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def session(self, **_: Any) -> Session:
        return self._session


def replica(
    broker: Fickle, queues: Sequence[str], handle: Callable[[Publisher, list[Delivery]], Any]
) -> Work:
    """Takes messages and publishes what follows, and what others have left in the outbox, until it sees no more."""

    async def work(session: Session) -> None:
        publisher = Publisher(broker, cast(Database, Only(session)))
        idle = 0
        for _ in range(ROUNDS):
            deliveries = broker.next(queues)
            if deliveries:
                await handle(publisher, deliveries)
                await publisher.flush()
            moved = await retried(lambda: relay(broker, session, 0.0))
            idle = 0 if deliveries or moved else idle + 1
            if idle > 2 and not broker.holds(queues):
                return

    return work


def executor(broker: Fickle, scene: Scene) -> Work:
    async def work(session: Session) -> None:
        async def handle(publisher: Publisher, deliveries: list[Delivery]) -> None:
            queue = deliveries[0].queue
            consumer = Consumer(
                Route(queue, HANDLERS[queue]),
                broker,
                cast(Database, Only(session)),
                publisher,
                scene.parts.metrics,
                batch=2,
            )
            consumer._subscription = Settled(queue)
            await consumer._take(deliveries)
            assert not consumer._subscription.dead, consumer._subscription.dead

        await replica(broker, tuple(HANDLERS), handle)(session)

    return work


def worker(broker: Fickle, scene: Scene) -> Work:
    async def work(session: Session) -> None:
        async def handle(publisher: Publisher, deliveries: list[Delivery]) -> None:
            for delivery in deliveries:
                ids = await scene.claims(envelope.decode(delivery.body).ids, take=2)(session)
                if ids:
                    await scene.finishes(ids)(session)

        await replica(broker, [f"{WORK}default"], handle)(session)

    return work


def flow(
    begin: Callable[[Scene], Awaitable[None]], loses: float
) -> Callable[[Scene], Awaitable[Sequence[Work]]]:
    async def prepare(scene: Scene) -> Sequence[Work]:
        scene.broker = broker = Fickle(random.Random(scene.draw.random()), loses)
        await begin(scene)
        return [executor(broker, scene), executor(broker, scene), worker(broker, scene)]

    return prepare


async def restaged(scene: Scene) -> None:
    """Restage the messages that the broker has lost, a while later."""
    for _ in range(12):
        await scene.play_out()
        if not await scene.session.fetch(
            "select 1 where exists (select from execution where finished_at is null) or exists (select from unmatched)"
        ):
            return
        async with scene.session.transaction() as tx:
            await tx.execute(LOST)
        while await recover_messages.turn(scene.parts, scene.session):
            pass


async def limited(scene: Scene) -> None:
    await scene.submit("shop.charge", count=3)


async def a_join(scene: Scene) -> None:
    await scene.submit("shop.join")


async def an_event(scene: Scene) -> None:
    async with scene.session.transaction() as tx:
        await events.store(tx, [events.NewEvent("shop.placed", "public", "{}", "x", "m", "d")], matched=False)


async def limits_held(scene: Scene, order: Order) -> None:
    await each_ran_once(scene, order)
    await completed_once(scene, order)


CASES = tuple(
    Case(name + (", some lost" if loses else ""), flow(begin, loses), check, definitions, restaged)
    for loses in (0.0, 0.2)
    for name, begin, check, definitions in (
        ("messages of three under a limit", limited, limits_held, LIMITED),
        ("messages of a join", a_join, three_children, (*ACTIONS, join)),
        ("messages of an event", an_event, one_execution, (*ACTIONS, placed, on_placed)),
    )
)
