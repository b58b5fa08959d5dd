"""An oracle for the short way of a request: random requests take it and the long way, and all tables are compared. The ways
share only the choice of permits: the long way is the one for several, and triggers write its history."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any
from uuid import UUID

import orjson
import pytest

from penstock.language.terms.ids import new_id
from tests.penstock.store.both_ways import Played, play_both_ways
from tests.penstock.store.executions.test_plain_executions import PERMIT, TRACE, workers
from tests.penstock.store.executions.test_plain_executions import stand as stand
from tests.penstock.store.stand import Stand

SEEDS = 160
QUEUES = {"action": "work.default", "workflow": "execution.workflow", "wait": None}
BODY = re.compile(r"\$function\$.*\$function\$", re.DOTALL)
"""Without it, the function answers that there is something to decide, which sends each request the long way."""
REQUEST = """
select request_executions($1::uuid[], $2::integer[], $3::integer[], $4::text[], $5::text[], $6::text[], $7::smallint[],
    $8::timestamptz[], $9::uuid[], $10::text[], $11::integer[], $12, $13) as messages
"""
BACKLOG = """
insert into backlog values ($1, 'work.default', 0, 'public', clock_timestamp(), clock_timestamp())
"""
OF_INSTALLATION = {
    "announced": "update cluster set announced = '{running}'",
    "subscribed": "update cluster set subscribed = '{completed,scheduled}'",
    "timeouts": """update definition set body = '{"timeouts": {"total": 60, "schedule_to_start": 5}}'""",
    "timeout": """update definition set kind = 'workflow', body = '{"timeout": 60}'""",
    "warned": """update definition set body = '{"warn_after": 60}'""",
    "searchable": """update definition set body = '{"searchable": ["n"]}'""",
    "labelled": """update definition set body = '{"run_labels": {"team": "blue"}}'""",
    "ordered": "insert into ordered_route values ('work.default')",
    "limited": "update namespace set limits = (select array_agg(id) from concurrency_limit)",
    "held": "update namespace set hold = 'held'",
    "released": "update namespace set hold = 'released'",
    "lacked": "update namespace set lacked = true",
}
OF_PARENT = {
    "paused": "insert into paused_workflow values ($1)",
    "important": "update execution set priority = 7 where id = $1",
    "stopping": "update workflow set stop_status = 'cancelled', stops = stops + 1 where execution_id = $1",
    "labels": "insert into label values ($1, 'team', 'blue', 'public', false)",
    "backlog": "with route as (insert into ordered_route values ('work.default'))" + BACKLOG,
}
OF_REQUEST = (
    *(
        "options",
        "later",
        "traced",
        "started by",
        "exists",
        "child exists",
        "priority",
        "item",
        "several",
        "traced parent",
    ),
    *("waiting task", "workflow", "own slots", "assigns off"),
)
ODD = (*OF_INSTALLATION, *OF_PARENT, *OF_REQUEST)


async def parent_of(played: Played, odd: Sequence[str]) -> UUID:
    stand = played.stand
    flow = await stand.add("flow", "running", kind="workflow")
    played.ids.append(flow)
    await stand.sql(
        "insert into workflow (execution_id, definition_id, tenant, head, version) values ($1, $2, 'public', '{}', 3)",
        *(flow, stand.definition),
    )
    origin = orjson.dumps({"trace": TRACE}).decode() if "traced parent" in odd else None
    await stand.sql(
        "insert into payload (execution_id, params, origin) values ($1, '{}', $2::text::jsonb)", flow, origin
    )
    if "child exists" in odd:
        played.ids.append(await stand.add("second", "running", parent="flow", attempt=1, claim=UUID(int=2)))
    for kind in set(odd) & OF_PARENT.keys():
        await stand.sql(OF_PARENT[kind], *([flow] if "$1" in OF_PARENT[kind] else []))
    return flow


async def surroundings(played: Played, odd: Sequence[str], worker_ids: dict[str, UUID]) -> None:
    stand, draw = played.stand, played.draw
    for kind in set(odd) & OF_INSTALLATION.keys():
        await stand.sql(OF_INSTALLATION[kind])
    for _ in range(draw.choice([0, 1, 2, 3])):
        queue = draw.choice(["work.default"] * 5 + ["work.other"])
        definitions = draw.choice([[stand.definition, 99]] * 5 + [[99]])
        age = draw.choice([1.0, 1.5, 2.0, 3600.0]) + draw.random() / 2
        await stand.sql(
            PERMIT, worker_ids[draw.choice(["idle", "idle", "busy", *worker_ids])], queue, age, definitions
        )


async def request(played: Played, odd: Sequence[str], worker_ids: dict[str, UUID]) -> Any:
    """Request an execution, in surroundings that are odd in these ways."""
    stand, draw = played.stand, played.draw
    await stand.sql("update definition set kind = 'action', body = '{}' where id = $1", stand.definition)
    await stand.sql("update namespace set hold = null")
    kind = "wait" if "waiting task" in odd else "workflow" if "workflow" in odd else "action"
    namespace = await stand.namespace(kind, QUEUES[kind])
    await stand.sql("update namespace set envelope = $2 where id = $1", namespace, draw.choice([1, 20]))
    needs_parent = bool(set(odd) & (OF_PARENT.keys() | {"child exists", "traced parent"}))
    is_task = needs_parent or (draw.random() < 0.6 and "started by" not in odd)
    flow = await parent_of(played, odd) if is_task else None
    await surroundings(played, odd, worker_ids)
    new = [new_id() for _ in range(2 if "several" in odd else 1)]
    played.ids += new
    if "exists" in odd:
        await stand.sql(
            "insert into execution (id, status, namespace_id, definition_id) values ($1, 'scheduled', $2, $3)",
            *(new[0], namespace, stand.definition),
        )
    origin: dict[str, Any] = {"by": "clerk"}
    if "traced" in odd:
        origin["trace"] = TRACE
    if "started by" in odd:
        root = await stand.add("root", "running")
        played.ids.append(root)
        await stand.sql("insert into budget_tree values ($1, $1)", root)
        origin["started_by"] = str(root)
    fused, alone = draw.choice([(True, False), (True, False), (False, True), (False, False)])
    many = len(new)
    arguments: list[Any] = [
        new,
        [namespace] * many,
        [stand.definition] * many,
        ['{"n": 7}'] * many,
        ['{"retry": {"attempts": 3}}'] * many if "options" in odd else draw.choice([None, [None] * many]),
        [orjson.dumps(origin).decode()] * many if odd or draw.random() < 0.5 else None,
        [5] * many if "priority" in odd else draw.choice([None, [0] * many]) if not is_task else None,
        [await stand.held()] * many if "later" in odd else draw.choice([None, [None] * many]),
        [flow] * many if is_task else None,
        ["second", "third"][:many] if is_task else None,
        [0 if "item" in odd else draw.choice([-1, None])] * many if is_task else None,
        fused,
        alone,
    ]
    async with stand.session.transaction() as tx:
        if "own slots" in odd:
            await tx.fetch("select claim_own_next($1, $2)", ["work.default"], draw.choice([1, 3]))
        if "assigns off" in odd:
            await tx.fetch("select set_config('penstock.assigns', 'off', true)")
        [row] = await tx.fetch(REQUEST, *arguments)
    answer = [
        (message["queue"], message["ids"])
        for message in row["messages"]
        if message["queue"] != "placed.work.default"
    ]
    return played.named(str(answer))


@pytest.mark.parametrize("offset", [0, 100_000])
async def test_short_way_of_a_request_leaves_same_tables_as_long_way(stand: Stand, offset: int) -> None:
    [row] = await stand.sql(
        "select pg_get_functiondef(oid) as text from pg_proc where proname = 'request_plain_execution'"
    )
    short_way = row["text"]
    long_way = BODY.sub("$function$ begin return null; end $function$", short_way)
    worker_ids, connection = await workers(stand)
    assigned = 0
    for seed in range(offset, offset + SEEDS):

        async def game(played: Played, *, short: bool, seed: int = seed) -> Any:
            await stand.sql(short_way if short else long_way)
            alone = [ODD[seed // 4]] if seed < 4 * len(ODD) else None
            odd = alone or played.draw.sample(ODD, played.draw.choice([0, 0, 1, 2]))
            return await request(played, odd, worker_ids)

        await play_both_ways(stand, game, seed)
        [row] = await stand.sql("select count(*) as n from claim")
        assigned += row["n"]
    await stand.sql(short_way)
    assert SEEDS / 12 < assigned < SEEDS
    await connection.close()
