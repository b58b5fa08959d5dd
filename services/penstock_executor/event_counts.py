"""The number of events of each trigger that this replica has matched with the rules, and of those that matched a
rule, for /metrics."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from penstock_executor.rule_failures import Cached


@dataclass(slots=True)
class Tally:
    """Counts by trigger since the replica started. Events of a retried batch count again."""

    evaluated: Counter[str] = field(default_factory=Counter)
    matched: Counter[str] = field(default_factory=Counter)


def tally(of: Cached) -> Tally:
    """Return the tally of the replica."""
    replica_tally: Tally = of.cache.setdefault("events.counts", Tally())
    return replica_tally
