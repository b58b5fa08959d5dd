"""Random costly schemas against values made for them: the work of a check is in proportion to the steps that it counts.

Work is counted as calls of functions, which no other process on the machine can change. The search for the most processor time
is `python -m tests.penstock.language.schemas.hostile_schemas`."""

from __future__ import annotations

import random
import sys
from types import FrameType
from typing import Any

import pytest

from penstock.errors import CheckTooCostly, DefinitionError
from penstock.language.schemas import check_schema
from penstock.language.schemas.budget import Budget
from penstock.language.schemas.faults import faults
from penstock.language.schemas.validator import Validator
from penstock.language.terms.options import Wrong
from tests.penstock.language.schemas.hostile_schemas import case
from tests.penstock.language.schemas.hostile_values import Draw
from tests.penstock.language.schemas.test_budget import copies

FEW_STEPS = 20_000
"""Steps of these checks: a thirtieth of the real budget, so that a loop that counts nothing outruns it at once."""
MOST_CALLS = 4 * FEW_STEPS + 2_000
"""Calls of a check with these steps. The ones beside four a step are those of the parts that one value meets."""
LEGAL_AT_LEAST = 20
UNCOUNTED: dict[str, tuple[Any, Any]] = {
    "items of contains": ({"contains": {"type": "string"}}, [1] * 120_000),
    "items of maxContains": ({"contains": {"type": "integer"}, "maxContains": 10**6}, [1] * 120_000),
    "names": ({"propertyNames": {"maxLength": 9}}, {f"k{n}": 1 for n in range(20_000)}),
    "items": ({"items": {"type": "integer"}}, [1] * 120_000),
    "copies of a prefix": (copies({"prefixItems": [{"type": "integer"}]}, 100), [[1]] * 60_000),
    "properties": ({"additionalProperties": {"type": "integer"}}, {f"k{n}": 1 for n in range(20_000)}),
    "alternatives": ({"items": {"anyOf": [{"type": "null"}] * 900}}, [1] * 120_000),
    "exactly one": ({"items": {"oneOf": [{"type": "null"}] * 900}}, [1] * 120_000),
    "all of many": ({"items": {"allOf": [{"type": "integer"}] * 900}}, [1] * 120_000),
    "conditions": ({"items": {"if": {"type": "null"}, "else": {"type": "integer"}}}, [1] * 120_000),
    "dependencies": ({"items": {"dependentSchemas": {f"k{n}": {} for n in range(900)}}}, [{}] * 60_000),
    "unique lists": ({"uniqueItems": True}, [[n] for n in range(30_000)]),
    "unevaluated names": (
        {"unevaluatedProperties": {"type": "integer"}},
        {f"k{n}": 1 for n in range(20_000)},
    ),
    "unevaluated items": ({"unevaluatedItems": {"type": "integer"}}, [1] * 120_000),
    "faults of items": ({"items": {"type": "string"}}, [*["a"] * 60_000, 1]),
}
"""Each loop of a check, with as many turns as fit into a value."""


class Outrun(AssertionError):
    """More calls were made than the steps of the check allow."""


class Calls:
    """The number of calls of Python functions within a `with`. It stops a check that makes too many."""

    count = 0

    def __enter__(self) -> Calls:
        sys.setprofile(self._note)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)

    def _note(self, frame: FrameType, event: str, argument: Any) -> None:
        if event == "call":
            self.count += 1
            if self.count > MOST_CALLS:
                raise Outrun


def work(document: Any, value: Any) -> None:
    """Check a value, and explain its faults, with few steps. Raises Outrun where the check makes more calls than it counts."""
    validator, budget = Validator(document), Budget(FEW_STEPS)
    with Calls():
        try:
            if not validator.fits(value, budget):
                for _, _ in zip(range(5), faults(validator, value, budget), strict=False):
                    pass
        except (CheckTooCostly, RecursionError):
            pass


@pytest.mark.parametrize("name", UNCOUNTED)
def test_each_loop_of_a_check_counts_its_turns(name: str) -> None:
    work(*UNCOUNTED[name])


@pytest.mark.parametrize("seed", range(3))
def test_calls_of_random_checks_are_counted_as_steps(seed: int) -> None:
    more = random.Random(seed)
    legal = 0
    for _ in range(40):
        try:
            document, value = case(Draw([], more), payload=64_000, schema=12_000)
            check_schema(document)
        except (Wrong, RecursionError, DefinitionError):
            continue
        legal += 1
        work(document, value)
    assert legal >= LEGAL_AT_LEAST


def test_pattern_of_too_many_groups_is_refused() -> None:
    """8,000 empty groups, 16 KB, took half a second to be compiled."""
    check_schema({"pattern": "()" * 1_000})
    with pytest.raises(Wrong, match="1,000 groups"):
        check_schema({"pattern": "()" * 1_001})
