"""An oracle for the short way of a step: random steps of a workflow take it and the long way, and all tables are compared. The
long way shares no statement with it: it is the one for several tasks, and its history is written by the triggers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import orjson

from penstock.engine import TaskState, WorkflowState
from penstock.engine.serialization import dump_workflow_state
from penstock.engine.state import PENDING
from penstock.language.moves.executions import FAILED
from penstock.language.policies.after_attempt import Ending
from penstock.language.terms.ids import new_id
from penstock.store.executions.attempts import AttemptEnd, Claimant
from penstock.store.workflows.children import NewChild
from penstock.store.workflows.state import NewState
from penstock.store.workflows.steps import Step, take_steps
from tests.penstock.store.both_ways import Played, play_both_ways
from tests.penstock.store.executions.test_plain_executions import OTHER, TRACE, WORKER
from tests.penstock.store.executions.test_plain_executions import stand as stand
from tests.penstock.store.stand import Stand

SEEDS = 100
BODY = re.compile(r"\$function\$.*\$function\$", re.DOTALL)
"""Without it, the function answers that there is something to decide, which sends each step the long way."""


async def odd_surroundings(played: Played, odd: str, namespace: int) -> None:
    stand = played.stand
    flow = stand.ids["flow"]
    statements = {
        "announced": "update cluster set announced = '{running}'",
        "subscribed": "update cluster set subscribed = '{completed,scheduled}'",
        "limited": "update namespace set limits = (select array_agg(id) from concurrency_limit) where id = $1",
        "held": "update namespace set hold = 'held' where id = $1",
        "other route": "update namespace set queue = 'work.other' where id = $1",
        "disabled": "update catalog set enabled = false",
        "timeouts": """update definition set body = '{"timeouts": {"total": 60}}'""",
        "warned": """update definition set body = '{"warn_after": 60}'""",
    }
    of_flow = {
        "paused": "insert into paused_workflow values ($1)",
        "stopped": "update workflow set stops = stops + 1 where execution_id = $1",
        "written": "update workflow set version = version + 1 where execution_id = $1",
        "ended": "update execution set status = 'failed', finished_at = clock_timestamp() where id = $1",
        "important": "update execution set priority = 7 where id = $1",
        "labels": "insert into label values ($1, 'team', 'blue', 'public', false)",
        "backlog": (
            "with route as (insert into ordered_route values ('work.default')) insert into backlog"
            " values ($1, 'work.default', 0, 'public', clock_timestamp(), clock_timestamp())"
        ),
    }
    if odd in statements:
        await stand.sql(statements[odd], *([namespace] if "$1" in statements[odd] else []))
    elif odd in of_flow:
        await stand.sql(of_flow[odd], flow)


ODD = (
    *(
        "announced",
        "subscribed",
        "limited",
        "held",
        "other route",
        "disabled",
        "timeouts",
        "warned",
        "paused",
        "stopped",
    ),
    *(
        "written",
        "ended",
        "important",
        "labels",
        "backlog",
        "canceling",
        "asked",
        "over",
        "stale",
        "other worker",
        "keys",
    ),
    *("traced", "traced task", "unknown", "exists", "old definition", "options", "variables"),
)


async def step(played: Played, odd: Sequence[str]) -> Any:
    """End a task and start the next one, in surroundings that are odd in these ways."""
    stand, draw = played.stand, played.draw
    await stand.sql("update definition set body = '{}' where id = $1", stand.definition)
    namespace = await stand.namespace("action", "work.default")
    await stand.sql("update namespace set queue = 'work.default', hold = null where id = $1", namespace)
    flow = await stand.add("flow", "running", kind="workflow")
    ended = await stand.add(
        "first",
        "canceling" if "canceling" in odd else "completed" if "over" in odd else "running",
        attempt=2,
        claim=OTHER if "other worker" in odd else WORKER,
        reason=draw.choice([None, "its worker was lost"]),
        ends_as="cancelled" if {"canceling", "asked"} & set(odd) else None,
        parent="flow",
    )
    new = new_id()
    played.ids += [flow, ended, new]
    await stand.sql(
        "insert into workflow (execution_id, definition_id, tenant, head, version) values ($1, $2, 'public', $3, 3)",
        *(flow, stand.definition, dump_workflow_state(WorkflowState(2))),
    )
    await stand.sql(
        "insert into workflow_task (execution_id, task, failing, record) values ($1, 0, true, '{\"n\": 0}')",
        flow,
    )
    traces = {flow: "traced" in odd, ended: "traced task" in odd}
    for id, traced in traces.items():
        origin = orjson.dumps({"trace": TRACE}).decode() if traced else None
        await stand.sql(
            "insert into payload (execution_id, params, origin) values ($1, '{}', $2::text::jsonb)",
            id,
            origin,
        )
    if "keys" in odd:
        await stand.sql("update execution set keys = array[(1, 'all')::limit_key] where id = $1", ended)
    if "exists" in odd:
        await stand.add("second", "running", parent="flow", claim=OTHER, attempt=1)
        played.ids.append(stand.ids["second"])
    if draw.random() < 0.3:
        await stand.timer("first", "total")
    if draw.random() < 0.2:
        await stand.sql("insert into awaited (execution_id, watcher) values ($1, $2)", ended, OTHER)
    await stand.sql(
        "insert into claim (id, worker, executions) values ($1, $1, array[$2::uuid])", WORKER, ended
    )
    for kind in odd:
        await odd_surroundings(played, kind, namespace)
    claim = draw.choice([WORKER, new_id()])
    claims = [WORKER] if claim != WORKER or draw.random() < 0.5 else []
    played.ids.append(claim)
    tasks = draw.choice([[0], [0, 1], [1, 0, 4]])
    new_state = NewState(
        {flow: WorkflowState(3)},
        {(flow, n): TaskState(FAILED if draw.random() < 0.5 else PENDING, rescues=n) for n in tasks},
        {(flow, 1, "total"): 12} if "variables" in odd else {},
    )
    options = '{"retry": {"attempts": 3}}' if "options" in odd else None
    result = draw.choice([None, '{"n": 1}'])
    origin = draw.choice(["{}", '{"by": "clerk"}'])
    child = NewChild(
        new, namespace, stand.definition, '{"index": 7}', options, origin, None, flow, "second", None
    )
    current = stand.definition + 1 if "old definition" in odd else stand.definition
    finished = await take_steps(
        stand.session,
        Step({flow: (3, 0)}, new_state, [child], {"a.b": current}, []),
        [AttemptEnd(ended, 1 if "stale" in odd else 2, Ending("completed", result), workflow=flow)],
        claims,
        Claimant(WORKER, claim, [] if "unknown" in odd else [stand.definition], []),
        draw.choice([["work.default"], ["work.default", "work.more"]]),
    )
    if finished is None:
        return None
    claimed = [replace(attempt, waited=0.0) for attempt in finished.claimed.attempts]
    staged = [(message.queue, message.ids) for message in finished.staged]
    return played.named(str((finished.moved, staged, finished.queue, claimed, finished.claimed.parked)))


async def test_short_way_of_a_step_leaves_same_tables_as_long_way(stand: Stand) -> None:
    [row] = await stand.sql(
        "select pg_get_functiondef(oid) as text from pg_proc where proname = 'take_plain_step'"
    )
    short_way = row["text"]
    long_way = BODY.sub("$function$ begin end $function$", short_way)
    plain = 0
    for seed in range(SEEDS):

        async def game(played: Played, *, short: bool, seed: int = seed) -> Any:
            await stand.sql(short_way if short else long_way)
            stand.session.cache.clear()  # it knows which action was not plain
            alone = [ODD[seed // 2]] if seed < 2 * len(ODD) else None
            return await step(played, alone or played.draw.sample(ODD, played.draw.choice([0, 0, 1, 2])))

        answer = await play_both_ways(stand, game, seed)
        plain += answer is not None and "'work.default', [ClaimedAttempt(" in answer
    assert SEEDS / 8 < plain < SEEDS
