"""The executions with restaged messages, case by case. Each case has an execution that is restaged, and one execution for
each reason against it."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

import orjson

from tests.penstock.store.stand import AGO, HELD, Stand

NOW = timedelta(0)
FIRST = UUID(int=0)
QUEUES = ["execution.requested", "work.default"]


async def restaged(
    stand: Stand, queues: list[str] = QUEUES, after: UUID = FIRST, limit: int = 100
) -> tuple[dict[str, set[str]], UUID | None]:
    """The names of those that were staged again, by queue, and `next`."""
    [row] = await stand.sql(
        "select messages, next from restage_lost(interval '1 minute', $1, $2, $3::text[])",
        after,
        limit,
        queues,
    )
    found: dict[str, set[str]] = {}
    for message in row["messages"]:
        found.setdefault(message["queue"], set()).update(stand.names(message["ids"]))
    return found, row["next"]


async def test_only_a_forgotten_requested_execution_is_staged_again(stand: Stand) -> None:
    await stand.add("forgotten", "requested")
    await stand.add("staged long ago", "requested", restaged=timedelta(hours=1))
    await stand.add("timed", "requested")
    await stand.timer("timed", "total")
    await stand.add("told of otherwise", "requested")
    await stand.message("told of otherwise", "execution.completed")
    again = set(stand.ids)
    await stand.add("young", "requested", ready=NOW)
    await stand.add("young again", "requested", since=NOW)
    await stand.add("held", "requested", not_before=HELD)
    await stand.add("later", "requested")
    await stand.timer("later", "ready")
    await stand.add("told of", "requested")
    await stand.message("told of", "execution.requested")
    await stand.add("staged just now", "requested", restaged=NOW)
    await stand.add("not open", "requested", live=False)
    await stand.add("running", "running")
    await stand.add("in line", "queued")
    assert await restaged(stand, ["work.default"]) == (
        {},
        max(stand.ids[n] for n in stand.ids if n != "not open"),
    )
    assert (await restaged(stand))[0] == {"execution.requested": again}
    assert (await restaged(stand))[0] == {}, "once"


async def test_only_a_forgotten_scheduled_execution_is_staged_again(stand: Stand) -> None:
    await stand.add("forgotten", "scheduled")
    await stand.add("parked elsewhere", "scheduled")
    await stand.add("told of otherwise", "scheduled")
    await stand.message("told of otherwise", "execution.requested")
    again = set(stand.ids)
    await stand.add("young", "scheduled", ready=NOW)
    await stand.add("young again", "scheduled", since=NOW)
    await stand.add("told of", "scheduled")
    await stand.message("told of", "work.default")
    await stand.add("parked", "scheduled")
    for name, queue in (("parked", "work.default"), ("parked elsewhere", "work.other")):
        await stand.sql(
            "insert into parked (execution_id, queue, definition_id, ready_at, worker) values ($1, $2, 1, now(), $1)",
            *(stand.ids[name], queue),
        )
    await stand.add("of a queue that is not empty", "scheduled", queue="work.busy")
    await stand.add("not open", "scheduled", live=False)
    await stand.add("running", "running")
    assert (await restaged(stand))[0] == {"work.default": again}


async def test_a_slot_holder_is_staged_again_whatever_is_on_its_queue(stand: Stand) -> None:
    limits = [
        row["id"]
        for row in await stand.sql(
            "insert into concurrency_limit (ref, definition_id, scope, max)"
            " select 'l' || n, $1, 'a.b', 1 from generate_series(1, 2) n returning id",
            stand.definition,
        )
    ]
    for name in ("holds", "holds just now", "holds another", "holds of another group", "holds none"):
        await stand.add(name, "scheduled", queue="work.busy", keys=[(limits[0], "")])
    for name, limit, group, ago in (
        ("holds", limits[0], "", timedelta(hours=1)),
        ("holds just now", limits[0], "", NOW),
        ("holds another", limits[1], "", timedelta(hours=1)),
        ("holds of another group", limits[0], "g", timedelta(hours=1)),
    ):
        await stand.sql(
            "insert into slot (limit_id, group_value, execution_id, attempt, admitted_at)"
            " values ($1, $2, $3, 0, clock_timestamp() - $4::interval)",
            *(limit, group, stand.ids[name], ago),
        )
    assert (await restaged(stand))[0] == {"work.busy": {"holds"}}


async def test_instants_that_are_to_come_count_as_old(stand: Stand) -> None:
    """The clock of the database went back. What was staged again since is not staged once more."""
    ahead = -timedelta(minutes=50)
    for status in ("requested", "scheduled"):
        await stand.add(f"{status} in the step", status, since=ahead)
        await stand.add(f"{status} now", status, since=timedelta(0))
        await stand.add(f"{status} again", status, since=ahead, restaged=timedelta(seconds=2))
    assert (await restaged(stand))[0] == {
        "execution.requested": {"requested in the step"},
        "work.default": {"scheduled in the step"},
    }
    assert (await restaged(stand))[0] == {}
    await workflow(stand, "not begun", None, ready=ahead)
    await workflow(stand, "has just begun", None, ready=timedelta(0))
    assert await woken(stand) == {"not begun"}


async def test_a_backlog_is_gone_round_in_steps(stand: Stand) -> None:
    for name in "abcdefgh":
        await stand.add(name, "requested" if name in "acfh" else "scheduled")
    found, next = await restaged(stand, after=stand.ids["c"], limit=3)
    assert (found, next) == ({"execution.requested": {"f"}, "work.default": {"d", "e"}}, stand.ids["f"])
    assert await restaged(stand, after=stand.ids["h"]) == ({}, None)
    found, next = await restaged(stand, limit=100)
    assert (found, next) == (
        {"execution.requested": {"a", "c", "h"}, "work.default": {"b", "g"}},
        stand.ids["h"],
    )


async def test_each_step_goes_on_where_the_one_before_it_ended(stand: Stand) -> None:
    for n in range(60):
        await stand.add(str(n), "requested")
    walked: list[UUID] = []
    after: UUID | None = FIRST
    while after:
        [row] = await stand.sql("select ids, next from walk_open($1, 7)", after)
        walked += row["ids"]
        after = row["next"]
    assert walked == list(stand.ids.values())


LOOK = (
    "explain (analyze, buffers, format json) select * from restage_lost(interval '1 minute', $1, 1000, '{}')"
)


async def test_sleeping_executions_are_passed_over(stand: Stand) -> None:
    for name in "abcdefgh":
        await stand.add(name, "requested")
        if name in "abdefg":
            await stand.sql("insert into suspended (execution_id) values ($1)", stand.ids[name])
    assert await restaged(stand, limit=1) == ({"execution.requested": {"c"}}, stand.ids["c"])
    assert await restaged(stand, after=stand.ids["c"], limit=2) == (
        {"execution.requested": {"h"}},
        stand.ids["h"],
    )


async def test_the_last_one_may_sleep_too(stand: Stand) -> None:
    for name in "ab":
        await stand.add(name, "requested")
    await stand.sql("insert into suspended (execution_id) values ($1)", stand.ids["b"])
    assert await restaged(stand) == ({"execution.requested": {"a"}}, stand.ids["b"])


async def test_a_step_past_sleepers_is_bounded_and_goes_on_after_them(stand: Stand) -> None:
    await stand.sql(
        "with made as (insert into live select gen_random_uuid() from generate_series(1, 15000) returning execution_id)"
        " insert into suspended (execution_id) select execution_id from made"
    )
    await stand.sql("vacuum (analyze) live, suspended")
    [last] = await stand.sql("select execution_id as id from live order by 1 desc limit 1")
    [tenth] = await stand.sql("select execution_id as id from live order by 1 offset 9999 limit 1")
    assert await restaged(stand, limit=1000) == ({}, tenth["id"])
    assert await restaged(stand, after=tenth["id"], limit=1000) == ({}, last["id"])
    assert await restaged(stand, after=last["id"], limit=1000) == ({}, None)
    [[text]] = await stand.sql(LOOK, FIRST)
    plan = orjson.loads(text)[0]["Plan"]
    assert plan["Shared Hit Blocks"] + plan["Shared Read Blocks"] < 1000, "ten thousand of them"


async def test_rows_in_the_hands_of_another_replica_are_left_to_it(stand: Stand) -> None:
    for name in "ab":
        await stand.add(name, "requested")
    async with stand.home.session().transaction() as tx:
        await tx.fetch("select from live where execution_id = $1 for update", stand.ids["a"])
        assert (await restaged(stand))[0] == {"execution.requested": {"b"}}


async def woken(stand: Stand, after: UUID = FIRST, limit: int = 100) -> set[str]:
    [row] = await stand.sql("select restage_workflows(interval '1 minute', $1, $2) as messages", after, limit)
    assert {message["queue"] for message in row["messages"]} <= {"workflow.started"}
    return stand.names([id for message in row["messages"] for id in message["ids"]])


async def workflow(
    stand: Stand,
    name: str,
    head: str | None,
    *,
    stops: int = 0,
    ready: timedelta = AGO,
    since: timedelta | None = None,
) -> None:
    await stand.add(name, "running", kind="workflow", ready=ready, since=since)
    await stand.sql(
        "insert into workflow (execution_id, definition_id, tenant, head, stops) values ($1, 1, 'public', $2::text::jsonb, $3)",
        *(stand.ids[name], head, stops),
    )


def head(*, due: str = "[]", paused: str = "false", stops: int = 0) -> str:
    return f'{{"phase": "running", "due": {due}, "paused": {paused}, "stops": {stops}}}'


async def command(stand: Stand, name: str, ago: timedelta, *, obeyed: bool = False) -> None:
    await stand.sql(
        "insert into workflow_command (execution_id, kind, by, created_at, obeyed_at)"
        " values ($1, 'pause', 'me', clock_timestamp() - $2::interval, case when $3 then now() end)",
        *(stand.ids[name], ago, obeyed),
    )


async def test_a_workflow_that_nothing_moves_on_is_woken_and_no_other_is(stand: Stand) -> None:
    hour = timedelta(hours=1)
    await workflow(stand, "not begun", None)
    await stand.add("without a row", "running", kind="workflow")
    await workflow(stand, "told to stop", head(stops=1), stops=2)
    await workflow(stand, "told something", head())
    await command(stand, "told something", hour)
    await workflow(stand, "with something due", head(due="[1]"))
    await workflow(stand, "with nothing open", head())
    await workflow(stand, "told of otherwise", None)
    await stand.message("told of otherwise", "execution.completed")
    stuck = set(stand.ids)
    for name in ("told to stop", "told something", "with something due"):
        await stand.add(f"child of {name}", "running", parent=name)
    await stand.add("child that ended", "completed", parent="with nothing open", ready=hour)

    await workflow(stand, "young", None, ready=NOW)
    await workflow(stand, "young again", None, since=NOW)
    await workflow(stand, "told of", None)
    await stand.message("told of", "workflow.started")
    await workflow(stand, "that stopped", head(stops=2), stops=2)
    await workflow(stand, "told just now", head())
    await command(stand, "told just now", NOW)
    await workflow(stand, "that obeyed", head())
    await command(stand, "that obeyed", hour, obeyed=True)
    await workflow(stand, "paused", head(due="[1]", paused="true"))
    await workflow(stand, "with a child", head())
    for name in ("that stopped", "told just now", "that obeyed", "with a child"):
        await stand.add(f"child of {name}", "waiting", parent=name)
    await workflow(stand, "whose child has just ended", head())
    await stand.add("child that has just ended", "completed", parent="whose child has just ended", ready=NOW)
    await stand.add("no workflow", "running")
    await stand.add("not running", "requested", kind="workflow")
    await stand.add("not open", "running", kind="workflow", live=False)
    assert await woken(stand) == stuck
    assert await woken(stand) == set(), "once"


async def test_workflows_are_gone_round_in_steps(stand: Stand) -> None:
    for name in "abcd":
        await workflow(stand, name, None)
    assert await woken(stand, limit=2) == {"a", "b"}
    assert await woken(stand, after=stand.ids["c"]) == {"d"}
