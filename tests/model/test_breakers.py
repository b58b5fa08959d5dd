"""A breaker in all its states: nothing is ever wrong, unless a mechanism is taken away."""

from __future__ import annotations

import pytest

from tests.model.breakers import COUNTING_FAULTS, FAULTS, Breakers
from tests.model.search import search


@pytest.mark.parametrize("counts_running", [False, True])
def test_no_invariant_is_violated_in_any_state(counts_running: bool) -> None:
    result = search(Breakers(counts_running=counts_running))
    assert (result.violation, result.way) == ("", ())
    assert result.states > 1_000


@pytest.mark.parametrize("fault", FAULTS)
def test_without_one_mechanism_the_model_finds_a_violation(fault: str) -> None:
    result = search(Breakers(fault))
    assert result.violation == FAULTS[fault], result.way


@pytest.mark.parametrize("fault", COUNTING_FAULTS)
def test_without_one_mechanism_of_counted_calls_the_model_finds_a_violation(fault: str) -> None:
    result = search(Breakers(fault, counts_running=True))
    assert result.violation == COUNTING_FAULTS[fault], result.way
