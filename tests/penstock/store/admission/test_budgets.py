"""Budgets that a tree of executions shares: reserved at admission, settled at the end of an attempt, raised by hand."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import orjson

from penstock import Limit
from penstock.language.terms.ids import new_id
from penstock.operate.why import why
from penstock.settings import Settings
from penstock.store.admission.budgets import budgets_of
from tests.penstock.store.admission.desk import Desk
from tests.penstock.store.admission.test_weights import end

TOKENS = Limit(ref="shop.tokens", scope="shop", budget="tokens", cost="{{ parameters.tokens | default(0) }}")
SUBMIT = """
select messages from submit_executions(array[$1]::uuid[], array[$2]::integer[], array[$3]::integer[], array[$4]::text[],
    array[$5]::text[], null, array[0]::smallint[], null, null, null, null, null, true)
"""
CHILD = """
select * from request_executions(array[$1]::uuid[], array[$2]::integer[], array[$3]::integer[], array[$4]::text[], null, null,
    null, null, array[$5]::uuid[], array[$6]::text[], null, true)
"""


async def root(
    desk: Desk, amount: float, when_spent: str = "refuse", ref: str = "mail.send", **params: Any
) -> UUID:
    """Start an execution with a budget, by default of an action that takes nothing of it."""
    id = new_id()
    options = orjson.dumps({"budget": {"tokens": amount}, "when_spent": when_spent}).decode()
    await desk.session.fetch(
        SUBMIT, id, desk._spaces[ref], desk._definitions[ref], orjson.dumps(params).decode(), options
    )
    return id


async def children(desk: Desk, parent: UUID, *tokens: float, ref: str = "shop.charge") -> list[UUID]:
    """Start children one after the other, each with this cost."""
    ids = []
    for cost in tokens:
        id = new_id()
        params = orjson.dumps({"tokens": cost}).decode()
        place = desk._spaces[ref], desk._definitions[ref]
        await desk.session.fetch(CHILD, id, *place, params, parent, f"t{id.hex}")
        ids.append(id)
    return ids


async def settled(desk: Desk) -> None:
    """Let timers and wake rows do what is due."""
    await desk.timers()
    await desk.tidy()


async def figures(desk: Desk, id: UUID) -> tuple[float, float, float]:
    [budget] = await budgets_of(desk.session, id)
    return budget.used, budget.reserved, budget.remaining


async def test_children_reserve_from_the_budget_of_their_root(desk: Desk) -> None:
    await desk.open(TOKENS)
    top = await root(desk, 100)
    ids = await children(desk, top, 60, 30, 20)
    assert await desk.statuses(ids) == ["scheduled", "scheduled", "queued"]
    assert await figures(desk, ids[0]) == (0, 90, 10)
    await desk.claim(ids[:1])
    await end(desk, ids[0], 10.5)
    assert await desk.statuses(ids) == ["completed", "scheduled", "scheduled"]
    assert await figures(desk, top) == (10.5, 50, 39.5)
    await desk.sound()


async def test_execution_without_a_budget_is_not_limited(desk: Desk) -> None:
    await desk.open(TOKENS)
    ids = await desk.start(3, tokens=10**9)
    assert await desk.scheduled(ids) == [0, 1, 2]
    assert await desk.slots() == {}


async def test_budgets_of_two_trees_are_apart(desk: Desk) -> None:
    await desk.open(TOKENS)
    first, second = await root(desk, 100), await root(desk, 50)
    ids = await children(desk, first, 60) + await children(desk, second, 40)
    assert await desk.scheduled(ids) == [0, 1]
    assert (await figures(desk, first), await figures(desk, second)) == ((0, 60, 40), (0, 40, 10))
    await desk.sound()


async def test_start_with_a_budget_takes_its_own_cost(desk: Desk) -> None:
    await desk.open(TOKENS)
    top = await root(desk, 100, ref="shop.refund", tokens=70)
    assert await desk.statuses([top]) == ["scheduled"]
    assert await figures(desk, top) == (0, 70, 30)
    costly = await root(desk, 100, ref="shop.refund", tokens=101)
    assert await desk.statuses([costly]) == ["cancelled"]
    assert await desk.reasons([costly]) == ["refused: needs 101 tokens, and the budget has 100 tokens"]
    await desk.sound()


async def test_spent_budget_refuses_without_room(desk: Desk) -> None:
    await desk.open(TOKENS)
    top = await root(desk, 100)
    ids = await children(desk, top, 70, 40, 50)
    await settled(desk)
    assert await desk.statuses(ids) == ["scheduled", "queued", "queued"]  # the first may give some back
    await desk.claim(ids[:1])
    await end(desk, ids[0], 70)
    await settled(desk)
    assert await desk.statuses(ids) == ["completed", "cancelled", "cancelled"]
    assert await desk.reasons(ids[1:2]) == ["refused: needs 40 tokens, and 30 of the budget of 100 are left"]
    last = await children(desk, top, 31, 30)
    await settled(desk)
    assert await desk.statuses(last) == ["cancelled", "scheduled"]
    await desk.sound()


async def test_spent_budget_waits_until_it_is_raised(desk: Desk) -> None:
    await desk.open(TOKENS)
    top = await root(desk, 100, "wait")
    ids = await children(desk, top, 70, 140)
    await desk.claim(ids[:1])
    await end(desk, ids[0], 90)
    await settled(desk)
    assert await desk.statuses(ids) == ["completed", "queued"]
    answer = await why(desk.session, ids[1], Settings(database_url=desk.session.settings.database_url))
    assert "it needs 140 tokens, and 10 of 100 are left." in answer.says
    assert "This execution is 1st in line." in answer.says
    [row] = await desk.session.fetch("select * from raise_budget($1, 'tokens', 90)", ids[1])
    assert (row["owner"], row["before"]) == (top, 100)
    await desk.session.fetch("select * from raise_budget($1, 'tokens', 230)", ids[1])
    await settled(desk)
    assert await desk.statuses(ids) == ["completed", "scheduled"]
    assert await figures(desk, top) == (90, 140, 0)
    await desk.sound()


async def test_retries_take_from_the_budget_each(desk: Desk) -> None:
    await desk.open(TOKENS)
    top = await root(desk, 100)
    [id] = await children(desk, top, 40)
    await desk.run([id], "requested")
    assert await desk.statuses([id]) == ["scheduled"]
    assert await figures(desk, top) == (40, 40, 20)
    await desk.sound()


async def test_attempt_that_no_worker_claimed_takes_nothing(desk: Desk) -> None:
    await desk.open(TOKENS)
    top = await root(desk, 100)
    ids = await children(desk, top, 90, 20)
    await desk.cancel(ids[:1])
    assert await desk.statuses(ids) == ["cancelled", "scheduled"]
    assert await figures(desk, top) == (0, 20, 80)
    await desk.sound()


async def test_cost_without_a_limit_is_in_the_ledger(desk: Desk) -> None:
    await desk.open()
    top = await root(desk, 100)
    await desk.claim([top])
    await end(desk, top, 130)
    assert await figures(desk, top) == (130, 0, -30)


async def test_rerun_shares_the_budget(desk: Desk) -> None:
    await desk.open(TOKENS)
    top = await root(desk, 100, ref="shop.refund", tokens=60)
    await desk.claim([top])
    await end(desk, top, 55)
    new = new_id()
    await desk.session.fetch(
        "select * from rerun_ended_execution($1, $2, '{}', null, null, 'ada', null, null, null)", new, top
    )
    await desk.admit([new])
    await settled(desk)
    assert await desk.statuses([new]) == ["cancelled"]
    assert await figures(desk, new) == (55, 0, 45)
    await desk.sound()


STARTED = """
select messages from submit_executions(array[$1]::uuid[], array[$2]::integer[], array[$3]::integer[], array[$4]::text[],
    null, array[$5]::text[], array[0]::smallint[], null, null, null, null, null, true)
