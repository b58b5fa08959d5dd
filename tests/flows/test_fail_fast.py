"""Workflows with `fail_fast` on real servers: what has started ends by itself, and nothing more starts."""

from __future__ import annotations

import asyncio

import pytest

from penstock import Limit, action
from penstock.errors import ExecutionFailed
from penstock.language.workflows import from_yaml
from penstock.run.steering import Defer
from tests.flows.installation import Installation

pytestmark = pytest.mark.either_transport

WORLD = {"well": False, "open": False}
"""Whether `ff.fragile` completes, and whether the other actions end. Actions run in this process."""


@pytest.fixture(autouse=True)
def ill() -> None:
    WORLD.update(well=False, open=False)


@action(pack="ff")
async def fragile() -> int:
    if not WORLD["well"]:
        raise OSError("out of order")
    return 1


@action(pack="ff")
async def holds() -> int:
    while not WORLD["open"]:
        await asyncio.sleep(0.02)
    return 1


@action(pack="ff", limits=[Limit(1)])
async def narrow() -> int:
    while not WORLD["open"]:
        await asyncio.sleep(0.02)
    return 1


@action(pack="ff")
async def retries() -> int:
    if not WORLD["open"]:
        raise OSError("not yet")
    return 1


@action(pack="ff")
async def sleeps() -> int:
    if not WORLD["open"]:
        raise Defer(delay=0.1)
    return 1


WIDE = from_yaml("""
workflow: ff.wide
fail_fast: true
tasks:
  bad: {action: ff.fragile}
  holds: {action: ff.holds}
  retries: {action: ff.retries, retry: {max_attempts: 1000, backoff: fixed, initial_delay: 0.1}}
  each: {action: ff.holds, with_items: [1, 2, 3], concurrency: 1}
  sleeps: {action: ff.sleeps}
  one: {action: ff.narrow}
  two: {action: ff.narrow}
  ask: {inquiry: {prompt: "Go on?", schema: {type: boolean}}}
  after_holds: {action: ff.fragile, needs: holds}
  after_retries: {action: ff.fragile, needs: retries}
  after_each: {action: ff.fragile, needs: each}
  after_sleeps: {action: ff.fragile, needs: sleeps}
  after_both: {action: ff.fragile, needs: [one, two]}
  after_ask: {action: ff.fragile, needs: ask}
""")
SMALL = from_yaml("""
workflow: ff.small
fail_fast: true
tasks:
  bad: {action: ff.fragile}
  holds: {action: ff.holds}
  after: {action: ff.holds, needs: holds}
""")
ALL = (fragile, holds, narrow, retries, sleeps, WIDE, SMALL)
STOPPING = "select 1 from workflow where execution_id = $1 and head ->> 'phase' = 'stopping'"
TASKS = "select task, item, status from execution where parent = $1 order by task, item"


async def test_failure_starts_nothing_more(house: Installation) -> None:
    await house.start(*ALL)
    run = await house.client.start("ff.wide")
    await house.until(STOPPING, run)
    why = await house.client.why(run)
    assert why.because == "stopping"
    assert "nothing more starts (`fail_fast`), and still runs" in why.says
    unstarted = await house.client.why(run, "after_holds")
    assert unstarted.because == "stopping"
    assert "'after_holds' does not start: its workflow is failing" in unstarted.says
    [queued] = await house.until("select id from execution where parent = $1 and status = 'queued'", run)
    WORLD["open"] = True
    [question] = await house.until("select execution_id from inquiry where answered_at is null")
    await house.client.answer(question["execution_id"], True, by="ada")
    with pytest.raises(ExecutionFailed, match="out of order"):
        await house.client.result(run, timeout=60)
    assert (await house.client.get(queued["id"])).status == "completed"
    ended = {(row["task"], row["item"]): row["status"] for row in await house.rows(TASKS, run)}
    assert ended.pop(("bad", -1)) == "failed"
    assert set(ended) == {
        *((name, -1) for name in ("ask", "holds", "one", "retries", "sleeps", "two")),
        ("each", 0),
    }
    assert set(ended.values()) == {"completed"}
    await house.quiet()
    await house.sound()

    WORLD["well"] = True
    again = await house.client.rerun(run, from_failed=True, by="ada")
    await house.client.result(again, timeout=60)
    assert [(row["task"], row["item"]) for row in await house.rows(TASKS, again)] == [
        *((f"after_{name}", -1) for name in ("ask", "both", "each", "holds", "retries", "sleeps")),
        ("bad", -1),
        ("each", 1),
        ("each", 2),
    ]
    await house.quiet()
    await house.sound()


async def test_each_start_of_a_process_stops_alike(house: Installation) -> None:
    """The first start goes through an executor. Later ones begin in the transaction of the start."""
    await house.start(*ALL)
    for _ in range(3):
        WORLD["open"] = False
        run = await house.client.start("ff.small")
        await house.until(STOPPING, run)
        WORLD["open"] = True
        with pytest.raises(ExecutionFailed, match="out of order"):
            await house.client.result(run, timeout=30)
        assert [(row["task"], row["status"]) for row in await house.rows(TASKS, run)] == [
            ("bad", "failed"),
            ("holds", "completed"),
        ]
    await house.quiet()
    await house.sound()


async def test_paused_run_that_stops_asks_for_no_resume(house: Installation) -> None:
    await house.start(*ALL)
    run = await house.client.start("ff.small")
    await house.until(
        "select 1 from execution where parent = $1 and task = 'holds' and status = 'running'", run
    )
    await house.client.command(run, "pause", by="ada")
    await house.until(STOPPING, run)
    why = await house.client.why(run)
    assert why.because == "stopping"
    WORLD["open"] = True
    with pytest.raises(ExecutionFailed, match="out of order"):
        await house.client.result(run, timeout=30)
