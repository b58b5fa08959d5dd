"""Admission by labels as the page of limits explains it. The labels of an execution are those of its parent, of its action, of
its searchable parameters and of its start, and the later counts. The values of a limit's `by` are compared in Python."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from tests.penstock.store.admission.model import HOLDING

RUN_LABELS = {"shop.charge": {"team": "billing"}, "shop.refund": {}, "mail.send": {"region": "eu"}}
SEARCHABLE = {"shop.charge": ["customer"], "shop.refund": ["customer", "region"], "mail.send": []}

Key = tuple[Any, ...]


@dataclass
class Labelled:
    """An execution. `keys` are the keys that it holds or waits for."""

    id: UUID
    action: str
    params: Mapping[str, Any]
    labels: Mapping[str, str]
    rank: int
    ready_at: datetime
    status: str = "requested"
    keys: list[Key] = field(default_factory=list)

    @property
    def place(self) -> tuple[int, datetime, UUID]:
        return self.rank, self.ready_at, self.id


@dataclass(frozen=True)
class Bound:
    """A limit: how many executions of `actions` run at once, for each combination of `by`."""

    ref: str
    actions: tuple[str, ...]
    by: tuple[str, ...]
    max: int

    def key(self, one: Labelled) -> Key:
        return (self.ref, *((path, value(one, path)) for path in self.by))


def labels(
    action: str, params: Mapping[str, Any], given: Mapping[str, str], parent: Mapping[str, str]
) -> dict[str, str]:
    """Return the labels of a new execution."""
    merged = {**parent, **RUN_LABELS[action]}
    for name in SEARCHABLE[action]:
        text = searched(params.get(name))
        if text is not None:
            merged[name] = text
    return {**merged, **given}


def searched(value: Any) -> str | None:
    """Return the label that a searchable parameter becomes, or None."""
    if isinstance(value, bool | int | float):
        return json.dumps(value)
    return value if isinstance(value, str) and 1 <= len(value) <= 200 else None


def value(one: Labelled, path: str) -> Any:
    """Return a value that is equal for equal values of a path. 7 and 7.0 are one value, and 1, "1" and true are three."""
    if path.startswith("labels."):
        return one.labels.get(path[len("labels.") :])
    given: Any = one.params
    for name in path.split("."):
        given = given.get(name) if isinstance(given, Mapping) else None
    is_number = isinstance(given, int | float) and not isinstance(given, bool)
    return ("number", float(given)) if is_number else json.dumps(given, sort_keys=True)


@dataclass
class Model:
    """All executions, and the limits that are in force."""

    bounds: list[Bound]
    all: dict[UUID, Labelled] = field(default_factory=dict)
    marked: set[UUID] = field(default_factory=set)
    """The executions that are not regrouped yet."""

    def those(self, *statuses: str) -> list[Labelled]:
        return [one for one in self.all.values() if one.status in statuses]

    def needed(self, one: Labelled) -> list[Key]:
        return [bound.key(one) for bound in self.bounds if one.action in bound.actions]

    def is_regrouping(self, one: Labelled) -> bool:
        """Return True if an execution, or another one under a limit of it, is not regrouped yet."""
        actions = {self.all[id].action for id in self.marked}
        return one.id in self.marked or any(
            one.action in bound.actions and actions & {*bound.actions} for bound in self.bounds
        )

    def admit(self, ones: Sequence[Labelled]) -> None:
        for one in ones:
            if one.status == "requested":
                one.keys = self.needed(one)
                one.status = "queued" if one.keys else "scheduled"
        self.settle()

    def change(self, bounds: list[Bound], marked: set[UUID]) -> None:
        """Other limits are in force. A holder keeps the keys that it holds, and a waiting execution needs the new ones."""
        self.bounds, self.marked = bounds, marked
        for one in self.those("queued"):
            one.keys = self.needed(one)
        self.settle()

    def settle(self) -> None:
        """Admit, in order, each execution that finds room under all its limits. None of them may be regrouping."""
        most = {bound.ref: bound.max for bound in self.bounds}
        held = [key for one in self.those(*HOLDING) for key in one.keys]
        for one in sorted(self.those("queued"), key=lambda one: one.place):
            if not self.is_regrouping(one) and all(held.count(key) < most[key[0]] for key in one.keys):
                one.status = "scheduled"
                held += one.keys

    def end(self, ones: Sequence[Labelled], status: str) -> None:
        for one in ones:
            one.status = status
        self.admit([one for one in ones if status == "requested"])
        self.settle()
