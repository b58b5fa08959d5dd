from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, TypedDict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import DefinitionError
from penstock.language.schedules import FirePlan, FirePolicy, Spec, plan
from penstock.language.schedules.fire_plan import MAX_FIRES, MAX_SKIPPED

HOURLY = Spec.parse("0 * * * *")
NOON = datetime(2026, 3, 4, 12, tzinfo=UTC)
HOUR, MINUTE, SECOND = timedelta(hours=1), timedelta(minutes=1), timedelta(seconds=1)


class Bounds(TypedDict):
    starts_at: datetime
    ends_at: datetime


def planned(since: datetime, now: datetime, spec: Spec = HOURLY, **policy: Any) -> FirePlan:
    return plan(spec, FirePolicy(**policy), schedule_id="s1", since=since, now=now)


def dues(result: FirePlan) -> list[datetime]:
    return [fire.due for fire in result.fires]


def test_nothing_is_due_yet() -> None:
    result = planned(NOON, NOON + 59 * MINUTE)
    assert result == FirePlan((), (), False, NOON + HOUR)


def test_a_fire_that_is_due_now_fires_now() -> None:
    result = planned(NOON - HOUR, NOON)
    assert dues(result) == [NOON]
    assert result.fires[0].run_at == NOON
    assert not result.fires[0].missed
    assert result.next_due == NOON + HOUR


@pytest.mark.parametrize("policy", ["execute", "skip", "delay"])
def test_a_fire_within_the_grace_is_in_time_whatever_the_policy(policy: str) -> None:
    result = planned(NOON - HOUR, NOON + 5 * MINUTE, missed=policy)
    assert dues(result) == [NOON]
    assert not result.fires[0].missed
    assert result.fires[0].run_at == NOON


def test_past_the_grace_it_was_missed_and_runs_at_once() -> None:
    now = NOON + 5 * MINUTE + SECOND
    (fire,) = planned(NOON - HOUR, now).fires
    assert (fire.due, fire.run_at, fire.missed) == (NOON, now, True)


def test_a_missed_fire_can_be_skipped() -> None:
    result = planned(NOON - HOUR, NOON + 6 * MINUTE, missed="skip")
    assert result == FirePlan((), (NOON,), False, NOON + HOUR)


def test_a_missed_fire_can_run_later() -> None:
    now = NOON + 6 * MINUTE
    (fire,) = planned(NOON - HOUR, now, missed="delay", delay=90).fires
    assert fire.run_at == now + 90 * SECOND


def test_one_stands_for_all_that_were_missed() -> None:
    result = planned(NOON - 5 * HOUR, NOON + 10 * MINUTE, catch_up="one")
    assert dues(result) == [NOON]
    assert result.skipped == tuple(NOON - n * HOUR for n in (4, 3, 2, 1))
    assert result.next_due == NOON + HOUR


def test_all_that_were_missed_are_made_up_for_up_to_the_cap() -> None:
    result = planned(NOON - 5 * HOUR, NOON + 10 * MINUTE, catch_up="all")
    assert dues(result) == [NOON - n * HOUR for n in (4, 3, 2, 1, 0)]
    assert result.skipped == ()
    result = planned(NOON - 5 * HOUR, NOON + 10 * MINUTE, catch_up="all", at_most=2)
    assert dues(result) == [NOON - HOUR, NOON]
    assert result.skipped == tuple(NOON - n * HOUR for n in (4, 3, 2))


def test_a_backlog_is_spread_and_a_timely_fire_is_not() -> None:
    now = NOON + 2 * MINUTE
    result = planned(NOON - 5 * HOUR, now, catch_up="all", spread=40, missed="delay", delay=10)
    starts = [fire.run_at - now for fire in result.fires if fire.missed]
    assert timedelta(seconds=10) <= starts[0] < timedelta(seconds=20)
    assert [start - starts[0] for start in starts] == [timedelta(seconds=n) for n in (0, 10, 20, 30)]
    assert result.fires[-1].run_at == NOON


