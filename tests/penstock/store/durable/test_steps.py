"""Steps of durable functions, rule by rule: the recording attempt, the second record, and the steps that a re-run
keeps."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from penstock.language.terms.ids import new_id
from penstock.store.durable import steps
from penstock.store.durable.steps import StepWrite
from tests.penstock.store.durable.functions import SOON, Functions

WORKER, OTHER = UUID(int=1), UUID(int=2)


def written(
    stand: Functions, run: str, name: str = "s", ordinal: int = 1, attempt: int = 1, **fields: Any
) -> StepWrite:
    plain = StepWrite(
        stand.ids[run], attempt, name, ordinal, place=1, kind="step", status="completed", tries=1, took=0.5,
        result='"new"', error=None,
    )  # fmt: skip
    return replace(plain, **fields)


async def test_only_the_holder_of_an_attempt_records_its_steps(stand: Functions) -> None:
    await stand.add("runs", "running", claim=WORKER, attempt=1)
    await stand.add("is canceled", "canceling", claim=WORKER, attempt=1)
    ours = set(stand.ids)
    await stand.add("of another", "running", claim=OTHER, attempt=1)
    await stand.add("of an attempt before", "running", claim=WORKER, attempt=2)
    await stand.add("waits", "waiting", claim=WORKER, attempt=1)
    await stand.step("waits", "s", result='"new"')
    every = list(stand.ids)
    await stand.add("not asked about", "running", claim=WORKER, attempt=1)
    async with stand.home.session().transaction() as tx:
        unwritten = await steps.record(tx, WORKER, [written(stand, run) for run in every])
        free = await stand.sql("select id from execution for no key update skip locked")
        assert stand.names([row["id"] for row in free]) == set(stand.ids) - ours - {"of an attempt before"}
    assert [every[one.nth - 1] for one in unwritten] == ["of another", "of an attempt before", "waits"]
    assert {one.is_lost for one in unwritten} == {True}
    rows = await stand.sql("select execution_id from step")
    assert stand.names([row[0] for row in rows]) == ours | {"waits"}


async def test_a_worker_records_nothing_once_its_attempt_was_taken_away(stand: Functions) -> None:
    await stand.add("run", "running", claim=WORKER, attempt=1)
    async with stand.home.session().transaction() as tx:
        await tx.fetch("update execution set attempt = 2 where id = $1", stand.ids["run"])
        task = asyncio.create_task(steps.record(stand.home.session(), WORKER, [written(stand, "run")]))
        async with asyncio.timeout(SOON):
            while not await stand.sql("select from pg_locks where not granted"):
                await asyncio.sleep(0.01)
    [unwritten] = await task
    assert unwritten.is_lost
    assert await stand.steps("run") == {}


async def test_a_recorded_step_stays_unless_it_was_not_over(stand: Functions) -> None:
    await stand.add("run", "running", claim=WORKER, attempt=2)
    await stand.add("other", "running", claim=WORKER, attempt=2)
    old: dict[str, Any] = {"result": '"old"'}
    await stand.step("run", "started", "started", **old)
    await stand.step("run", "state", kind="state", **old)
    await stand.step("run", "failed before", "failed", **old)
    await stand.step("run", "completed before", result='"new"')
    await stand.step("run", "failed now", "failed", attempt=2, **old)
    await stand.step("run", "the same", attempt=2, result='"new"')
    await stand.step("run", "the same but its result", attempt=2, **old)
    await stand.step("run", "the same but its result", ordinal=2, attempt=2, **old)
    names = [name for name, ordinal in await stand.steps("run") if ordinal == 1]
    writes = [written(stand, "run", name, attempt=2) for name in [*names, "unknown"]]
    writes = [replace(write, kind="state") if write.name == "state" else write for write in writes]
    unwritten = await steps.record(
        stand.session, WORKER, [*writes, written(stand, "other", "failed now", attempt=2)]
    )
    assert {(writes[one.nth - 1].name, one.status, one.result, one.is_lost) for one in unwritten} == {
        ("completed before", "completed", '"new"', False),
        ("failed now", "failed", '"old"', False),
        ("the same but its result", "completed", '"old"', False),
    }
    assert len(unwritten) == 3
    new = ("completed", '"new"')
    assert await stand.steps("run") == {
        **{
            (name, 1): new
            for name in ("started", "state", "failed before", "completed before", "the same", "unknown")
        },
        ("failed now", 1): ("failed", '"old"'),
        ("the same but its result", 1): ("completed", '"old"'),
        ("the same but its result", 2): ("completed", '"old"'),
    }
    assert await stand.steps("other") == {("failed now", 1): new}


KINDS = ("run", "map", "ask", "wait_for")


async def kept(
    stand: Functions, run: str, name: str | None = None, ordinal: int = 1
) -> dict[tuple[str, int], str | None]:
    new = new_id()
    for _ in ("told", "told again"):
        await stand.sql("select keep_steps($1, $2, $3, $4)", new, stand.ids[run], name, ordinal)
    rows = await stand.sql("select name, ordinal, result::text from step where execution_id = $1", new)
    return {(row["name"], row["ordinal"]): row["result"] for row in rows}


async def test_rerun_keeps_no_undo(stand: Functions) -> None:
    await stand.add("run", "failed")
    for name, place in (("reserve", 1), ("on failure release", 0), ("2/on failure release", 0)):
        await stand.step("run", name, place=place)
    await stand.step("run", "on failure call", place=2, kind="signal")
    assert set(await kept(stand, "run")) == {("reserve", 1), ("on failure call", 1)}


@pytest.mark.parametrize("archived", [False, True])
async def test_a_rerun_keeps_completed_steps_and_results_of_children(
    stand: Functions, archived: bool
) -> None:
    await stand.add("other", "completed")
    await stand.step("other", "of another")
    await stand.add("run", "completed")
    await stand.step("run", "step", result='"own"')
    await stand.step("run", "sleep", "started", kind="sleep")
    await stand.step("run", "failed sleep", "failed", kind="sleep")
    await stand.step("run", "begun", "started")
    await stand.step("run", "failed", "failed")
    stay = {("step", 1): '"own"', ("sleep", 1): None}
    rows = [("step", 1, "completed"), ("begun", 1, "completed")]
    for kind in KINDS:
        await stand.step("run", kind, "started", kind=kind)
        rows.append((kind, 1, "completed"))
        stay[kind, 1] = '"child"'
    for name, item, status in (
        ("open", 1, "running"),
        ("ended badly", 1, "failed"),
        ("another item", 2, "completed"),
    ):
        await stand.step("run", name, "started", kind="run")
        rows.append((name, item, status))
    await stand.step("run", "done", "completed", kind="run", result='"own"')
    await stand.step("run", "given up", "failed", kind="run")
    rows += [("done", 1, "completed"), ("given up", 1, "completed")]
    stay["done", 1] = '"own"'
    for name, item, status in rows:
        id = await stand.add(f"child {name}", status, parent="run", item=item)
        await stand.sql("update execution set task = $2 where id = $1", id, name)
        await stand.sql("insert into result (execution_id, result) values ($1, '\"child\"')", id)
    for name, parent in (("of another run", "other"), ("of a child", "child step")):
        id = await stand.add(name, "completed", parent=parent, item=1)
        await stand.sql("update execution set task = 'open' where id = $1", id)
        await stand.sql("insert into result (execution_id, result) values ($1, '\"theirs\"')", id)
    if archived:
        await stand.sql(ARCHIVE)
        await stand.sql("delete from step")
        await stand.sql("delete from result")
        await stand.sql("alter table execution disable trigger user")
        await stand.sql("delete from execution")
    assert await kept(stand, "run") == stay


ARCHIVE = """
insert into archive (id, finished_at, status, action, namespace, root, parent, task, item, created_at, attempt, failures,
    recoveries, priority, definition_id, result, steps)
