"""Random programs that are asked to end at any point agree with their plain play; and faults that they have to find."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest

from tests.durable_programs import statements as s
from tests.durable_programs.agreement import Disagreement, Plays, check, differences
from tests.durable_programs.end_requests import EndRequest
from tests.durable_programs.faults import FAULTS_OF_ENDS
from tests.durable_programs.kit_run import SETTLED, play_in_kit
from tests.durable_programs.plain_play import play
from tests.durable_programs.programs import PARTS_OF_ENDS, check_all_requested_ends, check_requested_ends
from tests.durable_programs.statements import Program
from tests.durable_programs.strategies import Kind

pytestmark = pytest.mark.filterwarnings("ignore:coroutine .* was never awaited")
PARTS = [(kind, part) for kind, parts in PARTS_OF_ENDS.items() for part in parts]


@pytest.mark.parametrize(("kind", "part"), PARTS)
def test_requested_end_undoes_programs(kind: Kind, part: int) -> None:
    check_requested_ends(kind, part)


@pytest.mark.parametrize("fault", FAULTS_OF_ENDS, ids=[fault.__name__ for fault in FAULTS_OF_ENDS])
def test_fault_of_requested_ends_is_found(
    fault: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    fault(monkeypatch)
    with pytest.raises(Disagreement):
        check_all_requested_ends()


def test_step_that_is_cancelled_before_it_goes_on_ends() -> None:
    """The request comes right after the result of a step is recorded that ran while its attempt failed."""
    fails = s.Block((s.Undo(), s.Step(fails=s.ALWAYS, yields=1)))
    waits = s.Branches("gather", (s.Signal("stop"), s.Step("b", yields=3)))
    program = Program(s.Branches("gather", (fails, waits)), attempts=2)
    for commit in range(1, 4):
        for turns in range(4):
            played = check(program, request=EndRequest(commit=commit, turns=turns))
            assert [call.place for call in played.world.undone] == ["0|0.0"]


def test_failed_try_is_not_followed_by_another_after_the_request() -> None:
    """The request comes after the function has failed, while a step still runs whose first try has failed meanwhile."""
    fails = s.Block((s.Undo(), s.Step(fails=s.ALWAYS)))
    program = Program(
        s.Branches("gather", (fails, s.Step("b", fails=1, tries=2, yields=2), s.Step("c", yields=4))),
        attempts=2,
    )
    for instant in (0.25, 0.3, 0.39):
        played = check(program, request=EndRequest(instant))
        assert [call.place for call in played.world.calls].count("0|1") == 1
        [record] = [record for key, record in played.run.memory.records.items() if str(key).endswith("/b")]
        assert (record.status, record.tries) == ("cancelled", 1)


def test_child_fails_after_the_try_of_a_step_beside_it() -> None:
    """The request comes right after the record of that try: the next try has begun, and is deaf until the grace is over."""
    step = s.Step(fails=1, tries=2, deaf=15.0)
    program = Program(s.Block((s.Undo(), s.Branches("gather", (step, s.Child(fails=True))))), attempts=2)
    for turns in range(4):
        check(program, request=EndRequest(commit=2, turns=turns))


def test_signal_that_no_look_reads_before_the_end_is_not_heard() -> None:
    """The signal is sent some minutes before the end is requested, and the run looks for signals every five minutes."""
    hears = s.Block((s.Signal("stop", timeout=None), s.Step("b"), s.Undo()))
    program = Program(s.Branches("gather", (s.Step(hours=81), hears)), sent=(("stop", 1),))
    [(sent, _, value)] = program.signals()
    undone: Counter[int] = Counter()
    for seconds in range(30, 600, 30):
        played = check(program, request=EndRequest(sent + seconds))
        assert len(played.world.undone) == (value in played.world.heard)
        undone[len(played.world.undone)] += 1
    assert undone.keys() == {0, 1}, "ends before and after the look that reads the signal"


def test_signal_that_is_waited_for_right_before_the_end_is_not_heard() -> None:
    """The second signal is sent long before the branch waits for it. The run has read only the first one."""
    hears = s.Block((s.Signal("stop", timeout=None), s.Undo()))
    both = s.Branches("gather", (s.Step(yields=3), hears))
    steps = (s.Signal("stop", timeout=0), s.Step(hours=81), both)
    program = Program(s.Block(steps), sent=(("stop", 0), ("stop", 1)))
    began = play_in_kit(program).world.calls[-1].began
    assert check(program, request=EndRequest(round(began + 0.1, 6))).world.undone == []


def test_call_that_an_attempt_makes_anew_is_deaf_for_its_whole_grace() -> None:
    """The step has run in the attempt before, so it is its second call that goes on and leaves no time to undo."""
    fails = s.Block((s.Sleep(1), s.Step(fails=2)))
    both = s.Branches("group", (fails, s.Child(fails=True, days=3)))
    again = s.Try("again", both, s.Block((s.Step("b", deaf=15.0),)))
    program = Program(s.Block((s.Undo(), again)), attempts=3)
    _, second, *_ = [call for call in check(program).world.calls if call.place == "0.1!.0"]
    played = check(program, request=EndRequest(round(second.began + second.duration / 2, 6)))
    assert played.is_cut
    assert not played.world.undone


_RAISES = s.Block((s.Sleep(2), s.Undo(), s.Raise()))
_HEARS = s.Block((s.Signal("stop"), s.Undo(), s.Raise()))


@pytest.mark.parametrize("at_last", [_RAISES, _HEARS], ids=["sleep", "signal"])
@pytest.mark.parametrize("fails", [1, 2])
def test_end_is_told_between_results_of_a_late_attempt(at_last: s.Statement, fails: int) -> None:
    """The attempt begins five days late. Its first turns tell all that was over, and the end is requested between them."""
    first = s.Block((s.Sleep(1), s.Undo(), s.Step(fails=fails)))
    program = Program(
        s.Block((s.Undo(), s.Branches("gather", (first, at_last)))), attempts=2, sent=(("stop", 1),)
    )
    for commit in range(2, 6):
        for turns in range(3):
            request = EndRequest(commit=commit, turns=turns, ends_as="timeout")
            played = check(program, late={0: 5}, request=request)
            assert played.world.undone[-1].place == "0.0"
            assert played.world.undone[-1].recorded


def test_run_asks_again_after_a_failure_that_cancelled_its_question() -> None:
    """The end is requested while the step runs that follows the answer to the second question."""
    asks = s.Block((s.Wait(ask=True, comes=2, timeout=3), s.Step(yields=3)))
    fails = s.Block((s.Sleep(1), s.Step(fails=1)))
    tried = s.Try("again", s.Branches("group", (fails, asks)), s.Step("b"))
    program = Program(s.Block((s.Undo(), tried)), attempts=2)
    after = check(program).world.calls[-1]
    assert after.place == "0.1?|1.1"
    for instant in (after.began - 100, after.began + 0.05):
        played = check(program, request=EndRequest(round(instant, 6)))
        assert [call.place for call in played.world.undone] == ["0.0"]


def test_first_branch_that_a_request_ends_decides() -> None:
    """Both branches end in the turn in which they are cancelled. The error of the first one is that of the function."""
    refuses = s.Try("refuse", s.Signal("stop", timeout=3), s.Block())
    both = s.Branches("gather", (refuses, s.Sleep(2)))
    program = Program(s.Block((s.Undo(), s.Try("stay", both, s.Step()))))
    played = check(program, request=EndRequest(1000.0))
    assert played.outcome == ("cancelled",)
    assert [call.place for call in played.world.undone] == ["0.0"]


_FAILS = (s.Start(0, s.Step(fails=s.ALWAYS)), s.Sleep(1))
_ENDS_WITH_A_BRANCH_THAT_FAILS = (
    s.Start(0, s.Step(yields=3)),
    s.Start(
        1,
        s.Try(
            "wrap",
            s.Branches("group", (s.Step("b", fails=s.ALWAYS), s.Await(0))),
            s.Block((s.Step(yields=3), s.Step(yields=3))),
        ),
    ),
    s.Step("b", yields=3),
)


@pytest.mark.parametrize("before", [_FAILS, _ENDS_WITH_A_BRANCH_THAT_FAILS], ids=["failed", "cancelled"])
def test_request_is_told_before_the_end_of_a_step_that_only_the_next_attempt_cancels(
    before: tuple[s.Statement, ...],
) -> None:
    """The step has ended in the attempt that fails, and the next attempt is to call it again. Before that, its replay cancels
    the step's task. The end is requested between the two attempts."""
    cancels = s.Try("refuse", s.Await(0, cancel=True), s.Step("b"))
    program = Program(s.Block((s.Undo(), *before, cancels, s.Await(1))), attempts=2)
    [(failed, begins)] = check(program).run.pauses
    for share in (0.1, 0.5, 0.9):
        played = check(program, request=EndRequest(round(failed + share * (begins - failed), 6)))
        assert played.outcome == ("cancelled",)
        assert f"0.{1 + len(before)}!" in [call.place for call in played.world.calls if call.recorded]
        assert [call.place for call in played.world.undone] == ["0.0"]


