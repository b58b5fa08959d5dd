"""The effects of applied options. Each of these options was documented and could not be used, or did something else."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from penstock import Limit, Route, Schedule, action, workflow
from penstock.errors import Conflict, DefinitionError, InvalidInput
from penstock.language.loading import Definitions
from penstock.language.policies.policies import RetryPolicy
from penstock.language.terms.column_ranges import HIGHEST_PRIORITY, INTEGER, SMALLINT
from penstock.language.terms.ids import new_id
from penstock.language.workflows import from_yaml, task
from penstock.operate.apply import register
from penstock.run.steering import Defer
from tests.flows.installation import Installation
from tests.penstock.engine.written import run

pytestmark = pytest.mark.parametrize("transport", ["postgres"], indirect=True)
IN_YAML = """
workflow: use.limited
limits: {max: 2}
tasks:
  first: {action: noop}
  second: {action: use.rest, limits: [{max: 1, by: n}, {rate: 10/s}], needs: first}
on_exit: {action: use.rest, limits: {max: 3}}
"""


@action(pack="use", limits=[Limit(1)])
async def rest(n: int = 0) -> int:
    return n


@action(pack="use", limits=[Limit(1, when_full="cancel_running")])
async def newest(how: str) -> str:
    if how == "sleep":
        raise Defer(delay=3600)
    return how


@workflow(ref="use.in_python", limits=[Limit(2)])
def limited() -> None:
    task(rest, limits=[Limit(1, by="n")], name="one")


async def test_limits_of_workflows_and_tasks_apply_twice(house: Installation) -> None:
    whole = Definitions([rest, limited, from_yaml(IN_YAML)])
    await register(house.session, whole + Definitions([limited]))
    await register(house.session, Definitions([*whole, *whole]))
    limits = {row["scope"] for row in await house.rows("select scope from concurrency_limit")}
    assert limits >= {
        "use.limited",
        "use.limited.second",
        "use.limited.on_exit",
        "use.in_python",
        "use.in_python.one",
    }


@pytest.mark.parametrize("factor", [2, 1000])
@pytest.mark.parametrize("backoff", ["fixed", "linear"])
def test_backoff_grows_as_it_says_after_many_failures(transport: str, backoff: Any, factor: float) -> None:
    """Powers of these factors leave the range of floats at failure 1,025 and 104. These forms of growth use no powers."""
    policy = RetryPolicy(
        max_attempts=5000, initial_delay=1, max_delay=10**6, backoff=backoff, factor=factor, jitter=0
    )
    for attempt in (104, 105, 1025, 1026, 3001):
        assert policy.delay_before(attempt, 0.5) == (1 if backoff == "fixed" else attempt - 1)


def test_steep_backoff_ends_at_its_longest_delay(transport: str) -> None:
    policy = RetryPolicy(max_attempts=5000, initial_delay=1, max_delay=90, factor=1000, jitter=0)
    assert [policy.delay_before(attempt, 0.5) for attempt in (2, 3, 104, 105, 4000)] == [1, 90, 90, 90, 90]


@pytest.mark.parametrize("count", [SMALLINT, SMALLINT + 1, INTEGER - 2])
async def test_failure_of_any_number_is_counted_and_ends(house: Installation, count: int) -> None:
    @action(
        pack="use",
        ref="use.fails",
        retry=RetryPolicy(max_attempts=INTEGER, initial_delay=3600, max_delay=3600),
    )
    def fails() -> None:
        raise ValueError("again")

    await house.start(fails)
    id = await house.client.start(fails, delay=3600)
    await house.rows("update execution set failures = $2, not_before = null where id = $1", id, count)
    await house.rows("delete from timer where execution_id = $1 and kind = 'ready'", id)
    await house.rows("select stage('execution.requested', array[$1::uuid], 50)", id)
    [row] = await house.until(
        "select failures, attempt, status from execution where id = $1 and failures > $2", id, count
    )
    assert tuple(row) == (count + 1, 1, "requested" if count + 1 < INTEGER else "failed")
    assert not await house.rows("select from attempt where outcome = 'lost'")


async def test_priorities_beyond_their_column_are_refused(house: Installation) -> None:
    await house.apply(rest)
    for priority in (HIGHEST_PRIORITY, -HIGHEST_PRIORITY):
        await house.client.start(rest, priority=priority)
    for wrong in (HIGHEST_PRIORITY + 1, -HIGHEST_PRIORITY - 1, 2**70, True, "3", 1.5):
        with pytest.raises(InvalidInput, match="priority"):
            await house.client.start(rest, priority=wrong)  # type: ignore[arg-type]
        with pytest.raises(InvalidInput, match="priority"):
            await house.client.start_many(rest, [{}], priority=wrong)  # type: ignore[arg-type]
    naive = datetime(2030, 1, 1)
    for options in (
        {"delay": float("nan")},
        {"delay": -1},
        {"delay": "no"},
        {"at": naive},
        {"expires_at": "x"},
        {"at": 3},
    ):
        with pytest.raises(InvalidInput) as refused:
            await house.client.start(rest, **options)
        assert refused.value.hint


async def test_newest_ends_a_sleeping_execution(house: Installation) -> None:
    await house.start(newest)
    older = await house.client.start(newest, {"how": "sleep"})
    await house.until("select from execution where id = $1 and status = 'requested' and attempt = 1", older)
    assert await house.client.result(await house.client.start(newest, {"how": "new"}), timeout=20) == "new"
    [row] = await house.until(
        "select status, reason from execution where id = $1 and finished_at is not null", older
    )
    assert (row["status"], "gave way" in row["reason"]) == ("cancelled", True)
    await house.sound()


async def test_pause_leaves_a_disabled_schedule_disabled(house: Installation) -> None:
    await house.apply(rest, Schedule("use.often", action=rest, every=1, enabled=False))
    with pytest.raises(Conflict) as refused:
        await house.client.schedules.pause("use.often", 0.1)
    assert "enable" in str(refused.value.hint)
    assert await house.rows("select from schedule where not enabled and next_due is null")


async def test_instant_in_the_past_is_refused(house: Installation) -> None:
    past = datetime.now(UTC) - timedelta(seconds=5)
    with pytest.raises(DefinitionError, match="never fire"):
        await house.apply(rest, Schedule("use.once", action=rest, at=past))
    await house.apply(rest, Schedule("use.once", action=rest, at=past, enabled=False))


async def test_lost_attempt_stands_before_younger_ones(house: Installation) -> None:
    """Recovery and its promotion are one transaction: none of another connection sees the younger one admitted first."""
    await house.apply(rest)
    await house.client.cancel(await house.client.start(rest))
    await house.rows(
        "update namespace set away_since = null"
    )  # as if a worker lived that runs nothing meanwhile
    oldest = await house.client.start(rest)
    younger = await house.client.start(rest)
    worker = new_id()
    await house.rows(
        "update execution set status = 'running', attempt = 1, claim = $2 where id = $1", oldest, worker
    )
    await house.rows("select * from recover_executions($1, array[$2::uuid], 'gone')", worker, oldest)
    rows = await house.rows("select id, status from execution where finished_at is null")
    assert {row["id"]: row["status"] for row in rows} == {oldest: "scheduled", younger: "queued"}
    assert [row["execution_id"] for row in await house.rows("select execution_id from slot")] == [oldest]
    await house.sound()


async def test_route_below_its_pattern_has_options(house: Installation, tmp_path: Any) -> None:
    from penstock.language.loading import load

    file = tmp_path / "pack.yaml"
    file.write_text("name: use\nroutes:\n  '*::use::**': {route: elsewhere, position: 3}\n")
    [route] = load(file)
    assert (route.pattern, route.route, route.position) == ("*::use::**", "elsewhere", 3)
    assert isinstance(route, Route)


def test_condition_does_not_see_a_failed_source(transport: str) -> None:
    flow = """
        a: {action: t.a}
        b: {action: t.b, needs: a, when: %s}
    """
    for rule in (
        "'{{ tasks.a.result > 1000 }}'",
        "{all: ['{{ tasks.a.result > 1000 }}', all_success]}",
        "{all: ['{{ tasks.a.result > 1000 }}', {success: a}]}",
        "{any: ['{{ tasks.a.result > 1000 }}', {failed: a}]}",
    ):
        world = run(flow % rule)
        world.finish(("a", "failed", {"type": "X", "message": "no"}))
        assert world.statuses["b"] == ("open" if "any" in rule else "skipped")


async def test_failed_items_are_named(house: Installation) -> None:
    @action(pack="use", ref="use.parse")
    async def parse(page: int) -> int:
        if page % 2:
            raise ValueError(f"page {page} is torn")
        return page

    flow = from_yaml(
        "workflow: use.pages\ntasks:\n  parse: {action: use.parse, with_items: [0, 1, 2, 3], input: {page: '{{ item }}'}}"
    )
    await house.start(parse, flow)
    id = await house.client.start(flow)
    with pytest.raises(Exception, match=r"parse\[1\]: ValueError: page 1 is torn"):
        await house.client.result(id, timeout=20)
    [row] = await house.rows("select error from result where execution_id = $1", id)
    assert "2 of 4 items failed" in row["error"]
    assert "item 1: ValueError: page 1 is torn; item 3: ValueError: page 3 is torn" in row["error"]
