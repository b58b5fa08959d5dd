"""Random durable programs against the oracle, the same in each run of the tests; and faults that they have to find."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import pytest

from tests.durable_programs import statements as s
from tests.durable_programs.agreement import (
    Disagreement,
    Plays,
    check,
    check_crashed,
    differences,
    durations,
    heard,
)
from tests.durable_programs.faults import FAULTS, tell_ends_of_children_when_they_are_known
from tests.durable_programs.plain import HEARD_WITHIN_S
from tests.durable_programs.plain_play import play
from tests.durable_programs.programs import check_all_programs
from tests.durable_programs.statements import Program

pytestmark = pytest.mark.filterwarnings("ignore:coroutine .* was never awaited")


@pytest.mark.parametrize("fault", FAULTS, ids=[fault.__name__ for fault in FAULTS])
def test_fault_put_back_is_found(
    fault: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    fault(monkeypatch)
    with pytest.raises(Disagreement):
        check_all_programs()


def test_plain_play_undoes_last_registered_first() -> None:
    program = Program(
        s.Block((s.Branches("gather", (s.Block((s.Sleep(2), s.Undo())), s.Undo())), s.Step(fails=s.ALWAYS)))
    )
    plain = play(program)
    assert plain.outcome == ("failed", "StepFailed", ["0.1"])
    assert [call.place for call in plain.world.undone] == ["0.0|0.1", "0.0|1"]


def test_plain_play_retries_only_failed_steps() -> None:
    program = Program(s.Branches("group", (s.Step(fails=2, tries=2), s.Step("b"))), attempts=2)
    plain = play(program)
    assert plain.outcome == ("completed", ["a<0|0>", "b<0|1>"])
    assert sorted(call.place for call in plain.world.calls) == ["0|0", "0|0", "0|0", "0|1"]


def test_plain_play_begins_no_step_between_two_attempts() -> None:
    """The step is asked for when the function fails, and begins with the next attempt, beside the step that is called again."""
    both = s.Branches("gather", (s.Step("b"), s.Await(0)))
    plain = play(Program(s.Block((s.Start(0, s.Step(fails=1)), s.Sleep(), both)), attempts=2))
    began = {call.place: call.began for call in plain.world.calls}
    assert began["0.0~"] == began["0.2|0"]


def test_plain_play_hears_signal_sent_during_step() -> None:
    program = Program(s.Block((s.Step(hours=30 * 24), s.Signal("go", timeout=0))), sent=(("go", 1),))
    assert play(program).outcome == ("completed", ["a<0.0>", "go0"])


def test_kit_hears_signal_sent_during_step() -> None:
    program = Program(s.Block((s.Step(hours=30 * 24), s.Signal("go", timeout=0))), sent=(("go", 1),))
    assert check(program).outcome == ("completed", ["a<0.0>", "go0"])


def test_signal_is_told_after_a_step_that_ended_before_the_look() -> None:
    """The signal is sent 268 s before the step ends, and is heard with the attempt that begins then."""
    hears = s.Block((s.Step("b", yields=3), s.Signal("stop", timeout=None), s.Undo()))
    both = s.Branches("gather", (s.Block((s.Step(hours=28), s.Undo())), hears))
    sent = (("go", 1), ("go", 1), ("go", 1), ("stop", 1))
    program = Program(s.Block((both, s.Step(fails=s.ALWAYS))), sent=sent)
    played = check(program)
    assert [call.place for call in played.world.undone] == ["0.0|1.2", "0.0|0.1"]
    taken = durations(played.world)
    plays = [play(program, durations=taken, heard=hearing) for hearing in heard(program, played.world)]
    assert [bool(differences(played, plain)) for plain in plays] == [True, False, True]
    late = {value: instant + HEARD_WITHIN_S for value, instant in played.world.heard.items()}
    assert differences(played, play(program, durations=taken, heard=late))


_STEP = s.Step(fails=s.ALWAYS, tries=2, yields=1)
_BRANCH = s.Block((s.Start(0, s.Step("b", fails=1, retryable=False)), s.Step(yields=3), s.Undo(), s.Await(0)))
_PLAIN_PLAYS_DIFFERED = {
    "waits whose events come at the same instant": Program(
        s.First(
            (
                (1, s.Step()),
                (
                    1,
                    s.Block(
                        (
                            s.Branches(
                                "gather",
                                (
                                    s.Block((s.Step(), s.Undo())),
                                    s.Block((s.Wait(comes=0, timeout=1), s.Undo())),
                                    s.Block((s.Wait(comes=0, timeout=1), s.Undo())),
                                ),
                            ),
                            s.Step(fails=s.ALWAYS),
                        )
                    ),
                ),
            )
        )
    ),
    "failure that replays while a step begins again": Program(
        s.Try(
            "again",
            s.Branches("gather", (s.Step(), s.Sleep(), _STEP, _STEP)),
            s.Block((s.Step("b", yields=2),)),
        ),
        attempts=2,
    ),
    "signals that were sent long before they are awaited": Program(
        s.Block(
            (
                s.Sleep(5),
                s.Branches(
                    "gather",
                    (
                        s.Step(fails=s.ALWAYS),
                        s.Block((s.Signal("stop"), s.Undo())),
                        s.Block((s.Signal("go"), s.Undo())),
                    ),
                ),
            )
        ),
        sent=(("go", 1), ("stop", 3)),
    ),
    "signal whose call is cancelled before it is told": Program(
        s.Block(
            (
                s.Start(0, s.Signal(timeout=None)),
                s.Branches("gather", (s.Await(0, cancel=True),)),
                s.Signal(timeout=0),
            )
        ),
        sent=(("go", 0),),
    ),
    "cancelled steps of which one ends the function": Program(
        s.Branches(
            "group",
            (
                s.Branches("gather", (s.Step(yields=5), s.Try("finally", s.Step(hours=55), s.Child()))),
                s.Step(fails=s.ALWAYS, yields=3),
            ),
        )
    ),
    "results that were recorded while an attempt failed": Program(
        s.Branches(
            "gather",
            (s.Branches("gather", (_BRANCH, _BRANCH)), s.Step(fails=s.ALWAYS, yields=2)),
        ),
        attempts=3,
    ),
    "timeout of nothing beside a failure": Program(
        s.Branches(
            "lock",
            (s.Block((s.Step(fails=s.ALWAYS), s.Undo())), s.Block((s.Signal(timeout=0), s.Undo()))),
        )
    ),
    "cancelled step that the next attempt begins anew": Program(
        s.Branches(
            "group",
            (
                s.Workers(
                    2,
                    4,
                    s.Branches(
                        "collect",
                        (
                            s.Step(fails=1, yields=3, retryable=False),
                            s.Step("b", yields=1),
                            s.Child(items=1),
                        ),
                    ),
                ),
                s.Step(fails=1, tries=3, yields=2),
                s.Sleep(2),
                s.Branches(
                    "bare", (s.Step(yields=1), s.Step(fails=s.ALWAYS, yields=3), s.Step("b", yields=1))
                ),
            ),
        ),
        attempts=3,
    ),
    "child that fails between two deadlines": Program(
        s.Branches("gather", (s.Block((s.Signal(timeout=0, listens=2), s.Undo())), s.Child(fails=True)))
    ),
    "state of an attempt that failed": Program(s.Try("wrap", s.Step(fails=1), s.Value("set")), attempts=2),
    "clean-up that an attempt which is over does not make": Program(
        s.Branches(
            "gather",
            (
                s.Try("finally", s.Step(yields=3), s.Step("b", fails=1, retryable=False)),
                s.Step(fails=1, yields=1),
            ),
        ),
        attempts=2,
    ),
    "child that only the first attempt starts": Program(
        s.Branches(
            "group",
            (
                s.Branches("semaphore", (s.Sleep(), s.Child(fails=True), s.Child(fails=True))),
                s.Step(fails=1, tries=2, yields=1),
            ),
        ),
        attempts=2,
    ),
    "step that is asked for when the function fails": Program(
        s.Block(
            (
                s.Start(2, s.Step(fails=s.ALWAYS)),
                s.Signal("stop"),
                s.Branches("gather", (s.Block((s.Await(0), s.Step("b", fails=2))), s.Await(2))),
            )
        ),
        attempts=4,
    ),
    "signal that is known with the next look": Program(
        s.Workers(
            2,
            3,
            s.Block(
                (
                    s.Step(hours=35),
                    s.Signal("go"),
                    s.Branches("gather", (s.Step(yields=1), s.Undo())),
                    s.Step(fails=s.ALWAYS),
                )
            ),
        ),
        sent=(("go", 1), ("go", 0)),
    ),
}
"""Programs whose durable run was right, and whose plain play did not know that run."""


@pytest.mark.parametrize("name", _PLAIN_PLAYS_DIFFERED)
def test_plain_play_knows_run(name: str) -> None:
    for seed in range(5):
        check(_PLAIN_PLAYS_DIFFERED[name], seed=seed)


def test_branch_that_cancels_unbegun_step_goes_on_at_once() -> None:
    cancels = s.Block((s.Await(1, cancel=True), s.Undo()))
    program = Program(
        s.Block((s.Start(0, s.Raise()), s.Start(1, s.Step()), s.Branches("gather", (s.Await(0), cancels))))
    )
    assert [call.place for call in check(program).world.undone] == ["0.2|1.1"]


def test_plain_play_makes_calls_again_that_a_crash_cut_off() -> None:
    """The crash leaves the failure of the first step, which ends the next attempt before it calls the second step again."""
    program = Program(s.Branches("gather", (s.Step(fails=2), s.Step("b", fails=2, yields=1))), attempts=3)
    assert check(program).outcome == ("completed", ["a<0|0>", "b<0|1>"])
    assert check(program, (1,)).outcome == ("failed", "StepFailed", ["0|1"])
    check_crashed(program, range(40))


def test_call_that_a_crash_cut_off_had_begun_in_earlier_attempts() -> None:
    """The failure of the step in the lock cancels the step beside it in each attempt. The other branch calls its own step while
    that one ends. A crash cuts both off in the third attempt."""
    holds = s.Branches("lock", (s.Step(fails=s.ALWAYS), s.Step(fails=2, tries=2, delay=1, yields=2)))
    program = Program(s.Branches("group", (s.Step("b", yields=2), holds)), attempts=3)
    cut = [call for call in check(program, (14,)).world.calls if call.cut]
    assert [(call.place, call.failures) for call in cut] == [("0|0", 2), ("0|1|0", 2)]
    check_crashed(program, range(24))


def test_late_attempt_tells_sleeps_by_instant() -> None:
    program = Program(s.First(((1, s.Sleep(1)), (3, s.Block()))))
    assert check(program).outcome == ("completed", ["arm0", "slept"])
    assert check(program, (), {0: 6}).outcome == ("completed", ["arm1", []])


def test_late_attempt_tells_end_of_child_by_its_instant(monkeypatch: pytest.MonkeyPatch) -> None:
    child, sleep = s.Block((s.Child(days=1), s.Undo())), s.Block((s.Sleep(2), s.Undo()))
    program = Program(s.Block((s.Branches("gather", (child, sleep)), s.Step(fails=s.ALWAYS))))
    assert [call.place for call in check(program, (), {0: 6}).world.undone] == ["0.0|1.1", "0.0|0.1"]
    tell_ends_of_children_when_they_are_known(monkeypatch)
    with pytest.raises(Disagreement):
        check(program, (), {0: 6})


def test_late_attempt_tells_deadline_before_later_signal() -> None:
    program = Program(s.Block((s.Signal(timeout=1), s.Signal(timeout=None))), sent=(("go", 3),))
    assert check(program, (), {0: 6}).outcome == ("completed", ["not told", "go0"])


def test_late_attempt_tells_signal_that_was_sent_before_its_wait() -> None:
    """A run that only waits suspends itself without a look for signals."""
    program = Program(s.Block((s.Step(hours=87), s.Signal("stop"), s.Value("now"))), sent=(("stop", 2),))
    assert check(program, (), {0: 1}).outcome == ("completed", ["a<0.0>", "stop0", "now"])
    handler = s.Wait(ask=True, comes=None)
    asks = s.Workers(2, 3, s.Try("hide", s.Raise(), handler))
    check(Program(s.Block((s.Step(hours=58), s.Signal("stop"), asks)), sent=(("stop", 1),)), (), {0: 1, 1: 5})


def test_step_that_was_recorded_before_the_failure_stays() -> None:
    """The first attempt waits for the end of the step that `first` cancels, and the second one never begins that step."""
    race = s.First(((1, s.Child()), (2, s.Step())))
    program = Program(s.Block((race, s.Step(), race, s.Step("b", fails=2))), attempts=2)
    calls = [call.place for call in check(program, (), {0: 1}).world.calls if call.recorded]
    assert calls == ["0.1", "0.3", "0.3"]


def test_step_that_is_asked_for_in_another_situation_is_called_anew() -> None:
    """The last attempt asks for the steps of the handlers after another failure than the one before it."""
    fails = s.Step(fails=2, yields=3)
    late = s.Try("finally", s.Branches("gather", (s.Block((fails,)),)), s.Step(fails=2))
    soon = s.Try("finally", s.Branches("gather", (fails, s.Block((fails,)))), s.Block((s.Step(yields=3),)))
    for seed in range(5):
        check(Program(s.First(((3, late), (1, soon))), attempts=5), (), {0: 4}, seed=seed)


@pytest.mark.parametrize(
    "clean_up", [s.Signal(timeout=None), s.Sleep(), s.Block((s.Undo(), s.Signal(timeout=1), s.Step()))]
)
def test_clean_up_of_cancelled_program_ends_with_its_grace(clean_up: s.Statement) -> None:
    program = Program(s.Try("finally", s.Sleep(3), clean_up), cancelled=1)
    assert check(program).outcome == ("cancelled",)
    played = check(program, (), {0: 6})
    assert (played.outcome, played.world.calls, played.world.undone) == (("cancelled",), [], [])
    left = Program(s.Branches("gather", (s.Raise(), s.Try("finally", s.Sleep(3), clean_up))), cancelled=1)
    check_crashed(left, range(8), {0: 6})


def test_clean_up_of_cancelled_program_that_is_quick_ends() -> None:
    program = Program(s.Try("finally", s.Sleep(3), s.Block((s.Undo(), s.Step()))), cancelled=1)
    played = check(program)
    assert [call.place for call in (*played.world.calls, *played.world.undone)] == ["0!.1", "0!.0"]


def test_child_that_a_failure_cancelled_starts_again_after_a_sleep() -> None:
    """The child's branch cleans up with a sleep before the attempt fails. With that call the child is cancelled."""
    fails = s.Block((s.Sleep(1), s.Step(fails=1)))
    child = s.Try("stay", s.Child(days=2), s.Sleep(1))
    program = Program(s.Block((s.Branches("group", (fails, child)), s.Step("b"))), attempts=2)
    played = check(program)
    [(_, begins)] = played.run.pauses
    assert played.world.calls[-1].began - begins > 2 * s.DAY