def test_ends_of_steps_that_a_replay_cancels_are_told_one_at_a_time() -> None:
    """Two steps are to be tried again: one with its delay, the other with the next attempt. The end is requested between the two
    attempts. The former step ends first, which ends the function. The other branch cleans up after that."""
    fails = s.Try("obey", s.Branches("group", (s.Step(fails=s.ALWAYS, yields=1),)), s.Step("b"))
    both = s.Branches("gather", (fails, s.Step(fails=1, tries=2, delay=1)))
    program = Program(s.Block((s.Undo(), both)), attempts=2)
    plays = Plays(program)
    [(failed, begins)] = plays.in_kit().run.pauses
    for share in (0.1, 0.5, 0.9):
        played = plays.in_kit(request=EndRequest(round(failed + share * (begins - failed), 6)))
        assert "0.1|0!" in [call.place for call in played.world.calls if call.recorded]
        assert differences(played, plays.plain(played)) == []  # in the order in which the run was played


def test_call_that_a_failure_cancelled_before_the_request_does_not_go_on() -> None:
    """A failure cancels the same call in two attempts. In the second one the end is requested before, and again before the call
    has ended."""
    goes_on = s.Branches("gather", (s.Step("b", yields=1, deaf=15.0), s.Undo()))
    program = Program(s.Branches("group", (s.Step(fails=s.ALWAYS), goes_on)), attempts=3)
    played = check(program, request=EndRequest(commit=2, again=4.0))
    lingered = [call.lingered for call in played.world.calls if call.place == "0|1|0"]
    assert lingered == [0.0, pytest.approx(4.0)]
    assert not played.world.undone


