"""Random events of many keys, matched and decided by two executors in random order, with transactions that are lost before their
commit. A plain model says what becomes of each event: both agree on each match, its execution and each dropped event.

Each key has a list of its own. `PENSTOCK_EXAMPLES` is the number of seeds, of `KEYS` lists each."""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import orjson
import pytest

from penstock import Rule, Trigger, Window
from penstock.language.terms import windows as terms
from penstock.language.terms.ids import new_id
from penstock.operate.check import check
from penstock.store.events import events
from penstock.store.session.database import Transaction
from penstock_executor import burst_matches
from penstock_executor.handlers import event_created
from tests.penstock.store.admission.conftest import desk
from tests.penstock.store.admission.desk import ACTIONS, Desk
from tests.penstock.store.events.test_bursts_model import attempt
from tests.penstock.store.events.window_oracle import CONDITIONS, model

__all__ = ["desk"]

SEEDS = range(int(os.environ.get("PENSTOCK_EXAMPLES", "12")))
KEYS = 30
FULL = 7
TRIGGERS = ("shop.placed", "shop.paid", "shop.sent")
STORE = """
with stored as (
    insert into event (id, trigger, tenant, payload, source, created_at)
    select id, trigger, tenant, payload::jsonb, 'client', at
    from unnest($1::uuid[], $2::text[], $3::text[], $4::text[], $5::timestamptz[]) as d (id, trigger, tenant, payload, at)
)
insert into unmatched (event_id) select unnest($1::uuid[])
"""
START = datetime.now(UTC).replace(microsecond=0) - timedelta(hours=1)


def random_window(dice: random.Random) -> dict[str, Any]:
    """Return the options of a window, as a rule has them."""
    pattern = dice.choice(("sequence", "all", "any", "count", "absence"))
    number = {"count": 1, "absence": 2}.get(pattern) or dice.randint(2, 3)
    parts: list[dict[str, Any]] = []
    for _ in range(number):
        part: dict[str, Any] = {"trigger": dice.choice(TRIGGERS[: dice.choice([2, 3])])}
        if dice.random() < 0.4:
            part["when"] = dice.choice([text for text in CONDITIONS if text])
        parts.append(part)
    window: dict[str, Any] = {pattern: parts, "by": ["payload.key"], "within": dice.choice([3, 10])}
    if dice.random() < 0.3:
        other = dice.choice(TRIGGERS)
        for part in parts:
            if part["trigger"] == other:
                part["by"] = ["payload.other"]
    if pattern == "count":
        window["at_least"] = dice.randint(2, 5)
    if pattern == "any":
        window["at_least"] = dice.randint(1, number)
        if window["at_least"] == 1:
            del window["within"]
    if dice.random() < 0.5:
        window |= {"timestamp": "payload.at", "lateness": dice.choice([1, 5])}
    return window


