"""Random executions that end, on a real database: the events of failures agree with the history, which the oracle reads itself.

Each end is also tried on a second connection at the same time. Rules come, go and change their tenant between the steps, and some
executions are started by the events of others."""

from __future__ import annotations

import asyncio
import os
import random
from collections import Counter
from collections.abc import Sequence
from typing import Any
from uuid import UUID

import orjson
import pytest

from penstock import Rule
from penstock.language.terms.ids import new_id
from penstock.store.admission import namespaces
from penstock.store.events import events, rule_matches
from penstock.store.events.events import NewEvent
from penstock.store.events.rule_matches import NewEnforcement
from penstock.store.executions import effects
from tests.penstock.store.admission.conftest import desk
from tests.penstock.store.admission.desk import Desk, charge

__all__ = ["desk"]

SEEDS = range(int(os.environ.get("PENSTOCK_EXAMPLES", "12")))
TENANTS = ("public", "acme", "bolt")
TRIGGER = "penstock.execution.failed"
ENDS = ("failed", "failed", "completed", "requested", "timeout")
MOVES = """
select h.execution_id as id, split_part(n.name, '::', 1) as tenant
from history h join execution e on e.id = h.execution_id join namespace n on n.id = e.namespace_id
where h.new in ('failed', 'timeout', 'abandoned')
"""
STORED = "select tenant, payload ->> 'execution' as execution from event where trigger = $1"
ORIGIN = "select origin::text as origin from payload where execution_id = $1"
CAUSE = "select trigger, payload ->> 'execution' as execution from event where id = $1"
EFFECT = "select parent from effect where id = $1"
OPEN = "select id from execution where status = 'scheduled' order by id"
RECOVER = "select * from recover_executions($1, $2::uuid[], 'lost')"
TIMEOUT = "select * from end_executions($1::uuid[], array['scheduled'], 'timeout', 'too late', null)"


async def descends(desk: Desk, id: UUID) -> bool:
    """Return whether an execution follows from an event of the trigger, as its origin and the recorded effects tell."""
    [row] = await desk.session.fetch(ORIGIN, id)
    origin = orjson.loads(row["origin"]) if row["origin"] else {}
    if "event" not in origin:
        return False
    event = UUID(origin["event"])
    [cause] = await desk.session.fetch(CAUSE, event)
    if cause["trigger"] == TRIGGER:
        return True
    published = await desk.session.fetch(EFFECT, event)
    return bool(published) and await descends(desk, published[0]["parent"])


async def publish(desk: Desk, cause: UUID, tenant: str) -> UUID:
    """Publish an event as the action of `cause` does, in some cases with bounds of its own."""
    event = NewEvent("shop.told", tenant, "{}", "worker", max_depth=random.choice((None, 50)))
    async with desk.session.transaction() as tx:
        await events.store(tx, [event], matched=False)
        await effects.record(tx, [(cause, event.id, "event")])
    return event.id


async def enforce(desk: Desk, event: UUID, namespace: int) -> None:
    definition = desk._definitions["shop.charge"]
    enforcement = NewEnforcement(
        new_id(), event, "shop.rule", definition, namespace, definition, 0, "{}", None, None
    )
    async with desk.session.transaction() as tx:
        await rule_matches.record(tx, [enforcement])


async def end(desk: Desk, ids: Sequence[UUID], dice: random.Random) -> None:
    """Claim executions and end them, twice at the same time: one of the two moves each."""
    other = desk.database.session()
    claimed = await desk.claim(ids)
    if not claimed:
        return
    way = dice.random()
    if way < 0.15:
        twice = [session.fetch(RECOVER, desk.worker, claimed) for session in (desk.session, other)]
    else:
        status = dice.choice(ENDS)
        twice = [desk.finish(claimed, status, 0.0, session) for session in (desk.session, other)]
    await asyncio.gather(*twice)


@pytest.mark.parametrize("seed", SEEDS)
async def test_events_agree_with_the_history(desk: Desk, seed: int) -> None:
    await desk.open()
    dice = random.Random(seed)
    names = [namespaces.of(tenant, "shop.charge") for tenant in TENANTS]
    places = await namespaces.places(desk.session, names)
    spaces = {tenant: places[name] for tenant, name in zip(TENANTS, names, strict=True)}
    expected: Counter[tuple[str, str]] = Counter()
    handled: set[UUID] = set()
    asking: list[str | None] = []
    for step in range(dice.randint(15, 25)):
        if dice.random() < 0.4:
            asking = dice.sample([None, *TENANTS], dice.randint(0, 2))
            await desk.session.fetch("delete from catalog where kind = 'rule' returning 1")
            await desk.apply(
                charge,
                *(
                    Rule(f"shop.rule_{step}_{n}", trigger=TRIGGER, action=charge, tenant=tenant)
                    for n, tenant in enumerate(asking)
                ),
                Rule("shop.off", trigger=TRIGGER, action=charge, enabled=False),
            )
        tenant = dice.choice(TENANTS)
        desk._spaces["shop.charge"] = spaces[tenant]
        await desk.start(dice.randint(1, 4))
        stored: list[Any] = await desk.session.fetch("select id, tenant from event order by id")
        for row in dice.sample(stored, min(2, len(stored))):
            await enforce(desk, row["id"], spaces[row["tenant"]])
        ids = [row["id"] for row in await desk.session.fetch(OPEN)]
        for id in dice.sample(ids, min(1, len(ids))):
            [row] = await desk.session.fetch(
                "select split_part(n.name, '::', 1) as tenant from execution e join namespace n on n.id = e.namespace_id "
                "where e.id = $1",
                id,
            )
            await publish(desk, id, row["tenant"])
        some = dice.sample(ids, dice.randint(0, len(ids)))
        if dice.random() < 0.2:
            await asyncio.gather(
                desk.session.fetch(TIMEOUT, some), desk.database.session().fetch(TIMEOUT, some)
            )
        elif dice.random() < 0.15:
            await desk.cancel(some)
        else:
            await end(desk, some, dice)
        for row in await desk.session.fetch(MOVES):
            if row["id"] in handled:
                continue
            handled.add(row["id"])
            if (None in asking or row["tenant"] in asking) and not await descends(desk, row["id"]):
                expected[row["tenant"], str(row["id"])] += 1
        rows = await desk.session.fetch(STORED, TRIGGER)
        assert Counter((row["tenant"], row["execution"]) for row in rows) == expected, (seed, step)
        again = [
            row["id"]
            for row in await desk.session.fetch("select id from execution where status = 'requested'")
        ]
        await desk.admit(again)
    moves = await desk.session.fetch(MOVES)
    assert len(moves) == len({row["id"] for row in moves}), "no execution has two bad ends"
    unmatched = await desk.session.fetch("select event_id from unmatched")
    assert {row["event_id"] for row in unmatched} >= {
        row["id"] for row in await desk.session.fetch("select id from event where trigger = $1", TRIGGER)
    }
