"""Penstock runs work when events happen and keeps its promises when machines die.

    from penstock import Rule, Trigger, action

    order_placed = Trigger("shop.order_placed")

    @action(pack="shop")
    async def charge(order: int, amount: float) -> str: ...

    Rule("shop.charge_big", trigger=order_placed, when="payload.amount > 100", action=charge,
         params={"order": "{{ payload.id }}", "amount": "{{ payload.amount }}"})
"""

from __future__ import annotations

from penstock.client import Client
from penstock.context import current
from penstock.definitions import (
    Definitions,
    Limit,
    MissedFires,
    Overlap,
    Pack,
    Route,
    Rule,
    Schedule,
    Trigger,
    action,
    schedule,
    trigger,
)
from penstock.errors import PenstockError
from penstock.outcomes import AskInquiry, Defer, NonRetryable, Retry
from penstock.policies import Recovery, RetryPolicy, Timeouts
from penstock.schemas import Secret
from penstock.settings import Settings

__all__ = [
    "AskInquiry",
    "Client",
    "Defer",
    "Definitions",
    "Limit",
    "MissedFires",
    "NonRetryable",
    "Overlap",
    "Pack",
    "PenstockError",
    "Recovery",
    "Retry",
    "RetryPolicy",
    "Route",
    "Rule",
    "Schedule",
    "Secret",
    "Settings",
    "Timeouts",
    "Trigger",
    "action",
    "current",
    "schedule",
    "trigger",
]
