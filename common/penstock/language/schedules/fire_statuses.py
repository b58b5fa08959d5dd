"""The statuses of a fire and the legal moves between them. The database (migrations/functions/schedule/fire_moved.sql) refuses
others."""

from __future__ import annotations

CREATED = "created"
"""It has an execution. A lost one is replaced, which is no move."""
QUEUED = "queued"
"""It waits until the run before it has ended (overlap: queue or replace)."""
SKIPPED = "skipped"
"""It has no execution, and `error` says why. A backfill can still start it."""
FAILED = "failed"
"""Its execution could not be started, or was lost too often. `error` says why; a backfill can try again."""

MOVES: dict[str, frozenset[str]] = {
    QUEUED: frozenset({CREATED, SKIPPED}),
    CREATED: frozenset({FAILED}),
    SKIPPED: frozenset({CREATED, QUEUED}),
    FAILED: frozenset({CREATED, QUEUED}),
}

DUE = "due"
"""A fire in time."""
MISSED = "missed"
"""A fire that came later than its schedule's grace."""
BACKFILL = "backfill"
"""Asked for, of a past instant."""
MANUAL = "manual"
"""Asked for, at that instant."""
