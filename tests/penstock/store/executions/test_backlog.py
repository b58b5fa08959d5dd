"""The order in which claims take executions of an ordered route, beside a plain queue that takes one at a time."""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

import pytest

from penstock.language.terms.ids import new_id
from tests.penstock.store.both_ways import clean
from tests.penstock.store.executions.test_attempts import define
from tests.penstock.store.members import ME
from tests.penstock.store.stand import Stand

QUEUE, ELSEWHERE = "work.default", "work.other"
GAMES = 30
REQUEST = """
select * from unnest(request_executions($1::uuid[], array_fill($2::integer, array[cardinality($1)]),
    array_fill($3::integer, array[cardinality($1)]), array_fill('{}'::text, array[cardinality($1)]), null, null,
    array_fill($4::smallint, array[cardinality($1)]), null, $5::uuid[], $6::text[], null, false, true))
"""
SET = "select m.ids from set_priority($1, $2), unnest(messages) m where m.queue = $3"
PLACE = """
select messages from place_alike(array[$1::uuid], $2, $3, array['{}'], '{null}', 0::smallint, true)
"""
TAKE = """
select queue from take_children($1, $6, array[$2], array[$3::integer], '{}', '{}', array[$7::uuid], array[$4::integer],
    array[$3::integer], array['{}'], array[null::text], array['{}'], array[$5::uuid], array['next'])
"""
TIDY = "select gone, ended from tidy_backlog(interval '0', 1000)"


WAITS = "select from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()"


class Route:
    """A route with the messages on it. The tenants' namespaces are made when they are first used."""

    def __init__(self, stand: Stand) -> None:
        self.stand = stand
        self.messages: list[list[UUID]] = []
        self.namespaces: dict[tuple[str, str], int] = {}

    async def namespace(self, tenant: str, queue: str = QUEUE) -> int:
        if (tenant, queue) not in self.namespaces:
            name = f"{tenant}::a::{queue}"
            [row] = await self.stand.sql(
                "insert into namespace (name, action, kind, queue) values ($1, 'a.b', 'action', $2) returning id",
                *(name, queue),
            )
            await self.stand.sql("select note_tenants(array[$1], array[$2])", queue, name)
            self.namespaces[tenant, queue] = row["id"]
        return self.namespaces[tenant, queue]

    async def start(
        self,
        count: int = 1,
        *,
        tenant: str = "public",
        priority: int = 0,
        definition: int | None = None,
        parent: UUID | None = None,
    ) -> list[UUID]:
        ids = [new_id() for _ in range(count)]
        messages = await self.stand.sql(
            REQUEST,
            ids,
            await self.namespace(tenant),
            definition or self.stand.definition,
            priority,
            [parent] * count if parent else None,
            [str(id) for id in ids] if parent else None,
        )
        self.messages += [list(message["ids"]) for message in messages if message["queue"] == QUEUE]
        return ids

    async def claim(
        self, ids: list[UUID], take: int, *, lacks: list[int] | None = None, knows: list[int] | None = None
    ) -> tuple[list[UUID], dict[str, Any]]:
        """Return the claimed executions, and the whole answer."""
        [row] = await self.stand.sql(
            "select * from claim_executions($1, $2, $3, $4, $5, $6, $7)",
            *(ME, new_id(), ids, take, QUEUE, [self.stand.definition, *(knows or ())], lacks or []),
        )
        self.messages += [list(message["ids"]) for message in row["messages"] if message["queue"] == QUEUE]
        return [attempt["execution_id"] for attempt in row["claimed"]], dict(row)

    async def next(self) -> UUID | None:
        """Claim one execution by the first message."""
        claimed, _ = await self.claim(self.messages.pop(0), 1)
        return claimed[0] if claimed else None

    async def all(self) -> list[UUID]:
        """Claim one at a time until no message is left."""
        claimed = []
        while self.messages:
            id = await self.next()
            if id is not None:
                claimed.append(id)
        return claimed


@pytest.fixture
def route(stand: Stand) -> Route:
    return Route(stand)


async def status(route: Route, id: UUID) -> str:
    [row] = await route.stand.sql("select status from execution where id = $1", id)
    return str(row["status"])