def test_result_that_came_before_a_late_request_is_told_before_the_end_of_a_cancelled_step() -> None:
    """A step ends after the failure of another one, and before the end is requested. The next attempt tells both to the branches
    that the request cancels. The first one decides: the function stays, and its grace ends."""
    refuses = s.Try("refuse", s.Step(fails=s.ALWAYS), s.Undo())
    both = s.Branches("gather", (refuses, s.Step("b", yields=2)))
    program = Program(s.Block((s.Undo(), s.Try("stay", both, s.Sleep(1)))), attempts=2)
    [(failed, begins)] = play_in_kit(program).run.pauses
    played = check(program, request=EndRequest(round((failed + begins) / 2, 6)))
    assert played.is_cut
    assert not played.world.undone


def test_step_that_only_failed_attempts_asked_for_does_not_begin_after_the_request() -> None:
    """The replay of the second attempt fails, which begins nothing new. The end is requested before the third attempt begins."""
    fails = (s.Start(0, s.Step(fails=1)), s.Start(1, s.Step(fails=s.ALWAYS)), s.Sleep())
    both = s.Branches("gather", (s.Step("b"), s.Await(0), s.Await(1)))
    program = Program(s.Block((*fails, both)), attempts=4)
    failed, begins = play_in_kit(program).run.pauses[1]
    for share in (0.1, 0.5, 0.9):
        played = check(program, request=EndRequest(round(failed + share * (begins - failed), 6)))
        assert [call.place for call in played.world.calls] == ["0.0~", "0.1~"]


