"""Random executions with labels from all their sources, under limits by labels and parameters, on a real database and on a
plain model: after each step both agree on the status of each execution and on the keys that are held. Limits change at any
time, and steps happen while only some lanes are regrouped."""

from __future__ import annotations

import os
import random
from collections import Counter
from typing import Any
from uuid import UUID

import orjson
import pytest

from penstock import Limit, action
from penstock.language.terms.ids import new_id
from penstock.store.admission import limits, namespaces
from tests.penstock.store.admission import labelled
from tests.penstock.store.admission.desk import Desk
from tests.penstock.store.admission.labelled import Bound, Labelled, Model
from tests.penstock.store.admission.model import HOLDING

SEEDS = range(int(os.environ.get("PENSTOCK_EXAMPLES", "6")))
STEPS = 40
LONG = "x" * 199
CUSTOMERS = [None, "acme", "bolt", "1", 1, 1.0, True, 7, 7.0, "7.0", "", LONG + "a", LONG + "b", {"id": 1}]
VALUES = ["acme", "bolt", "1", "eu", "null", LONG + "a", LONG + "b"]
KEYS = ["customer", "region", "team", "order.id"]
BY = [
    ("labels.customer",),
    ("customer", "labels.region"),
    ("labels.team", "labels.customer"),
    ("labels.order.id",),
    ("customer.id", "labels.order.id"),
    ("customer",),
    (),
]
SCOPES = {
    "shop.each": ("shop.charge", ("shop.charge",)),
    "shop.whole": ("shop", ("shop.charge", "shop.refund")),
    "ops.all": ("*", ("shop.charge", "shop.refund", "mail.send")),
}
"""The scope of each limit, and the actions that it covers."""
MARKED = "select w.execution_id from lane l join waiter w on w.lane = l.id where l.gate_kind = 'regroup'"
SUBMIT = """
select messages from submit_executions($1::uuid[], $2::integer[], $3::integer[], $4::text[], $5::text[], null, $6::smallint[],
    null, null, null, null, null, true)
"""
FUSED = """
select * from request_executions($1::uuid[], $2::integer[], $3::integer[], $4::text[], $5::text[], null, $6::smallint[], null,
    $7::uuid[], $8::text[], null, true)
"""
STORED = """
select * from request_executions($1::uuid[], $2::integer[], $3::integer[], $4::text[], $5::text[], null, $6::smallint[], null,
    null, null, null, false)
"""


@action(pack="shop", run_labels=labelled.RUN_LABELS["shop.charge"], searchable=["customer"])
async def charge(customer: Any = None, region: Any = None) -> None: ...


@action(pack="shop", searchable=["customer", "region"])
async def refund(customer: Any = None, region: Any = None) -> None: ...


@action(pack="mail", run_labels=labelled.RUN_LABELS["mail.send"])
async def send(customer: Any = None, region: Any = None) -> None: ...


ACTIONS = (charge, refund, send)


