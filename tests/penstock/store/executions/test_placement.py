"""Work that becomes ready while workers have permits, from every source. An oracle plays random games twice: with permits, and
without them, with the claims of the same workers afterwards. All tables are compared."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID

import orjson
import pytest

from penstock.language.policies.after_attempt import Ending
from penstock.language.terms.ids import new_id
from penstock.store.executions import attempts, executions
from penstock.store.executions.attempts import AttemptEnd
from penstock.store.executions.executions import Submission
from penstock.store.session.database import Database
from tests.penstock.store.both_ways import Played, clean
from tests.penstock.store.executions.test_plain_executions import (
    OTHER,
    PERMIT,
    TRACE,
    WORKER,
    workers,
)
from tests.penstock.store.stand import Stand

SEEDS = 60
QUEUE = "work.default"
REQUESTED = """
select messages from (select request_executions($1::uuid[], array_fill($2::integer, array[cardinality($1)]), $3::integer[],
    array_fill('{"n": 1}'::text, array[cardinality($1)]), $4::text[], $5::text[], $6::smallint[], null, $7::uuid[], $8::text[],
    null, true)) x (messages)
"""
CLAIM = (
    "select cardinality(claimed) as size from claim_named($1, $2, $3::uuid[], 100, $4, $5::integer[], '{}')"
)
PERMITTED = "select id, worker, executions from claim where assigned order by id"
ELIGIBLE = """
select e.id from execution e join namespace n on n.id = e.namespace_id join payload p on p.execution_id = e.id
where e.status = 'scheduled' and n.queue = 'work.default' and n.kind = 'action'
    and p.options #>> '{recovery,on_worker_loss}' is distinct from 'fail' and exists (
        select from permit t join process w on w.id = t.worker
        where t.queue = n.queue and e.definition_id = any (t.definitions) and t.at > clock_timestamp() - interval '5 s'
            and w.name in ('idle', 'busy'))
