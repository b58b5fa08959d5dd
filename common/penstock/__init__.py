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
    from penstock.client import Client as Client
    from penstock.context import current as current
    from penstock.definitions import Action as Action
    from penstock.definitions import Definitions as Definitions
    from penstock.definitions import Document as Document
    from penstock.definitions import Limit as Limit
    from penstock.definitions import MissedFires as MissedFires
    from penstock.definitions import Overlap as Overlap
    from penstock.definitions import Pack as Pack
    from penstock.definitions import Route as Route
    from penstock.definitions import Rule as Rule
    from penstock.definitions import Schedule as Schedule
    from penstock.definitions import Trigger as Trigger
    from penstock.definitions import action as action
    from penstock.definitions import command_action as command_action
    from penstock.definitions import http_action as http_action
    from penstock.definitions import kubernetes_action as kubernetes_action
    from penstock.definitions import load as load
    from penstock.definitions import schedule as schedule
    from penstock.definitions import trigger as trigger
    from penstock.errors import PenstockError as PenstockError
    from penstock.outcomes import AskInquiry as AskInquiry
    from penstock.outcomes import Defer as Defer
    from penstock.outcomes import NonRetryable as NonRetryable
    from penstock.outcomes import Retry as Retry
    from penstock.policies import Recovery as Recovery
    from penstock.policies import RetryPolicy as RetryPolicy
    from penstock.policies import Timeouts as Timeouts
    from penstock.schemas import Secret as Secret
    from penstock.settings import Settings as Settings

_HOMES = {
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
    "action",
    "command_action",
    "current",
    "http_action",
    "kubernetes_action",
    "load",
    "schedule",
    "trigger",
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
