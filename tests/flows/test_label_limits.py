"""Limits, turns and breakers by labels in a whole installation, for executions that start in each of the ways there are."""

from __future__ import annotations

import asyncpg
import orjson
import pytest

from penstock import Breaker, Limit, Rule, Schedule, Trigger, action, current, workflow
from penstock.errors import InvalidInput
from tests.flows.installation import Installation

pytestmark = pytest.mark.either_transport

asked = Trigger("keys.asked", schema={"customer": "string", "paid": "boolean"})
ADMITTED = """
select e.id, a.group_value from admission a join execution e on e.id = a.execution_id
join concurrency_limit l on l.id = a.limit_id join namespace n on n.id = e.namespace_id
where l.ref = 'keys.each' order by a.seq
"""

EACH = Limit(1, ref="keys.each", scope="keys", by=["region", "labels.customer"])


@action(pack="keys", searchable=["region"], run_labels={"team": "billing"})
async def send(region: str = "eu", customer: str | None = None) -> str:
    return region


@action(pack="other")
async def starts() -> None:
    await current().run(send, {"region": "inside"}, labels={"customer": "acme"}, timeout=30)


@workflow(pack="keys")
def bill(region: str):  # type: ignore[no-untyped-def]
    send(region=region)


RULE = Rule(
    "keys.on_asked",
    trigger=asked,
    action=send,
    params={"region": "rule"},
    labels={"customer": "{{ payload.paid }}"},
)
FIRE = Schedule("keys.nightly", cron="0 3 * * *", action=send, params={"region": "schedule"})


async def admitted(house: Installation, count: int) -> list[str]:
    """Return the keys of the admissions in order, once there are `count` completed executions of the action."""
    await house.until(
        "select 1 from execution e join namespace n on n.id = e.namespace_id where n.action = 'keys.send' "
        "having count(*) filter (where e.status = 'completed') >= $1",
        count,
    )
    return [row["group_value"] for row in await house.rows(ADMITTED)]


async def test_each_way_of_starting_counts_by_the_same_label(house: Installation, database: str) -> None:
    await house.start(send, starts, bill, asked, RULE, FIRE, EACH)
    client, labels = house.client, {"customer": "acme"}
    one = await client.start(send, {"region": "one"}, labels=labels)
    await client.start_many(send, [{"region": f"many{n}"} for n in range(12)], labels=labels)
    await client.start_many(send, [{"region": "plain"}])
    mine = await asyncpg.connect(database)
    async with mine.transaction():
        await client.start(send, {"region": "mine"}, labels=labels, connection=mine)
    await mine.close()
    await client.run("other.starts", timeout=30)
    await client.run(bill, {"region": "task"}, labels=labels, timeout=30)
    await client.publish("keys.asked", {"customer": "acme", "paid": True})
    await client.schedules.run("keys.nightly")
    await client.result(one, timeout=20)
    await client.rerun(one, by="test")
    await client.rerun(one, labels={"customer": "bolt"}, by="test")
    await client.start(send, {"region": "later"}, labels=labels, delay=0.2)
    await client.start(send, {"region": "burst"}, labels=labels, debounce="200ms", debounce_key="a")
    keys = await admitted(house, 23)
    expected = [
        ["one", "acme"], ["one", "acme"], ["one", "bolt"], ["mine", "acme"], ["inside", "acme"], ["task", "acme"],
        ["rule", "true"], ["schedule", None], ["later", "acme"], ["burst", "acme"],
        *([f"many{n}", "acme"] for n in range(12)), ["plain", None],
    ]  # fmt: skip
    assert sorted(map(str, map(orjson.loads, keys))) == sorted(map(str, expected))
    await house.quiet()
    await house.sound()


async def test_waiting_executions_of_a_label_keep_their_order(house: Installation) -> None:
    await house.apply(send, EACH)
    ids = {
        name: [await house.client.start(send, labels={"customer": name}) for _ in range(4)]
        for name in ("acme", "bolt")
    }
    await house.start(send, EACH)
    for name in ids:
        for id in ids[name]:
            await house.client.result(id, timeout=20)
    order = [row["id"] for row in await house.rows(ADMITTED)]
    assert [id for id in order if id in ids["acme"]] == ids["acme"]
    assert [id for id in order if id in ids["bolt"]] == ids["bolt"]
    await house.quiet()
    await house.sound()