"""


async def started_by(desk: Desk, starter: UUID, ref: str, **params: Any) -> UUID:
    """Start an execution as an attempt of `starter` does."""
    id = new_id()
    origin = orjson.dumps({"started_by": str(starter)}).decode()
    place = desk._spaces[ref], desk._definitions[ref]
    await desk.session.fetch(STARTED, id, *place, orjson.dumps(params).decode(), origin)
    return id


async def test_start_within_a_tree_takes_of_its_budget(desk: Desk) -> None:
    await desk.open(TOKENS)
    top = await root(desk, 100)
    [child] = await children(desk, top, 10)
    ids = [await started_by(desk, starter, "shop.charge", tokens=40) for starter in (top, child)]
    assert await desk.statuses(ids) == ["scheduled", "scheduled"]
    assert await figures(desk, ids[0]) == (0, 90, 10)
    # An execution between, which no limit covers, belongs to the tree, and so do its children and what it starts.
    between = await started_by(desk, top, "mail.send")
    further = [*await children(desk, between, 5), await started_by(desk, between, "shop.refund", tokens=5)]
    assert await desk.statuses(further) == ["scheduled", "scheduled"]
    assert await figures(desk, top) == (0, 100, 0)
    last = await started_by(desk, further[1], "shop.charge", tokens=1)
    assert await desk.statuses([last]) == ["queued"]
    await desk.sound()


async def test_start_within_a_tree_without_budget_is_free(desk: Desk) -> None:
    await desk.open(TOKENS)
    await root(desk, 100)
    [top] = await desk.start(1, "mail.send")
    id = await started_by(desk, top, "shop.charge", tokens=10**6)
    assert await desk.statuses([id]) == ["scheduled"]
    assert await desk.slots() == {}


async def test_other_unit_holds_for_waiting_executions(desk: Desk) -> None:
    """The tree has no budget of the new unit, so the limit by it limits nothing."""
    await desk.open(TOKENS)
    top = await root(desk, 100, "wait")
    ids = await children(desk, top, 60, 60)
    assert await desk.statuses(ids) == ["scheduled", "queued"]
    await desk.apply(Limit(ref="shop.tokens", scope="shop", budget="eur", cost=TOKENS.cost))
    await desk.tidy()
    assert await desk.statuses(ids) == ["scheduled", "scheduled"]
    await desk.sound()
