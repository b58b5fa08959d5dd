"""Connections are lost, brokers die, queues vanish: consumers come back and what was confirmed is not lost."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable

import pytest

from penstock.errors import ConfigurationError, ConnectionFailed
from penstock.messaging.transports import Delivery
from penstock.messaging.transports.rabbitmq import RabbitMQTransport
from penstock.messaging.transports.rabbitmq.connection import FULL_HINT, connection_hint
from tests.penstock.messaging.transports.broker import drop_connections, plain_pika
from tests.penstock.messaging.transports.traffic import (
    QUEUE,
    bodies,
    message,
    nothing_comes,
    numbered,
    receive,
    until,
)
from tests.servers.process import free_port
from tests.servers.rabbitmq import RabbitMQ

Open = Callable[..., Awaitable[RabbitMQTransport]]


async def test_a_killed_broker_loses_nothing_that_it_confirmed(
    on_broker: Open, private_rabbitmq: Callable[[], RabbitMQ]
) -> None:
    broker = await asyncio.to_thread(
        private_rabbitmq
    )  # its own: once it was ended, 3.10 may stay in disorder
    transport = await on_broker(url=broker.url(), publish_timeout=5)
    subscription = await transport.subscribe(QUEUE, 50)
    confirmed: set[str] = set()
    got: set[str] = set()

    async def produce() -> None:
        for first in range(0, 2000, 20):
            waiting = {str(number): message(str(number)) for number in range(first, first + 20)}
            while waiting:
                taken = await transport.publish(list(waiting.values()))
                safe = [body for body, ok in zip(list(waiting), taken, strict=True) if ok]
                confirmed.update(safe)
                for body in safe:
                    del waiting[body]
                await asyncio.sleep(0.05 if waiting else 0)

    async def consume() -> None:
        while deliveries := await subscription.receive(50):
            got.update(bodies(deliveries))
            await subscription.ack(deliveries)

    # RabbitMQ writes down the election term of a new quorum queue some seconds late: killed before, the queue
    # never has a leader again (seen with 3.10.8).
    await asyncio.sleep(5)
    tasks = [asyncio.create_task(produce()), asyncio.create_task(consume())]
    await until(lambda: len(confirmed) >= 300)
    await asyncio.to_thread(broker.kill)
    await until(lambda: not transport.healthy)
    await asyncio.to_thread(broker.start)
    await asyncio.wait_for(tasks[0], 60)
    await until(lambda: got >= confirmed)
    tasks[1].cancel()
    assert len(confirmed) == 2000
    assert transport.healthy


async def test_a_dropped_connection_brings_consumers_and_listeners_back(
    on_broker: Open, broker: RabbitMQ
) -> None:
    transport = await on_broker(client="dropped")
    subscriptions = [await transport.subscribe(queue, 10) for queue in (QUEUE, "work.default")]
    listener = await transport.listen()

    async def both_dropped() -> bool:  # the broker lists a connection a few seconds after it came
        return await asyncio.to_thread(drop_connections, broker, "dropped") >= 2

    await until(both_dropped)
    await until(lambda: not transport.healthy)
    await until(lambda: transport.healthy)
    for subscription in subscriptions:
        assert await transport.publish([message("back", queue=subscription.queue)]) == [True]
        assert bodies(await receive(subscription, 1)) == ["back"]

    heard: list[Delivery] = []

    async def hear() -> None:
        heard.extend(await listener.receive(1))

    hearing = asyncio.create_task(hear())
    while not heard:  # the listener may be back a little later than the consumers
        await transport.broadcast(b"hello")
        await asyncio.sleep(0.1)
    await hearing


async def test_settling_a_delivery_of_a_lost_channel_changes_nothing(on_broker: Open) -> None:
    transport = await on_broker()
    subscription = await transport.subscribe(QUEUE, 10)
    await transport.publish(numbered(2))
    stale = await receive(subscription, 2)
    subscription.renew("the test says so")  # type: ignore[attr-defined]
    fresh = await receive(subscription, 2)
    assert [delivery.attempts for delivery in fresh] == [1, 1]
    await subscription.ack(stale)
    await subscription.dead_letter(stale, "stale")
    assert await transport.depth("dead") == 0
    await subscription.ack(fresh[:1])
    await subscription.close()
    again = await transport.subscribe(QUEUE, 10)
    assert bodies(await receive(again, 1)) == bodies(fresh[1:])
    assert await nothing_comes(again)


async def test_a_broker_that_comes_back_empty_gets_its_topology_again(
    on_broker: Open, private_rabbitmq: Callable[[], RabbitMQ]
) -> None:
    broker = await asyncio.to_thread(private_rabbitmq)
    transport = await on_broker(url=broker.url())
    subscription = await transport.subscribe(QUEUE, 10)
    await transport.declare("work.gpu")
    await asyncio.to_thread(broker.wipe)
    await until(lambda: transport.healthy)
    sent = [message("a"), message("b", queue="work.gpu"), message("c", queue="event.received")]
    assert await transport.publish(sent) == [True, True, True]
    assert bodies(await receive(subscription, 1)) == ["a"]


async def test_a_deleted_queue_is_declared_and_consumed_again(
    on_broker: Open, broker: RabbitMQ, request: pytest.FixtureRequest
) -> None:
    transport = await on_broker()
    subscription = await transport.subscribe(QUEUE, 10)
    with plain_pika(broker.url(request.node.name)) as channel:
        channel.queue_delete(f"penstock.{QUEUE}")

    async def arrives() -> bool:
        return await transport.publish([message("back")]) == [True]

    await until(arrives)
    assert bodies(await receive(subscription, 1)) == ["back"]


async def test_the_watchdog_finds_a_consumer_that_the_broker_forgot(on_broker: Open) -> None:
    transport = await on_broker(watchdog_interval=0.3)
    subscription = await transport.subscribe(QUEUE, 10)
    consumer = transport._consumers[0]
    assert consumer._channel is not None
    for tag in consumer._grants:
        await consumer._channel.basic_cancel(tag)  # behind its back: it believes that it consumes
    await transport.publish([message("unseen")])
    assert bodies(await receive(subscription, 1, ack=True)) == ["unseen"]


async def test_messages_that_never_arrive_make_it_unhealthy_until_they_do(
    on_broker: Open, broker: RabbitMQ, request: pytest.FixtureRequest
) -> None:
    await on_broker()
    with plain_pika(broker.url(request.node.name)) as channel:
        arguments = {"x-queue-type": "quorum", "x-single-active-consumer": True}
        channel.queue_declare(f"penstock.{QUEUE}", durable=True, arguments=arguments)
        channel.queue_bind(f"penstock.{QUEUE}", "penstock", QUEUE)
        channel.basic_qos(prefetch_count=1)
        channel.basic_consume(
            f"penstock.{QUEUE}", lambda *_: None
        )  # the one that gets them, and does nothing
        transport = await on_broker(declare=False, watchdog_interval=0.2)
        subscription = await transport.subscribe(QUEUE, 10)
        await transport.publish(numbered(3))
        await until(lambda: transport._consumers[0].stuck >= 2)
        assert not transport.healthy
    assert len(await receive(subscription, 3, ack=True)) == 3
    await until(lambda: transport.healthy)


async def test_an_idle_or_a_full_consumer_is_left_alone_by_the_watchdog(on_broker: Open) -> None:
    transport = await on_broker(watchdog_interval=0.05)
    full = await transport.subscribe(QUEUE, 2)
    await transport.subscribe("work.idle", 2)
    await transport.publish(numbered(5))
    held = await receive(full, 2)
    await asyncio.sleep(2)  # long enough for a second look to be taken
    await full.ack(held)
    assert [delivery.attempts for delivery in await receive(full, 2)] == [0, 0]
    assert transport.healthy


async def test_publishing_while_the_broker_is_down_says_so_at_once(
    on_broker: Open, private_rabbitmq: Callable[[], RabbitMQ]
) -> None:
    broker = await asyncio.to_thread(private_rabbitmq)
    transport = await on_broker(url=broker.url(), publish_timeout=600)
    subscription = await transport.subscribe(QUEUE, 10)
    await asyncio.to_thread(broker.stop)
    await until(lambda: not transport.healthy)

    async def refused() -> bool:
        return not any(await transport.publish(numbered(3)))

    await until(refused)
    with pytest.raises(ConnectionFailed):
        await transport.depth(QUEUE)
    async with asyncio.timeout(30):
        await subscription.resize(3)
        await subscription.close()
        await transport.close()


async def test_a_broker_that_is_not_there_is_reported_after_the_deadline() -> None:
    transport = RabbitMQTransport(f"amqp://me:hidden@127.0.0.1:{free_port()}/v", connect_deadline=0.5)
    with pytest.raises(ConnectionFailed) as caught:
        await transport.open()
    assert "127.0.0.1" in caught.value.message
    assert "hidden" not in str(caught.value)
    assert caught.value.hint
    assert not transport.healthy
    await transport.close()


async def test_the_second_address_is_used_when_the_first_does_not_answer(
    on_broker: Open, broker: RabbitMQ, request: pytest.FixtureRequest
) -> None:
    dead = f"amqp://guest:guest@127.0.0.1:{free_port()}/"
    transport = await on_broker(url=f"{dead},{broker.url(request.node.name)}")
    assert transport.healthy


async def test_no_task_is_left_behind(on_broker: Open, broker: RabbitMQ) -> None:
    before = asyncio.all_tasks()
    transport = await on_broker()
    await transport.subscribe(QUEUE, 5)
    await transport.listen()
    await transport.publish(numbered(3))
    await transport.close()
    with contextlib.suppress(TimeoutError):
        await until(lambda: asyncio.all_tasks() <= before)
    assert asyncio.all_tasks() <= before


async def test_a_password_that_is_wrong_is_said_at_once_and_not_shown(
    broker: RabbitMQ,
) -> None:
    url = broker.url("/").replace("guest:guest", "guest:hunter2")
    transport = RabbitMQTransport(url, connect_deadline=600)
    async with asyncio.timeout(30):
        with pytest.raises(ConfigurationError, match="refused the user name or password") as caught:
            await transport.open()
    assert "hunter2" not in repr(caught.value)


@pytest.mark.parametrize(
    ("failure", "hint"),
    [
        ("localhost: NOT_ALLOWED - access to vhost '/' refused for user 'x'", "rabbitmqctl set_permissions"),
        ("localhost: NOT_ALLOWED - vhost missing not found", "Check that RabbitMQ runs"),
        ("localhost: connection per user limit", FULL_HINT),
    ],
)
def test_hint_names_the_rights_of_a_user_without_any(failure: str, hint: str) -> None:
    assert hint in connection_hint([failure])


async def test_reader_that_is_stuck_uses_up_no_deliveries(on_broker: Open) -> None:
    """The reader is stuck as while PostgreSQL does not answer and connections to the broker are lost again and again."""
    transport = await on_broker(delivery_limit=2)
    subscription = await transport.subscribe(QUEUE, 10)
    assert await transport.publish([message("innocent")]) == [True]
    assert bodies(await receive(subscription, 1)) == ["innocent"]

    async def waits_in_the_queue() -> bool:
        return await transport.depth(QUEUE) == 1

    for _ in range(5):
        channel = subscription._channel  # type: ignore[attr-defined]
        subscription.renew("cut")  # type: ignore[attr-defined]
        await until(lambda channel=channel: subscription._channel not in (None, channel))  # type: ignore[attr-defined]
        await until(waits_in_the_queue)
    [again] = await receive(subscription, 1)
    assert (again.body, again.attempts) == (b"innocent", 1)
    await subscription.ack([again])
    assert await transport.depth("dead") == 0