@pytest.mark.parametrize(
    "waits", [s.Child(days=2), s.Wait(ask=True, comes=2, timeout=3)], ids=["child", "question"]
)
def test_wait_that_a_failure_cancelled_begins_again_after_a_suspension(waits: s.Statement) -> None:
    """The function suspends itself between the failure of its branch and its own, which cancels what the other branch awaits."""
    fails = s.Block((s.Sleep(1), s.Step(fails=1)))
    branch = s.Start(0, s.Branches("group", (fails, waits)))
    program = Program(s.Block((branch, s.Sleep(3), s.Await(0), s.Step("b"))), attempts=2)
    played = check(program)
    [(_, begins)] = played.run.pauses
    assert played.world.calls[-1].began - begins > 2 * s.DAY


_WAITS = {
    "sleep": s.Sleep(4),
    "deadline": s.Signal(timeout=4),
    "child": s.Child(days=4),
    "question": s.Wait(ask=True, comes=4, timeout=8),
    "limit": s.Timeout(4, s.Signal(timeout=None)),
    "time": s.Value("now"),
}


@pytest.mark.parametrize("name", _WAITS)
def test_wait_that_is_set_aside_begins_with_the_next_attempt(name: str) -> None:
    """The failure of a step lets a branch go on, which waits for days. The function fails later. In the replay of the next
    attempt a child lets this branch go on, so its wait is set aside. It begins again when that attempt has begun."""
    waits = s.Block((_WAITS[name], s.Step("b")))
    branches = s.Branches("semaphore", (s.Step(fails=1), s.Child(days=2), waits))
    program = Program(s.Block((s.Start(0, branches), s.Sleep(3), s.Await(0))), attempts=2)
    played = check(program)
    [(_, begins)] = played.run.pauses
    assert played.world.calls[-1].place == "0.0~|2.1"
    assert played.world.calls[-1].began - begins >= (0 if name == "time" else 4 * s.DAY)


