"""The path of a call: the clock, the instants of sleeps, and the errors that a recorded failure becomes."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import orjson
import pytest

from penstock.engine.durable import core
from penstock.engine.durable.core import failure, refusal, value_of
from penstock.engine.durable.records import (
    ASK,
    COMPLETED,
    FAILED,
    MAP,
    RUN,
    SLEEP,
    STARTED,
    STEP,
    WAIT_FOR,
    Key,
    Record,
    instant_of,
    until_json,
)
from penstock.errors import (
    DefinitionError,
    InvalidInput,
    NotFound,
    ResultNotStorable,
    StepFailed,
    StepTimedOut,
)
from penstock.testing.durable_run import BEGIN


def _record(kind: str, status: str, result: Any = None, error: Any = None) -> Record:
    result, error = (None if value is None else orjson.dumps(value).decode() for value in (result, error))
    return Record(Key("2/charge", 3), 1, kind, status, result, error)


def test_instant_of_sleep_survives_its_record() -> None:
    instant = BEGIN + timedelta(days=3, microseconds=5)
    assert instant_of(Record(Key("sleep", 1), 1, SLEEP, STARTED, until_json(instant))) == instant


def test_clock_goes_on_from_the_database(monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = iter([50.0, 50.0, 57.5])
    monkeypatch.setattr("time.monotonic", lambda: next(seconds))
    clock = core._clock(BEGIN)
    assert [clock(), clock()] == [BEGIN, BEGIN + timedelta(seconds=7.5)]


@pytest.mark.parametrize("kind", [STEP, RUN, MAP, ASK, WAIT_FOR])
@pytest.mark.parametrize("value", [None, 0, "", {"n": [1]}])
def test_value_of_completed_record_is_its_result(kind: str, value: Any) -> None:
    assert value_of(_record(kind, COMPLETED, value)) == value


FAILURES: dict[str, tuple[str, Any, str, str, bool]] = {
    "error with a type": (
        "failed", {"type": "OSError", "message": "away"}, "step 2/charge (3) failed: OSError: away", "OSError", False,
    ),
    "error without a type": ("failed", {"message": "away"}, "step 2/charge (3) failed: away", "", False),
    "final error": (
        "failed", {"type": "NonRetryable", "message": "no", "final": True}, "step 2/charge (3) failed: NonRetryable: no",
        "NonRetryable", True,
    ),
    "cancelled": ("cancelled", None, "step 2/charge (3) cancelled", "", False),
    "other end": ("timeout", {"message": "late"}, "step 2/charge (3) ended as timeout: late", "", False),
}  # fmt: skip


@pytest.mark.parametrize("name", FAILURES)
@pytest.mark.parametrize("late", [True, False])
def test_failure_names_step_and_cause(name: str, late: bool) -> None:
    status, stored, message, kind, final = FAILURES[name]
    error = failure(
        _record(STEP, FAILED), status, None if stored is None else orjson.dumps(stored).decode(), late=late
    )
    assert type(error) is (StepTimedOut if late else StepFailed)
    assert (error.message, error.name, error.ordinal) == (message, "2/charge", 3)
    assert (error.status, error.type, error.final) == (status, kind, final)
    cause_text = "no result came in time" if late else (stored or {"message": status})["message"]
    assert error.cause is not None
    assert error.cause["path"] == "2/charge (3)"
    assert cause_text in error.cause["message"]
    assert (error.cause["type"] == "StepTimedOut") == late


def test_value_of_failed_step_is_its_failure() -> None:
    with pytest.raises(StepFailed, match=r"step 2/charge \(3\) failed: NotFound: gone") as failed:
        value_of(_record(STEP, FAILED, None, {"type": "NotFound", "message": "gone"}))
    assert failed.value.status == "failed"


@pytest.mark.parametrize("kind", [RUN, MAP, ASK, WAIT_FOR])
@pytest.mark.parametrize("error", [NotFound, InvalidInput, DefinitionError, ResultNotStorable])
def test_refusal_of_child_is_raised_again(kind: str, error: type[Exception]) -> None:
    stored = {"type": error.__name__, "message": "there is no t.child", "hint": "Apply it."}
    with pytest.raises(error) as refused:
        value_of(_record(kind, FAILED, None, stored))
    assert type(refused.value) is error
    assert (refused.value.message, refused.value.hint) == ("there is no t.child", "Apply it.")  # type: ignore[attr-defined]
    assert refused.value.step == Key("2/charge", 3)  # type: ignore[attr-defined]


def test_other_failure_of_child_is_no_refusal() -> None:
    for stored in ({"type": "OSError", "message": "away"}, None, {}):
        assert type(refusal(_record(RUN, FAILED, None, stored))) is StepFailed
    with pytest.raises(StepFailed, match=r"run 2/charge \(3\) failed$"):
        value_of(_record(RUN, FAILED))
    assert refusal(_record(RUN, FAILED, None, {"type": "NotFound"})).message == ""
