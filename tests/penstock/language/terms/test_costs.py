"""Costs as they are written, and the terms that the database adds up."""

from __future__ import annotations

import pytest

from penstock.language.terms.costs import cost_terms, parameters_of
from penstock.language.terms.options import Wrong


@pytest.mark.parametrize(
    ("cost", "terms"),
    [
        (2, [(2, None, None)]),
        (1.5, [(1.5, None, None)]),
        ("2", [(2, None, None)]),
        ("2.5", [(2.5, None, None)]),
        ("{{ parameters.tokens }}", [(1, "tokens", None)]),
        ("{{ parameters['x-y'].n }}", [(1, "x-y.n", None)]),
        ("{{ parameters.a['b'] }}", [(1, "a.b", None)]),
        ("{{ parameters.a + 3 }}", [(1, "a", None), (3, None, None)]),
        ("{{ 0.1 * parameters.a * 3 }}", [(0.3, "a", None)]),
        ("{{ 2 * (parameters.a - parameters.b | default(4)) }}", [(2, "a", None), (-2, "b", 4)]),
        ("{{ parameters.a / 4 }}", [(0.25, "a", None)]),
        ("{{ 5 - -parameters.a }}", [(5, None, None), (1, "a", None)]),
    ],
)
def test_a_cost_is_a_sum_of_terms(cost: float | str, terms: list[object]) -> None:
    assert cost_terms(cost) == terms


def test_the_parameters_of_a_cost_are_its_paths() -> None:
    assert parameters_of("{{ parameters.a.b + 3 * parameters.c }}") == ["a.b", "c"]


@pytest.mark.parametrize(
    ("cost", "fault"),
    [
        ("", "not a cost"),
        ("tokens", "not a cost"),
        ("{{ parameters.a }} {{ parameters.b }}", "not a cost"),
        ("{{ parameters.a", "not a cost"),
        ("{{ tokens }}", "not a sum of parameters"),
        ("{{ parameters }}", "not a sum of parameters"),
        ("{{ parameters.a * parameters.b }}", "not a sum of parameters"),
        ("{{ parameters.a ** 2 }}", "not a sum of parameters"),
        ("{{ parameters.a | upper }}", "not a sum of parameters"),
        ("{{ other.a }}", "not the path of a parameter"),
        ("{{ parameters['a b'] }}", "not the path of a parameter"),
        ("{{ parameters.a / 0 }}", "not a sum of parameters"),
        ("{{ parameters.a + 'x' }}", "not a number"),
        ("{{ 1e20 * parameters.a }}", "beyond 10"),
        (-1, "negative"),
        (float("inf"), "beyond 10"),
        ("{{ " + " + ".join(["parameters.a"] * 21) + " }}", "more than 20 terms"),
    ],
)
def test_other_costs_are_refused(cost: float | str, fault: str) -> None:
    with pytest.raises(Wrong, match=fault):
        cost_terms(cost)
