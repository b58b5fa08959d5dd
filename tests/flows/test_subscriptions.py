"""Programs that subscribed are called once an execution has moved: signed, at least once, and only where they may be."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
from collections.abc import AsyncIterator
from typing import Any

import pytest

from penstock.errors import InvalidInput
from penstock.language.workflows import from_yaml
from penstock.operate import subscriptions
from penstock.operate.doctor import installation
from penstock.operate.doctor.finding import Finding
from penstock.store.access import subscriptions as store
from penstock.store.access.subscriptions import Subscription
from penstock_executor import subscriber_calls
from penstock_executor.loops import call_subscribers
from tests.flows import shop
from tests.flows.installation import Installation
from tests.penstock.operate.keys import KEY
from tests.penstock_worker.executors.web import Answer, Request, Web, serving

SECRET = "whsec_" + base64.b64encode(b"a secret of twenty-four b").decode()
WAITS = "select 1 from delivery where tries > 0"
flow = from_yaml("""
workflow: shop.flow
tasks:
  one: {action: shop.count, input: {words: "a b"}}
  two: {action: shop.count, input: {words: "a"}, needs: [one]}
""")


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Looks and tries that follow one another soon."""
    monkeypatch.setattr(call_subscribers, "RECHECK", 0.1)
    monkeypatch.setattr(call_subscribers, "PAUSE", 0.05)
    monkeypatch.setattr(subscriber_calls, "DELAYS", (0.05, 0.05, 0.05))


@pytest.fixture
async def web() -> AsyncIterator[Web]:
    async with serving() as web:
        yield web


@pytest.fixture
async def house(database: str) -> AsyncIterator[Installation]:
    async with Installation(database, None, private_subscribers="127.0.0.1", secrets_key=KEY) as house:
        await house.start(*shop.ALL, flow)
        yield house


async def put(house: Installation, url: str, name: str = "theirs", **more: Any) -> Subscription:
    subscription, _ = await subscriptions.put(house.session, name, url=url, secret=SECRET, by="ada", **more)
    return subscription


async def listed(house: Installation) -> Subscription:
    [subscription] = await store.listed(house.session)
    return subscription


async def arrived(house: Installation, web: Web, count: int = 1) -> list[Any]:
    await house.until(
        "select 1 where not exists (select from delivery) and not exists (select from subscribed_move) "
        "and not exists (select from execution where finished_at is null)"
    )
    assert len(web.requests) == count, [request.json for request in web.requests]
    return web.requests


async def test_a_call_is_signed_and_names_the_move(house: Installation, web: Web) -> None:
    web.answer("/hook", Answer(204))
    await put(house, web.url("/hook?of=us"))
    web.routes["/hook?of=us"] = web.routes["/hook"]
    id = await house.client.start("shop.count", {"words": "a b"})
    [request] = await arrived(house, web)
    headers = request.headers
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + request.body
    expected = hmac.new(base64.b64decode(SECRET[6:]), signed, hashlib.sha256).digest()
    assert headers["webhook-signature"] == "v1," + base64.b64encode(expected).decode()
    body = request.json
    assert body["type"] == "execution.completed"
    assert body["data"] == {
        "id": str(id),
        "status": "completed",
        "action": "shop.count",
        "namespace": "public::shop::count",
        "attempt": 1,
        "parent": None,
        "reason": None,
    }
    assert (await listed(house)).delivered_at is not None


async def test_call_without_its_secret_waits_and_says_why(house: Installation, web: Web) -> None:
    web.answer("/hook", Answer(204))
    await put(house, web.url("/hook"))
    await house.rows("create table set_aside as select * from secret")
    await house.rows("delete from secret")
    await house.client.start("shop.count", {"words": "a"})
    await house.until("select 1 from subscription where error like '%it has no secret%'")
    await house.rows(
        "insert into secret select tenant, name, sealed, '', master_key, set_by, set_at from set_aside"
    )
    await house.rows("update delivery set due_at = now()")
    await house.until("select 1 from subscription where error like '%cannot be opened%'")
    assert web.requests == []
    await house.rows("update secret set data_key = set_aside.data_key from set_aside")
    await house.rows("drop table set_aside")
    await house.rows("update delivery set due_at = now()")
    await arrived(house, web)


async def test_it_is_tried_until_it_is_answered_and_has_one_id(house: Installation, web: Web) -> None:
    web.answer(
        "/hook", Answer(500), Answer(hang_up=True), Answer(302, headers={"location": "/other"}), Answer(200)
    )
    await put(house, web.url("/hook"))
    await house.client.start("shop.count", {"words": "a"})
    requests = await arrived(house, web, 4)
    assert len({request.headers["webhook-id"] for request in requests}) == 1
    assert len({request.body for request in requests}) == 1
    assert {request.path for request in requests} == {"/hook"}
    subscription = await listed(house)
    assert (subscription.failing_since, subscription.dropped, subscription.waiting) == (None, 0, 0)


