"""Stored events that rules see again in a whole installation."""

from __future__ import annotations

import asyncio
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

import pytest

from penstock import Rule, Secret, Trigger, action
from penstock.client import rule_errors
from penstock.errors import Conflict, InvalidInput, NotFound
from penstock.operate.definitions import enable_rule
from tests.flows.installation import Installation

pytestmark = pytest.mark.either_transport

paid = Trigger("till.paid", schema={"amount": "integer", "card": "string"})


@action(pack="till")
async def book(amount: int, card: Annotated[str, Secret()]) -> int:
    return amount


OPTIONS: dict[str, Any] = {
    "trigger": paid,
    "action": book,
    "when": "payload.amount > 3",
    "params": {"amount": "{{ payload.amount }}", "card": "{{ payload.card }}"},
}


def rule(**options: Any) -> Rule:
    return Rule("till.book_large", **{**OPTIONS, **options})


async def publish(house: Installation, *amounts: int, tenant: str = "public") -> list[Any]:
    ids = [
        await house.client.publish("till.paid", {"amount": amount, "card": "4242"}, tenant=tenant)
        for amount in amounts
    ]
    await house.until("select 1 where not exists (select from unmatched)")
    return ids


def hour_ago() -> datetime:
    return datetime.now(UTC) - timedelta(minutes=59)


async def outcomes(house: Installation, **options: Any) -> Counter[str]:
    page = await house.client.replay_rule("till.book_large", since=hour_ago(), **options)
    return Counter(item.outcome for item in page.items)


async def test_new_rule_starts_once_for_each_stored_event(house: Installation) -> None:
    await house.start(paid, book)
    await publish(house, 1, 5, 7)
    await house.apply(paid, book, rule())
    await publish(house, 9)
    expected = {"no match": 1, "would start": 2, "existing": 1}
    assert await outcomes(house, dry_run=True) == expected
    assert await house.rows("select from execution having count(*) = 1")
    assert await outcomes(house) == {"no match": 1, "started": 2, "existing": 1}
    assert await outcomes(house) == {"no match": 1, "existing": 3}
    await house.quiet()
    assert await house.statuses() == {"completed": 3}
    await house.sound()


async def test_pages_follow_each_other(house: Installation) -> None:
    await house.start(paid, book)
    ids = await publish(house, *range(10, 15))
    await house.apply(paid, book, rule())
    ids_of_pages: list[Any] = []
    cursor = None
    for size in (2, 2, 1):
        page = await house.client.replay_rule("till.book_large", since=hour_ago(), cursor=cursor, limit=2)
        assert len(page.items) == size
        ids_of_pages += [item.event_id for item in page.items]
        cursor = page.next
    assert (ids_of_pages, cursor) == (ids, None)


async def test_replay_of_a_tenant_leaves_others_alone(house: Installation) -> None:
    await house.start(paid, book)
    await publish(house, 5, 6, tenant="acme")
    await publish(house, 7)
    await house.apply(paid, book, rule())
    assert await outcomes(house, tenant="acme") == {"started": 2}
    assert await outcomes(house) == {"existing": 2, "started": 1}


async def test_events_of_a_burst_have_started_their_execution(house: Installation) -> None:
    """The rule had a debounce time when it saw the events."""
    await house.start(paid, book, rule(debounce="3s"))
    events = [{"amount": amount, "card": "4242"} for amount in (5, 6, 7)]
    await asyncio.gather(*(house.client.publish("till.paid", event) for event in events))
    await house.until("select 1 from execution")
    await house.apply(paid, book, rule())
    page = await house.client.replay_rule("till.book_large", since=hour_ago())
    [execution] = await house.rows("select id from execution")
    assert [(item.outcome, item.execution_id) for item in page.items] == [("existing", execution["id"])] * 3


async def test_failed_rule_is_left_to_its_rerun(house: Installation) -> None:
    await house.start(paid, book)
    await publish(house, 5)
    await house.apply(paid, book, rule(params={"amount": "{{ payload.no }}", "card": "x"}))
    assert await outcomes(house, dry_run=True) == {"failed": 1}
    assert await outcomes(house) == {"failed": 1}
    await house.apply(paid, book, rule())
    assert await outcomes(house) == {"failed": 1}
    assert [again.what async for again in rule_errors.rerun(house.client)] == ["started"]
    assert await outcomes(house) == {"existing": 1}


async def test_rules_that_cannot_be_replayed_say_why(house: Installation) -> None:
    await house.apply(paid, book, rule(), Rule("till.burst", **{**OPTIONS, "debounce": "1s"}))
    with pytest.raises(InvalidInput, match=r"bursts of events\. Such rules are not replayed"):
        await house.client.replay_rule("till.burst", since=hour_ago())
    with pytest.raises(NotFound):
        await house.client.replay_rule("till.book_lar", since=hour_ago())
    with pytest.raises(InvalidInput, match="kept for 30 days"):
        await house.client.replay_rule("till.book_large", since=datetime.now(UTC) - timedelta(days=30))
    await enable_rule(house.session, "till.book_large", False)
    with pytest.raises(Conflict, match="is disabled"):
        await house.client.replay_rule("till.book_large", since=hour_ago())
    assert (await house.client.replay_rule("till.book_large", since=hour_ago(), dry_run=True)).items == []
