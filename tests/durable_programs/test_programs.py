"""Random durable programs against the oracle, the same in each run of the tests; and faults that they have to find."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.durable_programs import statements as s
from tests.durable_programs.agreement import Disagreement, check
from tests.durable_programs.faults import FAULTS
from tests.durable_programs.plain_play import play
from tests.durable_programs.programs import check_programs
from tests.durable_programs.statements import Program

pytestmark = pytest.mark.filterwarnings("ignore:coroutine .* was never awaited")


def test_crashes_change_nothing_in_programs() -> None:
    check_programs()


@pytest.mark.parametrize("fault", FAULTS, ids=[fault.__name__ for fault in FAULTS])
def test_fault_put_back_is_found(
    fault: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    fault(monkeypatch)
    with pytest.raises(Disagreement):
        check_programs()


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


def test_plain_play_hears_signal_sent_during_step() -> None:
    program = Program(s.Block((s.Step(hours=30 * 24), s.Signal("go", timeout=0))), sent=(("go", 1),))
    assert play(program).outcome == ("completed", ["a<0.0>", "go0"])


def test_kit_hears_signal_sent_during_step() -> None:
    program = Program(s.Block((s.Step(hours=30 * 24), s.Signal("go", timeout=0))), sent=(("go", 1),))
    assert check(program).outcome == ("completed", ["a<0.0>", "go0"])