_CALLS_OF_A_CLEAN_UP = {
    "step": s.Step("b"),
    "deadline": s.Signal("stop", timeout=0),
    "child": s.Child(),
}


@pytest.mark.parametrize("name", _CALLS_OF_A_CLEAN_UP)
def test_child_that_a_failure_cancels_is_started_again(name: str) -> None:
    """A failure cancels a child and another branch, which cleans up with a call. The child's branch, in a task group, gets the
    cancellation a turn of the loop later, and still before this call begins. The next attempt starts another child, and the end
    is requested before or after the end of this child."""
    waits = s.Branches("group", (s.Block((s.Child(days=2), s.Undo())),))
    fails = s.Block((s.Sleep(1), s.Step(fails=1)))
    cleans_up = s.Try("obey", s.Signal(timeout=None), _CALLS_OF_A_CLEAN_UP[name])
    program = Program(s.Block((s.Undo(), s.Branches("group", (waits, fails, cleans_up)))), attempts=2)
    [(_, begins)] = play_in_kit(program).run.pauses
    for seconds, undone in ((-100, ["0.0"]), (100, ["0.1|0|0.1", "0.0"])):
        request = EndRequest(round(begins + s.span("0.1|0|0.0+", 2) + seconds, 6))
        played = check(program, request=request)
        assert [call.place for call in played.world.undone] == undone


def test_block_that_catches_the_cancellation_by_its_limit_goes_on() -> None:
    """Nothing is raised then, as with `asyncio.timeout`: neither if the end is requested later, nor if it never is."""
    stays = s.Try("stay", s.Signal(timeout=None), s.Step("b"))
    program = Program(s.Timeout(1, s.Block((stays, s.Sleep(3)))))
    assert check(program).outcome == ("completed", [["stays", "b<0=.0!>"], "slept"])
    assert check(program, request=EndRequest(3.5 * s.DAY)).outcome == ("cancelled",)


def test_end_is_told_before_a_signal_that_only_a_late_attempt_hears() -> None:
    """The run has read the first signal while the step ran, and then suspends. The end is requested right after that. The next
    attempt begins days later. It is told the end, and does not get the second signal."""
    hears = s.Block((s.Signal(timeout=None), s.Undo()))
    both = s.Branches("gather", (hears, s.Undo()))
    steps = (s.Undo(), s.Step(hours=73), s.Signal(timeout=0), both)
    program, late = Program(s.Block(steps), sent=(("go", 0), ("go", 1))), {0: 6}
    [(suspended, _)] = play_in_kit(program, late=late).world.absences.spans
    for seconds in (0.02, 0.5, 2.0):
        request = EndRequest(round(suspended - SETTLED + seconds, 6))
        played = check(program, late=late, request=request)
        assert [call.place for call in played.world.undone] == ["0.3|1", "0.0"]


def test_end_is_told_before_a_deadline_that_passed_after_a_failure_had_cancelled_it() -> None:
    """The failure of a step cancels the signal. Its branch cleans up with a sleep, and the signal's deadline passes meanwhile.
    The end is requested before the next attempt, in which the branch waits for the signal again, and cleans up again."""
    fails = s.Block((s.Sleep(1), s.Step(fails=1)))
    hears = s.Block((s.Try("obey", s.Signal(timeout=2), s.Sleep(2)), s.Signal(timeout=3)))
    both = s.Branches("group", (fails, hears))
    program = Program(s.Block((s.Undo(), both)), attempts=2)
    [(failed, begins)] = play_in_kit(program).run.pauses
    for share in (0.1, 0.5, 0.9):
        played = check(program, request=EndRequest(round(failed + share * (begins - failed), 6)))
        assert played.is_cut
        assert not played.world.undone


