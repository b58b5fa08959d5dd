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
    MAP,
    RUN,
    STARTED,
    STEP,
    SUPERSEDED,
    WAIT_FOR,
    Child,
    Failure,
    History,
    Key,
    Record,
)
from penstock.errors import ReplayMismatch
from penstock.language.terms.ids import new_id
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


def _awaited(kind: str, target: str | None, *, failed: bool = False) -> Journal:
    """Return the journal of a run whose first call has a child of this target. `failed`: the call was made after the failure of
    another branch, which the attempt has ended with."""
    record = Record(Key("child", 1), 1, kind, STARTED, asked_after=2, attempt=1)
    flaky = Record(Key("1/flaky", 1), 1, STEP, FAILED, told=1, attempt=1)
    records = [record, flaky] if failed else [record]
    failure = Failure((flaky.key,), told=2, attempt=1) if failed else None
    history = History(BEGIN, {record.key: record for record in records}, failure=failure)
    history.children[record.key] = Child(new_id(), COMPLETED, True, '"x"', target=target)
    return Journal(history)


@pytest.mark.parametrize("kind", [RUN, MAP, WAIT_FOR])
def test_child_of_the_same_target_is_kept(kind: str) -> None:
    assert _awaited(kind, "shop.paid").ask(kind, "child", "shop.paid").key == Key("child", 1)


@pytest.mark.parametrize("kind", [RUN, MAP, WAIT_FOR])
def test_child_of_another_target_is_refused(kind: str) -> None:
    with pytest.raises(ReplayMismatch) as refused:
        _awaited(kind, "shop.paid").ask(kind, "child", "shop.refunded")
    assert f"at position 1 the function requests {kind} child (shop.refunded)" in refused.value.message
    assert f"recorded {kind} child (shop.paid) at position 1" in refused.value.message


def test_child_of_an_unknown_target_is_kept() -> None:
    assert _awaited(WAIT_FOR, None).ask(WAIT_FOR, "child", "shop.refunded").key == Key("child", 1)


def test_child_of_another_target_after_a_failure_is_set_aside() -> None:
    """The branch went on after the failure, which the next attempt does not have."""
    changed = _awaited(WAIT_FOR, "shop.paid", failed=True)
    changed.told = 2
    assert changed.ask(WAIT_FOR, "child", "shop.refunded").key == Key("child", 2)
    assert [record.status for record in changed.changed] == [STARTED, SUPERSEDED]


def test_child_of_the_same_target_after_a_failure_is_kept() -> None:
    kept = _awaited(WAIT_FOR, "shop.paid", failed=True)
    kept.told = 2
    assert kept.ask(WAIT_FOR, "child", "shop.paid").key == Key("child", 1)
    assert [record.status for record in kept.changed] == [STARTED]
