"""The answer, and the wording of its parts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal
from uuid import UUID

from penstock.store.executions.executions import Execution

Reason = Literal[
    "limit", "rate", "breaker", "regroup", "worker", "route", "timer", "message", "outage", "task", "dependency", "paused",
    "held", "inquiry", "event", "outside", "running", "stopping", "ended",
]  # fmt: skip
"""The causes. limit, rate: a slot, or the next start that a rate permits; breaker: a
breaker is open; regroup: its limits changed; worker: no
live worker can run it; route: workers that can are busy, or about to claim it; timer: a retry, a deferral, a delay;
message: an executor is about to handle it; outage: no process can; task: a workflow's own tasks; dependency: other
tasks of its workflow; held: a hold; outside: a system that completes it."""


@dataclass(frozen=True, slots=True)
class Why:
    """The answer: `says` is a sentence for people, `because` one word for programs, and `facts` are the values behind
    both."""

    id: UUID
    status: str
    because: Reason
    says: str
    facts: Mapping[str, Any]

    def document(self) -> dict[str, Any]:
        """Return the answer as JSON."""
        return {
            "id": self.id,
            "status": self.status,
            "because": self.because,
            "says": self.says,
            "facts": {name: value for name, value in self.facts.items() if value is not None},
        }

    def of_one_tenant(self) -> Why:
        """Return the answer without its facts about other executions, which may belong to another tenant."""
        if not self.facts.get("holders"):
            return self
        facts = {name: value for name, value in self.facts.items() if name != "holders"}
        says = f"Waits for a slot of {facts['limit']}: it is {ordinal(facts['position'])} in line."
        return replace(self, says=says, facts=facts)


def why_of(row: Execution, because: Reason, says: str, **facts: Any) -> Why:
    return Why(row.id, row.status, because, says, facts)


def span(seconds: float | None) -> str:
    """Return a length of time as text: 0.2 s, 45 s, 5 min, 3 h, 2 d."""
    length = max(0.0, seconds or 0.0)
    if length < 10:
        return f"{length:.1f} s"
    for unit, size, limit in (("s", 1, 100), ("min", 60, 100 * 60), ("h", 3600, 48 * 3600)):
        if length < limit:
            return f"{length / size:.0f} {unit}"
    return f"{length / 86400:.0f} d"


def count(number: int, noun: str, plural: str | None = None) -> str:
    """Return a number with its noun: `1 worker`, `3 workers`."""
    return f"{number} {noun if number == 1 else plural or noun + 's'}"


def ordinal(number: int) -> str:
    """Return an ordinal number: `1st`, `12th`, `23rd`."""
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"
