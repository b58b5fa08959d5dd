"""Breakers as a person would explain them: a line for each customer, the last attempts, and a state."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from math import inf
from uuid import UUID

UNDER_WAY = ("scheduled", "running", "canceling")


@dataclass
class Call:
    """An execution. `epoch` is the number of changes of its breaker before its admission."""

    id: UUID
    customer: str
    rank: int
    ready_at: datetime
    status: str = "requested"
    epoch: int = 0

    @property
    def place(self) -> tuple[int, datetime, UUID]:
        return self.rank, self.ready_at, self.id


@dataclass
class Switch:
    """The breaker of one customer. `opened` and `released` are the epochs in which it opened and began to release."""

    state: str = "closed"
    attempts: list[tuple[float, bool]] = field(default_factory=list)
    probe_at: float = 0.0
    allowed: int = 1
    passed: int = 0
    epoch: int = 0
    opened: int = 0
    released: int = 0


@dataclass
class Breakers:
    failures: int
    of: int
    within: float
    probe: float
    now: float = 0.0
    all: dict[UUID, Call] = field(default_factory=dict)
    switches: dict[str, Switch] = field(default_factory=dict)

    def switch(self, customer: str) -> Switch:
        return self.switches.setdefault(customer, Switch())

    def those(self, *statuses: str) -> list[Call]:
        return [call for call in self.all.values() if call.status in statuses]

    def ask(self, calls: Sequence[Call]) -> None:
        for call in calls:
            call.status = "queued"
        self.settle()

    def settle(self) -> None:
        for call in sorted(self.those("queued"), key=lambda call: call.place):
            if self.room(call.customer) > 0:
                call.status, call.epoch = "scheduled", self.switch(call.customer).epoch

    def room(self, customer: str) -> float:
        switch = self.switch(customer)
        if switch.state == "closed":
            return inf
        if switch.state == "open" and self.now < switch.probe_at:
            return 0
        since = [
            call
            for call in self.those(*UNDER_WAY)
            if call.customer == customer and call.epoch >= switch.opened
        ]
        return switch.allowed - len(since)

    def open(self, customer: str, probe_at: float) -> None:
        switch = self.switch(customer)
        switch.epoch += 1
        switch.state, switch.opened, switch.probe_at = "open", switch.epoch, probe_at
        switch.attempts, switch.allowed, switch.passed = [], 1, 0
        for call in self.those("scheduled"):
            if call.customer == customer:
                call.status = "queued"

    def release(self, customer: str) -> None:
        switch = self.switch(customer)
        switch.epoch += 1
        switch.state, switch.released, switch.allowed, switch.passed = "releasing", switch.epoch, 2, 0

    def end(self, ends: Sequence[tuple[Call, bool | None]]) -> None:
        """Count ended attempts, which have their new statuses: True is a failure, False a success, None neither."""
        for customer in sorted({call.customer for call, _ in ends}):
            switch = self.switch(customer)
            counted = [
                (call, failed) for call, failed in ends if failed is not None and call.customer == customer
            ]
            if switch.state == "open":
                probes = [failed for call, failed in counted if call.epoch >= switch.opened]
                if any(probes):
                    switch.probe_at = self.now + self.probe
                elif probes:
                    self.release(customer)
                continue
            if switch.state == "releasing":
                counted = [(call, failed) for call, failed in counted if call.epoch >= switch.released]
            switch.attempts += sorted((self.now, failed) for _, failed in counted)[::-1]
            switch.attempts = [a for a in switch.attempts if a[0] > self.now - self.within][-self.of :]
            if sum(failed for _, failed in switch.attempts) >= self.failures:
                self.open(customer, self.now + self.probe)
            elif switch.state == "releasing" and any(call.customer == customer for call, _ in ends):
                switch.passed += sum(not failed for _, failed in counted)
                if not [call for call in self.those("queued") if call.customer == customer]:
                    switch.state = "closed"
                    switch.epoch += 1
                elif switch.passed >= switch.allowed:
                    switch.allowed, switch.passed = switch.allowed * 2, 0
        self.settle()