async def in_backlog(route: Route) -> set[UUID]:
    return {row["execution_id"] for row in await route.stand.sql("select execution_id from backlog")}


async def test_claim_takes_named_executions_where_nothing_is_ordered(route: Route) -> None:
    first, second = await route.start(), await route.start()
    assert (await route.claim(second, 1))[0] == second
    assert (await route.claim(first, 1))[0] == first
    assert not await route.stand.sql("select from ordered_route")
    assert not await in_backlog(route)


async def test_higher_priority_is_claimed_by_any_message(route: Route) -> None:
    plain = [id for _ in range(3) for id in await route.start()]
    high = await route.start(priority=9)
    assert await route.all() == [*high, *plain]
    assert not await in_backlog(route)


async def test_tenants_take_turns(route: Route) -> None:
    ours = await route.start(4)
    theirs = [id for _ in range(2) for id in await route.start(tenant="acme")]
    assert await route.all() == [theirs[0], ours[0], theirs[1], *ours[1:]]


async def test_claims_choose_one_after_the_other(route: Route, stand: Stand) -> None:
    """A claim that has not committed yet has had its tenant's turn: the next claim waits for it."""
    ours = [id for _ in range(3) for id in await route.start()]
    theirs = [id for _ in range(2) for id in await route.start(tenant="acme")]
    claim = "select (unnest(claimed)).execution_id from claim_executions($1, $2, $3, 1, $4, $5, '{}')"
    args = (QUEUE, [stand.definition])
    first, second = stand.home.session(), stand.home.session()
    # The rows of the turns exist: their inserts would wait for each other.
    [row] = await first.fetch(claim, ME, new_id(), [ours[0]], *args)
    assert row["execution_id"] == theirs[0]
    async with first.transaction() as tx:
        [first_row] = await tx.fetch(claim, ME, new_id(), [ours[1]], *args)
        later = asyncio.create_task(second.fetch(claim, ME, new_id(), [ours[2]], *args))
        async with asyncio.timeout(20):
            while not later.done() and not await stand.sql(WAITS):
                await asyncio.sleep(0.01)
    [row] = await later
    assert [first_row["execution_id"], row["execution_id"]] == [ours[0], theirs[1]]


async def test_message_of_several_is_a_turn_for_each(route: Route) -> None:
    plain = await route.start(5)
    await route.start(priority=-1)
    claimed, _ = await route.claim(route.messages.pop(0), 3)
    assert set(claimed) == set(plain[:3])
    assert [len(ids) for ids in route.messages] == [1, 2], "the turns that are left go back"
    assert set(await route.all()) >= set(plain[3:])


async def test_message_of_claimed_execution_takes_another(route: Route) -> None:
    low, high = await route.start(), await route.start(priority=3)
    assert await route.next() == high[0]
    assert route.messages == [high], "the message of the lower one is used up"
    assert await route.next() == low[0]


async def test_every_tenth_turn_goes_to_a_lower_priority(route: Route) -> None:
    lows = {p: await route.start(3, priority=p) for p in (2, 1, 0)}
    highs = await route.start(60, priority=9)
    order = (await route.all())[:60]
    special = order[9::10]
    assert special == [lows[2][0], lows[1][0], lows[0][0], lows[2][1], lows[1][1], lows[0][1]]
    assert set(order) - set(special) <= set(highs)


async def test_older_workflow_comes_first(route: Route, stand: Stand) -> None:
    await stand.add("older", "running", kind="workflow", queue="workflow.started")
    await stand.add("younger", "running", kind="workflow", queue="workflow.started")
    await route.start(priority=-1)
    late = await route.start(parent=stand.ids["younger"])
    early = await route.start(parent=stand.ids["older"])
    assert (await route.all())[:2] == [*early, *late]


