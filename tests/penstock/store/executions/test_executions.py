"""Executions that are born started, or in the hands of a worker: what stands in the tables then, and when it is not so."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

import asyncpg
import pytest

from penstock.language.terms.ids import new_id
from tests.penstock.store.stand import Stand

WORKER, CLAIM = new_id(), new_id()
TAKE = """
select queue, claimed, messages from take_children($1, $2, $3::text[], $4::integer[], '{a.b}', $5::integer[], $6::uuid[],
    $7::integer[], $8::integer[], $9::text[], $10::text[], null, $11::uuid[], $12::text[])
"""
REQUEST = """
select request_executions($1::uuid[], $2::integer[], $3::integer[], array_fill('{}'::text, array[cardinality($1)]),
    $4::text[], null, null, $5::timestamptz[], null, null, null, $6) as messages
"""


@pytest.fixture
async def stand(stand: Stand) -> Stand:
    await stand.sql(
        "insert into catalog (kind, ref, definition_id, enabled) values ('action', 'a.b', $1, true)",
        stand.definition,
    )
    await stand.add("flow", "running", kind="workflow")
    return stand


async def limit(stand: Stand, namespace: int) -> None:
    await stand.sql("update namespace set limits = '{7}' where id = $1", namespace)


async def take(
    stand: Stand,
    *namespaces: int,
    known: list[int] | None = None,
    current: int | None = None,
    options: str = "{}",
) -> tuple[str | None, list[Any], list[UUID]]:
    """The queue, what was claimed, and the ids that were asked for: tasks of the workflow, one of each namespace."""
    ids, count = [new_id() for _ in namespaces], len(namespaces)
    known = [stand.definition] if known is None else known
    [row] = await stand.sql(
        TAKE,
        *(WORKER, CLAIM, ["work.default", "work.more"], known, [current or stand.definition], ids),
        *(list(namespaces), [stand.definition] * count, ['{"a": 1}'] * count, [options] * count),
        *([stand.ids["flow"]] * count, [f"task {n}" for n in range(count)]),
    )
    return row["queue"], row["claimed"], ids


async def history(stand: Stand, id: UUID) -> list[tuple[str | None, str, int]]:
    rows = await stand.sql("select old, new, attempt from history where execution_id = $1 order by at", id)
    return [(row["old"], row["new"], row["attempt"]) for row in rows]


async def made(stand: Stand) -> int:
    [row] = await stand.sql("select count(*) as n from execution where task like 'task %'")
    return int(row["n"])


async def test_a_worker_is_born_with_the_next_tasks_in_its_hands(stand: Stand) -> None:
    own = await stand.namespace("action", "work.default")
    queue, claimed, ids = await take(stand, own, own)
    assert queue == "work.default"
    assert [(one["execution_id"], one["attempt"], one["params"], one["task"]) for one in claimed] == [
        (ids[0], 1, '{"a": 1}', "task 0"),
        (ids[1], 1, '{"a": 1}', "task 1"),
    ]
    assert {(one["workflow"], one["root"], one["namespace"]) for one in claimed} == {
        (stand.ids["flow"], stand.ids["flow"], "public::a::b")
    }
    for row in await stand.sql(
        "select status, attempt, claim from execution where id = any ($1::uuid[])", ids
    ):
        assert tuple(row) == ("running", 1, WORKER)
    assert [tuple(row) for row in await stand.sql("select id, worker, executions from claim")] == [
        (CLAIM, WORKER, ids)
    ]
    assert await history(stand, ids[1]) == [
        (None, "requested", 0),
        ("requested", "scheduled", 0),
        ("scheduled", "running", 1),
    ]
    [row] = await stand.sql("select count(*) as n from live where execution_id = any ($1::uuid[])", ids)
    assert row["n"] == 2
    assert not await stand.sql("select from outbox"), "nobody is offered them"


async def test_timers_of_taken_executions_are_kept(stand: Stand) -> None:
    own = await stand.namespace("action", "work.default")
    _, _, [id] = await take(stand, own, options='{"timeouts": {"total": 60, "schedule_to_start": 5}}')
    kinds = await stand.sql("select kind from timer where execution_id = $1", id)
    assert [row["kind"] for row in kinds] == ["total"], "it has started"


@pytest.mark.parametrize("why", ["limited", "elsewhere", "two queues", "a workflow", "unknown", "paused"])
async def test_an_execution_that_needs_a_decision_is_not_taken(stand: Stand, why: str) -> None:
    namespaces, known = [await stand.namespace("action", "work.default")], None
    if why == "limited":
        await limit(stand, namespaces[0])
    elif why == "elsewhere":
        namespaces = [await stand.namespace("action", "work.other")]
    elif why == "two queues":
        namespaces.append(await stand.namespace("action", "work.more"))
    elif why == "a workflow":
        namespaces = [await stand.namespace("workflow", "work.default")]
    elif why == "unknown":
        known = [stand.definition + 1]
    else:
        await stand.sql("insert into paused_workflow (execution_id) values ($1)", new_id())
    queue, claimed, _ = await take(stand, *namespaces, known=known)
    assert (queue, claimed, await made(stand)) == (None, [], 0)
    assert not await stand.sql("select from claim")


async def test_a_definition_that_was_replaced_or_a_task_that_exists_undoes_all_of_it(stand: Stand) -> None:
    own = await stand.namespace("action", "work.default")
    with pytest.raises(asyncpg.PostgresError, match="definition") as stale:
        await take(stand, own, current=stand.definition + 1)
    await take(stand, own)
    with pytest.raises(asyncpg.PostgresError, match="exist already") as twice:
        await take(stand, own, own)
    assert stale.value.sqlstate == twice.value.sqlstate == "PN003"
    assert await made(stand) == 1


async def request(
    stand: Stand, namespaces: list[int], *, fused: bool = False, delayed: int | None = None
) -> tuple[list[UUID], dict[str, list[UUID]]]:
    """The ids, and those of the messages by their queues."""
    ids = [new_id() for _ in namespaces]
    [now] = await stand.sql("select clock_timestamp() as at")
    times = [now["at"] + timedelta(hours=1) if n == delayed else None for n in range(len(ids))]
    [row] = await stand.sql(
        REQUEST, ids, namespaces, [stand.definition] * len(ids), ["{}"] * len(ids), times, fused
    )
    sent: dict[str, list[UUID]] = {}
    for message in row["messages"]:
        sent.setdefault(message["queue"], []).extend(message["ids"])
    return ids, sent


async def test_only_an_unlimited_undelayed_execution_is_born_started(stand: Stand) -> None:
    free, flow = (
        await stand.namespace("action", "work.default"),
        await stand.namespace("workflow", "workflow.started"),
    )
    limited = await stand.namespace("action", "work.more")
    await limit(stand, limited)
    ids, sent = await request(stand, [free, free, limited, flow], delayed=1)
    assert sent == {
        "work.default": [ids[0]],
        "workflow.started": [ids[3]],
        "execution.requested": [ids[2]],
    }
    rows = await stand.sql("select status from execution where id = any ($1::uuid[]) order by id", ids)
    assert [row["status"] for row in rows] == ["scheduled", "requested", "requested", "running"]
    assert await history(stand, ids[0]) == [(None, "requested", 0), ("requested", "scheduled", 0)]
    assert await history(stand, ids[1]) == [(None, "requested", 0)]
    assert await history(stand, ids[3]) == [(None, "requested", 0), ("requested", "running", 0)]


async def test_an_existing_execution_is_not_sent_again(stand: Stand) -> None:
    free = await stand.namespace("action", "work.default")
    [first], _ = await request(stand, [free])
    second = new_id()
    [row] = await stand.sql(
        REQUEST, [first, second], [free, free], [stand.definition] * 2, ["{}", "{}"], [None, None], False
    )
    assert [list(message["ids"]) for message in row["messages"]] == [[second]]


async def test_tasks_of_a_paused_workflow_are_looked_up_by_an_executor(stand: Stand) -> None:
    free = await stand.namespace("action", "work.default")
    await stand.sql("insert into paused_workflow (execution_id) values ($1)", new_id())
    [id], sent = await request(stand, [free], fused=True)
    assert sent == {"work.default": [id]}
    assert await history(stand, id) == [(None, "requested", 0), ("requested", "scheduled", 0)]


async def test_each_of_the_moves_is_announced(stand: Stand) -> None:
    await stand.sql(
        "update cluster set announced = '{requested,scheduled,running}', subscribed = '{requested,running}'"
    )
    free = await stand.namespace("action", "work.default")
    _, _, [id] = await take(stand, free)
    told = await stand.sql("select queue from outbox where $1 = any (ids) order by queue", id)
    assert [row["queue"] for row in told] == [
        f"execution.status.{one}" for one in ("requested", "running", "scheduled")
    ]
    moves = await stand.sql(
        "select status, attempt from subscribed_move where execution_id = $1 order by 2", id
    )
    assert [tuple(row) for row in moves] == [("requested", 0), ("running", 1)]
