"""How many events of each trigger this replica has held against the rules, and how many of them matched one: for /metrics."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from penstock_executor.rule_failures import Cached


@dataclass(slots=True)
class Tally:
    """By trigger, since the replica started. Those of a batch that is handled again count again."""

    seen: Counter[str] = field(default_factory=Counter)
    matched: Counter[str] = field(default_factory=Counter)


def tally(of: Cached) -> Tally:
    """That of the replica."""
    found: Tally = of.cache.setdefault("events.counts", Tally())
    return found
