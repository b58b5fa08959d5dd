"""Random chains of events and rules, on a real database and on a plain model: both agree on each execution that a rule starts
and on the letters. Each batch of matches is also delivered on a second connection at the same time."""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from uuid import UUID

import orjson
import pytest

from penstock.language.terms.ids import new_id
from penstock.store.events import events, rule_matches
from penstock.store.events.events import NewEvent
from penstock.store.events.rule_matches import NewEnforcement
from penstock.store.executions import effects
from tests.penstock.store.admission.conftest import desk
from tests.penstock.store.admission.desk import Desk

__all__ = ["desk"]

SEEDS = range(int(os.environ.get("PENSTOCK_EXAMPLES", "12")))
RULES: dict[str, dict[str, int]] = {
    "t.free": {},
    "t.few": {"max_descendants": 4},
    "t.flat": {"max_depth": 2},
    "t.both": {"max_descendants": 7, "max_depth": 4},
}


@dataclass
class Bound:
    """A chain of the model, with the number of executions in it."""

    rule: str | None
    options: dict[str, int]
    depth: int
    count: int = 0
    cut: bool = False

    def is_full(self, depth: int) -> bool:
        return self.count >= self.options.get(
            "max_descendants", 10**9
        ) or depth - self.depth > self.options.get("max_depth", 10**9)


@dataclass
class Node:
    """An event or an execution of the model."""

    depth: int = 0
    bounds: list[Bound] = field(default_factory=list)


def match(event: Node, rule: str) -> tuple[Node | None, Bound | None]:
    """Return the execution that the rule starts for the event, and the chain that it begins."""
    own = None
    bounds = list(event.bounds)
    if RULES[rule] and all(bound.rule != rule for bound in bounds):
        own = Bound(rule, RULES[rule], event.depth)
        bounds.append(own)
    full = [bound for bound in bounds if bound.is_full(event.depth + 1)]
    if full:
        return None, None
    for bound in bounds:
        bound.count += 1
    return Node(event.depth + 1, bounds), own


def enforcements(desk: Desk, hits: Sequence[tuple[UUID, str]]) -> list[NewEnforcement]:
    return [
        NewEnforcement(
            new_id(),
            event,
            rule,
            1,
            desk._spaces["mail.send"],
            desk._definitions["mail.send"],
            0,
            "{}",
            orjson.dumps(RULES[rule]).decode() if RULES[rule] else None,
            None,
        )
        for event, rule in hits
    ]


async def publish(desk: Desk, bounds: dict[str, int], cause: UUID | None) -> UUID:
    event = NewEvent("t.happens", "public", "{}", "client", **bounds)  # type: ignore[arg-type]
    async with desk.session.transaction() as tx:
        await events.store(tx, [event], matched=False)
        if cause is not None:
            await effects.record(tx, [(cause, event.id, "event")])
    return event.id


@pytest.mark.parametrize("seed", SEEDS)
async def test_chains_agree_with_the_model(desk: Desk, seed: int) -> None:
    await desk.open()
    dice = random.Random(seed)
    event_nodes: dict[UUID, Node] = {}
    running: list[tuple[UUID, Node]] = []
    expected: dict[tuple[UUID, str], bool] = {}
    for _ in range(dice.randint(8, 14)):
        batch: list[UUID] = []
        for _ in range(dice.randint(1, 4)):
            if running and dice.random() < 0.85:
                cause, node = dice.choice(running)
                id = await publish(desk, {}, cause)
                event_nodes[id] = Node(node.depth, node.bounds)
            else:
                options = dice.choice([{}, {}, {"max_depth": 3}, {"max_descendants": 5}])
                id = await publish(desk, options, None)
                event_nodes[id] = Node(0, [Bound(None, options, 0)] if options else [])
            batch.append(id)
        hits = sorted((id, rule) for id in batch for rule in dice.sample(list(RULES), dice.randint(1, 3)))

        async def deliver(hits: Sequence[tuple[UUID, str]] = hits) -> None:
            async with desk.database.session().transaction() as tx:
                await rule_matches.record(tx, enforcements(desk, hits))

        await asyncio.gather(deliver(), deliver())
        rows = await desk.session.fetch(
            "select event_id, rule, execution_id, error from enforcement where event_id = any($1)", batch
        )
        stored = {(row["event_id"], row["rule"]): row for row in rows}
        for id, rule in hits:
            event = event_nodes[id]
            outcome, _ = match(event, rule)
            expected[id, rule] = outcome is not None
            assert (stored[id, rule]["error"] is None) == (outcome is not None), (seed, rule)
            if outcome is None:
                own = [Bound(rule, RULES[rule], event.depth)] if RULES[rule] else []
                named = stored[id, rule]["error"]
                full = [b for b in [*event.bounds, *own] if b.is_full(event.depth + 1)]
                assert any(str(value) in named for b in full for value in b.options.values())
            else:
                running.append((stored[id, rule]["execution_id"], outcome))
        running = running[-12:]
    rows = await desk.session.fetch("select count(*) from execution")
    assert rows[0]["count"] == sum(expected.values())
    rows = await desk.session.fetch("select id, descendants, cut_at from chain")
    letters = len(await desk.session.fetch("select 1 from dead_letter"))
    assert letters == sum(row["cut_at"] is not None for row in rows)
    counted = await desk.session.fetch(
        "select c.id from chain c left join chain_step s on c.id = any (s.chains) and s.depth > 0 "
        "and exists (select from execution e where e.id = s.id) "
        "group by c.id, c.descendants having count(s.id) <> c.descendants"
    )
    assert not counted


async def test_second_delivery_leaves_no_chain_of_its_own(desk: Desk) -> None:
    """Both deliveries see no enforcement, and the second waits for the insert of the first."""
    await desk.open()
    event = await publish(desk, {}, None)
    hits = [(event, "t.few")]

    async def deliver() -> None:
        async with desk.database.session().transaction() as tx:
            await rule_matches.record(tx, enforcements(desk, hits))

    async with desk.session.transaction() as tx:
        await rule_matches.record(tx, enforcements(desk, hits))
        second = asyncio.create_task(deliver())
        async with asyncio.timeout(30):
            while not await desk.database.session().fetch("select 1 from pg_locks where not granted"):
                await asyncio.sleep(0.01)
    await second
    [row] = await desk.session.fetch(
        "select c.descendants, s.id, e.id as execution from chain c, chain_step s, execution e"
    )
    assert (row["descendants"], row["id"]) == (1, row["execution"])


async def test_last_execution_of_a_chain_is_counted_once(desk: Desk) -> None:
    """Two executors match rules with the event of a chain that has room for one execution."""
    await desk.open()
    event = await publish(desk, {"max_descendants": 1}, None)

    async def deliver() -> None:
        async with desk.database.session().transaction() as tx:
            await rule_matches.record(tx, enforcements(desk, [(event, "t.both")]))

    async with desk.session.transaction() as tx:
        await rule_matches.record(tx, enforcements(desk, [(event, "t.free")]))
        second = asyncio.create_task(deliver())
        async with asyncio.timeout(30):
            while not await desk.database.session().fetch("select 1 from pg_locks where not granted"):
                await asyncio.sleep(0.01)
    await second
    rows = await desk.session.fetch("select rule, error is null as started from enforcement order by rule")
    assert [tuple(row) for row in rows] == [("t.both", False), ("t.free", True)]