def test_missed_fires_of_many_schedules_are_spread_too() -> None:
    now = NOON + 10 * MINUTE
    policy = FirePolicy(spread=1000)
    starts = sorted(
        plan(HOURLY, policy, schedule_id=n, since=NOON - HOUR, now=now).fires[0].run_at - now
        for n in range(1000)
    )
    assert starts[0] >= timedelta(0)
    assert starts[-1] < timedelta(seconds=1000)
    for n in (250, 500, 750):
        assert abs(starts[n] - timedelta(seconds=n)) < timedelta(seconds=60)


def test_a_schedule_does_not_fire_before_it_starts_or_after_it_ends() -> None:
    bounds: Bounds = {"starts_at": NOON - 2 * HOUR, "ends_at": NOON}
    result = planned(NOON - 9 * HOUR, NOON + 9 * HOUR, catch_up="all", **bounds)
    assert dues(result) == [NOON - 2 * HOUR, NOON - HOUR, NOON]
    assert result.next_due is None
    early = planned(NOON - 9 * HOUR, NOON - 8 * HOUR, **bounds)
    assert early == FirePlan((), (), False, NOON - 2 * HOUR)
    late = planned(NOON, NOON + HOUR, **bounds)
    assert late == FirePlan((), (), False, None)
    last = planned(NOON - HOUR, NOON, **bounds)
    assert dues(last) == [NOON]
    assert last.next_due is None


def test_a_schedule_that_fires_once_is_over_then() -> None:
    once = Spec.parse("at 2026-03-04T12:00")
    assert planned(NOON - HOUR, NOON - MINUTE, once).next_due == NOON
    result = planned(NOON - HOUR, NOON, once)
    assert dues(result) == [NOON]
    assert result.next_due is None
    assert planned(NOON, NOON + HOUR, once) == FirePlan((), (), False, None)


def test_jitter_is_the_same_each_time_and_differs_between_schedules_and_fires() -> None:
    def run_at(schedule_id: str, hour: int) -> timedelta:
        due = NOON + hour * HOUR
        policy = FirePolicy(jitter=60)
        (fire,) = plan(HOURLY, policy, schedule_id=schedule_id, since=due - SECOND, now=due).fires
        return fire.run_at - fire.due

    assert run_at("a", 0) == run_at("a", 0)
    spread = {run_at(schedule_id, hour) for schedule_id in "abcdefgh" for hour in range(8)}
    assert len(spread) == 64
    assert all(timedelta() <= jitter < 60 * SECOND for jitter in spread)
    assert min(spread) < 10 * SECOND
    assert max(spread) > 50 * SECOND


def test_jitter_does_not_depend_on_the_zone_in_which_now_is_written() -> None:
    policy = FirePolicy(jitter=60)
    here = plan(HOURLY, policy, schedule_id=1, since=NOON - HOUR, now=NOON)
    there = plan(HOURLY, policy, schedule_id=1, since=(NOON - HOUR).astimezone(), now=NOON.astimezone())
    assert here == there


def test_a_long_outage_of_a_busy_schedule_makes_plans_of_bounded_size() -> None:
    each_second = Spec.parse("* * * * * *")
    now = NOON + timedelta(days=365)
    result = planned(NOON, now, each_second, catch_up="all", at_most=1500, grace=0)
    assert len(result.fires) == MAX_FIRES
    assert len(result.skipped) == MAX_SKIPPED
    assert result.more_skipped
    assert result.fires[0].due == now - 1500 * SECOND
    assert result.next_due == result.fires[-1].due + SECOND
    rest = planned(result.fires[-1].due, now, each_second, catch_up="all", at_most=1500, grace=0)
    assert len(rest.fires) == 501
    assert not rest.fires[-1].missed
    assert rest.skipped == ()
    assert rest.next_due == now + SECOND


def test_more_fires_in_time_than_a_plan_holds_come_with_the_next() -> None:
    each_second = Spec.parse("* * * * * *")
    now = NOON + timedelta(seconds=2500)
    since, seen, rounds = NOON, [], 0
    while True:
        result = planned(since, now, each_second, grace=3600)
        seen += dues(result)
        rounds += 1
        if result.next_due is None or result.next_due > now:
            break
        since = result.fires[-1].due
    assert seen == [NOON + n * SECOND for n in range(1, 2501)]
    assert rounds == 3