async def test_tasks_inherit_the_priority_of_their_workflow(route: Route, stand: Stand) -> None:
    await stand.add("flow", "running", kind="workflow", queue="workflow.started", priority=5)
    first = await route.start()
    [made] = await stand.sql("select inherited_priorities(array[$1::uuid, null]) as p", stand.ids["flow"])
    assert made["p"] == [5, 0]
    id = new_id()
    messages = await stand.sql(
        "select m.* from start_children('{}', '{}', array[$1::uuid], array[$2::integer], array[$3::integer], array['{}'],"
        " '{null}', '{null}', null, array[$4::uuid], '{task}', null), unnest(messages) m",
        *(id, await route.namespace("public"), stand.definition, stand.ids["flow"]),
    )
    route.messages += [list(message["ids"]) for message in messages if message["queue"] == QUEUE]
    assert await route.all() == [id, *first]


async def test_cancelled_execution_leaves_the_backlog_and_its_turn(route: Route, stand: Stand) -> None:
    high, low = await route.start(priority=2), await route.start()
    await stand.sql("select * from cancel_executions($1::uuid[], 'why')", high)
    assert await in_backlog(route) == set(low)
    assert await route.all() == low


async def test_new_priority_changes_the_place(route: Route, stand: Stand) -> None:
    await route.start(priority=9)
    await route.all()
    ids = [id for _ in range(4) for id in await route.start()]
    route.messages += [list(row["ids"]) for row in await stand.sql(SET, ids[2], 5, QUEUE)]
    route.messages += [list(row["ids"]) for row in await stand.sql(SET, ids[0], -5, QUEUE)]
    assert await route.all() == [ids[2], ids[1], ids[3], ids[0]]


async def test_new_priority_of_an_ended_execution_changes_nothing(route: Route, stand: Stand) -> None:
    ids = await route.start()
    await stand.sql("select * from cancel_executions($1::uuid[], 'why')", ids)
    assert not await stand.sql(SET, ids[0], 5, QUEUE)
    [row] = await stand.sql("select priority from execution where id = $1", ids[0])
    assert row["priority"] == 0


async def test_execution_of_a_lacked_action_is_parked(route: Route, stand: Stand) -> None:
    [lacked] = await define(stand, "lacked")
    parked, able = await route.start(priority=7, definition=lacked), await route.start()
    claimed, answer = await route.claim(route.messages.pop(0), 1, lacks=[lacked])
    assert claimed == []
    assert answer["parked"]
    assert [row["execution_id"] for row in await stand.sql("select execution_id from parked")] == parked
    claimed, _ = await route.claim(route.messages.pop(0), 1, lacks=[lacked])
    assert claimed == able
    assert not await in_backlog(route)


async def test_execution_of_an_unknown_action_stays_in_the_backlog(route: Route, stand: Stand) -> None:
    [unknown] = await define(stand, "unknown")
    high = await route.start(priority=7, definition=unknown)
    await route.start()
    message = route.messages.pop(0)
    claimed, answer = await route.claim(message, 1)
    assert (claimed, answer["unknown"]) == ([], [unknown])
    claimed, _ = await route.claim(message, 1, knows=[unknown])
    assert claimed == high


async def test_rerouted_execution_goes_to_its_own_route(route: Route, stand: Stand) -> None:
    moved, stays = await route.start(priority=7), await route.start()
    space = await route.namespace("public", ELSEWHERE)
    await stand.sql("update execution set namespace_id = $2 where id = $1", moved[0], space)
    _, answer = await route.claim(route.messages.pop(0), 1)
    assert [(m["queue"], list(m["ids"])) for m in answer["messages"]] == [(ELSEWHERE, moved)]
    assert await route.all() == stays


async def test_locked_execution_is_passed_over(route: Route, stand: Stand) -> None:
    high, low = await route.start(priority=7), await route.start()
    async with stand.home.session().transaction() as tx:
        await tx.fetch("select from execution where id = $1 for no key update", high[0])
        assert await route.next() == low[0]
    assert await route.next() == high[0]