def test_order_of_many_cancelled_steps_has_a_plain_play() -> None:
    """The request cancels seven steps. Four of them end before the one whose end ends the function, and two after it."""
    handled = s.Try("obey", s.Step("b"), s.Step(yields=3))
    program = Program(s.Block((s.Workers(3, 3, s.Workers(3, 4, handled)),)), attempts=2)
    played = check(program, request=EndRequest(0.013923))
    assert len([call for call in played.world.calls if call.cancelled]) == 7
    assert {"0.0#2#1!", "0.0#2#2!"} <= {call.place for call in played.world.calls if call.recorded}


def test_order_of_children_that_end_at_once_has_a_plain_play() -> None:
    """Three children end in one turn, and the end is requested in it. The failure of the second one is told before that. It
    cancels the third call, whose branch then cleans up with a step."""
    cleans_up = s.Try("except", s.Try("refuse", s.Child(), s.Undo()), s.Step())
    fails = s.Block((s.Undo(), s.Start(0, s.Step()), s.Block(()), s.Child(fails=True)))
    both = s.Branches("gather", (s.Branches("gather", (cleans_up,)), s.Child(), s.Block((fails,))))
    played = check(Program(s.Block((both,))), request=EndRequest(commit=0))
    assert [call.place for call in played.world.calls if call.recorded] == ["0.0|0|0!"]


def test_end_is_requested_before_the_first_call_of_an_attempt() -> None:
    """After the crash the next attempt asks for the step, and is told the end before it calls the step."""
    fails = s.Try("obey", s.Step(fails=2, tries=2, hangs=True), s.Step("b"))
    latched = s.Branches("latch", (s.Undo(), fails))
    program = Program(s.Branches("gather", (s.First(((2, s.Block()),)), latched)))
    played = check(program, (1,), request=EndRequest(commit=0, turns=1))
    assert [call.place for call in (*played.world.calls, *played.world.undone)] == ["0|1|0"]


def test_end_is_requested_between_answers_of_one_instant() -> None:
    """Each wait begins and ends in turns of its own, so that a play in the order of instants has all these requests."""
    waits = [s.Wait(ask=ask, comes=0, timeout=1) for ask in (True, False, True)]
    program = Program(s.Block((s.Undo(), *(s.Block((wait, s.Undo())) for wait in waits), s.Sleep(1))))
    undone = set()
    for commit in range(6):
        for turns in range(8):
            played = check(program, request=EndRequest(commit=commit, turns=turns))
            assert played.run.end is not None
            ticks: list[float] = []
            play(program, requested=played.run.end.later(), ticks=ticks)
            near = played.run.end.between(ticks, played.world.absences)
            assert any(not differences(played, play(program, requested=end)) for end in near)
            undone.add(len(played.world.undone))
    assert undone == {1, 2, 3, 4}


def test_run_suspends_itself_between_answers_of_one_instant() -> None:
    """The first answer is told before the absence, and the second one comes at the same instant."""
    wait = s.Wait(comes=0, timeout=2)
    program = Program(s.Block((s.Undo(), wait, s.Undo(), wait, s.Undo(), s.Sleep(1))))
    undone = []
    for suspension in range(3):
        played = check(program, late={suspension: 3}, request=EndRequest(0.001))
        undone.append([call.place for call in played.world.undone])
    assert undone == [["0.0"], ["0.2", "0.0"], ["0.4", "0.2", "0.0"]]


@pytest.mark.parametrize("instant", [30.0, 200.0])
def test_answer_that_comes_at_once_is_told_before_the_next_look(instant: float) -> None:
    """The run waits for another event when the question is asked that is answered at once."""
    asks = s.Block((s.Step(), s.Wait(comes=0, timeout=2), s.Undo()))
    program = Program(s.Block((s.Undo(), s.Branches("gather", (s.Wait(comes=2, timeout=2), asks)))))
    played = check(program, request=EndRequest(instant))
    assert [call.place for call in played.world.undone] == ["0.1|1.2", "0.0"]