select e.id, now() - interval '1 minute', e.status, 'a.d', 'n', coalesce(p.parent, e.parent, e.id), e.parent, e.task, e.item,
    now(), 1, 0, 0, 0, e.definition_id, r.result, (
        select jsonb_agg(to_jsonb(s) - 'execution_id') from step s where s.execution_id = e.id)
from execution e left join result r on r.execution_id = e.id left join execution p on p.id = e.parent
"""


async def test_a_rerun_from_a_step_keeps_the_steps_before_it(stand: Functions) -> None:
    await stand.add("run", "completed")
    places = {
        "first": 1,
        "second": 2,
        "third": 3,
        "2/first": 1,
        "told before": 0,
        "2/last": 3,
        "told after": 0,
    }
    for name, place in places.items():
        await stand.step("run", name, place=place)
    await stand.step("run", "second", ordinal=2, place=5)
    before = {("second", 1), ("third", 1), ("2/first", 1), ("told before", 1)}
    early = "update step set at = now() - interval '1 hour' where name = any ($1::text[]) and ordinal = 1"
    await stand.sql("update step set at = now() - interval '1 minute'")
    await stand.sql(early, ["third", "2/first", "told before"])
    await stand.sql("update step set at = now() where name = 'first'")
    assert set(await kept(stand, "run", "second")) == {("first", 1), ("2/first", 1), ("told before", 1)}
    assert set(await kept(stand, "run", "second", 2)) == before | {("first", 1)}
    assert set(await kept(stand, "run", "told before")) == set()
    assert set(await kept(stand, "run", "told after")) == {("third", 1), ("2/first", 1), ("told before", 1)}