async def test_assigned_work_does_not_overtake_the_backlog(route: Route, stand: Stand) -> None:
    """A submit that finds a permit is stored on the route while other work waits there."""
    await stand.sql(
        "insert into catalog (kind, ref, definition_id) values ('action', 'a.b', $1)", stand.definition
    )
    await stand.sql("insert into process (id, kind, name, lock_key) values ($1, 'worker', 'w', 815)", ME)
    space = await route.namespace("public")
    holder = stand.home.session()
    async with holder.transaction() as tx:
        await tx.fetch("select pg_advisory_xact_lock(815)")
        [high] = await route.start(priority=7)
        await stand.sql(
            "insert into permit (worker, queue, channel, actor, definitions) select $1, $2, 'c', 'w', array[$3::integer]",
            ME,
            QUEUE,
            stand.definition,
        )
        waits, runs = new_id(), new_id()
        await stand.sql(PLACE, waits, space, stand.definition)
        assert await status(route, waits) == "scheduled"
        assert await route.next() == high
        route.messages.append([waits])
        assert await route.next() == waits
        await stand.sql(PLACE, runs, space, stand.definition)
        assert await status(route, runs) == "running"


async def test_next_step_does_not_overtake_the_backlog(route: Route, stand: Stand) -> None:
    """A worker goes on with a workflow in place once nothing else waits on the route."""
    flow = await stand.add("flow", "running", kind="workflow", options={})
    space = await route.namespace("public")
    [high] = await route.start(priority=7)
    arguments = (ME, QUEUE, stand.definition, space, flow)
    [row] = await stand.sql(TAKE, *arguments, new_id(), new_id())
    assert row["queue"] is None
    assert await route.next() == high
    [row] = await stand.sql(TAKE, *arguments, new_id(), new_id())
    assert row["queue"] == QUEUE


async def hold_all(stand: Stand) -> None:
    await stand.sql("insert into hold (kind, name, by) values ('pack', 'a', 'ada')")
    await stand.sql("select mark_holds(null)")


async def test_held_execution_is_not_claimed(route: Route, stand: Stand) -> None:
    plain, high = await route.start(), await route.start(priority=7)
    await hold_all(stand)
    assert await route.all() == []
    assert [await status(route, id) for id in (*plain, *high)] == ["scheduled", "scheduled"]
    await stand.sql("select * from hold_waiting($1, 10)", UUID(int=0))
    rows = await stand.sql("select execution_id from held_execution order by rank, ready_at")
    assert [row["execution_id"] for row in rows] == [*high, *plain]
    assert not await in_backlog(route)


async def test_held_submit_is_not_assigned(route: Route, stand: Stand) -> None:
    await stand.sql(
        "insert into catalog (kind, ref, definition_id) values ('action', 'a.b', $1)", stand.definition
    )
    space, id = await route.namespace("public"), new_id()
    await hold_all(stand)
    await stand.sql(PLACE, id, space, stand.definition)
    assert await status(route, id) == "requested"


async def test_order_ends_where_nothing_waits(route: Route, stand: Stand) -> None:
    await route.start(priority=7)
    assert [tuple(row) for row in await stand.sql(TIDY)] == [(0, 0)]
    await route.all()
    assert [tuple(row) for row in await stand.sql(TIDY)] == [(0, 1)]
    first, second = await route.start(), await route.start()
    assert (await route.claim(second, 1))[0] == second
    assert (await route.claim(first, 1))[0] == first


async def test_order_does_not_end_beside_a_second_tenant(route: Route, stand: Stand) -> None:
    await route.start()
    await route.start(tenant="acme")
    await route.all()
    assert [tuple(row) for row in await stand.sql(TIDY)] == [(0, 0)]
    assert await stand.sql("select from ordered_route")


async def test_rows_that_are_left_over_are_deleted(route: Route, stand: Stand) -> None:
    [left] = await route.start(priority=7)
    await stand.sql("update execution set status = 'running' where id = $1", left)
    assert [tuple(row) for row in await stand.sql(TIDY)] == [(1, 1)]


