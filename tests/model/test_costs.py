"""Weights and budgets, in all their states: nothing is ever wrong, unless a mechanism is taken away."""

from __future__ import annotations

import pytest

from tests.model.costs import FAULTS, SCENARIOS, Costs
from tests.model.search import search


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_no_invariant_is_violated_in_any_state(scenario: str) -> None:
    result = search(Costs(scenario))
    assert (result.violation, result.way) == ("", ())
    assert result.states > 1_000


@pytest.mark.parametrize("fault", FAULTS)
def test_without_one_mechanism_the_model_finds_a_violation(fault: str) -> None:
    results = [search(Costs(scenario, fault)) for scenario in SCENARIOS]
    violations = [result.violation for result in results if result.violation]
    assert FAULTS[fault] in violations, [(result.violation, result.way) for result in results]
