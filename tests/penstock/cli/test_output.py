"""The texts that people read."""

from __future__ import annotations

import io
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest
from rich.console import Console

from penstock.cli import output
from penstock.cli.output import age, span, text


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (-1, "0 ms"),
        (0, "0 ms"),
        (0.0354, "35 ms"),
        (0.9999, "1.0 s"),
        (9.94, "9.9 s"),
        (9.96, "10 s"),
        (99.9, "100 s"),
        (100, "2 min"),
        (5999, "100 min"),
        (7200, "2 h"),
        (172_800, "2 d"),
    ],
)
def test_a_length_of_time_has_two_or_three_digits(seconds: float, said: str) -> None:
    assert span(timedelta(seconds=seconds)) == said


def test_an_absent_or_future_instant_has_no_age() -> None:
    assert age(None) == ""
    assert age(datetime.now(UTC) + timedelta(hours=1)) == "0 ms ago"


def test_values_are_shown_as_they_are() -> None:
    assert text("[red]not markup[/red]") == r"\[red]not markup\[/red]"
    assert text([True, None, {"a": 1}]) == 'yes, , {"a":1}'
    assert text(datetime(2026, 1, 2, 3, 4, 5, 678_900, UTC)) == "2026-01-02 03:04:05.678 UTC"
    assert text("failed") == "[red]failed[/red]"


def test_no_name_is_broken_where_the_terminal_is_narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    file = io.StringIO()
    narrow = Console(file=file, width=80, soft_wrap=True)
    monkeypatch.setattr(output, "out", narrow)
    id, task = uuid4(), "├─ approved_by_somebody"
    ref = "shop.refund_what_was_paid_too_much_for_all_orders_of_a_customer_of_last_year"
    output.table(
        ["id", "task", "action", "error"],
        [(id, task, ref, "one word after the other " * 9), (id, "", ref, None)],
    )
    said = file.getvalue()
    for name in (str(id), task, ref):
        assert name in said, said
    assert len(said.splitlines()) > 3, "a sentence is folded"
    assert narrow.width == 80


@pytest.mark.parametrize("width", [80, 100, 200])
def test_no_word_of_a_note_is_broken_in_a_narrow_terminal(
    monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    file = io.StringIO()
    monkeypatch.setattr(output, "out", output.VisibleConsole(file=file, width=width, soft_wrap=True))
    failure = "HttpStatus: the server answered with the status 503 and the text: come back tomorrow"
    rows = [(uuid4(), "failed", "shop.charge", "order [7]"), (uuid4(), "completed", "shop.charge", "order 8")]
    output.table_with_notes("failure", ["id", "status", "action", "title"], rows, [failure, None])
    lines = file.getvalue().splitlines()
    assert [id for line in lines for id, *_ in rows if str(id) in line] == [id for id, *_ in rows]
    assert " ".join(" ".join(lines).split()).count(failure) == 1
    assert "order [7]" in file.getvalue()
    assert all(len(line) <= max(width, 80) for line in lines)


def test_long_failure_pads_no_other_row_of_a_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    file = io.StringIO()
    monkeypatch.setattr(output, "out", output.VisibleConsole(file=file, width=output.ENDLESS, soft_wrap=True))
    failure = "the server answered " + "at length " * 30
    rows = [(uuid4(), "failed"), (uuid4(), "completed")]
    output.table_with_notes("failure", ["id", "status"], rows, [failure, None])
    head, failed, completed = file.getvalue().splitlines()
    assert failure.strip() in failed
    assert completed == f"{rows[1][0]}  completed"
    assert head.endswith("failure")