@action(
    pack="turns",
    limits=[
        Limit(1, by="labels.region", fair="labels.customer"),
        Limit(rate="1000/s", by="labels.customer"),
        Limit(
            50,
            by=["labels.customer", "labels.region"],
            cost="{{ parameters.tokens | default(1) }}",
            unit="tokens",
        ),
    ],
)
async def take(tokens: int | None = None) -> None: ...


async def test_customers_of_a_label_take_turns(house: Installation) -> None:
    await house.apply(take)
    eu = {"region": "eu"}
    first = [await house.client.start(take, labels={**eu, "customer": "acme"}) for _ in range(6)]
    second = [await house.client.start(take, labels={**eu, "customer": "bolt"}) for _ in range(2)]
    none = await house.client.start(take, labels=eu)
    await house.start(take)
    for id in (*first, *second, none):
        await house.client.result(id, timeout=30)
    rows = await house.rows(
        "select execution_id as id from admission a join concurrency_limit l on l.id = a.limit_id "
        "where l.fair <> '{}' order by a.seq"
    )
    order = [row["id"] for row in rows]
    assert max(map(order.index, (*second, none))) < max(map(order.index, first[3:]))
    refused = await house.client.start(take, {"tokens": 51}, labels=eu)
    why = await house.client.why(refused)
    assert "needs 51 tokens" in why.says
    await house.quiet()
    await house.sound()


@action(pack="calls", breaker=Breaker(1, probe="1h", by=["labels.host", "labels.zone"]))
async def fetch(works: bool) -> str:
    if not works:
        raise ConnectionError("the host is down")
    return "done"


async def test_breaker_of_a_label_leaves_others_alone(house: Installation) -> None:
    await house.start(fetch)
    await house.client.start(fetch, {"works": False}, labels={"host": "a", "zone": "7"})
    await house.until("select from breaker having count(*) = $1", 1)
    waits = await house.client.start(fetch, {"works": True}, labels={"host": "a", "zone": "7"})
    assert await house.client.run(fetch, {"works": True}, labels={"host": "a"}, timeout=20) == "done"
    assert (await house.client.why(waits)).because == "breaker"
    breakers = house.client.breakers
    for wrong in (
        {"labels.host": "a"},
        {"labels": {"host": "a", "zone": "7"}},
        {"labels.host": [], "labels.zone": "7"},
    ):
        with pytest.raises(InvalidInput):
            await breakers.close("calls.fetch", wrong)
    await breakers.close("calls.fetch", {"labels.host": "a", "labels.zone": 7}, at_once=True)
    assert await house.client.result(waits, timeout=20) == "done"
    await breakers.open("calls.fetch", {"labels.host": None, "labels.zone": "eu"}, by="test")
    waits = await house.client.start(fetch, {"works": True}, labels={"zone": "eu"})
    await house.until("select from waiter")
    await breakers.close("calls.fetch", {"labels.host": None, "labels.zone": "eu"}, at_once=True)
    assert await house.client.result(waits, timeout=20) == "done"
    await house.quiet()
    await house.sound()


async def test_limit_is_set_by_hand_on_a_label(house: Installation) -> None:
    await house.start(send)
    with pytest.raises(InvalidInput, match="is not a path of a label"):
        await house.client.limits.set("keys.by_hand", max=1, scope="keys", by="labels.Customer")
    limit = await house.client.limits.set("keys.by_hand", max=1, scope="keys", by="labels.customer")
    assert limit.by == ["labels.customer"]
    for customer in ("acme", "bolt", "acme"):
        await house.client.run(send, labels={"customer": customer}, timeout=20)
    rows = await house.rows("select distinct group_value from admission order by 1")
    assert [row["group_value"] for row in rows] == ['["acme"]', '["bolt"]']
    await house.quiet()
    await house.sound()
