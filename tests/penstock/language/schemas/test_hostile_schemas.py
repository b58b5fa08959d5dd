"""Random costly schemas against values made for them: the work of a check is in proportion to the steps that it counts.

Work is counted as calls of functions, which no other process on the machine can change. The search for the most processor time
is `python -m tests.penstock.language.schemas.hostile_schemas`."""

from __future__ import annotations

import random
import sys
from types import FrameType
from typing import Any

import orjson
import pytest

from penstock.bounds import SCHEMA_CAP
from penstock.errors import CheckTooCostly, DefinitionError
from penstock.language.options import Wrong
from penstock.language.schemas import check_schema
from penstock.language.schemas.budget import STEPS, Budget
from penstock.language.schemas.faults import faults
from penstock.language.schemas.validator import Validator
from tests.penstock.language.schemas.hostile_schemas import Draw, case

CALLS_PER_STEP = 4
CALLS_AT_LEAST = 2_000
"""Calls beside those of steps: the parts of the schema that one value meets."""
LEGAL_AT_LEAST = 20


class Calls:
    """The number of calls of Python functions within a `with`."""

    count = 0

    def __enter__(self) -> Calls:
        sys.setprofile(self._note)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)

    def _note(self, frame: FrameType, event: str, argument: Any) -> None:
        self.count += event == "call"


def work(document: Any, value: Any) -> tuple[int, int]:
    """Return the steps and the calls of one check with its explanation."""
    validator, budget = Validator(document), Budget()
    with Calls() as calls:
        try:
            if not validator.fits(value, budget):
                for _, _ in zip(range(5), faults(validator, value, budget), strict=False):
                    pass
        except (CheckTooCostly, RecursionError):
            pass
    return STEPS - budget.left, calls.count


@pytest.mark.parametrize("seed", range(3))
def test_calls_of_a_check_are_counted_as_steps(seed: int) -> None:
    more = random.Random(seed)
    legal = 0
    for _ in range(40):
        try:
            document, value = case(Draw([], more), payload=16_000, schema=12_000)
            check_schema(document)
        except (Wrong, RecursionError, DefinitionError):
            continue
        legal += 1
        steps, calls = work(document, value)
        assert calls <= CALLS_PER_STEP * steps + CALLS_AT_LEAST, (steps, calls, orjson.dumps(document)[:2000])
        assert steps < STEPS + SCHEMA_CAP
    assert legal >= LEGAL_AT_LEAST


def test_pattern_of_too_many_groups_is_refused() -> None:
    """8,000 empty groups, 16 KB, took half a second to be compiled."""
    check_schema({"pattern": "()" * 1_000})
    with pytest.raises(Wrong, match="1,000 groups"):
        check_schema({"pattern": "()" * 1_001})