@dataclass
class PlainQueue:
    """The oracle: one execution is taken at a time from a list, and everything is looked at anew each time."""

    tenants: dict[UUID, str] = field(default_factory=dict)
    priorities: dict[UUID, int] = field(default_factory=dict)
    ages: dict[UUID, tuple[datetime, UUID]] = field(default_factory=dict)
    waiting: set[UUID] = field(default_factory=set)
    """Scheduled, whether the route knows or not."""
    in_backlog: set[UUID] = field(default_factory=set)
    ordered: bool = False
    turns: int = 0
    last_low: int = -1000
    last_tenants: dict[int, str] = field(default_factory=dict)

    def taken(self, named: list[UUID], most: int) -> list[UUID]:
        if not self.ordered:
            ids = [id for id in named[:most] if id in self.waiting]
        else:
            self.in_backlog |= set(named) & self.waiting
            ids = []
            while self.in_backlog and len(ids) < min(most, len(named)):
                ids.append(self._next(named[0]))
                self.in_backlog.discard(ids[-1])
        self.waiting -= set(ids)
        return ids

    def _next(self, named: UUID) -> UUID:
        levels = sorted({self.priorities[id] for id in self.in_backlog}, reverse=True)
        level = levels[0]
        if len(levels) > 1 and self.turns % 10 == 9:
            lower = [p for p in levels[1:] if p < self.last_low]
            level = self.last_low = lower[0] if lower else levels[1]
        tenants = sorted({self.tenants[id] for id in self.in_backlog if self.priorities[id] == level})
        tenant = tenants[0]
        if len(tenants) > 1:
            last = self.last_tenants.get(level, self.tenants[named])
            tenant = next((t for t in tenants if t > last), tenants[0])
        self.last_tenants[level] = tenant
        self.turns += 1
        return min(
            (id for id in self.in_backlog if self.priorities[id] == level and self.tenants[id] == tenant),
            key=self.ages.__getitem__,
        )


async def play(route: Route, seed: int) -> None:
    draw, plain = random.Random(seed), PlainQueue()
    stand = route.stand
    tenants = ["public"] if draw.random() < 0.3 else ["public", "acme", "zoo"]
    priorities = [0] if draw.random() < 0.3 else [0, 0, 0, 4, 9, -3]

    async def start() -> None:
        tenant, priority = draw.choice(tenants), draw.choice(priorities)
        ids = await route.start(draw.choice([1, 1, 2, 7]), tenant=tenant, priority=priority)
        plain.ordered = plain.ordered or priority != 0 or len(route.namespaces) > 1
        for row in await stand.sql("select id, created_at from execution where id = any($1::uuid[])", ids):
            plain.ages[row["id"]] = (row["created_at"], row["id"])
        plain.tenants |= dict.fromkeys(ids, tenant)
        plain.priorities |= dict.fromkeys(ids, priority)
        plain.waiting |= set(ids)
        plain.in_backlog |= set(ids) if plain.ordered else set()

    async def claim() -> None:
        if route.messages:
            message, take = (
                route.messages.pop(draw.randrange(len(route.messages))),
                draw.choice([0, 1, 1, 3, 20]),
            )
            expected = plain.taken(list(message), take)
            claimed, _ = await route.claim(message, take)
            assert set(claimed) == set(expected), f"seed {seed}"
            if plain.ordered:
                assert await in_backlog(route) == plain.in_backlog, f"seed {seed}"

    async def cancel() -> None:
        if plain.waiting:
            id = draw.choice(sorted(plain.waiting))
            await stand.sql("select * from cancel_executions($1::uuid[], 'why')", [id])
            plain.waiting.discard(id)
            plain.in_backlog.discard(id)

    async def prioritize() -> None:
        if plain.waiting:
            id, priority = draw.choice(sorted(plain.waiting)), draw.choice([0, 4, 9, -3])
            if priority != plain.priorities[id]:
                route.messages += [list(row["ids"]) for row in await stand.sql(SET, id, priority, QUEUE)]
                plain.ordered = plain.ordered or priority != 0
                plain.in_backlog |= {id} if plain.ordered else set()
                plain.priorities[id] = priority

    for _ in range(60):
        await draw.choice([start, start, claim, claim, claim, cancel, prioritize])()
    while route.messages:
        await claim()
    assert not plain.waiting, "each execution had a message"
    assert not await in_backlog(route)


async def test_games_claim_as_a_plain_queue(stand: Stand) -> None:
    for seed in range(GAMES):
        await clean(stand)
        await stand.sql("delete from namespace where name <> 'public::a::b'")
        await play(Route(stand), seed)
