"""Random events of a few keys, matched and closed by two executors in random order, with transactions that are lost before
their commit. A plain model splits the stored events into bursts: both agree on each burst and on its execution."""

from __future__ import annotations

import asyncio
import os
import random
from datetime import UTC, datetime, timedelta
from typing import Any, get_args
from uuid import UUID

import orjson
import pytest

from penstock import Rule, Trigger
from penstock.language.terms import debounce as terms
from penstock.language.terms.debounce import Keep
from penstock.language.terms.ids import new_id
from penstock.operate.check import check
from penstock.store.events import events
from penstock.store.session.database import Transaction
from penstock_executor import burst_matches
from penstock_executor.handlers import event_created
from tests.penstock.store.admission.conftest import desk
from tests.penstock.store.admission.desk import ACTIONS, Desk

__all__ = ["desk"]

SEEDS = range(int(os.environ.get("PENSTOCK_EXAMPLES", "10")))
STORE = """
with stored as (
    insert into event (id, trigger, tenant, payload, source, created_at)
    select id, 'docs.edited', 'public', payload::jsonb, 'client', at
    from unnest($1::uuid[], $2::text[], $3::timestamptz[]) as d (id, payload, at)
)
insert into unmatched (event_id) select unnest($1::uuid[])
"""
edited = Trigger("docs.edited", schema={"key": "string", "n": "integer"})


class Killed(Exception):
    """The end of an executor before its commit."""


def model(
    stored: list[tuple[datetime, UUID, str, int]], quiet: float, at_most: float | None, keep: str
) -> list[Any]:
    """Return what each burst starts: walk through the events of each key, and begin a burst where a gap or the longest time
    says so."""
    outcomes: list[Any] = []
    for key in sorted({key for _, _, key, _ in stored}):
        members: list[tuple[datetime, int]] = []
        for at, _, _, n in [
            *sorted(e for e in stored if e[2] == key),
            (datetime.max.replace(tzinfo=UTC), None, key, -1),
        ]:
            apart = members and (
                (at - members[-1][0]).total_seconds() >= quiet
                or (at_most is not None and (at - members[0][0]).total_seconds() >= at_most)
                or len(members) == terms.MAX_EVENTS
            )
            if apart:
                numbers = [number for _, number in members]
                outcomes.append([key, {"last": numbers[-1], "first": numbers[0], "all": numbers}[keep]])
                members = []
            members.append((at, n))
    return sorted(outcomes)


async def attempt(desk: Desk, dice: random.Random, work: Any) -> bool:
    """Run a transaction of an executor, and lose one in four before its commit. Return False for a lost one."""
    try:
        async with desk.database.session().transaction() as tx:
            await work(tx)
            if dice.random() < 0.25:
                raise Killed
    except Killed:
        return False
    return True


@pytest.mark.parametrize("seed", SEEDS)
async def test_bursts_agree_with_the_model(desk: Desk, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    dice = random.Random(seed)
    monkeypatch.setattr(terms, "MAX_EVENTS", 7)
    monkeypatch.setattr(burst_matches, "MAX_EVENTS", 7)
    quiet, at_most = dice.choice([1, 3]), dice.choice([None, 5, 2])
    keep: Keep = dice.choice(get_args(Keep))
    value = "{{ payloads | map(attribute='n') | list }}" if keep == "all" else "{{ payload.n }}"
    rule = Rule(
        "docs.on_edit", trigger=edited, action="mail.send", params={"customer": ["{{ payload.key }}", value]},
        debounce=quiet, at_most=at_most, by="payload.key", keep=keep,
    )  # fmt: skip
    await desk.open()
    await desk.apply(edited, *ACTIONS, rule)
    clock = datetime.now(UTC) - timedelta(minutes=10)
    stored: list[tuple[datetime, UUID, str, int]] = []
    for n in range(dice.randint(20, 60)):
        clock += timedelta(seconds=dice.choice([0, 0.1, 0.5, 0.999, 1, 1, 2.9, 3, 4]))
        stored.append((clock, new_id(), dice.choice("abc"), n))
    todo = list(stored)
    while todo:
        some, todo = todo[: (count := dice.randint(1, 9))], todo[count:]
        await desk.session.fetch(
            STORE,
            [id for _, id, _, _ in some],
            [orjson.dumps({"key": key, "n": n}).decode() for _, _, key, n in some],
            [at for at, _, _, _ in some],
        )
    # As the events are in the past, only the unmatched ones keep bursts open.
    unmatched = {id for _, id, _, _ in stored}

    async def matching(ids: list[UUID]) -> None:
        async def work(tx: Transaction) -> None:
            await event_created.match(tx, await events.read(tx, ids))
            await events.matched(tx, ids)

        if await attempt(desk, dice, work):
            unmatched.difference_update(ids)

    async def closing() -> None:
        async def work(tx: Transaction) -> None:
            await burst_matches.close_due(tx, dice.randint(1, 3))

        await attempt(desk, dice, work)

    while unmatched:
        ids = dice.sample(sorted(unmatched), min(len(unmatched), dice.randint(1, 8)))
        again = dice.sample([id for _, id, _, _ in stored], 3)  # messages that are delivered again
        steps = [matching(ids), matching(sorted({*ids[:2], *again})), closing(), closing()]
        dice.shuffle(steps)
        await asyncio.gather(*steps[:2])
        await asyncio.gather(*steps[2:])
    while await desk.session.fetch("select from burst_key"):
        await closing()
    rows = await desk.session.fetch("select params::text as params from payload")
    assert sorted(orjson.loads(row["params"])["customer"] for row in rows) == model(
        stored, quiet, at_most, keep
    )
    assert not [
        finding for finding in await check(desk.session) if finding.violations and finding.name == "I7c"
    ]


async def test_burst_does_not_close_while_an_executor_adds_an_event(desk: Desk) -> None:
    rule = Rule("docs.on_edit", trigger=edited, action="mail.send", debounce=1)
    await desk.open()
    await desk.apply(edited, *ACTIONS, rule)
    began = datetime.now(UTC) - timedelta(minutes=10)
    ids = [new_id(), new_id()]
    await desk.session.fetch(STORE, ids, ['{"key": "a", "n": 1}'] * 2, [began, began + timedelta(seconds=9)])

    async def matching(tx: Transaction, id: UUID) -> None:
        await event_created.match(tx, await events.read(tx, [id]))
        await events.matched(tx, [id])

    async def closing() -> bool:
        async with desk.database.session().transaction() as tx:
            return await burst_matches.close_due(tx, 9)

    async with desk.session.transaction() as tx:
        await matching(tx, ids[0])
    async with desk.session.transaction() as tx:
        await matching(tx, ids[1])
        assert not await closing()
    while await closing():
        pass
    assert len(await desk.session.fetch("select 1 from burst")) == 2
    assert not await desk.session.fetch("select 1 from burst_event where burst is null")