@pytest.mark.parametrize("failure", [1, 2])
def test_end_is_requested_after_an_attempt_that_failed_in_its_replay(failure: int) -> None:
    """Nothing but the failure happens when the attempt begins. The end is requested right after it."""
    program = Program(s.Block((s.Undo(), s.Sleep(1), s.Raise())), attempts=4)
    for turns in range(3):
        played = check(program, request=EndRequest(failure=failure, turns=turns))
        assert played.failures == failure + 1
        assert [call.place for call in played.world.undone] == ["0.0"]


def test_end_is_requested_while_a_failed_attempt_waits_for_its_steps() -> None:
    """The instant is one at which the timer of the plain play is due a rounding error earlier."""
    inner = s.Branches("gather", (s.Step(), s.Step(yields=1)))
    both = s.Branches(
        "gather",
        (s.Step(fails=1, hangs=True), s.Step(), s.Block((s.Step("b", yields=3, hangs=True),)), inner),
    )
    program = Program(s.Block((s.Undo(), s.Block((both,)))), attempts=5)
    played = check(program, request=EndRequest(0.122512, ends_as="timeout"))
    assert played.failures == 0
    assert [call.place for call in played.world.undone] == ["0.0"]


def test_end_is_requested_near_a_failure_that_a_crash_lost() -> None:
    """A child has failed, and the step still runs. A crash loses this failure and the result of the step. The next attempt fails
    again without a call of the step, and the end is requested a few turns before or after that."""
    both = s.Branches("gather", (s.Child(fails=True), s.Step("b")))
    program, crash = Program(s.Block((s.Undo(), both)), attempts=2), (4,)
    [lost] = play_in_kit(program, crash).run.lost_failures.values()
    failures = set()
    for turns in range(8):
        played = check(program, crash, request=EndRequest(commit=3, turns=turns))
        assert played.run.end is not None
        assert played.run.end.instant == lost
        assert [call.place for call in played.world.undone] == ["0.0"]
        failures.add(played.failures)
    assert failures == {0, 1}


def test_delay_of_a_try_that_ended_after_the_failure_counts_from_its_end() -> None:
    """The try fails while the next attempt is awaited. Its next try begins as long after it as the delay says."""
    tried_again = s.Block((s.Step(fails=1, tries=2, delay=2, yields=1), s.Undo()))
    both = s.Branches("gather", (tried_again, s.Step("b", fails=1)))
    program = Program(s.Block((s.Undo(), both, s.Sleep())), attempts=2)
    plays = Plays(program)
    played = plays.in_kit()
    first, second = [call for call in played.world.calls if call.place == "0.1|0.0"]
    [(failed, begins)] = played.run.pauses
    assert first.ended is not None
    assert second.ended is not None
    assert failed < first.ended < begins
    assert second.began == pytest.approx(first.ended + s.span("0.1|0.0", 2))
    played = plays.in_kit(request=EndRequest(round(second.ended + 0.5, 6)))
    assert [call.place for call in played.world.undone] == ["0.1|0.1", "0.0"]
    assert differences(played, plays.plain(played)) == []  # in the order in which the run was played


def test_end_is_requested_while_a_compensation_runs_again() -> None:
    """Crashes lost two calls of the first compensation, so that the next one, which would hang, begins after the request."""
    program = Program(s.Block((s.Undo(hangs=True), s.Undo(), s.Step(fails=s.ALWAYS))))
    crashes = (2, 4)
    calls = [call for call in play_in_kit(program, crashes).world.undone if call.place == "0.1"]
    assert len(calls) == 3
    for call in calls:
        assert call.ended is not None
        plays, request = Plays(program), EndRequest(round((call.began + call.ended) / 2, 6))
        played = plays.in_kit(crashes, request=request)
        assert [call.place for call in played.world.undone if call.recorded] == ["0.1", "0.0"]
        assert differences(played, plays.plain(played)) == []  # in the order in which the run was played, too


