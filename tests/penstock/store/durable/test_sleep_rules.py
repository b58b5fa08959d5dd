"""The durable functions that go to sleep or are woken: each is there once as it should be, and once for every reason not to."""

from __future__ import annotations

import asyncio
from typing import Any

import orjson

from tests.penstock.store.durable.functions import SOON, Functions


async def suspend(stand: Functions, **awaits: dict[str, Any]) -> set[str]:
    """Suspend these. Returns those that are requested at once, because their awaited value exists."""
    names = [name.replace("_", " ") for name in awaits]
    plain: dict[str, Any] = {"children": [], "signals": []}
    [row] = await stand.sql(
        "select begin_waiting($1, $2::text[]::jsonb[]) as messages",
        [stand.ids[name] for name in names],
        [orjson.dumps({"awaits": plain | one}).decode() for one in awaits.values()],
    )
    return stand.requested(row["messages"])


async def test_a_function_sleeps_unless_its_awaited_value_exists(stand: Functions) -> None:
    for name in (
        "open child",
        "told",
        "told otherwise",
        "told before",
        "asleep",
        "ending",
        "with ended child",
        "by time",
        "by time that is set",
    ):
        await stand.add(name, "waiting")
    await stand.sql("update execution set ends_as = 'canceled' where id = $1", stand.ids["ending"])
    await stand.add("open", "running")
    await stand.add("ended", "completed")
    await stand.suspended("asleep")
    await stand.step("told", "go", ordinal=2)
    await stand.step("told otherwise", "go", ordinal=1)
    await stand.step("told otherwise", "halt", ordinal=2)
    until = "2100-01-01T00:00:00+00:00"
    [[instant]] = await stand.sql("select $1::text::timestamptz", until)
    await stand.sql("insert into timer values ($1, 'wake', $2)", instant, stand.ids["by time that is set"])
    await stand.sql("update suspended set children = array[$1::uuid]", stand.ids["ended"])
    there = await suspend(
        stand,
        open_child={"children": [str(stand.ids["open"])]},
        told={"signals": [["go", 2]]},
        told_otherwise={"signals": [["go", 2]]},
        told_before={"signals": [["stop", 1]]},
        ending={},
        with_ended_child={"children": [str(stand.ids["open"]), str(stand.ids["ended"])]},
        by_time={"until": until},
        by_time_that_is_set={"until": until},
    )
    assert there == {"told", "ending", "with ended child"}
    assert await stand.asleep() == {
        "open child",
        "told otherwise",
        "told before",
        "asleep",
        "by time",
        "by time that is set",
    }
    assert await stand.timers() == {("by time", "wake"), ("by time that is set", "wake")}


async def test_inquiries_and_sleeps_begin_to_wait_together(stand: Functions) -> None:
    for name in ("asks", "sleeps"):
        await stand.add(name, "waiting")
    asked: list[dict[str, Any]] = [{"prompt": "?"}, {"awaits": {"children": [], "signals": []}}]
    [row] = await stand.sql(
        "select begin_waiting($1, $2::text[]::jsonb[]) as messages",
        [stand.ids["asks"], stand.ids["sleeps"]],
        [orjson.dumps(one).decode() for one in asked],
    )
    rows = await stand.sql("select execution_id from inquiry")
    assert stand.names([one[0] for one in rows]) == {"asks"}
    assert await stand.asleep() == {"sleeps"}
    assert {name for one in row["messages"] for name in stand.names(one["ids"])} == {"asks"}


async def wake(stand: Functions, *names: str) -> set[str]:
    [row] = await stand.sql(
        "select wake_functions($1, 'so') as messages", [stand.ids[name] for name in names]
    )
    return stand.requested(row["messages"])


