"""The protocol, in all its states: nothing is ever wrong, unless a mechanism is taken away."""

from __future__ import annotations

import pytest

from tests.model.protocol import FAULTS
from tests.model.search import Searched, search

SCENARIOS = ("limit", "line", "join")


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_no_invariant_is_violated_in_any_state(scenario: str) -> None:
    found = search(scenario)
    assert (found.violation, found.way) == ("", ())
    assert found.states > 1_000


@pytest.mark.parametrize("fault", FAULTS)
def test_without_one_of_its_mechanisms_the_model_finds_what_breaks(fault: str) -> None:
    found: list[Searched] = [search(scenario, fault) for scenario in SCENARIOS]
    violations = [one.violation for one in found if one.violation]
    assert FAULTS[fault] in violations, [(one.violation, one.way) for one in found]
