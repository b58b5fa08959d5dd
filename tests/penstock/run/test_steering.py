from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from penstock.errors import OutsideRun
from penstock.run.calls import call
from penstock.run.context import current
from penstock.run.outcomes import Outcome
from penstock.run.steering import AskInquiry, Defer, Retry, defer_until, later, sleep
from tests.penstock_worker.executors.runs import run_of


async def _runs(action: Callable[..., Any]) -> list[Outcome]:
    """Run until it defers no more, each time with what the last time carried."""
    outcomes: list[Outcome] = []
    carry: dict[str, Any] = {}
    while len(outcomes) < 10:
        outcome = await call(run_of(action, carry=carry)[0])
        outcomes.append(outcome)
        if outcome.kind != "deferred":
            break
        carry = outcome.carry or {}
    return outcomes


def test_durations_are_read_in_the_form_of_all_doors() -> None:
    assert Retry(after="5s").after == Retry(after=timedelta(seconds=5)).after == 5.0
    assert Defer(delay="1h30m").delay == 5400.0
    assert str(Defer(delay="2m")) == "deferred for 120 s"
    assert AskInquiry("Well?", timeout="1d").request["timeout"] == 86_400.0
    assert later(timeout="2d", heartbeat="10m").outside == {
        "id": None,
        "timeout": 172_800.0,
        "heartbeat": 600.0,
    }
    with pytest.raises(ValueError, match=r"after is not a duration: '5 secs'.*1h30m"):
        Retry(after="5 secs")
    with pytest.raises(TypeError, match="delay is not a duration: list"):
        Defer(delay=[5])  # type: ignore[arg-type]


async def test_a_sleep_defers_once_and_then_passes() -> None:
    async def action() -> str:
        sleep(60)
        return "rested"

    first, second = await _runs(action)
    assert (first.kind, first.delay) == ("deferred", 60.0)
    assert second.result == "rested"


async def test_several_sleeps_are_slept_one_after_the_other() -> None:
    async def action() -> str:
        for seconds in (1, 2, 3):
            sleep(seconds)
        return "rested"

    assert [outcome.delay for outcome in await _runs(action)] == [1.0, 2.0, 3.0, None]


async def test_a_sleep_between_deferrals_is_not_taken_for_one_of_them() -> None:
    async def action() -> str:
        page = current().state or 0
        if page < 2:
            raise Defer(delay=5, state=page + 1)
        sleep(60)
        return f"rested after page {current().state}"

    outcomes = await _runs(action)
    assert [outcome.delay for outcome in outcomes] == [5.0, 5.0, 60.0, None]
    assert outcomes[-1].result == "rested after page 2"


async def test_a_condition_is_looked_at_anew_each_time() -> None:
    answers = [False, False, True]

    async def action() -> str:
        await defer_until(lambda: answers.pop(0), every=3)
        return "ready"

    assert [outcome.delay for outcome in await _runs(action)] == [3.0, 3.0, None]
    assert answers == []


async def test_a_condition_may_be_a_coroutine() -> None:
    async def ready() -> bool:
        return True

    async def action() -> str:
        await defer_until(ready)
        return "ready"

    assert [outcome.kind for outcome in await _runs(action)] == ["completed"]


async def test_an_instant_is_waited_for_once_whatever_this_machine_s_clock_says() -> None:
    at = datetime.now(UTC) + timedelta(days=1)

    async def action() -> str:
        await defer_until(at)
        return "ready"

    first, second = await _runs(action)  # no time has passed here, but the database said that it has
    assert first.until == at
    assert second.result == "ready"


async def test_database_decides_that_an_instant_has_passed() -> None:
    past, earlier = datetime(2000, 1, 2, tzinfo=UTC), datetime(2000, 1, 1, tzinfo=UTC)

    async def action() -> str:
        await defer_until(past)  # this machine's clock may be ahead
        await defer_until(earlier)
        return "ready"

    outcomes = await _runs(action)
    assert [(outcome.kind, outcome.until) for outcome in outcomes] == [
        ("deferred", past),
        ("completed", None),
    ]


async def test_several_instants_are_each_waited_for_once() -> None:
    first, second = (datetime.now(UTC) + timedelta(days=days) for days in (1, 2))

    async def action() -> str:
        await defer_until(first)
        await defer_until(second)
        return "ready"

    assert [outcome.until for outcome in await _runs(action)] == [first, second, None]


async def test_defer_until_outside_a_run_takes_the_local_clock() -> None:
    await defer_until(datetime(2000, 1, 1, tzinfo=UTC))
    with pytest.raises(Defer):
        await defer_until(datetime.now(UTC) + timedelta(days=1))


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: Defer(),
        lambda: Defer(until=datetime.now(UTC), delay=1),
        lambda: Retry(after=True),
    ],
)
def test_arguments_that_make_no_sense_are_refused(wrong: Callable[[], object]) -> None:
    with pytest.raises(TypeError):
        wrong()


@pytest.mark.parametrize("wrong", [lambda: Defer(delay="soon"), lambda: Retry("the bank is closed")])
def test_texts_that_are_not_durations_are_refused(wrong: Callable[[], object]) -> None:
    with pytest.raises(ValueError, match="is not a duration"):
        wrong()


@pytest.mark.parametrize("wrong", [lambda: Defer(delay=-1), lambda: Retry(after=float("inf"))])
def test_times_that_make_no_sense_are_refused(wrong: Callable[[], object]) -> None:
    with pytest.raises(ValueError, match="between 0 and 100 years"):
        wrong()


def test_an_instant_needs_a_time_zone() -> None:
    with pytest.raises(ValueError, match="time zone"):
        Defer(until=datetime(2030, 1, 1))


def test_sleeping_outside_of_a_run_is_an_error() -> None:
    with pytest.raises(OutsideRun):
        sleep(1)
    with pytest.raises(OutsideRun):
        current()
