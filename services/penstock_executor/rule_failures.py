"""The number of rule failures in this replica: for /metrics, and for a log line each minute."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Protocol

from penstock.store.events.rule_matches import NewEnforcement


class Cached(Protocol):
    """An owner of a replica's cache: its database, or a transaction on it."""

    @property
    def cache(self) -> dict[Any, Any]: ...


@dataclass(slots=True)
class Tally:
    """The failures of rules. `total`: by rule since the replica started. `untold`: those that were not logged yet."""

    total: Counter[str] = field(default_factory=Counter)
    untold: Counter[str] = field(default_factory=Counter)

    def add(self, enforcements: Iterable[NewEnforcement]) -> None:
        """Count the enforcements that have an error."""
        for enforcement in enforcements:
            if enforcement.error is not None:
                self.total[enforcement.rule] += 1
                self.untold[enforcement.rule] += 1

    def tell(self) -> dict[str, int]:
        """Return the failures since the last call, and mark them as reported."""
        failures, self.untold = dict(self.untold), Counter()
        return failures


def tally(of: Cached) -> Tally:
    """Return the tally of the replica."""
    replica_tally: Tally = of.cache.setdefault("rules.failures", Tally())
    return replica_tally
