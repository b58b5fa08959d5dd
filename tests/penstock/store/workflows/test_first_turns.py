"""An oracle for workflows that begin in their submit. Random submits take that way, and the way of a submit without the turn and
of an executor that takes it. All tables are compared."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson

from penstock.engine import TaskState, WorkflowState
from penstock.store.executions import plain_executions
from penstock.store.executions.executions import Submission
from penstock.store.outbox.queues import WORKFLOW_STARTED
from penstock.store.workflows import children, first_turns, state
from penstock.store.workflows.children import NewChild
from penstock.store.workflows.first_turns import FirstTurn
from penstock.store.workflows.state import NewState
from tests.penstock.store.both_ways import Played, play_both_ways
from tests.penstock.store.executions.test_plain_executions import PERMIT, TRACE, WATCHER, workers
from tests.penstock.store.executions.test_plain_executions import stand as stand
from tests.penstock.store.stand import Stand

SEEDS = 120
OF_INSTALLATION = {
    "announced": "update cluster set announced = '{running}'",
    "subscribed": "update cluster set subscribed = '{completed,scheduled}'",
    "timeouts": """update definition set body = '{"timeouts": {"total": 60}}'""",
    "warned": """update definition set body = '{"warn_after": 60}'""",
    "labelled": """update definition set body = '{"run_labels": {"team": "blue"}}'""",
    "ordered": "insert into ordered_route values ('work.default')",
    "backlog": (
        "with route as (insert into ordered_route values ('work.default')) insert into backlog"
        " values (gen_random_uuid(), 'work.default', 0, 'public', clock_timestamp(), clock_timestamp())"
    ),
    "limited task": "update namespace set limits = (select array_agg(id) from concurrency_limit) where kind = 'action'",
    "held task": "update namespace set hold = 'held' where kind = 'action'",
}
OF_SUBMIT = (
    "important",
    "traced",
    "stale task",
    "again",
    "several",
    "watched",
    "no permits",
    "open",
    "waiting task",
)
ONE_CLAIM = """
with gone as (delete from claim returning worker, executions)
insert into claim (id, worker, executions, assigned) select gen_random_uuid(), worker, array_agg(x.id order by x.id), true
from gone cross join unnest(executions) x (id) group by worker
"""
"""An executor assigns tasks that start together under one claim, and a submit each under its own."""
ODD = (*OF_INSTALLATION, *OF_SUBMIT)


async def begin(played: Played, odd: Sequence[str], takers: dict[str, Any], *, short: bool) -> Any:
    """Submit a workflow and begin it, in surroundings that are odd in these ways."""
    stand, draw = played.stand, played.draw
    await stand.sql("update definition set body = '{}' where id = $1", stand.definition)
    await stand.sql("update namespace set hold = null, envelope = 1")
    flow = await stand.namespace("workflow", WORKFLOW_STARTED)
    task = (
        await stand.namespace("wait", None)
        if "waiting task" in odd
        else await stand.namespace("action", "work.default")
    )
    for kind in set(odd) & OF_INSTALLATION.keys():
        await stand.sql(OF_INSTALLATION[kind])
    for n in range(0 if "no permits" in odd else draw.choice([0, 1, 2])):
        await stand.sql(PERMIT, takers["idle"], "work.default", 1.0 + n, [stand.definition])
    origin: dict[str, Any] = {"by": "clerk"}
    if "traced" in odd:
        origin["trace"] = TRACE
    submission = Submission(
        played.id(), flow, stand.definition, '{"n": 1}', "public",
        origin=orjson.dumps(origin).decode() if odd or draw.random() < 0.5 else None,
        priority=7 if "important" in odd else 0,
        watcher=WATCHER if "watched" in odd else None,
    )  # fmt: skip
    names = ["first", "second", "third"][: 3 if "several" in odd else 1]
    tasks = [
        NewChild(
            played.id(), task, stand.definition, f'{{"n": {n}}}', None, '{"depth": 1}', None, submission.id, name, None
        )
        for n, name in enumerate(names)
    ]  # fmt: skip
    new = NewState(
        {submission.id: WorkflowState(3)},
        {(submission.id, n): TaskState() for n in range(len(tasks))},
        {(submission.id, -1, "total"): 12} if draw.random() < 0.3 else {},
    )
    known = {"a.b": stand.definition + 1 if "stale task" in odd else stand.definition}
    turn = FirstTurn(submission, new, tasks, known)
    answered = []
    for _ in range(2 if "again" in odd else 1):
        begun = False
        async with stand.session.transaction() as tx:
            if "open" in odd and not short:
                await tx.fetch("select 1")
            if short:
                answer, begun = await first_turns.submit(tx, turn)
            else:
                answer = await plain_executions.submit(tx, [submission])
        answered.append((answer.stale, answer.existing, answer.conflicts))
        if begun or not await stand.sql("delete from outbox where queue = $1 returning 1", WORKFLOW_STARTED):
            continue
        async with stand.session.transaction() as tx:  # as an executor does
            await state.open_workflows(tx, [submission.id])
            if not await children.write_and_start(tx, new, tasks, known):
                await children.start(tx, tasks, {})
    await stand.sql(ONE_CLAIM)
    return answered, bool(begun) if short else None


async def test_begun_workflow_leaves_same_tables_as_executor_turn(stand: Stand) -> None:
    takers, connection = await workers(stand)
    plain = 0
    for seed in range(SEEDS):
        begun: list[Any] = []

        async def game(played: Played, *, short: bool, seed: int = seed, begun: list[Any] = begun) -> Any:
            alone = [ODD[seed // 2]] if seed < 2 * len(ODD) else None
            odd = alone or played.draw.sample(ODD, played.draw.choice([0, 0, 1, 2]))
            answered, was_begun = await begin(played, odd, takers, short=short)
            begun.append(was_begun)
            return answered

        await play_both_ways(stand, game, seed)
        plain += bool(begun[0])
    assert SEEDS / 4 < plain < SEEDS
    await connection.close()


async def test_owner_may_begin_workflows(stand: Stand) -> None:
    assert await first_turns.may_begin(stand.session)
