"""The source of an event: a foreign producer can neither name an entry point of Penstock nor take its keys."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
from typing import Any

import httpx
import pika
import pytest
from pika.exceptions import ChannelClosedByBroker

from penstock import Trigger
from penstock.client.dead_letters import replay
from penstock.errors import InvalidInput, NotAllowed
from penstock.language.terms.producers import Producer, check_producer
from penstock.operate.access import create_token
from penstock.store.outbox.dead_letters import LetterFilter
from penstock_api.app import make_app
from penstock_api.backend import Backend
from tests.flows.installation import Installation
from tests.penstock.operate.keys import KEY

TRIGGER = "till.rang"
SECRET = "s" * 32
BODY = b'{"order": 7}'
CLAIMS = ("webhook:till", "api", "client", "amqp:till", "", None)


def send(vhost: str, message_id: str, body: bytes = BODY, trigger: str = TRIGGER, **properties: Any) -> None:
    connection = pika.BlockingConnection(pika.URLParameters(vhost))
    try:
        channel = connection.channel()
        channel.confirm_delivery()
        channel.basic_publish(
            "penstock.events", trigger, body, pika.BasicProperties(message_id=message_id, **properties)
        )
    finally:
        if connection.is_open:
            connection.close()


async def doors(house: Installation, key: str) -> dict[str, httpx.Response]:
    """Publish by each door of our own with the same key."""
    backend = Backend.of(house.client)
    _, secret = await create_token(house.session, "t", ["administrator"], by="test")
    headers = {"authorization": f"Bearer {secret}"}
    app = make_app(backend)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://x") as client:
        webhook = {"trigger": TRIGGER, "signature": "github", "secret": SECRET}
        assert (await client.put("/api/v1/webhooks/till", json=webhook, headers=headers)).status_code == 200
        signature = "sha256=" + hmac.new(SECRET.encode(), BODY, hashlib.sha256).hexdigest()
        answers = {
            "webhook:till": await client.post(
                "/hooks/till",
                content=BODY,
                headers={
                    "x-hub-signature-256": signature,
                    "x-github-delivery": key,
                    "content-type": "application/json",
                },
            ),
            "api": await client.post(
                "/api/v1/events",
                json={"trigger": TRIGGER, "payload": {"order": 7}},
                headers={**headers, "idempotency-key": key},
            ),
        }
    await backend.close()
    return answers


async def test_foreign_producer_cannot_take_the_key_of_a_door(database: str, vhost: str) -> None:
    async with Installation(database, vhost, secrets_key=KEY) as house:
        await house.start(Trigger(TRIGGER))
        for app_id in CLAIMS:  # the payload differs, so that a shared key would be a conflict
            await asyncio.to_thread(send, vhost, "k-1", b'{"forged": true}', app_id=app_id)
        await house.until(f"select 1 from event having count(*) = {len(set(CLAIMS) - {''})}")
        answers = await doors(house, "k-1")
        assert {name: answer.status_code for name, answer in answers.items()} == {
            "webhook:till": 202,
            "api": 201,
        }
        await house.client.publish(TRIGGER, {"order": 7}, key="k-1")
        sources = [row["source"] for row in await house.rows("select source from event order by source")]
        foreign = [f"amqp:{one or ''}" for one in CLAIMS if one != ""]
        assert sources == sorted([*foreign, "webhook:till", "api", "client"])


async def test_program_cannot_name_a_door_as_its_source(database: str) -> None:
    async with Installation(database, None) as house:
        await house.apply(Trigger(TRIGGER))
        for source in ("api", "webhook:till", "webhook", "amqp:", "amqp:till", "api:x"):
            with pytest.raises(InvalidInput, match="reserved"):
                await house.client.publish(TRIGGER, {}, source=source)
        assert not await house.rows("select 1 from event")


async def test_user_of_the_broker_publishes_as_it_is_mapped(database: str, vhost: str) -> None:
    producers = {"guest": Producer(tenants=("acme",), triggers=("till.*",))}
    async with Installation(database, vhost, producers=producers) as house:
        await house.start(Trigger(TRIGGER), Trigger("bank.paid"))
        with pytest.raises(
            ChannelClosedByBroker, match="user_id"
        ):  # the broker refuses the name of another user
            await asyncio.to_thread(send, vhost, "k-0", user_id="ada")
        await asyncio.to_thread(send, vhost, "k-1", user_id="guest", app_id="till")
        await asyncio.to_thread(send, vhost, "k-2", user_id="guest", headers={"tenant": "acme"})
        await asyncio.to_thread(send, vhost, "k-3")
        await asyncio.to_thread(send, vhost, "k-4", user_id="guest", headers={"tenant": "public"})
        await asyncio.to_thread(send, vhost, "k-5", user_id="guest", trigger="bank.paid")
        await house.until("select 1 from dead_letter having count(*) = 3")
        await house.until("select 1 from event having count(*) = 2")
        events = await house.rows("select tenant, source from event order by source")
        assert [tuple(row) for row in events] == [("acme", "amqp:guest"), ("acme", "amqp:guest/till")]
        reasons = {row["reason"] for row in await house.rows("select reason from dead_letter")}
        assert any("no user_id" in one for one in reasons)
        assert any("tenant 'public'" in one for one in reasons)
        assert any("'bank.paid'" in one for one in reasons)
        outcomes = [one async for one in replay(house.client, LetterFilter())]
        assert len(outcomes) == 3
        assert all(isinstance(one.error, NotAllowed) for one in outcomes)
        assert len(await house.rows("select 1 from event")) == 2


async def test_letter_of_a_user_is_replayed_once_it_is_mapped(database: str, vhost: str) -> None:
    async with Installation(database, vhost, producers={"ada": Producer(tenants=("acme",))}) as house:
        await house.start(Trigger(TRIGGER))
        await asyncio.to_thread(send, vhost, "k-1", user_id="guest")
        await house.until("select 1 from dead_letter having count(*) = 1")
    producers = {"guest": Producer(tenants=("acme",))}
    async with Installation(database, vhost, producers=producers) as house:
        assert [one.error async for one in replay(house.client, LetterFilter())] == [None]
        [event] = await house.rows("select tenant, source from event")
        assert tuple(event) == ("acme", "amqp:guest")


@pytest.mark.parametrize(
    ("user", "trigger", "headers", "tenant"),
    [
        (None, TRIGGER, {}, None),
        ("ada", TRIGGER, {}, None),
        ("shop", TRIGGER, {}, "acme"),
        ("shop", TRIGGER, {"tenant": "acme"}, "acme"),
        ("shop", TRIGGER, {"tenant": "public"}, None),
        ("shop", TRIGGER, {"tenant": None}, None),
        ("shop", "bank.paid", {}, None),
        ("two", "bank.paid", {}, None),
        ("two", "bank.paid", {"tenant": "acme"}, "acme"),
    ],
)
def test_mapping_decides_tenant_and_trigger(
    user: str | None, trigger: str, headers: dict[str, Any], tenant: str | None
) -> None:
    producers = {
        "shop": Producer(tenants=("acme",), triggers=("till.*",)),
        "two": Producer(tenants=("acme", "bank")),
    }
    if tenant is None:
        with pytest.raises((NotAllowed, InvalidInput)):
            check_producer(producers, user, trigger, headers)
    else:
        assert check_producer(producers, user, trigger, headers) == (tenant, user)
