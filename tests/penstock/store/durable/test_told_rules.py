"""The notices to durable functions: results of their steps, signals, and requests to end. Each is there once as it should be
sent, and once for every reason not to."""

from __future__ import annotations

import asyncpg
import pytest

from tests.penstock.store.durable.functions import Functions
from tests.penstock.store.race_scene import ids_of
from tests.penstock.store.stand import HELD


async def give(
    stand: Functions, run: str, name: str, ordinal: int = 1
) -> tuple[set[str], bool, bool, set[str]]:
    """Give a result. Returns the requested executions, `known`, `given`, and the open child."""
    [row] = await stand.sql(
        "select * from give_step($1, $2, $3, '\"given\"', 'give', 'me', 'so')", stand.ids[run], name, ordinal
    )
    return (
        stand.requested(row["messages"]),
        row["known"],
        row["given"],
        stand.names([row["open_child"]]) if row["open_child"] else set(),
    )


async def test_a_step_that_is_not_over_is_given_its_result(stand: Functions) -> None:
    await stand.add("run", "waiting")
    await stand.add("other", "waiting")
    await stand.suspended("run")
    await stand.step("run", "s", "started")
    await stand.step("run", "s", "completed", ordinal=2, result='"old"')
    await stand.step("run", "failed", "failed")
    for name, parent, task, item, status in (
        ("open", "run", "s", 1, "running"),
        ("over", "run", "s", 4, "failed"),
        ("of another", "other", "s", 3, "running"),
        ("of another step", "run", "t", 3, "running"),
    ):
        id = await stand.add(name, status, parent=parent, item=item)
        await stand.sql("update execution set task = $2 where id = $1", id, task)
    assert await give(stand, "run", "s") == ({"run"}, True, True, {"open"})
    assert await give(stand, "run", "s", 2) == (set(), True, False, set())
    assert await give(stand, "run", "s", 3) == (set(), True, True, set())
    assert await give(stand, "run", "s", 4) == (set(), True, True, set())
    assert await give(stand, "run", "failed") == (set(), True, False, set())
    given = ("completed", '"given"')
    assert await stand.steps("run") == {
        ("s", 1): given,
        ("s", 2): ("completed", '"old"'),
        ("s", 3): given,
        ("s", 4): given,
        ("failed", 1): ("failed", None),
    }
    assert len(await stand.sql("select from workflow_command")) == 3


async def test_an_ended_execution_or_plain_action_gets_no_signal(stand: Functions) -> None:
    await stand.add("ended", "completed")
    stand.definition = stand.plain
    await stand.add("plain", "running")
    await stand.add("open", "running")
    for run in ("ended", "plain"):
        assert await give(stand, run, "s") == (set(), False, False, set())
        assert await tell(stand, run, "s") == (set(), False)
        assert await stand.steps(run) == {}


async def tell(stand: Functions, run: str, name: str) -> tuple[set[str], bool]:
    [row] = await stand.sql("select * from signal_function($1, $2, '\"told\"')", stand.ids[run], name)
    return stand.requested(row["messages"]), row["known"]


async def test_a_signal_is_the_next_of_its_name_and_wakes_its_waiter(stand: Functions) -> None:
    await stand.add("run", "waiting")
    await stand.add("other", "waiting")
    await stand.suspended("run", "other")
    await stand.sql("update suspended set signals = '[[\"go\", 2]]'")
    await stand.sql(
        "update suspended set signals = '[[\"halt\", 1]]' where execution_id = $1", stand.ids["other"]
    )
    await stand.step("other", "go", ordinal=7)
    await stand.step("run", "stop", ordinal=3)
    assert await tell(stand, "run", "go") == (set(), True)
    assert await tell(stand, "run", "halt") == (set(), True)
    assert await tell(stand, "run", "halt") == (set(), True)
    assert await stand.asleep() == {"run", "other"}
    assert await tell(stand, "run", "go") == ({"run"}, True)
    assert await stand.asleep() == {"other"}
    await stand.sql("update suspended set signals = '[[\"go\", 3]]'")
    assert await tell(stand, "run", "go") == (set(), True)
    assert set(await stand.steps("run")) == {
        *(("go", n) for n in (1, 2, 3)),
        ("halt", 1),
        ("halt", 2),
        ("stop", 3),
    }


