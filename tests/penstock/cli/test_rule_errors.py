"""Rules that fail on events: seen in the list, in `doctor`, in metrics and in the log; run again once they are mended."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
import structlog
from prometheus_client import generate_latest

from penstock import Rule, Trigger, action
from penstock.client import rule_errors
from penstock.language.terms.ids import new_id
from penstock.messaging.metrics import Metrics
from penstock.store.events.rule_matches import NewEnforcement
from penstock_executor import rule_failures
from penstock_executor.loops import report_rule_failures
from tests.flows.installation import Installation
from tests.penstock.cli.commands import penstock

paid = Trigger("till.paid")


@action(pack="till")
async def book(amount: float, note: str = "") -> float:
    return amount


def rule(when: str = "payload.amount > 3", **params: Any) -> Rule:
    given = {"amount": "{{ payload.amount }}", **params}
    return Rule("till.book_large", trigger=paid, when=when, action=book, params=given)


async def failed(house: Installation, *amounts: int, wrong: Rule | None = None) -> list[str]:
    """Events on which the rule has failed."""
    await house.start(book, paid, wrong or rule("payload.amout > 3"))
    events = [str(await house.client.publish("till.paid", {"amount": amount})) for amount in amounts]
    await house.until(f"select 1 from enforcement having count(*) = {len(amounts)}")
    return events


async def test_a_rule_that_fails_is_listed_counted_and_a_finding(house: Installation) -> None:
    assert "No rule has failed" in (await penstock("rules", "errors")).out
    first, second = await failed(house, 1, 5)
    rows = (await penstock("rules", "errors", "--json")).documents
    assert [(row["event_id"], row["rule"], row["changed"], row["gone"]) for row in rows] == [
        (second, "till.book_large", False, False),
        (first, "till.book_large", False, False),
    ]
    assert all("amout" in row["error"] for row in rows)
    assert len((await penstock("rules", "errors", "till.other", "--json")).documents) == 0
    said = (await penstock("rules", "errors")).out
    assert "amout" in said
    assert "penstock rules rerun" in said
    assert [one["errors"] for one in (await penstock("rules", "list", "--json")).documents] == [2]
    findings = {one["what"]: one for one in (await penstock("doctor", "--json")).documents}
    assert findings["rules"]["state"] == "warning"
    assert "till.book_large on 2 events" in findings["rules"]["says"]
    assert "amout" in findings["rules"]["says"]
    await penstock("rules", "disable", "till.book_large")
    findings = {one["what"]: one for one in (await penstock("doctor", "--json")).documents}
    assert findings["rules"]["state"] == "ok"


async def test_parameters_over_the_cap_are_a_failure_too(house: Installation) -> None:
    wrong = rule(note="{{ 'x' * 200000 ~ 'y' * 100000 }}")
    await failed(house, 5, wrong=wrong)
    [row] = (await penstock("rules", "errors", "--json")).documents
    assert "at most 262,144 are taken" in row["error"], row


async def test_once_it_is_mended_it_is_run_again_and_starts_each_once(house: Installation) -> None:
    small, large, larger = await failed(house, 1, 5, 7)
    await house.apply(book, paid, rule())
    assert {row["changed"] for row in (await penstock("rules", "errors", "--json")).documents} == {True}
    one = (await penstock("rules", "rerun", "--event", large, "--json")).document
    assert (one["event_id"], one["what"]) == (large, "started")
    assert await house.client.result(one["execution_id"], timeout=20) == 5
    said = await penstock("rules", "rerun", "till.book_large", "--json")
    assert said.code == 0
    assert {row["event_id"]: row["what"] for row in said.documents} == {small: "no match", larger: "started"}
    assert "no failed evaluation to repeat" in (await penstock("rules", "rerun", "--all")).out
    await house.quiet()
    assert await house.statuses() == {"completed": 2}
    assert sorted(str(r["event_id"]) for r in await house.rows("select event_id from enforcement")) == [
        large,
        larger,
    ]
    shown = (await penstock("show", large, "--json")).document
    assert [v["execution"] for v in shown["rules"]] == [one["execution_id"]]
    await house.sound()


async def test_a_rule_that_fails_again_or_is_gone_is_reported(house: Installation) -> None:
    [event] = await failed(house, 5)
    again = await penstock("rules", "rerun", "--all", "--json")
    assert again.code == 1
    assert again.document["what"] == "failed"
    assert "amout" in again.document["error"]
    await penstock("rules", "delete", "till.book_large")
    left = await penstock("rules", "rerun", "--event", event, "--json")
    assert left.code == 1
    assert left.document["what"] == "left"
    assert "deleted" in left.document["error"]
    assert [row["gone"] for row in (await penstock("rules", "errors", "--json")).documents] == [True]
    assert (await penstock("rules", "rerun")).code == 1


async def test_concurrent_reruns_start_it_once(house: Installation) -> None:
    await failed(house, *range(4, 24))
    await house.apply(book, paid, rule())

    async def rerun() -> list[str]:
        return [one.what async for one in rule_errors.rerun(house.client, rule="till.book_large")]

    done = await asyncio.gather(*(rerun() for _ in range(5)))
    assert [what for some in done for what in some].count("started") == 20
    await house.quiet()
    assert await house.statuses() == {"completed": 20}
    await house.sound()


async def test_an_event_that_comes_again_after_it_changes_nothing(house: Installation) -> None:
    """The message of the event is delivered once more: the pair of rule and event has its enforcement."""
    [event] = await failed(house, 5)
    await house.apply(book, paid, rule())
    await penstock("rules", "rerun", "--all")
    await house.quiet()
    async with house.session.transaction() as tx:
        await tx.fetch("select stage('event.created', array[$1::text::uuid], 50)", event)
    await house.until("select 1 where not exists (select from outbox)")
    assert await house.statuses() == {"completed": 1}


def enforcement(rule: str, error: str | None = "InvalidInput") -> NewEnforcement:
    return NewEnforcement(new_id(), new_id(), rule, 1, 1, 1, 0, None, None, error)


async def test_failures_are_counted_by_rule_and_told_once_a_turn(
    house: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = await house.parts()
    tally = rule_failures.tally(parts.database)
    metrics = Metrics()
    metrics.show(by_label={"rule_errors": tally.total})
    tally.add([enforcement("till.a"), enforcement("till.b"), enforcement("till.a")])
    tally.add([enforcement("till.c", error=None)])
    told = structlog.testing.LogCapture()
    monkeypatch.setattr(
        report_rule_failures, "log", structlog.wrap_logger(None, [told], structlog.BoundLogger)
    )
    for _ in range(2):
        assert await report_rule_failures.turn(parts, parts.database.session()) is False
    assert [(line["event"], line["events"]) for line in told.entries] == [
        ("rules.failed", {"till.a": 2, "till.b": 1})
    ]
    tally.add([enforcement("till.a")])
    shown = generate_latest(metrics.registry).decode()
    assert 'penstock_rule_errors_total{rule="till.a"} 3.0' in shown
    assert tally.tell() == {"till.a": 1}


async def test_a_replica_shows_them_on_its_page_of_metrics(house: Installation) -> None:
    await house.apply(book, paid, rule("payload.amout > 3"))
    parts = await house.parts("executor")
    from penstock.store.events import events as store
    from penstock_executor.handlers import event_created

    event = await house.client.publish("till.paid", {"amount": 5})
    async with parts.database.session().transaction() as tx:
        await event_created.match(tx, await store.read(tx, [event]))
    assert rule_failures.tally(parts.database).total == {"till.book_large": 1}