def random_events(dice: random.Random, window: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return events in the order in which they were stored."""
    stored: list[dict[str, Any]] = []
    for key in range(KEYS):
        clock = 0.0
        for _ in range(dice.randint(1, 24)):
            clock += dice.choice([0, 0, 0.25, 0.5, 1, 1, 2.75, 3, 5])
            late = dice.choice([0, 0, 0.5, 1, 3, 5, 6, -2]) if "timestamp" in window else 0
            names = {"key": key, "other": key}
            if dice.random() < 0.05:
                names.pop(dice.choice(["key", "other"]))
            body: dict[str, Any] = {**names, "size": dice.randint(0, 9), "at": START.timestamp() + clock}
            stored.append(
                {
                    "id": new_id(),
                    "trigger": dice.choice(TRIGGERS),
                    "tenant": dice.choice(["public", "public", "acme"]),
                    "payload": body,
                    "stored": START.timestamp() + clock + late,
                }
            )
    stored.sort(key=lambda event: (event["stored"], event["id"]))
    for n, event in enumerate(stored):
        event["payload"]["n"] = n
    return stored


async def open_rule(desk: Desk, window: Mapping[str, Any]) -> None:
    params = {"customer": "{{ events | map(attribute='payload.n') | list }}"}
    rule = Rule("shop.watch", action="mail.send", params=params, window=Window(**window))
    await desk.open()
    await desk.apply(*(Trigger(name, schema={"type": "object"}) for name in TRIGGERS), *ACTIONS, rule)
    await desk.session.fetch("update catalog set watches_since = 'epoch'")


async def store(desk: Desk, stored: list[dict[str, Any]]) -> None:
    await desk.session.fetch(
        STORE,
        [event["id"] for event in stored],
        [event["trigger"] for event in stored],
        [event["tenant"] for event in stored],
        [orjson.dumps(event["payload"]).decode() for event in stored],
        [datetime.fromtimestamp(event["stored"], UTC) for event in stored],
    )


OUTCOMES = """
select (v.payload ->> 'n')::integer as n, m.part, m.dropped, coalesce(b.id, m.event_id) as burst
from burst_event m join event v on v.id = m.event_id left join burst b on b.id = m.burst order by m.at, m.event_id
"""


async def outcomes(desk: Desk) -> tuple[list[Any], dict[int, str]]:
    """Return the stored matches and dropped events, in the form of the model."""
    matches: dict[UUID, list[tuple[int, int]]] = {}
    reasons = {}
    for row in await desk.session.fetch(OUTCOMES):
        if row["dropped"]:
            reasons[row["n"]] = row["dropped"]
        else:
            matches.setdefault(row["burst"], []).append((row["part"], row["n"]))
    return sorted(matches.values()), reasons


@pytest.mark.parametrize("seed", SEEDS)
async def test_windows_agree_with_the_model(desk: Desk, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    dice = random.Random(seed)
    for module in (terms, burst_matches):
        monkeypatch.setattr(module, "MAX_EVENTS", FULL)
    window = random_window(dice)
    await open_rule(desk, window)
    stored = random_events(dice, window)
    await store(desk, stored)
    unmatched = {event["id"] for event in stored}

    async def matching(ids: list[UUID]) -> None:
        async def work(tx: Transaction) -> None:
            await event_created.match(tx, await events.read(tx, ids))
            await events.matched(tx, ids)

        if await attempt(desk, dice, work):
            unmatched.difference_update(ids)

    async def closing() -> None:
        async def work(tx: Transaction) -> None:
            await burst_matches.close_due(tx, dice.randint(1, 20))

        await attempt(desk, dice, work)

    in_order = [event["id"] for event in stored]
    while unmatched:
        oldest = [id for id in in_order if id in unmatched][: dice.choice([70, 10_000])]
        ids = dice.sample(oldest, min(len(oldest), dice.randint(1, 60)))
        again = dice.sample([event["id"] for event in stored], min(len(stored), 9))  # delivered again
        steps = [matching(ids), matching(sorted({*ids[:3], *again})), closing(), closing()]
        dice.shuffle(steps)
        await asyncio.gather(*steps[:2])
        await asyncio.gather(*steps[2:])
    while await desk.session.fetch("select from burst_key"):
        await closing()
    matches, reasons = model(window, stored, FULL)
    assert await outcomes(desk) == (matches, reasons)
    rows = await desk.session.fetch("select params::text as params from payload")
    started = sorted(orjson.loads(row["params"])["customer"] for row in rows)
    assert started == sorted([n for _, n in match] for match in matches)
    assert not [
        finding for finding in await check(desk.session) if finding.violations and finding.name == "I7c"
    ]


async def test_window_does_not_end_while_an_executor_adds_an_event(desk: Desk) -> None:
    window = {"any": [{"trigger": TRIGGERS[0]}, {"trigger": TRIGGERS[1]}]}
    await open_rule(desk, window)
    stored: list[dict[str, Any]] = [
        {
            "id": new_id(),
            "trigger": name,
            "tenant": "public",
            "payload": {"n": n},
            "stored": START.timestamp() + n,
        }
        for n, name in enumerate(TRIGGERS[:2])
    ]
    await store(desk, stored)

    async def matching(tx: Transaction, id: UUID) -> None:
        await event_created.match(tx, await events.read(tx, [id]))
        await events.matched(tx, [id])

    async def closing() -> bool:
        async with desk.database.session().transaction() as tx:
            return await burst_matches.close_due(tx, 9)

    async with desk.session.transaction() as tx:
        await matching(tx, stored[0]["id"])
    async with desk.session.transaction() as tx:
        await matching(tx, stored[1]["id"])
        assert not await closing()
    while await closing():
        pass
    assert await outcomes(desk) == ([[(0, 0)], [(1, 1)]], {})
