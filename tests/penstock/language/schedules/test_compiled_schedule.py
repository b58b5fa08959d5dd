"""A version of a schedule, compiled. Pure."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock import Schedule
from penstock.errors import DefinitionError
from penstock.language.schedules import plan
from penstock.language.schedules.compiled_schedule import compile_schedule, expression_of, same_times

NOON = datetime(2026, 3, 29, 12, tzinfo=UTC)
SINCE = st.integers(-5000, 5000).map(lambda n: NOON + timedelta(seconds=37 * n))
WHEN: tuple[dict[str, Any], ...] = (
    {"cron": "*/20 * * * *", "timezone": "Europe/Berlin"},
    {"cron": "30 2 * * *", "timezone": "Australia/Lord_Howe"},
    {"every": "7m", "starts_at": "2026-03-29T03:01:00+00:00"},
    {"cron": "0 * * * *", "jitter": 600, "ends_at": "2026-03-29T18:00:00+00:00"},
    {"at": "2026-03-29T11:00:00+00:00"},
    {"cron": "*/5 * * * *", "missed": {"policy": "skip", "grace": 60}},
    {
        "cron": "*/5 * * * *",
        "missed": {"policy": "delay", "delay": 30, "catch_up": "all", "at_most": 7, "spread": 50},
    },
)


def body(**options: Any) -> dict[str, Any]:
    return Schedule("clock.s", action="clock.tick", **options).body()


@given(st.sampled_from(WHEN), SINCE, st.integers(0, 40_000))
def test_the_short_way_to_a_plan_leads_to_the_same_plan(
    when: dict[str, Any], since: datetime, seconds: int
) -> None:
    compiled = compile_schedule(body(**when))
    now = since + timedelta(seconds=seconds)
    assert compiled.plan(since, now) == plan(
        compiled.spec, compiled.policy, schedule_id="clock.s", since=since, now=now
    )


@pytest.mark.parametrize("when", WHEN)
def test_a_stored_schedule_is_read_as_it_was_declared(when: dict[str, Any]) -> None:
    declared = Schedule("clock.s", action="clock.tick", **when)
    assert expression_of(declared.body()) == declared.expression
    compiled = compile_schedule(declared.body())
    assert compiled.spec.text == declared.expression
    assert compiled.policy.jitter == declared.jitter
    assert compiled.policy.missed == declared.missed.policy
    assert (compiled.policy.grace, compiled.policy.at_most) == (
        declared.missed.grace,
        declared.missed.at_most,
    )
    assert same_times(compiled, compile_schedule(body(**when, params={"n": 1})))


def test_other_instants_are_other_times() -> None:
    one = compile_schedule(body(cron="0 1 * * *"))
    for other in (
        {"cron": "0 2 * * *"},
        {"cron": "0 1 * * *", "timezone": "Asia/Tokyo"},
        {"cron": "0 1 * * *", "ends_at": NOON},
    ):
        assert not same_times(one, compile_schedule(body(**other)))


def test_a_stored_body_that_became_wrong_is_refused() -> None:
    with pytest.raises(DefinitionError, match="Mars"):
        compile_schedule({**body(cron="@daily"), "timezone": "Mars/Olympus"})
