"""The sentence that names what failed first, from stored errors."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.errors import StepFailed
from penstock.run.root_cause import (
    cause_inside,
    cause_of_exception,
    execution_failed,
    failure_sentence,
    headline,
    short_cause,
)

PLAIN = {"type": "ValueError", "message": "not a\n  PDF", "traceback": "..."}


def failed(name: str, error: Any, attempt: int | None = None) -> dict[str, Any]:
    """Return the error of a workflow, or of a fan-out, of which this task or item failed."""
    return {"type": "TaskFailed", "message": "...", "cause": cause_inside(name, error, attempt)}


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (PLAIN, "ValueError: not a PDF"),
        (failed("a", PLAIN), "a: ValueError: not a PDF"),
        (failed("a", PLAIN, 1), "a: ValueError: not a PDF"),
        (failed("a", PLAIN, 3), "a, attempt 3: ValueError: not a PDF"),
        (failed("a", failed("[2]", PLAIN, 2), 1), "a[2], attempt 2: ValueError: not a PDF"),
        (failed("a", failed("[2]", failed("b", PLAIN))), "a[2].b: ValueError: not a PDF"),
        (failed("a", failed("b", failed("c", PLAIN))), "a.b.c: ValueError: not a PDF"),
        (failed("a", {"type": "cancelled", "message": "asked (ada)"}), "a: asked (ada)"),
        (failed("a", None), "a: failed"),
        (failed("", PLAIN), "ValueError: not a PDF"),
        ({"type": "timeout", "message": "no worker started it in time"}, "no worker started it in time"),
        ({"type": "Broken", "message": ""}, "Broken"),
        ("text", "text"),
        (None, None),
    ],
)
def test_sentence_of_an_error(error: Any, sentence: str | None) -> None:
    assert headline(error) == sentence


def test_reason_is_the_sentence_without_an_error() -> None:
    assert headline(None, "asked (ada)") == "asked (ada)"
    assert headline({}, "asked (ada)") == "asked (ada)"


@pytest.mark.parametrize(
    ("status", "error", "reason", "sentence"),
    [
        (
            "cancelled",
            {"type": "ValueError", "message": "mine"},
            "asked by ada",
            "asked by ada (ValueError: mine)",
        ),
        ("cancelled", {"type": "cancelled", "message": "asked by ada"}, "asked by ada", "asked by ada"),
        (
            "cancelled",
            {"type": "cancelled", "message": "asked by ada, and more"},
            "asked by ada",
            "asked by ada, and more",
        ),
        ("cancelled", None, "asked by ada", "asked by ada"),
        ("cancelled", {"type": "ValueError", "message": "mine"}, None, "ValueError: mine"),
        (
            "timeout",
            {"type": "timeout", "message": "it took over 5 s"},
            "timeout: it took over 5 s",
            "it took over 5 s",
        ),
        ("timeout", {"type": "E", "message": "m"}, "its time ran out", "its time ran out (E: m)"),
        ("timeout", {"type": "E", "message": "m" * 250}, "E: " + "m" * 196 + "…", "E: " + "m" * 250),
        ("failed", {"type": "E", "message": "m"}, "of another kind", "E: m"),
    ],
)
def test_sentence_begins_with_the_reason_of_a_requested_end(
    status: str, error: Any, reason: str | None, sentence: str
) -> None:
    assert failure_sentence(status, error, reason) == sentence


def test_long_message_is_shortened_on_one_line() -> None:
    sentence = headline(failed("a", {"type": "E", "message": "word\n" * 1000}))
    assert sentence is not None
    assert len(sentence) < 320
    assert "\n" not in sentence
    assert sentence.endswith("…")


def step(name: str, status: str = "failed", cause: Any = PLAIN) -> StepFailed:
    return StepFailed(name, name=name, status=status, cause=cause_inside(name, cause))


def test_cause_of_a_failed_step_is_that_inside_it() -> None:
    error = step("call", cause=failed("charge", PLAIN, 2))
    assert headline({"type": "StepFailed", "cause": cause_of_exception(error)}) == (
        "call.charge, attempt 2: ValueError: not a PDF"
    )
    assert cause_of_exception(ValueError("own")) is None


def test_cause_of_a_group_is_no_cancelled_step() -> None:
    group = ExceptionGroup("two", [step("a", "cancelled"), ExceptionGroup("inner", [step("b"), step("c")])])
    cause = cause_of_exception(group)
    assert cause is not None
    assert cause["path"] == "b"


def test_exception_of_an_awaiting_caller_has_the_sentence() -> None:
    error = execution_failed("7", "failed", failed("a", PLAIN))
    assert error.message == "execution 7 ended as failed: a: ValueError: not a PDF"
    assert error.status == "failed"
    assert execution_failed("7", "timeout", None).message == "execution 7 ended as timeout"


@pytest.mark.parametrize(
    ("text", "row"),
    [
        ("the bank is down", "the bank is down"),
        ("ValueError: no PDF. Send the file again.", "ValueError: no PDF …"),
        ("pay, attempt 3: HttpStatus: 503. Try `penstock rerun`", "pay, attempt 3: HttpStatus: 503 …"),
        ("it has 'depot.x'. `penstock worker` loads it", "it has 'depot.x' …"),
        ("db.example.org refused, e.g. Port 5432", "db.example.org refused, e.g. Port 5432"),
        ("a version 1.2 of Mr. Smith", "a version 1.2 of Mr. Smith"),
        ("x" * 121, "x" * 119 + "…"),
    ],
)
def test_row_of_a_list_has_the_first_sentence_of_a_cause(text: str, row: str) -> None:
    assert short_cause(text) == row
