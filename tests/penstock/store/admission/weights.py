"""Weighted admission as a person would explain it: a line, a window in which costs count, and slots for each customer."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

HOLDING = ("scheduled", "running", "canceling")
WINDOW = 3600.0


@dataclass
class Costed:
    """An execution. `reserved` is its entry in the window, once it was admitted."""

    id: UUID
    action: str
    customer: str
    cost: int
    rank: int
    ready_at: datetime
    status: str = "requested"
    attempts: int = 0

    @property
    def place(self) -> tuple[int, datetime, UUID]:
        return self.rank, self.ready_at, self.id


@dataclass
class Weights:
    """`tokens` in a window for all of the pack, `memory` at once for shop.refund, and `charges` at once for each customer of
    shop.charge. `now` counts the seconds that were skipped."""

    tokens: int
    memory: int
    charges: int
    now: float = 0.0
    all: dict[UUID, Costed] = field(default_factory=dict)
    window: list[tuple[float, UUID, int, int]] = field(default_factory=list)
    held: dict[UUID, int] = field(default_factory=dict)

    def those(self, *statuses: str) -> list[Costed]:
        return [item for item in self.all.values() if item.status in statuses]

    def tokens_left(self) -> int:
        return self.tokens - sum(cost for at, _, _, cost in self.window if at > self.now - WINDOW)

    def memory_left(self) -> int:
        return self.memory - sum(
            self.held[item.id] for item in self.those(*HOLDING) if item.action == "shop.refund"
        )

    def is_full(self, item: Costed) -> bool:
        same = [
            other
            for other in self.those(*HOLDING)
            if (other.action, other.customer) == (item.action, item.customer)
        ]
        return item.action == "shop.charge" and len(same) >= self.charges

    def ask(self, items: list[Costed]) -> None:
        for item in items:
            if item.status != "requested":
                continue
            limits = [self.tokens] + ([self.memory] if item.action == "shop.refund" else [])
            refused = item.attempts == 0 and item.cost > min(limits)
            item.status = "cancelled" if refused else "queued"
        self.settle()

    def settle(self) -> None:
        """Admit in order. An execution that does not fit under a key with costs keeps all behind it waiting there."""
        raise NotImplementedError


class TokensAndEach(Weights):
    """Without the limit on memory: one key with costs, and plain keys."""

    def settle(self) -> None:
        closed = False
        for item in sorted(self.those("queued"), key=lambda item: item.place):
            if self.is_full(item):
                continue
            cost = min(item.cost, self.tokens)
            if closed or cost > self.tokens_left():
                closed = True
                continue
            item.status = "scheduled"
            item.attempts += 1
            self.window.append((self.now, item.id, item.attempts, cost))

    def report(self, item: Costed, cost: int) -> None:
        """Settle the last admission of an execution."""
        self.window = [
            (at, id, attempt, cost if (id, attempt) == (item.id, item.attempts) else reserved)
            for at, id, attempt, reserved in self.window
        ]


class Memory(Weights):
    """The limit on memory alone, on shop.refund."""

    def settle(self) -> None:
        for item in sorted(self.those("queued"), key=lambda item: item.place):
            cost = min(item.cost, self.memory)
            if cost > self.memory_left():
                return
            item.status = "scheduled"
            item.attempts += 1
            self.held[item.id] = cost
