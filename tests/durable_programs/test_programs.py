"""Random durable programs against the oracle: 300 with crashes, the same in each run of the tests."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, Phase, assume, given, settings

from tests.durable_programs import statements as s
from tests.durable_programs.agreement import check_crashed
from tests.durable_programs.plain_play import play
from tests.durable_programs.statements import Program
from tests.durable_programs.strategies import crash_points, programs

PROGRAMS = 300
pytestmark = pytest.mark.filterwarnings("ignore:coroutine .* was never awaited")


@settings(
    max_examples=PROGRAMS,
    deadline=None,
    derandomize=True,
    database=None,
    phases=(Phase.generate,),  # tests/chaos/test_durable_programs.py makes what disagrees small
    suppress_health_check=list(HealthCheck),
)
@given(programs(depth=2), crash_points)
def test_crashes_change_nothing_in_programs(program: Program, points: list[int]) -> None:
    assume(play(program).outcome != ("stuck",))
    check_crashed(program, points)


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
