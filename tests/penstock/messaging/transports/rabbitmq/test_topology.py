"""The topology: declarations, checks, and the message to the user when the broker disagrees."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import SimpleNamespace

import pika
import pika.exceptions
import pytest

from penstock.errors import ConfigurationError, ConnectionFailed
from penstock.messaging.transports import Delivery
from penstock.messaging.transports.rabbitmq import RabbitMQTransport
from penstock.messaging.transports.rabbitmq.connection import check_version
from tests.penstock.messaging.transports.broker import add_user, api, plain_pika
from tests.penstock.messaging.transports.traffic import QUEUE, bodies, message, nothing_comes, receive, until
from tests.servers.rabbitmq import RabbitMQ

Open = Callable[..., Awaitable[RabbitMQTransport]]


async def test_a_queue_with_other_arguments_is_named_with_the_way_out(on_broker: Open) -> None:
    first = await on_broker(delivery_limit=20)
    await first.declare(QUEUE)
    second = await on_broker(delivery_limit=20)
    second._topology._delivery_limit = 5
    with pytest.raises(ConfigurationError) as caught:
        await second.subscribe(QUEUE, 10)
    assert f"penstock.{QUEUE}" in caught.value.message
    assert "x-delivery-limit" in caught.value.message
    assert caught.value.hint is not None
    assert "PENSTOCK_DELIVERY_LIMIT" in caught.value.hint
    assert second.healthy  # nothing of the failed subscription is left


async def test_subscription_under_way_is_not_ready(on_broker: Open) -> None:
    transport = await on_broker()
    assert transport.healthy
    subscribing = asyncio.create_task(transport.subscribe(QUEUE, 10))
    while transport.healthy:
        assert not subscribing.done()
        await asyncio.sleep(0)
    await subscribing
    assert transport.healthy


async def test_changed_settings_are_refused_on_open(on_broker: Open) -> None:
    await on_broker(delivery_limit=20)
    with pytest.raises(ConfigurationError, match=r"penstock\.event\.received"):
        await on_broker(delivery_limit=10)


async def test_another_prefix_is_another_installation(on_broker: Open) -> None:
    ours, theirs = await on_broker(prefix="ours"), await on_broker(prefix="theirs", delivery_limit=7)
    subscription = await theirs.subscribe(QUEUE, 10)
    await ours.declare(QUEUE)
    assert await ours.publish([message("ours")]) == [True]
    assert await nothing_comes(subscription)


async def test_a_topology_declared_beforehand_needs_no_configure_permission(
    on_broker: Open, broker: RabbitMQ, request: pytest.FixtureRequest
) -> None:
    owner = await on_broker()
    await owner.declare(QUEUE)
    url = add_user(broker, "bystander", request.node.name, configure="^$")
    transport = await on_broker(url=url, declare=False)
    subscription = await transport.subscribe(QUEUE, 10)
    dead = await transport.subscribe("dead", 10)
    assert await transport.publish([message("a"), message("b")]) == [True, True]
    first, second = await receive(subscription, 2)
    await subscription.ack([first])
    await subscription.dead_letter([second], "bad")
    assert bodies(await receive(dead, 1)) == ["b"]
    listener = await transport.listen()  # which hears nothing: it may not have a queue
    await owner.broadcast(b"hello")
    assert await nothing_comes(listener)
    assert transport.healthy
    with pytest.raises(ConfigurationError, match=r"penstock\.work\.default") as caught:
        await transport.declare("work.default")
    assert caught.value.hint is not None
    assert "PENSTOCK_DECLARE_TOPOLOGY=true" in caught.value.hint


async def test_a_listener_needs_no_more_than_its_own_queue_names(
    on_broker: Open, broker: RabbitMQ, request: pytest.FixtureRequest
) -> None:
    owner = await on_broker()
    url = add_user(broker, "listener", request.node.name, configure=r"^penstock\.control\.")
    listener = await (await on_broker(url=url, declare=False)).listen()
    await owner.broadcast(b"hello")
    assert bodies(await receive(listener, 1)) == ["hello"]


async def test_declaring_without_permission_says_so(
    on_broker: Open, broker: RabbitMQ, request: pytest.FixtureRequest
) -> None:
    url = add_user(broker, "nobody", request.node.name, configure="^$")
    with pytest.raises(ConfigurationError) as caught:
        await on_broker(url=url)
    assert "secret" not in repr(caught.value)
    assert caught.value.hint is not None
    assert "permissions" in caught.value.hint


async def test_a_missing_topology_is_reported_not_made(on_broker: Open) -> None:
    with pytest.raises(ConfigurationError, match="the exchange penstock"):
        await on_broker(declare=False)


async def test_classic_queues_do_too(on_broker: Open) -> None:
    transport = await on_broker(queue_type="classic")
    subscription = await transport.subscribe(QUEUE, 10)
    dead = await transport.subscribe("dead", 10)
    assert await transport.publish([message("a"), message("b"), message(queue="none")]) == [True, True, False]
    first, second = await receive(subscription, 2)
    await subscription.ack([second])
    await subscription.dead_letter([first], "bad")
    assert bodies(await receive(dead, 1)) == ["a"]
    await dead.close()
    [again] = await receive(await transport.subscribe("dead", 10), 1)
    assert again.attempts == 1


async def test_a_virtual_host_that_is_not_there_is_named(broker: RabbitMQ) -> None:
    transport = RabbitMQTransport(broker.url("no-such-vhost"), connect_deadline=0.5)
    async with asyncio.timeout(30):
        with pytest.raises(ConnectionFailed, match="no-such-vhost"):
            await transport.open()
    await transport.close()


async def test_the_queues_are_quorum_queues_with_a_dead_letter_exchange(
    on_broker: Open, broker: RabbitMQ, request: pytest.FixtureRequest
) -> None:
    transport = await on_broker(delivery_limit=9)
    await transport.declare("work.default")
    with plain_pika(broker.url(request.node.name)) as channel:  # refused unless all arguments are the same
        channel.queue_declare(
            "penstock.work.default",
            durable=True,
            arguments={
                "x-queue-type": "quorum",
                "x-delivery-limit": 9,
                "x-dead-letter-exchange": "penstock.dead",
                "x-dead-letter-routing-key": "died.work.default",
                "x-dead-letter-strategy": "at-least-once",
                "x-overflow": "reject-publish",
            },
        )


def test_a_broker_that_is_too_old_is_refused() -> None:
    for version in ("3.9.29", "3.8.0"):
        with pytest.raises(ConfigurationError, match="too old"):
            check_version(SimpleNamespace(server_properties={"version": version}))  # type: ignore[arg-type]
    for version in ("3.10.0", "3.13.7", "4.0.5", "4.3.0-rc.1", "", "a fork"):
        check_version(SimpleNamespace(server_properties={"version": version}))  # type: ignore[arg-type]


@pytest.mark.parametrize("prefix", ["", "a b", "a/b", "x" * 61])
def test_a_prefix_that_makes_no_queue_name_is_refused(prefix: str) -> None:
    with pytest.raises(ConfigurationError, match="prefix"):
        RabbitMQTransport("amqp://localhost", prefix=prefix)


async def test_the_topology_in_the_documentation_is_the_one_that_is_asked_for(
    on_broker: Open, broker: RabbitMQ, request: pytest.FixtureRequest
) -> None:
    page = (Path(__file__).parents[5] / "docs" / "transports.md").read_text()
    definitions = json.loads(page.split("```json\n")[1].split("```")[0])
    api(broker, "POST", f"definitions/{request.node.name}", definitions)
    checking = await on_broker(declare=False)
    await checking.declare("work.default")
    declaring = await on_broker(declare=True)  # refused if an argument differed
    await declaring.declare("work.default")
    assert await checking.publish([message(queue="work.default")]) == [True]


@pytest.mark.parametrize(
    ("declare", "configure"), [(True, r"^penstock(\..*)?$"), (False, r"^penstock\.control\.")]
)
async def test_the_documented_permissions_are_enough(
    on_broker: Open, broker: RabbitMQ, request: pytest.FixtureRequest, declare: bool, configure: str
) -> None:
    page = (Path(__file__).parents[5] / "docs" / "transports.md").read_text()
    assert configure in page
    await (await on_broker()).declare("work.default")
    user = f"user-{declare}"
    url = add_user(broker, user, request.node.name, configure=configure, use=r"^penstock(\..*)?$")
    transport = await on_broker(url=url, declare=declare)
    subscription = await transport.subscribe("work.default", 5)
    dead, listener = await transport.subscribe("dead", 5), await transport.listen()
    assert await transport.publish([message(queue="work.default")]) == [True]
    await subscription.dead_letter(await receive(subscription, 1), "bad")
    await receive(dead, 1, ack=True)
    await transport.broadcast(b"hello")
    await receive(listener, 1)


async def test_a_binding_that_an_operator_deletes_is_made_again_when_something_comes_back(
    on_broker: Open, broker: RabbitMQ, request: pytest.FixtureRequest
) -> None:
    transport = await on_broker(topology_interval=600)
    subscription = await transport.subscribe(QUEUE, 10)
    with plain_pika(broker.url(request.node.name)) as channel:
        channel.queue_unbind(f"penstock.{QUEUE}", "penstock", QUEUE)
    assert await transport.publish([message("back")]) == [False]

    async def taken() -> bool:
        return await transport.publish([message("again")]) == [True]

    await until(taken)
    assert bodies(await receive(subscription, 1)) == ["again"]


async def test_whatever_an_operator_deletes_is_declared_again_though_nothing_reconnects(
    on_broker: Open, broker: RabbitMQ, request: pytest.FixtureRequest
) -> None:
    transport = await on_broker(topology_interval=0.2)
    events = await transport.subscribe("event.received", 10)
    dead, listener = await transport.subscribe("dead", 10), await transport.listen()
    url = broker.url(request.node.name)
    with plain_pika(url) as channel:
        channel.queue_unbind("penstock.event.received", "penstock.events", "#")
        channel.queue_unbind("penstock.dead", "penstock.dead", "#")
        for name in ("penstock.control", "penstock.status", "penstock"):
            channel.exchange_delete(name)

    async def routed() -> bool:
        try:
            with plain_pika(url) as channel:
                channel.confirm_delivery()
                channel.basic_publish("penstock.events", "a.b", b"event", mandatory=True)
        except pika.exceptions.AMQPError:
            return False
        return True

    await until(routed)
    [event] = await receive(events, 1)

    async def buried() -> bool:
        try:
            await events.dead_letter([event], "bad")
        except ConnectionFailed:
            return False
        return True

    await until(buried)
    assert bodies(await receive(dead, 1)) == ["event"]
    heard: list[Delivery] = []

    async def hear() -> None:
        heard.extend(await listener.receive(1))

    hearing = asyncio.create_task(hear())

    async def told() -> bool:
        await transport.broadcast(b"hello")
        return bool(heard)

    await until(told)
    await hearing


async def test_no_consumer_of_a_deleted_queue_is_forgotten(
    on_broker: Open, broker: RabbitMQ, request: pytest.FixtureRequest
) -> None:
    """However often replicas look whether it is there."""
    replicas = [await on_broker(topology_interval=0.05, watchdog_interval=600) for _ in range(3)]
    subscriptions = [await replica.subscribe(QUEUE, 1) for replica in replicas]
    with plain_pika(broker.url(request.node.name)) as channel:
        channel.queue_delete(f"penstock.{QUEUE}")

    async def taken() -> bool:
        return await replicas[0].publish([message("back")]) == [True]

    for _ in subscriptions:  # each holds one, so the next goes to another
        await until(taken)
    got = await asyncio.gather(*(receive(subscription, 1) for subscription in subscriptions))
    assert [bodies(deliveries) for deliveries in got] == [["back"]] * 3
