"""Random programs that are asked to end at any point agree with their plain play; and faults that they have to find."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.durable_programs import statements as s
from tests.durable_programs.agreement import Disagreement, check
from tests.durable_programs.end_requests import EndRequest
from tests.durable_programs.faults import FAULTS_OF_ENDS
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
