"""The conversion of StackStorm's policies to limits and retry policies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from penstock_import.stackstorm_runners import SHELLS


def retry_of(kind: str, supplied: Mapping[str, Any], runner: str) -> dict[str, Any] | None:
    """Return the retry policy for a policy; None without an equivalent. A StackStorm policy retries after a failure or
    after a timeout, never after both. In Penstock, an attempt that was ended at its timeout is a TimeoutError and not
    an Exception."""
    retry_on, count, delay = (supplied.get(key) for key in ("retry_on", "max_retry_count", "delay"))
    count, delay = 2 if count is None else count, 0 if delay is None else delay
    if kind != "action.retry" or supplied.keys() - {"retry_on", "max_retry_count", "delay"}:
        return None
    if any(isinstance(number, bool) or not isinstance(number, int | float) for number in (count, delay)):
        return None
    errors: dict[str, list[str]]
    if retry_on == "failure":
        errors = {"retry_on": ["Exception"]} | ({"never_on": ["ActionTimedOut"]} if runner in SHELLS else {})
    elif retry_on == "timeout" and runner in SHELLS:
        errors = {"retry_on": ["ActionTimedOut", "TimeoutError"]}
    else:
        return None
    return {
        "max_attempts": int(count) + 1,
        "backoff": "fixed",
        "initial_delay": float(delay),
        "max_delay": max(float(delay), 60),
        "jitter": 0,
        **errors,
    }


def limit_of(kind: str, supplied: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the limit for a policy; None without an equivalent."""
    threshold = supplied.get("threshold")
    if isinstance(threshold, bool) or not isinstance(threshold, int) or threshold < 1:
        return None
    action = supplied.get("action", "delay")
    if kind not in ("action.concurrency", "action.concurrency.attr") or action not in ("delay", "cancel"):
        return None
    if supplied.keys() - {"threshold", "action", "attributes"}:
        return None
    limit: dict[str, Any] = {"max": threshold}
    attributes = supplied.get("attributes")
    if kind == "action.concurrency.attr":
        if not isinstance(attributes, list) or not attributes:
            return None
        limit["by"] = attributes
    elif attributes:
        return None
    return limit | ({"when_full": "cancel_new"} if action == "cancel" else {})
