"""The true costs that an attempt reports."""

from __future__ import annotations

from decimal import Decimal


def cost_amount(value: float | Decimal) -> Decimal:
    """Return an amount exactly as it is written: 0.1 is a tenth. Raises ValueError if it is negative, not finite, or not a
    number."""
    amount = Decimal(repr(value)) if type(value) in (int, float) else value
    if not isinstance(amount, Decimal) or not amount.is_finite() or not 0 <= amount < 10**15:
        raise ValueError(f"a cost is a number from 0 to 10^15, not {value!r}")
    return amount
