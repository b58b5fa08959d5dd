from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import DefinitionError
from penstock.language.policies.policies import Policies, Recovery, RetryPolicy, Timeouts
from penstock.run.outcomes import TaskError


def test_without_a_policy_there_is_no_retry_and_no_special_case() -> None:
    policies = Policies()
    assert policies.retry.max_attempts == 1
    assert policies.timeouts.attempt == 300
    assert (policies.recovery.on_worker_loss, policies.recovery.max_recoveries) == ("rerun", 3)
    assert policies.written() == {}


@pytest.mark.parametrize(
    ("backoff", "expected"),
    [("fixed", [2, 2, 2, 2]), ("linear", [2, 4, 6, 8]), ("exponential", [2, 6, 18, 20])],
)
def test_delays_grow_as_the_backoff_says_up_to_the_cap(backoff: Any, expected: list[float]) -> None:
    policy = RetryPolicy(max_attempts=9, initial_delay=2, max_delay=20, factor=3, backoff=backoff, jitter=0)
    assert [policy.delay_before(attempt, 0.7) for attempt in (2, 3, 4, 5)] == expected


def test_the_first_attempt_waits_for_nothing() -> None:
    assert RetryPolicy(initial_delay=5).delay_before(1, 0.5) == 0


@given(
    attempt=st.integers(2, 100_000),
    random=st.floats(0, 1, exclude_max=True),
    jitter=st.floats(0, 1),
    initial=st.floats(0, 100),
    extra=st.floats(0, 1000),
    factor=st.floats(1, 1000),
    backoff=st.sampled_from(["fixed", "linear", "exponential"]),
)
def test_jitter_stays_inside_the_cap(
    attempt: int, random: float, jitter: float, initial: float, extra: float, factor: float, backoff: Any
) -> None:
    policy = RetryPolicy(
        initial_delay=initial, max_delay=initial + extra, factor=factor, backoff=backoff, jitter=jitter
    )
    assert 0 <= policy.delay_before(attempt, random) <= policy.max_delay
    assert policy.delay_before(attempt, random) <= policy.delay_before(attempt, 0)


def test_jitter_still_spreads_retries_that_have_reached_the_cap() -> None:
    policy = RetryPolicy(max_delay=60, jitter=0.5)
    assert policy.delay_before(50, 0) == 60
    assert policy.delay_before(50, 0.999) == pytest.approx(30, abs=0.1)


class Declined(ConnectionError):
    pass


@pytest.mark.parametrize(
    ("retry_on", "never_on", "allowed"),
    [
        ([], [], True),
        (["Declined"], [], True),
        ([f"{__name__}.Declined"], [], True),
        (["ConnectionError"], [], True),
        (["OSError"], [], True),
        ([OSError], [], True),
        ([Declined], [], True),
        (["TimeoutError"], [], False),
        (["eclined"], [], False),
        (["other.Declined"], [], False),
        ([], ["Declined"], False),
        (["OSError"], [Declined], False),
        (["Declined"], ["ValueError"], True),
    ],
)
def test_errors_are_told_apart_by_name_short_or_dotted_and_by_their_base_classes(
    retry_on: list[Any], never_on: list[Any], allowed: bool
) -> None:
    policy = RetryPolicy(max_attempts=2, retry_on=retry_on, never_on=never_on)
    assert policy.allows(TaskError.of(Declined("no")).kinds) is allowed


def test_the_order_of_error_types_and_how_they_are_given_change_nothing() -> None:
    assert RetryPolicy(retry_on=["ValueError", OSError]) == RetryPolicy(retry_on=[OSError, ValueError])


@pytest.mark.parametrize(
    ("options", "message", "hint"),
    [
        ({"max_atempts": 3}, "max_atempts: unknown option", "max_attempts"),
        ({"max_attempts": 0}, "greater than or equal to 1", None),
        ({"max_attempts": "3"}, "valid integer", None),
        ({"max_attempts": True}, "valid integer", None),
        ({"initial_delay": "soon"}, "initial_delay: is not a duration", "1h30m"),
        ({"initial_delay": "2m", "max_delay": "1m"}, "longer than max_delay", "max_delay"),
        ({"jitter": 1.5}, "jitter", None),
        ({"backoff": "quadratic"}, "'fixed', 'linear' or 'exponential'", None),
        ({"factor": 0.5}, "factor", None),
        ({"factor": float("inf")}, "factor", None),
        ({"retry_on": [3]}, "retry_on: must name types of errors", "httpx.ConnectError"),
        ({"retry_on": ["not a name"]}, "must name types of errors", None),
    ],
)
def test_a_wrong_option_is_named_with_place_and_suggestion(
    options: dict[str, Any], message: str, hint: str | None
) -> None:
    with pytest.raises(DefinitionError, match=r"test_policies.py:\d+: RetryPolicy: ") as raised:
        RetryPolicy(**options)
    assert message in str(raised.value)
    assert hint is None or hint in str(raised.value.hint)


def test_every_wrong_option_is_reported_at_once() -> None:
    with pytest.raises(DefinitionError) as raised:
        Policies(retry={"max_attempts": -1, "factr": 2}, timeouts={"attempt": "x"})
    for place in ("retry.factr", "timeouts.attempt"):
        assert place in str(raised.value)


def test_policies_round_trip_through_their_stored_form() -> None:
    policies = Policies(
        retry=RetryPolicy(max_attempts=5, retry_on=[OSError]),
        timeouts=Timeouts(attempt=None, total=timedelta(hours=1)),
        recovery=Recovery(on_worker_loss="fail"),
    )
    stored = policies.written()
    assert stored == {
        "retry": {"max_attempts": 5, "retry_on": ["OSError"]},
        "timeouts": {"attempt": None, "total": 3600},
        "recovery": {"on_worker_loss": "fail"},
    }
    assert Policies.of({"ref": "shop.charge", "executor": "async", **stored}) == policies


def test_options_do_not_change_once_made() -> None:
    with pytest.raises(Exception, match="frozen"):
        RetryPolicy().max_attempts = 3


@pytest.mark.parametrize("given", ["TimeoutError", ["TimeoutError"], TimeoutError])
def test_one_type_of_errors_need_not_be_a_list(given: object) -> None:
    assert RetryPolicy(retry_on=given).retry_on == ("TimeoutError",)
