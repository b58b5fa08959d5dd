"""Verdicts of the validator against two libraries that share no code with it."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.penstock.language.schemas.directed_cases import KEYWORDS, Values, document
from tests.penstock.language.schemas.two_libraries import disagreements

VALUES = 5
EXAMPLES = 12
"""Documents of one keyword, with VALUES values each. `test_planted_faults.py` says what so many find."""


@pytest.mark.parametrize("keyword", KEYWORDS)
@settings(
    max_examples=EXAMPLES,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(draw=st.randoms(use_true_random=False))
def test_verdicts_are_those_of_two_libraries(keyword: str, draw: Random) -> None:
    schema = document(draw, keyword)
    values = Values(draw, schema)
    assert disagreements(schema, [values.value() for _ in range(VALUES)]) == []
