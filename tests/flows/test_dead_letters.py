"""Dead letters of every kind, made by a real broker (and by PostgreSQL, where there is the like): kept with their reason,
and what stood for work ends, frees its slots and wakes its workflow."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from uuid import UUID

import pika
import pytest

from penstock import Limit, action
from penstock.client import dead_letters
from penstock.language.workflows import from_yaml
from penstock.messaging import envelope
from penstock.messaging.transports import Message
from penstock.store.outbox import queues
from penstock.store.outbox.dead_letters import LetterFilter
from penstock_executor.handlers.dead_letter import ROUNDS
from tests.flows import shop
from tests.flows.installation import Installation
from tests.flows.letters import letter, scheduled
from tests.penstock.messaging.transports.broker import plain_pika

QUEUE = "penstock.work.default"


@action(pack="shop", limits=[Limit(1)])
async def alone(n: int) -> int:
    return n


FLOW = from_yaml("""
workflow: shop.flow
tasks:
  one: {action: shop.charge, input: {order: 1}}
  two: {action: shop.charge, input: {order: 2}, needs: [one]}
""")


@pytest.fixture
async def waiting(house: Installation) -> Installation:
    """An executor runs, and no worker: work waits on its route."""
    await house.apply(*shop.ALL, alone, FLOW)
    await house.executor()
    return house


@pytest.fixture
async def cluster(database: str, vhost: str) -> AsyncIterator[Installation]:
    """Start the same on RabbitMQ, where the queue of the route exists already, and nothing is thought lost for a while."""
    async with Installation(database, vhost, restage_age=60, relay_age=60) as house:
        await house.apply(*shop.ALL, alone, FLOW)
        parts = await house.parts()
        for queue in ("execution.requested", "workflow.started", "execution.completed", "work.default"):
            await parts.transport.declare(queue)
        await house.executor()
        yield house


async def fails(house: Installation, id: UUID, reason: str) -> None:
    await house.until("select 1 from execution where id = $1 and status = 'failed'", id)
    row = await house.client.get(id)
    assert row.reason == f"dead letter: {reason}"
    assert not await house.rows("select 1 from slot where execution_id = $1", id)


async def test_an_undecodable_message_is_kept_and_stops_nothing(waiting: Installation) -> None:
    await waiting.worker(*shop.ALL)
    queues = ("execution.requested", "work.default")
    await waiting.put(*(Message(queue, b"\xff\0garbage", id=queue, type="?") for queue in queues))
    await waiting.until("select 1 from dead_letter having count(*) = 2")
    rows = await waiting.rows("select queue, reason, body from dead_letter order by queue")
    assert [row["queue"] for row in rows] == ["execution.requested", "work.default"]
    assert all("Undecodable: not an envelope of version 1" in row["reason"] for row in rows)
    assert all(row["body"] == b"\xff\0garbage" for row in rows)
    assert await waiting.client.run("shop.charge", {"order": 7}, timeout=20)
    await waiting.sound()


async def test_rejected_work_is_staged_again_and_keeps_its_slot(cluster: Installation, vhost: str) -> None:
    await cluster.worker(alone, routes="elsewhere")  # it has the action, and would not take it
    await cluster.until("update process set routes = '{default}' where kind = 'worker' returning 1")
    await cluster.rows("select notice_workers()")
    first = await scheduled(cluster, "shop.alone", n=1)
    second = await cluster.client.start("shop.alone", {"n": 2})
    await cluster.until("select 1 from execution where id = $1 and status = 'queued'", second)
    with plain_pika(vhost) as channel:
        method, _, body = next(channel.consume(QUEUE))
        assert envelope.decode(body).ids == [first]
        channel.basic_reject(method.delivery_tag, requeue=False)
    assert (await letter(cluster, "rejected"))["queue"] == "work.default"
    await cluster.until("select 1 from outbox where queue = 'work.default' and due_at > created_at")
    assert (await cluster.client.get(first)).status == "scheduled"
    assert (await cluster.client.get(second)).status == "queued"
    await cluster.sound()


async def test_expired_work_is_staged_again_and_its_workflow_goes_on(
    cluster: Installation, vhost: str
) -> None:
    flow = await cluster.client.start("shop.flow")
    [task] = await cluster.until("select id from execution where task = 'one' and status = 'scheduled'")
    await cluster.until("select 1 where not exists (select from outbox)")
    with plain_pika(vhost) as channel:
        while (message := channel.basic_get(QUEUE, auto_ack=True))[0] is None:
            channel.connection.sleep(0.05)
        # As a policy of the broker would have it: the same message, with a time to live.
        properties = pika.BasicProperties(expiration="1", delivery_mode=2, message_id="late", type="work")
        channel.basic_publish("penstock", "work.default", message[2], properties)
    assert (await letter(cluster, "expired"))["queue"] == "work.default"
    assert (await cluster.client.get(task["id"])).status == "scheduled"
    await cluster.worker(*shop.ALL)
    await cluster.executor(relay_age=0.3)
    await cluster.client.result(flow, timeout=30)
    await cluster.sound()


async def test_work_delivered_too_often_fails(cluster: Installation, vhost: str) -> None:
    id = await scheduled(cluster)
    await cluster.executor(relay_age=0.2)
    deliveries, limit = Counter[str](), cluster.settings().delivery_limit + 1
    while not await cluster.rows("select 1 from execution where id = $1 and status = 'failed'", id):
        with plain_pika(vhost) as channel:
            for method, properties, _ in channel.consume(QUEUE, inactivity_timeout=0.2):
                if method:
                    deliveries[properties.message_id] += 1
                break  # and dies with it
        assert len(deliveries) <= ROUNDS + 1
    await fails(cluster, id, "delivery_limit")
    # A busy relay may publish a message twice: both are delivered too often, and count as two rounds.
    assert min(deliveries.values()) >= limit
    assert sum(deliveries.values()) >= (ROUNDS + 1) * limit
    assert (await letter(cluster, "delivery_limit"))["queue"] == "work.default"
    await cluster.sound()


async def test_leased_too_often_is_staged_again_on_postgresql(database: str) -> None:
    async with Installation(database, None, restage_age=60) as house:
        await house.apply(*shop.ALL)
        await house.executor()
        id = await scheduled(house)
        parts = await house.parts()
        limit = house.settings().delivery_limit
        for _ in range(limit + 1):
            dying = await parts.transport.subscribe("work.default", 5)
            assert len(await dying.receive(5)) == 1
            await house.rows("update outbox set due_at = clock_timestamp() returning 1")  # its lease runs out
        last = await parts.transport.subscribe("work.default", 5)
        rows = await house.client.database.session().fetch("select tries from outbox")
        assert rows[0]["tries"] == limit + 1
        await house.worker(*shop.ALL)
        assert (await letter(house, "delivery_limit"))["queue"] == "work.default"
        assert await house.client.result(id, timeout=20) == {"order": 7, "charged": 0}
        await last.close()
        await house.sound()


async def test_one_of_several_is_singled_out_and_only_it_fails(waiting: Installation) -> None:
    ids = await waiting.client.start_many("shop.charge", [{"order": n} for n in range(3)])
    await waiting.until("select 1 from execution where status = 'scheduled' having count(*) = 3")
    await waiting.rows("select * from cancel_executions(array[$1::uuid], 'asked')", ids[2])
    await waiting.rows("delete from outbox returning 1")
    headers = {"x-penstock-reason": "delivery_limit", "x-penstock-queue": "work.default"}

    async def bury(id: str, which: list[UUID]) -> None:
        body = envelope.encode("work", which)
        await waiting.put(Message(queues.DEAD, body, id=id, type="work", headers=headers))

    await bury("all", ids)
    await waiting.until("select 1 from dead_letter")
    assert (await waiting.statuses()) == {"scheduled": 2, "cancelled": 1}
    for n in range(ROUNDS + 1):
        await bury(f"one-{n}", ids[:1])
    await fails(waiting, ids[0], "delivery_limit")
    await waiting.worker(*shop.ALL)
    assert await waiting.client.result(ids[1], timeout=20) == {"order": 1, "charged": 0}
    await waiting.sound()


@pytest.mark.parametrize("queue", ["work.default", "work.gone"])
async def test_replayed_work_goes_to_the_route_on_which_it_waits_now(
    waiting: Installation, queue: str
) -> None:
    """The route of an action may be renamed after its message died. No worker takes what is sent to the old one."""
    ids = [await scheduled(waiting) for _ in range(2)]
    await waiting.rows("select * from cancel_executions(array[$1::uuid], 'asked')", ids[1])
    await waiting.rows("delete from outbox returning 1")
    headers = {"x-penstock-reason": "rejected", "x-penstock-queue": queue}
    await waiting.put(
        Message(queues.DEAD, envelope.encode("work", ids), id="l", type="work", headers=headers)
    )
    await letter(waiting, "rejected")
    await waiting.rows("delete from outbox returning 1")
    [outcome] = [entry async for entry in dead_letters.replay(waiting.client, LetterFilter())]
    assert outcome.said == "1 on work.default; taken within seconds"
    assert not await waiting.rows("select from outbox where queue = 'work.gone'")
    await waiting.worker(*shop.ALL)
    assert await waiting.client.result(ids[0], timeout=20) == {"order": 7, "charged": 0}
    await waiting.until("select 1 where not exists (select from outbox)")
    await waiting.sound()


async def test_replay_of_work_that_runs_sends_nothing(waiting: Installation) -> None:
    id = await scheduled(waiting)
    headers = {"x-penstock-reason": "rejected", "x-penstock-queue": "work.default"}
    body = envelope.encode("work", [id])
    await waiting.put(Message(queues.DEAD, body, id="l", type="work", headers=headers))
    await letter(waiting, "rejected")
    await waiting.rows("update execution set status = 'running', attempt = 1 where id = $1 returning 1", id)
    await waiting.rows("delete from outbox returning 1")
    [outcome] = [entry async for entry in dead_letters.replay(waiting.client, LetterFilter())]
    assert outcome.said is not None
    assert outcome.said.startswith("nothing to send")
    assert not await waiting.rows("select from outbox")
    assert not await waiting.rows("select from dead_letter")


async def test_a_dead_letter_changes_nothing_that_went_on_meanwhile(waiting: Installation) -> None:
    await waiting.worker(*shop.ALL)
    id = await waiting.client.start("shop.charge", {"order": 7})
    await waiting.client.result(id, timeout=20)
    headers = {"x-penstock-reason": "rejected", "x-penstock-queue": "work.default"}
    body = envelope.encode("work", [id])
    await waiting.put(Message(queues.DEAD, body, id="old", type="work", headers=headers))
    await waiting.until("select 1 from dead_letter")
    assert (await waiting.client.get(id)).status == "completed"
    await waiting.sound()
