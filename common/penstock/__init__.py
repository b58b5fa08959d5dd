"""Penstock runs work when events happen and keeps its promises when machines die.

from penstock import Rule, Trigger, action

order_placed = Trigger("shop.order_placed")

@action(pack="shop")
async def charge(order: int, amount: float) -> str: ...

Rule("shop.charge_big", trigger=order_placed, when="payload.amount > 100", action=charge,
     params={"order": "{{ payload.id }}", "amount": "{{ payload.amount }}"})
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from penstock.client import Client
    from penstock.context import current
    from penstock.definitions import (
        Action,
        Definitions,
        Document,
        Limit,
        MissedFires,
        Overlap,
        Pack,
        Route,
        Rule,
        Schedule,
        Trigger,
        command_action,
        http_action,
        kubernetes_action,
        load,
    )
    from penstock.definitions.decorator import action
    from penstock.definitions.schedule import schedule
    from penstock.definitions.trigger import trigger
    from penstock.errors import PenstockError
    from penstock.outcomes import AskInquiry, Defer, NonRetryable, Retry
    from penstock.policies import Recovery, RetryPolicy, Timeouts
    from penstock.schemas import Secret
    from penstock.settings import Settings
    from penstock.workflows.model import Workflow
    from penstock.workflows.python import workflow

_HOMES = {
    "Workflow": "workflows",
    "workflow": "workflows",
    "Action": "definitions",
    "AskInquiry": "outcomes",
    "Client": "client",
    "Defer": "outcomes",
    "Definitions": "definitions",
    "Document": "definitions",
    "Limit": "definitions",
    "MissedFires": "definitions",
    "NonRetryable": "outcomes",
    "Overlap": "definitions",
    "Pack": "definitions",
    "PenstockError": "errors",
    "Recovery": "policies",
    "Retry": "outcomes",
    "RetryPolicy": "policies",
    "Route": "definitions",
    "Rule": "definitions",
    "Schedule": "definitions",
    "Secret": "schemas",
    "Settings": "settings",
    "Timeouts": "policies",
    "Trigger": "definitions",
    "action": "definitions",
    "command_action": "definitions",
    "current": "context",
    "http_action": "definitions",
    "kubernetes_action": "definitions",
    "load": "definitions",
    "schedule": "definitions",
    "trigger": "definitions",
}
"""Where each public name lives. Loaded when it is first asked for: the child process that runs one action needs few."""

__all__ = [
    "Action",
    "AskInquiry",
    "Client",
    "Defer",
    "Definitions",
    "Document",
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
    "Workflow",
    "action",
    "command_action",
    "current",
    "http_action",
    "kubernetes_action",
    "load",
    "schedule",
    "trigger",
    "workflow",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'penstock' has no attribute {name!r}")
    value = getattr(import_module(f"penstock.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
