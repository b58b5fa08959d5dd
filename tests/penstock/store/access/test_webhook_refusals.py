"""The counts of refused calls: their rows by webhook, reason and hour, and the list of the last seven days."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta

import pytest
from pydantic import SecretStr

from penstock.settings import Settings
from penstock.store.access.webhook_refusals import WebhookRefusals, count, listed
from penstock.store.session.database import Database, Session

WEBHOOK = """insert into webhook (name, trigger, tenant, signature, header, created_by)
values ($1, 'shop.paid', 'public', 'secret', 'x', 'ada')"""
SIGNED, UNKNOWN = "wrong signature", "unknown webhook"


@pytest.fixture
async def session(database: str) -> AsyncIterator[Session]:
    home = Database(Settings(database_url=SecretStr(database)), role="test")
    session = home.session()
    for name in ("till", "shop"):
        await session.fetch(WEBHOOK, name)
    yield session
    await home.close()


async def move_back(session: Session, age: timedelta) -> None:
    """Move all rows into the past."""
    await session.fetch("update webhook_refusal set hour = hour - $1::interval, last_at = last_at - $1", age)


def numbers(refusals: list[WebhookRefusals]) -> list[tuple[str | None, str, int, str | None]]:
    return [(row.webhook, row.reason, row.calls, row.last_name) for row in refusals]


async def test_calls_of_an_hour_share_a_row_by_webhook_and_reason(session: Session) -> None:
    await count(session, {("till", SIGNED): 2, ("till", "too large"): 1, ("shop", SIGNED): 4})
    await count(session, {("till", SIGNED): 3})
    assert sorted(numbers(await listed(session))) == [
        ("shop", SIGNED, 4, None),
        ("till", "too large", 1, None),
        ("till", SIGNED, 5, None),
    ]
    [row] = await session.fetch("select count(*) as rows, count(distinct hour) as hours from webhook_refusal")
    assert (row["rows"], row["hours"]) == (3, 1)
    [row] = await session.fetch(
        "select bool_and(hour = date_trunc('hour', last_at)) as whole from webhook_refusal"
    )
    assert row["whole"]


async def test_names_without_a_webhook_share_a_row_with_the_last_name(session: Session) -> None:
    await count(session, {("tilll", UNKNOWN): 1, ("", UNKNOWN): 3, ("shopp", UNKNOWN): 1})
    [row] = await listed(session)
    assert (row.webhook, row.calls, row.last_name) == (None, 5, "tilll")
    await count(session, {("", UNKNOWN): 1})
    [row] = await listed(session)
    assert (row.calls, row.last_name) == (6, "tilll"), "a call without a name keeps the last one"
    await count(session, {("a", UNKNOWN): 1})
    [row] = await listed(session)
    assert (row.calls, row.last_name) == (7, "a")


async def test_hours_are_added_and_the_newest_name_counts(session: Session) -> None:
    for name, hours in (("old", 2), ("new", 2), ("", 0)):
        await count(session, {(name, UNKNOWN): 1})
        await move_back(session, timedelta(hours=hours))
    [row] = await session.fetch("select count(*) as rows, max(last_at) as last_at from webhook_refusal")
    assert row["rows"] == 3
    [refusals] = await listed(session)
    assert (refusals.calls, refusals.last_name, refusals.last_at) == (3, "new", row["last_at"])


async def test_list_has_the_newest_first_and_seven_days(session: Session) -> None:
    for name, reason in (("till", SIGNED), ("shop", SIGNED), ("till", "too large")):
        await count(session, {(name, reason): 1})
        await move_back(session, timedelta(days=1))
    await count(session, {("shop", "wrong method"): 1})
    assert [(row.webhook, row.reason) for row in await listed(session)] == [
        ("shop", "wrong method"),
        ("till", "too large"),
        ("shop", SIGNED),
        ("till", SIGNED),
    ]
    assert [row.reason for row in await listed(session, "till")] == ["too large", SIGNED]
    await move_back(session, timedelta(days=5))
    assert [(row.webhook, row.reason) for row in await listed(session)] == [
        ("shop", "wrong method"),
        ("till", "too large"),
    ]
    assert await listed(session, "nowhere") == []


async def test_calls_of_one_instant_are_listed_by_name(session: Session) -> None:
    calls = {(name, reason): 1 for name in ("till", "", "shop") for reason in (SIGNED, "invalid body")}
    await count(session, calls)
    await session.fetch("update webhook_refusal set last_at = (select max(last_at) from webhook_refusal)")
    assert [(row.webhook or "", row.reason) for row in await listed(session)] == [
        (name, reason) for name in ("shop", "till", "") for reason in ("invalid body", SIGNED)
    ]
