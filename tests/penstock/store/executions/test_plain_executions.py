"""An oracle for the short way of executions that need no decision: random groups take it and the long way, and all tables are
compared. The long way shares no statement with it: its history is written by the triggers."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import orjson
import pytest

from penstock.language.policies.after_attempt import Ending
from penstock.language.terms.ids import new_id
from penstock.store.executions import attempts, executions, plain_executions
from penstock.store.executions.attempts import AttemptEnd, Claimant
from penstock.store.executions.executions import Submission
from tests.penstock.store.both_ways import Played, clean, play_both_ways
from tests.penstock.store.stand import Stand

SEEDS = 80
WORKER, OTHER, WATCHER = (UUID(int=n) for n in (1, 2, 3))
TRACE = {"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}


async def surroundings(played: Played) -> None:
    """Draw what else may make the short way impossible."""
    stand, draw = played.stand, played.draw
    if draw.random() < 0.15:
        await stand.sql(
            "update cluster set announced = $1::text[]", draw.choice([["running"], ["completed"]])
        )
    if draw.random() < 0.15:
        await stand.sql("update cluster set subscribed = '{scheduled,completed}'")


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
    return stand


async def submits(played: Played, *, short: bool) -> Any:
    """Submit a few groups, some of them again, as an answer that was lost makes a client do."""
    stand, draw = played.stand, played.draw
    await surroundings(played)
    timed = draw.random() < 0.2
    body = '{"timeouts": {"total": 60, "schedule_to_start": 5}}' if timed else "{}"
    await stand.sql("update definition set body = $2::text::jsonb where id = $1", stand.definition, body)
    namespace = await stand.namespace(draw.choice(["action"] * 6 + ["workflow"]), "work.default")
    await stand.sql("update namespace set envelope = $2 where id = $1", namespace, draw.choice([1, 2, 20]))
    if draw.random() < 0.2:
        await stand.sql("update namespace set limits = (select array_agg(id) from concurrency_limit)")
    if draw.random() < 0.2:
        await stand.sql("update namespace set lacked = true")
    if draw.random() < 0.1:
        await stand.sql("update catalog set enabled = false")
    answered = []
    for _ in range(draw.randint(1, 3)):
        priority = draw.choice([0, 0, 7, -3])
        origins = [None, '{"by": "clerk"}', orjson.dumps({"trace": TRACE}).decode()]
        group = [
            Submission(
                played.id(),
                namespace,
                stand.definition,
                f'{{"n": {n}}}',
                "public",
                origin=draw.choice(origins),
            )
            for n in range(draw.choice([1, 1, 1, 2, 3, 4, 5]))
        ]
        for submission in group:
            submission.priority = priority
        assert plain_executions.are_alike(group)
        for _ in range(draw.choice([1, 1, 2])):
            async with stand.session.transaction() as tx:
                answer = await (plain_executions.submit(tx, group) if short else executions.submit(tx, group))
            answered.append(
                (answer.stale, [(message.queue, played.named(str(message.ids))) for message in tx.staged])
            )
            if draw.random() < 0.3:
                group = [
                    *group,
                    Submission(played.id(), namespace, stand.definition, "{}", "public", priority=priority),
                ]
    return answered


async def ends(played: Played, *, short: bool) -> Any:
    """End a batch of attempts that stand in many ways."""
    stand, draw = played.stand, played.draw
    await surroundings(played)
    await stand.sql("insert into claim (id, worker, executions) values ($1, $1, '{}')", WORKER)
    batch = []
    for number in range(draw.choice([1, 1, 1, 2, 3, 4, 5, 6])):
        name, odd = (
            f"task {number}",
            draw.choice([""] * 14 + ["canceling", "asked", "stale", "other", "parent", "keys", "over"]),
        )
        if odd == "parent":
            played.ids.append(await stand.add("flow", "running", kind="workflow"))
        id = await stand.add(
            name,
            {"canceling": "canceling", "over": "completed"}.get(odd, "running"),
            attempt=2,
            claim=OTHER if odd == "other" else WORKER,
            reason=draw.choice([None, "its worker was lost"]),
            ends_as="cancelled" if odd in ("canceling", "asked") else None,
            parent="flow" if odd == "parent" else None,
        )
        played.ids.append(id)
        if odd == "keys":
            await stand.sql("update execution set keys = array[(1, 'all')::limit_key] where id = $1", id)
            await stand.sql("insert into slot values (1, 'all', $1, 2)", id)
        origin = draw.choice([*[None] * 8, orjson.dumps({"trace": TRACE}).decode()])
        await stand.sql(
            "insert into payload (execution_id, params, origin) values ($1, '{}', $2::text::jsonb)",
            id,
            origin,
        )
        if draw.random() < 0.3:
            await stand.timer(name, "total")
        if draw.random() < 0.3:
            await stand.sql("insert into awaited (execution_id, watcher) values ($1, $2)", id, WATCHER)
        batch.append(AttemptEnd(id, 1 if odd == "stale" else 2, Ending("completed", f'{{"n": {number}}}')))
    claims = draw.choice([[], [WORKER]])
    async with stand.session.transaction() as tx:
        moved = await (
            plain_executions.finish(tx, WORKER, batch, claims)
            if short
            else attempts.finish(tx, WORKER, batch, claims, alone=True)
        )
    notices = sorted(
        (message.queue, sorted(played.named(str(id)) for id in message.ids)) for message in tx.staged
    )
    # The short way tells watchers of its own ends, and the long way of the others: two notices instead of one.
    return {played.named(str(id)) for id in moved}, {(queue, id) for queue, ids in notices for id in ids}


@pytest.mark.parametrize("game", [submits, ends])
async def test_short_way_leaves_same_tables_as_long_way(stand: Stand, game: Any) -> None:
    for seed in range(SEEDS):
        await play_both_ways(stand, game, seed)


@pytest.mark.parametrize("announced", ["{}", "{nothing}"])
async def test_claim_writes_history_that_trigger_would_write(stand: Stand, announced: str) -> None:
    """The claim leaves its history to the trigger as soon as any status is announced."""
    await stand.sql("update cluster set announced = $1::text::text[]", announced)
    ids = [
        await stand.add("new", "scheduled"),
        await stand.add("lost", "scheduled", attempt=1, reason="was lost"),
    ]
    for id in ids:
        await stand.sql("insert into payload (execution_id, params) values ($1, '{}')", id)
    claimant = Claimant(WORKER, OTHER, [stand.definition], [])
    answer = await attempts.claim(stand.session, claimant, "work.default", ids, 10)
    assert len(answer.attempts) == 2
    rows = await stand.sql(
        "select old, new, attempt, reason, ready_at, actor = current_setting('application_name') as own from history"
        " where new = 'running' order by attempt"
    )
    assert [tuple(row) for row in rows] == [
        ("scheduled", "running", 1, None, None, True),
        ("scheduled", "running", 2, "was lost", None, True),
    ]


async def test_trigger_writes_history_after_short_way(stand: Stand) -> None:
    """A transaction that goes on after the short way writes moves that the trigger sees."""
    async with stand.session.transaction() as tx:
        await tx.fetch(
            plain_executions.PLACE_ALIKE,
            [new_id()],
            await stand.namespace("action", "work.default"),
            stand.definition,
            ["{}"],
            [None],
            0,
            True,
        )
        await tx.fetch("update execution set status = 'cancelled' returning 1")
    rows = await stand.sql("select new from history order by at")
    assert [row["new"] for row in rows] == ["requested", "scheduled", "cancelled"]


WORKERS = {
    "idle": "held",
    "busy": "held",
    "cordoned": "held",
    "ended": "free",
    "behind a pooler": None,
}
"""Workers, and the locks of their sessions."""
PERMIT = """
insert into permit (worker, queue, at, channel, actor, definitions)
values ($1, $2, clock_timestamp() - make_interval(secs => $3), 'secret', current_setting('application_name'), $4)
"""


async def workers(stand: Stand) -> tuple[dict[str, UUID], Any]:
    """Register workers. The connection holds the locks of those that live."""
    connection = await stand.home.connect()
    ids = {name: UUID(int=100 + n) for n, name in enumerate(WORKERS)}
    for name, lock in WORKERS.items():
        key = None if lock is None else ids[name].int
        state = "cordoned" if name == "cordoned" else "active"
        await stand.sql(
            "insert into process (id, kind, name, state, lock_key) values ($1, 'worker', $2, $3, $4)",
            *(ids[name], name, state, key),
        )
        if lock == "held":
            await connection.fetch("select pg_advisory_lock($1)", key)
    return ids, connection


async def assigned(played: Played, worker_ids: dict[str, UUID], *, short: bool) -> Any:
    """Submit a group while permits are out, of which some are not valid. The long way submits, and then each worker claims what
    its permits promise."""
    stand, draw = played.stand, played.draw
    namespace = await stand.namespace("action", "work.default")
    await stand.sql("update namespace set envelope = $2 where id = $1", namespace, draw.choice([1, 2, 20]))
    valid: list[tuple[float, UUID]] = []
    for _ in range(draw.randint(0, 6)):
        name, age = draw.choice(["idle", "busy", *WORKERS]), draw.choice([1.0, 2.0, 3.0, 3600.0])
        age += draw.random() / 2
        queue = draw.choice(["work.default"] * 5 + ["work.other"])
        definitions = draw.choice([[stand.definition, 99]] * 5 + [[99]])
        await stand.sql(PERMIT, worker_ids[name], queue, age, definitions)
        if (
            name in ("idle", "busy")
            and age < 5
            and queue == "work.default"
            and stand.definition in definitions
        ):
            valid.append((-age, worker_ids[name]))
    origins = [None, '{"by": "clerk"}', orjson.dumps({"trace": TRACE}).decode()]
    group = [
        Submission(
            played.id(), namespace, stand.definition, f'{{"n": {n}}}', "public", origin=draw.choice(origins)
        )
        for n in range(draw.choice([1, 1, 1, 2, 3, 4, 5]))
    ]
    assigns = draw.random() < 0.9
    takers = sorted(worker for _, worker in sorted(valid)[: len(group)]) if assigns else []
    parts = {
        worker: [s.id for s, of in zip(group, takers, strict=False) if of == worker] for worker in takers
    }
    if short:
        async with stand.session.transaction() as tx:
            await tx.fetch(
                plain_executions.PLACE_ALIKE,
                [s.id for s in group],
                namespace,
                stand.definition,
                [s.params for s in group],
                [s.origin for s in group],
                0,
                assigns,
            )
    else:
        for part in (group[: len(takers)], group[len(takers) :]):
            if part:
                async with stand.session.transaction() as tx:
                    await tx.fetch("select 1")  # a transaction that may stay open is assigned nothing
                    await executions.submit(tx, part)
        for worker, ids in parts.items():
            await attempts.claim(
                stand.session, Claimant(worker, new_id(), [stand.definition], []), "work.default", ids, 20
            )
            await stand.sql("delete from outbox where ids && $1", ids)
        for _, worker in sorted(valid)[: len(takers)]:
            await stand.sql(
                "delete from permit where ctid = (select ctid from permit where worker = $1 and queue = 'work.default'"
                " and $2 = any (definitions) and at > clock_timestamp() - interval '5 s' order by at limit 1)",
                *(worker, stand.definition),
            )
    return len(takers)


async def test_assigned_executions_leave_same_tables_as_submit_and_claim(stand: Stand) -> None:
    worker_ids, connection = await workers(stand)
    shares = 0
    for seed in range(SEEDS):
        outcomes = []
        for short in (True, False):
            await clean(stand)
            played = Played(stand, seed)
            answer = await assigned(played, worker_ids, short=short)
            dump = await played.dump()
            dump["claim"] = [row.replace('"assigned": true', '"assigned": false') for row in dump["claim"]]
            outcomes.append((answer, dump))
        [(takers, tables), (_, long_tables)] = outcomes
        shares += bool(takers)
        differing = {
            name: (tables[name], long_tables[name]) for name in tables if tables[name] != long_tables[name]
        }
        assert not differing, f"seed {seed}"
    assert SEEDS / 4 < shares < SEEDS
    await connection.close()