policies = st.builds(
    FirePolicy,
    missed=st.sampled_from(["execute", "skip", "delay"]),
    grace=st.sampled_from([0, 30, 300, 7200]),
    catch_up=st.sampled_from(["one", "all"]),
    at_most=st.integers(1, 5),
    spread=st.sampled_from([0, 60]),
    jitter=st.sampled_from([0, 20]),
    starts_at=st.none() | st.just(NOON + 90 * MINUTE),
    ends_at=st.none() | st.just(NOON + 20 * HOUR),
)


@given(
    st.sampled_from(["0 * * * *", "*/7 * * * *", "@every 50m", "at 2026-03-04T15:00", "30 2 * * *"]),
    policies,
    st.lists(st.integers(1, 400), min_size=1, max_size=8),
)
def test_however_often_it_is_looked_at_each_due_instant_is_dealt_with_once(
    text: str, policy: FirePolicy, minutes: list[int]
) -> None:
    spec = Spec.parse(text, "Europe/Berlin")
    since = now = NOON
    handled: list[datetime] = []
    for step in minutes:
        now += step * MINUTE
        result = plan(spec, policy, schedule_id="x", since=since, now=now)
        assert all(fire.run_at >= fire.due for fire in result.fires)
        assert all(fire.missed == (now - fire.due > timedelta(seconds=policy.grace)) for fire in result.fires)
        assert sum(fire.missed for fire in result.fires) <= (
            policy.at_most if policy.catch_up == "all" else 1
        )
        assert policy.missed != "skip" or not any(fire.missed for fire in result.fires)
        handled += sorted([*dues(result), *result.skipped])
        since = now
        begin = max(now, policy.starts_at - timedelta(microseconds=1)) if policy.starts_at else now
        coming = spec.after(begin)
        assert result.next_due == (None if coming and policy.ends_at and coming > policy.ends_at else coming)
    begin = max(NOON, policy.starts_at - timedelta(microseconds=1)) if policy.starts_at else NOON
    end = min(now, policy.ends_at) if policy.ends_at else now
    assert handled == spec.between(begin, end, None)


@pytest.mark.parametrize(
    "wrong",
    [
        {"grace": -1},
        {"delay": -1},
        {"spread": float("inf")},
        {"jitter": float("nan")},
        {"at_most": 0},
        {"starts_at": NOON, "ends_at": NOON - SECOND},
    ],
)
def test_a_policy_that_makes_no_sense_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(DefinitionError):
        replace(FirePolicy(), **wrong)


@pytest.mark.parametrize(("due", "next_due"), [(MAX_FIRES, 0), (MAX_FIRES + 1, 1)])
def test_a_plan_that_is_just_full_goes_on_after_now(due: int, next_due: int) -> None:
    now = NOON + due * MINUTE
    result = planned(NOON, now, Spec.parse("* * * * *"), grace=10**9)
    assert len(result.fires) == MAX_FIRES
    assert result.next_due == (now if next_due else now + MINUTE)


@pytest.mark.parametrize(("due", "more"), [(MAX_SKIPPED, False), (MAX_SKIPPED + 1, True)])
def test_it_says_whether_more_were_skipped_than_it_names(due: int, more: bool) -> None:
    result = planned(
        NOON,
        NOON + due * MINUTE,
        Spec.parse("* * * * *"),
        grace=0,
        missed="skip",
        ends_at=NOON + due * MINUTE,
    )
    assert len(result.skipped) + len(result.fires) in (due, MAX_SKIPPED + 1)
    late = planned(NOON, NOON + (due + 1) * MINUTE - SECOND, Spec.parse("* * * * *"), grace=0, missed="skip")
    assert (len(late.skipped), late.more_skipped) == (MAX_SKIPPED, more)


def test_a_schedule_may_end_when_it_starts() -> None:
    assert FirePolicy(starts_at=NOON, ends_at=NOON).ends_at == NOON


def test_without_a_spread_missed_fires_start_at_once() -> None:
    now = NOON + 3 * HOUR + 10 * MINUTE
    for schedule_id in ("s1", "s2"):
        result = plan(HOURLY, FirePolicy(catch_up="all"), schedule_id=schedule_id, since=NOON, now=now)
        assert {fire.run_at for fire in result.fires} == {now}
