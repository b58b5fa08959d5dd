"""Conversions of stored steps and children of a durable function's run into what its replay reads."""

from __future__ import annotations

from uuid import UUID

from penstock.engine.durable.records import Child, Key, Record
from penstock.language.definitions.qualified_name import GENERATED
from penstock.store.durable.steps import StoredChild, StoredStep


def record_of(step: StoredStep) -> Record:
    """Convert a row of `step` into a record."""
    return Record(
        Key(step.name, step.ordinal),
        step.place,
        step.kind,
        step.status,
        step.result,
        step.error,
        step.tries,
        step.took,
        step.asked_after,
        step.told,
        step.at,
        step.attempt,
    )


def child_of(stored: StoredChild) -> Child:
    """Convert a row of `execution` into a child. The workflow that runs the items of a map stands for their action."""
    target = None if stored.target is None else stored.target.removesuffix(GENERATED)
    return Child(
        UUID(int=stored.id.int), stored.status, stored.ended, stored.result, stored.error, stored.finished_at, target
    )  # fmt: skip