def test_end_is_requested_in_a_turn_that_the_plain_play_has_earlier() -> None:
    """The run wakes up at a whole microsecond to hear the first signal. The second step begins then, and so ends later than in
    the plain play. The end is requested before the run hears the second signal."""
    hears = s.Block((s.Step(hours=75), s.Signal("stop")))
    program = Program(s.Block((s.Undo(), hears, hears)), sent=(("stop", 3), ("stop", 3)))
    for turns in range(3):
        played = check(program, request=EndRequest(commit=4, turns=turns))
        assert [call.place for call in played.world.undone] == ["0.0"]


def test_end_is_told_before_a_cancellation_that_came_after_the_failure() -> None:
    """A branch fails, and the function goes on. A race then cancels a step that waits for its next try, before the function
    fails. The next attempt takes the cancellation back, and is told the requested end before the race has ended."""
    fails = s.Block((s.Sleep(1), s.Step(fails=s.ALWAYS)))
    race = s.First(((1, s.Step("b", fails=2, tries=3, delay=2)), (2, s.Step())))
    program = Program(
        s.Block((s.Undo(), s.Start(0, fails), s.Try("stay", race, s.Step("b")), s.Await(0))), attempts=2
    )
    [(failed, begins)] = play_in_kit(program).run.pauses
    for share in (0.1, 0.5, 0.9):
        played = check(program, request=EndRequest(round(failed + share * (begins - failed), 6)))
        assert "0.2!" in [call.place for call in played.world.calls]


_ASKED_FOR_AT_THE_FAILURE = {
    "child": s.Child(),
    "children": s.Child(items=2),
    "child of a day": s.Child(days=1),
    "answer": s.Wait(ask=True, comes=0, timeout=1),
    "event": s.Wait(comes=0, timeout=1),
    "deadline": s.Signal(timeout=0),
}


@pytest.mark.parametrize("name", _ASKED_FOR_AT_THE_FAILURE)
def test_call_at_the_failure_does_not_begin_after_the_request(name: str) -> None:
    """The function asks for the call, and fails in the same turn. The next attempt is told the end before it begins the call."""
    asks = s.Block((_ASKED_FOR_AT_THE_FAILURE[name], s.Undo()))
    both = s.Branches("gather", (asks, s.Await(0)))
    program = Program(s.Block((s.Undo(), *_FAILS, both)), attempts=2)
    [(failed, begins)] = play_in_kit(program).run.pauses
    played = check(program, request=EndRequest(round((failed + begins) / 2, 6)))
    assert [call.place for call in played.world.undone] == ["0.0"]
    assert not played.world.children


def test_end_is_told_before_children_whose_ends_a_crash_lost() -> None:
    """The ends of three children are told while a step runs, and are not recorded. The end is requested then, and a crash loses
    the next commit. The next attempt is told the end first."""
    child = s.Block((s.Child(), s.Undo()))
    program = Program(s.Block((s.Undo(), s.Branches("gather", (child, child, child, s.Step(yields=3))))))
    plays = Plays(program)
    request = EndRequest(round(plays.check().world.calls[0].began + 0.1, 6))
    plain = ["0.1|2.1", "0.1|1.1", "0.1|0.1", "0.0"]
    for commit in range(4):
        played = plays.check((2 * commit,), request=request)
        undone = [call.place for call in played.world.undone]
        assert undone == (["0.0"] if commit == 3 else plain)


def test_step_that_a_crash_cuts_off_before_its_call_never_begins() -> None:
    """A child and two steps begin in one turn. A crash comes after the child is recorded, and before the steps are called. The
    next attempt is told the end first."""
    steps = s.Branches("gather", (s.Try("stay", s.Step(), s.Step()), s.Value("uuid")))
    program = Program(s.Branches("gather", (steps, s.Child(fails=True))))
    for turns in (0, 5, 10):
        played = check(program, (3,), request=EndRequest(commit=0, turns=turns))
        assert not played.world.calls
        assert played.world.children == {"0|1": 1}
