"""The journal: which records later calls get, and which are set aside after a failure."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from penstock.engine.durable import journal
from penstock.engine.durable.branches import Branch
from penstock.engine.durable.journal import Journal
from penstock.engine.durable.records import (
    COMPLETED,
    FAILED,
    STARTED,
    STEP,
    SUPERSEDED,
    Failure,
    History,
    Key,
    Record,
)
from penstock.errors import ReplayMismatch
from penstock.testing.durable_run import BEGIN


@pytest.fixture(autouse=True)
def _in_the_function(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every call is made by one branch."""
    branch = Branch("")
    monkeypatch.setattr(journal, "branch_here", lambda: branch)


def _failed_after(*names: str, hole: Sequence[int] = ()) -> Journal:
    """Return the journal after a failure of step `flaky`, which was told as number 1, and calls that were made after it."""
    records = [Record(Key("flaky", 1), 1, STEP, FAILED, told=1, attempt=1)]
    positions = [position for position in range(2, 2 + len(names) + len(hole)) if position not in hole]
    for position, name in zip(positions, names, strict=True):
        records.append(
            Record(Key(name, 1), position, STEP, COMPLETED, '"x"', asked_after=1, told=position, attempt=1)
        )
    failure = Failure((Key("flaky", 1),), told=len(records), attempt=1)
    replayed = Journal(History(BEGIN, {record.key: record for record in records}, failure=failure))
    assert replayed.ask(STEP, "flaky").status == STARTED
    replayed.told = 1
    return replayed


def test_calls_made_again_after_failure_are_kept() -> None:
    replayed = _failed_after("a", "b")
    assert replayed.ask(STEP, "a").result == '"x"'
    assert replayed.ask(STEP, "b").result == '"x"'
    assert [record.key.name for record in replayed.changed] == ["flaky"]
    assert not replayed.replaying


def test_another_call_sets_aside_all_later_ones() -> None:
    replayed = _failed_after("a", "b")
    assert replayed.ask(STEP, "other").result is None
    assert [record.key.name for record in replayed.changed] == ["flaky", "a", "b"]
    assert {record.status for record in replayed.changed[1:]} == {SUPERSEDED}
    again = replayed.ask(STEP, "b")
    assert (again.key, again.result, again.position) == (Key("b", 2), None, 3)


def test_call_without_a_record_hides_no_later_one() -> None:
    """A step that was cancelled before it began leaves no record at its place."""
    replayed = _failed_after("a", "b", hole=[3])
    assert replayed.ask(STEP, "other").result is None
    assert replayed.ask(STEP, "unbegun").result is None
    assert replayed.ask(STEP, "b").key == Key("b", 2)


def test_call_at_an_earlier_place_is_refused() -> None:
    """A step that was cancelled before it began left no record at place 2."""
    places = {"a": 1, "b": 3}
    records = [Record(Key(name, 1), place, STEP, COMPLETED, '"x"') for name, place in places.items()]
    replayed = Journal(History(BEGIN, {record.key: record for record in records}))
    replayed.ask(STEP, "a")
    with pytest.raises(ReplayMismatch, match=r"at position 2 .* step b, .* recorded step b at position 3"):
        replayed.ask(STEP, "b")


def test_calls_that_are_not_made_again_are_set_aside() -> None:
    replayed = _failed_after("a", "b", "c", hole=[3])
    assert replayed.ask(STEP, "a").result == '"x"'
    replayed.forget_unasked()
    assert [record.key.name for record in replayed.changed] == ["flaky", "b", "c"]
    assert not replayed.replaying
    replayed.check_end()
