"""Waits for events, for people: their conditions as text, their parameters and their events. Secrets are masked."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import orjson

from penstock.language.rules.event_filter import filter_text
from penstock.operate.masking import Masking


def condition_text(masking: Masking, trigger: str, params: str | None, starter: str | None) -> str:
    """Return the condition of a wait for an event of `trigger`: `where order_id = 42`; empty without one. `params` are the
    stored parameters of the wait (JSON). `starter` is the action or workflow that waits. Its secret
    parameters are masked."""
    stored: dict[str, Any] = orjson.loads(params) if params else {}
    bound = _masked_bound(masking, stored, starter)
    return filter_text(stored.get("filter"), bound, partial(masking.payload, trigger))


def shown_parameters(masking: Masking, stored: Mapping[str, Any], starter: str | None) -> dict[str, Any]:
    """Return the stored parameters of a wait for display: its trigger, its filter with the values that the filter compares,
    and its timeout. The secret parameters of `starter` are masked. The key by which events are looked up is left out: it is a
    digest, from which a short secret could be guessed."""
    parameters = {name: value for name, value in stored.items() if name not in ("path", "key")}
    if "bound" in parameters:
        parameters["bound"] = _masked_bound(masking, stored, starter)
    return parameters


def shown_event(masking: Masking, trigger: str, event: Any) -> Any:
    """Return the event that ended a wait, with the secrets of its payload masked; None if there is none yet."""
    if not isinstance(event, Mapping) or "payload" not in event:
        return event
    return {**event, "payload": masking.payload(trigger, event["payload"])}


def _masked_bound(masking: Masking, stored: Mapping[str, Any], starter: str | None) -> dict[str, Any]:
    bound = dict(stored.get("bound") or {})
    if "parameters" in bound:
        bound["parameters"] = masking.parameters(starter, bound["parameters"])
    return bound
