from __future__ import annotations

from datetime import UTC, datetime

import pytest

from penstock.bounds import MESSAGE_CAP, TRACEBACK_CAP
from penstock.errors import Conflict
from penstock.run.outcomes import Outcome, TaskError
from penstock.run.steering import AskInquiry, Defer, NonRetryable, Retry


class Unprintable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


def test_an_error_names_its_class_and_all_its_bases() -> None:
    error = TaskError.of(ConnectionRefusedError("nobody there"))
    assert error.type == "ConnectionRefusedError"
    assert error.kinds == (
        "ConnectionRefusedError",
        "ConnectionError",
        "OSError",
        "Exception",
        "BaseException",
    )
    assert TaskError.of(Conflict("gone")).type == "Conflict"
    assert TaskError.of(Unprintable()).type.endswith("test_outcomes.Unprintable")


def test_the_hint_of_an_error_is_kept_with_it() -> None:
    assert TaskError.of(Conflict("it is gone", hint="Look again.")).message == "it is gone. Look again."


def test_an_error_that_cannot_be_printed_does_no_harm() -> None:
    assert "RuntimeError" in TaskError.of(Unprintable()).message


def test_a_text_that_is_too_long_is_cut_in_the_middle() -> None:
    error = TaskError("X", "a" * 50_000 + "z", "a" * 50_000 + "z")
    assert len(error.message) < MESSAGE_CAP + 100
    assert len(error.traceback) < TRACEBACK_CAP + 100
    assert error.message.startswith("aaa")
    assert error.message.endswith("z")
    assert "left out" in error.message


def test_characters_that_postgresql_refuses_are_replaced() -> None:
    assert TaskError("X", "a\0b\ud800").message == "a�b?"


def test_the_cause_is_in_the_traceback() -> None:
    try:
        try:
            raise KeyError("inner")
        except KeyError as inner:
            raise Retry(message="outer") from inner
    except Retry as error:
        trace = TaskError.of(error).traceback
    assert "KeyError: 'inner'" in trace
    assert "outer" in trace


def test_a_steering_value_becomes_its_outcome() -> None:
    retried, refused = Outcome.returned(Retry(after=5)).error, Outcome.returned(NonRetryable("no")).error
    assert retried is not None
    assert refused is not None
    assert (retried.retryable, retried.retry_after) == (True, 5.0)
    assert (refused.retryable, refused.message) == (False, "no")
    at = datetime(2030, 1, 1, tzinfo=UTC)
    deferred = Outcome.raised(Defer(until=at, state=[1]))
    assert (deferred.kind, deferred.until, deferred.carry) == ("deferred", at, {"state": [1]})
    asked = Outcome.raised(AskInquiry("Go on?", timeout=5, default=False))
    assert (asked.kind, asked.inquiry) == (
        "inquiry",
        {"prompt": "Go on?", "schema": None, "assignee": None, "timeout": 5.0, "default": False},
    )


@pytest.mark.parametrize("steering", [Defer(delay=1, state=object()), AskInquiry("?", default=float("nan"))])
def test_a_steering_value_must_be_storable_too(steering: Exception) -> None:
    outcome = Outcome.raised(steering)
    assert outcome.error is not None
    assert outcome.error.type == "ResultNotStorable"


def test_a_result_that_cannot_be_kept_is_not_tried_again() -> None:
    error = Outcome.returned(object()).error
    assert error is not None
    assert error.retryable is False
