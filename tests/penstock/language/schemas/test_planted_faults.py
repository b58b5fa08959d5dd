"""The comparison with the libraries finds a fault of every keyword. It finds none in a keyword that its cases never reach."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from tests.penstock.language.schemas.directed_cases import KEYWORDS, Values, document
from tests.penstock.language.schemas.planted_faults import FAULTS, Fault, planted
from tests.penstock.language.schemas.two_libraries import disagreements

CASES = 400
"""Documents of one keyword until its fault is found, with VALUES values each: some two seconds of a processor."""
VALUES = 6


def first_disagreement(keyword: str, seed: int) -> tuple[Any, list[Any]] | None:
    """Return the first document of a keyword, with its values, about which our check and a library disagree."""
    draw = Random(seed)
    for _ in range(CASES):
        schema = document(draw, keyword)
        maker = Values(draw, schema)
        values = [maker.value() for _ in range(VALUES)]
        if disagreements(schema, values):
            return schema, values
    return None


def test_every_keyword_has_a_fault() -> None:
    assert {fault.keyword for fault in FAULTS} == KEYWORDS.keys()


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_fault_of_a_keyword_is_found(fault: Fault) -> None:
    with planted(fault):
        case = first_disagreement(fault.keyword, 1)
    assert case is not None
    assert disagreements(*case) == []
