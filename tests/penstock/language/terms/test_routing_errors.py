"""The errors about impossible patterns and routes."""

from __future__ import annotations

import pytest

from penstock.errors import DefinitionError
from penstock.language.terms.routing import RoutingRule, refuse_unknown


@pytest.mark.parametrize(
    ("pattern", "character"), [("ab::cd::", 9), ("::a", 1), ("ab::c:d", 6), ("ab::cd::e**", 10)]
)
def test_the_error_of_a_pattern_says_at_which_character(pattern: str, character: int) -> None:
    with pytest.raises(DefinitionError, match=f"wrong at character {character}:"):
        RoutingRule(pattern, "r")


@pytest.mark.parametrize(
    ("route", "hint"),
    [
        ("gppu", "Did you mean 'gpu'? PENSTOCK_KNOWN_ROUTES names default, gpu."),
        ("elsewhere", "PENSTOCK_KNOWN_ROUTES names default, gpu."),
    ],
)
def test_a_route_that_is_not_known_is_refused_and_the_nearest_is_named(route: str, hint: str) -> None:
    with pytest.raises(DefinitionError) as refused:
        refuse_unknown([(route, "t.a")], ["gpu", "default"])
    assert refused.value.hint == hint