async def test_a_call_that_is_never_answered_is_dropped_and_reported(house: Installation, web: Web) -> None:
    web.answer("/hook", Answer(503))
    await put(house, web.url("/hook"))
    await house.client.start("shop.count", {"words": "a"})
    await arrived(house, web, 4)
    assert ((await listed(house)).dropped, (await doctored(house)).state) == (1, "warning")
    await house.rows("update subscription set failing_since = now() - interval '4 days'")
    await house.client.start("shop.count", {"words": "a"})
    await house.until("select 1 from subscription where disabled_at is not null")
    finding = await doctored(house)
    assert "theirs is disabled: its requests failed for too long: it answered 503" in finding.says
    assert await house.rows("select 1 from cluster where subscribed <> '{}'") == []
    web.answer("/hook", Answer(200))
    web.requests.clear()
    await subscriptions.enable(house.session, "theirs")
    await house.client.start("shop.count", {"words": "a"})
    await arrived(house, web)


async def doctored(house: Installation) -> Finding:
    return await installation._subscriptions(house.session)


async def test_a_subscriber_that_answers_gone_is_called_no_more(house: Installation, web: Web) -> None:
    web.answer("/hook", Answer(410))
    await put(house, web.url("/hook"))
    await house.client.start("shop.count", {"words": "a"})
    [row] = await house.until("select disabled_because from subscription where disabled_at is not null")
    assert row[0] == "its URL answered 410 Gone"


@pytest.mark.parametrize(
    ("given", "calls"),
    [
        ({}, {"shop::flow", "shop::count"}),
        ({"tasks": True}, {"shop::flow", "shop::flow::one", "shop::flow::two", "shop::count"}),
        ({"workflow": "shop.flow", "tasks": True}, {"shop::flow", "shop::flow::one", "shop::flow::two"}),
        ({"action": "shop.c*"}, {"shop::count"}),
        ({"action": "shop_count"}, set()),
        ({"tenant": "acme"}, set()),
        ({"statuses": ["failed"]}, set()),
        ({"labels": {"team": "a"}}, {"shop::flow"}),
        ({"labels": {"team": "a"}, "tasks": True}, {"shop::flow", "shop::flow::one", "shop::flow::two"}),
        (
            {"labels": {"team": "a", "region": "eu"}, "tasks": True},
            {"shop::flow", "shop::flow::one", "shop::flow::two"},
        ),
        ({"labels": {"team": "a", "region": "us"}}, set()),
        ({"labels": {"team": "b"}, "action": "shop.c*"}, {"shop::count"}),
        ({"labels": {"other": "a"}}, set()),
    ],
)
async def test_only_subscribed_moves_are_sent(
    house: Installation, web: Web, given: dict[str, Any], calls: set[str]
) -> None:
    web.answer("/hook", Answer(200))
    await put(house, web.url("/hook"), **given)
    await house.client.start("shop.flow", labels={"team": "a", "region": "eu"})
    await house.client.start("shop.count", {"words": "a"}, labels={"team": "b"})
    await house.until("select 1 where (select count(*) from execution where finished_at is not null) = 4")
    requests = await arrived(house, web, len(calls))
    assert {request.json["data"]["namespace"] for request in requests} == {
        f"public::{name}" for name in calls
    }


async def test_labels_choose_executions_that_are_archived_already(database: str, web: Web) -> None:
    """No executor makes calls until the executions are in the archive."""
    web.answer("/hook", Answer(200))
    async with Installation(database, None, private_subscribers="127.0.0.1", secrets_key=KEY) as house:
        await house.apply(*shop.ALL)
        await put(house, web.url("/hook"), statuses=["cancelled"], labels={"team": "a"})
        for labels in ({"team": "a", "region": "eu"}, {"team": "b"}, None):
            id = await house.client.start("shop.count", {"words": "a"}, labels=labels)
            await house.client.cancel(id)
        await house.rows("select archive_trees(array_agg(id), array_agg(id)) from execution")
        assert await house.rows("select from label") == []
        assert len(await house.rows("select from archived_label")) == 3
        await house.executor()
        await house.until(
            "select 1 where not exists (select from subscribed_move) and not exists (select from delivery)"
        )
        assert len(web.requests) == 1
        assert (await listed(house)).labels == {"team": "a"}


async def test_wrong_labels_of_a_subscription_are_refused(house: Installation) -> None:
    for labels in ({"Team": "a"}, {"team": ""}, {"team": "x" * 201}, {f"l{n}": "x" for n in range(17)}):
        with pytest.raises(InvalidInput, match="labels "):
            await put(house, "https://example.org/", labels=labels)
    assert await store.listed(house.session) == []


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]", "2130706433", "0.0.0.0"]
)
async def test_no_address_inside_is_called(database: str, web: Web, host: str) -> None:
    async with Installation(database, None, secrets_key=KEY) as house:
        await house.start(*shop.ALL)
        await put(house, web.url("/hook", host))
        await house.client.start("shop.count", {"words": "a"})
        await house.until(
            "select 1 from subscription where error like '%not a public address%' or error like '%resolve%'"
        )
        assert web.requests == []


