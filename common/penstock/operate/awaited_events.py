"""The conditions of waits for events, as text for people: with the values that they compare, of which secrets are masked."""

from __future__ import annotations

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
    bound = dict(stored.get("bound") or {})
    if "parameters" in bound:
        bound["parameters"] = masking.parameters(starter, bound["parameters"])
    return filter_text(stored.get("filter"), bound, partial(masking.payload, trigger))