"""
ASSIGNED = """
select c.worker, e.definition_id from claim c, unnest(c.executions) x join execution e on e.id = x where c.assigned
"""
AT_MOST_ONCE = """
select from claim c, unnest(c.executions) x join payload p on p.execution_id = x
where c.assigned and p.options #>> '{recovery,on_worker_loss}' = 'fail'
"""
DIFFERENT = ("permit", "outbox", "ordered_route", "route_turn", "tenant_turn")
"""Tables that differ: messages are fewer and grouped otherwise, and a route with an empty backlog is not marked as ordered."""


@pytest.fixture
async def stand(stand: Stand) -> Stand:
    await stand.sql("update definition set body = '{}' where id = $1", stand.definition)
    await stand.sql(
        "insert into catalog (kind, ref, definition_id) values ('action', 'a.b', $1)", stand.definition
    )
    await stand.sql(
        "insert into concurrency_limit (ref, definition_id, scope, max) values ('a.two', $1, 'a.b', 2)",
        stand.definition,
    )
    await stand.sql(
        "insert into definition (kind, ref, digest, body) values ('action', 'a.c', 'y', '{}') returning id"
    )
    await stand.sql(
        "insert into catalog (kind, ref, definition_id) select 'action', 'a.c', id from definition where ref = 'a.c'"
    )
    return stand


class Game:
    """A game on one database. `permits` says whether workers have permits when the last part begins."""

    def __init__(self, stand: Stand, seed: int, worker_ids: dict[str, UUID], *, permits: bool) -> None:
        self.played = Played(stand, seed)
        self.stand, self.draw = stand, self.played.draw
        self.worker_ids = worker_ids
        self.permits = permits
        self.definitions: list[int] = []
        self.space = 0
        self.scheduled_before: set[UUID] = set()
        self.valid: list[tuple[UUID, int]] = []
        """Workers with valid permits, and the definitions that each permit names."""

    async def surroundings(self) -> None:
        stand, draw = self.stand, self.draw
        [row] = await stand.sql("select id from definition where ref = 'a.c'")
        self.definitions = [stand.definition, row["id"]]
        self.space = await stand.namespace("action", QUEUE)
        await stand.sql(
            "update namespace set envelope = $2 where id = $1", self.space, draw.choice([1, 2, 20])
        )
        if draw.random() < 0.3:
            await stand.sql(
                "update namespace set limits = (select array_agg(id) from concurrency_limit) where id = $1",
                self.space,
            )
        if draw.random() < 0.15:
            await stand.sql("update cluster set announced = '{running,scheduled}'")
        if draw.random() < 0.15:
            await stand.sql("update cluster set subscribed = '{running,completed}'")

    async def place_permits(self) -> None:
        """Have workers place permits, of which some are not valid. The same ones are drawn where they are not placed."""
        draw = self.draw
        rows = await self.stand.sql("select id from execution where status = 'scheduled'")
        self.scheduled_before = {row["id"] for row in rows}
        for _ in range(draw.randint(1, 6)):
            arguments = (
                self.worker_ids[draw.choice(["idle", "busy", "idle", "busy", "cordoned", "ended"])],
                draw.choice([QUEUE] * 5 + ["work.other"]),
                draw.choice([1.0, 2.0, 3.0, 3600.0]) + draw.random() / 2,
                draw.choice([self.definitions, self.definitions[:1], self.definitions[1:]]),
            )
            worker, queue, age, definitions = arguments
            lives = worker in (self.worker_ids["idle"], self.worker_ids["busy"])
            if lives and queue == QUEUE and age < 5:
                self.valid += [(worker, definition) for definition in definitions]
            if self.permits:
                await self.stand.sql(PERMIT, *arguments)

    def options(self) -> str | None:
        drawn: list[dict[str, Any] | None] = [
            None,
            None,
            None,
            {"recovery": {"on_worker_loss": "fail"}},
            {"recovery": {"on_worker_loss": "rerun"}},
        ]
        options = self.draw.choice(drawn)
        return None if options is None else orjson.dumps(options).decode()

    def origin(self) -> str | None:
        return self.draw.choice([None, None, '{"by": "clerk"}', orjson.dumps({"trace": TRACE}).decode()])

    async def submits(self) -> None:
        """Submit a group with keys, options, priorities and limits, in one transaction."""
        draw = self.draw
        group = [
            Submission(
                self.played.id(),
                self.space,
                draw.choice(self.definitions),
                f'{{"n": {n}}}',
                "public",
                options=self.options(),
                origin=self.origin(),
                priority=draw.choice([0, 0, 0, 5, -2]),
                key=f"key {n}" if draw.random() < 0.5 else None,
                digest="x",
            )
            for n in range(draw.randint(1, 7))
        ]
        await self.place_permits()
        async with self.stand.session.transaction() as tx:
            await executions.submit(tx, group)

    async def requested(self, count: int) -> list[UUID]:
        """Insert requested executions, some of which were tried before."""
        draw, ids = self.draw, []
        for n in range(count):
            tries = draw.choice([0, 0, 1, 3])
            id = await self.stand.add(
                f"requested {n}",
                "requested",
                attempt=tries,
                failures=max(0, tries - 1),
                priority=draw.choice([0, 0, 4]),
                reason=draw.choice([None, "again"]),
            )
            self.played.ids.append(id)
            ids.append(id)
            await self.stand.sql(
                "update execution set definition_id = $2 where id = $1", id, draw.choice(self.definitions)
            )
            await self.stand.sql(
                "insert into payload (execution_id, params, options, origin)"
                " values ($1, '{\"n\": 1}', $2::text::jsonb, $3::text::jsonb)",
                *(id, self.options(), self.origin()),
            )
            if tries and draw.random() < 0.5:
                await self.stand.sql(
                    "insert into attempt (execution_id, attempt, outcome, worker, error)"
                    " values ($1, $2, 'deferred', 'x', '{\"carry\": {\"at\": 1}}')",
                    *(id, tries),
                )
        return ids

    async def executor_schedules(self) -> None:
        ids = await self.requested(self.draw.randint(1, 6))
        await self.place_permits()
        async with self.stand.session.transaction() as tx:
            await executions.schedule(tx, ids)

    async def timers_fire(self) -> None:
        ids = await self.requested(self.draw.randint(1, 6))
        for id in ids:
            await self.stand.sql(
                "insert into timer (due_at, kind, execution_id) values (clock_timestamp(), 'ready', $1)", id
            )
        await self.place_permits()
        await self.stand.sql("select messages from fire_timers(100)")

    async def workflow_starts_tasks(self) -> None:
        draw = self.draw
        parent = await self.stand.add("flow", "running", kind="workflow", attempt=1)
        self.played.ids.append(parent)
        await self.stand.sql(
            "insert into payload (execution_id, params, origin) values ($1, '{}', $2::text::jsonb)",
            *(parent, self.origin()),
        )
        ids = [self.played.id() for _ in range(draw.randint(1, 6))]
        arguments = (
            [draw.choice(self.definitions) for _ in ids],
            [self.options() for _ in ids],
            ['{"by": "flow"}' for _ in ids],
            [draw.choice([0, 3]) for _ in ids],
            [parent for _ in ids],
            [f"task {n}" for n in range(len(ids))],
        )
        await self.place_permits()
        await self.stand.sql(REQUESTED, ids, self.space, *arguments)

    async def attempts_end(self) -> None:
        """End attempts under a limit with others in line: they complete, or are tried again at once or later."""
        stand, draw = self.stand, self.draw
        await stand.sql("insert into claim (id, worker, executions) values ($1, $1, '{}')", WORKER)
        group = [
            Submission(
                self.played.id(),
                self.space,
                draw.choice(self.definitions),
                "{}",
                "public",
                options=self.options(),
                priority=draw.choice([0, 0, 2]),
                key=f"key {n}",
                digest="x",
            )
            for n in range(draw.randint(2, 6))
        ]
        async with stand.session.transaction() as tx:
            await executions.submit(tx, group)
        started = [
            row["id"]
            for row in await stand.sql(
                "select id from execution where status = 'scheduled' order by id limit $1", draw.randint(1, 3)
            )
        ]
        await stand.sql(CLAIM, WORKER, OTHER, started, QUEUE, self.definitions)
        await stand.sql("delete from backlog where execution_id = any ($1::uuid[])", started)
        ends = []
        for id in started:
            status, delay = draw.choice(
                [("completed", 0.0), ("requested", 0.0), ("requested", 60.0), ("requested", None)]
            )
            error = '{"type": "Odd"}' if status == "requested" and delay is not None else None
            ends.append(AttemptEnd(id, 1, Ending(status, None if error else "1", error, delay)))
        await self.place_permits()
        async with stand.session.transaction() as tx:
            await attempts.finish(tx, WORKER, ends, [OTHER], alone=True)

    async def claims_of_workers(self, claims: list[tuple[UUID, list[UUID]]]) -> None:
        """Claim by messages what the other game assigned."""
        for worker, ids in claims:
            [row] = await self.stand.sql(CLAIM, worker, new_id(), ids, QUEUE, self.definitions)
            assert row["size"] == len(ids), "what was assigned is not scheduled"
            for table in ("parked", "backlog"):
                await self.stand.sql(f"delete from {table} where execution_id = any ($1::uuid[])", ids)

    async def tables(self) -> dict[str, list[str]]:
        await self.stand.sql(
            "update claim set executions = array(select x from unnest(executions) x order by x)"
        )
        dump = await self.played.dump()
        dump["claim"] = [row.replace('"assigned": true', '"assigned": false') for row in dump["claim"]]
        staged = await self.stand.sql("select queue, x::text as id from outbox, unnest(ids) x")
        taken = {str(id) for row in await self.stand.sql("select executions from claim") for id in row[0]}
        for table in DIFFERENT:
            dump.pop(table)
        dump["messages"] = sorted(
            self.played.named(f"{row['queue']} {row['id']}")
            for row in staged
            if not (row["queue"] == QUEUE and row["id"] in taken)
        )
        return dump


SOURCES = (
    Game.submits,
    Game.executor_schedules,
    Game.timers_fire,
    Game.workflow_starts_tasks,
    Game.attempts_end,
)


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.__name__)
async def test_assigned_work_leaves_same_tables_as_messages_and_claims(stand: Stand, source: Any) -> None:
    worker_ids, connection = await workers(stand)
    shares: Counter[bool] = Counter()
    for seed in range(SEEDS):
        games = []
        claims: list[tuple[UUID, list[int]]] = []
        for permits in (True, False):
            await clean(stand)
            game = Game(stand, seed, worker_ids, permits=permits)
            await game.surroundings()
            await source(game)
            ids = game.played.ids
            if permits:
                rows = await stand.sql(PERMITTED)
                claims = [(row["worker"], [ids.index(id) for id in row["executions"]]) for row in rows]
                left = {row["id"] for row in await stand.sql(ELIGIBLE)} - game.scheduled_before
                pairs = Counter((row["worker"], row["definition_id"]) for row in await stand.sql(ASSIGNED))
                assert not pairs - Counter(game.valid), f"seed {seed}: assigned without a valid permit"
                if not await stand.sql("select from backlog"):
                    assert not left, f"seed {seed}: a permit is left, and work for it"
            else:
                await game.claims_of_workers([(worker, [ids[n] for n in ns]) for worker, ns in claims])
            games.append(await game.tables())
            assert not await stand.sql(AT_MOST_ONCE), "it would fail with its worker without having begun"
        assert {name for name, _ in claims} <= {worker_ids["idle"], worker_ids["busy"]}
        shares[bool(claims)] += 1
        short, long = games
        differing = {name: (short[name], long[name]) for name in short if short[name] != long[name]}
        assert not differing, f"seed {seed}"
    assert shares[True] > SEEDS / 5
    assert shares[False] > 0
    await connection.close()


@pytest.fixture
async def permitted(stand: Stand) -> AsyncIterator[Stand]:
    """A database with four permits of one idle worker, and two requested executions: `first` and `second`."""
    worker_ids, connection = await workers(stand)
    for _ in range(4):
        await stand.sql(PERMIT, worker_ids["idle"], QUEUE, 0.0, [stand.definition])
    for name in ("first", "second"):
        await stand.add(name, "requested", options={})
    yield stand
    await connection.close()


SCHEDULE = "select messages from (select schedule_executions($1::uuid[])) x (messages)"


async def schedule(stand: Stand, *names: str) -> list[str]:
    """Schedule executions, and return the queues of the staged messages."""
    [row] = await stand.sql(SCHEDULE, [stand.ids[name] for name in names])
    return [message["queue"] for message in row["messages"]]


async def test_scheduled_execution_goes_to_the_worker_of_a_permit(permitted: Stand) -> None:
    assert await schedule(permitted, "first") == [f"placed.{QUEUE}"]
    assert await permitted.with_status("running") == {"first"}
    assert len(await permitted.sql("select from permit")) == 3
    assert not await permitted.sql("select from outbox")


async def test_higher_priority_has_the_only_permit(permitted: Stand) -> None:
    await permitted.sql("delete from permit where ctid <> (select min(ctid) from permit)")
    await permitted.sql("update execution set priority = 5 where id = $1", permitted.ids["second"])
    assert await schedule(permitted, "first", "second") == [f"placed.{QUEUE}", QUEUE]
    assert await permitted.with_status("running") == {"second"}
    assert [row["execution_id"] for row in await permitted.sql("select execution_id from backlog")] == [
        permitted.ids["first"]
    ]


async def test_backlog_of_the_route_is_not_overtaken(permitted: Stand) -> None:
    older = await permitted.add("older", "scheduled", priority=3)
    await permitted.sql("select join_backlog($1, array[$2::uuid])", QUEUE, older)
    assert await schedule(permitted, "first") == [QUEUE]
    assert await permitted.with_status("scheduled") == {"older", "first"}


async def test_action_that_is_held_meanwhile_is_not_assigned(permitted: Stand) -> None:
    """The hold is committed after the executor has looked for holds."""
    await permitted.sql("update execution set status = 'scheduled' where status = 'requested'")
    await permitted.sql("update namespace set hold = 'held'")
    ids = list(permitted.ids.values())
    [row] = await permitted.sql("select assigned from assign_scheduled($1, $2::uuid[])", QUEUE, ids)
    assert row["assigned"] == []
    await permitted.sql("update namespace set hold = 'releasing'")
    [row] = await permitted.sql("select assigned from assign_scheduled($1, $2::uuid[])", QUEUE, ids)
    assert set(row["assigned"]) == set(ids)


async def test_callers_own_transaction_assigns_nothing(permitted: Stand) -> None:
    namespace = await permitted.namespace("action", QUEUE)
    group = [Submission(new_id(), namespace, permitted.definition, "{}", "public", key="own", digest="x")]
    for is_own in (True, False):
        async with permitted.session.transaction() as tx:
            if is_own:
                await tx.fetch("select 1")
            await executions.submit(tx, group)
        [row] = await permitted.sql("select status from execution where id = $1", group[0].id)
        assert row["status"] == ("scheduled" if is_own else "running")
        group = [
            Submission(new_id(), namespace, permitted.definition, "{}", "public", key="alone", digest="x")
        ]


async def test_transaction_behind_a_pooler_assigns_nothing(permitted: Stand) -> None:
    settings = permitted.home.settings.model_copy(update={"database_pooler": True})
    pooled = Database(settings, role="test")
    async with pooled.session().transaction() as tx:
        await executions.schedule(tx, [permitted.ids["first"]])
    await pooled.close()
    assert await permitted.with_status("scheduled") == {"first"}
    assert await schedule(permitted, "second") == [f"placed.{QUEUE}"]


@pytest.mark.parametrize(
    ("slots", "queue", "status"), [(2, QUEUE, "scheduled"), (1, QUEUE, "running"), (2, "x", "running")]
)
async def test_worker_keeps_next_work_for_its_own_slots(
    permitted: Stand, slots: int, queue: str, status: str
) -> None:
    async with permitted.session.transaction() as tx:
        await tx.fetch("select claim_own_next(array[$1], $2)", queue, slots)
        await executions.schedule(tx, [permitted.ids["first"], permitted.ids["second"]])
    assert await permitted.with_status(status) == {"first", "second"}


async def test_rolled_back_assignment_leaves_permit_and_message(permitted: Stand) -> None:
    with contextlib.suppress(ZeroDivisionError):
        async with permitted.session.transaction() as tx:
            await tx.fetch(SCHEDULE, [permitted.ids["first"]])
            raise ZeroDivisionError
    assert await permitted.with_status("requested") == {"first", "second"}
    assert len(await permitted.sql("select from permit")) == 4
    assert not await permitted.sql("select from claim")


async def test_open_transaction_keeps_its_permits_from_others(permitted: Stand) -> None:
    await permitted.sql("delete from permit where ctid <> (select min(ctid) from permit)")
    async with permitted.session.transaction() as tx:
        [row] = await tx.fetch(SCHEDULE, [permitted.ids["first"]])
        other = permitted.home.session()
        [row] = await other.fetch(SCHEDULE, [permitted.ids["second"]])
        assert [message["queue"] for message in row["messages"]] == [QUEUE]
    assert await permitted.with_status("running") == {"first"}
    assert await permitted.with_status("scheduled") == {"second"}


async def test_due_timers_start_work_and_ask_executors_for_the_rest(permitted: Stand) -> None:
    """Executors handle executions that a limit or a hold covers, and tasks of paused workflows."""
    limited = await permitted.namespace("action", "work.limited")
    await permitted.sql(
        "update namespace set limits = (select array_agg(id) from concurrency_limit) where id = $1", limited
    )
    held = await permitted.namespace("action", "work.held")
    await permitted.sql("update namespace set hold = 'held' where id = $1", held)
    await permitted.add("flow", "running", kind="workflow")
    await permitted.sql("insert into paused_workflow (execution_id) values ($1)", permitted.ids["flow"])
    for name, queue, parent in (
        ("limited", "work.limited", None),
        ("held", "work.held", None),
        ("paused", QUEUE, "flow"),
    ):
        await permitted.add(name, "requested", queue=queue, parent=parent, options={})
    for name in ("first", "limited", "held", "paused"):
        await permitted.timer(name, "ready")
    [row] = await permitted.sql("select messages, fired from fire_timers(10)")
    assert row["fired"] == 4
    asked = {
        id
        for message in row["messages"]
        if message["queue"] == "execution.requested"
        for id in message["ids"]
    }
    assert permitted.names(list(asked)) == {"limited", "held", "paused"}
    assert await permitted.with_status("running") == {"flow", "first"}


async def test_parked_work_of_a_higher_priority_is_claimed_first(stand: Stand) -> None:
    names = {"old": 0, "urgent": 9, "new": 0, "changed": 0}
    for name, priority in names.items():
        id = await stand.add(name, "scheduled", priority=priority, options={})
        await stand.sql(
            "select place_ready('action', $2, array[$1::uuid], 50, false, true, false)", id, QUEUE
        )
    await stand.sql("select messages from set_priority($1, 4::smallint)", stand.ids["changed"])
    order: list[str] = []
    for _ in names:
        [row] = await stand.sql(
            "select claimed from claim_parked($1, $2, 1, $3, $4::integer[], '{}', '{}')",
            *(WORKER, new_id(), QUEUE, [stand.definition]),
        )
        [claimed] = row["claimed"]
        order += stand.names([claimed["execution_id"]])
    assert order == ["urgent", "changed", "old", "new"]
