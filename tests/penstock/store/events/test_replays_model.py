"""Random events, matched by one version of a rule and replayed through the next one. Two callers die before and after their
commits. A plain interpreter of the list says what starts: both agree on each execution."""

from __future__ import annotations

import asyncio
import os
import random
from collections import Counter
from datetime import UTC, datetime, timedelta
from uuid import UUID

import orjson
import pytest

from penstock import Rule, Trigger
from penstock.client.rule_replays import Replay, ReplayedEvent, replay
from penstock.language.terms.ids import new_id
from penstock.operate.check import check
from penstock.store.events import events
from penstock.store.session import crash_points
from penstock_executor.handlers import event_created
from tests.penstock.store.admission.conftest import desk
from tests.penstock.store.admission.desk import ACTIONS, Desk

__all__ = ["desk"]

SEEDS = range(int(os.environ.get("PENSTOCK_EXAMPLES", "10")))
STORE = """
with stored as (
    insert into event (id, trigger, tenant, payload, source, created_at)
    select id, trigger, tenant, payload::jsonb, 'client', at
    from unnest($1::uuid[], $2::text[], $3::text[], $4::text[], $5::timestamptz[]) as d (id, trigger, tenant, payload, at)
)
insert into unmatched (event_id) select unnest($1::uuid[])
"""
TRIGGERS, TENANTS = ("docs.edited", "docs.opened"), ("acme", "globex")
Stored = tuple[UUID, str, str, int, datetime]
"""The id, trigger, tenant, number and instant of an event."""


class Killed(Exception):
    """The end of a caller."""


def rule(version: str, divisor: int, tenant: str | None) -> Rule:
    return Rule(
        "docs.on_edit", trigger="docs.edited", action="mail.send", when=f"payload.n % {divisor} == 0", tenant=tenant,
        params={"customer": [version, "{{ payload.n }}"]},
    )  # fmt: skip


def matches(event: Stored, divisor: int, tenant: str | None) -> bool:
    return event[1] == "docs.edited" and event[3] % divisor == 0 and tenant in (None, event[2])


@pytest.mark.parametrize("seed", SEEDS)
async def test_replays_agree_with_the_interpreter(
    desk: Desk, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    dice = random.Random(seed)
    old, new = [(dice.choice([1, 2, 3]), dice.choice([None, None, *TENANTS])) for _ in range(2)]
    await desk.open()
    await desk.apply(*map(Trigger, TRIGGERS), *ACTIONS, rule("old", *old))
    began = datetime.now(UTC) - timedelta(minutes=10)
    stored: list[Stored] = [
        (new_id(), dice.choice(TRIGGERS), dice.choice(TENANTS), n, began + timedelta(seconds=n))
        for n in range(dice.randint(20, 60))
    ]
    await desk.session.fetch(
        STORE,
        [event[0] for event in stored],
        [event[1] for event in stored],
        [event[2] for event in stored],
        [orjson.dumps({"n": event[3]}).decode() for event in stored],
        [event[4] for event in stored],
    )
    matched = {event[0] for event in stored if dice.random() < 0.9}
    async with desk.session.transaction() as tx:
        await event_created.match(tx, await events.read(tx, sorted(matched)))
        await events.matched(tx, sorted(matched))
    await desk.apply(*map(Trigger, TRIGGERS), *ACTIONS, rule("new", *new))
    since, until = (
        began + timedelta(seconds=dice.randint(0, 20)),
        began + timedelta(seconds=dice.randint(21, 70)),
    )
    tenants = dice.choice([None, None, ["acme"]])
    first = {event[0] for event in stored if event[0] in matched and matches(event, *old)}
    second = {
        event[0]
        for event in stored
        if event[0] in matched - first
        and matches(event, *new)
        and since <= event[4] < until
        and (tenants is None or event[2] in tenants)
    }
    started: Counter[UUID] = Counter()

    async def walk(dry_run: bool, *, may_die: bool) -> list[ReplayedEvent]:
        session = desk.database.session()
        items: list[ReplayedEvent] = []
        cursor = None
        while True:
            selection = Replay(
                "docs.on_edit",
                since,
                until,
                tenants,
                dry_run=dry_run,
                cursor=cursor,
                limit=dice.randint(1, 9),
            )
            try:
                _, page = await replay(session, selection)
            except Killed:
                assert may_die
                cursor = dice.choice([cursor, None])
                continue
            items += page.items
            if not dry_run:
                started.update(item.event_id for item in page.items if item.outcome == "started")
            if (cursor := page.next) is None:
                return items

    dry = await walk(True, may_die=False)
    assert {item.event_id for item in dry if item.outcome == "would start"} == second
    assert all(item.params["customer"][0] == "new" for item in dry if item.outcome == "would start")
    assert len(await desk.session.fetch("select from execution")) == len(first)

    def die(point: str, connection: object) -> None:
        if point in ("committing", "committed") and dice.random() < 0.2:
            raise Killed

    monkeypatch.setattr(crash_points, "reached", die)
    await asyncio.gather(walk(False, may_die=True), walk(False, may_die=True))
    monkeypatch.setattr(crash_points, "reached", None)
    again = Counter(item.outcome for item in await walk(False, may_die=False))
    assert again["started"] == again["would start"] == again["failed"] == 0
    assert set(started) <= second
    assert set(started.values()) <= {1}
    rows = await desk.session.fetch("select params::text as params from payload")
    numbers = {event[0]: event[3] for event in stored}
    assert sorted(orjson.loads(row["params"])["customer"] for row in rows) == sorted(
        [*(["old", numbers[id]] for id in first), *(["new", numbers[id]] for id in second)]
    )
    assert not [finding for finding in await check(desk.session) if finding.violations]