def test_clean_up_that_is_set_aside_sleeps_again_in_each_attempt() -> None:
    """Three steps fail, and each attempt ends with the failure of another one. The race then cancels the wait for a signal, whose
    branch cleans up with a sleep of a day. Each attempt sleeps this day, so the wait never reaches its deadline."""
    hears = s.Try("stay", s.Signal("go"), s.Sleep(1))
    race = s.First(((1, hears), (1, s.Workers(3, 3, s.Step(fails=s.ALWAYS)))))
    played = check(Program(s.Block((s.Undo(), race)), attempts=4))
    assert played.outcome[0] == "failed"
    failed = [instant for instant, _ in played.run.pauses]
    assert [after - before > s.DAY for before, after in pairwise(failed)] == [True, True]


def test_time_limit_of_a_block_that_has_caught_the_failure_of_a_group() -> None:
    """Before Python 3.13 the task still counts the cancellation that its group has made, and CancelledError ends the function."""
    fails = s.Try("except", s.Branches("group", (s.Step(fails=s.ALWAYS),)), s.Sleep(3))
    outcome = check(Program(s.Timeout(1, fails))).outcome
    assert outcome in (("failed", "CancelledError", []), ("completed", "timed out"))


def test_run_that_waits_for_ever_is_stuck_in_both_plays() -> None:
    program = Program(s.Block((s.Undo(), s.Signal(timeout=None))))
    assert check(program).outcome == ("stuck",)


def test_cancelled_step_that_is_called_again_after_a_later_failure_ends_at_once() -> None:
    """A crash comes right after a step of a group has failed. Its replay cancels the second try of another step, and the attempt
    after the failure takes that back. Between the two a branch of the group waits for a sleep."""
    again = s.Step("b", fails=1, tries=2, yields=2)
    sleeps = s.Try("again", s.Block((s.Sleep(1), s.Step("d", fails=s.ALWAYS))), s.Step("e"))
    group = s.Branches("group", (again, s.Step(fails=s.ALWAYS, yields=3), sleeps))
    plays = Plays(Program(s.Block((s.Start(0, group), s.Sleep(2), s.Await(0))), attempts=2))
    for point in range(2 * plays.check().run.commits):
        plays.check((point,))
