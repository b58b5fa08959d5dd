"""A breaker in all its states: nothing is ever wrong, unless a mechanism is taken away."""

from __future__ import annotations

import pytest

from tests.model.breakers import FAULTS, Breakers
from tests.model.search import search


def test_no_invariant_is_violated_in_any_state() -> None:
    result = search(Breakers())
    assert (result.violation, result.way) == ("", ())
    assert result.states > 1_000


@pytest.mark.parametrize("fault", FAULTS)
def test_without_one_mechanism_the_model_finds_a_violation(fault: str) -> None:
    result = search(Breakers(fault))
    assert result.violation == FAULTS[fault], result.way