class Play:
    """One random play."""

    def __init__(self, desk: Desk, seed: int) -> None:
        self._desk = desk
        self._random = random.Random(seed)
        self._model = Model([])
        self._given: dict[UUID, dict[str, str]] = {}
        """The labels of each start, before those of other sources are added."""

    async def open(self) -> None:
        await self._desk.hire(*(a.ref for a in ACTIONS))
        await self._desk.apply(*ACTIONS)
        await self.change()

    async def step(self) -> None:
        steps = [
            self.submit,
            self.submit,
            self.child,
            self.later,
            self.claim,
            self.finish,
            self.finish,
            self.change,
        ]
        await self._random.choice(steps)()
        await self.regroup(self._random.choice([0, 1, 2, 1000]))
        await self.compare()

    async def change(self) -> None:
        """Apply other limits: some are grouped in another way, have another maximum, are added or are removed."""
        refs = self._random.choice(
            [["shop.each", "shop.whole"], ["shop.whole"], ["shop.whole", "ops.all"], [*SCOPES]]
        )
        bounds = []
        for ref in refs:
            old = [bound for bound in self._model.bounds if bound.ref == ref]
            if old and self._random.random() < 0.3:
                bounds += old
            else:
                by = self._random.choice([*(bound.by for bound in old), *BY])
                bounds.append(Bound(ref, SCOPES[ref][1], by, self._random.randint(1, 3)))
        for ref in {bound.ref for bound in self._model.bounds} - {*refs}:
            async with self._desk.session.transaction() as tx:
                await namespaces.lock_rules(tx)
                await limits.drop(tx, limits.DECLARED, ref)
                await limits.regroup(tx, [], await namespaces.replace_all(tx))
        await self._desk.apply(*(Limit(b.max, ref=b.ref, scope=SCOPES[b.ref][0], by=b.by) for b in bounds))
        self._model.change(bounds, await self._marked())

    async def regroup(self, steps: int) -> None:
        """Take at most so many steps of an executor that regroups, and then promote."""
        for _ in range(steps):
            if not await self._desk.session.fetch(
                "select from regroup($1) where regrouped", self._random.randint(1, 3)
            ):
                break
        while await self._desk.session.fetch("select from wake_keys(100) where woken"):
            pass
        self._model.marked = await self._marked()
        self._model.settle()

    async def _marked(self) -> set[UUID]:
        return {row["execution_id"] for row in await self._desk.session.fetch(MARKED)}

    def _new(self, parent: Labelled | None = None) -> Labelled:
        ref = self._random.choice(["shop.charge", "shop.charge", "shop.refund", "mail.send"])
        params = {
            name: value
            for name in ("customer", "region")
            if (value := self._random.choice([*CUSTOMERS, ...])) is not ...
        }
        given = {
            key: self._random.choice(VALUES)
            for key in self._random.sample(KEYS, self._random.choice([0, 0, 1, 2]))
        }
        above = parent.labels if parent else {}
        made = Labelled(new_id(), ref, params, given, -self._random.choice([0, 0, 2]), None)  # type: ignore[arg-type]
        self._given[made.id] = given
        made.labels = labelled.labels(ref, params, given, above)
        return made

    async def _send(self, statement: str, ones: list[Labelled], *more: Any) -> list[Any]:
        desk = self._desk
        given = [self._given[one.id] for one in ones]
        rows = await desk.session.fetch(
            statement,
            [one.id for one in ones],
            [desk._spaces[one.action] for one in ones],
            [desk._definitions[one.action] for one in ones],
            [orjson.dumps(one.params).decode() for one in ones],
            [orjson.dumps({"labels": labels}).decode() if labels else None for labels in given],
            [-one.rank for one in ones],
            *more,
        )
        ready = await desk.session.fetch(
            "select id, ready_at from execution where id = any($1::uuid[])", [one.id for one in ones]
        )
        for row in ready:
            next(one for one in ones if one.id == row["id"]).ready_at = row["ready_at"]
        self._model.all |= {one.id: one for one in ones}
        return rows

    async def submit(self) -> None:
        ones = [self._new() for _ in range(self._random.choice([1, 1, 2, 4]))]
        [[messages]] = await self._send(SUBMIT, ones)
        assert not [m for m in messages if m["queue"] == "execution.requested"], "they are few"
        self._model.admit(ones)

    async def child(self) -> None:
        """An executor starts a child of an execution that has labels."""
        parents = self._model.those("running")
        if parents:
            parent = self._random.choice(parents)
            one = self._new(parent)
            await self._send(FUSED, [one], [parent.id], [f"task{len(self._model.all)}"])
            self._model.admit([one])

    async def later(self) -> None:
        """A transaction stores executions without a decision, and an executor decides later."""
        ones = [self._new() for _ in range(2)]
        await self._send(STORED, ones)
        await self._desk.admit([one.id for one in ones])
        self._model.admit(ones)

    def _some(self, *statuses: str) -> list[Labelled]:
        ones = sorted(self._model.those(*statuses), key=lambda one: one.id)
        return self._random.sample(ones, min(len(ones), self._random.randint(1, 3)))

    async def claim(self) -> None:
        for id in await self._desk.claim([one.id for one in self._some("scheduled")]):
            self._model.all[id].status = "running"

    async def finish(self) -> None:
        ones = self._some("running")
        if not ones:
            return
        # An execution without a slot is requested again by a message.
        how = self._random.choice(
            ["completed", "failed", "requested"] if all(one.keys for one in ones) else ["failed"]
        )
        await self._desk.finish([one.id for one in ones], how)
        rows = await self._desk.session.fetch(
            "select id, ready_at from execution where id = any($1::uuid[])", [one.id for one in ones]
        )
        for row in rows:
            self._model.all[row["id"]].ready_at = row["ready_at"]
        self._model.end(ones, how)

    async def compare(self) -> None:
        rows = await self._desk.session.fetch("select id, status from execution")
        expected = {id: one.status for id, one in self._model.all.items()}
        assert {row["id"]: row["status"] for row in rows} == expected
        slots = await self._desk.slots()
        held = Counter(key for one in self._model.those(*HOLDING) for key in one.keys)
        assert sorted(slots.values()) == sorted(held.values())
        stored: dict[UUID, dict[str, str]] = {}
        for row in await self._desk.session.fetch("select execution_id, key, value from label"):
            stored.setdefault(row["execution_id"], {})[row["key"]] = row["value"]
        assert stored == {id: one.labels for id, one in self._model.all.items() if one.labels}


@pytest.mark.parametrize("seed", SEEDS)
async def test_admission_by_labels_agrees_with_the_model(desk: Desk, seed: int) -> None:
    play = Play(desk, seed)
    await play.open()
    for _ in range(STEPS):
        await play.step()
    await play.regroup(1000)
    await play.compare()
    await desk.sound()


async def test_digest_of_a_sealed_parameter_is_no_label(desk: Desk) -> None:
    """A limit by a parameter of an encrypted tenant has a digest of its value beside the sealed values."""
    await desk.open()
    await desk.apply(*ACTIONS)
    ids, _ = await desk.submit_group([{"customer": "digest", "$sealed": "1.public.x"}, {"customer": "acme"}])
    rows = await desk.session.fetch("select execution_id, value from label where key = 'customer'")
    assert [tuple(row) for row in rows] == [(ids[1], "acme")]
