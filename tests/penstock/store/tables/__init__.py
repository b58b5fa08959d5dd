"""The columns, once: what alembic is checked against. The statements are in penstock.store and in migrations/.

What each table is for stands beside its columns in the migrations (migrations/versions/0001).
"""

from __future__ import annotations

from tests.penstock.store.tables import (
    access,
    admissions,
    definitions,
    events,
    executions,
    figures,
    messages,
    people,
    polls,
    processes,
    schedules,
    steps,
    subscriptions,
    workflows,
)
from tests.penstock.store.tables.metadata import METADATA

__all__ = [
    "METADATA",
    "access",
    "admissions",
    "definitions",
    "events",
    "executions",
    "figures",
    "messages",
    "people",
    "polls",
    "processes",
    "schedules",
    "steps",
    "subscriptions",
    "workflows",
]
