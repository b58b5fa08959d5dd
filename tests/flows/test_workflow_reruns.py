"""Running again what has ended: as a whole, from what failed, from a task."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import orjson
import pytest

from penstock import action
from penstock.cli.workflow_tree import print_tree
from penstock.errors import Conflict, ExecutionFailed, InvalidInput, NotFound
from penstock.language.workflows import from_yaml
from penstock.operate.executions import described_execution
from penstock_executor.loops import drop_expired
from tests.flows.installation import Installation

pytestmark = pytest.mark.either_transport

HEALTH = {"well": False}
"""What the world is like: the tests mend it between two runs. Actions run in this process."""


@action(pack="re")
async def cost(n: int) -> int:
    return n * 10


@action(pack="re")
async def fragile(n: int = 0) -> int:
    if not HEALTH["well"] and n % 2 == 0:
        raise OSError("out of order")
    return n + 1


CHAIN = from_yaml("""
workflow: re.chain
parameters: {n: {type: integer, required: true}}
tasks:
  a: {action: re.cost, input: {n: "{{ parameters.n }}"}, publish: {x: "{{ result }}"}}
  quick: {action: noop, needs: [a], input: {twice: "{{ tasks.a.result * 2 }}"}}
  b: {action: re.fragile, needs: [quick], input: {n: "{{ vars.x }}"}}
  c: {action: re.cost, needs: [b], input: {n: "{{ tasks.b.result }}"}}
output: {x: "{{ vars.x }}", twice: "{{ tasks.quick.result.twice }}", c: "{{ tasks.c.result }}"}
""")

FAN = from_yaml("""
workflow: re.fan
tasks:
  before: {action: re.cost, input: {n: 1}}
  each: {action: re.fragile, needs: [before], with_items: [0, 1, 2, 3, 4], concurrency: 2, input: {n: "{{ item }}"}}
  sum: {action: re.cost, needs: [each], input: {n: "{{ tasks.each.result | sum }}"}}
