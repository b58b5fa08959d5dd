"""Random programs that are asked to end at any point agree with their plain play; and faults that they have to find."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.durable_programs.agreement import Disagreement
from tests.durable_programs.faults import FAULTS_OF_ENDS
from tests.durable_programs.programs import PARTS_OF_ENDS, check_all_requested_ends, check_requested_ends
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
