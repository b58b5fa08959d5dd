"""Admission as one would explain it: who waits stands in one line, and whoever finds room in all he needs goes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

HOLDING = ("scheduled", "running", "canceling")


@dataclass
class One:
    """An execution. `place`: what it is ordered by, the best first."""

    id: UUID
    action: str
    customer: str
    rank: int
    ready_at: datetime
    status: str = "requested"

    @property
    def place(self) -> tuple[int, datetime, UUID]:
        return self.rank, self.ready_at, self.id


@dataclass
class Model:
    """`each` at once for each customer of shop.charge, `whole` at once for the pack; `away`: no worker lives."""

    each: int
    whole: int
    all: dict[UUID, One] = field(default_factory=dict)
    away: bool = False

    def keys(self, one: One) -> list[str]:
        if one.action == "shop.charge":
            return [f"each {one.customer}", "whole"]
        return ["whole"] if one.action == "shop.refund" else []

    def holders(self, key: str) -> int:
        return sum(one.status in HOLDING and key in self.keys(one) for one in self.all.values())

    def room(self, key: str) -> bool:
        return self.holders(key) < (self.whole if key == "whole" else self.each)

    def those(self, *statuses: str) -> list[One]:
        return [one for one in self.all.values() if one.status in statuses]

    def admit(self, ones: list[One]) -> None:
        for one in ones:
            if one.status == "requested":
                one.status = "queued" if self.keys(one) else "scheduled"
        self.settle()

    def settle(self) -> None:
        """Let in, in order, whoever finds room in all that he needs."""
        for one in sorted(self.those("queued"), key=lambda one: one.place):
            if not self.away and all(map(self.room, self.keys(one))):
                one.status = "scheduled"

    def slots(self) -> Iterator[str]:
        for one in self.those(*HOLDING):
            yield from self.keys(one)

    def end(self, ones: list[One], status: str | Callable[[One], str]) -> None:
        """Move these. What is requested again under limits is in line at once, in its place, before anyone is let in."""
        for one in ones:
            one.status = status if isinstance(status, str) else status(one)
            if one.status == "requested" and self.keys(one):
                one.status = "queued"
        self.settle()
