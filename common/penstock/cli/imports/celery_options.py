"""Every option of a task, a route and an entry of the beat schedule of Celery: what is mapped, what says nothing new here, and of
the rest what to do by hand. An option that is in none of these is named, too."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from typing import Any

from penstock.cli.imports.celery_calls import NotLiteral, literal, seconds

SEE = "See docs/reference/actions.md."


def _tries(node: ast.expr) -> dict[str, Any]:
    tries = literal(node)
    if not isinstance(tries, int):  # None: for ever
        raise NotLiteral(ast.unparse(node))
    return {"max_attempts": tries + 1}


def _backoff(node: ast.expr) -> dict[str, Any]:
    first = literal(node)
    return {"backoff": "exponential", "first": float(first)} if first else {}


RETRY: Mapping[str, Callable[[ast.expr], dict[str, Any]]] = {
    "max_retries": _tries,
    "default_retry_delay": lambda node: {"initial_delay": seconds(node)},
    "retry_backoff": _backoff,
    "retry_backoff_max": lambda node: {"max_delay": seconds(node)},
    "retry_jitter": lambda node: {"jitter": 1.0 if literal(node) else 0.0},
}
"""What each says of `retry`. Raises NotLiteral."""


def whole_retry(options: Mapping[str, Any]) -> dict[str, Any]:
    """A policy of what the options say. Where there is a backoff, Celery begins with that and not with the delay."""
    policy: dict[str, Any] = {"backoff": "fixed", "max_attempts": 4} | dict(options)
    first = policy.pop("first", None)
    if first is not None:
        policy |= {
            "initial_delay": first,
            "max_delay": policy.get("max_delay", 600.0),
            "jitter": policy.get("jitter", 1.0),
        }
    if policy.get("initial_delay", 0) > policy.get("max_delay", 60):
        policy["max_delay"] = policy["initial_delay"]
    return policy


_NOTHING: Mapping[str, tuple[object, ...] | None] = {
    "name": None,
    "bind": None,  # the code is moved by hand
    "ignore_result": None,  # a result may be asked for, and need not
    "track_started": None,
    "send_events": None,
    "trail": None,
    "store_errors_even_if_ignored": None,
    "typing": None,
    "shared": None,
    "lazy": None,
    "acks_late": (True,),
    "acks_on_failure_or_timeout": (True,),
    "reject_on_worker_lost": (True,),
    "enabled": (True,),
    "relative": (False,),
}
"""Options whose meaning holds here: whatever is said, or where this is."""


def says_nothing(option: str, node: ast.expr) -> bool:
    if option not in _NOTHING:
        return False
    values = _NOTHING[option]
    return values is None or (isinstance(node, ast.Constant) and node.value in values)


_AT_MOST_ONCE = "Where it must not run twice: `on_worker_loss: fail`."
TASK_BY_HAND: Mapping[str, str] = {
    "**options": "Write out the options that are meant.",
    "abstract": "Move what the class does into the functions.",
    "acks_late": _AT_MOST_ONCE,
    "acks_on_failure_or_timeout": _AT_MOST_ONCE,
    "autoretry_for": "Name the errors in `retry: {retry_on: []}`.",
    "backend": "Results are kept in PostgreSQL.",
    "base": "Move what the class does into the function.",
    "compression": "Nothing is to be said: messages are small.",
    "dont_autoretry_for": "Name the errors in `retry: {never_on: []}`.",
    "exchange": "Write `route` of the action.",
    "expires": "Give `expires_at` where it is started, or `expires` in the rule.",
    "on_failure": "Write `on_failure` of the action.",
    "on_retry": "Do it in the function, as it is tried again.",
    "on_success": "Write `on_success` of the action.",
    "priority": "Give `priority` where it is started, or in the rule.",
    "pydantic": "The function takes models as they are.",
    "rate_limit": "Write it as `limits` of the action.",
    "reject_on_worker_lost": _AT_MOST_ONCE,
    "resultrepr_maxsize": "Results are shown whole.",
    "retry_kwargs": "Write `retry` of the action.",
    "routing_key": "Write `route` of the action.",
    "run_every": "Write it as a schedule.",
    "serializer": "Parameters and results are JSON.",
    "soft_time_limit": "The function meets CancelledError at its `timeout`, and has the grace to clean up.",
    "throws": "Name the errors in `retry: {never_on: []}`, or raise NonRetryable.",
}
ROUTE_BY_HAND: Mapping[str, str] = {
    "exchange": "A route is enough.",
    "exchange_type": "A route is enough.",
    "routing_key": "A route is enough.",
    "priority": "Give `priority` where it is started, or in the rule.",
}
BEAT_BY_HAND: Mapping[str, str] = {
    "options": "Write them of the schedule, or of the action: its route, `expires`, its priority.",
    "relative": "Write a `cron` in the place of `every`, which counts from a fixed instant.",
    "enabled": "Write `enabled: false` of the schedule.",
    "name": "The key is its name.",
}
