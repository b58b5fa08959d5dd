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
    from penstock.client.client import Client
    from penstock.client.http_client import HttpClient
    from penstock.client.sync_client import SyncClient
    from penstock.client.sync_http_client import SyncHttpClient
    from penstock.engine.durable.context import DurableContext
    from penstock.errors import PenstockError
    from penstock.language.definitions import (
        Action,
        Batch,
        Breaker,
        Document,
        Limit,
        MissedFires,
        Overlap,
        Pack,
        Route,
        Rule,
        Schedule,
        Trigger,
        Window,
        command_action,
        http_action,
        kubernetes_action,
    )
    from penstock.language.definitions.decorator import action
    from penstock.language.definitions.schedule import schedule
    from penstock.language.definitions.trigger import trigger
    from penstock.language.loading import Definitions
    from penstock.language.loading.load import load
    from penstock.language.policies.policies import Recovery, RetryPolicy, Timeouts
    from penstock.language.schemas import Secret
    from penstock.language.terms.action_ref import ActionRef
    from penstock.language.workflows import (
        Context,
        ContextTask,
        Workflow,
        all_of,
        any_of,
        context,
        each,
        error,
        event,
        expr,
        fail,
        failed,
        index,
        inquiry,
        item,
        none_of,
        noop,
        on_exit,
        parameters,
        result,
        skipped,
        success,
        system,
        variables,
        wait_for_event,
        workflow,
    )
    from penstock.language.workflows.task_builders import task
    from penstock.run.batch_item import Item
    from penstock.run.context import current
    from penstock.run.executor_registry import register_executor
    from penstock.run.steering import AskInquiry, Defer, Later, NonRetryable, Retry, ask, later
    from penstock.settings import Settings

_HOMES = {
    "Workflow": "language.workflows",
    "workflow": "language.workflows",
    "Context": "language.workflows",
    "ContextTask": "language.workflows",
    "all_of": "language.workflows",
    "any_of": "language.workflows",
    "context": "language.workflows",
    "each": "language.workflows",
    "error": "language.workflows",
    "event": "language.workflows",
    "expr": "language.workflows",
    "fail": "language.workflows",
    "failed": "language.workflows",
    "index": "language.workflows",
    "inquiry": "language.workflows",
    "item": "language.workflows",
    "none_of": "language.workflows",
    "noop": "language.workflows",
    "on_exit": "language.workflows",
    "parameters": "language.workflows",
    "result": "language.workflows",
    "skipped": "language.workflows",
    "success": "language.workflows",
    "system": "language.workflows",
    "task": "language.workflows",
    "variables": "language.workflows",
    "wait_for_event": "language.workflows",
    "Action": "language.definitions",
    "ActionRef": "language.terms.action_ref",
    "AskInquiry": "run.steering",
    "Batch": "language.definitions",
    "Breaker": "language.definitions",
    "Client": "client.client",
    "Defer": "run.steering",
    "Later": "run.steering",
    "Definitions": "language.loading",
    "DurableContext": "engine.durable.context",
    "Document": "language.definitions",
    "HttpClient": "client.http_client",
    "Item": "run.batch_item",
    "Limit": "language.definitions",
    "MissedFires": "language.definitions",
    "NonRetryable": "run.steering",
    "Overlap": "language.definitions",
    "Pack": "language.definitions",
    "PenstockError": "errors",
    "Recovery": "language.policies.policies",
    "Retry": "run.steering",
    "RetryPolicy": "language.policies.policies",
    "Route": "language.definitions",
    "Rule": "language.definitions",
    "Schedule": "language.definitions",
    "Secret": "language.schemas",
    "SyncClient": "client.sync_client",
    "SyncHttpClient": "client.sync_http_client",
    "Settings": "settings",
    "Timeouts": "language.policies.policies",
    "Trigger": "language.definitions",
    "Window": "language.definitions",
    "action": "language.definitions",
    "command_action": "language.definitions",
    "ask": "run.steering",
    "later": "run.steering",
    "current": "run.context",
    "register_executor": "run.executor_registry",
    "http_action": "language.definitions",
    "kubernetes_action": "language.definitions",
    "load": "language.loading",
    "schedule": "language.definitions",
    "trigger": "language.definitions",
}
"""The module of each public name. It is imported at first use, since the child process that runs one action needs only
few."""

__all__ = [
    "Action",
    "ActionRef",
    "AskInquiry",
    "Batch",
    "Breaker",
    "Client",
    "Context",
    "ContextTask",
    "Defer",
    "Definitions",
    "Document",
    "DurableContext",
    "HttpClient",
    "Item",
    "Later",
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
    "SyncClient",
    "SyncHttpClient",
    "Timeouts",
    "Trigger",
    "Window",
    "Workflow",
    "action",
    "all_of",
    "any_of",
    "ask",
    "command_action",
    "context",
    "current",
    "each",
    "error",
    "event",
    "expr",
    "fail",
    "failed",
    "http_action",
    "index",
    "inquiry",
    "item",
    "kubernetes_action",
    "later",
    "load",
    "none_of",
    "noop",
    "on_exit",
    "parameters",
    "register_executor",
    "result",
    "schedule",
    "skipped",
    "success",
    "system",
    "task",
    "trigger",
    "variables",
    "wait_for_event",
    "workflow",
]


if not TYPE_CHECKING:  # a type checker that saw `__getattr__` would accept every misspelt name

    def __getattr__(name: str) -> Any:
        home = _HOMES.get(name)
        if home is None:
            raise AttributeError(f"module 'penstock' has no attribute {name!r}")
        value = getattr(import_module(f"penstock.{home}"), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
