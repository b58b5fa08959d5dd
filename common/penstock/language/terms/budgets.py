"""Budgets of a tree of executions: an amount for each unit, such as `{"tokens": 1_000_000, "eur": 5}`."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BeforeValidator

from penstock.language.terms.column_ranges import MAX_AMOUNT
from penstock.language.terms.options import Wrong

UNIT = r"[a-z][a-z0-9_]{0,39}"
"""The pattern of the name of a unit."""
MAX_UNITS = 20
WhenSpent = Literal["refuse", "wait"]
"""The fate of an execution that needs more than is left: it is cancelled, or waits until the budget is raised."""
_HINT = 'Write an amount for each unit: {"tokens": 1000000, "eur": 5}.'


def check_budget(value: Any) -> dict[str, float]:
    """Return a budget. Raises Wrong if `value` does not map 1 to MAX_UNITS units to amounts."""
    if not isinstance(value, Mapping) or not 1 <= len(value) <= MAX_UNITS:
        raise Wrong(f"is not a budget of 1 to {MAX_UNITS} units", _HINT)
    for unit, amount in value.items():
        if not isinstance(unit, str) or not re.fullmatch(UNIT, unit):
            raise Wrong(f"is not the name of a unit: {unit!r}", _HINT)
        check_amount(unit, amount)
    return dict(value)


def check_amount(unit: str, amount: Any) -> None:
    """Raise Wrong for an amount that is not a number above 0, or is beyond MAX_AMOUNT."""
    if isinstance(amount, bool) or not isinstance(amount, int | float) or not math.isfinite(amount):
        raise Wrong(f"{unit} is not a number", _HINT)
    if not 0 < amount <= MAX_AMOUNT:
        raise Wrong(f"{unit} is not above 0 and at most 10^15", _HINT)


Amount: TypeAlias = float
"""An amount of a unit, above 0 and at most MAX_AMOUNT."""
Budget = Annotated[dict[str, float | int], BeforeValidator(check_budget)]