async def test_only_a_suspended_execution_is_woken(stand: Functions) -> None:
    for name in ("asleep", "not asked for"):
        await stand.add(name, "waiting", live=False)
        for kind in ("wake", "total"):
            await stand.timer(name, kind)
    await stand.add("woken before", "waiting")
    await stand.add("has begun", "running")
    await stand.suspended("asleep", "not asked for", "has begun")
    assert await wake(stand) == set()
    assert await wake(stand, "asleep", "woken before", "has begun") == {"asleep"}
    assert await stand.with_status("scheduled") == {"asleep"}
    assert await stand.with_status("running") == {"has begun"}
    assert await stand.asleep() == {"not asked for"}
    assert await stand.timers() == {
        ("asleep", "total"),
        ("not asked for", "wake"),
        ("not asked for", "total"),
    }


async def test_an_execution_about_to_sleep_is_waited_for_and_woken(stand: Functions) -> None:
    await stand.add("run", "running")
    await stand.add("other", "running")
    async with stand.home.session().transaction() as tx:
        await tx.fetch("update execution set status = 'waiting' where id = $1", stand.ids["run"])
        await tx.fetch("insert into suspended (execution_id) values ($1)", stand.ids["run"])
        async with asyncio.timeout(SOON):
            assert await wake(stand, "other") == set()
        task = asyncio.create_task(wake(stand, "run"))
        async with asyncio.timeout(SOON):
            while not await tx.fetch("select from pg_locks where not granted"):
                await asyncio.sleep(0.01)
    assert await task == {"run"}


async def wake_parents(stand: Functions, parents: list[str], *ended: str) -> set[str]:
    [row] = await stand.sql(
        "select wake_parents($1, $2, 'so') as messages",
        [stand.ids[name] for name in parents],
        [stand.ids[name] for name in ended],
    )
    return stand.requested(row["messages"])


async def test_end_of_child_wakes_only_functions_that_wait_for_it(stand: Functions) -> None:
    """A function that read the end while it ran waits for a timer, or for another child, when the message of the end comes."""
    parents = ["waits", "waits for several", "waits for another", "waits for a timer", "runs"]
    for name in parents:
        await stand.add(name, "running" if name == "runs" else "waiting")
    for name in ("ended", "open"):
        await stand.add(name, "completed" if name == "ended" else "running")
    await stand.suspended(*parents[:-1])
    for name, children in (
        ("waits", ["ended"]),
        ("waits for several", ["open", "ended"]),
        ("waits for another", ["open"]),
    ):
        await stand.sql(
            "update suspended set children = $2 where execution_id = $1",
            stand.ids[name],
            [stand.ids[child] for child in children],
        )
    assert await wake_parents(stand, parents, "ended") == {"waits", "waits for several"}
    assert await stand.asleep() == {"waits for another", "waits for a timer"}
    assert await stand.with_status("running") == {"runs", "open"}


async def test_end_of_child_waits_for_a_function_about_to_sleep(stand: Functions) -> None:
    await stand.add("run", "running")
    await stand.add("child", "completed")
    async with stand.home.session().transaction() as tx:
        await tx.fetch("update execution set status = 'waiting' where id = $1", stand.ids["run"])
        await tx.fetch(
            "insert into suspended (execution_id, children) values ($1, array[$2::uuid])",
            stand.ids["run"],
            stand.ids["child"],
        )
        task = asyncio.create_task(wake_parents(stand, ["run"], "child"))
        async with asyncio.timeout(SOON):
            while not await tx.fetch("select from pg_locks where not granted"):
                await asyncio.sleep(0.01)
    assert await task == {"run"}


async def test_slots_that_a_sleeper_held_are_given_back_as_it_is_woken(stand: Functions) -> None:
    [[limit]] = await stand.sql(
        "insert into concurrency_limit (ref, definition_id, scope, max) values ('l', $1, 'a.d', 1) returning id",
        stand.definition,
    )
    for name in ("limited", "free"):
        await stand.add(name, "waiting", keys=[(limit, "")] if name == "limited" else None)
        await stand.sql(
            "insert into slot (limit_id, group_value, execution_id, attempt) values ($1, '', $2, 0)",
            limit,
            stand.ids[name],
        )
    await stand.suspended("limited", "free")
    assert await wake(stand, "limited", "free") == {"limited", "free"}
    rows = await stand.sql("select execution_id from slot")
    assert stand.names([row[0] for row in rows]) == {"free"}