output: "{{ tasks.sum.result }}"
""")

ALL = (cost, fragile, CHAIN, FAN)
OF = "select task, item, status from execution where parent = $1 order by task, item"


@pytest.fixture(autouse=True)
def ill() -> None:
    HEALTH["well"] = False


async def failed(house: Installation, ref: str, params: dict[str, Any] | None = None) -> UUID:
    """A run that failed, after which the world is mended."""
    id = await house.client.start(ref, params)
    with pytest.raises(ExecutionFailed):
        await house.client.result(id, timeout=30)
    HEALTH["well"] = True
    return id


async def test_a_rerun_from_failed_keeps_the_succeeded_tasks(house: Installation) -> None:
    await house.start(*ALL)
    old = await failed(house, "re.chain", {"n": 4})
    new = await house.client.rerun(old, from_failed=True, by="ada", reason="it was mended")
    assert await house.client.result(new, timeout=30) == {"x": 40, "twice": 80, "c": 410}
    assert [row["task"] for row in await house.rows(OF, new)] == ["b", "c"]
    assert (await house.client.get(old)).status == "failed"
    origin = orjson.loads((await house.client.get(new)).origin or "null")
    assert origin == {"rerun_of": str(old), "from_failed": True, "by": "ada", "reason": "it was mended"}
    [command] = await house.rows("select kind, by, reason, value ->> 'as' as new from workflow_command")
    assert tuple(command) == ("rerun", "ada", "it was mended", str(new))
    await house.quiet()
    await house.sound()


async def test_a_fan_out_that_failed_runs_only_the_items_that_did(house: Installation) -> None:
    await house.start(*ALL)
    old = await failed(house, "re.fan")
    new = await house.client.rerun(old, from_failed=True, by="ada")
    assert await house.client.result(new, timeout=30) == 150
    assert [(row["task"], row["item"]) for row in await house.rows(OF, new)] == [
        ("each", 0),
        ("each", 2),
        ("each", 4),
        ("sum", -1),
    ]
    await house.sound()


async def test_a_rerun_from_a_task_runs_that_and_all_after_it(house: Installation) -> None:
    await house.start(*ALL)
    HEALTH["well"] = True
    old = await house.client.start("re.chain", {"n": 4})
    await house.client.result(old, timeout=30)
    new = await house.client.rerun(old, from_task="c", by="ada")
    assert await house.client.result(new, timeout=30) == {"x": 40, "twice": 80, "c": 410}
    assert [row["task"] for row in await house.rows(OF, new)] == ["c"]


async def test_a_rerun_as_a_whole_keeps_nothing_and_works_for_actions_too(house: Installation) -> None:
    await house.start(*ALL)
    old = await failed(house, "re.chain", {"n": 4})
    new = await house.client.rerun(old, by="ada")
    assert (await house.client.result(new, timeout=30))["c"] == 410
    assert [row["task"] for row in await house.rows(OF, new)] == ["a", "b", "c"]
    HEALTH["well"] = False
    alone = await failed(house, "re.fragile", {"n": 2})
    assert await house.client.result(await house.client.rerun(alone, by="ada"), timeout=30) == 3
    await house.sound()


@pytest.mark.parametrize("archived", [False, True])
async def test_a_rerun_of_a_rerun_keeps_tasks_of_both_archived_or_not(
    house: Installation, archived: bool
) -> None:
    await house.start(*ALL)
    first = await failed(house, "re.fan")
    HEALTH["well"] = False
    if archived:
        await house.until("select 1 where not exists (select from outbox)")
        await house.rows("select * from archive_finished(interval '0', 100)")
    second = await house.client.rerun(first, from_failed=True, by="ada")
    with pytest.raises(ExecutionFailed):
        await house.client.result(second, timeout=30)
    HEALTH["well"] = True
    if archived:
        await house.until("select 1 where not exists (select from outbox)")
        await house.rows("select * from archive_finished(interval '0', 100)")
        assert not await house.rows("select 1 from execution")
    third = await house.client.rerun(second, from_failed=True, by="ada")
    assert await house.client.result(third, timeout=30) == 150
    assert [row["item"] for row in await house.rows(OF, third)] == [0, 2, 4, -1]
    await house.sound()


async def test_a_rerun_is_of_the_version_that_ran(house: Installation) -> None:
    await house.start(*ALL)
    old = await failed(house, "re.chain", {"n": 4})
    changed = from_yaml("""