@pytest.mark.parametrize(
    "say", ["give_step($1, 's', 1, '1', 'give', 'me', 'so')", "signal_function($1, 's', '1')"]
)
async def test_a_function_is_locked_while_it_is_told_and_no_other_is(stand: Functions, say: str) -> None:
    await stand.add("run", "running")
    await stand.step("run", "s")
    await stand.add("other", "running")
    async with stand.home.session().transaction() as tx:
        await tx.fetch(f"select * from {say}", stand.ids["run"])
        await stand.sql("select from execution where id = $1 for no key update nowait", stand.ids["other"])
        with pytest.raises(asyncpg.LockNotAvailableError):
            await stand.sql("select from execution where id = $1 for no key update nowait", stand.ids["run"])


async def stop(stand: Functions, *names: str) -> tuple[set[str], set[str]]:
    """Stop these. Returns the requested executions, and the notified ones."""
    [row] = await stand.sql(
        "select * from tell_functions($1, 'canceled', 'so')", [stand.ids[name] for name in names]
    )
    return stand.requested(row["messages"]), stand.names(row["told"])


async def test_functions_that_have_begun_are_told_once_that_they_are_to_end(stand: Functions) -> None:
    begun = ("requested", "queued", "scheduled", "running")
    for status in begun:
        await stand.add(status, status, attempt=1)
    for name in ("asleep", "asks"):
        await stand.add(name, "waiting", attempt=1)
    later = await stand.sql("select clock_timestamp() + interval '1 hour' as at")
    for name, status in (
        ("delayed", "requested"),
        ("delayed in line", "scheduled"),
        ("not told", "requested"),
    ):
        await stand.add(name, status, attempt=1, not_before=later[0]["at"])
    await stand.add("held", "requested", attempt=1, not_before=HELD)
    await stand.suspended("asleep", "not told")
    await stand.add("ended", "completed", attempt=1)
    await stand.add("is canceled", "canceling", attempt=1)
    await stand.add("not begun", "running", attempt=0)
    plain, stand.definition = stand.definition, stand.plain
    await stand.add("plain", "running", attempt=1)
    stand.definition = plain
    asked = {*begun, "asleep", "asks", "delayed", "delayed in line", "held"}
    assert await stop(stand, *(name for name in stand.ids if name != "not told")) == (
        {"asleep", "asks", "delayed"},
        asked,
    )
    rows = await stand.sql("select id from execution where ends_as = 'canceled'")
    assert stand.names([row[0] for row in rows]) == asked
    rows = await stand.sql("select id from execution where not_before is not null")
    assert stand.names([row[0] for row in rows]) == {"delayed in line", "not told", "held"}
    assert await stop(stand, *(name for name in stand.ids if name != "not told")) == (set(), set())


async def test_request_by_hand_asks_each_execution_once(stand: Functions) -> None:
    """The child is inside of the function that cleans up, and is named itself. It cleans up, too, and does not end at once."""
    await stand.add("cleans up", "running", attempt=1, ends_as="cancelled")
    await stand.add("asleep", "waiting", attempt=1, parent="cleans up")
    await stand.add("inside", "running", attempt=1, parent="asleep")
    await stand.suspended("asleep")
    await stand.add("ended", "cancelled", attempt=1, ends_as="cancelled")
    await stand.add("still cleans up", "running", attempt=1, ends_as="cancelled", parent="ended")
    await stand.add("not begun", "requested", attempt=0, parent="still cleans up")
    await stand.add("over", "completed", attempt=1)
    named = ["cleans up", "asleep", "ended", "over"]
    [row] = await stand.sql("select * from cancel_nested($1, 'so')", [stand.ids[name] for name in named])
    assert stand.names(row["canceling"]) == {"cleans up", "asleep", "still cleans up"}
    assert stand.names(row["moved"]) == {"not begun"}
    assert stand.names(row["notified"]) == {"cleans up", "asleep", "ended"}
    assert stand.names(ids_of(row["messages"], "work.default")) == {"asleep"}
    assert await stand.with_status("canceling") == {"cleans up", "still cleans up"}
