"""`penstock dead-letters`: see why, replay, drop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any
from uuid import uuid4

import pika
import pytest

from penstock import Trigger
from penstock.client.bulk import tally
from penstock.client.dead_letters import replay
from penstock.language.terms.ids import new_id
from penstock.messaging import dead_letters, envelope
from penstock.messaging.transports import QUEUE_HEADER, REASON_HEADER, Message
from penstock.store.outbox import queues
from penstock.store.outbox.dead_letters import LetterFilter
from tests.flows import shop
from tests.flows.installation import QUICK, Installation
from tests.penstock.cli.commands import penstock

MANY = """
insert into dead_letter (id, queue, reason, message_id, body, headers, fingerprint)
select gen_random_uuid(), 'event.received', replace($4, '%', (n % 10)::text), n, convert_to($3 || n || '}', 'utf8'),
    jsonb_build_object('x-penstock-trigger', $2::text), $2 || $3 || n
from generate_series(1, $1) n returning 1
"""


@pytest.fixture
async def cluster(database: str, vhost: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Installation]:
    """An installation on RabbitMQ, where events come from outside."""
    monkeypatch.setenv("PENSTOCK_DATABASE_URL", database)
    monkeypatch.setenv("PENSTOCK_BROKER_URL", vhost)
    monkeypatch.setenv("PENSTOCK_DELIVERY_LIMIT", str(QUICK["delivery_limit"]))
    async with Installation(database, vhost) as installation:
        await installation.start(*shop.ALL)
        yield installation


async def publish(vhost: str, *given: tuple[str, bytes, dict[str, Any]]) -> None:
    def send() -> None:
        connection = pika.BlockingConnection(pika.URLParameters(vhost))
        for trigger, body, properties in given:
            connection.channel().basic_publish(
                "penstock.events", trigger, body, pika.BasicProperties(**properties)
            )
        connection.close()

    await asyncio.to_thread(send)


async def letters(house: Installation, count: int) -> list[dict[str, Any]]:
    await house.until(f"select 1 from dead_letter having count(*) = {count}")
    return (await penstock("dead-letters", "list", "--json")).documents


async def test_an_event_is_replayed_once_its_trigger_exists(cluster: Installation, vhost: str) -> None:
    await publish(vhost, ("shop.returned", b'{"id": 7}', {"message_id": "r-7", "app_id": "till"}))
    [letter] = await letters(cluster, 1)
    assert "shop.returned" in letter["reason"]
    early = await penstock("dead-letters", "replay", letter["id"])
    assert early.code == 1
    assert "penstock apply" in early.err
    await cluster.apply(Trigger("shop.returned"))
    done = await penstock("dead-letters", "replay", letter["id"])
    assert (done.code, "event" in done.out) == (0, True)
    [event] = await cluster.rows("select trigger, source from event")
    assert (event["trigger"], event["source"]) == ("shop.returned", "amqp:till")
    assert await letters(cluster, 0) == []
    # The producer sends it again: it is the same event.
    await publish(vhost, ("shop.returned", b'{"id": 7}', {"message_id": "r-7", "app_id": "till"}))
    await publish(vhost, ("shop.returned", b'{"id": 8}', {"message_id": "r-8", "app_id": "till"}))
    await cluster.until("select 1 from event having count(*) = 2")


async def test_two_events_with_the_same_body_are_two_dead_letters(cluster: Installation, vhost: str) -> None:
    await publish(
        vhost,
        ("shop.nothing", b"{}", {"message_id": "a"}),
        ("shop.nothing", b"{}", {"message_id": "b"}),
        ("shop.nothing", b"{}", {"message_id": "b"}),
        ("shop.never", b"{}", {"message_id": "a"}),
    )
    await cluster.until("select 1 from dead_letter having sum(count) = 4")
    assert sorted(letter["count"] for letter in await letters(cluster, 3)) == [1, 1, 2]


async def test_events_of_two_tenants_are_two_letters_and_both_are_replayed(
    cluster: Installation, vhost: str
) -> None:
    """Tenants number their messages by themselves, so two of them may use one message id."""
    for _ in range(2):
        await publish(
            vhost,
            *(
                ("shop.returned", b'{"id": 7}', {"message_id": "r-7", "headers": {"tenant": tenant}})
                for tenant in ("acme", "other")
            ),
        )
    await cluster.until("select 1 from dead_letter having sum(count) = 4")
    assert [letter["count"] for letter in await letters(cluster, 2)] == [2, 2]
    await cluster.apply(Trigger("shop.returned"))
    assert (await penstock("dead-letters", "replay", "--all")).code == 0
    events = await cluster.rows("select tenant, trigger from event order by tenant")
    assert [event["tenant"] for event in events] == ["acme", "other"]


async def test_one_is_shown_with_its_body_and_dropped(cluster: Installation, vhost: str) -> None:
    await publish(vhost, ("shop.order_placed", b"{not json [x]", {"message_id": "m-2"}))
    [letter] = await letters(cluster, 1)
    id = letter["id"]
    assert "event.received" in (await penstock("dead-letters", "list")).out
    assert (await penstock("dead-letters", "list", "--queue", "work.default", "--json")).documents == []
    said = await penstock("dead-letters", "show", id)
    assert "{not json [x]" in said.out
    assert "m-2" in said.out
    assert (await penstock("dead-letters", "show", id, "--json")).document["body"] == "{not json [x]"
    again = await penstock("dead-letters", "replay", id)
    assert again.code == 1
    assert "not JSON" in again.err
    assert (await penstock("dead-letters", "drop", id, "--json")).document["dropped"] == 1
    assert "No dead letters" in (await penstock("dead-letters", "list")).out


async def test_many_are_counted_by_reason_paged_and_put_back_by_filter_each_once(house: Installation) -> None:
    await house.apply(*shop.ALL, Trigger("shop.returned"))
    await house.rows(
        MANY, 450, "shop.returned", '{"n": ', "InvalidInput: event 7f0b9c3e-0000-7000-8000-00000000000%"
    )
    await house.rows(MANY, 30, "shop.gone", '{"n": ', "NotFound: unknown trigger shop.v2")
    await house.rows(MANY, 20, "shop.returned", "{not json", "Undecodable: line 1, column %")
    first = await penstock("dead-letters", "list", "--limit", 300)
    assert "300 of 500" in first.err
    rest = first.err.split()[-1]
    page = (await penstock("dead-letters", "list", "--limit", 300, "--before", rest, "--json")).documents
    assert len(page) == 200
    assert rest not in {one["id"] for one in page}
    counted = (await penstock("dead-letters", "counts", "--json")).documents
    assert [(one["letters"], one["reason"]) for one in counted] == [
        (450, "InvalidInput: event #"),
        (30, "NotFound: unknown trigger shop.v2"),
        (20, "Undecodable: line #, column #"),
    ]
    assert (await penstock("dead-letters", "replay")).code == 1
    tried = await penstock("dead-letters", "replay", "--all", "--dry-run", "--json")
    assert (tried.document["done"], sum(one["count"] for one in tried.document["refused"])) == (450, 50)
    assert not await house.rows("select 1 from event")
    said, other = await asyncio.gather(
        penstock("dead-letters", "replay", "--reason", "InvalidInput: event #", "--json"),
        tally(replay(house.client, LetterFilter(reason="InvalidInput: event #"))),
    )
    assert said.document["done"] + other.done == 450
    [events] = await house.rows(
        "select count(*) as n, count(distinct payload ->> 'n') as different from event"
    )
    assert (events["n"], events["different"]) == (450, 450)
    said = await penstock("dead-letters", "replay", "--all")
    assert (said.code, "0 replayed." in said.out) == (1, True)
    assert "30 left unchanged: there is no trigger 'shop.gone'" in said.err
    assert "20 left unchanged: the body is not JSON" in said.err
    assert (
        "20 would be dropped"
        in (await penstock("dead-letters", "drop", "--reason", "column", "--dry-run")).out
    )
    assert (await penstock("dead-letters", "drop", "--all", "--json")).document["dropped"] == 50


async def test_the_same_garbage_is_one_letter_and_a_body_that_was_cut_says_so(house: Installation) -> None:
    def dead(id: str, body: bytes) -> Message:
        headers = {QUEUE_HEADER: queues.EVENT_RECEIVED, REASON_HEADER: "it is not JSON"}
        return Message(queues.DEAD, body, id=id, type="?", headers=headers)

    await house.apply(*shop.ALL)
    await house.executor()
    large = b'{"a": "' + b"x" * dead_letters.LARGEST + b'"}'
    await house.put(*(dead(f"g{n}", b"{garbage") for n in range(5)), dead("large", large))
    await house.until("select 1 from dead_letter having sum(count) = 6")
    found = {one["message_id"][0]: one for one in await letters(house, 2)}
    assert (found["g"]["count"], found["g"]["cut_from"]) == (5, None)
    assert (found["l"]["bytes"], found["l"]["cut_from"]) == (dead_letters.LARGEST, len(large))
    assert (
        f"of {len(large):,} bytes, only the beginning was kept"
        in (await penstock("dead-letters", "show", found["l"]["id"])).out
    )
    again = await penstock("dead-letters", "replay", found["l"]["id"])
    assert f"only the beginning of its {len(large):,} bytes was kept" in again.err


async def test_an_envelope_of_ours_is_sent_again(house: Installation) -> None:
    await house.apply(*shop.ALL)
    id = await house.client.start("shop.charge", {"order": 7})
    await house.rows("delete from outbox")
    letter = await bury(house, queues.EXECUTION_REQUESTED, envelope.encode("execution.requested", [id]))
    assert (await penstock("dead-letters", "replay", letter)).code == 0
    await house.executor()
    await house.worker(*shop.ALL)
    assert await house.client.result(id, timeout=20) == {"order": 7, "charged": 0}


async def test_work_that_has_ended_is_not_sent_again(house: Installation) -> None:
    await house.apply(*shop.ALL)
    id = await house.client.start("shop.charge", {"order": 7})
    await house.client.cancel(id)
    letter = await bury(house, "work.default", envelope.encode("work", [id]))
    said = await penstock("dead-letters", "replay", letter)
    assert said.code == 1
    assert "has ended" in said.err
    assert len((await penstock("dead-letters", "list", "--json")).documents) == 1


async def test_garbage_is_not_sent_again(house: Installation) -> None:
    await house.start(*shop.ALL)
    await house.put(Message("execution.requested", b"\xff garbage", id="g", type="?"))
    [letter] = await letters(house, 1)
    said = await penstock("dead-letters", "replay", letter["id"])
    assert said.code == 1
    assert "Drop the letter" in said.err


async def test_a_missing_object_is_reported(named: str) -> None:
    for command in ("show", "replay", "drop"):
        said = await penstock("dead-letters", command, uuid4())
        assert said.code == 1, command
        assert "dead-letters list" in said.err, command


async def bury(house: Installation, queue: str, body: bytes) -> str:
    id = new_id()
    await house.rows(
        "insert into dead_letter (id, queue, reason, body, fingerprint) values ($1, $2, 'delivery_limit', $3, 'f')",
        id,
        queue,
        body,
    )
    return str(id)