async def test_a_call_whose_maker_died_is_made_by_another(house: Installation, web: Web) -> None:
    web.answer("/hook", Answer(200))
    await put(house, web.url("/hook"), statuses=["queued"])
    await house.rows(
        "insert into delivery (id, subscription, body, tries, due_at) values "
        "(gen_random_uuid(), 'theirs', '{}', 1, now() - interval '1 second')"
    )
    await arrived(house, web)


async def test_silent_subscriber_delays_no_other_call(
    house: Installation, web: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subscriber_calls, "TIMEOUT", 3600.0)
    released = asyncio.Event()

    async def silent(_: Request) -> Answer:
        await released.wait()
        return Answer(200)

    web.routes["/silent"] = silent
    web.answer("/well", Answer(200))
    await put(house, web.url("/silent"), "silent")
    await put(house, web.url("/well"), "well")
    try:
        for count in (1, 2, 3):
            await house.client.start("shop.count", {"words": "a"})
            await house.until(
                "select 1 where not exists (select from subscribed_move) and not exists (select from delivery "
                "where subscription = 'well') and not exists (select from execution where finished_at is null)"
            )
            assert [request.path for request in web.requests].count("/well") == count
            assert [request.path for request in web.requests].count("/silent") == 1, "its first call is open"
    finally:
        released.set()
    await house.until("select 1 where not exists (select from delivery)")
    assert [request.path for request in web.requests].count("/silent") == 3


async def test_many_silent_subscribers_leave_room_for_the_others(
    house: Installation, web: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subscriber_calls, "TIMEOUT", 3600.0)
    released, names = asyncio.Event(), [f"silent{n}" for n in range(6)]

    async def silent(_: Request) -> Answer:
        await released.wait()
        return Answer(200)

    web.routes["/silent"] = silent
    web.answer("/well", Answer(200))
    for name in names:
        await put(house, web.url("/silent"), name, statuses=["queued"])
    await put(house, web.url("/well"), "well")
    await house.rows(
        "insert into delivery (id, subscription, body, tries, due_at) "
        "select gen_random_uuid(), name, '{}', 0, now() from unnest($1::text[]) name, generate_series(1, 30)",
        names,
    )
    try:
        await house.until(
            "select 1 where (select count(*) from delivery where tries > 0) = 84"
        )  # 6 of 7 shares of 100
        await house.client.start("shop.count", {"words": "a"})
        await house.until(
            "select 1 where not exists (select from subscribed_move) and not exists (select from delivery "
            "where subscription = 'well') and not exists (select from execution where finished_at is null)"
        )
        assert [request.path for request in web.requests].count("/well") == 1
    finally:
        released.set()
    await house.until("select 1 where not exists (select from delivery)")


async def test_call_with_unexpected_error_stops_no_other_call(
    house: Installation, web: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    make = subscriber_calls.call

    async def call(pool: Any, delivery: Any, secret: str) -> Any:
        if delivery.subscription == "odd":
            raise LookupError("an error that no library documents")
        return await make(pool, delivery, secret)

    monkeypatch.setattr(call_subscribers, "call", call)
    web.answer("/well", Answer(200))
    await put(house, web.url("/odd"), "odd")
    await put(house, web.url("/well"), "well")
    await house.client.start("shop.count", {"words": "a"})
    await arrived(house, web)
    [odd, well] = await store.listed(house.session)
    assert (odd.dropped, odd.error) == (1, "LookupError: an error that no library documents")
    assert (well.dropped, well.error) == (0, None)


async def test_one_that_does_not_answer_keeps_no_other_waiting_and_is_bounded(
    house: Installation, web: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(call_subscribers, "WAITING", 3)
    monkeypatch.setattr(subscriber_calls, "DELAYS", (300.0,))
    web.answer("/dead", Answer(500))
    web.answer("/well", Answer(200))
    await put(house, web.url("/dead"), "dead")
    await put(house, web.url("/well"), "well")
    await house.client.start("shop.count", {"words": "a"})
    await house.until("select 1 from subscription where failing_since is not null")
    for _ in range(4):
        await house.client.start("shop.count", {"words": "a"})
        await house.until(
            "select 1 where not exists (select from subscribed_move) and not exists (select from delivery "
            "where subscription = 'well') and not exists (select from execution where finished_at is null)"
        )
    [dead, well] = await store.listed(house.session)
    assert (dead.waiting, dead.dropped, well.waiting, well.dropped) == (3, 2, 0, 0)
    assert len([request for request in web.requests if request.path == "/well"]) == 5
    await subscriptions.remove(house.session, "dead")
    assert await house.rows("select 1 from delivery") == []