workflow: re.chain
parameters: {other: {}}
tasks: {z: {action: re.cost, input: {n: 1}}}
""")
    await house.apply(changed)
    new = await house.client.rerun(old, from_failed=True, by="ada")
    assert (await house.client.result(new, timeout=30))["c"] == 410


async def test_a_rerun_that_is_impossible_is_refused_with_the_way_out(house: Installation) -> None:
    await house.start(*ALL)
    HEALTH["well"] = True
    old = await house.client.start("re.chain", {"n": 4}, delay=1000)
    with pytest.raises(Conflict, match="has not ended"):
        await house.client.rerun(old, by="ada")
    await house.client.cancel(old)
    with pytest.raises(NotFound, match="no task 'd'"):
        await house.client.rerun(old, from_task="d", by="ada")
    alone = await house.client.start("re.cost", {"n": 4})
    await house.client.result(alone, timeout=30)
    with pytest.raises(InvalidInput, match="not a workflow"):
        await house.client.rerun(alone, from_task="n", by="ada")
    done = await house.client.start("re.chain", {"n": 4})
    await house.client.result(done, timeout=30)
    with pytest.raises(Conflict, match="has completed"):
        await house.client.rerun(done, from_failed=True, by="ada")


KEEPS = 1000
"""Days for which the executor keeps the archive in tests that drop its old rows themselves."""


async def drop_old(house: Installation) -> None:
    """Do what the retention does with what is older than 90 days."""
    parts = await house.parts()
    while await drop_expired.turn(parts, parts.database.session()) is True:
        pass


async def long_run(house: Installation, ref: str, ended_early: str) -> UUID:
    """Return an archived run that failed now. Its tasks that meet the condition completed 100 days before."""
    old = await failed(house, ref, {"n": 4} if ref == "re.chain" else None)
    await house.quiet()
    aged = await house.rows(
        "update execution set finished_at = finished_at - interval '100 days', created_at = created_at - interval '100 days' "
        f"where parent = $1 and ({ended_early}) returning id",
        old,
    )
    assert aged
    await house.rows("select * from archive_finished(interval '0', 100)")
    return old


@pytest.mark.parametrize(
    ("ref", "ended_early", "first", "result"),
    [
        ("re.chain", "task = 'a'", "a", {"x": 40, "twice": 80, "c": 410}),
        ("re.fan", "task = 'before'", "before", 150),
        ("re.fan", "item in (1, 3)", "each", 150),
    ],
)
async def test_rerun_without_stored_results_is_refused(
    house: Installation, ref: str, ended_early: str, first: str, result: Any
) -> None:
    await house.start(*ALL, archive_retention_days=KEEPS)
    old = await long_run(house, ref, ended_early)
    await drop_old(house)
    with pytest.raises(NotFound, match=f"not stored any more: those of {first}$") as refused:
        await house.client.rerun(old, from_failed=True, by="ada")
    assert f"--from {first}" in (refused.value.hint or "")
    assert await house.rows("select 1 from execution") == []
    again = await house.client.rerun(old, from_task=first, by="ada")
    assert await house.client.result(again, timeout=30) == result
    whole = await house.client.rerun(old, by="ada")
    assert await house.client.result(whole, timeout=30) == result


async def test_results_of_old_tasks_stay_while_a_rerun_waits_for_them(house: Installation) -> None:
    await house.apply(*ALL)
    await house.worker(*ALL)
    executor = await house.executor(archive_retention_days=KEEPS)
    old = await long_run(house, "re.chain", "task = 'a'")
    await house.ended(executor)
    new = await house.client.rerun(old, from_failed=True, by="ada")
    await drop_old(house)
    assert await house.rows("select 1 from archive where parent = $1 and task = 'a'", old)
    await house.executor(archive_retention_days=KEEPS)
    assert await house.client.result(new, timeout=30) == {"x": 40, "twice": 80, "c": 410}
    await house.quiet()
    await drop_old(house)
    assert await house.rows("select 1 from archive where parent = $1 and task = 'a'", old) == []


async def test_rerun_of_a_run_that_never_began_keeps_nothing(house: Installation) -> None:
    await house.start(*ALL)
    old = await house.client.start("re.fan", delay=1000)
    await house.client.cancel(old)
    HEALTH["well"] = True
    new = await house.client.rerun(old, from_failed=True, by="ada")
    assert await house.client.result(new, timeout=30) == 150


@pytest.mark.parametrize(
    ("ref", "ended_early", "dropped"),
    [("re.chain", "task = 'a'", {"a": 1}), ("re.fan", "item in (1, 3)", {"each": 2})],
)
async def test_dropped_executions_of_tasks_are_shown_as_dropped(
    house: Installation,
    ref: str,
    ended_early: str,
    dropped: dict[str, int],
    capsys: pytest.CaptureFixture[str],
) -> None:
    await house.start(*ALL, archive_retention_days=KEEPS)
    old = await long_run(house, ref, ended_early)
    kept = await house.client.rerun(old, from_failed=True, by="ada")
    await house.client.result(kept, timeout=30)
    await drop_old(house)
    tasks = (await described_execution(house.session, old))["tasks"]
    assert {task.name: task.dropped for task in tasks if task.dropped} == dropped
    assert not any(task.kept for task in tasks)
    print_tree(tasks, datetime.now(UTC))
    assert "not stored any more" in capsys.readouterr().out
    tasks = (await described_execution(house.session, kept))["tasks"]
    assert any(task.kept for task in tasks)
    assert not any(task.dropped for task in tasks)
